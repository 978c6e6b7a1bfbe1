"""Rational feasibility of linear constraints, incrementally, with an exact Farkas combination on infeasibility.

The general simplex of Dutertre and de Moura, "A fast linear-arithmetic solver for DPLL(T)" (CAV 2006), with Bland's
rule. Everything is exact; the unknowns are monomials, so a nonlinear monomial is an unknown of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any, Final

from flint import fmpq

from warpproof.terms import Monomial, Poly

Number = Any  # flint.fmpq, which has no type stubs
_ZERO: Final[Number] = fmpq(0)
_ENTRIES: Final = 60  # row entries that cost one step


class OutOfSteps(Exception):
    """The step budget is used up; no statement is made."""


class Steps:
    """A deterministic budget shared by the parts of one search."""

    __slots__ = ("left",)

    def __init__(self, count: int) -> None:
        self.left = count

    def take(self, count: int = 1) -> None:
        """Use some steps; raises `OutOfSteps` when none are left."""
        self.left -= count
        if self.left < 0:
            raise OutOfSteps


class _Bound:
    """value ≤ or ≥ on an unknown, from the constraint `label`: weight · (constraint's polynomial) is the slack."""

    __slots__ = ("label", "value", "weight")

    def __init__(self, value: Number, label: Hashable, weight: Number) -> None:
        self.value, self.label, self.weight = value, label, weight


class Simplex:
    """A set of constraints Σ c·m + k ≥ 0 (or = 0) over real unknowns m, one per monomial."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._index: dict[Monomial, int] = {}
        self._value: list[Number] = []
        self._lower: list[_Bound | None] = []
        self._upper: list[_Bound | None] = []
        self._rows: dict[int, dict[int, Number]] = {}
        self._polys: list[Poly] = []
        self._conflict: dict[Hashable, Number] | None = None

    def copy(self) -> Simplex:
        """An independent copy that shares the step budget."""
        out = Simplex(self._steps)
        out._index, out._value = dict(self._index), list(self._value)
        out._lower, out._upper = list(self._lower), list(self._upper)
        out._polys = list(self._polys)
        out._rows = {i: dict(r) for i, r in self._rows.items()}
        out._conflict = self._conflict
        return out

    def _unknown(self, p: Poly) -> int:
        self._polys.append(p)
        self._value.append(_ZERO)
        self._lower.append(None)
        self._upper.append(None)
        return len(self._value) - 1

    def _monomial(self, m: Monomial) -> int:
        i = self._index.get(m)
        if i is None:
            i = self._index[m] = self._unknown(Poly({m: 1}))
        return i

    def entries(self) -> int:
        """The number of entries of the tableau."""
        return sum(map(len, self._rows.values()))

    def values(self) -> dict[Monomial, Number]:
        """The current assignment of the monomials (a solution after `conflict` has returned None)."""
        return {m: self._value[i] for m, i in self._index.items()}

    # ------------------------------------------------------------------ constraints
    def add(self, p: Poly, equality: bool, label: Hashable) -> None:
        """Assert p ≥ 0, or p = 0; p has integer coefficients."""
        k = p.terms.get((), 0)
        unknowns = [(m, c) for m, c in p.terms.items() if m]
        if not unknowns:
            if k < 0 or (equality and k):
                self._conflict = {label: fmpq(1) if k < 0 else fmpq(-1)}
            return
        if len(unknowns) == 1:
            m, c = unknowns[0]
            i, scale = self._monomial(m), fmpq(1, 1) / fmpq(c)
        else:
            i, scale = self._slack(unknowns), fmpq(1)
        at = -fmpq(k) * scale
        if equality or scale > 0:
            self._tighten(i, True, _Bound(at, label, scale))
        if equality or scale < 0:
            self._tighten(i, False, _Bound(at, label, -scale))

    def _slack(self, unknowns: list[tuple[Monomial, Any]]) -> int:
        row: dict[int, Number] = {}
        value = _ZERO
        for m, c in unknowns:
            j, k = self._monomial(m), fmpq(c)
            value += k * self._value[j]
            for x, d in self._rows[j].items() if j in self._rows else ((j, fmpq(1)),):
                new = row.get(x, _ZERO) + k * d
                if new == 0:
                    row.pop(x, None)
                else:
                    row[x] = new
        s = self._unknown(Poly(dict(unknowns)))
        self._value[s] = value
        self._rows[s] = row
        return s

    def _tighten(self, i: int, is_lower: bool, bound: _Bound) -> None:
        mine, other = (self._lower, self._upper) if is_lower else (self._upper, self._lower)
        old = mine[i]
        if old is not None and (old.value >= bound.value if is_lower else old.value <= bound.value):
            return
        mine[i] = bound
        against = other[i]
        if against is not None and (against.value < bound.value if is_lower else against.value > bound.value):
            self._conflict = self._combine([(bound, fmpq(1)), (against, fmpq(1))])
        elif i not in self._rows and (self._value[i] < bound.value if is_lower else self._value[i] > bound.value):
            self._move(i, bound.value)

    @staticmethod
    def _combine(parts: list[tuple[_Bound, Number]]) -> dict[Hashable, Number]:
        out: dict[Hashable, Number] = {}
        for b, k in parts:
            out[b.label] = out.get(b.label, _ZERO) + k * b.weight
        return out

    def _move(self, j: int, value: Number) -> None:
        delta = value - self._value[j]
        self._value[j] = value
        for i, row in self._rows.items():
            c = row.get(j)
            if c is not None:
                self._value[i] += c * delta

    # ------------------------------------------------------------------ feasibility
    def conflict(self) -> dict[Hashable, Number] | None:
        """Multipliers of the constraints whose combination is a negative constant, or None when they have a solution.

        Raises `OutOfSteps` when the budget ends first.
        """
        while self._conflict is None:
            broken = [i for i in self._rows if self._violated(i)]
            if not broken:
                return None
            self._repair(min(broken))
        return self._conflict

    def _violated(self, i: int) -> bool:
        v, lo, hi = self._value[i], self._lower[i], self._upper[i]
        return (lo is not None and v < lo.value) or (hi is not None and v > hi.value)

    def _repair(self, i: int) -> None:
        row, lo, hi = self._rows[i], self._lower[i], self._upper[i]
        raise_it = lo is not None and self._value[i] < lo.value
        bound = lo if raise_it else hi
        assert bound is not None
        choice = -1
        for j, c in row.items():
            limit = self._upper[j] if (c > 0) == raise_it else self._lower[j]
            rising = (c > 0) == raise_it
            free = limit is None or (self._value[j] < limit.value if rising else self._value[j] > limit.value)
            if free and (choice < 0 or j < choice):
                choice = j
        if choice < 0:
            parts = [(bound, fmpq(1))]
            for j, c in row.items():
                limit = self._upper[j] if (c > 0) == raise_it else self._lower[j]
                assert limit is not None
                parts.append((limit, abs(c)))
            self._conflict = self._combine(parts)
            return
        self._pivot(i, choice, bound.value)

    def _pivot(self, i: int, j: int, value: Number) -> None:
        row = self._rows.pop(i)
        a = row.pop(j)
        theta = (value - self._value[i]) / a
        self._value[i] = value
        self._value[j] += theta
        inverse = 1 / a
        new = {x: -c * inverse for x, c in row.items()}
        new[i] = inverse
        touched = 1
        for b, other in self._rows.items():
            c = other.pop(j, None)
            if c is None:
                continue
            touched += len(new)
            self._value[b] += c * theta
            for x, d in new.items():
                v = other.get(x, _ZERO) + c * d
                if v == 0:
                    other.pop(x, None)
                else:
                    other[x] = v
        self._rows[j] = new
        self._steps.take(1 + touched // _ENTRIES)

    # ------------------------------------------------------------------ integers
    def rounding_cuts(self) -> Iterator[Poly]:
        """Integer polynomials g: g ≤ 0 is infeasible over the rationals while g ≥ 1 excludes the current values.

        These are Gomory's fractional cuts: all unknowns, slacks included, are integers. Needs a feasible tableau.
        """
        for i, row in sorted(self._rows.items()):
            v = self._value[i]
            if v.q == 1:
                continue
            for up in (True, False):
                f = self._polys[i]
                for j, a in row.items():
                    part = self._distance(j)
                    if part is None:
                        if a.q != 1:
                            break
                        f = f - self._polys[j] * int(a.p)
                        continue
                    distance, sign = part
                    slope = a * sign
                    k = slope.floor() if up else slope.ceil()
                    f = f - distance * int(k)
                else:
                    yield from self._cut(f, up)

    def _cut(self, f: Poly, up: bool) -> Iterator[Poly]:
        """g for the fact f ≥ its current value (or ≤) rounded to the integers."""
        value = sum((c * self._value[self._index[m]] for m, c in f.terms.items() if m), fmpq(0)) + f.constant
        if value.q != 1:
            yield f - int(value.floor()) if up else int(value.ceil()) - f

    def _distance(self, j: int) -> tuple[Poly, int] | None:
        """How far an unknown is from the bound it sits on, and the sign with which it moves; None off its bounds."""
        lo, hi, v = self._lower[j], self._upper[j], self._value[j]
        if lo is not None and v == lo.value and v.q == 1:
            return self._polys[j] - int(v.p), 1
        if hi is not None and v == hi.value and v.q == 1:
            return int(v.p) - self._polys[j], -1
        return None
