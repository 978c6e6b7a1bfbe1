"""Footprints against a brute-force happens-before: program order, warp barriers and CTA barriers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from warpproof.machine.footprint import Footprint

LANES, CELLS = 64, 5
seeds = st.integers(0, 2**32)


@dataclass
class History:
    """Every access since the start, with the barriers passed by then."""

    epoch: int = 0
    warp_epoch: int = 0
    accesses: list[tuple[int, int, bool, int, int]] = field(default_factory=list)  # cell, lane, write, epochs

    def access(self, cells: np.ndarray, lanes: np.ndarray, write: bool) -> bool:
        """Record one instruction; True when it conflicts with an access that nothing orders before it."""
        found = False
        now = [(int(c), int(t), write, self.epoch, self.warp_epoch) for c, t in zip(cells, lanes, strict=True)]
        for k, (c, t, _, _, _) in enumerate(now):
            for d, s, wrote, epoch, warp in (*self.accesses, *now[:k]):
                ordered = s == t or epoch < self.epoch or (s // 32 == t // 32 and warp < self.warp_epoch)
                found |= c == d and (write or wrote) and not ordered
        self.accesses += now
        return found


def act(rng: random.Random, foot: Footprint, history: History) -> tuple[bool, bool]:
    """One random step on both; (reported, conflicting)."""
    kind = rng.random()
    if kind < 0.12:
        foot.clear()
        history.epoch += 1
        return False, False
    if kind < 0.3:
        foot.warp_barrier()
        history.warp_epoch += 1
        return False, False
    lanes = np.array(sorted(rng.sample(range(LANES), rng.choice([1, 2, 3]))), np.int64)
    cells = np.array([rng.randrange(CELLS) for _ in lanes], np.int64)
    write = rng.random() < 0.5
    reported = (foot.write if write else foot.read)(cells, lanes, 7)
    return reported is not None, history.access(cells, lanes, write)


@settings(max_examples=300, deadline=None)
@given(seeds)
def test_every_unordered_conflict_is_reported(seed: int) -> None:
    rng = random.Random(seed)
    foot, history = Footprint(CELLS, LANES), History()
    for _ in range(14):
        reported, conflict = act(rng, foot, history)
        assert reported or not conflict
        if conflict:
            return


@settings(max_examples=200, deadline=None)
@given(seeds)
def test_ordered_accesses_are_not_reported(seed: int) -> None:
    """Without warp barriers, the codes lose nothing: a report is a conflict."""
    rng = random.Random(seed)
    foot, history = Footprint(CELLS, LANES), History()
    for _ in range(14):
        if rng.random() < 0.15:
            foot.clear()
            history.epoch += 1
            continue
        lanes = np.array(sorted(rng.sample(range(LANES), rng.choice([1, 2, 3]))), np.int64)
        cells = np.array([rng.randrange(CELLS) for _ in lanes], np.int64)
        write = rng.random() < 0.5
        reported = (foot.write if write else foot.read)(cells, lanes, 7)
        conflict = history.access(cells, lanes, write)
        assert (reported is not None) == conflict
        if conflict:
            return


@settings(max_examples=200, deadline=None)
@given(seeds)
def test_the_union_reports_what_either_side_does(seed: int) -> None:
    """After a fork, an access conflicts if it conflicts with the accesses of one side."""
    rng = random.Random(seed)
    first, second = Footprint(CELLS, LANES), Footprint(CELLS, LANES)
    for foot in (first, second):
        for _ in range(3):
            lanes = np.array([rng.randrange(LANES)], np.int64)
            cells = np.array([rng.randrange(CELLS)], np.int64)
            (foot.write if rng.random() < 0.5 else foot.read)(cells, lanes, 1)
            if rng.random() < 0.3:
                foot.warp_barrier()
    both = first.union(second)
    assert first.within(both)
    assert second.within(both)
    lanes, cells = np.array([rng.randrange(LANES)], np.int64), np.array([rng.randrange(CELLS)], np.int64)
    write = rng.random() < 0.5

    def reports(foot: Footprint) -> bool:
        return (foot.write if write else foot.read)(cells, lanes, 2) is not None

    either = reports(first.copy()) or reports(second.copy())
    assert reports(both) or not either


@settings(max_examples=200, deadline=None)
@given(seeds)
def test_within_is_monotone(seed: int) -> None:
    """What is within another footprint conflicts only where the other does."""
    rng = random.Random(seed)
    small, large = Footprint(CELLS, LANES), Footprint(CELLS, LANES)
    for foot in (small, large):
        for _ in range(rng.randrange(4)):
            lanes, cells = np.array([rng.randrange(3)], np.int64), np.array([rng.randrange(2)], np.int64)
            (foot.write if rng.random() < 0.5 else foot.read)(cells, lanes, 1)
    if not small.within(large):
        return
    lanes, cells = np.array([rng.randrange(4)], np.int64), np.array([rng.randrange(2)], np.int64)
    assert small.write(cells, lanes, 2) is None or large.write(cells, lanes, 2) is not None
