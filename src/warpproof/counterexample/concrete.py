"""One concrete call of a kernel: inputs that meet the contract, the bit-exact run, and the comparison with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpproof.core import InputError, element_width
from warpproof.machine import Buffer, ConcreteLaunch, Content, Outcome, Pointer, emulate
from warpproof.ptx import Kernel
from warpproof.reference import Launch, Param, evaluate, integer, uniform_contents

Array = npt.NDArray[Any]
Reference = Callable[..., Mapping[str, Any]]

STORAGE: Final[dict[str, Any]] = {
    "f16": np.float16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64, "bool": np.uint8,
    **{f"{k}{w}": np.dtype(f"{k}{w // 8}") for k in "iu" for w in (8, 16, 32, 64)},
}
# What rounding in the format explains, relative to the largest value of the output: for `run`, not for verdicts.
TOLERANCE: Final = {"f64": 1e-9, "f32": 1e-4, "f16": 2e-2, "bf16": 5e-2}
SMALLEST_SCALE: Final = 1e-3  # outputs that should all be zero are judged against this
CONTENTS: Final = ("least", "largest")  # of integer buffers too large to store
MAX_ELEMENTS: Final = 1 << 24
_ATTEMPTS: Final = 60
_STYLE: Final = 8  # attempts with one way of drawing integers


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """Sizes, and the stored value of every input array and scalar by parameter name (bf16 as its bits)."""

    launch: Launch
    sizes: Mapping[str, int]
    values: Mapping[str, Array]

    def real(self, name: str) -> Array:
        """An input as numbers: float64 for float types, else integers."""
        return as_numbers(self.values[name], self.launch.param(name).dtype)


@dataclass(frozen=True, slots=True)
class Difference:
    """How one output compares. `at`, `expected` and `actual_bits` belong to the worst element, None if nothing differs.

    `actual_bits` is also None when that element was never written; `greatest_absolute` is over written elements.
    """

    output: str
    dtype: str
    mismatched: int
    total: int
    unwritten: int
    at: tuple[int, ...] | None
    expected: float | None
    actual_bits: int | None
    greatest_absolute: float


def as_numbers(stored: Array, dtype: str) -> Array:
    """Stored elements as float64 (float types, exactly) or as integers."""
    if dtype == "bf16":
        return (stored.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    with np.errstate(invalid="ignore"):  # signalling NaNs become quiet
        return stored.astype(np.float64) if dtype in ("f16", "f32", "f64") else stored


def as_stored(numbers: Array, dtype: str) -> Array:
    """Numbers rounded to the nearest element of the type, ties to even."""
    if dtype != "bf16":
        return numbers.astype(STORAGE[dtype])
    bits = numbers.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + np.uint64(0x7FFF) + (bits >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)).astype(np.uint16)


def sample_call(launch: Launch, sizes: Mapping[str, int], seed: int) -> Call:
    """A call with random inputs that meet every precondition; InputError RUN801 if none was found."""
    rng = np.random.default_rng(seed)
    if not launch.check_preconditions(sizes):
        raise InputError("RUN802", f"the sizes {_listed(sizes)} do not meet the preconditions",
                         hint="the samples in `sizes` must be admitted by the contract")
    for attempt in range(_ATTEMPTS):
        values = {p.name: v for p in launch.params if (v := _sample(launch, p, sizes, rng, attempt)) is not None}
        call = Call(launch, dict(sizes), values)
        if launch.check_preconditions(sizes, {name: _judged(call, name) for name in values}):
            return call
    raise InputError("RUN801", f"no random inputs met the preconditions at {_listed(sizes)}",
                     hint="give integer data a `range`, or write the condition as bounds on elements")


def _judged(call: Call, name: str) -> Any:
    numbers = call.real(name)
    return numbers if numbers.ndim else numbers.item()


def _sample(launch: Launch, p: Param, sizes: Mapping[str, int], rng: np.random.Generator, attempt: int) -> Array | None:
    """Input values of a parameter, None for one that the caller does not fill."""
    if p.kind in ("ptr_null", "ptr_out"):
        return None
    if p.kind == "scalar" and p.name in sizes:
        return _integer(p, sizes[p.name])
    shape = launch.concrete(sizes).shapes[p.name] if p.is_buffer else ()
    if int(np.prod(shape, dtype=object)) > MAX_ELEMENTS:
        raise InputError("RUN803", f"{p.name!r} has more than {MAX_ELEMENTS} elements at {_listed(sizes)}",
                         hint="choose a smaller sample")
    if p.init_zero:
        return np.zeros(shape, STORAGE[p.dtype])
    if p.is_integer:
        low, high = _bounds(launch, p, sizes, attempt)
        return _integers(rng, low, high, shape, attempt // _STYLE).astype(STORAGE[p.dtype])
    spread = rng.normal(size=shape) if p.is_buffer and attempt % 2 == 0 else rng.uniform(0.25, 2.0, shape)
    return as_stored(np.asarray(spread, np.float64), p.dtype)


def _integers(rng: np.random.Generator, low: int, high: int, shape: tuple[int, ...], style: int) -> Array:
    """Random integers in [low, high): any, ascending, or all different, as preconditions on elements may ask."""
    count = int(np.prod(shape, dtype=object))
    if style % 3 == 2 and count <= high - low <= MAX_ELEMENTS:
        return low + rng.permutation(high - low)[:count].reshape(shape)
    drawn = rng.integers(low, high, shape, dtype=np.int64)
    return np.sort(drawn, axis=None).reshape(shape) if style % 3 == 1 else drawn


def _bounds(launch: Launch, p: Param, sizes: Mapping[str, int], attempt: int) -> tuple[int, int]:
    """A half-open range to draw integers from, narrower with every attempt when the contract gives none."""
    if p.range is not None:
        low, high = launch.concrete_range(p, sizes)
        return max(low, -(1 << 62)), max(min(high, 1 << 62), low + 1)
    if p.dtype == "bool":
        return 0, 2
    widths = [127, *sorted({max(s, 1) for s in sizes.values()}, reverse=True), 2, 1]
    return 0, min(widths[attempt % len(widths)], 127)


def _integer(p: Param, value: int) -> Array:
    try:
        return np.array(value, STORAGE[p.dtype])
    except OverflowError:
        raise InputError("RUN802", f"{p.name} = {value} does not fit the scalar's type {p.dtype}",
                         hint="bound the size in the contract by what its parameter can hold") from None


def _listed(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{k} = {v}" for k, v in sizes.items()) or "no sizes"


def concrete_launch(call: Call, stage: Launch | None = None) -> ConcreteLaunch:
    """The launch for the emulator: outputs uninitialised, inputs read-only, null pointers zero.

    Of a call with several launches it is the one of `stage`, None meaning the first.
    """
    stage = stage or call.launch.stages()[0]
    scalars = {p.name: _judged(call, p.name) for p in call.launch.params if p.kind == "scalar"}
    shape = stage.concrete(call.sizes, scalars)
    buffers: dict[str, Buffer] = {}
    args: list[bytes | Pointer] = []
    for p in stage.arguments:
        if p.kind == "ptr_null":
            args.append(bytes(8))
        elif p.value is not None:
            args.append(_integer(p, integer(p.value, {**scalars, **call.sizes})).tobytes())
        elif not p.is_buffer:
            args.append(call.values[p.name].tobytes())
        else:
            buffers[p.name] = _buffer(p, call.values.get(p.name), shape.shapes[p.name], shape.strides[p.name])
            args.append(Pointer(p.name))
    return ConcreteLaunch(shape.grid, shape.block, shape.dynamic_shared, tuple(args), buffers)


def _buffer(p: Param, values: Array | None, shape: tuple[int, ...], strides: tuple[int, ...]) -> Buffer:
    size = extent(shape, strides) * element_width(p.dtype) // 8
    if values is None:
        return Buffer(p.name, size)
    flat = np.zeros(extent(shape, strides), STORAGE[p.dtype])
    if values.size:
        flat[offsets(shape, strides)] = values
    return Buffer(p.name, size, writable=p.kind != "ptr_in", data=flat)


def extent(shape: tuple[int, ...], strides: tuple[int, ...]) -> int:
    """The number of elements from the first to the last one of a strided array, 0 when it has none."""
    return 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def offsets(shape: tuple[int, ...], strides: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """The element offset of every index of a strided array."""
    total = np.zeros(shape, np.int64)
    for axis, (n, s) in enumerate(zip(shape, strides, strict=True)):
        total += (np.arange(n) * s).reshape([-1 if k == axis else 1 for k in range(len(shape))])
    return total


def sparse_launch(launch: Launch, sizes: Mapping[str, int], contents: str = "least") -> tuple[ConcreteLaunch, Call]:
    """A launch at sizes too large to store, and its call: scalars are 1 unless they are sizes, floats are zero.

    Every element of an integer buffer has the `least` (zero where that is admitted) or the `largest` value that the
    preconditions admit; InputError RUN804 when they say more about elements than that.
    """
    scalars = {p.name: _integer(p, sizes.get(p.name, 1)) for p in launch.params if p.kind == "scalar"}
    call = Call(launch, dict(sizes), scalars)
    shape = launch.concrete(sizes, {name: _judged(call, name) for name in scalars})
    limits = uniform_contents(launch, sizes)
    if limits is None or contents not in CONTENTS:
        raise InputError("RUN804", f"no {contents} contents of the buffers meet the preconditions")
    buffers: dict[str, Buffer] = {}
    args: list[bytes | Pointer] = []
    for p in launch.params:
        if p.is_buffer:
            size = extent(shape.shapes[p.name], shape.strides[p.name]) * element_width(p.dtype) // 8
            low, high = limits[p.name]
            zero = p.init_zero or (contents == "least" and low <= 0 <= high)
            value = 0 if zero else low if contents == "least" else high
            buffers[p.name] = Buffer(p.name, size, p.kind != "ptr_in", None, _repeated(value, p.dtype))
            args.append(Pointer(p.name))
        else:
            args.append(bytes(8) if p.kind == "ptr_null" else scalars[p.name].tobytes())
    return ConcreteLaunch(shape.grid, shape.block, shape.dynamic_shared, tuple(args), buffers), call


def _repeated(value: int, dtype: str) -> int | Content:
    """The content function of a buffer whose elements all have this value."""
    if not value:
        return 0
    width = element_width(dtype) // 8
    pattern = np.frombuffer((value % (1 << 8 * width)).to_bytes(width, "little"), np.uint8)
    return lambda start, stop: pattern[np.arange(start, stop) % width]


def run_call(kernels: Sequence[Kernel], call: Call, step_limit: int = 10_000_000, schedule: str = "min-pc", *,
             races: bool = True, direction: str = "", poison: int | None = None,
             without: frozenset[int] = frozenset()) -> Outcome:
    """The bit-exact run of the call: its launches in order, each with its kernel, on one memory.

    Instructions `without`, by their place in a kernel's code, do nothing.
    """
    outcomes: list[Outcome] = []
    for kernel, stage in zip(kernels, call.launch.stages(), strict=True):
        launch = concrete_launch(call, stage)
        if poison is not None:
            launch = replace(launch, poison=poison)
        before = outcomes[-1].buffers if outcomes else {}
        outcomes.append(emulate(kernel, launch, step_limit=step_limit, schedule=schedule, races=races,
                                direction=direction, memory=before, without=without))
        if not outcomes[-1].completed:
            break
    if len(outcomes) == 1 and len(kernels) == 1:
        return outcomes[0]
    return Outcome(
        tuple(f for o in outcomes for f in o.findings), outcomes[-1].buffers, sum(o.steps for o in outcomes),
        outcomes[-1].completed and len(outcomes) == len(kernels), frozenset().union(*(o.executed for o in outcomes)),
        tuple(n for o in outcomes for n in o.notes))


def expected_outputs(call: Call, reference: Reference) -> dict[str, Array]:
    """What the reference says under NumPy, floats in double precision; InputError REF24x if it fails or misses one."""
    inputs = {name: _judged(call, name) for name in call.values if name not in call.sizes}
    return dict(evaluate(reference, call.launch, call.sizes, inputs))


def compare(
    call: Call, outcome: Outcome, expected: Mapping[str, Array], tolerance: Mapping[str, float] = TOLERANCE,
) -> tuple[Difference, ...]:
    """Every compared output of the run against what the reference says, elements beyond the tolerance counted.

    `tolerance` is by element type, relative to the largest reference value of the output.
    """
    scalars = {p.name: _judged(call, p.name) for p in call.launch.params if p.kind == "scalar"}
    shape = call.launch.concrete(call.sizes, scalars)
    return tuple(
        _compare(p, outcome, expected[p.name], offsets(shape.shapes[p.name], shape.strides[p.name]), tolerance)
        for p in call.launch.outputs)


def output_values(call: Call, outcome: Outcome) -> dict[str, tuple[Array, npt.NDArray[np.bool_]]]:
    """Every compared output of a run as numbers, and which elements were written."""
    scalars = {p.name: _judged(call, p.name) for p in call.launch.params if p.kind == "scalar"}
    shape = call.launch.concrete(call.sizes, scalars)
    out = {}
    for p in call.launch.outputs:
        at = offsets(shape.shapes[p.name], shape.strides[p.name])
        out[p.name] = _stored(p, outcome, at)
    return out


def _stored(p: Param, outcome: Outcome, at: npt.NDArray[np.int64]) -> tuple[Array, npt.NDArray[np.bool_]]:
    region, size = outcome.buffers[p.name], element_width(p.dtype) // 8
    stored = np.frombuffer(region.content().tobytes(), STORAGE[p.dtype])[at]
    with np.errstate(all="ignore"):
        return as_numbers(stored, p.dtype), np.asarray(region.written().reshape(-1, size).all(axis=1))[at]


def _compare(p: Param, outcome: Outcome, expected: Array, at: npt.NDArray[np.int64],
             tolerance: Mapping[str, float]) -> Difference:
    region, size = outcome.buffers[p.name], element_width(p.dtype) // 8
    stored = np.frombuffer(region.content().tobytes(), STORAGE[p.dtype])[at]
    written = np.asarray(region.written().reshape(-1, size).all(axis=1))[at]
    with np.errstate(all="ignore"):
        differs, gap = _mismatches(as_numbers(stored, p.dtype), expected, tolerance.get(p.dtype))
    wrong = np.asarray(np.logical_or(differs, ~written))
    greatest = float(np.where(written, gap, 0.0).max(initial=0.0))
    count = int(wrong.sum())
    if count == 0:
        return Difference(p.name, p.dtype, 0, int(at.size), 0, None, None, None, greatest)
    worst = int(np.argmax(np.where(wrong, np.where(written, gap, np.inf), -1.0)))
    index = tuple(int(i) for i in np.unravel_index(worst, at.shape))
    bits = int.from_bytes(stored[index].tobytes(), "little") if written[index] else None
    return Difference(p.name, p.dtype, count, int(at.size), int((~written).sum()), index,
                      expected[index].item(), bits, greatest)


def _mismatches(actual: Array, expected: Array, tolerance: float | None) -> tuple[Array, npt.NDArray[np.float64]]:
    """Which elements differ beyond the tolerance (None: at all), and by how much each differs."""
    if tolerance is None:
        return actual != expected, np.abs(actual.astype(np.float64) - expected.astype(np.float64))
    wanted = expected.astype(np.float64)
    with np.errstate(all="ignore"):
        gap = np.abs(actual - wanted)
        same = (actual == wanted) | (np.isnan(actual) & np.isnan(wanted))
    gap = np.where(same, 0.0, np.where(np.isfinite(gap), gap, np.inf))
    finite = np.abs(wanted[np.isfinite(wanted)])
    return gap > tolerance * max(SMALLEST_SCALE, float(finite.max(initial=0.0))), gap
