"""The threads of a batch of CTAs as lanes: where each lane sits in the grid, its CTA and its warp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Lanes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Words = npt.NDArray[Any]

WARP: Final = 32


class Batch:
    """Lane `c·padded + t` is thread t of the batch's CTA c; each CTA is padded to whole warps by absent lanes.

    `first` numbers the batch's first CTA within the run. Threads are numbered x fastest (PTX ISA, %tid), warps are 32
    consecutive numbers.
    """

    __slots__ = ("block", "cta", "ctas", "first", "grid", "lane_id", "lanes", "padded", "present", "thread", "threads")

    def __init__(self, grid: tuple[int, int, int], block: tuple[int, int, int], ctas: Sequence[tuple[int, int, int]],
                 first: int) -> None:
        self.grid, self.block, self.ctas, self.first = grid, block, tuple(ctas), first
        self.threads = block[0] * block[1] * block[2]
        self.padded = -(-self.threads // WARP) * WARP
        self.lanes = self.padded * len(self.ctas)
        index = np.arange(self.lanes, dtype=np.int64)
        self.cta, self.thread = np.divmod(index, self.padded)
        self.lane_id = index % WARP
        self.present: Mask = self.thread < self.threads

    def span(self, cta: int) -> slice:
        """The lanes of CTA number `cta` of the batch, absent ones included."""
        return slice(cta * self.padded, (cta + 1) * self.padded)

    def thread_coordinates(self, thread: int) -> tuple[int, int, int]:
        """(%tid.x, %tid.y, %tid.z) of a thread number."""
        x, y, _ = self.block
        return thread % x, thread // x % y, thread // (x * y)

    def tid(self) -> tuple[Lanes, Lanes, Lanes]:
        """%tid.x, %tid.y and %tid.z of every lane."""
        x, y, _ = self.block
        return self.thread % x, self.thread // x % y, self.thread // (x * y)

    def ctaid(self) -> tuple[Lanes, Lanes, Lanes]:
        """%ctaid.x, .y and .z of every lane."""
        table = np.array(self.ctas, np.int64).reshape(-1, 3)
        return table[self.cta, 0], table[self.cta, 1], table[self.cta, 2]
