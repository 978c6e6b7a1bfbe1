"""What the bit-exact emulator says about a kernel: its own search, independent of the prover's, and replays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from warpproof.core import InputError, Unsupported, element_width
from warpproof.counterexample import Call, compare, concrete_launch, expected_outputs, restore_call, sample_call
from warpproof.machine import Buffer, ConcreteLaunch, Outcome, Pointer, emulate
from warpproof.ptx import Kernel
from warpproof.reference import Launch

Reference = Callable[..., Mapping[str, Any]]
SCHEDULES: Final = ("min-pc", "reversed", "round-robin", "random")
FAULTS: Final = frozenset({
    "out-of-bounds", "misaligned", "write-to-input", "race", "barrier-divergence", "barrier-mismatch", "deadlock",
    "undefined-collective", "undefined-branch", "trap",
})
SIZES: Final = (1, 2, 3, 4, 5, 8, 15, 16, 17, 31, 32, 33, 37, 64, 65, 100, 127, 128, 129, 200, 255, 256, 257, 300, 513,
                700, 1025)
LONG: Final = (513, 769, 1000, 1024, 1025, 1500, 2047, 2500, 4099)  # loops unrolled by four run their body from here on
CLOSE: Final = {"f64": 1e-9, "f32": 2e-4, "f16": 2e-2, "bf16": 5e-2}
MAX_ELEMENTS: Final = 60_000
MAX_THREADS: Final = 1 << 16
STEPS: Final = 200_000
POISONS: Final = (0x7FC0FFEE7FC0FFEE, 0x0123456789ABCDEF, 0xC2C8000041C80000)


@dataclass(frozen=True, slots=True)
class Judgement:
    """`differs` with what was seen, `agrees` after `runs` runs without a fault, or `unknown` when none was possible."""

    status: str
    what: str
    runs: int


def judge(kernel: Kernel, launch: Launch, reference: Reference, deadline: float) -> Judgement:
    """A search over random sizes, inputs and schedules, then over huge sizes with sparse buffers."""
    rng = np.random.default_rng(12345)
    runs = 0
    share = time.monotonic() + 0.75 * (deadline - time.monotonic())
    for sizes in _sizes(launch, rng):
        for call in _calls(launch, sizes, rng):
            for schedule in SCHEDULES:
                if time.monotonic() > share and runs:
                    break
                what = _run(kernel, call, reference, schedule, int(rng.integers(1 << 30)))
                if what:
                    return Judgement("differs", f"{dict(sizes)} {schedule}: {what}", runs)
                runs += what is not None
        if time.monotonic() > share:
            break
    what = _huge(kernel, launch, rng, deadline)
    if what:
        return Judgement("differs", what, runs)
    return Judgement("agrees" if runs else "unknown", "", runs)


def replay(kernel: Kernel, launch: Launch, reference: Reference, found: Mapping[str, Any]) -> Judgement:
    """Whether the counterexample of a report shows a fault when it is run again from its description."""
    if found.get("sparse"):
        ctas = [tuple(c) for c in found["ctas"]]
        kinds = _faults(emulate(kernel, _sparse(launch, found["sizes"]), ctas=ctas, step_limit=STEPS))
        return Judgement("differs" if kinds else "agrees", f"sparse {found['sizes']} {kinds}", 1)
    call = restore_call(launch, found)
    what = _run(kernel, call, reference, str(found["schedule"]), 0) or _unwritten(kernel, call, str(found["schedule"]))
    return Judgement("differs" if what else "agrees", f"replay {dict(call.sizes)}: {what}", 1)


def _sizes(launch: Launch, rng: np.random.Generator) -> Iterator[dict[str, int]]:
    seen = set()
    for i in range(400):
        if i < launch.examples:
            sizes = launch.example(i)
        else:
            top = (12, len(SIZES), 5)[i % 3]
            sizes = {n: int(rng.choice(SIZES[:top])) for n in launch.sizes}
            if i % 3 == 2 and sizes:
                sizes[str(rng.choice(list(sizes)))] = int(rng.choice(LONG))
        if tuple(sizes.values()) not in seen and _small(launch, sizes):
            seen.add(tuple(sizes.values()))
            yield sizes
    if not launch.sizes:
        yield {}


def _small(launch: Launch, sizes: Mapping[str, int]) -> bool:
    try:
        if not launch.check_preconditions(sizes):
            return False
        shape = launch.concrete(sizes)
    except (InputError, ArithmeticError):
        return False
    elements = sum(int(np.prod(s, dtype=object)) for s in shape.shapes.values())
    threads = int(np.prod(shape.grid, dtype=object)) * int(np.prod(shape.block, dtype=object))
    return elements <= MAX_ELEMENTS and 0 < threads <= MAX_THREADS


def _calls(launch: Launch, sizes: Mapping[str, int], rng: np.random.Generator) -> Iterator[Call]:
    """Ordinary inputs; then all zero, all equal, all negative, one spike, ascending."""
    seed = int(rng.integers(1 << 30))
    try:
        base = sample_call(launch, sizes, seed)
    except InputError:
        return
    yield base
    changes: tuple[Callable[[Any], Any], ...] = (
        np.zeros_like, lambda x: np.full_like(x, 1.5), lambda x: -np.abs(x) - 1, _spike,
        lambda x: np.linspace(-2, 2, x.size).reshape(x.shape).astype(x.dtype), lambda x: x * 1e-3,
    )
    for k in rng.permutation(len(changes))[:2]:
        values = {n: changes[int(k)](v) if v.ndim and v.dtype.kind == "f" and not launch.param(n).init_zero else v
                  for n, v in base.values.items()}
        call = Call(launch, base.sizes, values)
        if launch.check_preconditions(sizes, {n: (r if r.ndim else r.item()) for n in values for r in [call.real(n)]}):
            yield call


def _spike(x: Any) -> Any:
    out = np.array(x)
    if out.size:
        out.reshape(-1)[out.size // 2] = 50
    return out


def _run(kernel: Kernel, call: Call, reference: Reference, schedule: str, seed: int) -> str | None:
    """What a run shows: "" nothing wrong, None when it says nothing."""
    try:
        expected = expected_outputs(call, reference)
        outcome = emulate(kernel, concrete_launch(call), schedule=schedule, seed=seed, step_limit=STEPS)
    except (InputError, Unsupported):
        return None
    kinds = _faults(outcome)
    if kinds:
        return kinds
    if not outcome.completed:
        return f"did not end in {outcome.steps} steps"
    wrong = [d for d in compare(call, outcome, expected, CLOSE) if d.mismatched]
    if not wrong:
        return ""
    d = wrong[0]
    got = "unwritten" if d.actual_bits is None else f"{d.actual_bits:#x}"
    return f"{d.output}{list(d.at or ())} is {got}, not {d.expected} ({d.mismatched} of {d.total} differ)"


def _unwritten(kernel: Kernel, call: Call, schedule: str) -> str:
    """Whether what lies in memory that nobody wrote shows in the outputs."""
    launch = concrete_launch(call)
    outcomes = [emulate(kernel, replace(launch, poison=p), schedule=schedule, step_limit=STEPS) for p in POISONS]
    names = [p.name for p in call.launch.outputs]
    contents = {tuple(o.buffers[n].content().tobytes() for n in names) for o in outcomes}
    return "the outputs depend on memory that nobody wrote" if len(contents) > 1 else ""


def _faults(outcome: Outcome) -> str:
    return "; ".join(f"{f.kind}: {f.message}" for f in outcome.findings if f.kind in FAULTS)[:300]


def _huge(kernel: Kernel, launch: Launch, rng: np.random.Generator, deadline: float) -> str:
    """Faults of single CTAs at the largest sizes that the preconditions admit, on buffers made as they are read."""
    for _ in range(40):
        if time.monotonic() > deadline:
            break
        sizes = {n: _largest(launch, n, rng) for n in launch.sizes}
        try:
            if not launch.check_preconditions(sizes):
                continue
            concrete = _sparse(launch, sizes)
            last = tuple(g - 1 for g in concrete.grid)
            ctas = {last, (0, 0, 0), tuple(int(rng.integers(g)) for g in concrete.grid)}
            outcome = emulate(kernel, concrete, ctas=sorted(ctas), step_limit=3000)  # type: ignore[arg-type]
        except (InputError, Unsupported, ArithmeticError):
            continue
        kinds = _faults(outcome)
        if kinds:
            return f"huge {sizes}: {kinds}"
    return ""


def _largest(launch: Launch, name: str, rng: np.random.Generator) -> int:
    """A size near one of the ends of what single preconditions say about it, or a power of two."""
    k = int(rng.integers(0, 32))
    return max(1, (1 << k) + int(rng.integers(-1, 2))) if rng.random() < 0.8 else int(rng.choice(SIZES))


def _sparse(launch: Launch, sizes: Mapping[str, int]) -> ConcreteLaunch:
    shape = launch.concrete(sizes)
    buffers: dict[str, Buffer] = {}
    args: list[bytes | Pointer] = []
    for p in launch.params:
        if p.kind == "ptr_null":
            args.append(bytes(8))
        elif p.is_buffer:
            extents = zip(shape.shapes[p.name], shape.strides[p.name], strict=True)
            elements = 0 if 0 in shape.shapes[p.name] else 1 + sum((n - 1) * s for n, s in extents)
            size = elements * element_width(p.dtype) // 8
            buffers[p.name] = Buffer(p.name, size, p.kind != "ptr_in", None, 0)
            args.append(Pointer(p.name))
        else:
            value = sizes.get(p.name, 1)
            kind = {"i": "i", "u": "u", "f": "f"}[p.dtype[0]]
            args.append(np.array(value, f"{kind}{element_width(p.dtype) // 8}").tobytes())
    return ConcreteLaunch(shape.grid, shape.block, shape.dynamic_shared, tuple(args), buffers)
