"""Comparisons multiplied out so that they are affine in lane fields mean what they meant, at every lane."""

from __future__ import annotations

import numpy as np
import pytest

from warpproof.algebra import LaneFields, at_most, loosened
from warpproof.terms import Poly

ATOM = 5


@pytest.mark.parametrize("factor", [2, 4, 8, 16, 32, 6])
@pytest.mark.parametrize(("a", "b", "c"), [(1, -1, 0), (-1, 1, 3), (1, 2, -5), (3, -1, 1), (1, 32, 0), (-2, 5, 7)])
def test_it_says_the_same_at_every_lane(factor: int, a: int, b: int, c: int) -> None:
    """Against the numbers: factor·q + a·x + b·y + c ≤ 0, kept divided by the factor."""
    lanes = np.arange(256)
    x, y = lanes % 32, lanes // 32
    v = -((-(a * x + b * y + c)) // factor)
    fields = LaneFields(lanes, (32, 8))
    before = at_most(Poly({(ATOM,): 1, (): v}))
    after = loosened(before, fields)
    for q in range(-60, 60):
        told = int_at(after.poly, q, 256) <= 0
        assert (told == (factor * q + a * x + b * y + c <= 0)).all()
    if (factor, a, b, c) == (8, 1, -1, 0):
        assert fields.uniform(before.poly) is None
        assert fields.uniform(after.poly) is not None


def test_vectors_of_no_such_form_are_left_alone() -> None:
    rng = np.random.default_rng(1)
    f = at_most(Poly({(ATOM,): 1, (): rng.integers(-50, 50, 64)}))
    assert loosened(f, LaneFields(np.arange(64), (64,))) == f


def int_at(p: Poly, q: int, lanes: int) -> np.ndarray:
    """The values of a linear polynomial in one unknown."""
    return p.lanes(lanes) if p.is_constant() else np.broadcast_to(
        np.asarray(p.terms.get((), 0)) + np.asarray(p.terms[ATOM,]) * q, (lanes,))
