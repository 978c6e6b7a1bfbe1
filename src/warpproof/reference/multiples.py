"""Sizes that preconditions determine: K % 16 == 0 makes K = 16·(K/16), words == rows·cols makes words that product.

Written like this, quotients and remainders of index arithmetic cancel when they are built, and no later stage has to
find out that a fact about a remainder decides them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from warpproof.terms import Arena, Poly, Pred

if TYPE_CHECKING:
    from warpproof.reference.symbolic import SymbolicLaunch


def with_multiples(launch: SymbolicLaunch) -> SymbolicLaunch:
    """The launch with these sizes expressed by others; what was known of them stays among the facts."""
    if launch.float_preds or launch.element_facts:
        return launch
    while True:
        found = next((s for f in launch.facts for s in _solutions(launch.arena, f)), None)
        if found is None:
            return launch
        launch = substituted(launch, *found)


def _solutions(arena: Arena, fact: Pred) -> list[tuple[int, Poly]]:
    """(size, value) that the fact determines."""
    return [*_multiple(arena, fact), *_equal(arena, fact)] if fact.op == "eq" else []


def _multiple(arena: Arena, fact: Pred) -> list[tuple[int, Poly]]:
    """x − d·⌊x/d⌋ = 0 with d ≥ 1 and a size x."""
    for a in sorted(fact.data.atoms()):
        atom = arena.atoms[a]
        if atom.kind != "div" or atom.tag:
            continue
        x, d = atom.args
        size = size_of(arena, x)
        least = arena.bounds(d)[0]
        if size is None or least is None or least < 1 or size in d.atoms() or _derived(arena, d):
            continue
        if fact.data in (x - d * arena.variable(atom), d * arena.variable(atom) - x):
            return [(size, d * _quotient(arena, size, d))]
    return []


def _quotient(arena: Arena, size: int, d: Poly) -> Poly:
    lo, hi = arena.ranges.get(size, (None, None))
    low = None if lo is None else 1 if lo >= 1 else 0 if lo >= 0 else None
    least = arena.bounds(d)[0]
    high = None if hi is None or hi < 0 or least is None else hi // least
    return arena.symbol("size", f"{arena.atoms[size].name}/{_text(arena, d)}", low, high)


def _equal(arena: Arena, fact: Pred) -> list[tuple[int, Poly]]:
    """x − e = 0 with a size x and a polynomial e of other sizes with a product in it."""
    if any(_derived(arena, Poly({(a,): 1})) for a in fact.data.atoms()) or max(map(len, fact.data.terms)) < 2:
        return []
    for m, c in fact.data.terms.items():
        if len(m) == 1 and c in (1, -1) and arena.atoms[m[0]].kind == "size":
            value = (fact.data - Poly({m: c})) * -c
            if m[0] not in value.atoms():
                return [(m[0], value)]
    return []


def size_of(arena: Arena, x: Poly) -> int | None:
    """The size that x is."""
    ((m, c),) = x.terms.items() if len(x.terms) == 1 else (((), 0),)
    return m[0] if len(m) == 1 and c == 1 and arena.atoms[m[0]].kind == "size" else None


def _derived(arena: Arena, p: Poly) -> bool:
    return any(arena.atoms[a].args for a in p.atoms())


def _text(arena: Arena, p: Poly) -> str:
    parts = ["*".join([*([str(c)] if c != 1 or not m else []), *(arena.atoms[a].name for a in m)])
             for m, c in p.terms.items()]
    return parts[0] if len(parts) == 1 else f"({' + '.join(parts)})"


def substituted(launch: SymbolicLaunch, size: int, value: Poly) -> SymbolicLaunch:
    """The launch with a size expressed by others, of which its range stays known."""
    arena = launch.arena
    put = arena.substitution({size: value})
    lo, hi = arena.ranges.get(size, (None, None))
    known = [put.pred(f) for f in launch.facts]
    known += [arena.le(lo - value)] if lo is not None else []
    known += [arena.le(value - hi)] if hi is not None else []
    x, y, z = (put.poly(g) for g in launch.grid)
    sizes: Mapping[str, Poly] = {n: put.poly(p) for n, p in launch.sizes.items()}
    buffers = {n: b.mapped(put.poly) for n, b in launch.buffers.items()}
    return replace(
        launch, sizes=sizes, facts=tuple(dict.fromkeys(f for f in known if f.op != "true")), grid=(x, y, z),
        dynamic_shared=put.poly(launch.dynamic_shared), buffers=buffers,
    )
