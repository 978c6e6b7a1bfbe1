"""Outputs against the reference: every store writes the reference's value, and every output element is stored.

A store's address is taken apart into output coordinates (proved to be in range); the reference is evaluated at these
coordinates and compared with the stored value under the store's own path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from warpproof.algebra import Cases, Normaliser, support
from warpproof.core import Claim, Reason, Status, Unsupported
from warpproof.domains import Choice, Int, Reals, ScalarType, Value
from warpproof.equivalence.alignment import aligned
from warpproof.equivalence.differences import difference
from warpproof.equivalence.matching import Matcher
from warpproof.equivalence.moments import Moments
from warpproof.equivalence.places import as_places, has_places
from warpproof.equivalence.rewriting import Rewriter
from warpproof.equivalence.single_lanes import SingleLanes
from warpproof.machine import Access, Upcoming
from warpproof.solve import (
    Answer,
    Box,
    Coordinates,
    Facts,
    Piece,
    Problem,
    coordinates,
    covers,
    flattened,
    in_order,
    product,
    regrouped,
    without_other_blocks,
)
from warpproof.terms import Arena, Poly, Pred, Real, const

_SPLITS: Final = 4
_WRITTEN_OUT: Final = ["every lane by itself, reductions written out"]
Expected = Callable[[tuple[Poly, ...]], Real]
Dimensions = Callable[[Sequence[Access]], tuple[int, ...]]
"""What tells the CTAs of some accesses apart: block indices or tickets."""


@dataclass(frozen=True, slots=True)
class Output:
    """A compared output: its buffer, shape, element type and reference value by coordinates.

    `symbols` makes fresh coordinates inside the shape, `initial` is what the buffer holds at entry. `strides` are given
    when they leave gaps between elements.
    """

    name: str
    shape: tuple[Poly, ...]
    type: ScalarType
    expected: Expected
    symbols: Callable[[], tuple[Poly, ...]]
    initial: Expected
    strides: tuple[Poly, ...] | None = None


@dataclass(frozen=True, slots=True)
class Located:
    """An access and where it lies in its array."""

    access: Access
    at: Coordinates


class Locator:
    """Takes element indices apart into coordinates."""

    def __init__(self, arena: Arena, facts: Facts) -> None:
        self.arena, self.facts = arena, facts

    def locate(self, access: Access, shape: tuple[Poly, ...], strides: tuple[Poly, ...] | None = None) -> Located:
        """The coordinates of an access in bounds; one running index when the strides may let elements overlap."""
        flat = Located(access, Coordinates((access.index,), (max(1, len(shape)),)))
        if (len(shape) <= 1 and strides is None) or (strides is not None and not self._nested(shape, strides)):
            return flat
        found = coordinates(self.facts, access.path, access.index, shape, strides, bounded=strides is None)
        return flat if found is None else Located(access, found)

    def _nested(self, shape: tuple[Poly, ...], strides: tuple[Poly, ...]) -> bool:
        """Each stride steps over all that later dimensions reach, so different coordinates are different elements."""
        extent = const(1)
        for size, step in zip(reversed(shape), reversed(strides), strict=True):
            if not self.facts.implied(self.arena.true, self.arena.le(extent - step), hard=True):
                return False
            extent = extent + (size - 1) * step
        return True

    def coordinates(self, place: Located, shape: tuple[Poly, ...]) -> tuple[Poly, ...]:
        """One polynomial per output dimension."""
        out: list[Poly] = []
        first = 0
        for whole, count in zip(place.at.index, place.at.counts, strict=True):
            rest = whole
            for d in range(first, first + count - 1):
                stride = product(shape[d + 1 : first + count])
                q = self.arena.floor_div(rest, stride)
                out.append(q)
                rest = rest - q * stride
            out.append(rest)
            first += count
        return tuple(out)


class OutputChecker(Locator):
    """Compares stores with the reference."""

    def __init__(self, arena: Arena, facts: Facts, dom: Reals, blocks: Sequence[int], where: Callable[[int], str],
                 divisors: Mapping[int, Real] | None = None, dims: Dimensions | None = None, *,
                 numeric: bool = False, tickets: Sequence[int] = ()) -> None:
        """`numeric` says that every size is a number; `tickets` are numbers that each CTA draws one of."""
        super().__init__(arena, facts)
        self.dom, self.blocks, self.where = dom, tuple(blocks), where
        self.normal = Normaliser(arena)
        self.matcher = Matcher(arena, self.normal, facts)
        self.moments = Moments(arena, facts, self.normal)
        self.single_lanes = SingleLanes(arena, self.normal, facts, self.blocks)
        self.rewriters: list[tuple[Pred, Rewriter]] = []
        self.compared: list[tuple[Pred, Real]] = []  # the reference's terms as it gives them, each with its path
        self.divisors, self.numeric = divisors or {}, numeric
        self.doing = ""  # what is being compared, for messages
        self.opened: Callable[[Real, Pred], Real] = lambda x, path: x  # puts in what earlier launches left
        self.dims: Dimensions = dims or (lambda accesses: self.blocks)
        self.tickets = frozenset(tickets)

    def ranging(self, polys: Sequence[Poly], preds: Sequence[Pred]) -> tuple[int, ...]:
        """What the CTAs are told apart by where each of them does something: block indices, or one ticket.

        Which CTA draws which ticket is open, so that there is no telling which pairs of both exist.
        """
        used = set(support(self.arena, polys, preds))
        tickets = used & self.tickets
        if tickets and (len(tickets) > 1 or used & set(self.blocks)):
            raise Unsupported("tickets", "what a CTA does depends on a ticket and on its block index or another ticket")
        return tuple(tickets) or self.blocks

    # ------------------------------------------------------------------ one output
    def check(self, output: Output, stores: Sequence[Access]) -> list[Claim]:
        """Claims that the stores give the output its reference value everywhere."""
        claims, located = [], []
        for access in stores:
            place = self.locate(access, output.shape, output.strides)
            if not place.at.whole and output.strides is not None:
                raise Unsupported("output", f"the strides of {output.name} leave gaps, and a store may lie in one")
            located.append(place)
            claims.append(self._value(output, place))
        claims.append(self._coverage(output, located))
        return claims

    def _value(self, output: Output, place: Located) -> Claim:
        where = self.where(place.access.instruction)
        self.doing = f"{output.name} at {where}"
        text = f"{output.name} gets the reference's value"
        try:
            coordinates = self.coordinates(place, output.shape)
            wanted = output.expected(coordinates)
            stored = self._stored(place.access.value, output.type, place.access.path)
            got = self.told(stored, place.access.path)
            if has_places(got):
                wanted = as_places(self.arena, wanted)
            rewriter = Rewriter(self.arena, self.matcher, self.facts, wanted)
            self.rewriters.append((place.access.path, rewriter))
            self.compared.append((place.access.path, wanted))
            path = place.access.path
            if self.numeric and self.single_lanes.equal(got, wanted, path):
                return Claim("equivalence", text, Status.SHOWN, "normal-form", where, data={"steps": _WRITTEN_OUT})
            mine = rewriter.rewrite(got, path)
            theirs = rewriter.settle(wanted, path)
        except Unsupported as stuck:
            return Claim("equivalence", text, Status.OPEN, place=where, reason=Reason.UNSUPPORTED, hint=str(stuck))
        if (self.same(mine, theirs, path) or self._distributed(mine, theirs, path)
                or self._where_stored(got, wanted, path)):
            return Claim("equivalence", text, Status.SHOWN, "normal-form", where,
                         data={"steps": list(self.matcher.log[-4:])})
        if not self.numeric and self.single_lanes.equal(got, wanted, path):
            return Claim("equivalence", text, Status.SHOWN, "normal-form", where, data={"steps": _WRITTEN_OUT})
        hint = rewriter.why or difference(self.arena, mine, theirs)
        if mine.poisoned:
            hint = f"the stored value depends on {_poison(mine)}"
        return Claim("equivalence", text, Status.OPEN, place=where, hint=hint)

    def told(self, x: Real, path: Pred) -> Real:
        """A kernel term with what earlier launches left put in, and merged means as quotients of sums."""
        return self.moments.merged(self.opened(x, path), path)

    def value_of(self, access: Access, output: Output) -> Real:
        """What a store or update writes, as a number; an integer may be one of several that wrap to the same bits."""
        match access.value:
            case None:
                raise Unsupported("store", "a store without a value")
            case Int(_, p) if not output.type.floating:
                return self.arena.of_int(p)
            case value:
                return self.opened(self.dom.real(value, output.type), access.path)

    def coordinates_of(self, access: Access, output: Output) -> tuple[Poly, ...]:
        """The coordinates of a store or update, one per dimension."""
        place = self.locate(access, output.shape, output.strides)
        if not place.at.whole and output.strides is not None:
            raise Unsupported("output", f"the strides of {output.name} leave gaps, and an access may lie in one")
        return self.coordinates(place, output.shape)

    def _stored(self, value: Value | None, ty: ScalarType, path: Pred) -> Real:
        """What a store leaves in an element: the number its bits stand for."""
        match value:
            case None:
                raise Unsupported("store", "a store without a value")
            case Choice(_, pred, a, b) if ty.kind in ("s", "u"):
                sides = ((a, pred), (b, self.arena.negate(pred)))
                x, y = (self._stored(v, ty, self.arena.conj((path, p))) for v, p in sides)
                return self.arena.sel(pred, x, y)
            case Int(_, p) if ty.kind in ("s", "u"):
                return self._number(p, ty, path)
            case _:
                return self.dom.real(value, ty)

    def _number(self, p: Poly, ty: ScalarType, path: Pred) -> Real:
        low, high = (-(1 << (ty.width - 1)), 1 << (ty.width - 1)) if ty.kind == "s" else (0, 1 << ty.width)
        if p.is_constant() and (isinstance(p.constant, int) or ty.width < 64):
            p = const((p.constant - low) % (high - low) + low)
        fits = self.arena.conj((self.arena.le(low - p), self.arena.lt(p, const(high))))
        if not self.facts.implied(path, fits, hard=True):
            raise Unsupported("integer output", f"its value may not fit {ty}")
        return self.arena.of_int(p)

    def _same(self, mine: Real, theirs: Real, path: Pred) -> bool:
        """Equal on the path. Integer sets are asked only when certificates leave a condition undecided; then loads are
        aligned, and cases of float comparisons told apart."""
        def sure(p: Pred, q: Pred) -> bool:
            return self.facts.implied(p, q, hard=True)

        if self.normal.equal(mine, theirs, path, self.facts.implied) or self.normal.equal(mine, theirs, path, sure):
            return True
        near = aligned(self.facts, mine, theirs, path)
        if near is not theirs and self.normal.equal(mine, near, path, sure):
            return True
        return Cases(self.normal, self.facts.implied).equal(mine, near, path)

    def _where_stored(self, got: Real, wanted: Real, path: Pred) -> bool:
        """Another try where some lanes do not store: what they hold does not matter, so one that stores stands in."""
        mask = self.facts.mask(path)
        if mask is None or mask.all() or not mask.any() or got.poisoned:
            return False
        to = np.where(mask, np.arange(self.arena.lanes), int(np.argmax(mask)))
        try:
            here = self.arena.permutation_map(to).pred(path)
            mine, theirs = self.arena.permute(got, to), self.arena.permute(wanted, to)
            again = Rewriter(self.arena, self.matcher, self.facts, theirs)
            self.rewriters.append((here, again))
            return self.normal.equal(again.rewrite(mine, here), again.settle(theirs, here), here, self.facts.implied)
        except Unsupported:
            return False

    def _distributed(self, mine: Real, theirs: Real, path: Pred) -> bool:
        """Second try: sums of the reference distributed over their summands, then matched again."""
        try:
            spread = self.normal.canonical(theirs)
            if spread is theirs:
                return False
            again = Rewriter(self.arena, self.matcher, self.facts, spread)
            self.rewriters.append((path, again))
            return self.same(again.rewrite(mine, path), spread, path)
        except Unsupported:
            return False

    def same(self, x: Real, y: Real, path: Pred, splits: int = _SPLITS) -> bool:
        """x = y wherever the path holds, also by cases of the integer conditions inside x."""
        if self._same(x, y, path):
            return True
        condition = next(iter(self._undecided(x, path)), None) if splits else None
        if condition is None or x.poisoned:
            return False
        return all(self._same_where(x, y, path, p, splits) for p in (condition, self.arena.negate(condition)))

    def _same_where(self, x: Real, y: Real, path: Pred, p: Pred, splits: int) -> bool:
        here = self.arena.conj((path, p))
        if here.op == "false" or self.facts.infeasible(here):
            return True
        decided = Upcoming(self.dom, p).real
        return self.same(decided(x), decided(y), here, splits - 1)

    def _undecided(self, x: Real, path: Pred) -> Iterator[Pred]:
        """Comparisons of integers, the same in all lanes and iterations, that choices inside x ask for."""
        seen: set[int] = set()
        stack = [x]
        while stack:
            y = stack.pop()
            if y.id in seen or y.op in ("gather", "red", "fold"):
                continue
            seen.add(y.id)
            for p in self.arena.conjuncts(y.pred) if y.op == "sel" and y.pred is not None else ():
                plain = p.op in ("le", "eq", "ne") and p.uniform and not p.free
                if plain and not any(self.facts.implied(path, q) for q in (p, self.arena.negate(p))):
                    yield p
            stack.extend(y.args)

    # ------------------------------------------------------------------ coverage
    def _coverage(self, output: Output, located: list[Located]) -> Claim:
        text = self.doing = f"every element of {output.name} is stored"
        if not located:
            return Claim("equivalence", text, Status.OPEN, hint=f"no store to {output.name} was reached")
        split = {p.at.counts for p in located}
        counts = split.pop() if len(split) == 1 else (len(output.shape),)
        extents, first = [], 0
        for count in counts:
            extents.append(product(output.shape[first : first + count]))
            first += count
        try:
            dims = self.ranging([p.access.index for p in located], [p.access.path for p in located])
        except Unsupported as stuck:
            return Claim("equivalence", text, Status.OPEN, hint=str(stuck))
        pieces = [
            Piece(self.arena.conjuncts(p.access.path), p.access.loops, dims,
                  p.at.index if p.at.counts == counts else (p.access.index,))
            for p in located
        ]
        answer = self._covers(pieces, tuple(extents))
        if answer.holds is None and in_order(self.facts, pieces, extents):
            return Claim("equivalence", text, Status.SHOWN, "intervals")
        if answer.holds:
            return Claim("equivalence", text, Status.SHOWN, "integer-sets", data=dict(answer.evidence))
        status = Status.BROKEN if answer.holds is False else Status.OPEN
        why = str(answer.evidence.get("why", "coverage is undecided"))
        hint = f"missing: {answer.witness}" if answer.witness else why
        return Claim("equivalence", text, status, hint=hint, data=dict(answer.evidence))

    def _covers(self, pieces: list[Piece], extents: tuple[Poly, ...]) -> Answer:
        """Whether the pieces touch every element, counted by coordinates or digits where they have such."""
        pieces, launch = regrouped(self.facts, pieces)
        launch = without_other_blocks(self.arena, launch, (b for p in pieces for b in p.blocks))
        flat = flattened(self.facts, pieces, extents, self.arena.true)
        if flat is not None:
            return covers(Problem(self.arena, launch, flat[1]), flat[0])
        return covers(Problem(self.arena, launch, Box(extents)), pieces)


def _poison(x: Real) -> str:
    stack = [x]
    while stack:
        y = stack.pop()
        if y.op == "poison":
            return str(y.data)
        stack.extend(z for z in y.args if z.poisoned)
    return "an undefined value"
