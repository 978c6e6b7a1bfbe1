"""Subscripts of symbolic arrays: basic slices as views, integer arrays as gathers, masks in assignments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from warpproof.core import InputError, Unsupported
from warpproof.reference.arrays import BOOL, Array, Inverse, Reader, Tracer, numpy_function
from warpproof.reference.broadcasting import broadcast_dims, pick
from warpproof.reference.elements import Element, Index
from warpproof.reference.wording import describe
from warpproof.terms import Poly, Pred, const


@dataclass(frozen=True, slots=True)
class Point:
    """One position of an axis."""

    at: Poly


@dataclass(frozen=True, slots=True)
class Span:
    """`count` positions start, start + step, … of an axis."""

    start: Poly
    step: Poly
    count: Poly
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Gather:
    """Positions given by an integer array."""

    positions: Array


Part = Point | Span | Gather | None  # None is a new axis


def split_key(t: Tracer, x: Array, key: Any) -> list[Part]:
    """The subscript as one part per axis of x, new axes in between."""
    parts = list(key) if isinstance(key, tuple) else [key]
    used = sum(1 for p in parts if p is not None and p is not Ellipsis)
    if sum(p is Ellipsis for p in parts) > 1:
        raise IndexError("an index can only have a single ellipsis")
    if used > len(x.dims):
        raise IndexError(f"too many indices: {used} for an array of rank {len(x.dims)}")
    missing: list[Any] = [slice(None)] * (len(x.dims) - used)
    at = next((i for i, p in enumerate(parts) if p is Ellipsis), len(parts))
    parts = parts[:at] + missing + parts[at + 1 :]
    out: list[Part] = []
    axis = 0
    for p in parts:
        if p is None:
            out.append(None)
            continue
        out.append(_part(t, p, x.dims[axis]))
        axis += 1
    return out


def _part(t: Tracer, p: Any, dim: Poly) -> Part:
    if isinstance(p, slice):
        return _span(t, p, dim)
    if isinstance(p, bool):
        raise Unsupported("index", "a boolean scalar as an index")
    value = t.lift(p)
    if value.dtype.kind == "b":
        raise Unsupported("boolean index", "the number of selected elements depends on data",
                          hint="use np.where to choose by element")
    if value.dtype.kind not in "iu":
        raise IndexError("arrays used as indices must be of integer type")
    if value.dims:
        return Gather(value)
    return Point(position(t, t.poly(p), dim))


def position(t: Tracer, at: Poly, dim: Poly) -> Poly:
    """The index as a position in [0, dim), a negative one counted from the end; InputError REF241 if neither."""
    facts = t.facts
    if facts.nonnegative(at):
        pass
    elif facts.nonnegative(-at - 1):
        at = at + dim
    else:
        raise InputError("REF241", f"the index {describe(t.arena, at)} may be negative for admitted inputs",
                         hint="add a precondition or a range that gives its sign")
    if not (facts.nonnegative(dim - 1 - at) and facts.nonnegative(at)):
        raise InputError(
            "REF241", f"the index {describe(t.arena, at)} may be out of bounds for an axis of length "
            f"{describe(t.arena, dim)}",
            hint=f"add the precondition {describe(t.arena, at)} < {describe(t.arena, dim)}")
    return at


def _span(t: Tracer, s: slice, dim: Poly) -> Span:
    """The slice clamped as Python does, every clamp decided by the preconditions."""
    step = const(1) if s.step is None else t.poly(s.step)
    if step == const(1) and s.start is None and s.stop is None:
        return Span(const(0), step, dim, whole=True)
    forward = t.facts.nonnegative(step - 1)
    if not forward and not t.facts.nonnegative(-step - 1):
        raise InputError("REF241", "the sign of a slice step is unknown", hint="add a precondition such as s >= 1")
    lowest, highest = (const(0), dim) if forward else (const(-1), dim - 1)
    first, last = (lowest, highest) if forward else (highest, lowest)
    start = first if s.start is None else _clamp(t, t.poly(s.start), dim, lowest, highest)
    stop = last if s.stop is None else _clamp(t, t.poly(s.stop), dim, lowest, highest)
    gap, stride = (stop - start, step) if forward else (start - stop, -step)
    if t.facts.nonnegative(gap):
        count = t.facts.floor_div(gap + stride - 1, stride)
    elif t.facts.nonnegative(-gap):
        count = const(0)
    else:
        raise InputError("REF241", f"it is unknown whether the slice bound {describe(t.arena, stop)} lies behind "
                         f"{describe(t.arena, start)}", hint="add the precondition that orders them")
    return Span(start, step, count, whole=forward and not start.terms and step == const(1) and count == dim)


def _clamp(t: Tracer, p: Poly, dim: Poly, lowest: Poly, highest: Poly) -> Poly:
    """A slice bound after Python's treatment of negative and large values."""
    facts = t.facts
    if facts.nonnegative(-p - 1):
        p = p + dim
        if facts.nonnegative(lowest - p):
            return lowest
        if not facts.nonnegative(p - lowest):
            raise _unordered(t, lowest, p)
    elif not facts.nonnegative(p):
        raise InputError("REF241", f"the slice bound {describe(t.arena, p)} may be negative for admitted sizes",
                         hint=f"add the precondition {describe(t.arena, p)} >= 0")
    if facts.nonnegative(highest - p):
        return p
    if facts.nonnegative(p - highest):
        return highest
    raise _unordered(t, p, highest)


def _unordered(t: Tracer, p: Poly, q: Poly) -> InputError:
    a, b = describe(t.arena, p), describe(t.arena, q)
    return InputError("REF241", f"the slice bound {a} may exceed {b} for admitted sizes",
                      hint=f"add the precondition {a} <= {b}")


def _basic(t: Tracer, parts: Sequence[Part]) -> tuple[list[Poly], Callable[[Index], Index], Inverse]:
    """(lengths, forward, inverse) of a subscript without gathers."""
    dims = [const(1) if p is None else p.count for p in parts if p is None or isinstance(p, Span)]

    def forward(i: Index) -> Index:
        rest, out = list(i), []
        for p in parts:
            match p:
                case None:
                    rest.pop(0)
                case Point(at):
                    out.append(at)
                case Span(start, step, _, whole):
                    k = rest.pop(0)
                    out.append(k if whole else start + k * step)
        return tuple(out)

    def inverse(i: Index) -> tuple[Pred, Index]:
        rest, guards, out = list(i), [], []
        for p in parts:
            match p:
                case None:
                    out.append(const(0))
                case Point(at):
                    guards.append(t.facts.simplify(t.arena.eq(rest.pop(0) - at)))
                case Span() as span:
                    g, k = unslice(t, span, rest.pop(0))
                    guards += g
                    out.append(k)
        return t.arena.conj(guards), tuple(out)

    return dims, forward, inverse


def unslice(t: Tracer, s: Span, b: Poly) -> tuple[list[Pred], Poly]:
    """Guards and position k with b = start + k·step."""
    if s.whole:
        return [], b
    A, guards = t.arena, []
    gap, step = (b - s.start, s.step) if t.facts.nonnegative(s.step) else (s.start - b, -s.step)
    k = gap
    if step != const(1):
        k = t.facts.floor_div(gap, step)
        guards.append(A.eq(gap - step * k))
    guards += [A.le(-k), A.lt(k, s.count)]
    return [t.facts.simplify(g) for g in guards], k


@numpy_function("__getitem__")
def get_item(t: Tracer, x: Array, key: Any) -> Array:
    """x[key]: a view for basic subscripts, a copy for gathers."""
    parts = split_key(t, x, key)
    if any(isinstance(p, Gather) for p in parts):
        return _gather(t, x, parts)
    dims, forward, inverse = _basic(t, parts)
    if not dims:
        read = x.reader()
        e = read(forward(()))
        return t.scalar(e, x.dtype)
    return x.view(dims, forward, inverse)


def _gather(t: Tracer, x: Array, parts: list[Part]) -> Array:
    """NumPy's advanced indexing: the index arrays broadcast, and their axes stand at the first one or in front."""
    arrays = [p.positions for p in parts if isinstance(p, Gather)]
    axes = [d for p, d in zip([p for p in parts if p is not None], x.dims) if isinstance(p, Gather)]
    shared = broadcast_dims(t, [a.dims for a in arrays])
    at = {id(a): checked(t, a, d) for a, d in zip(arrays, axes)}
    advanced = [i for i, p in enumerate(parts) if isinstance(p, Gather | Point)]
    adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
    before = sum(1 for p in parts[: advanced[0]] if p is None or isinstance(p, Span)) if adjacent else 0
    spans = [p for p in parts if p is None or isinstance(p, Span)]
    lengths = [const(1) if p is None else p.count for p in spans]
    read, n = x.reader(), len(shared)

    def element(i: Index) -> Element:
        common, rest, out = i[before : before + n], list(i[:before] + i[before + n :]), []
        for p in parts:
            match p:
                case None:
                    rest.pop(0)
                case Point(k):
                    out.append(k)
                case Span(start, step, _, _):
                    out.append(start + rest.pop(0) * step)
                case Gather(a):
                    out.append(at[id(a)](pick(t, a.dims, common)))
        return read(tuple(out))

    return t.array([*lengths[:before], *shared, *lengths[before:]], x.dtype, element)


def checked(t: Tracer, a: Array, dim: Poly) -> Callable[[Index], Poly]:
    """The positions of an index array, shown to be in bounds for every index."""
    read = a.reader()
    probe = t.elements.poly(read(t.fresh_index(a.dims)))
    shift = position(t, probe, dim) - probe
    return lambda i: t.elements.poly(read(i)) + shift


@numpy_function("__setitem__")
def set_item(t: Tracer, x: Array, key: Any, value: Any) -> None:
    """x[key] = value, in place."""
    v = t.lift(value)
    if isinstance(key, Array) and key.dtype.kind == "b":
        _set_masked(t, x, key, v)
        return
    parts = split_key(t, x, key)
    if any(isinstance(p, Gather) for p in parts):
        raise Unsupported("assignment through an integer array", "the written positions depend on data")
    dims, _, inverse = _basic(t, parts)
    x.write(inverse, _stretched(t, v, dims, x))


def _stretched(t: Tracer, v: Array, dims: Sequence[Poly], x: Array) -> Reader:
    """The value read at indices of the assigned region, in x's type."""
    extra = max(len(v.dims) - len(dims), 0)
    if any(d != const(1) for d in v.dims[:extra]):
        raise ValueError(f"an array of rank {len(v.dims)} cannot be assigned to a region of rank {len(dims)}")
    inner = v.dims[extra:]
    broadcast_dims(t, [tuple(dims), inner], onto_first=True)
    read = v.converted(x.dtype)
    lead = tuple(const(0) for _ in range(extra))
    return lambda i: read(lead + pick(t, inner, i))


def _set_masked(t: Tracer, x: Array, mask: Array, v: Array) -> None:
    if len(mask.dims) != len(x.dims) or not all(t.facts.same(a, b) for a, b in zip(mask.dims, x.dims)):
        raise Unsupported("assignment through a mask", "the mask does not have the shape of the array")
    if v.dims:
        raise Unsupported("assignment through a mask", "the assigned value is not a scalar",
                          hint="use np.where(mask, value, x)")
    where, value = mask.converted(BOOL), v.converted(x.dtype)

    def guard(i: Index) -> tuple[Pred, Index]:
        return t.elements.pred(where(i)), ()

    x.write(guard, value)
