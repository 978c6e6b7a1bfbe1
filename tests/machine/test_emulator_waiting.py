"""Threads that wait for ever in loops are told from threads that wait for something that comes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from emulator_cases import run, updated, written

from warpproof.machine import SCHEDULES

POLL = "wait: ld.volatile.global.u32 %r3, [%a0]; setp.eq.u32 %p2, %r3, {}; @%p2 bra wait;"


def kinds(*lines: str, threads: int = 64, ctas: int = 1, **more: Any) -> set[str]:
    kernel = written(*lines)
    flags = updated("flag", np.zeros(4, np.uint32))
    return set(run(kernel, threads, flags, ctas=ctas, step_limit=200_000, **more).kinds())


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("ctas", [1, 3])
def test_waiting_for_what_nobody_writes(schedule: str, ctas: int) -> None:
    none = f"{POLL.format(0)} ret;"
    assert kinds(none, schedule=schedule, ctas=ctas) == {"deadlock"}
    behind = f"setp.ne.u32 %p1, %t, 0; @%p1 bra met; {POLL.format(0)} met: bar.sync 0;"
    assert kinds(behind, "ret;", schedule=schedule, ctas=ctas) == {"deadlock"}


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_waiting_for_what_comes(schedule: str) -> None:
    late = """setp.eq.u32 %p1, %t, 63; @!%p1 bra start; mov.u32 %r4, 0; count: add.u32 %r4, %r4, 1;
        setp.lt.u32 %p3, %r4, 400; @%p3 bra count; st.volatile.global.u32 [%a0], 7; bra done; start:"""
    assert kinds(late, POLL.format(0).replace("wait", "hold"), "done: ret;", schedule=schedule) == set()


def test_a_loop_without_an_end() -> None:
    assert kinds("again: bra again;") == {"deadlock"}


def test_a_loop_that_gives_up_is_no_hang() -> None:
    tries = """mov.u32 %r4, 0; again: ld.volatile.global.u32 %r3, [%a0]; add.u32 %r4, %r4, 1;
        setp.lt.u32 %p1, %r4, 9000; @%p1 bra again; ret;"""
    assert kinds(tries) == set()


def test_a_cta_that_is_still_to_come_may_end_the_wait() -> None:
    """The first CTA waits for the second, which the emulator would run later: that is no proof of a deadlock."""
    body = f"mov.u32 %r5, %ctaid.x; setp.eq.u32 %p1, %r5, 1; @%p1 bra tell; {POLL.format(0)} ret;"
    tell = "tell: st.volatile.global.u32 [%a0], 1; ret;"
    assert kinds(body, tell, threads=1, ctas=2) == set()
    assert "deadlock" not in kinds(body, tell, threads=1, ctas=2, batch_ctas=1)


def test_the_result_of_a_wait() -> None:
    text = f"setp.eq.u32 %p1, %t, 0; @%p1 st.volatile.global.u32 [%a0], 3; {POLL.format(0)} ret;"
    outcome = run(written(text), 64, updated("flag", np.zeros(4, np.uint32)))
    assert outcome.completed
    assert outcome.buffers["flag"].array(np.uint32)[0] == 3
