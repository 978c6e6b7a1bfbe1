"""Policies: their text, their meaning, and that both layouts compile to it, proved for all calls."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from random_filters import call, policy

from warpproof.core import InputError
from warpproof.sandbox import (
    I386,
    NATIVE,
    SHIPPED,
    Call,
    Policy,
    Rule,
    Symbolic,
    compile_policy,
    number_of,
    parse_action,
    parse_test,
    read_policy,
    run,
    same_filter,
    shipped_policy,
)
from warpproof.sandbox.obligations import equals_policy
from warpproof.sandbox.symbolic import WORDS

KILL, ALLOW = parse_action("kill_process"), parse_action("allow")


@pytest.mark.parametrize("seed", range(5))
def test_both_layouts_are_the_policy(seed: int) -> None:
    rng = random.Random(seed)
    made = policy(rng)
    linear, tree = compile_policy(made, "linear"), compile_policy(made, "tree")
    assert equals_policy(linear, made).status == "proved"
    assert equals_policy(tree, made).status == "proved"
    assert same_filter([linear], [tree]).status == "proved"
    symbolic = Symbolic.fresh()
    term = made.term(symbolic.arena, symbolic.words)
    for _ in range(100):
        one = replace(call(rng), arch=rng.choice((NATIVE, NATIVE, NATIVE, I386)))
        assert run(linear, one) == run(tree, one) == made.decide(one)
        assert symbolic.arena.evaluate(term, dict(zip(WORDS, one.words(), strict=True))) == made.decide(one)


def test_the_size_of_the_notes_filters() -> None:
    """246 plain and 7 argument rules, as libseccomp writes them: proved in both layouts."""
    rng = random.Random(3)
    plain = Rule(tuple(rng.sample(range(440), 246)), ALLOW)
    tested = tuple(Rule((440 + i,), ALLOW, (parse_test(f"arg{i % 6}:64 <= {1 << 5 * i + 1}"),)) for i in range(7))
    made = Policy("large", (plain, *tested), KILL, KILL, KILL)
    for layout in ("linear", "tree"):
        program = compile_policy(made, layout)
        assert len(program) > 250
        assert equals_policy(program, made).status == "proved"


def test_long_jumps() -> None:
    """Blocks of many rules put jumps out of reach of eight bits."""
    tests = [parse_test(f"arg{i % 2}:32 == {i * 77}") for i in range(90)]
    rules = tuple(Rule((9, 11, 300), parse_action(f"errno({1 + i % 30})"), (t,)) for i, t in enumerate(tests))
    made = Policy("many", (*rules, Rule((5,), ALLOW)), KILL, KILL, KILL)
    for layout in ("linear", "tree"):
        assert equals_policy(compile_policy(made, layout), made).status == "proved"


@pytest.mark.parametrize("text", [
    "arg0:32 == 5", "arg5:64 & 0xff00 != 0x100", "arg1:32 > 7", "arg1:32 >= 7", "arg2:64 < 0x100000000", "arg2:64 <= 9",
])
def test_argument_tests(text: str) -> None:
    made = parse_test(text)
    assert parse_test(str(made)) == made


@pytest.mark.parametrize("text", ["arg0 == 5", "arg6:32 == 1", "arg0:32 = 5", "arg0:32 == 0x100000000", "arg0:16 == 1",
                                  "arg0:32 == name", "nr:32 == 1"])
def test_no_argument_tests(text: str) -> None:
    with pytest.raises(InputError) as error:
        parse_test(text)
    assert error.value.code == "BOX603"


def test_width_is_what_the_kernel_reads() -> None:
    """An int parameter of 1 << 32 is 0 to the kernel: a test of 32 bits sees that, one of 64 is evaded."""
    call_ = Call(number_of("socket"), NATIVE, (1 << 32 | 2, 0, 0, 0, 0, 0))
    assert parse_test("arg0:32 == 2").holds(call_)
    assert not parse_test("arg0:64 == 2").holds(call_)


@pytest.mark.parametrize(("text", "code"), [
    ("default = 'allow'\nrules = []", "BOX607"), ("name = 'x'", "BOX607"), ("default = 'allow", "BOX607"),
    ("default = 'maybe'", "BOX603"), ("default = 3", "BOX607"),
    ("default = 'allow'\n[[rule]]\ncalls = ['opem']\naction = 'allow'", "BOX606"),
    ("default = 'allow'\n[[rule]]\ncalls = []\naction = 'allow'", "BOX607"),
    ("default = 'allow'\n[[rule]]\ncalls = ['open']", "BOX607"),
    ("default = 'allow'\n[[rule]]\ncalls = ['open']\naction = 'allow'\nwhen = ['arg0 = 1']", "BOX603"),
    ("default = 'allow'\n[[rule]]\ncalls = ['open']\naction = 'allow'\nif = []", "BOX607"),
    ("default = 'allow'\n[[need]]\ncall = 'open'\nargs = [1,2,3,4,5,6,7]", "BOX607"),
    ("default = 'allow'\nrule = 3", "BOX607"),
])
def test_text_that_is_no_policy(text: str, code: str) -> None:
    with pytest.raises(InputError) as error:
        read_policy(text)
    assert error.value.code == code


def test_calls_by_number() -> None:
    made = read_policy("default = 'kill_process'\n[[rule]]\ncalls = [500, 'read']\naction = 'allow'")
    assert made.rules[0].calls == (500, 0)
    for bad in ("nothing", 1 << 30, "-1"):
        with pytest.raises(InputError):
            number_of(bad)


def test_shipped_policies_are_named() -> None:
    assert {shipped_policy(name).name for name in SHIPPED} == set(SHIPPED)
    with pytest.raises(InputError):
        shipped_policy("root")
