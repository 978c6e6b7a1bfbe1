"""Every constructor keeps the meaning of its terms: random terms against plain Python, at random points."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from term_oracle import LANES, Maker, loaded

from warpproof.terms import Access, Poly, TermMap, const

seeds = st.integers(0, 2**32)
often = settings(max_examples=80, deadline=None)
POINTS = 6


@often
@given(seeds)
def test_integers_mean_what_they_were_built_from(seed: int) -> None:
    mk = Maker(seed)
    p, meaning = mk.integer(4)
    for _ in range(POINTS):
        e = mk.env()
        for t in range(LANES):
            assert mk.oracle.poly(p, e, t) == meaning(e, t)


@often
@given(seeds)
def test_bounds_contain_the_value(seed: int) -> None:
    mk = Maker(seed)
    p, meaning = mk.integer(3)
    lo, hi = mk.arena.bounds(p)
    for _ in range(POINTS):
        e = mk.env()
        for t in range(LANES):
            v = meaning(e, t)
            assert lo is None or lo <= v
            assert hi is None or v <= hi


@often
@given(seeds)
def test_predicates_mean_what_they_were_built_from(seed: int) -> None:
    mk = Maker(seed)
    p, meaning = mk.predicate(3)
    negated = mk.arena.negate(p)
    for _ in range(POINTS):
        e = mk.env()
        for t in range(LANES):
            assert mk.oracle.pred(p, e, t) == meaning(e, t)
            assert mk.oracle.pred(negated, e, t) != meaning(e, t)


@often
@given(seeds)
def test_implication_is_sound(seed: int) -> None:
    mk = Maker(seed)
    a = mk.arena
    (p, f), (q, g) = mk.predicate(2), mk.predicate(1)
    d, h = mk.integer(2)
    pairs = [(p, f, q, g), (a.conj((p, q)), lambda e, t: f(e, t) and g(e, t), q, g),
             (a.le(d), lambda e, t: h(e, t) <= 0, a.le(d - 3), lambda e, t: h(e, t) <= 3),
             (a.le(d + 2), lambda e, t: h(e, t) <= -2, a.ne(d), lambda e, t: h(e, t) != 0),
             (a.eq(d), lambda e, t: h(e, t) == 0, p, f),
             (a.conj((p, a.le(d))), lambda e, t: f(e, t) and h(e, t) <= 0, q, g)]
    for left, low, right, high in pairs:
        if a.implies(left, right):
            for _ in range(POINTS):
                e = mk.env()
                for t in range(LANES):
                    assert not low(e, t) or high(e, t)


@often
@given(seeds)
def test_reals_mean_what_they_were_built_from(seed: int) -> None:
    mk = Maker(seed)
    x, meaning = mk.real(2)
    for _ in range(2):
        e = mk.env()
        for t in range(LANES):
            assert mk.oracle.real(x, e, t) == meaning(e, t)


@often
@given(seeds)
def test_what_holds_on_one_side_may_be_used_there(seed: int) -> None:
    """`under` may change a term only where the condition does not have the given value."""
    mk = Maker(seed)
    x, meaning = mk.real(2)
    g, holds = mk.predicate(2)
    sides = {value: mk.arena.under(x, g, value) for value in (True, False)}
    for _ in range(2):
        e = mk.env()
        for t in range(LANES):
            assert mk.oracle.real(sides[bool(holds(e, t))], e, t) == meaning(e, t)


@often
@given(seeds)
def test_substitution_is_evaluation_at_another_point(seed: int) -> None:
    mk = Maker(seed)
    a = mk.arena
    (x, f), (p, g), (q, h) = mk.real(2), mk.predicate(2), mk.integer(3)
    image, value = mk.integer(1)
    atom = mk.rng.choice([mk.j, mk.n, mk.b])
    if atom != mk.j:  # sizes keep their range
        k = mk.rng.randint(1, 5)
        image, value = const(k), lambda e, t: k
    put = a.substitution({atom: image})
    new, where, index = put.real(x), put.pred(p), a.substitute_poly(q, {atom: image})
    for _ in range(2):
        e = mk.env()
        for t in range(LANES):
            there = {**e, atom: value(e, t)}
            assert mk.oracle.poly(index, e, t) == h(there, t)
            # Reals, also those that a predicate compares, may look at other lanes.
            if image.uniform() and all(a.atoms[i].uniform for i in image.atoms()):
                assert mk.oracle.pred(where, e, t) == f_or(g, there, t)
                assert mk.oracle.real(new, e, t) == f(there, t)


def f_or(meaning, env, lane: int) -> bool:  # type: ignore[no-untyped-def]
    return bool(meaning(env, lane))


@often
@given(seeds)
def test_permutation_moves_lanes(seed: int) -> None:
    mk = Maker(seed)
    a = mk.arena
    (x, f), (p, g), (q, h) = mk.real(2), mk.predicate(2), mk.integer(3)
    lanes = np.array([mk.rng.randrange(LANES) for _ in range(LANES)])
    move = a.permutation_map(lanes)
    moved = [a.permute(x, lanes), a.permute(x, lanes, lazy=True), move.real(x)]
    e = mk.env()
    for t in range(LANES):
        s = int(lanes[t])
        assert {mk.oracle.real(y, e, t) for y in moved} == {f(e, s)}
        assert mk.oracle.pred(move.pred(p), e, t) == g(e, s)
        assert mk.oracle.poly(move.poly(q), e, t) == h(e, s)


@often
@given(seeds)
def test_folds_open_and_close(seed: int) -> None:
    mk = Maker(seed)
    a = mk.arena
    x, meaning = mk.real(1)
    fold, total = mk._folded(x, meaning)
    if fold.op != "fold":
        return
    op, atom, domain, body = a.open(fold)
    again = a.fold(op, atom, domain, body)
    e = mk.env()
    for t in range(LANES):
        assert mk.oracle.real(again, e, t) == total(e, t)


@often
@given(seeds)
def test_a_predicate_is_uniform_only_if_lanes_agree(seed: int) -> None:
    mk = Maker(seed)
    (x, f), (p, g), (q, h) = mk.real(2), mk.predicate(2), mk.integer(3)
    e = mk.env()
    for uniform, meaning in ((x.uniform, f), (p.uniform, g), (mk.arena.poly_uniform(q), h)):
        assert not uniform or len({meaning(e, t) for t in range(LANES)}) == 1


@often
@given(seeds)
def test_free_variables_are_all_there(seed: int) -> None:
    """A term without a variable among its free ones does not depend on it."""
    mk = Maker(seed)
    (x, f), (p, g) = mk.real(2), mk.predicate(2)
    e = mk.env()
    for atom in (mk.i, mk.j):
        other = {**e, atom: e[atom] + 1}
        for free, meaning in ((x.free, f), (p.free, g)):
            assert atom in free or all(meaning(e, t) == meaning(other, t) for t in range(LANES))


# ---------------------------------------------------------------------- division by multiplication
@often
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 40), seeds)
def test_multiplication_high_and_shift(magic: int, value: int, shift: int, seed: int) -> None:
    """⌊m·x/2³²⌋ and ⌊p/2^s⌋ are exact for every x of the type, whatever quotient they are read as."""
    mk = Maker(0)
    top = mk.arena.symbol("size", "v", 0, 2**32 - 1)
    ((m, _),) = top.terms.items()
    rng = np.random.default_rng(seed)
    known = (magic, 2**32 // 3 + 1, 2**33 // 5 + 1, 2**32 // 7 + 1, 0x24924925, 0x80000000)
    for k in (*known, int(rng.integers(3, 2**20)) << 12):
        high = mk.arena.unsigned_high(top, k, 32)
        product = top * k
        wide = mk.arena.magic_shift(product, shift, 64)
        for v in (value, 0, 1, 2**32 - 1, 2**31, int(rng.integers(0, 2**32)), k - 1 & 0xFFFFFFFF):
            assert mk.oracle.poly(high, {m[0]: v}, 0) == k * v >> 32
            assert mk.oracle.poly(wide, {m[0]: v}, 0) == k * v >> shift


@often
@given(st.integers(1, 2**20), st.integers(1, 64), st.integers(1, 64), st.integers(-100, 100), st.integers(-5, 5))
def test_nested_quotients(value: int, first: int, second: int, shift: int, slope: int) -> None:
    mk = Maker(0)
    v = mk.arena.symbol("size", "v", 0, 2**20)
    ((m, _),) = v.terms.items()
    inner = mk.arena.floor_div(v * slope + shift, const(first))
    outer = mk.arena.floor_div(inner * 3 + 7, const(second)) + mk.arena.floor_div(inner + shift, const(second))
    q = (value * slope + shift) // first
    assert mk.oracle.poly(outer, {m[0]: value}, 0) == (q * 3 + 7) // second + (q + shift) // second


# ---------------------------------------------------------------------- bound variables
def test_an_inner_fold_inside_a_condition_is_not_captured() -> None:
    """Σ_j [Σ_k x(k + j) ≥ 0] · y(j): the inner sum hides in a condition, and must keep its own variable."""
    mk = Maker(0)
    a = mk.arena
    k, j = a.fresh("index", "k").id, a.fresh("index", "j").id
    at = Poly({(k,): 1}) + Poly({(j,): 1})
    inner = a.fold("add", k, a.conj((a.le(-Poly({(k,): 1})), a.le(Poly({(k,): 1}) - 3))), a.load(Access("x"), at))
    guard = a.conj((a.fcmp("lt", inner, a.zero), a.le(Poly({(j,): 1}) - 5)))
    body = a.sel(guard, a.load(Access("y"), Poly({(j,): 1})), a.rational(2))
    outer = a.fold("add", j, a.conj((a.le(-Poly({(j,): 1})), a.le(Poly({(j,): 1}) - 6))), body)
    chosen = a.derived("phi", (Poly({(j,): 1}), const(3)), a.fcmp("lt", inner, a.zero))
    index = a.fold("add", j, a.conj((a.le(-Poly({(j,): 1})), a.le(Poly({(j,): 1}) - 6))), a.load(Access("y"), chosen))
    from term_oracle import loaded

    def low(v: int) -> bool:
        return sum((loaded("x", u + v) for u in range(4)), Fraction(0)) < 0

    want = sum((loaded("y", v) if low(v) and v <= 5 else Fraction(2) for v in range(7)), Fraction(0))
    assert mk.oracle.real(outer, {}, 0) == want
    assert mk.oracle.real(index, {}, 0) == sum((loaded("y", v if low(v) else 3) for v in range(7)), Fraction(0))


def test_equal_definitions_are_one_node() -> None:
    mk = Maker(1)
    a, n = mk.arena, mk.variable(mk.n)
    assert a.floor_div(n + 3, const(4)) == a.floor_div(3 + n, const(4))
    assert a.conj((a.le(n - 3), a.le(2 - n))) is a.conj((a.le(2 - n), a.le(n - 3)))
    x, y = a.load(Access("x"), n), a.load(Access("yy"), n)
    assert a.add(x, y) is a.add(y, x)
    assert a.sel(a.le(n - 3), x, y) is a.sel(a.le(n - 3), x, y)


def test_poison_survives_a_product_with_zero() -> None:
    mk = Maker(1)
    a = mk.arena
    p = a.poison("nobody wrote it")
    for x in (a.mul(a.zero, p), a.mul(p, a.zero), a.add(a.zero, p), a.sel(a.le(mk.variable(mk.m) - 3), p, a.one)):
        assert x.poisoned


@often
@given(seeds)
def test_a_term_put_into_nested_folds_keeps_their_variables_apart(seed: int) -> None:
    """A fold put in for an unknown raises the inner fold, in which the outer variable is still free."""
    mk = Maker(seed)
    a, s = mk.arena, mk.arena.fresh("state", "s")
    pick = Access("x")
    j, k = (a.fresh("index", name).id for name in "jk")
    inside = [a.conj((a.le(-mk.variable(v)), a.le(mk.variable(v) - mk.variable(mk.n) + 1))) for v in (j, k)]
    p = mk.variable(j) * mk.rng.choice([1, 2, 5]) + mk.variable(k) * mk.rng.choice([1, 3])
    inner = a.fold("add", k, inside[1], a.mul(a.load(pick, p), a.state(s.id, 0)))
    outer = a.fold("add", j, inside[0], a.add(a.load(Access("yy"), mk.variable(j)), inner))
    y, meaning = mk._folded(*mk.real(1))
    new = TermMap(a, lambda i: None, lambda x: y if x.op == "state" else None, lambda q: None).real(outer)
    e = mk.env()
    for t in range(LANES):
        wanted = sum((loaded("yy", v) + sum(
            loaded("x", mk.oracle.poly(p, {**e, j: v, k: w}, t)) * meaning(e, t) for w in range(e[mk.n])
        ) for v in range(e[mk.n])), Fraction(0))
        assert mk.oracle.real(new, e, t) == wanted
