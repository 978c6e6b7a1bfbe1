"""Running one batch of CTAs: the turn loop, guards, branches, barriers, and the answers to effects."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import (
    ActiveMask,
    AsyncCopy,
    AsyncGroup,
    Atomic,
    Barrier,
    Bits,
    Carry,
    Cvta,
    Effect,
    Fence,
    GridDependency,
    Load,
    MatrixMultiply,
    Opaque,
    SpaceTest,
    Special,
    Store,
)
from warpproof.machine import warps
from warpproof.machine.accesses import Accesses
from warpproof.machine.addresses import address_array
from warpproof.machine.asynchronous import AsyncCopies
from warpproof.machine.barriers import Arrival, Barriers, Release
from warpproof.machine.batch import WARP, Batch, Lanes, Mask
from warpproof.machine.collectives import COLLECTIVES, Collectives, Running
from warpproof.machine.control import Control, Stop
from warpproof.machine.hazards import Shadow
from warpproof.machine.lanestate import AT_BARRIER, AT_WARP, RUN, LaneState
from warpproof.machine.operands import step, step_pure
from warpproof.machine.ordering import Clocks
from warpproof.machine.program import Step
from warpproof.machine.registers import LaneRegisters, RegisterFile
from warpproof.machine.run import Run
from warpproof.machine.schedule import Turn, schedule
from warpproof.machine.vigil import Vigil

MMA_NOTE: Final = "mma: accumulated in float64 and rounded once; the hardware may differ in the last bits"

_QUIET: Final = (Load, Cvta, SpaceTest, Special, Fence, ActiveMask, GridDependency, Opaque)
"""Effects that leave memory and all other threads as they are."""
_LONG: Final = 256
"""Steps after which lanes that run alone stop at the end of a block, to be looked at."""


class BatchRun:
    """The execution of one batch; `last` says that no CTA of the grid is still to come."""

    def __init__(self, run: Run, batch: Batch, policy: str, seed: int, last: bool = False) -> None:
        self._run, self._batch, self._program = run, batch, run.program
        self._spaces, shared = run.spaces(batch)
        self._state = LaneState(batch)
        self._clocks = Clocks(batch, run.program.reach())
        self._recorder = run.recorder
        self._recorder.begin(batch, self._spaces)
        self._handoffs = run.handoffs
        if self._handoffs is not None:
            self._handoffs.begin(self._clocks, run.shadows)
        shadows = {**run.shadows, id(shared): Shadow(shared, shared=True)} if run.races else {}
        launch = run.launch
        self._accesses = Accesses(self._spaces, self._clocks, shadows, self._handoffs, run.recorder, launch.poison)
        self._registers = RegisterFile(batch, run.program, run.address_of, lambda: run.steps, launch.dynamic_shared,
                                       run.shared_size, launch.poison)
        self._copies = AsyncCopies(batch, self._accesses, self._spaces, self._clocks)
        self._barriers = Barriers(batch, self._clocks, self._state.live, run.recorder.event, self._passed)
        self._collectives = Collectives(batch, run.program, self._state, self._registers, self._accesses, self._clocks,
                                        run.recorder)
        self._control = Control(batch, run.program, self._state, self._registers, self._spaces.region("frame"),
                                run.recorder)
        self._schedule = schedule(policy, batch.lanes, seed, run.program.waits)
        self._vigil = Vigil(self._state, self._registers, trusted=last)

    def execute(self) -> bool:
        """Run until every thread has exited (True), or until a trap, a deadlock or the step limit (False)."""
        state = self._state
        try:
            while True:
                if self._run.steps >= self._run.step_limit:
                    self._recorder.limit(f"stopped after {self._run.steps} vector instructions")
                    return False
                runnable = state.runnable()
                turn = self._schedule.turn(runnable, state.pc)
                if turn is None:
                    if not state.live.any():
                        return True
                    if not self._unstick():
                        return False
                    continue
                self._turn(turn, alone=len(turn.lanes) == int(runnable.sum()))
                stuck = self._vigil.stuck(turn.lanes, self._run.steps)
                if stuck is not None:
                    self._recorder.event("deadlock", f"{len(stuck)} threads go round in loops for ever: nothing that "
                                         "they read changes", stuck, int(state.pc[stuck[0]]))
                    return False
        except Stop:
            return False

    def _turn(self, turn: Turn, alone: bool) -> None:
        """Run the lanes of a turn to the end of the basic block, or on while no other lane could run."""
        lanes, pc = turn.lanes, turn.pc
        leaders, run = self._program.leaders, self._run
        limit = min(turn.quantum, run.step_limit - run.steps)
        for done in range(limit):
            item = self._program.step(pc)
            run.steps += 1
            if item is None:
                self._leave(lanes, pc)
                return
            run.executed.add(pc)
            active = self._active(item, lanes)
            if item.control:
                following = self._transfer(item, lanes, active, pc)
                if following is None:
                    return
                pc = following
            else:
                if len(active) < len(lanes):
                    self._state.pc[lanes] = pc + 1
                if len(active) and not self._perform(item, active, pc):
                    return
                pc += 1
            if pc in leaders and (not alone or done > _LONG):
                break
        self._state.pc[lanes] = pc

    def _active(self, item: Step, lanes: Lanes) -> Lanes:
        """The lanes whose guard holds."""
        if item.guard is None:
            return lanes
        flags = self._registers.view(item.function, lanes).read(item.guard)
        if item.negated:
            flags = ~flags
        return lanes if flags.all() else lanes[flags]

    def _perform(self, item: Step, lanes: Lanes, pc: int) -> bool:
        """Execute an instruction in `lanes`; False when they have been dealt with separately (waiting or moved on)."""
        registers = self._registers.view(item.function, lanes)
        dom = self._run.domain(len(lanes))
        if item.decoded.bound.pure:
            step_pure(item.decoded, dom, registers)
            return True
        running = step(item.decoded, dom, registers)
        try:
            effect = next(running)
            while True:
                self._vigil.changed |= isinstance(effect, (*COLLECTIVES, Barrier))
                if isinstance(effect, COLLECTIVES):
                    if isinstance(effect, MatrixMultiply):
                        self._run.notes[MMA_NOTE] = None
                    return self._collectives.execute(item, effect, running, lanes, pc)
                if isinstance(effect, Barrier):
                    return self._barrier(effect, running, lanes, pc)
                effect = running.send(self._answer(effect, lanes, pc, registers))
        except StopIteration:
            return True

    def _answer(self, effect: Effect, lanes: Lanes, pc: int, registers: LaneRegisters) -> Any:
        """The answer to an effect that concerns each lane by itself."""
        self._vigil.changed |= not isinstance(effect, _QUIET)
        match effect:
            case Load():
                return self._accesses.load(effect, lanes, pc)
            case Store():
                return self._accesses.store(effect, lanes, pc)
            case Atomic():
                return self._accesses.atomic(effect, lanes, pc)
            case Cvta(space, to, address):
                return self._spaces.convert(space, to, address_array(address))
            case SpaceTest(space, address):
                return self._spaces.in_window(space, address_array(address))
            case Carry(None):
                return registers.read("%CC")
            case Carry(value):
                return registers.write("%CC", np.asarray(value))
            case Special(name):
                return registers.read(name)
            case Fence(semantics, scope, proxy):
                if self._handoffs is not None and not proxy:
                    self._handoffs.fence(lanes, semantics, scope)
                return None
            case ActiveMask():
                return warps.gather_bits(self._batch.lanes, lanes)[lanes // WARP]
            case AsyncCopy():
                self._vigil.trusted = False  # it may land while others wait
                return self._copies.issue(effect, lanes, pc)
            case AsyncGroup():
                return self._async_group(effect, lanes)
            case Opaque(_, ty):
                return Bits(len(lanes)).constant(ty, self._run.launch.poison)
            case GridDependency():
                return None
        raise Unsupported(type(effect).__name__, "the emulator has no answer to this effect")

    def _async_group(self, effect: AsyncGroup, lanes: Lanes) -> None:
        if effect.kind == "commit":
            self._copies.commit(lanes)
        else:
            self._copies.wait(lanes, effect.pending if effect.kind == "wait" else None)

    def _transfer(self, item: Step, lanes: Lanes, active: Lanes, pc: int) -> int | None:
        """Carry out a control instruction; the next pc when all lanes stay together, else None."""
        if item.control == "nop" or not len(active):
            return pc + 1
        if item.control == "bra" and len(active) == len(lanes):
            return item.target
        self._vigil.changed |= item.control != "bra"
        state = self._state
        if len(active) < len(lanes):
            state.pc[lanes] = pc + 1
        match item.control:
            case "bra":
                state.pc[active] = self._program.label(item.function, item.instruction.operands[0])
            case "brx":
                self._control.indirect(item, active, pc)
            case "call":
                self._control.call(item, active, pc)
            case "ret":
                self._leave(active, pc)
            case "exit":
                self._exit(active)
            case "trap":
                self._recorder.event("trap", f"{item.instruction.opcode} is executed", active, pc)
                raise Stop
            case other:
                raise Unsupported(item.instruction.opcode, f"control kind {other}", item.instruction.span)
        return None

    def _leave(self, lanes: Lanes, pc: int) -> None:
        self._vigil.changed = True
        self._state.pc[lanes] = pc
        ended = self._control.leave(lanes)
        if len(ended):
            self._exit(ended)

    def _exit(self, lanes: Lanes) -> None:
        self._state.state[self._state.exit(lanes)] = RUN
        for cta in np.unique(self._batch.cta[lanes]):
            self._release(self._barriers.exited(int(cta)))

    def _barrier(self, effect: Barrier, running: Running, lanes: Lanes, pc: int) -> bool:
        """Arrive, or go on with the answer when the barrier has completed meanwhile."""
        state = self._state
        ids = np.asarray(effect.id).astype(np.int64)
        passed = state.answered[lanes]
        if passed.all():
            state.answered[lanes] = False
            answer = state.answer[lanes]
            self._conclude(running, answer.astype(np.uint32) if effect.reduce == "popc" else answer != 0)
            return True
        if not passed.any() and effect.kind == "sync" and effect.count is None and self._barriers.everyone(lanes, ids):
            self._conclude(running, None)
            return True
        state.pc[lanes] = pc
        fresh = np.flatnonzero(~passed)
        state.state[lanes[fresh]] = AT_BARRIER
        counts = None if effect.count is None else np.asarray(effect.count).astype(np.int64)
        key = np.stack([self._batch.cta[lanes], ids, counts if counts is not None else np.zeros_like(ids)])[:, fresh]
        for cta, barrier, count in np.unique(key, axis=1).T.tolist():
            if not 0 <= barrier < 16:
                raise Unsupported("bar", f"barrier number {barrier}")
            mine = fresh[(key == [[cta], [barrier], [count]]).all(axis=0)]
            vote = None if effect.predicate is None else np.asarray(effect.predicate, np.bool_)[mine]
            self._release(self._barriers.arrive(cta, barrier, Arrival(
                lanes[mine], pc, None if counts is None else count, effect.kind, effect.aligned, effect.reduce, vote)))
        return False

    def _passed(self, cta: int, pc: int) -> Mask:
        """Which threads of a CTA have passed the barrier at `pc` by; nobody unless the schedule keeps threads together,
        so that a thread that is not at the barrier now has gone another way."""
        span = self._batch.span(cta)
        if not self._schedule.reconverging:
            return np.zeros(self._batch.padded, np.bool_)
        return self._state.live[span] & self._run.passage.passed(pc, self._state.pc[span])

    def _release(self, released: list[Release]) -> None:
        for lanes, answer in released:
            self._state.state[lanes] = RUN
            self._state.answered[lanes] = True
            self._state.answer[lanes] = 0 if answer is None else answer

    @staticmethod
    def _conclude(running: Running, answer: Any) -> None:
        try:
            running.send(answer)
        except StopIteration:
            return
        raise Unsupported("bar", "a further effect after a barrier")

    def _unstick(self) -> bool:
        """With no lane runnable: let go those the manual lets go, or report a deadlock."""
        state = self._state
        for cta in range(len(self._batch.ctas)):
            released = self._barriers.release_stuck(cta)
            if released:
                self._release(released)
                return True
        for cta in range(len(self._batch.ctas)):
            for barrier, lanes, arrived, count, pc in self._barriers.outstanding(cta):
                partial = self._barriers.partial_warps(lanes)
                if len(partial):
                    self._recorder.event("barrier-divergence", f"part of a warp waits at barrier {barrier}, the rest "
                                         "does not come", partial, pc)
                self._recorder.event("deadlock", f"{len(lanes)} threads wait at barrier {barrier} for "
                                     f"{count or 'all'} threads; {arrived} have arrived", lanes, pc)
        waiting = np.flatnonzero(state.state == AT_WARP)
        for pc in np.unique(state.pc[waiting]):
            self._recorder.event("deadlock", "threads wait for members of their warp that do not come",
                                 waiting[state.pc[waiting] == pc], int(pc))
        return False
