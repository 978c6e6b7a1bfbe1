"""Sizes that a precondition defines by others."""

from __future__ import annotations

from typing import Any

import pytest

from warpproof.core import InputError
from warpproof.reference import load_launch, symbolic_launch
from warpproof.terms import Arena, Poly


def launch(*preconditions: str) -> Any:
    """A launch over four sizes with these preconditions."""
    sizes = {n: [4] for n in ("a", "b", "c", "n")}
    params = [{"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": ["n"]},
              {"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": ["n"]},
              *({"name": n, "kind": "scalar", "dtype": "i32"} for n in sizes)]
    return load_launch({
        "kernel": "k", "params": params, "sizes": sizes, "preconditions": list(preconditions), "grid": ["n", "1", "1"],
        "block": [32, 1, 1], "dynamic_shared": "0",
    })


def values(*preconditions: str) -> dict[str, Poly]:
    """What each size is, over an arena of its own."""
    return dict(symbolic_launch(launch(*preconditions), Arena(32)).sizes)


def test_an_equal_size_is_the_other_one() -> None:
    v = values("a == n")
    assert v["a"] == v["n"] != v["b"]


def test_an_expression_of_other_sizes() -> None:
    v = values("a == 2 * n + b", "c == a - 1")
    assert v["a"] == 2 * v["n"] + v["b"]
    assert v["c"] == v["a"] - 1


def test_chains_in_any_order() -> None:
    v = values("a == b", "b == c", "n == c")
    assert v["a"] == v["b"] == v["c"] == v["n"]
    v = values("n == c", "a == b", "c == b")
    assert v["a"] == v["b"] == v["c"] == v["n"]


def test_a_circle_defines_nothing_twice() -> None:
    v = values("a == b", "b == a", "a == a")
    assert v["a"] == v["b"]
    arena = Arena(32)
    found = symbolic_launch(launch("a == a + b", "n >= 1"), arena)
    assert arena.eq(found.sizes["b"]) in found.facts or found.sizes["b"].as_int() == 0


def test_the_range_of_the_defined_size_is_kept() -> None:
    arena = Arena(32)
    found = symbolic_launch(launch("a == n", "a >= 3", "a <= 9"), arena)
    n = found.sizes["n"]
    assert {arena.le(3 - n), arena.le(n - 9)} <= set(found.facts)
    with pytest.raises(InputError, match=r"no admitted size|contradict"):
        symbolic_launch(launch("a == n", "a >= 3", "n == 2"), Arena(32))


def test_cases_are_completed() -> None:
    found = symbolic_launch(launch("a == 2 * n", "b == a + 1"), Arena(32))
    assert found.completed({"n": 5, "c": 7, "a": 1, "b": 1}) == {"n": 5, "c": 7, "a": 10, "b": 11}
