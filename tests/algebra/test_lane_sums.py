"""Sums over lanes in normal form: what is the same in all lanes of a row comes out, and values stay what they were."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from warpproof.algebra import Normaliser
from warpproof.terms import Access, Arena, Poly, Real

LANES = 8
ROWS = {
    "own groups": [[t // 4 * 4 + k for k in range(4)] for t in range(LANES)],
    "other groups": [[(t // 4 * 4 + 4) % LANES + k for k in range(4)] for t in range(LANES)],
    "all": [list(range(LANES)) for _ in range(LANES)],
    "neighbours": [[t, t ^ 1] for t in range(LANES)],
}


def load(arena: Arena, name: str, at: list[int]) -> Real:
    """name[at[lane]]."""
    return arena.load(Access(name, 0), Poly({(): np.asarray(at, np.int64)}))


def value(arena: Arena, x: Real, lane: int, data: dict[str, list[Fraction]]) -> Fraction:
    """The value of a term in a lane; 2^k for whole numbers k."""
    if x.op == "load":
        return data[x.data[0].buffer][int(x.data[1].lanes(LANES)[lane])]
    if x.op == "const":
        return Fraction(x.data)
    if x.op == "gather":
        return value(arena, x.args[0], int(arena.permutation(x)[lane]), data)
    if x.op == "red":
        each = [value(arena, x.args[0], int(t), data) for t in arena.matrix(x)[lane]]
        return sum(each, Fraction(0)) if x.data[0] == "add" else max(each)
    args = [value(arena, y, lane, data) for y in x.args]
    match x.op:
        case "add":
            return args[0] + args[1]
        case "mul":
            return args[0] * args[1]
        case "max":
            return max(args)
        case "ex2":
            assert args[0].denominator == 1
            return Fraction(2) ** int(args[0])
    raise AssertionError(x.op)


@pytest.mark.parametrize(("rows", "shared"), list(itertools.product(ROWS, ("group", "max", "lane"))))
def test_the_normal_form_has_the_same_value(rows: str, shared: str) -> None:
    """Σ over a row of v·2^(s − m), for an m that is one per group, the greatest of the group, or each lane's own."""
    arena = Arena(LANES)
    matrix = np.asarray(ROWS[rows], np.int64)
    s, v = load(arena, "s", list(range(LANES))), load(arena, "v", list(range(LANES)))
    groups = np.asarray(ROWS["own groups"], np.int64)
    m = {
        "group": load(arena, "m", [t // 4 for t in range(LANES)]),
        "max": arena.maximum(load(arena, "m", [t // 4 for t in range(LANES)]), arena.reduction("max", s, groups)),
        "lane": load(arena, "m", list(range(LANES))),
    }[shared]
    x = arena.reduction("add", arena.mul(v, arena.unary("ex2", arena.sub(s, m))), matrix)
    normal = Normaliser(arena)
    found = normal.canonical(x)
    drawn = np.random.default_rng(1)
    for _ in range(5):
        data = {n: [Fraction(int(k)) for k in drawn.integers(-5, 6, LANES)] for n in "svm"}
        for lane in range(LANES):
            assert value(arena, x, lane, data) == value(arena, found, lane, data)


def test_a_maximum_of_its_group_comes_out() -> None:
    arena = Arena(LANES)
    groups = np.asarray(ROWS["own groups"], np.int64)
    s = load(arena, "s", list(range(LANES)))
    m = arena.maximum(load(arena, "m", [t // 4 for t in range(LANES)]), arena.reduction("max", s, groups))
    found = Normaliser(arena).canonical(arena.reduction("add", arena.unary("ex2", arena.sub(s, m)), groups))
    stack, sums = [found], 0
    while stack:
        y = stack.pop()
        if y.op == "red" and y.data[0] == "add":
            assert y.args[0] is arena.unary("ex2", s)
            sums += 1
        else:
            stack.extend(y.args)
    assert found.op == "mul"
    assert sums == 1


def test_canonical_maxima_are_their_own_canonical_form() -> None:
    arena = Arena(LANES)
    groups = np.asarray(ROWS["own groups"], np.int64)
    parts = [load(arena, "s", [(k * t + 1) % LANES for t in range(LANES)]) for k in (1, 3, 5)]
    x = arena.maximum(arena.reduction("max", arena.maximum(parts[0], parts[1]), groups), parts[2])
    normal = Normaliser(arena)
    once = normal.canonical(x)
    assert normal.canonical(once) is once
