"""Loops of the symbolic machine: unrolled while the exit test is concrete, closed by recurrences otherwise.

A loop with one exit test is turned into a do-while. Its body is run once from the entry state to see what changes, then
from an arbitrary iteration i: integer registers by an affine guess, floats and predicates unknown. A guess is used only
if that run confirms it (step) and it gives the entry value at i = 0 (base); what is not closed is poisoned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Float, Int, Pack, ScalarType, Undef
from warpproof.machine.footprint import Footprint
from warpproof.machine.guesses import Guess, Snapshot
from warpproof.machine.recurrences import Closer
from warpproof.machine.shared import SYMBOLIC_ADDRESS
from warpproof.machine.shifts import HOLE, Shifter
from warpproof.machine.upcoming import Upcoming
from warpproof.terms import Atom, Poly, Pred, Real

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine


_GROUPS: Final = 4
_RING: Final = 8
"""Stages of a ring of tiles, at most."""
_ROUNDS: Final = 16
_WIDTHS: Final = (1024, 512, 256, 128, 64, 32, 16, 8, 4, 2)


class LoopSolver:
    """Closes the loops of one machine."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena
        self._tail: Footprint | None = None
        self._running: list[int] = []

    # ------------------------------------------------------------------ shape
    def run(self, header: int) -> int:
        """Execute the loop at `header`; the block where control goes on."""
        m = self.machine
        loop = m.graph.loops[header]
        if m.crossing.waits(loop):
            return m.crossing.wait(header, lambda test, inside: self._iterate(header, [(test, inside)], header))
        if header in self._running:
            raise Unsupported("loop", f"two loops begin at {self._place(header)}")
        tests, out = self._tests(header)
        m.depth += 1
        self._running.append(header)
        try:
            if loop.latches == (tests[-1][0],):
                self._do_while(lambda: self._iterate(header, tests, header), header)
            else:
                (test, inside), turned = tests[0], [*tests[1:], tests[0]]
                go = self._iterate(header, [(test, inside)], header)
                self._guarded(go, lambda: self._do_while(lambda: self._iterate(inside, turned, header), header))
        finally:
            self._running.pop()
            m.depth -= 1
        return out

    def _tests(self, header: int) -> tuple[list[tuple[int, int]], int]:
        """The exit tests as an iteration meets them, each with the block inside; the block behind the loop."""
        m = self.machine
        graph, loop = m.graph, m.graph.loops[header]
        outside = {o for _, o in loop.exits}
        if not outside:
            raise Unsupported("loop", f"the loop at {self._place(header)} has no exit")
        tests = sorted({e for e, _ in loop.exits}, key=lambda e: sum(graph.dominates(d, e) for d, _ in loop.exits))
        latch = loop.latches[0]
        if len(tests) > 1 and (len(outside) > 1 or len(loop.latches) > 1):
            raise Unsupported("loop", f"exits to different places from the loop at {self._place(header)}")
        if len(tests) > 1 and not all(graph.dominates(e, latch) for e in tests):
            raise Unsupported("loop", f"an exit inside a branch in the loop at {self._place(header)}")
        out = loop.exits[0][1]
        inside = [[s for s in graph.successors[e] if s != out] for e in tests]
        if any(len(s) != 1 for s in inside):
            raise Unsupported("loop", f"the exit test of the loop at {self._place(header)} is not a simple branch")
        return [(e, s[0]) for e, s in zip(tests, inside, strict=True)], out

    def _place(self, block: int) -> str:
        m = self.machine
        return m.where() if m.frames else m.where(m.graph.blocks[block].start)

    def _iterate(self, start: int, tests: list[tuple[int, int]], header: int) -> Pred:
        """Run from `start` through the exit tests, each only where those before it go on; the condition to go on."""
        m = self.machine
        (test, inside), later = tests[0], tests[1:]
        go = self._through(start, test, inside, header)
        if not later:
            return go
        going = [go]

        def again() -> None:
            entering = Upcoming(m.dom, go)
            m.registers = {n: entering.value(v) for n, v in m.registers.items()}
            going.append(self._iterate(inside, later, header))
            if len(later) == 1:
                self._tail = m.shared.footprint.copy()

        if self.arena.implies(m.path.condition(), go):
            again()
        elif go.op != "false":
            m.fork(go, self.arena.negate(go), again, lambda: None)
        return self.arena.conj(going)

    def _through(self, start: int, test: int, inside: int, header: int) -> Pred:
        """Run from `start` through one exit test, past the header where it lies before the start; the condition to go
        on."""
        m = self.machine
        if start not in (header, test) and not m.graph.dominates(start, test):
            m.walk(start, header)
            start = header
        if start != test:
            m.walk(start, test, skip=header if start == header else None)
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
        def enter() -> None:
            entering = Upcoming(m.dom, go)
            m.registers = {n: entering.value(v) for n, v in m.registers.items()}
            body()

        m.fork(go, stop, enter, lambda: None)

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
                    m.shared.footprint = foot
                    self._solve(body, header, before, foot)
                    return
                if not (m.path.mask == entry_mask).all():
                    keep = self.arena.lane_mask(m.path.mask)
                    kept = {n: self._keep(keep, v, before.registers.get(n)) for n, v in m.registers.items()}
                    m.registers = {**before.registers, **{n: v for n, v in kept.items() if v is not None}}
                m.path.mask = m.path.mask & lanes
                if not m.path.mask.any():
                    return
                first = False
        finally:
            m.path.mask = entry_mask

    def _keep(self, active: Pred, new: Any, old: Any) -> Any:
        """The new value in lanes still running, the old one in lanes that left; None for a predicate they never set."""
        if new is old or new == old:
            return new
        if old is None and not isinstance(new, Pred):
            old = Undef(new.width, "a register set only after some lanes had left a loop")
        return None if old is None else self.machine.merge(active, new, old)

    def _snapshot(self) -> Snapshot:
        m = self.machine
        return Snapshot(dict(m.registers), m.shared.snapshot(), m.trace.mark())

    def _restore(self, s: Snapshot) -> None:
        m = self.machine
        m.registers = dict(s.registers)
        m.shared.restore(s.shared)
        m.trace.rewind(s.mark)

    # ------------------------------------------------------------------ symbolic loops
    def _solve(self, body: Callable[[], Pred], header: int, entry: Snapshot, foot: Footprint) -> None:
        """Close the loop from the entry state, as it is or as groups of iterations: up to four, and more where only the
        address of a stage stands in the way."""
        m = self.machine
        first: Unsupported | None = None
        addressed, plan = True, [(1, False)]
        while plan:
            group, settled = plan.pop(0)
            if not addressed and (settled or group > _GROUPS):
                continue
            m.shared.footprint = foot.copy()
            try:
                again = Snapshot(entry.registers, (entry.shared[0].copy(), entry.shared[1].copy()), entry.mark)
                self._close(self._grouped(body, group), header, again, settled=settled)
                return
            except Unsupported as stuck:
                if first is None:
                    first, plan = stuck, self._plan()
                if "out of time" in stuck.why or "steps" in stuck.why:
                    raise
                addressed = SYMBOLIC_ADDRESS in stuck.why
                self._restore(entry)
        if first is not None:
            raise first

    def _plan(self) -> list[tuple[int, bool]]:
        """Group sizes still to try, each without and with counters that settle: first the periods of the address."""
        periods: list[int] = []
        stack = [self.machine.shared.refused]
        while stack:
            for atom in (self.arena.atoms[a] for a in stack.pop().atoms()):
                stack.extend(atom.args)
                period = atom.args[1].as_int() if atom.kind == "div" else None
                periods += [period] if period is not None and 1 < period <= _RING else []
        groups = dict.fromkeys([*periods, *range(1, _RING + 1)])
        return [(g, settled) for g in groups for settled in (False, True) if (g, settled) != (1, False)]

    def _grouped(self, body: Callable[[], Pred], count: int) -> Callable[[], Pred]:
        """`count` iterations as one; each further one runs only if the one before goes on."""
        if count == 1:
            return body

        m = self.machine

        def run() -> Pred:
            going = [body()]

            def again() -> None:
                entering = Upcoming(m.dom, go)
                m.registers = {n: entering.value(v) for n, v in m.registers.items()}
                going.append(self._grouped(body, count - 1)())
                self._tail = self._tail or m.shared.footprint.copy()

            go = going[0]
            if self.arena.implies(m.path.condition(), go):
                again()
            elif go.op != "false":
                m.fork(go, self.arena.negate(go), again, lambda: None)
            return self.arena.conj(going)

        return run

    def _close(self, body: Callable[[], Pred], header: int, entry: Snapshot, *, settled: bool = False) -> None:
        """Close the loop; `settled` looks for integers that no longer change after the first iteration."""
        m = self.machine
        after, go, tail = self._probe(body, entry)
        var = self.arena.fresh("loop", f"i{len(m.path.loops)}@{m.graph.blocks[header].start}", 0, None)
        guess = self._guess(entry.registers, after.registers, Upcoming(m.dom, go))
        guess.changed = np.nonzero((entry.shared[0] != after.shared[0]) | (entry.shared[1] != after.shared[1]))[0]
        held = self.arena.domain(var.id, Poly({}))
        start = m.shared.footprint.union(tail)
        original = Snapshot(entry.registers, (entry.shared[0], entry.shared[1].copy()), entry.mark)
        shifter = Shifter(m, entry, guess, var)
        if settled and not shifter.settle(*self._second(body, entry, after, go)):
            raise Unsupported("loop", SYMBOLIC_ADDRESS)
        go = self._stable(body, header, entry, guess, var, held, start, shifter if settled else None, strict=False)
        proposed = shifter.propose(Upcoming(m.dom, go))
        if proposed or any(_poisoned(m.registers.get(name)) for name in guess.states):
            go = self._stable(body, header, entry, guess, var, held, start, shifter, strict=True)
        Closer(m, header, var, guess, original, go, held).close()

    def _stable(
        self, body: Callable[[], Pred], header: int, entry: Snapshot, guess: Guess, var: Atom, held: Pred,
        start: Footprint, shifter: Shifter | None, *, strict: bool,
    ) -> Pred:
        """Run from iteration i until nothing is withdrawn; the continue condition."""
        m = self.machine
        for _ in range(_ROUNDS):
            go, end, left = self._arbitrary(body, entry, guess, var, held, start)
            upcoming = Upcoming(m.dom, go)
            stable = self._refine(guess, entry.registers, var, upcoming, strict=strict)
            if shifter is not None:
                stable = shifter.confirmed(upcoming) and stable
            if not end.within(start):
                start, stable = start.union(end), False
            more = np.nonzero((entry.shared[0] != m.shared.owner) | (entry.shared[1] != m.shared.lane))[0]
            if not set(more.tolist()) <= set(guess.changed.tolist()):
                guess.changed, stable = np.union1d(guess.changed, more), False
            if stable:
                m.shared.footprint = left
                return go
        raise Unsupported("loop", f"no stable invariant for the loop at {self._place(header)}")

    def _probe(self, body: Callable[[], Pred], entry: Snapshot) -> tuple[Snapshot, Pred, Footprint]:
        """State, continue condition and footprint after the first iteration; the machine is put back."""
        m = self.machine
        foot = m.shared.footprint.copy()
        go, tail = self._traced(body)
        after = self._snapshot()
        self._restore(entry)
        m.shared.footprint = foot
        return after, go, tail

    def _second(
        self, body: Callable[[], Pred], entry: Snapshot, after: Snapshot, go: Pred,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The registers after the first and after the second iteration; the machine is put back."""
        m = self.machine
        foot = m.shared.footprint.copy()
        upcoming = Upcoming(m.dom, go)
        one = {n: upcoming.value(v) for n, v in after.registers.items()}
        self._restore(Snapshot(one, after.shared, after.mark))
        with m.path.under(go):
            upcoming = Upcoming(m.dom, self._traced(body)[0])
        two = {n: upcoming.value(v) for n, v in m.registers.items()}
        self._restore(entry)
        m.shared.footprint = foot
        return one, two

    def _traced(self, body: Callable[[], Pred]) -> tuple[Pred, Footprint]:
        """Run a body; its continue condition, and the footprint on the side that goes on to the next one."""
        outer, self._tail = self._tail, None
        try:
            go = body()
            return go, self._tail or self.machine.shared.footprint
        finally:
            self._tail = outer

    def _guess(self, before: dict[str, Any], after: dict[str, Any], upcoming: Upcoming) -> Guess:
        guess = Guess()
        for name, v0 in before.items():
            if after.get(name) is None or after[name] is v0:
                continue
            v1 = upcoming.value(after[name])
            if v1 == v0:
                continue
            if isinstance(v0, Int) and isinstance(v1, Int):
                guess.affine[name] = (v0.poly, v1.poly - v0.poly)
            else:
                guess.unknown[name] = self._retyped(v0, v1)
                self._group(guess, name, v1)
        return guess

    def _group(self, guess: Guess, name: str, v1: Any) -> None:
        """Propose that groups of consecutive lanes carry one value, when they do after the first iteration."""
        v0 = guess.unknown[name]
        if not (isinstance(v0, Float) and isinstance(v1, Float) and v1.node.folds) or v0.node.poisoned:
            return
        for width in _WIDTHS:
            if self.arena.lanes % width == 0 and self._even(v0.node, width) and self._even(v1.node, width):
                guess.groups[name] = width
                return

    def _even(self, x: Real, width: int) -> bool:
        return self.arena.permute(x, np.arange(self.arena.lanes) // width * width, lazy=True) is x

    def _arbitrary(
        self, body: Callable[[], Pred], entry: Snapshot, guess: Guess, var: Atom, held: Pred, foot: Footprint,
    ) -> tuple[Pred, Footprint, Footprint]:
        """Run the body from iteration i; the continue condition, the footprints when it goes on and when it ends."""
        m = self.machine
        self._restore(entry)
        m.shared.footprint = foot.copy()
        i = self.arena.variable(var)
        for name, (p0, d) in guess.affine.items():
            m.registers[name] = Int(entry.registers[name].width, p0 + i * d)
        for name, v0 in guess.unknown.items():
            if name in guess.shifts:
                m.registers[name] = guess.shifts[name]
                guess.states.pop(name, None)
            else:
                guess.states[name] = m.registers[name] = self._unknown(name, v0, guess)
        if len(guess.changed):
            hole = m.shared.intern(Undef(m.shared.unit * 8, HOLE))
            m.shared.owner[guess.changed] = [guess.cells.get(int(c), hole) for c in guess.changed]
        m.path.loops.append(var.id)
        m.path.guards.append(held)
        try:
            go, tail = self._traced(body)
        finally:
            m.path.guards.remove(held)
            m.path.loops.pop()
        return go, tail, m.shared.footprint

    def _unknown(self, name: str, v0: Any, guess: Guess) -> Any:
        """A fresh unknown of the kind of `v0`."""
        if isinstance(v0, Pred):
            return self.arena.state_pred(self.arena.fresh("state", name).id)
        if isinstance(v0, Float):
            extent = guess.extents.setdefault(name, v0.node.ext)
            old = guess.states.get(name)
            atom = old.node.data[0] if isinstance(old, Float) else self.arena.fresh("state", name).id
            width = guess.groups.get(name, 1)
            return Float(v0.kind, v0.width, self.arena.state(
                atom, extent, np.arange(self.arena.lanes) // width * width))
        if isinstance(v0, Pack):
            return Pack(v0.width, tuple(self._unknown(f"{name}.{k}", p, guess) for k, p in enumerate(v0.parts)))
        if isinstance(v0, Int):
            return Int(v0.width, self.arena.variable(self.arena.fresh("state", name)))
        return Undef(v0.width, f"{name}, carried around a loop")

    def _refine(
        self, guess: Guess, before: dict[str, Any], var: Atom, upcoming: Upcoming, *, strict: bool
    ) -> bool:
        """Withdraw guesses the run did not confirm; True when all were confirmed."""
        m, ok = self.machine, True
        i = self.arena.variable(var)
        for name, (p0, d) in list(guess.affine.items()):
            now = upcoming.value(m.registers[name]) if m.registers.get(name) is not None else None
            if isinstance(now, Int) and now.poly == p0 + (i + 1) * d:
                continue
            del guess.affine[name]
            lost = Undef(before[name].width, f"{name} is defined on some paths only")
            guess.unknown[name] = lost if now is None else self._retyped(before[name], now)
            ok = False
        for name, v0 in before.items():
            now = m.registers.get(name)
            if name in guess.affine or name in guess.unknown or now is v0:
                continue
            if now is not None and (now == v0 or upcoming.value(now) == v0):
                continue
            if now is None and isinstance(v0, Pred):
                raise Unsupported("loop", f"the predicate {name} is defined on some paths only")
            lost = Undef(getattr(v0, "width", 1), f"{name} is defined on some paths only")
            guess.unknown[name] = lost if now is None else v0
            ok = False
        return self._widened(guess, strict) and ok

    def _widened(self, guess: Guess, strict: bool) -> bool:
        """Unknown floats may be infinite where the run made them so; False when an extent or a kind had to grow.

        Only a `strict` check counts poison: before shifts are proposed it may come from shared memory not yet known.
        """
        m, ok = self.machine, True
        for name in guess.unknown:
            now = m.registers.get(name)
            if name in guess.groups and not (isinstance(now, Float) and self._even(now.node, guess.groups[name])):
                del guess.groups[name]
                ok = False
            ok = self._wide_enough(name, now, guess) and ok
            odd = not _like(now, guess.unknown[name]) or (strict and _poisoned(now))
            if isinstance(guess.unknown[name], Float | Pack) and odd:
                width = guess.unknown[name].width  # type: ignore[union-attr]
                guess.unknown[name] = Undef(width, f"{name} is not a number in every iteration")
                ok = False
            if isinstance(now, Float) and isinstance(guess.unknown[name], Int):
                guess.unknown[name] = self._retyped(guess.unknown[name], now)
                ok = ok and isinstance(guess.unknown[name], Int)
        return ok

    def _wide_enough(self, name: str, now: Any, guess: Guess) -> bool:
        """True when the unknown may be as infinite as the value that the body leaves; else it may from now on."""
        if isinstance(now, Pack):  # a list, because every part has to be looked at
            return all([self._wide_enough(f"{name}.{k}", p, guess) for k, p in enumerate(now.parts)])  # noqa: C419
        if not isinstance(now, Float) or name not in guess.extents or not now.node.ext & ~guess.extents[name]:
            return True
        guess.extents[name] |= now.node.ext
        return False

    def _retyped(self, v0: Any, now: Any) -> Any:
        """The entry value in the kind of the later one, so that a float that starts as integer bits is a float."""
        if isinstance(now, Float) and isinstance(v0, Int) and v0.poly.is_constant():
            node = self.machine.dom.real(v0, ScalarType(now.kind, now.width))
            return Float(now.kind, now.width, node)
        if isinstance(now, Pack) and isinstance(v0, Int) and v0.poly.is_constant():
            pieces = self.machine.dom.unpack(v0.width, v0, len(now.parts))
            return Pack(v0.width, tuple(self._retyped(p, q) for p, q in zip(pieces, now.parts, strict=True)))
        return v0


def _like(now: Any, v0: Any) -> bool:
    """True when `now` is a number of the kind of `v0`, or such numbers packed: what an unknown float stands for."""
    if isinstance(v0, Pack):
        return isinstance(now, Pack) and len(now.parts) == len(v0.parts) and all(map(_like, now.parts, v0.parts))
    if isinstance(v0, Float):
        return isinstance(now, Float) and (now.kind, now.width) == (v0.kind, v0.width)
    return True


def _poisoned(now: Any) -> bool:
    """True when a float, or a part of a packed value, depends on what nothing may depend on."""
    if isinstance(now, Pack):
        return any(map(_poisoned, now.parts))
    return isinstance(now, Float) and now.node.poisoned
