"""What a filter returns, as one term over the sixteen words of the system call.

Jumps go forward only, so the instructions are visited in order and the states that meet at one are merged by `ite`:
no path is ever enumerated and the term is linear in the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from warpproof.sandbox.bitvectors import Arena, Term
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

WORDS: Final = tuple(f"w{i}" for i in range(DATA_BYTES // 4))
_OPERATIONS: Final[Mapping[str, str]] = {
    "add": "bvadd", "sub": "bvsub", "mul": "bvmul", "div": "bvudiv", "or": "bvor", "and": "bvand", "xor": "bvxor",
    "lsh": "bvshl", "rsh": "bvlshr",
}


@dataclass(frozen=True, slots=True)
class _State:
    """The condition under which an instruction is reached, and the registers then."""

    when: Term
    a: Term
    x: Term
    memory: tuple[Term, ...]


def inputs(arena: Arena, prefix: str = "w") -> tuple[Term, ...]:
    """Sixteen unknown words: number, architecture, instruction pointer, six arguments, low halves first."""
    return tuple(arena.word(f"{prefix}{i}") for i in range(len(WORDS)))


def result(arena: Arena, program: Program, words: Sequence[Term]) -> Term:
    """The 32-bit value that the (valid) program returns for these words."""
    zero = arena.number(0)
    arriving: list[list[_State]] = [[] for _ in program]
    arriving[0].append(_State(arena.true, zero, zero, (zero,) * MEMORY_WORDS))
    returns: list[tuple[Term, Term]] = []
    for at, instruction in enumerate(program):
        states = [s for s in arriving[at] if s.when != arena.false]
        arriving[at] = []
        if states:
            _step(arena, instruction, at, _merge(arena, states), words, arriving, returns)
    value = returns[-1][1]
    for when, returned in reversed(returns[:-1]):
        value = arena.choose(when, returned, value)
    return value


def _merge(arena: Arena, states: Sequence[_State]) -> _State:
    merged = states[0]
    for state in states[1:]:
        def pick(new: Term, old: Term, when: Term = state.when) -> Term:
            return arena.choose(when, new, old)

        memory = state.memory if state.memory is merged.memory else tuple(
            pick(n, o) for n, o in zip(state.memory, merged.memory, strict=True))
        when = arena.either([merged.when, state.when])
        merged = _State(when, pick(state.a, merged.a), pick(state.x, merged.x), memory)
    return merged


def _step(arena: Arena, instruction: Instruction, at: int, state: _State, words: Sequence[Term],
          arriving: list[list[_State]], returns: list[tuple[Term, Term]]) -> None:
    code, k = instruction.code, instruction.k
    operand = state.x if code & X else arena.number(k)
    if code in (RETURN_A, RETURN_VALUE):
        returns.append((state.when, state.a if code == RETURN_A else arena.number(k)))
    elif code == JA:
        arriving[at + 1 + k].append(state)
    elif test := jump_test(code):
        taken = _condition(arena, test, state.a, operand)
        for condition, jump in ((taken, instruction.jt), (arena.negation(taken), instruction.jf)):
            arriving[at + 1 + jump].append(replace(state, when=arena.both([state.when, condition])))
    elif operation := alu_operation(code):
        if operation == "div" and code & X:
            by_zero = arena.compare("=", operand, arena.number(0))
            returns.append((arena.both([state.when, by_zero]), arena.number(0)))
            state = replace(state, when=arena.both([state.when, arena.negation(by_zero)]))
        if operation in ("lsh", "rsh"):
            operand = arena.binary("bvand", operand, arena.number(31))
        arriving[at + 1].append(replace(state, a=arena.binary(_OPERATIONS[operation], state.a, operand)))
    else:
        arriving[at + 1].append(_move(arena, code, k, state, words))


def _condition(arena: Arena, test: str, a: Term, operand: Term) -> Term:
    match test:
        case "jeq":
            return arena.compare("=", a, operand)
        case "jgt":
            return arena.compare("bvult", operand, a)
        case "jge":
            return arena.compare("bvule", operand, a)
        case _:
            return arena.negation(arena.compare("=", arena.binary("bvand", a, operand), arena.number(0)))


def _move(arena: Arena, code: int, k: int, state: _State, words: Sequence[Term]) -> _State:
    if code in (ST, STX):
        stored = state.a if code == ST else state.x
        return replace(state, memory=(*state.memory[:k], stored, *state.memory[k + 1:]))
    into_a: dict[int, Term] = {LOAD_LENGTH: arena.number(DATA_BYTES), LOAD_IMMEDIATE: arena.number(k), TXA: state.x}
    into_x: dict[int, Term] = {LOADX_LENGTH: arena.number(DATA_BYTES), LOADX_IMMEDIATE: arena.number(k), TAX: state.a}
    if code == LOAD_WORD:
        return replace(state, a=words[k // 4])
    if code == LOAD_MEMORY:
        return replace(state, a=state.memory[k])
    if code == LOADX_MEMORY:
        return replace(state, x=state.memory[k])
    if code == NEG:
        return replace(state, a=arena.negate(state.a))
    if code in into_a:
        return replace(state, a=into_a[code])
    return replace(state, x=into_x[code])
