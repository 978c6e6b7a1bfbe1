"""Ranges of sizes that facts about several of them imply, by interval propagation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from warpproof.algebra import pred_polys
from warpproof.terms import Arena, Poly, Pred

_ROUNDS: Final = 4


def tighten(arena: Arena, facts: Iterable[Pred]) -> None:
    """Give every unknown with slope ±c in a fact the constant bounds that the others' ranges imply, in a few rounds.

    The facts must hold wherever the arena is used.
    """
    known = [p for f in facts for p in _at_least_0(arena, f)]
    derived = [atom.id for atom in arena.atoms if atom.args]
    for _ in range(_ROUNDS):
        before = dict(arena.ranges)
        for p in known:
            for m, c in p.terms.items():
                if len(m) == 1 and isinstance(c, int) and sum(m[0] in n for n in p.terms) == 1:
                    _bound(arena, m[0], c, p - Poly({m: c}))
        for a in derived:
            arena.refresh(a)
        if arena.ranges == before:
            return


def _bound(arena: Arena, x: int, c: int, rest: Poly) -> None:
    """The bound on x that c·x + rest ≥ 0 gives."""
    top = arena.bounds(rest)[1]
    if top is not None:
        arena.restrict(x, -(top // c) if c > 0 else None, None if c > 0 else top // -c)


def _at_least_0(arena: Arena, f: Pred) -> Iterator[Poly]:
    for p in arena.conjuncts(f):
        if p.op in ("le", "eq"):
            yield from (-q for q in pred_polys(p))
        if p.op == "eq":
            yield from pred_polys(p)
