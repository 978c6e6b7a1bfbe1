"""Every access in bounds and aligned, every value read was written, only outputs are written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from warpproof.core import Claim, Status
from warpproof.machine import Access, BufferInfo, Hazard, Obligation, Trace
from warpproof.safety.cases import case_against
from warpproof.solve import Facts, coordinates, quotients
from warpproof.terms import Arena, Poly, Pred

Where = Callable[[int], str]
Layout = tuple[tuple[Poly, ...], tuple[Poly, ...] | None]
"""Extents, and strides where they leave gaps, in elements."""
_HAZARDS: Final = {
    "uninitialised": "shared memory is initialised before it is read", "shared-bounds": "shared memory in bounds",
    "misaligned": "shared memory accesses are aligned", "unwritten": "global memory is written before it is read",
}


def memory_claims(
    arena: Arena, facts: Facts, trace: Trace, buffers: Mapping[str, BufferInfo],
    layouts: Mapping[str, Layout], where: Where,
) -> list[Claim]:
    """One claim per access, hazard and alignment condition."""
    flat: Layout = ((), None)
    claims = [
        _in_bounds(arena, facts, a, buffers[a.buffer], layouts.get(a.buffer, flat), where) for a in _distinct(trace)
    ]
    for a in trace.accesses:
        if a.kind in ("store", "atomic", "sync") and not buffers[a.buffer].writable:
            feasible = not facts.infeasible(a.path)
            claims.append(
                Claim("memory", f"nothing is written to the input {a.buffer}",
                      Status.BROKEN if feasible else Status.SHOWN, "path", where(a.instruction))
            )
    claims += [_hazard(arena, facts, h, where) for h in trace.hazards if h.kind in _HAZARDS]
    claims += [_aligned(facts, o, where) for o in trace.obligations if o.kind == "alignment"]
    return claims


def _distinct(trace: Trace) -> list[Access]:
    """Accesses that ask different questions."""
    seen: dict[tuple[object, ...], Access] = {}
    for a in trace.accesses:
        seen.setdefault((a.buffer, a.index.key, a.path.id), a)
    return list(seen.values())


def _in_bounds(
    arena: Arena, facts: Facts, a: Access, info: BufferInfo, layout: Layout, where: Where
) -> Claim:
    text = f"{'update' if a.kind == 'atomic' else a.kind} of {a.buffer} is in bounds"
    how = _bounded(arena, facts, a.index, info.size, layout, a.path)
    if how:
        return Claim("memory", text, Status.SHOWN, how, where(a.instruction))
    inside = arena.conj((arena.le(-a.index), arena.le(a.index - info.size + 1)))
    hint = f"0 ≤ index < size of {a.buffer} was not shown on this path"
    data = case_against(arena, facts, a.path, inside)
    return Claim("memory", text, Status.OPEN, place=where(a.instruction), hint=hint, data=data)


def _bounded(arena: Arena, facts: Facts, index: Poly, size: Poly, layout: Layout, path: Pred) -> str:
    """How the index was shown to be in range; empty when it was not."""
    low, high = arena.le(-index), arena.le(index - size + 1)
    shape, strides = layout

    def flat() -> bool:
        return facts.implied(path, low) and facts.implied(path, high)

    def placed() -> bool:
        upward = all(facts.implied(arena.true, arena.le(-s)) for s in strides or ())
        return len(shape) > 1 and upward and coordinates(facts, path, index, shape, strides, bounded=False) is not None

    ways = [("positivity", flat), ("positivity by coordinates", placed)]
    if quotients(arena, (index,)):
        ways.reverse()
    for name, way in ways:
        if way():
            return name
    if facts.implied(path, low, hard=True) and facts.implied(path, high, hard=True):
        return "integer-sets"
    return ""


def _hazard(arena: Arena, facts: Facts, h: Hazard, where: Where) -> Claim:
    text = _HAZARDS[h.kind]
    if h.path is not None and facts.infeasible(h.path):
        return Claim("memory", text, Status.SHOWN, "path", where(h.instruction))
    return Claim("memory", text, Status.OPEN, place=where(h.instruction), hint=h.detail)


def _aligned(facts: Facts, o: Obligation, where: Where) -> Claim:
    shown = o.claim is not None and facts.implied(o.path, o.claim, hard=True)
    return Claim("memory", "vector accesses are aligned", Status.SHOWN if shown else Status.OPEN,
                 "integer-sets" if shown else "", where(o.instruction),
                 hint="" if shown else "the address was not shown to be a multiple of the access size")
