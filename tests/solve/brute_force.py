"""The questions of `warpproof.solve` answered by enumerating points at small sizes: the oracle of the tests."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpproof.algebra.evaluation import evaluate, satisfies
from warpproof.solve import Box, Piece, Problem, Region

REACH = 24  # loops and blocks are enumerated below this


@dataclass(frozen=True, slots=True)
class Point:
    index: tuple[int, ...]
    lane: int
    blocks: tuple[int, ...]
    loops: tuple[int, ...]
    loop_ids: tuple[int, ...]
    piece: int
    weight: int


def points(problem: Problem, pieces: Sequence[Piece], sizes: Mapping[int, int], reach: int = REACH) -> list[Point]:
    """Every point of every piece at these sizes."""
    return [p for n, piece in enumerate(pieces) for p in _points(problem, piece, n, sizes, reach)]


def _points(problem: Problem, piece: Piece, n: int, sizes: Mapping[int, int], reach: int) -> Iterator[Point]:
    a = problem.arena
    weight = np.broadcast_to(np.asarray(piece.weight), (a.lanes,))
    dims = (*piece.blocks, *piece.loops)
    spans = []
    for d in dims:
        lo, hi = a.ranges.get(d, (0, None))
        spans.append(range(lo or 0, min(reach, hi + 1 if hi is not None else reach)))
    for values in itertools.product(*spans):
        env = {**sizes, **dict(zip(dims, values))}
        for lane in range(a.lanes):
            if not weight[lane]:
                continue
            if all(satisfies(a, g, env, lane) for g in (*piece.guards, *problem.facts)):
                k = len(piece.blocks)
                index = tuple(evaluate(a, p, env, lane) for p in piece.index)
                yield Point(index, lane, values[:k], values[k:], piece.loops, n, int(weight[lane]))


def admitted(problem: Problem, sizes: Mapping[int, int]) -> bool:
    """True when the facts on sizes alone hold (others are checked point by point) and sizes are in range."""
    a = problem.arena
    for i, v in sizes.items():
        lo, hi = a.ranges.get(i, (None, None))
        if (lo is not None and v < lo) or (hi is not None and v > hi):
            return False
    for f in problem.facts:
        try:
            if satisfies(a, f, dict(sizes), 0) is False:
                return False
        except Exception as e:  # a fact on dimensions needs a point
            if type(e).__name__ not in ("Undefined", "KeyError"):
                raise
    return True


def target(problem: Problem, sizes: Mapping[int, int], reach: int = 4 * REACH) -> set[tuple[int, ...]]:
    """The elements of the target."""
    a = problem.arena
    match problem.target:
        case Box(extents):
            return set(itertools.product(*(range(evaluate(a, e, sizes, 0)) for e in extents)))
        case Region(index, preds):
            spans = [range(a.ranges[i][0] or 0, min(reach, (a.ranges[i][1] or reach) + 1)) for i in index]
            return {
                j for j in itertools.product(*spans)
                if all(satisfies(a, p, {**sizes, **dict(zip(index, j))}, 0) for p in preds)
            }
    raise AssertionError("no target")


def answer(question: str, found: Sequence[Point], goal: set[tuple[int, ...]], reads: int = 0) -> bool:
    """The truth of a question at one size."""
    by_index: dict[tuple[int, ...], list[Point]] = defaultdict(list)
    for p in found:
        by_index[p.index].append(p)
    match question:
        case "covers":
            return goal <= set(by_index)
        case "within":
            return set(by_index) <= goal
        case "exactly_once":
            return set(by_index) == goal and all(len(v) == 1 and v[0].weight == 1 for v in by_index.values())
        case "disjoint":
            return all(len({p.piece for p in v}) == 1 for v in by_index.values())
        case "single_thread":
            return all(len({(p.lane, p.blocks) for p in v}) == 1 for v in by_index.values())
        case "injective":
            return all(len({(p.lane, p.blocks, p.loop_ids, p.loops) for p in v}) == 1 for v in by_index.values())
        case "equal_index_same_thread":
            return all(
                (p.lane, p.blocks) == (q.lane, q.blocks)
                for v in by_index.values() for p in v for q in v if p.piece < reads <= q.piece
            )
    raise AssertionError(question)
