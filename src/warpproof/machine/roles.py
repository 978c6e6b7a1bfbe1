"""Warps with different roles that meet at named barriers by arriving and waiting (producers and consumers).

Where a branch sends some warps one way and some the other, and they pass barriers with `bar.arrive`, the two sides run
in turns: each until it waits for a phase that is not complete. That is one schedule. It stands for all, because a
thread that comes to a phase of a barrier is shown to know that the phase before is over (as in Weft, PPoPP 2015), and
accesses are compared by what the phases order, not by their turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from warpproof.core import Unsupported
from warpproof.machine.footprint import Published
from warpproof.machine.trace import BarrierEvent
from warpproof.terms import BoolVector, Pred

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

EXIT: Final = -1
"""The virtual exit block."""


@dataclass(slots=True)
class _Phase:
    """One phase of one barrier: who has arrived, and what is ordered before its end."""

    count: int
    arrived: BoolVector
    waiting: BoolVector
    published: list[Published] = field(default_factory=list)
    known: dict[int, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Role:
    """One side of the branch: its part of the machine while the other side runs, and the phases it knows to be over."""

    mask: BoolVector
    guard: Pred
    at: tuple[int, int | None]  # block, and instruction within it
    registers: dict[str, Any]
    known: dict[int, int] = field(default_factory=dict)
    blocked: int | None = None  # the barrier it waits at
    done: bool = False


class Roles:
    """The named barriers of one machine, and the two sides of a branch that meet at them."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena
        self.phases: dict[int, _Phase] = {}
        self.over: dict[int, int] = {}  # by barrier: phases that are complete
        self.roles: list[_Role] = []
        self.running: _Role | None = None
        self.depth = 0
        self.users: dict[int, bytes] = {}  # by barrier number: the lanes that meet there

    # ------------------------------------------------------------------ turns
    def split(self, guard: Pred) -> bool:
        """Some whole warps go one way and some the other, in a kernel in which warps arrive without waiting."""
        m = self.machine
        mask = self.arena.mask_of(guard)
        if mask is None or self.running is not None or m.streams.running is not None or not any(
                x.name in ("bar", "barrier") and "arrive" in x.modifiers for x in m.kernel.code):
            return False
        return whole_warps(mask & m.path.mask) and whole_warps(~mask & m.path.mask)

    def run(self, sides: tuple[tuple[Pred, int], ...], join: int) -> list[dict[str, Any]]:
        """Run both sides, each from its block to the join: in turns, or as streams where they meet in loops."""
        m = self.machine
        registers, shared, foot = dict(m.registers), m.shared.snapshot(), m.shared.footprint.copy()
        mark = m.trace.mark()
        depth, users, over = m.depth, dict(self.users), dict(self.over)
        try:
            return self._in_turns(sides, join)
        except Unsupported as stuck:
            m.registers, m.shared.footprint, m.depth = registers, foot, depth
            m.shared.restore(shared)
            m.trace.rewind(mark)
            self.users, self.phases, self.over, self.running = users, {}, over, None
            first = stuck
            if "out of time" in stuck.why or "steps" in stuck.why:
                raise
        try:
            return m.streams.run(sides, join)
        except Unsupported as stuck:
            raise (stuck if m.streams.sides else first) from None

    def _in_turns(self, sides: tuple[tuple[Pred, int], ...], join: int) -> list[dict[str, Any]]:
        """Run both sides in turns, each until it waits; the registers of each."""
        m = self.machine
        self.roles = []
        for guard, block in sides:
            lanes = self.arena.mask_of(guard)
            mask = m.path.mask if lanes is None else m.path.mask & lanes
            self.roles.append(_Role(mask, guard, (block, None), dict(m.registers)))
        m.depth += 1
        self.depth = m.depth
        while not all(role.done for role in self.roles):
            ready = next((r for r in self.roles if not r.done and r.blocked is None), None)
            if ready is None:
                raise Unsupported("barrier", "the warps wait for each other at named barriers")
            self._turn(ready, join)
        m.depth -= 1
        if self.phases:
            raise Unsupported("barrier", f"barrier {next(iter(self.phases))} is left in the middle of a phase")
        return [role.registers for role in self.roles]

    def _turn(self, role: _Role, join: int) -> None:
        """Run a side until it waits or ends."""
        m = self.machine
        self.running, m.registers = role, role.registers
        (block, index) = role.at
        with m.path.under(role.guard):
            while block not in (join, EXIT) and role.blocked is None:
                if index is None and block in m.graph.loops:
                    block = m.loops.run(block)
                    continue
                following = m.block(block, start=index)
                block, index = following if isinstance(following, tuple) else (following, None)
        role.at, role.registers, role.done = (block, index), m.registers, role.blocked is None
        self.running = None

    def waiting(self) -> bool:
        """The side under way has just come to a barrier whose phase is not complete."""
        return self.running is not None and self.running.blocked is not None

    # ------------------------------------------------------------------ barriers
    def meet(self, number: int, count: int | None, waits: bool) -> None:
        """The running role arrives at a barrier, and waits for the end of the phase if it `waits`."""
        m, role = self.machine, self.running
        assert role is not None
        mask = m.path.mask.copy()
        self._check(number, count, mask, role)
        self.used_by(number, mask & False)
        m.trace.barriers.append(BarrierEvent(m.path.condition(), m.current, members=mask.tobytes()))
        phase = self.phases.get(number)
        if phase is None:
            phase = self.phases[number] = _Phase(int(count or 0), mask & False, mask & False)
        if phase.count != count or (phase.arrived & mask).any():
            raise Unsupported("barrier", f"barrier {number}: a second arrival in one phase, or another thread count")
        phase.arrived = phase.arrived | mask
        phase.published.append(m.shared.footprint.publish(mask))
        phase.known = _later(phase.known, role.known)
        if waits:
            phase.waiting = phase.waiting | mask
            role.blocked = number
        arrived = int(phase.arrived.sum())
        if arrived > phase.count:  # which of them complete the phase, and which begin the next, is not known
            raise Unsupported("barrier", f"more threads come to barrier {number} than it waits for")
        if arrived == phase.count:
            self._complete(number, phase)

    def _check(self, number: int, count: int | None, mask: BoolVector, role: _Role) -> None:
        m = self.machine
        if (mask != role.mask).any() or count is None or count <= 0 or count % 32:
            raise Unsupported("barrier", "a named barrier of some warps of one side of a branch, or of parts of warps")
        if m.depth != self.depth or m.conditional() or m.crossing.locks.held is not None:
            raise Unsupported("barrier", "warps that meet by bar.arrive inside a loop or branch of their own")
        if self.over.get(number, 0) > role.known.get(number, 0):
            raise Unsupported("barrier", f"warps come to barrier {number} that need not know that its phase is over")

    def _complete(self, number: int, phase: _Phase) -> None:
        del self.phases[number]
        self.over[number] = self.over.get(number, 0) + 1
        foot = self.machine.shared.footprint
        for published in phase.published:
            foot.receive(published, phase.waiting)
        known = {**phase.known, number: self.over[number]}
        for role in self.roles:
            if role.blocked == number:
                role.blocked = None
                role.known = _later(role.known, known)

    # ------------------------------------------------------------------ barriers of some warps
    def named(self, number: int, threads: int | None) -> None:
        """A barrier of some warps: those that execute it, all of them together, and no others at this number."""
        m, mask = self.machine, self.machine.path.mask
        if not whole_warps(mask) or threads != int(mask.sum()):
            raise Unsupported("barrier", "a barrier of part of the CTA, executed by other threads than it waits for")
        if m.conditional() or m.crossing.locks.held is not None:
            raise Unsupported("barrier", "a barrier of part of the CTA under a predicate or a lock")
        self.used_by(number, mask)
        m.trace.barriers.append(BarrierEvent(m.path.condition(), m.current, members=mask.tobytes()))
        m.shared.footprint.group_barrier(mask)

    def used_by(self, number: int, mask: BoolVector) -> None:
        """One barrier number is used by one set of threads, so that its phases do not mix."""
        raw = mask.tobytes()
        if self.users.setdefault(number, raw) != raw:
            raise Unsupported("barrier", f"barrier {number} is used by different sets of threads")


def _later(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
    return {n: max(a.get(n, 0), b.get(n, 0)) for n in a.keys() | b.keys()}


def whole_warps(mask: BoolVector) -> bool:
    """The mask consists of whole warps."""
    return len(mask) % 32 == 0 and bool((mask.reshape(-1, 32).any(axis=1) == mask.reshape(-1, 32).all(axis=1)).all())


