"""The registers an instruction reads and writes, by its form."""

from __future__ import annotations

from warpproof.core import Unsupported
from warpproof.ptx import Instruction, syntax
from warpproof.semantics import bind


def reads(ins: Instruction) -> frozenset[str]:
    """Registers that may be read, the guard included; all operands' when the form is not known."""
    roles = _roles(ins)
    found = {ins.guard.register} if ins.guard is not None else set()
    for k, operand in enumerate(ins.operands):
        if k >= len(roles) or roles[k] != "dst":
            found |= registers(operand)
    return frozenset(found)


def writes(ins: Instruction) -> frozenset[str]:
    """Registers that may be written; all operands' when the form is not known."""
    roles = _roles(ins)
    found: set[str] = set()
    for k, operand in enumerate(ins.operands):
        if not roles or (k < len(roles) and roles[k] == "dst"):
            found |= registers(operand)
    return frozenset(found)


def _roles(ins: Instruction) -> list[str]:
    if ins.name in ("bra", "ret", "exit"):
        return ["src"] * len(ins.operands)
    try:
        return [slot.role for slot in bind(ins).slots]
    except Unsupported:
        return []


def registers(operand: syntax.Operand) -> set[str]:
    """The registers of an operand."""
    match operand:
        case syntax.Register(name):
            return {name}
        case syntax.Address(base, _, coords):
            return set().union(*map(registers, (base, *coords)))
        case syntax.Vector(elements) | syntax.Group(elements):
            return set().union(*map(registers, elements))
        case syntax.Negated(inner) | syntax.Minus(inner):
            return registers(inner)
        case syntax.Pair(first, second):
            return registers(first) | registers(second)
        case _:
            return set()
