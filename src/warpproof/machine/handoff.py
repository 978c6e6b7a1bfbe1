"""Synchronisation through memory: fences, releases and acquires on strong accesses (PTX memory model, 8.9 and 8.10)."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from warpproof.machine.batch import Lanes
from warpproof.machine.ordering import Clocks, Foreign, Snapshot, merge
from warpproof.machine.storage import Offsets, Region

_DEVICE = ("gpu", "sys")


class Handoffs:
    """What releases have left at each location (kept over the whole run) and what threads may acquire at a fence.

    A release pattern is a release write, or a fence and then a strong write; an acquire pattern is an acquire read, or
    a strong read and then a fence. A read-modify-write carries on what it found. The sc fences of the device are in the
    order in which they ran, which is one that they may have: what came before one of them comes before what follows on
    a later one.
    """

    __slots__ = ("_clocks", "_fenced", "_left", "_pending", "_sequential")

    def __init__(self) -> None:
        self._left: dict[tuple[int, int], Snapshot] = {}  # by region identity and slot
        self._clocks: Clocks | None = None
        self._fenced: dict[int, Snapshot] = {}
        self._pending: dict[int, list[tuple[Snapshot, bool]]] = {}
        self._sequential: Foreign = {}  # what came before the sc fences so far, by CTA

    def begin(self, clocks: Clocks, lasting: Collection[int]) -> None:
        """Start a batch of CTAs: the lanes are new threads, and only the `lasting` regions (by identity) remain."""
        self._clocks = clocks
        for key in [key for key in self._left if key[0] not in lasting]:
            del self._left[key]
        self._fenced.clear()
        self._pending.clear()

    def fence(self, lanes: Lanes, semantics: str, scope: str) -> None:
        """A fence of each lane; acquire-release, and those of semantics sc in one order besides."""
        assert self._clocks is not None
        device = scope in _DEVICE
        if semantics == "sc" and device:
            self._sequential = self._clocks.sequenced(lanes, self._sequential)
        for lane in lanes.tolist():
            for snapshot, reached in self._pending.pop(lane, ()):
                self._clocks.acquire(lane, snapshot, device and reached)
            self._fenced[lane] = self._clocks.release(lane, device)

    def read(self, region: Region, slots: Offsets, lanes: Lanes, semantics: str, scope: str) -> None:
        """A strong read by each lane."""
        for lane, slot in zip(lanes.tolist(), slots.tolist(), strict=True):
            self._take(lane, (id(region), slot), semantics, _reaches(semantics, scope))

    def write(self, region: Region, slots: Offsets, lanes: Lanes, semantics: str, scope: str) -> None:
        """A strong write by each lane."""
        for lane, slot in zip(lanes.tolist(), slots.tolist(), strict=True):
            self._leave(lane, (id(region), slot), None, semantics, _reaches(semantics, scope))

    def update(self, region: Region, slots: Offsets, lanes: Lanes, semantics: str, scope: str) -> None:
        """A read-modify-write by each lane, one after another."""
        for lane, slot in zip(lanes.tolist(), slots.tolist(), strict=True):
            key = (id(region), slot)
            self._take(lane, key, semantics, _reaches(semantics, scope))
            self._leave(lane, key, self._left.get(key), semantics, _reaches(semantics, scope))

    def _take(self, lane: int, key: tuple[int, int], semantics: str, device: bool) -> None:
        found = self._left.get(key)
        if found is None:
            return
        if semantics in ("acquire", "acq_rel"):
            assert self._clocks is not None
            self._clocks.acquire(lane, found, device)
        else:
            self._pending.setdefault(lane, []).append((found, device))

    def _leave(self, lane: int, key: tuple[int, int], before: Snapshot | None, semantics: str, device: bool) -> None:
        assert self._clocks is not None
        mine = self._clocks.release(lane, device) if semantics in ("release", "acq_rel") else self._fenced.get(lane)
        if mine is not None:
            mine = self._clocks.published(lane, mine, device)
        if before is not None and mine is not None:
            self._left[key] = Snapshot(merge((before.rows, mine.rows)), mine.cta, before.device and mine.device)
        elif before is not None or mine is not None:
            self._left[key] = before or mine  # type: ignore[assignment]
        else:
            self._left.pop(key, None)


def _reaches(semantics: str, scope: str) -> bool:
    """True when the access synchronises with other CTAs."""
    return scope in _DEVICE or semantics in ("volatile", "mmio")


def contended(slots: Offsets) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each lane how many earlier lanes of the access use the same slot: the round in which its turn comes."""
    order = np.argsort(slots, kind="stable")
    new = np.diff(slots[order], prepend=slots[order[:1]] - 1) != 0
    starts = np.maximum.accumulate(np.where(new, np.arange(len(slots)), 0))
    rounds = np.empty(len(slots), np.int64)
    rounds[order] = np.arange(len(slots)) - starts
    return rounds
