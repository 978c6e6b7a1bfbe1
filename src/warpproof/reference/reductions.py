"""Reductions as folds: one fold per axis, the outermost axis first; scans as folds with an upper end.

A fold's domain is `0 ≤ v ∧ v ≤ n − 1`, both written out. Zero-fill and −∞-fill guards on integers that the body
carries move into the domain (or out of the fold when they do not depend on v), so `where(mask, x, -inf).max()` is a
fold over the masked range.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from warpproof.core import InputError, Unsupported
from warpproof.reference.arrays import BOOL, FLOAT, INT, Array, DType, Tracer, numpy_function
from warpproof.reference.creation import as_dtype, convert
from warpproof.reference.elements import Element, Index, Position
from warpproof.reference.integrality import limits
from warpproof.reference.wording import describe
from warpproof.terms import Poly, Pred, Real, const

_ATOMIC: Final = frozenset({"le", "eq", "ne"})
_MISSING: Final = object()


def guarded(t: Tracer, x: Real, unit: Real) -> tuple[list[Pred], Real]:
    """(guards, y) with x = (all guards hold ? y : unit), the guards taken from choices and, for 0, from factors."""
    A = t.arena
    if x.op == "sel" and x.pred is not None:
        for g, value, other in ((x.pred, x.args[0], x.args[1]), (A.negate(x.pred), x.args[1], x.args[0])):
            if other is unit:
                more, y = guarded(t, value, unit)
                return [*A.conjuncts(g), *more], y
    if unit is A.zero and x.op in ("mul", "div"):
        left, a = guarded(t, x.args[0], unit)
        right, b = guarded(t, x.args[1], unit) if x.op == "mul" else ([], x.args[1])
        if left or right:
            return left + right, A.mul(a, b) if x.op == "mul" else A.div(a, b)
    return [], x


def fold_over(t: Tracer, op: str, lo: Poly, hi: Poly, body: Callable[[Poly], Real]) -> Real:
    """`op` over lo ≤ v < hi of body(v)."""
    A, els = t.arena, t.elements
    length = (hi - lo).as_int()
    if length is not None and length <= 1:
        return A.identity(op) if length <= 0 else body(lo)
    top = A.bounds(hi)[1]
    atom = A.fresh("index", "v")
    v = A.variable(atom)
    domain = A.conj((A.le(lo - v), A.le(v - hi + 1)))
    A.restrict(atom.id, A.bounds(lo)[0], None if top is None else top - 1)
    t.facts.domain(atom.id, lo, hi)
    x = body(v)
    guards, inner = guarded(t, x, A.identity(op))
    if op == "mul":
        guards, inner = [], x
    inside = [g for g in guards if g.op in _ATOMIC and atom.id in g.free]
    outside = [g for g in guards if g.op in _ATOMIC and atom.id not in g.free]
    kept = [g for g in guards if g.op not in _ATOMIC]
    inner = A.sel(A.conj(kept), inner, A.identity(op))
    full = A.conj((domain, *inside))
    if full.op == "false":
        return A.identity(op)
    point = _only(t, inside, atom.id)
    if point is not None:
        here = t.facts.simplify(A.substitute_pred(full, {atom.id: point}))
        return A.sel(A.conj((*outside, here)), A.substitute(inner, {atom.id: point}), A.identity(op))
    A.ranges[atom.id] = (None, None)  # the domain says it; a range would be added to the domain as further conditions
    made = A.fold(op, atom.id, full, inner)
    if made.ext and not inside and not els.infinite(inner) and t.facts.nonnegative(hi - lo - 1):
        els.finite.add(made)
    return A.sel(A.conj(outside), made, A.identity(op))


def _only(t: Tracer, guards: Sequence[Pred], atom: int) -> Poly | None:
    """The one value that guards leave to a variable."""
    for g in guards:
        if g.op == "eq":
            slope, rest = g.data.split(atom)
            k: int | None = slope.as_int()
            point: Poly = -rest
            if k in (1, -1) and atom not in t.arena.poly_free(rest):
                return point if k == 1 else Poly({}) - point
    return None


def axes_of(x: Array, axis: Any) -> tuple[int, ...]:
    """The reduced axes in increasing order; all of them for None."""
    rank = len(x.dims)
    if axis is None:
        return tuple(range(rank))
    listed = [int(a) for a in axis] if isinstance(axis, list | tuple) else [int(axis)]
    out = [a + rank if a < 0 else a for a in listed]
    if any(not 0 <= a < rank for a in out) or len(set(out)) < len(out):
        raise ValueError(f"axis {axis} is out of bounds or repeated for an array of rank {rank}")
    return tuple(sorted(out))


def reduce_axes(
    t: Tracer, x: Array, axis: Any, keepdims: bool, dtype: DType, op: str, element: Callable[[Element], Real],
    finish: Callable[[Real], Element] = lambda r: r,
) -> Array:
    """The folds over the given axes of `element` of each element."""
    axes = axes_of(x, axis)
    read = x.reader()
    kept = [k for k in range(len(x.dims)) if k not in axes]
    dims = [const(1) if k in axes else d for k, d in enumerate(x.dims)] if keepdims else [x.dims[k] for k in kept]

    def value(i: Index) -> Element:
        at: dict[int, Poly] = {k: i[k] if keepdims else i[n] for n, k in enumerate(kept)}

        def level(rest: Sequence[int]) -> Real:
            if not rest:
                return element(read(tuple(at[k] for k in range(len(x.dims)))))

            def body(v: Poly) -> Real:
                at[rest[0]] = v
                return level(rest[1:])

            return fold_over(t, op, const(0), x.dims[rest[0]], body)

        return finish(level(axes))

    if not dims:
        return t.scalar(value(()), dtype)
    return t.array(dims, dtype, value)


def _prepared(t: Tracer, x: Any, dtype: Any, kwargs: dict[str, Any]) -> Array:
    for key, value in kwargs.items():
        if value is not None:
            raise Unsupported(f"keyword {key!r}", "this keyword of a reduction has no rule in references")
    a = t.lift(x)
    return a if dtype is None else convert(t, a, as_dtype(dtype), copy=False)


def _nonempty(t: Tracer, x: Array, axis: Any, what: str) -> None:
    for k in axes_of(x, axis):
        if not t.facts.nonnegative(x.dims[k] - 1):
            size = describe(t.arena, x.dims[k])
            raise InputError("REF241", f"{what} over an axis of length {size}, which may be empty",
                             hint=f"add the precondition {size} >= 1")


def _accumulated(t: Tracer, a: Array, axis: Any, op: str) -> tuple[DType, Callable[[Real], Element]]:
    """(type of a reduction, a function that notes in which interval it lies); an integer sum must not wrap."""
    if a.dtype.kind == "f":
        return FLOAT, lambda r: r
    e = a.reader()(t.fresh_index(a.dims))
    lo, hi = _interval(t, e)
    if op in ("max", "min"):
        return a.dtype, lambda r: _noted(t, r, lo, hi)
    out: DType = np.dtype(np.uint64) if a.dtype.kind == "u" else INT
    count: int | None = 1
    for k in axes_of(a, axis):
        top = t.arena.bounds(a.dims[k])[1]
        count = None if top is None or count is None else count * top
    if a.dtype.kind == "b":
        return INT, lambda r: _noted(t, r, 0, count)
    if lo is None or hi is None or count is None or max(abs(lo), abs(hi)) * count > int(np.iinfo(out).max):
        raise Unsupported("integer sum", "it may wrap around", hint="convert to float64 first, or bound the data")
    low, high = min(lo, 0) * count, max(hi, 0) * count
    return out, lambda r: _noted(t, r, low, high)


def _as_is(r: Real) -> Real:
    return r


def _interval(t: Tracer, e: Element) -> tuple[int | None, int | None]:
    if isinstance(e, Poly):
        return t.arena.bounds(e)
    found = limits(t.elements, e) if isinstance(e, Real) else (0, 1)
    return found or (None, None)


def _noted(t: Tracer, r: Real, lo: int | None, hi: int | None) -> Real:
    if lo is not None and hi is not None:
        t.elements.integral[r] = lo, hi
    return r


@numpy_function("sum")
def sum_(t: Tracer, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
         **kwargs: Any) -> Array:
    """The sum over axes."""
    a = _prepared(t, x, dtype, {**kwargs, "out": out})
    kind, note = _accumulated(t, a, axis, "add")
    return reduce_axes(t, a, axis, bool(keepdims), kind, "add", t.elements.real, note)


@numpy_function("prod")
def prod(t: Tracer, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
         **kwargs: Any) -> Array:
    """The product over axes, of reals."""
    a = _prepared(t, x, dtype, {**kwargs, "out": out})
    if a.dtype.kind != "f":
        raise Unsupported("integer product", "it may wrap around", hint="convert to float64 first")
    return reduce_axes(t, a, axis, bool(keepdims), FLOAT, "mul", t.elements.real)


def _extremal(name: str, op: str) -> Callable[..., Array]:
    def function(t: Tracer, x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = _MISSING,
                 **kwargs: Any) -> Array:
        a = _prepared(t, x, None, {**kwargs, "out": out})
        if a.dtype.kind == "b":
            return t.apply("any" if op == "max" else "all", a, axis, keepdims=keepdims)
        if initial is _MISSING:
            _nonempty(t, a, axis, f"np.{name}")
        kind, note = _accumulated(t, a, axis, op)
        if initial is not _MISSING:
            note = _as_is
        found = reduce_axes(t, a, axis, bool(keepdims), kind, op, t.elements.real, note)
        return found if initial is _MISSING else t.call(f"{op}imum", found, initial)

    function.__doc__ = f"np.{name} over axes; the axes must be known not to be empty."
    return function


max_ = numpy_function("max", "amax", "nanmax")(_extremal("max", "max"))
min_ = numpy_function("min", "amin", "nanmin")(_extremal("min", "min"))


def _count(t: Tracer, a: Array, axis: Any, ddof: Any) -> Poly:
    out = const(1)
    for k in axes_of(a, axis):
        out = out * a.dims[k]
    return out - t.poly(ddof)


@numpy_function("mean")
def mean(t: Tracer, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False,
         **kwargs: Any) -> Array:
    """The sum divided by the number of elements."""
    a = convert(t, _prepared(t, x, dtype, {**kwargs, "out": out}), FLOAT, copy=False)
    _nonempty(t, a, axis, "np.mean")
    n = t.arena.of_int(_count(t, a, axis, 0))
    return reduce_axes(t, a, axis, bool(keepdims), FLOAT, "add", t.elements.real,
                       lambda r: t.elements.div(t.elements.real(r), n))


@numpy_function("average")
def average(t: Tracer, x: Any, axis: Any = None, weights: Any = None, **kwargs: Any) -> Array:
    """The mean; weights have no rule."""
    if weights is not None:
        raise Unsupported("np.average", "weights have no rule in references")
    return mean(t, x, axis, **kwargs)


@numpy_function("var")
def var(t: Tracer, x: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: Any = 0, keepdims: Any = False,
        correction: Any = None, **kwargs: Any) -> Array:
    """The mean of (x − mean)², divided by n − ddof."""
    a = convert(t, _prepared(t, x, dtype, {**kwargs, "out": out}), FLOAT, copy=False)
    n = _count(t, a, axis, ddof if correction is None else correction)
    if not t.facts.nonnegative(n - 1):
        raise InputError("REF241", "a variance divides by n − ddof, which may be zero or negative",
                         hint="add the precondition that makes it at least 1")
    d = t.call("subtract", a, mean(t, a, axis, keepdims=True))
    els = t.elements
    return reduce_axes(t, d, axis, bool(keepdims), FLOAT, "add", lambda e: els.mul(els.real(e), els.real(e)),
                       lambda r: els.div(els.real(r), t.arena.of_int(n)))


@numpy_function("std")
def std(t: Tracer, *args: Any, **kwargs: Any) -> Array:
    """The square root of the variance."""
    return t.apply("sqrt", var(t, *args, **kwargs))


@numpy_function("any")
def any_(t: Tracer, x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **kwargs: Any) -> Array:
    """True where some element is: the greatest of the elements read as 0 and 1 is above 0."""
    a, els = _prepared(t, x, None, {**kwargs, "out": out}), t.elements
    return reduce_axes(t, a, axis, bool(keepdims), BOOL, "max", lambda e: els.real(els.pred(e)),
                       lambda r: t.arena.fcmp("lt", t.arena.zero, els.real(r)))


@numpy_function("all")
def all_(t: Tracer, x: Any, axis: Any = None, out: Any = None, keepdims: Any = False, **kwargs: Any) -> Array:
    """True where every element is: the least of the elements read as 0 and 1 is above 0."""
    a, els = _prepared(t, x, None, {**kwargs, "out": out}), t.elements
    return reduce_axes(t, a, axis, bool(keepdims), BOOL, "min", lambda e: els.real(els.pred(e)),
                       lambda r: t.arena.fcmp("lt", t.arena.zero, els.real(r)))


@numpy_function("count_nonzero")
def count_nonzero(t: Tracer, x: Any, axis: Any = None, *, keepdims: Any = False) -> Array:
    """How many elements are not zero."""
    els = t.elements
    a = t.apply("not_equal", x, 0)
    kind, note = _accumulated(t, a, axis, "add")
    return reduce_axes(t, a, axis, bool(keepdims), kind, "add", lambda e: els.real(els.pred(e)), note)


def _argument(name: str, op: str) -> None:
    def function(t: Tracer, x: Any, axis: Any = None, out: Any = None, *, keepdims: Any = False) -> Array:
        a = _prepared(t, x, None, {"out": out})
        if axis is None and len(a.dims) > 1:
            a, axis = t.call("ravel", a), 0
        k = axes_of(a, axis)[0]
        _nonempty(t, a, k, f"np.{name}")
        best = t.call(op, a, axis=k, keepdims=True).reader()
        read, els, A = a.reader(), t.elements, t.arena
        dims = [const(1) if n == k else d for n, d in enumerate(a.dims)]
        if not keepdims and axis is not None:
            dims.pop(k)
        full = keepdims or axis is None

        def value(i: Index) -> Element:
            before, after = i[:k], i[k + 1 :] if full else i[k:]
            m = els.real(best((*before, const(0), *after)))
            limit = A.plus_inf

            def position(v: Poly) -> Real:
                e = els.real(read((*before, v, *after)))
                return A.sel(els.compare("==", e, m), A.of_int(v), limit)

            found = fold_over(t, "min", const(0), a.dims[k], position)
            els.finite.add(found)  # the axis is not empty, so the extremum is taken somewhere
            top = A.bounds(a.dims[k])[1]
            els.positions[found] = Position(m, a.dims[k], lambda v: els.real(read((*before, v, *after))))
            return _noted(t, found, 0, None if top is None else top - 1)

        return t.array(dims, INT, value) if dims else t.scalar(value(()), INT)

    function.__doc__ = f"np.{name}: the least position at which the extremum is taken."
    numpy_function(name)(function)


_argument("argmax", "max")
_argument("argmin", "min")


def _scan(name: str, op: str) -> None:
    def function(t: Tracer, x: Any, axis: Any = None, dtype: Any = None, out: Any = None) -> Array:
        a = _prepared(t, x, dtype, {"out": out})
        if axis is None:
            a, axis = t.call("ravel", a), 0
        if op == "mul" and a.dtype.kind != "f":
            raise Unsupported("integer product", "it may wrap around", hint="convert to float64 first")
        (k,) = axes_of(a, axis)
        read, els = a.reader(), t.elements
        kind, note = _accumulated(t, a, k, op)

        def value(i: Index) -> Element:
            return note(fold_over(t, op, const(0), i[k] + 1, lambda v: els.real(read((*i[:k], v, *i[k + 1 :])))))

        return t.array(a.dims, kind, value)

    function.__doc__ = f"np.{name}: a fold up to and including the index."
    numpy_function(name)(function)


_scan("cumsum", "add")
_scan("cumprod", "mul")
_scan("maximum.accumulate", "max")
_scan("minimum.accumulate", "min")


@numpy_function("linalg.norm")
def norm(t: Tracer, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> Array:
    """The square root of the sum of squares (the Frobenius norm without an axis)."""
    if ord not in (None, 2, "fro") or (ord == 2 and axis is None and len(t.lift(x).dims) != 1):
        raise Unsupported("np.linalg.norm", f"the order {ord} has no rule")
    a = convert(t, t.lift(x), FLOAT, copy=False)
    return t.apply("sqrt", sum_(t, t.call("square", a), axis, keepdims=keepdims))


@numpy_function("trace")
def trace_(t: Tracer, x: Any, offset: Any = 0) -> Array:
    """The sum of the main diagonal of a square matrix."""
    a = t.lift(x)
    if len(a.dims) != 2 or not t.facts.same(a.dims[0], a.dims[1]) or offset != 0:
        raise Unsupported("np.trace", "only the main diagonal of square matrices has a rule")
    return sum_(t, t.call("diagonal", a))

