"""The register files of a batch: one array per register over all lanes; special registers (PTX ISA, chapter 10)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.machine.batch import WARP, Batch, Lanes, Words
from warpproof.machine.program import SPECIAL_WIDTHS, Program

Selection = slice | Lanes
_DTYPES: Final = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def selection(lanes: Lanes) -> Selection:
    """The lanes as a slice when they are consecutive (a view instead of a copy)."""
    first, last = int(lanes[0]), int(lanes[-1])
    return slice(first, last + 1) if last - first + 1 == len(lanes) else lanes


class RegisterFile:
    """All registers of a batch, by function and name. Registers never written hold the poison pattern."""

    __slots__ = ("_address_of", "_arrays", "_batch", "_cache", "_clock", "_dynamic_shared", "_poison", "_program",
                 "_shared_total", "timed")

    def __init__(self, batch: Batch, program: Program, address_of: Callable[[int, str], int], clock: Callable[[], int],
                 dynamic_shared: int, shared_total: int, poison: int) -> None:
        self._batch, self._program, self._address_of, self._clock = batch, program, address_of, clock
        self._dynamic_shared, self._shared_total, self._poison = dynamic_shared, shared_total, poison
        self._arrays: list[dict[str, Words]] = [{} for _ in program.kernels]
        self._cache: dict[str, Words] = {}
        self.timed = False  # a clock has been read

    def array(self, function: int, name: str) -> Words:
        """The whole register over all lanes."""
        held = self._arrays[function].get(name)
        if held is None:
            held = self._special(name) if self._is_special(function, name) else self._fresh(function, name)
        return held

    def copies(self) -> list[dict[str, Words]]:
        """All registers as they are now."""
        return [{name: held.copy() for name, held in arrays.items()} for arrays in self._arrays]

    def same(self, copies: list[dict[str, Words]], lanes: Lanes) -> bool:
        """True when the lanes hold what they held when the copies were made."""
        return all(
            arrays.keys() == before.keys() and all((arrays[n][lanes] == before[n][lanes]).all() for n in arrays)
            for arrays, before in zip(self._arrays, copies, strict=True)
        )

    def view(self, function: int, lanes: Lanes) -> LaneRegisters:
        """The registers as the given lanes see them."""
        return LaneRegisters(self, function, selection(lanes), len(lanes))

    def symbol(self, function: int, name: str) -> int:
        """The address of a symbol in its own state space."""
        return self._address_of(function, name)

    def _is_special(self, function: int, name: str) -> bool:
        return name.startswith("%") and name not in self._program.kernels[function].registers and name != "%CC"

    def _fresh(self, function: int, name: str) -> Words:
        width = 1 if name == "%CC" else self._program.kernels[function].registers[name].width
        lanes = self._batch.lanes
        made: Words
        if width == 1:
            made = np.zeros(lanes, np.bool_)
        elif width == 128:
            made = np.full((lanes, 2), self._poison, np.uint64)
        else:
            made = np.full(lanes, self._poison & ((1 << width) - 1), _DTYPES[width])
        self._arrays[function][name] = made
        return made

    def _special(self, name: str) -> Words:
        if name in ("%clock", "%clock64", "%clock_hi", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"):
            return self._time(name)
        held = self._cache.get(name)
        if held is None:
            values = np.broadcast_to(np.asarray(self._value(name)), (self._batch.lanes,))
            held = self._cache[name] = values.astype(_DTYPES[SPECIAL_WIDTHS.get(name, 32)])
        return held

    def _time(self, name: str) -> Words:
        self.timed = True
        now = self._clock()
        if name.endswith("_hi"):
            now >>= 32
        width = SPECIAL_WIDTHS.get(name, 32)
        return np.full(self._batch.lanes, now & ((1 << width) - 1), _DTYPES[width])

    def _value(self, name: str) -> Any:
        batch = self._batch
        base, _, axis = name[1:].partition(".")
        if axis:
            k = "xyzw".index(axis)
            triples: dict[str, Any] = {"tid": batch.tid, "ctaid": batch.ctaid, "ntid": lambda: batch.block,
                                       "nctaid": lambda: batch.grid, "cluster_ctaid": lambda: (0, 0, 0),
                                       "cluster_nctaid": lambda: (1, 1, 1), "clusterid": batch.ctaid,
                                       "nclusterid": lambda: batch.grid}
            if base in triples:
                return 0 if k == 3 else triples[base]()[k]
        lane = batch.lane_id
        one = np.uint64(1)
        bit = one << lane.astype(np.uint64)
        match base:
            case "laneid":
                return lane
            case "warpid":
                return batch.thread // WARP
            case "nwarpid":
                return batch.padded // WARP
            case "smid" | "gridid" | "cluster_ctarank" | "is_explicit_cluster":
                return 0
            case "nsmid" | "cluster_nctarank":
                return 1
            case "lanemask_eq":
                return bit
            case "lanemask_lt":
                return bit - one
            case "lanemask_le":
                return bit | (bit - one)
            case "lanemask_gt":
                return ~(bit | (bit - one)) & np.uint64(0xFFFFFFFF)
            case "lanemask_ge":
                return ~(bit - one) & np.uint64(0xFFFFFFFF)
            case "dynamic_smem_size":
                return self._dynamic_shared
            case "total_smem_size" | "aggr_smem_size":
                return self._shared_total
        raise Unsupported(name, "this special register is not emulated")


class LaneRegisters:
    """The registers of some lanes at one function (implements the operand protocol)."""

    __slots__ = ("_count", "_file", "_function", "_selected")

    def __init__(self, file: RegisterFile, function: int, selected: Selection, count: int) -> None:
        self._file, self._function, self._selected, self._count = file, function, selected, count

    def read(self, name: str) -> Words:
        """The register's value in the selected lanes."""
        value: Words = self._file.array(self._function, name)[self._selected]
        return value

    def write(self, name: str, value: Words) -> None:
        """Set the register in the selected lanes."""
        self._file.array(self._function, name)[self._selected] = value

    def address(self, symbol: str) -> Words:
        """The address of a symbol, the same in all lanes."""
        return np.full(self._count, self._file.symbol(self._function, symbol), np.uint64)
