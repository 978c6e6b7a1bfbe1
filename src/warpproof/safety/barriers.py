"""Barriers are executed by all threads of the CTA together, and loops end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from warpproof.core import Claim, Status, Unsupported
from warpproof.machine import BarrierEvent, Trace
from warpproof.solve import Facts
from warpproof.terms import Arena, Pred

Where = Callable[[int], str]
_TERMINATION = ("loop terminates", "loop counter meets its bound")


def barrier_claims(arena: Arena, facts: Facts, trace: Trace, where: Where) -> list[Claim]:
    """One claim per barrier event, divergent shuffle and loop condition."""
    claims: list[Claim] = []
    for b in {(b.path.id, b.instruction): b for b in trace.barriers}.values():
        text = f"every thread of the {'warp' if b.warp else 'CTA'} reaches the barrier"
        if b.members is not None:
            claims.append(_named(arena, facts, b, where))
        elif b.warp and _alike_in_warps(arena, b.path):
            claims.append(Claim("barriers", text, Status.SHOWN, "path alike in warps", where(b.instruction)))
        elif _uniform(arena, facts, b.path):
            claims.append(Claim("barriers", text, Status.SHOWN, "uniform path", where(b.instruction)))
        elif facts.infeasible(b.path):
            claims.append(Claim("barriers", text, Status.SHOWN, "path", where(b.instruction)))
        else:
            claims.append(Claim("barriers", text, Status.OPEN, place=where(b.instruction),
                                hint="the barrier is inside a branch or loop that not all threads take together"))
    for h in trace.hazards:
        if h.kind == "divergence":
            claims.append(Claim("barriers", "lanes named in a member mask execute the shuffle together", Status.OPEN,
                                place=where(h.instruction), hint=h.detail))
    for o in trace.obligations:
        if o.kind in _TERMINATION and o.claim is not None:
            shown = facts.implied(o.path, o.claim, hard=True)
            claims.append(Claim("barriers", o.kind, Status.SHOWN if shown else Status.OPEN,
                                "positivity" if shown else "", where(o.instruction),
                                hint="" if shown else "the loop counter may step over its bound"))
    return claims or [Claim("barriers", "no barriers, every loop ends", Status.SHOWN, "uniform path")]


def _named(arena: Arena, facts: Facts, b: BarrierEvent, where: Where) -> Claim:
    """A named barrier is reached by all its threads together: its path is their lane mask, else alike in all lanes."""
    text = "all threads that a named barrier waits for reach it"
    mask = facts.mask(b.path)
    members = np.frombuffer(b.members or b"", bool)
    plain = arena.conj(p for p in arena.conjuncts(b.path) if arena.mask_of(p) is None)
    if mask is not None and (mask == members).all() and _uniform(arena, facts, plain):
        return Claim("barriers", text, Status.SHOWN, "uniform path", where(b.instruction))
    return Claim("barriers", text, Status.OPEN, place=where(b.instruction),
                 hint="the barrier is inside a branch or loop that not all of them take together")


def _uniform(arena: Arena, facts: Facts, path: Pred) -> bool:
    """The path says the same in every lane; lane conditions that always hold do not count."""
    return all(
        p.uniform or (p.op != "lanes" and facts.implied(_rest(arena, path, p), p)) for p in arena.conjuncts(path)
    )


def _alike_in_warps(arena: Arena, path: Pred) -> bool:
    """The path says the same in all lanes of each warp."""
    first = np.arange(arena.lanes) // 32 * 32
    try:
        return all(p.uniform or arena.permutation_map(first).pred(p) is p for p in arena.conjuncts(path))
    except Unsupported:
        return False


def _rest(arena: Arena, path: Pred, p: Pred) -> Pred:
    """The lane-uniform part of a path without `p`."""
    return arena.conj(q for q in arena.conjuncts(path) if q is not p and q.uniform)
