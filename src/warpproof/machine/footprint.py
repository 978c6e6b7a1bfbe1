"""Shared-memory accesses since the last barrier, by cell: who wrote, who read, and which pairs are unordered.

A cell's code is −1 (nobody), a lane, lanes + w (warp w, ordered for all its lanes by a warp barrier), a higher number
(a set of warps, ordered for all their lanes by a named barrier), −2 (several), or −3 − w (several lanes of warp w,
which have read).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warpproof.machine.pending import Pending
from warpproof.terms import BoolVector, IntVector

Codes = npt.NDArray[np.int32]
Times = npt.NDArray[np.int64]
_NOBODY, _MANY, _READERS = -1, -2, -3


@dataclass(frozen=True, slots=True)
class Published:
    """What some lanes have told at an arrival: cells by number of the latest access, for writers and readers."""

    written: dict[int, int]
    read: dict[int, int]


class Footprint:
    """Accesses of one barrier interval, and asynchronous copies outstanding at any time. `cells` counts the units of
    shared memory."""

    __slots__ = ("clock", "groups", "lanes", "pending", "read_at", "read_time", "reader", "updated", "write_time",
                 "writer", "written_at")

    def __init__(self, cells: int, lanes: int) -> None:
        self.lanes = lanes
        self.writer: Codes = np.full(cells, _NOBODY, np.int32)
        self.reader: Codes = np.full(cells, _NOBODY, np.int32)
        self.written_at: Codes = np.full(cells, -1, np.int32)
        self.read_at: Codes = np.full(cells, -1, np.int32)
        self.pending = Pending(cells)
        self.groups: list[BoolVector] = []  # lanes that met at a named barrier; shared by all copies
        self.clock = 0
        self.write_time: Times = np.zeros(cells, np.int64)
        self.read_time: Times = np.zeros(cells, np.int64)
        self.updated: BoolVector = np.zeros(cells, bool)  # where all writes are atomic updates

    def copy(self) -> Footprint:
        """An independent copy."""
        new = Footprint(0, self.lanes)
        new.writer, new.reader = self.writer.copy(), self.reader.copy()
        new.written_at, new.read_at = self.written_at.copy(), self.read_at.copy()
        new.pending, new.groups, new.clock = self.pending.copy(), self.groups, self.clock
        new.write_time, new.read_time = self.write_time.copy(), self.read_time.copy()
        new.updated = self.updated.copy()
        return new

    def clear(self) -> None:
        """A CTA barrier orders everything so far before everything that follows."""
        self.writer.fill(_NOBODY)
        self.reader.fill(_NOBODY)

    def close(self) -> None:
        """Every cell counts as written and read by several threads, in no order."""
        self.writer.fill(_MANY)
        self.reader.fill(_MANY)
        self.updated.fill(False)

    def warp_barrier(self, mask: BoolVector | None = None) -> None:
        """All lanes of every warp (of those in `mask`) have met: their own earlier accesses are ordered for the whole
        warp."""
        for codes in (self.writer, self.reader):
            own = np.flatnonzero((codes >= 0) & (codes < self.lanes))
            if mask is not None:
                own = own[mask[codes[own]]]
            codes[own] = self.lanes + codes[own] // 32
            for warp in np.unique(_READERS - codes[codes <= _READERS]).tolist():
                if mask is None or mask[32 * warp : 32 * warp + 32].all():
                    codes[codes == _READERS - warp] = self.lanes + warp

    def publish(self, mask: BoolVector) -> Published:
        """What is ordered before the next step of some lane of `mask`."""
        found: list[dict[int, int]] = []
        for codes, times in ((self.writer, self.write_time), (self.reader, self.read_time)):
            own = np.isin(codes, self._told(codes, mask))
            found.append({int(c): int(times[c]) for c in np.flatnonzero(own)})
        return Published(*found)

    def receive(self, published: Published, mask: BoolVector) -> None:
        """What was published, and is still the latest access, is ordered before all lanes of `mask`."""
        for codes, times, told in ((self.writer, self.write_time, published.written),
                                   (self.reader, self.read_time, published.read)):
            for cell, time in told.items():
                if times[cell] == time and codes[cell] not in (_NOBODY, _MANY):
                    codes[cell] = self._code(self._whose(int(codes[cell])) | mask)

    def group_barrier(self, mask: BoolVector) -> None:
        """The warps of `mask` have met at a barrier of their own: what is ordered for one of them is so for all."""
        for codes in (self.writer, self.reader):
            for code in self._told(codes, mask):
                codes[codes == code] = self._code(mask if code < self.lanes else self._whose(code) | mask)

    def _told(self, codes: Codes, mask: BoolVector) -> list[int]:
        """The codes of accesses that are all ordered before what follows in `mask`."""
        return [
            code for code in np.unique(codes).tolist() if code not in (_NOBODY, _MANY) and (
                mask[32 * (_READERS - code) : 32 * (_READERS - code) + 32].all() if code <= _READERS
                else (self._whose(code) & mask).any())
        ]

    def _whose(self, code: int) -> BoolVector:
        """The lanes that come after accesses of this code."""
        every = np.arange(self.lanes)
        if code <= _READERS:
            return np.asarray(every < 0)
        if code < self.lanes:
            return np.asarray(every == code)
        warps = -(-self.lanes // 32)
        if code < self.lanes + warps:
            return np.asarray(every // 32 == code - self.lanes)
        return self.groups[code - self.lanes - warps]

    def _code(self, mask: BoolVector) -> int:
        found = next((k for k, g in enumerate(self.groups) if (g == mask).all()), None)
        if found is None:
            found = len(self.groups)
            self.groups.append(mask.copy())
        return self.lanes + -(-self.lanes // 32) + found

    def _grouped(self, codes: Codes, lanes: IntVector) -> npt.NDArray[np.bool_]:
        """Where the code is of a set of warps that has the lane."""
        base = self.lanes + -(-self.lanes // 32)
        inside = np.asarray(codes >= base)
        if not self.groups or not inside.any():
            return inside & False
        table = np.stack(self.groups)
        return inside & table[np.where(inside, codes - base, 0), lanes]

    def settle(self, cells: IntVector, lanes: Codes) -> None:
        """Copies into `cells` have completed: each is a write by its lane, here and now."""
        self._merge(self.writer, cells, lanes.astype(np.int64))

    def _foreign(self, codes: Codes, lanes: IntVector) -> npt.NDArray[np.bool_]:
        other = (codes != _NOBODY) & (codes != lanes) & (codes != self.lanes + lanes // 32)
        return np.asarray(other & ~self._grouped(codes, lanes))

    def read(self, cells: IntVector, lanes: IntVector, instruction: int) -> tuple[int, int] | None:
        """Record reads; the first conflict as (position, instruction of the write), or None."""
        clash = self._foreign(self.writer[cells], lanes) | (self.pending.stage[cells] > 0)
        self._merge(self.reader, cells, lanes)
        self.read_at[cells] = instruction
        return self._first(clash, self.written_at, cells)

    def read_any(self, cells: IntVector, lanes: IntVector, instruction: int) -> int | None:
        """Record that each of `lanes` may read any of `cells`; the instruction of a conflicting write, or None."""
        ordered = self._before_all(self.writer[cells], lanes)
        if len(lanes) == 1:
            self._merge(self.reader, cells, np.full(len(cells), lanes[0]))
        else:
            self.reader[cells] = _MANY
            self.clock += 1
            self.read_time[cells] = self.clock
        self.read_at[cells] = instruction
        return self._first_at(~ordered | (self.pending.stage[cells] > 0), cells)

    def _before_all(self, codes: Codes, lanes: IntVector) -> npt.NDArray[np.bool_]:
        """Where the access of a code comes before what each of the lanes does now."""
        warps = np.unique(lanes // 32)
        ordered = np.asarray(codes == _NOBODY)
        if len(lanes) == 1:
            ordered |= codes == lanes[0]
        if len(warps) == 1:
            ordered |= codes == self.lanes + warps[0]
        ordered |= np.logical_and.reduce([self._grouped(codes, np.full(len(codes), t)) for t in 32 * warps])
        return ordered

    def write(
        self, cells: IntVector, lanes: IntVector, instruction: int, alike: bool = False
    ) -> tuple[int, int] | None:
        """Record writes; the first conflict as (position, instruction of the other access), or None. Several lanes may
        write one cell in this instruction when their values are `alike`."""
        clash_w = self._foreign(self.writer[cells], lanes) | (self.pending.stage[cells] > 0)
        clash_r = self._foreign(self.reader[cells], lanes)
        order = np.argsort(cells, kind="stable")
        twice = np.zeros(len(cells), dtype=bool)
        twice[order[1:]] = (cells[order][1:] == cells[order][:-1]) & (lanes[order][1:] != lanes[order][:-1])
        found = self._first(clash_w, self.written_at, cells) or self._first(clash_r, self.read_at, cells)
        if found is None and not alike and twice.any():
            found = (int(np.argmax(twice)), instruction)
        self._merge(self.writer, cells, lanes)
        self.written_at[cells] = instruction
        return found

    def update(self, cells: IntVector, lanes: IntVector, instruction: int) -> int | None:
        """Record that any of `lanes` may update any of `cells` atomically; the instruction of a conflicting access that
        is no such update, or None."""
        free = self._before_all(self.writer[cells], lanes) | self.updated[cells]
        seen = self._before_all(self.reader[cells], lanes)
        clash = ~(free & seen) | (self.pending.stage[cells] > 0)
        found = None
        if clash.any():
            k = int(cells[int(np.argmax(clash))])
            found = int(self.read_at[k] if self.written_at[k] < 0 else self.written_at[k])
        self.updated[cells] |= self.writer[cells] == _NOBODY
        self.writer[cells] = _MANY
        self.clock += 1
        self.write_time[cells], self.written_at[cells] = self.clock, instruction
        return found

    def _first_at(self, clash: npt.NDArray[np.bool_], cells: IntVector) -> int | None:
        return int(self.written_at[cells[int(np.argmax(clash))]]) if clash.any() else None

    def _first(self, clash: npt.NDArray[np.bool_], at: Codes, cells: IntVector) -> tuple[int, int] | None:
        if not clash.any():
            return None
        i = int(np.argmax(clash))
        return i, int(at[cells[i]])

    def _merge(self, codes: Codes, cells: IntVector, lanes: IntVector) -> None:
        self.clock += 1
        (self.write_time if codes is self.writer else self.read_time)[cells] = self.clock
        old = codes[cells]
        keep = (old == _NOBODY) | (old == lanes) | (old == self.lanes + lanes // 32) | self._grouped(old, lanes)
        new = np.where(keep, lanes, _MANY)
        if codes is self.reader:
            warp = lanes // 32
            beside = (old >= 0) & (old < self.lanes) & (old // 32 == warp)
            new = np.where(~keep & (beside | (old == _READERS - warp)), _READERS - warp, new)
        codes[cells] = new
        back = codes[cells]
        codes[cells[back != new]] = _MANY
        if codes is self.writer:
            self.updated[cells] = False

    def union(self, other: Footprint) -> Footprint:
        """Accesses of either."""
        out = self.copy()
        out.updated = (self.updated | (self.writer == _NOBODY)) & (other.updated | (other.writer == _NOBODY))
        for mine, theirs, at, their_at in (
            (out.writer, other.writer, out.written_at, other.written_at),
            (out.reader, other.reader, out.read_at, other.read_at),
        ):
            fresh = (mine == _NOBODY) & (theirs != _NOBODY)
            differ = (mine != _NOBODY) & (theirs != _NOBODY) & (mine != theirs)
            at[fresh] = their_at[fresh]
            mine[fresh] = theirs[fresh]
            mine[differ] = _MANY
        out.pending, out.clock = self.pending.union(other.pending), max(self.clock, other.clock) + 1
        out.write_time[:], out.read_time[:] = out.clock, out.clock  # told to nobody
        return out

    def within(self, other: Footprint) -> bool:
        """True when every access here is one of `other`'s."""
        plain = (self.writer != _NOBODY) & ~self.updated
        return self.pending.within(other.pending) and not (plain & other.updated).any() and all(
            bool(np.all((a == _NOBODY) | (a == b) | (b == _MANY)))
            for a, b in ((self.writer, other.writer), (self.reader, other.reader))
        )
