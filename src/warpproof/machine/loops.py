"""Loops of the symbolic machine: unrolled while the exit test is concrete, closed by recurrences otherwise.

A loop with one exit test is turned into a do-while. Its body is run once from the entry state to see what changes, then
from an arbitrary iteration i: integer registers by an affine guess, floats and predicates unknown. A guess is used only
if that run confirms it (step) and it gives the entry value at i = 0 (base); what is not closed is poisoned.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains.values import Float, Int, Pack, Undef, Value
from warpproof.machine.recurrences import Closer
from warpproof.terms import Atom, IntVector, Poly, Pred, Real, const

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine


@dataclass(slots=True)
class Snapshot:
    """Registers, shared contents and trace position at a point of the run."""

    registers: dict[str, Any]
    shared: tuple[IntVector, IntVector]
    mark: tuple[int, int, int, int]


@dataclass(slots=True)
class Guess:
    """How each changed register is assumed to look at the start of iteration i."""

    affine: dict[str, tuple[Poly, Poly]] = field(default_factory=dict)  # name: (entry value, step)
    unknown: dict[str, Value | Pred] = field(default_factory=dict)  # name: entry value
    states: dict[str, Any] = field(default_factory=dict)  # name: the unknown put in its place
    extents: dict[str, int] = field(default_factory=dict)


class LoopSolver:
    """Closes the loops of one machine."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena

    # ------------------------------------------------------------------ shape
    def run(self, header: int) -> int:
        """Execute the loop at `header`; the block where control goes on."""
        m = self.machine
        loop = m.graph.loops[header]
        if len({e for e, _ in loop.exits}) != 1:
            raise Unsupported("loop", f"several exit tests in the loop at {self._place(header)}")
        test, out = loop.exits[0]
        inside = [s for s in m.graph.successors[test] if s != out]
        if len(inside) != 1:
            raise Unsupported("loop", f"the exit test of the loop at {self._place(header)} is not a simple branch")
        m._depth += 1
        try:
            if loop.latches == (test,):
                self._do_while(lambda: self._iterate(header, test, inside[0], header), header)
            else:
                go = self._iterate(header, test, inside[0], header)
                self._guarded(go, lambda: self._do_while(
                    lambda: self._iterate(inside[0], test, inside[0], header), header))
        finally:
            m._depth -= 1
        return out

    def _place(self, block: int) -> str:
        return self.machine.where(self.machine.graph.blocks[block].start)

    def _iterate(self, start: int, test: int, inside: int, header: int) -> Pred:
        """Run from `start` through the exit test; the condition to go on."""
        m = self.machine
        if start != header and start != test:
            m.walk(start, header)
            start = header
        if start == header and start != test:
            m.walk(header, test, skip=header)
        guard: Pred = m.block(test, terminator=False)
        if not isinstance(guard, Pred):
            raise Unsupported("loop", f"a loop without a test at {self._place(header)}")
        taken = m.graph.successors[test][0] == inside
        return guard if taken else self.arena.negate(guard)

    def _guarded(self, go: Pred, body: Callable[[], None]) -> None:
        """Run a loop that may be skipped."""
        m = self.machine
        path = m.path.condition()
        stop = self.arena.negate(go)
        if self.arena.implies(path, stop):
            return
        if self.arena.implies(path, go):
            body()
            return
        m.fork(go, stop, body, lambda: None)

    # ------------------------------------------------------------------ unrolling
    def _do_while(self, body: Callable[[], Pred], header: int) -> None:
        m = self.machine
        entry_mask = m.path.mask
        first = True
        try:
            while True:
                before = self._snapshot()
                foot = m.shared.footprint.copy()
                go = body()
                lanes = self.arena.mask_of(go)
                if lanes is None and self.arena.implies(m.path.condition(), go):
                    lanes = np.ones(self.arena.lanes, dtype=bool)
                if lanes is None:
                    if not first and m.path.mask is not entry_mask and not (m.path.mask == entry_mask).all():
                        raise Unsupported("loop", f"lanes leave the loop at {self._place(header)} at different times "
                                                  "before its test becomes symbolic")
                    self._restore(before)
                    tail, m.shared.footprint = m.shared.footprint, foot
                    self._solve(body, header, before, tail)
                    return
                if not (m.path.mask == entry_mask).all():
                    keep = self.arena.lane_mask(m.path.mask)
                    m.registers = {**before.registers, **{
                        n: self._keep(keep, v, before.registers.get(n)) for n, v in m.registers.items()}}
                m.path.mask = m.path.mask & lanes
                if not m.path.mask.any():
                    return
                first = False
        finally:
            m.path.mask = entry_mask

    def _keep(self, active: Pred, new: Any, old: Any) -> Any:
        """The new value in lanes still running, the old one in lanes that left."""
        if old is None or new is old or new == old:
            return new
        return self.machine.merge(active, new, old)

    def _snapshot(self) -> Snapshot:
        m = self.machine
        return Snapshot(dict(m.registers), m.shared.snapshot(), m.trace.mark())

    def _restore(self, s: Snapshot) -> None:
        m = self.machine
        m.registers = dict(s.registers)
        m.shared.restore(s.shared)
        m.trace.rewind(s.mark)

    # ------------------------------------------------------------------ symbolic loops
    def _solve(self, body: Callable[[], Pred], header: int, entry: Snapshot, tail: Any) -> None:
        """Close the loop from the entry state; `tail` is the footprint after the first iteration."""
        m = self.machine
        after = self._probe(body, entry)
        var = self.arena.fresh("loop", f"i{len(m.path.loops)}@{m.graph.blocks[header].start}", 0, None)
        guess = self._guess(entry.registers, after.registers)
        changed = np.nonzero((entry.shared[0] != after.shared[0]) | (entry.shared[1] != after.shared[1]))[0]
        held = self.arena.domain(var.id, Poly({}))
        start_foot = m.shared.footprint.union(tail)
        for _ in range(16):
            go, end_foot = self._arbitrary(body, entry, guess, changed, var, held, start_foot)
            more_cells = np.nonzero((entry.shared[0] != m.shared.owner) | (entry.shared[1] != m.shared.lane))[0]
            stable = self._refine(guess, entry.registers, var)
            if not end_foot.within(start_foot):
                start_foot, stable = start_foot.union(end_foot), False
            if not set(more_cells) <= set(changed):
                changed, stable = np.union1d(changed, more_cells), False
            if stable:
                break
        else:
            raise Unsupported("loop", f"no stable invariant for the loop at {self._place(header)}")
        Closer(m, header, var, guess, entry, go, held, changed).close()

    def _probe(self, body: Callable[[], Pred], entry: Snapshot) -> Snapshot:
        m = self.machine
        foot = m.shared.footprint.copy()
        body()
        after = self._snapshot()
        self._restore(entry)
        m.shared.footprint = foot
        return after

    def _guess(self, before: dict[str, Any], after: dict[str, Any]) -> Guess:
        guess = Guess()
        for name, v0 in before.items():
            v1 = after.get(name)
            if v1 is None or v1 is v0 or v1 == v0:
                continue
            if isinstance(v0, Int) and isinstance(v1, Int):
                guess.affine[name] = (v0.poly, v1.poly - v0.poly)
            else:
                guess.unknown[name] = self._retyped(v0, v1)
        return guess

    def _arbitrary(
        self, body: Callable[[], Pred], entry: Snapshot, guess: Guess, changed: IntVector, var: Atom, held: Pred,
        foot: Any,
    ) -> tuple[Pred, Any]:
        """Run the body from iteration i; the continue condition and the footprint afterwards."""
        m = self.machine
        self._restore(entry)
        m.shared.footprint = foot.copy()
        i = self.arena.variable(var)
        for name, (p0, d) in guess.affine.items():
            m.registers[name] = Int(entry.registers[name].width, p0 + i * d)
        for name, v0 in guess.unknown.items():
            guess.states[name] = m.registers[name] = self._unknown(name, v0, guess)
        if len(changed):
            hole = m.shared.intern(Undef(m.shared.unit * 8, "shared memory carried around a loop"))
            m.shared.owner[changed] = hole
        m.path.loops.append(var.id)
        m.path.guards.append(held)
        try:
            go = body()
        finally:
            m.path.guards.remove(held)
            m.path.loops.pop()
        return go, m.shared.footprint

    def _unknown(self, name: str, v0: Any, guess: Guess) -> Any:
        """A fresh unknown of the kind of `v0`."""
        if isinstance(v0, Pred):
            return self.arena.state_pred(self.arena.fresh("state", name).id)
        if isinstance(v0, Float):
            extent = guess.extents.setdefault(name, v0.node.ext)
            atom = guess.states[name].node.data[0] if name in guess.states else self.arena.fresh("state", name).id
            return Float(v0.kind, v0.width, self.arena.state(atom, extent))
        if isinstance(v0, Pack):
            return Pack(v0.width, tuple(self._unknown(f"{name}.{k}", p, guess) for k, p in enumerate(v0.parts)))
        if isinstance(v0, Int):
            return Int(v0.width, self.arena.variable(self.arena.fresh("state", name)))
        return v0

    def _refine(self, guess: Guess, before: dict[str, Any], var: Atom) -> bool:
        """Withdraw guesses the run did not confirm; True when all were confirmed."""
        m, ok = self.machine, True
        i = self.arena.variable(var)
        for name, (p0, d) in list(guess.affine.items()):
            now = m.registers.get(name)
            if now is None:
                del guess.affine[name]
                guess.unknown[name] = Undef(before[name].width, f"{name} is defined on some paths only")
                ok = False
            elif not isinstance(now, Int) or now.poly != p0 + (i + 1) * d:
                del guess.affine[name]
                guess.unknown[name] = self._retyped(before[name], now)
                ok = False
        for name, v0 in before.items():
            now = m.registers.get(name)
            if name in guess.affine or name in guess.unknown or now is v0 or (now is not None and now == v0):
                continue
            if now is None and isinstance(v0, Pred):
                raise Unsupported("loop", f"the predicate {name} is defined on some paths only")
            guess.unknown[name] = Undef(v0.width, f"{name} is defined on some paths only") if now is None else v0
            ok = False
        for name in guess.unknown:
            now = m.registers.get(name)
            if isinstance(now, Float) and name in guess.extents and now.node.ext & ~guess.extents[name]:
                guess.extents[name] |= now.node.ext
                ok = False
            if isinstance(now, Float) and isinstance(guess.unknown[name], Int):
                guess.unknown[name] = self._retyped(guess.unknown[name], now)
                ok = ok and isinstance(guess.unknown[name], Int)
        return ok

    def _retyped(self, v0: Any, now: Any) -> Any:
        """The entry value in the kind of the later one, so that a float that starts as integer bits is a float."""
        if isinstance(now, Float) and isinstance(v0, Int) and v0.poly.is_constant():
            from warpproof.domains.base import ScalarType

            node = self.machine.dom.real(v0, ScalarType(now.kind, now.width))
            return Float(now.kind, now.width, node)
        if isinstance(now, Pack) and isinstance(v0, Int) and v0.poly.is_constant():
            pieces = self.machine.dom.unpack(v0.width, v0, len(now.parts))
            return Pack(v0.width, tuple(self._retyped(p, q) for p, q in zip(pieces, now.parts, strict=True)))
        return v0


def closed(x: Real | Poly, states: frozenset[int], arena: Any) -> bool:
    """True when no loop-carried unknown of `states` occurs."""
    free = x.free if isinstance(x, Real) else arena.poly_free(x)
    return not free & states


__all__ = ["Guess", "LoopSolver", "Snapshot", "closed", "const"]
