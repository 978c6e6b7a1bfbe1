"""The table of kernel transitions, the closure over it, its certificate, and both against the running kernel."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import z3

from warpproof.core import InputError
from warpproof.sandbox import (
    I386,
    NAMES,
    NATIVE,
    SHIPPED,
    Call,
    Edge,
    Kernel,
    Policy,
    Rule,
    Seen,
    assemble,
    blocked_script,
    certificate,
    check_certificate,
    close,
    compile_policy,
    name_of,
    number_of,
    parse_action,
    read_transitions,
    run,
    shipped_policy,
    table,
    transitions,
)
from warpproof.sandbox.actions import passes
from warpproof.sandbox.syscalls import X32_BIT

HEADER = Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h")
KILL, ALLOW = parse_action("kill_process"), parse_action("allow")


def test_every_call_is_classified() -> None:
    assert len(table()) >= 362
    known = transitions()
    for call in table().values():
        assert known.class_of(call.number), call.name
    assert {e.gains for e in known.edges} | {"abi", "unknown"} == set(known.facts)
    assert {e.unless for e in known.edges} - {""} <= set(known.layers)


@pytest.mark.skipif(not HEADER.exists(), reason="no kernel headers here")
def test_every_call_of_the_headers_is_in_the_table() -> None:
    header = dict(re.findall(r"#define __NR_(\w+) (\d+)", HEADER.read_text("utf-8")))
    assert len(header) >= 362
    assert {name: table()[name].number for name in header if name in table()} == {n: int(v) for n, v in header.items()}


@pytest.mark.parametrize(("old", "new", "why"), [
    ('calls = "execve execveat"', 'calls = "execve"', "execveat is not classified"),
    ('own-life = "exit', 'own-life = "fork exit', "fork is harmless"),
    ('gains = "exec"', 'gains = "teleport"', "teleport is no fact"),
    ('unless = "landlock"', 'unless = "hope"', "hope is no layer"),
    ('needs = "file-open"', 'needs = "luck"', "luck is no fact"),
    ('clocks = "gettimeofday', 'clocks = "read gettimeofday', "two harmless groups"),
])
def test_a_table_with_a_hole_is_refused(old: str, new: str, why: str) -> None:
    text = files("warpproof.sandbox").joinpath("transitions.toml").read_text("utf-8")
    assert old in text
    with pytest.raises(InputError, match=re.escape(why)) as error:
        read_transitions(text.replace(old, new))
    assert error.value.code == "BOX610"


@pytest.mark.parametrize("name", SHIPPED)
def test_nothing_is_reachable_under_shipped_filters(name: str) -> None:
    program = compile_policy(shipped_policy(name))
    closure = close([program])
    assert closure.reachable == ()
    assert {c.gate for c in closure.crossings} == {"blocked", "live"}
    assert all(c.needs for c in closure.crossings if c.gate == "live")
    assert check_certificate(certificate([program], closure)) == []


@pytest.mark.parametrize("name", SHIPPED)
def test_a_second_solver_agrees(name: str) -> None:
    """The certificate as SMT-LIB, here for z3's incremental mode; any solver reads it."""
    program = compile_policy(shipped_policy(name))
    script = blocked_script(certificate([program], close([program])))
    questions = script.count("(check-sat)")
    assert questions > 200
    solver = z3.Solver()
    head, *parts = script.split("(push 1)")
    solver.from_string(head)
    for part in parts[:: 20]:
        again = z3.Solver()
        again.from_string(head + part.split("\n", 1)[1].replace("(check-sat)", "").replace("(pop 1)", ""))
        assert again.check() == z3.unsat


def test_a_tampered_certificate_is_refused() -> None:
    program = compile_policy(shipped_policy("prove"))
    good = certificate([program], close([program]))
    wide = compile_policy(Policy("w", (Rule((number_of("ptrace"),), ALLOW),), KILL, KILL, KILL))
    other = certificate([wide], close([wide]))
    assert check_certificate(good) == []
    assert "not those of the digest" in " ".join(check_certificate(good | {"filters": other["filters"]}))
    forged = other | {"invariant": []}
    assert any(f.startswith("ptrace gives") for f in check_certificate(forged))
    assert check_certificate(other) == []
    assert check_certificate(good | {"table": "0"}) != []
    assert check_certificate(good | {"layers": ["faith"]}) != []
    assert check_certificate(good | {"initial": ["exec"]}) != []


def test_every_single_call_added_is_found() -> None:
    """A policy that also allows one call: exactly the facts of that call's unconditional edges are reached."""
    base = shipped_policy("prove")
    known = transitions()
    for call in itertools.islice(table().values(), 0, None, 17):
        edges = [e for e in known.edges if e.number == call.number]
        wider = replace(base, rules=(Rule((call.number,), ALLOW), *base.rules))
        reached = close([compile_policy(wider)]).reachable
        assert {e.gains for e in edges if not e.needs} <= set(reached), call.name
        if not edges:
            assert reached == (), call.name


@pytest.mark.parametrize("number", [337, 400, 423, 470, 547, (1 << 30) - 1])
def test_numbers_that_the_table_lacks(number: int) -> None:
    program = compile_policy(Policy("w", (Rule((number,), ALLOW),), KILL, KILL, KILL))
    closure = close([program])
    assert closure.reachable == ("unknown",)
    witness = closure.ways("unknown")[0].witness
    assert witness is not None
    assert witness.nr == number


def test_dropping_an_edge_changes_the_closure() -> None:
    known = transitions()
    program = compile_policy(Policy("w", (Rule((number_of("ptrace"),), ALLOW),), KILL, KILL, KILL))
    ptrace = number_of("ptrace")
    without = replace(known, edges=tuple(e for e in known.edges if e.number != ptrace))
    assert close([program]).reachable == ("write-other", "read-other")
    assert close([program], table=without).reachable == ()
    assert close([program], layers=["pid-namespace"]).reachable == ()
    with pytest.raises(InputError):
        close([program], layers=["hope"])


def test_facts_that_need_facts() -> None:
    """Writing gives other processes' memory only to whoever can open files."""
    rules = Rule((number_of("write"), number_of("mmap")), ALLOW, ())
    writer = compile_policy(Policy("w", (rules,), KILL, KILL, KILL))
    assert close([writer]).reachable == ("rwx",)
    opener = compile_policy(Policy("w", (rules, Rule((number_of("openat"),), ALLOW)), KILL, KILL, KILL))
    assert {"write-other", "file-change"} <= set(close([opener]).reachable)
    assert close([writer], initial=["file-open"]).reachable == close([opener]).reachable


def satisfying(edge: Edge) -> Call:
    """Arguments that fulfil the edge's condition, found by trying."""
    values = (0, 1, 2, 4, 8, 10, 15, 22, 0x8000, 40, 0x10000, 0x7E020000, 0x1005, 100, 0x8901, 0xFFFFFFFE)
    for chosen in itertools.product(values, repeat=len({t.argument for t in edge.when})):
        args = [0] * 6
        for argument, value in zip(sorted({t.argument for t in edge.when}), chosen, strict=True):
            args[argument] = value
        a, b, c, d, e, f = args
        made = Call(edge.number, NATIVE, (a, b, c, d, e, f))
        if all(t.holds(made) for t in edge.when):
            return made
    raise AssertionError(edge)


OTHERS = (Call(20, I386), Call(X32_BIT | 39, NATIVE), Call(number_of("read") + 5000, NATIVE))


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_blocks_what_is_proved_blocked(name: str, kernel: Kernel) -> None:
    """Each blocked transition, also of other ABIs, is tried in a confined process: it is killed or gets an error, as
    the policy says; each live one passes."""
    policy = shipped_policy(name)
    program = compile_policy(policy)
    inside = [c for c in close([program]).crossings if c.name not in ("foreign", "x32", "new")]
    assert len(inside) == len(transitions().edges)
    blocked = {satisfying(e) for e, c in zip(transitions().edges, inside, strict=True) if c.gate == "blocked"}
    live = {c.witness for c in inside if c.gate == "live" and c.witness}
    for call in [*blocked, *OTHERS]:
        seen = kernel.observe([program], [call])[0]
        assert seen is not None
        assert seen.kind in ("killed", "errno"), name_of(call.nr)
        assert seen.agrees(policy.decide(call))
        assert not passes(run(program, call))
    for call in live:
        assert kernel.observe([program], [call])[0] == Seen("passed")
    assert len(blocked) > (150 if name == "command" else 200)


def test_an_unconfined_process_reaches_everything(kernel: Kernel) -> None:
    assert set(close([]).reachable) == set(transitions().facts)
    assert set(close([assemble("ret allow")]).reachable) == set(transitions().facts)
