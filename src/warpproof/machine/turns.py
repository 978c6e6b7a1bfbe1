"""Turnstiles in the symbolic machine: CTAs that wait until a counter holds their number, and pass it on by one more.

Between the wait for k and the store of k + 1 it is the CTA's turn. Nobody else touches what is touched in turns, so the
CTA finds some value in an element and leaves another; if it leaves what it found plus something, its turn is a
contribution, like an atomic addition. That turns exclude each other in every execution is claimed later
(`safety.turns`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warpproof.core import Unsupported
from warpproof.domains import Float, Value
from warpproof.machine.locks import Section
from warpproof.machine.setup import BufferInfo
from warpproof.machine.trace import Access, Obligation, SyncEvent
from warpproof.machine.upcoming import Upcoming
from warpproof.terms import Poly, Pred, Real

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

Key = tuple[str, Any, int]
"""Buffer, index and path."""


@dataclass(slots=True)
class Turn:
    """A turn under way: its counter and number, what was found in elements and what was stored last.

    Without a number it is a critical section of the whole CTA, and the counter is the lock.
    """

    counter: str
    index: Poly
    number: Poly | None
    path: Pred
    count: int = 0  # accesses so far
    found: dict[Key, tuple[Poly, Real]] = field(default_factory=dict)
    stores: dict[Key, tuple[BufferInfo, Poly, Value, int, Pred]] = field(default_factory=dict)


class Turns:
    """The turn that one machine has, if any."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena
        self.held: Turn | None = None
        self.taken = 0

    def number(self, event: SyncEvent) -> Poly | None:
        """The k of a wait that ends exactly when k is read, where k is the CTA's ticket or one of its block indices."""
        m = self.machine
        info = m.setup.buffers.get(event.buffer)
        if event.until is None or event.until.op != "eq" or info is None or not info.zero:
            return None
        ((seen,),) = event.value.terms
        slope, rest = event.until.data.split(seen)
        number: Poly = rest * -1 if slope.as_int() == 1 else rest
        known = any(number == p for p in (*m.setup.tickets.values(), *m.setup.blocks))
        return number if slope.as_int() in (1, -1) and known else None

    def begin(self, event: SyncEvent, number: Poly) -> None:
        """The wait has ended: it is the CTA's turn."""
        m = self.machine
        if self.held is not None or m.path.loops or m.crossing.locks.held is not None:
            raise Unsupported("turn", "a turn is waited for in a loop, or within another turn or lock")
        self.taken += 1
        m.crossing.locks.sections += 1  # nothing else may depend on what is found
        self.held = Turn(event.buffer, event.index, number, m.path.symbolic())

    def enter(self, lock: Section) -> None:
        """A barrier lets the whole CTA into the critical section of the thread that has taken a lock."""
        if lock.count or self.held is not None or self.machine.path.loops or self.machine.conditional():
            raise Unsupported("lock", "a barrier in the midst of a critical section")
        self.taken += 1
        self.held = Turn(lock.lock, lock.index, None, lock.symbolic)

    def covers(self, info: BufferInfo) -> bool:
        """The current access is one of a turn."""
        if self.held is None or not info.writable or info.kind not in ("f", "bf"):
            return False
        if self.machine.path.loops or not info.initialised:
            raise Unsupported("turn", f"{info.name} is accessed in a loop during a turn, or holds nothing at the start")
        self.held.count += 1
        return True

    def load(self, info: BufferInfo, index: Poly) -> Value:
        """An element as it is found in this turn, or as it was left by the same thread on the same path."""
        held, key = self._key(info, index)
        if key in held.stores:
            return held.stores[key][2]
        self._apart(held, key, info, index)
        if key not in held.found:
            name = f"what a turn finds in {info.name} ({self.taken}.{len(held.found)})"
            held.found[key] = (index, self.arena.poison(name))
        return Float(info.kind, info.width, held.found[key][1])

    def store(self, info: BufferInfo, index: Poly, value: Value) -> None:
        """An element is written in this turn."""
        held, key = self._key(info, index)
        self._apart(held, key, info, index)
        m = self.machine
        held.stores[key] = (info, index, value, m.current, m.path.condition())

    def _key(self, info: BufferInfo, index: Poly) -> tuple[Turn, Key]:
        assert self.held is not None
        return self.held, (info.name, index.key, self.machine.path.condition().id)

    def _apart(self, held: Turn, key: Key, info: BufferInfo, index: Poly) -> None:
        """No element stored on another path or by another index is this one, in the same thread."""
        for other, (stored, at, _, _, path) in held.stores.items():
            if other == key or stored.name != info.name:
                continue
            both = self.arena.conj((path, self.machine.path.condition()))
            if not self.machine.oracle.implied(both, self.arena.ne(at - index)):
                raise Unsupported("turn", f"elements of {info.name} that may be the same are written in a turn")

    def passes(self, buffer: str, index: Poly, value: Poly) -> bool:
        """A store of k + 1 to the counter ends the turn."""
        held = self.held
        if held is None or (held.counter, held.index) != (buffer, index):
            return False
        return value.as_int() == 0 if held.number is None else bool(value == held.number + 1)

    def end(self) -> int:
        """The turn is over; each element written is a contribution. The number of its accesses."""
        held, m = self.held, self.machine
        assert held is not None
        if m.path.symbolic() is not held.path or m.path.loops or int(m.path.mask.sum()) != 1:
            raise Unsupported("turn", "it is passed on by several threads, or not whenever it was waited for")
        self.held = None
        if set(held.found) - set(held.stores):
            raise Unsupported("turn", "an element is read in a turn and not written")
        now = m.current
        for key, (info, at, value, instruction, path) in held.stores.items():
            m.current = instruction
            found = held.found[key][1] if key in held.found else None
            value = Upcoming(m.dom, path).value(value)
            rest = m.crossing.locks.added(info, found, value)
            m.trace.obligations.append(Obligation("finite", path, (), instruction, node=rest))
            added = Float(info.kind, info.width, rest)
            order = len(m.trace.accesses)
            m.trace.accesses.append(Access("atomic", info.name, at, path, (), instruction, order, added, op="add",
                                           lock=held.counter))
        m.current = now
        return held.count
