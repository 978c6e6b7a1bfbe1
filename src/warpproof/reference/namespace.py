"""What a reference sees instead of `numpy`, `math` and the builtins that meet symbolic values."""

from __future__ import annotations

import builtins
import contextlib
import functools
import math
import operator
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np

import warpproof.reference.classification as _classification
import warpproof.reference.contraction as _contraction
import warpproof.reference.padding as _padding
import warpproof.reference.reductions as _reductions
import warpproof.reference.scatter as _scatter
import warpproof.reference.shaping as _shaping
from warpproof.core import Unsupported
from warpproof.reference.arrays import FLOAT, FUNCTIONS, INT, Array, Tracer, check_name
from warpproof.reference.branches import Branch, chain, conditional, negation, shortcut
from warpproof.reference.creation import TypeName, convert
from warpproof.reference.items import Items, comprehension, enumerated, symbolic_range, zipped
from warpproof.reference.loops import Loop
from warpproof.reference.purity import (
    Kind,
    NumPyKind,
    get_attribute,
    has_attribute,
    importer,
    is_instance,
    refused,
    type_of,
)
from warpproof.reference.rewriting import BRANCH, CHAIN, COMPREHENSION, CONDITIONAL, LOOP, NEGATION, SHORTCUT
from warpproof.reference.selection import Selection

# importing them registers their functions
_LOADED: Final = (_classification, _contraction, _padding, _reductions, _scatter, _shaping)
_TYPES: Final = ("float16", "float32", "float64", "bfloat16", "half", "single", "double", "int8", "int16", "int32",
                 "int64", "uint8", "uint16", "uint32", "uint64", "bool_", "intp")
_CONSTANTS: Final[Mapping[str, Any]] = {
    "pi": np.pi, "e": np.e, "inf": np.inf, "nan": np.nan, "newaxis": None, "euler_gamma": np.euler_gamma,
    "ndarray": NumPyKind(np.ndarray), "generic": NumPyKind(np.generic), "number": NumPyKind(np.number),
    "floating": NumPyKind(np.floating), "integer": NumPyKind(np.integer),
}
_NOT_IN_REFERENCES: Final = ("breakpoint", "compile", "delattr", "dir", "eval", "exec", "id", "input", "open",
                             "setattr", "vars")
_REDUCE: Final = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all",
                  "logical_or": "any"}
_MODULES: Final = (
    (np.linalg, "linalg."), (np.lib, "lib."), (np.lib.stride_tricks, "lib.stride_tricks."),
)
_ACCUMULATE: Final = {"add": "cumsum", "multiply": "cumprod", "maximum": "maximum.accumulate",
                     "minimum": "minimum.accumulate"}
_MATH: Final = {
    "exp": "exp", "exp2": "exp2", "log": "log", "log2": "log2", "log10": "log10", "log1p": "log1p", "expm1": "expm1",
    "sqrt": "sqrt", "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh", "sinh": "sinh", "cosh": "cosh",
    "fabs": "absolute", "pow": "power",
}


class Function:
    """A traced NumPy function, with `.reduce`, `.at` and `.outer` where it is a binary ufunc."""

    def __init__(self, tracer: Tracer, name: str) -> None:
        self.t, self.name = tracer, name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function applied."""
        selected = next((a for a in args if isinstance(a, Selection)), None)
        if selected is not None:
            return selected.apply(self.name, args, kwargs)
        return self.t.call(self.name, *args, **kwargs)

    def reduce(self, x: Any, axis: Any = 0, **kwargs: Any) -> Any:
        """The reduction by this function."""
        if self.name not in _REDUCE:
            raise Unsupported(f"np.{self.name}.reduce", "it has no rule in references")
        return self.t.call(_REDUCE[self.name], x, axis, **kwargs)

    def at(self, x: Any, key: Any, value: Any) -> None:
        """x[key] combined with the values by this function in place, once for every occurrence of an index."""
        self.t.call("__at__", self.name, x, key, value)

    def outer(self, x: Any, y: Any) -> Any:
        """The function of all pairs."""
        a, b = self.t.lift(x), self.t.lift(y)
        return self.t.call(self.name, a[(..., *[None] * len(b.dims))], b)

    def accumulate(self, x: Any, axis: Any = 0) -> Any:
        """The running sum, product or extremum."""
        if self.name not in _ACCUMULATE:
            raise Unsupported(f"np.{self.name}.accumulate", "it has no rule in references")
        return self.t.call(_ACCUMULATE[self.name], x, axis)


class NumPy:
    """The tracing namespace bound to `np`."""

    def __init__(self, tracer: Tracer, prefix: str = "") -> None:
        self._t, self._prefix = tracer, prefix

    def __getattr__(self, name: str) -> Any:
        full = self._prefix + name
        if full in FUNCTIONS and not name.startswith("__"):
            return Function(self._t, full)
        if not self._prefix:
            if name in _TYPES:
                return TypeName(self._t, {"bool_": "bool", "half": "float16", "single": "float32", "double": "float64",
                                          "intp": "int64"}.get(name, name))
            if name in _CONSTANTS:
                return _CONSTANTS[name]
            if name in ("linalg", "lib"):
                return NumPy(self._t, f"{name}.")
            if name == "dtype":
                return lambda value: value
            if name in ("finfo", "iinfo"):
                return lambda value: getattr(np, name)(getattr(value, "exact", value))
            if name == "errstate":
                return lambda **kwargs: contextlib.nullcontext()
        if full == "lib.stride_tricks":
            return NumPy(self._t, f"{full}.")
        if name.startswith("__"):
            raise AttributeError(name)
        check_name(f"np.{full}", name, operator.attrgetter(self._prefix.rstrip("."))(np) if self._prefix else np)
        raise Unsupported(f"np.{full}", "this name of NumPy has no rule in references",
                          hint="write it with elementary functions and sums")


def _to_int(t: Tracer, x: Array) -> Any:
    if x.dtype.kind == "f":
        raise Unsupported("int() of a float", "rounding to an integer has no rule here")
    return t.integer(t.elements.poly(x.element()))


def _to_float(t: Tracer, x: Array) -> Array:
    return t.scalar(t.elements.real(x.element()), FLOAT, weak=True)


def _extremum(t: Tracer, kind: str, *args: Any, **kwargs: Any) -> Any:
    if len(args) == 1 and isinstance(args[0], Items) and not kwargs:
        return t.call(kind, args[0].stacked(), axis=0)
    if len(args) == 1 and isinstance(args[0], Array) and len(args[0].dims) == 1 and not kwargs:
        return t.call(kind, args[0])
    values = list(args[0]) if len(args) == 1 else list(args)
    if not any(isinstance(v, Array) for v in values) or kwargs:
        return (min if kind == "min" else max)(*args, **kwargs)
    if any(isinstance(v, Array) and v.dims for v in values):
        raise ValueError(f"the truth value of an array is ambiguous in {kind}(…); use np.{kind}imum")
    out: Any = values[0]
    for v in values[1:]:
        out = t.call(f"{kind}imum", out, v)
    return t.integer(out.element()) if out.weak and out.dtype == INT else out


def _range(t: Tracer, *args: Any) -> Any:
    parts = [a if isinstance(a, int) else t.integer(t.poly(a)) for a in args]
    if all(isinstance(p, int) for p in parts):
        return range(*parts)
    full = [0, *parts] if len(parts) == 1 else parts
    step = full[2] if len(full) == 3 else 1
    return symbolic_range(t, t.poly(full[0]), t.poly(full[1]), t.poly(step))


def _total(t: Tracer, x: Any, start: Any = 0) -> Any:
    return start + x.total() if isinstance(x, Items) else sum(x, start)


def _length(t: Tracer, x: Any) -> Any:
    if isinstance(x, Items):
        return x.length()
    if isinstance(x, Array) and x.dims:
        return t.integer(x.dims[0])
    return len(x)


def _round(t: Tracer, x: Any, *args: Any) -> Any:
    if isinstance(x, Array):
        raise Unsupported("round", "rounding has no rule in references")
    return round(x, *args)


def traced_builtins(t: Tracer) -> dict[str, Any]:
    """The builtins, those that meet symbolic values replaced."""
    own: dict[str, Any] = {
        "range": functools.partial(_range, t), "len": functools.partial(_length, t),
        "float": Kind(float, functools.partial(_to_float, t)),
        "int": Kind(int, functools.partial(_to_int, t)),
        "bool": Kind(bool, bool),
        "min": functools.partial(_extremum, t, "min"), "max": functools.partial(_extremum, t, "max"),
        "round": functools.partial(_round, t),
        "type": type_of, "isinstance": is_instance, "hasattr": has_attribute, "getattr": get_attribute,
        "print": lambda *args, **kwargs: None, "__import__": importer(functools.partial(traced_value, t)),
        **{name: refused(name) for name in _NOT_IN_REFERENCES},
        "enumerate": functools.partial(enumerated, t), "zip": functools.partial(zipped, t),
        "sum": functools.partial(_total, t),
        LOOP: functools.partial(Loop, t), BRANCH: functools.partial(Branch, t),
        CONDITIONAL: functools.partial(conditional, t), SHORTCUT: functools.partial(shortcut, t),
        NEGATION: functools.partial(negation, t), CHAIN: functools.partial(chain, t),
        COMPREHENSION: functools.partial(comprehension, t),
    }
    return {**vars(builtins), **own}


class Math:
    """The tracing namespace bound to `math`: symbolic arguments go to the NumPy functions."""

    def __init__(self, tracer: Tracer) -> None:
        self._t = tracer

    def __getattr__(self, name: str) -> Any:
        plain = getattr(math, name)
        if not callable(plain):
            return plain

        def function(*args: Any, **kwargs: Any) -> Any:
            if not any(isinstance(a, Array) for a in args):
                return plain(*args, **kwargs)
            if name not in _MATH or kwargs:
                raise Unsupported(f"math.{name}", "it has no rule for symbolic values")
            return self._t.call(_MATH[name], *args)

        return function


def traced_value(t: Tracer, value: Any) -> Any:
    """The tracing counterpart of a global of the reference's module; the value itself when there is none."""
    if value is np:
        return NumPy(t)
    for module, prefix in _MODULES:
        if value is module:
            return NumPy(t, prefix)
    if value is np.lib.stride_tricks.sliding_window_view:
        return Function(t, "lib.stride_tricks.sliding_window_view")
    if value is math:
        return Math(t)
    name = getattr(value, "__name__", "")
    if isinstance(name, str) and not isinstance(value, ModuleType):
        if (name in FUNCTIONS or name in _TYPES) and getattr(np, name, None) is value:
            return getattr(NumPy(t), name)
        if name in _MATH and getattr(math, name, None) is value:
            return getattr(Math(t), name)
    return value


def names_of_numpy() -> Iterator[str]:
    """The NumPy names that references may use."""
    yield from sorted({*(n for n in FUNCTIONS if not n.startswith("__")), *_TYPES, *_CONSTANTS})


__all__ = ["Math", "NumPy", "convert", "names_of_numpy", "traced_builtins", "traced_value"]
