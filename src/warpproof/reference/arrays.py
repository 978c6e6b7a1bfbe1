"""Symbolic arrays as the reference sees them: a shape of integer polynomials and a closure from index to element.

Arrays are versioned: an in-place update replaces the closure, operations read a snapshot, and basic slices are views
that read and write through their base, as in NumPy. Python integers that depend on a size are weak 0-d arrays.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Final, TypeVar

import numpy as np

from warpproof.core import InputError, Unsupported
from warpproof.reference.elements import Element, Elements, Index
from warpproof.reference.facts import Facts
from warpproof.reference.integrality import fitted, truncated
from warpproof.terms import Arena, Poly, Pred, Real, const

DType = np.dtype[Any]
F = TypeVar("F", bound=Callable[..., Any])
Reader = Callable[[Index], Element]
Inverse = Callable[[Index], tuple[Pred, Index]]
FLOAT: Final = np.dtype(np.float64)
BOOL: Final = np.dtype(np.bool_)
INT: Final = np.dtype(np.int64)
_ITERATION_LIMIT: Final = 4096
FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {}
"""The traced NumPy functions by name; each takes the tracer first."""


def numpy_function(*names: str) -> Callable[[F], F]:
    """Register a function under its NumPy names."""
    def register(f: F) -> F:
        for name in names:
            FUNCTIONS[name] = f
        return f
    return register


class Tracer:
    """One tracing of one reference: the arena, what is known of the sizes, and constructors of arrays."""

    def __init__(self, arena: Arena, facts: Facts) -> None:
        self.arena, self.facts = arena, facts
        self.elements = Elements(arena, facts)
        self.loop = 0  # identifies the innermost symbolic loop being traced; 0 outside
        self.path: tuple[Pred, ...] = ()  # the undecided tests whose sides are being traced

    @contextlib.contextmanager
    def path_open(self) -> Iterator[Callable[[Pred], None]]:
        """A block that runs under conditions, given one by one: they are known in it, and guard what it stores."""
        before, els = self.path, self.elements
        kept = els.finite, els.integral, els.positions
        els.finite, els.integral, els.positions = set(els.finite), dict(els.integral), dict(els.positions)
        with contextlib.ExitStack() as stack:
            def enter(p: Pred) -> None:
                self.path = (*self.path, p)
                stack.enter_context(self.facts.assuming([p]))

            try:
                yield enter
            finally:
                self.path = before
                els.finite, els.integral, els.positions = kept

    def call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """The traced NumPy function of this name, applied."""
        return FUNCTIONS[name](self, *args, **kwargs)

    def apply(self, name: str, *args: Any, **kwargs: Any) -> Array:
        """The traced NumPy function of this name, one that returns an array."""
        out = self.call(name, *args, **kwargs)
        assert isinstance(out, Array)
        return out

    def array(self, shape: Sequence[Poly], dtype: DType, reader: Reader) -> Array:
        """A fresh array; one element is computed at once, so that faults arise at the line that makes it."""
        made = Array(self, tuple(shape), dtype, _memoised(self, reader))
        if all((d.as_int() or 1) > 0 for d in made.dims):
            made.reader()(self.fresh_index(made.dims))
        return made

    def integer(self, p: Poly | int) -> Any:
        """A Python integer: an `int` when it is one, else a weak symbolic scalar."""
        k = p if isinstance(p, int) else p.as_int()
        if k is not None:
            return k
        assert isinstance(p, Poly)
        return Array(self, (), INT, lambda i: p, weak=True)

    def scalar(self, e: Element, dtype: DType, weak: bool = False) -> Array:
        """A 0-d array."""
        return Array(self, (), dtype, lambda i: e, weak=weak)

    def lift(self, value: Any) -> Array:
        """A Python or NumPy value, or a nested list of them, as an array."""
        match value:
            case Array():
                return value
            case bool() | np.bool_():
                return self.scalar(self.arena.truth(bool(value)), BOOL, isinstance(value, bool))
            case int():
                return self.scalar(const(value), INT, True)
            case np.integer():
                return self.scalar(const(int(value)), value.dtype)
            case float() | np.floating() | Fraction():
                number = value if isinstance(value, Fraction) else float(value)
                return self.scalar(self.elements.number(number), FLOAT, not isinstance(value, np.floating))
            case _ if hasattr(value, "stacked"):
                return value.stacked()  # type: ignore[no-any-return]
            case list() | tuple():
                return self.apply("stack", value) if len(value) else self.apply("zeros", (0,))
            case np.ndarray():
                return self.lift(value.tolist()) if value.ndim else self.lift(value[()])
            case _:
                raise Unsupported(f"a value of type {type(value).__name__}", "not an array or number")

    def poly(self, value: Any) -> Poly:
        """An integer given to an operation (an axis length, a bound) as a polynomial."""
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            return const(int(value))
        if isinstance(value, Array) and value.dtype.kind in "iu" and not value.dims:
            return self.elements.poly(value.reader()(()))
        raise TypeError(f"expected an integer, found {type(value).__name__}")

    def require(self, claim: Pred, what: str, hint: str = "") -> None:
        """Raise InputError REF241 unless the preconditions imply the claim."""
        if not self.facts.holds(claim):
            raise InputError("REF241", what, hint=hint or "add the precondition that excludes it")

    def fresh_index(self, shape: Sequence[Poly], name: str = "i") -> Index:
        """Fresh index symbols with the ranges of a shape, known to the facts."""
        return tuple(self.index_symbol(const(0), d, f"{name}{k}") for k, d in enumerate(shape))

    def index_symbol(self, lo: Poly, hi: Poly, name: str) -> Poly:
        """A fresh integer symbol in [lo, hi)."""
        top = self.arena.bounds(hi)[1]
        atom = self.arena.fresh("index", name, self.arena.bounds(lo)[0], None if top is None else top - 1)
        self.facts.domain(atom.id, lo, hi)
        return self.arena.variable(atom)


def _fitting(t: Tracer, p: Poly, dtype: DType) -> Poly:
    """p, which the type must hold: NumPy says nothing about a float beyond the range of the integer type."""
    if t.elements.wrap(p, dtype) != p:
        raise Unsupported("conversion of a float array to integers", f"the value may not fit into {dtype}")
    return p


def _memoised(t: Tracer, reader: Reader) -> Reader:
    """The reader with what it found kept, apart for each path: what is known on one may simplify an element."""
    memo: dict[object, Element] = {}

    def read(index: Index) -> Element:
        key = (t.path, *(p.key for p in index))
        found = memo.get(key)
        if found is None:
            found = memo[key] = reader(index)
        return found
    return read


def check_name(full: str, name: str, owner: object) -> None:
    """Raise InputError REF240 for an attribute that NumPy itself does not have, with the names that come near."""
    if not hasattr(owner, name):
        near = difflib.get_close_matches(name, [n for n in dir(owner) if not n.startswith("_")])
        raise InputError("REF240", f"the reference uses {full}, which NumPy does not have",
                         hint="did you mean " + " or ".join(near) + "?" if near else "")


class Array:
    """A symbolic array. `dims` are the axis lengths; `weak` marks a Python scalar for type promotion."""

    __array_ufunc__ = None
    __slots__ = (
        "_base", "_forward", "_inverse", "_reader", "_taken", "born", "depth", "dims", "dtype", "mixed", "readonly",
        "reads", "t", "version", "weak",
    )

    def __init__(
        self, tracer: Tracer, dims: Index, dtype: DType, reader: Reader | None, *, weak: bool = False,
        base: Array | None = None, forward: Callable[[Index], Index] | None = None, inverse: Inverse | None = None,
        readonly: str = "",
    ) -> None:
        self.t, self.dims, self.dtype, self.weak, self.readonly = tracer, dims, dtype, weak, readonly
        self._reader, self._base, self._forward, self._inverse = reader, base, forward, inverse
        self.version, self.reads, self.born = 0, 0, tracer.loop
        self._taken = base.root().version if base is not None else 0
        self.depth, self.mixed = len(tracer.path), False  # mixed: an int or a float, depending on data

    # ------------------------------------------------------------------ reading and writing
    def root(self) -> Array:
        """The array that owns the data."""
        return self if self._base is None else self._base.root()

    def reader(self) -> Reader:
        """The current contents; later updates do not change it."""
        if self._base is None:
            assert self._reader is not None
            self.reads += 1
            return self._reader
        if self._inverse is None and self.root().version != self._taken:
            raise Unsupported("reshape", "the array was updated in place after it was reshaped",
                              hint="reshape after the last update")
        inner, forward = self._base.reader(), self._forward
        assert forward is not None
        return _memoised(self.t, lambda i: inner(forward(i)))

    def view(self, dims: Sequence[Poly], forward: Callable[[Index], Index], inverse: Inverse | None) -> Array:
        """A view: index i of it is index forward(i) of this array; `inverse` gives guard and index back."""
        return Array(self.t, tuple(dims), self.dtype, None, base=self, forward=forward, inverse=inverse)

    def write(self, guard: Inverse, value: Reader) -> None:
        """Update in place: where guard(i) = (p, k) has p, element i becomes value(k)."""
        if self._base is not None:
            inverse = self._inverse
            if inverse is None:
                raise Unsupported("assignment", "writing through a reshaped array")
            outer = inverse

            def through(i: Index) -> tuple[Pred, Index]:
                p, k = outer(i)
                q, m = guard(k)
                return self.t.arena.conj((p, q)), m

            self._base.write(through, value)
            return
        if self.readonly:
            raise InputError("REF243", f"the reference updates {self.readonly} in place",
                             hint="make a copy first: x = np.array(x, np.float64)")
        old, t = self.reader(), self.t
        if self.born != t.loop:
            raise Unsupported("assignment in a loop over a symbolic range", "the array was made outside the loop",
                              hint="assign to the array by its own name in the loop body")

        inside = t.path[self.depth :]

        def updated(i: Index) -> Element:
            p, k = guard(i)
            p = t.arena.conj((p, *inside))
            if p.op == "false":
                return old(i)
            return value(k) if p.op == "true" else t.elements.choose(p, value(k), old(i))

        self._reader, self.version = _memoised(t, updated), self.version + 1

    def converted(self, dtype: DType) -> Reader:
        """The contents as elements of another type (integers wrap, reals keep their value)."""
        read, els = self.reader(), self.t.elements
        if dtype.kind == "f":
            return lambda i: els.real(read(i))
        if dtype.kind == "b":
            return lambda i: els.pred(read(i))
        if self.dtype.kind == "f":
            return lambda i: _fitting(self.t, truncated(els, els.real(read(i))), dtype)
        if self.dtype == dtype and not self.weak:
            return read

        def wrapped(i: Index) -> Element:
            e = read(i)
            return fitted(els, e, dtype) if isinstance(e, Real) else els.wrap(els.poly(e), dtype)

        return wrapped

    # ------------------------------------------------------------------ attributes of ndarray
    @property
    def shape(self) -> tuple[Any, ...]:
        """The axis lengths, as Python integers where concrete."""
        return tuple(self.t.integer(d) for d in self.dims)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.dims)

    @property
    def size(self) -> Any:
        """The number of elements."""
        out = const(1)
        for d in self.dims:
            out = out * d
        return self.t.integer(out)

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.t.call("transpose", self)

    @property
    def mT(self) -> Any:
        """The last two axes exchanged."""
        return self.t.call("swapaxes", self, -1, -2)

    @property
    def real(self) -> Array:
        """The array itself: there are no complex arrays."""
        return self

    @property
    def flat(self) -> Any:
        """The elements in row-major order."""
        return self.t.call("ravel", self)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return lambda *args, **kwargs: self.t.call(METHODS[name], self, *args, **kwargs)
        if name.startswith("__"):
            raise AttributeError(name)
        check_name(f"ndarray.{name}", name, np.ndarray)
        raise Unsupported(f"ndarray.{name}", "this method of arrays has no rule in references")

    def __len__(self) -> int:
        if not self.dims:
            raise TypeError("len() of a 0-d array")
        k = self.dims[0].as_int()
        if k is None:
            raise Unsupported("len", "the length is symbolic", hint="use x.shape[0]")
        return k

    def __iter__(self) -> Iterator[Any]:
        if not self.dims:
            raise TypeError("iteration over a 0-d array")
        k = self.dims[0].as_int()
        if k is None or k > _ITERATION_LIMIT:
            raise Unsupported("iteration over an array", "its first axis is symbolic or long")
        return iter([self[i] for i in range(k)])

    def __getitem__(self, key: Any) -> Any:
        return self.t.call("__getitem__", self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.t.call("__setitem__", self, key, value)

    # ------------------------------------------------------------------ Python conversions
    def element(self) -> Element:
        """The element of a 0-d array or of one with a single element."""
        if any(d.as_int() != 1 for d in self.dims):
            raise TypeError("only arrays with one element convert to a scalar")
        return self.reader()(tuple(const(0) for _ in self.dims))

    def __bool__(self) -> bool:
        e = self.element()
        p = self.t.elements.pred(e)
        if p.op in ("true", "false"):
            return p.op == "true"
        known = self.t.facts.decide(p)
        if known is None:
            from warpproof.reference.wording import describe

            raise InputError("REF241", f"the reference branches on {describe(self.t.arena, p)}, which the "
                             "preconditions do not decide",
                             hint="add the precondition that decides it, or use np.where for a choice by element")
        return known

    def __index__(self) -> int:
        e = self.element()
        k = e.as_int() if isinstance(e, Poly) else None
        if k is None:
            raise Unsupported("integer", "a symbolic integer is used where Python needs a concrete one")
        return k

    def __int__(self) -> int:
        return self.__index__()

    def __float__(self) -> float:
        e = self.t.elements.real(self.element())
        if e.op != "const":
            raise Unsupported("float()", "a symbolic value is used where Python needs a concrete number")
        return float(e.data)

    def __hash__(self) -> int:
        raise Unsupported("a key of a dict or set", "the value of a symbolic number is not known",
                          hint="use comparisons, which the preconditions can decide")

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise Unsupported("NumPy", "a symbolic array reached real NumPy code",
                          hint="use numpy only through `import numpy as np` in the reference's own module")

    def __repr__(self) -> str:
        raise Unsupported("text", "a symbolic value is written as text, which has no meaning in references")

    def __format__(self, how: str) -> str:
        return repr(self)


METHODS: Final[dict[str, str]] = {
    name: name for name in (
        "astype", "sum", "mean", "var", "std", "max", "min", "prod", "any", "all", "argmax", "argmin", "cumsum", "dot",
        "reshape", "transpose", "swapaxes", "squeeze", "ravel", "repeat", "take", "clip", "copy", "round", "item",
        "fill", "trace", "diagonal", "conj",
    )
} | {"flatten": "flatten", "cumprod": "cumprod"}


def _operator(name: str, swap: bool = False) -> Callable[[Array, Any], Any]:
    def apply(self: Array, other: Any) -> Any:
        if other is None or isinstance(other, str | dict):
            return NotImplemented
        return self.t.call(name, other, self) if swap else self.t.call(name, self, other)
    return apply


def _in_place(name: str) -> Callable[[Array, Any], Any]:
    def apply(self: Array, other: Any) -> Any:
        value = self.t.call(name, self, other)
        if not self.dims or self.weak:
            return value
        self.t.call("__setitem__", self, Ellipsis, value)
        return self
    return apply


BINARY: Final = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "left_shift", "rshift": "right_shift", "matmul": "matmul",
}
for _dunder, _function in BINARY.items():
    setattr(Array, f"__{_dunder}__", _operator(_function))
    setattr(Array, f"__r{_dunder}__", _operator(_function, swap=True))
    if _dunder != "matmul":
        setattr(Array, f"__i{_dunder}__", _in_place(_function))
COMPARISONS: Final = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}
for _dunder, _function in COMPARISONS.items():
    setattr(Array, f"__{_dunder}__", _operator(_function))
for _dunder, _function in {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}.items():
    setattr(Array, f"__{_dunder}__", lambda self, _name=_function: self.t.call(_name, self))
