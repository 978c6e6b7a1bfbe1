"""Addresses that name different variables in different lanes or cases, taken apart."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from warpproof.core import Unsupported
from warpproof.terms import Arena, BoolVector, Poly, Pred


def by_base(arena: Arena, address: Poly, bases: Container[int], active: BoolVector) -> list[tuple[BoolVector, Poly]]:
    """Disjoint lane sets that cover `active`, each with the address as it is there and in its other lanes some value
    it has there; empty when all lanes use the same bases."""
    found: list[tuple[int, Any]] = []
    for m, c in address.terms.items():
        if any(a in bases for a in m):
            if len(m) != 1:
                raise Unsupported("address", "a base that is multiplied")
            found.append((m[0], c))
    if len(found) < 2:
        return []
    rows = np.stack([np.broadcast_to(np.asarray(c, dtype=np.int64), (arena.lanes,)) for _, c in found])
    chosen = rows[:, active]
    if not ((chosen == 0) | (chosen == 1)).all() or not (chosen.sum(axis=0) == 1).all():
        raise Unsupported("address", "an address without one clear base")
    every = np.arange(arena.lanes)
    out = []
    for row in rows:
        mask = active & (row == 1)
        if mask.any():
            fill = np.where(mask, every, int(np.argmax(mask)))
            out.append((mask, arena.permutation_map(fill).poly(address)))
    return out


def by_choice(arena: Arena, address: Poly, bases: Container[int], known: Pred) -> list[tuple[Pred, Poly]]:
    """The sides of a choice between variables (`q = inside ? a + i : b + j`), each with its condition; empty if none.

    The conditions exclude each other and one of them holds, so that an access is one access under each; a side that
    what is known excludes is left out.
    """
    for k in sorted(address.atoms()):
        atom = arena.atoms[k]
        if atom.kind != "phi" or atom.pred is None or not any(a in bases for q in atom.args for a in q.atoms()):
            continue
        sides = zip((atom.pred, arena.negate(atom.pred)), atom.args, strict=True)
        return [
            (p, arena.substitute_poly(address, {k: q})) for p, q in sides if not arena.implies(known, arena.negate(p))
        ]
    return []
