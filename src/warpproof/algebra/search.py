"""The search for a refutation: lazily added facts and products, then disjunctions, then integer cuts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from math import prod
from typing import Any, Final

from flint import fmpq

from warpproof.algebra.constraints import Formula
from warpproof.algebra.refutation import Cut, Leaf, Split, System, Term, Tree
from warpproof.algebra.simplex import Simplex, Steps
from warpproof.core import check_time
from warpproof.terms import Monomial, Poly

Label = tuple[tuple[int, ...], Monomial]
_BATCH: Final = 8
_MAX_PRODUCTS: Final = 400
_MAX_DEGREE: Final = 6
_MAX_ROUNDS: Final = 12
_LEVELS: Final = 4
_TERMS: Final = 100  # terms of polynomials that cost one step


class Refuted(Exception):
    """The system has an integer solution, so that it has no refutation."""


class Search:
    """One node of the case tree: the system so far, the constraints already in the simplex, and the known products."""

    def __init__(
        self, system: System, steps: Steps, focus: frozenset[int] | None = None, *, products: str = "early",
        cuts: int = 2,
    ) -> None:
        """Products are formed for the nonlinear monomials of the first fact (the negated goal) and those that mention
        an unknown in `focus`; for all nonlinear monomials when `focus` is None: `early`, before disjunctions and cuts,
        `late`, after what is linear, or `none`."""
        self.system, self._steps, self._focus, self._multiply, self._cuts = system, steps, focus, products, cuts
        self._simplex = Simplex(steps)
        self._used: set[Label] = set()
        self._products: dict[Label, Poly] = {}
        self._expanded, self._level = -1, 0
        self._spent: set[int] = set()
        self._rounds = _MAX_ROUNDS // 3 if products == "early" else _MAX_ROUNDS

    def _child(self) -> Search:
        out = Search(self.system.copy(), self._steps, self._focus, products=self._multiply, cuts=self._cuts)
        out._simplex = self._simplex.copy()
        out._used, out._products, out._spent = set(self._used), dict(self._products), set(self._spent)
        out._rounds = self._rounds
        return out

    def run(self) -> Tree | None:
        """A refutation of the system, or None when this search finds none; raises `OutOfSteps`."""
        while True:
            check_time()
            found = self._simplex.conflict()
            if found is not None:
                return Leaf(tuple(
                    Term(Fraction(int(w.p), int(w.q)), label[0], label[1])
                    for label, w in _labelled(found) if w != 0
                ))
            model = self._simplex.values()
            if self._add(model, self._facts()):
                continue
            if self._multiply == "early" and self._add_products(model):
                continue
            index = self._violated_case(model)
            if index is not None:
                return self._split(index)
            if self._is_solution(model):
                raise Refuted
            poly = self._closing_cut()
            if poly is not None:
                return self._branch(poly)
            if self._multiply == "late" and self._add_products(model):
                continue
            return self._open_cut()

    # ------------------------------------------------------------------ constraints
    def _facts(self) -> Iterator[tuple[Label, Poly]]:
        for i, p in enumerate(self.system.polys):
            yield ((i,), ()), p

    def _add(self, model: dict[Monomial, Any], pool: Iterable[tuple[Label, Poly]]) -> bool:
        """Put the most violated constraints of the pool into the simplex; False when none is violated."""
        worst: list[tuple[Any, Label, Poly]] = []
        size = 0
        for label, p in pool:
            if label in self._used:
                continue
            size += len(p.terms)
            v = _evaluate(p, model)
            if self.system.equal[label[0][0]]:
                v = -abs(v)
            if v < 0:
                worst.append((v / (1 + max(abs(c) for c in p.terms.values() if isinstance(c, int))), label, p))
        self._steps.take(size // _TERMS)
        worst.sort(key=lambda w: (w[0], w[1]))
        for _, label, p in worst[:_BATCH]:
            self._steps.take()
            self._used.add(label)
            self._simplex.add(p, self.system.equal[label[0][0]], label)
        return bool(worst)

    # ------------------------------------------------------------------ products
    def _add_products(self, model: dict[Monomial, Any]) -> bool:
        """Put violated products into the simplex, forming more of them as needed; False when there are none."""
        if self._expanded != len(self.system.polys):
            self._expanded, self._level = len(self.system.polys), 0
        while not self._add(model, self._products.items()):
            if self._level == _LEVELS:
                return False
            self._level += 1
            self._expand(self._level)
        return True

    def _expand(self, level: int) -> None:
        """Products that complete a wanted monomial by non-negative unknowns; then for their monomials; then pairs."""
        polys, equal = self.system.polys, self.system.equal
        targets = {m for k, p in enumerate(polys) for m in p.terms if len(m) > 1 and self._wanted(k, m)}
        if not targets:
            return
        if level == _LEVELS:
            self._pairs()
            return
        degree = min(_MAX_DEGREE, max(len(m) for m in targets) + 1)
        if level > 1:
            targets |= {m for p in self._products.values() for m in p.terms if len(m) > 1}
        lower = self._lower_bounds()
        for i, p in enumerate(polys):
            for v in self._cofactors(p, targets, degree):
                label = self._cofactor_label(i, v, lower, equal[i])
                if label is not None:
                    self._product(label)

    def _wanted(self, fact: int, m: Monomial) -> bool:
        return fact == 0 or self._focus is None or not self._focus.isdisjoint(m)

    def _cofactors(self, p: Poly, targets: set[Monomial], degree: int) -> list[Monomial]:
        top = max((len(m) for m in p.terms), default=0)
        out: set[Monomial] = set()
        for u in p.terms:
            for t in targets if u else ():
                rest = _quotient(t, u)
                if rest and top + len(rest) <= degree:
                    out.add(rest)
        return sorted(out)

    def _lower_bounds(self) -> dict[int, int]:
        """For each unknown x the fact x − k ≥ 0 with the least k ≥ 0."""
        best: dict[int, tuple[int, int]] = {}
        for i, p in enumerate(self.system.polys):
            unknowns = [m for m in p.terms if m]
            k = p.terms.get((), 0)
            if len(unknowns) == 1 and len(unknowns[0]) == 1 and p.terms[unknowns[0]] == 1 and not self.system.equal[i]:
                x = unknowns[0][0]
                if isinstance(k, int) and k <= 0 and (x not in best or best[x][0] < k):
                    best[x] = (k, i)
        return {x: i for x, (_, i) in best.items()}

    @staticmethod
    def _cofactor_label(i: int, v: Monomial, lower: dict[int, int], equality: bool) -> Label | None:
        if equality:
            return (i,), v
        if not all(x in lower for x in v):
            return None
        return tuple(sorted((i, *(lower[x] for x in v)))), ()

    def _product(self, label: Label) -> None:
        if label in self._products or len(self._products) >= _MAX_PRODUCTS:
            return
        p = Poly({label[1]: 1})
        for i in label[0]:
            self._steps.take(1 + len(p.terms) * len(self.system.polys[i].terms) // _TERMS)
            p = p * self.system.polys[i]
        self._products[label] = p

    def _pairs(self) -> None:
        """Pairs of inequalities whose product only has nonlinear monomials that occur already."""
        known = {m for p in (*self.system.polys, *self._products.values()) for m in p.terms if len(m) > 1}
        items = [
            (i, p) for i, p in enumerate(self.system.polys)
            if not self.system.equal[i] and 1 < len(p.terms) <= 6 and all(len(m) < 2 for m in p.terms)
        ]
        for n, (i, p) in enumerate(items):
            for j, q in items[n:]:
                mixed = {tuple(sorted(a + b)) for a in p.terms if a for b in q.terms if b}
                if mixed <= known:
                    self._product(((i, j), ()))

    # ------------------------------------------------------------------ cases
    def _violated_case(self, model: dict[Monomial, Any]) -> int | None:
        """The disjunction to split on: a violated one of few cases, else one with products the simplex ignores."""
        best: tuple[bool, int, int] | None = None
        for k, options in enumerate(self.system.cases):
            if k in self._spent:
                continue
            satisfied = any(_holds(f, model) for f in options)
            if not satisfied or any(len(m) > 1 for f in options for p in f.polys() for m in p.terms):
                rank = (satisfied, len(options), k)
                best = min(best, rank) if best else rank
        return best[2] if best else None

    def _split(self, index: int) -> Tree | None:
        children: list[Tree] = []
        for option in self.system.cases[index]:
            self._steps.take(4)
            child = self._child()
            child._spent.add(index)
            child.system.assume(option)
            sub = child.run()
            if sub is None:
                return None
            children.append(sub)
        return Split(index, tuple(children))

    def _closing_cut(self) -> Poly | None:
        """An integer polynomial g: g ≤ 0 or g ≥ 1 is infeasible over the rationals, and the model is neither."""
        if not self._rounds:
            return None
        rounded = sorted(islice(self._simplex.rounding_cuts(), 3 * _MAX_ROUNDS), key=_weight)
        for poly in [*self._differences(), *self._fractional(), *rounded][: 2 * self._rounds]:
            if self._closes(poly):
                self._rounds -= 1
                return poly
        return None

    def _is_solution(self, model: dict[Monomial, Any]) -> bool:
        """True when the unknowns' values, products computed from them, satisfy the whole system: nothing to prove."""
        point = {m[0]: int(v.p) for m, v in model.items() if len(m) == 1 and v.q == 1}
        if len(point) < sum(len(m) == 1 for m in model):
            return False
        low: dict[int, int] = {}
        for p in self.system.inequalities():
            unknowns = [m for m in p.terms if m]
            if len(unknowns) == 1 and len(unknowns[0]) == 1 and p.terms[unknowns[0]] == 1:
                x = unknowns[0][0]
                low[x] = max(low.get(x, -int(p.constant)), -int(p.constant))
        point = {**low, **point}
        exact = _Point(point)
        return all(
            v == 0 if e else v >= 0 for p, e in zip(self.system.polys, self.system.equal) for v in (exact.value(p),)
        ) and all(any(exact.holds(f) for f in options) for options in self.system.cases)

    def _open_cut(self) -> Tree | None:
        """A branch on an unknown with a fractional value."""
        single = self._fractional()
        if not self._cuts or not single:
            return None
        self._cuts -= 1
        return self._branch(single[0])

    def _differences(self) -> list[Poly]:
        """x − y rounded, for unknowns whose difference is fractional: they grow together where each is unbounded."""
        model = [(m, v) for m, v in sorted(self._simplex.values().items()) if len(m) == 1]
        return [
            Poly({m: 1, n: -1}) - int((v - w).floor())
            for k, (m, v) in enumerate(model) for n, w in model[:k] if (v - w).q != 1
        ][:_MAX_ROUNDS]

    def _fractional(self) -> list[Poly]:
        model = self._simplex.values()
        return [Poly({m: 1}) - int(v.floor()) for m, v in sorted(model.items()) if len(m) == 1 and v.q != 1]

    def _closes(self, poly: Poly) -> bool:
        """True when poly ≤ 0 or poly ≥ 1 is infeasible over the rationals."""
        for side in (-poly, poly - 1):
            trial = self._simplex.copy()
            self._steps.take(1 + trial.entries() // _TERMS)
            trial.add(side, False, ((-1,), ()))
            if trial.conflict() is not None:
                return True
        return False

    def _branch(self, poly: Poly) -> Tree | None:
        """The cases poly ≤ 0 and poly ≥ 1."""
        children: list[Tree] = []
        for side in (-poly, poly - 1):
            self._steps.take(4)
            child = self._child()
            child.system.fact(side)
            sub = child.run()
            if sub is None:
                return None
            children.append(sub)
        return Cut(poly, (children[0], children[1]))


class _Point:
    """Integer values of the unknowns, 0 where none is given."""

    def __init__(self, values: dict[int, int]) -> None:
        self._values = values

    def value(self, p: Poly) -> int:
        """The value of a polynomial."""
        return sum(c * prod(self._values.get(a, 0) for a in m) for m, c in p.terms.items() if isinstance(c, int))

    def holds(self, f: Formula) -> bool:
        """The truth of a formula without unknown parts."""
        match f.op:
            case "le":
                return self.value(f.poly) <= 0
            case "eq":
                return self.value(f.poly) == 0
            case "and":
                return all(self.holds(a) for a in f.args)
            case "or":
                return any(self.holds(a) for a in f.args)
            case _:
                return f.op != "false"


def _weight(p: Poly) -> tuple[int, tuple[tuple[tuple[int, ...], int | bytes], ...]]:
    return sum(abs(c) if isinstance(c, int) else 0 for m, c in p.terms.items() if m), p.key


def _labelled(found: dict[Any, Any]) -> list[tuple[Label, Any]]:
    return sorted(found.items())


@lru_cache(maxsize=1 << 16)
def _quotient(t: Monomial, u: Monomial) -> Monomial:
    """t / u, or the empty monomial when u does not divide t properly."""
    if len(u) >= len(t):
        return ()
    rest = list(t)
    for a in u:
        if a not in rest:
            return ()
        rest.remove(a)
    return tuple(rest)


def _evaluate(p: Poly, model: dict[Monomial, Any]) -> Any:
    total: Any = fmpq(0)
    for m, c in p.terms.items():
        if not m:
            total += c
        elif m in model:
            total += c * model[m]
    return total


def _holds(f: Formula, model: dict[Monomial, Any]) -> bool:
    match f.op:
        case "le":
            return bool(_evaluate(f.poly, model) <= 0)
        case "eq":
            return bool(_evaluate(f.poly, model) == 0)
        case "and":
            return all(_holds(a, model) for a in f.args)
        case "or":
            return any(_holds(a, model) for a in f.args)
        case _:
            return f.op != "false"
