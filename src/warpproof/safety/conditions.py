"""The conditions a symbolic run relied on: integers that do not wrap, divisors that are not zero, finite operands.

They gate equivalence: a run whose conditions are open proves nothing about values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from warpproof.algebra import Sign, Signs
from warpproof.core import Claim, Ledger, Status
from warpproof.machine import Obligation, Trace
from warpproof.safety.cases import case_against
from warpproof.safety.infinities import MINUS, PLUS, Infinities
from warpproof.solve import Facts
from warpproof.terms import Arena, Pred, Real

Where = Callable[[int], str]
Rewrite = Callable[[Real, Pred], Iterable[Real]]
_INTEGER = frozenset({
    "no-wrap", "signed division of a non-negative dividend", "division by a positive divisor", "trap not reached",
    "cp.async source size at most the copy size", "an element read in a loop was stored in an earlier one",
    "the CTA whose value is read exists",
})
_COMPARED = {
    "nonzero": (("ne", "x", "0"), ("ne", "0", "x"), ("lt", "0", "x"), ("lt", "x", "0")),
    "nonnegative": (("le", "0", "x"), ("lt", "0", "x")), "positive": (("lt", "0", "x"),),
}
_REAL = frozenset({"finite", "nonzero", "nonnegative", "positive", "no opposite infinities", "below infinity"})


@dataclass(slots=True)
class RealConditions:
    """Decides conditions on reals; `rewrite` gives a term in the reference's own folds, which show their signs.

    `divisors` are the canonical divisors of the reference, each with where it divides by it: where the kernel divides
    by the same term, the reference is undefined too. `roots` are what the reference takes roots of, and `same` decides
    equality under a path.
    """

    arena: Arena
    facts: Facts
    signs: Signs
    rewrite: Rewrite
    canonical: Callable[[Real], Real]
    divisors: tuple[tuple[Pred, Real], ...]
    roots: tuple[Real, ...]
    same: Callable[[Real, Real, Pred], bool]
    ledger: Ledger
    infinities: Infinities

    def holds(self, kind: str, node: Real, path: Pred) -> str:
        """How the condition was shown, or excused by the reference; empty when it was neither."""
        how = self.shown(kind, node, path)
        if how or kind != "nonzero":
            return how
        if not any(self._divided(self.canonical(x), path) for x in (node, *self.rewrite(node, path))):
            return ""
        self.ledger.use(
            "reference-defined", "where the kernel divides by zero, so does the reference",
            "the reference is only meaningful where it is defined",
        )
        return "same divisor as the reference"

    def shown(self, kind: str, node: Real, path: Pred) -> str:
        """How the condition was shown; empty when it was not."""
        for x in (node, *self.rewrite(node, path)):
            if self._holds(kind, x, path) or self._by_iteration(kind, x, path):
                return "sign analysis"
            if self._stated(kind, self.canonical(x), path):
                return "path"
            if kind in _COMPARED and self._whole(kind, x, path):
                return "positivity"
            if kind in ("positive", "nonnegative") and self._rooted(kind, x, path):
                return "same root as the reference"
        return ""

    def _whole(self, kind: str, x: Real, path: Pred) -> bool:
        """x is an integer that has the sign."""
        a, p = self.arena, None if x.folds else self.arena.whole(x)
        if p is None:
            return False
        if self.facts.implied(path, a.le(-p if kind == "nonnegative" else 1 - p)):
            return True
        return kind == "nonzero" and self.facts.implied(path, a.ne(p))

    def _rooted(self, kind: str, x: Real, path: Pred) -> bool:
        """x is what the reference takes a root of, whose sign its own form shows."""
        return any(self._holds(kind, y, path) and self.same(x, y, path) for y in self.roots)

    def _stated(self, kind: str, x: Real, path: Pred) -> bool:
        """A comparison on the path says it."""
        if kind not in _COMPARED:
            return False
        for p in self.arena.conjuncts(path):
            if p.op == "fcmp":
                low, high = (self.canonical(r) for r in p.reals)
                for op, first, second in _COMPARED[kind]:
                    sides = tuple(x if name == "x" else self.arena.zero for name in (first, second))
                    if p.data == op and (low, high) == sides:
                        return True
        return False

    def _divided(self, x: Real, path: Pred) -> bool:
        """The reference divides by x wherever the path holds."""
        return any(y is x and self.facts.implied(path, where) for where, y in self.divisors)

    def _by_iteration(self, kind: str, x: Real, path: Pred, depth: int = 2) -> bool:
        """The condition shown apart for the first iteration of a loop with a running maximum and for later ones."""
        cases = self.infinities.cases(x, path) if depth else []
        return bool(cases) and all(
            self._holds(kind, y, p) or self._by_iteration(kind, y, p, depth - 1) for y, p in cases
        )

    def _holds(self, kind: str, x: Real, path: Pred) -> bool:
        if x.poisoned:
            return False
        may = self.infinities.may
        match kind:
            case "finite":
                return not (may(x, path, MINUS) or may(x, path, PLUS))
            case "below infinity":
                return not may(x, path, PLUS)
            case "no opposite infinities":
                return x.op != "pair" or not any(
                    may(x.args[0], path, s) and may(x.args[1], path, -s) for s in (MINUS, PLUS)
                )
        sign = self.signs.sign(x)
        if kind == "nonnegative":
            return sign >= Sign.NONNEGATIVE
        return sign is Sign.POSITIVE


def condition_claims(
    arena: Arena, facts: Facts, trace: Trace, reals: RealConditions, where: Where
) -> list[Claim]:
    """One claim per distinct condition of the run, on the pseudo-property `conditions`."""
    seen: set[tuple[object, ...]] = set()
    claims: list[Claim] = []
    for o in trace.obligations:
        key = (o.kind, o.path.id, o.claim.id if o.claim else -1, o.node.id if o.node else -1)
        if key in seen:
            continue
        seen.add(key)
        if o.kind in _INTEGER and o.claim is not None:
            claims.append(_integer(arena, facts, o, where))
        elif o.kind in _REAL and o.node is not None:
            claims.append(_real(facts, reals, o, where))
        elif o.kind not in ("alignment", "loop terminates", "loop counter meets its bound"):
            claims.append(Claim("conditions", o.kind, Status.OPEN, place=where(o.instruction)))
    return claims


def _integer(arena: Arena, facts: Facts, o: Obligation, where: Where) -> Claim:
    text = "a 32- or 64-bit integer does not wrap around" if o.kind == "no-wrap" else o.kind
    if o.claim is not None and facts.implied(o.path, o.claim, hard=True):
        return Claim("conditions", text, Status.SHOWN, "positivity", where(o.instruction))
    data = case_against(arena, facts, o.path, o.claim) if o.claim is not None else {}
    sizes = ", ".join(f"{n} = {v}" for n, v in data["case"]["sizes"].items()) if data else ""
    hint = f"index arithmetic may overflow for some admitted sizes{', as ' * bool(sizes)}{sizes}"
    hint = hint if o.kind == "no-wrap" else "not shown"
    return Claim("conditions", text, Status.OPEN, place=where(o.instruction), hint=hint, data=data)


def _real(facts: Facts, reals: RealConditions, o: Obligation, where: Where) -> Claim:
    text = f"an operand is {o.kind}"
    how = reals.holds(o.kind, o.node, o.path) if o.node is not None else ""
    if not how and facts.infeasible(o.path):
        how = "path"
    if how:
        return Claim("conditions", text, Status.SHOWN, how, where(o.instruction))
    return Claim("conditions", text, Status.OPEN, place=where(o.instruction),
                 hint=f"the operand was not shown to be {o.kind} (∞−∞, 0·∞, division by zero or a root of a negative)")
