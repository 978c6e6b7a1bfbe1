"""The meaning of launch expressions at concrete sizes: exact Python integers, and NumPy arrays for buffer elements."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpproof.core import InputError
from warpproof.reference.expressions import MAX_BITS, Expression

_ARITHMETIC: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
    "/": operator.truediv,
}
_COMPARISON: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}
MAX_CELLS: Final = 1 << 26


class ConcreteAlgebra:
    """Values of expressions under `env` (sizes, scalars, buffers).

    A free index, and the index of a sum, is an axis of its own; `taken` axes belong to free indices. `valid` collects
    where every subscript is in bounds.
    """

    def __init__(self, env: Mapping[str, Any], axes: int = 0, taken: int = 0) -> None:
        self.env, self.axes, self.next_axis, self.depth = dict(env), axes, taken, 0
        self.valid: npt.NDArray[np.bool_] = np.ones((1,) * axes, dtype=bool)

    def axis(self, k: int, lo: int, hi: int) -> npt.NDArray[np.int64]:
        """The values lo … hi−1 along axis k."""
        shape = [1] * self.axes
        shape[k] = max(hi - lo, 0)
        return np.arange(lo, max(hi, lo), dtype=np.int64).reshape(shape)

    def constant(self, value: int | Fraction) -> Any:
        """The literal itself."""
        return value if isinstance(value, int) else float(value)

    def name(self, name: str) -> Any:
        """The size, scalar or index of this name."""
        if name not in self.env:
            raise InputError("REF206", f"no value for {name!r}", hint="give it in sizes or scalars")
        value = self.env[name]
        return int(value) if isinstance(value, np.integer | bool) else value

    def binary(self, op: str, a: Any, b: Any) -> Any:
        """`a op b`, exact on integers; InputError REF211 for a division by zero or an oversized power."""
        if op == "**":
            return self._power(a, b)
        if op in ("//", "%", "/") and np.any(np.asarray(b) == 0):
            raise InputError("REF211", "division by zero in a launch expression",
                             hint="add a precondition that excludes these sizes")
        out = _ARITHMETIC[op](a, b)
        if isinstance(out, int) and out.bit_length() > 2 * MAX_BITS:
            raise InputError("REF207", "an integer of a launch expression grows beyond 512 bits")
        return out

    def _power(self, a: Any, b: Any) -> Any:
        if not isinstance(b, int) or b < 0 or b > 2 * MAX_BITS:
            raise InputError("REF207", "exponents must be integers from 0 to 512")
        if isinstance(a, int) and a.bit_length() * b > 2 * MAX_BITS:
            raise InputError("REF207", "an integer of a launch expression grows beyond 512 bits")
        return a**b

    def compare(self, op: str, a: Any, b: Any) -> Any:
        """The truth value, elementwise on arrays."""
        return _COMPARISON[op](a, b)

    def logical(self, op: str, parts: Sequence[Any]) -> Any:
        """Elementwise `and`, `or`, `not`."""
        if op == "not":
            return np.logical_not(parts[0])
        out: Any = parts[0]
        for p in parts[1:]:
            out = np.logical_and(out, p) if op == "and" else np.logical_or(out, p)
        return out

    def extremum(self, kind: str, parts: Sequence[Any]) -> Any:
        """`min` or `max`, elementwise on arrays."""
        if all(isinstance(p, int | float) for p in parts):
            return min(parts) if kind == "min" else max(parts)
        out: Any = parts[0]
        for p in parts[1:]:
            out = np.minimum(out, p) if kind == "min" else np.maximum(out, p)
        return out

    def subscript(self, buffer: str, index: Sequence[Any]) -> Any:
        """The elements of a buffer at broadcast indices; out-of-bounds ones are marked invalid."""
        array = self.env.get(buffer)
        if not isinstance(array, np.ndarray) or array.ndim != len(index):
            raise InputError("REF211", f"{buffer!r} is not an array of rank {len(index)}")
        clipped = []
        for i, dim in zip(index, array.shape):
            at = np.asarray(i)
            inside = (at >= 0) & (at < dim)
            if not np.all(inside):
                if self.depth:
                    raise InputError("REF211", f"a sum in a precondition leaves the bounds of {buffer!r}")
                self.valid = self.valid & inside
            clipped.append(np.clip(at, 0, max(dim - 1, 0)))
        if 0 in array.shape:
            return np.zeros(np.broadcast_shapes(*(c.shape for c in clipped)))
        picked = array[tuple(clipped)]
        if picked.size > MAX_CELLS:
            raise InputError("REF207", "a precondition over elements is too large to check at these sizes")
        if picked.dtype.kind == "u" and picked.dtype.itemsize == 8:
            return picked.astype(object)
        return picked.astype(np.float64 if picked.dtype.kind not in "iub" else np.int64)

    def total(self, lo: Any, hi: Any, body: Callable[[Any], Any]) -> Any:
        """The sum along an axis of its own."""
        if not isinstance(lo, int) or not isinstance(hi, int):
            raise InputError("REF211", "the range of a sum must depend on sizes only")
        k, count = self.next_axis, max(hi - lo, 0)
        if count > MAX_CELLS or k >= self.axes:
            raise InputError("REF207", "a sum of a launch expression is too large to evaluate")
        self.next_axis += 1
        self.depth += 1
        value = np.asarray(body(self.axis(k, lo, hi)))
        self.depth -= 1
        value = value.reshape((1,) * (self.axes - value.ndim) + value.shape)
        shape = [*value.shape[:k], count, *value.shape[k + 1 :]]
        return np.sum(np.broadcast_to(value, shape), axis=k, keepdims=True)


def _sums(expression: Expression) -> int:
    return sum(isinstance(n, ast.GeneratorExp) for n in ast.walk(expression.tree))


def integer(expression: Expression, env: Mapping[str, Any]) -> int:
    """The integer value of an expression over sizes and scalars; InputError REF211 when it is not one."""
    value = expression.interpret(ConcreteAlgebra(env, _sums(expression)))
    if isinstance(value, np.ndarray) and value.size == 1:
        value = value.reshape(-1)[0]
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise expression.fault("REF211", "expected an integer")
    return int(value)


def holds(expression: Expression, env: Mapping[str, Any]) -> bool:
    """True when the precondition holds, for all free indices where its subscripts are in bounds."""
    extents = index_extents(expression, {k: v.shape for k, v in env.items() if isinstance(v, np.ndarray)}, env)
    algebra = ConcreteAlgebra(env, len(extents) + _sums(expression), len(extents))
    for k, (name, hi) in enumerate(extents.items()):
        algebra.env[name] = algebra.axis(k, 0, int(hi))
    with np.errstate(all="ignore"):
        value = np.asarray(expression.interpret(algebra), dtype=bool)
    shape = np.broadcast_shapes(value.shape, algebra.valid.shape)
    return bool(np.all(np.broadcast_to(value, shape) | ~np.broadcast_to(algebra.valid, shape)))


def index_extents(
    expression: Expression, shapes: Mapping[str, Sequence[Any]], known: Mapping[str, Any],
) -> dict[str, Any]:
    """The free indices of a precondition, each with the extent of the first axis that it indexes by itself."""
    recorder = IndexRecorder(shapes, known)
    expression.interpret(recorder)
    missing = sorted(recorder.free - set(recorder.extents))
    if missing:
        raise expression.fault("REF206", f"unknown name {missing[0]!r}",
                               "no size, scalar or buffer is called so; an index stands alone in a subscript: x[i]")
    return recorder.extents


class IndexRecorder:
    """An algebra that only notes which free names index which axes."""

    def __init__(self, shapes: Mapping[str, Sequence[Any]], known: Mapping[str, Any]) -> None:
        self.shapes, self.known = shapes, known
        self.free: set[str] = set()
        self.extents: dict[str, Any] = {}

    def constant(self, value: int | Fraction) -> Any:
        """Nothing to note."""
        return None

    def name(self, name: str) -> Any:
        """A name that is no size, scalar or buffer is an index."""
        if name in self.known or name in self.shapes:
            return None
        self.free.add(name)
        return name

    def binary(self, op: str, a: Any, b: Any) -> Any:
        """Nothing to note."""
        return None

    def compare(self, op: str, a: Any, b: Any) -> Any:
        """Nothing to note."""
        return None

    def logical(self, op: str, parts: Sequence[Any]) -> Any:
        """Nothing to note."""
        return None

    def extremum(self, kind: str, parts: Sequence[Any]) -> Any:
        """Nothing to note."""
        return None

    def subscript(self, buffer: str, index: Sequence[Any]) -> Any:
        """An index that stands alone ranges over its axis."""
        shape = self.shapes.get(buffer)
        if shape is None or len(shape) != len(index):
            raise InputError("REF206", f"{buffer!r} is no buffer of rank {len(index)}",
                             hint="subscripts must name a buffer parameter and give every axis")
        for i, dim in zip(index, shape):
            if isinstance(i, str):
                self.extents.setdefault(i, dim)
        return None

    def total(self, lo: Any, hi: Any, body: Callable[[Any], Any]) -> Any:
        """Visit the body."""
        body(None)
        return None
