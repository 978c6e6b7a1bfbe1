"""Predicate side of the arena: canonical comparisons, conjunctions with implication, negation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from warpproof.terms.integers import IntegerArena
from warpproof.terms.nodes import EMPTY, Pred, Real
from warpproof.terms.poly import Coef, Poly, const

BoolVector = npt.NDArray[np.bool_]


class PredicateArena(IntegerArena):
    """Owner of the predicate nodes."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self._preds: dict[object, Pred] = {}
        self._conjunctions: dict[frozenset[int], Pred] = {}  # by the ids of their parts, as the ranges stand
        self.true = self._pred("true", (), None, ())
        self.false = self._pred("false", (), None, ())

    def _pred(self, op: str, args: tuple[Pred, ...], data: object, reals: tuple[Real, ...]) -> Pred:
        poly = data[-1] if isinstance(data, tuple) else data
        dkey = (
            data.key if isinstance(data, Poly) else (data[0], data[1].key) if isinstance(data, tuple) else data
        )
        key = (op, tuple(a.id for a in args), dkey, tuple(r.id for r in reals))
        found = self._preds.get(key)
        if found is not None:
            return found
        free: frozenset[int] = EMPTY
        uniform = op != "lanes"
        for a in args:
            free, uniform = free | a.free, uniform and a.uniform
        for r in reals:
            free, uniform = free | r.free, uniform and r.uniform
        if isinstance(poly, Poly):
            free, uniform = free | self.poly_free(poly), uniform and self.poly_uniform(poly)
        if op == "state" and isinstance(data, int):
            free = free | {data}
            uniform = False
        if op == "dom" and isinstance(data, tuple):
            free = free | {data[0]}
        height = max([*(n.height for n in args), *(n.height for n in reals)], default=0)
        if isinstance(poly, Poly):
            height = max(height, self.poly_height(poly))
        node = Pred(len(self._preds), op, args, data, reals, free, uniform, height)
        self._preds[key] = node
        return node

    # ------------------------------------------------------------------ comparisons
    def le(self, p: Poly) -> Pred:
        """p ≤ 0, decided where constants or ranges decide it."""
        if p.is_constant():
            return self.lane_mask(np.asarray(p.lanes(self.lanes) <= 0))
        lo, hi = self.bounds(p)
        if hi is not None and hi <= 0:
            return self.true
        if lo is not None and lo > 0:
            return self.false
        signs = self._or_operands(p - 1 if isinstance(p.constant, int) and p.constant == 1 else p)
        if signs is not None and isinstance(p.constant, int) and p.constant == 1:
            return self.disj(self.le(q + 1) for q in signs)  # a | b < 0
        signs = self._or_operands(-p)
        if signs is not None:
            return self.conj(self.le(-q) for q in signs)  # a | b ≥ 0
        chosen = self._le_choice(p)
        if chosen is not None:
            return chosen
        g = p.content()
        if g > 1:
            c = p.constant
            p = p.symbolic().exact_div(g) + const(-((-c) // g))
        return self._pred("le", (), p, ())

    def _le_choice(self, p: Poly) -> Pred | None:
        """A comparison of one choice that a side decides: by cases."""
        symbolic = p.symbolic()
        if len(symbolic.terms) != 1:
            return None
        ((m, c),) = symbolic.terms.items()
        atom = self.atoms[m[0]]
        if len(m) != 1 or atom.kind != "phi" or atom.pred is None:
            return None
        yes, no = (self.le(q * c + const(p.constant)) for q in atom.args)
        if not {yes.op, no.op} & {"true", "false"}:
            return None
        return self.disj((self.conj((atom.pred, yes)), self.conj((self.negate(atom.pred), no))))

    def lt(self, p: Poly, q: Poly) -> Pred:
        """p < q."""
        return self.le(p - q + 1)

    def eq(self, p: Poly) -> Pred:
        """p = 0."""
        return self._equality(p, "eq")

    def ne(self, p: Poly) -> Pred:
        """p ≠ 0."""
        return self._equality(p, "ne")

    def _equality(self, p: Poly, op: str) -> Pred:
        if p.is_constant():
            same = np.asarray(p.lanes(self.lanes) == 0)
            return self.lane_mask(same if op == "eq" else ~same)
        signs = self._or_operands(p) or self._or_operands(-p)
        if signs is not None:
            zero = self.conj(self.eq(q) for q in signs)
            return zero if op == "eq" else self.negate(zero)
        lo, hi = self.bounds(p)
        no = self.false if op == "eq" else self.true
        if (lo is not None and lo > 0) or (hi is not None and hi < 0):
            return no
        g = p.content()
        if g > 1:
            if p.uniform() and isinstance(p.constant, int) and p.constant % g:
                return no
            g = p.content(constant=True)
            p = p.exact_div(g) if g > 1 else p
        first = next(iter(sorted(m for m in p.terms if m)))
        lead = p.terms[first]
        if isinstance(lead, int) and lead < 0:
            p = -p
        return self._pred(op, (), p, ())

    def lane_mask(self, mask: BoolVector) -> Pred:
        """True exactly in the lanes of `mask`."""
        if mask.all():
            return self.true
        if not mask.any():
            return self.false
        return self._pred("lanes", (), np.ascontiguousarray(np.broadcast_to(mask, (self.lanes,))).tobytes(), ())

    def mask_of(self, p: Pred) -> BoolVector | None:
        """The lane mask of a predicate that depends on nothing else, else None."""
        if p.op == "true":
            return np.ones(self.lanes, dtype=bool)
        if p.op == "false":
            return np.zeros(self.lanes, dtype=bool)
        if p.op == "lanes":
            return np.frombuffer(p.data, dtype=bool)
        return None

    def _mask(self, p: Pred) -> BoolVector:
        """The mask of a `lanes` predicate."""
        return np.frombuffer(p.data, dtype=bool)

    def fcmp(self, op: str, a: Real, b: Real) -> Pred:
        """A comparison of reals: lt, le, eq or ne of a and b (NaN excluded by the caller's obligations)."""
        if a is b:
            return self.true if op in ("le", "eq") else self.false
        if a.op == "const" and b.op == "const":
            x, y = a.data, b.data
            return self.truth({"lt": x < y, "le": x <= y, "eq": x == y, "ne": x != y}[op])
        if op in ("eq", "ne") and b.id < a.id:
            a, b = b, a
        return self._pred("fcmp", (), op, (a, b))

    def truth(self, value: bool) -> Pred:
        """The constant predicate."""
        return self.true if value else self.false

    def domain(self, atom: int, p: Poly) -> Pred:
        """The iterations of a do-while loop: i ≥ 0 ∧ (i = 0 ∨ p(i−1) ≤ 0) with i the loop atom."""
        return self._pred("dom", (), (atom, p), ())

    def state_pred(self, atom: int) -> Pred:
        """An unknown predicate carried by a loop."""
        return self._pred("state", (), atom, ())

    def unknown_pred(self) -> Pred:
        """A condition on a value nothing may depend on: true or false in each lane, unlike any other."""
        return self.state_pred(self.fresh("unknown", "a condition on an undefined value").id)

    # ------------------------------------------------------------------ boolean structure
    def restrict(self, ident: int, lo: int | None, hi: int | None) -> None:
        """Intersect the known range of an atom."""
        before = self.ranges.get(ident)
        super().restrict(ident, lo, hi)
        if before is not None and before != self.ranges[ident]:
            self._conjunctions.clear()

    def conjuncts(self, p: Pred) -> tuple[Pred, ...]:
        """The conjuncts of a predicate; none for true."""
        return p.args if p.op == "and" else () if p.op == "true" else (p,)

    def conj(self, parts: Iterable[Pred]) -> Pred:
        """The canonical conjunction: comparisons of equal symbolic part are merged, lane masks are intersected."""
        flat: list[Pred] = []
        for p in parts:
            flat.extend(self.conjuncts(p))
        if len(flat) < 2:
            return flat[0] if flat else self.true
        key = frozenset([p.id for p in flat])
        known = self._conjunctions.get(key)
        if known is None:
            known = self._conjunctions[key] = self._conjoined(flat)
        return known

    def _conjoined(self, flat: Sequence[Pred]) -> Pred:
        mask: BoolVector | None = None
        bounds: dict[object, tuple[Poly, Coef]] = {}
        out: set[Pred] = set()
        for p in flat:
            if p.op == "false":
                return p
            if p.op == "lanes":
                m = self._mask(p)
                mask = m if mask is None else mask & m
            elif p.op == "le":
                s = p.data.symbolic()
                c = p.data.constant
                old = bounds.get(s.key)
                bounds[s.key] = (s, c if old is None else _maximum(old[1], c))
            else:
                out.add(p)
        out.update(self._pred("le", (), s + const(c), ()) for s, c in bounds.values())
        if mask is not None:
            if not mask.any():
                return self.false
            if not mask.all():
                out.add(self.lane_mask(mask))
        if self._contradictory(out):
            return self.false
        if len(out) == 1:
            return next(iter(out))
        return self._pred("and", tuple(sorted(out)), None, ()) if out else self.true

    def _contradictory(self, parts: set[Pred]) -> bool:
        les = [(p, p.data.atoms()) for p in parts if p.op == "le"]
        for k, (p, atoms) in enumerate(les[1:], 1):
            near = [r for r, others in les[:k] if not atoms.isdisjoint(others)]  # each can hold: alone, or if unrelated
            if near and (q := self.negate(p)) and any(self._implies_one(r, q) for r in near):
                return True
        return any(p.op in ("eq", "ne", "fcmp") and self.negate(p) in parts for p in parts)

    def disj(self, parts: Iterable[Pred]) -> Pred:
        """The disjunction, flattened; complementary pairs give true."""
        out: set[Pred] = set()
        mask: BoolVector | None = None
        for p in parts:
            for q in p.args if p.op == "or" else (p,):
                if q.op == "true":
                    return q
                if q.op == "lanes":
                    m = self._mask(q)
                    mask = m if mask is None else mask | m
                elif q.op != "false":
                    out.add(q)
        if mask is not None:
            if mask.all():
                return self.true
            out.add(self.lane_mask(mask))
        if any(self.negate(p) in out for p in out):
            return self.true
        if not out:
            return self.false
        return next(iter(out)) if len(out) == 1 else self._pred("or", tuple(sorted(out)), None, ())

    def negate(self, p: Pred) -> Pred:
        """The negation, pushed to the comparisons."""
        match p.op:
            case "true":
                return self.false
            case "false":
                return self.true
            case "le":
                return self.le(1 - p.data)
            case "eq" | "ne":
                return self._pred("ne" if p.op == "eq" else "eq", (), p.data, ())
            case "lanes":
                return self.lane_mask(~np.frombuffer(p.data, dtype=bool))
            case "and":
                return self.disj(self.negate(q) for q in p.args)
            case "or":
                return self.conj(self.negate(q) for q in p.args)
            case "fcmp":
                a, b = p.reals
                op = str(p.data)
                if op in ("eq", "ne"):
                    return self.fcmp("ne" if op == "eq" else "eq", a, b)
                return self.fcmp("le" if op == "lt" else "lt", b, a)
            case "not":
                return p.args[0]
            case _:
                return self._pred("not", (p,), None, ())

    def where_less(self, p: Pred, a: Real, b: Real) -> bool | None:
        """The truth of p where a < b, None when that does not decide it."""
        match p.op:
            case "fcmp" if p.reals == (a, b):
                return str(p.data) != "eq"
            case "fcmp" if p.reals == (b, a):
                return str(p.data) == "ne"
            case "and" | "or":
                parts = {self.where_less(q, a, b) for q in p.args}
                decisive = p.op == "or"
                return decisive if decisive in parts else None if None in parts else not decisive
            case _:
                return None

    # ------------------------------------------------------------------ implication
    def _implies_one(self, g: Pred, q: Pred) -> bool:
        """g ⇒ q for single comparisons of the same symbolic part, in every lane."""
        if g is q:
            return True
        if g.op == "le" and q.op == "le":
            a, b = g.data, q.data
            if a.symbolic() == b.symbolic():
                return bool(np.all(np.asarray(a.constant) >= np.asarray(b.constant)))
            lo = self.bounds(a - b)[0]
            return lo is not None and lo >= 0
        if g.op == "eq" and q.op == "le":
            gaps = [self.bounds(s - q.data)[0] for s in (g.data, -g.data)]
            return any(lo is not None and lo >= 0 for lo in gaps)
        if q.op == "ne" and g.op == "le":
            return any(self._implies_one(g, r) for r in (self.le(q.data + 1), self.le(1 - q.data)))
        return False

    def implies(self, g: Pred, q: Pred) -> bool:
        """g ⇒ q by the syntactic rules (sound, far from complete)."""
        if g is q or q.op == "true" or g.op == "false":
            return True
        if q.op == "and":
            return all(self.implies(g, r) for r in q.args)
        if q.op == "or":
            return any(self.implies(g, r) for r in q.args)
        if q.op == "lanes":
            masks = [m for m in (self.mask_of(p) for p in self.conjuncts(g)) if m is not None]
            want = self._mask(q)
            return bool(masks) and not np.any(np.logical_and.reduce(masks) & ~want)
        return any(self._implies_one(p, q) for p in self.conjuncts(g))


def _maximum(a: Coef, b: Coef) -> Coef:
    if isinstance(a, int) and isinstance(b, int):
        return max(a, b)
    return np.maximum(a, b)
