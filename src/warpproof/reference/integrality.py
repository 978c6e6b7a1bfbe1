"""Integers that are held as reals (sums, positions of extrema), and reals that are integers (floors, truncations).

NumPy converts a float to an integer by truncation, after float arithmetic; here the value is exact. The two agree where
every step is exact in float64, or is one rounded quotient of integers below 2^53: nothing else is converted.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.reference.elements import Element, Elements
from warpproof.terms import Poly, Real, const

Limits = tuple[int, int]
_EXACT: Final = 1 << 53


def limits(els: Elements, x: Real) -> Limits | None:
    """An interval that contains an integer held as a real, None where none is evident."""
    known = els.integral.get(x)
    if known is not None:
        return known
    match x.op:
        case "const":
            k = Fraction(x.data)
            return (int(k), int(k)) if k.denominator == 1 else None
        case "int":
            lo, hi = els.arena.bounds(x.data)
            return None if lo is None or hi is None else (lo, hi)
        case "sel" | "add" | "mul" | "max" | "min":
            parts = [limits(els, y) for y in x.args]
            if None in parts:
                return None
            (a, b), (c, d) = (p for p in parts if p is not None)
            return _combined(x.op, (a, b), (c, d))
        case "fold" if x.data[0] == "add":
            body, count = limits(els, x.args[0]), _longest(els, x)
            return None if body is None or count is None else (min(body[0], 0) * count, max(body[1], 0) * count)
        case _:
            return None


def _longest(els: Elements, fold: Real) -> int | None:
    """At least as many as the values that a fold runs over."""
    A, b = els.arena, fold.data[1]
    sides: dict[int, list[Poly]] = {1: [], -1: []}
    for p in A.conjuncts(fold.pred) if fold.pred is not None else ():
        slope, rest = p.data.split(b) if p.op == "le" else (const(0), const(0))
        k = slope.as_int()
        if k in (1, -1) and b not in A.poly_free(rest):
            sides[k].append(rest)
    gaps = [A.bounds(lo + hi)[0] for lo in sides[-1] for hi in sides[1]]
    return max(0, min((1 - g for g in gaps if g is not None), default=-1)) if any(g is not None for g in gaps) else None


def _combined(op: str, p: Limits, q: Limits) -> Limits:
    (a, b), (c, d) = p, q
    match op:
        case "sel":
            return min(a, c), max(b, d)
        case "add":
            return a + c, b + d
        case "max":
            return max(a, c), max(b, d)
        case "min":
            return min(a, c), min(b, d)
        case _:
            ends = (a * c, a * d, b * c, b * d)
            return min(ends), max(ends)


def fitted(els: Elements, x: Real, dtype: np.dtype[np.generic]) -> Real:
    """x as an element of an integer type, which must hold it without wrapping around."""
    info, found = np.iinfo(dtype), limits(els, x)  # type: ignore[type-var]
    if found is None or not info.min <= found[0] <= found[1] <= info.max:
        raise Unsupported("integer sum", f"it may not fit into {dtype}",
                          hint="bound the sizes it runs over with a `max`, or keep it in int64 or float64")
    return x


def combined(els: Elements, op: str, a: Element, b: Element, dtype: np.dtype[np.generic] | None) -> Element:
    """add, sub or mul of integers of which one is held as a real; `dtype` None for Python integers."""
    out: Real = getattr(els, op)(els.real(a), els.real(b))
    return out if dtype is None else fitted(els, out, dtype)


def truncated(els: Elements, x: Real) -> Poly:
    """The integer that `int()` or `astype` makes of a float, where float64 cannot differ from the exact value."""
    form = _fraction(els, x, top=True)
    if form is None:
        raise Unsupported("conversion of a float array to integers", "its float64 value may be rounded",
                          hint="compute the index in integers, with // and %")
    p, d = form
    down = els.quotient(p, d)
    if els.facts.nonnegative(p) or d == const(1):
        return down
    return els.choose_poly(els.arena.lt(p, const(0)), -els.quotient(-p, d), down)


def _fraction(els: Elements, x: Real, *, top: bool = False) -> tuple[Poly, Poly] | None:
    """(p, d) with x = p/d, exact in float64; at the top also one quotient of integers, whose floor is exact."""
    out = _shape(els, x, top)
    if out is None:
        return None
    for part in out:
        lo, hi = els.arena.bounds(part)
        if lo is None or hi is None or max(abs(lo), abs(hi)) >= _EXACT:
            return None
    return out


def _shape(els: Elements, x: Real, top: bool) -> tuple[Poly, Poly] | None:
    match x.op:
        case "const":
            k = Fraction(x.data)
            return (const(k.numerator), const(k.denominator)) if _dyadic(k.denominator) else None
        case "int":
            return x.data, const(1)
        case "floor":
            inner = _fraction(els, x.args[0], top=True)
            return None if inner is None else (els.quotient(*inner), const(1))
        case "div":
            return _quotient(els, x, top)
        case "add" | "mul" | "max" | "min" | "sel":
            a, b = (_fraction(els, y) for y in x.args)
            return None if a is None or b is None else _joined(els, x, a, b)
        case _:
            return None


def _quotient(els: Elements, x: Real, top: bool) -> tuple[Poly, Poly] | None:
    a, b = (_fraction(els, y) for y in x.args)
    if a is None or b is None:
        return None
    (p, c), (q, d) = a, b
    k = q.as_int()
    if k is not None and d == const(1) and k > 0 and _dyadic(k):
        return p, c * k
    whole = c == const(1) and d == const(1)
    return (p, q) if top and whole and els.facts.nonnegative(q - 1) else None


def _joined(els: Elements, x: Real, a: tuple[Poly, Poly], b: tuple[Poly, Poly]) -> tuple[Poly, Poly] | None:
    (p, c), (q, d) = a, b
    if x.op == "mul":
        return p * q, c * d
    m, n = c.as_int(), d.as_int()
    if m is None or n is None:
        return None
    common = max(m, n)  # powers of two
    u, v = p * (common // m), q * (common // n)
    match x.op:
        case "add":
            return u + v, const(common)
        case "sel" if x.pred is not None:
            return els.choose_poly(x.pred, u, v), const(common)
        case "max" | "min":
            return els.arena.extremum(x.op, (u, v)), const(common)
        case _:
            return None


def _dyadic(k: int) -> bool:
    return k & (k - 1) == 0
