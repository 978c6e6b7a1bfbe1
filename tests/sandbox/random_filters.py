"""Random BPF programs and policies, from a seed."""

from __future__ import annotations

import random

from warpproof.sandbox import NATIVE, Call, Instruction, Policy, Program, Rule, Test, parse_action
from warpproof.sandbox.instructions import (
    ALU,
    ALU_OPERATIONS,
    JA,
    JMP,
    JUMP_TESTS,
    LOAD_IMMEDIATE,
    LOAD_LENGTH,
    LOAD_MEMORY,
    LOAD_WORD,
    LOADX_IMMEDIATE,
    LOADX_LENGTH,
    LOADX_MEMORY,
    NEG,
    RETURN_A,
    RETURN_VALUE,
    ST,
    STX,
    TAX,
    TXA,
    X,
)
from warpproof.sandbox.policy import make_test

PROBED = 900  # a number that no kernel has
IP_WORDS = (2, 3)
INTERESTING = (0, 1, 2, 31, 32, 63, 64, 255, 256, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF)
ERRNO, MAX_ERRNO_BITS = 0x00050000, 0xFFF


def word(rng: random.Random) -> int:
    return rng.choice(INTERESTING) if rng.random() < 0.5 else rng.getrandbits(32)


def instruction(rng: random.Random, left: int, loads: tuple[int, ...]) -> Instruction:
    """One that may stand before `left` more instructions; memory words are written by the prologue."""
    kind = rng.random()
    k = word(rng)
    if kind < 0.35:
        name = rng.choice(tuple(ALU_OPERATIONS))
        by_x = rng.random() < 0.5
        if not by_x and name in ("lsh", "rsh"):
            k %= 32
        return Instruction(ALU | ALU_OPERATIONS[name] | (X if by_x else 0), max(k, 1) if name == "div" else k)
    if kind < 0.55 and left > 1:
        far = min(left - 1, 8)
        test = JMP | JUMP_TESTS[rng.choice(tuple(JUMP_TESTS))] | (X if rng.random() < 0.5 else 0)
        return Instruction(test, k, rng.randrange(far + 1), rng.randrange(far + 1))
    if kind < 0.58 and left > 1:
        return Instruction(JA, rng.randrange(min(left - 1, 4) + 1))
    if kind < 0.75:
        return Instruction(LOAD_WORD, 4 * rng.choice(loads))
    code = rng.choice((LOAD_IMMEDIATE, LOADX_IMMEDIATE, LOAD_MEMORY, LOADX_MEMORY, ST, STX, TAX, TXA, NEG, LOAD_LENGTH,
                       LOADX_LENGTH))
    return Instruction(code, rng.randrange(4) if code in (ST, STX, LOAD_MEMORY, LOADX_MEMORY) else k)


def body(rng: random.Random, length: int, loads: tuple[int, ...]) -> list[Instruction]:
    return [instruction(rng, length - i, loads) for i in range(length)]


def observable(rng: random.Random) -> Program:
    """Allows all calls but PROBED, for which the final A, folded to 12 bits, is an error number.

    The instruction pointer is left out of it, since the kernel chooses that.
    """
    loads = tuple(w for w in range(16) if w not in IP_WORDS)
    head = [Instruction(LOAD_WORD, 0), Instruction(JMP | JUMP_TESTS["jeq"], PROBED, 1, 0),
            Instruction(RETURN_VALUE, parse_action("allow"))]
    stores = [i for m in range(4) for i in (Instruction(LOAD_WORD, 4 * rng.choice(loads)), Instruction(ST, m))]
    shift, mix, mask, join = (ALU | ALU_OPERATIONS[name] for name in ("rsh", "xor", "and", "or"))
    halve = [Instruction(TAX), Instruction(shift, 12), Instruction(mix | X)]
    fold = [*halve, *halve, Instruction(mask, MAX_ERRNO_BITS), Instruction(join, ERRNO),
            Instruction(RETURN_A)]
    return (*head, *stores, *body(rng, rng.randrange(4, 40), loads), *fold)


def arbitrary(rng: random.Random) -> Program:
    """A valid program over all sixteen words that returns whatever it comes to."""
    stores = [i for m in range(4) for i in (Instruction(LOAD_WORD, 4 * rng.randrange(16)), Instruction(ST, m))]
    return (*stores, *body(rng, rng.randrange(4, 30), tuple(range(16))), Instruction(RETURN_A))


def careless(rng: random.Random) -> Program:
    """A program that may or may not be valid."""
    made = list(arbitrary(rng))
    for _ in range(rng.randrange(3)):
        at = rng.randrange(len(made))
        old = made[at]
        match rng.randrange(6):
            case 0:
                made[at] = Instruction(rng.randrange(256), old.k, old.jt, old.jf)
            case 1:
                made[at] = Instruction(old.code, rng.choice((3, 16, 31, 32, 60, 64, 0, 2**32 - 1)), old.jt, old.jf)
            case 2:
                made[at] = Instruction(old.code, old.k, rng.randrange(60), rng.randrange(60))
            case 3:
                del made[at]
            case 4:
                made.insert(at, Instruction(rng.choice((LOAD_MEMORY, LOADX_MEMORY)), rng.randrange(17)))
            case _:
                made = made[: at + 1]
    return tuple(made)


def call(rng: random.Random, number: int | None = None) -> Call:
    args = [word(rng) | word(rng) << 32 for _ in range(6)]
    a, b, c, d, e, f = args
    return Call(rng.randrange(460) if number is None else number, NATIVE, (a, b, c, d, e, f))


def policy(rng: random.Random) -> Policy:
    kinds = [parse_action(a) for a in ("allow", "allow", "errno(1)", "kill_process", "trap(3)", "log")]
    rules = tuple(Rule(tuple(rng.sample(range(460), rng.randrange(1, 40))), rng.choice(kinds),
                       tuple(argument_test(rng) for _ in range(rng.choice((0, 0, 1, 2, 3)))))
                  for _ in range(rng.randrange(1, 12)))
    return Policy("random", rules, rng.choice(kinds), rng.choice(kinds), rng.choice(kinds))


def argument_test(rng: random.Random) -> Test:
    width = rng.choice((32, 64))
    value = rng.getrandbits(rng.choice((1, 3, 31, width)))
    mask = None if rng.random() < 0.6 else rng.getrandbits(width)
    return make_test(rng.randrange(6), width, rng.choice(("==", "!=", "<", "<=", ">", ">=")), value, mask)
