"""Everything said about one litmus test, as data for JSON and as lines of text."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from warpproof.sync.analysis import LIMIT_S, Answer, Outcome, Race, check, find_race, outcomes
from warpproof.sync.drawing import arrows
from warpproof.sync.execution import Execution
from warpproof.sync.model import LATEST, Model
from warpproof.sync.printing import condition_text, event_text, term_text
from warpproof.sync.program import Litmus
from warpproof.sync.repair import Repair, find_repair
from warpproof.sync.waiting import Hang, find_hang, weak_polls


@dataclass(frozen=True, slots=True)
class Result:
    """The answers about one test. Parts that were not asked for are None; `race_bounded` is for "no race found"."""

    test: Litmus
    model: Model
    answer: Answer
    race: Race | None
    race_bounded: bool
    hang: Hang | None
    polls: tuple[tuple[int, int], ...]
    states: frozenset[Outcome] | None
    repair: Repair | None
    repair_asked: bool
    time_s: float


def evaluate(test: Litmus, model: Model = LATEST, *, states: bool = False, repair: bool = False,
             limit_s: float = LIMIT_S) -> Result:
    """The verdict, races and waiting of a test, on demand all outcomes and the weakest repair.

    Raises InputError or Unsupported as `check` does; each part may take `limit_s` seconds.
    """
    began = time.monotonic()
    answer = check(test, model, limit_s)
    race, race_bounded = find_race(test, model, limit_s)
    hang = find_hang(test, model, limit_s)
    found = outcomes(test, model, limit_s)[0] if states else None
    fix = find_repair(test, model, limit_s) if repair and answer.allowed else None
    return Result(test, model, answer, race, race_bounded, hang, weak_polls(test, model), found, fix,
                  repair and answer.allowed, time.monotonic() - began)


def _place(test: Litmus, place: tuple[int, int]) -> dict[str, Any]:
    thread = test.threads[place[0]]
    instruction = thread.instructions[place[1]] if thread.instructions else None
    line = instruction.span.line if instruction is not None and instruction.span else None
    return {"thread": thread.name, "instruction": instruction.text if instruction else "", "line": line}


def _execution(test: Litmus, execution: Execution) -> dict[str, Any]:
    frame = execution.frame
    events = [{"id": i, "thread": test.threads[frame.thread[i]].name if i >= frame.first else None,
               "text": event_text(execution, i)} for i in range(len(frame.events))]
    relations: dict[str, list[list[int]]] = {}
    for arrow in arrows(execution):
        relations.setdefault(arrow.relation, []).append([arrow.source, arrow.target])
    return {"events": events, "relations": relations}


def result_dict(result: Result) -> dict[str, Any]:
    """The result as one JSON object; see docs/memory-model.md for its fields."""
    test, answer = result.test, result.answer
    return {
        "schema": 1, "test": test.name, "model": result.model.name, "claim": claim_text(test),
        "allowed": answer.allowed, "validated": answer.validated if answer.conclusive else None,
        "bounded": answer.bounded, "rejected_by": list(answer.failed),
        "execution": _execution(test, answer.witness) if answer.witness else None,
        "race": {"between": [_place(test, result.race.first), _place(test, result.race.second)],
                 "execution": _execution(test, result.race.execution)} if result.race else None,
        "race_bounded": result.race_bounded,
        "hang": {"waits": [_place(test, w) for w in result.hang.waits],
                 "execution": _execution(test, result.hang.execution)} if result.hang else None,
        "weak_polls": [_place(test, p) for p in result.polls],
        "outcomes": None if result.states is None else sorted(
            ({term_text(test, t): v if isinstance(v, int) else str(v) for t, v in state} for state in result.states),
            key=lambda d: [str(v) for v in d.values()]),
        "repair": {"cost": result.repair.cost, "bounded": result.repair.bounded, "edits": [
            {"thread": test.threads[e.thread].name, "before": e.before, "after": e.after,
             "insert_before": _place(test, (e.thread, e.instruction))["instruction"] if e.inserts else None}
            for e in result.repair.edits]} if result.repair else None,
        "time_s": round(result.time_s, 4),
    }


def claim_text(test: Litmus) -> str:
    """The test's claim in the notation of litmus files."""
    return f"{test.quantifier} ({condition_text(test, test.condition)})"


def verdict_text(result: Result) -> str:
    """`allowed`, `forbidden`, or `forbidden up to the loop bound`; for `forall` about the claim's violation."""
    answer = result.answer
    if result.test.quantifier == "forall":
        yes, no = "violated", "holds"
    else:
        yes, no = "allowed", "forbidden"
    return yes if answer.allowed else no + ("" if answer.conclusive else " up to the loop bound")


def result_lines(result: Result) -> list[str]:
    """The result for people: a line with the verdict, then what there is to know, indented."""
    test, answer = result.test, result.answer
    lines = [f"{test.name}: {verdict_text(result)}   {claim_text(test)}   [model {result.model.name}]"]
    if not answer.allowed and answer.failed:
        lines.append(f"  rejected by: {', '.join(answer.failed)}")
    if answer.witness is not None:
        lines += _witness_lines(test, answer.witness)
    if result.race is not None:
        first, second = (_place(test, p) for p in (result.race.first, result.race.second))
        lines.append(f"  data race: {first['thread']} `{first['instruction']}` and {second['thread']} "
                     f"`{second['instruction']}`")
    elif result.race_bounded:
        lines.append("  no data race up to the loop bound")
    if result.hang is not None:
        places = [_place(test, w) for w in result.hang.waits]
        waits = ", ".join(f"{p['thread']} at `{p['instruction']}`" for p in places)
        lines.append(f"  may wait for ever: {waits}")
    lines += [f"  weak poll: {p['thread']} `{p['instruction']}` may be taken out of its loop; make it strong"
              for p in (_place(test, w) for w in result.polls)]
    if result.states is not None:
        lines.append(f"  outcomes: {len(result.states)}")
        lines += sorted("    " + "  ".join(f"{term_text(test, t)}={v}" for t, v in state) for state in result.states)
    if result.repair_asked:
        lines += _repair_lines(result)
    return lines


def _witness_lines(test: Litmus, execution: Execution) -> list[str]:
    frame = execution.frame
    lines = []
    for t, thread in enumerate(test.threads):
        steps = [event_text(execution, i) for i in range(frame.first, len(frame.events)) if frame.thread[i] == t]
        if steps:
            lines.append(f"  {thread.name}: {' ; '.join(steps)}")
    return lines


def _repair_lines(result: Result) -> list[str]:
    if result.repair is None:
        return ["  repair: none found among sets of three changes"]
    lines = ["  weakest repair" + (" (up to the loop bound):" if result.repair.bounded else ":")]
    for edit in result.repair.edits:
        place = _place(result.test, (edit.thread, edit.instruction))
        if edit.inserts:
            lines.append(f"    {place['thread']}: put `{edit.after}` before `{place['instruction']}`")
        else:
            lines.append(f"    {place['thread']}: `{edit.before}` -> `{edit.after}`")
    return lines
