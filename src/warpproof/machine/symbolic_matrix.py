"""Warp matrices on symbolic values: `ldmatrix`, `stmatrix` and `mma.sync` as lane permutations of real terms.

An element of a fragment lives in one register of one lane, so a row of A or a column of B is a list of (register part,
source lane); D is C plus the sum of products of such permuted parts. Fragment layouts are those of `matrix`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Float, MatrixLoad, MatrixMultiply, MatrixStore, Pack, ScalarType, Value
from warpproof.machine.matrix import a_fragment, b_fragment, c_fragment, per_register
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
        raise Unsupported("ldmatrix", "a shared address that depends on a symbol")
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

    def take(self, row: IntVector, column: IntVector) -> Real:
        """The node whose lane l of each warp is element (row[l], column[l])."""
        which, lane = np.unique(self.part[row, column]), self.lane[row, column]
        if len(which) > 1:
            raise Unsupported("mma", "a fragment layout that mixes registers")
        n = self.arena.lanes
        source = np.tile(lane, n // 32) + np.arange(n) // 32 * 32
        return self.arena.permute(self.parts[int(which[0])], source, lazy=True)


def _finite(machine: SymbolicMachine, x: Real) -> Real:
    if x.ext:
        machine.require_real("finite", x)
    return x


def multiply(machine: SymbolicMachine, effect: MatrixMultiply) -> tuple[Value, ...]:
    """D = A·B + C over the reals (PTX ISA 9.7.14.5, fragments of `mma.m16n8k*`)."""
    whole_warps(machine, "mma.sync")
    if effect.saturate:
        raise Unsupported("mma.satfinite", "no rule")
    if machine.arena.lanes % 32:
        raise Unsupported("mma", "the last warp of the CTA is not full")
    m, n, k = effect.shape
    a = _Fragment(machine, effect.a, effect.a_type, (m, k), a_fragment(m, k, per_register(effect.a, m * k)))
    b = _Fragment(machine, effect.b, effect.b_type, (k, n), b_fragment(k, n, per_register(effect.b, k * n)))
    layout = c_fragment(m, n, per_register(effect.c, m * n))
    out: list[Value] = []
    for register, elements in zip(effect.c, layout, strict=True):
        c: Any = register
        parts = machine.dom.unpack(c.width, c, len(elements))
        sums: list[Value] = []
        for part, (row, column) in zip(parts, elements, strict=True):
            total = _finite(machine, machine.dom.real(part, effect.c_type))
            for depth in range(k):
                at = np.full(32, depth)
                total = machine.arena.add(total, machine.arena.mul(a.take(row, at), b.take(at, column)))
            sums.append(Float(effect.d_type.kind, effect.d_type.width, total))
        out.append(sums[0] if len(sums) == 1 else Pack(32, tuple(sums)))
    return tuple(out)
