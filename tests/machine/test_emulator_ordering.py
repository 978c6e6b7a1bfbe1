"""Synchronisation through memory: which release and acquire patterns order accesses of two CTAs."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cases import output, run, updated, written

from warpproof.machine import SCHEDULES

FLAGS = np.zeros(4, np.uint32)


def _message(release: str, acquire: str, ctas: int = 2, schedule: str = "min-pc", prologue: str = "") -> frozenset[str]:
    """CTA 0 writes data and releases; the others wait for the flag [%a1], acquire, and read."""
    kernel = written(
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, 42; mov.u32 %r8, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra wait;",
        prologue, "st.global.u32 [%a0], %r2;", release, "ret;",
        "wait:", acquire.split("|")[0], "setp.eq.u32 %p2, %r3, 0; @%p2 bra wait;", acquire.partition("|")[2],
        "ld.global.u32 %r4, [%a0]; ret;", params=2)
    outcome = run(kernel, 1, output("data", 1), updated("flag", FLAGS), ctas=ctas, schedule=schedule, step_limit=20_000)
    assert outcome.completed
    return outcome.kinds()


RELEASE = "st.release.gpu.global.u32 [%a1], %r8;"
ACQUIRE = "ld.acquire.gpu.global.u32 %r3, [%a1];|"


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("release", "acquire"), [
    (RELEASE, ACQUIRE),
    ("membar.gl; st.relaxed.gpu.global.u32 [%a1], %r8;", "ld.relaxed.gpu.global.u32 %r3, [%a1];|fence.acq_rel.gpu;"),
    ("fence.acq_rel.gpu; red.relaxed.gpu.global.add.u32 [%a1], 1;",
     "atom.relaxed.gpu.global.or.b32 %r3, [%a1], 0;|membar.gl;"),
    ("membar.gl; st.volatile.global.u32 [%a1], %r8;", "ld.volatile.global.u32 %r3, [%a1];|membar.gl;"),
    ("atom.release.gpu.global.exch.b32 %r5, [%a1], %r8;", "atom.acquire.gpu.global.cas.b32 %r3, [%a1], 1, 1;|"),
    (RELEASE, "ld.relaxed.gpu.global.u32 %r3, [%a1];|membar.sys;"),
])
def test_patterns_that_order(release: str, acquire: str, schedule: str) -> None:
    assert _message(release, acquire, 3, schedule) == frozenset()


@pytest.mark.parametrize(("release", "acquire"), [
    ("st.relaxed.gpu.global.u32 [%a1], %r8;", ACQUIRE),  # nothing releases
    (RELEASE, "ld.relaxed.gpu.global.u32 %r3, [%a1];|"),  # nothing acquires
    ("st.release.cta.global.u32 [%a1], %r8;", ACQUIRE),  # the scope does not reach
    (RELEASE, "ld.acquire.cta.global.u32 %r3, [%a1];|"),
    ("membar.cta; st.relaxed.gpu.global.u32 [%a1], %r8;", ACQUIRE),
    (RELEASE, "membar.gl; ld.relaxed.gpu.global.u32 %r3, [%a1];|"),  # the fence comes before the read
    ("st.relaxed.gpu.global.u32 [%a1], %r8; membar.gl;", ACQUIRE),  # and here after the write
    ("membar.gl; st.global.u32 [%a1], %r8;", "ld.global.u32 %r3, [%a1];|membar.gl;"),  # a weak flag
])
def test_patterns_that_do_not(release: str, acquire: str) -> None:
    assert "race" in _message(release, acquire)


def test_release_does_not_cover_what_follows_it() -> None:
    assert _message(f"{RELEASE} st.global.u32 [%a0], %r8;", ACQUIRE, schedule="round-robin") == {"race"}


def test_order_is_handed_on() -> None:
    kernel = written(
        "mov.u32 %r1, %ctaid.x; mov.u32 %r2, 42; mov.u32 %r8, 1;",
        "setp.eq.u32 %p1, %r1, 0; @%p1 bra first; setp.eq.u32 %p1, %r1, 1; @%p1 bra second;",
        "third: ld.acquire.gpu.global.u32 %r3, [%a1+4]; setp.eq.u32 %p2, %r3, 0; @%p2 bra third;",
        "ld.global.u32 %r4, [%a0]; ret;",
        "first: st.global.u32 [%a0], %r2; st.release.gpu.global.u32 [%a1], %r8; ret;",
        "second: ld.acquire.gpu.global.u32 %r3, [%a1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra second;",
        "st.release.gpu.global.u32 [%a1+4], %r8; ret;", params=2)
    for schedule in SCHEDULES:
        outcome = run(kernel, 1, output("data", 1), updated("flag", FLAGS), ctas=3, schedule=schedule)
        assert outcome.findings == ()


def test_barrier_shares_what_one_thread_acquired() -> None:
    body = (
        "mov.u32 %r1, %ctaid.x; mov.u32 %r8, 1; setp.ne.u32 %p1, %r1, 0; setp.ne.u32 %p3, %t, 0; "
        "mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a0, %d1; @%p1 bra consumer; st.global.u32 [%d2], %t; bar.sync 0;"
        " @!%p3 st.release.gpu.global.u32 [%a1], %r8; ret;",
        "consumer: @%p3 bra meet;",
        "wait: ld.acquire.gpu.global.u32 %r3, [%a1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra wait;",
        "meet: {} xor.b32 %r4, %t, 63; mul.wide.u32 %d1, %r4, 4; add.s64 %d2, %a0, %d1; ld.global.u32 %r5, [%d2]; ret;")
    for barrier, kinds in (("bar.sync 0;", set()), ("", {"race"})):
        kernel = written(body[0], body[1], body[2], body[3].format(barrier), params=2)
        for schedule in SCHEDULES:
            outcome = run(kernel, 64, output("data", 64), updated("flag", FLAGS), ctas=2, schedule=schedule,
                          step_limit=50_000)
            assert outcome.kinds() - {"uninitialised-read"} == kinds


def test_shared_flag_orders_within_a_cta() -> None:
    for acquire, kinds in (("ld.acquire.cta.shared.u32 %r3, [flag];", set()),
                           ("ld.relaxed.cta.shared.u32 %r3, [flag];", {"race"})):
        kernel = written(
            "mov.u32 %r8, 1; mov.u32 %r9, 0; setp.eq.u32 %p1, %t, 0; @%p1 st.shared.u32 [flag], %r9; bar.sync 0;",
            "@%p1 bra produce;",
            f"wait: {acquire} setp.eq.u32 %p2, %r3, 0; @%p2 bra wait; ld.shared.u32 %r4, [cell]; ret;",
            "produce: st.shared.u32 [cell], %r8; st.release.cta.shared.u32 [flag], %r8; ret;",
            declared=".shared .align 4 .u32 flag; .shared .align 4 .u32 cell;")
        for schedule in SCHEDULES:
            assert run(kernel, 40, output("out", 1), schedule=schedule, step_limit=50_000).kinds() == kinds
