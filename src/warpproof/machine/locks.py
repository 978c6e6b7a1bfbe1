"""Spin locks in the symbolic machine: what a thread adds to memory while it holds one.

Between a waiting compare-and-swap of 0 by a constant and the store or exchange of 0 nobody else touches what the lock
protects, so the thread finds some value and leaves another. If it leaves what it found plus something, the critical
section is a contribution, like an atomic addition. That the lock excludes is claimed later (`safety.protocols`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from warpproof.algebra import support
from warpproof.core import Unsupported
from warpproof.domains import Float, Int, Value
from warpproof.machine.setup import BufferInfo
from warpproof.terms import Poly, Pred, Real

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine



@dataclass(slots=True)
class Section:
    """A critical section under way: its lock, its path, the elements read and what was stored last."""

    lock: str
    index: Poly
    path: Pred
    loops: tuple[int, ...]
    symbolic: Pred  # the path apart from the lanes
    count: int = 0  # accesses so far
    found: dict[tuple[str, Any], Real] = field(default_factory=dict)
    stores: dict[tuple[str, Any], tuple[BufferInfo, Poly, Value, int]] = field(default_factory=dict)


class Locks:
    """The lock that one machine holds, if any."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena
        self.held: Section | None = None
        self.sections = 0

    def take(self, lock: str, index: Poly) -> None:
        """The critical section of a lock begins."""
        m = self.machine
        if self.held is not None or m.crossing.turns.held is not None or m.path.loops:
            raise Unsupported("lock", "a lock is taken in a loop, or while another one is held")
        self.sections += 1
        self.held = Section(lock, index, m.path.condition(), tuple(m.path.loops), m.path.symbolic())

    def inside(self) -> bool:
        """The current instruction is in a critical section; raises `Unsupported` where that is not clear."""
        m = self.machine
        if self.held is None:
            return False
        if m.path.condition() is not self.held.path or tuple(m.path.loops) != self.held.loops or m.conditional():
            raise Unsupported("lock", "branches, loops or other threads' code while a lock is held")
        return True

    def load(self, info: BufferInfo, index: Poly) -> Value:
        """An element as the holder finds it, or as it has left it."""
        held = self._section(info)
        key = (info.name, index.key)
        if key in held.stores:
            return held.stores[key][2]
        self._apart(held, info, index)
        if key not in held.found:  # unknown, and nothing but what is written back may depend on it
            name = f"what the holder of {held.lock} finds in {info.name} ({self.sections}.{len(held.found)})"
            held.found[key] = self.arena.poison(name)
        return Float(info.kind, info.width, held.found[key])

    def store(self, info: BufferInfo, index: Poly, value: Value) -> None:
        """The holder writes an element."""
        held = self._section(info)
        self._apart(held, info, index)
        held.stores[info.name, index.key] = (info, index, value, self.machine.current)

    def _section(self, info: BufferInfo) -> Section:
        if self.held is None or info.kind not in ("f", "bf") or not info.initialised:
            raise Unsupported("lock", f"{info.name} is accessed under a lock, and does not hold numbers from the start")
        self.held.count += 1
        return self.held

    def _apart(self, held: Section, info: BufferInfo, index: Poly) -> None:
        """No element stored by another index is this one."""
        for other, at, _, _ in held.stores.values():
            same = other.name == info.name and at != index
            if same and not self.machine.holds(self.arena.ne(at - index)):
                raise Unsupported("lock", f"elements of {info.name} that may be the same are written under a lock")

    def release(self, lock: str, index: Poly) -> None:
        """The critical section ends; each element written is a contribution."""
        held = self.held
        if held is None or not self.inside() or (held.lock, held.index) != (lock, index):
            raise Unsupported("lock", f"{lock} is released by a thread that does not evidently hold it")
        self.held = None
        if set(held.found) - set(held.stores):
            raise Unsupported("lock", "an element is read under a lock and not written")
        m = self.machine
        now = m.current
        for key, (info, at, value, instruction) in held.stores.items():
            m.current = instruction
            rest = self.added(info, held.found.get(key), value)
            self.machine.require_real("finite", rest)
            added = Float(info.kind, info.width, rest)
            m.answers.record("atomic", info, at, added, op="add")
            m.trace.accesses[-1] = replace(m.trace.accesses[-1], lock=lock)
        m.current = now

    def finish(self) -> None:
        """Raises `Unsupported` when a lock is kept, or when the run's course depends on what a holder found."""
        trace = self.machine.trace
        if self.held is not None:
            raise Unsupported("lock", f"{self.held.lock} is not given back")
        if self.machine.crossing.turns.held is not None:
            raise Unsupported("turn", "a turn is not passed on")
        if not self.sections:
            return
        paths = [a.path for a in trace.accesses] + [e.path for e in trace.sync] + [b.path for b in trace.barriers]
        values = [a.index for a in trace.accesses] + [a.value.poly for a in trace.accesses if isinstance(a.value, Int)]
        atoms = (self.arena.atoms[a] for a in support(self.arena, values, paths) if a >= 0)
        conditions = [*paths, *(a.pred for a in atoms if a.pred is not None)]
        if any(not self.arena.unknown.isdisjoint(p.free) for p in conditions):
            raise Unsupported("lock", "what is done depends on what is found under a lock")

    def added(self, info: BufferInfo, found: Real | None, value: Value) -> Real:
        """What is left over what was found."""
        rest = self._without(value.node, found) if isinstance(value, Float) and found is not None else None
        if rest is None or rest.poisoned:
            raise Unsupported("lock", f"{info.name} is changed under a lock by more than an addition")
        return rest

    def _without(self, x: Real, found: Real) -> Real | None:
        if x is found:
            return self.arena.zero
        if x.op != "add":
            return None
        for k, part in enumerate(x.args):
            rest = self._without(part, found)
            if rest is not None:
                return self.arena.combine("add", rest, *(y for n, y in enumerate(x.args) if n != k))
        return None
