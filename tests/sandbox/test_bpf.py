"""The BPF model: assembler, validity, interpreter and symbolic semantics, against each other and the running kernel."""

from __future__ import annotations

import random

import pytest
from random_filters import PROBED, arbitrary, call, careless, observable

from warpproof.core import InputError
from warpproof.sandbox import (
    NATIVE,
    Call,
    Instruction,
    Kernel,
    Symbolic,
    assemble,
    check,
    combine,
    decode,
    describe,
    disassemble,
    encode,
    fault,
    parse_action,
    run,
)
from warpproof.sandbox.assembly import normal
from warpproof.sandbox.bitvectors import Arena
from warpproof.sandbox.diagrams import Diagrams, TooLarge
from warpproof.sandbox.symbolic import WORDS, result

SEEDS = range(8)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_kernel_agrees_with_the_interpreter(seed: int, kernel: Kernel) -> None:
    rng = random.Random(seed)
    killed = compared = 0
    for _ in range(40):
        program = observable(rng)
        for one in (call(rng, PROBED) for _ in range(3)):
            seen = kernel.observe([program], [one])[0]
            assert seen is not None
            assert seen.agrees(run(program, one)), (one, seen, describe(run(program, one)), disassemble(program))
            killed += seen.kind == "killed"
            compared += 1
    assert compared == 120
    assert killed < compared


@pytest.mark.parametrize("seed", SEEDS)
def test_the_kernel_agrees_with_the_validity_checker(seed: int, kernel: Kernel) -> None:
    rng = random.Random(1000 + seed)
    verdicts = set()
    for _ in range(40):
        program = careless(rng)
        refused = kernel.refusal(program) != 0
        assert refused == (fault(program) is not None), (fault(program), program)
        verdicts.add(refused)
    assert verdicts == {True, False}


@pytest.mark.parametrize(("text", "why"), [
    ("ld [3]\nret a", "aligned"), ("ld [64]\nret a", "aligned"), ("ld m[0]\nret a", "before it is written"),
    ("ld m[16]\nret a", "memory has"), ("ld #0", "no return"), ("div #0\nret a", "division"),
    ("lsh #32\nret a", "shift"), ("jeq #1, next, l\nst m[0]\nl: ld m[0]\nret a", "before it is written"),
])
def test_what_the_kernel_refuses(text: str, why: str, kernel: Kernel) -> None:
    program = assemble(text)
    found = fault(program)
    assert found is not None
    assert why in found[1]
    assert kernel.refusal(program) == 22
    with pytest.raises(InputError) as error:
        check(program)
    assert error.value.code == "BOX602"


def test_lengths(kernel: Kernel) -> None:
    last = Instruction(0x06, 0x7FFF0000)
    assert fault((last,) * 4096) is None
    assert fault((last,) * 4097) is not None
    assert fault(()) is not None
    assert kernel.refusal((last,) * 4096) == 0
    jump = Instruction(0x05, 1)
    assert fault((jump, last)) is not None
    assert kernel.refusal((jump, last)) == 22


@pytest.mark.parametrize("seed", SEEDS)
def test_text_and_bytes_give_the_program_back(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        program = arbitrary(rng)
        assert decode(encode(program)) == program
        assert assemble(disassemble(program)) == normal(program)


@pytest.mark.parametrize("text", ["jeq #1, nowhere, next\nret a", "l: ret a\nl: ret a", "ld #0x100000000\nret a", "hop",
                                  "ret sometimes", "jeq 1, next, next\nret a", "ldx [0]\nret a",
                                  "back: ld #1\nja back\nret a"])
def test_text_that_is_no_program(text: str) -> None:
    with pytest.raises(InputError) as error:
        assemble(text)
    assert error.value.code == "BOX604"
    assert error.value.span is not None


@pytest.mark.parametrize("data", [b"", b"1234567", bytes(8 * 4097)])
def test_bytes_that_are_no_program(data: bytes) -> None:
    with pytest.raises(InputError) as error:
        decode(data)
    assert error.value.code == "BOX601"


@pytest.mark.parametrize("seed", SEEDS)
def test_the_symbolic_value_is_the_interpreters(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(30):
        program = arbitrary(rng)
        symbolic = Symbolic.fresh()
        term = result(symbolic.arena, program, symbolic.words)
        for _ in range(5):
            one = call(rng)
            words = dict(zip(WORDS, one.words(), strict=True))
            assert symbolic.arena.evaluate(term, words) == run(program, one), (one, disassemble(program))


@pytest.mark.parametrize("seed", range(12))
def test_solver_and_diagrams_agree(seed: int) -> None:
    """Whether a random program can return a value for some call: the answers agree, and witnesses are run."""
    rng = random.Random(seed)
    decided = 0
    for _ in range(6):
        program = arbitrary(rng)
        symbolic = Symbolic.fresh()
        value = result(symbolic.arena, program, symbolic.words)
        target = rng.choice((0, 1, 0x7FFF0000))
        question = symbolic.arena.compare("=", value, symbolic.arena.number(target))
        symbolic.diagrams._limit = 40_000  # products of unknowns have no small diagram
        decision, again = symbolic.decide(question, timeout_s=3), symbolic.confirm(question)
        for answer in (decision, again):
            if answer.witness is not None:
                assert run(program, answer.witness) == target
        if "unknown" not in (decision.kind, again.kind):
            assert decision.kind == again.kind, disassemble(program)
            decided += 1
    assert decided > 0


@pytest.mark.parametrize("op", ["bvadd", "bvsub", "bvmul", "bvudiv", "bvurem", "bvshl", "bvlshr", "bvand", "bvor",
                                "bvxor"])
def test_diagrams_compute(op: str) -> None:
    """All pairs of five-bit numbers."""
    arena = Arena()
    a, b = arena.word("a", 5), arena.word("b", 5)
    diagrams = Diagrams(arena, ("a", "b"))
    for x in range(32):
        for y in range(0, 32, 3):
            value = arena.evaluate(arena.binary(op, a, b), {"a": x, "b": y})
            here = arena.both([arena.compare("=", a, arena.number(x, 5)), arena.compare("=", b, arena.number(y, 5))])
            is_value = arena.compare("=", arena.binary(op, a, b), arena.number(value, 5))
            assert diagrams.build(arena.both([here, arena.negation(is_value)])) == 0
            assert diagrams.model(diagrams.build(arena.both([here, is_value]))) == {"a": x, "b": y}


def test_a_diagram_that_grows_too_large_answers_unknown() -> None:
    symbolic = Symbolic.fresh()
    arena, words = symbolic.arena, symbolic.words
    product = arena.binary("bvmul", words[4], words[6])
    question = arena.compare("=", product, arena.number(0x12345679))
    symbolic.diagrams._limit = 5_000
    assert symbolic.confirm(question).kind == "unknown"
    with pytest.raises(TooLarge):
        symbolic.diagrams.build(question)


def test_words_of_a_call() -> None:
    made = Call(0xFFFFFFFF, NATIVE, (1, 2 << 32, 3, 4, 5, 6 << 40), 7 << 32)
    words = made.words()
    assert words[:4] == (0xFFFFFFFF, NATIVE, 0, 7)
    assert (words[6], words[7]) == (0, 2)
    assert Call.of_words(words) == made


def test_actions() -> None:
    for text in ("allow", "log", "trace(7)", "user_notif", "errno(EPERM)", "trap(3)", "kill_thread", "kill_process"):
        assert describe(parse_action(text)) == text
    assert describe(0x7FFD0000) == "kill_process"
    assert describe(0x0005FFFF) == "errno(4095)"
    assert combine([0x7FFF0000, 0x00050001]) == 0x00050001
    assert combine([0x80000000, 0x00000000]) == 0x80000000
    assert combine([0x00050002, 0x00050001]) == 0x00050002
    for text in ("allow(1)", "errno", "errno(EWHATEVER)", "errno(5000)", "permit"):
        with pytest.raises(InputError):
            parse_action(text)


def test_stacked_filters(kernel: Kernel) -> None:
    """Two filters, oldest first: the kernel combines them as `combine` does."""
    values = [parse_action(a) for a in ("allow", "log", "trace", "errno(1)", "errno(2)", "trap", "kill_process")]
    one = Call(PROBED, NATIVE)
    for first in values:
        for second in values:
            text = f"ld nr\njeq #{PROBED}, next, pass\nret #{{}}\npass: ret allow"
            filters = [assemble(text.format(v)) for v in (first, second)]
            seen = kernel.observe(filters, [one])[0]
            assert seen is not None
            assert seen.agrees(combine([second, first])), (describe(first), describe(second), seen)
