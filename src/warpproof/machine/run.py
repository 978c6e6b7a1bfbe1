"""What a run keeps over its batches of CTAs: global and constant memory, parameters, access history, findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from warpproof.core import InputError, Unsupported
from warpproof.domains import Bits, DirectedBits
from warpproof.machine.addresses import AddressSpaces, Area, GlobalSpace
from warpproof.machine.batch import Batch
from warpproof.machine.handoff import Handoffs
from warpproof.machine.hazards import Shadow
from warpproof.machine.launch import Buffer, ConcreteLaunch, Pointer, place
from warpproof.machine.passage import Passage
from warpproof.machine.program import Program
from warpproof.machine.recorder import Recorder
from warpproof.machine.storage import Region
from warpproof.ptx import Kernel

_CTA_ALIGN: Final = 256


class Run:
    """One emulated launch in progress."""

    def __init__(self, program: Program, launch: ConcreteLaunch, ctas: Sequence[tuple[int, int, int]], *, races: bool,
                 step_limit: int, direction: str = "", memory: Mapping[str, Region] | None = None) -> None:
        self._direction = direction
        self.program, self.launch, self.ctas, self.races, self.step_limit = program, launch, ctas, races, step_limit
        self.recorder = Recorder(program, ctas)
        self.passage = Passage(program.kernels[0])
        self.steps = 0
        self.executed: set[int] = set()
        self.notes: dict[str, None] = {}
        kernel = program.kernels[0]
        variables = {name: Buffer(name, variable.size, True, variable.initial, 0)
                     for name, variable in kernel.variables.items() if variable.space == "global"}
        everything = {**{f"buffer {name}": b for name, b in launch.buffers.items()},
                      **{f"variable {name}": b for name, b in variables.items()}}
        bases = place(everything).bases
        before = memory or {}
        regions = {key: before.get(buffer.name) or Region.of(buffer, launch.poison)
                   for key, buffer in everything.items()}
        self.buffers = {name: regions[f"buffer {name}"] for name in launch.buffers}
        self.buffers.update({name: regions[f"variable {name}"] for name in variables if name not in self.buffers})
        self.buffers = {**before, **self.buffers}
        self._bases = bases
        self.globals = GlobalSpace({bases[key]: region for key, region in regions.items()})
        self.shadows: dict[int, Shadow] = {}
        if races:
            self.shadows = {id(r): Shadow(r, shared=False) for r in regions.values() if r.writable}
        self.handoffs = Handoffs() if races and program.handoffs() else None
        self._const = _constants(kernel)
        self._params = Region("parameters", _end(kernel), writable=False, initial=self._arguments(kernel))
        self.shared_size = _shared_size(kernel, launch.dynamic_shared)
        self._local_size = _extent(kernel, kernel.local_layout)

    def domain(self, lanes: int) -> Bits:
        """The value domain of the run."""
        return DirectedBits(lanes, self._direction) if self._direction else Bits(lanes)

    def buffer_address(self, name: str) -> int:
        """The address of a launch buffer."""
        return self._bases[f"buffer {name}"]

    def address_of(self, function: int, symbol: str) -> int:
        """The address of a symbol in its own state space."""
        found = self.program.address(function, symbol)
        return self._bases[f"variable {symbol}"] if found is None else found[1]

    def spaces(self, batch: Batch) -> tuple[AddressSpaces, Region]:
        """Fresh address spaces for a batch, and its shared memory."""
        count, poison = len(batch.ctas), self.launch.poison
        stride = -(-self.shared_size // _CTA_ALIGN) * _CTA_ALIGN
        shared = Region("shared", stride * count, poison=poison)
        lanes = np.arange(batch.lanes, dtype=np.int64)
        local_stride = -(-self._local_size // 16) * 16
        frame_stride = -(-self.program.frame_size // 16) * 16
        areas = {
            "shared": Area(shared, self.shared_size, stride, batch.cta),
            "const": Area(self._const, self._const.size, 0, None),
            "param": Area(self._params, self._params.size, 0, None),
            "local": Area(Region("local", local_stride * batch.lanes, poison=poison), self._local_size, local_stride,
                          lanes),
            "frame": Area(Region("call frame", frame_stride * batch.lanes, poison=poison), self.program.frame_size,
                          frame_stride, lanes),
        }
        return AddressSpaces(self.globals, areas), shared

    def _arguments(self, kernel: Kernel) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        image = bytearray(_end(kernel))
        for parameter, arg in zip(kernel.params, self.launch.args, strict=True):
            raw = arg
            if isinstance(raw, Pointer):
                raw = (self.buffer_address(raw.buffer) + raw.offset).to_bytes(8, "little")
            if len(raw) != parameter.size:
                raise InputError("CLI629", f"parameter {parameter.name} has {parameter.size} bytes, its argument "
                                 f"{len(raw)}")
            image[parameter.offset:parameter.offset + parameter.size] = raw
        return np.frombuffer(bytes(image), np.uint8)


def _end(kernel: Kernel) -> int:
    return max((p.offset + p.size for p in kernel.params), default=0)


def _extent(kernel: Kernel, layout: Mapping[str, int]) -> int:
    return max((start + kernel.variables[name].size for name, start in layout.items()), default=0)


def _constants(kernel: Kernel) -> Region:
    size = _extent(kernel, kernel.const_layout)
    image = np.zeros(size, np.uint8)
    for name, start in kernel.const_layout.items():
        variable = kernel.variables[name]
        if variable.extern:
            raise Unsupported(f"constant {name}", "an external constant has no known content", variable.span)
        if variable.initial is not None:
            image[start:start + len(variable.initial)] = np.frombuffer(variable.initial, np.uint8)
    return Region("constants", size, writable=False, initial=image)


def _shared_size(kernel: Kernel, dynamic: int) -> int:
    starts = [kernel.shared_layout[name] for name in kernel.dynamic_shared]
    return max([kernel.shared_size + (0 if starts else dynamic), *(start + dynamic for start in starts)])
