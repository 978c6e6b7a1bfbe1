"""A reference must not be able to tell that it is traced, nor carry anything from one call to the next.

What would differ between a symbolic value and the number or array it stands for (its type, identity, hash, text) is
refused while tracing, and so is code that changes what outlives the call.
"""

from __future__ import annotations

import dis
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from warpproof.core import Span, Unsupported
from warpproof.reference.arrays import Array
from warpproof.reference.standin import StandIn

_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_REFUSED: Final[Mapping[str, str]] = {
    "STORE_GLOBAL": "it changes a global variable", "DELETE_GLOBAL": "it deletes a global variable",
    "STORE_ATTR": "it sets an attribute, which may outlive the call", "DELETE_ATTR": "it deletes an attribute",
    "MATCH_CLASS": "a match on classes sees that values are symbolic",
    "MATCH_SEQUENCE": "a match on sequences sees that values are symbolic",
    "MATCH_MAPPING": "a match on mappings sees that values are symbolic",
}
_CONSTANTS: Final = (None, True, False, Ellipsis)
_OUTSIDE: Final = frozenset({
    "builtins", "ctypes", "datetime", "dis", "gc", "importlib", "inspect", "io", "os", "pathlib", "platform", "random",
    "secrets", "socket", "subprocess", "sys", "threading", "time", "traceback", "types", "warnings",
})
_DEPTH: Final = 6
_NO_ARRAY: Final[Mapping[str, Any]] = {"f": 0.0, "i": 0, "u": 0, "b": False}


# ---------------------------------------------------------------------- code
def check_code(code: CodeType) -> None:
    """Raise `Unsupported` for a statement whose meaning depends on symbolic values being objects, or with an effect."""
    stack = [code]
    while stack:
        c = stack.pop()
        line, before = c.co_firstlineno, None
        for ins in dis.get_instructions(c):
            line = (ins.positions.lineno if ins.positions else None) or line
            why = _fault(ins, before)
            if why:
                raise Unsupported(f"function {c.co_name}", why, Span(line, 1, 1, c.co_filename))
            before = ins
        stack.extend(k for k in c.co_consts if isinstance(k, CodeType))


def _fault(ins: dis.Instruction, before: dis.Instruction | None) -> str:
    if ins.opname in _ATTRIBUTES and str(ins.argval).startswith("__"):
        return f"the special attribute {ins.argval} sees that values are symbolic"
    if ins.opname == "IS_OP" and not (
        before is not None and before.opname == "LOAD_CONST" and any(before.argval is k for k in _CONSTANTS)
    ):
        return "`is` compares identities, which symbolic values do not have; only `is None` has a meaning"
    return _REFUSED.get(ins.opname, "")


def check_value(name: str, value: Any) -> None:
    """Raise `Unsupported` for a value from outside the reference that may differ from call to call."""
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    called = isinstance(value, ModuleType) or (callable(value) and not isinstance(value, type))
    if called and isinstance(module, str) and module.partition(".")[0] in _OUTSIDE - {"builtins"}:
        raise Unsupported(name, f"the reference uses {module}, whose answers differ from call to call")
    if hasattr(value, "__next__"):
        raise Unsupported(name, "an iterator made outside the reference gives other values at every call")


# ---------------------------------------------------------------------- what outlives a call
def state(values: Iterable[Any], depth: int = _DEPTH) -> list[Any]:
    """What values made outside the reference hold, to be compared after the call."""
    return [_held(v, depth) for v in values]


def _held(v: Any, depth: int) -> Any:
    if not depth or isinstance(v, ModuleType | type | FunctionType):
        return id(v)
    match v:
        case bool() | int() | float() | str() | bytes() | None:
            return type(v), v
        case bytearray():
            return bytes(v)
        case list() | tuple() | deque():
            return [id(v), *(_held(x, depth - 1) for x in v)]
        case dict():
            return [id(v), *((id(k), _held(x, depth - 1)) for k, x in v.items())]
        case set() | frozenset():
            return [id(v), *sorted(id(x) for x in v)]
        case np.ndarray():
            return id(v), v.shape, str(v.dtype), v.tobytes() if v.dtype.kind != "O" else None
    own = getattr(v, "__dict__", None)
    return [id(v), _held(own, depth - 1)] if isinstance(own, dict) else id(v)


# ---------------------------------------------------------------------- builtins
class Kind:
    """`float`, `int` or `bool` as the reference sees it: converts symbolic values, and works in isinstance."""

    def __init__(self, python_type: type, symbolic: Callable[[Array], Any]) -> None:
        self.python_type, self._symbolic = python_type, symbolic

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The conversion."""
        if len(args) == 1 and isinstance(args[0], Array):
            return self._symbolic(args[0])
        return self.python_type(*args, **kwargs)

    def __instancecheck__(self, value: Any) -> bool:
        if isinstance(value, Array):
            kinds = {float: "f", int: "iub", bool: "b"}
            return _settled(value) and value.weak and value.dtype.kind in kinds[self.python_type]
        return isinstance(value, self.python_type)


class NumPyKind:
    """`np.ndarray`, `np.generic` and its kin as the reference sees them, for isinstance."""

    def __init__(self, numpy_type: type) -> None:
        self._type = numpy_type

    def __instancecheck__(self, value: Any) -> bool:
        if isinstance(value, Array):
            return _settled(value) and not value.weak and self._type is np.ndarray
        return isinstance(value, self._type)


def _settled(value: Array) -> bool:
    """True; `Unsupported` for an array without axes, which NumPy gives now as an array, now as a scalar."""
    if not value.dims and not value.weak:
        raise Unsupported("isinstance", "whether NumPy gives a scalar or an array without axes is not known here")
    return True


def _no_stand_in(what: str, value: Any) -> None:
    if isinstance(value, StandIn):
        raise Unsupported(what, "of a value whose length is a symbol")


def is_instance(value: Any, kinds: Any) -> bool:
    """isinstance, for the types whose answer is the same for the values that a symbolic one stands for."""
    _no_stand_in("isinstance", value)
    if isinstance(value, Array):
        for k in kinds if isinstance(kinds, tuple) else (kinds,):
            if not isinstance(k, Kind | NumPyKind):
                raise Unsupported("isinstance", f"a symbolic value is tested against {k}",
                                  hint="test against int, float, bool or np.ndarray")
    return isinstance(value, kinds)


def _like(value: Array) -> Any:
    """A value of the kind that a symbolic one stands for."""
    if value.weak:
        return _NO_ARRAY[value.dtype.kind]
    _settled(value)
    return np.zeros((1,) * len(value.dims), value.dtype)


def has_attribute(value: Any, name: str) -> bool:
    """hasattr, by the kind of value that a symbolic one stands for."""
    _no_stand_in("hasattr", value)
    return hasattr(_like(value) if isinstance(value, Array) else value, _plain_name(name))


def get_attribute(value: Any, name: str, *default: Any) -> Any:
    """getattr, by the kind of value that a symbolic one stands for."""
    _no_stand_in("getattr", value)
    if isinstance(value, Array) and not has_attribute(value, name):
        if default:
            return default[0]
        raise AttributeError(name)
    return getattr(value, _plain_name(name), *default)


def _plain_name(name: str) -> str:
    if name.startswith("__"):
        raise Unsupported(f"attribute {name}", "special attributes see that values are symbolic")
    return name


def type_of(value: Any, *more: Any) -> Any:
    """type, for values that are not symbolic."""
    _no_stand_in("type()", value)
    if isinstance(value, Array):
        raise Unsupported("type()", "the type of a symbolic value", hint="use isinstance")
    return type(value, *more)


def refused(name: str) -> Callable[..., Any]:
    """A builtin that a reference may not use."""

    def function(*args: Any, **kwargs: Any) -> Any:
        raise Unsupported(f"{name}()", "this builtin has no meaning in references")

    return function


def importer(traced: Callable[[Any], Any]) -> Callable[..., Any]:
    """`__import__` for import statements inside the reference."""

    def load(name: str, *args: Any, **kwargs: Any) -> Any:
        root = name.partition(".")[0]
        if root in _OUTSIDE or root not in sys.modules:
            raise Unsupported(f"import {name}", "a reference computes with numpy and math only")
        return traced(__import__(name, *args, **kwargs))

    return load
