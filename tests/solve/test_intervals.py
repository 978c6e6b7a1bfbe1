"""Consecutive intervals against counting the elements of the pieces one by one."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpproof.algebra import evaluate
from warpproof.solve import Consecutive, Facts, Piece, in_order
from warpproof.terms import Arena, Poly, const

LANES = 4


def chunks(cuts: list[int], low: list[int], high: list[int], extra: int) -> tuple[Arena, Facts, list[Piece], int, Poly]:
    """Lane l takes min(n, cuts[l]·c) + low[l] up to min(n, cuts[l + 1]·c) + high[l], and `extra` elements after it."""
    a = Arena(LANES)
    n, c = a.symbol("size", "n", 1, 1000), a.symbol("size", "c", 1, 1000)
    first = a.extremum("min", [n, c * const(np.array(cuts[:-1]))]) + const(np.array(low))
    end = a.extremum("min", [n, c * const(np.array(cuts[1:]))]) + const(np.array(high))
    i = a.fresh("loop", "i", 0, None)
    inside = a.le(first + a.variable(i) - end + 1 - extra)
    pieces = [Piece((inside,), (i.id,), (), (first + a.variable(i),))]
    return a, Facts(a, (a.le(n - c * cuts[-1]),)), pieces, i.id, n


def counted(a: Arena, pieces: list[Piece], variable: int, values: dict[int, int]) -> Counter[int]:
    """How often each integer is an index, over lanes and iterations."""
    found: Counter[int] = Counter()
    for p in pieces:
        for k in range(60):
            for lane in range(LANES):
                at = values | {variable: k}
                if all(evaluate(a, _poly(g), at, lane) <= 0 for g in p.guards if g.op == "le"):
                    found[evaluate(a, p.index[0], at, lane)] += 1
    return found


def _poly(g: object) -> Poly:
    data = g.data  # type: ignore[attr-defined]
    assert isinstance(data, Poly)
    return data


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=LANES, max_size=LANES), st.integers(-1, 1), st.integers(0, 3),
       st.sampled_from([0, 0, 0, 1, -1]))
def test_what_holds_is_so_at_small_sizes(steps: list[int], shift: int, where: int, extra: int) -> None:
    cuts = [0, *np.cumsum(steps).tolist()]
    low = [shift if lane == where else 0 for lane in range(LANES)]
    a, facts, pieces, variable, n = chunks(cuts, low, [0] * LANES, extra)
    at = a.fresh("index", "j", 0, None)
    whole = (at.id, (a.le(a.variable(at) - n + 1),))
    holds = Consecutive(facts).holds(whole, pieces, a.true)
    ids = {x.name: x.id for x in a.atoms}
    for size in (1, 2, 5, 7):
        for c in (1, 2, 3, 7):
            if size > c * cuts[-1]:
                continue
            right = counted(a, pieces, variable, {ids["n"]: size, ids["c"]: c}) == Counter(range(size))
            assert right or not holds
    if extra == shift == 0 and cuts[-1]:
        assert holds


def test_interleaved_runs_are_one() -> None:
    for offsets, right in (((0, 1, 2), True), ((0, 1), False), ((0, 1, 1), False), ((0, 1, 3), False)):
        a = Arena(1)
        m = a.symbol("size", "m", 1, 1000)
        i = a.fresh("loop", "i", 0, None)
        x = a.variable(i)
        pieces = [Piece((a.le(x - m + 1),), (i.id,), (), (x * 3 + k,)) for k in offsets]
        at = a.fresh("index", "j", 0, None)
        whole = (at.id, (a.le(a.variable(at) - m * 3 + 1),))
        assert Consecutive(Facts(a, ())).holds(whole, pieces, a.true) is right


def test_a_repeated_loop_must_be_entered() -> None:
    a = Arena(1)
    m = a.symbol("size", "m", 0, 1000)
    i = a.fresh("loop", "i", 0, None)
    goes_on = a.domain(i.id, a.variable(i) - m + 2)  # i + 1 < m
    at = a.fresh("index", "j", 0, None)
    whole = (at.id, (a.le(a.variable(at) - m + 1),))

    def holds(*guards: object) -> bool:
        piece = Piece((*guards, goes_on), (i.id,), (), (a.variable(i),))  # type: ignore[arg-type]
        return Consecutive(Facts(a, ())).holds(whole, [piece], a.true)

    assert holds(a.le(1 - m))
    assert not holds()
    assert not holds(a.le(2 - m))


@pytest.mark.parametrize(("row", "rows", "right"), [(0, 0, True), (1, 0, False), (0, 1, False)])
def test_rows_are_counted_by_ctas(row: int, rows: int, right: bool) -> None:
    a = Arena(2)
    m, n = a.symbol("size", "m", 1, 100), a.symbol("size", "n", 1, 100)
    b = a.symbol("block", "block.x", 0, None)
    (block,) = b.atoms()
    half = a.floor_div(n, const(2))
    ends = [const(0), half, n]
    i = a.fresh("loop", "i", 0, None)
    x = a.variable(i)
    pieces = []
    for lane, (first, end) in enumerate(pairwise(ends)):
        mask = a.lane_mask(np.arange(2) == lane)
        pieces.append(Piece((mask, a.le(first + x - end + 1)), (i.id,), (block,), (b + row, first + x)))
    facts = Facts(a, (a.le(b - m + 1),))
    assert in_order(facts, pieces, (m + rows, n)) is right
    assert not in_order(facts, pieces[:1], (m, n))


def test_a_guard_does_not_replace_the_range_of_its_variable() -> None:
    """i ≥ s bounds nothing where s < 0, as i ≥ 0 anyway: then the first elements are missing."""
    for least, right in ((0, True), (-5, False)):
        a = Arena(1)
        n, s = a.symbol("size", "n", 1, 1000), a.symbol("size", "s", least, 1000)
        i = a.fresh("loop", "i", 0, None)
        x = a.variable(i)
        at = a.fresh("index", "j", 0, None)
        whole = (at.id, (a.le(a.variable(at) - n + 1),))
        piece = Piece((a.le(s - x), a.le(x - s - n + 1)), (i.id,), (), (x - s,))
        assert Consecutive(Facts(a, ())).holds(whole, [piece], a.true) is right


def test_the_range_of_a_variable_ends_it_where_a_guard_does_not() -> None:
    a = Arena(1)
    n = a.symbol("size", "n", 1, 1000)
    i = a.fresh("loop", "i", 0, 7)
    at = a.fresh("index", "j", 0, None)
    piece = Piece((a.le(a.variable(i) - n + 1),), (i.id,), (), (a.variable(i),))
    whole = (at.id, (a.le(a.variable(at) - n + 1),))
    assert not Consecutive(Facts(a, ())).holds(whole, [piece], a.true)


def test_ctas_that_are_not_counted_are_not_known_to_be_there() -> None:
    """Where r = 0 the launch is empty, though the CTAs of each row say nothing of that."""
    for guarded, right in ((False, True), (True, False)):
        a = Arena(1)
        r, s, n = (a.symbol("size", name, 0, 100) for name in "rsn")
        x, y = (a.symbol("block", f"block.{axis}", 0, None) for axis in "xy")
        facts = Facts(a, (a.le(x - r + 1), a.le(y - s + 1)))
        i = a.fresh("loop", "i", 0, None)
        k = a.variable(i)
        guards = (a.le(k - n + 1), *((a.le(1 - r),) if guarded else ()))
        piece = Piece(guards, (i.id,), tuple(y.atoms()), (y, k))
        assert in_order(facts, [piece], (s, n)) is right


def test_a_condition_that_differs_by_lane_in_an_unknown_way_is_not_a_run() -> None:
    a = Arena(2)
    n, r = a.symbol("size", "n", 1, 100), a.symbol("size", "r", 1, 100)
    b = a.symbol("block", "block.x", 0, None)
    i, unknown = a.fresh("loop", "i", 0, None), a.fresh("state", "a value that did not close")
    x = a.variable(i)
    first = a.lane_mask(np.arange(2) == 0)
    piece = Piece((first, a.le(x - n + 1), a.le(a.variable(unknown) - 3)), (i.id,), tuple(b.atoms()), (b, x))
    assert not in_order(Facts(a, (a.le(b - r + 1),)), [piece], (r, n))
