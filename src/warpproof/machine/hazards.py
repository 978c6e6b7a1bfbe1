"""Data races, found dynamically: conflicting accesses of two threads that no synchronisation orders.

For each granule of memory (4 bytes, finer once a finer access is seen) the shadow holds the last writer and up to
three readers: the last, the last by another thread, the last by another warp. With whole-CTA barriers only this finds a
race at a granule whenever one exists in the schedule run; one can be missed only under partial synchronisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from warpproof.machine.batch import WARP, Lanes, Mask
from warpproof.machine.ordering import (
    CTA_FIELD,
    PC_BITS,
    PC_SHIFT,
    STRENGTH_SHIFT,
    STRONG_CTA,
    STRONG_GPU,
    THREAD_BITS,
    WEAK,
    WHO,
    Clocks,
    Tags,
)
from warpproof.machine.storage import Offsets, Region

_WARP_FIELD: Final = WHO & ~np.uint64(WARP - 1)
_NONE: Final = np.uint64(0)
UNKNOWN_PC: Final = (1 << PC_BITS) - 1


@dataclass(frozen=True, slots=True)
class Conflict:
    """Lanes (by position in the access) in a race with the tagged earlier accesses. `within` marks pairs of one
    instruction, `writes` that the earlier access was a write."""

    positions: Lanes
    prior: Tags
    writes: bool
    within: bool

    def plain(self) -> Mask:
        """Where the earlier access was a weak write, which a second write of its value leaves as it was."""
        return np.asarray(self.writes & ((self.prior >> np.uint64(STRENGTH_SHIFT)) & np.uint64(3) == WEAK))


def prior_pc(tag: int) -> int | None:
    """The instruction of a tagged access, None when it did not fit the tag."""
    pc = tag >> PC_SHIFT & UNKNOWN_PC
    return None if pc == UNKNOWN_PC else pc


def prior_thread(tag: int) -> tuple[int, int]:
    """The run number of the CTA and the thread number of a tagged access."""
    return (tag & int(CTA_FIELD)) >> THREAD_BITS, tag & (1 << THREAD_BITS) - 1


class Shadow:
    """The access history of one region."""

    __slots__ = ("_last_read", "_other_read", "_region", "_shared", "_shift", "_warp_read", "_write")

    def __init__(self, region: Region, shared: bool) -> None:
        self._region, self._shared, self._shift = region, shared, 2
        self._write: Tags = np.zeros(0, np.uint64)
        self._last_read: Tags = np.zeros(0, np.uint64)
        self._other_read: Tags = np.zeros(0, np.uint64)
        self._warp_read: Tags = np.zeros(0, np.uint64)

    def load(self, clocks: Clocks, slots: Offsets, size: int, lanes: Lanes, pc: int, strength: int) -> list[Conflict]:
        """Record a read of `size` bytes at each slot; the result is its races with earlier writes."""
        me = self._tags(clocks, lanes, pc, strength)
        found: list[Conflict] = []
        for granule in self._granules(slots, size):
            found += self._against(self._write, clocks, granule, me, lanes, strength, writes=True)
            self._note_reader(granule, me)
        return found

    def probe(self, clocks: Clocks, slots: Offsets, size: int, lanes: Lanes, pc: int, strength: int,
              since: Tags | None = None) -> list[Conflict]:
        """The races a write has with earlier accesses, without recording it.

        With `since` they are those with every access of that time or later, whatever orders it before now: an
        asynchronous write takes effect at any moment between its issue and its completion.
        """
        me = self._tags(clocks, lanes, pc, strength)
        found: list[Conflict] = []
        for granule in self._granules(slots, size):
            found += self._against(self._write, clocks, granule, me, lanes, strength, writes=True, since=since)
            for readers in (self._last_read, self._other_read, self._warp_read):
                if len(readers):
                    found += self._against(readers, clocks, granule, me, lanes, strength, writes=False, since=since)
        return found

    def store(self, clocks: Clocks, slots: Offsets, size: int, lanes: Lanes, pc: int, strength: int,
              since: Tags | None = None) -> list[Conflict]:
        """Record a write; the result is its races with earlier accesses (see `probe`) and between its own lanes."""
        found = self.probe(clocks, slots, size, lanes, pc, strength, since)
        me = self._tags(clocks, lanes, pc, strength)
        for granule in self._granules(slots, size):
            self._write[granule] = me
            kept = self._write[granule]
            difference = kept ^ me
            lost = difference & WHO != _NONE
            if strength >= STRONG_CTA:
                lost &= difference & CTA_FIELD != _NONE
            if strength < STRONG_GPU and lost.any():
                positions = np.flatnonzero(lost)
                found.append(Conflict(positions, kept[positions], writes=True, within=True))
        return found

    def written(self, slots: Offsets, size: int) -> Mask:
        """Where some thread has written to any of the `size` bytes at each slot."""
        found: Mask = np.zeros(len(slots), np.bool_)
        for granule in self._granules(slots, size):
            found |= self._write[granule] != _NONE
        return found

    @staticmethod
    def _tags(clocks: Clocks, lanes: Lanes, pc: int, strength: int) -> Tags:
        tags: Tags = clocks.tag[lanes] | np.uint64(min(pc, UNKNOWN_PC) << PC_SHIFT | strength << STRENGTH_SHIFT)
        return tags

    def _granules(self, slots: Offsets, size: int) -> list[Offsets]:
        wanted = min(size.bit_length() - 1, self._shift)
        if wanted < self._shift:
            copies = 1 << (self._shift - wanted)
            self._write = np.repeat(self._write, copies)
            self._last_read = np.repeat(self._last_read, copies)
            self._other_read = np.repeat(self._other_read, copies)
            self._warp_read = np.repeat(self._warp_read, copies)
            self._shift = wanted
        needed = (self._region.capacity >> self._shift) + 1
        if len(self._write) < needed:
            self._write = _grown(self._write, needed)
            self._last_read = _grown(self._last_read, needed)
            self._other_read = _grown(self._other_read, needed)
            self._warp_read = _grown(self._warp_read, needed)
        first = slots >> self._shift
        return [first + k for k in range(size >> self._shift)]

    def _against(self, history: Tags, clocks: Clocks, granule: Offsets, me: Tags, lanes: Lanes, strength: int, *,
                 writes: bool, since: Tags | None = None) -> list[Conflict]:
        prior = history[granule]
        difference = prior ^ me
        recent = prior >= (clocks.horizon[lanes] if since is None else since)
        if not self._shared:
            recent |= (difference & CTA_FIELD != _NONE) & (prior != _NONE)
        recent &= difference & WHO != _NONE
        if not recent.any():
            return []
        positions = np.flatnonzero(recent)
        prior, lanes, difference = prior[positions], lanes[positions], difference[positions]
        race: Mask = ~clocks.ordered(prior, lanes) if since is None else np.ones(len(positions), np.bool_)
        if strength >= STRONG_CTA:
            needed = np.where(difference & CTA_FIELD != _NONE, STRONG_GPU, STRONG_CTA)
            theirs = (prior >> np.uint64(STRENGTH_SHIFT) & np.uint64(3)).astype(np.int64)
            race &= (theirs < needed) | (needed > strength)
        if not race.any():
            return []
        return [Conflict(positions[race], prior[race], writes, within=False)]

    def _note_reader(self, granule: Offsets, me: Tags) -> None:
        before = self._last_read[granule]
        self._last_read[granule] = me
        after = self._last_read[granule]
        for older, newer in ((before, me), (me, after)):
            difference = older ^ newer
            changed = (difference & WHO != _NONE) & (older != _NONE)
            if changed.any():
                where = granule[changed]
                self._other_read[where] = older[changed]
                far = changed & (difference & _WARP_FIELD != _NONE)
                if far.any():
                    self._warp_read[granule[far]] = older[far]


def _grown(history: Tags, length: int) -> Tags:
    longer = np.zeros(length, np.uint64)
    longer[:len(history)] = history
    return longer
