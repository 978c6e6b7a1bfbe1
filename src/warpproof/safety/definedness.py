"""The reference is a number where it is compared: it divides by nothing that may be zero and takes no root or logarithm
of what may be negative. Otherwise algebra proves x equal to √x·√x, which is NaN for negative x.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from warpproof.core import Claim, Reason, Status
from warpproof.machine import Trace
from warpproof.safety.conditions import RealConditions
from warpproof.terms import Arena, Pred, Real

_NEEDS: Final = {"div": ("nonzero", 1), "sqrt": ("nonnegative", 0), "lg2": ("positive", 0)}
_STRONGER: Final = {
    "nonzero": ("nonzero", "positive"), "nonnegative": ("nonnegative", "positive"), "positive": ("positive",),
}
_WHAT: Final = {
    "nonzero": "divides by a term that was not shown to differ from zero",
    "nonnegative": "takes the square root of a term that was not shown to be at least 0",
    "positive": "takes the logarithm of a term that was not shown to be above 0",
}
_TEXT: Final = "the reference is defined"
_LIMIT: Final = 4096


def definedness_claims(
    arena: Arena, trace: Trace, reals: RealConditions, compared: Sequence[tuple[Pred, Real]]
) -> list[Claim]:
    """One claim per partial operation of the reference's terms, each compared under its path."""
    walker = _Walker(arena)
    kernel: set[tuple[str, int]] | None = None
    claims: list[Claim] = []
    seen: set[tuple[str, int, int]] = set()
    for path, reference in compared:
        for kind, node, where in walker.partial(reference):
            place = arena.conj((path, where))
            key = (kind, node.id, place.id)
            if key in seen or place.op == "false":
                continue
            seen.add(key)
            if len(seen) > _LIMIT:
                return [_open("the reference divides or takes roots in too many places")]
            how = reals.shown(kind, node, place)
            if not how:
                kernel = _demanded(trace, reals) if kernel is None else kernel
                how = _as_in_kernel(kernel, reals, kind, node)
            if how:
                claims.append(Claim("equivalence", _TEXT, Status.SHOWN, how))
            elif not reals.facts.infeasible(place):
                claims.append(_open(f"the reference {_WHAT[kind]}; add a precondition"))
    return claims


def _open(hint: str) -> Claim:
    return Claim("equivalence", _TEXT, Status.OPEN, reason=Reason.NEEDS_PRECONDITION, hint=hint)


def _demanded(trace: Trace, reals: RealConditions) -> set[tuple[str, int]]:
    """What the kernel's own operations demand, by canonical term."""
    found = set()
    for o in trace.obligations:
        if o.node is not None and o.kind in _STRONGER:
            for x in (o.node, *reals.rewrite(o.node, o.path)):
                found.add((o.kind, reals.canonical(x).id))
    return found


def _as_in_kernel(kernel: set[tuple[str, int]], reals: RealConditions, kind: str, node: Real) -> str:
    """The kernel has the same condition, which is a claim of its own."""
    terms = [(k, reals.canonical(node).id) for k in _STRONGER[kind]]
    if kind == "nonzero" and node.op == "sqrt":
        terms.append(("positive", reals.canonical(node.args[0]).id))
    return "same condition as the kernel" if any(t in kernel for t in terms) else ""


class _Walker:
    """Finds the partial operations of terms, each with the choices and domains around it."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._has: dict[int, bool] = {}

    def partial(self, x: Real) -> Iterator[tuple[str, Real, Pred]]:
        """(condition, operand, where the operation is made)."""
        stack, seen = [(x, self.arena.true)], set()
        while stack:
            y, where = stack.pop()
            if (y.id, where.id) in seen or not self._contains(y):
                continue
            seen.add((y.id, where.id))
            if y.op in _NEEDS:
                kind, which = _NEEDS[y.op]
                yield kind, y.args[which], where
            stack.extend(self._parts(y, where))

    def _parts(self, y: Real, where: Pred) -> Iterable[tuple[Real, Pred]]:
        a = self.arena
        if y.pred is not None:
            for r in _compared(y.pred):
                yield r, where
        if y.op == "sel" and y.pred is not None:
            yield y.args[0], a.conj((where, y.pred))
            yield y.args[1], a.conj((where, a.negate(y.pred)))
        elif y.op == "fold" and y.pred is not None:
            yield y.args[0], a.conj((where, y.pred))
        else:
            for z in y.args:
                yield z, where

    def _contains(self, x: Real) -> bool:
        found = self._has.get(x.id)
        if found is None:
            inside = [*x.args, *(_compared(x.pred) if x.pred is not None else ())]
            found = self._has[x.id] = x.op in _NEEDS or any([self._contains(y) for y in inside])  # noqa: C419
        return found


def _compared(p: Pred) -> list[Real]:
    """The reals that a predicate compares."""
    out: list[Real] = []
    stack = [p]
    while stack:
        q = stack.pop()
        out.extend(q.reals)
        stack.extend(q.args)
    return out
