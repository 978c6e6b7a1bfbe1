"""The decisions from preconditions: never wrong at any small size, and strong enough for the usual shapes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from evaluator import Evaluator
from hypothesis import given, settings
from hypothesis import strategies as st

from warpproof.core import InputError
from warpproof.reference import Facts, load_launch, parse_expression
from warpproof.reference.symbolic import SymbolicAlgebra
from warpproof.terms import Arena, Poly, Pred, const

NAMES = ("a", "b", "c")


def setting(preconditions: Sequence[str]) -> tuple[Arena, Facts, SymbolicAlgebra]:
    arena = Arena(1)
    made = load_launch(
        {
            "kernel": "k",
            "sizes": {n: [1] for n in NAMES},
            "grid": ["1"],
            "block": [1],
            "preconditions": list(preconditions),
            "params": [{"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": ["1"]}],
        }
    ).symbolic(arena)
    return arena, Facts(arena, made.facts), SymbolicAlgebra(arena, made.sizes)


def claim(algebra: SymbolicAlgebra, text: str) -> Pred:
    found = parse_expression(text, "claim").interpret(algebra)
    return algebra.truth(found)


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        (["a <= b", "b <= c"], "a <= c"),
        (["a >= 1", "b >= 1"], "a * b >= 1"),
        (["a >= 0", "b >= 1", "c < b"], "a * b + c < (a + 1) * b"),
        (["a % 8 == 0", "b == a // 8"], "b * 8 == a"),
        (["a % b == 0", "b % 8 == 0", "b >= 8", "a >= 0", "c == a // 8"], "c * 8 == a"),
        (["c == (a - b) // 2 + 1", "a >= b"], "2 * (c - 1) <= a - b"),
        (["c >= 1", "a >= c", "b == a // c"], "b >= 1"),
        (["a >= 0", "a < 8"], "a // 8 == 0"),
        (["a > 3"], "a != 2"),
        (["a + b == c", "a >= 0"], "b <= c"),
        (["a >= 0", "b >= 0"], "min(a, b) <= a"),
        (["a >= 0"], "a % 7 <= 6"),
        (["a >= 2", "b >= 2"], "a * b >= a + b"),
        (["a == 2 * b + 1"], "a != 2 * b"),
    ],
)
def test_what_follows_is_found(given_: list[str], text: str) -> None:
    _, facts, algebra = setting(given_)
    assert facts.holds(claim(algebra, text))
    assert facts.decide(claim(algebra, f"not ({text})")) is False


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        (["a <= b"], "a < b"),
        ([], "a >= 0"),
        (["a >= 1"], "a * b >= 1"),
        (["a % 4 == 0"], "a % 8 == 0"),
        (["a >= b"], "a == b"),
    ],
)
def test_what_does_not_follow_is_left_open(given_: list[str], text: str) -> None:
    _, facts, algebra = setting(given_)
    assert facts.decide(claim(algebra, text)) is None


leaf = st.sampled_from([*NAMES, "1", "2", "3", "-1"])
term = st.one_of(
    leaf,
    st.tuples(leaf, st.sampled_from(["+", "-", "*"]), leaf).map(" ".join),
    st.tuples(leaf, st.sampled_from(["// 2", "// 3", "% 4", "% 2"])).map(lambda t: f"({t[0]}) {t[1]}"),
    st.tuples(leaf, leaf).map(lambda t: f"min({t[0]}, {t[1]})"),
    st.tuples(leaf, leaf).map(lambda t: f"max({t[0]}, {t[1]})"),
)
condition = st.tuples(term, st.sampled_from(["<=", "<", "==", ">=", "!="]), term).map(lambda t: f"{t[0]} {t[1]} {t[2]}")


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(condition, max_size=3), st.lists(condition, min_size=3, max_size=3), st.booleans())
def test_decisions_are_never_wrong(given_: list[str], claims: list[str], natural: bool) -> None:
    try:
        arena, facts, algebra = setting([*given_, *([f"{n} >= 0" for n in NAMES] if natural else [])])
    except InputError:
        return  # contradictory
    decided = [(p, facts.decide(p)) for p in (claim(algebra, c) for c in claims)]
    q = algebra.values["a"] * 3 + algebra.values["b"]
    assert isinstance(q, Poly)
    quotient, plain = facts.floor_div(q, const(4)), q
    for values in itertools.product(range(-3, 5), repeat=3):
        sizes = dict(zip(NAMES, values))
        if (natural and min(values) < 0) or not all(eval(g, {}, sizes) for g in given_):
            continue
        ev = Evaluator(arena, sizes, {}, {})
        env: dict[int, int] = {}
        for p, known in decided:
            assert known is None or ev.pred(p, env) is known, (given_, sizes)
        assert ev.poly(quotient, env) == ev.poly(plain, env) // 4


def test_context() -> None:
    _arena, facts, algebra = setting(["a >= 0"])
    context: list[Any] = [claim(algebra, "a < b"), claim(algebra, "b == 3")]
    assert facts.holds_given(claim(algebra, "a <= 2"), context)
    assert not facts.holds(claim(algebra, "a <= 2"))
