"""Where the elements of a `wmma` fragment are: a layout of our own, since the manual leaves it unspecified.

Lane l holds elements l·e to l·e + e − 1 (e per lane, modulo the number of elements) in the order of memory; operands
that were loaded by rows and by columns are laid out differently, accumulators always by rows. A kernel may only treat
all elements of a fragment alike (PTX ISA 9.7.14.4.1), so its results do not depend on the choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from warpproof.domains import FragmentLoad, FragmentStore
from warpproof.machine.batch import WARP, Lanes, Mask

Layout = list[list[tuple[Any, Any]]]
_LANE: Final = np.arange(WARP)


def extents(operand: str, shape: tuple[int, int, int]) -> tuple[int, int]:
    """Rows and columns of matrix a, b, or c of an m×n×k product."""
    m, n, k = shape
    return {"a": (m, k), "b": (k, n)}.get(operand, (m, n))


def fragment(operand: str, shape: tuple[int, int, int], column: bool, registers: int, per: int) -> Layout:
    """For register i and element j of `per`, the (row, column) of every lane of a warp."""
    rows, columns = extents(operand, shape)
    held = registers * per
    out: Layout = []
    for i in range(registers):
        elements = []
        for j in range(per):
            e = (_LANE * held + i * per + j) % (rows * columns)
            elements.append((e % rows, e // rows) if column else (e // columns, e % columns))
        out.append(elements)
    return out


def leading(operand: str, shape: tuple[int, int, int], column: bool) -> int:
    """The default stride, in elements."""
    rows, columns = extents(operand, shape)
    return rows if column else columns


def layout_of(effect: FragmentLoad | FragmentStore) -> Layout:
    """The layout of the fragment that is loaded or stored."""
    registers = effect.registers if isinstance(effect, FragmentLoad) else len(effect.values)
    return fragment(_operand(effect), effect.shape, effect.column and _operand(effect) != "c", registers,
                    32 // effect.type.width)


def fragment_bytes(effect: FragmentLoad | FragmentStore) -> int:
    """The alignment of the address and of the stride in bytes (PTX ISA 9.7.14.4.2)."""
    return 4 * (effect.registers if isinstance(effect, FragmentLoad) else len(effect.values))


def default_stride(effect: FragmentLoad | FragmentStore) -> int:
    """The stride of a matrix without gaps, in elements."""
    return leading(_operand(effect), effect.shape, effect.column)


def _operand(effect: FragmentLoad | FragmentStore) -> str:
    return effect.operand if isinstance(effect, FragmentLoad) else "c"


@dataclass(frozen=True, slots=True)
class Places:
    """By register and element, the address each lane accesses; faults as (kind, text, lanes)."""

    addresses: list[list[Any]]
    faults: list[tuple[str, str, Mask]]


def fragment_places(effect: FragmentLoad | FragmentStore, address: Any, lane: Lanes) -> Places:
    """Where whole warps access memory, given each lane's address operand and lane number."""
    size = effect.type.width // 8
    stride = np.full(len(lane), default_stride(effect), np.uint64)
    if effect.stride is not None:
        stride = np.asarray(effect.stride).astype(np.uint32).astype(np.uint64)
    first = np.arange(len(lane)) // WARP * WARP
    unequal = (address[first] != address) | (stride[first] != stride)
    step = stride * np.uint64(size)
    odd = (address % np.uint64(fragment_bytes(effect)) != 0) | (step % np.uint64(fragment_bytes(effect)) != 0)
    addresses = []
    for elements in layout_of(effect):
        parts = []
        for row, column in elements:
            slow, fast = (column[lane], row[lane]) if effect.column else (row[lane], column[lane])
            parts.append(address + slow.astype(np.uint64) * step + fast.astype(np.uint64) * np.uint64(size))
        addresses.append(parts)
    faults = [
        ("undefined-collective", "the lanes of a warp give different matrix addresses or strides", unequal),
        ("misaligned", "a row of the matrix does not start at a multiple of the fragment's size", odd),
    ]
    return Places(addresses, [f for f in faults if f[2].any()])
