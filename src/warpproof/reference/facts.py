"""Deciding integer predicates from the preconditions: substitution of equalities, then linear arithmetic.

`Facts.holds(p)` is True only if p follows. Equalities and divisibilities are solved for a size symbol first
(`cols % group == 0` makes cols a multiple of group); what is left is a search for non-negative multipliers λ with
p = Σ λᵢ·cᵢ + c, c > −1, over known cᵢ ≥ 0 (Farkas' lemma over the monomials; integers make −1 enough).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Final

from warpproof.reference.simplex import feasible
from warpproof.terms import Arena, Monomial, Poly, Pred, const

_ROUNDS: Final = 4
_LIMIT: Final = 120
_SPLITS: Final = 3


class Facts:
    """What is known about the integers of one run: preconditions, ranges of indices, ranges of loaded elements."""

    def __init__(
        self, arena: Arena, facts: Iterable[Pred],
        elements: Mapping[str, tuple[Poly | None, Poly | None]] | None = None,
    ) -> None:
        self.arena = arena
        self.elements = dict(elements or {})
        self._domains: dict[int, tuple[Poly, Poly]] = {}
        self._solved: dict[int, Poly] = {}
        self._memo: dict[object, bool] = {}
        self._asking: set[int] = set()
        self._depth = 0
        self._given: set[Pred] = set()
        self._known: list[Poly] = []
        for p in facts:
            self._given.update(arena.conjuncts(p))
        for p in sorted(self._given):
            self._solve(p)
        for p in sorted(self._given):
            self._known += self._as_known(self.normal_pred(p))
        for a, image in self._solved.items():
            lo, hi = arena.ranges.get(a, (None, None))
            self._known += [self.normal(q) for q in ([image - lo] if lo is not None else [])]
            self._known += [self.normal(q) for q in ([hi - image] if hi is not None else [])]

    # ------------------------------------------------------------------ what is known
    def domain(self, atom: int, lo: Poly, hi: Poly) -> None:
        """Record that an index atom lies in [lo, hi), before anything is asked about it."""
        self._domains[atom] = (lo, hi)

    def normal(self, p: Poly) -> Poly:
        """p with the solved symbols replaced; equal normal forms mean equal values under the preconditions."""
        for _ in range(_ROUNDS):
            if not self._solved:
                break
            q = self.arena.substitute_poly(p, self._solved)
            if q == p:
                break
            p = q
        return p

    def normal_pred(self, p: Pred) -> Pred:
        """A comparison with the solved symbols replaced."""
        match p.op:
            case "le":
                return self.arena.le(self.normal(p.data))
            case "eq":
                return self.arena.eq(self.normal(p.data))
            case _:
                return p

    def _solve(self, p: Pred) -> None:
        """Solve an equality for one size symbol, if that is possible without a circle."""
        q = self.normal_pred(p)
        if q.op != "eq":
            return
        e: Poly = q.data
        for m, c in e.terms.items():
            if len(m) == 1 and c in (1, -1) and self.arena.atoms[m[0]].kind == "size":
                image = self._image(m[0], -(e - Poly({m: c})) * c)
                if image is not None:
                    self._solved = {a: self.arena.substitute_poly(v, {m[0]: image}) for a, v in self._solved.items()}
                    self._solved[m[0]] = image
                    return

    def _image(self, x: int, value: Poly) -> Poly | None:
        """The value of x where x = value; a fresh multiple of b where value is b·⌊x/b⌋."""
        A = self.arena
        if not self._occurs(x, value):
            return value
        if len(value.terms) != 1:
            return None
        ((m, c),) = value.terms.items()
        for d in m:
            atom = A.atoms[d]
            if atom.kind == "div" and not atom.tag and atom.args[0] == Poly({(x,): 1}):
                rest = list(m)
                rest.remove(d)
                b = Poly({tuple(rest): c})
                if b == atom.args[1] and not self._occurs(x, b):
                    lo, hi = A.ranges.get(d, (None, None))
                    if self._positive(Poly({(x,): 1})) and self._positive(b):
                        lo = max(lo or 1, 1)  # a positive multiple of a positive number
                    return b * A.variable(A.fresh("size", f"{A.atoms[x].name}/{len(A.atoms)}", lo, hi))
        return None

    def _occurs(self, x: int, p: Poly) -> bool:
        return any(a == x or any(self._occurs(x, q) for q in self.arena.atoms[a].args) for a in p.atoms())

    # ------------------------------------------------------------------ questions
    def same(self, p: Poly, q: Poly) -> bool:
        """True if p = q for all admitted sizes."""
        d = self.normal(p - q)
        return not d.terms or (self.nonnegative(d) and self.nonnegative(-d))

    def holds_given(self, p: Pred, context: Iterable[Pred]) -> bool:
        """True if the predicate follows from what is known together with a context."""
        with self.assuming(context):
            return self.holds(p)

    @contextlib.contextmanager
    def assuming(self, context: Iterable[Pred]) -> Iterator[None]:
        """What is known, extended by a context while the block runs."""
        parts = [self.normal_pred(d) for c in context for d in self.arena.conjuncts(c)]
        before = self._known, self._memo, self._given
        self._known = self._known + [q for d in parts for q in self._as_known(d)]
        self._memo, self._given = {}, self._given | set(context) | set(parts)
        try:
            for d in parts:
                if d.op == "ne":
                    self._known += [q for e in (d.data, -d.data) if self.nonnegative(e) for q in [e - 1]]
                    self._memo = {}
            yield
        finally:
            self._known, self._memo, self._given = before

    def _as_known(self, p: Pred) -> list[Poly]:
        if p.op == "le":
            return [-p.data]
        return [p.data, -p.data] if p.op == "eq" else []

    def holds(self, p: Pred) -> bool:
        """True if the predicate follows from what is known."""
        if p.op == "true" or p in self._given:
            return True
        match p.op:
            case "le":
                return self.nonnegative(-p.data)
            case "eq":
                return self.same(p.data, const(0))
            case "ne":
                return self.nonnegative(p.data - 1) or self.nonnegative(-p.data - 1) or self._excluded(p.data)
            case "and":
                return all(self.holds(q) for q in p.args)
            case "or":
                return any(self.holds(q) for q in p.args)
            case "fcmp" if p.data in ("le", "ne"):
                below = [p.reals, p.reals[::-1]] if p.data == "ne" else [p.reals]
                return any(self.arena.fcmp("lt", *pair) in self._given for pair in below)
            case _:
                return False

    def decide(self, p: Pred) -> bool | None:
        """True or False if what is known settles the predicate, else None."""
        if self.holds(p):
            return True
        return False if self.holds(self.arena.negate(p)) else None

    def simplify(self, p: Pred) -> Pred:
        """A predicate that agrees with p wherever the facts hold, decided parts removed."""
        if p.op in ("and", "or"):
            parts = [self.simplify(q) for q in p.args]
            return self.arena.conj(parts) if p.op == "and" else self.arena.disj(parts)
        known = self.decide(p) if p.op in ("le", "eq", "ne") else None
        return p if known is None else self.arena.truth(known)

    def _excluded(self, p: Poly) -> bool:
        return self.arena.ne(p) in self._given

    def nonnegative(self, p: Poly) -> bool:
        """True if p ≥ 0 follows."""
        p = self.normal(p)
        lo, hi = self.arena.bounds(p)
        if lo is not None and lo >= 0:
            return True
        if p.is_constant() or not p.uniform() or (hi is not None and hi < 0):
            return False
        key = (p.key, tuple(sorted(self._asking)), self._depth)
        found = self._memo.get(key)
        if found is None:
            found = self._search(p) or self._by_cases(p)
            self._memo[key] = found
        return found

    def _search(self, p: Poly) -> bool:
        known = self._axioms(p)
        goal = {m: Fraction(c) for m, c in p.terms.items() if isinstance(c, int)}
        rows = [{m: Fraction(c) for m, c in k.terms.items() if isinstance(c, int)} for k in known if k.uniform()]
        goal[()] = goal.get((), Fraction(0)) + 1 - Fraction(1, 1024)
        return feasible(goal, rows)

    # ------------------------------------------------------------------ case splits
    def _by_cases(self, p: Poly) -> bool:
        """p ≥ 0 through an atom that occurs once, linearly: the definition of a quotient, extremum or choice."""
        if self._depth >= _SPLITS:
            return False
        self._depth += 1
        try:
            for a in sorted(p.atoms(), reverse=True):
                c = p.terms.get((a,))
                if isinstance(c, int) and all(a not in m for m in p.terms if m != (a,)) and self._case(p, a, c):
                    return True
            return False
        finally:
            self._depth -= 1

    def _case(self, p: Poly, a: int, c: int) -> bool:
        atom, rest = self.arena.atoms[a], p - Poly({(a,): c})
        parts = [rest + q * c for q in atom.args]
        match atom.kind:
            case "max" | "min":
                every = (atom.kind == "max") == (c < 0)
                return (all if every else any)(self.nonnegative(q) for q in parts)
            case "phi" if atom.pred is not None:
                for guard, q in zip((atom.pred, self.arena.negate(atom.pred)), parts):
                    with self.assuming([guard]):
                        if not self.nonnegative(q):
                            return False
                return True
            case "div" if not atom.tag and self.nonnegative(atom.args[1] - 1):
                n, d = atom.args
                if any(k % c for k in rest.symbolic().terms.values() if isinstance(k, int)):
                    return False
                share = self.arena.floor_div(rest, const(abs(c)))
                return self.nonnegative(d * (share + 1) - 1 - n if c < 0 else n + d * share)
        return False

    # ------------------------------------------------------------------ axioms
    def _axioms(self, p: Poly) -> list[Poly]:
        """Polynomials known to be ≥ 0 that speak about the atoms of p, and products that link its monomials."""
        atoms, base, seen = set(p.atoms()), [], set()
        frontier = set(atoms)
        for _ in range(_ROUNDS):
            fresh: list[Poly] = [q for a in sorted(frontier) for q in self._about(a)]
            fresh += [k for k in self._known if k not in seen and k.atoms() & atoms]
            fresh = [self.normal(q) for q in fresh]
            fresh = [q for q in dict.fromkeys(fresh) if q not in seen and q.uniform()]
            seen.update(fresh)
            base += fresh
            frontier = {a for q in fresh for a in q.atoms()} - atoms
            atoms |= frontier
            if not fresh or len(base) > _LIMIT:
                break
        return base + self._products(p, base)

    def _about(self, a: int) -> list[Poly]:
        atom, x = self.arena.atoms[a], Poly({(a,): 1})
        lo, hi = self.arena.ranges.get(a, (None, None))
        out = [x - lo] if lo is not None else []
        out += [hi - x] if hi is not None else []
        if a in self._domains:
            first, end = self._domains[a]
            out += [x - first, end - 1 - x]
        match atom.kind:
            case "div" if not atom.tag:
                n, d = atom.args
                if self._positive(d):
                    out += [n - d * x, d * x + d - 1 - n]
                    out += self._least_quotient(a, n, d) if lo is None or lo < 1 else []
            case "min":
                out += [q - x for q in atom.args]
            case "max":
                out += [x - q for q in atom.args]
            case "elem" if atom.tag == 0 and atom.name in self.elements:
                first_, end_ = self.elements[atom.name]
                out += [x - first_] if first_ is not None else []
                out += [end_ - 1 - x] if end_ is not None else []
        return out

    def _least_quotient(self, quotient: int, n: Poly, d: Poly) -> list[Poly]:
        """⌊n/d⌋ ≥ 1 or ≥ 0 where n ≥ d or n ≥ 0 follows, unless that is being asked already."""
        if quotient in self._asking:
            return []
        self._asking.add(quotient)
        try:
            x = Poly({(quotient,): 1})
            return [x - 1] if self.nonnegative(n - d) else [x] if self.nonnegative(n) else []
        finally:
            self._asking.discard(quotient)

    def _positive(self, p: Poly) -> bool:
        lo = self.arena.bounds(p)[0]
        return lo is not None and lo >= 1

    def _products(self, p: Poly, base: list[Poly]) -> list[Poly]:
        """base · atom for non-negative atoms that occur in a product somewhere."""
        wanted: set[int] = set()
        for q in [p, *base]:
            for m in q.terms:
                if len(m) > 1:
                    wanted.update(m)
        least = {a: self.arena.ranges.get(a, (None, None))[0] for a in wanted}
        factors = [a for a in sorted(wanted) if (lo := least[a]) is not None and lo >= 0]
        have: set[Monomial] = {m for q in [p, *base] for m in q.terms if len(m) > 1}
        out: list[Poly] = []
        for a in factors:
            for q in base:
                product = q * Poly({(a,): 1})
                if any(m in have for m in product.terms):
                    out.append(product)
                if len(out) > _LIMIT:
                    return out
        return out

    # ------------------------------------------------------------------ division
    def floor_div(self, p: Poly, q: Poly) -> Poly:
        """⌊p/q⌋ for q > 0, quotients that the facts make zero removed."""
        out = self.arena.floor_div(p, q)
        zero: dict[int, Poly] = {}
        for a in out.atoms():
            atom = self.arena.atoms[a]
            if atom.kind == "div" and not atom.tag:
                n, d = atom.args
                if self.nonnegative(n) and self.nonnegative(d - 1 - n):
                    zero[a] = const(0)
        return self.arena.substitute_poly(out, zero) if zero else out

    def mod(self, p: Poly, q: Poly) -> Poly:
        """p mod q for q > 0."""
        return p - q * self.floor_div(p, q)
