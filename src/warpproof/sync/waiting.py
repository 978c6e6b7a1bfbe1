"""Waiting that may not end: loops that poll for a value that never comes, and barriers that are never complete.

Scheduling is taken to be fair: a thread that can go on does. A strong poll sees a morally strong write in the end; a
weak poll, or one whose scope is too narrow, may see an old value for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

from warpproof.sync.analysis import LIMIT_S, explore
from warpproof.sync.events import Event, Kind
from warpproof.sync.execution import Execution
from warpproof.sync.frame import bits, levels
from warpproof.sync.model import LATEST, Model
from warpproof.sync.paths import Path
from warpproof.sync.phases import Meeting
from warpproof.sync.program import Barrier, Litmus, Load, Register, Thread


@dataclass(frozen=True, slots=True)
class Hang:
    """An allowed execution in which the named threads wait for ever: (thread, instruction) of each wait."""

    waits: tuple[tuple[int, int], ...]
    execution: Execution


@dataclass(frozen=True, slots=True)
class _Option:
    path: Path
    blocked: bool = False

    @property
    def ends(self) -> bool:
        return self.path.stuck is None and not self.blocked


def find_hang(test: Litmus, model: Model = LATEST, limit_s: float = LIMIT_S) -> Hang | None:
    """An allowed execution that never ends under fair scheduling, or None."""
    space = explore(test, model, limit_s=limit_s)
    options = [_options(per) for per in space.paths]
    for chosen in product(*options):
        if not all(o.ends for o in chosen) and not _barriers_fit(test.threads, chosen):
            continue
        paths = [o.path for o in chosen]
        frame = space.frame(paths)
        if all(o.ends for o in chosen):
            if frame.meetings:
                continue
            # Too few threads come to a barrier with a count.
            space.frames[tuple(space.shape(p) for p in paths)] = replace(frame, meetings=[Meeting(())])
        for execution in space.executions(paths, every=True):
            if not any(_unfair(execution, t, o.path) for t, o in enumerate(chosen)):
                return Hang(tuple(_waits(chosen)), execution)
    return None


def _options(paths: Sequence[Path]) -> list[_Option]:
    found = [_Option(p) for p in paths]
    seen: set[tuple[tuple[Event, ...], tuple[object, ...]]] = set()
    for path in paths:
        for at, event in enumerate(path.events):
            key = (path.events[: at + 1], path.values[: at + 1])
            if event.kind is Kind.BARRIER and event.waits and event.quorum is None and key not in seen:
                seen.add(key)
                found.append(_Option(Path(key[0], key[1], path.registers), blocked=True))
    return found


def _barriers_fit(threads: Sequence[Thread], chosen: Sequence[_Option]) -> bool:
    """Whether passed barriers are complete and the ones where a thread is blocked are not."""
    arrived: dict[tuple[object, ...], set[int]] = {}
    waits: list[tuple[tuple[object, ...], bool]] = []
    for t, option in enumerate(chosen):
        counts: dict[tuple[object, ...], int] = {}
        for at, event in enumerate(option.path.events):
            if event.kind is not Kind.BARRIER or event.quorum is not None:
                continue
            barrier = (event.level, levels(threads[t])[event.level], event.key)
            phase = counts.get((*barrier, event.arrives), 0)
            counts[*barrier, event.arrives] = phase + 1
            if event.arrives:
                arrived.setdefault((barrier, phase), set()).add(t)
            if event.waits:
                waits.append(((barrier, phase), option.blocked and at == len(option.path.events) - 1))
    return all(_complete(threads, chosen, key, arrived.get(key, set())) != blocked for key, blocked in waits)


def _complete(threads: Sequence[Thread], chosen: Sequence[_Option], phase: tuple[object, ...], here: set[int]) -> bool:
    return not any(t not in here and not o.ends and _mentions(threads[t], phase[0]) for t, o in enumerate(chosen))


def _mentions(thread: Thread, barrier: object) -> bool:
    assert isinstance(barrier, tuple)
    level, group, key = barrier
    if levels(thread)[level] != group:
        return False
    return any(isinstance(b := i.operation, Barrier) and b.level == level and b.instance == key[0]
               and (isinstance(b.resource, Register) or b.resource == key[1]) for i in thread.instructions)


def _start(execution: Execution, thread: int) -> int:
    return execution.frame.thread.index(thread)


def _unfair(execution: Execution, thread: int, path: Path) -> bool:
    """Whether a poll of the endless loop would have to see a later write in the end."""
    if not path.stuck:
        return False
    start, frame = _start(execution, thread), execution.frame
    for at in path.stuck:
        read = start + at
        later = execution.coherence[execution.reads_from[read]] & frame.moral[read]
        if any(frame.thread[w] != thread for w in bits(later)):
            return True
    return False


def _waits(chosen: Sequence[_Option]) -> Iterator[tuple[int, int]]:
    for t, option in enumerate(chosen):
        events = option.path.events
        if option.blocked:
            yield t, events[-1].instruction
        elif option.path.stuck:
            yield t, events[option.path.stuck[-1]].instruction
        elif option.path.stuck is not None:
            yield t, 0
    if all(o.ends for o in chosen):
        yield from ((t, e.instruction) for t, o in enumerate(chosen) for e in o.path.events if e.quorum is not None)


def weak_polls(test: Litmus, model: Model = LATEST) -> tuple[tuple[int, int], ...]:
    """The weak loads on which a waiting loop depends, as (thread, instruction).

    A compiler may take such a load out of its loop, whatever the memory model says of the value.
    """
    found = set()
    for t, per in enumerate(explore(test, model).paths):
        for path in per:
            for at in path.stuck or ():
                event = path.events[at]
                operation = test.threads[t].instructions[event.instruction].operation
                if event.sem == "weak" and isinstance(operation, Load):
                    found.add((t, event.instruction))
    return tuple(sorted(found))

