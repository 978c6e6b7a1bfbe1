"""The flat program of one kernel and the functions it calls, with each instruction decoded on first use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from warpproof.core import InputError, Unsupported
from warpproof.machine.addresses import FRAME, WINDOW
from warpproof.machine.operands import Decoded, decode
from warpproof.ptx import Group, Instruction, Kernel, Parameter, Register, Symbol
from warpproof.semantics import bind

SPECIAL_WIDTHS: Final = {
    "%clock64": 64, "%globaltimer": 64, "%gridid": 64, "%current_graph_exec": 64,
}
_FENCES: Final = ("fence", "membar")
_ORDERING: Final = ("acquire", "release", "acq_rel")
_FUNCTION_STRIDE: Final = 16


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction of the program: its function, guard register, control kind and operand access."""

    instruction: Instruction
    function: int
    guard: str | None
    negated: bool
    control: str
    decoded: Decoded
    target: int | None = None  # of a direct branch


@dataclass(frozen=True, slots=True)
class Call:
    """A call: results and arguments as written, the callee's name or the register with its address, the table."""

    results: tuple[Register | Symbol, ...]
    callee: str | None
    register: str | None
    arguments: tuple[object, ...]
    table: str | None


_STRONG: Final = frozenset({"relaxed", "acquire", "volatile", "mmio"})


class Program:
    """The code of a kernel and its callees end to end; a pc indexes it. Function 0 is the kernel.

    `ends` marks the pcs that begin a basic block. Every `.param` variable and device-function parameter has one offset
    in the per-lane frame, which is enough because recursion is refused. The kernel's instructions `without` do nothing.
    """

    def __init__(self, kernel: Kernel, without: frozenset[int] = frozenset()) -> None:
        if kernel.address_size != 64:
            raise Unsupported(".address_size 32", "only 64-bit addresses are emulated")
        self.kernels = _reachable(kernel)
        self.numbers = {k.name: i for i, k in enumerate(self.kernels)}
        self.starts: list[int] = []
        self.code: list[tuple[int, Instruction | None]] = []
        for number, item in enumerate(self.kernels):
            self.starts.append(len(self.code))
            self.code += [(number, instruction) for instruction in item.code]
            self.code.append((number, None))  # running past the end returns
        self.leaders = {
            self.starts[n] + index for n, k in enumerate(self.kernels) for index in k.labels.values()
        }
        self.waits = {leader for leader in self.leaders if self._waiting(leader)}
        self.frame_offsets, self.frame_size = self._frame()
        self._without = without
        self._steps: list[Step | None] = [None] * len(self.code)
        self._calls: dict[int, Call] = {}

    def _waiting(self, leader: int) -> bool:
        """Whether a loop of one block begins there that reads memory by a strong load or an atomic."""
        strong = False
        for _, instruction in self.code[leader:]:
            if instruction is None or instruction.name in ("ret", "exit", "trap"):
                return False
            loads = instruction.name == "ld" and not _STRONG.isdisjoint(instruction.modifiers)
            strong |= loads or instruction.name == "atom"
            if instruction.name == "bra":
                return strong and self.label(self.code[leader][0], instruction.operands[0]) == leader
        return False

    def step(self, pc: int) -> Step | None:
        """The decoded instruction at `pc`; None past the end of a function."""
        known = self._steps[pc]
        if known is not None:
            return known
        function, instruction = self.code[pc]
        if instruction is None:
            return None
        bound = bind(instruction)
        widths = self._widths(function)
        decoded = Decoded(bound, (), ()) if bound.control else decode(instruction, bound, widths)
        guard = instruction.guard
        target = None
        if bound.control == "bra":
            target = self.label(function, instruction.operands[0])
        register, negated = (None, False) if guard is None else (guard.register, guard.negated)
        control = "nop" if pc in self._without else bound.control
        step = Step(instruction, function, register, negated, control, decoded, target)
        self._steps[pc] = step
        return step

    def label(self, function: int, operand: object) -> int:
        """The pc of a label operand."""
        kernel = self.kernels[function]
        if not isinstance(operand, Symbol) or operand.name not in kernel.labels:
            raise InputError("ISA111", f"{operand} is not a label of {kernel.name}")
        return self.starts[function] + kernel.labels[operand.name]

    def call(self, pc: int) -> Call:
        """The operands of the call at `pc`, taken apart."""
        known = self._calls.get(pc)
        if known is None:
            _, instruction = self.code[pc]
            assert instruction is not None
            known = self._calls[pc] = _taken_apart(instruction)
        return known

    def frame_offset(self, function: int, parameter: Parameter) -> int:
        """The frame offset of a device function's parameter."""
        return self.frame_offsets[f"{function}:{parameter.name}"]

    def address(self, function: int, symbol: str) -> tuple[str, int] | None:
        """The state space and address of a symbol in a function; None for global variables (placed by the run)."""
        kernel = self.kernels[function]
        for parameter in (*kernel.params, *kernel.returns):
            if parameter.name == symbol:
                if function == 0:
                    return "param", parameter.offset
                return "param", FRAME + self.frame_offset(function, parameter)
        for space, layout in (("shared", kernel.shared_layout), ("const", kernel.const_layout),
                              ("local", kernel.local_layout)):
            if symbol in layout:
                return space, layout[symbol]
        if symbol in self.frame_offsets:
            return "param", FRAME + self.frame_offsets[symbol]
        if symbol in self.numbers:
            return "function", WINDOW["function"] + _FUNCTION_STRIDE * self.numbers[symbol]
        if symbol in kernel.global_layout:
            return None
        raise Unsupported(f"address of {symbol}", "not a variable, parameter or function with a body")

    def function_at(self, address: int) -> int | None:
        """The function whose address this is."""
        number, rest = divmod(address - WINDOW["function"], _FUNCTION_STRIDE)
        return number if rest == 0 and 0 <= number < len(self.kernels) else None

    def reach(self) -> str:
        """What can order two threads of a CTA besides a barrier of all of it: "none", "warp" or "cta" (see Clocks)."""
        warp = False
        for _, instruction in self.code:
            if instruction is None:
                continue
            name, words = instruction.name, instruction.modifiers
            if self.ordering(instruction) or "arrive" in words:
                return "cta"
            if name in ("bar", "barrier") and "warp" not in words and _counted(instruction):
                return "cta"
            warp |= name == "bar" and "warp" in words
        return "warp" if warp else "none"

    def handoffs(self) -> bool:
        """True when some instruction can release or acquire through memory."""
        return any(i is not None and self.ordering(i) for _, i in self.code)

    @staticmethod
    def ordering(instruction: Instruction) -> bool:
        """True for fences, and for accesses with acquire or release semantics."""
        words = instruction.modifiers
        if instruction.name in _FENCES:
            return "proxy" not in words
        return instruction.name in ("ld", "st", "atom", "red") and any(w in words for w in _ORDERING)

    def _frame(self) -> tuple[dict[str, int], int]:
        offsets: dict[str, int] = {}
        end = 0
        wanted = [(name, v.size, v.align) for name, v in self.kernels[0].variables.items() if v.space == "param"]
        for number, kernel in enumerate(self.kernels[1:], 1):
            wanted += [(f"{number}:{p.name}", p.size, p.align) for p in (*kernel.params, *kernel.returns)
                       if p.space == "param"]
        for name, size, align in wanted:
            end = -(-end // max(align, 1)) * max(align, 1)
            offsets[name] = end
            end += size
        return offsets, end

    def _widths(self, function: int) -> _Widths:
        return _Widths(self.kernels[function])


class _Widths:
    """The width of a register of one function."""

    __slots__ = ("_kernel",)

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def __call__(self, name: str) -> int:
        declared = self._kernel.registers.get(name)
        if declared is not None:
            return declared.width
        if not name.startswith("%"):
            raise Unsupported(f"register {name}", "byte and half selectors are not read")
        return SPECIAL_WIDTHS.get(name, 32)


def _counted(instruction: Instruction) -> bool:
    return len(instruction.operands) >= {"sync": 2, "red": 4}.get(
        next((w for w in instruction.modifiers if w in ("sync", "red")), ""), 9)


def _reachable(kernel: Kernel) -> list[Kernel]:
    order = [kernel]
    for item in order:
        order += [callee for name, callee in sorted(item.callees.items())
                  if not callee.entry and all(callee is not known for known in order)]
    names = [item.name for item in order]
    if len(set(names)) != len(names):
        raise Unsupported("call", "two functions of one name")
    return order


def _taken_apart(instruction: Instruction) -> Call:
    operands = list(instruction.operands)
    results: tuple[object, ...] = ()
    if len(operands) > 1 and isinstance(operands[0], Group):
        results = operands.pop(0).elements  # type: ignore[union-attr]
    callee = operands.pop(0)
    arguments: tuple[object, ...] = ()
    if operands and isinstance(operands[0], Group):
        arguments = operands.pop(0).elements  # type: ignore[union-attr]
    table = operands.pop(0) if operands else None
    if operands or not all(isinstance(r, Register | Symbol) for r in results):
        raise Unsupported(instruction.opcode, "operands of this call", instruction.span)
    name = callee.name if isinstance(callee, Symbol) else None
    register = callee.name if isinstance(callee, Register) else None
    if name is None and register is None:
        raise Unsupported(instruction.opcode, "callee of this call", instruction.span)
    typed = tuple(r for r in results if isinstance(r, Register | Symbol))
    return Call(typed, name, register, arguments, table.name if isinstance(table, Symbol) else None)
