"""Which threads run next: schedules of a batch, each deterministic, each fair (no runnable thread waits for ever)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from warpproof.core import InputError
from warpproof.machine.batch import WARP, Lanes, Mask

Counters = npt.NDArray[np.int64]

SCHEDULES: Final = ("min-pc", "round-robin", "reversed", "random")
_FAIRNESS: Final = 64
_PATIENCE: Final = 1024
_UNLIMITED: Final = 1 << 30
_ROUNDS: Final = 8


@dataclass(frozen=True, slots=True)
class Turn:
    """The lanes to run, all at instruction `pc`, for at most `quantum` instructions."""

    lanes: Lanes
    pc: int
    quantum: int


class Schedule(Protocol):
    """A scheduling policy."""

    @property
    def reconverging(self) -> bool:
        """True while no lane has run before another one at a smaller pc."""
        ...

    def turn(self, runnable: Mask, pc: Counters) -> Turn | None:
        """The next turn, or None when no lane is runnable."""
        ...


class _Ageing:
    """Every `_FAIRNESS`-th turn goes to the lane that has waited longest, with its fellows at the same pc, if it has
    waited for `patience` turns; once that has happened there is no more patience."""

    __slots__ = ("_count", "_last", "patience")

    def __init__(self, lanes: int, patience: int) -> None:
        self._count, self.patience = 0, patience
        self._last: Counters = np.zeros(lanes, np.int64)

    def oldest(self, candidates: Lanes) -> int | None:
        """The longest-waiting candidate when it is time for it."""
        self._count += 1
        if self._count % _FAIRNESS:
            return None
        lane = int(candidates[self._last[candidates].argmin()])
        if self._count - int(self._last[lane]) <= self.patience:
            return None
        self.patience = 0
        return lane

    def ran(self, lanes: Lanes) -> None:
        """Note that the lanes got their turn."""
        self._last[lanes] = self._count


class MinPc:
    """Runs all lanes at the smallest pc together, whatever their warp: divergent code reconverges early.

    Lanes that have gone round in a loop at one of the pcs `waits` for some turns let the others go first.
    """

    __slots__ = ("_ageing", "_rounds", "_waits")

    def __init__(self, lanes: int, waits: Collection[int] = ()) -> None:
        self._ageing, self._waits = _Ageing(lanes, _PATIENCE), waits
        self._rounds: dict[int, int] = {}

    @property
    def reconverging(self) -> bool:
        """True while no lane has run before another one at a smaller pc."""
        return self._ageing.patience > 0

    def turn(self, runnable: Mask, pc: Counters) -> Turn | None:
        """The next turn, or None when no lane is runnable."""
        candidates = np.flatnonzero(runnable)
        if not len(candidates):
            return None
        at = pc[candidates]
        oldest = self._ageing.oldest(candidates)
        chosen = int(at.min()) if oldest is None else int(pc[oldest])
        if chosen in self._waits:
            chosen = self._instead(chosen, at)
        lanes = candidates[at == chosen]
        self._ageing.ran(lanes)
        return Turn(lanes, chosen, _UNLIMITED)

    def _instead(self, waiting: int, at: Counters) -> int:
        """Where lanes run while others wait: at the waiting pc itself every few turns."""
        self._rounds[waiting] = self._rounds.get(waiting, 0) + 1
        others = [p for p in np.unique(at).tolist() if p not in self._waits]
        if not others or self._rounds[waiting] <= _ROUNDS or self._rounds[waiting] % _ROUNDS == 0:
            return waiting
        self._ageing.patience = 0
        return int(others[0])


class Warpwise:
    """Runs one warp at a time up to the end of a basic block: in turn, or always the highest-numbered that can run."""

    __slots__ = ("_ageing", "_reversed", "_warp", "reconverging")

    def __init__(self, lanes: int, *, reversed_order: bool) -> None:
        self._ageing, self._reversed, self._warp = _Ageing(lanes, 0), reversed_order, -1
        self.reconverging = False

    def turn(self, runnable: Mask, pc: Counters) -> Turn | None:
        """The next turn, or None when no lane is runnable."""
        able = np.flatnonzero(runnable.reshape(-1, WARP).any(axis=1))
        if not len(able):
            return None
        candidates = np.flatnonzero(runnable)
        oldest = self._ageing.oldest(candidates)
        if oldest is not None:
            warp = oldest // WARP
        elif self._reversed:
            warp = int(able[-1])
        else:
            later = able[able > self._warp]
            warp = int(later[0] if len(later) else able[0])
        self._warp = warp
        mine = candidates[candidates // WARP == warp]
        chosen = int(pc[mine].min()) if oldest is None else int(pc[oldest])
        lanes = mine[pc[mine] == chosen]
        self._ageing.ran(lanes)
        return Turn(lanes, chosen, _UNLIMITED)


class Random:
    """Runs a random warp at one of its pcs for a random number of instructions, from a seed."""

    __slots__ = ("_rng", "reconverging")

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.reconverging = False

    def turn(self, runnable: Mask, pc: Counters) -> Turn | None:
        """The next turn, or None when no lane is runnable."""
        able = np.flatnonzero(runnable.reshape(-1, WARP).any(axis=1))
        if not len(able):
            return None
        warp = int(self._rng.choice(able))
        mine = np.flatnonzero(runnable[warp * WARP:(warp + 1) * WARP]) + warp * WARP
        chosen = int(pc[self._rng.choice(mine)])
        return Turn(mine[pc[mine] == chosen], chosen, int(self._rng.integers(1, 24)))


def schedule(name: str, lanes: int, seed: int, waits: Collection[int] = ()) -> Schedule:
    """The policy called `name`, one of `SCHEDULES`. At the pcs `waits` loops begin that may wait for other threads."""
    match name:
        case "min-pc":
            return MinPc(lanes, waits)
        case "round-robin":
            return Warpwise(lanes, reversed_order=False)
        case "reversed":
            return Warpwise(lanes, reversed_order=True)
        case "random":
            return Random(seed)
    raise InputError("CLI625", f"no schedule {name!r}; there are {', '.join(SCHEDULES)}")
