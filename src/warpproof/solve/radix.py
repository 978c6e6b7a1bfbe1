"""Mixed radix: digits of one number as that number.

(…(j₀·e₁ + j₁)·e₂ + …)·eₖ + jₖ takes every value in [0, e₀·e₁·…·eₖ) exactly once as the j run over the box
0 ≤ j_d < e_d, for e₁ … eₖ ≥ 1. So where indices are known to lie in the box, but for the first, questions of coverage,
tiling and injectivity may be asked of the number instead, whatever order its digits have in the index. Quotients and
remainders of a flat index, which no integer set can describe when sizes are symbols, then cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Final

from warpproof.solve.facts import Facts
from warpproof.solve.linearise import Box
from warpproof.solve.pieces import Piece
from warpproof.solve.quotients import quotients
from warpproof.terms import Poly, Pred, const

_MAX_DIGITS: Final = 5


def flattened(facts: Facts, pieces: Sequence[Piece], extents: Sequence[Poly], path: Pred) -> (
    tuple[list[Piece], Box] | None
):
    """The pieces and the box with the coordinates that are digits of one number put together; None when none are."""
    arena = facts.arena
    digits = [d for d in range(len(extents)) if any(quotients(arena, (p.index[d],)) for p in pieces)]
    if not digits or len(extents) < 2 or len(digits) > _MAX_DIGITS:
        return None
    for more in (digits, range(len(extents))):
        for order in permutations(more) if 2 <= len(more) <= _MAX_DIGITS else ():
            flat = [_number([p.index[d] for d in order], [extents[d] for d in order]) for p in pieces]
            if quotients(arena, flat) or not _in_box(facts, pieces, extents, order, path):
                continue
            rest = [d for d in range(len(extents)) if d not in order]
            whole = const(1)
            for d in order:
                whole = whole * extents[d]
            out = [replace(p, index=(*(p.index[d] for d in rest), f)) for p, f in zip(pieces, flat)]
            return out, Box((*(extents[d] for d in rest), whole))
    return None


def _number(index: Sequence[Poly], extents: Sequence[Poly]) -> Poly:
    out = const(0)
    for j, e in zip(index, extents):
        out = out * e + j
    return out


def _in_box(
    facts: Facts, pieces: Sequence[Piece], extents: Sequence[Poly], order: Sequence[int], path: Pred
) -> bool:
    """The digits but for the first lie below their extents, which are ≥ 1."""
    arena = facts.arena
    lower = order[1:]
    return all(facts.implied(path, arena.le(1 - extents[d])) for d in lower) and all(
        facts.implied(arena.conj((path, *p.guards)), arena.conj((
            arena.le(-p.index[d]), arena.le(p.index[d] - extents[d] + 1))), hard=True)
        for d in lower for p in pieces
    )


def box_of(facts: Facts, variables: Sequence[int], preds: Sequence[Pred]) -> tuple[Poly, ...] | None:
    """The extents when predicates and ranges say 0 ≤ v < extent of each variable and nothing else."""
    arena = facts.arena
    ends: dict[int, Poly] = {}
    ranges = {v: arena.ranges.get(v, (None, None)) for v in variables}
    starts = {v for v, r in ranges.items() if r == (0, None)}
    if any(r not in ((0, None), (None, None)) for r in ranges.values()):
        return None
    for p in preds:
        here = set(variables) & p.free
        if len(here) != 1 or p.op != "le":
            return None
        (v,) = here
        slope, rest = p.data.split(v)
        if v in arena.poly_free(rest):
            return None
        if slope.as_int() == -1 and not rest.terms:
            starts.add(v)
        elif slope.as_int() == 1 and v not in ends:
            ends[v] = 1 - rest
        else:
            return None
    if starts != set(variables) or set(ends) != set(variables):
        return None
    return tuple(ends[v] for v in variables)
