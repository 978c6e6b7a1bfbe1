"""Predicates and the definitions of derived atoms as quantifier-free formulas over integer polynomials.

A formula is in negation normal form. What has no integer meaning (a float comparison, a loop-carried predicate)
becomes `unknown`; on the side of the hypotheses reading it as true is sound, elsewhere it is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.terms import ZERO, Arena, Atom, BoolVector, IntVector, Monomial, Poly, Pred, Real

DERIVED: Final = frozenset({"div", "min", "max", "phi", "trip"})


@dataclass(frozen=True, slots=True)
class Formula:
    """`le` poly ≤ 0 · `eq` poly = 0 · `and` / `or` of args · `true` · `false` · `unknown`."""

    op: str
    poly: Poly = ZERO
    args: tuple[Formula, ...] = ()

    def polys(self) -> Iterator[Poly]:
        """Every polynomial in the formula, in order."""
        if self.op in ("le", "eq"):
            yield self.poly
        for a in self.args:
            yield from a.polys()

    def exact(self) -> bool:
        """True when no part is unknown."""
        return self.op != "unknown" and all(a.exact() for a in self.args)

    def map(self, rewrite: Callable[[Poly], Poly | None]) -> Formula:
        """The formula with every polynomial rewritten; where `rewrite` gives None the comparison becomes unknown."""
        if self.op in ("le", "eq"):
            p = rewrite(self.poly)
            return UNKNOWN if p is None else _compare(self.op, p)
        if not self.args:
            return self
        return (conjunction if self.op == "and" else disjunction)(a.map(rewrite) for a in self.args)


TRUE: Final = Formula("true")
FALSE: Final = Formula("false")
UNKNOWN: Final = Formula("unknown")


def _compare(op: str, p: Poly) -> Formula:
    k = p.as_int()
    if k is None:
        return Formula(op, p)
    return TRUE if (k <= 0 if op == "le" else k == 0) else FALSE


def at_most(p: Poly, q: Poly | int = 0) -> Formula:
    """p ≤ q."""
    return _compare("le", p - q)


def equal(p: Poly, q: Poly | int = 0) -> Formula:
    """p = q."""
    return _compare("eq", p - q)


def conjunction(parts: Iterable[Formula]) -> Formula:
    """The conjunction, flattened."""
    out: list[Formula] = []
    for f in parts:
        if f.op == "false":
            return FALSE
        out.extend(f.args if f.op == "and" else () if f.op == "true" else (f,))
    return TRUE if not out else out[0] if len(out) == 1 else Formula("and", args=tuple(out))


def disjunction(parts: Iterable[Formula]) -> Formula:
    """The disjunction, flattened."""
    out: list[Formula] = []
    for f in parts:
        if f.op == "true":
            return TRUE
        out.extend(f.args if f.op == "or" else () if f.op == "false" else (f,))
    return FALSE if not out else out[0] if len(out) == 1 else Formula("or", args=tuple(out))


def negation(f: Formula) -> Formula:
    """The complement over the integers; unknown stays unknown."""
    match f.op:
        case "le":
            return at_most(1 - f.poly)
        case "eq":
            return disjunction((at_most(f.poly + 1), at_most(1 - f.poly)))
        case "and":
            return disjunction(negation(a) for a in f.args)
        case "or":
            return conjunction(negation(a) for a in f.args)
        case "true":
            return FALSE
        case "false":
            return TRUE
        case _:
            return UNKNOWN


def formula(arena: Arena, p: Pred, lanes: IntVector) -> Formula:
    """The formula of a predicate on lanes on which every lane mask in it is constant."""
    match p.op:
        case "true":
            return TRUE
        case "false":
            return FALSE
        case "le":
            return at_most(p.data)
        case "eq":
            return equal(p.data)
        case "ne":
            return negation(equal(p.data))
        case "lanes":
            mask = np.frombuffer(p.data, dtype=bool)[lanes]
            return TRUE if mask.all() else UNKNOWN if mask.any() else FALSE
        case "and":
            return conjunction(formula(arena, q, lanes) for q in p.args)
        case "or":
            return disjunction(formula(arena, q, lanes) for q in p.args)
        case "not":
            return negation(formula(arena, p.args[0], lanes))
        case "dom":
            i = Poly({(p.data[0],): 1})
            prior = at_most(arena.substitute_poly(p.data[1], {p.data[0]: i - 1}))
            later = conjunction((at_most(1 - i), prior))
            return conjunction((at_most(-i), disjunction((equal(i), later))))
        case _:
            return UNKNOWN


def definition(arena: Arena, atom: Atom, lanes: IntVector) -> Formula:
    """What is true of a derived atom; together with the meaning of its arguments it determines the atom's value.

    A quotient by an unknown that may be ≤ 0 is only defined where the divisor is positive. A trip count is the least
    n ≥ 1 after which the loop stops; the formula names it uniquely when the continue polynomial grows with the counter.
    """
    v = arena.variable(atom)
    match atom.kind:
        case "div":
            a, b = atom.args
            both = conjunction((at_most(b * v, a), at_most(a, b * v + b - 1)))
            if (lo := arena.bounds(b)[0]) is not None and lo >= 1:
                return both
            return disjunction((conjunction((at_most(1 - b), both)), at_most(b)))
        case "min" | "max":
            sign = 1 if atom.kind == "min" else -1
            within = [at_most((v - a) * sign) for a in atom.args]
            return conjunction((*within, disjunction(equal(v, a) for a in atom.args)))
        case "phi":
            if atom.pred is None:
                return TRUE
            g = formula(arena, atom.pred, lanes)
            a, b = atom.args
            return disjunction((conjunction((g, equal(v, a))), conjunction((negation(g), equal(v, b)))))
        case "trip":
            p, i = atom.args[0], atom.tag
            last = arena.substitute_poly(p, {i: v - 1})
            before = arena.substitute_poly(p, {i: v - 2})
            first = disjunction((equal(v, 1), conjunction((at_most(2 - v), at_most(before)))))
            return conjunction((at_most(1 - v), first, at_most(1 - last)))
        case _:
            return TRUE


def nested_quotients(arena: Arena, atoms: Iterable[int]) -> Iterator[Formula]:
    """0 ≤ ⌊a/b⌋ + m − c·⌊(a + m·b)/(b·c)⌋ ≤ c − 1 for quotients of the same number by b ≥ 1 and b·c, c ≥ 1.

    Graham, Knuth and Patashnik, Concrete Mathematics, (3.11): ⌊⌊x⌋/c⌋ = ⌊x/c⌋ with x = a/b + m.
    """
    found = [arena.atoms[a] for a in atoms if a >= 0 and arena.atoms[a].kind == "div"]
    for small in found:
        a, b = small.args
        if (lo := arena.bounds(b)[0]) is None or lo < 1:
            continue
        for big in found:
            c, m = _ratio(big.args[1], b), _ratio(big.args[0] - a, b)
            if big is small or c is None or m is None or m.as_int() is None:
                continue
            if (least := arena.bounds(c)[0]) is not None and least >= 1:
                digit = arena.variable(small) + m - c * arena.variable(big)
                yield conjunction((at_most(-digit), at_most(digit - c + 1)))


def _ratio(p: Poly, q: Poly) -> Poly | None:
    """p / q when q is one term with a lane-uniform coefficient that divides every term of p."""
    if len(q.terms) != 1 or not p.uniform():
        return None
    ((m, k),) = q.terms.items()
    out: dict[Monomial, int | IntVector] = {}
    for n, c in p.terms.items():
        rest = list(n)
        for x in m:
            if x not in rest:
                return None
            rest.remove(x)
        if not isinstance(c, int) or not isinstance(k, int) or c % k:
            return None
        out[tuple(rest)] = c // k
    return Poly(out)


def monotone_trip(arena: Arena, atom: Atom) -> bool:
    """True when the continue polynomial of a trip count is non-decreasing in its loop counter."""
    slope, rest = atom.args[0].split(atom.tag)
    if atom.tag in slope.atoms() or any(atom.tag in support(arena, (q,)) for q in _atom_polys(arena, slope, rest)):
        return False
    lo = arena.bounds(slope)[0]
    return lo is not None and lo >= 0


def _atom_polys(arena: Arena, *polys: Poly) -> Iterator[Poly]:
    for p in polys:
        for a in p.atoms():
            if arena.atoms[a].args:
                yield arena.variable(arena.atoms[a])


def pred_polys(p: Pred) -> Iterator[Poly]:
    """The polynomials of a predicate."""
    if isinstance(p.data, Poly):
        yield p.data
    elif p.op == "dom":
        yield p.data[1]
        yield Poly({(p.data[0],): 1})
    for q in p.args:
        yield from pred_polys(q)


def real_polys(x: Real) -> Iterator[Poly]:
    """The polynomials of a term, those of its conditions included."""
    seen: set[int] = set()
    stack = [x]
    while stack:
        y = stack.pop()
        if y.id in seen:
            continue
        seen.add(y.id)
        data = y.data[1] if isinstance(y.data, tuple) and len(y.data) > 1 else y.data
        if isinstance(data, Poly):
            yield data
        conditions = [y.pred] if y.pred is not None else []
        while conditions:
            p = conditions.pop()
            yield from pred_polys(p)
            stack.extend(p.reals)
            conditions.extend(p.args)
        stack.extend(y.args)


def support(arena: Arena, polys: Iterable[Poly], preds: Iterable[Pred] = ()) -> tuple[int, ...]:
    """Every atom that the polynomials and predicates mention, also inside derived atoms, ascending."""
    seen: set[int] = set()
    stack: list[Poly] = [*polys, *(q for p in preds for q in pred_polys(p))]
    while stack:
        for a in stack.pop().atoms() - seen:
            seen.add(a)
            if a < 0:
                continue
            atom = arena.atoms[a]
            stack.extend(atom.args)
            if atom.pred is not None:
                stack.extend(pred_polys(atom.pred))
            if atom.real is not None:
                stack.extend(real_polys(atom.real))
    return tuple(sorted(seen))


def _masks(p: Pred) -> Iterator[BoolVector]:
    if p.op == "lanes":
        yield np.frombuffer(p.data, dtype=bool)
    for q in p.args:
        yield from _masks(q)


def lane_classes(
    arena: Arena, preds: Iterable[Pred], atoms: Iterable[int], lanes: IntVector, limit: int = 16,
) -> list[IntVector]:
    """The lanes on which the masks at the top of the predicates hold, split so that every other mask is constant.

    Raises `Unsupported` when there would be more than `limit` classes.
    """
    inner: list[Pred] = []
    for p in preds:
        for q in arena.conjuncts(p):
            if q.op == "lanes":
                lanes = lanes[np.frombuffer(q.data, dtype=bool)[lanes]]
            elif q.op == "false":
                lanes = lanes[:0]
            else:
                inner.append(q)
    return split_lanes(arena, inner, atoms, lanes, limit)


def split_lanes(
    arena: Arena, preds: Iterable[Pred], atoms: Iterable[int], lanes: IntVector, limit: int = 16,
) -> list[IntVector]:
    """The lanes in classes on which every mask in the predicates, and in the choices of the atoms, is constant."""
    choices = [g for a in atoms if a >= 0 and (g := arena.atoms[a].pred) is not None]
    classes = [lanes] if len(lanes) else []
    for m in (m for p in (*preds, *choices) for m in _masks(p)):
        classes = [part for c in classes for part in (c[m[c]], c[~m[c]]) if len(part)]
        if len(classes) > limit:
            raise Unsupported("lane masks", f"more than {limit} different combinations of lane masks")
    return classes


def is_data(arena: Arena, p: Pred) -> bool:
    """True for a condition on values that are read: floats, or loaded integers."""
    if p.reals or p.op == "fcmp" or any(is_data(arena, q) for q in p.args):
        return True
    return any(arena.atoms[i].kind == "elem" for i in support(arena, (), (p,)) if i >= 0)
