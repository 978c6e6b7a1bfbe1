"""Positivity certificates as plain data, for reports and for checkers that share no code with this package."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from warpproof.algebra.positivity import Certificate, system_of
from warpproof.algebra.refutation import Cut, Leaf, Split, System, Tree
from warpproof.algebra.variables import Elimination
from warpproof.terms import Poly


def transcript(certificate: Certificate) -> dict[str, object]:
    """The certificate as JSON-ready data: per set of lanes the facts by number and the tree of multipliers.

    A polynomial is a list of [coefficient, [unknown, …]]; unknowns with negative numbers are lane fields and unknowns
    that changes introduce. Facts are ≥ 0, or = 0 where `equal`; `facts` are those after the changes.
    """
    names = {str(a.id): a.name or a.kind for a in certificate.arena.atoms}
    cases: list[dict[str, object]] = []
    for case in certificate.cases:
        system = system_of(certificate, case)
        if system is None:
            raise ValueError("the certificate does not belong to its statement")
        cases.append({
            "lanes": list(case.lanes), "style": case.style, "radices": list(case.radices),
            "changes": [
                {"old": c.old, "by": _poly(c.by if isinstance(c, Elimination) else c.value())} for c in case.changes
            ],
            "facts": [{"poly": _poly(p), "equal": e} for p, e in zip(system.polys, system.equal)],
            "tree": _tree(system, case.tree),
        })
    return {
        "kind": "interval" if certificate.interval else "refutations", "goal": _poly(certificate.goal),
        "lanes": np.flatnonzero(np.asarray(certificate.mask)).tolist(), "names": names, "cases": cases,
    }


def _poly(p: Poly) -> list[object]:
    return [[c if isinstance(c, int) else c.tolist(), list(m)] for m, c in sorted(p.terms.items(), key=lambda t: t[0])]


def _fraction(f: Fraction) -> list[int]:
    return [f.numerator, f.denominator]


def _tree(system: System, tree: Tree) -> dict[str, object]:
    match tree:
        case Leaf(terms):
            return {"sum": [[_fraction(t.weight), list(t.factors), list(t.cofactor)] for t in terms]}
        case Split(index, children):
            out = []
            for option, child in zip(system.cases[index], children):
                branch = system.copy()
                branch.assume(option)
                added = [
                    {"poly": _poly(p), "equal": e}
                    for p, e in zip(branch.polys[len(system.polys) :], branch.equal[len(system.equal) :])
                ]
                out.append({"facts": added, "tree": _tree(branch, child)})
            return {"split": out}
        case Cut(poly, (below, above)):
            low, high = system.copy(), system.copy()
            low.fact(-poly)
            high.fact(poly - 1)
            return {"cut": _poly(poly), "below": _tree(low, below), "above": _tree(high, above)}
