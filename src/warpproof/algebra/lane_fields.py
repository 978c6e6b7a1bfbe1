"""Lane vectors as affine functions of lane fields: a few bounded integers instead of one value per thread.

A set of lanes is written as positions q = 0, 1, … in ascending lane order, and q as a mixed-radix number with digits
("fields") f0 + r0·f1 + r0·r1·f2 + …. The coarsest such fields in which all vectors of a problem are affine turn a
statement about every lane into one statement with a few more bounded unknowns: `t`, `t % 16` with `t // 16`,
`32·(t % 4) + t // 4`, and thread blocks of any shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.terms import Coef, IntVector, Poly

FIRST_FIELD: Final = -1
MAX_FIELDS: Final = 6
MAX_PARTS: Final = 32
_FEW_VALUES: Final = 4


@dataclass(frozen=True, slots=True)
class LaneFields:
    """Digits of the position of a lane in `lanes`; digit k is the unknown with the negative id `FIRST_FIELD - k`."""

    lanes: IntVector
    radices: tuple[int, ...]

    @property
    def strides(self) -> tuple[int, ...]:
        """The place value of each field."""
        out, s = [], 1
        for r in self.radices:
            out.append(s)
            s *= r
        return tuple(out)

    def ids(self) -> tuple[int, ...]:
        """The ids of the fields, least significant first."""
        return tuple(FIRST_FIELD - k for k in range(len(self.radices)))

    def position(self) -> Poly:
        """The position of a lane as a polynomial over the fields."""
        return Poly({(f,): s for f, s in zip(self.ids(), self.strides)})

    def ragged(self) -> bool:
        """True when some digit combinations name no lane (the position must then be bounded as well)."""
        total = 1
        for r in self.radices:
            total *= r
        return total > len(self.lanes)

    def fit(self, c: Coef) -> Poly | None:
        """The affine polynomial over the fields that equals this lane vector in every lane of the set, if any."""
        if isinstance(c, int):
            return Poly({(): c})
        v = c[self.lanes]
        base = int(v[0])
        slopes = [int(v[s]) - base if s < len(v) else 0 for s in self.strides]
        q = np.arange(len(v), dtype=np.int64)
        want = np.full(len(v), base, dtype=np.int64)
        for r, s, b in zip(self.radices, self.strides, slopes):
            want += b * (q // s % r)
        if not np.array_equal(want, v):
            return None
        return Poly({(): base, **{(f,): b for f, b in zip(self.ids(), slopes)}})

    def uniform(self, p: Poly) -> Poly | None:
        """The polynomial with every lane vector replaced by its affine function of the fields, if there is one."""
        if p.uniform():
            return p
        out = Poly({m: c for m, c in p.terms.items() if isinstance(c, int)})
        for m, c in p.terms.items():
            if isinstance(c, int):
                continue
            a = self.fit(c)
            if a is None:
                return None
            out = out + Poly({tuple(sorted(n + m)): k for n, k in a.terms.items()})
        return out


def vectors(polys: Iterable[Poly]) -> list[IntVector]:
    """The distinct lane-vector coefficients of some polynomials."""
    found: dict[bytes, IntVector] = {}
    for p in polys:
        for c in p.terms.values():
            if not isinstance(c, int):
                found.setdefault(c.tobytes(), c)
    return list(found.values())


def coarsest_radices(rows: IntVector) -> tuple[int, ...] | None:
    """The coarsest mixed radix in which every row (one per vector) could be affine; None when it needs many digits."""
    radices: list[int] = []
    while rows.shape[1] > 1:
        if len(radices) == MAX_FIELDS:
            return None
        step = np.diff(rows, axis=1)
        change = np.flatnonzero((step != step[:, :1]).any(axis=0))
        radix = int(change[0]) + 1 if change.size else rows.shape[1]
        radices.append(radix)
        rows = rows[:, ::radix]
    return tuple(radices)


def lane_fields(found: list[IntVector], lanes: IntVector) -> LaneFields | None:
    """The coarsest fields in which all vectors are affine on `lanes` (ascending), or None when there are none."""
    if not found or len(lanes) < 2:
        return LaneFields(lanes, ())
    radices = coarsest_radices(np.stack([v[lanes] for v in found]))
    if radices is None:
        return None
    fields = LaneFields(lanes, radices)
    return fields if all(fields.fit(v) is not None for v in found) else None


def affine_parts(found: list[IntVector], lanes: IntVector, limit: int = MAX_PARTS) -> list[LaneFields]:
    """Lane fields for the lanes, taken apart where the vectors are not affine on all of them: in halves, or else, where
    a vector of few values is not affine by itself (a rounded quotient, a sign), by its values.

    Raises `Unsupported` when more than `limit` parts are needed.
    """
    out = _parts(found, lanes, limit, _halves)
    if out is None:
        out = _parts(found, lanes, limit, lambda found, part: _by_value(found, part) or _halves(found, part))
    if out is None:
        raise Unsupported("integer sets", "lane-dependent values that are not affine in lane fields")
    return out


Split = Callable[[list[IntVector], IntVector], list[IntVector]]


def _parts(found: list[IntVector], lanes: IntVector, limit: int, split: Split) -> list[LaneFields] | None:
    out: list[LaneFields] = []
    stack = [lanes]
    while stack:
        part = stack.pop()
        fields = lane_fields(found, part)
        if fields is not None:
            out.append(fields)
        else:
            stack += split(found, part)
        if len(out) + len(stack) > limit:
            return None
    return out


def _halves(found: list[IntVector], lanes: IntVector) -> list[IntVector]:
    return [lanes[len(lanes) // 2 :], lanes[: len(lanes) // 2]]


def _by_value(found: list[IntVector], lanes: IntVector) -> list[IntVector]:
    for v in found:
        values = np.unique(v[lanes])
        if 1 < len(values) <= _FEW_VALUES and lane_fields([v], lanes) is None:
            return [lanes[v[lanes] == k] for k in values[::-1]]
    return []


def distinct_lanes(found: list[IntVector], lanes: IntVector) -> IntVector:
    """One lane for each distinct combination of vector values on `lanes`."""
    if not found:
        return lanes[:1]
    _, first = np.unique(np.stack([v[lanes] for v in found]), axis=1, return_index=True)
    return lanes[np.sort(first)]
