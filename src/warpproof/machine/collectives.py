"""Warp operations with member masks: lanes wait until all live members have arrived, then all get their answers."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, fields, replace
from typing import Any, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import (
    Bits,
    Effect,
    Elect,
    FragmentLoad,
    FragmentStore,
    Load,
    Match,
    MatrixLoad,
    MatrixMultiply,
    MatrixStore,
    Redux,
    ScalarType,
    Shuffle,
    Store,
    Vote,
    WarpSync,
)
from warpproof.machine import matrix, warps
from warpproof.machine.accesses import Accesses
from warpproof.machine.addresses import address_array
from warpproof.machine.batch import WARP, Batch, Lanes, Mask
from warpproof.machine.fragments import fragment_places
from warpproof.machine.lanestate import AT_WARP, RUN, LaneState
from warpproof.machine.operands import step
from warpproof.machine.ordering import Clocks
from warpproof.machine.program import Program, Step
from warpproof.machine.recorder import Recorder
from warpproof.machine.registers import RegisterFile
from warpproof.machine.warps import Masks, Members

Matrices = MatrixLoad | MatrixStore | MatrixMultiply | FragmentLoad | FragmentStore
Collective = WarpSync | Shuffle | Vote | Match | Redux | Elect | Matrices
_ALIGNED: Final = (MatrixLoad, MatrixStore, MatrixMultiply, FragmentLoad, FragmentStore)
COLLECTIVES: Final = (WarpSync, Shuffle, Vote, Match, Redux, Elect, *_ALIGNED)
_ONE: Final = np.uint32(1)
Running = Generator[Effect, Any, None]


@dataclass(frozen=True, slots=True)
class _Part:
    """The lanes at one pc of an operation that is complete, suspended at its effect."""

    pc: int
    lanes: Lanes
    running: Running
    effect: Collective


class Collectives:
    """Carries out warp operations on one batch."""

    __slots__ = ("_accesses", "_batch", "_clocks", "_keys", "_program", "_recorder", "_registers", "_state")

    def __init__(self, batch: Batch, program: Program, state: LaneState, registers: RegisterFile, accesses: Accesses,
                 clocks: Clocks, recorder: Recorder) -> None:
        self._batch, self._program, self._state, self._registers = batch, program, state, registers
        self._accesses, self._clocks, self._recorder = accesses, clocks, recorder
        self._keys: dict[str, int] = {}

    def execute(self, item: Step, effect: Collective, running: Running, lanes: Lanes, pc: int) -> bool:
        """Run the operation for `lanes`, all at `pc`. True when all of them completed it; otherwise those that did
        have moved on, and the others wait."""
        state = self._state
        mask = self._mask(effect, lanes, pc)
        need = mask & state.live_bits[lanes // WARP]
        members = warps.members_of(self._batch.lanes, lanes, self._batch.lane_id, mask)
        ready: Mask = members.arrived & need == need
        if ready.all():
            self._finish([_Part(pc, lanes, running, effect)], members)
            return True
        key = self._keys.setdefault(item.instruction.opcode, len(self._keys))
        state.wait_key[lanes], state.wait_mask[lanes], state.state[lanes], state.pc[lanes] = key, mask, AT_WARP, pc
        self._retry(key, lanes)
        return False

    def _retry(self, key: int, lanes: Lanes) -> None:
        """Complete the operation wherever all members now wait at it."""
        state = self._state
        here = np.zeros(self._batch.lanes // WARP, np.bool_)
        here[lanes // WARP] = True
        everyone = np.flatnonzero((state.state == AT_WARP) & (state.wait_key == key) & np.repeat(here, WARP))
        mask = state.wait_mask[everyone]
        members = warps.members_of(self._batch.lanes, everyone, self._batch.lane_id, mask)
        need = mask & state.live_bits[everyone // WARP]
        ready: Mask = members.arrived & need == need
        if not ready.any():
            return
        chosen = everyone[ready]
        parts = [self._part(int(pc), chosen[state.pc[chosen] == pc]) for pc in np.unique(state.pc[chosen])]
        order = np.concatenate([part.lanes for part in parts])
        self._finish(parts, warps.members_of(self._batch.lanes, order, self._batch.lane_id, state.wait_mask[order]))
        state.state[order] = RUN
        state.pc[order] += 1

    def _part(self, pc: int, lanes: Lanes) -> _Part:
        item = self._program.step(pc)
        assert item is not None
        running = step(item.decoded, Bits(len(lanes)), self._registers.view(item.function, lanes))
        effect = next(running)
        assert isinstance(effect, COLLECTIVES)
        return _Part(pc, lanes, running, effect)

    def _mask(self, effect: Collective, lanes: Lanes, pc: int) -> Masks:
        """The member mask of each lane; a lane outside its own mask is reported, and then acts alone."""
        if isinstance(effect, _ALIGNED):
            return warps.full_masks(len(lanes))
        given = getattr(effect, "mask", None)
        if given is None:
            return warps.gather_bits(self._batch.lanes, lanes)[lanes // WARP]
        mask: Masks = np.asarray(given, np.uint32)
        own = _ONE << self._batch.lane_id[lanes].astype(np.uint32)
        outside = mask & own == 0
        if outside.any():
            self._recorder.event("undefined-collective", "the executing thread is not in the member mask",
                                 lanes[outside], pc)
            mask = np.where(outside, own, mask)
        return mask

    def _finish(self, parts: list[_Part], members: Members) -> None:
        effect = parts[0].effect if len(parts) == 1 else _joined([part.effect for part in parts])
        answer = self._answer(effect, members, parts[0].pc)
        start = 0
        for part in parts:
            stop = start + len(part.lanes)
            whole = len(parts) == 1
            try:
                part.running.send(answer if whole else _cut(answer, start, stop))
            except StopIteration:
                start = stop
                continue
            raise Unsupported("warp operation", "a further effect after the first")

    def _answer(self, effect: Collective, members: Members, pc: int) -> Any:
        total = self._batch.lanes
        match effect:
            case Shuffle():
                value, valid, absent = warps.shuffle(effect, members)
                if absent.any():
                    self._recorder.event("undefined-collective", "the value comes from a lane that does not take part",
                                         members.lanes[absent], pc)
                return value, valid
            case Vote():
                return warps.vote(effect, members, total)
            case Match():
                return warps.match(effect, members, total)
            case Redux():
                return warps.redux(effect, members)
            case Elect():
                return warps.elect(effect, members)
            case WarpSync():
                self._clocks.join_warps(members.lanes, members.mask)
                return None
            case MatrixLoad() | MatrixStore() | MatrixMultiply() | FragmentLoad() | FragmentStore():
                return self._matrix(effect, members, pc)

    def _matrix(self, effect: Matrices, members: Members, pc: int) -> Any:
        lanes = members.lanes
        if (members.arrived != np.uint32(0xFFFFFFFF)).any() or (np.diff(lanes) < 0).any():
            raise Unsupported("warp matrix operation", "executed by part of a warp")
        match effect:
            case MatrixMultiply():
                return matrix.multiply(effect)
            case MatrixLoad():
                return self._load_matrices(effect, lanes, pc)
            case MatrixStore():
                return self._store_matrices(effect, lanes, pc)
            case FragmentLoad() | FragmentStore():
                return self._fragment(effect, lanes, pc)

    def _load_matrices(self, effect: MatrixLoad, lanes: Lanes, pc: int) -> Any:
        addresses = address_array(effect.address)
        word, half = ScalarType("b", 32), ScalarType("b", 16)
        out = []
        if not effect.transposed:
            inside = np.uint64(4) * (self._batch.lane_id[lanes] % 4).astype(np.uint64)
            for row in matrix.matrix_rows(lanes, addresses, effect.count):
                out.append(self._accesses.load(Load("shared", word, 1, row + inside), lanes, pc))
        else:
            for low, high in zip(*matrix.matrix_columns(lanes, addresses, effect.count), strict=True):
                first = self._accesses.load(Load("shared", half, 1, low), lanes, pc)
                second = self._accesses.load(Load("shared", half, 1, high), lanes, pc)
                out.append(first.astype(np.uint32) | second.astype(np.uint32) << np.uint32(16))
        return tuple(out)

    def _store_matrices(self, effect: MatrixStore, lanes: Lanes, pc: int) -> None:
        addresses = address_array(effect.address)
        word, half = ScalarType("b", 32), ScalarType("b", 16)
        values = [np.asarray(value) for value in effect.values]
        if not effect.transposed:
            inside = np.uint64(4) * (self._batch.lane_id[lanes] % 4).astype(np.uint64)
            for row, value in zip(matrix.matrix_rows(lanes, addresses, effect.count), values, strict=True):
                self._accesses.store(Store("shared", word, (value,), row + inside), lanes, pc)
        else:
            low, high = matrix.matrix_columns(lanes, addresses, effect.count)
            for k, value in enumerate(values):
                parts = (value & np.uint32(0xFFFF)).astype(np.uint16), (value >> np.uint32(16)).astype(np.uint16)
                self._accesses.store(Store("shared", half, (parts[0],), low[k]), lanes, pc)
                self._accesses.store(Store("shared", half, (parts[1],), high[k]), lanes, pc)


    def _fragment(self, effect: FragmentLoad | FragmentStore, lanes: Lanes, pc: int) -> Any:
        places = fragment_places(effect, address_array(effect.address), self._batch.lane_id[lanes])
        for kind, text, bad in places.faults:
            self._recorder.event(kind, text, lanes[bad], pc)
        size = effect.type.width // 8
        element = ScalarType("b", 8 * size)
        if isinstance(effect, FragmentLoad):
            loaded = [
                [self._accesses.load(Load(effect.space, element, 1, at), lanes, pc) for at in parts]
                for parts in places.addresses
            ]
            return tuple(_packed(parts, size) for parts in loaded)
        for value, parts in zip(effect.values, places.addresses, strict=True):
            word = np.asarray(value)
            for j, at in enumerate(parts):
                part = (word >> word.dtype.type(8 * size * j)).astype(f"u{size}")
                self._accesses.store(Store(effect.space, element, (part,), at), lanes, pc)
        return None


def _packed(parts: list[Any], size: int) -> Any:
    word = parts[0].astype(np.uint32)
    for j, part in enumerate(parts[1:], 1):
        word = word | part.astype(np.uint32) << np.uint32(8 * size * j)
    return word


def _joined(effects: list[Collective]) -> Collective:
    """One effect over the lanes of all parts, in order."""
    first = effects[0]
    changed: dict[str, Any] = {}
    for field in fields(first):
        if isinstance(getattr(first, field.name), np.ndarray):
            changed[field.name] = np.concatenate([getattr(effect, field.name) for effect in effects])
    return replace(first, **changed)


def _cut(answer: Any, start: int, stop: int) -> Any:
    if isinstance(answer, tuple):
        return tuple(_cut(part, start, stop) for part in answer)
    return None if answer is None else answer[start:stop]
