"""Control flow across functions: calls with per-lane return stacks, parameters by value, indirect targets."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Bits, ScalarType
from warpproof.machine.batch import Batch, Lanes
from warpproof.machine.lanestate import LaneState
from warpproof.machine.operands import reader
from warpproof.machine.ordering import Row
from warpproof.machine.program import Program, Step
from warpproof.machine.recorder import Recorder
from warpproof.machine.registers import RegisterFile
from warpproof.machine.storage import Region
from warpproof.ptx import Parameter, Register, Symbol
from warpproof.semantics import Slot

_TRAPS: Final = ("__assertfail", "__trap")


class Stop(Exception):
    """The launch ends here (trap); a finding says why."""


class Control:
    """The return stacks of a batch, and the transfers between functions."""

    __slots__ = ("_batch", "_depth", "_frame", "_program", "_recorder", "_registers", "_stack", "_state", "_stride")

    def __init__(self, batch: Batch, program: Program, state: LaneState, registers: RegisterFile, frame: Region,
                 recorder: Recorder) -> None:
        self._batch, self._program, self._state, self._registers = batch, program, state, registers
        self._recorder, self._frame = recorder, frame
        self._stride = frame.size // max(batch.lanes, 1)
        self._depth: Row = np.zeros(batch.lanes, np.int64)
        self._stack: Row = np.zeros((len(program.kernels), batch.lanes), np.int64)

    def call(self, item: Step, lanes: Lanes, pc: int) -> None:
        """Enter the callee with its arguments."""
        call = self._program.call(pc)
        if call.callee is not None:
            if call.callee in _TRAPS and call.callee not in self._program.numbers:
                self._recorder.event("trap", f"{call.callee} is called", lanes, pc)
                raise Stop
            if call.callee not in self._program.numbers:
                raise Unsupported("call", f"{call.callee} has no body", item.instruction.span)
            self._enter(item, lanes, pc, self._program.numbers[call.callee])
            return
        assert call.register is not None
        targets = self._registers.view(item.function, lanes).read(call.register)
        for target in np.unique(targets):
            callee = self._program.function_at(int(target))
            mine = lanes[targets == target]
            if callee is None:
                self._recorder.event("undefined-branch", "call to an address that is no function", mine, pc)
                raise Stop
            self._enter(item, mine, pc, callee)

    def leave(self, lanes: Lanes) -> Lanes:
        """Return from a function; the result is the lanes that were in the kernel itself and so end."""
        depth = self._depth[lanes]
        inside = lanes[depth > 0]
        if len(inside):
            self._depth[inside] -= 1
            back = self._stack[self._depth[inside], inside]
            callee = np.searchsorted(self._program.starts, self._state.pc[inside], side="right") - 1
            for pc in np.unique(back):
                for function in np.unique(callee[back == pc]):
                    self._hand_back(inside[(back == pc) & (callee == function)], int(pc), int(function))
            self._state.pc[inside] = back + 1
        ended: Lanes = lanes[depth == 0]
        return ended

    def indirect(self, item: Step, lanes: Lanes, pc: int) -> None:
        """`brx.idx`: each lane goes to the label its index selects."""
        index, table = item.instruction.operands
        kernel = self._program.kernels[item.function]
        if not isinstance(index, Register) or not isinstance(table, Symbol) or table.name not in kernel.tables:
            raise Unsupported(item.instruction.opcode, "operands of this branch", item.instruction.span)
        targets = [self._program.label(item.function, Symbol(name)) for name in kernel.tables[table.name].targets]
        chosen = self._registers.view(item.function, lanes).read(index.name).astype(np.int64)
        outside = chosen >= len(targets)
        if outside.any():
            self._recorder.event("undefined-branch", f"index {chosen[outside][0]} into {len(targets)} branch targets",
                                 lanes[outside], pc)
            raise Stop
        self._state.pc[lanes] = np.array(targets, np.int64)[chosen]

    def _enter(self, item: Step, lanes: Lanes, pc: int, callee: int) -> None:
        kernel, call = self._program.kernels[callee], self._program.call(pc)
        if len(call.arguments) != len(kernel.params) or len(call.results) != len(kernel.returns):
            raise Unsupported("call", f"{kernel.name} is called with other parameters than it declares",
                              item.instruction.span)
        values = [self._argument(item, lanes, argument, parameter)
                  for argument, parameter in zip(call.arguments, kernel.params, strict=True)]
        for parameter, value in zip(kernel.params, values, strict=True):
            self._receive(lanes, callee, parameter, value)
        self._stack[self._depth[lanes], lanes] = pc
        self._depth[lanes] += 1
        self._state.pc[lanes] = self._program.starts[callee]

    def _argument(self, item: Step, lanes: Lanes, argument: Any, parameter: Parameter) -> Any:
        """A register's value, or the bytes and known flags of a parameter variable."""
        if isinstance(argument, Symbol) and argument.name in self._program.frame_offsets:
            return self._frame.image(self._offsets(lanes, self._program.frame_offsets[argument.name]), parameter.size)
        if parameter.space != "reg":
            raise Unsupported("call", "a register or constant for a .param parameter", item.instruction.span)
        kernel = self._program.kernels[item.function]
        widths = kernel.registers
        ty = ScalarType("pred", 1) if parameter.type == "pred" else ScalarType("b", _bits(parameter.type))
        read = reader(argument, Slot("src", ty), lambda name: widths[name].width if name in widths else 32,
                      item.instruction.span)
        return np.array(read(Bits(len(lanes)), self._registers.view(item.function, lanes)))

    def _receive(self, lanes: Lanes, callee: int, parameter: Parameter, value: Any) -> None:
        if parameter.space == "reg":
            if isinstance(value, tuple):
                raise Unsupported("call", "a .param variable for a register parameter")
            if parameter.name in self._program.kernels[callee].registers:
                self._registers.view(callee, lanes).write(parameter.name, value)
            return
        self._frame.put_image(self._offsets(lanes, self._program.frame_offset(callee, parameter)), value)

    def _hand_back(self, lanes: Lanes, pc: int, callee: int) -> None:
        """Copy the results of `callee` to where the call at `pc` wants them."""
        kernel, call = self._program.kernels[callee], self._program.call(pc)
        caller, _ = self._program.code[pc]
        for result, returned in zip(call.results, kernel.returns, strict=True):
            if returned.space == "reg":
                if not isinstance(result, Register):
                    raise Unsupported("call", "a .param variable for a register result")
                self._registers.view(caller, lanes).write(result.name, np.array(
                    self._registers.view(callee, lanes).read(returned.name)))
            elif isinstance(result, Symbol) and result.name in self._program.frame_offsets:
                source = self._offsets(lanes, self._program.frame_offset(callee, returned))
                image = self._frame.image(source, returned.size)
                self._frame.put_image(self._offsets(lanes, self._program.frame_offsets[result.name]), image)
            else:
                raise Unsupported("call", "a register for a .param result")

    def _offsets(self, lanes: Lanes, offset: int) -> Lanes:
        return lanes * self._stride + offset


def _bits(name: str) -> int:
    return int("".join(c for c in name if c.isdigit()) or 0)
