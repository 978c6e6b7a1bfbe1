"""`x[mask]` with a mask of x's shape: its length depends on data, but it can be computed with and stored back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from warpproof.core import Unsupported
from warpproof.reference.arrays import BINARY, BOOL, COMPARISONS, Array, Tracer
from warpproof.reference.elements import Index
from warpproof.reference.standin import StandIn
from warpproof.terms import Pred

_SUMS: Final = frozenset({"sum", "count_nonzero"})


class Selection(StandIn):
    """The elements of a full array where a mask holds, in row-major order."""

    __array_ufunc__ = None

    def __init__(self, t: Tracer, mask: Array, full: Array) -> None:
        self.t, self.full = t, full
        self.dims, self._where = mask.dims, mask.converted(BOOL)

    def mask(self, i: Index) -> Pred:
        """The mask as it was when the elements were selected."""
        return self.t.elements.pred(self._where(i))

    def apply(self, name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """An elementwise function of selections by one mask, and scalars; or a sum of one."""
        whole = [self._whole(a) for a in args]
        if name in _SUMS:
            if len(args) > 1 or kwargs:
                raise Unsupported(f"np.{name} of x[mask]", "only the sum of all elements has a rule")
            return self.t.call(name, self.t.call("where", self._as_array(), whole[0], 0))
        made = self.t.call(name, *whole, **kwargs)
        if not isinstance(made, Array) or len(made.dims) != len(self.dims):
            raise Unsupported(f"np.{name} of x[mask]", "its length depends on data", hint="use np.where")
        return Selection(self.t, self._as_array(), made)

    def _as_array(self) -> Array:
        return self.t.array(self.dims, BOOL, self.mask)

    def _whole(self, a: Any) -> Any:
        if isinstance(a, Selection):
            self.require_same(a)
            return a.full
        if self.t.lift(a).dims:
            raise Unsupported("arithmetic of x[mask] with an array", "its length depends on data")
        return a

    def require_same(self, other: Selection) -> None:
        """Raise unless both were selected by one mask."""
        t = self.t
        same = len(self.dims) == len(other.dims) and all(t.facts.same(p, q) for p, q in zip(self.dims, other.dims))
        i = t.fresh_index(self.dims)
        if not same or self.mask(i) is not other.mask(i):
            raise Unsupported("x[mask]", "it is combined with elements selected by another mask")

    def sum(self) -> Any:
        """The sum of the selected elements."""
        return self.apply("sum", [self], {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise Unsupported(f"x[mask].{name}", "the number of selected elements depends on data",
                          hint="use np.where to choose by element")


def _method(name: str, swap: bool, selection: Selection, other: Any) -> Any:
    return selection.apply(name, [other, selection] if swap else [selection, other], {})


def _operator(name: str, swap: bool = False) -> Callable[[Selection, Any], Any]:
    return lambda self, other: _method(name, swap, self, other)


def _unary(name: str, selection: Selection) -> Any:
    return selection.apply(name, [selection], {})


def _prefix(name: str) -> Callable[[Selection], Any]:
    return lambda self: _unary(name, self)


for _dunder, _function in BINARY.items():
    setattr(Selection, f"__{_dunder}__", _operator(_function))
    setattr(Selection, f"__r{_dunder}__", _operator(_function, swap=True))
for _dunder, _function in COMPARISONS.items():
    setattr(Selection, f"__{_dunder}__", _operator(_function))
for _dunder, _function in {"neg": "negative", "abs": "absolute"}.items():
    setattr(Selection, f"__{_dunder}__", _prefix(_function))
