"""The gauge rule: sums rescaled by a running maximum are plain folds times one exponential.

A register r whose update refers to a running maximum m with new value M is written r = S·2^(−c·m). If 2^(c·M) times the
update, with this put for r, is S + g and g is free of loop state, then after the loop r = 2^(−c·m)·(S₀ + Σ g). Online
softmax (Milakov and Gimelshein 2018), its accumulators in flash attention, and merges of such pairs all close this way.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from warpproof.algebra import Form, Scaling
from warpproof.core import Unsupported
from warpproof.terms import Arena, Pred, Real

Below = tuple[frozenset[Real], frozenset[Real]]
"""Two sets of operands, the maximum of the first at most that of the second."""


@dataclass(frozen=True, slots=True)
class Maximum:
    """A running maximum: its unknown when an iteration starts, its new value, its value after the loop, at entry."""

    state: Real
    new: Real
    after: Real
    entry: Real


class Gauge:
    """Applies the rule within one loop; `states` are the loop's unknowns."""

    def __init__(self, arena: Arena, scaling: Scaling, states: frozenset[int], maxima: list[Maximum]) -> None:
        self.arena, self.scaling, self.normal, self.states, self.maxima = (
            arena, scaling, scaling.normal, states, maxima)

    def close(self, x: Real, state: Real, entry: Real, var: int, domain: Pred) -> Real | None:
        """The value after the loop of the register with update `x`, or None."""
        for m in self.maxima:
            for factor in self._factors(x, state, m, var):
                found = self._attempt(x, state, entry, m, factor, var, domain)
                if found is not None:
                    return found
        return None

    def _factors(self, x: Real, state: Real, m: Maximum, var: int) -> Iterator[Real]:
        """The cofactors c of the old maximum, the same in all iterations, in the exponents that scale the register."""
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
                if factor.id not in seen and not factor.free & (self.states | {var}):
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
        a = self.arena
        if not m.entry.ext:
            return a.mul(entry, a.unary("ex2", a.mul(c, m.entry)))
        scale, y = self.scaling.split(entry)
        if y is None or self.normal.canonical(y) is not self.normal.canonical(a.neg(a.mul(c, m.entry))):
            return None
        return scale if vanishes_with(scale, m.entry) else None

    # ------------------------------------------------------------------ guards
    def _settled(self, form: Form) -> Form:
        """Maxima decided by the comparison they are guarded with; complementary guards joined."""
        out: Form = {}
        for (g, factors, e), c in form.items():
            settled = self._under(g, e)
            out = _sum(out, {(g, factors, settled): c})
        return self._joined(out)

    def _under(self, g: Pred, e: int) -> int:
        """An exponent with maxima reduced by the comparisons known under g: what is below another operand drops out."""
        below = [
            (self._operands(p.reals[0]), self._operands(p.reals[1])) for p in self.arena.conjuncts(g)
            if p.op == "fcmp" and p.data in ("lt", "le")
        ]
        moved: Form = {}
        for key, c in self.normal.forms.exponents[e].items():
            top = next((y for y, k in key[1] if y.op == "max" and k == 1), None)
            if top is None or not below:
                moved = _sum(moved, {key: c})
                continue
            rest = tuple((y, k) for y, k in key[1] if y is not top)
            reduced = self.normal.form(self._reduced(top, below))
            moved = _sum(moved, self.normal.forms.mul({(key[0], rest, key[2]): c}, reduced))
        return self.normal.forms.exponent(moved)

    def _operands(self, x: Real) -> frozenset[Real]:
        return frozenset(self.arena.flatten(self.normal.canonical(x), "max"))

    def _reduced(self, top: Real, below: list[Below]) -> Real:
        """A maximum without the operands that the comparisons put below others of it."""
        for _ in below:
            below = [(low, _undominated(high, below)) for low, high in below]
        parts = sorted(_undominated(frozenset(self.arena.flatten(top, "max")), below), key=lambda y: y.id)
        out = parts[0]
        for y in parts[1:]:
            out = self.arena.maximum(out, y)
        return out

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


def _undominated(operands: frozenset[Real], below: list[Below]) -> frozenset[Real]:
    """A without the operands in P − Q, where max(P) ≤ max(Q) and Q ⊆ A; the maximum is the same."""
    changed = True
    while changed:
        changed = False
        for low, high in below:
            if high <= operands and operands & (low - high):
                operands, changed = operands - (low - high), True
    return operands


def vanishes_with(scale: Real, maximum: Real) -> bool:
    """True when the scale is a choice that is 0 exactly where the maximum is −∞."""
    return (
        scale.op == "sel" and maximum.op == "sel" and scale.pred is maximum.pred
        and scale.args[1].op == "const" and scale.args[1].data == 0
        and maximum.args[1].op == "inf" and maximum.args[1].data == -1 and not maximum.args[0].ext
    )


def joined_pair(
    scaling: Scaling, g: Pred, sides: tuple[Real, Real], maxima: tuple[Real, Real, Real],
) -> Real | None:
    """A rescaled sum after a join: sel(g, S₁, S₂)·2^(−c·m) for sides Sₖ·2^(−c·mₖ) and the joined maximum m.

    `maxima` are m₁, m₂ and m; a side that is 0 fits any maximum. None when the sides are not of this form.
    """
    a, normal = scaling.arena, scaling.normal
    parts: list[tuple[Real, Real | None]] = [
        (x, None) if x is a.zero else scaling.split(x) for x in sides
    ]
    found = next(((y, m) for (_, y), m in zip(parts, maxima, strict=False) if y is not None), None)
    if found is None:
        return None
    try:
        items = list(normal.form(found[0]).items())
        top = normal.canonical(found[1])
        if len(items) != 1:
            return None
        (h, factors, e), c = items[0]
        if e or not any(y is top and k == 1 for y, k in factors):
            return None
        factor = normal.term({(h, tuple((y, k) for y, k in factors if y is not top), 0): c})
        for (s, y), m in zip(parts, maxima, strict=False):
            if s is a.zero and y is None:
                continue
            if y is None or normal.canonical(y) is not normal.canonical(a.mul(factor, m)):
                return None
    except Unsupported:
        return None
    return a.mul(a.sel(g, parts[0][0], parts[1][0]), a.unary("ex2", normal.canonical(a.mul(factor, maxima[2]))))


def _sum(a: Form, b: Form) -> Form:
    out = dict(a)
    for k, c in b.items():
        v = out.get(k, 0) + c
        if v:
            out[k] = v
        else:
            out.pop(k, None)
    return out
