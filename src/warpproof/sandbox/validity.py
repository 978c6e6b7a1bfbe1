"""Whether the kernel would load a program as a seccomp filter (net/core/filter.c, kernel/seccomp.c)."""

from __future__ import annotations

from warpproof.core import InputError
from warpproof.sandbox.instructions import (
    DATA_BYTES,
    JA,
    LOAD_IMMEDIATE,
    LOAD_LENGTH,
    LOAD_MEMORY,
    LOAD_WORD,
    LOADX_IMMEDIATE,
    LOADX_LENGTH,
    LOADX_MEMORY,
    MAX_LENGTH,
    MEMORY_WORDS,
    NEG,
    RETURN_A,
    RETURN_VALUE,
    ST,
    STX,
    TAX,
    TXA,
    Instruction,
    Program,
    X,
    alu_operation,
    jump_test,
)

_PLAIN = frozenset({LOAD_IMMEDIATE, LOAD_LENGTH, LOAD_MEMORY, LOAD_WORD, LOADX_IMMEDIATE, LOADX_LENGTH, LOADX_MEMORY,
                    ST, STX, NEG, TAX, TXA, JA, RETURN_A, RETURN_VALUE})
_WORDS = frozenset({LOAD_MEMORY, LOADX_MEMORY, ST, STX})


def fault(program: Program) -> tuple[int, str] | None:
    """Where and why the kernel refuses the program, None exactly if it loads it."""
    if not 1 <= len(program) <= MAX_LENGTH:
        return (0, f"a program has 1 to {MAX_LENGTH} instructions")
    for at, instruction in enumerate(program):
        why = _fault_of_one(instruction, at, len(program))
        if why:
            return (at, why)
    if program[-1].code not in (RETURN_A, RETURN_VALUE):
        return (len(program) - 1, "the last instruction is no return")
    return _unwritten_read(program)


def check(program: Program) -> Program:
    """The same program; BOX602 if the kernel would refuse it."""
    found = fault(program)
    if found:
        at, why = found
        raise InputError("BOX602", f"the kernel refuses the filter: instruction {at}: {why}")
    return program


def _fault_of_one(instruction: Instruction, at: int, length: int) -> str:
    code, k = instruction.code, instruction.k
    test, operation = jump_test(code), alu_operation(code)
    left = length - at - 1
    if test is None and operation is None and code not in _PLAIN:
        return f"code {code:#x} is not for seccomp filters"
    if code == LOAD_WORD and (k >= DATA_BYTES or k & 3):
        return f"load of byte {k}: not an aligned word of the {DATA_BYTES} bytes of seccomp_data"
    if code in _WORDS and k >= MEMORY_WORDS:
        return f"memory has words 0 to {MEMORY_WORDS - 1}"
    if operation == "div" and not code & X and k == 0:
        return "division by the constant 0"
    if operation in ("lsh", "rsh") and not code & X and k >= 32:
        return "shift by a constant of 32 or more"
    if code == JA and k >= left:
        return "jump past the end"
    if test and (instruction.jt >= left or instruction.jf >= left):
        return "jump past the end"
    return ""


def _unwritten_read(program: Program) -> tuple[int, str] | None:
    """A memory word may be read only where every way there has written it."""
    everything = (1 << MEMORY_WORDS) - 1
    at_entry, written = [everything] * len(program), 0
    for at, instruction in enumerate(program):
        written &= at_entry[at]
        code, k = instruction.code, instruction.k
        if code in (ST, STX):
            written |= 1 << k
        elif code in (LOAD_MEMORY, LOADX_MEMORY) and not written >> k & 1:
            return (at, f"memory word {k} is read before it is written")
        elif code == JA:
            at_entry[at + 1 + k] &= written
            written = everything
        elif jump_test(code):
            at_entry[at + 1 + instruction.jt] &= written
            at_entry[at + 1 + instruction.jf] &= written
            written = everything
    return None
