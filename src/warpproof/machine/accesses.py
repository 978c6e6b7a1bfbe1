"""Loads, stores and atomics of a batch: values, and everything that can be wrong with them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Atomic, Bits, Load, ScalarType, Store
from warpproof.machine.addresses import Addresses, AddressSpaces, Piece, address_array
from warpproof.machine.batch import Lanes, Mask, Words
from warpproof.machine.handoff import Handoffs, contended
from warpproof.machine.hazards import Conflict, Shadow
from warpproof.machine.ordering import STRONG_CTA, STRONG_GPU, WEAK, Clocks
from warpproof.machine.recorder import Recorder
from warpproof.machine.storage import Offsets, Region

_DTYPES: Final = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def strength(semantics: str, scope: str) -> int:
    """How strong an access is: weak, strong in its CTA, or strong on the device (memory model, 8.4)."""
    if semantics == "weak":
        return WEAK
    return STRONG_CTA if scope in ("cta", "cluster") else STRONG_GPU


class Accesses:
    """Carries out memory effects on one batch. `shadows` holds the access history of regions that threads share."""

    __slots__ = ("_clocks", "_handoffs", "_poison", "_recorder", "_shadows", "_spaces")

    def __init__(self, spaces: AddressSpaces, clocks: Clocks, shadows: dict[int, Shadow], handoffs: Handoffs | None,
                 recorder: Recorder, poison: int) -> None:
        self._spaces, self._clocks, self._shadows = spaces, clocks, shadows
        self._handoffs, self._recorder, self._poison = handoffs, recorder, poison

    def load(self, effect: Load, lanes: Lanes, pc: int) -> Any:
        """The loaded value, or a tuple of `count`; poison in lanes whose access faults."""
        size, parts = _element(effect.type)
        count = effect.count * parts
        addresses = address_array(effect.address)
        dtype = _DTYPES[8 * size]
        pieces = self._located(effect.space, addresses, lanes, size * count, pc, "read")
        out: list[Words] | None = None
        level = strength(effect.semantics, effect.scope)
        for piece in pieces:
            slots, mine = self._slots(piece, lanes)
            values = self._read(piece, slots, size, count, mine, pc, addresses)
            self._note_read(piece, slots, size * count, mine, pc, level, addresses)
            if "nc" in effect.cache:
                self._non_coherent(piece, slots, size * count, mine, pc, addresses)
            if level != WEAK and self._handoffs is not None:
                self._handoffs.read(piece.region, slots, mine, effect.semantics, effect.scope)
            if piece.positions is None:
                out = values
            else:
                out = out or self._poisoned(len(lanes), dtype, count)
                for whole, value in zip(out, values, strict=True):
                    whole[piece.positions] = value
        out = out or self._poisoned(len(lanes), dtype, count)
        if parts == 2:
            out = [np.stack(out[2 * k:2 * k + 2], axis=-1) for k in range(effect.count)]
        return out[0] if effect.count == 1 else tuple(out)

    def store(self, effect: Store, lanes: Lanes, pc: int) -> None:
        """Write the values; nothing in lanes whose access faults."""
        size, parts = _element(effect.type)
        values: list[Words] = []
        for value in effect.values:
            word = np.asarray(value)
            values += [word] if parts == 1 else [word[:, 0], word[:, 1]]
        addresses = address_array(effect.address)
        level = strength(effect.semantics, effect.scope)
        for piece in self._located(effect.space, addresses, lanes, size * len(values), pc, "write"):
            slots, mine = self._slots(piece, lanes)
            if not piece.region.writable:
                self._read_only(piece, mine, pc, addresses, size * len(values))
                continue
            chosen = values if piece.positions is None else [value[piece.positions] for value in values]
            if level != WEAK and self._handoffs is not None:
                self._handoffs.write(piece.region, slots, mine, effect.semantics, effect.scope)
            self.write(piece, slots, size, chosen, mine, pc, level, addresses)

    def write(self, piece: Piece, slots: Offsets, size: int, values: list[Words], lanes: Lanes, pc: int, level: int,
              addresses: Addresses, since: Any = None) -> None:
        """Put words side by side at each slot, recording races (see `Shadow.store`)."""
        region = piece.region
        shadow = self._shadows.get(id(region))
        conflicts: list[Conflict] = []
        if shadow is not None:
            conflicts = shadow.store(self._clocks, slots, size * len(values), lanes, pc, level, since)
        before = [region.read(slots + k * size, size) for k in range(len(values))] if conflicts else []
        for k, value in enumerate(values):
            region.write(slots + k * size if k else slots, size, value)
        if conflicts:
            after = [region.read(slots + k * size, size) for k in range(len(values))]
            self._report_writes(conflicts, values, before, after, piece, lanes, pc, addresses, size * len(values))

    def atomic(self, effect: Atomic, lanes: Lanes, pc: int) -> Words:
        """The old values; lanes at one address take their turns in lane order."""
        size, parts = _element(effect.type)
        if parts != 1:
            raise Unsupported(f"atom.{effect.type}", "128-bit atomics are not emulated")
        addresses = address_array(effect.address)
        out = self._poisoned(len(lanes), _DTYPES[8 * size], 1)[0]
        level = strength("relaxed", effect.scope)
        for piece in self._located(effect.space, addresses, lanes, size, pc, "update"):
            slots, mine = self._slots(piece, lanes)
            if not piece.region.writable:
                self._read_only(piece, mine, pc, addresses, size)
                continue
            positions = np.arange(len(lanes)) if piece.positions is None else piece.positions
            self._initialised(piece, slots, size, mine, pc, addresses)
            shadow = self._shadows.get(id(piece.region))
            if shadow is not None:
                for conflict in shadow.store(self._clocks, slots, size, mine, pc, level):
                    self._race(conflict, piece, mine, pc, addresses, size, "race")
            if self._handoffs is not None:
                self._handoffs.update(piece.region, slots, mine, effect.semantics, effect.scope)
            args = [np.asarray(arg)[positions] for arg in effect.args]
            out[positions] = _take_turns(effect, piece.region, slots, size, args)
        return out

    def writable(self, addresses: Addresses, lanes: Lanes, size: int, pc: int) -> Mask:
        """In which lanes a later write to shared memory is possible; its races with what came before are reported."""
        possible: Mask = np.zeros(len(lanes), np.bool_)
        for piece in self._located("shared", addresses, lanes, size, pc, "asynchronous write"):
            slots, mine = self._slots(piece, lanes)
            possible[slice(None) if piece.positions is None else piece.positions] = True
            shadow = self._shadows.get(id(piece.region))
            if shadow is not None:
                for conflict in shadow.probe(self._clocks, slots, size, mine, pc, WEAK):
                    self._race(conflict, piece, mine, pc, addresses, size, "race")
        return possible

    def _located(self, space: str, addresses: Addresses, lanes: Lanes, size: int, pc: int, verb: str) -> list[Piece]:
        """The pieces of an access in the lanes where it is aligned and in bounds, reporting the others."""
        positions: Lanes | None = None
        bad = addresses & np.uint64(size - 1) != 0
        if bad.any():
            where = np.flatnonzero(bad)
            self._recorder.access("misaligned", f"{verb} of {size} bytes at an address that is no multiple of {size}",
                                  lanes[where], pc, space, addresses[where], size)
            positions = np.flatnonzero(~bad)
            addresses, lanes = addresses[positions], lanes[positions]
        pieces, outside = self._spaces.resolve(space, addresses, lanes, size)
        if outside is not None and outside.any():
            where = np.flatnonzero(outside)
            self._recorder.access("out-of-bounds", f"{verb} of {size} bytes outside its allocation", lanes[where], pc,
                                  space, addresses[where], size)
        if positions is None:
            return pieces
        return [Piece(p.space, p.region, positions if p.positions is None else positions[p.positions], p.offsets)
                for p in pieces]

    @staticmethod
    def _slots(piece: Piece, lanes: Lanes) -> tuple[Offsets, Lanes]:
        return piece.region.slots(piece.offsets), lanes if piece.positions is None else lanes[piece.positions]

    def _poisoned(self, lanes: int, dtype: Any, count: int) -> list[Words]:
        pattern = self._poison & ((1 << 8 * np.dtype(dtype).itemsize) - 1)
        return [np.full(lanes, pattern, dtype) for _ in range(count)]

    def _read(self, piece: Piece, slots: Offsets, size: int, count: int, lanes: Lanes, pc: int,
              addresses: Addresses) -> list[Words]:
        region = piece.region
        values = []
        for k in range(count):
            at = slots + k * size if k else slots
            values.append(region.read(at, size))
            if region.tracks_writes:
                self._initialised(piece, at, size, lanes, pc, addresses)
        return values

    def _initialised(self, piece: Piece, slots: Offsets, size: int, lanes: Lanes, pc: int,
                     addresses: Addresses) -> None:
        known = piece.region.initialised(slots, size)
        if known is not None:
            where = np.flatnonzero(~known)
            chosen = where if piece.positions is None else piece.positions[where]
            self._recorder.access("uninitialised-read", f"{piece.space} memory read before it is written", lanes[where],
                                  pc, _space_name(piece), addresses[chosen], size)

    def _note_read(self, piece: Piece, slots: Offsets, size: int, lanes: Lanes, pc: int, level: int,
                   addresses: Addresses) -> None:
        shadow = self._shadows.get(id(piece.region))
        if shadow is not None:
            for conflict in shadow.load(self._clocks, slots, size, lanes, pc, level):
                self._race(conflict, piece, lanes, pc, addresses, size, "race")

    def _non_coherent(self, piece: Piece, slots: Offsets, size: int, lanes: Lanes, pc: int,
                      addresses: Addresses) -> None:
        """The data must be read-only for the duration of the kernel (PTX ISA 9.7.9.9, ld.global.nc)."""
        shadow = self._shadows.get(id(piece.region))
        if shadow is None or not piece.region.writable:
            return
        where = np.flatnonzero(shadow.written(slots, size))
        if len(where):
            chosen = where if piece.positions is None else piece.positions[where]
            self._recorder.access("non-coherent-read", "non-coherent load of what the kernel has written", lanes[where],
                                  pc, _space_name(piece), addresses[chosen], size)

    def _read_only(self, piece: Piece, lanes: Lanes, pc: int, addresses: Addresses, size: int) -> None:
        chosen = addresses if piece.positions is None else addresses[piece.positions]
        self._recorder.access("write-to-input", f"store into read-only {piece.region.name}", lanes, pc,
                              _space_name(piece), chosen, size)

    def _report_writes(self, conflicts: list[Conflict], values: list[Words], before: list[Words], after: list[Words],
                       piece: Piece, lanes: Lanes, pc: int, addresses: Addresses, size: int) -> None:
        for conflict in conflicts:
            at = conflict.positions
            theirs = after if conflict.within else before
            same: Mask = conflict.plain()
            for value, other in zip(values, theirs, strict=True):
                same &= value[at] == other[at]
            for kind, chosen in (("race", ~same), ("race-same-value", same)):
                if chosen.any():
                    part = Conflict(at[chosen], conflict.prior[chosen], conflict.writes, conflict.within)
                    self._race(part, piece, lanes, pc, addresses, size, kind)

    def _race(self, conflict: Conflict, piece: Piece, lanes: Lanes, pc: int, addresses: Addresses, size: int,
              kind: str) -> None:
        where = conflict.positions
        chosen = where if piece.positions is None else piece.positions[where]
        message = f"unordered with an earlier {'write' if conflict.writes else 'read'} of {piece.space} memory"
        if kind == "race-same-value":
            message = f"two unordered writes of one value to {piece.space} memory"
        self._recorder.access(kind, message, lanes[where], pc, _space_name(piece), addresses[chosen], size,
                              int(conflict.prior[0]))


def _space_name(piece: Piece) -> str:
    return "generic" if piece.space == "global" else piece.space


def _element(ty: ScalarType) -> tuple[int, int]:
    """Bytes of the largest word a value of the type is moved in, and the number of such words."""
    if ty.width == 128:
        return 8, 2
    if ty.width not in _DTYPES:
        raise Unsupported(f"access of type {ty}", "no such width in memory")
    return ty.width // 8, 1


def _take_turns(effect: Atomic, region: Region, slots: Offsets, size: int, args: list[Words]) -> Words:
    old = np.empty(len(slots), _DTYPES[8 * size])
    rounds = contended(slots)
    last = int(rounds.max())
    for turn in range(last + 1):
        mine = np.flatnonzero(rounds == turn) if last else np.arange(len(slots))
        at = slots[mine]
        before = region.read(at, size)
        region.write(at, size, _updated(effect, before, [arg[mine] for arg in args]))
        old[mine] = before
    return old


def _updated(effect: Atomic, old: Words, args: list[Words]) -> Words:
    """The new value of an atomic (PTX ISA 9.7.13.5)."""
    ty, dom = effect.type, Bits(len(old))
    match effect.op:
        case "exch":
            return args[0]
        case "cas":
            return np.asarray(np.where(old == args[0], args[1], old))
        case "inc":
            return np.asarray(np.where(old >= args[0], old.dtype.type(0), old + old.dtype.type(1)))
        case "dec":
            return np.asarray(np.where((old == 0) | (old > args[0]), args[0], old - old.dtype.type(1)))
        case "add" if ty.floating:
            return dom.floating("add", ty, effect.mode, old, args[0])
        case "min" | "max" if ty.floating:
            return dom.floating(effect.op, ty, effect.mode, old, args[0])
        case "add" | "min" | "max" | "and" | "or" | "xor":
            return dom.integer(effect.op, ty, old, args[0])
    raise Unsupported(f"atom.{effect.op}.{ty}", "no such operation")
