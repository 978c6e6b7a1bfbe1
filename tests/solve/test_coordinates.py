"""Addresses taken apart into coordinates, against what NumPy makes of them."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from warpproof.algebra import evaluate
from warpproof.solve import Facts, coordinates
from warpproof.terms import Arena, Poly

LANES = 8


def size(arena: Arena, name: str) -> Poly:
    """A size from 1 to 64."""
    return arena.symbol("size", name, 1, 64)


@pytest.mark.parametrize("names", [("A", "B", "D", "E"), ("E", "D", "B", "A"), ("B", "E", "A", "D")])
def test_rows_that_are_sums(names: tuple[str, ...]) -> None:
    """x[c][oy + ky][ox + kx] for c, oy, ox the digits of a flat index, in an array of sums of sizes."""
    arena = Arena(LANES)
    made = {n: size(arena, n) for n in names}  # the order in which they were made must not matter
    rows, columns, kh, kw = (made[n] for n in ("A", "B", "D", "E"))
    planes = size(arena, "C")
    at = arena.variable(arena.fresh("block", "b", 0, None)) * LANES + Poly({(): np.arange(LANES)})
    ky, kx = (arena.variable(arena.fresh("loop", n, 0, None)) for n in ("ky", "kx"))
    ox = at - columns * arena.floor_div(at, columns)
    up = arena.floor_div(at, columns)
    oy, c = up - rows * arena.floor_div(up, rows), arena.floor_div(at, rows * columns)
    shape = (planes, rows + kh - 1, columns + kw - 1)
    facts = Facts(arena, [])
    path = arena.conj((arena.lt(at, planes * rows * columns), arena.lt(ky, kh), arena.lt(kx, kw)))
    index = (c * shape[1] + oy + ky) * shape[2] + ox + kx
    found = coordinates(facts, path, index, shape, bounded=False)
    assert found is not None
    assert found.whole
    _agree(arena, index, found.index, shape)


def _agree(arena: Arena, index: Poly, found: tuple[Poly, ...], shape: tuple[Poly, ...]) -> None:
    ids = sorted({a for p in (index, *shape) for a in arena.poly_free(p)} | {
        a.id for a in arena.atoms if a.kind in ("size", "block", "loop")})
    checked = 0
    for values in product(range(3), repeat=len(ids)):
        at = {a: v + (arena.atoms[a].kind == "size") for a, v in zip(ids, values)}
        extents = [evaluate(arena, e, at, 1) for e in shape]
        flat = evaluate(arena, index, at, 1)
        mine = [evaluate(arena, p, at, 1) for p in found]
        if all(0 <= j < e for j, e in zip(mine, extents)):
            assert mine == list(np.unravel_index(flat, extents))
            checked += 1
    assert checked > 50


def test_the_last_digits_together_are_told_apart() -> None:
    """col[c][k][oy][ox] where the kernel adds the flat remainder of (oy, ox) at once."""
    arena = Arena(LANES)
    planes, count, rows, columns = (size(arena, n) for n in ("C", "K", "OH", "OW"))
    at = arena.variable(arena.fresh("block", "b", 0, None)) * LANES + Poly({(): np.arange(LANES)})
    k = arena.variable(arena.fresh("loop", "k", 0, None))
    c = arena.floor_div(at, rows * columns)
    index = (c * count + k) * rows * columns + at - rows * columns * c
    shape = (planes, count, rows, columns)
    path = arena.conj((arena.lt(at, planes * rows * columns), arena.lt(k, count)))
    found = coordinates(Facts(arena, []), path, index, shape, bounded=False)
    assert found is not None
    assert found.whole
    _agree(arena, index, found.index, shape)
