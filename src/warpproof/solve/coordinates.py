"""Addresses taken apart into array coordinates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

from warpproof.solve.facts import Facts
from warpproof.solve.quotients import digits, quotients
from warpproof.terms import Arena, Poly, Pred, const, divide_monomial

_DIVISION_STEPS: Final = 8
_MAX_LEADS: Final = 4


@dataclass(frozen=True, slots=True)
class Coordinates:
    """The coordinates of an element. One may count the elements of several adjacent dimensions: `counts` says of how
    many."""

    index: tuple[Poly, ...]
    counts: tuple[int, ...]

    @property
    def whole(self) -> bool:
        """True when every dimension has its own coordinate."""
        return all(k == 1 for k in self.counts)

    def extents(self, shape: tuple[Poly, ...]) -> tuple[Poly, ...]:
        """The number of elements that each coordinate counts, in an array of this shape."""
        ends = [0, *accumulate(self.counts)]
        return tuple(product(shape[a:b]) for a, b in pairwise(ends))


def coordinates(
    facts: Facts, path: Pred, index: Poly, shape: tuple[Poly, ...], strides: tuple[Poly, ...] | None = None, *,
    bounded: bool,
) -> Coordinates | None:
    """The coordinates of an element offset, each shown to be in range on the path; None when that fails.

    Dimensions whose own coordinates were not shown to be in range count as one, unless `strides` may leave gaps between
    them. `bounded` says that the offset itself is in bounds, so that the first coordinate is.
    """
    ways = list(_ways(facts.arena, index, shape, strides))
    for each in ways:
        if _all_inside(facts, path, each, shape, bounded):
            return Coordinates(tuple(each), (1,) * len(shape))
    found = [c for each in ways if (c := _placed(facts, path, each, shape, strides, bounded)) is not None]
    return max(found, key=lambda c: len(c.index), default=None)


def _all_inside(facts: Facts, path: Pred, each: Sequence[Poly], shape: Sequence[Poly], bounded: bool) -> bool:
    """Every coordinate is in range, the last ones asked for first."""
    arena = facts.arena
    return all(
        (d == 0 and bounded)
        or facts.implied(path, arena.conj((arena.le(-each[d]), arena.le(each[d] - shape[d] + 1))), hard=True)
        for d in reversed(range(len(shape)))
    )


def _ways(
    arena: Arena, index: Poly, shape: tuple[Poly, ...], strides: tuple[Poly, ...] | None
) -> Iterator[list[Poly]]:
    """Ways to take an index apart, the likelier first: by digits where it has quotients in it."""
    digital = strides is None and not index.atoms().isdisjoint(quotients(arena, (index,)))
    if digital:
        yield _in_digits(arena, index, shape)
    steps = strides or tuple(product(shape[d + 1 :]) for d in range(len(shape)))
    found = [_divided(arena, index, steps, k) for k in range(max(map(_heights, steps), default=1))]
    each = (w for k, w in enumerate(found) if w is not None and w not in found[:k])
    yield from sorted(each, key=lambda w: sum(not p.terms for p in w))
    if strides is None and not digital:
        yield _in_digits(arena, index, shape)


def _divided(arena: Arena, index: Poly, steps: Sequence[Poly], lead: int) -> list[Poly] | None:
    """The index taken apart by the steps, the first first; only right where the parts are in range."""
    rest, each = index, []
    for step in steps:
        whole, rest = divide(arena, rest, step, lead)
        each.append(whole)
    return None if rest.terms else each


def _in_digits(arena: Arena, index: Poly, shape: tuple[Poly, ...]) -> list[Poly]:
    """The index taken apart from its last coordinate on, which may be a remainder that its terms do not show."""
    rest, out = index, []
    for extent in reversed(shape[1:]):
        parts = [(*divide(arena, rest - r, extent), r) for r in digits(arena, rest, extent)]
        whole, j = next(((w, r) for w, zero, r in parts if not zero.terms), divide(arena, rest, extent))
        out.append(j)
        rest = whole
    return [rest, *reversed(out)]


def _placed(
    facts: Facts, path: Pred, each: list[Poly], shape: tuple[Poly, ...], strides: tuple[Poly, ...] | None,
    bounded: bool,
) -> Coordinates | None:
    """The coordinates that are in range, neighbours put together until they are."""
    arena = facts.arena
    out, counts = list[Poly](), list[int]()
    carried, extent, count = const(0), const(1), 0
    for d in reversed(range(len(shape))):
        carried, extent, count = carried + each[d] * extent, extent * shape[d], count + 1
        inside = arena.conj((arena.le(-carried), arena.le(carried - extent + 1)))
        if (d == 0 and bounded) or facts.implied(path, inside, hard=True):
            out.insert(0, carried)
            counts.insert(0, count)
            carried, extent, count = const(0), const(1), 0
        elif strides is not None:
            return None
    return Coordinates(tuple(out), tuple(counts)) if not count else None


def _heights(p: Poly) -> int:
    """How many monomials of p have its degree."""
    top = max(map(len, p.terms), default=0)
    return min(_MAX_LEADS, sum(len(m) == top for m in p.terms))


def divide(arena: Arena, p: Poly, stride: Poly, lead: int = 0) -> tuple[Poly, Poly]:
    """(q, r) with p = q·stride + r, moving what a leading term of the stride divides into q.

    In the product of two sums there are several that may lead; in p some of their multiples may have cancelled.
    """
    k = stride.as_int()
    if k is not None:
        whole = arena.floor_div(p, const(k)) if k > 0 else const(0)
        return whole, p - whole * k
    order = sorted(stride.terms, key=lambda m: (len(m), m), reverse=True)
    first = order[lead % _heights(stride)]
    c = stride.terms[first]
    if not isinstance(c, int):
        return const(0), p
    if len(stride.terms) == 1:
        return divide_monomial(p, first, c)
    whole = const(0)
    for _ in range(_DIVISION_STEPS):
        more, _ = divide_monomial(p - whole * stride, first, c)
        if not more.terms:
            break
        whole = whole + more
    return whole, p - whole * stride


def product(ps: Sequence[Poly]) -> Poly:
    """The product, 1 when there is nothing to multiply."""
    out = const(1)
    for p in ps:
        out = out * p
    return out
