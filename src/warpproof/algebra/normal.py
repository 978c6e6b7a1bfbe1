"""Normal forms of real terms and the decision of equality over the reals, by exponential polynomials.

Complete for +, −, ×, exp and division by cross-multiplication (denominators are non-zero by obligation); max, min,
roots, folds and reductions are atoms over canonical arguments. Guards are decided by case split.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

from warpproof.algebra.forms import Factors, Form, Forms, add, total
from warpproof.core import Unsupported
from warpproof.terms import Arena, IntVector, Poly, Pred, Real, const

Implied = Callable[[Pred, Pred], bool]
"""(hypothesis, claim): True when the claim follows."""

_SPLITS: Final = 10
_LOG2E: Final = {
    "log2e32": Fraction(0x3FB8AA3B % 2**23 + 2**23, 2**23), "log2e_low": Fraction(0x25_7060 + 2**23, 2**49),
}
"""The exact values of the f32 constants 0f3FB8AA3B and 0f32A57060."""
_FEW: Final = 64
_SHORT: Final = 8
"""Cross-lane reductions of at most this many lanes are written out."""


class Normaliser:
    """Normal forms over one arena (memoised)."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.forms = Forms(arena)
        self._memo: dict[int, Form] = {}
        self._canonical: dict[int, Real] = {}
        self._rows: dict[tuple[int, int, int], bool] = {}

    # ------------------------------------------------------------------ term to form
    def form(self, x: Real) -> Form:
        """The normal form of a term."""
        found = self._memo.get(x.id)
        if found is None:
            found = self._memo[x.id] = self._form(x)
        return found

    def _form(self, x: Real) -> Form:
        F = self.forms
        match x.op:
            case "const":
                return F.constant(x.data)
            case "log2e32" | "log2e_low":
                return F.constant(_LOG2E[x.op])
            case "add":
                return total(self.form(y) for y in self.arena.flatten(x, "add"))
            case "mul":
                return self._reduced(F.mul(self.form(x.args[0]), self.form(x.args[1])))
            case "div":
                return self._reduced(F.mul(self.form(x.args[0]), self.inverse(self.form(x.args[1]))))
            case "int":
                return self._integer(x)
            case "sel":
                return self._choice(x)
            case "ex2":
                return self._exponential(x)
            case "fold":
                return self._fold(x)
            case "gather" if not x.args[0].folds:
                return self.form(self.arena.permute(x.args[0], self.arena.permutation(x)))
            case "gather" if x.args[0].op in ("add", "mul", "ex2", "div", "sel") and not x.poisoned:
                return self.form(self._pushed(x))
            case "red" if x.data[2] <= _SHORT and not x.args[0].folds:
                return self._short_reduction(x)
            case "red" if x.data[0] == "add":
                return self._reduction(x)
            case "load" | "symbol" | "state" | "log2e" | "inf" | "poison" | "gather" | "red" | "cell":
                return F.atom(x)
            case "max" | "min":
                return self._extremal(x)
            case _:
                return F.atom(self.arena.real(x.op, tuple(self.canonical(a) for a in x.args), x.data, x.pred))

    def _short_reduction(self, x: Real) -> Form:
        """A reduction of a few lanes, operand by operand."""
        a = self.arena
        operands = [a.permute(x.args[0], np.ascontiguousarray(column)) for column in a.matrix(x).T]
        if x.data[0] == "add":
            return total(self.form(y) for y in operands)
        out = operands[0]
        for y in operands[1:]:
            out = a.real(x.data[0], (out, y))
        return self._extremal(out) if out.op == x.data[0] else self.form(out)

    def _pushed(self, x: Real) -> Real:
        """A lane permutation moved inside arithmetic, down to reductions and choices."""
        a, y = self.arena, x.args[0]
        lanes = a.permutation(x)
        args = tuple(a.permute(z, lanes, lazy=True) for z in y.args)
        if y.op == "sel":
            return a.sel(a.permutation_map(lanes).pred(y.pred), *args)
        if y.op == "div":
            return a.div(*args)
        return a.unary("ex2", args[0]) if y.op == "ex2" else a.combine(y.op, *args)

    def canonical(self, x: Real) -> Real:
        """A term with the same value, the same for all terms of equal normal form."""
        found = self._canonical.get(x.id)
        if found is None:
            try:
                found = self.term(self.form(x))
            except Unsupported:
                found = x
            self._canonical[x.id] = found
        return found

    def _integer(self, x: Real) -> Form:
        p: Poly = x.data
        if not p.uniform():
            return self.forms.atom(x)
        out: Form = {}
        for m, c in p.terms.items():
            t = self.forms.constant(int(c))
            for a in m:
                t = self.forms.mul(t, self.forms.atom(self.arena.of_int(Poly({(a,): 1}))))
            out = add(out, t)
        return out

    def _choice(self, x: Real) -> Form:
        g, a, b = x.pred, x.args[0], x.args[1]
        if g is None:
            raise Unsupported("normal form", "a choice without a condition")
        if x.ext:
            return self.forms.atom(x)  # ∞ is not a term of a sum
        if g.op == "fcmp" and g.data in ("lt", "le"):
            p, q = (self.canonical(r) for r in g.reals)
            ca, cb = self.canonical(a), self.canonical(b)
            if (ca, cb) in ((q, p), (p, q)):
                return self.form(self.arena.maximum(p, q) if (ca, cb) == (q, p) else self.arena.minimum(p, q))
        out = self.forms.guarded(g, self.form(a))
        return add(out, self.forms.guarded(self.arena.negate(g), self.form(b)))

    def _exponential(self, x: Real) -> Form:
        y = x.args[0]
        if y.op == "sel" and y.pred is not None:
            a, b = (self.form(self.arena.unary("ex2", z)) for z in y.args)
            return add(self.forms.guarded(y.pred, a), self.forms.guarded(self.arena.negate(y.pred), b))
        above = self._above_infinity(y)
        if above is not None:
            return self.forms.guarded(above[0], self.form(self.arena.unary("ex2", above[1])))
        e = self.form(y)
        masked = self._masked(e)
        if masked is not None:
            return masked
        guards = {g for (g, _, _) in e if g.op != "true"}
        if 0 < len(guards) <= 2:
            return self._by_cases(e, min(guards))
        if any(g.op != "true" or x2 for (g, _, x2) in e):
            return self.forms.atom(self.arena.unary("ex2", self.canonical(y)))
        one = (self.arena.true, (), 0)
        c = e.get(one, Fraction(0))
        whole = c.__floor__()
        rest = {k: v for k, v in e.items() if k != one}
        if c - whole:
            rest[one] = c - whole
        scale = Fraction(2) ** whole
        return {(self.arena.true, (), self.forms.exponent(rest)): scale}

    def _above_infinity(self, y: Real) -> tuple[Pred, Real] | None:
        """(p, z) when y is z where p and −∞ elsewhere: a choice inside a sum, or scaled by a positive factor. No
        operand is +∞ then, by the obligation on ∞ − ∞."""
        a = self.arena
        match y.op:
            case "sel" if y.pred is not None and y.args[1] is a.minus_inf:
                return y.pred, y.args[0]
            case "sel" if y.pred is not None and y.args[0] is a.minus_inf:
                return a.negate(y.pred), y.args[1]
            case "add" | "mul" if y.ext:
                for x, other in (y.args, y.args[::-1]):
                    if y.op == "mul" and not (other.op == "log2e" or (other.op == "const" and other.data > 0)):
                        continue
                    found = self._above_infinity(x)
                    if found is not None:
                        return found[0], a.combine(y.op, found[1], other)
        return None

    def _by_cases(self, e: Form, g: Pred) -> Form:
        """2^([g]·a + b) = [g]·2^(a + b) + [¬g]·2^b."""
        on = total({(self.arena.true, f, x) if h is g else (h, f, x): c} for (h, f, x), c in e.items())
        off = {key: c for key, c in e.items() if key[0] is not g}
        first, second = (self.form(self.arena.unary("ex2", self.term(part))) for part in (on, off))
        return add(self.forms.guarded(g, first), self.forms.guarded(self.arena.negate(g), second))

    def _masked(self, e: Form) -> Form | None:
        """2^(c·sel(g, a, −∞) + …) = [g]·2^(c·a + …) for c > 0."""
        for (g, factors, e2), c in e.items():
            hole = next((y for y, k in factors if k == 1 and y.op == "sel" and y.args[1] is self.arena.minus_inf), None)
            others = [y for y, _ in factors if y is not hole]
            if hole is None or hole.pred is None or c <= 0 or any(y.op != "log2e" for y in others):
                continue
            rest = tuple((y, k) for y, k in factors if y is not hole)
            inner = self.forms.mul({(g, rest, e2): c}, self.form(hole.args[0]))
            left = {key: v for key, v in e.items() if key != (g, factors, e2)}
            whole = self.term(add(left, inner))
            return self.forms.guarded(hole.pred, self.form(self.arena.unary("ex2", whole)))
        return None

    def _reduction(self, x: Real) -> Form:
        """A sum over lanes, factors that are the same in all its lanes taken out: as they are where a lane is one of
        those that it sums over."""
        a = self.arena
        out: Form = {}
        matrix = a.matrix(x)
        first = np.ascontiguousarray(matrix[:, 0])
        among = bool((matrix == np.arange(a.lanes)[:, None]).any(axis=1).all())
        for (g, factors, e), c in self.form(x.args[0]).items():
            outside = tuple((y, k) for y, k in factors if self._constant(y, matrix))
            inside = tuple((y, k) for y, k in factors if (y, k) not in outside)
            e_out: Form = {}
            e_in: Form = {}
            for key, k in self.forms.exponents[e].items():
                same = key[0].op == "true" and all(self._constant(y, matrix) for y, _ in key[1])
                (e_out if same else e_in)[key] = k
            inner = self.term({(g, inside, self.forms.exponent(e_in)): Fraction(1)})
            if not outside and not e_out and len(self.form(x.args[0])) == 1 and c == 1:
                return self.forms.atom(x)
            moved = self.term({(a.true, outside, self.forms.exponent(e_out)): c})
            factor = moved if among else a.permute(moved, first, lazy=True)
            out = add(out, self._reduced(self.forms.mul(self.form(factor), self._summed(inner, matrix))))
        return out

    def _summed(self, inner: Real, matrix: IntVector) -> Form:
        """The sum over lanes of one summand."""
        y = self.arena.reduction("add", inner, matrix)
        return self.forms.atom(y) if y.op == "red" else self.form(y)

    def _constant(self, y: Real, matrix: IntVector) -> bool:
        """True when y is the same in all lanes of every row."""
        if y.uniform:
            return True
        key = (y.id, matrix.shape[1], hash(matrix.tobytes()))
        if key not in self._rows:
            columns = (np.ascontiguousarray(matrix[:, q]) for q in range(matrix.shape[1]))
            first = self.arena.permute(y, np.ascontiguousarray(matrix[:, 0]), lazy=True)
            moved = [self.arena.permute(y, q, lazy=True) for q in columns]
            self._rows[key] = all(x is first for x in moved) or (  # operands of an extremum may be in another order
                y.op in ("max", "min") and all(self.canonical(x) is self.canonical(first) for x in moved))
        return self._rows[key]

    def _extremal(self, x: Real) -> Form:
        each = [self.canonical(y) for y in self.arena.flatten(x, x.op)]
        parts = sorted({z for y in each for z in self.arena.flatten(y, x.op)}, key=lambda y: y.id)
        out = parts[0]
        for y in parts[1:]:
            out = self.arena.real(x.op, (out, y))
        return self.forms.atom(out) if out.op == x.op else self.form(out)

    def _fold(self, x: Real) -> Form:
        op, b = x.data
        body = x.args[0]
        spelled = self._spelled_out(x) if op == "add" else None
        if spelled is not None:
            return spelled
        if op != "add":
            return self.forms.atom(self.arena.fold(op, b, x.pred, self.canonical(body)))  # type: ignore[arg-type]
        out: Form = {}
        for (g, factors, e), c in self.form(body).items():
            outside = tuple((y, k) for y, k in factors if b not in y.free)
            inside = tuple((y, k) for y, k in factors if b in y.free)
            parts = [self.arena.conjuncts(g), (), ()]
            g_out = self.arena.conj(p for p in parts[0] if b not in p.free)
            g_in = self.arena.conj(p for p in parts[0] if b in p.free)
            e_out, e_in = self._split_exponent(e, b)
            inner = self.term({(g_in, inside, e_in): Fraction(1)})
            out = add(out, {(g_out, self._with_factor(outside, self._sum(b, x.pred, inner)), e_out): c})  # type: ignore[arg-type]
        return out

    def _spelled_out(self, x: Real) -> Form | None:
        """A sum over a few known indices, summand by summand."""
        count = self._count(x.data[1], x.pred) if x.pred is not None else None
        n = count.as_int() if count is not None else None
        if n is None or n > _FEW:
            return None
        _, fresh, domain, body = self.arena.open(x)
        lows = [p.data.split(fresh)[1] for p in self.arena.conjuncts(domain)
                if p.op == "le" and p.data.split(fresh)[0].as_int() == -1]
        low = lows[0].as_int() if lows else self.arena.ranges.get(fresh, (None, None))[0]
        if not isinstance(low, int):
            return None
        return total(self.form(self.arena.substitute(body, {fresh: const(low + k)})) for k in range(n))

    def _sum(self, b: int, domain: Pred, inner: Real) -> Real:
        """Σ over the domain of `inner`; a constant summand over an interval counts its elements."""
        if inner is self.arena.one:
            count = self._count(b, domain)
            if count is not None:
                return self.arena.of_int(count)
        return self.arena.fold("add", b, domain, inner)

    def _count(self, b: int, domain: Pred) -> Poly | None:
        lows, highs = [], []
        for p in self.arena.conjuncts(domain):
            if p.op != "le":
                return None
            slope, rest = p.data.split(b)
            k = slope.as_int()
            if b in self.arena.poly_free(rest):
                return None
            if k == -1:
                lows.append(rest)
            elif k == 1:
                highs.append(-rest)
            else:
                return None
        if len(highs) != 1 or len(lows) > 1 or (not lows and self.arena.ranges.get(b, (None, None))[0] != 0):
            return None
        low = lows[0] if lows else Poly({})
        n: Poly = highs[0] - low + 1
        least = self.arena.bounds(n)[0]
        return n if least is not None and least >= 0 else None

    def _with_factor(self, factors: Factors, x: Real) -> Factors:
        powers = dict(factors)
        powers[x] = powers.get(x, 0) + 1
        return tuple(sorted(((y, k) for y, k in powers.items() if k), key=lambda t: t[0].id))

    def _split_exponent(self, e: int, b: int) -> tuple[int, int]:
        out: Form = {}
        inn: Form = {}
        for k, c in self.forms.exponents[e].items():
            dependent = any(b in y.free for y, _ in k[1])
            (inn if dependent else out)[k] = c
        return self.forms.exponent(out), self.forms.exponent(inn)

    # ------------------------------------------------------------------ reciprocals and roots
    def inverse(self, form: Form) -> Form:
        """1 / form."""
        if len(form) == 1:
            ((g, factors, e), c), = form.items()
            if g.op == "true":
                flipped = tuple((x, -k) for x, k in factors)
                negative = {k: -v for k, v in self.forms.exponents[e].items()}
                return self._reduced({(g, flipped, self.forms.exponent(negative)): 1 / c})
        if not form:
            raise Unsupported("normal form", "division by a term that is zero")
        lead = form[max(form, key=lambda k: (tuple(x.id for x, _ in k[1]), k[2], k[0].id))]
        monic = self.term({k: c / lead for k, c in form.items()})
        return {(self.arena.true, ((monic, -1),), 0): 1 / lead}

    def _reduced(self, form: Form) -> Form:
        """Powers of roots reduced: √a² = a, 1/√a = √a/a; sums with positive power expanded."""
        powers = [f for key in form for f in key[1]]
        if not any((x.op == "sqrt" and k not in (0, 1)) or (x.op == "add" and k > 0) for x, k in powers):
            return form
        out: Form = {}
        for (g, factors, e), c in form.items():
            plain = tuple((x, k % 2 if x.op == "sqrt" else k) for x, k in factors)
            t: Form = {(g, tuple((x, k) for x, k in plain if k and not (x.op == "add" and k > 0)), e): c}
            for x, k in factors:
                if x.op == "sqrt" and k // 2:
                    inner = self.form(x.args[0])
                    t = self._power(t, inner if k // 2 > 0 else self.inverse(inner), abs(k // 2))
                elif x.op == "add" and k > 0:
                    t = self._power(t, self.form(x), k)
            out = add(out, t)
        return out

    def _power(self, t: Form, base: Form, k: int) -> Form:
        for _ in range(k):
            t = self._reduced(self.forms.mul(t, base))
        return t

    # ------------------------------------------------------------------ form to term
    def term(self, form: Form) -> Real:
        """A term of this normal form."""
        a = self.arena
        out = a.zero
        for (g, factors, e), c in sorted(form.items(), key=_order):
            t = a.rational(c)
            for x, k in factors:
                for _ in range(abs(k)):
                    t = a.mul(t, x) if k > 0 else a.div(t, x)
            if e:
                t = a.mul(t, a.unary("ex2", self.term(self.forms.exponents[e])))
            out = a.add(out, a.sel(g, t, a.zero))
        return out

    # ------------------------------------------------------------------ equality
    def equal(self, x: Real, y: Real, path: Pred, implied: Implied) -> bool:
        """True when x = y in every lane and point where `path` holds (False also when undecided)."""
        if x is y:
            return not x.poisoned
        if x.poisoned or y.poisoned:
            return False
        try:
            return self.vanishes(add(self.form(x), self.form(y), -1), path, implied)
        except Unsupported:
            return False

    def vanishes(self, form: Form, path: Pred, implied: Implied, splits: int = _SPLITS) -> bool:
        """True when the form is zero wherever `path` holds."""
        if path.op == "false":
            return True
        form = self.assume(form, path, implied)
        if not form:
            return True
        guard = next((g for (g, _, _) in form if g.op != "true"), None)
        if guard is None:
            if self._cleared(form) or self._equated(form, path):
                return True
            return splits < _SPLITS and implied(path, self.arena.false)
        if not splits:
            return False
        p = self.arena.conjuncts(guard)[0]
        p = p.args[0] if p.op == "or" else p
        return all(
            self.vanishes(form, self.arena.conj((path, q)), implied, splits - 1) for q in (p, self.arena.negate(p))
        )

    def _equated(self, form: Form, path: Pred) -> bool:
        """Zero test with what an equality on the path determines put in for one of its unknowns."""
        a = self.arena
        for p in a.conjuncts(path):
            if p.op != "eq" or not p.data.uniform():
                continue
            for m, c in p.data.terms.items():
                if len(m) == 1 and c in (1, -1) and a.atoms[m[0]].kind == "size":
                    told = a.variable(a.atoms[m[0]]) - p.data * int(c)
                    if self._cleared(self.form(a.substitute(self.term(form), {m[0]: told}))):
                        return True
        return False

    def assume(self, form: Form, path: Pred, implied: Implied) -> Form:
        """The form with guards that the path decides removed."""
        if all(g.op == "true" for (g, _, _) in form):
            return form
        out: Form = {}
        for (g, f, e), c in form.items():
            left = []
            for p in self.arena.conjuncts(g):
                if implied(path, p):
                    continue
                if implied(path, self.arena.negate(p)):
                    break
                left.append(p)
            else:
                rest = self.arena.conj(left)
                if self.arena.conj((rest, path)).op != "false":
                    out = add(out, {(rest, f, e): c})
        return out

    def _cleared(self, form: Form, depth: int = 6) -> bool:
        """Zero test after multiplying by the denominators that are sums."""
        if not form:
            return True
        sums = [(x, k) for key in form for x, k in key[1] if x.op == "add" and k < 0]
        if not sums or not depth:
            return False
        x = sums[0][0]
        worst = -min(k for key in form for y, k in key[1] if y is x)
        out: Form = {}
        for (g, factors, e), c in form.items():
            power = next((k for y, k in factors if y is x), 0)
            rest = tuple((y, k) for y, k in factors if y is not x)
            out = add(out, self._power({(g, rest, e): c}, self.form(x), worst + power))
        return self._cleared(out, depth - 1)


def _order(item: tuple[tuple[Pred, Factors, int], Fraction]) -> tuple[tuple[tuple[int, int], ...], int, int]:
    (g, factors, e), _ = item
    return tuple((x.id, k) for x, k in factors), e, g.id
