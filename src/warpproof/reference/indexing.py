"""Subscripts of symbolic arrays: basic slices as views, integer arrays as gathers, masks in assignments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from warpproof.core import InputError, Unsupported
from warpproof.reference.arrays import BOOL, Array, Inverse, Reader, Tracer, numpy_function
from warpproof.reference.broadcasting import broadcast_dims, pick
from warpproof.reference.elements import Element, Index
from warpproof.reference.reductions import fold_over
from warpproof.reference.selection import Selection
from warpproof.reference.wording import describe
from warpproof.terms import Poly, Pred, Real, const


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
    count = _overshooting(t, start, s.stop, step, dim) if forward else None
    if count is None:
        stop = last if s.stop is None else _clamp(t, t.poly(s.stop), dim, lowest, highest)
        gap, stride = (stop - start, step) if forward else (start - stop, -step)
        count = _steps(t, gap, stride)
        if count is None:
            raise InputError("REF241", f"it is unknown whether the slice bound {describe(t.arena, stop)} lies behind "
                             f"{describe(t.arena, start)}", hint="add the precondition that orders them")
    return Span(start, step, count, whole=forward and not start.terms and step == const(1) and count == dim)


def _steps(t: Tracer, gap: Poly, stride: Poly) -> Poly | None:
    """How many positions lie in a gap, None if its sign is unknown."""
    if t.facts.nonnegative(gap):
        return t.facts.floor_div(gap + stride - 1, stride)
    return const(0) if t.facts.nonnegative(-gap) else None


def _overshooting(t: Tracer, start: Poly, stop: Any, step: Poly, dim: Poly) -> Poly | None:
    """The count where the stop may lie on either side of the end, but one side decides how many positions there are."""
    if stop is None:
        return None
    p = t.poly(stop)
    if not t.facts.nonnegative(p) or t.facts.nonnegative(dim - p) or t.facts.nonnegative(p - dim):
        return None
    free, cut = _steps(t, p - start, step), _steps(t, dim - start, step)
    if free is None or cut is None:
        return None
    return free if t.facts.nonnegative(cut - free) else cut if t.facts.nonnegative(free - cut) else None


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
        within = gap != b and t.facts.nonnegative(s.start) and t.facts.nonnegative(step - 1 - s.start)
        first, whole = (s.start, b) if within and t.facts.nonnegative(s.step) else (const(0), gap)
        k = t.facts.floor_div(whole, step)
        guards.append(A.eq(whole - step * k - first))
    guards += [A.le(-k), A.lt(k, s.count)]
    return [t.facts.simplify(g) for g in guards], k


@numpy_function("__getitem__")
def get_item(t: Tracer, x: Array, key: Any) -> Array | Selection:
    """x[key]: a view for basic subscripts, a copy for gathers, a selection for a mask of the same shape."""
    if isinstance(key, Array) and key.dtype.kind == "b" and key.dims:
        _same_shape(t, x, key)
        return Selection(t, key, t.apply("copy", x))
    parts = split_key(t, x, key)
    if any(isinstance(p, Gather) for p in parts):
        return _gather(t, x, parts)
    dims, forward, inverse = _basic(t, parts)
    if not dims:
        read = x.reader()
        e = read(forward(()))
        return t.scalar(e, x.dtype)
    return x.view(dims, forward, inverse)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the axes of an advanced subscript lie: `shared` after `before` of the `lengths` of slices and new axes."""

    arrays: list[Array]
    shared: Index
    at: dict[int, Callable[[Index], Element]]
    before: int
    lengths: list[Poly]

    def spans(self, t: Tracer, parts: Sequence[Part], i: Index) -> tuple[list[Pred], list[Poly]]:
        """Guards of the points and slices, and the index along slices and new axes, from the index of an element."""
        guards: list[Pred] = []
        out: list[Poly] = []
        rest = list(i)
        for p in parts:
            if p is None:
                out.append(const(0))
                continue
            b = rest.pop(0)
            match p:
                case Point(at):
                    guards.append(t.arena.eq(b - at))
                case Span() as span:
                    more, k = unslice(t, span, b)
                    guards += more
                    out.append(k)
        return guards, out


def _layout(t: Tracer, x: Array, parts: list[Part]) -> Layout:
    arrays = [p.positions for p in parts if isinstance(p, Gather)]
    axes = [d for p, d in zip([p for p in parts if p is not None], x.dims) if isinstance(p, Gather)]
    shared = broadcast_dims(t, [a.dims for a in arrays])
    at = {id(a): checked_positions(t, a, d) for a, d in zip(arrays, axes)}
    advanced = [i for i, p in enumerate(parts) if isinstance(p, Gather | Point)]
    adjacent = advanced == list(range(advanced[0], advanced[-1] + 1))
    before = sum(1 for p in parts[: advanced[0]] if p is None or isinstance(p, Span)) if adjacent else 0
    lengths = [const(1) if p is None else p.count for p in parts if p is None or isinstance(p, Span)]
    return Layout(arrays, shared, at, before, lengths)


def _gather(t: Tracer, x: Array, parts: list[Part]) -> Array:
    """NumPy's advanced indexing: the index arrays broadcast, and their axes stand at the first one or in front."""
    layout = _layout(t, x, parts)
    before, shared, lengths, at = layout.before, layout.shared, layout.lengths, layout.at
    read, n = x.reader(), len(shared)

    def element(i: Index) -> Element:
        common, rest = i[before : before + n], list(i[:before] + i[before + n :])
        out: list[Element] = []
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
        return _resolved(t, x, out, read)

    return t.array([*lengths[:before], *shared, *lengths[before:]], x.dtype, element)


def _resolved(t: Tracer, x: Array, at: Sequence[Element], read: Reader) -> Element:
    """The element at positions of which some may be places of extrema."""
    k = next((k for k, p in enumerate(at) if not isinstance(p, Poly)), None)
    if k is not None:
        return read_at(t, at[k], x.dims[k], lambda v: _resolved(t, x, (*at[:k], v, *at[k + 1 :]), read))
    return read(tuple(p for p in at if isinstance(p, Poly)))


def checked_positions(t: Tracer, a: Array, dim: Poly) -> Callable[[Index], Element]:
    """The positions of an index array, shown to be in bounds for every index; a real for the place of an extremum."""
    read = a.reader()
    probe = read(t.fresh_index(a.dims))
    if isinstance(probe, Real) and probe in t.elements.positions:
        length = t.elements.positions[probe].length
        t.require(t.arena.le(length - dim), f"a position on an axis of length {describe(t.arena, length)} indexes an "
                  f"axis of length {describe(t.arena, dim)}", "add the precondition that orders them")
        return read
    shift = position(t, t.elements.poly(probe), dim) - t.elements.poly(probe)
    return lambda i: t.elements.poly(read(i)) + shift


def read_at(t: Tracer, at: Element, dim: Poly, read: Callable[[Poly], Element]) -> Element:
    """The element at a position; at the place of an extremum, the extremum itself or a sum with one term left."""
    if isinstance(at, Poly):
        return read(at)
    found = t.elements.positions.get(at) if isinstance(at, Real) else None
    if found is None or not isinstance(at, Real):
        raise Unsupported("index", "the position is a sum or another value computed by a reduction")
    v = t.index_symbol(const(0), dim, "v")
    els, A = t.elements, t.arena
    if els.real(read(v)) is found.value(v):
        return found.extremum
    return fold_over(t, "add", const(0), dim, lambda k: A.sel(
        els.compare("==", A.of_int(k), at), els.real(read(k)), A.zero))


@numpy_function("__setitem__")
def set_item(t: Tracer, x: Array, key: Any, value: Any) -> None:
    """x[key] = value, in place."""
    if isinstance(key, Array) and key.dtype.kind == "b":
        _set_masked(t, x, key, value)
        return
    v = t.lift(value)
    parts = split_key(t, x, key)
    dims, inverse = _scattered(t, x, parts) if any(isinstance(p, Gather) for p in parts) else _written(t, parts)
    x.write(inverse, _stretched(t, v, dims, x))


def _written(t: Tracer, parts: Sequence[Part]) -> tuple[list[Poly], Inverse]:
    dims, _, inverse = _basic(t, parts)
    return dims, inverse


def _scattered(t: Tracer, x: Array, parts: list[Part]) -> tuple[list[Poly], Inverse]:
    """(lengths, inverse) of an assignment through integer arrays that sends no two indices to one position."""
    layout = _layout(t, x, parts)
    c = t.fresh_index(layout.shared, "c")
    own = [next(iter(p.atoms())) for p in c]
    axes = [k for k, p in enumerate(q for q in parts if q is not None) if isinstance(p, Gather)]
    positions = [t.elements.poly(layout.at[id(a)](pick(t, a.dims, c))) for a in layout.arrays]
    solved: dict[int, tuple[int, Poly, int]] = {}  # broadcast axis -> (axis of x, offset, sign)
    for axis, p in zip(axes, positions):
        used = [n for n, a in enumerate(own) if a in t.arena.poly_free(p)]
        if len(used) == 1 and used[0] not in solved:
            slope, rest = p.split(own[used[0]])
            if slope.as_int() in (1, -1) and own[used[0]] not in t.arena.poly_free(rest):
                solved[used[0]] = axis, rest, slope.as_int() or 1
    if any(n not in solved and d != const(1) for n, d in enumerate(layout.shared)):
        raise Unsupported("assignment through an integer array", "two indices may be sent to one position",
                          hint="give every broadcast axis a position of its own, such as np.arange")

    def inverse(i: Index) -> tuple[Pred, Index]:
        at = [const(0)] * len(own)
        for n, (axis, rest, sign) in solved.items():
            at[n] = (i[axis] - rest) * sign
        guards = [g for k, d in zip(at, layout.shared) for g in (t.arena.le(-k), t.arena.lt(k, d))]
        table = dict(zip(own, at))
        guards += [t.arena.eq(i[axis] - t.arena.substitute_poly(p, table)) for axis, p in zip(axes, positions)]
        more, rest_index = layout.spans(t, parts, i)
        guards = [t.facts.simplify(g) for g in (*guards, *more)]
        n = layout.before
        return t.arena.conj(guards), (*rest_index[:n], *at, *rest_index[n:])

    n = layout.before
    return [*layout.lengths[:n], *layout.shared, *layout.lengths[n:]], inverse


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


def _same_shape(t: Tracer, x: Array, mask: Array) -> None:
    if len(mask.dims) != len(x.dims) or not all(t.facts.same(a, b) for a, b in zip(mask.dims, x.dims)):
        raise Unsupported("a boolean index", "the mask does not have the shape of the array",
                          hint="use np.where to choose by element")


def _set_masked(t: Tracer, x: Array, mask: Array, value: Any) -> None:
    _same_shape(t, x, mask)
    where = mask.converted(BOOL)
    if isinstance(value, Selection):
        value.require_same(Selection(t, mask, x))
        read = value.full.converted(x.dtype)
        x.write(lambda i: (t.elements.pred(where(i)), i), read)
        return
    v = t.lift(value)
    if v.dims:
        raise Unsupported("assignment through a mask", "the assigned value is not a scalar",
                          hint="use np.where(mask, value, x)")
    scalar = v.converted(x.dtype)
    x.write(lambda i: (t.elements.pred(where(i)), ()), scalar)
