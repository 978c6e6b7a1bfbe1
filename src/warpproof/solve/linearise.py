"""From bodies with products of unknowns to bodies that are linear in their dimensions, or `Unsupported`.

Parameters of few values are split on; block + grid·loop becomes one dimension; an index q·S + r with 0 ≤ r < S becomes
the pair (q, r); products of parameters become parameters. What is left in a guard is dropped, and the body is then
marked as an over-approximation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from warpproof.algebra import (
    DERIVED,
    Change,
    Formula,
    at_most,
    choose_changes,
    conjunction,
    contradicts,
    definition,
    formula,
    linear_text,
    prove_le,
    support,
)
from warpproof.core import Unsupported
from warpproof.solve.pieces import (
    FIRST_LOCAL,
    FIRST_STRIDE,
    Body,
    Piece,
    definitions_of,
    ranges,
    rename_atoms,
    substitute,
    weaken,
)
from warpproof.solve.stride import Stride
from warpproof.terms import Arena, Monomial, Poly, Pred

FIRST_OUTPUT: Final = -3000
FIRST_CONTEXT: Final = -1500  # apart from the existentials of bodies: both occur in one proof
SMALL: Final = 8
MAX_CASES: Final = 16
_LARGE: Final = 1 << 15  # a context that asks for less leaves out upper bounds from here on


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """The target 0 ≤ j_d < extents[d]."""

    extents: tuple[Poly, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """The target of all values of the index atoms that satisfy every predicate (and the atoms' ranges)."""

    index: tuple[int, ...]
    preds: tuple[Pred, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    """A question's bodies, target and context, all linear in dimensions; `exact` is False when sizes were relaxed."""

    bodies: tuple[Body, ...]
    target: Formula | None
    target_locals: tuple[int, ...]
    context: Formula
    exact: bool
    rank: int


def lifted_atoms(arena: Arena, polys: Sequence[Poly], dims: frozenset[int]) -> frozenset[int]:
    """Derived atoms of parameters alone that occur in products (grid sizes such as ⌈n/256⌉): they stay parameters.

    So do quotients by unknowns, which their definition multiplies.
    """
    products = {a for p in polys for m in p.terms if len(m) > 1 for a in m if a >= 0}
    products |= {a for p in polys for a in p.atoms() if a >= 0 and _by_unknown(arena, a)}
    return frozenset(
        a for a in products
        if (atom := arena.atoms[a]).kind in DERIVED and atom.uniform
        and not set(support(arena, (arena.variable(atom),))) & dims
    )


def _by_unknown(arena: Arena, a: int) -> bool:
    atom = arena.atoms[a]
    return atom.kind == "div" and atom.args[1].as_int() is None


def is_mixed(m: Monomial, dims: frozenset[int]) -> bool:
    """True for a product with a dimension or an existential in it."""
    return len(m) > 1 and any(a < 0 or a in dims for a in m)


class Linearizer:
    """Makes the bodies of one problem linear."""

    def __init__(self, arena: Arena, facts: Sequence[Pred], pieces: Sequence[Piece], *, light: bool = False) -> None:
        """`light` asks for a weaker context: without large upper bounds and parameters that nothing depends on."""
        self._light = light
        self.arena = arena
        self.dims = frozenset(d for p in pieces for d in (*p.loops, *p.blocks))
        self.facts = tuple(facts)
        self._lane = np.zeros(1, dtype=np.int64)

    # ------------------------------------------------------------------ context
    def context(self, lifted: frozenset[int], parameters: Sequence[Poly]) -> tuple[Formula, bool]:
        """Ranges, definitions and facts on parameters (quotients inside become existentials); are they exact?"""
        own = [
            f for f in self.facts if f.uniform and not set(support(self.arena, (), (f,))) & self.dims
        ]
        given = [formula(self.arena, f, self._lane) for f in own]
        given += [definition(self.arena, self.arena.atoms[a], self._lane) for a in sorted(lifted)]
        polys = [*(q for f in given for q in f.polys()), *parameters]
        definitions, exact = definitions_of(self.arena, polys, self._lane, lifted, self._light)
        rename = {a: FIRST_CONTEXT - k for k, a in enumerate(definitions)}
        whole = conjunction((*given, *definitions.values())).map(lambda p: rename_atoms(p, rename))
        names = {a for p in (*whole.polys(), *parameters) for a in p.atoms() if a >= 0} | lifted
        known = conjunction((weaken(whole), ranges(self.arena, sorted(names), below=_LARGE if self._light else None)))
        if self._light:
            known = _connected(known, {a for p in parameters for a in p.atoms()} | lifted)
        return known, exact and whole.exact()

    # ------------------------------------------------------------------ all steps
    def run(
        self, items: list[Body], target: Box | Region | None, lifted: frozenset[int],
        family: Callable[[Sequence[Body]], list[Body]],
    ) -> list[Linear]:
        """The linear problems whose conjunction is the given one; `family` merges unrolled copies."""
        extents = target.extents if isinstance(target, Box) else None
        region, locals_, exact = self._region(target, lifted) if isinstance(target, Region) else (None, (), True)
        every = [*(q for b in items for q in b.polys()), *(region.polys() if region else ()), *(extents or ())]
        names = {a for p in every for a in p.atoms() if a >= 0 and a not in self.dims}
        parameters = [Poly({(a,): 1}) for a in sorted(names)]
        context, known = self.context(lifted, parameters)
        for change in self._changes(items, extents, region, context):
            items = [b.map(change.apply) for b in items]
            extents = tuple(map(change.apply, extents)) if extents is not None else None
            region = region.map(change.apply) if region is not None else None
            context = context.map(change.apply)
        out: list[Linear] = []
        for values in self._small_cases(items):
            fill = plug(values)
            case = family([b.map(fill) for b in items])
            box = tuple(map(fill, extents)) if extents is not None else None
            where = context.map(fill)
            case = [self._stride(b) for b in case]
            case, box = self._factor(case, box, where)
            case = [self._drop(c) for b in case for c in self._small_dims(b)]
            rank = len(case[0].index if case else box or (target.index if isinstance(target, Region) else ()))
            goal = region.map(fill) if region else None
            if box is not None:
                goal = conjunction(_box(box))
            if goal is not None and any(is_mixed(m, self.dims) for q in goal.polys() for m in q.terms):
                raise Unsupported("integer sets", "a target that is not linear in its index")
            out.append(Linear(tuple(case), goal, locals_, where, known and exact, rank))
        return out

    def _region(self, target: Region, lifted: frozenset[int]) -> tuple[Formula, tuple[int, ...], bool]:
        parts = [formula(self.arena, p, self._lane) for p in target.preds if p.uniform]
        if len(parts) < len(target.preds):
            raise Unsupported("integer sets", "a target that differs between lanes")
        parts.append(ranges(self.arena, target.index))
        polys = [q for f in parts for q in f.polys()]
        definitions, exact = definitions_of(self.arena, polys, self._lane, lifted)
        rename = {a: FIRST_LOCAL - k for k, a in enumerate(definitions)}
        locals_ = tuple(rename.values())
        rename.update({a: FIRST_OUTPUT - k for k, a in enumerate(target.index)})
        whole = conjunction((*parts, *definitions.values())).map(lambda p: rename_atoms(p, rename))
        if not (exact and whole.exact()):
            raise Unsupported("integer sets", "a target without an integer meaning")
        return whole, locals_, True

    def _changes(
        self, items: Sequence[Body], extents: Sequence[Poly] | None, region: Formula | None, context: Formula
    ) -> list[Change]:
        """Changes of parameters under which products become monomials, from the inequalities of the context."""
        polys = [p for b in items for p in b.polys()] + [*(extents or ()), *(region.polys() if region else ())]
        parts = context.args if context.op == "and" else (context,)

        def fresh(f: Poly) -> int:
            (atom,) = self.arena.symbol("size", linear_text(self.arena, f)).atoms()
            return atom

        def usable(a: int) -> bool:
            return a >= 0 and a not in self.dims and self.arena.atoms[a].kind in ("size", "grid")

        return choose_changes([*polys, *context.polys()], [-g.poly for g in parts if g.op == "le"], fresh, usable)

    # ------------------------------------------------------------------ small ranges
    def _small_cases(self, items: list[Body]) -> Iterator[dict[int, Poly]]:
        """All values of the parameters of few values that occur in products with dimensions."""
        atoms = sorted({
            a for b in items for p in b.polys() for m in p.terms if is_mixed(m, self.dims)
            for a in m if a >= 0 and a not in self.dims and self._few(a)
        })
        count = 1
        for a in atoms:
            count *= len(self._few(a))
        if count > MAX_CASES:
            raise Unsupported("integer sets", "too many cases of small parameters")
        cases: list[dict[int, Poly]] = [{}]
        for a in atoms:
            cases = [{**c, a: Poly({(): v})} for c in cases for v in self._few(a)]
        yield from cases

    def _few(self, atom: int) -> range:
        lo, hi = self.arena.ranges.get(atom, (None, None))
        if lo is None or hi is None or hi - lo >= SMALL:
            return range(0)
        return range(lo, hi + 1)

    def _small_dims(self, b: Body) -> list[Body]:
        """The body for each value of a dimension of few values that occurs in a product in its guards."""
        found = sorted({
            a for p in b.formula.polys() for m in p.terms if is_mixed(m, self.dims)
            for a in m if a in self.dims and self._few(a)
        })
        if not found or len(found) > 1:
            return [b]
        d = found[0]
        return [
            replace(b.map(plug({d: Poly({(): v})})), dims=tuple(x for x in b.dims if x != d))
            for v in self._few(d)
        ]

    # ------------------------------------------------------------------ block + grid · loop
    def _stride(self, b: Body) -> Body:
        pairs = sorted({
            (i, g) for p in b.polys() for m in p.terms if len(m) > 1
            for i in m if i in self.dims for g in m if g >= 0 and g not in self.dims
        })
        for i, g in pairs:
            done = self._stride_with(b, i, g)
            if done is not None:
                return self._stride(done)
        return b

    def _stride_with(self, b: Body, i: int, g: int) -> Body | None:
        for block in b.dims:
            if block not in self.dims or block == i:
                continue
            x, y, size = (Poly({(a,): 1}) for a in (block, i, g))
            if not self._inside(b, block, x, size):
                continue
            if not contradicts(self.arena, -y, (b.formula,)):
                continue
            limit = self.arena.bounds(size)[1]
            stride = Stride(self.arena, block, i, g, FIRST_STRIDE - len(b.strided) // 3, limit)
            done = stride.body(b, ranges(self.arena, (g,)))
            if done is not None:
                return done
        return None

    def _inside(self, b: Body, dim: int, x: Poly, size: Poly) -> bool:
        """The dimension lies in [0, size): a block by the facts of the launch, a loop by its own conditions."""
        if self.arena.atoms[dim].kind == "block":
            low = self.arena.ranges.get(dim, (None, None))[0]
            return low is not None and low >= 0 and prove_le(self.arena, x - size + 1, self.facts) is not None
        return contradicts(self.arena, -x, (b.formula,)) and contradicts(self.arena, x - size + 1, (b.formula,))

    # ------------------------------------------------------------------ q · S + r
    def _factor(
        self, items: list[Body], box: tuple[Poly, ...] | None, where: Formula
    ) -> tuple[list[Body], tuple[Poly, ...] | None]:
        d = 0
        while items and d < len(items[0].index):
            mixed = {m for b in items for m in b.index[d].terms if is_mixed(m, self.dims)}
            if not mixed:
                d += 1
                continue
            sizes = {tuple(a for a in m if a >= 0 and a not in self.dims) for m in mixed} - {()}
            for s in sorted(sizes, key=lambda s: (len(s), s)):
                done = self._factor_by(items, box, where, d, s)
                if done is not None:
                    items, box = done
                    break
            else:
                raise Unsupported("integer sets", "an index with a product that no row length explains")
        return items, box

    def _factor_by(
        self, items: list[Body], box: tuple[Poly, ...] | None, where: Formula, d: int, s: Monomial
    ) -> tuple[list[Body], tuple[Poly, ...] | None] | None:
        size = Poly({s: 1})
        if box is not None:
            extent, rest = divide(box[d], s)
            if rest.terms:
                return None
            box = (*box[:d], extent, size, *box[d + 1 :])
        out: list[Body] = []
        for b in items:
            q, r = divide(b.index[d], s)
            given = (b.formula, where)
            if not contradicts(self.arena, r - size + 1, given) or not contradicts(self.arena, -r, given):
                return None
            out.append(replace(b, index=(*b.index[:d], q, r, *b.index[d + 1 :])))
        return out, box

    def _drop(self, b: Body) -> Body:
        """The body without the comparisons that are still nonlinear."""
        if any(is_mixed(m, self.dims) for p in (*b.index, *b.blocks, *b.loops, b.lane) for m in p.terms):
            raise Unsupported("integer sets", "an index with a product of dimensions")

        def keep(p: Poly) -> Poly | None:
            return None if any(is_mixed(m, self.dims) for m in p.terms) else p

        whole = b.formula.map(keep)
        return b if whole.exact() else replace(b, formula=weaken(whole), exact=False)


def plug(values: dict[int, Poly]) -> Callable[[Poly], Poly]:
    """The substitution of unknowns as a function."""
    return lambda p: substitute(p, values)


def divide(p: Poly, s: Monomial) -> tuple[Poly, Poly]:
    """(q, r) with p = q·s + r, where s divides no monomial of r."""
    q: dict[Monomial, int] = {}
    r: dict[Monomial, int] = {}
    for m, c in p.terms.items():
        assert isinstance(c, int)
        left = list(m)
        for a in s:
            if a not in left:
                r[m] = c
                break
            left.remove(a)
        else:
            q[tuple(left)] = c
    return Poly(dict(q)), Poly(dict(r))


def _connected(f: Formula, atoms: set[int]) -> Formula:
    """The conjuncts that speak, through others, of the atoms; without large constant bounds on one parameter."""
    parts = [g for g in (f.args if f.op == "and" else (f,)) if not _large_bound(g)]
    reached = set(atoms)
    while True:
        more = {a for g in parts for p in g.polys() for a in p.atoms() if reached & _atoms(g)}
        if more <= reached:
            return conjunction(g for g in parts if not _atoms(g) or reached & _atoms(g))
        reached |= more


def _atoms(f: Formula) -> set[int]:
    return {a for p in f.polys() for a in p.atoms()}


def _large_bound(f: Formula) -> bool:
    if f.op != "le" or len(f.poly.terms) != 2:
        return False
    slopes = [c for m, c in f.poly.terms.items() if m]
    return len(slopes) == 1 and slopes[0] == 1 and int(f.poly.constant) <= -_LARGE


def _box(extents: tuple[Poly, ...]) -> Iterator[Formula]:
    for k, e in enumerate(extents):
        x = Poly({(FIRST_OUTPUT - k,): 1})
        yield at_most(-x)
        yield at_most(x - e + 1)
