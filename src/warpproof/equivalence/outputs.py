"""Outputs against the reference: every store writes the reference's value, and every output element is stored.

A store's address is taken apart into output coordinates (proved to be in range); the reference is evaluated at these
coordinates and compared with the stored value under the store's own path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from warpproof.algebra import Normaliser
from warpproof.core import Claim, Reason, Status, Unsupported
from warpproof.domains import Int, Reals, ScalarType
from warpproof.equivalence.matching import Matcher
from warpproof.equivalence.rewriting import Rewriter
from warpproof.machine import Access
from warpproof.solve import Box, Facts, Piece, Problem, covers
from warpproof.terms import Arena, Poly, Pred, Real, const, divide_monomial

Expected = Callable[[tuple[Poly, ...]], Real]


@dataclass(frozen=True, slots=True)
class Output:
    """A compared output: its buffer, shape, element type and reference value by coordinates.

    `symbols` makes fresh coordinates inside the shape, `initial` is what the buffer holds at entry.
    """

    name: str
    shape: tuple[Poly, ...]
    type: ScalarType
    expected: Expected
    symbols: Callable[[], tuple[Poly, ...]]
    initial: Expected


@dataclass(frozen=True, slots=True)
class Located:
    """A store with its output coordinates, `linear` when they are one running index."""

    access: Access
    index: tuple[Poly, ...]
    linear: bool


class Locator:
    """Takes element indices apart into coordinates."""

    def __init__(self, arena: Arena, facts: Facts) -> None:
        self.arena, self.facts = arena, facts

    def locate(self, access: Access, shape: tuple[Poly, ...]) -> Located:
        """The output coordinates of a store, or its running index when strides do not separate."""
        index: Poly = access.index
        if len(shape) <= 1:
            return Located(access, (index,), True)
        rest, out = index, []
        for d in range(len(shape) - 1):
            stride = _product(shape[d + 1 :])
            whole, rest = self._divide(rest, stride)
            out.append(whole)
        out.append(rest)
        path = access.path
        inside = [self.arena.conj((self.arena.le(-j), self.arena.le(j - s + 1))) for j, s in zip(out, shape)]
        if all(self.facts.implied(path, p, hard=True) for p in inside[1:]):
            return Located(access, tuple(out), False)
        return Located(access, (index,), True)

    def _divide(self, p: Poly, stride: Poly) -> tuple[Poly, Poly]:
        k = stride.as_int()
        if k is not None:
            whole = self.arena.floor_div(p, const(k))
            return whole, p - whole * k
        if len(stride.terms) == 1:
            ((m, c),) = stride.terms.items()
            if isinstance(c, int):
                return divide_monomial(p, m, c)
        return const(0), p

    def coordinates(self, place: Located, shape: tuple[Poly, ...]) -> tuple[Poly, ...]:
        """One polynomial per output dimension."""
        if not place.linear or len(shape) <= 1:
            return place.index
        rest, out = place.index[0], []
        for d in range(len(shape) - 1):
            stride = _product(shape[d + 1 :])
            whole = self.arena.floor_div(rest, stride)
            out.append(whole)
            rest = rest - whole * stride
        return (*out, rest)


class OutputChecker(Locator):
    """Compares stores with the reference."""

    def __init__(self, arena: Arena, facts: Facts, dom: Reals, blocks: Sequence[int], where: Callable[[int], str],
                 divisors: Mapping[int, Real] | None = None) -> None:
        super().__init__(arena, facts)
        self.dom, self.blocks, self.where = dom, tuple(blocks), where
        self.normal = Normaliser(arena)
        self.matcher = Matcher(arena, self.normal, facts)
        self.rewriters: list[tuple[Pred, Rewriter]] = []
        self.divisors = divisors or {}
        self.opened: Callable[[Real, Pred], Real] = lambda x, path: x  # puts in what earlier launches left

    # ------------------------------------------------------------------ one output
    def check(self, output: Output, stores: Sequence[Access]) -> list[Claim]:
        """Claims that the stores give the output its reference value everywhere."""
        claims, located = [], []
        for access in stores:
            place = self.locate(access, output.shape)
            located.append(place)
            claims.append(self._value(output, place))
        claims.append(self._coverage(output, located))
        return claims

    def _value(self, output: Output, place: Located) -> Claim:
        where = self.where(place.access.instruction)
        text = f"{output.name} gets the reference's value"
        try:
            coordinates = self.coordinates(place, output.shape)
            wanted = output.expected(coordinates)
            if place.access.value is None:
                raise Unsupported("store", "a store without a value")
            got = self.opened(self.dom.real(place.access.value, output.type), place.access.path)
            rewriter = Rewriter(self.arena, self.matcher, self.facts, wanted)
            self.rewriters.append((place.access.path, rewriter))
            path = place.access.path
            mine = rewriter.rewrite(got, path)
            theirs = rewriter.settle(wanted, path)
        except Unsupported as stuck:
            return Claim("equivalence", text, Status.OPEN, place=where, reason=Reason.UNSUPPORTED, hint=str(stuck))
        if self.normal.equal(mine, theirs, path, self.facts.implied) or self._distributed(mine, theirs, path):
            return Claim("equivalence", text, Status.SHOWN, "normal-form", where,
                         data={"steps": list(self.matcher.log[-4:])})
        hint = rewriter.why or "the normal forms differ"
        if mine.poisoned:
            hint = f"the stored value depends on {_poison(mine)}"
        return Claim("equivalence", text, Status.OPEN, place=where, hint=hint)

    def value_of(self, access: Access, output: Output) -> Real:
        """What a store or update writes, as a number."""
        match access.value:
            case None:
                raise Unsupported("store", "a store without a value")
            case Int(_, p) if not output.type.floating:
                return self.arena.of_int(p)
            case value:
                return self.opened(self.dom.real(value, output.type), access.path)

    def _distributed(self, mine: Real, theirs: Real, path: Pred) -> bool:
        """Second try: sums of the reference distributed over their summands, then matched again."""
        try:
            spread = self.normal.canonical(theirs)
            if spread is theirs:
                return False
            again = Rewriter(self.arena, self.matcher, self.facts, spread)
            self.rewriters.append((path, again))
            return self.normal.equal(again.rewrite(mine, path), spread, path, self.facts.implied)
        except Unsupported:
            return False

    # ------------------------------------------------------------------ coverage
    def _coverage(self, output: Output, located: list[Located]) -> Claim:
        text = f"every element of {output.name} is stored"
        if not located:
            return Claim("equivalence", text, Status.OPEN, hint=f"no store to {output.name} was reached")
        linear = any(p.linear for p in located)
        extents = (_product(output.shape),) if linear else output.shape
        pieces = [
            Piece(self.arena.conjuncts(p.access.path), p.access.loops, self.blocks,
                  (p.access.index,) if linear else p.index)
            for p in located
        ]
        answer = covers(Problem(self.arena, self.facts.launch, Box(extents)), pieces)
        if answer.holds:
            return Claim("equivalence", text, Status.SHOWN, "integer-sets", data=dict(answer.evidence))
        status = Status.BROKEN if answer.holds is False else Status.OPEN
        why = str(answer.evidence.get("why", "coverage is undecided"))
        hint = f"missing: {answer.witness}" if answer.witness else why
        return Claim("equivalence", text, status, hint=hint, data=dict(answer.evidence))


def _product(ps: Sequence[Poly]) -> Poly:
    out = const(1)
    for p in ps:
        out = out * p
    return out


def _poison(x: Real) -> str:
    stack = [x]
    while stack:
        y = stack.pop()
        if y.op == "poison":
            return str(y.data)
        stack.extend(z for z in y.args if z.poisoned)
    return "an undefined value"
