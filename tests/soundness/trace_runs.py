"""Symbolic runs of kernels, and their comparison with bit-exact runs of the same launch at concrete sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from trace_values import Leftover, TraceValues

from warpproof.core import Ledger, element_width
from warpproof.counterexample.concrete import STORAGE, Call, as_numbers, concrete_launch, sample_call
from warpproof.equivalence import Proof
from warpproof.machine import Setup, SymbolicMachine, Trace, emulate
from warpproof.machine.storage import Region
from warpproof.ptx import Kernel, load, resolve
from warpproof.reference import load_launch

HERE = Path(__file__).parent
MACHINE = HERE.parent / "machine" / "kernels"
TOLERANCE = {"f64": 1e-4, "f32": 1e-4, "f16": 2e-2, "bf16": 5e-2}


@dataclass
class Symbolic:
    """A kernel's symbolic run."""

    kernel: Kernel
    launch: Any
    proof: Proof
    machine: SymbolicMachine
    trace: Trace


def acceptance(name: str) -> tuple[str, dict[str, Any]]:
    """The PTX text and launch manifest of a compiled kernel kept with these tests."""
    import json

    file = HERE / "kernels" / f"{name}.ptx"
    file = file if file.exists() else MACHINE / f"{name}.ptx"
    return file.read_text(), json.loads((HERE / "cases" / f"{name}.json").read_text())


def symbolic(ptx: str, manifest: Mapping[str, Any]) -> Symbolic:
    """Execute a kernel symbolically under its launch."""
    launch = load_launch(manifest)
    kernel = resolve(load(ptx), launch.kernel or None)
    proof = Proof(kernel, launch, float("inf"))
    setup = Setup(proof.symbolic.grid, proof.symbolic.block, proof._arguments(), proof.buffers, proof._shared_bytes(),
                  proof.facts.base)
    machine = SymbolicMachine(kernel, proof.arena, setup, Ledger(), proof.facts)
    return Symbolic(kernel, launch, proof, machine, machine.run())


@contextmanager
def recorded() -> Iterator[dict[tuple[str, str], set[int]]]:
    """The (kind, buffer) → byte offsets that the emulator reads and writes."""
    log: dict[tuple[str, str], set[int]] = {}
    read, write = Region.read, Region.write

    def noted(kind: str, region: Region, slots: np.ndarray, size: int) -> None:
        first = np.asarray(slots).reshape(-1, 1)
        log.setdefault((kind, region.name), set()).update((first + np.arange(size)).reshape(-1).tolist())

    def reading(self: Region, slots: Any, size: int) -> Any:
        noted("load", self, slots, size)
        return read(self, slots, size)

    def writing(self: Region, slots: Any, size: int, values: Any) -> None:
        noted("store", self, slots, size)
        write(self, slots, size, values)

    Region.read, Region.write = reading, writing  # type: ignore[method-assign]
    try:
        yield log
    finally:
        Region.read, Region.write = read, write  # type: ignore[method-assign]


@dataclass
class Comparison:
    """What a symbolic trace says at concrete sizes against the emulator. All lists empty: they agree."""

    violated: list[str]
    wrong: list[str]
    unflagged: list[str]
    findings: frozenset[str]
    flagged: bool = False  # the trace itself reports a possible fault, so that it need not be what the run does
    stores: int = 0
    undefined: int = 0


def compare(run: Symbolic, sizes: Mapping[str, int], seed: int = 0, tolerance: float = 0.0) -> Comparison:
    """Evaluate every recorded access at these sizes and compare with the bit-exact run on the same inputs."""
    call = sample_call(run.launch, sizes, seed)
    shape = run.launch.concrete(sizes)
    with recorded() as log:
        outcome = emulate(run.kernel, concrete_launch(call))
    out = Comparison([], [], [], outcome.kinds())
    wanted: dict[tuple[str, str], set[int]] = {}
    stores: dict[str, dict[int, list[float]]] = {}
    updates: dict[tuple[str, str], dict[int, list[float]]] = {}
    for cta in itertools.product(*(range(g) for g in shape.grid)):
        _one_cta(run, call, cta, wanted, stores, updates, out)
    _combine(call, stores, updates)
    if not out.violated and outcome.completed:
        _elements(run, outcome, log, wanted, out)
        for name, values in stores.items():
            _values(run, name, values, outcome, out, tolerance)
    _flags(run, outcome, out, wanted, shape.shapes)
    return out


def values_of(run: Symbolic, call: Call, cta: tuple[int, ...], unknown: int = 0) -> TraceValues:
    """The evaluator of one CTA of a call."""
    arena = run.proof.arena
    scalars_too = {n: int(v) for n, v in call.values.items() if np.ndim(v) == 0 and n in run.launch.integers}
    atoms = run.proof.symbolic.assignment({**scalars_too, **call.sizes})
    for axis, v in zip("xyz", cta, strict=True):
        ((m, _),) = arena.symbol("block", f"block.{axis}", 0, None).terms.items()
        atoms[m[0]] = v
    arrays = {p.name: as_numbers(call.values[p.name], p.dtype) for p in run.launch.buffers if p.name in call.values}
    scalars = {p.name: float(call.real(p.name)) for p in run.launch.params
               if p.kind == "scalar" and not p.is_integer}
    largest = max([1, *call.sizes.values()])
    return TraceValues(arena, atoms, arrays, scalars, max(2 * largest + 80, arena.lanes + 64), unknown)


def _one_cta(run: Symbolic, call: Call, cta: tuple[int, ...], wanted: dict[tuple[str, str], set[int]],
             stores: dict[str, dict[int, list[float]]], updates: dict[tuple[str, str], dict[int, list[float]]],
             out: Comparison) -> None:
    values = values_of(run, call, cta)
    arena = run.proof.arena
    unknowns = any(a.kind in ("undef", "state") for a in arena.atoms) or any(r.op == "poison" for r in arena.reals)
    others = [values_of(run, call, cta, k) for k in (1, 2, -3, 5, -8)] if unknowns else []
    out.violated += [f"{o.kind} at {run.machine.where(o.instruction)}" for o in values.violated(run.trace)]
    for a in run.trace.accesses:
        index, at = values.elements(a)
        if any(sorted(map(int, index)) != sorted(map(int, other.elements(a)[0])) for other in others):
            raise Leftover(f"an access to {a.buffer} that depends on an undefined value")
        for kind in ("load", "store") if a.kind == "atomic" else ("store" if a.kind == "store" else "load",):
            wanted.setdefault((kind, a.buffer), set()).update(int(i) for i in index)
        if a.kind in ("store", "atomic") and not out.violated:
            assert a.value is not None
            info = run.proof.buffers[a.buffer]
            kind_of = "f" if info.kind in ("f", "bf") else "i"
            number = values.stored(a.value, at, kind_of)
            for other in others:
                number = np.where(number == other.stored(a.value, at, kind_of), number, np.nan)
            table = stores.setdefault(a.buffer, {}) if a.kind == "store" else updates.setdefault((a.buffer, a.op), {})
            for i, v in zip(index.tolist(), number.tolist(), strict=True):
                table.setdefault(int(i), []).append(v)
            out.stores += len(index)


def _combine(call: Call, stores: dict[str, dict[int, list[float]]],
             updates: Mapping[tuple[str, str], Mapping[int, list[float]]]) -> None:
    """What elements hold after all their atomic updates."""
    steps = {"add": np.add, "min": np.minimum, "max": np.maximum, "or": np.maximum, "and": np.minimum}  # of 0 and 1
    for (name, op), table in updates.items():
        start = as_numbers(call.values[name], call.launch.param(name).dtype).reshape(-1)
        for i, values in table.items():
            if 0 <= i < len(start):
                total = steps[op].reduce(np.array([float(start[i]), *values]))
                stores.setdefault(name, {})[i] = [float(total)]


def _elements(run: Symbolic, outcome: Any, log: Mapping[tuple[str, str], set[int]],
              wanted: Mapping[tuple[str, str], set[int]], out: Comparison) -> None:
    for p in run.launch.buffers:
        for kind in ("load", "store"):
            if kind == "load" and "race" in out.findings and p.kind != "ptr_in":
                continue  # the emulator looks at the memory to describe a race
            size = element_width(p.dtype) // 8
            seen = {o // size for o in log.get((kind, p.name), set())}
            said = wanted.get((kind, p.name), set())
            if out.findings & {"out-of-bounds", "write-to-input"}:  # such accesses do not happen in the run
                buffer = outcome.buffers[p.name]
                count = buffer.size // size if buffer.writable or kind == "load" else 0
                said = {i for i in said if 0 <= i < count}
            if seen != said:
                out.wrong.append(f"{kind}s of {p.name}: only the trace {sorted(said - seen)[:5]}, "
                                 f"only the run {sorted(seen - said)[:5]}")


def _values(run: Symbolic, name: str, values: Mapping[int, list[float]], outcome: Any, out: Comparison,
            least: float) -> None:
    p = run.launch.param(name)
    region = outcome.buffers[name]
    raw = np.frombuffer(region.content().tobytes(), STORAGE[p.dtype])
    got = as_numbers(raw, p.dtype)
    finite = [abs(v) for vs in values.values() for v in vs if np.isfinite(v)]
    scale = max([1e-3, *finite])
    tolerance = max(TOLERANCE.get(p.dtype, 0.0), least) * scale
    for i, candidates in sorted(values.items()):
        if not 0 <= i < len(got):
            continue
        known = [v for v in candidates if not np.isnan(v)]
        if len(known) < len(candidates):
            out.undefined += 1
            continue
        actual = float(got[i])
        if not p.is_integer:
            ok = any(v == actual or abs(v - actual) <= tolerance for v in known)
        else:
            width = element_width(p.dtype)
            ok = any(int(v) == int(got[i]) % (1 << width) for v in known)
        if not ok:
            out.wrong.append(f"{name}[{i}]: the trace says {known}, the run {actual}")
            if len(out.wrong) > 8:
                return


def _flags(run: Symbolic, outcome: Any, out: Comparison, wanted: Mapping[tuple[str, str], set[int]],
           shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Faults of the run that nothing in the trace leaves open."""
    hazards = {h.kind for h in run.trace.hazards}
    meetings = [b for b in run.trace.barriers if not b.path.uniform]
    out.flagged = bool(hazards or meetings)
    for f in outcome.findings:
        match f.kind:
            case "race-same-value" if any(a.name == "same-value-stores" for a, _ in run.machine.ledger.items()):
                known = True
            case "race" | "race-same-value" if f.space.startswith("shared"):
                known = "race" in hazards or bool(meetings)  # barriers that not all reach order nothing
            case "uninitialised-read":
                known = bool(hazards & {"uninitialised", "unwritten"})
            case "out-of-bounds" if f.space.startswith("shared"):
                known = "shared-bounds" in hazards
            case "out-of-bounds":
                known = any(i < 0 or i >= int(np.prod(shapes[b])) for (_, b), found in wanted.items() for i in found)
            case "misaligned":
                known = "misaligned" in hazards or any(o.kind == "alignment" for o in run.trace.obligations)
            case "barrier-divergence" | "barrier-mismatch" | "exited-at-barrier" | "undefined-collective" | "deadlock":
                known = bool(meetings) or "divergence" in hazards
            case _:
                known = True
        if not known and not out.violated:
            out.unflagged.append(f"{f.kind}: {f.message}")
