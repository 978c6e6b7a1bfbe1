"""Cancelling linear divisors and adding multiples of facts, at random integers by Python's own fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from warpproof.algebra import Normaliser, cancel, cancelled
from warpproof.terms import Arena, Poly, Real

seeds = st.integers(0, 2**32)
often = settings(max_examples=60, deadline=None)


def value(x: Real, at: dict[object, Fraction]) -> Fraction:
    """A term of sums, products and quotients at a point, which gives integers by atom and symbols by name."""
    match x.op:
        case "const":
            return Fraction(x.data)
        case "symbol":
            return at[x.data]
        case "int":
            return number(x.data, at)
        case "add":
            return value(x.args[0], at) + value(x.args[1], at)
        case "mul":
            return value(x.args[0], at) * value(x.args[1], at)
        case "div":
            return value(x.args[0], at) / value(x.args[1], at)
    raise AssertionError(x.op)


def number(p: Poly, at: dict[object, Fraction], lane: int = 0) -> Fraction:
    out = Fraction(0)
    for m, c in p.terms.items():
        t = Fraction(c if isinstance(c, int) else int(c[lane]))
        for a in m:
            t *= at[a]
        out += t
    return out


@often
@given(seeds)
def test_cancelled_divisors_leave_the_value(seed: int) -> None:
    rng, arena = random.Random(seed), Arena(1)
    i = arena.fresh("loop", "i", 0, None).id
    unknowns = [arena.variable(arena.atoms[i]), arena.symbol("size", "n", 1, None)]
    names = ("s", "t")
    divisors = []
    for _ in range(rng.randint(1, 3)):
        p = unknowns[0] * rng.choice([1, 1, 2, -1, -3]) + rng.randint(-3, 3)
        divisors.append(arena.of_int(p + unknowns[1]) if rng.random() < 0.3 else arena.of_int(p))
    x = arena.zero
    for _ in range(rng.randint(1, 5)):
        term = arena.rational(Fraction(rng.choice([1, -1, 2, 3]), rng.choice([1, 2])))
        for _ in range(rng.randint(0, 3)):
            factor = rng.choice([*divisors, *map(arena.of_int, unknowns), *map(arena.scalar, names)])
            term = arena.mul(term, factor)
        for _ in range(rng.randint(0, 3)):
            term = arena.div(term, rng.choice(divisors))
        x = arena.add(x, term)
    normal = Normaliser(arena)
    found = normal.term(cancelled(normal, normal.form(x), i))
    for _ in range(4):
        at: dict[object, Fraction] = {i: Fraction(rng.randint(-9, 9)), next(iter(unknowns[1].atoms())): Fraction(7)}
        at |= {name: Fraction(rng.randint(-5, 5)) for name in names}
        if all(value(d, at) for d in divisors):
            assert value(found, at) == value(x, at)


def test_a_divisor_that_divides_is_gone() -> None:
    """i/(i+1) + 1/(i+1) is 1, and i/(i+1) is not."""
    arena = Arena(1)
    atom = arena.fresh("loop", "i", 0, None)
    i, normal = arena.variable(atom), Normaliser(arena)
    parts = [arena.div(arena.of_int(p), arena.of_int(i + 1)) for p in (i, i * 0 + 1)]
    assert cancelled(normal, normal.form(arena.add(*parts)), atom.id) == normal.forms.constant(1)
    assert cancelled(normal, normal.form(parts[0]), atom.id) != normal.forms.constant(1)


@often
@given(seeds)
def test_steps_of_a_cancellation_only_make_it_larger(seed: int) -> None:
    """p ≤ q wherever the facts are ≥ 0 and the unknowns lie in their ranges."""
    rng, arena = random.Random(seed), Arena(2)
    ranges = {"n": (1, 6), "m": (0, 6), "k": (-4, 6)}
    unknowns = [arena.symbol("size" if name != "k" else "index", name, lo, None) for name, (lo, _) in ranges.items()]

    def poly() -> Poly:
        out = Poly({(): rng.randint(-4, 4)})
        for _ in range(rng.randint(1, 3)):
            t = rng.choice(unknowns) * rng.choice([1, -1, 2, -3])
            t = t * rng.choice(unknowns) if rng.random() < 0.5 else t
            out = out + (t * np.array([1, rng.choice([1, 2])]) if rng.random() < 0.3 else t)
        return out

    p, facts = poly(), [poly() for _ in range(rng.randint(1, 3))]
    q, _ = cancel(arena, p, facts, slack=rng.choice([0, 3]))
    for _ in range(30):
        at: dict[object, Fraction] = {}
        for u, (lo, hi) in zip(unknowns, ranges.values(), strict=True):
            at[next(iter(u.atoms()))] = Fraction(rng.randint(lo, hi))
        for lane in range(2):
            if all(number(f, at, lane) >= 0 for f in facts):
                assert number(p, at, lane) <= number(q, at, lane)
