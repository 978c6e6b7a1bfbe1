"""Shift recurrences: what an iteration finds in a register or shared cell is what the iteration before left there.

Software pipelines carry loads this way. If an iteration leaves g(i), free of loop state, the next one starts from
g(i−1); iteration 0 starts from the entry value, which is g(−1) when the prologue did what the loop does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from warpproof.domains import Choice, Float, Int, Part, Undef, Value, poisoned
from warpproof.machine.upcoming import Upcoming, free_atoms, moved
from warpproof.terms import Atom, Real

if TYPE_CHECKING:
    from warpproof.machine.guesses import Guess, Snapshot
    from warpproof.machine.symbolic import SymbolicMachine

HOLE: Final = "shared memory carried around a loop"


class Shifter:
    """Proposes shifts for one loop and confirms them after the run that used them."""

    def __init__(self, machine: SymbolicMachine, entry: Snapshot, guess: Guess, var: Atom) -> None:
        self.machine, self.arena, self.entry, self.guess, self.var = machine, machine.arena, entry, guess, var
        i = machine.arena.variable(var)
        self._back = machine.arena.substitution({var.id: i - 1})
        self._before = machine.arena.substitution({var.id: i * 0 - 1})
        self._left: dict[str, Any] = {}
        self._cells: dict[int, tuple[int, int]] = {}  # cell: (value id left, lane)

    def settle(self, one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
        """Take integers that the second iteration leaves as the first did, but that start otherwise; False for none."""
        for name, v in one.items():
            if name in self.guess.affine and isinstance(v, Int) and v == two.get(name):
                entry = self.entry.registers[name]
                del self.guess.affine[name]
                self.guess.unknown[name] = entry
                self._left[name] = v
                self.guess.shifts[name] = self._start(entry, v)
        return bool(self._left)

    def propose(self, upcoming: Upcoming) -> bool:
        """Fill the guess with shifts for what the last run left closed; False when nothing needs one."""
        states = self._states()
        closed: dict[str, Any] = {}
        for name in self.guess.unknown:
            now = self.machine.registers.get(name)
            left = upcoming.value(now) if now is not None else None
            if left is not None and not free_atoms(self.arena, left) & states and not poisoned(left):
                closed[name] = left
        carried = frozenset(a for n in closed for a in free_atoms(self.arena, self.guess.states.get(n)))
        if not self._needed(carried):
            return False
        for name, left in closed.items():
            self._left[name] = left
            self.guess.shifts[name] = self._start(self.guess.unknown[name], left)
        self._propose_cells(upcoming, states)
        return bool(self._left or self._cells)

    def _states(self) -> frozenset[int]:
        return frozenset(a for v in self.guess.states.values() for a in free_atoms(self.arena, v))

    def _needed(self, carried: frozenset[int]) -> bool:
        """Some value, access or condition depends on what the iteration found in `carried` or in shared memory."""
        m, mark = self.machine, self.entry.mark
        if any(h.kind == "uninitialised" for h in m.trace.hazards[mark[3] :]):
            return True
        if any(free_atoms(self.arena, v) & carried or poisoned(v) for v in m.registers.values()):
            return True
        recorded = [p for o in m.trace.obligations[mark[1] :] for p in (o.claim, o.path, o.node) if p is not None]
        used = [v for a in m.trace.accesses[mark[0] :] for v in (a.value, a.path) if v is not None]
        indices = [a.index for a in m.trace.accesses[mark[0] :]]
        return (
            any(p.free & carried for p in recorded) or any(free_atoms(self.arena, v) & carried for v in used)
            or any(self.arena.poly_free(p) & carried for p in indices)
        )

    def _start(self, entry: Any, left: Any) -> Any:
        """The value at the start of iteration i."""
        before = moved(self.machine.dom, self._back, left)
        base = moved(self.machine.dom, self._before, left)
        guard = self.machine.path.symbolic()
        if base == entry or Upcoming(self.machine.dom, guard).value(base) == entry:
            return before
        return self.machine.merge(self.arena.eq(self.arena.variable(self.var)), entry, before)

    # ------------------------------------------------------------------ shared cells
    def _propose_cells(self, upcoming: Upcoming, states: frozenset[int]) -> None:
        shared = self.machine.shared
        starts: dict[tuple[int, int, bool], int] = {}
        for c in self.guess.changed.tolist():
            now, lane = int(shared.owner[c]), int(shared.lane[c])
            old, old_lane = int(self.entry.shared[0][c]), int(self.entry.shared[1][c])
            left = self._weakened(upcoming.value(shared.values[now]), states)
            if isinstance(left, Undef):
                continue
            same_lane = old >= 0 and lane == old_lane
            key = (now, old, same_lane)
            if key not in starts:
                entry = self._weakened(shared.values[old], frozenset()) if same_lane else self._hole()
                starts[key] = shared.intern(self._start(entry, left))
            self.guess.cells[c] = starts[key]
            self._cells[c] = (shared.intern(left), lane)
        if self._cells:
            where = np.array(list(self._cells), np.int64)
            self.entry.shared[1][where] = [lane for _, lane in self._cells.values()]

    def _hole(self) -> Undef:
        return Undef(self.machine.shared.unit * 8, HOLE)

    def _weakened(self, v: Value, states: frozenset[int]) -> Value:
        """What may still be relied on of a cell: branches of its choices that carry loop state become poison, as in the
        stage of a ring that is filled only if there is that much left to load."""
        match v:
            case Float(kind, width, node):
                weak = self._weak(node, states)
                return self._hole() if weak.op == "poison" else Float(kind, width, weak)
            case Part(width, whole, place):
                weak_whole = self._weakened(whole, states)
                return self._hole() if isinstance(weak_whole, Undef) else Part(width, weak_whole, place)
            case Choice(_, pred, a, b) if not pred.free & states:
                return self.machine.dom.merge(pred, self._weakened(a, states), self._weakened(b, states))
        return self._hole() if free_atoms(self.arena, v) & states or poisoned(v) else v

    def _weak(self, x: Real, states: frozenset[int]) -> Real:
        if not x.free & states and not x.poisoned:
            return x
        if x.op == "sel" and x.pred is not None and not x.pred.free & states:
            a, b = (self._weak(y, states) for y in x.args)
            return self.arena.sel(x.pred, a, b)
        return self.arena.poison(HOLE)

    # ------------------------------------------------------------------ confirmation
    def confirmed(self, upcoming: Upcoming) -> bool:
        """True when the run left what the shifts assumed; those it did not are withdrawn."""
        m, ok = self.machine, True
        kept: dict[tuple[int, int], bool] = {}
        for name, left in list(self._left.items()):
            now = m.registers.get(name)
            if now is None or upcoming.value(now) != left:
                del self._left[name]
                self.guess.shifts.pop(name, None)
                ok = False
        for c, (left, lane) in list(self._cells.items()):
            now = int(m.shared.owner[c])
            key = (now, left)
            if key not in kept:
                kept[key] = _refines(upcoming.value(m.shared.values[now]), m.shared.values[left])
            if not kept[key] or int(m.shared.lane[c]) != lane:
                del self._cells[c]
                self.guess.cells.pop(c, None)
                ok = False
        return ok


def _refines(now: Any, claim: Any) -> bool:
    """`now` is what is claimed, wherever the claim is not poison."""
    match now, claim:
        case Float(kind, width, x), Float(k, w, y):
            return (kind, width) == (k, w) and _node_refines(x, y)
        case Choice(width, p, a, b), Choice(w, q, c, d) if (width, p) == (w, q):
            return _refines(a, c) and _refines(b, d)
        case Part(width, a, place), Part(w, b, at) if (width, place) == (w, at):
            return _refines(a, b)
        case _, Undef():
            return True
    return bool(now == claim)


def _node_refines(x: Real, y: Real) -> bool:
    if x is y or y.op == "poison":
        return True
    alike = x.op == y.op == "sel" and x.pred is y.pred
    return alike and all(_node_refines(a, b) for a, b in zip(x.args, y.args, strict=True))
