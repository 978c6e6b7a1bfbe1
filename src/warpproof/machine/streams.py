"""The two sides of a branch between warps that meet at named barriers in loops: one after the other, not in turns.

What a side does at barriers and in shared memory is recorded as a stream of meetings, in loops of any length. The first
run leaves loads from shared memory unknown; `solve.Rendezvous` then works out which arrivals meet and which store each
load reads, and the second run answers loads by it. That both runs are one program is claimed in `safety.meetings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Float, ScalarType, Undef, Value
from warpproof.machine.mixing import permute
from warpproof.machine.trace import Meeting, Source
from warpproof.machine.upcoming import free_atoms, moved
from warpproof.terms import BoolVector, Poly, Pred, Real, TermMap, const

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

NUMBERS: Final = range(1, 16)
"""Barriers that sides may meet at; barrier 0 is that of the whole CTA."""
_LEFT: Final = "shared memory that warps have passed on at named barriers"


class Streams:
    """The streams of one machine; `sides` are the lanes of both sides once they have been run."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena
        self.running: int | None = None
        self.sides: list[BoolVector] = []
        self.survey: Sequence[Meeting] = ()
        self.sources: Mapping[int, tuple[Source, ...]] | None = None
        self._unknown: dict[int, Real] = {}

    # ------------------------------------------------------------------ both sides
    def run(self, sides: tuple[tuple[Pred, int], ...], join: int) -> list[dict[str, Any]]:
        """Run the first side, then the second, from the same registers; the registers of each at the join."""
        m = self.machine
        self._begin()
        before, found = dict(m.registers), []
        m.depth += 1
        for number, (guard, block) in enumerate(sides):
            m.registers = dict(before)
            with m.path.under(guard):
                self.sides.append(m.path.mask.copy())
                self.running = number
                try:
                    m.walk(block, join)
                finally:
                    self.running = None
            found.append(m.registers)
        m.depth -= 1
        self._end()
        return found

    def _begin(self) -> None:
        m = self.machine
        foot = m.shared.footprint
        if self.sides or m.path.loops or not m.path.cta_uniform() or m.crossing.locks.held is not None:
            raise Unsupported("barrier", "warps that meet in loops, inside a loop or branch, or a second time")
        if set(m.roles.users) & set(NUMBERS):
            raise Unsupported("barrier", "numbers of barriers at which other warps have met before")
        if (foot.writer != -1).any() or (foot.reader != -1).any() or foot.pending.stage.any():
            raise Unsupported("barrier", "warps that go separate ways with shared-memory accesses still unordered")

    def _end(self) -> None:
        """Nothing is known of shared memory afterwards, and all of it has been accessed by many."""
        m = self.machine
        m.roles.users.update(dict.fromkeys(NUMBERS, b""))
        if any(e.kind in ("put", "get") for e in m.trace.meetings):
            m.shared.footprint.close()
            m.shared.owner[:] = m.shared.intern(Undef(8 * m.shared.unit, _LEFT))

    # ------------------------------------------------------------------ steps
    def _note(self, kind: str, place: Poly, size: int, value: Value | None = None) -> int:
        m = self.machine
        assert self.running is not None
        m.trace.meetings.append(Meeting(kind, self.running, place, size, m.path.condition(), tuple(m.path.loops),
                                        m.current, value))
        return len(m.trace.meetings) - 1

    def meet(self, number: Poly, count: int | None, waits: bool) -> None:
        """The running side arrives at a barrier."""
        assert self.running is not None
        if count is None or (self.machine.path.mask != self.sides[self.running]).any():
            raise Unsupported("barrier", "a barrier of part of a side, or without a constant thread count")
        self._note("sync" if waits else "arrive", number, count)

    def closed(self) -> None:
        """Raises `Unsupported` while a side runs: accesses that streams do not record."""
        if self.running is not None:
            raise Unsupported("shared memory", "other accesses than loads and stores between warps that meet in loops")

    def align(self, offset: Poly, size: int) -> None:
        """Raises `Unsupported` unless the address is evidently a multiple of the size."""
        if any(np.any(np.asarray(c % size)) for c in offset.terms.values()):
            raise Unsupported("shared memory", "an address that is not evidently a multiple of its size")

    def _cell(self, offset: Poly, width: int) -> Poly:
        self.align(offset, width)
        return offset.exact_div(width)

    def put(self, offset: Poly, width: int, value: Value) -> None:
        """The running side stores an element."""
        self._note("put", self._cell(offset, width), width, value)

    def get(self, offset: Poly, ty: ScalarType) -> Value:
        """The running side loads an element."""
        number = self._note("get", self._cell(offset, ty.width // 8), ty.width // 8)
        if self.sources is None:
            return self._opaque(number, ty)
        found = self._answer(number)
        return found if found is not None and found.width == ty.width else self._poison(ty)

    def _opaque(self, number: int, ty: ScalarType) -> Value:
        """An unknown number, the same whenever this step is run."""
        if ty.kind not in ("f", "bf"):
            return Undef(ty.width, _LEFT)
        if number not in self._unknown:
            self._unknown[number] = self.arena.state(self.arena.fresh("state", f"get {number}").id, 0)
        return Float(ty.kind, ty.width, self._unknown[number])

    def _poison(self, ty: ScalarType) -> Value:
        if ty.kind in ("f", "bf"):
            return Float(ty.kind, ty.width, self.arena.poison(_LEFT))
        return Undef(ty.width, _LEFT)

    # ------------------------------------------------------------------ answers of the second run
    def _answer(self, number: int) -> Value | None:
        """What a get reads, by the sources found after the first run; None where this is not evidently that get."""
        m = self.machine
        assert self.sources is not None
        sources, now = self.sources.get(number), m.trace.meetings[number]
        then = self.survey[number] if number < len(self.survey) else None
        if not sources or then is None or (then.kind, then.side, then.instruction) != (
                now.kind, now.side, now.instruction):
            return None
        loops = {old: self._turn(k) for k, old in enumerate(then.loops)}
        rename = self.arena.substitution(loops)
        out: Value | None = None
        for s in reversed(sources):
            value = self._left(s, rename)
            if value is None:
                return None
            condition = rename.pred(s.condition)
            if out is None or self._same(self.arena.conj((m.path.condition(), condition)), value, out):
                out = value if out is None else out
            else:
                out = m.dom.merge(condition, value, out)
        return out

    def _turn(self, k: int) -> Poly:
        """The iteration of the k-th loop around; its first where the loop is being tried out."""
        loops = self.machine.path.loops
        return self.arena.variable(self.arena.atoms[loops[k]]) if k < len(loops) else const(0)

    def _left(self, s: Source, rename: TermMap) -> Value | None:
        put = self.survey[s.put]
        if put.value is None or not free_atoms(self.arena, put.value) <= set(put.loops):
            return None
        value = permute(self.machine.dom, put.value, s.lanes)
        at = {var: rename.poly(p) for var, p in s.at.items()}
        return moved(self.machine.dom, self.arena.substitution(at), value) if at else value

    def _same(self, path: Pred, x: Any, y: Any) -> bool:
        """Two values are one number wherever the path holds."""
        if isinstance(x, Float) and isinstance(y, Float):
            return (x.kind, x.width) == (y.kind, y.width) and self._alike(path, x.node, y.node)
        return bool(x == y)

    def _alike(self, path: Pred, x: Real, y: Real) -> bool:
        if x is y:
            return True
        if x.op == y.op == "load" and x.data[0] == y.data[0]:
            return self.machine.oracle.implied(path, self.arena.eq(x.data[1] - y.data[1]), hard=True)
        plain = x.op == y.op and x.op in ("add", "mul", "max", "min", "div", "ex2") and len(x.args) == len(y.args)
        return plain and x.data == y.data and all(self._alike(path, a, b) for a, b in zip(x.args, y.args, strict=True))


def renamed(meeting: Meeting, mapping: TermMap) -> Meeting:
    """A meeting with the atoms of its place and path replaced."""
    return replace(meeting, place=mapping.poly(meeting.place), path=mapping.pred(meeting.path))
