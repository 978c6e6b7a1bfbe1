"""Launch manifests (`launch.json`): parameters, sizes, preconditions, grid and block, as neutral data.

`load_launch` accepts a path, JSON text read elsewhere, or a mapping, checks every field, and raises only `InputError`
REF2xx. The fields are described in `docs/guide.md`; unknown ones are errors unless they start with `x_` or are known to
be documentation.
"""

from __future__ import annotations

import keyword
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from warpproof.core import InputError
from warpproof.reference.concrete import holds, index_extents, integer
from warpproof.reference.expressions import Expression, parse_expression
from warpproof.reference.fields import Fields, read_json

if TYPE_CHECKING:
    from warpproof.reference.symbolic import SymbolicLaunch
    from warpproof.terms import Arena

KINDS: Final = ("ptr_in", "ptr_out", "ptr_inout", "scalar", "ptr_null")
DTYPES: Final = ("f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool")
IGNORED: Final = frozenset({
    "name", "family", "group", "task", "twin_of", "math", "expected", "parametric", "reference_formula", "bug",
    "validated", "witness", "check_inputs", "tolerance", "advice", "frontend", "notes",
})
_FIELDS: Final = frozenset({
    "kernel", "sm", "params", "sizes", "preconditions", "grid", "block", "dynamic_shared", "launch", "numerics",
    "check_sizes", "launches",
})
_STEP_FIELDS: Final = frozenset({"kernel", "args", "grid", "block", "dynamic_shared"})
_PARAM_FIELDS: Final = frozenset({"name", "kind", "dtype", "shape", "range", "init", "scratch", "strides"})
_LAUNCH_FIELDS: Final = frozenset({
    "constexprs", "num_warps", "num_stages", "num_ctas", "divisible_by_16", "options", "cooperative",
})
_RESERVED: Final = frozenset(keyword.kwlist)


@dataclass(frozen=True, slots=True)
class Param:
    """One kernel parameter, in kernel order. `shape` is None for scalars and null pointers; `range` is half-open.

    `value` is what is passed for an integer scalar that one launch of several computes from the sizes.
    """

    name: str
    kind: str
    dtype: str
    shape: tuple[Expression, ...] | None = None
    range: tuple[Expression, Expression] | None = None
    init_zero: bool = False
    scratch: bool = False
    strides: tuple[Expression, ...] | None = None
    value: Expression | None = None

    @property
    def is_buffer(self) -> bool:
        """True for a pointer to data."""
        return self.shape is not None

    @property
    def is_integer(self) -> bool:
        """True for integer and boolean element types."""
        return self.dtype not in ("f16", "bf16", "f32", "f64")

    @property
    def compared(self) -> bool:
        """True for an output that must equal the reference."""
        return self.kind in ("ptr_out", "ptr_inout") and not self.scratch


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """Front-end options: compile-time constants and specialisation attributes (which are preconditions too).

    A `cooperative` launch fails unless all its CTAs are resident at once.
    """

    constexprs: Mapping[str, Any] = field(default_factory=dict)
    num_warps: int | None = None
    num_stages: int | None = None
    num_ctas: int | None = None
    divisible_by_16: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    cooperative: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One launch of several that follow each other: its kernel, what is passed to it in kernel order, its shape."""

    kernel: str
    arguments: tuple[Param, ...]
    grid: tuple[Expression, Expression, Expression]
    block: tuple[Expression, Expression, Expression]
    dynamic_shared: Expression


@dataclass(frozen=True, slots=True)
class ConcreteShape:
    """A launch at one choice of sizes. `strides` and `shapes` are in elements, one entry per buffer."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_shared: int
    shapes: Mapping[str, tuple[int, ...]]
    strides: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Launch:
    """A checked launch manifest. `sizes` gives sample values of the size symbols, entry i for example i.

    `kernel` is empty when the file is to hold one kernel only. With `steps` there are several launches, in order: then
    `params` declares all buffers and scalars, and `kernel`, `grid`, `block`, `dynamic_shared` are those of the first.
    `check_sizes` are values of some or all sizes for which the kernel is to be proved if no proof for all sizes is
    found; `fixed` are those that this launch is for.
    """

    kernel: str
    params: tuple[Param, ...]
    sizes: Mapping[str, tuple[int, ...]]
    preconditions: tuple[Expression, ...]
    grid: tuple[Expression, Expression, Expression]
    block: tuple[Expression, Expression, Expression]
    dynamic_shared: Expression
    sm: str = "sm_80"
    options: LaunchOptions = field(default_factory=LaunchOptions)
    numerics: Mapping[str, Any] | None = None
    check_sizes: tuple[Mapping[str, int], ...] = ()
    fixed: Mapping[str, int] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    passed: tuple[Param, ...] | None = None

    def at(self, values: Mapping[str, int]) -> Launch:
        """The launch with some sizes fixed; InputError REF210 if no admitted size has these values."""
        rows = [self.example(i) | dict(values) for i in range(self.examples)]
        rows = [r for i, r in enumerate(rows) if r not in rows[:i]] or [dict(values)] * (set(self.sizes) <= set(values))
        fixed = tuple(parse_expression(f"{name} == {v}", "check_sizes") for name, v in values.items())
        sizes = {name: tuple(r[name] for r in rows) for name in self.sizes}
        return replace(self, preconditions=(*self.preconditions, *fixed), sizes=MappingProxyType(sizes), check_sizes=(),
                       fixed=MappingProxyType(dict(values)))

    @property
    def arguments(self) -> tuple[Param, ...]:
        """What is passed to the kernel, in its order."""
        return self.params if self.passed is None else self.passed

    def stages(self) -> tuple[Launch, ...]:
        """The launches in order, each with all parameters declared and its own passed; the launch itself if single."""
        return tuple(
            replace(self, kernel=s.kernel, grid=s.grid, block=s.block, dynamic_shared=s.dynamic_shared, steps=(),
                    passed=s.arguments)
            for s in self.steps
        ) or (self,)

    def param(self, name: str) -> Param:
        """The parameter of this name; KeyError when there is none."""
        for p in self.params:
            if p.name == name:
                return p
        raise KeyError(name)

    @property
    def buffers(self) -> tuple[Param, ...]:
        """The pointer parameters with data, in kernel order."""
        return tuple(p for p in self.params if p.is_buffer)

    @property
    def outputs(self) -> tuple[Param, ...]:
        """The buffers that are compared with the reference."""
        return tuple(p for p in self.params if p.compared)

    @property
    def integers(self) -> tuple[str, ...]:
        """Every integer unknown: the sizes, then the integer scalars that are not sizes."""
        extra = [p.name for p in self.params if p.kind == "scalar" and p.is_integer and p.name not in self.sizes]
        return (*self.sizes, *extra)

    @property
    def examples(self) -> int:
        """How many sample sizes there are."""
        return min((len(v) for v in self.sizes.values()), default=0)

    def example(self, i: int) -> dict[str, int]:
        """The i-th sample of every size."""
        return {name: values[i] for name, values in self.sizes.items()}

    def concrete(self, sizes: Mapping[str, int], scalars: Mapping[str, Any] | None = None) -> ConcreteShape:
        """Grid, block, dynamic shared memory and buffer shapes at these sizes; InputError REF206/REF211."""
        env = self._environment(sizes, scalars or {})
        shapes: dict[str, tuple[int, ...]] = {}
        strides: dict[str, tuple[int, ...]] = {}
        for p in self.buffers:
            assert p.shape is not None
            shapes[p.name] = tuple(integer(e, env) for e in p.shape)
            if min(shapes[p.name], default=1) < 0:
                raise InputError("REF211", f"{p.name!r} has the shape {shapes[p.name]} at these sizes",
                                 hint="no array has a negative dimension; add a precondition")
            strides[p.name] = (
                tuple(integer(e, env) for e in p.strides) if p.strides is not None else row_major(shapes[p.name])
            )
        gx, gy, gz = (integer(e, env) for e in self.grid)
        bx, by, bz = (integer(e, env) for e in self.block)
        shared = integer(self.dynamic_shared, env)
        if shared < 0:
            raise InputError("REF211", f"the dynamic shared memory is {shared} bytes at these sizes")
        return ConcreteShape((gx, gy, gz), (bx, by, bz), shared, MappingProxyType(shapes), MappingProxyType(strides))

    def concrete_range(self, p: Param, sizes: Mapping[str, int]) -> tuple[int, int]:
        """The half-open range of a parameter's integer data at these sizes; its type's range when it states none."""
        if p.range is None:
            low, high = dtype_range(p.dtype)
            return low, high + 1
        env = self._environment(sizes, {})
        return integer(p.range[0], env), integer(p.range[1], env)

    def symbolic(self, arena: Arena) -> SymbolicLaunch:
        """The launch over size symbols of `arena`, for all admitted sizes; see `SymbolicLaunch`."""
        from warpproof.reference.symbolic import symbolic_launch

        return symbolic_launch(self, arena)

    def check_preconditions(self, sizes: Mapping[str, int], inputs: Mapping[str, Any] | None = None) -> bool:
        """True when sizes, scalars and elements satisfy every precondition, range and zero initialisation given.

        `inputs` holds scalars and arrays by parameter name; conditions on inputs that are absent are not judged.
        """
        inputs = inputs or {}
        env: dict[str, Any] = self._environment(sizes, {k: v for k, v in inputs.items() if np.ndim(v) == 0})
        env.update({k: np.asarray(v) for k, v in inputs.items() if np.ndim(v) > 0})
        buffers = {p.name for p in self.buffers}
        for p in self.preconditions:
            known = p.names - set(env)
            absent = {n for n in known if n in buffers or any(q.name == n for q in self.params)}
            if not absent and not holds(p, env):
                return False
        shape = self.concrete(sizes, {k: v for k, v in env.items() if not isinstance(v, np.ndarray)})
        return all(self._admits(p, env, shape) for p in self.params if p.name in env)

    def _admits(self, p: Param, env: Mapping[str, Any], shape: ConcreteShape) -> bool:
        value = np.asarray(env[p.name])
        if p.is_buffer and value.shape != shape.shapes[p.name]:
            return False
        if p.init_zero and np.any(value != 0):
            return False
        if p.is_integer and value.size:
            lo, hi = dtype_range(p.dtype)
            if int(value.min()) < lo or int(value.max()) > hi:
                return False
        if p.range is not None and value.size:
            lo, hi = (integer(e, env) for e in p.range)
            return lo <= int(value.min()) and int(value.max()) < hi
        return True

    def _environment(self, sizes: Mapping[str, int], scalars: Mapping[str, Any]) -> dict[str, Any]:
        env: dict[str, Any] = dict(scalars)
        for name in self.sizes:
            if name not in sizes:
                raise InputError("REF206", f"no value for the size {name!r}", hint="sizes must give every size symbol")
        for k, v in sizes.items():
            if isinstance(v, bool) or not isinstance(v, int | np.integer):
                raise InputError("REF210", f"the size {k!r} must be an integer, not {v!r}")
            env[k] = int(v)
        return env


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Element strides of a contiguous array."""
    out, step = [], 1
    for dim in reversed(shape):
        out.append(step)
        step *= dim
    return tuple(reversed(out))


def dtype_range(dtype: str) -> tuple[int, int]:
    """The least and greatest value of an integer element type (`bool` is 0 or 1)."""
    if dtype == "bool":
        return 0, 1
    width = int(dtype[1:])
    return (0, (1 << width) - 1) if dtype[0] == "u" else (-(1 << (width - 1)), (1 << (width - 1)) - 1)


def load_launch(source: Path | str | Mapping[str, Any]) -> Launch:
    """The checked launch of a launch.json file or of its contents; InputError REF20x says what is wrong and where."""
    if isinstance(source, Mapping):
        where, data = "launch", dict(source)
    else:
        where = Path(source).name
        data = read_json(Path(source))
    top = Fields(where, data)
    top.only(_FIELDS | IGNORED)
    params = tuple(_param(f) for f in top.records("params"))
    sizes = _sizes(top)
    options = _options(top, params)
    steps = _steps(top, params) if "launches" in top.data else ()
    first = steps[0] if steps else _step(top, params)
    launch = Launch(
        kernel=first.kernel, params=params, sizes=MappingProxyType(sizes),
        preconditions=_preconditions(top, options, params), grid=first.grid, block=first.block,
        dynamic_shared=first.dynamic_shared, sm=top.text("sm", "sm_80"), options=options,
        numerics=top.mapping("numerics"), steps=steps,
    )
    _check_names(launch, where)
    return with_check_sizes(launch, top.sequence("check_sizes"), where)


def with_check_sizes(launch: Launch, rows: Sequence[Any], where: str) -> Launch:
    """The launch with these check sizes added; InputError REF206/REF210 for ones that it cannot have."""
    out = list(launch.check_sizes)
    for row in rows:
        if not isinstance(row, Mapping) or not row:
            raise InputError("REF201", f"{where}: check_sizes must be a list of objects such as {{\"n\": 128}}")
        for name, v in row.items():
            if name not in launch.integers:
                raise InputError("REF206", f"{where}: check_sizes names {str(name)[:80]!r}, which is no size")
            if isinstance(v, bool) or not isinstance(v, int) or v.bit_length() > 64:
                raise InputError("REF210", f"{where}: check_sizes gives {name!r} the value {str(v)[:40]!r}, not an int")
        if set(launch.sizes) <= set(row) and not launch.check_preconditions(row):
            text = ", ".join(f"{n} = {v}" for n, v in row.items())
            raise InputError("REF210", f"{where}: check_sizes: {text} does not meet the preconditions")
        if dict(row) not in out:
            out.append(MappingProxyType(dict(row)))
    return replace(launch, check_sizes=tuple(out))


def _steps(top: Fields, params: tuple[Param, ...]) -> tuple[Step, ...]:
    """The launches of a list; each names its kernel and what is passed to it."""
    for name in ("kernel", "grid", "block", "dynamic_shared"):
        if name in top.data:
            raise top.fault("REF201", f"{name} belongs to each of the launches", "take it away at the top")
    found = top.records("launches")
    if not found:
        raise top.fault("REF203", "launches is empty", "give one launch, or kernel, grid and block")
    for f in found:
        f.only(_STEP_FIELDS)
        f.text("kernel")
    return tuple(_step(f, _passed(f, params)) for f in found)


def _step(f: Fields, passed: tuple[Param, ...]) -> Step:
    return Step(f.text("kernel") if "kernel" in f.data else "", passed, _triple(f, "grid"), _triple(f, "block"),
                parse_expression(f.data.get("dynamic_shared", "0"), f"{f.where}: dynamic_shared"))


def _passed(f: Fields, params: tuple[Param, ...]) -> tuple[Param, ...]:
    """What is passed: parameters by name, or `{"value": "(n + 255) // 256", "dtype": "i32"}`."""
    given = f.data.get("args")
    if not isinstance(given, list | tuple):
        raise f.fault("REF203", "args is missing", "list the names of the parameters that the kernel takes")
    named, out = {p.name: p for p in params}, []
    for k, a in enumerate(given):
        if isinstance(a, Mapping):
            inner = Fields(f"{f.where}: args[{k}]", dict(a))
            inner.only(frozenset({"value", "dtype"}))
            value = parse_expression(inner.data.get("value", ""), inner.where)
            dtype = inner.choice("dtype", DTYPES[4:12]) if "dtype" in a else "i32"
            out.append(Param(f"args[{k}]", "scalar", dtype, value=value))
        elif isinstance(a, str) and a in named:
            out.append(named[a])
        else:
            raise f.fault("REF206", f"args names {str(a)[:40]!r}, which is no parameter",
                          'declare it under params, or pass {"value": "an expression", "dtype": "i32"}')
    return tuple(out)


def _param(f: Fields) -> Param:
    f.only(_PARAM_FIELDS)
    name, kind, dtype = f.identifier("name", _RESERVED), f.choice("kind", KINDS), f.choice("dtype", DTYPES)
    pointer = kind in ("ptr_in", "ptr_out", "ptr_inout")
    if pointer != ("shape" in f.data):
        raise f.fault("REF203" if pointer else "REF202",
                      f"{name!r} of kind {kind} {'needs' if pointer else 'cannot have'} a shape",
                      'a scalar has no shape; a single element behind a pointer is ["1"]')
    shape = f.expressions("shape") if pointer else None
    strides = f.expressions("strides") if "strides" in f.data else None
    if strides is not None and (shape is None or len(strides) != len(shape)):
        raise f.fault("REF209", f"{name!r}: strides must have one entry per axis, in elements")
    limits = f.expressions("range") if "range" in f.data else None
    if limits is not None and (len(limits) != 2 or dtype not in DTYPES[4:]):
        raise f.fault("REF209", f"{name!r}: range is [first, one past the last] of integer data")
    init = f.choice("init", ("zero",)) if "init" in f.data else ""
    scratch = f.flag("scratch")
    if (init or scratch) and kind not in ("ptr_inout", "ptr_out"):
        raise f.fault("REF209", f"{name!r} of kind {kind} cannot be {'zero on entry' if init else 'scratch'}",
                      "init and scratch belong to ptr_inout and ptr_out")
    if init and kind == "ptr_out":
        raise f.fault("REF209", f"{name!r} is zero on entry, so it is ptr_inout")
    return Param(name, kind, dtype, shape, (limits[0], limits[1]) if limits else None, bool(init), scratch, strides)


def _sizes(top: Fields) -> dict[str, tuple[int, ...]]:
    out: dict[str, tuple[int, ...]] = {}
    for name, values in (top.mapping("sizes") or {}).items():
        if not name.isidentifier() or name in _RESERVED:
            raise top.fault("REF201", f"sizes: {name[:80]!r} is not a usable name")
        listed = values if isinstance(values, list | tuple) else [values]
        for v in listed:
            if isinstance(v, bool) or not isinstance(v, int) or v.bit_length() > 64:
                raise top.fault("REF210", f"sizes: {name!r} has the sample {str(v)[:40]!r}, not a 64-bit integer")
        out[name] = tuple(listed)
    if len({len(v) for v in out.values()}) > 1:
        raise top.fault("REF210", "sizes: every list must have the same length",
                        "example i takes entry i of each list")
    return out


def _triple(top: Fields, name: str) -> tuple[Expression, Expression, Expression]:
    if name not in top.data:
        raise top.fault("REF203", f"{name} is missing", f'for example "{name}": ["n", "1", "1"]')
    value = top.data[name]
    parts = list(value) if isinstance(value, list | tuple) else [value]
    if not 1 <= len(parts) <= 3:
        raise top.fault("REF201", f"{name} must have one to three dimensions")
    x, y, z = [parse_expression(p, f"{top.where}: {name}[{i}]") for i, p in enumerate((parts + [1, 1])[:3])]
    return x, y, z


def _options(top: Fields, params: tuple[Param, ...]) -> LaunchOptions:
    raw = top.mapping("launch")
    if raw is None:
        return LaunchOptions()
    f = Fields(f"{top.where}: launch", raw)
    f.only(_LAUNCH_FIELDS)
    named = f.strings("divisible_by_16")
    for name in named:
        if not any(p.name == name for p in params):
            raise f.fault("REF206", f"divisible_by_16 names {name!r}, which is no parameter")
    cooperative = raw.get("cooperative", False)
    if not isinstance(cooperative, bool):
        raise f.fault("REF201", "cooperative must be true or false")
    counts = {k: f.integer(k) for k in ("num_warps", "num_stages", "num_ctas")}
    return LaunchOptions(MappingProxyType(f.mapping("constexprs") or {}), divisible_by_16=named,
                         options=f.strings("options"), cooperative=cooperative, **counts)


def _preconditions(top: Fields, options: LaunchOptions, params: tuple[Param, ...]) -> tuple[Expression, ...]:
    out = list(top.expressions("preconditions")) if "preconditions" in top.data else []
    scalars = {p.name for p in params if p.kind == "scalar" and p.is_integer}
    out += [parse_expression(f"{n} % 16 == 0", f"{top.where}: launch.divisible_by_16")
            for n in options.divisible_by_16 if n in scalars]
    return tuple(out)


def _check_names(launch: Launch, where: str) -> None:
    """Raise unless every name used is declared, once, and every subscript fits its buffer."""
    seen: set[str] = set()
    for p in launch.params:
        if p.name in seen:
            raise InputError("REF204", f"{where}: two parameters are called {p.name!r}")
        seen.add(p.name)
        if p.name in launch.sizes and (p.kind != "scalar" or not p.is_integer):
            raise InputError("REF209", f"{where}: {p.name!r} is a size and a parameter that is no integer scalar")
    if not launch.params:
        raise InputError("REF203", f"{where}: the kernel has no parameters")
    if not launch.outputs:
        raise InputError("REF203", f"{where}: nothing is compared: no ptr_out, and every ptr_inout is scratch")
    integers = set(launch.integers)
    plain = [*launch.grid, *launch.block, launch.dynamic_shared]
    for step in launch.steps:
        plain += [*step.grid, *step.block, step.dynamic_shared, *(p.value for p in step.arguments if p.value)]
    for p in launch.params:
        plain += [*(p.shape or ()), *(p.strides or ()), *(p.range or ())]
    for e in plain:
        for n in sorted(e.names - integers):
            raise e.fault("REF206", f"unknown size {n!r}", "list its sample values under sizes")
    shapes: dict[str, tuple[Expression, ...]] = {p.name: p.shape for p in launch.buffers if p.shape is not None}
    scalars = {p.name: None for p in launch.params if p.kind == "scalar"}
    for e in launch.preconditions:
        index_extents(e, shapes, {**dict.fromkeys(integers), **scalars})
        bare = e.names & set(shapes) - e.buffers
        if bare:
            raise e.fault("REF206", f"the buffer {min(bare)!r} is used without a subscript",
                          "write for example x[i] >= 0; free indices mean all elements")
