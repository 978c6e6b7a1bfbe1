"""NumPy's elementwise functions on symbolic arrays, with its type promotion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from warpproof.core import InputError, Unsupported
from warpproof.reference.arrays import BOOL, FLOAT, INT, Array, DType, Tracer, numpy_function
from warpproof.reference.broadcasting import broadcast_dims, pick
from warpproof.reference.elements import Element, Index
from warpproof.terms import Poly, Pred, Real, const

_PYTHON: Final[dict[str, type]] = {"b": bool, "i": int, "u": int, "f": float}


def promoted(arrays: Sequence[Array]) -> tuple[DType, bool]:
    """(common type, weak) by NumPy's rules: Python scalars do not widen arrays; every float is float64 here."""
    if any(a.dtype.kind == "f" for a in arrays):
        return FLOAT, all(a.weak for a in arrays)
    strong = [a.dtype for a in arrays if not a.weak]
    weak = {_PYTHON[a.dtype.kind] for a in arrays if a.weak}
    if not strong:
        return (BOOL, True) if weak == {bool} else (INT, True)
    zero: dict[type, Any] = {bool: False, int: 0, float: 0.0}
    out: DType = np.result_type(*strong, *(zero[w] for w in weak))
    return (FLOAT if out.kind == "f" else out), False


def combine(
    t: Tracer, arrays: Sequence[Array], dtype: DType, f: Callable[..., Element], *, weak: bool = False,
) -> Array:
    """f of the broadcast elements."""
    dims = broadcast_dims(t, [a.dims for a in arrays])
    reads = [(a.reader(), a.dims) for a in arrays]

    def element(i: Index) -> Element:
        return f(*(read(pick(t, d, i)) for read, d in reads))

    if not dims:
        return t.scalar(element(()), dtype, weak)
    return t.array(dims, dtype, element)


def _plain(kwargs: dict[str, Any]) -> None:
    """Raise for the keyword arguments of ufuncs that change where or how results are stored."""
    for key, value in kwargs.items():
        if key == "dtype" or (key in ("out", "where", "casting", "order", "subok") and value is None):
            continue
        raise Unsupported(f"keyword {key!r}", "this keyword of a NumPy function has no rule in references")


# ---------------------------------------------------------------------- arithmetic
def _wrapped(
    t: Tracer, dtype: DType, weak: bool, f: Callable[[Poly, Poly], Poly],
) -> Callable[[Element, Element], Poly]:
    els = t.elements
    return lambda a, b: f(els.poly(a), els.poly(b)) if weak else els.wrap(f(els.poly(a), els.poly(b)), dtype)


def _arithmetic(
    name: str, real: str, integer: Callable[[Poly, Poly], Poly], boolean: str = "",
) -> Callable[..., Array]:
    def function(t: Tracer, x: Any, y: Any, **kwargs: Any) -> Array:
        _plain(kwargs)
        a, b = t.lift(x), t.lift(y)
        dtype, weak = promoted([a, b])
        els = t.elements
        if dtype.kind == "f":
            op: Callable[[Real, Real], Real] = getattr(els, real)
            return combine(t, [a, b], FLOAT, lambda p, q: op(els.real(p), els.real(q)), weak=weak)
        if dtype.kind == "b":
            if not boolean and not weak:
                raise Unsupported(f"np.{name}", "arithmetic on boolean arrays")
            if not weak:
                return _logical_op(t, boolean, [a, b])
            dtype = INT
        _fits(a, b, dtype)
        return combine(t, [a, b], dtype, _wrapped(t, dtype, weak, integer), weak=weak)

    function.__doc__ = f"np.{name}: exact over reals and over wrapping integers."
    return function


def _fits(a: Array, b: Array, dtype: DType) -> None:
    """Raise for a Python integer that the array's type cannot hold, as NumPy does."""
    for x in (a, b):
        if x.weak and dtype != INT:
            e = x.element()
            k = e.as_int() if isinstance(e, Poly) else None
            info = np.iinfo(dtype)
            if k is not None and not info.min <= k <= info.max:
                raise OverflowError(f"Python integer {k} out of bounds for {dtype}")


for _name, _real, _integer, _boolean in (
    ("add", "add", lambda p, q: p + q, "or"), ("subtract", "sub", lambda p, q: p - q, ""),
    ("multiply", "mul", lambda p, q: p * q, "and"),
):
    numpy_function(_name)(_arithmetic(_name, _real, _integer, _boolean))


@numpy_function("divide", "true_divide")
def divide(t: Tracer, x: Any, y: Any, **kwargs: Any) -> Array:
    """x / y over the reals."""
    _plain(kwargs)
    a, b = t.lift(x), t.lift(y)
    els = t.elements
    return combine(t, [a, b], FLOAT, lambda p, q: els.div(els.real(p), els.real(q)), weak=a.weak and b.weak)


@numpy_function("floor_divide")
def floor_divide(t: Tracer, x: Any, y: Any, **kwargs: Any) -> Array:
    """⌊x / y⌋; an integer divisor must be known not to be zero."""
    _plain(kwargs)
    a, b = t.lift(x), t.lift(y)
    dtype, weak = promoted([a, b])
    els = t.elements
    if dtype.kind == "f":
        def quotient(p: Element, q: Element) -> Real:
            return els.unary("floor", els.div(els.real(p), els.real(q)))
        return combine(t, [a, b], FLOAT, quotient, weak=weak)
    return combine(t, [a, b], dtype, _wrapped(t, dtype, weak, els.quotient), weak=weak)


@numpy_function("remainder", "mod")
def remainder(t: Tracer, x: Any, y: Any, **kwargs: Any) -> Array:
    """x − y·⌊x / y⌋."""
    _plain(kwargs)
    a, b = t.lift(x), t.lift(y)
    dtype, weak = promoted([a, b])
    els = t.elements
    if dtype.kind == "f":
        def rest(p: Element, q: Element) -> Real:
            u, v = els.real(p), els.real(q)
            return els.sub(u, els.mul(v, els.unary("floor", els.div(u, v))))
        return combine(t, [a, b], FLOAT, rest, weak=weak)
    return combine(t, [a, b], dtype, _wrapped(t, dtype, weak, lambda p, q: p - q * els.quotient(p, q)), weak=weak)


@numpy_function("power", "pow", "float_power")
def power(t: Tracer, x: Any, y: Any, **kwargs: Any) -> Array:
    """x^y for a constant integer or half-integer y, or a positive constant x."""
    _plain(kwargs)
    a, b = t.lift(x), t.lift(y)
    dtype, weak = promoted([a, b])
    els = t.elements
    if b.dims and a.dims:
        raise Unsupported("np.power", "both operands are arrays")
    if dtype.kind != "f":
        k = b.element() if not b.dims else None
        n = k.as_int() if isinstance(k, Poly) else None
        if n is None or not 0 <= n <= 64:
            raise Unsupported("integer power", "the exponent is not a constant from 0 to 64")
        exact = _wrapped(t, dtype, weak, lambda u, v: _integer_power(u, n))
        return combine(t, [a], dtype, lambda p: exact(p, p), weak=weak)

    def raised(p: Element, q: Element) -> Real:
        base, exponent = els.real(p), els.real(q)
        if exponent.op == "const":
            return els.power(base, Fraction(exponent.data))
        if base.op == "const" and base.data > 0:
            scale = els.unary("lg2", base) if base.data != 2 else t.arena.one
            return els.unary("ex2", els.mul(exponent, scale))
        raise Unsupported("np.power", "neither the base nor the exponent is a constant")

    return combine(t, [a, b], FLOAT, raised, weak=weak)


def _integer_power(p: Poly, n: int) -> Poly:
    out = const(1)
    for _ in range(n):
        out = out * p
    return out


# ---------------------------------------------------------------------- functions of one real
def _real_function(name: str, f: Callable[[Tracer, Real], Real]) -> None:
    def function(t: Tracer, x: Any, **kwargs: Any) -> Array:
        _plain(kwargs)
        a = t.lift(x)
        return combine(t, [a], FLOAT, lambda p: f(t, t.elements.real(p)), weak=a.weak)

    function.__doc__ = f"np.{name} over the reals."
    numpy_function(name)(function)


def _log1p(t: Tracer, x: Real) -> Real:
    return t.elements.log(t.elements.add(t.arena.one, x))


def _sinh(t: Tracer, x: Real, sign: int) -> Real:
    els = t.elements
    both = els.add(els.exp(x), els.mul(t.arena.rational(sign), els.exp(els.neg(x))))
    return els.mul(t.arena.rational(Fraction(1, 2)), both)


_TWO_PARTS: Final[dict[str, Callable[[Tracer, Real], Real]]] = {
    "exp": lambda t, x: t.elements.exp(x),
    "exp2": lambda t, x: t.elements.unary("ex2", x),
    "expm1": lambda t, x: t.elements.sub(t.elements.exp(x), t.arena.one),
    "log": lambda t, x: t.elements.log(x),
    "log2": lambda t, x: t.elements.unary("lg2", x),
    "log10": lambda t, x: t.elements.div(t.elements.unary("lg2", x), t.elements.unary("lg2", t.arena.rational(10))),
    "log1p": _log1p,
    "sqrt": lambda t, x: t.elements.unary("sqrt", x),
    "reciprocal": lambda t, x: t.elements.div(t.arena.one, x),
    "sin": lambda t, x: t.elements.unary("sin", x),
    "cos": lambda t, x: t.elements.unary("cos", x),
    "tan": lambda t, x: t.elements.div(t.elements.unary("sin", x), t.elements.unary("cos", x)),
    "tanh": lambda t, x: t.elements.tanh(x),
    "sinh": lambda t, x: _sinh(t, x, -1),
    "cosh": lambda t, x: _sinh(t, x, 1),
}
for _name, _function in _TWO_PARTS.items():
    _real_function(_name, _function)


def _by_type(
    t: Tracer, x: Any, real: Callable[[Real], Real], integer: Callable[[Poly], Poly], kwargs: dict[str, Any],
) -> Array:
    """A function that keeps integer arrays integer."""
    _plain(kwargs)
    a = t.lift(x)
    els = t.elements
    if a.dtype.kind == "f":
        return combine(t, [a], FLOAT, lambda p: real(els.real(p)), weak=a.weak)
    if a.dtype.kind == "b" and not a.weak:
        raise Unsupported("arithmetic on boolean arrays", "NumPy rejects it or reads it as logic")
    dtype = a.dtype if a.dtype.kind != "b" else INT
    one = _wrapped(t, dtype, a.weak, lambda p, q: integer(p))
    return combine(t, [a], dtype, lambda p: one(p, p), weak=a.weak)


@numpy_function("negative")
def negative(t: Tracer, x: Any, **kwargs: Any) -> Array:
    """−x."""
    return _by_type(t, x, t.elements.neg, lambda p: -p, kwargs)


@numpy_function("positive", "conj", "conjugate")
def positive(t: Tracer, x: Any, **kwargs: Any) -> Array:
    """A copy of x."""
    return _by_type(t, x, lambda p: p, lambda p: p, kwargs)


@numpy_function("absolute", "abs", "fabs")
def absolute(t: Tracer, x: Any, **kwargs: Any) -> Array:
    """|x|."""
    return _by_type(t, x, lambda p: t.elements.unary("abs", p), lambda p: t.arena.extremum("max", (p, -p)), kwargs)


@numpy_function("square")
def square(t: Tracer, x: Any, **kwargs: Any) -> Array:
    """x·x."""
    return _by_type(t, x, lambda p: t.elements.mul(p, p), lambda p: p * p, kwargs)


@numpy_function("floor")
def floor(t: Tracer, x: Any, **kwargs: Any) -> Array:
    """⌊x⌋."""
    return _by_type(t, x, lambda p: t.elements.unary("floor", p), lambda p: p, kwargs)


@numpy_function("ceil")
def ceil(t: Tracer, x: Any, **kwargs: Any) -> Array:
    """−⌊−x⌋."""
    els = t.elements
    return _by_type(t, x, lambda p: els.neg(els.unary("floor", els.neg(p))), lambda p: p, kwargs)


@numpy_function("sign")
def sign(t: Tracer, x: Any, **kwargs: Any) -> Array:
    """−1, 0 or 1."""
    A, els = t.arena, t.elements

    def real(p: Real) -> Real:
        below = A.sel(els.compare("<", p, A.zero), A.rational(-1), A.zero)
        return A.sel(els.compare("<", A.zero, p), A.one, below)

    def integer(p: Poly) -> Poly:
        below = els.choose_poly(A.lt(p, const(0)), const(-1), const(0))
        return els.choose_poly(A.lt(const(0), p), const(1), below)

    return _by_type(t, x, real, integer, kwargs)


# ---------------------------------------------------------------------- order and choice
def _extremum(kind: str) -> Callable[..., Array]:
    def function(t: Tracer, x: Any, y: Any, **kwargs: Any) -> Array:
        _plain(kwargs)
        a, b = t.lift(x), t.lift(y)
        dtype, weak = promoted([a, b])
        els = t.elements
        if dtype.kind == "f":
            return combine(t, [a, b], FLOAT, lambda p, q: els.extremum(kind, els.real(p), els.real(q)), weak=weak)
        if dtype.kind == "b":
            return _logical_op(t, "or" if kind == "max" else "and", [a, b])

        def integer(p: Element, q: Element) -> Element:
            if isinstance(p, Real) or isinstance(q, Real):
                return els.extremum(kind, els.real(p), els.real(q))
            return t.arena.extremum(kind, (els.poly(p), els.poly(q)))

        return combine(t, [a, b], dtype, integer, weak=weak)

    function.__doc__ = f"The {kind}imum, elementwise."
    return function


maximum = numpy_function("maximum", "fmax")(_extremum("max"))
minimum = numpy_function("minimum", "fmin")(_extremum("min"))


@numpy_function("clip")
def clip(t: Tracer, x: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None) -> Array:
    """minimum(maximum(x, a_min), a_max)."""
    out = t.lift(x)
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    out = out if low is None else maximum(t, out, low)
    return out if high is None else minimum(t, out, high)


@numpy_function("where")
def where(t: Tracer, condition: Any, *choices: Any) -> Array:
    """condition ? x : y, elementwise."""
    if len(choices) != 2:
        raise Unsupported("np.where(condition)", "the number of results depends on data")
    c, x, y = t.lift(condition), t.lift(choices[0]), t.lift(choices[1])
    dtype, weak = promoted([x, y])
    els = t.elements

    def chosen(p: Element, a: Element, b: Element) -> Element:
        g = els.pred(p)
        if dtype.kind == "f":
            return els.choose(g, els.real(a), els.real(b))
        if dtype.kind == "b":
            return els.choose(g, els.pred(a), els.pred(b))
        return els.choose_poly(g, els.poly(a), els.poly(b))

    return combine(t, [c, x, y], dtype, chosen, weak=weak and c.weak)


def _comparison(name: str, op: str) -> None:
    def function(t: Tracer, x: Any, y: Any, **kwargs: Any) -> Array:
        _plain(kwargs)
        a, b = t.lift(x), t.lift(y)
        els = t.elements

        def compared(p: Element, q: Element) -> Pred:
            if isinstance(p, Real) or isinstance(q, Real):
                return els.compare(op, els.real(p), els.real(q))
            return els.compare_integers(op, els.poly(p), els.poly(q))

        return combine(t, [a, b], BOOL, compared, weak=a.weak and b.weak)

    function.__doc__ = f"np.{name}."
    numpy_function(name)(function)


for _name, _op in {"equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">",
                   "greater_equal": ">="}.items():
    _comparison(_name, _op)


# ---------------------------------------------------------------------- logic and bits
def _logical_op(t: Tracer, op: str, arrays: Sequence[Array]) -> Array:
    A, els = t.arena, t.elements

    def value(*parts: Element) -> Pred:
        ps = [els.pred(p) for p in parts]
        match op:
            case "and":
                return A.conj(ps)
            case "or":
                return A.disj(ps)
            case "not":
                return A.negate(ps[0])
            case _:
                p, q = ps
                return A.disj((A.conj((p, A.negate(q))), A.conj((A.negate(p), q))))

    return combine(t, arrays, BOOL, value, weak=all(a.weak for a in arrays))


def _logical(name: str, op: str) -> None:
    def function(t: Tracer, *xs: Any, **kwargs: Any) -> Array:
        _plain(kwargs)
        return _logical_op(t, op, [t.lift(x) for x in xs])

    function.__doc__ = f"np.{name}."
    numpy_function(name)(function)


for _name, _op in {"logical_and": "and", "logical_or": "or", "logical_not": "not", "logical_xor": "xor"}.items():
    _logical(_name, _op)


def _bitwise(name: str, op: str, logical: str) -> None:
    def function(t: Tracer, x: Any, y: Any, **kwargs: Any) -> Array:
        _plain(kwargs)
        a, b = t.lift(x), t.lift(y)
        dtype, weak = promoted([a, b])
        if dtype.kind == "b":
            return _logical_op(t, logical, [a, b])
        if dtype.kind == "f":
            raise TypeError(f"{op} is not defined for floats")
        els = t.elements

        def value(p: Element, q: Element) -> Poly:
            out = els.bits(op, els.poly(p), els.poly(q))
            return out if weak else els.wrap(out, dtype)

        return combine(t, [a, b], dtype, value, weak=weak)

    function.__doc__ = f"np.{name}."
    numpy_function(name)(function)


for _name, _op, _logic in (("bitwise_and", "&", "and"), ("bitwise_or", "|", "or"), ("bitwise_xor", "^", "xor")):
    _bitwise(_name, _op, _logic)


@numpy_function("invert", "bitwise_not")
def invert(t: Tracer, x: Any, **kwargs: Any) -> Array:
    """All bits flipped, or logical not."""
    _plain(kwargs)
    a = t.lift(x)
    if a.dtype.kind == "b" and not a.weak:
        return _logical_op(t, "not", [a])
    if a.dtype.kind == "f":
        raise TypeError("~ is not defined for floats")
    top = int(np.iinfo(a.dtype).max) if a.dtype.kind == "u" else -1
    return combine(t, [a], a.dtype, lambda p: -t.elements.poly(p) + top, weak=a.weak)


def _shift(name: str) -> None:
    def function(t: Tracer, x: Any, y: Any, **kwargs: Any) -> Array:
        _plain(kwargs)
        a, b = t.lift(x), t.lift(y)
        dtype, weak = promoted([a, b])
        if dtype.kind not in "iu":
            raise TypeError("shifts are defined for integers")
        els = t.elements
        f = els.shift_left if name == "left_shift" else els.shift_right
        width = 64 if weak else 8 * dtype.itemsize

        def value(p: Element, q: Element) -> Poly:
            s = els.poly(q)
            if not (t.facts.nonnegative(s) and t.facts.nonnegative(-s + (width - 1))):
                raise InputError("REF241", f"a shift amount may leave 0…{width - 1}",
                                 hint="add a precondition or range on it")
            return _wrapped(t, dtype, weak, f)(p, s)

        return combine(t, [a, b], dtype, value, weak=weak)

    function.__doc__ = f"np.{name}."
    numpy_function(name)(function)


for _name in ("left_shift", "right_shift"):
    _shift(_name)


# ---------------------------------------------------------------------- classification
def _classify(name: str, at_infinity: bool, finite: bool) -> None:
    def function(t: Tracer, x: Any, **kwargs: Any) -> Array:
        _plain(kwargs)

        def value(p: Element) -> Pred:
            return _class(t, p, at_infinity, finite)

        return combine(t, [t.lift(x)], BOOL, value)

    function.__doc__ = f"np.{name}; inputs are finite, NaN never arises."
    numpy_function(name)(function)


def _class(t: Tracer, p: Element, at_infinity: bool, finite: bool) -> Pred:
    A = t.arena
    if not isinstance(p, Real) or not t.elements.infinite(p):
        return A.truth(finite)
    if p.op == "inf":
        return A.truth(at_infinity)
    if p.op == "sel" and p.pred is not None:
        yes, no = (_class(t, q, at_infinity, finite) for q in p.args)
        return A.disj((A.conj((p.pred, yes)), A.conj((A.negate(p.pred), no))))
    raise Unsupported("isfinite", "an extremum that may be infinite")


_classify("isfinite", False, True)
_classify("isinf", True, False)
_classify("isnan", False, False)
