"""Running means and what is summed around them: Welford's variance, running covariances.

A register p with update p' is a mean with weight D when D(i)·p' − D(i−1)·p is free of loop state: then D(i−1)·p is a
plain sum. A register r is centred on means p and q of one weight when r' − r + D(i)·p'·q' − D(i−1)·p·q is free of loop
state: then r plus D(i−1)·p·q is a plain sum (Welford 1962; Chan, Golub and LeVeque 1983). D is a divisor of the update,
so it is non-zero where an iteration runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from warpproof.algebra import Form, Scaling, add, cancelled, weighted
from warpproof.core import Unsupported
from warpproof.machine.prefixes import Prefixes
from warpproof.terms import Poly, Pred, Real, TermMap


@dataclass(frozen=True, slots=True)
class Mean:
    """A register that closes as a mean: its unknown, entry value and update, its weight D, by how much D grows,
    how many values count for one unit of it, and D·p at the start of an iteration and after the loop."""

    state: Real
    entry: Real
    new: Form
    divisor: Real
    step: Form
    count: Fraction
    before: Real
    after: Real


class Means:
    """Closes running means, and sums centred on them, within one loop."""

    def __init__(
        self, scaling: Scaling, prefixes: Prefixes, states: frozenset[int], var: int, domain: Pred, at_end: TermMap,
    ) -> None:
        self.arena, self.normal, self.prefixes = scaling.arena, scaling.normal, prefixes
        self.states, self.var, self.domain, self.at_end = states, var, domain, at_end
        self.means: list[Mean] = []

    def close(self, new: Real, state: Real, entry: Real, update: Real) -> Real | None:
        """The value after the loop of the register with update `new`, or None; its start value is recorded. `update` is
        the same as the iteration computes it, before the start values of counters were put in."""
        if entry.ext or new.ext:
            return None
        try:
            form = self._cancelled(self.normal.form(new))
            return self._mean(form, state, entry, update) or self._centred(form, state, entry)
        except Unsupported:
            return None

    # ------------------------------------------------------------------ means
    def _mean(self, form: Form, state: Real, entry: Real, update: Real) -> Real | None:
        for divisor in self._divisors(form):
            step = self._step(divisor)
            if step is None:
                continue
            grown = add(self._times(divisor, form), self._lagging(divisor, step, self._atom(state)), -1)
            grown = self._cancelled(grown)
            content = next(iter(grown.values())) if len(set(grown.values())) == 1 else Fraction(1)
            g = self.normal.term({key: c / content for key, c in grown.items()})
            if g.free & self.states:
                continue
            a = self.arena
            start, scale = self.normal.canonical(self._entered(divisor, entry)), a.rational(content)
            before = a.add(start, a.mul(scale, self.prefixes.fold("add", a.zero, g)))
            after = a.add(start, a.mul(scale, a.fold("add", self.var, self.domain, g)))
            self.means.append(Mean(state, entry, form, divisor, step, 1 / content, before, after))
            self._put(state, entry, a.div(before, self._weight(divisor)))
            self.prefixes.updates[update] = a.div(a.add(before, a.mul(scale, g)), divisor)
            return a.div(after, self.at_end.real(divisor))
        return None

    def _cancelled(self, form: Form) -> Form:
        return cancelled(self.normal, form, self.var)

    def _divisors(self, form: Form) -> Iterator[Real]:
        """The divisors of an update that change from iteration to iteration, but not with the loop's unknowns."""
        seen: set[int] = set()
        for (_, factors, _) in form:
            for y, k in factors:
                if k < 0 and y.id not in seen and self.var in y.free and not y.free & self.states and not y.folds:
                    seen.add(y.id)
                    yield y

    def _step(self, divisor: Real) -> Form | None:
        """D(i) − D(i−1) when it is the same in every iteration."""
        before = self._weight(divisor)
        step = add(self.normal.form(divisor), self.normal.form(before), -1)
        same = not any(self.var in y.free for (_, factors, _) in step for y, _ in factors)
        return step if same and all(g.op == "true" and not e for (g, _, e) in step) else None

    def _weight(self, divisor: Real, at: int | None = None) -> Real:
        """D(i−1), or D at a known iteration."""
        i = self.arena.variable(self.arena.atoms[self.var])
        return self.arena.substitute(divisor, {self.var: i - 1 if at is None else Poly({(): at})})

    def _entered(self, divisor: Real, entry: Real) -> Real:
        """The weight at the loop's entry times a value there: the sum of an earlier loop's mean."""
        a, weight = self.arena, self._weight(divisor, -1)
        p = a.whole(weight)
        found = None if p is None else weighted(a, entry, p, a.true)
        return a.mul(weight, entry) if found is None else found

    def _times(self, divisor: Real, form: Form) -> Form:
        return self.normal.forms.mul(self.normal.forms.atom(divisor), form)

    def _atom(self, state: Real) -> Form:
        return self.normal.forms.atom(state)

    def _lagging(self, divisor: Real, step: Form, form: Form) -> Form:
        """D(i−1)·form, with D(i−1) written as D(i) less the step so that D(i) cancels."""
        return add(self._times(divisor, form), self.normal.forms.mul(step, form), -1)

    # ------------------------------------------------------------------ centred sums
    def _centred(self, form: Form, state: Real, entry: Real) -> Real | None:
        for k, p in enumerate(self.means):
            for q in self.means[k:]:
                found = self._around(form, state, entry, p, q) if p.divisor is q.divisor else None
                if found is not None:
                    return found
        return None

    def _around(self, form: Form, state: Real, entry: Real, p: Mean, q: Mean) -> Real | None:
        a, mul = self.arena, self.normal.forms.mul
        moved = mul(self.normal.forms.constant(p.count), self._times(p.divisor, mul(p.new, q.new)))
        product = mul(self._atom(p.state), self._atom(q.state))
        left = mul(self.normal.forms.constant(p.count), self._lagging(p.divisor, p.step, product))
        g = self.normal.term(self._cancelled(add(add(add(form, self._atom(state), -1), moved), left, -1)))
        if g.free & self.states:
            return None
        count = a.rational(p.count)
        first = a.mul(a.mul(count, self._entered(p.divisor, p.entry)), q.entry)
        start = self.normal.canonical(a.add(entry, first))
        removed = a.div(a.mul(count, a.mul(p.before, q.before)), self._weight(p.divisor))
        self._put(state, entry, a.sub(self.prefixes.fold("add", start, g), removed))
        end = a.add(start, a.fold("add", self.var, self.domain, g))
        return a.sub(end, a.div(a.mul(count, a.mul(p.after, q.after)), self.at_end.real(p.divisor)))

    def _put(self, state: Real, entry: Real, later: Real) -> None:
        """Record a start value; before the first iteration, with a weight that may be 0, it is the entry value."""
        first = self.arena.eq(self.arena.variable(self.arena.atoms[self.var]))
        self.prefixes.put(state, self.arena.sel(first, entry, later))

