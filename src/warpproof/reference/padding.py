"""Borders around arrays and windows over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from warpproof.core import InputError, Unsupported
from warpproof.reference.arrays import Array, Tracer, numpy_function
from warpproof.reference.creation import shape_argument
from warpproof.reference.elements import Element, Index
from warpproof.reference.shaping import axis_of
from warpproof.reference.wording import describe
from warpproof.terms import Poly, const


@numpy_function("pad")
def pad(t: Tracer, x: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """A border: constant, or elements of the array (`edge`, `reflect`, `symmetric`, `wrap`)."""
    known = {"constant_values"} if mode == "constant" else set()
    if mode not in ("constant", *_BORDERS) or set(kwargs) - known:
        raise Unsupported("np.pad", f"mode {mode!r} or one of its keywords has no rule in references")
    a = t.lift(x)
    sides = _pad_sides(t, pad_width, len(a.dims))
    dims = [d + before + after for d, (before, after) in zip(a.dims, sides)]
    if mode != "constant":
        for d, pair in zip(a.dims, sides):
            _border_fits(t, mode, d, pair)
        read_, move = a.reader(), _BORDERS[mode]
        return t.array(dims, a.dtype, lambda i: read_(tuple(
            k if not (lo.terms or hi.terms) else move(t, k - lo, d) for k, d, (lo, hi) in zip(i, a.dims, sides))))
    value = t.lift(kwargs.get("constant_values", 0))
    if value.dims:
        raise Unsupported("np.pad", "different constants per side")
    outside = value.converted(a.dtype)(())
    read = a.reader()

    def element(i: Index) -> Element:
        inner = tuple(k - before for k, (before, _) in zip(i, sides))
        guards = []
        for k, d, (before, after) in zip(inner, a.dims, sides):
            guards += [] if not before.terms else [t.arena.le(-k)]
            guards += [] if not after.terms else [t.arena.lt(k, d)]
        g = t.arena.conj(guards)
        return outside if g.op == "false" else t.elements.choose(g, read(inner), outside)

    return t.array(dims, a.dtype, element)


def _border_fits(t: Tracer, mode: str, dim: Poly, sides: tuple[Poly, Poly]) -> None:
    """The axis is long enough for one copy of itself to supply the border."""
    least = {"reflect": 1, "symmetric": 0}.get(mode)
    for w in sides:
        if not w.terms:
            continue
        short = dim - 1 if least is None else dim - least - w
        if not t.facts.nonnegative(short):
            need = f"{describe(t.arena, dim)} >= {1 if least is None else describe(t.arena, w + least)}"
            raise InputError("REF241", f"np.pad with mode {mode!r} needs {need}", hint=f"add the precondition {need}")


def _edge(t: Tracer, k: Poly, d: Poly) -> Poly:
    return t.arena.extremum("min", (t.arena.extremum("max", (k, const(0))), d - 1))


def _mirrored(t: Tracer, k: Poly, d: Poly, skip: int) -> Poly:
    above = t.elements.choose_poly(t.arena.lt(k, d), k, (d - 1) * 2 - k + (1 - skip))
    return t.elements.choose_poly(t.arena.lt(k, const(0)), -k - (1 - skip), above)


_BORDERS: dict[str, Callable[[Tracer, Poly, Poly], Poly]] = {
    "edge": _edge, "wrap": lambda t, k, d: t.facts.mod(k, d),
    "reflect": lambda t, k, d: _mirrored(t, k, d, 1), "symmetric": lambda t, k, d: _mirrored(t, k, d, 0),
}


def _pad_sides(t: Tracer, width: Any, rank: int) -> list[tuple[Poly, Poly]]:
    """(before, after) for each axis, all known to be ≥ 0."""
    if not isinstance(width, list | tuple):
        out = [(t.poly(width), t.poly(width))] * rank
    elif not any(isinstance(w, list | tuple) for w in width):
        pair = [t.poly(w) for w in width]
        out = [(pair[0], pair[-1])] * rank
    else:
        out = [(t.poly(w[0]), t.poly(w[-1])) for w in width]
        out = out * rank if len(out) == 1 else out
    if len(out) != rank:
        raise ValueError(f"pad_width for {len(out)} axes of an array of rank {rank}")
    for w in (w for pair_ in out for w in pair_):
        if not t.facts.nonnegative(w):
            raise InputError("REF241", f"the pad width {describe(t.arena, w)} may be negative",
                             hint=f"add the precondition {describe(t.arena, w)} >= 0")
    return out


@numpy_function("lib.stride_tricks.sliding_window_view")
def sliding_window_view(t: Tracer, x: Any, window_shape: Any, axis: Any = None, **kwargs: Any) -> Array:
    """All windows of a shape, their axes behind those of the positions."""
    if kwargs:
        raise Unsupported("sliding_window_view", "keywords other than axis have no rule")
    a = t.lift(x)
    widths = shape_argument(t, window_shape)
    given = range(len(a.dims)) if axis is None else (axis if isinstance(axis, list | tuple) else [axis])
    axes = [axis_of(k, len(a.dims)) for k in given]
    if len(axes) != len(widths):
        raise ValueError("sliding_window_view: as many axes as window lengths are needed")
    dims = list(a.dims)
    for k, w in zip(axes, widths):
        size, width = describe(t.arena, dims[k]), describe(t.arena, w)
        t.require(t.arena.le(w - dims[k]), f"a window of length {width} may be longer than its axis, {size}",
                  f"add the precondition {width} <= {size}")
        dims[k] = dims[k] - w + 1
    rank = len(dims)

    def forward(i: Index) -> Index:
        out = list(i[:rank])
        for n, k in enumerate(axes):
            out[k] = out[k] + i[rank + n]
        return tuple(out)

    return a.view([*dims, *widths], forward, None)
