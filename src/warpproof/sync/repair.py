"""The weakest repair: the least strengthening of accesses and fences after which the outcome is forbidden."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from warpproof.sync.analysis import LIMIT_S, explore, find, question
from warpproof.sync.model import LATEST, Model, Scope
from warpproof.sync.printing import instruction_text
from warpproof.sync.program import (
    ALIAS,
    GENERIC,
    Atomic,
    Fence,
    Instruction,
    Litmus,
    Load,
    Operation,
    ProxyFence,
    Store,
)

MAX_CHECKS: Final = 3_000
MAX_EDITS: Final = 3
_FENCE_COST: Final = 4
_STEPS: Final = {"weak": 0, "relaxed": 1, "acquire": 2, "release": 2, "acq_rel": 3, "sc": 5}


@dataclass(frozen=True, slots=True)
class Edit:
    """One change: at `instruction` of `thread` put `after`; `before` is empty where a fence is inserted before it.

    `cost` counts the steps weak, relaxed, acquire or release, acq_rel, and one for each wider scope; a fence put in
    costs 4, one more for each scope and two more for `sc`.
    """

    thread: int
    instruction: int
    before: str
    after: str
    operation: Operation
    cost: int

    @property
    def inserts(self) -> bool:
        """Whether it puts in a fence."""
        return not self.before


@dataclass(frozen=True, slots=True)
class Repair:
    """A set of edits of least cost among those tried, in order of place; `checks` counts the sets tried.

    `bounded` says that loops were cut off, so that the outcome is forbidden only up to there.
    """

    edits: tuple[Edit, ...]
    cost: int
    checks: int
    bounded: bool


def find_repair(test: Litmus, model: Model = LATEST, limit_s: float = LIMIT_S) -> Repair | None:
    """The cheapest set of at most three edits that forbids the test's outcome, or None if none was found.

    Sets are tried in order of cost, so what is found is least among edits of these kinds; the search gives up after
    3000 sets. The outcome is the test's condition, or its negation under `forall`.
    """
    deadline = time.monotonic() + limit_s
    edits = sorted(_edits(test, model), key=lambda e: (e.cost, e.inserts, e.thread, e.instruction, e.after))
    heap: list[tuple[int, int, tuple[int, ...]]] = [(e.cost, 1, (i,)) for i, e in enumerate(edits)]
    heapq.heapify(heap)
    checks = 0
    while heap and checks < MAX_CHECKS:
        cost, count, chosen = heapq.heappop(heap)
        if count < MAX_EDITS:
            for i in range(chosen[-1] + 1, len(edits)):
                if not any(_same_place(edits[i], edits[j]) for j in chosen):
                    heapq.heappush(heap, (cost + edits[i].cost, count + 1, (*chosen, i)))
        checks += 1
        picked = [edits[i] for i in chosen]
        witness, space = find(apply(test, picked), model, question(test), deadline - time.monotonic())
        if witness is None:
            ordered = tuple(sorted(picked, key=lambda e: (e.thread, e.instruction, not e.inserts)))
            return Repair(ordered, cost, checks, space.bounded)
    return None


def _same_place(a: Edit, b: Edit) -> bool:
    return (a.thread, a.instruction, a.inserts) == (b.thread, b.instruction, b.inserts)


def apply(test: Litmus, edits: list[Edit] | tuple[Edit, ...]) -> Litmus:
    """The test with the edits made."""
    threads = []
    for t, thread in enumerate(test.threads):
        code: list[Instruction] = []
        for i, instruction in enumerate((*thread.instructions, None)):
            mine = [e for e in edits if (e.thread, e.instruction) == (t, i)]
            code += [Instruction(e.operation, e.after) for e in mine if e.inserts]
            changed = [Instruction(e.operation, e.after, instruction.span) for e in mine
                       if not e.inserts and instruction is not None]
            code += changed or ([instruction] if instruction is not None else [])
        threads.append(replace(thread, instructions=tuple(code)))
    return replace(test, threads=tuple(threads))


def _scopes(test: Litmus, model: Model) -> list[Scope]:
    """The scopes that differ in which of the test's threads they join, narrowest first."""
    kept: dict[tuple[tuple[bool, ...], ...], Scope] = {}
    for scope in Scope:
        if scope is not Scope.CLUSTER or model.clusters:
            groups = [t.group(scope) for t in test.threads]
            kept.setdefault(tuple(tuple(g == h for h in groups) for g in groups), scope)
    return sorted(kept.values())


def _edits(test: Litmus, model: Model) -> Iterator[Edit]:
    scopes = _scopes(test, model)
    proxies = {e.proxy for per in explore(test, model).paths for p in per for e in p.events} - {GENERIC, ALIAS}
    aliases = any(v.alias_of and v.proxy == GENERIC for v in test.variables)
    inserted: list[tuple[int, Operation]] = []
    for rank, scope in enumerate(scopes):
        inserted += [(_FENCE_COST + rank, Fence("acq_rel", scope)), (_FENCE_COST + 2 + rank, Fence("sc", scope))]
    if model.proxies:
        inserted += [(_FENCE_COST, ProxyFence(p)) for p in sorted(proxies) + [ALIAS] * aliases]
    for t, thread in enumerate(test.threads):
        for i, instruction in enumerate(thread.instructions):
            for cost, operation in _stronger(instruction.operation, scopes):
                yield Edit(t, i, instruction.text, instruction_text(operation), operation, cost)
        for i in range(1, len(thread.instructions)):
            yield from (Edit(t, i, "", instruction_text(o), o, cost) for cost, o in inserted)


def _stronger(operation: Operation, scopes: list[Scope]) -> Iterator[tuple[int, Operation]]:
    match operation:
        case Load() | Store() | Atomic():
            if operation.proxy != GENERIC:
                return
            sems = {Load: ("relaxed", "acquire"), Store: ("relaxed", "release"),
                    Atomic: ("relaxed", "acquire", "release", "acq_rel")}[type(operation)]
            if isinstance(operation, Atomic) and operation.destination is None:
                sems = ("relaxed", "release")
        case Fence():
            sems = ("acq_rel", "sc")
        case _:
            return
    start = _rank(operation.scope, scopes)
    for sem in sems:
        for scope in scopes:
            step = _STEPS[sem] - _STEPS[operation.sem]
            wider = _rank(scope, scopes) - start
            crosses = {operation.sem, sem} == {"acquire", "release"}
            narrower = operation.scope is not None and scope < operation.scope
            if step >= 0 and wider >= 0 and step + wider > 0 and not crosses and not narrower:
                yield step + wider, replace(operation, sem=sem, scope=scope)


def _rank(scope: Scope | None, scopes: list[Scope]) -> int:
    return 0 if scope is None else sum(s <= scope for s in scopes) - 1
