"""Loads of one element that are written with different indices."""

from __future__ import annotations

from typing import Final

from warpproof.algebra import here
from warpproof.solve import Facts
from warpproof.terms import Poly, Pred, Real

_LIMIT: Final = 64


def aligned(facts: Facts, mine: Real, theirs: Real, path: Pred) -> Real:
    """`theirs` with a load of `mine` in place of each load that reads the same element wherever the path holds.

    Pairs are tried in the order of their difference, so that indices that nearly agree come first; at most 64 of them.
    """
    arena = facts.arena
    have, table = loads(mine), dict[Real, Real]()
    known = {x.id for x in have}
    left = _LIMIT
    for y in loads(theirs):
        if y.id in known:
            continue
        near = sorted((x for x in have if x.data[0] == y.data[0]), key=lambda x: len((x.data[1] - y.data[1]).terms))
        for x in near:
            if not left:
                break
            left -= 1
            if _zero(facts, path, x.data[1] - y.data[1]):
                table[y] = x
                break
    return here(arena, table).real(theirs) if table else theirs


def _zero(facts: Facts, path: Pred, d: Poly) -> bool:
    """The difference is zero: row by row, where a stride separates it into rows and columns."""
    for stride in sorted({a for m in d.terms if len(m) > 1 for a in m if facts.arena.atoms[a].kind == "size"}):
        rows, columns = d.split(stride)
        if stride not in {*rows.atoms(), *columns.atoms()}:
            return _zero(facts, path, columns) and _zero(facts, path, rows)
    return not d.terms or facts.implied(path, facts.arena.eq(d), hard=True)


def loads(x: Real) -> list[Real]:
    """The loads of a term outside folds and cross-lane reductions."""
    out, seen, stack = [], set[int](), [x]
    while stack:
        y = stack.pop()
        if y.id in seen:
            continue
        seen.add(y.id)
        if y.op == "load":
            out.append(y)
        elif y.op not in ("fold", "red", "gather"):
            stack.extend(y.args)
    return out
