"""Warp matrices on symbolic values: `ldmatrix`, `stmatrix`, `mma` and `wmma` as lane permutations of real terms.

An element of a fragment lives in one register of one lane, so a row of A or a column of B is a list of (register part,
source lane); D is C plus the sum of products of such permuted parts. Layouts are those of `matrix` and `fragments`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import (
    Float,
    FragmentLoad,
    FragmentStore,
    Int,
    Load,
    MatrixLoad,
    MatrixMultiply,
    MatrixStore,
    Pack,
    ScalarType,
    Store,
    Value,
)
from warpproof.machine.fragments import Layout, default_stride, fragment, fragment_bytes, layout_of
from warpproof.machine.matrix import operand_layouts
from warpproof.machine.mixing import Mixer
from warpproof.machine.shared import SYMBOLIC_ADDRESS
from warpproof.machine.symbolic_warp import whole_warps
from warpproof.machine.trace import Hazard
from warpproof.terms import IntVector, Poly, Real, const

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

_HALF = ScalarType("b", 16)
_WORD = ScalarType("b", 32)


def load_matrices(machine: SymbolicMachine, effect: MatrixLoad) -> tuple[Value, ...]:
    """The `count` registers of each lane, each a pair of halves (PTX ISA 9.7.14.5.15, `ldmatrix`)."""
    whole_warps(machine, "ldmatrix")
    shared = machine.answers.shared
    out: list[Value] = []
    for low, high in _elements(machine, effect):
        if effect.transposed:
            out.append(machine.dom.pack(32, [shared.load(const(at), _HALF, 1)[0] for at in (low, high)]))
        else:
            out.append(shared.load(const(low), _WORD, 1)[0])  # the two elements are neighbours
    return tuple(out)


def store_matrices(machine: SymbolicMachine, effect: MatrixStore) -> None:
    """Every lane stores the two halves of each of its registers (PTX ISA 9.7.14.5.16, `stmatrix`)."""
    whole_warps(machine, "stmatrix")
    for places, value in zip(_elements(machine, effect), effect.values, strict=True):
        register: Any = value
        for at, part in zip(places, machine.dom.unpack(32, register, 2), strict=True):
            machine.answers.shared.store(const(at), 2, part)


def _elements(machine: SymbolicMachine, effect: MatrixLoad | MatrixStore) -> list[tuple[IntVector, IntVector]]:
    """For each matrix, the shared address of each lane's low and high element."""
    address: Any = effect.address
    space, name, offset = machine.answers.locate(address)
    if space and (space, name) != ("shared", "window"):
        raise Unsupported("ldmatrix", f"an address in {space} memory")
    rows = _constant(machine, offset, effect.count)
    every = np.arange(machine.arena.lanes)
    lane, warp = every % 32, every // 32 * 32
    out = []
    for i in range(effect.count):
        places = []
        for half in (0, 1):
            row, column = lane // 4, 2 * (lane % 4) + half
            if effect.transposed:
                row, column = column, row
            places.append(rows[warp + 8 * i + row] + 2 * column)
        out.append((places[0], places[1]))
    return out


def _constant(machine: SymbolicMachine, offset: Poly, count: int) -> IntVector:
    n = machine.arena.lanes
    if not offset.is_constant():
        machine.shared.refused = offset
        raise Unsupported("ldmatrix", SYMBOLIC_ADDRESS)
    if n % 32:
        raise Unsupported("ldmatrix", "the last warp of the CTA is not full")
    rows = offset.lanes(n)
    if (rows[machine.path.mask & (np.arange(n) % 32 < 8 * count)] % 16).any():
        machine.trace.hazards.append(
            Hazard("misaligned", "the address of a matrix row is not a multiple of 16", machine.current, None,
                   machine.path.condition())
        )
    return rows


class _Fragment:
    """The real elements of one operand: which register part and lane holds element (row, column)."""

    def __init__(
        self, machine: SymbolicMachine, registers: tuple[Any, ...], ty: ScalarType, shape: tuple[int, int],
        layout: list[list[tuple[Any, Any]]],
    ) -> None:
        dom = machine.dom
        self.arena = machine.arena
        per = len(layout[0])
        self.parts: list[Real] = []
        for register in registers:
            for part in dom.unpack(register.width, register, per):
                self.parts.append(_finite(machine, dom.real(part, ty)))
        self.part = np.zeros(shape, np.int64)
        self.lane = np.zeros(shape, np.int64)
        for i, elements in enumerate(layout):
            for j, (row, column) in enumerate(elements):
                self.part[row, column] = i * per + j
                self.lane[row, column] = np.arange(32)
        self._taken = machine.fragments
        self._key = (shape, tuple(x.id for x in self.parts), self.part.tobytes(), self.lane.tobytes())

    def take(self, row: IntVector, column: IntVector) -> Real:
        """The node whose lane l of each warp is element (row[l], column[l])."""
        key = (*self._key, row.tobytes(), column.tobytes())
        if key not in self._taken:
            self._taken[key] = self._take(row, column)
        return self._taken[key]

    def _take(self, row: IntVector, column: IntVector) -> Real:
        n = self.arena.lanes
        source = np.tile(self.lane[row, column], n // 32) + np.arange(n) // 32 * 32
        used, which = np.unique(self.part[row, column], return_inverse=True)
        if len(used) == 1:
            return self.arena.permute(self.parts[int(used[0])], source, lazy=True)
        mixer = Mixer(self.arena, np.tile(which.reshape(-1), n // 32), source)
        return mixer.real([self.parts[int(k)] for k in used])


def _finite(machine: SymbolicMachine, x: Real) -> Real:
    if x.ext:
        machine.require_real("finite", x)
    return x


def multiply(machine: SymbolicMachine, effect: MatrixMultiply) -> tuple[Value, ...]:
    """D = A·B + C over the reals (PTX ISA 9.7.14.4 and 9.7.14.5, matrix fragments)."""
    whole_warps(machine, "mma.sync")
    if effect.saturate:
        raise Unsupported("mma.satfinite", "no rule")
    if machine.arena.lanes % 32:
        raise Unsupported("mma", "the last warp of the CTA is not full")
    m, n, k = effect.shape
    a_layout, b_layout, c_layout = operand_layouts(effect)
    a = _Fragment(machine, effect.a, effect.a_type, (m, k), a_layout)
    b = _Fragment(machine, effect.b, effect.b_type, (k, n), b_layout)
    if effect.layouts is not None:
        return _any_accumulators(machine, effect, a, b, c_layout)
    out: list[Value] = []
    for register, elements in zip(effect.c, c_layout, strict=True):
        c: Any = register
        parts = machine.dom.unpack(c.width, c, len(elements))
        sums: list[Value] = []
        for part, (row, column) in zip(parts, elements, strict=True):
            total = _finite(machine, machine.dom.real(part, effect.c_type))
            sums.append(_sum(machine, effect, (a, b), total, (row, column)))
        out.append(sums[0] if len(sums) == 1 else Pack(32, tuple(sums)))
    return tuple(out)


def _any_accumulators(
    machine: SymbolicMachine, effect: MatrixMultiply, a: _Fragment, b: _Fragment, c_layout: Layout
) -> tuple[Value, ...]:
    """`wmma.mma`, whose accumulators may be of two types."""
    m, n, _ = effect.shape
    _assume_layout(machine)
    c = _Fragment(machine, effect.c, effect.c_type, (m, n), c_layout)
    width = effect.d_type.width
    out: list[Value] = []
    for elements in fragment("c", effect.shape, False, m * n * width // 1024, 32 // width):
        sums = [_sum(machine, effect, (a, b), c.take(*at), at) for at in elements]
        out.append(sums[0] if len(sums) == 1 else Pack(32, tuple(sums)))
    return tuple(out)


def _sum(
    machine: SymbolicMachine, effect: MatrixMultiply, ab: tuple[_Fragment, _Fragment], total: Real,
    at: tuple[IntVector, IntVector],
) -> Value:
    for depth in range(effect.shape[2]):
        k = np.full(32, depth)
        total = machine.arena.add(total, machine.arena.mul(ab[0].take(at[0], k), ab[1].take(k, at[1])))
    return Float(effect.d_type.kind, effect.d_type.width, total)


# ------------------------------------------------------------------ wmma fragments
def _assume_layout(machine: SymbolicMachine) -> None:
    machine.assume("wmma-layout", "the kernel treats all elements of a wmma fragment alike, so that results do not "
                   "depend on where they are", "PTX ISA 9.7.14.4.1: the elements of a fragment are unspecified")


def load_fragment(machine: SymbolicMachine, effect: FragmentLoad) -> tuple[Value, ...]:
    """The lane's registers of a matrix in memory (PTX ISA 9.7.14.4.3, `wmma.load`)."""
    ty = ScalarType("b", effect.type.width)
    out: list[Value] = []
    for parts in _fragment_places(machine, effect):
        values = [machine.answers.answer(Load(effect.space, ty, 1, at)) for at in parts]
        out.append(values[0] if len(values) == 1 else machine.dom.pack(32, values))
    return tuple(out)


def store_fragment(machine: SymbolicMachine, effect: FragmentStore) -> None:
    """The warp's accumulators become a matrix in memory (PTX ISA 9.7.14.4.4, `wmma.store`)."""
    ty = ScalarType("b", effect.type.width)
    for value, places in zip(effect.values, _fragment_places(machine, effect), strict=True):
        register: Any = value
        for part, at in zip(machine.dom.unpack(32, register, len(places)), places, strict=True):
            machine.answers.answer(Store(effect.space, ty, (part,), at))


def _fragment_places(machine: SymbolicMachine, effect: FragmentLoad | FragmentStore) -> list[list[Value]]:
    """By register and element, the address of each lane."""
    arena, dom = machine.arena, machine.dom
    n = arena.lanes
    if n % 32:
        raise Unsupported("wmma", "the last warp of the CTA is not full")
    whole_warps(machine, "wmma")
    _assume_layout(machine)
    address: Any = effect.address
    stride: Any = effect.stride
    p = dom.integers.poly(address)
    step = const(default_stride(effect)) if stride is None else dom.integers.view(stride, ScalarType("u", 32))
    first = arena.permutation_map(np.arange(n) // 32 * 32)
    if first.poly(p) != p or first.poly(step) != step:
        machine.trace.hazards.append(
            Hazard("divergence", "the lanes of a warp give different matrix addresses or strides", machine.current,
                   None, machine.path.condition())
        )
    size = effect.type.width // 8
    _, _, offset = machine.answers.locate(address)
    for q in (offset, step * size):
        if machine.answers.divisors.of(q) % fragment_bytes(effect):
            machine.require("alignment", arena.eq(arena.mod(q, const(fragment_bytes(effect)))))
    out = []
    for elements in layout_of(effect):
        parts: list[Value] = []
        for row, column in elements:
            slow, fast = (column, row) if effect.column else (row, column)
            at = p + step * np.tile(slow, n // 32) * size + const(np.tile(fast, n // 32) * size)
            parts.append(Int(address.width, at))
        out.append(parts)
    return out
