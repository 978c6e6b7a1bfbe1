"""A mean times its weight: the sum it is the mean of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from warpproof.terms import Arena, Poly, Pred, Real

Equal = Callable[[Pred, Poly, Poly], bool]
_DEEP: Final = 12


def exactly(path: Pred, p: Poly, q: Poly) -> bool:
    """The two polynomials are the same one."""
    return p == q


def weighted(arena: Arena, x: Real, weight: Poly, path: Pred, equal: Equal = exactly, deep: int = _DEEP) -> Real | None:
    """x · weight for a choice of zeros and of quotients whose divisors `equal` the weight on their path; else None.

    The divisor of a quotient is not 0 where it is computed, so that nothing is cancelled that could be.
    """
    if x is arena.zero:
        return x
    if x.op == "sel" and x.pred is not None and deep:
        yes = weighted(arena, x.args[0], weight, arena.conj((path, x.pred)), equal, deep - 1)
        no = weighted(arena, x.args[1], weight, arena.conj((path, arena.negate(x.pred))), equal, deep - 1)
        return None if yes is None or no is None else arena.sel(x.pred, yes, no)
    if x.op == "div":
        divisor = arena.whole(x.args[1])
        if divisor is not None and equal(path, divisor, weight):
            return x.args[0]
    return None
