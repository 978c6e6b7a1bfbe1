"""Equality of piecewise terms: maxima, minima, absolute values and choices on float comparisons, case by case.

Each comparison is true or false; where linear arithmetic over the monomials rules a case out, it is dropped. What is
left in a case is compared by normal form, after what its comparisons force to be equal has been put in.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import lcm
from typing import Final

from warpproof.algebra.forms import Factors, Form, add
from warpproof.algebra.normal import Implied, Normaliser
from warpproof.algebra.simplex import OutOfSteps, Simplex, Steps
from warpproof.core import Unsupported
from warpproof.terms import Arena, Coef, Monomial, Poly, Pred, Real, TermMap

Known = tuple[tuple[Form, bool], ...]
"""Forms that are ≥ 0, or > 0 where the flag is set."""
ELSEWHERE: Final = ("gather", "red")
"""Nodes whose operands are values of other lanes, of which what holds in a lane says nothing."""
_SCALE: Final = 0  # the unknown that makes the constraints homogeneous
_STEPS: Final = 400
_LIMIT: Final = 96


class Cases:
    """Decides equalities by cases; at most `limit` comparisons are split on in one question."""

    def __init__(self, normal: Normaliser, implied: Implied, limit: int = _LIMIT) -> None:
        self.normal, self.arena, self.implied, self.left = normal, normal.arena, implied, limit
        self._unknowns: dict[tuple[Factors, int], int] = {}

    def equal(self, x: Real, y: Real, path: Pred) -> bool:
        """True when x = y wherever `path` holds (False also when undecided)."""
        if x.poisoned or y.poisoned:
            return False
        known = tuple(k for p in self.arena.conjuncts(path) if (k := self._constraint(p)) is not None)
        try:
            return self._equal(x, y, path, known)
        except (Unsupported, OutOfSteps):
            return False

    def _equal(self, x: Real, y: Real, path: Pred, known: Known) -> bool:
        if self._infeasible(known):
            return True
        pair = self._comparison(x, y)
        if pair is None:
            return self.normal.equal(x, y, path, self.implied) or self._forced(x, y, path, known)
        if not self.left:
            return False
        self.left -= 1
        less, a, b = self._difference(*pair), *pair
        cases = ((True, (less, True)), (False, (_negative(less), False)))
        return all(
            self._equal(decided.real(x), decided.real(y), path, (*known, fact))
            for truth, fact in cases for decided in (self._decided(a, b, truth),)
        )

    # ------------------------------------------------------------------ comparisons
    def _comparison(self, *terms: Real) -> tuple[Real, Real] | None:
        """The operands of the innermost comparison that decides what a term is."""
        best: tuple[int, Real, Real] | None = None
        seen: set[int] = set()
        stack = list(terms)
        while stack:
            x = stack.pop()
            if x.id in seen or x.op in ("fold", "red", "gather"):
                continue
            seen.add(x.id)
            stack.extend(x.args)
            for a, b in self._compared(x):
                stack += [a, b]
                if (best is None or x.id < best[0]) and self._difference(a, b):
                    best = (x.id, a, b)
        return best[1:] if best is not None else None

    def _compared(self, x: Real) -> list[tuple[Real, Real]]:
        """Pairs (a, b) for which a < b decides something about the node."""
        match x.op:
            case "max" | "min":
                return [(x.args[0], x.args[1])]
            case "abs":
                return [(x.args[0], self.arena.zero)]
            case "sel":
                return _tests(x.pred)
            case "int":
                return [t for i in sorted(x.data.atoms()) for t in _tests(self.arena.atoms[i].pred)]
            case _:
                return []

    def _difference(self, a: Real, b: Real) -> Form:
        """b − a; empty when it has no form without conditions."""
        if a.ext or b.ext or a.poisoned or b.poisoned:
            return {}
        try:
            out = add(self.normal.form(b), self.normal.form(a), -1)
        except Unsupported:
            return {}
        return out if all(g.op == "true" for g, _, _ in out) else {}

    def _constraint(self, p: Pred) -> tuple[Form, bool] | None:
        if p.op != "fcmp" or p.data not in ("lt", "le"):
            return None
        form = self._difference(*p.reals)
        return (form, p.data == "lt") if form else None

    def _decided(self, a: Real, b: Real, less: bool) -> TermMap:
        """The rewriting where a < b is known to hold, or not to hold."""
        arena = self.arena

        def leaf(x: Real) -> Real | None:
            if x.op in ELSEWHERE:
                return x
            if x.op in ("max", "min") and x.args in ((a, b), (b, a)):
                return b if less == (x.op == "max") else a
            if x.op == "abs" and x.args[0] is a and b is arena.zero:
                return arena.neg(a) if less else a
            return None

        def pred(p: Pred) -> Pred | None:
            if p.op != "fcmp":
                return None
            if p.reals == (a, b) and (p.data == "lt" or (p.data == "le" and less)):
                return arena.truth(less)
            if p.reals == (b, a) and (p.data == "le" or (p.data == "lt" and less)):
                return arena.truth(not less)
            return None

        return TermMap(arena, lambda i: None, leaf, pred)

    # ------------------------------------------------------------------ linear arithmetic
    def _infeasible(self, known: Known) -> bool:
        """The constraints, read as linear in their monomials, have no solution.

        They are made homogeneous: x satisfies them when some s·x with s ≥ 1 does so with room to spare.
        """
        if not known:
            return False
        tableau = Simplex(Steps(_STEPS))
        tableau.add(Poly({(_SCALE,): 1, (): -1}), False, "scale")
        for k, (form, strict) in enumerate(known):
            tableau.add(self._row(form) - int(strict), False, k)
        try:
            return tableau.conflict() is not None
        except OutOfSteps:
            return False

    def _row(self, form: Form) -> Poly:
        whole = lcm(*(c.denominator for c in form.values()))
        terms: dict[Monomial, Coef] = {}
        for (_, factors, e), c in form.items():
            unknown = _SCALE
            if factors or e:
                unknown = self._unknowns.setdefault((factors, e), len(self._unknowns) + 1)
            terms[(unknown,)] = int(c * whole)
        return Poly(terms)

    def _forced(self, x: Real, y: Real, path: Pred, known: Known) -> bool:
        """Equal after solving what the constraints force to be zero for one of its atoms."""
        for form, strict in known:
            if strict or not self._infeasible((*known, (form, True))):
                continue
            for (_, factors, e), c in form.items():
                if len(factors) != 1 or factors[0][1] != 1 or e:
                    continue
                atom = factors[0][0]
                rest = {k: -v / c for k, v in form.items() if k[1] != factors or k[2]}
                if any(z is atom for _, f, _ in rest for z, _ in f):
                    continue
                value = self.normal.term(rest)
                put = here(self.arena, {atom: value})
                if self.normal.equal(put.real(x), put.real(y), path, self.implied):
                    return True
        return False


def here(arena: Arena, table: Mapping[Real, Real]) -> TermMap:
    """The rewriting of nodes by equal ones, in the lane where they are equal."""
    return TermMap(arena, lambda i: None, lambda x: x if x.op in ELSEWHERE else table.get(x), lambda p: None)


def _negative(form: Form) -> Form:
    return {k: -c for k, c in form.items()}


def _tests(p: Pred | None) -> list[tuple[Real, Real]]:
    """Pairs (a, b) such that the float comparisons of a predicate say a < b or its contrary."""
    if p is None:
        return []
    if p.args:
        return [t for q in p.args for t in _tests(q)]
    if p.op != "fcmp" or p.data not in ("lt", "le"):
        return []
    a, b = p.reals
    return [(a, b) if p.data == "lt" else (b, a)]


__all__ = ["Cases", "here"]
