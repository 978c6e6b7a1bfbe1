"""The pipeline, from a job to a report."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from warpproof.core import InputError, Ledger
from warpproof.counterexample import (
    Call,
    Difference,
    compare,
    describe_call,
    describe_difference,
    describe_finding,
    expected_outputs,
    restore_call,
    run_call,
    sample_call,
    sparse_launch,
)
from warpproof.frontends import PtxSource, TritonLaunch, load_kernel, read_source, select_entry, split_kernel
from warpproof.judge import Report
from warpproof.machine import Outcome, emulate
from warpproof.proving import Task
from warpproof.proving import prove as prove_task
from warpproof.ptx import Kernel, parse, resolve
from warpproof.reference import Launch, load_contract, load_launch, load_spec

Progress = Callable[[str], None]
MAX_BUNDLE_BYTES: Final = 512 << 20
SPARSE_STEPS: Final = 200_000
# The engine's own deadline comes first, so that what it has found by then is reported and not lost with the child.
_SHARE: Final = 0.85
_RESERVE_S: Final = 3.0


def silent(stage: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be proved: a contract file, or a spec, a kernel and a launch file; and how.

    `kernel` beside a contract replaces the one the contract names. Paths are as the user wrote them.
    """

    contract: str | None = None
    spec: str | None = None
    kernel: str | None = None
    launch: str | None = None
    kernel_name: str | None = None
    arch: str | None = None
    options: tuple[str, ...] = ()
    timeout_s: float = 100.0
    seed: int = 0
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """A job read in: launch, reference, PTX and the kernel of each launch. `label` names it in reports."""

    launch: Launch
    reference: Callable[..., Mapping[str, Any]]
    source: PtxSource
    kernels: tuple[Kernel, ...]
    label: str

    @property
    def kernel(self) -> Kernel:
        """The kernel of the first launch."""
        return self.kernels[0]


def load(job: Job, on_stage: Progress = silent) -> Problem:
    """Read the contract or spec and launch, compile the kernel if it is source; InputError for whatever is wrong."""
    on_stage("reading the contract")
    launch, reference, path, name = _parts(job)
    on_stage(f"reading {path.name}" if path.suffix == ".ptx" else f"compiling {path.name}")
    options = (*launch.options.options, *job.options)
    source = load_kernel(path, name, job.arch or launch.sm, options, _specialisation(launch))
    module = parse(source.text, source.file)
    names = [source.kernel, *(select_entry(source.text, s.kernel, source.file) for s in launch.steps[1:])]
    kernels = tuple(resolve(module, n) for n in names)
    return Problem(launch, reference, source, kernels, f"{path.name}::{'+'.join(names)}")


def _specialisation(launch: Launch) -> TritonLaunch:
    """What a front end that specialises kernels has to know of the launch."""
    given = launch.options
    counts = {"num_warps": given.num_warps, "num_stages": given.num_stages, "num_ctas": given.num_ctas}
    return TritonLaunch(
        tuple((p.name, p.dtype, p.kind.startswith("ptr")) for p in launch.params if p.kind != "ptr_null"),
        given.constexprs, given.divisible_by_16, {k: v for k, v in counts.items() if v is not None},
    )


def _parts(job: Job) -> tuple[Launch, Callable[..., Mapping[str, Any]], Path, str | None]:
    given, named = split_kernel(job.kernel) if job.kernel else (None, None)
    if job.contract is not None:
        file, _, which = job.contract.partition("::")
        contract = load_contract(file, which or None)
        path = contract.kernel_path if given is None else Path(given)
        name = job.kernel_name or named or contract.kernel_name
        return contract.launch, contract.reference, path, name
    if given is None or job.spec is None or job.launch is None:
        raise InputError("CLI601", "give a contract, or all of spec, kernel and launch")
    launch = load_launch(Path(job.launch))
    return launch, load_spec(job.spec), Path(given), job.kernel_name or named or launch.kernel or None


def prove(job: Job, on_stage: Progress = silent) -> Report:
    """The report on the job's kernel; InputError for input that cannot be used, Unsupported where nothing is known."""
    began = time.monotonic()
    problem = load(job, on_stage)
    seconds = max(1.0, job.timeout_s * _SHARE - _RESERVE_S - (time.monotonic() - began))
    source = problem.source
    task = Task(problem.kernel, problem.launch, problem.reference, source.text, source.file, source.sources, seconds,
                job.seed, problem.kernels[1:])
    report = prove_task(task, on_stage)
    ledger = Ledger()
    if source.origin.startswith("triton"):
        ledger.use("kernel-file-executed", "compiling the kernel ran its Python file; what was proved is the PTX it "
                   "gave", "Triton kernels are built by Python")
    report = replace(report, assumptions=(*report.assumptions, *(a for a, _ in ledger.items())))
    return replace(report, kernel=problem.label, time_s=time.monotonic() - began, peak_mb=_peak_mb())


def run(job: Job, on_stage: Progress = silent) -> dict[str, Any]:
    """One bit-exact run at the contract's sample sizes with random inputs, compared with the reference."""
    problem = load(job, on_stage)
    if job.sample >= max(1, problem.launch.examples):
        raise InputError("RUN802", f"there is no sample {job.sample}; the contract has {problem.launch.examples}",
                         hint="give sample values in `sizes`, or examples=… of a Size")
    sizes = problem.launch.example(job.sample) if problem.launch.examples else {}
    return _run(problem, sample_call(problem.launch, sizes, job.seed), on_stage)


def replay(file: str, on_stage: Progress = silent) -> dict[str, Any]:
    """The run of a saved counterexample against the kernel as it is now."""
    bundle = _bundle(Path(file))
    job, found = bundle["job"], bundle["report"]["counterexample"]
    names = ("contract", "spec", "kernel", "launch", "kernel_name", "arch")
    if any(not isinstance(job.get(n), str | None) for n in names) or not isinstance(job.get("options", []), list):
        raise InputError("CLI600", f"{file!r}: `job` is not one that `prove --save` wrote")
    problem = load(Job(**{n: job.get(n) for n in names}, options=tuple(job.get("options", []))), on_stage)
    if found.get("sparse"):
        return _run_sparse(problem, found, on_stage)
    schedule = found.get("schedule", "min-pc")
    return _run(problem, restore_call(problem.launch, found), on_stage, str(schedule))


def _bundle(path: Path) -> dict[str, Any]:
    """A saved counterexample: an object with `job` and `report.counterexample` objects, else CLI600."""
    try:
        data = json.loads(read_source(path, MAX_BUNDLE_BYTES))
        fits = data["schema"] == 1 and isinstance(data["job"], dict) and isinstance(data["report"], dict)
        fits = fits and isinstance(data["report"]["counterexample"], dict)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError("CLI600", f"{str(path)!r} is not a saved counterexample: {str(error)[:200]}",
                         hint="write one with `warpproof prove … --save FILE`") from None
    if not fits:
        raise InputError("CLI600", f"{str(path)!r} holds no counterexample")
    return dict(data)


def _run(problem: Problem, call: Call, on_stage: Progress, schedule: str = "min-pc") -> dict[str, Any]:
    on_stage("running")
    outcome = run_call(problem.kernels, call, schedule=schedule)
    on_stage("comparing")
    differences = compare(call, outcome, expected_outputs(call, problem.reference)) if outcome.completed else ()
    setting = {key: value for key, value in describe_call(call).items() if key != "inputs"}
    return _outcome(problem, outcome, setting, differences)


def _run_sparse(problem: Problem, found: Mapping[str, Any], on_stage: Progress) -> dict[str, Any]:
    """Some CTAs of a launch too large to store, uniform inputs: only faults count, values are not compared."""
    sizes, ctas = found.get("sizes"), found.get("ctas")
    if not isinstance(sizes, dict) or set(sizes) != set(problem.launch.sizes) or not isinstance(ctas, list):
        raise InputError("CLI600", "the counterexample has no sizes and CTAs of this launch")
    triples = [tuple(c) for c in ctas if isinstance(c, list) and len(c) == 3]
    if len(triples) != len(ctas) or any(type(v) is not int for v in (*sizes.values(), *sum(triples, ()))):
        raise InputError("CLI600", "the sizes and CTAs of the counterexample are not integers")
    if not problem.launch.check_preconditions(sizes):
        raise InputError("CLI600", "the sizes of the counterexample do not meet the preconditions")
    on_stage("running")
    launch, _ = sparse_launch(problem.launch, sizes, found.get("contents", "least"))
    outcome = emulate(problem.kernels[0], launch, ctas=triples, step_limit=SPARSE_STEPS)
    setting = {"sizes": sizes, "grid": list(launch.grid), "block": list(launch.block), "ctas": ctas}
    return _outcome(problem, outcome, setting, ())


def _outcome(problem: Problem, outcome: Outcome, setting: Mapping[str, Any], differences: Sequence[Difference]
             ) -> dict[str, Any]:
    source = problem.source
    findings = [describe_finding(f, source.text, source.file, source.sources) for f in outcome.findings]
    agrees = outcome.completed and not findings and all(d.mismatched == 0 for d in differences)
    return {
        "schema": 1, "kernel": problem.label, "agrees": agrees, "completed": outcome.completed, "steps": outcome.steps,
        **setting, "outputs": [describe_difference(d) for d in differences], "findings": findings,
        "notes": list(outcome.notes),
    }


def _peak_mb() -> float:
    """The largest resident set of this process and of its largest child so far (Linux counts KiB)."""
    usage = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(usage) / 1024
