"""Addresses that name different variables in different lanes, taken apart by lane."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np

from warpproof.core import Unsupported
from warpproof.terms import Arena, BoolVector, Poly


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
