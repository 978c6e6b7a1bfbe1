"""Happens-before between the threads of a run, by clocks (FastTrack's epochs; PTX memory model, synchronizes-with).

Each CTA has a clock that ticks at every synchronisation in it. An access is *tagged* with its thread and its CTA's
clock. A thread's knowledge of another is a number v: the other's weak accesses of clock c are ordered before its next
one when 2c + 1 < v, its strong ones when 2c < v. (The strong access that ends a release pattern is itself ordered; weak
ones of the same clock value need not be.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from warpproof.core import Unsupported
from warpproof.machine.batch import WARP, Batch, Lanes, Mask

Tags = npt.NDArray[np.uint64]
Row = npt.NDArray[np.int64]
Foreign = Mapping[int, Row]
"""Per CTA (by its number in the run) a row of knowledge by thread."""

THREAD_BITS: Final = 10
CTA_BITS: Final = 18
PC_SHIFT: Final = THREAD_BITS + CTA_BITS
PC_BITS: Final = 16
STRENGTH_SHIFT: Final = PC_SHIFT + PC_BITS
STAMP_SHIFT: Final = STRENGTH_SHIFT + 2
STAMP_LIMIT: Final = (1 << (64 - STAMP_SHIFT)) - 1
WHO: Final = np.uint64((1 << PC_SHIFT) - 1)
CTA_FIELD: Final = np.uint64(((1 << CTA_BITS) - 1) << THREAD_BITS)
_TICK: Final = np.uint64(1 << STAMP_SHIFT)
_NOTHING: Final[Foreign] = {}

WEAK, STRONG_CTA, STRONG_GPU = 1, 2, 3


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a thread had observed when it released; `device` says that threads of other CTAs may acquire it."""

    rows: Foreign
    cta: int  # the releasing CTA, by run number
    device: bool


def merge(parts: Iterable[Foreign]) -> Foreign:
    """The union of several observations, the later clock winning."""
    merged: dict[int, Row] = {}
    for part in parts:
        for cta, row in part.items():
            held = merged.get(cta)
            merged[cta] = row if held is None or held is row else np.maximum(held, row)
    return merged


class Clocks:
    """The clocks of one batch. `reach` says what besides whole-CTA barriers can order threads: nothing ("none"), a warp
    barrier ("warp"), or anything within the CTA ("cta": partial barriers, releases and acquires)."""

    __slots__ = ("_batch", "_known", "_matrix", "_reach", "clock", "horizon", "joined", "tag")

    def __init__(self, batch: Batch, reach: str) -> None:
        if batch.first + len(batch.ctas) > 1 << CTA_BITS:
            raise Unsupported("emulation", f"more than {1 << CTA_BITS} CTAs in one run")
        self._batch, self._reach = batch, reach
        self.clock: Row = np.ones(len(batch.ctas), np.int64)
        self.joined: Row = np.where(batch.present, 1, STAMP_LIMIT)
        self.horizon: Tags = np.full(batch.lanes, _TICK, np.uint64)
        slot = (batch.cta + batch.first) << THREAD_BITS
        self.tag: Tags = (slot | batch.thread | int(_TICK)).astype(np.uint64)
        width = {"none": 0, "warp": WARP, "cta": batch.padded}[reach]
        self._matrix = np.zeros((batch.lanes, width), np.int32)
        self._known: list[Foreign] | None = None  # by lane; None until somebody acquires

    def tick(self, ctas: Lanes) -> None:
        """Advance the clocks of some CTAs; everything tagged before has a clock value below theirs now."""
        self.clock[ctas] += 1
        if int(self.clock.max()) >= STAMP_LIMIT:
            raise Unsupported("emulation", f"more than {STAMP_LIMIT} synchronisations in one CTA")
        self.tag.reshape(-1, self._batch.padded)[ctas] += _TICK

    def join_all(self, ctas: Lanes, lanes: Lanes) -> None:
        """Order all earlier accesses of `lanes`, the live threads of `ctas`, before all their later ones, by CTA."""
        self.tick(ctas)
        self.joined[lanes] = self.clock[self._batch.cta[lanes]]
        oldest = self.joined.reshape(-1, self._batch.padded)[ctas].min(axis=1)
        self.horizon.reshape(-1, self._batch.padded)[ctas] = (oldest << STAMP_SHIFT).astype(np.uint64)[:, None]
        if self._known is not None:
            for cta in ctas:
                self._share(lanes[self._batch.cta[lanes] == cta])

    def join_warps(self, lanes: Lanes, mask: npt.NDArray[np.uint32]) -> None:
        """Order all earlier accesses of each warp's lanes of equal `mask` before all their later ones."""
        self.tick(np.unique(self._batch.cta[lanes]))
        column = self._batch.lane_id if self._reach == "warp" else self._batch.thread
        key = (lanes // WARP) << 32 | mask.astype(np.int64)
        order = np.argsort(key, kind="stable")
        bounds = np.flatnonzero(np.diff(key[order], prepend=-1, append=-1) != 0)
        for start, stop in pairwise(bounds):
            group = lanes[order[start:stop]]
            row = self._matrix[group].max(axis=0)
            row[column[group]] = 2 * self.clock[self._batch.cta[group[0]]]
            self._matrix[group] = row
            if self._known is not None:
                self._share(group)

    def observed(self, lanes: Lanes) -> tuple[Row, Foreign]:
        """What `lanes` (of one CTA) have observed and done: a row over the CTA's threads, and rows of other CTAs.

        Ticks the clock, so that what they do afterwards is not included.
        """
        cta = self._batch.cta[lanes[:1]]
        self.tick(cta)
        row = 2 * self.joined[self._batch.span(int(cta[0]))]
        if self._reach == "cta":
            np.maximum(row, self._matrix[lanes].max(axis=0), out=row)
        row[self._batch.thread[lanes]] = 2 * self.clock[cta[0]]
        if self._known is None:
            return row, _NOTHING
        return row, merge({id(self._known[lane]): self._known[lane] for lane in lanes}.values())

    def learn(self, lanes: Lanes, row: Row | None, foreign: Foreign) -> None:
        """Order what was observed before all later accesses of `lanes` (of one CTA)."""
        if row is not None and self._reach == "cta":
            self._matrix[lanes] = np.maximum(self._matrix[lanes], row.astype(np.int32))
        if foreign:
            if self._known is None:
                self._known = [_NOTHING] * self._batch.lanes
            merged: dict[int, Foreign] = {}
            for lane in lanes.tolist():
                known = self._known[lane]
                if id(known) not in merged:
                    merged[id(known)] = merge((known, foreign))
                self._known[lane] = merged[id(known)]

    def sequenced(self, lanes: Lanes, before: Foreign) -> Foreign:
        """Order `before` (rows by CTA) before all later accesses of `lanes`; the result adds what these have done."""
        ctas = self._batch.cta[lanes]
        groups = [(int(c) + self._batch.first, lanes[ctas == c]) for c in np.unique(ctas)]
        seen: list[Foreign] = []
        for cta, mine in groups:
            row, foreign = self.observed(mine)
            seen.append({**foreign, cta: row})
        for cta, mine in groups:
            self.learn(mine, before.get(cta), {c: row for c, row in before.items() if c != cta})
        return merge((before, *seen))

    def release(self, lane: int, device: bool) -> Snapshot:
        """What a release by `lane` publishes."""
        row, foreign = self.observed(np.array([lane]))
        cta = int(self._batch.cta[lane]) + self._batch.first
        return Snapshot({**foreign, cta: row}, cta, device)

    def published(self, lane: int, snapshot: Snapshot, device: bool) -> Snapshot:
        """A snapshot as a strong write of `lane` makes it available, with that write itself ordered too."""
        rows = dict(snapshot.rows)
        row = rows[snapshot.cta].copy()
        row[self._batch.thread[lane]] = 2 * int(self.clock[self._batch.cta[lane]]) + 1
        rows[snapshot.cta] = row
        return Snapshot(rows, snapshot.cta, device and snapshot.device)

    def acquire(self, lane: int, snapshot: Snapshot, device: bool) -> None:
        """Order what `snapshot` published before all later accesses of `lane`, if both scopes reach."""
        own = int(self._batch.cta[lane]) + self._batch.first
        if snapshot.cta != own and not (snapshot.device and device):
            return
        foreign = {cta: row for cta, row in snapshot.rows.items() if cta != own}
        self.learn(np.array([lane]), snapshot.rows.get(own), foreign)

    def ordered(self, prior: Tags, lanes: Lanes) -> Mask:
        """For each pair of an earlier access and a lane, whether the access is ordered before the lane's next one."""
        slot = ((prior & CTA_FIELD) >> np.uint64(THREAD_BITS)).astype(np.int64) - self._batch.first
        thread = (prior & np.uint64((1 << THREAD_BITS) - 1)).astype(np.int64)
        stamp = (prior >> np.uint64(STAMP_SHIFT)).astype(np.int64)
        same = slot == self._batch.cta[lanes]
        other = np.where(same, slot * self._batch.padded + thread, lanes)
        result: Mask = same & ((other == lanes) | (stamp < self.joined[other]))
        need = 2 * stamp + (prior >> np.uint64(STRENGTH_SHIFT) & np.uint64(3) == WEAK)
        if self._reach == "warp":
            near = same & (other // WARP == lanes // WARP)
            result |= near & (need < self._matrix[lanes, np.where(near, thread % WARP, 0)])
        elif self._reach == "cta":
            result |= same & (need < self._matrix[lanes, np.where(same, thread, 0)])
        if self._known is not None:
            for k in np.flatnonzero(~same):
                row = self._known[lanes[k]].get(int(slot[k]) + self._batch.first)
                result[k] = row is not None and int(need[k]) < int(row[thread[k]])
        return result

    def _share(self, lanes: Lanes) -> None:
        if self._known is None:
            return
        parts = {id(self._known[lane]): self._known[lane] for lane in lanes}
        if len(parts) > 1:
            union = merge(parts.values())
            for lane in lanes:
                self._known[lane] = union
