"""Operations on single elements of symbolic arrays: reals, exact integers and truth values.

An element is a `Real` (any float type; all formats mean the same real), a `Poly` (an integer type, kept in the range of
its type by an explicit modulus where it could wrap) or a `Pred` (bool). Infinities are handled exactly: an operation
on a choice between a finite value and an infinity becomes a choice between operations; one that could give NaN
(∞ − ∞, 0·∞, x/0) is `Unsupported`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import numpy as np

from warpproof.core import InputError, Unsupported
from warpproof.reference.facts import Facts
from warpproof.reference.roundings import Roundings
from warpproof.terms import Arena, Poly, Pred, Real, const

Element = Real | Poly | Pred
Index = tuple[Poly, ...]
_UNARY_AT_INFINITY: Final[dict[tuple[str, int], str]] = {
    ("ex2", -1): "zero", ("ex2", 1): "plus_inf", ("lg2", 1): "plus_inf", ("sqrt", 1): "plus_inf",
    ("abs", -1): "plus_inf", ("abs", 1): "plus_inf", ("floor", 1): "plus_inf", ("floor", -1): "minus_inf",
}
_SHIFT_CASES: Final = 64


@dataclass(frozen=True, slots=True)
class Position:
    """The least position v in [0, length) at which `value` takes its extremum."""

    extremum: Real
    length: Poly
    value: Callable[[Poly], Real]


class Elements:
    """Element operations over one arena."""

    def __init__(self, arena: Arena, facts: Facts) -> None:
        self.arena, self.facts = arena, facts
        self.finite: set[Real] = set()  # nodes shown finite although their structure admits an infinity
        self.positions: dict[Real, Position] = {}
        self.integral: dict[Real, tuple[int, int]] = {}  # integers held as reals, and an interval that contains them
        self.roundings = Roundings()
        self.residues = 0  # integers that were not shown to fit their type

    # ------------------------------------------------------------------ sorts
    def real(self, e: Element) -> Real:
        """The element as a real."""
        if isinstance(e, Real):
            return e
        return self.arena.of_int(e) if isinstance(e, Poly) else self.arena.sel(e, self.arena.one, self.arena.zero)

    def poly(self, e: Element) -> Poly:
        """The element as an integer; `Unsupported` for a real."""
        if isinstance(e, Poly):
            return e
        if isinstance(e, Pred):
            return self.choose_poly(e, const(1), const(0))
        raise Unsupported("integer array", "a sum or other reduction of integers used in integer arithmetic",
                          hint="convert it to float64 first if that is meant")

    def pred(self, e: Element) -> Pred:
        """The element as a truth value: non-zero is true."""
        if isinstance(e, Pred):
            return e
        return self.arena.ne(e) if isinstance(e, Poly) else self.compare("!=", e, self.arena.zero)

    def number(self, value: float | Fraction) -> Real:
        """The exact value of a constant, of a float that the kernel holds rounded the value there."""
        if isinstance(value, float) and not np.isfinite(value):
            if np.isnan(value):
                raise Unsupported("NaN", "no real number stands for it")
            return self.arena.plus_inf if value > 0 else self.arena.minus_inf
        return self.arena.rational(Fraction(self.roundings.held(value) if isinstance(value, float) else value))

    # ------------------------------------------------------------------ choice
    def choose(self, p: Pred, a: Element, b: Element) -> Element:
        """p ? a : b for elements of one sort."""
        if isinstance(a, Real) or isinstance(b, Real):
            return self.arena.sel(p, self.real(a), self.real(b))
        if isinstance(a, Pred) and isinstance(b, Pred):
            A = self.arena
            return A.disj((A.conj((p, a)), A.conj((A.negate(p), b))))
        return self.choose_poly(p, self.poly(a), self.poly(b))

    def choose_poly(self, p: Pred, a: Poly, b: Poly) -> Poly:
        """p ? a : b for integers."""
        if a == b or p.op == "true":
            return a
        return b if p.op == "false" else self.arena.derived("phi", (a, b), p)

    # ------------------------------------------------------------------ reals
    def infinite(self, x: Real) -> bool:
        """True when the value may be an infinity."""
        return bool(x.ext) and x not in self.finite

    def _spread(self, f: Callable[..., Real], xs: tuple[Real, ...]) -> Real | None:
        """f distributed over the first operand that is a choice with an infinite branch; None when there is none."""
        A = self.arena
        for i, x in enumerate(xs):
            if x.op == "sel" and x.pred is not None and self.infinite(x):
                g = x.pred
                yes = [A.under(y, g, True) for y in xs]
                no = [A.under(y, g, False) for y in xs]
                yes[i], no[i] = x.args
                return A.sel(g, f(*yes), f(*no))
        return None

    def _stuck(self, what: str) -> Unsupported:
        return Unsupported(what, "an operand may be infinite and the result may be NaN",
                           hint="apply the mask after the arithmetic, or add preconditions that keep axes non-empty")

    def _bounded(self, made: Real) -> Real:
        """A node made of finite operands only, which is finite whatever its structure admits."""
        if made.ext:
            self.finite.add(made)
        return made

    def add(self, x: Real, y: Real) -> Real:
        """x + y."""
        if not (self.infinite(x) or self.infinite(y)):
            return self._bounded(self.arena.add(x, y))
        spread = self._spread(self.add, (x, y))
        if spread is not None:
            return spread
        if x.op == "inf" and (x is y or not self.infinite(y)):
            return x
        if y.op == "inf" and not self.infinite(x):
            return y
        raise self._stuck("∞ − ∞")

    def neg(self, x: Real) -> Real:
        """−x."""
        spread = self._spread(self.neg, (x,))
        if spread is not None:
            return spread
        if self.infinite(x) and x.op != "inf":
            raise self._stuck("negation")
        return self.arena.neg(x) if x.op == "inf" else self._bounded(self.arena.neg(x))

    def sub(self, x: Real, y: Real) -> Real:
        """x − y."""
        return self.add(x, self.neg(y))

    def mul(self, x: Real, y: Real) -> Real:
        """x · y."""
        if not (self.infinite(x) or self.infinite(y)):
            if self.arena.zero in (x, y) and (_partial(x) or _partial(y)):
                return self.arena.real("mul", (x, y))  # 0 only where the other factor is defined
            return self._bounded(self.arena.mul(x, y))
        spread = self._spread(self.mul, (x, y))
        if spread is not None:
            return spread
        for a, b in ((x, y), (y, x)):
            if a.op == "inf" and b.op in ("const", "inf") and b.data != 0:
                return self.arena.plus_inf if a.data * b.data > 0 else self.arena.minus_inf
        raise self._stuck("a product with ∞")

    def div(self, x: Real, y: Real) -> Real:
        """x / y; where y = 0 nothing is said about the value."""
        if y is self.arena.zero:
            raise Unsupported("division", "the divisor is zero")
        if not (self.infinite(x) or self.infinite(y)):
            return self.arena.div(x, y)
        spread = self._spread(self.div, (x, y))
        if spread is not None:
            return spread
        if y.op == "inf" and not self.infinite(x):
            return self.arena.zero
        if x.op == "inf" and y.op == "const":
            return x if y.data > 0 else self.neg(x)
        raise self._stuck("a quotient with ∞")

    def unary(self, op: str, x: Real) -> Real:
        """A function of the arena (`ex2`, `lg2`, `sqrt`, `sin`, `cos`, `abs`, `floor`)."""
        if not self.infinite(x):
            if op == "lg2" and x.op == "const" and x.data <= 0:
                if x.data == 0:
                    return self.arena.minus_inf
                raise Unsupported("log", "the argument is negative")
            return self._root(x) if op == "sqrt" else self.arena.unary(op, x)
        spread = self._spread(lambda y: self.unary(op, y), (x,))
        if spread is not None:
            return spread
        if x.op == "inf" and (op, x.data) in _UNARY_AT_INFINITY:
            found: Real = getattr(self.arena, _UNARY_AT_INFINITY[op, x.data])
            return found
        raise self._stuck(op)

    def _root(self, x: Real) -> Real:
        if x.op == "const" and x.data >= 0:
            n, d = (math.isqrt(v) for v in (x.data.numerator, x.data.denominator))
            if (n * n, d * d) == (x.data.numerator, x.data.denominator):
                return self.arena.rational(Fraction(n, d))
        return self.arena.unary("sqrt", x)

    def exp(self, x: Real) -> Real:
        """e^x, as ex2(x·log2 e)."""
        if x is self.arena.zero:
            return self.arena.one
        spread = self._spread(self.exp, (x,))
        if spread is not None:
            return spread
        if x.op == "inf":
            return self.unary("ex2", x)
        if self.infinite(x):
            raise self._stuck("exp")
        return self.arena.unary("ex2", self.arena.mul(x, self.arena.log2e))

    def log(self, x: Real) -> Real:
        """The natural logarithm, as lg2(x)·ln 2."""
        if x is self.arena.one:
            return self.arena.zero
        spread = self._spread(self.log, (x,))
        if spread is not None:
            return spread
        y = self.unary("lg2", x)
        return y if y.op == "inf" else self.mul(y, self.arena.real("ln2"))

    def tanh(self, x: Real) -> Real:
        """tanh x, as 1 − 2/(e^{2x} + 1)."""
        A = self.arena
        if x is A.zero:
            return x
        spread = self._spread(self.tanh, (x,))
        if spread is not None:
            return spread
        if x.op == "inf":
            return A.rational(x.data)
        if self.infinite(x):
            raise self._stuck("tanh")
        e = A.unary("ex2", A.mul(A.rational(2), A.mul(x, A.log2e)))
        return A.sub(A.one, A.div(A.rational(2), A.add(e, A.one)))

    def extremum(self, kind: str, x: Real, y: Real) -> Real:
        """max or min, infinities included."""
        absorbing = self.arena.plus_inf if kind == "max" else self.arena.minus_inf
        if absorbing in (x, y):
            return absorbing
        return self.arena.combine(kind, x, y)

    def power(self, x: Real, k: Fraction) -> Real:
        """x^k for an integer or half-integer k."""
        if k.denominator not in (1, 2) or abs(k) > 64:
            raise Unsupported(f"power {k}", "only integer and half-integer exponents up to 64 have a rule")
        if k < 0:
            return self.div(self.arena.one, self.power(x, -k))
        whole, out = int(k), self.arena.one
        for _ in range(whole):
            out = self.mul(out, x)
        return out if k.denominator == 1 else self.mul(out, self.unary("sqrt", x))

    def compare(self, op: str, x: Real, y: Real) -> Pred:
        """A comparison of reals: < <= > >= == !=."""
        A = self.arena
        for i, z in enumerate((x, y)):
            if z.op == "sel" and z.pred is not None and self.infinite(z):
                yes, no = (self.compare(op, *((w, y) if i == 0 else (x, w))) for w in z.args)
                return A.disj((A.conj((z.pred, yes)), A.conj((A.negate(z.pred), no))))
        if op in (">", ">="):
            return self.compare("<" if op == ">" else "<=", y, x)
        if "inf" in (x.op, y.op) and x is not y and not (self.infinite(x) and self.infinite(y)):
            below = (x.op == "inf" and x.data == -1) or (y.op == "inf" and y.data == 1)
            return A.truth({"<": below, "<=": below, "==": False, "!=": True}[op])
        return A.fcmp({"<": "lt", "<=": "le", "==": "eq", "!=": "ne"}[op], x, y)

    # ------------------------------------------------------------------ integers
    def wrap(self, p: Poly, dtype: np.dtype[Any]) -> Poly:
        """p as an integer of the type: p itself where it fits, else its residue in the type's range."""
        info = np.iinfo(dtype)
        lo, hi = int(info.min), int(info.max)
        a, b = self.arena.bounds(p)
        if ((a is not None and a >= lo) or self.facts.nonnegative(p - lo)) and (
            (b is not None and b <= hi) or self.facts.nonnegative(-p + hi)
        ):
            return p
        self.residues += 1
        return self.arena.mod(p - lo, const(hi - lo + 1)) + lo

    def compare_integers(self, op: str, p: Poly, q: Poly) -> Pred:
        """A comparison of integers: < <= > >= == !=."""
        A = self.arena
        match op:
            case "<":
                return A.lt(p, q)
            case "<=":
                return A.le(p - q)
            case ">":
                return A.lt(q, p)
            case ">=":
                return A.le(q - p)
            case "==":
                return A.eq(p - q)
            case _:
                return A.ne(p - q)

    def quotient(self, p: Poly, q: Poly) -> Poly:
        """⌊p/q⌋; the facts must show q > 0 or q < 0."""
        if self.facts.nonnegative(q - 1):
            return self.facts.floor_div(p, q)
        if self.facts.nonnegative(-q - 1):
            return self.facts.floor_div(-p, -q)
        raise InputError("REF241", "an integer divisor may be zero, or its sign is unknown",
                         hint="add a precondition such as \"d >= 1\"")

    def shift_right(self, p: Poly, s: Poly) -> Poly:
        """⌊p/2^s⌋ for a shift amount with few possible values."""
        k = s.as_int()
        if k is not None:
            if k < 0:
                raise InputError("REF245", "a negative shift amount")
            return self.facts.floor_div(p, const(1 << k))
        return self._by_cases(s, lambda v: self.facts.floor_div(p, const(1 << v)))

    def shift_left(self, p: Poly, s: Poly) -> Poly:
        """p·2^s for a shift amount with few possible values."""
        k = s.as_int()
        return p * (1 << k) if k is not None and k >= 0 else self._by_cases(s, lambda v: p * (1 << v))

    def _by_cases(self, s: Poly, f: Callable[[int], Poly]) -> Poly:
        lo, hi = self.arena.bounds(s)
        if lo is None or lo < 0:
            lo = 0 if self.facts.nonnegative(s) else None
        if hi is None or hi >= _SHIFT_CASES:
            hi = next((h for h in (7, 15, 31, _SHIFT_CASES - 1) if self.facts.nonnegative(-s + h)), None)
        if lo is None or hi is None:
            raise Unsupported("shift", "the shift amount is not known to lie in 0…63")
        step = s.content() if s.uniform() else 1
        base = s.constant if isinstance(s.constant, int) else lo
        values = [v for v in range(lo, hi + 1) if step == 0 or (v - base) % max(step, 1) == 0]
        out = f(values[-1])
        for v in reversed(values[:-1]):
            out = self.choose_poly(self.arena.eq(s - v), f(v), out)
        return out

    def bit_and(self, p: Poly, q: Poly) -> Poly:
        """p & q where one of them is a constant mask."""
        m = q.as_int()
        if m is None:
            p, m = q, p.as_int()
        if m is None:
            raise Unsupported("&", "a bitwise operation of two symbolic integers")
        if m < 0:
            return p - self.bit_and(p, const(~m))
        out, bit = const(0), 0
        while m >> bit:
            if m >> bit & 1:
                run = (~(m >> bit) & -(~(m >> bit))).bit_length() - 1
                part = self.facts.mod(self.facts.floor_div(p, const(1 << bit)), const(1 << run))
                out, bit = out + part * (1 << bit), bit + run
            else:
                bit += 1
        return out

    def bits(self, op: str, p: Poly, q: Poly) -> Poly:
        """`&`, `|`, `^` through p & q."""
        both = self.bit_and(p, q)
        match op:
            case "&":
                return both
            case "|":
                return p + q - both
            case _:
                return p + q - both * 2


def _partial(x: Real) -> bool:
    """True when an operation that is not defined everywhere occurs in the term."""
    seen, stack = set(), [x]
    while stack:
        y = stack.pop()
        if y.op in ("div", "sqrt", "lg2"):
            return True
        if y.id not in seen:
            seen.add(y.id)
            stack.extend(y.args)
    return False
