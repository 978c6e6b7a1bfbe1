"""`if` on data: both sides run, what they assign is merged by a choice, and what they store is guarded.

A test that the preconditions and the surrounding branches decide runs one side, as in Python. Values of the two sides
must agree in type and shape; a variable that only one side assigns must not be used afterwards.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from warpproof.core import Unsupported
from warpproof.reference.arrays import BOOL, FLOAT, Array, Tracer
from warpproof.reference.containers import unchanged
from warpproof.reference.elements import Index
from warpproof.reference.standin import StandIn
from warpproof.terms import Pred

_MISSING: Final = object()
_COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne,
}


class Unusable(StandIn):
    """The value of a variable that has none after a loop or a branch; any use is an error."""

    def __init__(self, name: str, where: str, why: str) -> None:
        self.name, self.where, self.why = name, where, why

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise Unsupported(f"variable {self.name!r} after {self.where}", self.why)

    __bool__ = __iter__ = __getitem__ = __setitem__ = __call__ = __len__ = __index__ = __float__ = __int__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __rmatmul__ = __pow__ = __mod__ = __floordiv__ = _refuse

    def __getattr__(self, name: str) -> Any:
        self._refuse()


def undecided(t: Tracer, value: Any) -> Pred | None:
    """The condition of a test on symbols that nothing decides, None for one with a known outcome."""
    if not isinstance(value, Array):
        return None
    p = t.elements.pred(value.element())
    return None if p.op in ("true", "false") or t.facts.decide(p) is not None else p


class Branch:
    """One `if` statement that leaves neither a loop nor the function."""

    def __init__(self, t: Tracer, test: Any, entry: Mapping[str, Any], outer: Mapping[str, Any],
                 names: Sequence[str]) -> None:
        self.t, self.names = t, names
        self.pred = undecided(t, test)
        self.taken = bool(test) if self.pred is None else None
        self.entry: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self._start = dict(entry) if self.pred is not None else {}
        self._outer = outer
        self._after: dict[str, Any] = {}

    def __iter__(self) -> Iterator[bool]:
        if self.pred is None:
            yield self.taken is True
            return
        sides: list[dict[str, Any]] = []
        for side in (True, False):
            self.entry = {n: self._start.get(n, _MISSING) for n in self.names}
            with self.t.path_open() as path, unchanged((self._start, self._outer), "an if on data"):
                path(self.pred if side else self.t.arena.negate(self.pred))
                yield side
            sides.append(self._after)
        yes, no = sides
        self.entry = {}
        self.results = {n: merged(self.t, n, self.pred, yes.get(n, _MISSING), no.get(n, _MISSING))
                        for n in self.names}

    def restore(self, name: str) -> Any:
        """The value a variable had before the statement."""
        value = self.entry[name]
        return Unusable(name, "an if on data", "it had no value before") if value is _MISSING else value

    def leave(self, after: Mapping[str, Any]) -> None:
        """Note the values at the end of a side."""
        if self.pred is not None:
            self._after = {n: after[n] for n in self.names if n in after}


def merged(t: Tracer, name: str, pred: Pred, a: Any, b: Any) -> Any:
    """`pred ? a : b` for the values that two sides give a variable."""
    if a is b:
        return a
    if isinstance(a, Unusable) or isinstance(b, Unusable) or a is _MISSING or b is _MISSING:
        return Unusable(name, "an if on data", "only one side gives it a value")
    if isinstance(a, tuple | list) and type(a) is type(b) and len(a) == len(b):
        return type(a)(merged(t, name, pred, x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
        return {k: merged(t, str(k), pred, a[k], b[k]) for k in a}
    if not (_is_number(a) and _is_number(b)):
        same = type(a) is type(b) and isinstance(a, str | bytes | bool | None) and a == b
        return a if same else Unusable(name, "an if on data", "its two values cannot be merged")
    x, y = t.lift(a), t.lift(b)
    dtype, weak, mixed = _common_type(name, x, y)
    if len(x.dims) != len(y.dims) or not all(t.facts.same(p, q) for p, q in zip(x.dims, y.dims)):
        raise Unsupported(f"variable {name!r} after an if on data", "its two values differ in shape",
                          hint="give both sides the same shape")
    for z in (x, y):
        _unshared(t, name, z)
    els, left, right = t.elements, x.reader(), y.reader()

    def value(i: Index) -> Any:
        p, q = left(i), right(i)
        return els.choose(pred, els.real(p), els.real(q)) if dtype.kind == "f" else els.choose(pred, p, q)

    out = t.array(x.dims, dtype, value) if x.dims else t.scalar(value(()), dtype, weak)
    out.mixed = mixed
    if x.dims:
        out.readonly = f"{name!r}, which an if on data chose,"
    return out


def _unshared(t: Tracer, name: str, x: Array) -> None:
    """A chosen array is a copy here and the array itself in NumPy: later updates must not tell the two apart."""
    root = x.root()
    if x.dims and not root.readonly and root.depth <= len(t.path):
        raise Unsupported(f"variable {name!r} after an if on data", "one of its values is an array from before the if",
                          hint="choose with np.where, or copy the array in that side")


def _common_type(name: str, x: Array, y: Array) -> tuple[Any, bool, bool]:
    """(type, weak, mixed) of a merged value; mixed: a Python integer on one side, a float on the other."""
    if x.dtype == y.dtype and (x.weak == y.weak or x.dtype == FLOAT):
        return x.dtype, x.weak and y.weak, x.mixed or y.mixed
    for a, b in ((x, y), (y, x)):
        if a.weak and a.dtype.kind in "iu" and b.dtype == FLOAT:
            return FLOAT, b.weak, True
    raise Unsupported(f"variable {name!r} after an if on data",
                      f"its two values are of types {_type(x)} and {_type(y)}",
                      hint="give both sides values of one type")


def _type(x: Array) -> str:
    return {"i": "int", "f": "float", "b": "bool"}[x.dtype.kind] if x.weak else str(x.dtype)


def _is_number(v: Any) -> bool:
    import numpy as np

    return isinstance(v, Array | int | float | bool | np.generic)


# ---------------------------------------------------------------------- expressions
def conditional(t: Tracer, env: Sequence[Mapping[str, Any]], test: Any, yes: Callable[[], Any],
                no: Callable[[], Any]) -> Any:
    """`yes if test else no`."""
    pred = undecided(t, test)
    if pred is None:
        return yes() if test else no()
    what = "a conditional expression on data"
    with t.path_open() as path, unchanged(env, what):
        path(pred)
        a = yes()
    with t.path_open() as path, unchanged(env, what):
        path(t.arena.negate(pred))
        b = no()
    return merged(t, "of a conditional expression", pred, a, b)


def shortcut(t: Tracer, env: Sequence[Mapping[str, Any]], op: str, parts: Sequence[Callable[[], Any]]) -> Any:
    """`a and b and …` or `a or b or …`; on data a truth value."""
    found: list[Pred] = []
    value: Any = None
    with t.path_open() as path, contextlib.ExitStack() as stack:
        for part in parts:
            value = part()
            if part is parts[-1] and not found:
                return value
            pred = undecided(t, value)
            if pred is None and not found:
                if bool(value) != (op == "and"):
                    return value
                continue
            pred = t.arena.truth(bool(value)) if pred is None else pred
            _boolean(t, value, op)
            if not found:
                stack.enter_context(unchanged(env, f"`{op}` on data"))
            found.append(pred)
            path(pred if op == "and" else t.arena.negate(pred))
            if pred.op == ("false" if op == "and" else "true"):
                break
    return t.scalar(t.arena.conj(found) if op == "and" else t.arena.disj(found), BOOL)


def _boolean(t: Tracer, value: Any, op: str) -> None:
    if not (isinstance(value, bool) or t.lift(value).dtype.kind == "b"):
        raise Unsupported(f"`{op}` on data", "an operand is a number, not a truth value", hint="compare it first")


def negation(t: Tracer, value: Any) -> Any:
    """`not value`."""
    pred = undecided(t, value)
    return not value if pred is None else t.scalar(t.arena.negate(pred), BOOL)


def chain(t: Tracer, ops: Sequence[str], values: Sequence[Any]) -> Any:
    """`a < b <= c`."""
    def compared(k: int) -> Callable[[], Any]:
        return lambda: _COMPARE[ops[k]](values[k], values[k + 1])

    return shortcut(t, (), "and", [compared(k) for k in range(len(ops))])

