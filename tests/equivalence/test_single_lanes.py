"""Reductions written out lane by lane: equal values are found equal, others are not."""

from __future__ import annotations

import numpy as np
import pytest

from warpproof.algebra import Normaliser
from warpproof.equivalence.single_lanes import SingleLanes
from warpproof.solve import Facts
from warpproof.terms import Access, Arena, Poly, Real, const

LANES = 8


def prefix_fold(arena: Arena, end: Poly) -> Real:
    """Σ x[v] for 0 ≤ v ≤ end."""
    atom = arena.fresh("index", "v")
    v = arena.variable(atom)
    return arena.fold("add", atom.id, arena.conj((arena.le(-v), arena.le(v - end))), load(arena, v))


def load(arena: Arena, i: Poly) -> Real:
    """x[i]."""
    return arena.load(Access("x", 0), i)


def shifted_sums(arena: Arena, lane: Poly) -> Real:
    """A scan by doubling over the lanes."""
    out = load(arena, lane)
    lanes = np.arange(LANES)
    for step in (1, 2, 4):
        other = arena.permute(out, np.maximum(lanes - step, 0), lazy=True)
        out = arena.add(out, arena.sel(arena.lane_mask(lanes >= step), other, arena.zero))
    return out


@pytest.mark.parametrize("off", [0, 1])
def test_a_scan_over_lanes_is_a_fold_with_an_end_in_each_lane(off: int) -> None:
    arena = Arena(LANES)
    lane = const(np.arange(LANES))
    lanewise = SingleLanes(arena, Normaliser(arena), Facts(arena, ()))
    mine, theirs = shifted_sums(arena, lane), prefix_fold(arena, lane + off)
    assert lanewise.equal(mine, theirs, arena.true) is (off == 0)
    inside = arena.lane_mask(np.arange(LANES) < 0)
    assert lanewise.equal(mine, theirs, inside), "no lane is asked about"


def test_a_fold_without_numbers_for_bounds_is_left_alone() -> None:
    arena = Arena(LANES)
    n = arena.symbol("size", "n", 1, 100)
    lanewise = SingleLanes(arena, Normaliser(arena), Facts(arena, ()))
    assert not lanewise.equal(prefix_fold(arena, n), prefix_fold(arena, n + 1), arena.true)
