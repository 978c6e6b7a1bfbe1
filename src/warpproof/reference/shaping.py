"""Functions that move elements: transposes, reshapes, concatenations, pads, shifts."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from warpproof.core import InputError, Unsupported
from warpproof.reference.arrays import INT, Array, Reader, Tracer, numpy_function
from warpproof.reference.broadcasting import broadcast_dims, pick
from warpproof.reference.creation import shape_argument
from warpproof.reference.elements import Element, Index
from warpproof.reference.elementwise import promoted, settled
from warpproof.reference.indexing import checked_positions, read_at
from warpproof.reference.wording import describe
from warpproof.terms import Poly, Pred, const


def axis_of(axis: Any, rank: int) -> int:
    """The axis counted from the front."""
    k = int(axis)
    if not -rank <= k < rank:
        raise ValueError(f"axis {k} is out of bounds for rank {rank}")
    return k % rank


def _indexed(t: Tracer, a: Array, key: tuple[Any, ...]) -> Array:
    return t.apply("__getitem__", a, key)


def product(dims: Sequence[Poly]) -> Poly:
    """The number of elements."""
    out = const(1)
    for d in dims:
        out = out * d
    return out


# ---------------------------------------------------------------------- permutations of axes (views)
def _permuted(t: Tracer, x: Array, order: Sequence[int]) -> Array:
    """Axis k of the result is axis order[k] of x."""
    back = [order.index(k) for k in range(len(order))]

    def forward(i: Index) -> Index:
        return tuple(i[k] for k in back)

    def inverse(i: Index) -> tuple[Pred, Index]:
        return t.arena.true, tuple(i[k] for k in order)

    return x.view([x.dims[k] for k in order], forward, inverse)


@numpy_function("transpose", "permute_dims")
def transpose(t: Tracer, x: Any, *axes: Any) -> Array:
    """The axes permuted, reversed by default."""
    a = t.lift(x)
    rank = len(a.dims)
    listed = axes[0] if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], list | tuple)) else axes
    order = [axis_of(k, rank) for k in listed] if listed else list(reversed(range(rank)))
    if sorted(order) != list(range(rank)):
        raise ValueError(f"axes {axes} do not permute rank {rank}")
    return _permuted(t, a, order)


@numpy_function("swapaxes")
def swapaxes(t: Tracer, x: Any, axis1: Any, axis2: Any) -> Array:
    """Two axes exchanged."""
    a = t.lift(x)
    order = list(range(len(a.dims)))
    p, q = axis_of(axis1, len(order)), axis_of(axis2, len(order))
    order[p], order[q] = order[q], order[p]
    return _permuted(t, a, order)


@numpy_function("moveaxis")
def moveaxis(t: Tracer, x: Any, source: Any, destination: Any) -> Array:
    """Axes moved to new positions."""
    a = t.lift(x)
    rank = len(a.dims)
    src = [axis_of(k, rank) for k in (source if isinstance(source, list | tuple) else [source])]
    dst = [axis_of(k, rank) for k in (destination if isinstance(destination, list | tuple) else [destination])]
    order = [k for k in range(rank) if k not in src]
    for d, s in sorted(zip(dst, src, strict=True)):
        order.insert(d, s)
    return _permuted(t, a, order)


@numpy_function("expand_dims")
def expand_dims(t: Tracer, x: Any, axis: Any) -> Array:
    """New axes of length 1."""
    a = t.lift(x)
    listed = list(axis) if isinstance(axis, list | tuple) else [axis]
    rank = len(a.dims) + len(listed)
    new = {axis_of(k, rank) for k in listed}
    return _indexed(t, a, tuple(None if k in new else slice(None) for k in range(rank)))


@numpy_function("squeeze")
def squeeze(t: Tracer, x: Any, axis: Any = None) -> Array:
    """Axes of length 1 removed; which ones must be decided by the preconditions."""
    a = t.lift(x)
    rank = len(a.dims)
    if axis is not None:
        drop = {axis_of(k, rank) for k in (axis if isinstance(axis, list | tuple) else [axis])}
    else:
        drop = {k for k, d in enumerate(a.dims) if _is_one(t, d)}
    if any(not t.facts.same(a.dims[k], const(1)) for k in drop):
        raise ValueError("cannot squeeze an axis whose length is not 1")
    return _indexed(t, a, tuple(0 if k in drop else slice(None) for k in range(rank)))


def _is_one(t: Tracer, d: Poly) -> bool:
    known = t.facts.decide(t.arena.eq(d - 1))
    if known is None:
        size = describe(t.arena, d)
        raise InputError("REF241", f"it is unknown whether the axis of length {size} has length 1",
                         hint=f"give squeeze an axis, or add the precondition {size} >= 2")
    return known


# ---------------------------------------------------------------------- reshapes
@numpy_function("reshape")
def reshape(t: Tracer, x: Any, *shape: Any, order: Any = "C", copy: Any = None) -> Array:
    """The elements in row-major order with other axes; the products must agree by the preconditions."""
    if order != "C":
        raise Unsupported("reshape", f"order {order!r}")
    a = t.lift(x)
    listed = shape[0] if len(shape) == 1 and isinstance(shape[0], list | tuple) else shape
    dims = _new_shape(t, a, list(listed))
    groups = _groups(t, list(a.dims), dims)

    def forward(i: Index) -> Index:
        out: list[Poly] = []
        for (p, q), (r, s) in groups:
            out += _regrouped(t, i[r:s], dims[r:s], a.dims[p:q])
        return tuple(out)

    if not a.dims:
        e = a.element()
        return t.array(dims, a.dtype, lambda i: e)
    return a.view(dims, forward, None) if dims else t.scalar(a.element(), a.dtype)


def _new_shape(t: Tracer, a: Array, listed: list[Any]) -> list[Poly]:
    holes = [k for k, d in enumerate(listed) if isinstance(d, int) and d == -1]
    if len(holes) > 1:
        raise ValueError("can only specify one unknown dimension")
    total = product(a.dims)
    if holes:
        rest = shape_argument(t, [d for k, d in enumerate(listed) if k not in holes])
        known = product(rest)
        size = describe(t.arena, known)
        t.require(t.arena.le(-known + 1), f"reshape cannot infer the axis -1: the other lengths multiply to {size}, "
                  "which may be 0", f"add the precondition {size} >= 1, or give the length")
        missing = t.elements.quotient(total, known)
        dims = [*rest[: holes[0]], missing, *rest[holes[0] :]]
    else:
        dims = shape_argument(t, listed)
    if not t.facts.same(product(dims), total):
        x, y = describe(t.arena, total), describe(t.arena, product(dims))
        raise InputError("REF241", f"cannot reshape {x} elements into {y} for all admitted sizes",
                         hint=f"add the precondition that makes {x} equal to {y}")
    return dims


def _groups(t: Tracer, old: list[Poly], new: list[Poly]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Runs of old and new axes with equal products, as short as the preconditions show."""
    out, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        ends = sorted(((a, b) for a in range(i, len(old) + 1) for b in range(j, len(new) + 1) if (a, b) != (i, j)),
                      key=lambda e: (e[0] - i + e[1] - j, abs((e[0] - i) - (e[1] - j))))
        a, b = next(e for e in ends if t.facts.same(product(old[i : e[0]]), product(new[j : e[1]])))
        out.append(((i, a), (j, b)))
        i, j = a, b
    return out


def _regrouped(t: Tracer, index: Index, dims: Sequence[Poly], old: Sequence[Poly]) -> list[Poly]:
    """The old multi-index of the element at a new multi-index, through the row-major position."""
    if len(old) == len(dims) == 1:
        return [index[0]]
    flat = const(0)
    for i, d in zip(index, dims):
        flat = flat * d + i
    out: list[Poly] = []
    for k in range(len(old)):
        if old[k] == const(1):
            out.append(const(0))
            continue
        step = product(old[k + 1 :])
        at = t.facts.floor_div(flat, step)
        flat = flat - step * at
        out.append(at)
    return out


@numpy_function("ravel", "flatten")
def ravel(t: Tracer, x: Any, order: Any = "C") -> Array:
    """One axis."""
    a = t.lift(x)
    return reshape(t, a, (t.integer(product(a.dims)),), order=order)


@numpy_function("broadcast_to")
def broadcast_to(t: Tracer, x: Any, shape: Any) -> Array:
    """x repeated along new or length-1 axes."""
    a = t.lift(x)
    dims = shape_argument(t, shape)
    if len(a.dims) > len(dims):
        raise ValueError("broadcast_to: the shape has too few axes")
    broadcast_dims(t, [dims, a.dims], onto_first=True)
    read = a.reader()
    return t.array(dims, a.dtype, lambda i: read(pick(t, a.dims, i)))


@numpy_function("atleast_1d")
def atleast_1d(t: Tracer, x: Any) -> Array:
    """x with at least one axis."""
    a = t.lift(x)
    return a if a.dims else reshape(t, a, (1,))


# ---------------------------------------------------------------------- joining
@numpy_function("concatenate", "concat")
def concatenate(t: Tracer, arrays: Any, axis: Any = 0, **kwargs: Any) -> Array:
    """Arrays one after the other along an axis."""
    parts = [t.lift(a) for a in arrays]
    if axis is None:
        parts, axis = [ravel(t, a) for a in parts], 0
    if not parts or any(len(a.dims) != len(parts[0].dims) or not a.dims for a in parts):
        raise ValueError("concatenate needs arrays of one rank, at least 1")
    k = axis_of(axis, len(parts[0].dims))
    dtype, _ = promoted(parts)
    rest = [broadcast_dims(t, [(parts[0].dims[n],), *((a.dims[n],) for a in parts[1:])], onto_first=True)[0]
            for n in range(len(parts[0].dims)) if n != k]
    ends, total = [], const(0)
    for a in parts:
        total = total + a.dims[k]
        ends.append(total)
    reads = [a.converted(dtype) for a in parts]

    def element(i: Index) -> Element:
        start = ends[-2] if len(ends) > 1 else const(0)
        out = reads[-1]((*i[:k], i[k] - start, *i[k + 1 :]))
        for n in reversed(range(len(reads) - 1)):
            first = ends[n - 1] if n else const(0)
            here = t.facts.simplify(t.arena.lt(i[k], ends[n]))
            if here.op != "false":
                out = t.elements.choose(here, reads[n]((*i[:k], i[k] - first, *i[k + 1 :])), out)
        return out

    return t.array([*rest[:k], total, *rest[k:]], dtype, element)


@numpy_function("stack")
def stack(t: Tracer, arrays: Any, axis: Any = 0) -> Array:
    """Arrays along a new axis."""
    if hasattr(arrays, "stacked"):
        return moveaxis(t, arrays.stacked(), 0, axis)
    parts = [t.lift(a) for a in arrays]
    if not parts:
        raise ValueError("need at least one array to stack")
    if all(a.mixed or a.dtype.kind != "f" for a in parts):
        parts = [settled(a) for a in parts]
    if len(parts) > 64:
        raise Unsupported("np.stack", "more than 64 parts")
    k = axis_of(axis, len(parts[0].dims) + 1)
    return concatenate(t, [expand_dims(t, a, k) for a in parts], k)


@numpy_function("vstack")
def vstack(t: Tracer, arrays: Any) -> Array:
    """Rows one below the other."""
    parts = [t.lift(a) for a in arrays]
    return concatenate(t, [a if len(a.dims) > 1 else reshape(t, a, (1, t.integer(product(a.dims)))) for a in parts], 0)


@numpy_function("hstack")
def hstack(t: Tracer, arrays: Any) -> Array:
    """Arrays side by side."""
    parts = [atleast_1d(t, a) for a in arrays]
    return concatenate(t, parts, 0 if len(parts[0].dims) == 1 else 1)


@numpy_function("split")
def split(t: Tracer, x: Any, indices_or_sections: Any, axis: Any = 0) -> list[Array]:
    """Equal parts, or parts ending at given positions."""
    a = t.lift(x)
    k = axis_of(axis, len(a.dims))
    lead = (slice(None),) * k
    if isinstance(indices_or_sections, list | tuple):
        cuts = [0, *indices_or_sections, t.integer(a.dims[k])]
        return [a[(*lead, slice(p, q))] for p, q in itertools.pairwise(cuts)]
    n = int(indices_or_sections)
    size = t.facts.floor_div(a.dims[k], const(n))
    if not t.facts.same(size * n, a.dims[k]):
        raise InputError("REF241", "split into parts that may not be equal", hint="add the divisibility precondition")
    return [a[(*lead, slice(t.integer(size * m), t.integer(size * (m + 1))))] for m in range(n)]


# ---------------------------------------------------------------------- moving along an axis
def _reindexed(t: Tracer, a: Array, k: int, dim: Poly, move: Callable[[Poly], Poly]) -> Array:
    """The array whose index i[k] reads position move(i[k])."""
    read = a.reader()
    dims = [*a.dims[:k], dim, *a.dims[k + 1 :]]
    return t.array(dims, a.dtype, lambda i: read((*i[:k], move(i[k]), *i[k + 1 :])))


@numpy_function("flip")
def flip(t: Tracer, x: Any, axis: Any = None) -> Array:
    """Reversed along axes."""
    a = t.lift(x)
    rank = len(a.dims)
    listed = range(rank) if axis is None else (axis if isinstance(axis, list | tuple) else [axis])
    axes = {axis_of(k, rank) for k in listed}
    return _indexed(t, a, tuple(slice(None, None, -1) if k in axes else slice(None) for k in range(rank)))


@numpy_function("fliplr")
def fliplr(t: Tracer, x: Any) -> Array:
    """Reversed along axis 1."""
    return flip(t, x, 1)


@numpy_function("flipud")
def flipud(t: Tracer, x: Any) -> Array:
    """Reversed along axis 0."""
    return flip(t, x, 0)


@numpy_function("roll")
def roll(t: Tracer, x: Any, shift: Any, axis: Any = None) -> Array:
    """Rotated along an axis."""
    a = t.lift(x)
    if axis is None:
        if len(a.dims) != 1:
            raise Unsupported("np.roll", "an axis is needed for arrays of rank above 1")
        axis = 0
    if isinstance(axis, list | tuple):
        for s, k in zip(shift, axis, strict=True):
            a = roll(t, a, s, k)
        return a
    k, s = axis_of(axis, len(a.dims)), t.poly(shift)
    return _reindexed(t, a, k, a.dims[k], lambda i: t.facts.mod(i - s, a.dims[k]))


@numpy_function("repeat")
def repeat(t: Tracer, x: Any, repeats: Any, axis: Any = None) -> Array:
    """Each element several times."""
    a = t.lift(x)
    if axis is None:
        a, axis = ravel(t, a), 0
    k, n = axis_of(axis, len(a.dims)), t.poly(repeats)
    if not t.facts.nonnegative(n - 1):
        raise InputError("REF241", "a repeat count may be zero or negative", hint="add a precondition on it")
    return _reindexed(t, a, k, a.dims[k] * n, lambda i: t.facts.floor_div(i, n))


def _modulo(t: Tracer, d: Poly, i: Poly) -> Poly:
    return t.facts.mod(i, d)


@numpy_function("tile")
def tile(t: Tracer, x: Any, reps: Any) -> Array:
    """The whole array several times."""
    a = t.lift(x)
    counts = [t.poly(r) for r in (reps if isinstance(reps, list | tuple) else [reps])]
    rank = max(len(a.dims), len(counts))
    a = a if len(a.dims) == rank else reshape(t, a, (*[1] * (rank - len(a.dims)), *a.shape))
    counts = [const(1)] * (rank - len(counts)) + counts
    for k, n in enumerate(counts):
        if not t.facts.nonnegative(n):
            raise InputError("REF241", "a tile count may be negative", hint="add a precondition on it")
        if n != const(1):
            dim = a.dims[k]
            a = _reindexed(t, a, k, dim * n, functools.partial(_modulo, t, dim))
    return a


@numpy_function("take")
def take(t: Tracer, x: Any, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Array:
    """A gather along one axis."""
    if out is not None or mode not in ("raise", "clip", "wrap"):
        raise Unsupported("np.take", f"out and mode {mode!r} have no rule")
    a = t.lift(x)
    if axis is None:
        a, axis = ravel(t, a), 0
    k = axis_of(axis, len(a.dims))
    if mode != "raise":
        n = t.integer(a.dims[k])
        t.require(t.arena.le(-a.dims[k] + 1), "np.take from an axis that may be empty")
        indices = t.call("clip", indices, 0, n - 1) if mode == "clip" else t.call("remainder", indices, n)
    return _indexed(t, a, (*[slice(None)] * k, indices))


@numpy_function("put_along_axis")
def put_alongaxis_of(t: Tracer, x: Any, indices: Any, values: Any, axis: Any) -> None:
    """Elements set along one axis, in place, at an index per element."""
    a, at = t.lift(x), t.lift(indices)
    k = axis_of(axis, len(a.dims))
    if len(at.dims) != len(a.dims) or at.dtype.kind not in "iu":
        raise ValueError("put_along_axis needs integer indices of the same rank")
    key: list[Any] = []
    for n, d in enumerate(a.dims):
        step = t.apply("arange", t.integer(d))
        key.append(at if n == k else step[tuple(slice(None) if m == n else None for m in range(len(a.dims)))])
    a[tuple(key)] = values


@numpy_function("ix_")
def ix_(t: Tracer, *xs: Any) -> tuple[Array, ...]:
    """Index arrays that together select a grid."""
    parts = [t.lift(x) for x in xs]
    if any(len(a.dims) != 1 or a.dtype.kind not in "iu" for a in parts):
        raise Unsupported("np.ix_", "only integer vectors have a rule")
    return tuple(a[tuple(slice(None) if m == n else None for m in range(len(parts)))] for n, a in enumerate(parts))


@numpy_function("diff")
def diff(t: Tracer, x: Any, n: Any = 1, axis: Any = -1) -> Array:
    """Differences of neighbours, n times."""
    a = t.lift(x)
    if a.dtype.kind == "b":
        raise Unsupported("np.diff", "of boolean arrays")
    k = axis_of(axis, len(a.dims))
    lead = (slice(None),) * k
    for _ in range(int(n)):
        a = t.apply("subtract", a[(*lead, slice(1, None))], a[(*lead, slice(None, -1))])
    return a


@numpy_function("take_along_axis")
def take_alongaxis_of(t: Tracer, x: Any, indices: Any, axis: Any) -> Array:
    """A gather along one axis with an index per element."""
    a, at = t.lift(x), t.lift(indices)
    k = axis_of(axis, len(a.dims))
    if len(at.dims) != len(a.dims) or at.dtype.kind not in "iu":
        raise ValueError("take_along_axis needs integer indices of the same rank")
    where, read = checked_positions(t, at, a.dims[k]), a.reader()
    dims = [at.dims[n] if n == k else broadcast_dims(t, [(a.dims[n],), (at.dims[n],)])[0] for n in range(len(a.dims))]

    def element(i: Index) -> Element:
        own = pick(t, a.dims, i)
        return read_at(t, where(pick(t, at.dims, i)), a.dims[k], lambda p: read((*own[:k], p, *own[k + 1 :])))

    return t.array(dims, a.dtype, element)


@numpy_function("diagonal", "diag")
def diagonal(t: Tracer, x: Any) -> Array:
    """The main diagonal of a square matrix, or a diagonal matrix from a vector."""
    a = t.lift(x)
    read = a.reader()
    if len(a.dims) == 1:
        zero = t.scalar(const(0), INT).converted(a.dtype)(())
        n = a.dims[0]
        return t.array([n, n], a.dtype, lambda i: t.elements.choose(t.arena.eq(i[0] - i[1]), read((i[0],)), zero))
    if len(a.dims) != 2 or not t.facts.same(a.dims[0], a.dims[1]):
        raise Unsupported("np.diagonal", "only square matrices and vectors have a rule")
    return t.array([a.dims[0]], a.dtype, lambda i: read((i[0], i[0])))


def _along(read: Reader, axis: int, i: Index) -> Element:
    return read((i[axis],))


@numpy_function("meshgrid")
def meshgrid(t: Tracer, *xs: Any, indexing: Any = "xy") -> list[Array]:
    """Coordinate arrays."""
    parts = [t.lift(x) for x in xs]
    order = list(range(len(parts)))
    if indexing == "xy" and len(parts) > 1:
        order[0], order[1] = 1, 0
    dims = [parts[k].dims[0] for k in order]
    out = []
    for k, a in enumerate(parts):
        read, place = a.reader(), order.index(k)
        out.append(t.array(dims, a.dtype, functools.partial(_along, read, place)))
    return out
