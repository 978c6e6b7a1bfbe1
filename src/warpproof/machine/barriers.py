"""The CTA barriers of a batch: arrivals, completion, release, and what they order (PTX ISA 9.7.13.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from warpproof.machine.batch import WARP, Batch, Lanes, Mask
from warpproof.machine.ordering import Clocks, Foreign, Row, merge

Report = Callable[[str, str, Lanes, int], None]
"""`report(kind, message, lanes, pc)`."""

Release = tuple[Lanes, npt.NDArray[np.int64] | None]
"""Lanes that go on, with the result of a reduction."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """Lanes of one CTA arriving at one barrier by one instruction. `count` None means all threads of the CTA."""

    lanes: Lanes
    pc: int
    count: int | None
    kind: str  # sync arrive red
    aligned: bool
    reduce: str
    predicate: Mask | None


@dataclass(slots=True)
class _Phase:
    """One phase of one barrier of one CTA."""

    count: int | None
    pc: Row  # by thread: where it arrived, -1 when it has not
    passed: Mask  # by thread: it had gone past the barrier on another way when the phase began
    waiting: list[Lanes] = field(default_factory=list)
    votes: list[Mask] = field(default_factory=list)
    extra: int = 0  # second arrivals, in threads
    kinds: set[str] = field(default_factory=set)
    reduce: str = ""
    aligned: bool = True
    row: Row | None = None
    foreign: Foreign = field(default_factory=dict)


class Barriers:
    """The barriers of a batch of CTAs."""

    __slots__ = ("_batch", "_clocks", "_live", "_passed", "_phases", "_report")

    def __init__(self, batch: Batch, clocks: Clocks, live: Mask, report: Report,
                 passed: Callable[[int, int], Mask]) -> None:
        self._batch, self._clocks, self._live, self._report, self._passed = batch, clocks, live, report, passed
        self._phases: dict[tuple[int, int], _Phase] = {}

    def everyone(self, lanes: Lanes, ids: npt.NDArray[np.int64]) -> bool:
        """Complete a plain `bar.sync` of all threads at once, when `lanes` are every live thread of their CTAs, none of
        which exited, at one barrier that is free. False, and nothing done, otherwise."""
        ctas = np.unique(self._batch.cta[lanes])
        if len(lanes) != len(ctas) * self._batch.threads or (ids != ids[0]).any():
            return False
        if any((int(cta), int(ids[0])) in self._phases for cta in ctas):
            return False
        self._clocks.join_all(ctas, lanes)
        return True

    def arrive(self, cta: int, barrier: int, arrival: Arrival) -> list[Release]:
        """Record an arrival; the result is the lanes it lets go on (an arriver goes on at once)."""
        phase = self._phases.get((cta, barrier))
        if phase is None:
            phase = _Phase(arrival.count, np.full(self._batch.padded, -1, np.int64), self._passed(cta, arrival.pc))
            self._phases[cta, barrier] = phase
        self._check(phase, arrival)
        threads = self._batch.thread[arrival.lanes]
        again = phase.pc[threads] >= 0
        if again.any():
            self._report("barrier-mismatch", "a second arrival at the barrier in the same phase", arrival.lanes[again],
                         arrival.pc)
            phase.extra += int(again.sum())
        phase.pc[threads] = arrival.pc
        phase.kinds.add("red" if arrival.kind == "red" else "sync")
        phase.aligned &= arrival.aligned
        released: list[Release] = []
        if arrival.kind == "arrive":
            self._accumulate(phase, arrival.lanes)
            released.append((arrival.lanes, None))
        else:
            phase.waiting.append(arrival.lanes)
        if arrival.predicate is not None:
            phase.votes.append(arrival.predicate)
            phase.reduce = arrival.reduce
        return released + self._settle(cta, barrier, phase)

    def exited(self, cta: int) -> list[Release]:
        """The lanes let go because threads of the CTA exited."""
        released: list[Release] = []
        for (owner, barrier), phase in list(self._phases.items()):
            if owner == cta:
                released += self._settle(cta, barrier, phase)
        return released

    def release_stuck(self, cta: int) -> list[Release]:
        """The lanes of a barrier that waits only for threads that have exited (PTX ISA, exit), with a finding."""
        live = self._live[self._batch.span(cta)]
        gone = self._batch.present[self._batch.span(cta)] & ~live
        for (owner, barrier), phase in list(self._phases.items()):
            if owner != cta or not gone.any() or not phase.waiting:
                continue
            waiting = np.concatenate(phase.waiting)
            if live.sum() == len(waiting):
                self._report("exited-at-barrier", f"barrier {barrier} waits for {phase.count} threads, but the others "
                             "have exited", waiting, int(phase.pc[self._batch.thread[waiting[0]]]))
                return self._complete(cta, barrier, phase)
        return []

    def outstanding(self, cta: int) -> list[tuple[int, Lanes, int, int | None, int]]:
        """The open phases of a CTA: barrier, lanes waiting, threads arrived, threads expected, an instruction."""
        found = []
        for (owner, barrier), phase in self._phases.items():
            if owner == cta and phase.waiting:
                lanes = np.concatenate(phase.waiting)
                arrived = int((phase.pc >= 0).sum())
                pc = int(phase.pc[self._batch.thread[lanes[0]]])
                found.append((barrier, lanes, arrived, phase.count, pc))
        return found

    def partial_warps(self, lanes: Lanes) -> Lanes:
        """Those of the waiting `lanes` (of one CTA) whose warp has a live thread that is not among them."""
        span = self._batch.span(int(self._batch.cta[lanes[0]]))
        here = np.zeros(self._batch.padded, np.bool_)
        here[self._batch.thread[lanes]] = True
        missing: Mask = np.any((self._live[span] & ~here).reshape(-1, WARP), axis=1)
        partial: Lanes = lanes[missing[self._batch.thread[lanes] // WARP]]
        return partial

    def _check(self, phase: _Phase, arrival: Arrival) -> None:
        everybody = self._batch.padded
        if (arrival.count or everybody) != (phase.count or everybody):
            self._report("barrier-mismatch", f"thread count {arrival.count or 'all'}, earlier arrivals in this phase "
                         f"gave {phase.count or 'all'}", arrival.lanes, arrival.pc)
        if arrival.count is not None and (arrival.count % WARP or arrival.count <= 0):
            self._report("barrier-mismatch", f"thread count {arrival.count} is not a positive multiple of the warp "
                         "size", arrival.lanes, arrival.pc)
        if phase.kinds and ("red" if arrival.kind == "red" else "sync") not in phase.kinds:
            self._report("barrier-mismatch", "barrier.red mixed with barrier.sync or .arrive in one phase",
                         arrival.lanes, arrival.pc)

    def _accumulate(self, phase: _Phase, lanes: Lanes) -> None:
        row, foreign = self._clocks.observed(lanes)
        phase.row = row if phase.row is None else np.maximum(phase.row, row)
        phase.foreign = merge((phase.foreign, foreign)) if foreign else phase.foreign

    def _settle(self, cta: int, barrier: int, phase: _Phase) -> list[Release]:
        """Complete the phase when everybody it waits for has arrived."""
        live = self._live[self._batch.span(cta)]
        arrived = phase.pc >= 0
        if phase.count is None:
            done = bool(arrived[live].all())
        else:
            whole = ~(live & ~arrived).reshape(-1, WARP).any(axis=1) & arrived.reshape(-1, WARP).any(axis=1)
            done = WARP * int(whole.sum()) + -(-phase.extra // WARP) * WARP >= phase.count
        return self._complete(cta, barrier, phase) if done else []

    def _complete(self, cta: int, barrier: int, phase: _Phase) -> list[Release]:
        del self._phases[cta, barrier]
        live = self._live[self._batch.span(cta)]
        self._judge(cta, barrier, phase, live)
        if not phase.waiting:
            return []
        lanes = np.sort(np.concatenate(phase.waiting))
        if len(lanes) == live.sum() and phase.row is None:
            self._clocks.join_all(np.array([cta]), lanes)
        else:
            self._accumulate(phase, lanes)
            self._clocks.learn(lanes, phase.row, phase.foreign)
        return [(lanes, self._reduced(phase, len(lanes)))]

    def _judge(self, cta: int, barrier: int, phase: _Phase, live: Mask) -> None:
        """Report what a completed phase did against the rules of aligned barriers."""
        start = self._batch.span(cta).start
        arrived = phase.pc >= 0
        here = np.flatnonzero(arrived)
        pc = int(phase.pc[here[0]])
        if phase.aligned:
            low = np.where(arrived, phase.pc, np.iinfo(np.int64).max).reshape(-1, WARP).min(axis=1)
            high = phase.pc.reshape(-1, WARP).max(axis=1)
            split = np.flatnonzero(((low < high) & (high >= 0))[here // WARP])
            if len(split):
                at = here[split]
                self._report("barrier-divergence", f"threads of one warp meet at barrier {barrier} from different "
                             "instructions", at + start, int(phase.pc[at[0]]))
            elif phase.count is None and len(np.unique(phase.pc[here])) > 1:
                self._report("barrier-mismatch", f"warps meet at barrier {barrier} of all threads from different "
                             "instructions", here + start, pc)
        if phase.count is not None:
            return
        absent = self._batch.present[self._batch.span(cta)] & ~live & ~arrived
        skipped, gone = np.flatnonzero(absent & phase.passed), np.flatnonzero(absent & ~phase.passed)
        if len(skipped) and phase.aligned:
            self._report("barrier-divergence", f"{len(skipped)} threads passed by the aligned barrier {barrier} that "
                         "others of their CTA executed", skipped + start, pc)
        if len(gone):
            self._report("exited-at-barrier", f"barrier {barrier} completes without {len(gone)} threads that exited",
                         gone + start, pc)

    @staticmethod
    def _reduced(phase: _Phase, lanes: int) -> npt.NDArray[np.int64] | None:
        if not phase.votes:
            return None
        votes = np.concatenate(phase.votes)
        match phase.reduce:
            case "popc":
                value = int(votes.sum())
            case "and":
                value = int(votes.all())
            case _:
                value = int(votes.any())
        return np.full(lanes, value, np.int64)
