"""The pipeline, from a job to a report."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

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
from warpproof.frontends import Job, PtxSource, Question, Request, read_job, read_source, select_entry
from warpproof.judge import Report
from warpproof.machine import Outcome, emulate
from warpproof.proving import Task
from warpproof.proving import prove as prove_task
from warpproof.ptx import Kernel, parse, resolve
from warpproof.reference import Launch, check_signature

T = TypeVar("T")
Progress = Callable[[str], None]
MAX_BUNDLE_BYTES: Final = 512 << 20
SPARSE_STEPS: Final = 200_000
# The engine's own deadline comes first, so that what it has found by then is reported and not lost with the child.
_SHARE: Final = 0.85
_RESERVE_S: Final = 3.0


def silent(stage: str) -> None:
    """Report no progress."""


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


class Plan(Generic[T]):
    """A job whose own files were read: the kernel it asks for, and what is done once there is its PTX."""

    def __init__(self, request: Request, finish: Callable[[PtxSource, Progress], T]) -> None:
        self.request, self.finish = request, finish

    def now(self, on_stage: Progress) -> T:
        """Load the kernel in this process and finish."""
        path = Path(self.request.path)
        on_stage(f"reading {path.name}" if path.suffix == ".ptx" else f"compiling {path.name}")
        return self.finish(self.request.load(), on_stage)


def load(job: Job, on_stage: Progress = silent) -> Problem:
    """Read the contract or spec and launch, compile the kernel if it is source; InputError for whatever is wrong."""
    question = _read(job, on_stage)
    return Plan(question.request, lambda source, _: _problem(question, source)).now(on_stage)


def _read(job: Job, on_stage: Progress) -> Question:
    on_stage("reading the contract")
    return read_job(job)


def _problem(question: Question, source: PtxSource) -> Problem:
    module, steps = parse(source.text, source.file), question.launch.steps
    names = [source.kernel, *(select_entry(source.text, s.kernel, source.file) for s in steps[1:])]
    kernels = tuple(resolve(module, n) for n in names)
    for kernel, launch in zip(kernels, question.launch.stages(), strict=True):
        check_signature(kernel, launch)
    label = f"{Path(question.request.path).name}::{'+'.join(names)}"
    return Problem(question.launch, question.reference, source, kernels, label)


def prove(job: Job, on_stage: Progress = silent) -> Report:
    """The report on the job's kernel; InputError for input that cannot be used, Unsupported where nothing is known."""
    return plan_prove(job, on_stage).now(on_stage)


def run(job: Job, on_stage: Progress = silent) -> dict[str, Any]:
    """One bit-exact run at the contract's sample sizes with random inputs, compared with the reference."""
    return plan_run(job, on_stage).now(on_stage)


def replay(file: str, on_stage: Progress = silent) -> dict[str, Any]:
    """The run of a saved counterexample against the kernel as it is now."""
    return plan_replay(file, on_stage).now(on_stage)


def plan_prove(job: Job, on_stage: Progress = silent, question: Question | None = None) -> Plan[Report]:
    """`prove` in two steps."""
    began = time.monotonic()
    question = question or _read(job, on_stage)
    return Plan(question.request, lambda source, stage: _prove(job, _problem(question, source), stage, began))


def plan_run(job: Job, on_stage: Progress = silent, question: Question | None = None) -> Plan[dict[str, Any]]:
    """`run` in two steps."""
    question = question or _read(job, on_stage)
    launch = question.launch
    if job.sample >= max(1, launch.examples):
        raise InputError("RUN802", f"there is no sample {job.sample}; the contract has {launch.examples}",
                         hint="give sample values in `sizes`, or examples=… of a Size")
    sizes = launch.example(job.sample) if launch.examples else {}
    return Plan(question.request, lambda source, stage: _run(
        _problem(question, source), sample_call(launch, sizes, job.seed), stage))


def plan_replay(file: str, on_stage: Progress = silent) -> Plan[dict[str, Any]]:
    """`replay` in two steps."""
    bundle = _bundle(Path(file))
    job, found = bundle["job"], bundle["report"]["counterexample"]
    names = ("contract", "spec", "kernel", "launch", "kernel_name", "arch")
    if any(not isinstance(job.get(n), str | None) for n in names) or not isinstance(job.get("options", []), list):
        raise InputError("CLI600", f"{file!r}: `job` is not one that `prove --save` wrote")
    question = _read(Job(**{n: job.get(n) for n in names}, options=tuple(job.get("options", []))), on_stage)
    return Plan(question.request, lambda source, stage: _replay(_problem(question, source), found, stage))


def _prove(job: Job, problem: Problem, on_stage: Progress, began: float) -> Report:
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


def _replay(problem: Problem, found: Mapping[str, Any], on_stage: Progress) -> dict[str, Any]:
    if found.get("sparse"):
        result = _run_sparse(problem, found, on_stage)
    else:
        schedule = found.get("schedule", "min-pc")
        result = _run(problem, restore_call(problem.launch, found), on_stage, str(schedule))
    return {**result, "replay": _reproduced(result, found)}


def _reproduced(result: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """`same`: each fault and the worst element are bit for bit as saved; `gone`: nothing fails; else `changed`."""
    if result["completed"] and not result["findings"] and not any(d["mismatched"] for d in result["outputs"]):
        return "gone"
    findings = found.get("findings", [])
    same = isinstance(findings, list) and all(f in result["findings"] for f in findings)
    if "output" in found:
        same = same and any(all(found.get(k) == v for k, v in output.items()) for output in result["outputs"])
    return "same" if same and (findings or "output" in found) else "changed"


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
    agrees: bool | None = outcome.completed and not findings and all(d.mismatched == 0 for d in differences)
    if agrees and not differences:
        agrees = None  # no fault, but no output was compared
    return {
        "schema": 1, "kernel": problem.label, "agrees": agrees, "completed": outcome.completed, "steps": outcome.steps,
        **setting, "outputs": [describe_difference(d) for d in differences], "findings": findings,
        "notes": list(outcome.notes),
    }


def _peak_mb() -> float:
    """The largest resident set of this process and of its largest child so far (Linux counts KiB)."""
    usage = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(usage) / 1024
