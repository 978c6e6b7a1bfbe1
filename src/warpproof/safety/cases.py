"""Concrete cases that a claim which was not shown suggests: sizes and a block for the counterexample search to try."""

from __future__ import annotations

from typing import Any

from warpproof.solve import refute_le
from warpproof.solve.facts import Facts
from warpproof.terms import Arena, Pred

_AXES = ("block.x", "block.y", "block.z")


def case_against(arena: Arena, facts: Facts, path: Pred, claim: Pred) -> dict[str, Any]:
    """{"case": {sizes, block}} where the path holds and the claim may not; empty when none was found."""
    for p in arena.conjuncts(claim):
        if p.op != "le" or facts.implied(path, p):
            continue
        found = refute_le(arena, p.data, (*facts.base, *arena.conjuncts(path)), mask=facts.mask(path), timeout_s=2.0)
        if found is None:
            continue
        sizes: dict[str, int] = {}
        block = {axis: 0 for axis in _AXES}
        for atom in arena.atoms:
            low = arena.ranges.get(atom.id, (None, None))[0]
            value = found.values.get(atom.id, max(low or 0, 1))
            if atom.kind == "size":
                sizes[atom.name] = value
            elif atom.kind == "block" and atom.id in found.values:
                block[atom.name] = value
        return {"case": {"sizes": sizes, "block": tuple(block[axis] for axis in _AXES)}}
    return {}
