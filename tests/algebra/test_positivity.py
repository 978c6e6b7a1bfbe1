"""Positivity certificates: typical goals of index arithmetic, wrong variants, random systems against enumeration."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warpproof.algebra.constraints import DERIVED, support
from warpproof.algebra.evaluation import Undefined, evaluate, satisfies
from warpproof.algebra.positivity import Certificate, check, prove_le
from warpproof.algebra.refutation import Leaf, Term
from warpproof.algebra.transcript import transcript
from warpproof.algebra.variables import Change, Elimination
from warpproof.terms import Arena, BoolVector, Poly, Pred, const

T256 = np.arange(256)


@dataclass
class Goal:
    arena: Arena
    poly: Poly
    hypotheses: Sequence[Pred]
    provable: bool
    mask: BoolVector | None = None


def lanes(v: np.ndarray) -> Poly:
    return const(np.asarray(v, dtype=np.int64))


def the_atom(p: Poly) -> int:
    (a,) = p.atoms()
    return a


def row_guard() -> Goal:
    a = Arena(256)
    row = a.symbol("block", "by", 0) * 64 + lanes(T256 // 4)
    m = a.symbol("size", "M", 1)
    return Goal(a, row - m + 1, [a.le(row - m + 1)], True)


def _matrix(slack: int) -> Goal:
    a = Arena(256)
    by, m, k_size = a.symbol("block", "by", 0), a.symbol("size", "M", 1), a.symbol("size", "K", 1)
    i = a.symbol("loop", "i", 0)
    row, k = by * 64 + lanes(T256 // 4), lanes(T256 % 4 * 4) + i * 16
    hyps = [a.le(row - m + 1), a.le(k - k_size + 1)]
    return Goal(a, row * k_size + k - m * k_size + slack, hyps, slack <= 1)


def matrix_in_bounds() -> Goal:
    return _matrix(1)


def matrix_off_by_one() -> Goal:
    return _matrix(2)


def rows_in_bounds() -> Goal:
    a = Arena(256)
    bx, rows, n = a.symbol("block", "bx", 0), a.symbol("size", "rows", 1), a.symbol("size", "n", 1)
    c = lanes(T256) + a.symbol("loop", "i", 0) * 256
    return Goal(a, bx * n + c - rows * n + 1, [a.le(bx - rows + 1), a.le(c - n + 1)], True)


def rows_with_missing_guard() -> Goal:
    a = Arena(256)
    bx, rows, n = a.symbol("block", "bx", 0), a.symbol("size", "rows", 1), a.symbol("size", "n", 1)
    return Goal(a, bx * n + lanes(T256) - rows * n + 1, [a.le(bx - rows + 1)], False)


def index_wraps() -> Goal:
    a = Arena(256)
    top = 2**31 - 1
    bx, rows = a.symbol("block", "bx", 0, top), a.symbol("size", "rows", 1, top)
    pitch, c = a.symbol("size", "pitch", 1, top), lanes(T256) + a.symbol("loop", "i", 0) * 64
    return Goal(a, bx * pitch + c - top, [a.le(bx - rows + 1), a.le(c - pitch + 1)], False)


def index_fits() -> Goal:
    a = Arena(256)
    bx, rows = a.symbol("block", "bx", 0, 1 << 15), a.symbol("size", "rows", 1, 1 << 15)
    pitch, c = a.symbol("size", "pitch", 1, 1 << 15), lanes(T256) + a.symbol("loop", "i", 0) * 64
    return Goal(a, bx * pitch + c - (2**31 - 1), [a.le(bx - rows + 1), a.le(c - pitch + 1)], True)


def grid_of_tiles() -> Goal:
    a = Arena(256)
    n, bx = a.symbol("size", "n", 1), a.symbol("block", "bx", 0)
    return Goal(a, bx * 256 - n + 1, [a.le(bx - a.floor_div(n + 255, const(256)) + 1)], True)


def grid_of_tiles_last() -> Goal:
    a = Arena(256)
    n, bx = a.symbol("size", "n", 1), a.symbol("block", "bx", 0)
    return Goal(a, bx * 256 + 1 - n + 1, [a.le(bx - a.floor_div(n + 255, const(256)) + 1)], False)


def loop_domain() -> Goal:
    a = Arena(256)
    n, i, t = a.symbol("size", "n", 1), a.symbol("loop", "i", 0), lanes(T256)
    domain = a.domain(the_atom(i), t + i * 256 + 256 - n + 1)
    return Goal(a, t + i * 256 - n + 1, [domain, a.le(t - n + 1)], True)


def loop_domain_without_entry_guard() -> Goal:
    g = loop_domain()
    return Goal(g.arena, g.poly, g.hypotheses[:1], False)


def quarter_tiles() -> Goal:
    a = Arena(256)
    n = a.symbol("size", "n", 1)
    t4 = a.symbol("block", "b", 0) * 256 + lanes(T256)
    return Goal(a, t4 * 4 + 3 - n + 1, [a.le(t4 - a.floor_div(n, const(4)) + 1)], True)


def three_digits() -> Goal:
    a = Arena(32)
    big = [a.symbol("size", x, 1) for x in "BHW"]
    b, h, w = (a.symbol("block", x, 0) for x in "bhw")
    hyps = [a.le(x - y + 1) for x, y in zip((b, h, w), big)]
    return Goal(a, (b * big[1] + h) * big[2] + w - big[0] * big[1] * big[2] + 1, hyps, True)


def four_digits() -> Goal:
    a = Arena(32)
    big = [a.symbol("size", x, 1) for x in "BHWC"]
    b, h, w, c = (a.symbol("block", x, 0) for x in "bhwc")
    hyps = [a.le(x - y + 1) for x, y in zip((b, h, w, c), big)]
    flat = ((b * big[1] + h) * big[2] + w) * big[3] + c
    return Goal(a, flat - big[0] * big[1] * big[2] * big[3] + 1, hyps, True)


def quotients_by_sizes() -> Goal:
    a = Arena(256)
    b, h, w = (a.symbol("size", x, 1) for x in "BHW")
    x = a.symbol("block", "bx", 0) * 256 + lanes(T256)
    return Goal(a, a.floor_div(a.floor_div(x, w), h) - b + 1, [a.le(x - b * h * w + 1)], True)


def remainder_by_size() -> Goal:
    a = Arena(256)
    w, x = a.symbol("size", "W", 1), a.symbol("block", "bx", 0) * 256 + lanes(T256)
    return Goal(a, a.mod(x, w) - w + 1, [], True)


def unrolled_remainder() -> Goal:
    a = Arena(256)
    n, i, t = a.symbol("size", "n", 1), a.symbol("loop", "i", 0), lanes(T256)
    rem = a.mod(a.floor_div(n - 1 - t, const(256)) + 1, const(4))
    return Goal(a, t + i * 256 - n + 1, [a.le(t - n + 1), a.le(i - rem + 1)], True)


def minimum() -> Goal:
    a = Arena(8)
    n, k, i = a.symbol("size", "n", 1), a.symbol("size", "k", 1), a.symbol("loop", "i", 0)
    return Goal(a, i - n + 1, [a.le(i - a.extremum("min", [n, k]) + 1)], True)


def maximum_by_cases() -> Goal:
    a = Arena(8)
    n, k, z = (a.symbol("size", x, 1) for x in "nkz")
    return Goal(a, a.extremum("max", [n, k]) - z + 1, [a.le(n - z + 1), a.le(k - z + 1)], True)


def choice() -> Goal:
    a = Arena(8)
    n, k, z = (a.symbol("size", x, 1) for x in "nkz")
    v = a.derived("phi", (n, k), pred=a.le(n - k))
    return Goal(a, v - k, [a.le(z - n)], True)


def disequality() -> Goal:
    a = Arena(8)
    x, y = a.symbol("size", "x"), a.symbol("size", "y")
    return Goal(a, x * 2 - y, [a.le(x * 2 - y - 1), a.ne(x * 2 - y - 1)], True)


def integer_cut() -> Goal:
    a = Arena(8)
    x, y = a.symbol("size", "x"), a.symbol("size", "y")
    return Goal(a, x - 3, [a.le(x * 2 + y * 3 - 10), a.le(x * 2 - y * 3 - 3)], True)


def swizzle() -> Goal:
    a = Arena(256)
    n, b = a.symbol("size", "n", 0), a.symbol("block", "b", 0)
    return Goal(a, b * 256 + lanes(T256 ^ (T256 >> 3 & 7)) - n, [a.le(b * 256 + 255 - n)], True)


def masked_lanes() -> Goal:
    a = Arena(256)
    n = a.symbol("size", "n", 32)
    return Goal(a, lanes(T256) - n + 1, [a.lane_mask(T256 < 32)], True)


def masked_by_argument() -> Goal:
    a = Arena(256)
    n = a.symbol("size", "n", 32)
    return Goal(a, lanes(T256) - n + 1, [], True, T256 < 32)


def mask_too_wide() -> Goal:
    a = Arena(256)
    n = a.symbol("size", "n", 32)
    return Goal(a, lanes(T256) - n + 1, [a.lane_mask(T256 < 33)], False)


def mask_or_guard() -> Goal:
    a = Arena(64)
    n, t = a.symbol("size", "n", 16), lanes(np.arange(64))
    return Goal(a, t - n + 1, [a.disj((a.lane_mask(np.arange(64) < 16), a.le(t - n + 1)))], True)


def trip_count() -> Goal:
    a = Arena(32)
    n, i, t = a.symbol("size", "n", 1), a.symbol("loop", "i", 0), lanes(np.arange(32))
    count = a.derived("trip", (t + i * 32 + 32 - n + 1,), tag=the_atom(i))
    return Goal(a, t + (count - 1) * 32 - n + 1, [a.le(t - n + 1)], True)


def _main_loop(copy: int, flat: bool) -> Goal:
    """Copy `copy` of an unrolled main loop after its remainder loop: a whole round is left when one element is."""
    a, threads = Arena(32), 32
    n, i, t = a.symbol("size", "n", 1, 1 << 20), a.symbol("loop", "i", 0), lanes(np.arange(32))
    bx, rows = a.symbol("block", "bx", 0), a.symbol("size", "rows", 1)
    count = a.floor_div(n + threads - 1 - t, const(threads))
    rounds = a.floor_div(n + threads - 1 - t, const(4 * threads))
    at = t + count * threads - rounds * (4 * threads) + i * (4 * threads)
    hyps = [a.le(bx - rows + 1), a.le(t + 3 * threads + 1 - n), a.domain(the_atom(i), at + 4 * threads - n + 1)]
    goal = at + copy * threads - n + 1
    return Goal(a, goal + bx * n - rows * n + n if flat else goal, hyps, copy < 4)


def main_loop_third_copy() -> Goal:
    return _main_loop(3, False)


def main_loop_flat_index() -> Goal:
    return _main_loop(2, True)


def main_loop_fourth_copy() -> Goal:
    return _main_loop(4, False)


def main_loop_from_zero() -> Goal:
    g = _main_loop(0, False)
    n = g.arena.symbol("size", "n")
    return Goal(g.arena, 1 - n - g.poly - g.arena.symbol("block", "bx") * n, g.hypotheses, True)


def divisible_tiles() -> Goal:
    """K > 8 and 8 | K give K ≥ 16."""
    a = Arena(256)
    n, k, bx = a.symbol("size", "N", 1), a.symbol("size", "K", 1), a.symbol("block", "bx", 0)
    columns = a.floor_div(n, const(32))
    hyps = [a.eq(n - columns * 32), a.eq(k - a.floor_div(k, const(8)) * 8), a.le(bx - columns + 1), a.le(9 - k)]
    return Goal(a, lanes(T256 % 32) + 1 + const(8 + T256 // 32) * n - n * k + bx * 32, hyps, True)


def _convolution(which: str) -> Goal:
    """Flat output and weight indices of a convolution with symbolic sizes and padding."""
    a = Arena(128)
    tops = {"Co": 999, "H": 2048, "W": 2048, "R": 16, "S": 16}
    co, h, w, r, s = (a.symbol("size", x, 1, top) for x, top in tops.items())
    b, ph, pw = a.symbol("size", "B", 1), a.symbol("size", "ph", 0), a.symbol("size", "pw", 0)
    bx, by, bz = (a.symbol("block", x, 0) for x in ("bx", "by", "bz"))
    k = a.symbol("loop", "k", 0)
    oh, ow = h + ph * 2 - r + 1, w + pw * 2 - s + 1
    p = bx * 128 + lanes(np.arange(128))
    hyps = [a.le(1 - r + ph), a.le(1 - s + pw), a.le(r - h - ph * 2), a.le(s - w - pw * 2), a.le(by - co + 1),
            a.le(bz - b + 1), a.le(p - oh * ow + 1)]
    flat, row, digit = (bz * co + by) * oh * ow + p, a.floor_div(p, ow), a.floor_div(k, s) - r * a.floor_div(k, r * s)
    goal = {"low": -flat, "high": flat - b * co * oh * ow + 1, "row": row - oh + 1, "column": p - row * ow - ow + 1,
            "digit": digit - r + 1, "sum": row + digit - ph - 2**31, "wide": flat - b * co * oh * ow + 2,
            "tall": row + digit - ph - h + 1}[which]
    return Goal(a, goal, hyps, which not in ("wide", "tall"))


@pytest.mark.parametrize("which", ["low", "high", "row", "column", "digit", "sum", "wide", "tall"])
def test_convolution_indices(which: str) -> None:
    g = _convolution(which)
    found = prove_le(g.arena, g.poly, g.hypotheses)
    assert (found is not None) == g.provable
    if found is not None:
        assert check(found)
        assert json.loads(json.dumps(transcript(found)))["cases"]


GOALS: list[Callable[[], Goal]] = [
    row_guard, matrix_in_bounds, matrix_off_by_one, rows_in_bounds, rows_with_missing_guard, index_wraps, index_fits,
    grid_of_tiles, grid_of_tiles_last, loop_domain, loop_domain_without_entry_guard, quarter_tiles, three_digits,
    four_digits, quotients_by_sizes, remainder_by_size, unrolled_remainder, minimum, maximum_by_cases, choice,
    disequality, integer_cut, swizzle, masked_lanes, masked_by_argument, mask_too_wide, mask_or_guard, trip_count,
    main_loop_third_copy, main_loop_flat_index, main_loop_fourth_copy, main_loop_from_zero, divisible_tiles,
]


@pytest.mark.parametrize("make", GOALS, ids=lambda f: f.__name__)
def test_typical_goal(make: Callable[[], Goal]) -> None:
    goal = make()
    start = time.perf_counter()
    found = prove_le(goal.arena, goal.poly, goal.hypotheses, mask=goal.mask)
    print(f"{make.__name__}: {1e3 * (time.perf_counter() - start):.1f} ms")
    assert (found is not None) == goal.provable
    if found is not None:
        assert check(found)
        wrong = replace(found, goal=found.goal + (1 << 40))
        assert not check(wrong)
        assert _violations(goal.arena, goal.poly, goal.hypotheses, goal.mask) == 0


def _violations(a: Arena, p: Poly, hyps: Sequence[Pred], mask: BoolVector | None) -> int:
    """Counterexamples among small and random values."""
    rng = np.random.default_rng(1)
    base = [i for i in support(a, (p,), hyps) if a.atoms[i].kind not in DERIVED]
    count = 0
    for _ in range(300):
        values = {}
        for i in base:
            lo, hi = a.ranges.get(i, (None, None))
            low = -3 if lo is None else lo
            high = low + int(rng.choice([2, 5, 40, 600])) if hi is None else min(hi, low + 600)
            values[i] = int(rng.integers(low, high + 1))
        lane = int(rng.integers(0, a.lanes))
        if (mask is None or mask[lane]) and all(satisfies(a, h, values, lane) is not False for h in hyps):
            count += evaluate(a, p, values, lane) > 0
    return count


# ---------------------------------------------------------------------- certificates are checked, not believed
def _proved() -> Certificate:
    g = matrix_in_bounds()
    found = prove_le(g.arena, g.poly, g.hypotheses)
    assert found is not None
    return found


def test_check_rejects_changed_certificates() -> None:
    c = _proved()
    case = c.cases[0]
    assert isinstance(case.tree, Leaf)
    terms = case.tree.terms
    for k, t in enumerate(terms):
        for weight in (t.weight + 1, -t.weight, Fraction(0)):
            leaf = Leaf((*terms[:k], Term(weight, t.factors, t.cofactor), *terms[k + 1 :]))
            assert not check(replace(c, cases=(replace(case, tree=leaf),)))
    assert not check(replace(c, hypotheses=c.hypotheses[:1]))
    assert not check(replace(c, cases=()))
    assert not check(replace(c, interval=True))
    assert not check(replace(c, cases=(replace(case, lanes=case.lanes[1:]),)))
    assert not check(replace(c, cases=(replace(case, radices=(256,)),)))


def test_check_rejects_unjustified_changes() -> None:
    g = divisible_tiles()
    c = prove_le(g.arena, g.poly, g.hypotheses)
    assert c is not None
    case = c.cases[0]
    used = next(x for x in case.changes if isinstance(x, Elimination))
    assert check(c)
    double, same = Change(used.old, -9000, 2, const(0)), Change(used.old, used.old, 1, const(0))
    for wrong in (replace(used, by=used.by + 1), double, same):
        changes = tuple(wrong if x is used else x for x in case.changes)
        assert not check(replace(c, cases=(replace(case, changes=changes),)))


def test_a_square_is_not_assumed_and_unknown_hypotheses_are_dropped() -> None:
    a = Arena(1)
    x = a.symbol("size", "x")
    state = a.state_pred(a.fresh("state", "s").id)
    assert prove_le(a, x - 5, [state]) is None
    assert prove_le(a, x - 5, [a.disj((state, a.le(x - 5)))]) is None
    found = prove_le(a, x - 5, [a.conj((state, a.le(x - 5)))])
    assert found is not None
    assert check(found)


def test_quotient_by_possibly_zero_says_nothing() -> None:
    a = Arena(1)
    x, d = a.symbol("size", "x", 0), a.symbol("size", "d")
    q = a.derived("div", (x, d))
    assert prove_le(a, q - x, []) is None
    assert prove_le(a, q - x, [a.le(1 - d)]) is not None


def test_budget_bounds_the_work() -> None:
    g = four_digits()
    assert prove_le(g.arena, g.poly, g.hypotheses, budget=3) is None


def test_contradictory_hypotheses_prove_everything() -> None:
    a = Arena(4)
    x = a.symbol("size", "x")
    found = prove_le(a, x, [a.eq(x * 2 - 1 - a.symbol("size", "y") * 2)])
    assert found is not None
    assert check(found)


# ---------------------------------------------------------------------- random systems against enumeration
@st.composite
def systems(draw: st.DrawFn) -> Goal:
    """A few atoms of small range, hypotheses of every kind, lane vectors affine or not."""
    count = draw(st.sampled_from([1, 4, 6]))
    a = Arena(count)
    low = draw(st.integers(-2, 1))
    atoms = [a.symbol("size", x, low, low + draw(st.integers(1, 4))) for x in "xyz"]
    small = st.integers(-3, 3)

    def linear() -> Poly:
        p = const(draw(small))
        for x in atoms:
            p = p + x * draw(small)
        if draw(st.booleans()):
            p = p + lanes(np.asarray(draw(st.lists(small, min_size=count, max_size=count))))
        if draw(st.integers(0, 3)) == 0:
            p = p + draw(st.sampled_from(atoms)) * draw(st.sampled_from(atoms)) * draw(small)
        return p

    def term() -> Poly:
        p = linear()
        match draw(st.integers(0, 6)):
            case 0:
                return p + a.floor_div(linear(), const(draw(st.integers(2, 5))))
            case 1:
                return p + a.extremum(draw(st.sampled_from(["min", "max"])), [linear(), linear()])
            case 2:
                return p + a.derived("phi", (linear(), linear()), pred=a.le(linear()))
            case _:
                return p

    def pred() -> Pred:
        match draw(st.integers(0, 6)):
            case 0:
                return a.eq(term())
            case 1:
                return a.ne(term())
            case 2:
                return a.disj((a.le(term()), a.le(term())))
            case 3:
                return a.lane_mask(np.asarray(draw(st.lists(st.booleans(), min_size=count, max_size=count))))
            case 4:
                return a.domain(the_atom(atoms[0]), linear())
            case _:
                return a.le(term())

    return Goal(a, term(), [pred() for _ in range(draw(st.integers(0, 3)))], True)


def _worst(g: Goal) -> int | None:
    """The largest value of the goal under the hypotheses, by enumeration."""
    a = g.arena
    base = [i for i in support(a, (g.poly,), g.hypotheses) if a.atoms[i].kind not in DERIVED]
    best: int | None = None
    spans = [range(a.ranges[i][0], a.ranges[i][1] + 1) for i in base]  # type: ignore[operator]
    for point in itertools.product(*spans):
        values = dict(zip(base, point))
        for lane in range(a.lanes):
            try:
                if all(satisfies(a, h, values, lane) for h in g.hypotheses):
                    v = evaluate(a, g.poly, values, lane)
                    best = v if best is None else max(best, v)
            except Undefined:
                continue
    return best


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(systems())
def test_random_systems_agree_with_enumeration(g: Goal) -> None:
    worst = _worst(g)
    if worst is None:
        return
    assert prove_le(g.arena, g.poly - (worst - 1), g.hypotheses) is None
    for slack in (0, 2):
        found = prove_le(g.arena, g.poly - (worst + slack), g.hypotheses)
        assert found is None or check(found)


def test_linear_goals_are_mostly_proved() -> None:
    """The search is not vacuous: on random linear systems it proves most of what is true."""
    rng = np.random.default_rng(7)
    proved = total = 0
    for _ in range(60):
        a = Arena(4)
        x, y = a.symbol("size", "x", 0, 5), a.symbol("size", "y", 0, 5)
        polys = [x * int(c[0]) + y * int(c[1]) + lanes(np.arange(4) * int(c[2])) + int(c[3])
                 for c in rng.integers(-3, 4, size=(3, 4))]
        g = Goal(a, polys[0], [a.le(p) for p in polys[1:]], True)
        worst = _worst(g)
        if worst is None:
            continue
        total += 1
        proved += prove_le(a, g.poly - worst, g.hypotheses) is not None
    assert proved > 0.9 * total
