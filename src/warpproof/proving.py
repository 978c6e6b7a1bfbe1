"""From a kernel, a launch and a reference to a report: prove for all sizes, else look for a run that refutes."""

from __future__ import annotations

import operator
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from warpproof.algebra import Undefined, evaluate
from warpproof.core import Advice, Claim, InputError, Ledger, Reason, Status, Unsupported, Verdict, worst
from warpproof.counterexample import MENU, Refutation, Search, describe_call, describe_difference, describe_finding
from warpproof.equivalence import GRID_LIMITS, Outcome, Pipeline, redundant
from warpproof.judge import Fallback, PropertyResult, Report, judge, restrict
from warpproof.ptx import Kernel
from warpproof.reference import Launch, SymbolicLaunch, dtype_range
from warpproof.safety import weak_uses
from warpproof.terms import Arena

Stage = Callable[[str], None]
_Attempt = tuple[list[Claim], list[Mapping[str, Any]], Outcome | None]
_Properties = dict[str, PropertyResult | None]
_SEARCH_SHARE: Final = 0.45
_FALLBACK_SHARE: Final = 0.65  # of the time, kept for the search and the check sizes where there are some
_FALLBACK_SEARCH_SHARE: Final = 0.2
_SANITY_RUNS: Final = 3
_TRIES: Final = 2000
_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}
_BOUND: Final = re.compile(r"(\w+) (>=|<=) (\d{1,40})(?: \*\* (\d{1,3}))?")


class Disagreement(Exception):
    """A proof and a concrete run contradict each other: an internal error, never a verdict."""


@dataclass(frozen=True, slots=True)
class Task:
    """A kernel to be proved, with `later` those of the launches that follow.

    `ptx`, `file` and `sources` are quoted in counterexamples; `seconds` bounds the work.
    """

    kernel: Kernel
    launch: Launch
    reference: Callable[..., Mapping[str, Any]]
    ptx: str
    file: str
    sources: Mapping[str, str]
    seconds: float = 60.0
    seed: int = 0
    later: tuple[Kernel, ...] = ()

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels of all launches, in order."""
        return self.kernel, *self.later

    def place(self, index: int) -> str:
        """An instruction for messages, by PTX line and, if known, source line."""
        ins = self.kernel.code[index]
        source = f" ({ins.source[0]}:{ins.source[1]})" if ins.source else ""
        return f"PTX line {ins.span.line} `{ins.opcode}`{source}"


def prove(task: Task, on_stage: Stage) -> Report:
    """The report on one kernel. Raises `Disagreement` when a proved kernel fails on a sample run."""
    began = time.monotonic()
    scope = scope_of(task.launch)
    ledger = Ledger()
    share = _SEARCH_SHARE if not task.launch.check_sizes else _FALLBACK_SEARCH_SHARE
    first = began + task.seconds * (1 - (_SEARCH_SHARE if not task.launch.check_sizes else _FALLBACK_SHARE))
    claims, hints, outcome = _symbolic(task, first, on_stage, ledger)
    claims.append(_admits_something(task.launch))
    refutation = None
    proved = all(c.status is Status.SHOWN for c in claims)
    if proved:
        on_stage("sample runs")
        _sanity(task, began)
    else:
        on_stage("looking for a counterexample")
        deadline = time.monotonic() + max(5.0, share * task.seconds)
        refutation = Search(task.kernels, task.launch, task.reference, deadline, hints).run()
    advice = _advice(task, outcome, began) if outcome and proved else ()
    properties = judge(claims, scope, *_refuted(task, refutation))
    fallback = None
    if refutation is None and not proved and task.launch.check_sizes:
        properties, fallback = _at_check_sizes(task, properties, began, on_stage, ledger)
        scope = scope_at(task.launch) if fallback.shown else scope
    _standing_assumptions(ledger)
    cex = describe(task, refutation) if refutation else None
    return Report(task.kernel.name, _overall(properties), properties, tuple(a for a, _ in ledger.items()), cex, None,
                  time.monotonic() - began, sizes=scope, advice=advice, fallback=fallback)


def _at_check_sizes(
    task: Task, general: _Properties, began: float, on_stage: Stage, ledger: Ledger,
) -> tuple[_Properties, Fallback]:
    """The verdicts completed by proofs for the check sizes, each with an attempt and sample runs of its own."""
    rows, scope = task.launch.check_sizes, scope_at(task.launch)
    cases = []
    for k, row in enumerate(rows):
        on_stage(f"proving for {_named(row)}")
        now = time.monotonic()
        deadline = now + max(1.0, (began + task.seconds - now) / (len(rows) - k))
        case = replace(task, launch=task.launch.at(row))
        claims = [*_symbolic(case, deadline, on_stage, ledger)[0], _admits_something(case.launch)]
        if all(c.status is Status.SHOWN for c in claims):
            _sanity(case, began)
        cases.append(judge(claims, scope))
    out = restrict(general, cases, scope)
    shown = tuple(n for n, r in out.items() if r is not general[n] and r is not None and r.verdict is Verdict.PROVED)
    reasons = [r.detail for r in general.values() if r is not None and r.verdict is not Verdict.PROVED]
    return out, Fallback(rows, reasons[0] if reasons else "", shown)


def _symbolic(task: Task, deadline: float, on_stage: Stage, ledger: Ledger) -> _Attempt:
    """Claims of the symbolic attempt, and concrete cases its open claims suggest."""
    text, reason = "the kernel and its reference can be analysed for all sizes", Reason.UNSUPPORTED
    try:
        on_stage("executing symbolically")
        pipeline = Pipeline(task.kernels, task.launch, task.reference, deadline)
        outcome = pipeline.attempt()
        if not pipeline.meaningful:
            ledger.use("constant-reference", "the reference does not depend on its inputs", "non-vacuity check")
        for assumption, places in outcome.ledger.items():
            for place in places or ("",):
                ledger.use(assumption.name, assumption.text, assumption.source, place)
    except InputError as missing:
        if missing.code != "REF241" or not task.launch.check_sizes:
            raise
        why, reason = f"{missing.message} ({missing.hint})", Reason.NEEDS_PRECONDITION
    except (Unsupported, RecursionError) as stuck:
        why = _described(stuck)
    else:
        cases = [c.data["case"] for c in outcome.claims if c.status is not Status.SHOWN and "case" in c.data]
        completed = task.launch.symbolic(Arena(1)).completed
        hints: list[Mapping[str, Any]] = [{**c, "sizes": completed(c["sizes"])} for c in cases]
        return outcome.claims, hints, outcome
    return [Claim("conditions", text, Status.OPEN, reason=reason, hint=why)], [], None


def _described(stuck: Unsupported | RecursionError) -> str:
    if isinstance(stuck, RecursionError):
        return "its terms are nested too deeply"
    at = f" ({Path(stuck.span.file).name}:{stuck.span.line})" if stuck.span is not None and stuck.span.file else ""
    return f"{stuck}{at}"


def _refuted(task: Task, found: Refutation | None) -> tuple[Mapping[str, str], Mapping[str, Reason]]:
    """What a run contradicts, with the weak loads that are to blame for its races."""
    if found is None:
        return {}, {}
    uses = weak_uses(task.kernel, found.findings) if "races" in found.properties and not task.later else []
    if not uses:
        return found.properties, {}
    text = "\n".join(f"{task.place(use.instruction)}: {use.why}; {use.repair}" for use in uses)
    return {**found.properties, "races": f"{found.properties['races']}\n{text}"}, {"races": Reason.WEAK_SYNC}


def _advice(task: Task, outcome: Outcome, began: float) -> tuple[Advice, ...]:
    """What a proved kernel could do without, if that is cheap to find out."""
    if task.later:
        return ()
    end = began + task.seconds
    needed = Search(task.kernels, task.launch, task.reference, end).needed
    steps, left = outcome.figures["steps"], end - time.monotonic()
    return tuple(redundant(task.kernel, task.launch, outcome.executed, steps, left, needed))


def _admits_something(launch: Launch) -> Claim:
    """Preconditions that no size, element or scalar satisfies would make every claim true."""
    text = "some sizes and inputs satisfy the preconditions"
    names = list(launch.sizes)
    rng = np.random.default_rng(0)
    tries = [launch.example(i) for i in range(launch.examples)] + [dict.fromkeys(names, k) for k in MENU]
    tries += [{n: int(rng.choice(MENU)) for n in names} for _ in range(_TRIES)]
    hint = "no sample in `sizes` satisfies all preconditions, nor does any size tried"
    arena = Arena(1)
    try:
        made = launch.symbolic(arena)
    except Unsupported as stuck:
        return Claim("conditions", text, Status.OPEN, reason=Reason.UNSUPPORTED, hint=str(stuck))
    if not _scalars_exist(made):
        return Claim("conditions", text, Status.OPEN, reason=Reason.NEEDS_PRECONDITION,
                     hint="no float scalar satisfies the preconditions")
    for sizes in [row | dict(launch.fixed) for row in tries] if names else [{}]:
        try:
            if launch.check_preconditions(sizes):
                if any(n > most for stage in launch.stages()
                       for n, most in zip(stage.concrete(sizes).grid, GRID_LIMITS, strict=True)):
                    hint = "at all sizes tried the grid is larger than a device admits"
                    continue
                if _elements_exist(arena, made, sizes):
                    return Claim("conditions", text, Status.SHOWN, "witness", data={"sizes": sizes})
                hint = "the ranges of some integer data are empty at all sizes tried"
        except (InputError, ArithmeticError, Undefined):
            continue
    return Claim("conditions", text, Status.OPEN, reason=Reason.NEEDS_PRECONDITION, hint=hint)


def _elements_exist(arena: Arena, made: SymbolicLaunch, sizes: Mapping[str, int]) -> bool:
    """Every integer buffer with elements has values that its range admits."""
    values = made.assignment(sizes)
    for b in made.buffers.values():
        if b.range is None or evaluate(arena, b.count, values, 0) <= 0:
            continue
        low, past = (None if p is None else evaluate(arena, p, values, 0) for p in b.range)
        least, most = arena.elements.get((b.name, 0), (None, None))
        low = max((v for v in (low, least) if v is not None), default=None)
        past = min((v for v in (past, None if most is None else most + 1) if v is not None), default=None)
        if low is not None and past is not None and low >= past:
            return False
    return True


def _scalars_exist(made: SymbolicLaunch) -> bool:
    """For every float scalar some number satisfies its comparisons with constants."""
    for name in made.scalars:
        facts = [f for f in made.float_facts if f.name == name]
        ends = sorted({f.value for f in facts})
        tries = [*ends, *(v - 1 for v in ends), *(v + 1 for v in ends), *((v + w) / 2 for v, w in pairwise(ends))]
        if facts and not any(all(_COMPARE[f.op](v, f.value) for f in facts) for v in tries):
            return False
    return True


def _overall(properties: Mapping[str, PropertyResult | None]) -> Verdict:
    return worst(p.verdict for p in properties.values() if p is not None)


def _sanity(task: Task, began: float) -> None:
    """A proved kernel must agree with the reference on sample runs, or the proof is not to be trusted."""
    search = Search(task.kernels, task.launch, task.reference, time.monotonic() + 5.0, (), limit=_SANITY_RUNS)
    found = search.run()
    if found is not None:
        what = "; ".join(f"{k}: {v}" for k, v in found.properties.items())
        raise Disagreement(f"proved, but a run at {dict(found.call.sizes)} shows {what}")


def _standing_assumptions(ledger: Ledger) -> None:
    ledger.use("reals", "values are reals; rounding, overflow and NaN are the numerics property's business",
               "the verdict's definition")
    ledger.use("finite-inputs", "float inputs are finite", "the launch manifest's reading")
    ledger.use("disjoint-buffers", "buffers do not overlap and are 256-byte aligned", "the launch manifest's reading")


def scope_of(launch: Launch) -> str:
    """The admitted sizes in words, bounds of one name put together: `for all 1 <= n <= 2**30 with n % 4 == 0`."""
    if not launch.sizes:
        return "for the one launch described"
    bounds: dict[str, list[int | None]] = {name: [None, None] for name in launch.sizes}
    others: list[str] = []
    for p in launch.preconditions:
        match = _BOUND.fullmatch(p.text)
        side = match is not None and match[2] == "<="
        if match is not None and match[1] in bounds and bounds[match[1]][side] is None:
            bounds[match[1]][side] = int(match[3]) ** int(match[4] or 1)
        else:
            others.append(p.text)
    for scalar in launch.params:  # a size that is passed is one that its type holds
        if scalar.name in bounds and scalar.is_integer and not scalar.is_buffer:
            stated, most = bounds[scalar.name][1], dtype_range(scalar.dtype)[1]
            bounds[scalar.name][1] = most if stated is None else min(stated, most)
    sizes = ", ".join(
        ("" if low is None else f"{_short(low)} <= ") + name + ("" if high is None else f" <= {_short(high)}")
        for name, (low, high) in bounds.items())
    return f"for all {sizes}" + (f" with {', '.join(others)}" if others else "")


def scope_at(launch: Launch) -> str:
    """The check sizes in words: `only for n = 128, rows = 4; for R = 3 and all 1 <= n <= 2**30`."""
    parts = []
    for row in launch.check_sizes:
        rest = {n: v for n, v in launch.sizes.items() if n not in row}
        others = [p for p in launch.preconditions if p.names & set(rest)]
        more = scope_of(replace(launch, sizes=rest, preconditions=tuple(others))).removeprefix("for ") if rest else ""
        parts.append(f"for {_named(row)}" + (f" and {more}" if more else ""))
    return "only " + "; ".join(parts)


def _named(row: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in row.items())


def _short(number: int) -> str:
    """From 1024 on, a power of two as `2**k`, and what is one less as `2**k - 1`."""
    for less in (0, 1):
        if number >= 1024 and (number + less) & (number + less - 1) == 0:
            return f"2**{(number + less).bit_length() - 1}" + " - 1" * less
    return str(number)


def describe(task: Task, found: Refutation) -> dict[str, Any]:
    """The counterexample of a report: the call, what differs, the faults, and how to replay it."""
    out: dict[str, Any] = {} if found.contents else describe_call(found.call)
    if found.contents:
        out |= {"sizes": dict(found.call.sizes), "contents": found.contents}
    out |= {"property": next(iter(found.properties)), "summary": next(iter(found.properties.values())),
            "schedule": found.schedule}
    if found.ctas is not None:
        out["ctas"] = [list(c) for c in found.ctas]
        out["sparse"] = True
    wrong = [d for d in found.differences if d.mismatched]
    if wrong:
        out |= describe_difference(wrong[0])
    shown = [describe_finding(f, task.ptx, task.file, task.sources) for f in found.findings[:4]]
    if shown:
        out["findings"] = shown
        out["accesses"] = shown[0]["accesses"]
    return out


__all__ = ["Disagreement", "InputError", "Task", "describe", "prove", "scope_of"]
