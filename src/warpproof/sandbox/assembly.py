"""Filters as text: one instruction a line, as `bpf_asm` writes them, with the words of seccomp_data by name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from warpproof.core import InputError, Span
from warpproof.sandbox import actions
from warpproof.sandbox.instructions import (
    ALU,
    ALU_OPERATIONS,
    JA,
    JMP,
    JUMP_TESTS,
    LD,
    LDX,
    LEN,
    LOAD_WORD,
    MASK,
    MEM,
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

WORD_NAMES: Final = ("nr", "arch", "ip.lo", "ip.hi",
                     *(f"arg{i}.{half}" for i in range(6) for half in ("lo", "hi")))
_PLAIN: Final = {"tax": TAX, "txa": TXA, "neg": NEG}
_LABEL: Final = re.compile(r"([A-Za-z_]\w*):\s*(.*)")


def assemble(text: str) -> Program:
    """The program the text writes; BOX604 with a span where it writes none. Jumps name labels."""
    lines: list[tuple[int, str]] = []
    labels: dict[str, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        rest = line.split(";", 1)[0].strip()
        while found := _LABEL.fullmatch(rest):
            if found[1] in labels:
                raise _error(number, f"label {found[1]!r} is defined twice", text)
            labels[found[1]] = len(lines)
            rest = found[2].strip()
        if rest:
            lines.append((number, rest))
    program = []
    for at, (number, line) in enumerate(lines):
        try:
            program.append(_instruction(line, at, labels))
        except (ValueError, InputError) as error:
            raise _error(number, str(error), text) from None
    return tuple(program)


def disassemble(program: Program) -> str:
    """Text that `assemble` turns into the same program; BOX602 for codes that no seccomp filter has."""
    targets = {t for at, i in enumerate(program) for t in _targets(at, i)}
    lines = []
    for at, instruction in enumerate(program):
        label = f"L{at}:" if at in targets else ""
        lines.append(f"{label:<7}{_text(at, instruction)}")
    return "\n".join(lines) + "\n"


def _error(line: int, message: str, text: str) -> InputError:
    return InputError("BOX604", message, Span(line, 1), "one instruction a line, such as `jeq #59, deny, next`", text)


def _instruction(line: str, at: int, labels: dict[str, int]) -> Instruction:
    name, _, rest = line.partition(" ")
    name, parts = name.lower(), [p.strip() for p in rest.split(",")] if rest.strip() else []
    if name in _PLAIN and not parts:
        return Instruction(_PLAIN[name])
    if name in ALU_OPERATIONS and len(parts) == 1:
        code, k = _operand(parts[0])
        return Instruction(ALU | ALU_OPERATIONS[name] | code, k)
    if name in JUMP_TESTS and len(parts) == 3:
        code, k = _operand(parts[0])
        jt, jf = (_distance(p, at, labels, 255) for p in parts[1:])
        return Instruction(JMP | JUMP_TESTS[name] | code, k, jt, jf)
    if name == "ja" and len(parts) == 1:
        return Instruction(JA, _distance(parts[0], at, labels, MASK))
    if name == "ret" and len(parts) == 1:
        return _return(parts[0])
    if name in ("ld", "ldx", "st", "stx") and len(parts) == 1:
        return _move(name, parts[0].lower())
    raise ValueError(f"unknown instruction {line[:60]!r}")


def _move(name: str, operand: str) -> Instruction:
    if found := re.fullmatch(r"m\[(\w+)\]", operand):
        code = {"ld": LD | MEM, "ldx": LDX | MEM, "st": ST, "stx": STX}[name]
        return Instruction(code, _number(found[1]))
    base = {"ld": LD, "ldx": LDX}.get(name)
    if base is not None and operand.startswith("#"):
        return Instruction(base | LEN) if operand == "#len" else Instruction(base, _number(operand[1:]))
    if name == "ld" and operand in WORD_NAMES:
        return Instruction(LOAD_WORD, 4 * WORD_NAMES.index(operand))
    if name == "ld" and (found := re.fullmatch(r"\[(\w+)\]", operand)):
        return Instruction(LOAD_WORD, _number(found[1]))
    raise ValueError(f"{name} does not take {operand[:40]!r}")


def _return(operand: str) -> Instruction:
    if operand.lower() == "a":
        return Instruction(RETURN_A)
    return Instruction(RETURN_VALUE, _number(operand[1:]) if operand.startswith("#") else actions.parse_action(operand))


def _operand(text: str) -> tuple[int, int]:
    if text.lower() == "x":
        return X, 0
    if not text.startswith("#"):
        raise ValueError(f"operand {text[:40]!r} is neither x nor a #number")
    return 0, _number(text[1:])


def _number(text: str) -> int:
    value = int(text, 0)
    if not 0 <= value <= MASK:
        raise ValueError(f"{text} does not fit in 32 bits")
    return value


def _distance(label: str, at: int, labels: dict[str, int], limit: int) -> int:
    if label.lower() == "next":
        return 0
    if label not in labels:
        raise ValueError(f"no label {label[:40]!r}")
    distance = labels[label] - at - 1
    if not 0 <= distance <= limit:
        raise ValueError(f"{label!r} is not within {limit} instructions ahead")
    return distance


def _targets(at: int, instruction: Instruction) -> tuple[int, ...]:
    if instruction.code == JA:
        return (at + 1 + instruction.k,)
    return tuple(at + 1 + j for j in (instruction.jt, instruction.jf) if j) if jump_test(instruction.code) else ()


def _text(at: int, instruction: Instruction) -> str:
    code, k = instruction.code, instruction.k
    operand = "x" if code & X else f"#{k:#x}"
    if operation := alu_operation(code):
        return f"{operation} {operand}"
    if test := jump_test(code):
        jumps = (f"L{at + 1 + j}" if j else "next" for j in (instruction.jt, instruction.jf))
        return f"{test} {operand}, {', '.join(jumps)}"
    plain = {TAX: "tax", TXA: "txa", NEG: "neg", JA: f"ja L{at + 1 + k}", RETURN_A: "ret a", ST: f"st m[{k}]",
             STX: f"stx m[{k}]", LD: f"ld #{k:#x}", LDX: f"ldx #{k:#x}", LD | MEM: f"ld m[{k}]",
             LDX | MEM: f"ldx m[{k}]", LD | LEN: "ld #len", LDX | LEN: "ldx #len"}
    if code in plain:
        return plain[code]
    if code == LOAD_WORD:
        return f"ld {WORD_NAMES[k // 4]}" if k % 4 == 0 and k < 64 else f"ld [{k}]"
    if code == RETURN_VALUE:
        known = actions.effective(k) == k and k & actions.ACTION_MASK in actions.NAMES
        return f"ret {actions.describe(k)}" if known else f"ret #{k:#x}"
    raise InputError("BOX602", f"the kernel refuses the filter: instruction {at}: code {code:#x}")


def normal(program: Program) -> Program:
    """The same program with the fields that its codes ignore cleared, as `assemble(disassemble(p))` gives it."""
    def one(i: Instruction) -> Instruction:
        if not jump_test(i.code):
            i = replace(i, jt=0, jf=0)
        takes_k = i.code not in (TAX, TXA, NEG, RETURN_A, LD | LEN, LDX | LEN)
        operand_is_x = bool(i.code & X) and i.code & 7 in (ALU, JMP)
        return i if takes_k and not operand_is_x else replace(i, k=0)
    return tuple(one(i) for i in program)
