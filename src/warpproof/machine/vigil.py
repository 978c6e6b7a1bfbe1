"""Threads that wait for ever in loops: nothing is written any more, and every thread comes back to where it was.

When each thread that can run has run, all of them have the same pc and registers again, and memory has not been
touched in between, then each of them goes round for ever, in whatever order they run.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from warpproof.machine.batch import Lanes, Mask
from warpproof.machine.lanestate import LaneState
from warpproof.machine.registers import RegisterFile

_QUIET: Final = 512
"""Steps without a change after which a look is taken."""
_STALE: Final = 4096


class Vigil:
    """Watches one batch of CTAs, none of which waits for a CTA outside if it is to be `trusted`."""

    __slots__ = ("_pc", "_ran", "_registers", "_seen", "_since", "_state", "changed", "trusted")

    def __init__(self, state: LaneState, registers: RegisterFile, trusted: bool) -> None:
        self._state, self._registers, self.trusted = state, registers, trusted
        self.changed = False  # memory, a barrier or a warp operation, since the last look
        self._since = 0
        self._pc: Any = None
        self._seen: Any = None
        self._ran: Mask = np.zeros(len(state.pc), np.bool_)

    def stuck(self, lanes: Lanes, steps: int) -> Lanes | None:
        """The threads that wait for ever, when that is certain, after `lanes` have had a turn."""
        if self.changed or not self.trusted:
            self.changed, self._since, self._pc = False, steps, None
            return None
        if steps - self._since < _QUIET:
            return None
        if self._pc is None or steps - self._since > _STALE:
            self._pc, self._seen = self._state.pc.copy(), self._registers.copies()
            self._since = steps - _QUIET
            self._ran[:] = False
            return None
        self._ran[lanes] = True
        able = np.flatnonzero(self._state.runnable())
        if not self._ran[able].all() or (self._state.pc[able] != self._pc[able]).any():
            return None
        return able if not self._registers.timed and self._registers.same(self._seen, able) else None
