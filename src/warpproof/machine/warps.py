"""Warp-wide operations on the lanes that execute them together: shuffles, votes, matches, reductions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpproof.core import Unsupported
from warpproof.domains import Bits, Elect, Match, Redux, Shuffle, Vote
from warpproof.machine.batch import WARP, Lanes, Mask, Words

Masks = npt.NDArray[np.uint32]
_FULL: Final = np.uint32(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Members:
    """Lanes executing a warp operation together; `mask` is each lane's member mask, `arrived` the lanes of its warp
    that execute it with the same mask, as a bit set."""

    lanes: Lanes
    lane_id: Lanes
    mask: Masks
    arrived: Masks


def lane_bits(flags: Mask) -> Masks:
    """For every warp of a whole batch, the bit set of its lanes where `flags` holds."""
    return np.packbits(flags.reshape(-1, WARP), axis=1, bitorder="little").view("<u4").reshape(-1)


def gather_bits(total: int, lanes: Lanes, flags: Mask | None = None) -> Masks:
    """For every warp of a batch of `total` lanes, the bit set of those among `lanes` (where `flags` holds)."""
    table = np.zeros(total, np.bool_)
    table[lanes] = True if flags is None else flags
    return lane_bits(table)


def members_of(total: int, lanes: Lanes, lane_id: Lanes, mask: Masks) -> Members:
    """The members of an operation that all of `lanes` execute now."""
    warp = lanes // WARP
    first = np.zeros(total // WARP, np.uint32)
    first[warp] = mask
    if (first[warp] == mask).all():
        arrived = gather_bits(total, lanes)[warp]
    else:
        arrived = np.zeros(len(lanes), np.uint32)
        for value in np.unique(mask):
            same = mask == value
            arrived[same] = gather_bits(total, lanes[same])[warp[same]]
    return Members(lanes, lane_id[lanes], mask, arrived)


def shuffle(effect: Shuffle, members: Members) -> tuple[Words, Mask, Mask]:
    """The shuffled value, the in-range predicate, and which lanes got an undefined value (PTX ISA, shfl.sync)."""
    lane = members.lane_id
    value, offset, clamp = (np.asarray(a) for a in (effect.value, effect.lane, effect.clamp))
    b = (offset & 31).astype(np.int64)
    c, segment = (clamp & 31).astype(np.int64), (clamp >> 8 & 31).astype(np.int64)
    top = (lane & segment) | (c & ~segment & 31)
    match effect.mode:
        case "up":
            source = lane - b
            valid = source >= top
        case "down":
            source = lane + b
            valid = source <= top
        case "bfly":
            source = lane ^ b
            valid = source <= top
        case "idx":
            source = (lane & segment) | (b & ~segment & 31)
            valid = source <= top
        case _:
            raise Unsupported(f"shfl.{effect.mode}", "unknown mode")
    source = np.where(valid, source, lane)
    table = np.zeros(int(members.lanes.max()) // WARP * WARP + WARP, value.dtype)
    table[members.lanes] = value
    absent = (members.arrived >> source.astype(np.uint32)) & np.uint32(1) == 0
    result: Words = table[members.lanes - lane + source]
    return result, valid, absent


def vote(effect: Vote, members: Members, total: int) -> Words:
    """The vote's predicate, or the mask of a ballot (PTX ISA, vote.sync)."""
    warp = members.lanes // WARP
    yes = gather_bits(total, members.lanes, np.asarray(effect.predicate, np.bool_))[warp] & members.arrived
    match effect.mode:
        case "ballot":
            return yes
        case "all":
            return np.asarray(yes == members.arrived)
        case "any":
            return np.asarray(yes != 0)
        case "uni":
            return np.asarray((yes == 0) | (yes == members.arrived))
    raise Unsupported(f"vote.{effect.mode}", "unknown mode")


def match(effect: Match, members: Members, total: int) -> tuple[Words, Mask]:
    """The mask of members with the same value, and for `.all` whether that is every member (PTX ISA, match.sync)."""
    value = np.asarray(effect.value)
    table = np.zeros(total, value.dtype)
    table[members.lanes] = value
    rows = table.reshape(-1, WARP)[members.lanes // WARP]
    same = np.packbits(rows == value[:, None], axis=1, bitorder="little").view("<u4").reshape(-1) & members.arrived
    unanimous = same == members.arrived
    if effect.mode == "any":
        return same, unanimous
    return np.where(unanimous, members.arrived, np.uint32(0)), unanimous


def elect(effect: Elect, members: Members) -> tuple[Words, Mask]:
    """The lowest member, the same for the same members, and whether the lane is that one (PTX ISA, elect.sync)."""
    lowest = members.arrived & (~members.arrived + np.uint32(1))
    leader = np.log2(lowest.astype(np.float64)).astype(np.uint32)
    return leader, leader == members.lane_id


def redux(effect: Redux, members: Members) -> Words:
    """The reduction over the members (PTX ISA, redux.sync): a pairwise tree; min, max, and integer add are exact."""
    value = np.asarray(effect.value)
    result = np.empty_like(value)
    key = (members.lanes // WARP).astype(np.int64) << 32 | members.mask.astype(np.int64)
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0])
    lengths = np.diff(np.r_[starts, len(order)])
    for length in np.unique(lengths):
        groups = starts[lengths == length]
        columns = [value[order[groups + k]] for k in range(int(length))]
        dom = Bits(len(groups))
        while len(columns) > 1:
            columns = [_combined(effect, dom, columns[k:k + 2]) for k in range(0, len(columns), 2)]
        for k in range(int(length)):
            result[order[groups + k]] = columns[0]
    return result


def _combined(effect: Redux, dom: Bits, pair: list[Any]) -> Any:
    if len(pair) == 1:
        return pair[0]
    if effect.type.floating:
        if effect.op not in ("min", "max"):
            raise Unsupported(f"redux.sync.{effect.op}.{effect.type}", "no such reduction")
        return dom.floating(effect.op, effect.type, effect.mode, *pair)  # type: ignore[arg-type]
    return dom.integer(effect.op, effect.type, *pair)  # type: ignore[arg-type]


def full_masks(count: int) -> Masks:
    """The member mask of `.aligned` operations without one: every lane of the warp."""
    return np.full(count, _FULL, np.uint32)
