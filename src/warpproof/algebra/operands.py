"""Extrema taken apart: which values of which lanes one is the greatest (or least) of, under which conditions."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from warpproof.algebra.normal import Normaliser
from warpproof.terms import Arena, BoolVector, Pred, Real

Operands = dict[tuple[Pred, Real], BoolVector]
"""By condition at the lane it is taken from and term: [t, l] when the extremum of lane t has the value of lane l."""
_LIMIT = 512
K = TypeVar("K")


def same_extremum(normal: Normaliser, op: str, x: Real, y: Real) -> bool:
    """True when two extrema have the same operands: order and multiplicity do not matter."""
    if x is y:
        return True
    first, second = (_operands(normal, op, z) for z in (x, y))
    return first is not None and second is not None and first.keys() == second.keys() and all(
        (first[key] == second[key]).all() for key in first
    )


def _operands(normal: Normaliser, op: str, x: Real) -> Operands | None:
    """The operands, None when there are too many."""
    a = normal.arena
    out: Operands = {}
    waiting: dict[tuple[int, int], BoolVector] = {(x.id, a.true.id): np.eye(a.lanes, dtype=bool)}
    guards = {a.true.id: a.true}
    for _ in range(_LIMIT):
        if not waiting:
            return out
        key = max(waiting)  # every term after those it is part of
        y, guard, rows = a.reals[key[0]], guards[key[1]], waiting.pop(key)
        for z, g, moved in _parts(a, op, y, guard, rows):
            if z is a.identity(op) or g.op == "false" or not moved.any():
                continue
            if z is y and g is guard:
                _join(out, (g, normal.canonical(z)), moved)
                continue
            guards[g.id] = g
            _join(waiting, (z.id, g.id), moved)
    return None


def _parts(a: Arena, op: str, y: Real, guard: Pred, rows: BoolVector) -> list[tuple[Real, Pred, BoolVector]]:
    """What an extremum is of, one step down; itself for what is none."""
    match y.op:
        case _ if y.op == op:
            return [(z, guard, rows) for z in y.args]
        case "sel" if y.pred is not None:
            return [_guarded(a, z, guard, p, rows) for z, p in zip(y.args, (y.pred, a.negate(y.pred)), strict=True)]
        case "gather" if guard.uniform:
            moved = np.zeros_like(rows)
            np.logical_or.at(moved.T, a.permutation(y), rows.T)
            return [(y.args[0], guard, moved)]
        case "red" if guard.uniform and y.data[0] == op:
            moved = np.zeros_like(rows)
            for column in a.matrix(y).T:
                np.logical_or.at(moved.T, column, rows.T)
            return [(y.args[0], guard, moved)]
        case _:
            return [(y, guard, rows)]


def _guarded(a: Arena, z: Real, guard: Pred, p: Pred, rows: BoolVector) -> tuple[Real, Pred, BoolVector]:
    """One side of a choice; the lanes that a condition names are left out of the rows."""
    rest = []
    for q in a.conjuncts(p):
        lanes = a.mask_of(q)
        if lanes is None:
            rest.append(q)
        else:
            rows = rows & lanes[None, :]
    return z, a.conj((guard, *rest)), rows


def _join(table: dict[K, BoolVector], key: K, rows: BoolVector) -> None:
    old = table.get(key)
    table[key] = rows if old is None else old | rows
