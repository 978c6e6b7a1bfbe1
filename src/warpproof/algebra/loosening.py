"""Comparisons that were divided by a factor, multiplied by it again where that makes them affine in lane fields."""

from __future__ import annotations

from typing import Final

import numpy as np

from warpproof.algebra.constraints import Formula, at_most, conjunction, disjunction
from warpproof.algebra.lane_fields import LaneFields
from warpproof.terms import IntVector, Poly

_FACTORS: Final = (2, 4, 8, 16, 32, 64, 3, 5, 6, 7, 12, 24, 48)


def loosened(f: Formula, fields: LaneFields) -> Formula:
    """A formula of the same meaning at the lanes of the fields, with comparisons affine in the fields where possible.

    8·q + x − y ≤ 0 is kept as q + v ≤ 0 with v = ⌈(x − y) / 8⌉, and v is no affine function of the lane. For an
    integer q and any u with g·(v − 1) < u ≤ g·v, q + v ≤ 0 says the same as g·q + u ≤ 0; so an affine u is looked for.
    """
    if f.op == "le":
        return _affine(f, fields)
    if f.op in ("and", "or"):
        return (conjunction if f.op == "and" else disjunction)(loosened(a, fields) for a in f.args)
    return f


def _affine(f: Formula, fields: LaneFields) -> Formula:
    v = f.poly.terms.get((), 0)
    rest = f.poly - Poly({(): v})
    if isinstance(v, int) or fields.fit(v) is not None or fields.uniform(rest) is None:
        return f
    for g in _FACTORS:
        u = _between(v, g, fields)
        if u is not None:
            return at_most(rest * g + Poly({(): u}))
    return f


def _between(v: IntVector, g: int, fields: LaneFields) -> IntVector | None:
    """A vector u, affine in the fields on their lanes, with g·(v − 1) < u ≤ g·v there."""
    here = v[fields.lanes] * g
    place = np.arange(len(here))
    digits = np.stack([place // s % r for s, r in zip(fields.strides, fields.radices, strict=True)], axis=1)
    slopes = np.rint(np.linalg.lstsq(np.column_stack([digits, np.ones(len(here))]), here, rcond=None)[0][:-1])
    line = digits @ slopes.astype(np.int64)
    off = here - line
    if int(off.max()) - int(off.min()) > g - 1:
        return None
    out = np.zeros_like(v)
    out[fields.lanes] = line + int(off.min())
    return out


__all__ = ["loosened"]
