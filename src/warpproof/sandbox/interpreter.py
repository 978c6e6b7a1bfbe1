"""What a filter returns for one concrete system call."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

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
    MASK,
    MEMORY_WORDS,
    NEG,
    RETURN_A,
    RETURN_VALUE,
    ST,
    STX,
    TAX,
    TXA,
    Program,
    X,
    alu_operation,
    jump_test,
)

_DATA: Final = struct.Struct("<iIQ6Q")
_OPERATIONS: Final[Mapping[str, Callable[[int, int], int]]] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a // b,
    "or": lambda a, b: a | b, "and": lambda a, b: a & b, "lsh": lambda a, b: a << (b & 31),
    "rsh": lambda a, b: a >> (b & 31), "xor": lambda a, b: a ^ b,
}
_TESTS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "jeq": lambda a, b: a == b, "jgt": lambda a, b: a > b, "jge": lambda a, b: a >= b, "jset": lambda a, b: a & b != 0,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One system call as a filter sees it (struct seccomp_data); `nr` as an unsigned 32-bit word."""

    nr: int
    arch: int
    args: tuple[int, int, int, int, int, int] = (0, 0, 0, 0, 0, 0)
    ip: int = 0

    def words(self) -> tuple[int, ...]:
        """The sixteen 32-bit words, lower half of each 64-bit field first."""
        signed = self.nr - (1 << 32) if self.nr >> 31 else self.nr
        return struct.unpack("<16I", _DATA.pack(signed, self.arch, self.ip, *self.args))

    @staticmethod
    def of_words(words: tuple[int, ...]) -> Call:
        """The call whose sixteen words these are."""
        wide = [words[i] | words[i + 1] << 32 for i in range(2, 16, 2)]
        a, b, c, d, e, f = wide[1:]
        return Call(words[0], words[1], (a, b, c, d, e, f), wide[0])


def run(program: Program, call: Call) -> int:
    """The 32-bit value that the (valid) program returns for the call."""
    data = call.words()
    a = x = at = 0
    memory = [0] * MEMORY_WORDS
    while True:
        instruction = program[at]
        code, k = instruction.code, instruction.k
        operand = x if code & X else k
        at += 1
        if operation := alu_operation(code):
            if operation == "div" and operand == 0:
                return 0
            a = _OPERATIONS[operation](a, operand) & MASK
        elif test := jump_test(code):
            at += instruction.jt if _TESTS[test](a, operand) else instruction.jf
        elif code == RETURN_VALUE:
            return k
        elif code == RETURN_A:
            return a
        elif code == JA:
            at += k
        else:
            a, x = _move(code, k, a, x, memory, data)


def _move(code: int, k: int, a: int, x: int, memory: list[int], data: tuple[int, ...]) -> tuple[int, int]:
    match code:
        case _ if code == LOAD_WORD:
            a = data[k // 4]
        case _ if code == LOAD_LENGTH:
            a = DATA_BYTES
        case _ if code == LOAD_IMMEDIATE:
            a = k
        case _ if code == LOAD_MEMORY:
            a = memory[k]
        case _ if code == LOADX_LENGTH:
            x = DATA_BYTES
        case _ if code == LOADX_IMMEDIATE:
            x = k
        case _ if code == LOADX_MEMORY:
            x = memory[k]
        case _ if code == ST:
            memory[k] = a
        case _ if code == STX:
            memory[k] = x
        case _ if code == TAX:
            x = a
        case _ if code == TXA:
            a = x
        case _ if code == NEG:
            a = -a & MASK
        case _:
            raise AssertionError(f"code {code:#x} in a checked program")
    return a, x
