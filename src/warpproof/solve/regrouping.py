"""Program ids taken apart: a block index as the coordinates that a kernel computes from it.

Kernels map a flat program id to tiles by quotients and remainders, in groups, often of a smaller last one. When the
coordinates u₁ … uₖ lie in a box of as many elements as there are blocks, and the block index can be computed from them,
then the map is one to one and onto: an injective map between finite sets of one size. So the blocks may be counted by
the coordinates, in which indices and guards are linear.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Final

from warpproof.algebra import pred_polys, support
from warpproof.solve.facts import Facts
from warpproof.solve.pieces import Piece
from warpproof.solve.quotients import quotients
from warpproof.terms import Arena, Monomial, Poly, Pred, const

_MOST: Final = 3


def regrouped(facts: Facts, pieces: Sequence[Piece]) -> tuple[list[Piece], tuple[Pred, ...]]:
    """The pieces over such coordinates, with the facts that bound these; unchanged where there are none."""
    out, launch = list(pieces), facts.launch
    for b in pieces[0].blocks if pieces else ():
        coordinates = _coordinates(facts.arena, out, b)
        extents = _extents(facts, b, coordinates) if coordinates else None
        if extents is not None and _determined(facts, b, coordinates):
            out, launch = _recounted(facts.arena, out, launch, b, coordinates, extents)
    return out, launch


def _polys(p: Piece) -> Iterator[Poly]:
    yield from p.index
    for g in p.guards:
        yield from pred_polys(g)


def _depends(arena: Arena, a: int, b: int) -> bool:
    return a == b or b in support(arena, (arena.variable(arena.atoms[a]),))


def _part(arena: Arena, p: Poly, b: int) -> Poly:
    """The terms that depend on the block index."""
    return Poly({m: c for m, c in p.terms.items() if any(_depends(arena, a, b) for a in m)})


def _coordinates(arena: Arena, pieces: Sequence[Piece], b: int) -> tuple[Poly, ...]:
    """What index and guards make of the block index, up to constant factors; empty when it is linear as it is."""
    found: list[Poly] = []
    for part in (_part(arena, q, b) for p in pieces for q in _polys(p)):
        if not part.terms:
            continue
        if not part.uniform():
            return ()
        u = part.exact_div(part.content())
        if u not in found and -u not in found:
            found.append(u)
    if not 2 <= len(found) <= _MOST or not quotients(arena, found):
        return ()
    return tuple(found)


def _extents(facts: Facts, b: int, coordinates: Sequence[Poly]) -> tuple[Poly, ...] | None:
    """Factors of the number of blocks, one for each coordinate, below which it is shown to lie."""
    arena = facts.arena
    m = _count(facts, b)
    if m is None:
        return None
    for choice in product(range(len(coordinates)), repeat=len(m)):
        parts = [Poly({tuple(a for a, k in zip(m, choice) if k == n): 1}) for n in range(len(coordinates))]
        if all(
            facts.implied(arena.true, arena.conj((arena.le(-u), arena.le(u - e + 1))))
            for u, e in zip(coordinates, parts)
        ):
            return tuple(parts)
    return None


def _count(facts: Facts, b: int) -> Monomial | None:
    """The number of blocks as a product of unknowns that are ≥ 0."""
    arena = facts.arena
    for f in facts.launch:
        if f.op == "le" and f.data.split(b)[0].as_int() == 1:
            count = const(1) - f.data.split(b)[1]
            terms = list(count.terms.items())
            if len(terms) == 1 and terms[0][1] == 1 and not any(_depends(arena, a, b) for a in terms[0][0]):
                m: Monomial = terms[0][0]
                if all((lo := arena.ranges.get(a, (None, None))[0]) is not None and lo >= 0 for a in m):
                    return m
    return None


def _determined(facts: Facts, b: int, coordinates: Sequence[Poly]) -> bool:
    """The coordinates determine the block index.

    A quotient q is determined where a coordinate is c·q plus something in [0, c), and what is computed from determined
    values is; at last the block index is one coordinate less such values.
    """
    arena = facts.arena
    open_ = {a for a in support(arena, coordinates) if a != b and _depends(arena, a, b)}
    while True:
        new = {
            a for a in open_
            if not (open_ | {b}) & _inside(arena, a)
            or any(_leading(facts, a, u, open_ | {b}) for u in coordinates)
        }
        if not new:
            break
        open_ -= new
    for u in coordinates:
        slope, rest = u.split(b)
        if slope.as_int() in (1, -1) and not (open_ | {b}) & rest.atoms():
            return True
    return False


def _inside(arena: Arena, a: int) -> set[int]:
    """The atoms that an atom is computed from."""
    atom = arena.atoms[a]
    if atom.pred is not None or not atom.args:
        return {a}
    return {x for q in atom.args for x in q.atoms()}


def _leading(facts: Facts, a: int, u: Poly, unknown: set[int]) -> bool:
    """u = c·a + r with 0 ≤ r < c for a determined c ≥ 1, so that the atom is ⌊u/c⌋."""
    arena = facts.arena
    slope = u.split(a)[0]
    x = arena.variable(arena.atoms[a])
    for c in dict.fromkeys([slope, *(Poly({m: k}) for m, k in slope.terms.items())]):
        r = u - c * x
        inside = arena.conj((arena.le(1 - c), arena.le(-r), arena.le(r - c + 1)))
        if not unknown & c.atoms() and facts.implied(arena.true, inside):
            return True
    return False


def _recounted(
    arena: Arena, pieces: Sequence[Piece], launch: Sequence[Pred], b: int, coordinates: Sequence[Poly],
    extents: Sequence[Poly],
) -> tuple[list[Piece], tuple[Pred, ...]]:
    atoms = [arena.fresh("block", f"{arena.atoms[b].name}.{n}", 0, None) for n in range(len(coordinates))]
    fresh = [arena.variable(a) for a in atoms]

    def put(p: Poly) -> Poly:
        part = _part(arena, p, b)
        if not part.terms:
            return p
        g = part.content()
        u = part.exact_div(g)
        k = next(n for n, v in enumerate(coordinates) if u in (v, -v))
        return p - part + fresh[k] * (g if u == coordinates[k] else -g)

    def told(p: Pred) -> Pred:
        match p.op:
            case "le":
                return arena.le(put(p.data))
            case "eq":
                return arena.eq(put(p.data))
            case "ne":
                return arena.ne(put(p.data))
            case "and":
                return arena.conj(told(q) for q in p.args)
            case "or":
                return arena.disj(told(q) for q in p.args)
            case "dom":
                return arena.domain(p.data[0], put(p.data[1]))
            case _:
                return p

    out = [
        replace(
            p, index=tuple(map(put, p.index)), guards=tuple(map(told, p.guards)),
            blocks=tuple(x for c in p.blocks for x in ([a.id for a in atoms] if c == b else [c])),
        )
        for p in pieces
    ]
    kept = [f for f in launch if b not in support(arena, (), (f,))]
    return out, (*kept, *(arena.le(x - e + 1) for x, e in zip(fresh, extents)))
