"""A reduction over an interval, put together from reductions over consecutive intervals.

Integer sets cannot say where a chunk begins when the chunks' length is symbolic too; here each piece is only asked for
its ends. If the first piece begins where the interval does, each of the others where one before it ends, the last ends
where the interval does, and none ends before it begins, then the pieces contain each element once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from warpproof.algebra import support
from warpproof.core import Unsupported
from warpproof.solve.facts import Facts
from warpproof.solve.pieces import Piece, without_other_blocks
from warpproof.terms import Arena, Poly, Pred, const

_MOST: Final = 512
"""Intervals that are put together."""


@dataclass(frozen=True, slots=True)
class Run:
    """first, first + step, …: `count` integers, taken where `only` holds; there are at least `least` there."""

    first: Poly
    step: int
    count: Poly
    only: tuple[Pred, ...]
    least: int = 0

    @property
    def end(self) -> Poly:
        """What follows on the last one."""
        return self.first + self.count * self.step


def run_of(arena: Arena, variable: int, guards: Sequence[Pred], index: Poly) -> Run | None:
    """The values of `index` under guards that bound the variable, of which it is a linear function, on either side."""
    slope, rest = index.split(variable)
    step = slope.as_int()
    if step is None or step < 1 or variable in arena.poly_free(rest):
        return None
    bounds: dict[int, Poly] = {}
    only, least = [], 0
    for g in (h for p in guards for h in arena.conjuncts(p)):
        if variable not in g.free:
            only.append(g)
            continue
        ends = _repeated(arena, variable, g) if g.op == "dom" else _bound(arena, variable, g)
        if not ends or not bounds.keys().isdisjoint(ends):
            return None
        bounds.update(ends)
        least = max(least, int(g.op == "dom"))
    for way, limit in zip((-1, 1), arena.ranges[variable], strict=True):
        if limit is not None and not _stricter(arena, bounds.setdefault(way, const(limit)), way, limit):
            return None  # the variable's own range may be what ends it
    if len(bounds) < 2:
        return None
    return Run(rest + bounds[-1] * step, step, bounds[1] - bounds[-1] + 1, tuple(only), least)


def _stricter(arena: Arena, bound: Poly, way: int, limit: int) -> bool:
    """A lower (-1) or upper (1) bound never admits more than the limit does."""
    end = arena.bounds(bound)[0 if way == -1 else 1]
    return end is not None and (end - limit) * way <= 0


def _bound(arena: Arena, variable: int, g: Pred) -> dict[int, Poly] | None:
    """The least (-1) or greatest (1) value of the variable that a comparison admits."""
    side, other = g.data.split(variable) if g.op == "le" else (const(0), const(0))
    way = side.as_int()
    if way not in (1, -1) or variable in arena.poly_free(other):
        return None
    return {way: other * -way}


def _repeated(arena: Arena, variable: int, g: Pred) -> dict[int, Poly] | None:
    """First and last iteration of a do-while loop that goes on while slope · i + rest ≤ 0, if it does so once."""
    atom, goes_on = g.data
    side, rest = goes_on.split(variable)
    slope = side.as_int()
    if atom != variable or slope is None or slope < 1 or variable in arena.poly_free(rest):
        return None
    return {-1: const(0), 1: arena.floor_div(-rest, const(slope)) + 1}


class Consecutive:
    """Says whether pieces are consecutive intervals; what is found of a lane's piece is found once."""

    def __init__(self, facts: Facts) -> None:
        self.facts, self.arena = facts, facts.arena
        self._seen: dict[object, list[Run] | None] = {}
        self._always: dict[object, bool] = {}

    def holds(self, domain: tuple[int, Sequence[Pred]], pieces: Sequence[Piece], path: Pred) -> bool:
        """The pieces, at all lanes that they count in, contain each value of the domain's variable exactly once."""
        variable, guards = domain
        whole = run_of(self.arena, variable, guards, Poly({(variable,): 1}))
        if whole is None or whole.step != 1 or whole.only or whole.least:
            return False
        runs = self._runs(pieces)
        if runs is None or len(runs) > _MOST:
            return False
        waiting: dict[object, list[Run]] = {}
        for run in runs:
            waiting.setdefault(run.first.key, []).append(run)
        at = whole.first
        while waiting:
            here = waiting.get(at.key)
            if not here:
                return False
            here.sort(key=lambda r: r.end.key != at.key)  # the empty ones first
            found = here.pop(0)
            if not here:
                del waiting[at.key]
            if not self._taken_whole(found, path):
                return False
            at = found.end
        ends = (self.arena.le(at - whole.end), self.arena.le(whole.end - at))
        return at.key == whole.end.key or all(self.facts.implied(path, p) for p in ends)

    def _taken_whole(self, run: Run, path: Pred) -> bool:
        """The count is not negative, not less than it must be where the run is taken, and 0 where it is not.

        Most runs are of other lanes, of which the path says nothing: what holds anyway is asked for first, and once.
        """
        key = (run.count.key, tuple(p.id for p in run.only), run.least)
        if key not in self._always:
            self._always[key] = self._is_whole(run, self.arena.true)
        return self._always[key] or self._is_whole(run, path)

    def _is_whole(self, run: Run, path: Pred) -> bool:
        arena = self.arena

        def follows(claim: Pred, *given: Pred) -> bool:
            return self.facts.implied(arena.conj((path, *given)), claim)

        empty = arena.le(run.count)
        return (
            follows(arena.le(-run.count)) and (not run.least or follows(arena.le(run.least - run.count), *run.only))
            and all(follows(empty, arena.negate(c)) or follows(c) for c in run.only)
        )

    def _runs(self, pieces: Sequence[Piece]) -> list[Run] | None:
        """The runs of step 1 that the pieces are at the lanes that they count in; None where some are none."""
        found: list[Run] = []
        for p in pieces:
            weight = np.full(self.arena.lanes, p.weight) if isinstance(p.weight, int) else np.asarray(p.weight)
            if weight.ndim != 1 or len(p.index) != 1 or p.blocks or len(p.loops) > 1 or len(found) > _MOST:
                return None
            for lane in np.flatnonzero(weight).tolist():
                key = (lane, p.loops, p.index[0].key, tuple(g.id for g in p.guards))
                if key not in self._seen:
                    self._seen[key] = self._run(p, lane)
                runs = self._seen[key]
                if weight[lane] != 1 or runs is None:
                    return None
                found += runs
        return _interleaved(found)

    def _run(self, p: Piece, lane: int) -> list[Run] | None:
        """The run of a piece at a lane, none where its guards exclude the lane; None where it cannot be said."""
        here = self.arena.permutation_map(np.full(self.arena.lanes, lane))
        try:
            guards = [h for g in p.guards for h in self.arena.conjuncts(here.pred(g))]
            index = here.poly(p.index[0])
        except Unsupported:  # values that each lane has of its own
            return None
        if any(g.op == "false" for g in guards):
            return []
        found = run_of(self.arena, p.loops[0], guards, index) if p.loops else Run(index, 1, const(1), tuple(guards))
        return None if found is None else [found]


def in_order(facts: Facts, pieces: Sequence[Piece], extents: Sequence[Poly]) -> bool:
    """Every element of an array is the index of exactly one point: rows are CTAs, in which it is one of consecutive
    intervals."""
    arena = facts.arena
    rows = [k for k in range(len(extents)) if (b := _block_of(pieces, k)) is not None and _counts(facts, b, extents[k])]
    blocks = {_block_of(pieces, k) for k in rows}
    rest = [k for k in range(len(extents)) if k not in rows]
    if len(rest) != 1 or len(blocks) != len(rows) or any(blocks != set(p.blocks) for p in pieces):
        return False
    alone = [replace(p, blocks=(), index=(p.index[rest[0]],)) for p in pieces]
    if blocks & set(support(arena, [p.index[0] for p in alone], [g for p in alone for g in p.guards])):
        return False
    at = arena.fresh("index", "j", 0, None)
    inside = arena.le(arena.variable(at) - extents[rest[0]] + 1)
    known = Facts(arena, without_other_blocks(arena, facts.base, pieces[0].blocks))
    return Consecutive(known).holds((at.id, (inside,)), alone, arena.true)


def _block_of(pieces: Sequence[Piece], k: int) -> int | None:
    """The block atom that coordinate k is in every piece."""
    found = {p.index[k].key: p.index[k] for p in pieces if len(p.index) > k}
    if len(found) != 1:
        return None
    ((m, c), *more) = next(iter(found.values())).terms.items() or [((), 0)]
    return m[0] if not more and len(m) == 1 and isinstance(c, int) and c == 1 and m[0] in pieces[0].blocks else None


def _counts(facts: Facts, block: int, extent: Poly) -> bool:
    """The block index runs over [0, extent): nothing else is known of it."""
    b = facts.arena.variable(facts.arena.atoms[block])
    known = [p for p in facts.base if block in support(facts.arena, (), (p,))]
    return known == [facts.arena.le(b - extent + 1)] and facts.arena.ranges[block][0] == 0


def _interleaved(runs: Sequence[Run]) -> list[Run] | None:
    """The runs with those of step s, of which there are s that begin one after another, made one of step 1."""
    out = [r for r in runs if r.step == 1]
    groups: dict[object, dict[object, Run]] = {}
    for r in runs:
        if r.step > 1:
            key = (r.step, r.count.key, tuple(p.id for p in r.only), r.least)
            group = groups.setdefault(key, {})
            if r.first.key in group:
                return None
            group[r.first.key] = r
    for group in groups.values():
        while group:
            _, r = next(iter(group.items()))
            while (before := group.get((r.first - 1).key)) is not None:
                r = before
            for k in range(r.step):
                if group.pop((r.first + k).key, None) is None:
                    return None
            out.append(Run(r.first, 1, r.count * r.step, r.only, r.least * r.step))
    return out
