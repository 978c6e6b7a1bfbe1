"""Barrier phases: which barrier operations meet, and whether a choice of phases can make progress.

Without a thread count, a thread's k-th operation on a barrier belongs to the barrier's k-th phase, and threads that
have ended no longer take part. With a thread count, every way to form phases of exactly that many threads is tried; a
thread left over passes late, after one of the phases, so that the state it would wait in counts as final.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Final

from warpproof.core import Unsupported
from warpproof.sync.events import Event, Kind

MAX_GROUPINGS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Meeting:
    """One way the barriers of an execution meet: pairs that synchronise, and whether a thread is left waiting."""

    edges: tuple[tuple[int, int], ...]
    left_over: bool = False


@dataclass(frozen=True, slots=True)
class Arrival:
    """A barrier operation: its event, thread, and place in its thread."""

    event: int
    thread: int
    position: int
    operation: Event


@dataclass(frozen=True, slots=True)
class _Phase:
    """The arrivals that make up a phase, and those that only pass once it is complete."""

    members: tuple[Arrival, ...]
    late: tuple[Arrival, ...] = ()


def meetings(groups: Sequence[tuple[tuple[object, ...], Event, int, int, int]]) -> list[Meeting]:
    """Every way in which the barrier operations may meet without a deadlock; empty if each way deadlocks.

    An entry is (barrier, operation, event number, thread, position in the thread), in program order per thread.
    """
    by_barrier: dict[tuple[object, ...], list[Arrival]] = {}
    for barrier, operation, event, thread, position in groups:
        by_barrier.setdefault(barrier, []).append(Arrival(event, thread, position, operation))
    choices: list[list[tuple[list[_Phase], bool]]] = []
    for arrivals in by_barrier.values():
        quorums = {a.operation.quorum for a in arrivals}
        if quorums == {None}:
            choices.append([(_by_occurrence(arrivals), False)])
            continue
        # Different counts on one barrier are undefined in PTX; no execution is given to them.
        quorum = next(iter(quorums))
        choices.append(list(_by_count(arrivals, quorum)) if len(quorums) == 1 and quorum is not None else [])
    found = []
    for choice in _product(choices):
        phases = [p for part, _ in choice for p in part]
        if not _deadlocks(phases):
            edges = tuple(e for p in phases for e in _edges(p))
            found.append(Meeting(edges, any(left for _, left in choice)))
    return found


def _product(choices: list[list[tuple[list[_Phase], bool]]]) -> Iterator[list[tuple[list[_Phase], bool]]]:
    if not choices:
        yield []
        return
    for head in choices[0]:
        for rest in _product(choices[1:]):
            yield [head, *rest]


def _by_occurrence(arrivals: list[Arrival]) -> list[_Phase]:
    phases: dict[int, list[Arrival]] = {}
    seen: dict[tuple[int, bool], int] = {}
    for arrival in arrivals:
        slot = (arrival.thread, arrival.operation.arrives)
        phases.setdefault(seen.get(slot, 0), []).append(arrival)
        seen[slot] = seen.get(slot, 0) + 1
    return [_Phase(tuple(p)) for p in phases.values()]


def _by_count(arrivals: list[Arrival], quorum: int) -> Iterator[tuple[list[_Phase], bool]]:
    """Phases of exactly `quorum` threads until fewer are left; nothing if not even one phase comes about."""
    queues: dict[int, tuple[Arrival, ...]] = {}
    for arrival in arrivals:
        queues[arrival.thread] = (*queues.get(arrival.thread, ()), arrival)
    if quorum < 1 or len(queues) < quorum:
        return
    seen: set[frozenset[frozenset[int]]] = set()
    stack: list[tuple[dict[int, tuple[Arrival, ...]], list[_Phase]]] = [(queues, [])]
    while stack:
        waiting, phases = stack.pop()
        if len(waiting) < quorum:
            key = frozenset(frozenset(a.event for a in p.members) for p in phases)
            if key not in seen:
                seen.add(key)
                yield from _with_late(phases, [a for q in waiting.values() for a in q])
            continue
        for members in combinations(sorted(waiting), quorum):
            rest = {t: q[1:] if t in members else q for t, q in waiting.items()}
            phase = _Phase(tuple(waiting[t][0] for t in members))
            stack.append(({t: q for t, q in rest.items() if q}, [*phases, phase]))
        if len(stack) > MAX_GROUPINGS:
            raise Unsupported("barrier", "too many ways for threads to meet at barriers with a thread count")


def _with_late(phases: list[_Phase], late: list[Arrival]) -> Iterator[tuple[list[_Phase], bool]]:
    for choice in product(range(len(phases)), repeat=len(late)):
        yield [replace(p, late=tuple(a for a, c in zip(late, choice, strict=True) if c == i))
               for i, p in enumerate(phases)], bool(late)


def _edges(phase: _Phase) -> Iterator[tuple[int, int]]:
    for a in phase.members:
        for b in (*phase.members, *phase.late):
            if a is not b and a.operation.arrives and a.operation.orders and b.operation.waits:
                yield a.event, b.event


def _deadlocks(phases: list[_Phase]) -> bool:
    """Whether some phase can only end after itself: a thread waits in A before it arrives in B, and so on to A."""
    after: dict[int, set[int]] = {i: set() for i in range(len(phases))}
    for i, first in enumerate(phases):
        for j, second in enumerate(phases):
            if any(a.thread == b.thread and a.position < b.position and a.operation.waits and b.operation.arrives
                   for a in (*first.members, *first.late) for b in second.members):
                after[i].add(j)
    # Kahn's algorithm: a phase is done when nothing that must end before it is left.
    left = set(after)
    while left:
        free = {i for i in left if not any(i in after[j] for j in left)}
        if not free:
            return True
        left -= free
    return False


def barrier_groups(events: Sequence[tuple[int, int, Event]], group_of: Sequence[dict[str, tuple[object, ...]]],
                   ) -> list[tuple[tuple[object, ...], Event, int, int, int]]:
    """The entries for `meetings` of (event number, thread, event) in program order; `group_of[thread][level]`."""
    return [((e.level, group_of[thread][e.level], e.key), e, number, thread, number)
            for number, thread, e in events if e.kind is Kind.BARRIER]
