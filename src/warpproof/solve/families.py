"""Families of bodies: unrolled copies that differ by constants become one body with extra copy dimensions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from warpproof.algebra import FIRST_FIELD, Formula, LaneFields, at_most, conjunction, lane_fields
from warpproof.solve.pieces import FIRST_COPY, Body, bounds
from warpproof.terms import IntVector, Poly

_LIMIT = 1 << 61


def _formula_shape(f: Formula) -> object:
    if f.op in ("le", "eq"):
        return f.op, f.poly.symbolic().key
    return (f.op, *(_formula_shape(a) for a in f.args))


def _shape(b: Body, keep_number: bool) -> object:
    """What two copies share: everything but the constants."""
    coordinates = (*b.index, b.lane, *b.blocks, *b.loops, *((b.number,) if keep_number else ()))
    return (
        b.dims, b.locals_, b.weight, b.exact, b.loop_ids, len(b.index), _formula_shape(b.formula),
        tuple(p.symbolic().key for p in coordinates),
    )


def _constants(b: Body, keep_number: bool) -> list[int]:
    polys = (*b.index, b.lane, *b.formula.polys(), *((b.number,) if keep_number else ()))
    return [int(p.constant) for p in polys]


def merge(
    items: Sequence[Body], *, keep_number: bool, side: Callable[[int], object] = lambda number: None
) -> list[Body]:
    """Bodies with the same points; copies in (nested) arithmetic progressions are merged.

    With `keep_number` the number of the piece stays readable from the merged body (`Body.number`). Pieces whose numbers
    differ in `side` are kept apart.
    """
    groups: dict[object, list[Body]] = {}
    for b in items:
        groups.setdefault((side(int(b.number.constant)), _shape(b, keep_number)), []).append(b)
    out: list[Body] = []
    for group in groups.values():
        rows = [_constants(b, keep_number) for b in group]
        if len(group) == 1 or any(abs(c) > _LIMIT for r in rows for c in r):
            out.extend(group)
            continue
        order = sorted(range(len(group)), key=lambda k: rows[k])
        table = np.asarray([rows[k] for k in order], dtype=np.int64)
        out.extend(_merge_sorted([group[k] for k in order], table, keep_number))
    return out


def _merge_sorted(group: list[Body], table: IntVector, keep_number: bool) -> Iterator[Body]:
    columns = [np.ascontiguousarray(c) for c in table.T if (c != c[0]).any()]
    fields = lane_fields(columns or [table[:, 0]], np.arange(len(group)))
    if fields is not None:
        yield _family(group[0], fields, table, keep_number)
        return
    half = len(group) // 2
    yield from _merge_sorted(group[:half], table[:half], keep_number)
    yield from _merge_sorted(group[half:], table[half:], keep_number)


def _family(first: Body, fields: LaneFields, table: IntVector, keep_number: bool) -> Body:
    if not fields.radices:
        return first
    ids = {FIRST_FIELD - k: FIRST_COPY - k for k in range(len(fields.radices))}
    column = iter(range(table.shape[1]))

    def shift(p: Poly) -> Poly:
        v = np.ascontiguousarray(table[:, next(column)])
        fitted = fields.fit(v)
        assert fitted is not None
        return p.symbolic() + Poly({tuple(ids[a] for a in m): c for m, c in fitted.terms.items()})

    index = tuple(shift(p) for p in first.index)
    lane = shift(first.lane)
    whole = first.formula.map(shift)
    extra = [bounds(ids[f], r) for f, r in zip(fields.ids(), fields.radices)]
    if fields.ragged():
        place = Poly({(ids[f],): s for f, s in zip(fields.ids(), fields.strides)})
        extra.append(at_most(place - (len(fields.lanes) - 1)))
    return replace(
        first, dims=(*first.dims, *ids.values()), index=index, lane=lane, formula=conjunction((whole, *extra)),
        number=shift(first.number) if keep_number else first.number,
    )
