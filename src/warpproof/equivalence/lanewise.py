"""Many lanes as one: a question about each lane of a progression becomes one question with the lane as an unknown.

Scans give every lane a sum over other lanes. Asked lane by lane that is a question per lane; here lane p + s·u of the
progression is written with the unknown u, and what it draws on as a condition between u and the source lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.equivalence.pieces import Part, loads_of
from warpproof.terms import Arena, BoolVector, IntVector, Poly, Pred, Real, TermMap, const

_STEPS: Final = (1, 2, 4, 8, 16, 32)
_FEW_PARTS: Final = 32


@dataclass(frozen=True, slots=True)
class Progression:
    """The lanes first + step·u for 0 ≤ u < count, u being the atom `unknown`."""

    first: int
    step: int
    count: int
    unknown: int

    def lanes(self) -> IntVector:
        """The lanes, ascending."""
        return self.first + self.step * np.arange(self.count)

    def lane(self) -> Poly:
        """The lane as a polynomial in the unknown."""
        return Poly({(self.unknown,): self.step}) + self.first


class AtLane(TermMap):
    """Terms at the lane of a progression: lane vectors become polynomials of the unknown.

    Raises Unsupported where they are not affine on the progression, and for terms of other lanes.
    """

    def __init__(self, arena: Arena, where: Progression) -> None:
        super().__init__(arena, lambda i: None, self._crossing, self._mask, np.arange(arena.lanes))
        self.where, self._own = where, where.lanes()

    def poly(self, p: Poly) -> Poly:
        """The polynomial at the lane."""
        if self.arena.poly_uniform(p):
            return p
        out = Poly({})
        for m, c in p.terms.items():
            t = const(c) if isinstance(c, int) else self._fitted(c)
            for a in m:
                t = t * self.atom(a)
            out = out + t
        return out

    def _fitted(self, c: IntVector) -> Poly:
        values = c[self._own]
        slope = int(values[1] - values[0]) if len(values) > 1 else 0
        if not (values == values[0] + slope * np.arange(len(values))).all():
            raise Unsupported("reduction", "lane-dependent values that are not affine on a progression of lanes")
        return Poly({(self.where.unknown,): slope}) + int(values[0]) if slope else const(int(values[0]))

    def _crossing(self, x: Real) -> Real | None:
        if x.op in ("gather", "red", "state", "cell"):
            raise Unsupported("reduction", "a value of other lanes")
        return None

    def _mask(self, p: Pred) -> Pred | None:
        if p.op != "lanes":
            return None
        a, u = self.arena, Poly({(self.where.unknown,): 1})
        inside = np.nonzero(np.frombuffer(p.data, dtype=bool)[self._own])[0]
        if not len(inside):
            return a.false
        first, last = int(inside[0]), int(inside[-1])
        if last - first + 1 != len(inside):
            raise Unsupported("reduction", "a lane mask that splits a progression of lanes")
        return a.conj((a.le(first - u), a.le(u - last)))


def progressions(arena: Arena, lanes: IntVector, step: int) -> list[Progression] | None:
    """The given lanes as progressions of one step, each with an unknown of its own; None when they are not."""
    out = []
    for residue in range(step):
        mine = lanes[lanes % step == residue]
        if not len(mine):
            continue
        if int(mine[-1] - mine[0]) != step * (len(mine) - 1):
            return None
        atom = arena.fresh("index", f"lane{residue}", 0, len(mine) - 1)
        out.append(Progression(int(mine[0]), step, len(mine), atom.id))
    return out


def own(weight: IntVector, where: Progression) -> BoolVector | None:
    """The lanes of the progression that count themselves once, when no lane counts another; else None."""
    rows, lanes = np.arange(where.count), where.lanes()
    counts = weight[rows, lanes]
    if (weight.sum(axis=1) != counts).any() or counts.max(initial=0) > 1:
        return None
    marked = np.zeros(weight.shape[1], dtype=bool)
    marked[lanes] = counts > 0
    return marked


def drawn(weight: IntVector, where: Progression) -> tuple[IntVector, Poly | None] | None:
    """(lanes, c): lane l counts for lane T of the progression when it is marked in `lanes` and l ≤ T + c (c None: for
    all of them). `weight` has a row per lane of the progression. None when it counts twice, or is not of this form."""
    if weight.max(initial=0) > 1:
        return None
    marked = np.asarray(weight.any(axis=0))
    lanes: IntVector = marked.astype(np.int64)
    if (weight == marked).all():
        return lanes, None
    sources, targets = np.nonzero(marked)[0], where.lanes()
    taken = weight[:, sources].astype(bool)
    count = taken.sum(axis=1)
    if not (taken == (np.arange(len(sources)) < count[:, None])).all():
        return None
    last = np.where(count > 0, sources[np.maximum(count - 1, 0)], np.iinfo(np.int32).min)
    following = np.where(count < len(sources), sources[np.minimum(count, len(sources) - 1)], np.iinfo(np.int32).max)
    low, high = int((last - targets).max()), int((following - targets).min()) - 1
    return (lanes, const(low)) if low <= high else None


def together(arena: Arena, parts: list[Part]) -> list[Part]:
    """The parts, those that are another part's values at other lanes counted there."""
    if len(parts) > _FEW_PARTS:
        return parts
    out: list[Part] = []
    for p in sorted(parts, key=lambda p: -len(np.unique(_offsets(arena, p)))):
        for k, r in enumerate(out):
            source = _source(arena, r, p)
            if source is not None:
                weight = r.weight.copy()
                lanes = np.nonzero(p.weight.any(axis=0))[0]
                np.add.at(weight.T, source[lanes], p.weight.T[lanes])
                out[k] = Part(r.guard, r.loops, r.leaf, weight)
                break
        else:
            out.append(p)
    return out


def _offsets(arena: Arena, p: Part) -> IntVector:
    """The constant part of the index that each lane loads first."""
    found = loads_of(p.leaf)
    c = found[0].data[1].constant if found else 0
    return np.broadcast_to(np.asarray(c, np.int64), (arena.lanes,))


def _source(arena: Arena, r: Part, p: Part) -> IntVector | None:
    """The lanes s with p at lane l the same as r at lane s[l], in all lanes l that count; None when there are none."""
    first, second = loads_of(r.leaf), loads_of(p.leaf)
    if r.loops != p.loops or not first or not second or first[0].data[0] != second[0].data[0]:
        return None
    a, b = _offsets(arena, r), _offsets(arena, p)
    places = {int(v): lane for lane, v in reversed(list(enumerate(a)))}
    counts = p.weight.any(axis=0)
    lead = int(np.argmax(counts))
    if any(int(v) not in places for v in b[counts]):
        return None
    to = np.where(counts, np.arange(arena.lanes), lead)
    source = np.array([places[int(v)] for v in b[to]], np.int64)
    same = arena.permute(r.leaf, source) is arena.permute(p.leaf, to)
    maps = arena.permutation_map(source), arena.permutation_map(to)
    return source if same and maps[0].pred(r.guard) is maps[1].pred(p.guard) else None


def steps(lanes: int) -> tuple[int, ...]:
    """The steps of progressions that are tried, smallest first."""
    return tuple(s for s in _STEPS if s < lanes)
