"""Functions that make arrays: conversions, constants, ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from warpproof.core import InputError, Unsupported
from warpproof.reference.arrays import BOOL, FLOAT, INT, Array, DType, Tracer, numpy_function
from warpproof.reference.elements import Element, Index
from warpproof.reference.elementwise import settled
from warpproof.terms import Poly, const

_FLOATS: Final = frozenset({"float16", "float32", "float64", "bfloat16", "half", "single", "double"})


class TypeName:
    """`np.float32` and the like: a type for `dtype=`, and a conversion when called."""

    def __init__(self, tracer: Tracer, name: str) -> None:
        self.t, self.name = tracer, name
        self.dtype: DType = FLOAT if name in _FLOATS else np.dtype(name)
        self.exact = name

    def __call__(self, value: Any = 0) -> Any:
        """The value in this type: constants are rounded to it, symbolic reals keep their value."""
        if isinstance(value, Array):
            return convert(self.t, value, self.dtype, copy=False)
        if isinstance(value, list | tuple):
            return convert(self.t, self.t.lift(value), self.dtype, copy=False)
        if self.name == "bfloat16":
            raise Unsupported("bfloat16 constant", "NumPy has no such type")
        return np.dtype(self.name).type(value)

    def __repr__(self) -> str:
        return f"np.{self.name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypeName) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


def as_dtype(value: Any) -> DType:
    """The element type meant by a `dtype` argument; every float type is float64 here."""
    if isinstance(value, TypeName):
        return value.dtype
    plain = getattr(value, "python_type", value)
    try:
        out: DType = np.dtype(plain)
    except TypeError as e:
        raise TypeError(f"{value!r} is no element type") from e
    if out.kind == "f" or out.name == "bfloat16":
        return FLOAT
    if out.kind not in "iub":
        raise Unsupported(f"dtype {out}", "only real, integer and boolean arrays have a rule")
    return out


def convert(t: Tracer, x: Array, dtype: DType, *, copy: bool) -> Array:
    """x in another type; x itself where NumPy would not copy."""
    if x.dtype == dtype and not x.weak and not copy:
        return x
    read = x.converted(dtype)
    if not x.dims:
        return t.scalar(read(()), dtype)
    if dtype.kind == "f" and x.dtype.kind == "f" and not copy:
        return x
    return t.array(x.dims, dtype, read)


@numpy_function("asarray", "ascontiguousarray", "asanyarray")
def asarray(t: Tracer, x: Any, dtype: Any = None, **kwargs: Any) -> Array:
    """x as an array; no copy if it is one of this type."""
    a = t.lift(x)
    return convert(t, a, _strong(a) if dtype is None else as_dtype(dtype), copy=False)


@numpy_function("array")
def array(t: Tracer, x: Any, dtype: Any = None, copy: Any = True, **kwargs: Any) -> Array:
    """A copy of x as an array."""
    a = t.lift(x)
    return convert(t, a, _strong(a) if dtype is None else as_dtype(dtype), copy=True)


def _strong(a: Array) -> DType:
    return settled(a).dtype


@numpy_function("astype")
def astype(t: Tracer, x: Any, dtype: Any, copy: Any = True, **kwargs: Any) -> Array:
    """A copy of x in another type."""
    return convert(t, t.lift(x), as_dtype(dtype), copy=True)


@numpy_function("copy")
def copy(t: Tracer, x: Any) -> Array:
    """A copy of x."""
    a = t.lift(x)
    return convert(t, a, a.dtype, copy=True)


@numpy_function("item")
def item(t: Tracer, x: Array) -> Array:
    """The only element, as a Python scalar."""
    return t.scalar(x.element(), x.dtype, weak=True)


# ---------------------------------------------------------------------- constants
def shape_argument(t: Tracer, shape: Any) -> list[Poly]:
    """A shape given as an integer or a sequence, each length known to be ≥ 0."""
    parts = list(shape) if isinstance(shape, list | tuple) else [shape]
    dims = [t.poly(p) for p in parts]
    for d in dims:
        if not t.facts.nonnegative(d):
            raise InputError("REF241", "an axis length may be negative for admitted sizes",
                             hint="add the precondition that makes it at least 0")
    return dims


def filled(t: Tracer, shape: Any, value: Any, dtype: Any) -> Array:
    """A fresh array with every element equal to a scalar."""
    v = t.lift(value)
    if v.dims:
        out = t.apply("broadcast_to", v, shape)
        return convert(t, out, v.dtype if dtype is None else as_dtype(dtype), copy=True)
    kind = settled(v).dtype if dtype is None else as_dtype(dtype)
    e = v.converted(kind)(())
    return t.array(shape_argument(t, shape), kind, lambda i: e)


@numpy_function("zeros")
def zeros(t: Tracer, shape: Any, dtype: Any = None, **kwargs: Any) -> Array:
    """All zero."""
    return filled(t, shape, 0, FLOAT if dtype is None else dtype)


@numpy_function("ones")
def ones(t: Tracer, shape: Any, dtype: Any = None, **kwargs: Any) -> Array:
    """All one."""
    return filled(t, shape, 1, FLOAT if dtype is None else dtype)


@numpy_function("full")
def full(t: Tracer, shape: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Array:
    """All equal to a value."""
    return filled(t, shape, fill_value, dtype)


@numpy_function("empty")
def empty(t: Tracer, shape: Any, dtype: Any = None, **kwargs: Any) -> Array:
    """An array whose elements may not be read before they are written."""
    kind = FLOAT if dtype is None else as_dtype(dtype)
    poison: Element = t.arena.poison("an element of np.empty that the reference never wrote")
    if kind.kind != "f":
        raise Unsupported("np.empty of integers", "unwritten integers have no value", hint="use np.zeros")
    return t.array(shape_argument(t, shape), kind, lambda i: poison)


def _like(name: str, value: Callable[[], Any]) -> None:
    def function(t: Tracer, x: Any, dtype: Any = None, shape: Any = None, **kwargs: Any) -> Array:
        a = t.lift(x)
        dims = [t.integer(d) for d in a.dims] if shape is None else shape
        return filled(t, dims, value(), settled(a).dtype if dtype is None else dtype)

    function.__doc__ = f"np.{name}."
    numpy_function(name)(function)


_like("zeros_like", lambda: 0)
_like("ones_like", lambda: 1)


@numpy_function("empty_like")
def empty_like(t: Tracer, x: Any, dtype: Any = None, **kwargs: Any) -> Array:
    """np.empty in the shape of x."""
    a = t.lift(x)
    return empty(t, a.shape, a.dtype if dtype is None else dtype)


@numpy_function("full_like")
def full_like(t: Tracer, x: Any, fill_value: Any, dtype: Any = None, **kwargs: Any) -> Array:
    """np.full in the shape and type of x."""
    a = t.lift(x)
    return filled(t, a.shape, fill_value, a.dtype if dtype is None else dtype)


@numpy_function("fill")
def fill(t: Tracer, x: Array, value: Any) -> None:
    """Every element set, in place."""
    t.call("__setitem__", x, Ellipsis, value)


@numpy_function("eye", "identity")
def eye(t: Tracer, N: Any, M: Any = None, k: Any = 0, dtype: Any = None, **kwargs: Any) -> Array:
    """Ones on a diagonal."""
    dims, shift = shape_argument(t, [N, N if M is None else M]), t.poly(k)
    kind = FLOAT if dtype is None else as_dtype(dtype)
    base = t.array(dims, BOOL, lambda i: t.arena.eq(i[1] - i[0] - shift))
    return convert(t, base, kind, copy=False)


@numpy_function("arange")
def arange(t: Tracer, *limits: Any, dtype: Any = None, **kwargs: Any) -> Array:
    """start, start + step, … below stop, for integers."""
    if not 1 <= len(limits) <= 3:
        raise TypeError("arange takes one to three positional arguments")
    values = [t.lift(v) for v in limits]
    if any(v.dtype.kind == "f" for v in values):
        raise Unsupported("np.arange of floats", "its length depends on rounding", hint="scale an integer arange")
    start, stop = (const(0), t.poly(limits[0])) if len(limits) == 1 else (t.poly(limits[0]), t.poly(limits[1]))
    step = t.poly(limits[2]) if len(limits) == 3 else const(1)
    count = range_length(t, start, stop, step)
    kind = INT if dtype is None else as_dtype(dtype)
    base = t.array([count], INT, lambda i: start + i[0] * step)
    return base if kind == INT else convert(t, base, kind, copy=False)


def range_length(t: Tracer, start: Poly, stop: Poly, step: Poly) -> Poly:
    """len(range(start, stop, step)), decided by the preconditions."""
    if t.facts.nonnegative(-step - 1):
        start, stop, step = -start, -stop, -step
    elif not t.facts.nonnegative(step - 1):
        raise InputError("REF241", "the sign of a range's step is unknown", hint="add a precondition such as s >= 1")
    if t.facts.nonnegative(stop - start):
        return t.facts.floor_div(stop - start + step - 1, step)
    if t.facts.nonnegative(start - stop):
        return const(0)
    raise InputError("REF241", "it is unknown whether a range is empty", hint="add the precondition that decides it")


def _triangle(name: str, lower: bool) -> None:
    def function(t: Tracer, x: Any, k: Any = 0) -> Array:
        a, shift = t.lift(x), t.poly(k)
        if len(a.dims) < 2:
            raise ValueError(f"np.{name} of an array of rank {len(a.dims)}")
        read = a.reader()
        zero = t.scalar(const(0), INT).converted(a.dtype)(())

        def element(i: Index) -> Element:
            d = i[-1] - i[-2] - shift
            return t.elements.choose(t.arena.le(d if lower else -d), read(i), zero)

        return t.array(a.dims, a.dtype, element)

    function.__doc__ = f"np.{name}."
    numpy_function(name)(function)


_triangle("tril", True)
_triangle("triu", False)


@numpy_function("tri")
def tri(t: Tracer, N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> Array:
    """Ones on and below a diagonal."""
    out: Array = t.apply("tril", ones(t, [N, N if M is None else M], dtype), k)
    return out
