"""Multiples of facts that cancel terms, by hand."""

from __future__ import annotations

import numpy as np

from warpproof.algebra import cancel
from warpproof.terms import Arena, Poly


def test_a_factor_beyond_64_bits_is_no_step() -> None:
    """2^70·x is cancelled in the last lane by 2^70 times the fact, whose product in the other lane no vector holds."""
    arena = Arena(2)
    ((m,),) = arena.symbol("size", "x", 1, None).terms
    p, fact = Poly({(m,): 1 << 70}), Poly({(m,): np.array([3, -1])})
    assert cancel(arena, p, [fact]) == (p, ())


def test_a_factor_of_one_lane_only_is_no_step() -> None:
    arena = Arena(2)
    ((m,),) = arena.symbol("size", "x", 1, None).terms
    p = Poly({(m,): 4})
    assert cancel(arena, p, [Poly({(m,): np.array([-1, -2])})]) == (p, ())
    assert cancel(arena, p, [Poly({(m,): -2})])[0] == Poly({})
