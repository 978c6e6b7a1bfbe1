"""Which lanes a warp shuffle reads and what the lane-mask registers hold (PTX ISA 9.7.9.6 and 10.8 to 10.12)."""

from __future__ import annotations

import numpy as np

from warpproof.core import Unsupported
from warpproof.terms import BoolVector, IntVector


def shuffle_source(mode: str, step: IntVector, clamp: IntVector) -> tuple[IntVector, BoolVector]:
    """The source lane of each lane of the CTA and its in-range flag, for `shfl.sync.mode d, a, step, clamp`.

    Raises Unsupported when a source lies beyond the last thread of the CTA.
    """
    n = len(step)
    lane, warp = np.arange(n) % 32, np.arange(n) // 32 * 32
    b, segment, last = step & 31, clamp >> 8 & 31, clamp & 31
    low = lane & segment
    top = low | (last & ~segment)
    match mode:
        case "up":
            j = lane - b
            ok = j >= top
        case "down":
            j = lane + b
            ok = j <= top
        case "bfly":
            j = lane ^ b
            ok = j <= top
        case _:
            j = low | (b & ~segment)
            ok = j <= top
    source = warp + np.where(ok, j, lane)
    if (source >= n).any():
        raise Unsupported("shfl.sync", "a lane beyond the last thread of the CTA")
    return source, ok


def lane_mask(name: str, lane: IntVector) -> IntVector:
    """The value of `%lanemask_*` in a lane of its warp."""
    bit = np.int64(1) << lane
    match name.removeprefix("%lanemask_"):
        case "eq":
            return bit
        case "lt":
            return bit - 1
        case "le":
            return 2 * bit - 1
        case "gt":
            return 0xFFFFFFFF - (2 * bit - 1)
        case "ge":
            return 0xFFFFFFFF - (bit - 1)
        case _:
            raise Unsupported(name, "unknown special register")
