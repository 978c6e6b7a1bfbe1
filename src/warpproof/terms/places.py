"""Values with their positions: what argmax and argmin are folds of.

A placed value is a pair (v, i), greater by v, and of equal values by the smaller i. This is a total order, so `max` of
placed values is associative, commutative and idempotent like that of numbers, over iterations and over lanes; −∞ as a
node is below all of them. `place` is the position of a greatest pair.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warpproof.terms.atoms import Range
from warpproof.terms.poly import Poly
from warpproof.terms.reals import RealArena

if TYPE_CHECKING:
    from warpproof.terms.nodes import Pred, Real

Ends = tuple[tuple[int, tuple[Poly, ...]], ...]
"""Bound variables, each with values between which it runs; none when they are not evident."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """Placed values that are part of an extremum: the condition under which they are, the value, positions between
    which all of theirs lie, and whether they are taken from other lanes (then without their condition)."""

    guard: Pred
    value: Real
    positions: tuple[Poly, ...]
    elsewhere: bool


class PlaceArena(RealArena):
    """Owner of placed values."""

    def placed(self, value: Real, position: Poly) -> Real:
        """The pair of a value and its position; a choice of values is a choice of pairs."""
        if value.op == "sel" and value.pred is not None:
            a, b = (self.placed(x, position) for x in value.args)
            return self.sel(value.pred, a, b)
        return self.real("placed", (self._near(value),), position)

    def place(self, x: Real) -> Poly:
        """The position of the greatest of the placed values that x is made of."""
        if x.op == "placed":
            position: Poly = x.data
            return position
        if x.poisoned:
            return self.variable(self.fresh("unknown", "the position of an undefined value"))
        return self.derived("place", (), real=x)

    def place_range(self, x: Real) -> Range:
        """An interval that contains the positions of all placed values of a term."""
        out: Range | None = None
        for leaf in self.leaves(x):
            for p in leaf.positions:
                low, high = self.bounds(p)
                if out is not None:
                    low = None if low is None or out[0] is None else min(low, out[0])
                    high = None if high is None or out[1] is None else max(high, out[1])
                out = low, high
        return out or (None, None)

    def leaves(self, x: Real) -> Iterator[Leaf]:
        """The placed values of an extremum; one of unknown position for what is no placed value."""
        seen: set[tuple[int, int, Ends, bool]] = set()
        stack: list[tuple[Real, Pred, Ends, bool]] = [(x, self.true, (), False)]
        while stack:
            y, guard, ends, elsewhere = stack.pop()
            if (y.id, guard.id, ends, elsewhere) in seen or y.op == "inf":
                continue
            seen.add((y.id, guard.id, ends, elsewhere))
            if y.op == "placed":
                yield Leaf(guard, y.args[0], tuple(self._at_ends(y.data, ends)), elsewhere)
            elif y.op == "fold" and y.pred is not None:
                stack.append((y.args[0], guard, (*ends, (y.data[1], self._ends(y.pred, y.data[1]))), elsewhere))
            elif y.op == "sel" and y.pred is not None and not elsewhere and not ends:
                sides = (self.conj((guard, p)) for p in (y.pred, self.negate(y.pred)))
                stack.extend((z, g, ends, elsewhere) for z, g in zip(y.args, sides, strict=True) if g.op != "false")
            elif y.op in ("max", "sel"):
                stack.extend((z, guard, ends, elsewhere) for z in y.args)
            elif y.op in ("gather", "red"):
                stack.append((y.args[0], self.true, ends, True))
            else:
                yield Leaf(guard, y, (self.variable(self.fresh("undef", "a position")),), elsewhere)

    @abstractmethod
    def substitute_poly(self, p: Poly, atoms: Mapping[int, Poly]) -> Poly:
        """p with atoms replaced (see the mapping module)."""

    def _at_ends(self, p: Poly, ends: Ends) -> list[Poly]:
        """The position at the ends of the intervals that its bound variables run over, where it is linear in each; one
        that is left becomes an unknown of its own, as folds next to each other have the same bound variable."""
        out = [p]
        for b, values in reversed(ends):
            if values and all(b not in self.poly_free(r) for q in out for r in q.split(b)):
                out = [rest + slope * v for q in out for slope, rest in (q.split(b),) for v in values]
        left = {b for b, _ in ends if any(b in self.poly_free(q) for q in out)}
        own = {b: self.variable(self.fresh("index", "a position's bound variable")) for b in sorted(left)}
        return [self.substitute_poly(q, own) for q in out] if own else out

    def _ends(self, domain: Pred, b: int) -> tuple[Poly, ...]:
        """Values with all of the domain between them."""
        lows: list[Poly] = []
        highs: list[Poly] = []
        for p in self.conjuncts(domain):
            if p.op == "dom" and p.data[0] == b:
                slope, rest = p.data[1].split(b)
                low = self.bounds(slope)[0]
                if b not in self.poly_free(rest) | self.poly_free(slope) and low is not None and low >= 1:
                    return Poly({}), self.floor_div(-rest, slope) + 1
            slope, rest = p.data.split(b) if p.op == "le" else (Poly({}), Poly({}))
            k = slope.as_int()
            if k in (1, -1) and b not in self.poly_free(rest):
                (highs if k == 1 else lows).append(rest * -k)
        return (lows[0], highs[0]) if lows and highs else ()
