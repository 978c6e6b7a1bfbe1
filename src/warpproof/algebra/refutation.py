"""Refutations of integer constraint systems: facts, products of facts, case trees, and their independent check.

A system is a list of facts f ≥ 0 or f = 0 over integer unknowns and a list of disjunctions. A refutation is a tree:
at a leaf, non-negative multipliers of facts and of products of facts (and any multipliers of equalities times a
monomial) whose sum is a negative constant (Handelman, "Representing polynomials by positive linear functions", 1988);
inside, a disjunction by its cases or a cut f ≤ 0 or f ≥ 1 on an integer polynomial f.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from warpproof.algebra.constraints import Formula
from warpproof.terms import Monomial, Poly


@dataclass(frozen=True, slots=True)
class Term:
    """weight · Π facts · Π cofactor; an equality has exactly one factor, only an equality may have a cofactor."""

    weight: Fraction
    factors: tuple[int, ...]
    cofactor: Monomial = ()


@dataclass(frozen=True, slots=True)
class Leaf:
    """The terms add up to a negative constant."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Split:
    """One child for each case of the disjunction with this number."""

    index: int
    children: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Cut:
    """The cases poly ≤ 0 and poly ≥ 1."""

    poly: Poly
    children: tuple[Tree, Tree]


Tree = Leaf | Split | Cut


@dataclass(slots=True)
class System:
    """Facts (poly ≥ 0, or = 0 where `equal`) and disjunctions, numbered in order of arrival."""

    polys: list[Poly] = field(default_factory=list)
    equal: list[bool] = field(default_factory=list)
    cases: list[tuple[Formula, ...]] = field(default_factory=list)

    def copy(self) -> System:
        """An independent copy."""
        return System(list(self.polys), list(self.equal), list(self.cases))

    def fact(self, p: Poly, equality: bool = False) -> None:
        """Add p ≥ 0 (or p = 0), tightened to the integers."""
        g, k = p.content(), p.constant
        assert isinstance(k, int)
        if g > 1 and equality and k % g:
            p, equality = Poly({(): -1}), False
        elif g > 1:
            p = p.symbolic().exact_div(g) + k // g
        self.polys.append(p)
        self.equal.append(equality)

    def equations(self) -> list[Poly]:
        """The polynomials that are 0."""
        return [p for p, e in zip(self.polys, self.equal) if e]

    def inequalities(self) -> list[Poly]:
        """The polynomials that are ≥ 0."""
        return [p for p, e in zip(self.polys, self.equal) if not e]

    def every_poly(self) -> list[Poly]:
        """The polynomials of the facts and of the disjunctions."""
        return [*self.polys, *(q for options in self.cases for f in options for q in f.polys())]

    def changed(self, rewrite: Callable[[Poly], Poly]) -> System:
        """The system with every polynomial rewritten."""
        out = System()
        for p, e in zip(self.polys, self.equal):
            out.fact(rewrite(p), e)
        out.cases = [tuple(f.map(rewrite) for f in options) for options in self.cases]
        return out

    def add_signs(self) -> None:
        """Add x ≥ 0 for every fact x − k ≥ 0 with k > 0: products with x have fewer terms than those with x − k."""
        for p, e in list(zip(self.polys, self.equal)):
            unknowns = [m for m in p.terms if m]
            if not e and len(unknowns) == 1 and len(unknowns[0]) == 1 and p.terms[unknowns[0]] == 1:
                k = p.constant
                if isinstance(k, int) and k < 0:
                    self.fact(p - k)

    def assume(self, f: Formula) -> None:
        """Add what the formula says; unknown parts say nothing."""
        match f.op:
            case "le":
                self.fact(-f.poly)
            case "eq":
                self.fact(f.poly, True)
            case "false":
                self.fact(Poly({(): -1}))
            case "and":
                for a in f.args:
                    self.assume(a)
            case "or":
                if f.exact():
                    self.cases.append(f.args)
            case _:
                pass


def refutes(system: System, tree: Tree) -> bool:
    """True when the tree shows that no integers satisfy the system; uses exact arithmetic and nothing of the search."""
    match tree:
        case Leaf(terms):
            return _negative_sum(system, terms)
        case Split(index, children):
            if not 0 <= index < len(system.cases) or len(children) != len(system.cases[index]):
                return False
            for option, child in zip(system.cases[index], children):
                branch = system.copy()
                branch.assume(option)
                if not refutes(branch, child):
                    return False
            return True
        case Cut(poly, (below, above)):
            low, high = system.copy(), system.copy()
            low.fact(-poly)
            high.fact(poly - 1)
            return poly.uniform() and refutes(low, below) and refutes(high, above)
    return False


def _negative_sum(system: System, terms: tuple[Term, ...]) -> bool:
    total: dict[Monomial, Fraction] = {}
    for t in terms:
        if not t.factors or not all(0 <= i < len(system.polys) for i in t.factors):
            return False
        product = _expand(t, system)
        if product is None:
            return False
        for m, c in product.items():
            total[m] = total.get(m, Fraction(0)) + c
    return total.get((), Fraction(0)) < 0 and not any(c for m, c in total.items() if m)


def _expand(t: Term, system: System) -> dict[Monomial, Fraction] | None:
    is_equality = any(system.equal[i] for i in t.factors)
    if is_equality and len(t.factors) > 1:
        return None
    if not is_equality and (t.weight < 0 or t.cofactor):
        return None
    out: dict[Monomial, Fraction] = {t.cofactor: t.weight}
    for i in t.factors:
        step: dict[Monomial, Fraction] = {}
        for m, c in out.items():
            for n, d in system.polys[i].terms.items():
                if not isinstance(d, int):
                    return None
                key = tuple(sorted(m + n))
                step[key] = step.get(key, Fraction(0)) + c * d
        out = step
    return out


