"""Branches, calls, indirect targets, divergence, traps and limits."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cases import output, run, store_at_thread, written

from warpproof.core import Unsupported
from warpproof.machine import SCHEDULES, Outcome

FUNCTIONS = """
.func (.param .b32 result) scaled(.param .b32 a, .param .align 8 .b8 pair[8])
{
.reg .b32 %r<8>; .reg .pred %p;
ld.param.b32 %r1, [a]; ld.param.b32 %r2, [pair]; ld.param.b32 %r3, [pair+4];
mad.lo.u32 %r4, %r1, %r2, %r3;
setp.gt.u32 %p, %r4, 50;
@%p bra big;
st.param.b32 [result], %r4;
ret;
big:
add.u32 %r4, %r4, 1000;
st.param.b32 [result], %r4;
ret;
}
.func (.reg .b32 y) twice(.reg .b32 x)
{
add.u32 y, x, x;
}
.func (.reg .b32 y) thrice(.reg .b32 x)
{
.reg .b32 %r1;
call (%r1), twice, (x);
add.u32 y, %r1, x;
ret;
}
"""


def _u32(outcome: Outcome) -> np.ndarray:
    return outcome.buffers["out"].array(np.uint32)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_calls_pass_parameters_by_value(schedule: str) -> None:
    kernel = written(
        "{ .param .b32 x; .param .align 8 .b8 y[8]; .param .b32 z;",
        "st.param.b32 [x], %t; mov.u32 %r1, 3; mov.u32 %r2, 5; st.param.v2.b32 [y], {%r1, %r2};",
        "call (z), scaled, (x, y);",
        "ld.param.b32 %r3, [z]; }",
        store_at_thread("%r3"), "ret;", before=FUNCTIONS)
    outcome = run(kernel, 48, output("out", 48), schedule=schedule)
    assert outcome.findings == ()
    value = 3 * np.arange(48) + 5
    np.testing.assert_array_equal(_u32(outcome), np.where(value > 50, value + 1000, value))


def test_nested_divergent_calls_return_to_their_callers() -> None:
    kernel = written(
        "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0;",
        "@%p1 bra even; call (%r2), thrice, (%t); bra done;",
        "even: call (%r2), twice, (%t);",
        "done: call (%r2), twice, (%r2);", store_at_thread("%r2"), "ret;", before=FUNCTIONS)
    outcome = run(kernel, 64, output("out", 64))
    t = np.arange(64)
    assert outcome.findings == ()
    np.testing.assert_array_equal(_u32(outcome), 2 * t * np.where(t % 2 == 0, 2, 3))


def test_indirect_call_selects_by_address() -> None:
    kernel = written(
        "setp.lt.u32 %p1, %t, 10; mov.u64 %d1, twice; mov.u64 %d2, thrice; selp.b64 %d3, %d1, %d2, %p1;",
        "list: .calltargets twice, thrice;",
        "call (%r1), %d3, (%t), list;", store_at_thread("%r1"), "ret;", before=FUNCTIONS)
    outcome = run(kernel, 32, output("out", 32))
    t = np.arange(32)
    np.testing.assert_array_equal(_u32(outcome), t * np.where(t < 10, 2, 3))


def test_call_to_a_data_address_is_reported() -> None:
    kernel = written("list: .calltargets twice;", "mov.u64 %d1, %a0; call (%r1), %d1, (%t), list; ret;",
                     before=FUNCTIONS)
    outcome = run(kernel, 32, output("out", 32))
    assert outcome.kinds() == {"undefined-branch"}
    assert not outcome.completed


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_indexed_branch(schedule: str) -> None:
    kernel = written(
        "and.b32 %r1, %t, 3; list: .branchtargets l0, l1, l2, l1;",
        "brx.idx %r1, list;",
        "l0: mov.u32 %r2, 10; bra end;", "l1: mov.u32 %r2, 20; bra end;", "l2: mov.u32 %r2, 30;",
        "end:", store_at_thread("%r2"), "ret;")
    outcome = run(kernel, 64, output("out", 64), schedule=schedule)
    assert outcome.findings == ()
    np.testing.assert_array_equal(_u32(outcome), np.array([10, 20, 30, 20])[np.arange(64) % 4])


def test_branch_index_outside_its_table() -> None:
    kernel = written("list: .branchtargets l0, l1;", "brx.idx %t, list;", "l0: ret;", "l1: ret;")
    outcome = run(kernel, 3, output("out", 1))
    assert [(f.kind, f.thread) for f in outcome.findings] == [("undefined-branch", (2, 0, 0))]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_divergent_loops_count_exactly(schedule: str) -> None:
    kernel = written(
        "mov.u32 %r1, 0; mov.u32 %r2, 0;",
        "again: setp.ge.u32 %p1, %r1, %t; @%p1 bra out;",
        "add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; bra again;",
        "out:", store_at_thread("%r2"), "exit;")
    outcome = run(kernel, 70, output("out", 70), schedule=schedule)
    t = np.arange(70)
    assert outcome.findings == ()
    np.testing.assert_array_equal(_u32(outcome), t * (t - 1) // 2)


def test_predicated_exit_and_stores() -> None:
    kernel = written(store_at_thread("%t"), "setp.ge.u32 %p1, %t, 20; @%p1 exit; add.u32 %r1, %t, 100;",
                     store_at_thread("%r1"), "ret;")
    outcome = run(kernel, 64, output("out", 64))
    t = np.arange(64)
    np.testing.assert_array_equal(_u32(outcome), np.where(t < 20, t + 100, t))


def test_trap_ends_the_launch() -> None:
    kernel = written("setp.eq.u32 %p1, %t, 5; @%p1 trap;", store_at_thread("%t"), "ret;")
    outcome = run(kernel, 32, output("out", 32))
    assert [(f.kind, f.thread) for f in outcome.findings] == [("trap", (5, 0, 0))]
    assert not outcome.completed
    assert not outcome.buffers["out"].written().any()


def test_failed_assertion_is_a_trap() -> None:
    before = ".extern .func __assertfail(.param .b64 a);"
    kernel = written("{ .param .b64 x; st.param.b64 [x], %a0; call __assertfail, (x); }", "ret;", before=before)
    assert run(kernel, 1, output("out", 1)).kinds() == {"trap"}


def test_step_limit_stops_an_endless_loop() -> None:
    outcome = run(written("again: add.u32 %r1, %r1, 1; bra again;"), 32, output("out", 1), step_limit=1000)
    assert outcome.kinds() == {"step-limit"}
    assert not outcome.completed
    assert outcome.steps <= 1001


def test_spinning_threads_do_not_starve_the_one_they_wait_for() -> None:
    kernel = written(
        "setp.eq.u32 %p1, %t, 31; mov.u64 %d1, flag; @%p1 bra set;",
        "wait: ld.volatile.shared.u32 %r1, [%d1]; setp.ne.u32 %p2, %r1, 1; @%p2 bra wait; bra done;",
        "set: mov.u32 %r2, 1; st.volatile.shared.u32 [%d1], %r2;",
        "done:", store_at_thread("%t"), "ret;", declared=".shared .align 4 .u32 flag;")
    for schedule in SCHEDULES:
        outcome = run(kernel, 32, output("out", 32), schedule=schedule, step_limit=20_000)
        assert outcome.completed
        assert outcome.kinds() <= {"uninitialised-read"}


def test_unsupported_instruction_matters_only_when_executed() -> None:
    lines = ("setp.gt.u32 %p1, %t, 100; @%p1 bra rare;", store_at_thread("%t"), "ret;",
             "rare: tex.1d.v4.u32.s32 {%r1, %r2, %r3, %r4}, [%a0, {%r5}]; ret;")
    kernel = written(*lines)
    assert run(kernel, 32, output("out", 32)).completed
    with pytest.raises(Unsupported):
        run(kernel, 128, output("out", 128))
