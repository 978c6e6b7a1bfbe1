"""Answers about a litmus test: whether an outcome is allowed, all outcomes, data races, waiting that may not end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import product
from operator import or_
from typing import Final

from warpproof.core import InputError, Unsupported
from warpproof.sync.conditions import holds, may_hold, terms_of
from warpproof.sync.events import Event, Kind, Layout, layout_of
from warpproof.sync.execution import Execution, Search, races
from warpproof.sync.frame import Frame, bits, build_frame, check_model, morally_strong
from warpproof.sync.model import LATEST, Model
from warpproof.sync.paths import Path, thread_paths
from warpproof.sync.program import (
    TRUE,
    Address,
    Condition,
    Connective,
    Litmus,
    Term,
    ThreadRegister,
    Value,
)

LIMIT_S: Final = 60.0
Outcome = tuple[tuple[Term, Value], ...]


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses in a data race (PTX 8.7.1) in some allowed execution: (thread, instruction) each."""

    first: tuple[int, int]
    second: tuple[int, int]
    execution: Execution


@dataclass(slots=True)
class Space:
    """The candidate executions of a test under a model."""

    test: Litmus
    model: Model
    layout: Layout
    paths: list[list[Path]]
    bounded: bool
    failed: set[str] = field(default_factory=set)
    shapes: dict[tuple[Event, ...], int] = field(default_factory=dict)
    frames: dict[tuple[int, ...], Frame] = field(default_factory=dict)
    numbers: dict[int, tuple[int, Path]] = field(default_factory=dict)
    candidates: int = 0
    deadline: float = math.inf

    def tick(self) -> None:
        """Raises Unsupported when the time is up."""
        if time.monotonic() > self.deadline:
            raise Unsupported("litmus test", "the time limit passed with candidate executions left")

    def choices(self, target: Condition) -> Iterator[tuple[Path, ...]]:
        """One path per thread: those whose reads find a writer and whose registers do not exclude `target`."""
        atoms: dict[tuple[Address, Value], int] = {}
        kept = []
        for t, per in enumerate(self.paths):
            mine = [p for p in per if p.stuck is None and may_hold(target, registers_of(p, t))]
            kept.append([(p, *self._flow(p, atoms)) for p in mine])
        initial = sum(1 << i for (place, value), i in atoms.items() if self.layout.initial_value(place) == value)
        for paths in self._combine(kept, initial, atoms):
            state: dict[Term, Value] = {}
            for t, p in enumerate(paths):
                state |= registers_of(p, t)
            if may_hold(target, state):
                yield paths

    def _combine(self, kept: Sequence[Sequence[tuple[Path, int, int]]], initial: int,
                 atoms: dict[tuple[Address, Value], int]) -> Iterator[tuple[Path, ...]]:
        rest = [0] * (len(kept) + 1)
        for t in range(len(kept) - 1, -1, -1):
            rest[t] = rest[t + 1] | reduce(or_, (g for _, _, g in kept[t]), 0)

        def walk(t: int, needs: int, gives: int, chosen: tuple[Path, ...]) -> Iterator[tuple[Path, ...]]:
            self.tick()
            if needs & ~(gives | rest[t]):
                return
            if t == len(kept):
                yield chosen
                return
            if t > 1 and not self._feasible(chosen, rest[t], atoms):
                return
            for path, wants, offers in kept[t]:
                yield from walk(t + 1, needs | wants, gives | offers, (*chosen, path))

        return walk(0, 0, initial, ())

    def _feasible(self, paths: Sequence[Path], rest: int, atoms: dict[tuple[Address, Value], int]) -> bool:
        """False only if no choice of paths for the other threads can make an allowed execution of these."""
        frame, values = self._valued(paths)
        free = sum(1 << r for r in frame.reads if rest >> atoms[frame.locations[frame.location[r]], values[r]] & 1)
        return Search(frame, values, self.model, self.failed, self.tick).feasible(free)

    def _flow(self, path: Path, atoms: dict[tuple[Address, Value], int]) -> tuple[int, int]:
        needs = gives = 0
        for event, value in zip(path.events, path.values, strict=True):
            if event.address is not None and value is not None:
                atom = (self.layout.location(event.address), value)
                bit = 1 << atoms.setdefault(atom, len(atoms))
                if event.kind is Kind.READ:
                    needs |= bit
                else:
                    gives |= bit
        return needs, gives

    def frame(self, paths: Sequence[Path]) -> Frame:
        """The frame of the paths' shapes, built once."""
        key = tuple(self.shape(p) for p in paths)
        if key not in self.frames:
            self.frames[key] = build_frame([p.events for p in paths], self.test.threads, self.layout, self.model)
        return self.frames[key]

    def shape(self, path: Path) -> int:
        """The number of the path's shape. The path is kept, so that its identity stays its own."""
        if id(path) not in self.numbers:
            self.numbers[id(path)] = self.shapes.setdefault(path.events, len(self.shapes)), path
        return self.numbers[id(path)][0]

    def _valued(self, paths: Sequence[Path]) -> tuple[Frame, list[Value]]:
        frame = self.frame(paths)
        values = [self.layout.initial_value(p) for p in frame.locations]
        return frame, values + [v if v is not None else 0 for p in paths for v in p.values]

    def executions(self, paths: Sequence[Path], every: bool) -> Iterator[Execution]:
        """The allowed executions along the paths."""
        self.candidates += 1
        frame, values = self._valued(paths)
        if not frame.meetings:
            self.failed.add("barrier deadlock")
            return iter(())
        return Search(frame, values, self.model, self.failed, self.tick).executions(every)


def registers_of(path: Path, thread: int) -> dict[Term, Value]:
    """The final registers of a path, as terms."""
    return {ThreadRegister(thread, name): value for name, value in path.registers.items()}


def explore(test: Litmus, model: Model, repeats: int = 0, limit_s: float = LIMIT_S) -> Space:
    """The candidates of a test; raises InputError (SYN205, SYN207, SYN208) or Unsupported if there are none."""
    deadline = time.monotonic() + limit_s
    layout = layout_of(test)
    paths, bounded = thread_paths(test, layout, repeats)
    if not model.proxies and any(v.alias_of for v in test.variables):
        raise InputError("SYN207", f"aliases need proxies (7.5), which model {model.name} has not",
                         hint="choose a later model")
    check_model(test.threads, [[p.events for p in per] for per in paths], model)
    return Space(test, model, layout, paths, bounded, deadline=deadline)


def final_states(execution: Execution, layout: Layout, paths: Sequence[Path],
                 places: Sequence[Address]) -> Iterator[dict[Term, Value]]:
    """The final states: registers, and for each location the value of a write that is last in coherence order."""
    state: dict[Term, Value] = {}
    for t, path in enumerate(paths):
        state |= registers_of(path, t)
    states = [state]
    frame = execution.frame
    for place in places:
        location = layout.location(place)
        values: set[Value] = {layout.initial_value(location)}
        if location in frame.locations:
            writes = frame.writes_at(frame.locations.index(location))
            values = {v for w in bits(writes) if not execution.coherence[w] & writes
                      and (v := execution.values[w]) is not None}
        states = [{**s, place: v} for s in states for v in sorted(values, key=str)]
    yield from states


def _complete(state: dict[Term, Value], terms: Sequence[Term]) -> dict[Term, Value]:
    return {**{t: 0 for t in terms if isinstance(t, ThreadRegister)}, **state}


def find(test: Litmus, model: Model, target: Condition, limit_s: float = LIMIT_S) -> tuple[Execution | None, Space]:
    """An allowed execution that ends in a state of `target` (within the test's filter), or None."""
    space = explore(test, model, limit_s=limit_s)
    goal = Connective("and", (test.where, target))
    terms = list(terms_of(goal))
    places = list(dict.fromkeys(t for t in terms if isinstance(t, Address)))
    _add_defaults(goal, space)
    for paths in space.choices(goal):
        for execution in space.executions(paths, every=bool(places)):
            for state in final_states(execution, space.layout, paths, places):
                if holds(goal, _complete(state, terms)):
                    return execution, space
            if not places:
                break
    return None, space


def _add_defaults(goal: Condition, space: Space) -> None:
    """Give every register that the goal mentions a value on every path: 0 where it is never assigned."""
    for term in terms_of(goal):
        if isinstance(term, ThreadRegister):
            space.paths[term.thread] = [p if term.name in p.registers else
                                        replace(p, registers={**p.registers, term.name: 0})
                                        for p in space.paths[term.thread]]


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the outcome that a test asks about is allowed.

    `validated` says whether the test's own claim holds: `exists` that the outcome is allowed, `~exists` that it is not,
    `forall` that no other is. `bounded` means that loops were cut off, so that "not allowed" holds only up to there.
    `witness` is an allowed execution with the outcome (for `forall`: with a counterexample); `failed` names the axioms
    that rejected the candidates if there is none.
    """

    allowed: bool
    validated: bool
    bounded: bool
    witness: Execution | None
    failed: tuple[str, ...]
    candidates: int

    @property
    def conclusive(self) -> bool:
        """Whether the answer holds without a bound on loops."""
        return self.allowed or not self.bounded


def question(test: Litmus) -> Condition:
    """The outcome that decides the test: its condition, negated under `forall`."""
    return Connective("not", (test.condition,)) if test.quantifier == "forall" else test.condition


def check(test: Litmus, model: Model = LATEST, limit_s: float = LIMIT_S) -> Answer:
    """Whether the test's outcome is allowed under the model.

    Raises InputError (SYN205, SYN207, SYN208) or Unsupported if the test cannot be evaluated.
    """
    witness, space = find(test, model, question(test), limit_s)
    allowed = witness is not None
    return Answer(allowed, allowed == (test.quantifier == "exists"), space.bounded, witness,
                  tuple(sorted(space.failed)) if witness is None else (), space.candidates)


def outcomes(test: Litmus, model: Model = LATEST, limit_s: float = LIMIT_S) -> tuple[frozenset[Outcome], bool]:
    """Every allowed final state of what the test mentions (condition, filter, `locations`), and whether it is bounded.

    Registers that no path assigns are 0. Final memory takes each value that is last in coherence order.
    """
    space = explore(test, model, limit_s=limit_s)
    terms = sorted({*terms_of(test.condition), *terms_of(test.where), *test.observed}, key=str)
    places = [t for t in terms if isinstance(t, Address)]
    found: set[Outcome] = set()
    for paths in space.choices(TRUE):
        if not places and _outcome(_complete(_joined(paths), terms), terms) in found:
            continue
        for execution in space.executions(paths, every=bool(places)):
            for state in final_states(execution, space.layout, paths, places):
                complete = _complete(state, terms)
                if holds(test.where, complete):
                    found.add(_outcome(complete, terms))
            if not places:
                break
    return frozenset(found), space.bounded


def _joined(paths: Sequence[Path]) -> dict[Term, Value]:
    return {k: v for t, p in enumerate(paths) for k, v in registers_of(p, t).items()}


def _outcome(state: dict[Term, Value], terms: Sequence[Term]) -> Outcome:
    return tuple((t, state[t]) for t in terms)


def find_race(test: Litmus, model: Model = LATEST, limit_s: float = LIMIT_S) -> tuple[Race | None, bool]:
    """A data race in some allowed execution, or None; and whether the search was bounded by cut-off loops.

    Turns of a waiting loop that the paths leave out can matter only if their reads may race; then one is put in.
    """
    deadline = time.monotonic() + limit_s
    space = explore(test, model, limit_s=limit_s)
    race = _search_race(space)
    if race is None and _polls_may_race(space):
        space = explore(test, model, repeats=1, limit_s=deadline - time.monotonic())
        race = _search_race(space)
    return race, space.bounded


def _search_race(space: Space) -> Race | None:
    harmless: dict[tuple[int, ...], bool] = {}

    def may_race(paths: Sequence[Path]) -> bool:
        key = tuple(space.shape(p) for p in paths)
        if key not in harmless:
            harmless[key] = not _may_race(space.frame(paths))
        return not harmless[key]

    one_of_each = [list({space.shape(p): p for p in per if p.stuck is None}.values()) for per in space.paths]
    if not any(may_race(paths) for paths in product(*one_of_each)):
        return None
    for paths in space.choices(TRUE):
        if not may_race(paths):
            continue
        for execution in space.executions(paths, every=False):
            for a, b in races(execution):
                frame = execution.frame
                return Race((frame.thread[a], frame.events[a].instruction),
                            (frame.thread[b], frame.events[b].instruction), execution)
    return None


def _polls_may_race(space: Space) -> bool:
    """Whether some read of a waiting loop is not morally strong with some write of another thread to its location."""
    threads, place = space.test.threads, space.layout.location
    writes = {(t, e) for t, per in enumerate(space.paths) for p in per for e in p.events if e.kind is Kind.WRITE}
    polls = {(t, p.events[at]) for t, per in enumerate(space.paths) for p in per for at in p.stuck or ()}
    return any(s != t and r.address is not None and w.address is not None and place(r.address) == place(w.address)
               and not morally_strong(r, w, s, t, threads) for s, r in polls for t, w in writes)


def _may_race(frame: Frame) -> bool:
    """Whether some conflicting pair is not morally strong, so that it has to be ordered."""
    for a in range(frame.first, len(frame.events)):
        others = frame.same_location[a] & ~frame.moral[a] & ~(1 << a) & ~((1 << frame.first) - 1)
        if others & (frame.writes if frame.events[a].kind is Kind.READ else -1):
            return True
    return False
