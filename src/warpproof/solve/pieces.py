"""Pieces of an index map, and their normal form: plain formulas over integer dimensions, no lane vectors left.

A piece says: the lanes with non-zero weight, for all values of its loop counters and block indices that satisfy the
guards, touch the element `index`. `bodies` writes lanes as bounded fields and derived atoms as existential unknowns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from warpproof.algebra import (
    DERIVED,
    TRUE,
    Formula,
    LaneFields,
    affine_parts,
    at_most,
    conjunction,
    definition,
    formula,
    lane_classes,
    lane_fields,
    loosened,
    monotone_trip,
    support,
    vectors,
)
from warpproof.core import Unsupported
from warpproof.terms import Arena, IntVector, Poly, Pred

FIRST_COPY: Final = -50
FIRST_STRIDE: Final = -80
FIRST_LOCAL: Final = -100
EMPTY: Final[frozenset[int]] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """One guarded access: `index` per point (lane, loops, blocks) where all guards hold and `weight` is not 0.

    `loops` and `blocks` are the atoms that range over points; every other atom is a parameter. `weight` says how often
    each lane contributes (an int for all lanes). Block atoms need an upper bound among the facts of the problem.
    """

    guards: tuple[Pred, ...]
    loops: tuple[int, ...]
    blocks: tuple[int, ...]
    index: tuple[Poly, ...]
    weight: IntVector | int = 1


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A piece on lanes of one kind, or a family of such pieces: {dims : formula} -> index, all over integers.

    `locals_` are existential unknowns (derived atoms). `exact` is False when the formula only over-approximates.
    `strided` names (block, loop, grid size) where block + grid·loop has become one dimension.
    """

    dims: tuple[int, ...]
    locals_: tuple[int, ...]
    formula: Formula
    index: tuple[Poly, ...]
    lane: Poly
    blocks: tuple[Poly, ...]
    loops: tuple[Poly, ...]
    loop_ids: tuple[int, ...]
    number: Poly
    weight: int
    exact: bool
    strided: tuple[int, ...] = ()

    def polys(self) -> Iterable[Poly]:
        """Every polynomial of the body: constraints, index, coordinates."""
        yield from self.formula.polys()
        yield from (*self.index, self.lane, *self.blocks, *self.loops)

    def map(self, rewrite: Callable[[Poly], Poly]) -> Body:
        """The body with every polynomial rewritten."""
        return replace(
            self, formula=self.formula.map(rewrite), index=tuple(map(rewrite, self.index)), lane=rewrite(self.lane),
            blocks=tuple(map(rewrite, self.blocks)), loops=tuple(map(rewrite, self.loops)),
        )


def bounds(dim: int, count: int) -> Formula:
    """0 ≤ dim < count."""
    x = Poly({(dim,): 1})
    return conjunction((at_most(-x), at_most(x - (count - 1))))


def lane_bounds(fields: LaneFields) -> Formula:
    """The values that the fields of a lane set take."""
    parts = [bounds(f, r) for f, r in zip(fields.ids(), fields.radices)]
    if fields.ragged():
        parts.append(at_most(fields.position() - (len(fields.lanes) - 1)))
    return conjunction(parts)


def ranges(arena: Arena, atoms: Iterable[int], *, below: int | None = None, open_: frozenset[int] = EMPTY) -> Formula:
    """The known ranges of some atoms, without the upper ends that are ≥ `below` or of atoms in `open_`."""
    parts: list[Formula] = []
    for a in atoms:
        lo, hi = arena.ranges.get(a, (None, None))
        x = Poly({(a,): 1})
        if lo is not None:
            parts.append(at_most(lo - x))
        if hi is not None and a not in open_ and (below is None or hi < below):
            parts.append(at_most(x - hi))
    return conjunction(parts)


def without_other_blocks(arena: Arena, facts: Iterable[Pred], dims: Iterable[int]) -> tuple[Pred, ...]:
    """The facts, but for those about block indices and tickets that are not among the dimensions.

    These say that there is a CTA: to assume them would leave out the sizes where the grid is empty.
    """
    known = frozenset(dims)
    return tuple(f for f in facts if all(
        a < 0 or a in known or arena.atoms[a].kind != "block" for a in support(arena, (), (f,))))


def implied_tops(arena: Arena, facts: Sequence[Pred], dims: Iterable[int]) -> frozenset[int]:
    """The dimensions whose upper range end follows from one fact and the ranges of parameters (bx < gx ≤ 2^31 − 1)."""
    all_dims, out = set(dims), set()
    for f in (g for p in facts for g in arena.conjuncts(p) if g.op == "le"):
        for d in all_dims & f.data.atoms():
            slope, rest = f.data.split(d)
            k, top, known = slope.as_int(), arena.bounds(-rest)[1], arena.ranges.get(d, (None, None))[1]
            if k is None or k <= 0 or top is None or known is None or top // k > known:
                continue
            if not set(support(arena, (rest,))) & all_dims:
                out.add(d)
    return frozenset(out)


def bodies(
    arena: Arena, facts: Sequence[Pred], pieces: Sequence[Piece], lifted: frozenset[int] = frozenset(), *,
    light: bool = False,
) -> list[Body]:
    """The normal forms of all pieces, split where lanes need different forms; lanes of weight 0 are left out.

    `lifted` are derived atoms that stay parameters (their definitions belong to the context). With `light`, ranges that
    other constraints or the limits of the launch imply are left out: they cost isl more than all else.
    """
    out: list[Body] = []
    tops = implied_tops(arena, facts, {d for p in pieces for d in (*p.loops, *p.blocks)}) if light else EMPTY
    for number, piece in enumerate(pieces):
        weight = np.broadcast_to(np.asarray(piece.weight, dtype=np.int64), (arena.lanes,))
        for w in np.unique(weight):
            if w < 0:
                raise Unsupported("piece", "a negative weight")
            if w:
                lanes = np.flatnonzero(weight == w)
                out.extend(_bodies(arena, facts, piece, lanes, int(w), number, lifted, light, tops))
    return out


def _bodies(
    arena: Arena, facts: Sequence[Pred], piece: Piece, lanes: IntVector, weight: int, number: int,
    lifted: frozenset[int], light: bool, tops: frozenset[int],
) -> list[Body]:
    dims = (*piece.loops, *piece.blocks)
    own = [f for f in facts if not f.uniform or set(support(arena, (), (f,))) & set(dims)]
    preds = [*piece.guards, *own]
    variables = [Poly({(d,): 1}) for d in dims]
    out: list[Body] = []
    atoms = support(arena, piece.index, preds)
    for part in lane_classes(arena, preds, atoms, lanes):
        formulas = [formula(arena, p, part) for p in preds]
        definitions, exact = definitions_of(arena, [*piece.index, *variables, *polys_of(formulas)], part, lifted, light)
        identity = Poly({(): np.arange(arena.lanes, dtype=np.int64)}) if arena.lanes > 1 else Poly({})
        given = [*piece.index, *polys_of(definitions.values()), identity]
        formulas, split = _on_fields(formulas, given, part)
        for fields in split:
            body = _body(arena, piece, fields, conjunction(formulas), definitions, identity, number, tops)
            out.append(replace(body, weight=weight, exact=body.exact and exact))
    return out


def _on_fields(
    formulas: list[Formula], given: Sequence[Poly], lanes: IntVector
) -> tuple[list[Formula], list[LaneFields]]:
    """The formulas, and parts of the lanes on which they and the given polynomials are affine in fields."""
    try:
        return formulas, affine_parts(vectors([*given, *polys_of(formulas)]), lanes)
    except Unsupported:
        fields = lane_fields(vectors(given), lanes)
        if fields is None:
            raise
        formulas = [loosened(f, fields) for f in formulas]
        return formulas, affine_parts(vectors([*given, *polys_of(formulas)]), lanes)


def polys_of(formulas: Iterable[Formula]) -> list[Poly]:
    return [q for f in formulas for q in f.polys()]


def definitions_of(
    arena: Arena, polys: Sequence[Poly], lanes: IntVector, lifted: frozenset[int] = frozenset(), light: bool = False,
) -> tuple[dict[int, Formula], bool]:
    """The definitions of the derived atoms that the polynomials reach, in order of appearance; are they exact?

    Their known ranges are included unless `light`.
    """
    out: dict[int, Formula] = {}
    exact = True
    queue = list(polys)
    while queue:
        p = queue.pop(0)
        for m in sorted(p.terms):
            for a in m:
                atom = arena.atoms[a] if a >= 0 else None
                if atom is None or atom.kind not in DERIVED or a in out or a in lifted:
                    continue
                known = TRUE if light else ranges(arena, (a,))
                out[a] = conjunction((definition(arena, atom, lanes), known))
                exact = exact and out[a].exact() and (atom.kind != "trip" or monotone_trip(arena, atom))
                queue.extend(out[a].polys())
    return out, exact


def _body(
    arena: Arena, piece: Piece, fields: LaneFields, guard: Formula, definitions: dict[int, Formula], identity: Poly,
    number: int, tops: frozenset[int],
) -> Body:
    dims = (*piece.loops, *piece.blocks)
    rename: dict[int, int] = {a: FIRST_LOCAL - k for k, a in enumerate(definitions)}
    unknown = _undetermined(arena, [guard, *definitions.values()], piece.index, dims, definitions)
    rename.update({a: FIRST_LOCAL - len(rename) - k for k, a in enumerate(unknown)})

    def rewrite(p: Poly) -> Poly:
        q = fields.uniform(p)
        if q is None:
            raise Unsupported("integer sets", "a lane-dependent value that is not affine in lane fields")
        return rename_atoms(q, rename)

    domain = conjunction((lane_bounds(fields), ranges(arena, dims, open_=tops)))
    parts = (guard, domain, *definitions.values(), ranges(arena, unknown))
    whole = conjunction(f.map(rewrite) for f in parts)
    return Body(
        dims=(*fields.ids(), *dims), locals_=tuple(rename.values()), formula=weaken(whole),
        index=tuple(rewrite(p) for p in piece.index), lane=rewrite(identity),
        blocks=tuple(Poly({(b,): 1}) for b in piece.blocks), loops=tuple(Poly({(i,): 1}) for i in piece.loops),
        loop_ids=piece.loops, number=Poly({(): number}), weight=1, exact=whole.exact() and not unknown,
    )


def _undetermined(
    arena: Arena, formulas: list[Formula], index: Sequence[Poly], dims: tuple[int, ...], known: dict[int, Formula],
) -> list[int]:
    """Atoms whose value differs between the points of a piece in a way that is not described (loaded values …)."""
    out: list[int] = []
    for a in sorted({a for p in (*polys_of(formulas), *index) for a in p.atoms()} - set(dims) - set(known)):
        atom = arena.atoms[a]
        inside = set(support(arena, atom.args, (atom.pred,) if atom.pred else ())) if atom.args else set()
        if atom.kind in ("state", "undef", "place") or inside & set(dims) or not atom.uniform:
            out.append(a)
    return out


def rename_atoms(p: Poly, rename: dict[int, int]) -> Poly:
    """p with atoms replaced by other unknowns, one to one."""
    if not any(a in rename for a in p.atoms()):
        return p
    return Poly({tuple(sorted(rename.get(a, a) for a in m)): c for m, c in p.terms.items()})


def substitute(p: Poly, values: dict[int, Poly]) -> Poly:
    """p with unknowns replaced by polynomials."""
    if not any(a in values for a in p.atoms()):
        return p
    out = Poly({})
    for m, c in p.terms.items():
        t = Poly({tuple(a for a in m if a not in values): c})
        for a in m:
            if a in values:
                t = t * values[a]
        out = out + t
    return out


def weaken(f: Formula) -> Formula:
    """The formula with unknown parts read as true."""
    match f.op:
        case "unknown":
            return TRUE
        case "and":
            return conjunction(weaken(a) for a in f.args)
        case "or":
            return f if f.exact() else TRUE
        case _:
            return f
