"""Classic BPF instructions as the kernel stores them (struct sock_filter), and what seccomp makes of their results."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from warpproof.core import InputError

RECORD: Final = struct.Struct("=HBBI")
MAX_LENGTH: Final = 4096
MEMORY_WORDS: Final = 16
DATA_BYTES: Final = 64
MASK: Final = 0xFFFFFFFF

# Classes, sizes, modes and operations of linux/bpf_common.h.
LD, LDX, ST, STX, ALU, JMP, RET, MISC = range(8)
IMM, ABS, MEM, LEN = 0x00, 0x20, 0x60, 0x80
K, X, A = 0x00, 0x08, 0x10
TAX, TXA = MISC | 0x00, MISC | 0x80
NEG: Final = ALU | 0x80
JA: Final = JMP | 0x00
ALU_OPERATIONS: Final = {"add": 0x00, "sub": 0x10, "mul": 0x20, "div": 0x30, "or": 0x40, "and": 0x50, "lsh": 0x60,
                         "rsh": 0x70, "xor": 0xA0}
JUMP_TESTS: Final = {"jeq": 0x10, "jgt": 0x20, "jge": 0x30, "jset": 0x40}
LOAD_WORD, LOAD_LENGTH, LOAD_IMMEDIATE, LOAD_MEMORY = LD | ABS, LD | LEN, LD | IMM, LD | MEM
LOADX_LENGTH, LOADX_IMMEDIATE, LOADX_MEMORY = LDX | LEN, LDX | IMM, LDX | MEM
RETURN_VALUE, RETURN_A = RET | K, RET | A


@dataclass(frozen=True, slots=True)
class Instruction:
    """One `sock_filter`: 16-bit code, relative jumps for true and false, 32-bit constant."""

    code: int
    k: int = 0
    jt: int = 0
    jf: int = 0


Program = tuple[Instruction, ...]


def encode(program: Program) -> bytes:
    """The bytes of the program, 8 for each instruction, in this machine's byte order."""
    return b"".join(RECORD.pack(i.code, i.jt, i.jf, i.k) for i in program)


def decode(data: bytes) -> Program:
    """The program whose bytes these are; BOX601 if they are no whole number of instructions, or none, or too many."""
    if not data or len(data) % RECORD.size:
        raise InputError("BOX601", f"{len(data)} bytes are not a whole, positive number of 8-byte instructions",
                         hint="a raw filter is an array of struct sock_filter")
    if len(data) > MAX_LENGTH * RECORD.size:
        raise InputError("BOX601", f"{len(data) // RECORD.size} instructions; the kernel takes {MAX_LENGTH}")
    return tuple(Instruction(code, k, jt, jf) for code, jt, jf, k in RECORD.iter_unpack(data))


def alu_operation(code: int) -> str | None:
    """The name of a binary arithmetic operation (with operand K or X), None for any other code."""
    if code & 7 != ALU:
        return None
    return next((name for name, bits in ALU_OPERATIONS.items() if code & ~X == ALU | bits), None)


def jump_test(code: int) -> str | None:
    """The name of a conditional jump (with operand K or X), None for any other code."""
    if code & 7 != JMP:
        return None
    return next((name for name, bits in JUMP_TESTS.items() if code & ~X == JMP | bits), None)
