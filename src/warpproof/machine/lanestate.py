"""Where every lane of a batch is: its pc, whether it can run, and what it waits for."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from warpproof.machine.batch import WARP, Batch, Lanes, Mask
from warpproof.machine.ordering import Row
from warpproof.machine.warps import Masks, lane_bits

RUN: Final = 0
EXITED: Final = 1
AT_BARRIER: Final = 2
AT_WARP: Final = 3


class LaneState:
    """The control state of a batch. `live` is True for threads that exist and have not exited."""

    __slots__ = ("answer", "answered", "live", "live_bits", "pc", "state", "wait_key", "wait_mask")

    def __init__(self, batch: Batch) -> None:
        self.pc: Row = np.zeros(batch.lanes, np.int64)
        self.state: npt.NDArray[np.uint8] = np.where(batch.present, RUN, EXITED).astype(np.uint8)
        self.live: Mask = batch.present.copy()
        self.live_bits: Masks = lane_bits(self.live)
        self.wait_key: Row = np.zeros(batch.lanes, np.int64)
        self.wait_mask: Masks = np.zeros(batch.lanes, np.uint32)
        self.answered: Mask = np.zeros(batch.lanes, np.bool_)
        self.answer: Row = np.zeros(batch.lanes, np.int64)

    def runnable(self) -> Mask:
        """The lanes that can execute their next instruction."""
        return np.asarray(self.state == RUN)

    def exit(self, lanes: Lanes) -> Lanes:
        """End the threads; the result is the lanes of their warps that must look again at what they wait for."""
        self.state[lanes] = EXITED
        self.live[lanes] = False
        self.live_bits = lane_bits(self.live)
        warps = np.zeros(len(self.live_bits), np.bool_)
        warps[lanes // WARP] = True
        return np.flatnonzero((self.state == AT_WARP) & np.repeat(warps, WARP))
