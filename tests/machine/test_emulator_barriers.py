"""CTA barriers: named, counted, reducing, divergent, abandoned; what they order and what they do not."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cases import output, run, store_at_thread, written

from warpproof.machine import SCHEDULES

SHARED = ".shared .align 4 .b8 cell[512];"
WRITE = "mov.u32 %r1, cell; mad.lo.u32 %r2, %t, 4, %r1; st.shared.u32 [%r2], %t;"


def read_from(distance: int, threads: int = 64) -> str:
    return (f"add.u32 %r3, %t, {distance}; and.b32 %r3, %r3, {threads - 1}; mad.lo.u32 %r4, %r3, 4, %r1; "
            "ld.shared.u32 %r5, [%r4];")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("barrier", "distance", "race"), [
    ("bar.sync 0;", 37, False), ("barrier.sync 3;", 37, False), ("bar.sync 1, 64;", 37, False),
    ("bar.warp.sync -1;", 37, True), ("", 37, True), ("membar.cta;", 37, True),
    ("vote.sync.all.pred %p1, 1, -1;", 1, True),
])
def test_what_orders_a_write_and_a_read(barrier: str, distance: int, race: bool, schedule: str) -> None:
    kernel = written(WRITE, barrier, read_from(distance), store_at_thread("%r5"), "ret;", declared=SHARED)
    outcome = run(kernel, 64, output("out", 64), schedule=schedule)
    assert ("race" in outcome.kinds()) == race
    if not race:
        assert outcome.findings == ()
        np.testing.assert_array_equal(outcome.buffers["out"].array(np.uint32), (np.arange(64) + distance) % 64)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warp_barrier_orders_its_warp(schedule: str) -> None:
    exchange = "xor.b32 %r3, %t, 5; mad.lo.u32 %r4, %r3, 4, %r1; ld.shared.u32 %r5, [%r4];"
    kernel = written(WRITE, "bar.warp.sync -1;", exchange, store_at_thread("%r5"), "ret;", declared=SHARED)
    outcome = run(kernel, 64, output("out", 64), schedule=schedule)
    assert outcome.findings == ()
    partial = written(WRITE, "and.b32 %r9, %t, 1; setp.eq.u32 %p1, %r9, 0; selp.b32 %r8, 0x55555555, 0xAAAAAAAA, %p1;",
                      "bar.warp.sync %r8;", exchange, "ret;", declared=SHARED)
    assert "race" in run(partial, 64, output("out", 64), schedule=schedule).kinds()  # t and t^5 are in different masks


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_arrive_orders_only_what_came_before_it(schedule: str) -> None:
    producer = "st.shared.u32 [cell], %t; {} bar.arrive 1, 64; {} bra done;"
    consumer = "wait: bar.sync 1, 64; ld.shared.u32 %r5, [cell];"
    late = "mov.u32 %r7, 9; setp.eq.u32 %p2, %t, 0; @%p2 st.shared.u32 [cell], %r7;"
    for extra, kinds in (("", set()), (late, {"race"})):
        kernel = written(
            "setp.ge.u32 %p1, %t, 32; @%p1 bra wait; setp.ne.u32 %p3, %t, 0; @%p3 bra other;",
            producer.format("", extra), "other: bar.arrive 1, 64; bra done;", consumer, "done: ret;", declared=SHARED)
        outcome = run(kernel, 64, output("out", 1), schedule=schedule)
        assert outcome.kinds() - {"barrier-divergence"} == kinds


def test_reductions() -> None:
    kernel = written(
        "setp.lt.u32 %p1, %t, 50; bar.red.popc.u32 %r1, 0, %p1; bar.red.and.pred %p2, 0, %p1;",
        "bar.red.or.pred %p3, 0, %p1;",
        "selp.u32 %r2, 1000, 0, %p2; selp.u32 %r3, 2000, 0, %p3; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;",
        "bar.red.popc.u32 %r4, 0, !%p1; add.u32 %r1, %r1, %r4;", store_at_thread("%r1"), "ret;")
    for schedule in SCHEDULES:
        outcome = run(kernel, 96, output("out", 96), schedule=schedule)
        assert outcome.findings == ()
        assert (outcome.buffers["out"].array(np.uint32) == 50 + 2000 + 46).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_barrier_in_a_divergent_branch(schedule: str) -> None:
    kernel = written("setp.lt.u32 %p1, %t, 16; @%p1 bra first; bar.sync 0; bra done;", "first: bar.sync 0;",
                     "done: ret;")
    outcome = run(kernel, 32, output("out", 1), schedule=schedule)
    assert outcome.kinds() == {"barrier-divergence"}
    assert outcome.completed
    unaligned = written("setp.lt.u32 %p1, %t, 16; @%p1 bra first; barrier.sync 0; bra done;", "first: barrier.sync 0;",
                        "done: ret;", target="sm_70")
    assert run(unaligned, 32, output("out", 1), schedule=schedule).findings == ()


def test_warps_at_different_instructions_of_one_barrier() -> None:
    kernel = written("setp.lt.u32 %p1, %t, 32; @%p1 bra first; bar.sync 0; bra done;", "first: bar.sync 0;",
                     "done: ret;")
    assert run(kernel, 64, output("out", 1)).kinds() == {"barrier-mismatch"}
    named = written("setp.lt.u32 %p1, %t, 32; @%p1 bra first; bar.sync 1, 64; bra done;", "first: bar.sync 1, 64;",
                    "done: ret;")
    assert run(named, 64, output("out", 1)).findings == ()


def test_disagreeing_counts_and_kinds() -> None:
    counts = written("setp.lt.u32 %p1, %t, 32; selp.u32 %r1, 64, 96, %p1; bar.sync 1, %r1; ret;")
    assert "barrier-mismatch" in run(counts, 64, output("out", 1)).kinds()
    odd = written("bar.sync 1, 33; ret;")
    assert "barrier-mismatch" in run(odd, 64, output("out", 1)).kinds()
    mixed = written("setp.lt.u32 %p1, %t, 32; @%p1 bra other; bar.red.popc.u32 %r1, 1, 64, %p1; bra done;",
                    "other: bar.sync 1, 64;", "done: ret;")
    assert "barrier-mismatch" in run(mixed, 64, output("out", 1)).kinds()


def test_threads_that_exit_early_are_noted() -> None:
    kernel = written("setp.ge.u32 %p1, %t, 40; @%p1 exit; bar.sync 0;", store_at_thread("%t"), "ret;")
    outcome = run(kernel, 64, output("out", 64))
    assert outcome.completed
    assert [(f.kind, f.thread, f.lanes) for f in outcome.findings] == [("exited-at-barrier", (40, 0, 0), 24)]


def test_writes_of_a_thread_that_exits_are_not_ordered_by_the_barrier() -> None:
    kernel = written(WRITE, "setp.ge.u32 %p1, %t, 32; @%p1 exit; bar.sync 0;", read_from(32), "ret;", declared=SHARED)
    assert run(kernel, 64, output("out", 1)).kinds() == {"exited-at-barrier", "race"}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_deadlocks(schedule: str) -> None:
    alone = written("bar.sync 1, 128; ret;")
    outcome = run(alone, 64, output("out", 1), schedule=schedule)
    assert outcome.kinds() == {"deadlock"}
    assert not outcome.completed
    crossed = written("setp.lt.u32 %p1, %t, 32; @%p1 bra first; bar.sync 1, 64; bar.sync 2, 64; ret;",
                      "first: bar.sync 2, 64; bar.sync 1, 64; ret;")
    outcome = run(crossed, 64, output("out", 1), schedule=schedule)
    assert outcome.kinds() == {"deadlock"}
    assert len(outcome.findings) == 2


def test_barrier_that_waits_only_for_exited_threads_is_released() -> None:
    kernel = written("setp.ge.u32 %p1, %t, 32; @%p1 exit; bar.sync 1, 64;", store_at_thread("%t"), "ret;")
    outcome = run(kernel, 64, output("out", 64))
    assert outcome.completed
    assert outcome.kinds() == {"exited-at-barrier"}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_barriers_of_ctas_are_independent(schedule: str) -> None:
    kernel = written(
        "mov.u32 %r6, %ctaid.x; add.u32 %r6, %r6, 1; mov.u32 %r7, 0;",
        "again:", WRITE, "bar.sync 0;", read_from(1, 32), "bar.sync 0; add.u32 %r7, %r7, 1;",
        "setp.lt.u32 %p1, %r7, %r6; @%p1 bra again;",
        "mov.u32 %r8, %ctaid.x; mad.lo.u32 %r8, %r8, 32, %t; mul.wide.u32 %d1, %r8, 4; add.s64 %d2, %a0, %d1;",
        "mad.lo.u32 %r5, %r7, 100, %r5; st.global.u32 [%d2], %r5; ret;", declared=SHARED)
    outcome = run(kernel, 32, output("out", 160), ctas=5, schedule=schedule)
    assert outcome.findings == ()
    got = outcome.buffers["out"].array(np.uint32).reshape(5, 32)
    np.testing.assert_array_equal(got, 100 * (np.arange(5)[:, None] + 1) + (np.arange(32) + 1) % 32)


ROLLED = ("mov.u32 %r6, {start};", "again: setp.ge.u32 %p1, %t, %r6; @%p1 bra skip; add.u32 %r7, %r7, 1; bar.sync 0;",
          "skip: shr.u32 %r6, %r6, 1; setp.ne.u32 %p2, %r6, 0; @%p2 bra again; ret;")


def test_barrier_around_which_some_threads_go() -> None:
    lines = [ROLLED[0].format(start=64), *ROLLED[1:]]
    found = run(written(*lines), 64, output("out", 1)).findings
    assert {f.kind for f in found} == {"barrier-divergence", "exited-at-barrier"}
    by_warp = [ROLLED[0].format(start=64), ROLLED[1].replace("%t, %r6", "%r5, %r6"), ROLLED[2]]
    assert run(written("mov.u32 %r5, 0;", *by_warp), 64, output("out", 1)).findings == ()


def test_leaving_early_is_not_going_around_a_barrier() -> None:
    laid_out_behind = written(
        "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; setp.ge.u32 %p2, %t, 40; @%p1 bra cold; mov.u32 %r2, 1;",
        "join: @%p2 bra leave; bar.sync 0; bar.sync 0; ret;", "cold: mov.u32 %r2, 2; bra join;",
        "leave:", store_at_thread("%r2"), "ret;")
    outcome = run(laid_out_behind, 64, output("out", 64))
    assert outcome.kinds() == {"exited-at-barrier"}


def test_predicated_barrier_is_divergent() -> None:
    kernel = written("setp.lt.u32 %p1, %t, 16; @%p1 bar.sync 0; bar.sync 0; ret;")
    assert run(kernel, 32, output("out", 1)).kinds() == {"barrier-divergence", "exited-at-barrier"}
