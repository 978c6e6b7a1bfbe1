"""Atoms of integer polynomials: what they stand for and the integer range they are known to have."""

from __future__ import annotations

from dataclasses import dataclass

from warpproof.terms.nodes import Pred, Real
from warpproof.terms.poly import Poly

Range = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True, eq=False)
class Atom:
    """One integer unknown.

    kinds: `size` (contract size or integer scalar), `block` (ctaid), `grid` (nctaid), `loop` (iteration counter),
    `unknown` (of a condition on a value nothing may depend on),
    `bound` (variable of a closed fold), `state` (loop-carried register), `index` (output or reference index), `div`
    (floor(args[0] / args[1])), `min` / `max` / `or` (bitwise) of args, `elem` (integer loaded from `name` at args[0],
    version in `tag`), `phi` (pred ? args[0] : args[1]), `trip` (iterations of a do-while loop whose continue polynomial
    is args[0] in the loop atom `tag`: the least n >= 1 such that the loop does not continue after iteration n-1),
    `sum` (of args[0] over the values of the bound atom `tag` in the domain `pred`), `place` (the position of the
    greatest of the placed values `real`; an unspecified number where there is none).
    """

    id: int
    kind: str
    name: str
    args: tuple[Poly, ...] = ()
    pred: Pred | None = None
    tag: int = 0
    free: frozenset[int] = frozenset()
    uniform: bool = True
    real: Real | None = None
    height: int = 0  # the nesting depth of folds in its condition and arguments
