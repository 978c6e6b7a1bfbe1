"""The obligations: shipped policies, mutants of their filters, and the known classes of bugs."""

from __future__ import annotations

import random
import time
from collections import Counter
from dataclasses import replace

import pytest

from warpproof.sandbox import (
    I386,
    NATIVE,
    SHIPPED,
    Instruction,
    Kernel,
    Need,
    Policy,
    Program,
    Rule,
    assemble,
    close,
    combine,
    compile_policy,
    fault,
    inspect,
    number_of,
    parse_action,
    parse_test,
    prove,
    read_policy,
    replay,
    run,
    same_filter,
    shipped_policy,
)
from warpproof.sandbox.actions import effective, passes
from warpproof.sandbox.interpreter import Call
from warpproof.sandbox.obligations import (
    covers_abis,
    equals_policy,
    escapes,
    ignores_pointer,
    needed,
    no_pointees,
    stacks,
)

KILL, ALLOW = parse_action("kill_process"), parse_action("allow")
HEAD = "ld arch\njeq #0xc000003e, next, kill\nld nr\njge #0x40000000, kill, next\n"
TAIL = "kill: ret kill_process\nok: ret allow"


@pytest.mark.parametrize("layout", ["linear", "tree"])
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_policies_are_proved(name: str, layout: str) -> None:
    made = shipped_policy(name)
    program = compile_policy(made, layout)  # type: ignore[arg-type]
    prove(made, program)  # the solver's start and cached tables are not the proof's
    started = time.process_time()
    found = prove(made, program)
    seconds = time.process_time() - started
    assert [o.id for o in found] == [f"P{i}" for i in range(9)]
    assert {o.status for o in found} == {"proved"}
    assert seconds < 1.0


@pytest.mark.parametrize("name", SHIPPED)
def test_what_is_loaded_is_what_was_proved(name: str, reader: Kernel) -> None:
    made = shipped_policy(name)
    found = prove(made, compile_policy(made), kernel=reader)
    assert (found[-1].id, found[-1].status) == ("P9", "proved")


def mutants(program: Program, rng: random.Random) -> list[Program]:
    """Programs that differ in one instruction and that the kernel would load."""
    made = []
    for at, old in enumerate(program):
        changes = [replace(old, k=(old.k + d) % 2**32) for d in (1, 2**32 - 1)]
        changes += [replace(old, k=old.k ^ 1 << rng.randrange(32)), replace(old, code=old.code ^ 0x10)]
        changes += [replace(old, jt=old.jf, jf=old.jt), replace(old, jt=old.jt + 1), replace(old, jf=old.jf + 1)]
        changes += [replace(old, code=old.code ^ 0x20), Instruction(0x06, ALLOW), replace(old, k=old.k + 4 & 0x3C)]
        made += [(*program[:at], new, *program[at + 1:]) for new in changes if new != old]
    return [m for m in dict.fromkeys(made) if fault(m) is None]


@pytest.mark.parametrize("name", SHIPPED)
def test_mutants_of_shipped_filters(name: str) -> None:
    """Each is refuted with a call on which it differs, or proved equal; and the two kinds are what running says."""
    rng = random.Random(0)
    policy = shipped_policy(name)
    program = compile_policy(policy)
    tried = rng.sample(mutants(program, rng), 75)
    counts = Counter[str]()
    for mutant in tried:
        outcome = equals_policy(mutant, policy)
        counts[outcome.status] += 1
        if outcome.status == "refuted":
            assert outcome.witness is not None
            assert effective(run(mutant, outcome.witness)) != effective(policy.decide(outcome.witness))
        else:
            assert outcome.status == "proved"
            for number in range(0, 460):
                for args in ((0,) * 6, (2**64 - 1,) * 6, (0, 0, 4, 0x22, 0, 0), (0x3D0F00, 0, 2, 0x21, 0, 0)):
                    one = Call(number, NATIVE, args)
                    assert effective(run(mutant, one)) == effective(policy.decide(one))
    assert counts["refuted"] + counts["proved"] == 75
    assert counts["refuted"] > 55


def test_a_filter_without_an_architecture_check() -> None:
    outcome = covers_abis([assemble("ld nr\njeq #59, kill, ok\n" + TAIL)])
    assert outcome.status == "refuted"
    assert outcome.witness is not None
    assert outcome.witness.arch != NATIVE


def test_a_filter_that_forgets_x32(kernel: Kernel) -> None:
    program = assemble("ld arch\njeq #0xc000003e, next, kill\nld nr\njeq #59, kill, ok\n" + TAIL)
    outcome = covers_abis([program])
    assert outcome.status == "refuted"
    assert outcome.witness is not None
    assert outcome.witness.arch == NATIVE
    assert outcome.witness.nr >= 1 << 30
    assert replay(kernel, [program], [outcome.witness]) == (1, [])


def test_a_filter_that_compares_low_halves_only(kernel: Kernel) -> None:
    """As in firedancer: the argument is 64 bits wide, the generator compares 32."""
    policy = Policy("p", (Rule((number_of("pread64"),), ALLOW, (parse_test("arg3:64 == 0"),)),), KILL, KILL, KILL)
    program = assemble(HEAD + "jeq #17, next, kill\nld arg3.lo\njeq #0, ok, kill\n" + TAIL)
    outcome = equals_policy(program, policy)
    assert outcome.status == "refuted"
    assert outcome.witness is not None
    assert outcome.witness.args[3] >> 32
    assert replay(kernel, [program], [outcome.witness]) == (1, [])


def test_a_filter_that_trusts_the_instruction_pointer() -> None:
    """As in graphene: whoever jumps to the trusted instruction passes; and the window is off by one."""
    text = HEAD + "ld ip.hi\njeq #0x7fff, next, kill\nld ip.lo\njge #0x{:x}, next, kill\njgt #0x2000, kill, ok\n" + TAIL
    first, second = assemble(text.format(0x1000)), assemble(text.format(0x1001))
    assert ignores_pointer([first]).status == "refuted"
    outcome = same_filter([first], [second])
    assert outcome.status == "refuted"
    assert outcome.witness is not None
    assert outcome.witness.ip == 0x7FFF00001000


def test_a_filter_with_swapped_branches() -> None:
    policy = Policy("p", (Rule((59,), KILL),), ALLOW, KILL, KILL)
    assert equals_policy(assemble(HEAD + "jeq #59, kill, ok\n" + TAIL), policy).status == "proved"
    assert equals_policy(assemble(HEAD + "jeq #59, ok, kill\n" + TAIL), policy).status == "refuted"


def test_a_filter_that_kills_a_thread_instead_of_the_process() -> None:
    """libseccomp's default for other architectures."""
    policy = Policy("p", (), ALLOW, KILL, KILL)
    text = "ld arch\njeq #0xc000003e, next, {}\nld nr\njge #0x40000000, kill, ok\nthread: ret kill_thread\n" + TAIL
    assert equals_policy(assemble(text.format("kill")), policy).status == "proved"
    outcome = equals_policy(assemble(text.format("thread")), policy)
    assert outcome.detail == "the filter gives kill_thread, the policy kill_process"


def test_stacking_order() -> None:
    """Of two errors the later filter's wins; adding never lets more through, in either order."""
    one, two = (assemble(HEAD + f"jeq #2, e, ok\ne: ret errno({n})\n" + TAIL) for n in (1, 2))
    assert same_filter([one, two], [two]).status == "proved"
    outcome = same_filter([one, two], [two, one])
    assert outcome.status == "refuted"
    assert outcome.witness is not None
    assert outcome.witness.nr == 2
    assert stacks([one, two]).status == "proved"


def test_actions_the_kernel_does_not_know_break_stacking() -> None:
    """0x7ffd0000 alone kills, but TRACE beside it is the lesser, and passes: P4 is about known actions."""
    program = assemble("ret #0x7ffd0000")
    assert effective(0x7FFD0000) == KILL
    assert passes(combine([parse_action("trace"), 0x7FFD0000]))
    outcome = stacks([program])
    assert outcome.status == "refuted"
    assert outcome.witness is not None


def test_rules_about_pointees() -> None:
    """As in sandlock: what a pointer points to can change after the check."""
    when = (parse_test("arg1:64 == 0x1234"),)
    for rule in (Rule((number_of("openat"),), ALLOW, when), Rule((number_of("openat"),), parse_action("user_notif"))):
        assert no_pointees(Policy("p", (rule,), KILL, KILL, KILL)).status == "refuted"
    fine = Rule((number_of("prlimit64"),), ALLOW, (parse_test("arg2:64 == 0"),))
    assert no_pointees(Policy("p", (fine,), KILL, KILL, KILL)).status == "proved"


def test_denied_lists_leave_aliases() -> None:
    """A list that denies ptrace, process_vm_readv and execveat leaves everything they would do reachable."""
    denied = ("ptrace", "process_vm_readv", "execveat")
    policy = Policy("p", (Rule(tuple(map(number_of, denied)), KILL),), ALLOW, KILL, KILL)
    program = compile_policy(policy)
    closure = close([program])
    assert "process_vm_writev" in {w.name for w in closure.ways("write-other")}
    assert "ptrace" in {g.name for g in closure.gaps("write-other")}
    assert escapes([program], closure).status == "refuted"
    made = inspect([program], policy)
    assert {"P5", "P7"} <= {o.id for o in made.obligations if o.status == "refuted"}


def test_needs_and_their_rules() -> None:
    policy = shipped_policy("prove")
    program = compile_policy(policy)
    assert needed(policy, program).status == "proved"
    more = replace(policy, needs=(*policy.needs, Need(Call(number_of("open"), NATIVE))))
    assert needed(more, program).detail == "open is needed and gets kill_process"
    wider = replace(policy, rules=(*policy.rules, Rule((number_of("getpid"),), ALLOW)))
    assert "getpid" in needed(wider, compile_policy(wider)).detail
    for at in range(len(policy.needs)):
        fewer = replace(policy, needs=(*policy.needs[:at], *policy.needs[at + 1:]))
        assert needed(fewer, program).status == "refuted"


def test_a_filter_for_nothing(kernel: Kernel) -> None:
    """What a supervisor decides counts as let through."""
    made = inspect([assemble("ret user_notif")], kernel=kernel)
    assert made.exit_code == 1
    assert made.passages[0].fact == "abi"
    assert made.passages[0].ways[0].name == "foreign"
    assert made.passages[0].ways[0].witness is not None
    assert made.passages[0].ways[0].witness.arch == I386
    assert made.confirmed > 100


def test_permitted_capabilities_and_assumed_layers() -> None:
    text = "default = 'kill_process'\n[[rule]]\ncalls = ['openat', 'read']\naction = 'allow'"
    policy = read_policy(text)
    program = compile_policy(policy)
    assert [p.fact for p in inspect([program]).passages] == ["read-other", "file-open", "file-change"]
    assert inspect([program], layers=["landlock"]).exit_code == 0
    assert inspect([program], permitted=["read-other", "file-open", "file-change"]).exit_code == 0
    assert inspect([program], permitted=["file-open", "file-change"]).exit_code == 1
    # O_CREAT, O_TRUNC and O_TMPFILE make and empty files: a policy that only reads has to look at the flags
    reads = compile_policy(read_policy(text.replace("calls", "when = ['arg2:32 & 0x400240 == 0']\ncalls").replace(
        ", 'read'", "")))
    assert [p.fact for p in inspect([reads]).passages] == ["file-open"]
