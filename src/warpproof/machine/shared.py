"""Symbolic shared memory: every cell holds (value, lane) — the value's lane `lane` is what the cell contains.

A load is a gather: one stored value gives a lane permutation, several are mixed (see `mixing`). Addresses are concrete
per lane; a symbolic address raises `Unsupported`. Stores under a symbolic path keep the old contents by choice.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Reals, Undef, Value, joined, poisoned, taken_apart
from warpproof.machine.footprint import Footprint
from warpproof.machine.mixing import mix, permute
from warpproof.terms import BoolVector, IntVector, Poly, Pred

SYMBOLIC_ADDRESS: Final = "an address that depends on a symbol"
_EMPTY: Final = -1


class SharedMemory:
    """Cells of `unit` bytes."""

    def __init__(self, inside: BoolVector, unit: int, dom: Reals) -> None:
        """`inside` says which cells exist."""
        self.unit, self.dom, self.cells, self._inside = unit, dom, len(inside), inside
        self.owner: IntVector = np.full(self.cells, _EMPTY, np.int64)
        self.lane: IntVector = np.zeros(self.cells, np.int64)
        self.values: list[Value] = []
        self._ids: dict[Value, int] = {}
        self.refused = Poly({})  # the last address that depends on a symbol
        self.footprint = Footprint(self.cells, dom.lanes)

    def snapshot(self) -> tuple[IntVector, IntVector]:
        """The contents, to restore."""
        return self.owner.copy(), self.lane.copy()

    def restore(self, snap: tuple[IntVector, IntVector]) -> None:
        """Put contents back."""
        self.owner, self.lane = snap[0].copy(), snap[1].copy()

    def intern(self, v: Value) -> int:
        """The table index of a value."""
        found = self._ids.get(v)
        if found is None:
            found = self._ids[v] = len(self.values)
            self.values.append(v)
        return found

    def locate(self, address: Poly, width: int, mask: BoolVector) -> IntVector:
        """Cell numbers of the first unit of an access of `width` bytes, for every lane (inactive ones repeat one)."""
        if not address.is_constant():
            self.refused = address
            raise Unsupported("shared memory", SYMBOLIC_ADDRESS)
        a = np.asarray(address.lanes(self.dom.lanes))
        a = np.where(mask, a, a[int(np.argmax(mask))])
        if width % self.unit or (a % self.unit).any():
            raise Unsupported("shared memory", "accesses of different sizes that overlap in part")
        return np.asarray(a // self.unit)

    def in_bounds(self, cells: IntVector, width: int) -> bool:
        """True when every cell of the access exists."""
        count = width // self.unit
        if int(cells.min()) < 0 or int(cells.max()) + count > self.cells:
            return False
        return all(bool(self._inside[cells + j].all()) for j in range(count))

    # ------------------------------------------------------------------ load
    def load(self, cells: IntVector, width: int, mask: BoolVector) -> tuple[Value, bool]:
        """The value of `width` bytes per lane, and whether every active lane reads written cells."""
        parts = []
        written = True
        for j in range(width // self.unit):
            value, ok = self._cell(cells + j, mask)
            parts.append(value)
            written = written and ok
        return joined(self.dom, width * 8, parts), written

    def _cell(self, cells: IntVector, mask: BoolVector) -> tuple[Value, bool]:
        owner, lane = self.owner[cells], self.lane[cells]
        missing = (owner == _EMPTY) & mask
        if missing[mask].all():
            return Undef(self.unit * 8, "shared memory never written"), False
        if not mask.all() or missing.any():
            live = int(np.argmax(mask & ~missing))
            owner = np.where(mask & ~missing, owner, owner[live])
            lane = np.where(mask & ~missing, lane, lane[live])
        value = self._gather(owner, lane)
        if missing.any():
            hole = Undef(self.unit * 8, "shared memory never written")
            value = self.dom.merge(self.dom.arena.lane_mask(missing), hole, value)
            return value, False
        return value, not poisoned(value)

    def _gather(self, owner: IntVector, lane: IntVector) -> Value:
        first = int(owner[0])
        if (owner == first).all():
            return permute(self.dom, self.values[first], lane)
        return mix(self.dom, self.values, owner, lane)

    # ------------------------------------------------------------------ store
    def store(self, cells: IntVector, value: Value, width: int, mask: BoolVector, guard: Pred) -> None:
        """Write a value of `width` bytes per active lane; `guard` is the symbolic path it happens under."""
        n = width // self.unit
        parts = (value,) if n == 1 else taken_apart(self.dom, width * 8, value, n)
        for j, part in enumerate(parts):
            k = cells + j
            if guard.op != "true":
                old, _ = self._cell(k, mask)
                part = self.dom.merge(guard, part, old)
            self.owner[k[mask]] = self.intern(part)
            self.lane[k[mask]] = np.nonzero(mask)[0]
