"""One concrete kernel launch: its shape, arguments and buffers, and where each buffer lives in the address space."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from warpproof.core import InputError

Bytes = npt.NDArray[np.uint8]
Content = Callable[[int, int], Bytes]
"""`content(start, stop)` is the bytes [start, stop) of a buffer; it must be a pure function."""

DENSE_LIMIT: Final = 1 << 25
"""Buffers up to this many bytes are held in one piece; larger ones without data are paged."""

POISON: Final = 0x7FF4DEAD7FA4DEAD
"""What never-written memory reads as, unless the launch chooses otherwise: a NaN as f16, f32 and f64."""


@dataclass(frozen=True, slots=True)
class Pointer:
    """A kernel argument: the address of byte `offset` of the buffer `buffer`."""

    buffer: str
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Buffer:
    """A global-memory allocation of `size` bytes.

    `data` gives its first bytes; the rest comes from `fill` (a byte value or a content function). With neither, a byte
    is uninitialised until the kernel writes it. `writable` False makes a store a finding.
    """

    name: str
    size: int
    writable: bool = True
    data: bytes | npt.NDArray[np.generic] | None = None
    fill: int | Content | None = None


@dataclass(frozen=True, slots=True)
class ConcreteLaunch:
    """A launch of grid × block threads. `args` are the raw bytes of each scalar parameter, or a `Pointer`."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    args: tuple[bytes | Pointer, ...]
    buffers: Mapping[str, Buffer]
    poison: int = POISON

    @property
    def threads(self) -> int:
        """Threads per CTA."""
        x, y, z = self.block
        return x * y * z


@dataclass(frozen=True, slots=True)
class Placement:
    """Where each buffer was put: base addresses by buffer name."""

    bases: Mapping[str, int]

    def locate(self, address: int, buffers: Mapping[str, Buffer]) -> tuple[str, int] | None:
        """The nearest buffer and the signed byte offset of `address` from its start; None when there is no buffer."""
        if not self.bases:
            return None
        def distance(name: str) -> int:
            base = self.bases[name]
            return max(base - address, address - (base + buffers[name].size - 1), 0)
        name = min(self.bases, key=distance)
        return name, address - self.bases[name]


FIRST_BASE: Final = 0x10_0000_0000
GUARD: Final = 0x10_0000_0000
"""64 GiB between allocations: a 32-bit index of 16-byte elements cannot step from one into another."""


def place(buffers: Mapping[str, Buffer]) -> Placement:
    """Addresses for the buffers: disjoint, 256-byte aligned and no better, with guard gaps around each."""
    bases: dict[str, int] = {}
    cursor = FIRST_BASE
    for name, buffer in buffers.items():
        bases[name] = cursor + 256
        cursor += -(-(buffer.size + 256) // GUARD) * GUARD + GUARD
    return Placement(bases)


def check_launch(launch: ConcreteLaunch) -> None:
    """Raise `InputError` unless every CUDA device admits the launch (programming guide, table of limits)."""
    if min(*launch.grid, *launch.block) < 1:
        raise InputError("CLI620", f"grid {launch.grid} and block {launch.block} must be at least 1 in each dimension")
    if launch.threads > 1024 or launch.block[2] > 64:
        raise InputError("CLI621", f"block {launch.block} has more than 1024 threads, or more than 64 in z")
    if launch.grid[0] >= 1 << 31 or max(launch.grid[1:]) > 65535:
        raise InputError("CLI622", f"grid {launch.grid} is larger than a device admits")
    for arg in launch.args:
        if isinstance(arg, Pointer) and arg.buffer not in launch.buffers:
            raise InputError("CLI623", f"argument points to the unknown buffer {arg.buffer!r}")
    for name, buffer in launch.buffers.items():
        if buffer.size < 0 or (buffer.data is not None and len(raw_bytes(buffer.data)) > buffer.size):
            raise InputError("CLI624", f"buffer {name!r} has {buffer.size} bytes, fewer than its data")


def raw_bytes(data: bytes | npt.NDArray[np.generic]) -> Bytes:
    """The bytes of `data` in C order, as an unsigned byte array."""
    if isinstance(data, bytes | bytearray):
        return np.frombuffer(data, np.uint8)
    return np.ascontiguousarray(data).reshape(-1).view(np.uint8)


def all_ctas(grid: Sequence[int]) -> list[tuple[int, int, int]]:
    """Every CTA of the grid, x fastest."""
    gx, gy, gz = grid
    return [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)]
