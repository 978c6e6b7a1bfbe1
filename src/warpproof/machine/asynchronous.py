"""`cp.async`: copies that run beside their thread until it waits for them (PTX ISA 9.7.9.25)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpproof.domains import AsyncCopy, Load, ScalarType
from warpproof.machine.accesses import Accesses
from warpproof.machine.addresses import Addresses, AddressSpaces, address_array
from warpproof.machine.batch import Batch, Lanes, Mask, Words
from warpproof.machine.ordering import STAMP_SHIFT, WEAK, Clocks, Row, Tags

_BYTE = ScalarType("b", 8)


@dataclass(slots=True)
class _Copy:
    """Copies issued by one instruction: for each lane the commit group, destination, words, and time of issue."""

    pc: int
    lanes: Lanes
    group: Row
    addresses: Addresses
    words: list[Words]
    issued: Tags


class AsyncCopies:
    """The outstanding copies of a batch. A source is read when its copy is issued; its destination is written when the
    issuing thread waits, and until then any other access of it is a race."""

    __slots__ = ("_accesses", "_batch", "_clocks", "_committed", "_pending", "_spaces")

    def __init__(self, batch: Batch, accesses: Accesses, spaces: AddressSpaces, clocks: Clocks) -> None:
        self._batch, self._accesses, self._spaces, self._clocks = batch, accesses, spaces, clocks
        self._committed: Row = np.zeros(batch.lanes, np.int64)
        self._pending: list[_Copy] = []

    def issue(self, effect: AsyncCopy, lanes: Lanes, pc: int) -> None:
        """Start a copy in each lane."""
        limit = np.full(len(lanes), effect.size, np.int64)
        if effect.source_size is not None:
            limit = np.minimum(np.asarray(effect.source_size).astype(np.int64), effect.size)
        if effect.ignore is not None:
            limit[np.asarray(effect.ignore, np.bool_)] = 0
        source, destination = address_array(effect.source), address_array(effect.destination)
        words = self._source(source, limit, effect.size, lanes, pc)
        reachable = self._accesses.writable(destination, lanes, effect.size, pc)
        at = np.flatnonzero(reachable)
        if len(at):
            issued = self._clocks.tag[lanes[at]] >> np.uint64(STAMP_SHIFT) << np.uint64(STAMP_SHIFT)
            self._pending.append(_Copy(pc, lanes[at], self._committed[lanes[at]], destination[at],
                                       [word[at] for word in words], issued))

    def commit(self, lanes: Lanes) -> None:
        """Close the current group of each lane."""
        self._committed[lanes] += 1

    def wait(self, lanes: Lanes, pending: int | None) -> None:
        """Finish the copies of each lane but those of its `pending` latest groups; with None all, committed or not."""
        limit = np.full(self._batch.lanes, -1, np.int64)
        limit[lanes] = np.iinfo(np.int64).max if pending is None else self._committed[lanes] - pending
        remaining: list[_Copy] = []
        for copy in self._pending:
            done = copy.group < limit[copy.lanes]
            if done.any():
                self._finish(copy, done)
            if not done.all():
                remaining.append(_kept(copy, ~done))
        self._pending = remaining

    def _source(self, addresses: Addresses, limit: Row, size: int, lanes: Lanes, pc: int) -> list[Words]:
        """The bytes of each copy as words of at most 8 bytes; zero from the lane's limit on."""
        unit = min(size, 8)
        if (limit == size).all():
            load = Load("global", ScalarType("b", 8 * unit), size // unit, addresses)
            values = self._accesses.load(load, lanes, pc)
            return list(values) if isinstance(values, tuple) else [values]
        octets = np.zeros((len(lanes), size), np.uint8)
        whole = np.flatnonzero(limit == size)
        if len(whole):
            found = self._source(addresses[whole], limit[whole], size, lanes[whole], pc)
            octets[whole] = np.stack(found, axis=1).view(np.uint8).reshape(len(whole), size)
        for k in range(size):
            part = np.flatnonzero((limit > k) & (limit < size))
            if len(part):
                load = Load("global", _BYTE, 1, addresses[part] + np.uint64(k))
                octets[part, k] = self._accesses.load(load, lanes[part], pc)
        words = octets.view(f"u{unit}")
        return [words[:, k].copy() for k in range(size // unit)]

    def _finish(self, copy: _Copy, done: Mask) -> None:
        at = np.flatnonzero(done)
        unit = copy.words[0].dtype.itemsize
        lanes = copy.lanes[at]
        pieces, _ = self._spaces.resolve("shared", copy.addresses[at], lanes, unit * len(copy.words))
        for piece in pieces:
            where = np.arange(len(at)) if piece.positions is None else piece.positions
            values = [word[at][where] for word in copy.words]
            self._accesses.write(piece, piece.region.slots(piece.offsets), unit, values, lanes[where], copy.pc, WEAK,
                                 copy.addresses[at], copy.issued[at][where])


def _kept(copy: _Copy, mask: Mask) -> _Copy:
    return _Copy(copy.pc, copy.lanes[mask], copy.group[mask], copy.addresses[mask],
                 [word[mask] for word in copy.words], copy.issued[mask])
