"""Search for a concrete run that contradicts a property: small sizes, telling inputs, every schedule policy.

Only what a bit-exact run shows is returned. A difference from the reference counts when it is far beyond what rounding
of well-scaled inputs explains, or when the value depends on memory that nobody wrote.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from warpproof.core import InputError, Unsupported
from warpproof.counterexample.concrete import (
    CONTENTS,
    Array,
    Call,
    Difference,
    as_numbers,
    as_stored,
    compare,
    expected_outputs,
    output_values,
    run_call,
    sample_call,
    sparse_launch,
)
from warpproof.domains import DIRECTIONS, exact_value
from warpproof.machine import Finding, Outcome, emulate
from warpproof.ptx import FloatImmediate, Kernel, Vector
from warpproof.reference import Launch, Param

Reference = Any
VERDICT: Final = {"f64": 1e-9, "f32": 1e-3, "f16": 2e-2, "bf16": 5e-2}
"""Relative to the largest reference value: smaller differences are not looked at."""
ROUNDING: Final = 4.0
"""A difference within this many times the spread of directed-rounding runs is explained by rounding."""
PROPERTY: Final = {
    "out-of-bounds": "memory", "misaligned": "memory", "write-to-input": "memory", "uninitialised-read": "memory",
    "race": "races", "non-coherent-read": "races", "barrier-divergence": "barriers", "barrier-mismatch": "barriers",
    "deadlock": "barriers", "undefined-collective": "barriers",
}
"""What findings of a run refute. A barrier completed by exits is legal (docs/ledger.md, exited-threads)."""
MENU: Final = (1, 2, 3, 5, 7, 16, 17, 20, 31, 33, 64, 100, 129, 150, 257, 300, 600, 1030)
MAX_WORK: Final = 1 << 16
MAX_FIXED_GRID: Final = 1 << 19
"""Threads of a grid that no size changes: most of them find nothing to do."""
_SCALARS: Final = (3.0, -1.5)
SCHEDULES: Final = ("min-pc", "round-robin", "reversed")
GLANCES: Final = 12
_SMALLER_S: Final = 3.0
_REMOVALS: Final = 3
"""Sizes at which a run without an instruction is made."""
OTHER_POISON: Final = 0x0123456789ABCDEF


@dataclass(frozen=True, slots=True)
class Refutation:
    """A run that contradicts properties: the call, what differs, what was found, and the schedule it ran under.

    `ctas` is None for the whole grid; `contents` names what fills buffers that are too large to store (empty when the
    inputs are stored arrays).
    """

    call: Call
    schedule: str
    differences: tuple[Difference, ...]
    findings: tuple[Finding, ...]
    properties: Mapping[str, str]
    ctas: tuple[tuple[int, int, int], ...] | None = None
    contents: str = ""


@dataclass(slots=True)
class Search:
    """One search on the kernels of the launches in order; `tried` counts runs.

    `hints` are cases that a symbolic claim suggests: sizes and a block.
    """

    kernels: Sequence[Kernel]
    launch: Launch
    reference: Reference
    deadline: float
    hints: Sequence[Mapping[str, Any]] = ()
    limit: int | None = None
    tried: int = 0
    notes: list[str] = field(default_factory=list)

    def run(self) -> Refutation | None:
        """The first refutation found, or None; one at huge sizes only if no run at small ones shows the same soon."""
        huge = next((found for hint in self.hints if not self._admitted(hint.get("sizes", {}))
                     for contents in CONTENTS if (found := self._large(hint, contents)) is not None), None)
        if huge is None:
            return self._stored(self.deadline)
        small = self._stored(min(self.deadline, time.monotonic() + _SMALLER_S))
        return small if small is not None and set(huge.properties) <= set(small.properties) else huge

    def _stored(self, deadline: float) -> Refutation | None:
        """The first refutation by a run whose inputs are stored."""
        for call, expected, schedule in self._attempts():
            if time.monotonic() > deadline or (self.limit is not None and self.tried >= self.limit):
                return None
            found = self._one(call, expected, schedule)
            if found is not None:
                return found
        return None

    def needed(self, instruction: int) -> bool:
        """True when a run that leaves the instruction out shows a race, or threads that do not meet at a barrier."""
        for sizes in itertools.islice(self.admitted_sizes(), _REMOVALS):
            for call in itertools.islice(self._calls(sizes), 1):
                try:
                    outcome = run_call(self.kernels, call, 100_000, without=frozenset({instruction}))
                except (Unsupported, InputError):
                    return False
                if any(PROPERTY.get(f.kind) in ("races", "barriers") for f in outcome.findings):
                    return True
        return False

    def _attempts(self) -> Iterator[tuple[Call, Mapping[str, Array], str]]:
        """First one run of each of some sizes, since most faults show in any run of the right size; then the rest."""
        for sizes in itertools.islice(self.admitted_sizes(), self.launch.examples + len(self.hints) + GLANCES):
            for call in itertools.islice(self._calls(sizes), 1):
                if (expected := self._expected(call)) is not None:
                    yield call, expected, SCHEDULES[0]
        for sizes in self.admitted_sizes():
            calls = {id(call): call for call in self._calls(sizes)}.values()
            known = [(call, e) for call in calls if (e := self._expected(call)) is not None]
            for schedule, (call, values) in itertools.product(SCHEDULES, known):
                yield call, values, schedule

    # ------------------------------------------------------------------ sizes
    def admitted_sizes(self) -> Iterator[dict[str, int]]:
        """Admitted sizes: the contract's own samples and hints, then small ones, each once."""
        seen: set[tuple[int, ...]] = set()
        for sizes in itertools.chain(self._given(), self._small()):
            key = tuple(sizes.values())
            if key not in seen and self._admitted(sizes):
                seen.add(key)
                yield sizes

    def _given(self) -> Iterator[dict[str, int]]:
        names = list(self.launch.sizes)
        for hint in self.hints:
            sizes = hint.get("sizes", {})
            if set(names) <= set(sizes):
                yield {n: int(sizes[n]) for n in names}
        count = max((len(v) for v in self.launch.sizes.values()), default=1)
        rows = [{n: v[min(i, len(v) - 1)] for n, v in self.launch.sizes.items()} for i in range(count)]
        yield from sorted(rows, key=lambda s: sum(s.values()))

    def _small(self) -> Iterator[dict[str, int]]:
        names = list(self.launch.sizes)
        if not names:
            return
        rng = np.random.default_rng(1)
        for k in MENU:
            yield dict.fromkeys(names, k)
        for _ in range(60):
            yield {n: int(rng.choice(MENU)) for n in names}

    def _admitted(self, sizes: Mapping[str, int]) -> bool:
        if not set(self.launch.sizes) <= set(sizes):
            return False
        try:
            if not self.launch.check_preconditions(sizes):
                return False
            shapes = [stage.concrete(sizes) for stage in self.launch.stages()]
        except (InputError, ArithmeticError):
            return False
        elements = sum(int(np.prod(s, dtype=object)) for s in shapes[0].shapes.values())
        threads = sum(int(np.prod(s.grid, dtype=object)) * int(np.prod(s.block, dtype=object)) for s in shapes)
        fixed = not any(e.names for stage in self.launch.stages() for e in stage.grid)
        return 0 < elements <= MAX_WORK and 0 < threads <= (MAX_FIXED_GRID if fixed else MAX_WORK)

    # ------------------------------------------------------------------ inputs
    def _calls(self, sizes: Mapping[str, int]) -> Iterator[Call]:
        """Random inputs, shifted and scaled ones, and the kernel's own float constants put where they tell."""
        try:
            base = sample_call(self.launch, sizes, seed=self.tried)
        except InputError as error:
            self.notes.append(error.message)
            return
        yield base
        wide = self._widened(base)
        if wide is not base:
            yield wide
        for k in _SCALARS if self._float_scalars() else ():
            yield self._meeting({**base.values, **{p.name: as_stored(np.asarray(k), p.dtype)
                                                   for p in self._float_scalars()}}, base)
        yield self._mapped(base, lambda x: -1.0 - np.abs(x))
        yield self._mapped(base, lambda x: np.round(4 * x))
        yield self._negative(base)
        for c in (c for kernel in self.kernels for c in _constants(kernel)):
            yield self._mapped(base, lambda x, c=c: _first(x, c))
            yield self._mapped(base, lambda x, c=c: np.full_like(x, c))

    def _mapped(self, base: Call, change: Any) -> Call:
        values: dict[str, Array] = {}
        for p in self.launch.params:
            if p.name not in base.values:
                continue
            old = base.values[p.name]
            floating = p.is_buffer and not p.is_integer and not p.init_zero and p.dtype in VERDICT
            values[p.name] = as_stored(change(as_numbers(old, p.dtype)), p.dtype) if floating else old
        return self._meeting(values, base)

    def _float_scalars(self) -> list[Param]:
        return [p for p in self.launch.params if p.kind == "scalar" and p.dtype in VERDICT]

    def _widened(self, base: Call) -> Call:
        """Integers of all bits in buffers that no range limits."""
        rng = np.random.default_rng(self.tried)
        values = dict(base.values)
        buffers = [p for p in self.launch.buffers if p.name in values and p.is_integer]
        free = [p for p in buffers if p.range is None and not p.init_zero]
        for p in free:
            low, high = self.launch.concrete_range(p, base.sizes)
            kind = np.uint64 if high > 1 << 63 else np.int64
            values[p.name] = rng.integers(low, high, values[p.name].shape, kind).astype(values[p.name].dtype)
        return self._meeting(values, base) if free else base

    def _meeting(self, values: dict[str, Array], base: Call) -> Call:
        """A call with these values if they meet the preconditions, else the base."""
        call = Call(self.launch, base.sizes, values)
        judged = {n: (v if v.ndim else v.item()) for n, v in ((n, call.real(n)) for n in values)}
        return call if self.launch.check_preconditions(base.sizes, judged) else base

    def _negative(self, base: Call) -> Call:
        """Some of the signed integers that no range bounds made negative."""
        values = dict(base.values)
        for p in self.launch.buffers:
            if p.name in values and p.range is None and p.dtype[0] == "i" and p.is_integer and not p.init_zero:
                flat = values[p.name].copy().reshape(-1)
                flat[::2] = ~flat[::2]
                values[p.name] = flat.reshape(values[p.name].shape)
        call = Call(self.launch, base.sizes, values)
        judged = {n: (v if v.ndim else v.item()) for n, v in ((n, call.real(n)) for n in values)}
        return call if self.launch.check_preconditions(base.sizes, judged) else base

    # ------------------------------------------------------------------ judgement
    def _expected(self, call: Call) -> Mapping[str, Array] | None:
        try:
            return expected_outputs(call, self.reference)
        except InputError as error:
            self.notes.append(error.message)
            return None

    def _one(self, call: Call, expected: Mapping[str, Array], schedule: str) -> Refutation | None:
        self.tried += 1
        try:
            outcome = run_call(self.kernels, call, 400_000, schedule)
        except (Unsupported, InputError) as stuck:
            self.notes.append(str(stuck))
            return None
        properties = {
            PROPERTY[f.kind]: f.message for f in reversed(outcome.findings)
            if f.kind in PROPERTY and f.kind != "uninitialised-read"
        }
        differences: tuple[Difference, ...] = ()
        if outcome.completed:
            differences = self._differences(call, outcome, expected)
            wrong = [d for d in differences if d.mismatched]
            if wrong and (d := wrong[0]):
                count = f"{d.mismatched} of {d.total} elements"
                properties["equivalence"] = f"{d.output} differs from the reference in {count}"
            unset = [f for f in outcome.findings if f.kind == "uninitialised-read"]
            if unset and (wrong or self._depends_on_poison(call, outcome, schedule)):
                properties.setdefault("equivalence", "the outputs depend on memory that nobody wrote")
                properties["memory"] = unset[0].message
        if not properties:
            return None
        return Refutation(call, schedule, differences, outcome.findings, properties)

    def _differences(self, call: Call, outcome: Outcome, expected: Mapping[str, Array]) -> tuple[Difference, ...]:
        """Outputs that differ by more than rounding can explain: runs with directed rounding show how far it goes."""
        found = compare(call, outcome, expected, VERDICT)
        if not any(d.mismatched for d in found):
            return found
        spread = self._spread(call, outcome)
        values = output_values(call, outcome)
        kept = []
        for d in found:
            actual, written = values[d.output]
            with np.errstate(all="ignore"):
                gap = np.abs(actual.astype(np.float64) - expected[d.output].astype(np.float64))
            unexplained = ~written | ~(gap <= ROUNDING * spread[d.output])
            if d.mismatched and bool(unexplained.any()) and _worst_is(d, unexplained):
                kept.append(d)
        return tuple(kept)

    def _spread(self, call: Call, outcome: Outcome) -> dict[str, Array]:
        """How far each output element moves when every rounding is directed."""
        mine = output_values(call, outcome)
        spread = {n: np.zeros(np.shape(v), np.float64) for n, (v, _) in mine.items()}
        for direction in DIRECTIONS:
            other = run_call(self.kernels, call, 400_000, races=False, direction=direction)
            for n, (v, _) in output_values(call, other).items():
                with np.errstate(all="ignore"):
                    moved = np.abs(v.astype(np.float64) - mine[n][0].astype(np.float64))
                spread[n] = np.maximum(spread[n], np.where(np.isnan(moved), 0.0, moved))
        return spread

    def _depends_on_poison(self, call: Call, first: Outcome, schedule: str) -> bool:
        """True when another content of never-written memory changes an output."""
        second = run_call(self.kernels, call, 400_000, schedule, poison=OTHER_POISON)
        return any(
            first.buffers[p.name].content().tobytes() != second.buffers[p.name].content().tobytes()
            for p in self.launch.outputs
        )

    # ------------------------------------------------------------------ huge sizes
    def _large(self, hint: Mapping[str, Any], contents: str) -> Refutation | None:
        """One CTA at sizes too large to store: only faults count, values are not compared."""
        sizes, block = hint.get("sizes", {}), hint.get("block")
        if block is None or not set(self.launch.sizes) <= set(sizes) or len(self.kernels) > 1:
            return None
        sizes = {n: int(sizes[n]) for n in self.launch.sizes}
        try:
            if not self.launch.check_preconditions(sizes):
                return None
            launch, call = sparse_launch(self.launch, sizes, contents)
            outcome = emulate(self.kernels[0], launch, ctas=[tuple(block)], step_limit=200_000)
        except (InputError, Unsupported, ArithmeticError) as stuck:
            self.notes.append(str(stuck))
            return None
        self.tried += 1
        properties = {
            PROPERTY[f.kind]: f.message for f in reversed(outcome.findings) if PROPERTY.get(f.kind) == "memory"
            and f.kind != "uninitialised-read"
        }
        if not properties:
            return None
        return Refutation(call, "min-pc", (), outcome.findings, properties, (tuple(block),), contents)


def _worst_is(d: Difference, mask: Array) -> bool:
    """True when the element that differs most is in the mask."""
    return d.at is not None and bool(mask[d.at])


def _first(x: Array, c: float) -> Array:
    out = np.array(x)
    if out.size:
        out.reshape(-1)[0] = c
    return out


def _constants(kernel: Kernel) -> list[float]:
    """The moderate float constants in the kernel's code: values a branch may single out."""
    out: dict[float, None] = {}
    for ins in kernel.code:
        if ins.name not in ("setp", "mov", "set", "selp", "slct"):
            continue
        for operand in ins.operands:
            for x in operand.elements if isinstance(operand, Vector) else (operand,):
                if isinstance(x, FloatImmediate):
                    v = exact_value("f", x.width, x.bits)
                    if not isinstance(v, str) and 0 < abs(v) <= 1000:
                        out[float(v)] = None
    return list(out)[:12]
