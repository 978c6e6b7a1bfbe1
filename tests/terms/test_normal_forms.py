"""Normal forms keep the value of a term, and `equal` never holds for terms that differ at some point."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given, settings
from hypothesis import strategies as st
from term_oracle import LANES, Maker, loaded

from warpproof.algebra import Normaliser
from warpproof.terms import Access, Arena, Poly, Pred, Real

seeds = st.integers(0, 2**32)
often = settings(max_examples=80, deadline=None)


def never(path: Pred, claim: Pred) -> bool:
    """An oracle that only knows what is written."""
    return path.op == "false" or claim.op == "true"


def by_structure(a: Arena):  # type: ignore[no-untyped-def]
    """An oracle by the arena's own rules."""
    return lambda path, claim: a.implies(path, claim)


@often
@given(seeds)
def test_the_canonical_term_has_the_same_value(seed: int) -> None:
    mk = Maker(seed)
    x, meaning = mk.real(2)
    canonical = Normaliser(mk.arena).canonical(x)
    for _ in range(2):
        e = mk.env()
        for t in range(LANES):
            assert mk.oracle.real(canonical, e, t) == meaning(e, t)


@often
@given(seeds)
def test_equality_implies_equal_values(seed: int) -> None:
    """x against variants of itself that are often, but not always, equal."""
    mk = Maker(seed)
    a, normal = mk.arena, Normaliser(mk.arena)
    x, f = mk.real(2)
    y, g = mk.real(1)
    p, holds = mk.predicate(1)
    path, on_path = mk.predicate(2)
    pairs = [
        (a.mul(a.add(x, y), y), lambda e, t: (f(e, t) + g(e, t)) * g(e, t),
         a.add(a.mul(x, y), a.mul(y, y)), lambda e, t: f(e, t) * g(e, t) + g(e, t) ** 2),
        (a.sel(p, x, y), lambda e, t: f(e, t) if holds(e, t) else g(e, t), x, f),
        (a.sel(p, a.mul(x, y), x), lambda e, t: f(e, t) * g(e, t) if holds(e, t) else f(e, t),
         a.mul(x, a.sel(p, y, a.one)), lambda e, t: f(e, t) * (g(e, t) if holds(e, t) else 1)),
        (a.maximum(x, y), lambda e, t: max(f(e, t), g(e, t)), a.sel(a.fcmp("lt", x, y), y, x),
         lambda e, t: max(f(e, t), g(e, t))),
        (a.maximum(x, y), lambda e, t: max(f(e, t), g(e, t)), a.sel(a.fcmp("lt", x, y), x, y),
         lambda e, t: min(f(e, t), g(e, t))),
        (a.sub(x, x), lambda e, t: Fraction(0), a.mul(y, a.zero), lambda e, t: Fraction(0)), (x, f, y, g),
    ]
    points = [(mk.env(), t) for _ in range(2) for t in range(LANES)]
    for left, low, right, high in pairs:
        for where, inside in ((a.true, lambda e, t: True), (path, on_path)):
            if normal.equal(left, right, where, by_structure(a)):
                for e, t in points:
                    assert not inside(e, t) or low(e, t) == high(e, t)


@often
@given(seeds)
def test_quotients(seed: int) -> None:
    """Cross-multiplication: equal only where all denominators are non-zero, which the caller shows."""
    mk = Maker(seed)
    a, normal = mk.arena, Normaliser(mk.arena)
    (x, f), (y, g), (z, h) = (mk.real(1, exponent=False) for _ in range(3))
    points = [(mk.env(), t) for _ in range(2) for t in range(LANES)]
    left = a.add(a.div(x, y), a.div(z, y))
    for right, value in (
        (a.div(a.add(x, z), y), lambda e, t: (f(e, t) + h(e, t)) / g(e, t)),
        (a.div(a.mul(x, z), a.mul(y, z)), lambda e, t: f(e, t) / g(e, t)),
        (a.div(a.add(a.mul(x, z), a.mul(y, y)), a.mul(y, z)),
         lambda e, t: (f(e, t) * h(e, t) + g(e, t) ** 2) / (g(e, t) * h(e, t))),
        (a.div(x, a.add(y, z)), lambda e, t: f(e, t) / (g(e, t) + h(e, t))),
    ):
        if not normal.equal(left, right, a.true, by_structure(a)):
            continue
        for e, t in points:
            if g(e, t) and h(e, t) and g(e, t) + h(e, t):
                assert (f(e, t) + h(e, t)) / g(e, t) == value(e, t)


@often
@given(seeds)
def test_sums_over_counters(seed: int) -> None:
    """Σ (c·f(k) + d) is c·Σ f(k) + d·count; a wrong count or factor is not accepted."""
    mk = Maker(seed)
    a, normal = mk.arena, Normaliser(mk.arena)
    atom = a.fresh("index", "k").id
    k, n = Poly({(atom,): 1}), mk.variable(mk.n)
    start = mk.rng.choice([0, 1])
    domain = a.conj((a.le(start - k), a.le(k - n + 1)))
    x = a.load(Access("x"), k + mk.variable(mk.b))
    c, d = mk.rng.randint(-2, 3), mk.rng.randint(-2, 3)
    scale, shift = a.of_int(mk.variable(mk.m)), a.rational(d)
    body = a.add(a.mul(scale, a.mul(a.rational(c), x)), shift)
    total = a.fold("add", atom, domain, body)
    for extra in (0, 1):
        other = a.add(a.mul(scale, a.mul(a.rational(c), a.fold("add", atom, domain, x))),
                      a.mul(shift, a.of_int(n - start + extra)))
        if normal.equal(total, other, a.true, by_structure(a)):
            for _ in range(3):
                e = mk.env()
                want = sum(e[mk.m] * c * loaded("x", v + e[mk.b]) + d for v in range(start, e[mk.n]))
                assert mk.oracle.real(other, e, 0) == want


def test_a_sum_is_not_a_product_and_a_guard_is_not_nothing() -> None:
    mk = Maker(3)
    a, normal = mk.arena, Normaliser(mk.arena)
    x, y = a.load(Access("x"), mk.variable(mk.i)), a.load(Access("yy"), mk.variable(mk.i))
    g = a.le(mk.variable(mk.m) - 3)
    wrong: list[tuple[Real, Real]] = [
        (a.add(x, y), a.mul(x, y)), (a.sel(g, x, a.zero), x), (a.sel(g, x, y), a.sel(g, y, x)),
        (a.unary("ex2", a.add(x, y)), a.add(a.unary("ex2", x), a.unary("ex2", y))),
        (a.mul(a.unary("ex2", x), a.unary("ex2", y)), a.unary("ex2", a.mul(x, y))),
        (a.unary("sqrt", a.mul(x, x)), x), (a.maximum(x, y), a.minimum(x, y)), (a.maximum(x, a.zero), x),
        (a.unary("abs", x), x), (a.mul(x, a.log2e), x),
    ]
    for left, right in wrong:
        assert not normal.equal(left, right, a.true, by_structure(a))
    assert normal.equal(a.sel(g, x, a.zero), x, g, by_structure(a))
    assert not normal.equal(a.poison("undefined"), a.poison("undefined"), a.true, never)


def test_possible_infinities_are_tracked() -> None:
    """∞ − ∞ is excluded by a condition where it is computed; that needs to know which terms may be infinite."""
    mk = Maker(4)
    a = mk.arena
    x = a.load(Access("x"), mk.variable(mk.i))
    atom = a.fresh("index", "k").id
    k = Poly({(atom,): 1})
    full = a.fold("max", atom, a.conj((a.le(-k), a.le(k - mk.variable(mk.n) + 1))), x)
    empty = a.fold("max", atom, a.conj((a.le(-k), a.le(k - mk.variable(mk.m) + 1))), x)
    assert not full.ext
    for y in (empty, a.neg(empty), a.unary("abs", empty), a.add(empty, x), a.mul(a.rational(-2), empty),
              a.mul(a.log2e, empty), a.sel(a.le(mk.variable(mk.m) - 3), empty, x), a.minimum(empty, x)):
        assert y.ext
    assert not a.maximum(empty, x).ext
    assert a.neg(empty).ext != empty.ext
