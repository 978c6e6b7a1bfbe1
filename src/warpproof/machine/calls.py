"""Calls of device functions in the symbolic machine: executed in place, with registers of their own (PTX ISA 7.1).

Arguments and results travel through `.param` buffers, kept beside the registers as `param name+offset`. Accesses and
obligations inside a function are reported at the call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from warpproof.core import Unsupported
from warpproof.domains import ScalarType, Undef, Value
from warpproof.machine.flow import Graph, control_flow
from warpproof.ptx import Address, Group, Instruction, Kernel, Parameter, Register, Symbol
from warpproof.terms import Poly

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine


class Calls:
    """The call handler of one machine."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine = machine
        self._graphs: dict[str, Graph] = {}

    def call(self, ins: Instruction) -> None:
        """Execute the function and bring its results back."""
        m = self.machine
        groups = [o for o in ins.operands if isinstance(o, Group)]
        target = next((o for o in ins.operands if isinstance(o, Symbol)), None)
        if target is None or target.name not in m.kernel.callees:
            raise Unsupported(ins.opcode, "a call of a function that is not known or has no body here", ins.span)
        callee = m.kernel.callees[target.name]
        if any(i.name == "exit" for i in callee.code):
            raise Unsupported(ins.opcode, "a called function that ends the thread", ins.span)
        results: tuple[Any, ...] = groups[0].elements if callee.returns and groups else ()
        given = groups[-1].elements if callee.params and groups else ()
        if len(results) != len(callee.returns) or len(given) != len(callee.params):
            raise Unsupported(ins.opcode, "operands that do not fit the function", ins.span)
        inside = self._without_frame(callee, self._memory(m.registers))
        for formal, actual in zip(callee.params, given, strict=True):
            self._pass(formal, actual, inside)
        left = self._run(callee, inside)
        for name in self._memory(m.registers):
            del m.registers[name]
        m.registers.update(self._without_frame(callee, self._memory(left)))
        for formal, actual in zip(callee.returns, results, strict=True):
            self._bring(formal, actual, left)

    def _memory(self, registers: dict[str, Any]) -> dict[str, Any]:
        """Local memory is one for the thread."""
        return {n: v for n, v in registers.items() if n.startswith("local+")}

    def _without_frame(self, callee: Kernel, memory: dict[str, Any]) -> dict[str, Any]:
        """Local memory without the function's own variables, which exist during the call only."""
        operands = [o.base if isinstance(o, Address) else o for i in callee.code for o in i.operands]
        named = {o.name for o in operands if isinstance(o, Symbol)}
        frames = [(start, start + callee.variables[n].size) for n, start in self.machine.spacing.local.items()
                  if n in named]
        return {n: v for n, v in memory.items() if not any(low <= int(n[6:]) < high for low, high in frames)}

    def _pass(self, formal: Parameter, actual: Any, inside: dict[str, Any]) -> None:
        m = self.machine
        if formal.space == "reg":
            if not isinstance(actual, Register):
                raise Unsupported("call", "a register parameter that is not given by a register")
            inside[formal.name] = m.read(actual.name)
        elif isinstance(actual, Symbol):
            self._move(m.registers, actual.name, inside, formal.name)
        else:
            raise Unsupported("call", "an argument that is not a parameter buffer")

    def _bring(self, formal: Parameter, actual: Any, left: dict[str, Any]) -> None:
        m = self.machine
        if isinstance(actual, Symbol):
            self._move(left, formal.name, m.registers, actual.name)
        elif isinstance(actual, Register) and formal.name in left:
            m.write(actual.name, left[formal.name])
        else:
            raise Unsupported("call", "a result that is not a parameter buffer")

    def _move(self, source: dict[str, Any], name: str, target: dict[str, Any], new: str) -> None:
        for key in [k for k in target if k.startswith(f"param {new}+")]:
            del target[key]
        head = f"param {name}+"
        target.update({f"param {new}+{k[len(head):]}": v for k, v in source.items() if k.startswith(head)})

    def _run(self, callee: Kernel, inside: dict[str, Any]) -> dict[str, Any]:
        """Execute the body; the registers it leaves."""
        from warpproof.machine.roles import EXIT

        m = self.machine
        outer = (m.kernel, m.graph, m.registers, m.decoded)
        if callee.name not in self._graphs:
            self._graphs[callee.name] = control_flow(callee)
        m.kernel, m.graph, m.registers, m.decoded = callee, self._graphs[callee.name], inside, {}
        m.frames += 1
        m.depth += 1
        try:
            m.walk(0, EXIT)
            return m.registers
        finally:
            m.frames -= 1
            m.depth -= 1
            m.kernel, m.graph, m.registers, m.decoded = outer

    # ------------------------------------------------------------------ parameter buffers
    def is_buffer(self, name: str) -> bool:
        """True for a buffer of a call, or a parameter or result of the function being executed."""
        kernel = self.machine.kernel
        if self.machine.frames and any(p.name == name for p in (*kernel.params, *kernel.returns)):
            return True
        variable = kernel.variables.get(name)
        return variable is not None and variable.space == "param"

    def load(self, name: str, offset: Poly, ty: ScalarType) -> Value:
        """A value of a parameter buffer."""
        k = offset.as_int()
        if k is None:
            raise Unsupported("ld.param", "a symbolic offset into a parameter")
        found: Value | None = self.machine.registers.get(f"param {name}+{k}")
        if found is None or found.width != ty.width:
            return Undef(ty.width, f"parameter {name} is not set at byte {k} with this width")
        return found

    def store(self, name: str, offset: Poly, ty: ScalarType, value: Value) -> None:
        """Set a value of a parameter buffer; overlapping older ones are gone."""
        k, size = offset.as_int(), ty.width // 8
        if k is None:
            raise Unsupported("st.param", "a symbolic offset into a parameter")
        head = f"param {name}+"
        registers = self.machine.registers
        for key in [n for n in registers if n.startswith(head) and n != f"{head}{k}"]:
            at = int(key[len(head) :])
            if at < k + size and k < at + registers[key].width // 8:
                del registers[key]
        self.machine.write(f"{head}{k}", value)
