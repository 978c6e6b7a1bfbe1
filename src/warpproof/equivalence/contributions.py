"""Atomic updates against the reference: what all threads of all CTAs contribute is the reference's fold.

An element ends as its initial value combined with every contribution to it. The reference at symbolic coordinates is
taken apart into summands: a body for all values of some bound variables in a domain. Each contribution must be one
summand's body at the coordinates of its own element, and the contributions to a summand must tile the coordinates and
the bound variables together (sums) or cover exactly these (extrema): one question over blocks, lanes and loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from warpproof.algebra import is_data, limits
from warpproof.core import Claim, Reason, Status, Unsupported
from warpproof.equivalence.choices import as_choice, as_extremum
from warpproof.equivalence.inversion import choices_of, invert
from warpproof.equivalence.outputs import Output, OutputChecker
from warpproof.equivalence.pieces import Part, Splitter, crosses_lanes
from warpproof.equivalence.rewriting import Rewriter
from warpproof.equivalence.summands import Scale, Summand, coordinates, reads, reads_of, scaled_sums, summands
from warpproof.equivalence.tiling import tiles
from warpproof.machine import Access
from warpproof.solve import Piece
from warpproof.terms import IntVector, Poly, Pred, Real

_GROUPS = 64
_EXTREMA = {"and": "min", "or": "max"}


@dataclass(frozen=True, slots=True)
class Contribution:
    """A part of what one instruction contributes, and the coordinates of the element that it goes to."""

    part: Part
    at: tuple[Poly, ...]
    instruction: int


class Contributions:
    """Compares the atomic updates of an output with the reference."""

    def __init__(self, checker: OutputChecker) -> None:
        self.checker, self.arena, self.facts = checker, checker.arena, checker.facts
        self.normal, self.matcher = checker.normal, checker.matcher
        self.why = ""

    def check(self, output: Output, updates: Sequence[Access]) -> list[Claim]:
        """Claims that the updates turn the initial contents into the reference's value everywhere."""
        text = f"{output.name} ends as the reference's value, whatever the order of its atomic updates"
        where = self.checker.where(updates[0].instruction)
        try:
            op = self._operation(output, updates)
            found = [c for a in updates for c in self._split(output, a, op)]
            index = coordinates(output.symbols(), output.shape)
            wanted = output.expected(index)
            inside = self.arena.conj(p for o, n in zip(index, output.shape, strict=True) if o.terms
                                     for p in (self.arena.le(-o), self.arena.le(o - n + 1)))
            self.checker.compared.append((inside, wanted))
            self.checker.rewriters.append((inside, Rewriter(self.arena, self.matcher, self.facts, wanted)))
            fits = op != "add" or output.type.floating or self._fits(wanted, output)
            shown = any(self._equal(output, s, index, op, found) for s in self._goals(output, op, index, wanted))
        except Unsupported as stuck:
            return [Claim("equivalence", text, Status.OPEN, place=where, reason=Reason.UNSUPPORTED, hint=str(stuck))]
        if shown and fits:
            return [Claim("equivalence", text, Status.SHOWN, "fold over all threads", where,
                          data={"steps": list(self.matcher.log[-4:])})]
        hint = self.why if not shown else f"the sum may leave the range of {output.type}: bound the data or the sizes"
        return [Claim("equivalence", text, Status.OPEN, place=where, hint=hint)]

    def _goals(self, output: Output, op: str, index: tuple[Poly, ...], wanted: Real) -> Iterator[list[Summand]]:
        """The summands of the reference as written (truth values as numbers), then with its sums distributed; at last
        with coordinates that data determine left free."""
        wanted = as_extremum(self.arena, op, as_choice(self.arena, wanted))
        forms = list(dict.fromkeys((wanted, self.normal.canonical(wanted))))
        for w in forms:
            yield summands(self.arena, op, index, output.shape, w)
        for w in forms:
            yield summands(self.arena, op, index, output.shape, w, determined=False)

    def _operation(self, output: Output, updates: Sequence[Access]) -> str:
        """The fold that the updates are; on truth values `and` is the minimum and `or` the maximum."""
        ops = {a.op for a in updates}
        if len(ops) > 1:
            raise Unsupported("atomic updates", f"{output.name} is updated by different operations: {sorted(ops)}")
        (op,) = ops
        if op not in _EXTREMA:
            return op
        values = [output.initial(output.symbols()), *(self._value(a, output) for a in updates)]
        if not all(self._truth_value(x) for x in values):
            raise Unsupported(f"atom.{op}", "bit masks other than 0 and 1 are not followed")
        return _EXTREMA[op]

    def _truth_value(self, x: Real) -> bool:
        low, high = limits(self.arena, x)
        return low is not None and high is not None and low >= 0 and high <= 1

    def _fits(self, wanted: Real, output: Output) -> bool:
        """The exact integer is the one that the wrapping sum leaves in the element."""
        low, high = limits(self.arena, wanted)
        width, signed = output.type.width, output.type.signed
        least, most = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
        return low is not None and high is not None and least <= low and high <= most

    # ------------------------------------------------------------------ contributions
    def _value(self, access: Access, output: Output) -> Real:
        return as_choice(self.arena, self.checker.value_of(access, output))

    def _split(self, output: Output, access: Access, op: str) -> list[Contribution]:
        """What an instruction contributes, by element: lane by lane where it comes from several lanes."""
        x = self._value(access, output)
        if not any(crosses_lanes(y, op) for _, y in self._operands(x, op)):
            return self._parts(output, access, x, np.ones(self.arena.lanes, np.int64), op)
        joined: dict[tuple[object, ...], Contribution] = {}
        for lane in self._active(access.path):
            here = self.arena.permutation_map(np.full(self.arena.lanes, lane))
            weight = np.zeros(self.arena.lanes, np.int64)
            weight[lane] = 1
            path = self.arena.conj(here.pred(p) for p in self.arena.conjuncts(access.path)
                                   if self.arena.mask_of(p) is None)
            moved = replace(access, index=here.poly(access.index), path=path)
            value = here.real(x)
            for c in self._parts(output, moved, value, weight, op):
                key = (c.part.guard.id, c.part.loops, c.part.leaf.id, tuple(q.key for q in c.at))
                old = joined.get(key)
                joined[key] = c if old is None else replace(
                    c, part=replace(c.part, weight=old.part.weight + c.part.weight))
        return list(joined.values())

    def _active(self, path: Pred) -> list[int]:
        mask = self.facts.mask(path)
        lanes = range(self.arena.lanes) if mask is None else [int(t) for t in np.nonzero(mask)[0]]
        if len(lanes) > _GROUPS:
            raise Unsupported("atomic update", f"more than {_GROUPS} lanes of a CTA contribute reductions over lanes")
        return list(lanes)

    def _parts(self, output: Output, access: Access, x: Real, weight: IntVector, op: str) -> list[Contribution]:
        a = self.arena
        at = self.checker.coordinates_of(access, output)
        out = []
        for scale, y in self._operands(x, op):
            for p in Splitter(a, op, whole=True).split(y, weight):
                scaled = Part(p.guard, p.loops, scale(p.leaf), p.weight)
                for q in self.matcher.guards.unguarded([scaled], op):
                    guard = a.conj((q.guard, access.path))
                    if not self.facts.infeasible(guard):
                        part = Part(guard, (*access.loops, *q.loops), q.leaf, q.weight)
                        out.append(Contribution(part, at, access.instruction))
        return out

    def _operands(self, x: Real, op: str) -> list[tuple[Scale, Real]]:
        """The operands of a sum with their common factors, which must be the same wherever lanes are combined."""
        if op != "add":
            return [(lambda y: y, x)]
        found = scaled_sums(self.arena, x)
        crossing = any(crosses_lanes(y, op) for _, y in found)
        return found if not crossing or self._even(found) else [(lambda y: y, x)]

    def _even(self, found: list[tuple[Scale, Real]]) -> bool:
        return all(scale(self.arena.one).uniform for scale, _ in found)

    # ------------------------------------------------------------------ matching
    def _equal(
        self, output: Output, goals: list[Summand], index: tuple[Poly, ...], op: str, found: list[Contribution]
    ) -> bool:
        """Initial value and contributions are the reference's summands, each as often as it occurs there."""
        if not self._without_start(output.initial(index), op, goals):
            self.why = f"the reference does not combine its result with what {output.name} holds at entry"
            return False
        pieces: list[list[Piece]] = [[] for _ in goals]
        for c in found:
            place = self._place(op, index, goals, c)
            if place is None:
                self.why = f"a contribution at {self.checker.where(c.instruction)} is no summand of the reference"
                return False
            pieces[place[0]].append(place[1])
        return all(self._tiled(op, s, p) for s, p in zip(goals, pieces, strict=True))

    def _without_start(self, start: Real, op: str, goals: list[Summand]) -> bool:
        """Take the initial value out of the reference's summands; False when it is none of them."""
        if start is self.arena.identity(op):
            return True
        for k, s in enumerate(goals):
            if not s.variables and not s.limited and s.body is start:
                del goals[k]
                return True
        return op == "max" and any(self._dominates(s, start) for s in goals)

    def _dominates(self, s: Summand, start: Real) -> bool:
        """Every element gets some value of the summand, and all of these are at least the initial value."""
        low, high = limits(self.arena, s.body)[0], limits(self.arena, start)[1]
        return s.inhabited and low is not None and high is not None and low >= high

    def _place(
        self, op: str, index: tuple[Poly, ...], goals: list[Summand], c: Contribution
    ) -> tuple[int, Piece] | None:
        """The summand that a contribution is one of, and the points where it is."""
        a = self.arena
        data: list[Pred] = []
        plain: list[Pred] = []
        for p in a.conjuncts(c.part.guard):
            (data if is_data(a, p) else plain).append(p)
        guard = a.conj(plain)
        data = [p for p in data if not self.facts.implied(guard, p)]
        leaf = a.sel(a.conj(data), c.part.leaf, a.identity(op)) if data else c.part.leaf
        part = self.matcher.guards.where_it_counts(Part(guard, c.part.loops, leaf, c.part.weight))
        found: tuple[int, Piece] | None = None
        for k, s in enumerate(goals):
            values = self._solve(s, index, c.at, part)
            if values is not None:
                free = [c.at[d] for d in s.index]
                dims = self.checker.ranging((*free, *values), (guard,))
                piece = Piece((guard,), part.loops, dims, (*free, *values), part.weight)
                found = found or (k, piece)
                if len(goals) == 1 or self._inside(s, (*free, *values), part):
                    return k, piece
        return found

    def _inside(self, s: Summand, point: tuple[Poly, ...], part: Part) -> bool:
        """The point lies in the summand's domain, so that it is this summand and no other of the same body."""
        put = self.arena.substitution(dict(zip((*s.index.values(), *s.variables), point, strict=True)))
        counts = self.arena.conj((part.guard, self.arena.lane_mask(part.weight > 0)))
        return all(self.facts.implied(counts, put.pred(p), hard=True) for p in self.arena.conjuncts(s.domain))

    def _solve(self, s: Summand, index: tuple[Poly, ...], at: tuple[Poly, ...], part: Part) -> tuple[Poly, ...] | None:
        """Values of the bound variables that make the summand's body at these coordinates equal to the contribution."""
        a = self.arena
        here = a.substitution({next(iter(v.atoms())): q for v, q in zip(index, at, strict=True) if v.terms})
        body = here.real(s.body)
        fixed = {d: here.poly(e) for d, e in s.determined.items()}
        for values in self._candidates(s, body, fixed, at, part.leaf):
            put = a.substitution(dict(zip(s.variables, values, strict=True)))
            if all(self._same(put.poly(e), at[d], part.guard) for d, e in fixed.items()) and self.normal.equal(
                part.leaf, put.real(body), part.guard, self.facts.implied
            ):
                return values
        return None

    def _same(self, p: Poly, q: Poly, path: Pred) -> bool:
        return p == q or self.facts.implied(path, self.arena.eq(p - q))

    def _candidates(
        self, s: Summand, body: Real, fixed: dict[int, Poly], at: tuple[Poly, ...], leaf: Real
    ) -> Iterator[tuple[Poly, ...]]:
        """Bound variables solved from what is read: the operands of the body, or where the contribution goes."""
        a = self.arena
        pairs = [(x, y) for x in reads(a, body) for y in reads(a, leaf)]
        pairs += [(x, y) for d, e in fixed.items() for x in reads_of(a, e) for y in reads_of(a, at[d])]
        found: dict[int, list[Poly]] = {v: [] for v in s.variables}
        for ((name, pattern), (other, target)), digits in product(pairs, (True, False)):
            solved = invert(pattern, target, s.variables, digits=digits) if name == other else None
            for v, q in (solved or {}).items():
                if q not in found[v]:
                    found[v].append(q)
        yield from choices_of([found[v] for v in s.variables])

    def _tiled(self, op: str, s: Summand, pieces: list[Piece]) -> bool:
        answer = tiles(self.facts, op, s, pieces)
        if answer.holds:
            self.matcher.log.append({"fold": op, **answer.evidence})
            return True
        found = answer.witness or answer.evidence.get("why", "") if pieces else "nothing contributes to a summand"
        self.why = f"the contributions do not run over the reference's index set: {found}"
        return False
