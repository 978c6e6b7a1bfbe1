"""Contracts in Python: a NumPy reference whose annotations describe the kernel's parameters.

    rows, n = Size("rows", min=1), Size("n", min=1)

    @contract(kernel="softmax.cu::rowsoftmax", grid=(rows,), block=256)
    def softmax(x: In[f32, rows, n], y: Out[f32, rows, n], n: n):
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return {"y": e / e.sum(axis=1, keepdims=True)}
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from warpproof.core import InputError, Span
from warpproof.reference.concrete import holds
from warpproof.reference.expressions import parse_expression
from warpproof.reference.manifest import Launch, load_launch

_SAMPLES: Final = ((5, 7, 11, 13), (3, 4, 6, 9), (70, 300, 130, 90), (1, 2, 1, 2), (64, 128, 256, 32))
Reference = Callable[..., Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class DataType:
    """An element type of the contract vocabulary; as an annotation, a scalar parameter of this type."""

    name: str

    def __repr__(self) -> str:
        return self.name


f16, bf16, f32, f64 = DataType("f16"), DataType("bf16"), DataType("f32"), DataType("f64")
i8, i16, i32, i64 = DataType("i8"), DataType("i16"), DataType("i32"), DataType("i64")
u8, u16, u32, u64 = DataType("u8"), DataType("u16"), DataType("u32"), DataType("u64")
bool_ = DataType("bool")


@dataclass(frozen=True, slots=True, eq=False)
class SizeExpression:
    """Integer arithmetic over sizes; comparisons give preconditions. `text` is its launch-file form."""

    text: str
    sizes: frozenset[Size] = frozenset()

    def _with(self, other: object, form: str) -> SizeExpression:
        if isinstance(other, bool) or not isinstance(other, SizeExpression | int):
            raise InputError("REF220", f"a size cannot be combined with {other!r}", hint="sizes combine with integers")
        text = other.text if isinstance(other, SizeExpression) else str(other)
        more = other.sizes if isinstance(other, SizeExpression) else frozenset()
        return SizeExpression(form.format(self.text, text), self.sizes | more)

    def __add__(self, other: object) -> SizeExpression:
        return self._with(other, "({0} + {1})")

    def __radd__(self, other: object) -> SizeExpression:
        return self._with(other, "({1} + {0})")

    def __sub__(self, other: object) -> SizeExpression:
        return self._with(other, "({0} - {1})")

    def __rsub__(self, other: object) -> SizeExpression:
        return self._with(other, "({1} - {0})")

    def __mul__(self, other: object) -> SizeExpression:
        return self._with(other, "({0} * {1})")

    def __rmul__(self, other: object) -> SizeExpression:
        return self._with(other, "({1} * {0})")

    def __floordiv__(self, other: object) -> SizeExpression:
        return self._with(other, "({0} // {1})")

    def __rfloordiv__(self, other: object) -> SizeExpression:
        return self._with(other, "({1} // {0})")

    def __mod__(self, other: object) -> SizeExpression:
        return self._with(other, "({0} % {1})")

    def __rmod__(self, other: object) -> SizeExpression:
        return self._with(other, "({1} % {0})")

    def __pow__(self, other: object) -> SizeExpression:
        return self._with(other, "({0} ** {1})")

    def __neg__(self) -> SizeExpression:
        return SizeExpression(f"(-{self.text})", self.sizes)

    def __lt__(self, other: object) -> SizeExpression:
        return self._with(other, "({0} < {1})")

    def __le__(self, other: object) -> SizeExpression:
        return self._with(other, "({0} <= {1})")

    def __gt__(self, other: object) -> SizeExpression:
        return self._with(other, "({0} > {1})")

    def __ge__(self, other: object) -> SizeExpression:
        return self._with(other, "({0} >= {1})")

    def __eq__(self, other: object) -> SizeExpression:  # type: ignore[override]
        return self._with(other, "({0} == {1})")

    def __ne__(self, other: object) -> SizeExpression:  # type: ignore[override]
        return self._with(other, "({0} != {1})")

    def __hash__(self) -> int:
        return hash(self.text)

    def __bool__(self) -> bool:
        raise InputError("REF220", f"{self.text} has no truth value while a contract is being written",
                         hint='give conditions in where=[…], chained ones as strings such as "1 <= n"')

    def __repr__(self) -> str:
        return self.text


class Size(SizeExpression):
    """A size symbol: any integer that satisfies its bounds and the contract's preconditions.

    `examples` are sample values for concrete runs; suitable ones are chosen when it is empty.
    """

    __slots__ = ("examples", "limits", "name")

    def __init__(
        self, name: str, min: int | None = None, max: int | None = None, multiple_of: int = 1,
        examples: Sequence[int] = (),
    ) -> None:
        if not isinstance(name, str) or not name.isidentifier():
            raise InputError("REF220", f"{name!r} is not a usable name of a size")
        super().__init__(name, frozenset())
        limits = [f"{name} >= {min}"] if min is not None else []
        limits += [f"{name} <= {max}"] if max is not None else []
        limits += [f"{name} % {multiple_of} == 0"] if multiple_of != 1 else []
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "limits", tuple(limits))
        object.__setattr__(self, "examples", tuple(examples))
        object.__setattr__(self, "sizes", frozenset({self}))

    name: str
    limits: tuple[str, ...]
    examples: tuple[int, ...]


def cdiv(a: SizeExpression | int, b: SizeExpression | int) -> Any:
    """⌈a / b⌉ for b > 0."""
    return (a + b - 1) // b


@dataclass(frozen=True, slots=True)
class Argument:
    """What an annotation says of one parameter."""

    kind: str
    dtype: str
    shape: tuple[SizeExpression | int, ...] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class _Pointer:
    """`In[f32, rows, n]`: a buffer of this element type and shape."""

    def __init__(self, kind: str, extra: Mapping[str, Any] | None = None) -> None:
        self.kind, self.extra = kind, dict(extra or {})

    def __getitem__(self, key: Any) -> Argument:
        dtype, *shape = key if isinstance(key, tuple) else (key,)
        if not isinstance(dtype, DataType):
            raise InputError("REF220", f"the first entry of a buffer annotation is its element type, not {dtype!r}",
                             hint="for example In[f32, rows, n]")
        for s in shape:
            if isinstance(s, bool) or not isinstance(s, SizeExpression | int):
                raise InputError("REF220", f"{s!r} is not an axis length",
                                 hint="use a Size, arithmetic on sizes, or an int")
        return Argument(self.kind, dtype.name, tuple(shape) or (1,), self.extra)

    def __call__(self, **extra: Any) -> _Pointer:
        """The same with fields of the launch file: init="zero", scratch=True, range=(lo, hi), strides=(…)."""
        return _Pointer(self.kind, {**self.extra, **extra})


class _ScalarKind:
    """`Scalar[f32]`: a scalar parameter."""

    def __getitem__(self, dtype: Any) -> Argument:
        if not isinstance(dtype, DataType):
            raise InputError("REF220", f"{dtype!r} is not an element type", hint="for example Scalar[f32]")
        return Argument("scalar", dtype.name)


In, Out, InOut, Scalar = _Pointer("ptr_in"), _Pointer("ptr_out"), _Pointer("ptr_inout"), _ScalarKind()


@dataclass(frozen=True, slots=True)
class Contract:
    """A kernel, its launch and its reference. `kernel_path` is absolute; `kernel_name` None means the only kernel."""

    name: str
    kernel_path: Path
    kernel_name: str | None
    launch: Launch
    reference: Reference = field(compare=False)

    def __call__(self, *args: Any, **kwargs: Any) -> Mapping[str, Any]:
        """The reference under real NumPy."""
        return self.reference(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Call:
    """One of several launches: see `call`."""

    kernel: str
    args: tuple[Any, ...]
    grid: Any
    block: Any
    dynamic_shared: Any

    def data(self) -> dict[str, Any]:
        """The launch in the launch file's form."""
        args = [a if isinstance(a, str) else {"value": _text(a), "dtype": "i32"} for a in self.args]
        return {"kernel": self.kernel, "args": args, "grid": _listed(self.grid), "block": _listed(self.block),
                "dynamic_shared": _text(self.dynamic_shared)}

    def expressions(self) -> list[Any]:
        """Everything that may mention sizes."""
        return [*self.args, *_many(self.grid), *_many(self.block), self.dynamic_shared]


def call(kernel: str, *args: Any, grid: Any, block: Any, dynamic_shared: Any = 0) -> Call:
    """One launch of a contract with several: the kernel's name and what is passed to it, in kernel order.

    An argument is the name of a parameter of the contract, or an i32 as an integer or size expression.
    """
    return Call(kernel, args, grid, block, dynamic_shared)


def contract(
    kernel: str, grid: Any = None, block: Any = None, dynamic_shared: Any = 0, sm: str = "sm_80",
    where: Sequence[Any] = (), launch: Mapping[str, Any] | None = None, numerics: Mapping[str, Any] | None = None,
    launches: Sequence[Call] = (), check_sizes: Sequence[Mapping[Any, int]] = (),
) -> Callable[[Reference], Contract]:
    """Make a contract of the decorated NumPy reference, whose parameters are the kernel's, in kernel order.

    `kernel` is `file` or `file::name`, relative to the contract's file. `grid` and `block` are one to three integers or
    size expressions; `where` lists further preconditions, as size comparisons or as strings. With several launches
    `launches` lists them in order instead; the parameters are then all buffers and scalars. `check_sizes` are sizes,
    by `Size` or by name, to prove the kernel for where no proof for all sizes is found. InputError REF22x.
    """
    if bool(launches) == (grid is not None or block is not None):
        raise InputError("REF220", "a contract has a grid and a block, or launches with a grid and a block each")
    if launches and "::" in kernel:
        raise InputError("REF220", "a contract with launches names its kernels there", hint='kernel="file.cu"')
    def build(f: Reference) -> Contract:
        code = getattr(f, "__code__", None)
        if code is None:
            raise InputError("REF220", "a contract decorates a function")
        span = Span(code.co_firstlineno, 1, 1, code.co_filename)
        try:
            return _build(f, kernel, Path(code.co_filename), {
                **_shape(grid, block, dynamic_shared, launches), "sm": sm,
                "preconditions": [_text(w) for w in where],
                "check_sizes": [{_text(k): v for k, v in row.items()} for row in check_sizes],
                **({"launch": dict(launch)} if launch else {}), **({"numerics": dict(numerics)} if numerics else {}),
            }, [e for e in [*_many(grid), *_many(block), dynamic_shared, *where,
                            *(e for c in launches for e in c.expressions())] if isinstance(e, SizeExpression)])
        except InputError as e:
            e.span = e.span or span
            raise
    return build


def _shape(grid: Any, block: Any, dynamic_shared: Any, launches: Sequence[Call]) -> dict[str, Any]:
    if launches:
        return {"launches": [c.data() for c in launches]}
    return {"grid": _listed(grid), "block": _listed(block), "dynamic_shared": _text(dynamic_shared)}


def _many(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _listed(value: Any) -> list[Any]:
    return [_text(v) for v in _many(value)]


def _text(value: Any) -> Any:
    return value.text if isinstance(value, SizeExpression) else value


def _build(f: Reference, kernel: str, source: Path, data: dict[str, Any], used: list[SizeExpression]) -> Contract:
    arguments = _arguments(f)
    sizes: dict[str, Size] = {}
    for e in used + [s for a in arguments.values() for s in a.shape or () if isinstance(s, SizeExpression)] + [
        s for a in arguments.values() for s in a.extra.get("sizes", ())
    ]:
        for s in sorted(e.sizes, key=lambda s: s.name):
            if sizes.setdefault(s.name, s) is not s:
                raise InputError("REF220", f"two sizes are called {s.name!r}")
    data["params"] = [_param(name, a) for name, a in arguments.items()]
    data["preconditions"] = [*(t for s in sizes.values() for t in s.limits), *data["preconditions"]]
    data["sizes"] = _samples(list(sizes.values()), data["preconditions"])
    file, _, name = kernel.partition("::")
    if "launches" not in data:
        data["kernel"] = name or f.__name__
    made = load_launch(data)
    first = name or (made.kernel if made.steps else None)
    return Contract(f.__name__, (source.parent / file).resolve(), first, made, f)


def _arguments(f: Reference) -> dict[str, Argument]:
    try:
        annotations = inspect.get_annotations(f, eval_str=True)
    except (NameError, SyntaxError, TypeError, AttributeError) as e:
        raise InputError("REF221", f"cannot read the annotations of {f.__name__}: {e}") from None
    out: dict[str, Argument] = {}
    for name in inspect.signature(f).parameters:
        match annotations.get(name):
            case Argument() as a:
                out[name] = a
            case DataType(dtype):
                out[name] = Argument("scalar", dtype)
            case Size() as s:
                if s.name != name:
                    raise InputError("REF221", f"parameter {name!r} stands for the size {s.name!r}",
                                     hint="an integer parameter has the name of its size")
                out[name] = Argument("scalar", "i32", None, {"sizes": (s,)})
            case other:
                raise InputError("REF221", f"parameter {name!r} has the annotation {other!r}",
                                 hint="use In[…], Out[…], InOut[…], Scalar[…], an element type, or a Size")
    return out


def _param(name: str, a: Argument) -> dict[str, Any]:
    out: dict[str, Any] = {"name": name, "kind": a.kind, "dtype": a.dtype}
    if a.shape is not None:
        out["shape"] = [_text(s) for s in a.shape]
    for key, value in a.extra.items():
        if key != "sizes":
            out[key] = [_text(v) for v in value] if isinstance(value, list | tuple) else value
    return out


def _samples(sizes: list[Size], preconditions: Sequence[Any]) -> dict[str, list[int]]:
    """Sample sizes that satisfy the preconditions on sizes alone; empty lists when none was found."""
    conditions = [parse_expression(p, "where") for p in preconditions]
    names = {s.name for s in sizes}
    plain = [c for c in conditions if c.names <= names]
    found: list[dict[str, int]] = []
    given = min((len(s.examples) for s in sizes), default=0)
    if given and all(len(s.examples) == given for s in sizes):
        return {s.name: list(s.examples) for s in sizes}
    for step in (1, 2, 4, 8, 16, 32, 64, 128):
        for row in _SAMPLES:
            sample = {s.name: row[k % len(row)] * step for k, s in enumerate(sizes)}
            for s in sizes:
                if s.examples:
                    sample[s.name] = s.examples[len(found) % len(s.examples)]
            if len(found) < 3 and sample not in found and all(_admits(c, sample) for c in plain):
                found.append(sample)
    return {s.name: [f[s.name] for f in found] for s in sizes}


def _admits(condition: Any, sample: Mapping[str, int]) -> bool:
    try:
        return holds(condition, sample)
    except InputError:
        return False
