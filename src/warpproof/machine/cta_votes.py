"""Votes of a whole CTA: `bar.red`, a barrier of all threads that combines one condition of each (PTX ISA, bar)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Barrier, Int
from warpproof.terms import Poly, Pred, const

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine


def vote(m: SymbolicMachine, effect: Barrier) -> Any:
    """What the barrier returns to every thread: whether the condition holds in all threads or in one, or in how many.

    Answered only where all threads of the CTA execute it, under conditions that are the same for all of them: then each
    thread's condition counts exactly once.
    """
    if m.conditional() or not m.path.mask.all() or not m.path.cta_uniform():
        raise Unsupported("barrier.red", "not evidently executed by all threads of the CTA")
    given: Any = effect.predicate
    if effect.reduce == "popc":
        return Int(32, _count(m, given))
    return _every(m, given) if effect.reduce == "and" else m.arena.negate(_every(m, m.arena.negate(given)))


def _every(m: SymbolicMachine, p: Pred) -> Pred:
    """p in all threads."""
    flat = m.arena.mask_of(p)
    if flat is not None:
        return m.arena.true if flat.all() else m.arena.false
    return p if _alike(m, p) else m.arena.conj(_places(m, p))


def _count(m: SymbolicMachine, p: Pred) -> Poly:
    """In how many threads p holds."""
    flat = m.arena.mask_of(p)
    if flat is not None:
        return const(int(flat.sum()))
    merge = m.dom.integers.merge
    if _alike(m, p):
        return merge(p, const(m.arena.lanes), const(0))
    total = Poly({})
    for part in _places(m, p):
        total = total + merge(part, const(1), const(0))
    return total


def _alike(m: SymbolicMachine, p: Pred) -> bool:
    return m.arena.permutation_map(np.zeros(m.arena.lanes, np.int64)).pred(p) is p


def _places(m: SymbolicMachine, p: Pred) -> list[Pred]:
    """The condition of each thread, as every thread sees it."""
    return [m.arena.permutation_map(np.full(m.arena.lanes, t, np.int64)).pred(p) for t in range(m.arena.lanes)]
