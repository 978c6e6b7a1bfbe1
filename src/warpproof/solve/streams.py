"""Streams of meetings as integer sets: every step of two sides of a branch at its time in program order.

A point is (time, place, lane, kind, side, number): the time is a lexicographic date (position of the outermost loop,
its iteration, position of the next loop in it …), the number that of the step in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from warpproof.algebra import support
from warpproof.core import Unsupported
from warpproof.machine import Meeting
from warpproof.solve.pieces import Piece
from warpproof.solve.relations import Problem, Relations
from warpproof.solve.sets import linear_problems
from warpproof.terms import Poly, const

KINDS: Final = ("arrive", "sync", "put", "get")


class Streams:
    """The isl sets of the meetings of one trace; raises `Unsupported` where they are not exact."""

    def __init__(self, problem: Problem, meetings: Sequence[Meeting]) -> None:
        self.problem, self.meetings, self.arena = problem, tuple(meetings), problem.arena
        self.depth = max((len(e.loops) for e in meetings), default=0)
        self.first = self._loop_starts()
        pieces = [self._piece(k, e) for k, e in enumerate(meetings)]
        problems = linear_problems(problem, pieces, True, self._sort, False)
        if len(problems) != 1 or not pieces:
            raise Unsupported("integer sets", "streams of meetings in several cases")
        dims = frozenset(d for p in pieces for d in p.loops)
        self.sets = Relations(problem, problems[0], dims)
        if not self.sets.exact():
            raise Unsupported("integer sets", "meetings under conditions without an exact integer meaning")
        self.times = [f"t{k}" for k in range(2 * self.depth + 1)]
        self.columns = [*self.times, "place", "lane", "kind", "side", "number"]
        self.session = self.sets.session
        images = [self.sets.image(k) for k in range(len(problems[0].bodies))]
        self.all = reduce(lambda a, b: self.call(a.union, b), images)

    def _sort(self, number: int) -> object:
        e = self.meetings[number]
        return e.kind, e.side, e.loops

    def call(self, f: Any, *args: Any) -> Any:
        """An isl call within the budget."""
        return self.session.guard(f, *args)

    # ------------------------------------------------------------------ time
    def _loop_starts(self) -> dict[int, int]:
        """For each loop the first step inside; its steps follow each other without others in between."""
        inside: dict[int, list[int]] = {}
        for k, e in enumerate(self.meetings):
            for i in e.loops:
                inside.setdefault(i, []).append(k)
        if any(at[-1] - at[0] + 1 != len(at) for at in inside.values()):
            raise Unsupported("integer sets", "a loop whose meetings are not together")
        return {i: at[0] for i, at in inside.items()}

    def time(self, k: int, e: Meeting) -> tuple[Poly, ...]:
        """The date of step k."""
        out: list[Poly] = []
        for i in e.loops:
            out += [const(self.first[i]), Poly({(i,): 1})]
        out.append(const(k))
        return (*out, *[const(0)] * (2 * self.depth + 1 - len(out)))

    def _piece(self, k: int, e: Meeting) -> Piece:
        lanes = const(np.arange(self.arena.lanes)) if e.kind in ("put", "get") else const(0)
        index = (*self.time(k, e), e.place, lanes, const(KINDS.index(e.kind)), const(e.side), const(k))
        guards = tuple(self.arena.conjuncts(e.path))
        if e.kind in ("arrive", "sync"):
            guards = tuple(g for g in guards if self.arena.mask_of(g) is None)
            if not all(g.uniform for g in guards) or not self.arena.poly_uniform(e.place):
                raise Unsupported("barrier", "warps of one side that do not all come to a named barrier together")
        loops = {i for m in self.meetings for i in m.loops}
        if set(support(self.arena, (e.place,), guards)) & (loops - set(e.loops)):
            raise Unsupported("integer sets", "a meeting that depends on a loop that is over")
        return Piece(guards, e.loops, (), index)

    # ------------------------------------------------------------------ sets and relations
    def relation(self, text_from: Sequence[str], text_to: Sequence[str], where: Any) -> Any:
        """The pairs of some columns and others of the points of a set."""
        back = self.call(self._columns(text_from).intersect_domain, where)
        return self.call(self.call(back.reverse).apply_range, self._columns(text_to))

    def _columns(self, wanted: Sequence[str]) -> Any:
        renamed = [f"{c}_" for c in wanted]
        same = " and ".join(f"{c}_ = {c}" for c in wanted) or "0 = 0"
        return self.read_map(f"{{ [{', '.join(self.columns)}] -> [{', '.join(renamed)}] : {same} }}")

    def read_map(self, text: str) -> Any:
        """A map over the parameters."""
        return self.session.read_map(text)

    def only(self, where: Any, condition: str) -> Any:
        """The points of a set that satisfy a condition on the columns."""
        chosen = self.session.read_set(f"{{ [{', '.join(self.columns)}] : {condition} }}")
        return self.call(where.intersect, chosen)

    def lex(self, strict: bool) -> Any:
        """The pairs of times of which the first is earlier (or, unless strict, the same)."""
        space = self.session.read_set(f"{{ [{', '.join(self.times)}] }}").get_space()
        maps = type(self.read_map("{ [a] -> [a] }"))
        return self.call(maps.lex_lt if strict else maps.lex_le, space)
