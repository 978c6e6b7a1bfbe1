"""Warps with different roles that meet at named barriers by arriving and waiting (producers and consumers).

Where a branch sends some warps one way and some the other, and they pass barriers with `bar.arrive`, the two sides run
in turns: each until it waits for a phase that is not complete. That is one schedule. It stands for all, because a
thread that comes to a phase of a barrier is shown to know that the phase before is over (as in Weft, PPoPP 2015), and
accesses are compared by what the phases order, not by their turn.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warpproof.core import Unsupported
from warpproof.machine.footprint import Published
from warpproof.machine.trace import BarrierEvent
from warpproof.terms import BoolVector, Pred

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine


class _Abandoned(BaseException):
    """The run has ended elsewhere."""


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
    state: tuple[Any, ...]
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    known: dict[int, int] = field(default_factory=dict)
    blocked: int | None = None  # the barrier it waits at
    done: bool = False
    registers: dict[str, Any] = field(default_factory=dict)


class Roles:
    """Runs the two sides of one branch of one machine."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena
        self.phases: dict[int, _Phase] = {}
        self.over: dict[int, int] = {}  # by barrier: phases that are complete
        self.roles: list[_Role] = []
        self.running: _Role | None = None
        self.operations = 0
        self.failure: BaseException | None = None
        self._main = threading.Semaphore(0)

    def apply(self) -> bool:
        """True while two sides are being run."""
        return self.running is not None

    # ------------------------------------------------------------------ turns
    def run(self, sides: list[tuple[Pred, Callable[[], None]]]) -> list[dict[str, Any]]:
        """Run both sides to their ends; the registers of each."""
        m = self.machine
        before = self._state()
        self.roles = []
        for guard, _ in sides:
            lanes = self.arena.mask_of(guard)
            state = (dict(m.registers), before[1], before[2], before[3], m.depth + 1, *before[5:])
            self.roles.append(_Role(m.path.mask if lanes is None else m.path.mask & lanes, state))
        threads = [threading.Thread(target=self._side, args=(role, *side), daemon=True)
                   for role, side in zip(self.roles, sides, strict=True)]
        for thread in threads:
            thread.start()
        try:
            self._turns()
        finally:
            failed, self.failure = self.failure, self.failure or _Abandoned()
            for role in self.roles:
                role.turn.release()
            for thread in threads:
                thread.join()
            self.running = None
            self._restore(before)
        if failed is not None:
            raise failed
        if self.phases:
            raise Unsupported("barrier", f"barrier {next(iter(self.phases))} is left in the middle of a phase")
        return [role.registers for role in self.roles]

    def _turns(self) -> None:
        while self.failure is None and not all(role.done for role in self.roles):
            ready = [r for r in self.roles if not r.done and r.blocked is None]
            if not ready:
                raise Unsupported("barrier", "the warps wait for each other at named barriers")
            self.running = ready[0]
            self._restore(ready[0].state)
            ready[0].turn.release()
            self._main.acquire()

    def _side(self, role: _Role, guard: Pred, body: Callable[[], None]) -> None:
        role.turn.acquire()
        try:
            if self.failure is None:
                with self.machine.path.under(guard):
                    body()
                role.registers = self.machine.registers
        except _Abandoned:
            return
        except BaseException as stuck:  # handed to the thread that waits  # noqa: BLE001
            self.failure = self.failure or stuck
        role.done = True
        self._main.release()

    def _state(self) -> tuple[Any, ...]:
        m = self.machine
        return (m.registers, m.path.mask, list(m.path.guards), list(m.path.loops), m.depth, m.current, m.instruction)

    def _restore(self, state: tuple[Any, ...]) -> None:
        m = self.machine
        m.registers, m.path.mask, guards, loops, m.depth, m.current, m.instruction = state
        m.path.guards[:], m.path.loops[:] = guards, loops

    # ------------------------------------------------------------------ barriers
    def meet(self, number: int, count: int | None, waits: bool) -> None:
        """The running role arrives at a barrier, and waits for the end of the phase if it `waits`."""
        m, role = self.machine, self.running
        assert role is not None
        mask = m.path.mask.copy()
        self._check(number, count, mask, role)
        self.operations += 1
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
        if int(phase.arrived.sum()) >= phase.count:
            self._complete(number, phase)
        if role.blocked is not None:
            self._yield(role)

    def _check(self, number: int, count: int | None, mask: BoolVector, role: _Role) -> None:
        m = self.machine
        if (mask != role.mask).any() or count is None or count <= 0 or count % 32:
            raise Unsupported("barrier", "a named barrier of some warps of one side of a branch, or of parts of warps")
        if m.path.loops or m.copies or m.conditional() or m.crossing.locks.held is not None:
            raise Unsupported("barrier", "bar.arrive in a loop of unknown length, or under a condition")
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

    def _yield(self, role: _Role) -> None:
        """Let the other side run until the phase is over."""
        role.state = self._state()
        self._main.release()
        role.turn.acquire()
        if self.failure is not None:
            raise _Abandoned


def _later(a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
    return {n: max(a.get(n, 0), b.get(n, 0)) for n in a.keys() | b.keys()}


def whole_warps(mask: BoolVector) -> bool:
    """The mask consists of whole warps."""
    return len(mask) % 32 == 0 and bool((mask.reshape(-1, 32).any(axis=1) == mask.reshape(-1, 32).all(axis=1)).all())


