"""Upper bounds of polynomials by adding multiples of what is known to be ≥ 0, so that terms cancel.

An index such as (c·H + y)·W + x is multiplied out in the terms of y and x, but the facts 0 ≤ y < H and 0 ≤ x < W are
there as they were tested. Adding x's bound, then W times y's bound, and so on, takes the index apart again. A multiple
is added when it leaves fewer terms, or bounds of sizes for terms in other unknowns. Every step only makes the
polynomial larger, so a bound of the last is one of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from warpproof.terms import Arena, Coef, Monomial, Poly, magnitude

_MAX_STEPS: Final = 12
_MAX_DEGREE: Final = 7
_BEAM: Final = 3
_SIZES: Final = frozenset({"size", "grid"})
_LARGEST: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Multiple:
    """`factor` times the monomial times the fact with this number; the monomial's unknowns are all ≥ 0."""

    fact: int
    monomial: Monomial
    factor: int


def cancel(
    arena: Arena, p: Poly, facts: Sequence[Poly], slack: int = 0
) -> tuple[Poly, tuple[Multiple, ...]]:
    """(q, steps) with p ≤ q wherever the facts are ≥ 0, q ≤ 0 by the unknowns' ranges if the steps lead there.

    With `slack` steps may make it larger by less than that.
    """
    front: list[tuple[Poly, tuple[Multiple, ...]]] = [(p, ())]
    for _ in range(_MAX_STEPS):
        for q, steps in front:
            if _at_most_0(arena, q):
                return q, steps
        reached: dict[Poly, tuple[tuple[int, int, int], tuple[Multiple, ...]]] = {}
        for q, steps in front:
            for rank, r, step in _smaller(arena, q, facts, slack):
                if r not in reached or rank < reached[r][0]:
                    reached[r] = rank, (*steps, step)
        if not reached:
            break
        best = sorted(reached.items(), key=lambda t: t[1][0])[:_BEAM]
        front = [(q, steps) for q, (_, steps) in best]
    return front[0]


def _at_most_0(arena: Arena, p: Poly) -> bool:
    high = arena.bounds(p)[1]
    return high is not None and high <= 0


def _smaller(
    arena: Arena, p: Poly, facts: Sequence[Poly], slack: int
) -> Iterator[tuple[tuple[int, int, int], Poly, Multiple]]:
    """(rank, q, step) of the steps that make p smaller."""
    size = _size(arena, p)
    for k, f in enumerate(facts):
        for monomial, factor in _multipliers(arena, p, f):
            q = _add(p, f, monomial, factor)
            after = _size(arena, q)
            if after < size + slack:
                yield (after, len(monomial), k), q, Multiple(k, monomial, factor)


def _size(arena: Arena, p: Poly) -> int:
    """The number of terms; those in which something else than sizes occurs count for three."""
    return sum(1 if all(arena.atoms[a].kind in _SIZES for a in m) else 3 for m in p.terms if m)


def readd(arena: Arena, p: Poly, facts: Sequence[Poly], steps: Sequence[Multiple]) -> Poly | None:
    """What p becomes by the steps; None when one of them is not a multiple by something ≥ 0."""
    for s in steps:
        if s.factor < 1 or not _nonnegative(arena, s.monomial):
            return None
        p = _add(p, facts[s.fact], s.monomial, s.factor)
    return p


def _add(p: Poly, f: Poly, monomial: Monomial, factor: int) -> Poly:
    return p + f * Poly({monomial: factor})


def _multipliers(arena: Arena, p: Poly, f: Poly) -> Iterator[tuple[Monomial, int]]:
    """Multiples of f that cancel a term of p."""
    seen: set[tuple[Monomial, int]] = set()
    for u, c in f.terms.items():
        for t, d in p.terms.items() if u else ():
            rest = _quotient(t, u)
            factor = _ratio(d, c)
            if rest is None or factor is None or (rest, factor) in seen:
                continue
            seen.add((rest, factor))
            if len(rest) + max(map(len, f.terms)) <= _MAX_DEGREE and _nonnegative(arena, rest):
                yield rest, factor


def _ratio(d: Coef, c: Coef) -> int | None:
    """k ≥ 1 with d + k·c = 0 in every lane."""
    first, other = (int(np.asarray(v).flat[-1]) for v in (d, c))
    if other == 0 or first % other or -first // other < 1:
        return None
    k = -first // other
    if isinstance(d, int) and isinstance(c, int):
        return k
    if k * magnitude(c) > _LARGEST:
        return None
    return k if not np.any(np.asarray(d) + k * np.asarray(c)) else None


def _quotient(t: Monomial, u: Monomial) -> Monomial | None:
    left = list(t)
    for a in u:
        if a not in left:
            return None
        left.remove(a)
    return tuple(left)


def _nonnegative(arena: Arena, m: Monomial) -> bool:
    return all((lo := arena.ranges.get(a, (None, None))[0]) is not None and lo >= 0 for a in m)
