"""`cp.async`: values, zero fill, groups, and races until the copy is waited for and shared by a barrier."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cases import given, output, run, written

from warpproof.machine import SCHEDULES, Outcome

DATA = np.arange(1, 257, dtype=np.uint32)
COPY = ("mov.u32 %r1, tile; mad.lo.u32 %r2, %t, 16, %r1; mul.wide.u32 %d1, %t, 16; add.s64 %d2, %a0, %d1;"
        "cp.async.cg.shared.global [%r2], [%d2], 16; cp.async.commit_group;")
OWN = "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];"
OTHER = "xor.b32 %r3, %t, 33; mad.lo.u32 %r8, %r3, 16, %r1; ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r8];"
OUT = "add.s64 %d3, %a1, %d1; st.global.v4.u32 [%d3], {%r4, %r5, %r6, %r7}; ret;"
TILE = ".shared .align 16 .b8 tile[1024];"


def _run(*lines: str, schedule: str = "min-pc", threads: int = 64) -> Outcome:
    kernel = written(*lines, params=2, declared=TILE)
    return run(kernel, threads, given("in", DATA), output("out", 256), schedule=schedule)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_waiting_and_a_barrier_make_a_copy_visible(schedule: str) -> None:
    outcome = _run(COPY, "cp.async.wait_group 0; bar.sync 0;", OTHER, OUT, schedule=schedule)
    assert outcome.findings == ()
    got = outcome.buffers["out"].array(np.uint32).reshape(64, 4)
    np.testing.assert_array_equal(got, DATA.reshape(64, 4)[np.arange(64) ^ 33])


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("lines", [
    ("bar.sync 0; cp.async.wait_group 0;", OTHER), ("cp.async.wait_all;", OTHER),
    ("bar.sync 0;", OTHER, "cp.async.wait_all;"),
])
def test_reading_anothers_copy_too_early(lines: tuple[str, ...], schedule: str) -> None:
    outcome = _run(COPY, *lines, OUT, schedule=schedule)
    assert "race" in outcome.kinds()


def test_own_copy_needs_only_the_wait() -> None:
    assert _run(COPY, "cp.async.wait_all;", OWN, OUT).findings == ()
    early = _run(COPY, OWN, "cp.async.wait_all;", OUT)
    assert early.kinds() == {"uninitialised-read"}


def test_overwriting_a_tile_that_is_still_read() -> None:
    again = "bar.sync 0;" + COPY + "cp.async.wait_all;"
    fine = _run(COPY, "cp.async.wait_all; bar.sync 0;", OTHER, again, OUT)
    assert fine.findings == ()
    late = _run(COPY, "cp.async.wait_all; bar.sync 0;", OTHER, COPY, "cp.async.wait_all;", OUT)
    assert late.kinds() == {"race"}
    passing = _run(COPY, "cp.async.wait_all; bar.sync 0;", COPY, OTHER, "bar.sync 0; cp.async.wait_all;", OUT)
    assert passing.kinds() == {"race"}


def test_groups_complete_in_order() -> None:
    second = ("add.s64 %d4, %d2, 512; add.u32 %r9, %r2, 512; cp.async.ca.shared.global [%r9], [%d4], 8;"
              "cp.async.commit_group;")
    first = ("ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2]; ld.shared.u32 %r10, [%r9];")
    for pending, kinds in ((1, {"uninitialised-read"}), (0, set())):
        outcome = _run(COPY, second, f"cp.async.wait_group {pending};", first, OUT, threads=32)
        assert outcome.kinds() == kinds
        got = outcome.buffers["out"].array(np.uint32)[:128]
        np.testing.assert_array_equal(got, DATA[:128])


def test_bytes_past_the_source_size_are_zero_and_not_read() -> None:
    address = "add.s64 %d2, %a0, %d1;"
    sized = address + "add.s64 %d2, %d2, 992; mul.lo.u32 %r20, %t, 6; min.u32 %r20, %r20, 16;"
    copy = COPY.replace("], 16;", "], 16, %r20;").replace(address, sized)
    inside = copy.replace("mul.lo.u32 %r20, %t, 6; min.u32 %r20, %r20, 16;",
                          "setp.lt.u32 %p1, %t, 2; selp.u32 %r20, 6, 0, %p1;")
    outcome = _run(inside, "cp.async.wait_all;", OWN, OUT, threads=8)
    assert outcome.findings == ()
    got = outcome.buffers["out"].array(np.uint32).reshape(-1, 4)[:8]
    np.testing.assert_array_equal(got[0], [249, 250, 0, 0])
    np.testing.assert_array_equal(got[1], [253, 254, 0, 0])
    assert not got[2:].any()
    assert "out-of-bounds" in _run(copy, "cp.async.wait_all;", OWN, OUT, threads=8).kinds()


@pytest.mark.parametrize(("change", "kind"), [
    (("add.s64 %d2, %a0, %d1;", "add.s64 %d2, %a0, %d1; add.s64 %d2, %d2, 1020;"), "misaligned"),
    (("add.s64 %d2, %a0, %d1;", "add.s64 %d2, %a0, %d1; add.s64 %d2, %d2, 1024;"), "out-of-bounds"),
    (("[%r2], [%d2]", "[%r2+1024], [%d2]"), "out-of-bounds"), (("[%r2], [%d2]", "[%r2+4], [%d2]"), "misaligned"),
])
def test_faulting_copies(change: tuple[str, str], kind: str) -> None:
    assert kind in _run(COPY.replace(*change), "cp.async.wait_all; ret;").kinds()
