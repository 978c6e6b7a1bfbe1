"""Sums of products: einsum, matmul, dot, tensordot, outer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from warpproof.core import Unsupported
from warpproof.reference.arrays import FLOAT, Array, DType, Tracer, numpy_function
from warpproof.reference.broadcasting import broadcast_dims
from warpproof.reference.elements import Element, Index
from warpproof.reference.elementwise import promoted
from warpproof.reference.reductions import fold_over
from warpproof.terms import Poly, Real, const

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def contract(t: Tracer, arrays: Sequence[Array], labels: Sequence[Sequence[str]], output: Sequence[str]) -> Array:
    """Σ over labels not in the output of the product of the operands, folds in order of first appearance."""
    dims = _label_dims(t, arrays, labels)
    summed = [s for s in dims if s not in output]
    dtype = _product_type(t, arrays, [dims[s] for s in summed])
    reads = [(a.reader(), [(s, d == const(1)) for s, d in zip(ls, a.dims)]) for a, ls in zip(arrays, labels)]
    els = t.elements

    def value(i: Index) -> Element:
        at: dict[str, Poly] = dict(zip(output, i))

        def level(rest: Sequence[str]) -> Real:
            if rest:
                def body(v: Poly) -> Real:
                    at[rest[0]] = v
                    return level(rest[1:])
                return fold_over(t, "add", const(0), dims[rest[0]], body)
            out = t.arena.one
            for read, places in reads:
                out = els.mul(out, els.real(read(tuple(const(0) if one else at[s] for s, one in places))))
            return out

        return level(summed)

    shape = [dims[s] for s in output]
    return t.array(shape, dtype, value) if shape else t.scalar(value(()), dtype)


def _label_dims(t: Tracer, arrays: Sequence[Array], labels: Sequence[Sequence[str]]) -> dict[str, Poly]:
    dims: dict[str, Poly] = {}
    for a, ls in zip(arrays, labels):
        if len(ls) != len(a.dims):
            raise ValueError(f"{len(ls)} subscripts for an operand of rank {len(a.dims)}")
        for s, d in zip(ls, a.dims):
            dims[s] = d if s not in dims else broadcast_dims(t, [(dims[s],), (d,)])[0]
    return dims


def _product_type(t: Tracer, arrays: Sequence[Array], lengths: Sequence[Poly]) -> DType:
    """float64, or the integer type when no sum can wrap."""
    dtype, _ = promoted(list(arrays))
    if dtype.kind == "f":
        return FLOAT
    if dtype.kind == "b":
        raise Unsupported("product of boolean arrays", "NumPy reads it as logic", hint="convert to float64 first")
    bound = 1
    for a in arrays:
        e = a.reader()(t.fresh_index(a.dims))
        lo, hi = t.arena.bounds(e) if isinstance(e, Poly) else (None, None)
        bound = 0 if lo is None or hi is None else bound * max(abs(lo), abs(hi), 1)
    for d in lengths:
        top = t.arena.bounds(d)[1]
        bound = 0 if top is None else bound * max(top, 1)
    if not 0 < bound <= int(np.iinfo(dtype).max):
        raise Unsupported("integer product", "the sum may wrap around", hint="convert to float64 first")
    return dtype


@numpy_function("einsum")
def einsum(t: Tracer, subscripts: Any, *operands: Any, **kwargs: Any) -> Array:
    """np.einsum in its string form; an ellipsis stands for leading broadcast axes."""
    if not isinstance(subscripts, str):
        raise Unsupported("np.einsum", "only the string form has a rule")
    if any(k != "optimize" for k in kwargs):
        raise Unsupported("np.einsum", "keywords other than optimize have no rule")
    arrays = [t.lift(x) for x in operands]
    text = subscripts.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays):
        raise ValueError(f"einsum: {len(terms)} terms for {len(arrays)} operands")
    used = set(text)
    spare = [c for c in _LETTERS if c not in used]
    extra = max((len(a.dims) - len(s.replace("...", "")) for s, a in zip(terms, arrays) if "..." in s), default=0)
    shared = spare[:extra]
    labels = [_expanded(s, len(a.dims), shared) for s, a in zip(terms, arrays)]
    if arrow:
        output = _expanded(right, len(right.replace("...", "")) + extra, shared)
    else:
        flat = [c for ls in labels for c in ls]
        output = [*shared, *sorted(c for c in set(flat) if flat.count(c) == 1 and c not in shared)]
    if any(c not in {x for ls in labels for x in ls} for c in output) or len(set(output)) < len(output):
        raise ValueError(f"einsum: the output {right!r} has unknown or repeated subscripts")
    return contract(t, arrays, labels, output)


def _expanded(term: str, rank: int, shared: Sequence[str]) -> list[str]:
    if "..." not in term:
        out = list(term)
    else:
        head, _, tail = term.partition("...")
        n = rank - len(head) - len(tail)
        out = [*head, *shared[len(shared) - n :], *tail] if n else [*head, *tail]
    if any(c not in _LETTERS for c in out):
        raise ValueError(f"einsum: cannot read the subscripts {term!r}")
    return out


@numpy_function("matmul")
def matmul(t: Tracer, x: Any, y: Any, **kwargs: Any) -> Array:
    """x @ y with NumPy's batch broadcasting."""
    a, b = t.lift(x), t.lift(y)
    if not a.dims or not b.dims:
        raise ValueError("matmul: operands must have at least one axis")
    n = max(len(a.dims) - 2, len(b.dims) - 2, 0)
    batch = [f"batch{k}" for k in range(n)]
    left = [*batch[n - max(len(a.dims) - 2, 0) :], *(["row"] if len(a.dims) > 1 else []), "sum"]
    right = [*batch[n - max(len(b.dims) - 2, 0) :], "sum", *(["column"] if len(b.dims) > 1 else [])]
    output = [*batch, *(["row"] if len(a.dims) > 1 else []), *(["column"] if len(b.dims) > 1 else [])]
    _equal(t, a.dims[-1], b.dims[-2] if len(b.dims) > 1 else b.dims[-1])
    return contract(t, [a, b], [left, right], output)


def _equal(t: Tracer, p: Poly, q: Poly) -> None:
    """Raise unless the contracted lengths agree (they do not broadcast)."""
    if const(1) in (p, q) and p != q:
        raise ValueError("the contracted axes have different lengths")
    broadcast_dims(t, [(p,), (q,)])


@numpy_function("dot")
def dot(t: Tracer, x: Any, y: Any, out: Any = None) -> Array:
    """np.dot: a sum over the last axis of x and the last but one of y."""
    a, b = t.lift(x), t.lift(y)
    if not a.dims or not b.dims:
        return t.apply("multiply", a, b)
    left = [f"x{k}" for k in range(len(a.dims) - 1)]
    right = [f"y{k}" for k in range(len(b.dims) - 1)]
    _equal(t, a.dims[-1], b.dims[-2] if len(b.dims) > 1 else b.dims[-1])
    second = [*right[:-1], "sum", right[-1]] if right else ["sum"]
    return contract(t, [a, b], [[*left, "sum"], second], [*left, *right])


@numpy_function("inner")
def inner(t: Tracer, x: Any, y: Any) -> Array:
    """The sum over the last axes of both."""
    a, b = t.lift(x), t.lift(y)
    if not a.dims or not b.dims:
        return t.apply("multiply", a, b)
    left, right = [f"x{k}" for k in range(len(a.dims) - 1)], [f"y{k}" for k in range(len(b.dims) - 1)]
    _equal(t, a.dims[-1], b.dims[-1])
    return contract(t, [a, b], [[*left, "sum"], [*right, "sum"]], [*left, *right])


@numpy_function("vdot")
def vdot(t: Tracer, x: Any, y: Any) -> Array:
    """The sum of the products of the flattened arrays."""
    return dot(t, t.call("ravel", t.lift(x)), t.call("ravel", t.lift(y)))


@numpy_function("outer")
def outer(t: Tracer, x: Any, y: Any) -> Array:
    """The products of all pairs."""
    a, b = t.call("ravel", t.lift(x)), t.call("ravel", t.lift(y))
    return contract(t, [a, b], [["x"], ["y"]], ["x", "y"])


@numpy_function("tensordot")
def tensordot(t: Tracer, x: Any, y: Any, axes: Any = 2) -> Array:
    """The sum over pairs of axes."""
    a, b = t.lift(x), t.lift(y)
    if isinstance(axes, int):
        first, second = list(range(len(a.dims) - axes, len(a.dims))), list(range(axes))
    else:
        first, second = ([int(k) for k in p] if isinstance(p, list | tuple) else [int(p)] for p in axes)
    left: Mapping[int, str] = {k % len(a.dims): f"s{n}" for n, k in enumerate(first)}
    right: Mapping[int, str] = {k % len(b.dims): f"s{n}" for n, k in enumerate(second)}
    if len(first) != len(second):
        raise ValueError("tensordot: the axes do not pair up")
    for p, q in zip(first, second):
        _equal(t, a.dims[p], b.dims[q])
    la = [left.get(k, f"x{k}") for k in range(len(a.dims))]
    lb = [right.get(k, f"y{k}") for k in range(len(b.dims))]
    return contract(t, [a, b], [la, lb], [s for s in la if s[0] == "x"] + [s for s in lb if s[0] == "y"])
