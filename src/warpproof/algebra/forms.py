"""Exponential polynomials with guards: Σ c · [g] · Π xᵏ · 2^E over real atoms, and their arithmetic.

A `Form` maps (guard, factors, exponent) to a rational. Factors are atoms with integer powers; a sum appears as a factor
only with a negative power. Exponents are forms themselves, interned by number; 0 is the empty exponent.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Final

from warpproof.core import Unsupported
from warpproof.terms import Arena, Pred, Real

Factors = tuple[tuple[Real, int], ...]
Key = tuple[Pred, Factors, int]
Form = dict[Key, Fraction]
MAX_TERMS: Final = 4096


class Forms:
    """Arithmetic on forms of one arena."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.exponents: list[Form] = [{}]
        self._exponent_key: dict[frozenset[tuple[Key, Fraction]], int] = {frozenset(): 0}
        self._sums: dict[tuple[int, int], int] = {}

    def exponent(self, form: Form) -> int:
        """The number of an exponent form."""
        key = frozenset(form.items())
        found = self._exponent_key.get(key)
        if found is None:
            found = self._exponent_key[key] = len(self.exponents)
            self.exponents.append(form)
        return found

    def add_exponents(self, a: int, b: int) -> int:
        """The number of the sum of two exponents."""
        if not a or not b:
            return a or b
        key = (a, b) if a < b else (b, a)
        if key not in self._sums:
            self._sums[key] = self.exponent(add(self.exponents[a], self.exponents[b]))
        return self._sums[key]

    def constant(self, c: Fraction | int) -> Form:
        """A rational."""
        return {(self.arena.true, (), 0): Fraction(c)} if c else {}

    def atom(self, x: Real, power: int = 1) -> Form:
        """One factor."""
        return {(self.arena.true, ((x, power),), 0): Fraction(1)}

    def guarded(self, g: Pred, form: Form) -> Form:
        """[g] · form."""
        out: Form = {}
        for (h, f, e), c in form.items():
            both = self.arena.conj((g, h))
            if both.op != "false":
                _put(out, (both, f, e), c)
        return out

    def mul(self, a: Form, b: Form) -> Form:
        """The product."""
        if len(a) * len(b) > MAX_TERMS:
            raise Unsupported("normal form", f"a product of {len(a)} and {len(b)} terms")
        out: Form = {}
        for (g, f, e), c in a.items():
            for (h, k, x), d in b.items():
                both = g if h.op == "true" else h if g.op == "true" else self.arena.conj((g, h))
                if both.op != "false":
                    _put(out, (both, _merge(f, k), self.add_exponents(e, x)), c * d)
        return out


def add(a: Form, b: Form, scale: int = 1) -> Form:
    """a + scale·b."""
    out = dict(a)
    for k, c in b.items():
        _put(out, k, c * scale)
    return out


def total(forms: Iterable[Form]) -> Form:
    """The sum of forms."""
    out: Form = {}
    for f in forms:
        for k, c in f.items():
            _put(out, k, c)
    return out


def _put(out: Form, key: Key, c: Fraction) -> None:
    v = out.get(key, Fraction(0)) + c
    if v:
        out[key] = v
    else:
        out.pop(key, None)


def _merge(a: Factors, b: Factors) -> Factors:
    if not a or not b:
        return a or b
    powers = dict(a)
    for x, k in b:
        powers[x] = powers.get(x, 0) + k
    return tuple(sorted(((x, k) for x, k in powers.items() if k), key=lambda t: t[0].id))
