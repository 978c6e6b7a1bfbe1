"""Concrete cases that a claim which was not shown suggests: sizes and a block for the counterexample search to try."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from warpproof.algebra import Undefined, evaluate, satisfies
from warpproof.solve import Facts, refute_le
from warpproof.terms import Arena, Poly, Pred

_AXES: Final = ("block.x", "block.y", "block.z")
_TRIES: Final = 4000
_LADDER: Final = (
    0, 1, 2, 3, 5, 8, 17, 64, 100, 1000, 4095, 16384, 65535, 65536, 1 << 20, 1 << 24, 1 << 30, (1 << 31) - 1,
)
_BASE_KINDS: Final = frozenset({"size", "block", "loop", "index", "grid", "elem"})


def case_against(arena: Arena, facts: Facts, path: Pred, claim: Pred) -> dict[str, Any]:
    """{"case": {sizes, block}} where the path holds and the claim may not; empty when none was found."""
    given = (*facts.base, *arena.conjuncts(path))
    for p in arena.conjuncts(claim):
        if p.op != "le" or facts.implied(path, p):
            continue
        values: Mapping[int, int] | None = _corner(arena, p.data, given)
        if values is None and facts.samples:
            facts.samples -= 1
            found = refute_le(arena, p.data, given, mask=facts.mask(path), timeout_s=4.0)
            values = found.values if found is not None else None
        if values is not None:
            return {"case": _case(arena, values)}
    return {}


def _case(arena: Arena, values: Mapping[int, int]) -> dict[str, Any]:
    sizes: dict[str, int] = {}
    block = dict.fromkeys(_AXES, 0)
    for atom in arena.atoms:
        low = arena.ranges.get(atom.id, (None, None))[0]
        if atom.kind == "size":
            sizes[atom.name] = values.get(atom.id, max(low or 0, 1))
        elif atom.kind == "block" and atom.id in values:
            block[atom.name] = values[atom.id]
    return {"sizes": sizes, "block": tuple(block[axis] for axis in _AXES)}


def _corner(arena: Arena, p: Poly, given: Sequence[Pred]) -> dict[int, int] | None:
    """Values from the corners of the ranges where all facts hold and p ≥ 1, made small afterwards."""
    atoms = sorted(_base(arena, [p, *(r for q in given for r in _integers(arena, q))]))
    if any(arena.atoms[a].kind not in _BASE_KINDS for a in atoms):
        return None
    menus = [_menu(arena, a) for a in atoms]
    rng = np.random.default_rng(0)
    lanes = sorted({0, arena.lanes // 2, arena.lanes - 1})
    for _ in range(_TRIES):
        values = {a: int(menu[rng.integers(len(menu))]) for a, menu in zip(atoms, menus, strict=True)}
        for lane in lanes:
            if _violates(arena, p, given, values, lane):
                return _shrunk(arena, p, given, values, lane)
    return None


def _integers(arena: Arena, p: Pred) -> list[Poly]:
    """The polynomials that a condition compares; of a loop's domain also the iteration."""
    if p.op == "dom":
        return [arena.variable(arena.atoms[p.data[0]]), p.data[1]]
    return [p.data] if isinstance(p.data, Poly) else []


def _base(arena: Arena, polys: Sequence[Poly]) -> set[int]:
    out: set[int] = set()
    stack = list(polys)
    while stack:
        for a in stack.pop().atoms():
            atom = arena.atoms[a]
            if atom.args and atom.kind != "elem":  # what is loaded may be anything in its range
                stack.extend(atom.args)
            else:
                out.add(a)
    return out


def _menu(arena: Arena, atom: int) -> list[int]:
    lo, hi = arena.ranges.get(atom, (None, None))
    values = {v for v in _LADDER if (lo is None or v >= lo) and (hi is None or v <= hi)}
    values |= {v for v in (lo, hi, hi - 1 if hi is not None else None) if v is not None and (lo is None or v >= lo)}
    return sorted(values) or [0]


def _violates(arena: Arena, p: Poly, given: Sequence[Pred], values: Mapping[int, int], lane: int) -> bool:
    try:
        return evaluate(arena, p, values, lane) >= 1 and all(
            satisfies(arena, q, values, lane) is not False for q in given
        )
    except Undefined:
        return False


def _shrunk(arena: Arena, p: Poly, given: Sequence[Pred], values: dict[int, int], lane: int) -> dict[int, int]:
    """Each value as small as bisection finds with the others kept."""
    for a in sorted(values, key=lambda a: -values[a]):
        low, high = max(arena.ranges.get(a, (0, None))[0] or 0, 0), values[a]
        while low < high:
            middle = (low + high) // 2
            if _violates(arena, p, given, {**values, a: middle}, lane):
                high = middle
            else:
                low = middle + 1
        values[a] = high
    return values
