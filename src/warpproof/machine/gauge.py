"""The gauge rule: sums rescaled by a running maximum are plain folds times one exponential.

A register r whose update refers to a running maximum m with new value M is written r = S·2^(−c·m). If 2^(c·M) times the
update, with this put for r, is S + g and g is free of loop state, then after the loop r = 2^(−c·m)·(S₀ + Σ g). Online
softmax (Milakov and Gimelshein 2018), its accumulators in flash attention, and merges of such pairs all close this way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpproof.algebra import Form, Normaliser
from warpproof.core import Unsupported
from warpproof.terms import Arena, Pred, Real


@dataclass(frozen=True, slots=True)
class Maximum:
    """A running maximum: its unknown at the start of an iteration, its new value, its value after the loop, at entry."""

    state: Real
    new: Real
    after: Real
    entry: Real


class Gauge:
    """Applies the rule within one loop; `states` are the loop's unknowns."""

    def __init__(self, arena: Arena, normal: Normaliser, states: frozenset[int], maxima: list[Maximum]) -> None:
        self.arena, self.normal, self.states, self.maxima = arena, normal, states, maxima

    def close(self, x: Real, state: Real, entry: Real, var: int, domain: Pred) -> Real | None:
        """The value after the loop of the register with update `x`, or None."""
        for m in self.maxima:
            for factor in self._factors(x, state, m):
                found = self._attempt(x, state, entry, m, factor, var, domain)
                if found is not None:
                    return found
        return None

    def _factors(self, x: Real, state: Real, m: Maximum) -> Iterator[Real]:
        """The cofactors c of the old maximum in the exponents that scale the register."""
        seen: set[int] = set()
        try:
            form = self.normal.form(x)
        except Unsupported:
            return
        for (_, factors, e) in form:
            if not any(y is state for y, _ in factors):
                continue
            for (g, inner, e2), c in self.normal.forms.exponents[e].items():
                if e2 or not any(y is m.state and k == 1 for y, k in inner):
                    continue
                rest = tuple((y, k) for y, k in inner if y is not m.state)
                factor = self.normal.term({(g, rest, 0): c})
                if factor.id not in seen:
                    seen.add(factor.id)
                    yield factor

    def _attempt(
        self, x: Real, state: Real, entry: Real, m: Maximum, c: Real, var: int, domain: Pred
    ) -> Real | None:
        a, F = self.arena, self.normal.forms
        try:
            up = self.normal.form(a.unary("ex2", a.mul(c, m.new)))
            down = self.normal.form(a.unary("ex2", a.neg(a.mul(c, m.state))))
            total: Form = {}
            for key, k in self.normal.form(x).items():
                t = F.mul({key: k}, up)
                power = next((p for y, p in key[1] if y is state), 0)
                if power not in (0, 1):
                    return None
                total = _sum(total, F.mul(t, down) if power else t)
            total = self._settled(total)
        except Unsupported:
            return None
        own = (a.true, ((state, 1),), 0)
        if total.pop(own, None) != 1:
            return None
        g = self.normal.term(total)
        if g.free & self.states:
            return None
        start = self._start(entry, m, c)
        if start is None:
            return None
        folded = a.add(start, a.fold("add", var, domain, g))
        return a.mul(folded, a.unary("ex2", a.neg(a.mul(c, m.after))))

    def _start(self, entry: Real, m: Maximum, c: Real) -> Real | None:
        """S₀ = r₀·2^(c·m₀); 0 stays 0 even where the maximum starts at −∞."""
        if entry is self.arena.zero:
            return entry
        if m.entry.ext:
            return None
        return self.arena.mul(entry, self.arena.unary("ex2", self.arena.mul(c, m.entry)))

    # ------------------------------------------------------------------ guards
    def _settled(self, form: Form) -> Form:
        """Maxima decided by the comparison they are guarded with; complementary guards joined."""
        out: Form = {}
        for (g, factors, e), c in form.items():
            settled = self._under(g, e)
            out = _sum(out, {(g, factors, settled): c})
        return self._joined(out)

    def _under(self, g: Pred, e: int) -> int:
        """An exponent in which max(p, q) is q where p < q is known, and p where q ≤ p is."""
        for p in self.arena.conjuncts(g):
            if p.op != "fcmp" or p.data not in ("lt", "le"):
                continue
            low, high = (self.normal.canonical(r) for r in p.reals)
            top = self.normal.canonical(self.arena.maximum(low, high))
            if top.op != "max":
                continue
            moved: Form = {}
            for key, c in self.normal.forms.exponents[e].items():
                power = next((k for y, k in key[1] if y is top), 0)
                if power != 1:
                    moved = _sum(moved, {key: c})
                    continue
                rest = tuple((y, k) for y, k in key[1] if y is not top)
                product = self.normal.forms.mul({(key[0], rest, key[2]): c}, self.normal.form(high))
                moved = _sum(moved, product)
            e = self.normal.forms.exponent(moved)
        return e

    def _joined(self, form: Form) -> Form:
        """[g]·t + [¬g]·t = t."""
        for (g, factors, e), c in form.items():
            for p in self.arena.conjuncts(g):
                other = self.arena.conj([q for q in self.arena.conjuncts(g) if q is not p] + [self.arena.negate(p)])
                if form.get((other, factors, e)) == c:
                    rest = {k: v for k, v in form.items() if k not in ((g, factors, e), (other, factors, e))}
                    merged = self.arena.conj(q for q in self.arena.conjuncts(g) if q is not p)
                    return self._joined(_sum(rest, {(merged, factors, e): c}))
        return form


def _sum(a: Form, b: Form) -> Form:
    out = dict(a)
    for k, c in b.items():
        v = out.get(k, 0) + c
        if v:
            out[k] = v
        else:
            out.pop(k, None)
    return out
