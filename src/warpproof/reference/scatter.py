"""Accumulation by index: `np.add.at` and its like, and `np.bincount`, as folds over everything that names an element.

Element o of `np.add.at(x, idx, v)` is x[o] plus the sum of v[j] over the j with idx[j] == o. A sum of integers must be
shown not to wrap around, an index to be in bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from warpproof.algebra import limits
from warpproof.core import Unsupported
from warpproof.reference.arrays import FLOAT, INT, Array, DType, Tracer, numpy_function
from warpproof.reference.broadcasting import broadcast_dims, pick
from warpproof.reference.elements import Index
from warpproof.reference.indexing import Gather, Part, Point, Span, checked_positions, split_key, unslice
from warpproof.reference.reductions import fold_over
from warpproof.reference.wording import describe
from warpproof.terms import Poly, Real, const

_FOLDS: Final = {"add": "add", "subtract": "add", "maximum": "max", "minimum": "min"}


@numpy_function("__at__")
def at(t: Tracer, name: str, x: Any, key: Any, value: Any) -> None:
    """np.<name>.at(x, key, value), in place."""
    if name not in _FOLDS or not isinstance(x, Array):
        raise Unsupported(f"np.{name}.at", "it has no rule in references")
    parts = split_key(t, x, key)
    if not any(isinstance(p, Gather) for p in parts):
        t.call("__setitem__", x, key, t.call(name, t.call("__getitem__", x, key), value))
        return
    if any(p is None for p in parts):
        raise Unsupported(f"np.{name}.at", "a new axis in the index has no rule")
    added = t.lift(value)
    if x.dtype.kind == "b" or (added.dtype.kind == "f" and x.dtype.kind != "f"):
        raise Unsupported(f"np.{name}.at", f"values of type {added.dtype} accumulated in an array of type {x.dtype}")
    scatter = _Scatter(t, x, parts, t.call("negative", added) if name == "subtract" else added)
    old, op, els = x.reader(), _FOLDS[name], t.elements

    def updated(i: Index) -> Real:
        before = els.real(old(i))
        made = t.arena.combine(op, before, scatter.fold(op, i))
        if made.ext and not els.infinite(before):
            els.finite.add(made)
        return made

    if x.dtype.kind != "f" and op == "add":
        _no_wrap(t, updated(t.fresh_index(x.dims)), x.dtype, name)
    x.write(lambda i: (t.arena.true, i), updated)


class _Scatter:
    """What is added to an element of x: the positions that are spread over its axes, and the values by position."""

    def __init__(self, t: Tracer, x: Array, parts: Sequence[Part], value: Array) -> None:
        self.t, self.parts, self.value = t, parts, value.converted(x.dtype)
        arrays = [p.positions for p in parts if isinstance(p, Gather)]
        self.shared = broadcast_dims(t, [a.dims for a in arrays])
        axes = [d for p, d in zip(parts, x.dims, strict=True) if isinstance(p, Gather)]
        self.positions = {id(a): checked_positions(t, a, d) for a, d in zip(arrays, axes, strict=True)}
        advanced = [k for k, p in enumerate(parts) if isinstance(p, Gather | Point)]
        adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
        self.before = sum(isinstance(p, Span) for p in parts[: advanced[0]]) if adjacent else 0
        spans = [p.count for p in parts if isinstance(p, Span)]
        region = [*spans[: self.before], *self.shared, *spans[self.before :]]
        extra = max(len(value.dims) - len(region), 0)
        self.lead, self.inner = extra, value.dims[extra:]
        if any(d != const(1) for d in value.dims[:extra]):
            raise ValueError("the values do not broadcast to the indexed region")
        broadcast_dims(t, [tuple(region), self.inner], onto_first=True)

    def fold(self, op: str, i: Index) -> Real:
        """The values that go to element i, combined."""
        def level(done: tuple[Poly, ...]) -> Real:
            if len(done) == len(self.shared):
                return self._summand(op, i, done)
            return fold_over(self.t, op, const(0), self.shared[len(done)], lambda v: level((*done, v)))

        return level(())

    def _summand(self, op: str, i: Index, common: tuple[Poly, ...]) -> Real:
        """The value at one position of the index arrays where these name element i, else nothing."""
        A, guards, free = self.t.arena, [], []
        for p, k in zip(self.parts, i, strict=True):
            match p:
                case Gather(a):
                    at_place = self.t.elements.poly(self.positions[id(a)](pick(self.t, a.dims, common)))
                    guards.append(A.eq(at_place - k))
                case Point(where):
                    guards.append(A.eq(where - k))
                case Span():
                    more, offset = unslice(self.t, p, k)
                    guards += more
                    free.append(offset)
        at = (*free[: self.before], *common, *free[self.before :])
        zeros = tuple(const(0) for _ in range(self.lead))
        value = self.t.elements.real(self.value(zeros + pick(self.t, self.inner, at)))
        return A.sel(A.conj(guards), value, A.identity(op))


def _no_wrap(t: Tracer, e: Real, dtype: DType, name: str) -> None:
    info = np.iinfo(dtype)
    low, high = limits(t.arena, e)
    if low is None or high is None or low < info.min or high > info.max:
        raise Unsupported(f"np.{name}.at", f"a sum of type {dtype} may wrap around",
                          hint="accumulate in int64 or float64, or bound the data and the sizes")


@numpy_function("bincount")
def bincount(t: Tracer, x: Any, weights: Any = None, minlength: Any = 0) -> Array:
    """How often each integer below `minlength` occurs, or the sum of its weights."""
    a = t.lift(x)
    bins: Poly = t.poly(minlength)
    probe = t.elements.poly(a.reader()(t.fresh_index(a.dims)))
    if not t.facts.nonnegative(bins - 1 - probe):
        raise Unsupported("np.bincount", "the number of bins depends on the data",
                          hint=f"give minlength, and bound the data below it: {describe(t.arena, bins)}")
    dtype = INT if weights is None else FLOAT
    made = t.apply("zeros", (t.integer(bins),), dtype=dtype)
    at(t, "add", made, a, 1 if weights is None else weights)
    return made

