"""Atomic updates of shared memory: recorded where they are made, put into the cells at the next barrier of the CTA.

Between two barriers the updates of a cell come in any order, and nothing else may touch it (the footprint says so). An
addition whose old value nobody uses then leaves the cell's content plus the sum of all that any thread added to it, in
every iteration (PTX ISA 9.7.13.5: each is one atomic read-modify-write). Cell c is written as lane c of one value, in
which the thread that adds is the variable of a sum: a thread counts where its address is that of the cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from warpproof.algebra import is_data
from warpproof.core import Unsupported
from warpproof.domains import Atomic, Float, Int, Value, poisoned
from warpproof.machine.reach import Carrier
from warpproof.machine.trace import Mark, SharedUpdate
from warpproof.machine.upcoming import free_atoms
from warpproof.terms import Arena, BoolVector, IntVector, Poly, Pred, Real, const

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

T = TypeVar("T", Real, Poly)
_WHAT: Final = "atomic updates of shared memory"
_LANES: Final = 64  # that add floats to cells one by one
_INTEGERS: Final = 4  # the same of integers, whose sum has a summand for each


def record(m: SymbolicMachine, effect: Atomic, offset: Poly, value: Value) -> None:
    """Note an addition at a byte offset by the active lanes, and which cells it may reach."""
    ty = effect.type
    width = ty.width // 8
    m.streams.closed()
    if effect.op != "add" or ty.packed > 1 or width != m.shared.unit:
        raise Unsupported(_WHAT, f"{effect.op}.{ty} has no symbolic meaning yet")
    m.answers.shared.align(offset, width)
    lanes = np.flatnonzero(m.path.mask)
    cells = m.answers.shared.updated(offset, width)
    if cells is None:
        return
    if ty.floating:
        node = m.dom.real(value, ty)
        m.require_real("finite", node)
        value = Float(ty.kind, ty.width, node)
    else:
        value = Int(ty.width, m.dom.integers.poly(value))
    m.trace.updates.append(SharedUpdate(
        offset, np.unique(cells).tobytes(), value, ty, m.path.condition(), tuple(m.path.loops), lanes.tobytes(),
        m.current))


def settle(m: SymbolicMachine) -> None:
    """All threads of the CTA meet: what was added so far is in the cells."""
    trace = m.trace
    pending = trace.updates[trace.settled :]
    if not pending:
        return
    for u in pending:
        _check(m, u)
    reached = np.unique(np.concatenate([np.frombuffer(u.cells, np.int64) for u in pending]))
    for first in range(0, len(reached), m.arena.lanes):
        _Chunk(m, reached[first : first + m.arena.lanes]).add(pending)
    trace.settled = len(trace.updates)


def closed(m: SymbolicMachine, mark: Mark, var: int, unknown: AbstractSet[int]) -> None:
    """Raise `Unsupported` where a loop that has been closed leaves updates that a sum over its iterations is not.

    Those after its last barrier are in the cells when the next iteration reads them, and that iteration did not see
    them. A value that did not close is another one in every iteration, which no sum over the iterations knows.
    """
    pending = m.trace.updates[max(mark[7], m.trace.settled) :]
    if pending and any(var in b.loops and not b.warp and b.members is None for b in m.trace.barriers[mark[2] :]):
        raise Unsupported(_WHAT, "a loop in which they come after its last barrier")
    for u in pending:
        if unknown & (free_atoms(m.arena, u.value) | free_atoms(m.arena, u.path) | m.arena.poly_free(u.offset)):
            raise Unsupported(_WHAT, "in a loop, by what is carried around it and has no closed form")


def _check(m: SymbolicMachine, u: SharedUpdate) -> None:
    """Raise `Unsupported` unless every thread that made the update is at this barrier, as often as now."""
    here = m.path.loops
    if not m.path.cta_uniform() or list(u.loops[: len(here)]) != here:
        raise Unsupported(_WHAT, "a barrier that some threads do not reach after them")
    if not set(m.path.guards) <= set(m.arena.conjuncts(u.path)):
        raise Unsupported(_WHAT, "a barrier in a branch or loop that they were made before")


class _Chunk:
    """As many cells as there are lanes, one a lane."""

    def __init__(self, m: SymbolicMachine, cells: IntVector) -> None:
        self.m, self.arena, self.cells = m, m.arena, cells
        self.mask = np.arange(m.arena.lanes) < len(cells)
        self.at = np.concatenate([cells, np.full(m.arena.lanes - len(cells), cells[0])])

    def add(self, pending: Sequence[SharedUpdate]) -> None:
        """Put the updates of these cells into them."""
        m, width = self.m, self.m.shared.unit
        mine = [u for u in pending if np.isin(self.cells, np.frombuffer(u.cells, np.int64)).any()]
        ty = mine[0].type
        if any((u.type.floating, u.type.width) != (ty.floating, ty.width) for u in mine):
            raise Unsupported(_WHAT, "additions of different types to one cell")
        old, written = m.shared.load(self.at, width, self.mask)
        if not written or poisoned(old):
            m.answers.hazard("uninitialised", "shared memory is updated where it may not have been written")
        if ty.floating:
            node = m.dom.real(old, ty)
            for u in mine:
                node = self.arena.add(node, self._amount(u, Reals(self.arena)))
            new: Value = Float(ty.kind, ty.width, node)
        else:
            total = m.dom.integers.poly(old)
            for u in mine:
                total = total + self._amount(u, Integers(self.arena))
            new = Int(ty.width, total)
        guard = m.path.symbolic()
        with m.path.beyond_guards():
            m.shared.store(self.at, new, width, self.mask, guard)

    def _amount(self, u: SharedUpdate, sums: Sums[T]) -> T:
        """What an update adds to each cell."""
        lanes = np.frombuffer(u.lanes, np.int64)
        inner = u.loops[len(self.m.path.loops) :]
        if u.offset.is_constant():
            own = self.arena.conjuncts(u.path)
            x = self._folded(sums, inner, [p for p in own if p.op != "lanes"], sums.value(u.value))
            found = sums.gathered(x, self._rows(u, lanes))
            if found is not None:
                return found
        return self._over_threads(u, sums, lanes, inner)

    def _rows(self, u: SharedUpdate, lanes: IntVector) -> list[list[int]]:
        """By lane the lanes that add to its cell."""
        at = np.asarray(u.offset.lanes(self.arena.lanes)) // self.m.shared.unit
        rows: dict[int, list[int]] = {c: [] for c in self.at.tolist()}
        for t in lanes.tolist():
            rows.get(int(at[t]), []).append(t)
        return [rows[c] for c in self.at.tolist()]

    def _over_threads(self, u: SharedUpdate, sums: Sums[T], lanes: IntVector, inner: Sequence[int]) -> T:
        """The sum over a thread's number, of what it adds where its address is that of the cell."""
        a: Arena = self.arena
        step = int(lanes[1] - lanes[0]) if len(lanes) > 1 else 1
        if (np.diff(lanes) != step).any():
            raise Unsupported(_WHAT, "by threads that are not evenly spaced")
        thread = a.fresh("index", "thread", 0, len(lanes) - 1)
        number = a.variable(thread)
        carrier: Carrier = Carrier(a, lanes, number * step + int(lanes[0]))
        here = a.eq(carrier.poly(u.offset.exact_div(self.m.shared.unit)) - Poly({(): self.at}))
        conditions: list[Pred] = [*map(carrier.pred, a.conjuncts(u.path)), here]
        return self._folded(sums, (thread.id, *inner), conditions, sums.carried(carrier, sums.value(u.value)))

    def _folded(self, sums: Sums[T], over: Sequence[int], conditions: Sequence[Pred], x: T) -> T:
        """The sum of x over variables, outermost first, where conditions hold: each at the last variable it mentions,
        those on data at x."""
        a = self.arena
        parts = [q for p in conditions for q in a.conjuncts(p)]
        data = [p for p in parts if is_data(a, p)]
        domains: list[list[Pred]] = [[] for _ in over]
        for p in parts:
            if p in data:
                continue
            place = max((k for k, v in enumerate(over) if v in p.free), default=-1)
            (domains[place] if place >= 0 else data).append(p)
        out = sums.chosen(a.conj(data), x)
        for v, domain in reversed(list(zip(over, domains, strict=True))):
            out = sums.summed(v, a.conj(domain), out)
        return out


class Sums(Protocol[T]):
    """Sums of floats, or of integers."""

    def value(self, v: Value) -> T:
        """The number that is added."""
        ...

    def carried(self, carrier: Carrier, x: T) -> T:
        """x in another lane."""
        ...

    def chosen(self, p: Pred, x: T) -> T:
        """x where the condition holds, else 0."""
        ...

    def summed(self, variable: int, domain: Pred, x: T) -> T:
        """The sum of x over the values of a variable in a domain."""
        ...

    def gathered(self, x: T, rows: Sequence[Sequence[int]]) -> T | None:
        """By lane the sum of x over the lanes of a row; None where there are too many."""
        ...


class Reals:
    """Sums of floats."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena

    def value(self, v: Value) -> Real:
        """The number of a float."""
        assert isinstance(v, Float)
        return v.node

    def carried(self, carrier: Carrier, x: Real) -> Real:
        """The term in another lane."""
        return carrier.real(x)

    def chosen(self, p: Pred, x: Real) -> Real:
        """A choice."""
        return self.arena.sel(p, x, self.arena.zero)

    def summed(self, variable: int, domain: Pred, x: Real) -> Real:
        """A fold."""
        return self.arena.fold("add", variable, domain, x)

    def gathered(self, x: Real, rows: Sequence[Sequence[int]]) -> Real | None:
        """A reduction over lanes where rows are of one length or empty, else lane by lane."""
        full = [r for r in rows if r]
        if full and len({len(r) for r in full}) == 1:
            total = self.arena.reduction("add", x, np.asarray([r or full[0] for r in rows], np.int64))
            some = self.arena.lane_mask(np.asarray([bool(r) for r in rows]))
            return self.arena.sel(some, total, self.arena.zero)
        out = self.arena.zero
        found = _by_lane(rows, _LANES)
        for t, own in found or ():
            moved = self.arena.permute(x, np.full(self.arena.lanes, t), lazy=True)
            out = self.arena.add(out, self.arena.sel(self.arena.lane_mask(own), moved, self.arena.zero))
        return out if found is not None else None


class Integers:
    """Sums of integers."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena

    def value(self, v: Value) -> Poly:
        """The polynomial of an integer."""
        assert isinstance(v, Int)
        return v.poly

    def carried(self, carrier: Carrier, x: Poly) -> Poly:
        """The polynomial in another lane."""
        return carrier.poly(x)

    def chosen(self, p: Pred, x: Poly) -> Poly:
        """A choice."""
        if p.op in ("true", "false"):
            return x if p.op == "true" else const(0)
        return self.arena.derived("phi", (x, const(0)), p)

    def summed(self, variable: int, domain: Pred, x: Poly) -> Poly:
        """A sum unknown."""
        return self.arena.total(variable, domain, x)

    def gathered(self, x: Poly, rows: Sequence[Sequence[int]]) -> Poly | None:
        """Lane by lane."""
        found = _by_lane(rows, _INTEGERS)
        if found is None:
            return None
        out = const(0)
        for t, own in found:
            out = out + self.arena.permutation_map(np.full(self.arena.lanes, t)).poly(x) * own.astype(np.int64)
        return out


def _by_lane(rows: Sequence[Sequence[int]], limit: int) -> list[tuple[int, BoolVector]] | None:
    """Each lane that is in a row, and in which rows; None for more than `limit`."""
    lanes = sorted({t for r in rows for t in r})
    if len(lanes) > limit:
        return None
    return [(t, np.asarray([t in r for r in rows])) for t in lanes]
