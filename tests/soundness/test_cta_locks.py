"""Locks that one thread takes for its whole CTA, flags and polls by atomics, counters that wrap, votes; wrong forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proof_cases import Small, proved
from test_grid_barriers import ARRIVE, WAIT, grid, mirrored, put
from test_protocols import BAR, GOOD, changed, pairs, reversed_squares

ZERO = {"init": "zero"}
PARAMS = (
    ("x", "ptr_in", "f32", ("n", "64")), ("lock", "ptr_inout", "u32", ("1",)), ("y", "ptr_inout", "f32", ("64",)),
)
LOAD = """mul.wide.u32 %d20, %g, 4; add.s64 %d21, %a_x, %d20; ld.global.f32 %f1, [%d21]; mul.wide.u32 %d22, %t, 4;
    add.s64 %d23, %a_y, %d22; setp.ne.s32 %p1, %t, 0; @%p1 bra IN;"""
TAKE = "L: atom.global.cas.b32 %r3, [%a_lock], 0, 1; setp.ne.s32 %p2, %r3, 0; @%p2 bra L;"
SWAP = "L: atom.global.exch.b32 %r3, [%a_lock], 1; setp.ne.s32 %p2, %r3, 0; @%p2 bra L;"
FENCE = "membar.gl;"
ADD = "ld.global.f32 %f2, [%d23]; add.f32 %f2, %f2, %f1; st.global.f32 [%d23], %f2;"
LEAD = "@%p1 bra DONE;"
FREE = "atom.global.exch.b32 %r4, [%a_lock], 0;"
STRONG = "atom.acquire.gpu.global.cas"
GOOD_LOCK = (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE)


def locked(*parts: str, **extra: Any) -> Small:
    marks = {"lock": ZERO, **extra}
    return Small("\n".join(parts), PARAMS, ("n",), ("n >= 1", "n <= 100000"), ("n",), extra=marks)


def column_sums(x: Any, lock: Any, y: Any, n: Any) -> dict[str, Any]:
    return {"y": y + x.sum(axis=0), "lock": np.zeros(1, np.uint32)}


@pytest.mark.parametrize("parts", [
    GOOD_LOCK,
    (LOAD, SWAP, FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, "st.volatile.global.u32 [%a_lock], 0;"),
    (LOAD, TAKE, "IN: bar.sync 0;", FENCE, ADD, FENCE, BAR, LEAD, FREE),
    (LOAD, TAKE.replace("atom.global.cas", STRONG), "IN: bar.sync 0;", ADD, BAR, LEAD,
     "st.release.gpu.global.u32 [%a_lock], 0;"),
])
def test_a_lock_for_the_whole_cta(parts: tuple[str, ...]) -> None:
    assert proved(locked(*parts), column_sums)


@pytest.mark.parametrize("parts", [
    (LOAD, TAKE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FREE),
    (LOAD, TAKE, "membar.cta;", "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, "membar.cta;", FREE),
    (LOAD, TAKE, FENCE, "IN:", ADD, BAR, LEAD, FENCE, FREE),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD, LEAD, FENCE, FREE),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", BAR, LEAD, FENCE, FREE, ADD),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE),
    (LOAD, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE),
    (LOAD, TAKE.replace("atom", "atom.cta"), FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE.replace("atom", "atom.cta")),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, "st.global.u32 [%a_lock], 0;"),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE.replace(", 0;", ", 1;")),
    (LOAD, TAKE.replace("0, 1;", "1, 1;"), FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE),
    (LOAD, SWAP.replace(", 1;", ", 0;"), FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD.replace("%d23", "%a_y"), BAR, LEAD, FENCE, FREE),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD, BAR, LEAD, FENCE, FREE, "st.global.f32 [%d23], %f2;"),
    (LOAD, TAKE, FENCE, "IN: bar.sync 0;", ADD.replace("add.f32 %f2, %f2", "mul.f32 %f2, %f2"), BAR, LEAD, FENCE, FREE),
])
def test_wrong_locks_for_the_whole_cta(parts: tuple[str, ...]) -> None:
    assert not proved(locked(*parts), column_sums)


SOME = ("and.b32 %r30, %c, 1; setp.ne.s32 %p9, %r30, 0;", "setp.ge.s32 %p9, %g, %i_n;")
BOTH = "or.pred %p10, %p1, %p9; @%p10 bra {0};"


@pytest.mark.parametrize("which", SOME)
def test_a_lock_that_some_ctas_do_not_take(which: str) -> None:
    """All CTAs add to the sums, but only those of even number, or some by thread 0's own number, take the lock."""
    first = LOAD.replace("@%p1 bra IN;", which + BOTH.format("IN"))
    last = (BAR, BOTH.format("DONE"), FENCE, FREE)
    assert not proved(locked(first, TAKE, FENCE, "IN: bar.sync 0;", ADD, *last), column_sums)


@pytest.mark.parametrize(("which", "good"), [(SOME[0], True), ("setp.eq.s32 %p9, %c, 0;", False)])
def test_only_ctas_that_take_the_lock_add(which: str, good: bool) -> None:
    """CTAs of even number take the lock; those of even number, or all but the first, add to the sums."""
    first = LOAD.replace("@%p1 bra IN;", SOME[0] + BOTH.format("IN"))
    only = f"{which.replace('p9', 'p11')} @%p11 bra OUT; {ADD} OUT:"
    kernel = locked(first, TAKE, FENCE, "IN: bar.sync 0;", only, BAR, BOTH.format("DONE"), FENCE, FREE)

    def some(x: Any, lock: Any, y: Any, n: Any) -> dict[str, Any]:
        number = np.arange(n)[:, None]
        adds = number % 2 == 0 if good else number > 0
        return {"y": y + np.where(adds, x, 0).sum(axis=0), "lock": np.zeros(1, np.uint32)}

    assert proved(kernel, some) == good


def test_a_lock_that_is_not_free_at_the_start() -> None:
    assert not proved(locked(*GOOD_LOCK, lock={}), column_sums)


ROWS = (("x", "ptr_in", "f32", ("4", "n", "64")), ("lock", "ptr_inout", "u32", ("4",)),
        ("y", "ptr_inout", "f32", ("4", "64")))


@pytest.mark.parametrize(("which", "good"), [("%r20", True), ("%r21", False)])
def test_one_lock_for_each_row(which: str, good: bool) -> None:
    """Blocks (c, r) add to row r under the lock of r; the lock of another number does not protect it."""
    place = f"""mov.u32 %r20, %ctaid.y; and.b32 %r21, %c, 3; mul.wide.u32 %d30, {which}, 4;
        add.s64 %a_lock, %a_lock, %d30; mad.lo.s32 %r22, %r20, %i_n, %c; shl.b32 %r22, %r22, 6; add.s32 %g, %r22, %t;"""
    row = "shl.b32 %r23, %r20, 6; add.s32 %r23, %r23, %t; mul.wide.u32 %d22, %r23, 4;"
    body = (place, LOAD.replace("mul.wide.u32 %d22, %t, 4;", row), *GOOD_LOCK[1:])
    kernel = Small("\n".join(body), ROWS, ("n",), ("n >= 4", "n <= 1000"), ("n", "4"), extra={"lock": ZERO})

    def rows(x: Any, lock: Any, y: Any, n: Any) -> dict[str, Any]:
        return {"y": y + x.sum(axis=1), "lock": np.zeros(4, np.uint32)}

    assert proved(kernel, rows) == good


# ---------------------------------------------------------------------- flags and polls
RAISED = "st.release.gpu.global.u32 [%d24], 1"
HEARD = "ld.acquire.gpu.global.u32 %r10, [%d24]"
PEELED = """setp.eq.s32 %p3, %r10, 1; @%p3 bra HEARD; L: nanosleep.u32 64; {0} %r13, [%d24];
    setp.ne.s32 %p4, %r13, {1}; @%p4 bra L"""
TURN = "setp.eq.s32 %p3, %r10, 0; @%p3 bra L"


def peeled(load: str = "ld.acquire.gpu.global.u32", value: int = 1) -> str:
    """The good kernel with the first turn of its loop in front of it."""
    return changed(TURN, PEELED.format(load, value))[0].replace("L: ld", "ld", 1)


@pytest.mark.parametrize("text", [
    changed(RAISED, "membar.gl; atom.global.exch.b32 %r11, [%d24], 1")[0],
    changed(RAISED, "atom.release.gpu.global.exch.b32 %r11, [%d24], 1")[0],
    changed(RAISED, "red.release.gpu.global.add.u32 [%d24], 1")[0],
    changed(HEARD, "atom.acquire.gpu.global.add.u32 %r10, [%d24], 0")[0],
    changed(HEARD, "atom.acquire.gpu.global.cas.b32 %r10, [%d24], 0, 0")[0],
    peeled(),
])
def test_flags_by_atomics_and_loops_with_a_turn_in_front(text: str) -> None:
    assert proved(pairs(text), reversed_squares)


@pytest.mark.parametrize("text", [
    changed(RAISED, "atom.global.exch.b32 %r11, [%d24], 1")[0],
    changed(RAISED, "membar.gl; atom.cta.global.exch.b32 %r11, [%d24], 1")[0],
    changed(RAISED, "membar.gl; atom.global.exch.b32 %r11, [%d24], 0")[0],
    changed(RAISED, "red.global.add.u32 [%d24], 1")[0],
    changed(RAISED, "red.release.cta.global.add.u32 [%d24], 1")[0],
    changed(RAISED, "red.release.gpu.global.add.u32 [%d24], 1; red.release.gpu.global.add.u32 [%d24], 1")[0].replace(
        "setp.eq.s32 %p3, %r10, 0", "setp.ne.s32 %p3, %r10, 1"),
    changed(HEARD, "atom.global.add.u32 %r10, [%d24], 0")[0],
    changed(HEARD, "atom.acquire.cta.global.add.u32 %r10, [%d24], 0")[0],
    changed(HEARD, "atom.acquire.gpu.global.add.u32 %r10, [%d24], 1")[0],
    changed(HEARD, "atom.acquire.gpu.global.cas.b32 %r10, [%d24], 0, 1")[0],
    peeled("ld.relaxed.gpu.global.u32"), peeled("ld.acquire.cta.global.u32"), peeled("ld.global.u32"), peeled(value=2),
    peeled().replace("setp.eq.s32 %p3, %r10, 1", "setp.eq.s32 %p3, %r10, 0"),
    peeled().replace("ld.acquire.gpu.global.u32 %r10", "ld.relaxed.gpu.global.u32 %r10"),
])
def test_wrong_flags_by_atomics(text: str) -> None:
    assert not proved(pairs(text), reversed_squares)


@pytest.mark.parametrize(("first", "good"), [("mov.u32 %r31, %r30;", True), ("add.s32 %r31, %r30, %t;", False)])
def test_who_waits_under_a_condition_of_its_own(first: str, good: bool) -> None:
    """Thread 0 waits if its own number is large enough; others read if theirs is, in the wrong form a larger one."""
    only = f"shl.b32 %r30, %r4, 6; {first} setp.lt.s32 %p8, %r31, %i_n; TAKE: @%p1 bra HEARD; @%p8 bra HEARD;"
    text = "\n".join(GOOD).replace("TAKE: @%p1 bra HEARD;", only).replace("@%p2 bra TAKE;", "@%p2 bra EARLY;")
    text = text.replace("bra DONE; shl.b32", "bra DONE; EARLY: shl.b32").replace(
        "ld.global.f32 %f2, [%d27]", "mov.f32 %f2, 0f00000000; @!%p8 ld.global.f32 %f2, [%d27]")

    def later(x: Any, buf: Any, ready: Any, ticket: Any, n: Any) -> dict[str, Any]:
        number = 64 * (2 * np.arange(n)[:, None] + 1) + (0 if good else np.arange(64)[None, :])
        return {"y": np.where(number >= n, np.square(x)[:, ::-1], 0)}

    assert proved(pairs(text), later) == good


@pytest.mark.parametrize(("first", "good"), [("mov.u32 %r31, %r30;", True), ("add.s32 %r31, %r30, %t;", False)])
def test_fences_under_a_condition_of_ones_own(first: str, good: bool) -> None:
    """The flag is relaxed; thread 0 has a fence if its own number is large enough, the others store if theirs is."""
    text = changed("st.release.gpu.global", "st.relaxed.gpu.global")[0].replace(
        "@%p1 bra DONE; st", "@%p1 bra DONE; @%p8 bra BARE; membar.gl; BARE: st")
    role = f"shl.b32 %r30, %r2, 7; {first} setp.lt.s32 %p8, %r31, %i_n; @%p2 bra TAKE; @%p8 bra NOT;"
    text = text.replace("@%p2 bra TAKE;", role).replace(f"{BAR}\n@%p1 bra DONE;", f"NOT: {BAR}\n@%p1 bra DONE;")
    number = f"shl.b32 %r30, %r2, 7; sub.s32 %r32, 63, %t; mul.lo.s32 %r32, %r32, {int(not good)};"
    text = text.replace("ld.global.f32 %f2, [%d27]", f"""{number} add.s32 %r32, %r32, %r30;
        setp.lt.s32 %p9, %r32, %i_n; mov.f32 %f2, 0f00000000; @!%p9 ld.global.f32 %f2, [%d27]""")

    def stored(x: Any, buf: Any, ready: Any, ticket: Any, n: Any) -> dict[str, Any]:
        number = 128 * np.arange(n)[:, None] + (0 if good else np.arange(64)[None, ::-1])
        return {"y": np.where(number >= n, np.square(x)[:, ::-1], 0)}

    assert proved(pairs(text), stored) == good


def test_all_threads_wait_for_one_flag() -> None:
    text = "\n".join(GOOD).replace("TAKE: @%p1 bra HEARD;", "TAKE:").replace(f"HEARD:\n{BAR}", "HEARD:")
    assert proved(pairs(text), reversed_squares)
    assert not proved(pairs(text.replace("ld.acquire.gpu", "ld.relaxed.gpu")), reversed_squares)
    assert not proved(pairs(text.replace("TAKE:", "TAKE: setp.ge.u32 %p6, %t, 32; @%p6 bra HEARD;")), reversed_squares)
    leak = text.replace("ld.global.f32 %f2", "setp.ne.s32 %p7, %r10, 1; @%p7 bra DONE; ld.global.f32 %f2")
    assert not proved(pairs(leak), reversed_squares)


@pytest.mark.parametrize(("parts", "good"), [
    (put("ld.acquire.gpu.global.u32 %r10, [%a_count]", "atom.acquire.gpu.global.or.b32 %r10, [%a_count], 0"), True),
    (put("ld.acquire.gpu.global.u32 %r10, [%a_count]", "atom.global.or.b32 %r10, [%a_count], 0"), False),
    (put(ARRIVE + "\n" + WAIT, "membar.gl; atom.global.inc.u32 %r13, [%a_count], %r14;\n" + WAIT)[0].replace(
        "membar.gl; atom", "sub.s32 %r14, %i_n, 1; membar.gl; atom"), False),
])
def test_grid_barriers_by_atomics(parts: Any, good: bool) -> None:
    assert proved(grid(*([parts] if isinstance(parts, str) else parts)), mirrored) == good


CHAIN = (("x", "ptr_in", "f32", ("n", "64")), ("buf", "ptr_inout", "f32", ("n", "64")),
         ("first", "ptr_inout", "u32", ("n",)), ("second", "ptr_inout", "u32", ("n",)),
         ("ticket", "ptr_inout", "u32", ("1",)), ("y", "ptr_out", "f32", ("n", "64")))
CHAINED = """setp.ne.s32 %p1, %t, 0; @%p1 bra DRAWN;
    atom.global.add.u32 %r3, [%a_ticket], 1; mov.u32 %r58, smem; st.shared.u32 [%r58], %r3;
    DRAWN: bar.sync 0; mov.u32 %r58, smem; ld.shared.u32 %r4, [%r58]; div.u32 %r2, %r4, 3; rem.u32 %r5, %r4, 3;
    shl.b32 %r6, %r2, 6; add.s32 %r7, %r6, %t; mul.wide.u32 %d20, %r7, 4; mul.wide.u32 %d21, %r2, 4;
    add.s64 %d22, %a_x, %d20; add.s64 %d23, %a_buf, %d20; add.s64 %d24, %a_first, %d21; add.s64 %d28, %a_second, %d21;
    add.s64 %d25, %a_y, %d20; sub.s32 %r9, 63, %t; add.s32 %r9, %r9, %r6; mul.wide.u32 %d26, %r9, 4;
    add.s64 %d27, %a_buf, %d26; setp.eq.s32 %p2, %r5, 1; setp.eq.s32 %p3, %r5, 2; @%p3 bra TAKE; @%p2 bra GIVE;
    @%p1 bra DONE; st.release.gpu.global.u32 [%d24], 1; bra DONE;
    GIVE: ld.global.f32 %f1, [%d22]; mul.f32 %f1, %f1, %f1; st.global.f32 [%d23], %f1; bar.sync 0; @%p1 bra DONE;
    ld.acquire.gpu.global.u32 %r11, [%d24]; setp.ne.s32 %p5, %r11, 0; @%p5 bra OUT;
    M: FENCE ld.acquire.gpu.global.u32 %r12, [%d24]; setp.eq.s32 %p6, %r12, 0; @%p6 bra M;
    OUT: st.RAISE.gpu.global.u32 [%d28], 1; bra DONE; TAKE: @%p1 bra HEARD;
    L: ld.acquire.gpu.global.u32 %r10, [%d28]; setp.eq.s32 %p4, %r10, 0; @%p4 bra L; HEARD: bar.sync 0;
    ld.global.f32 %f2, [%d27]; st.global.f32 [%d25], %f2;"""


@pytest.mark.parametrize(("fence", "how", "good"), [
    ("", "release", True), ("membar.gl;", "relaxed", False), ("", "relaxed", False),
])
def test_a_fence_that_the_first_turn_does_not_execute(fence: str, how: str, good: bool) -> None:
    """Between its stores and its relaxed flag the middle CTA waits, with a fence in the loop but not in front of it."""
    marks = {"buf": {"scratch": True}, **{k: {**ZERO, "scratch": True} for k in ("first", "second", "ticket")}}
    kernel = Small(CHAINED.replace("FENCE", fence).replace("RAISE", how), CHAIN, ("n",), ("n >= 1", "n <= 100000"),
                   ("3 * n",), extra=marks)

    def later(x: Any, buf: Any, first: Any, second: Any, ticket: Any, n: Any) -> dict[str, Any]:
        return {"y": np.square(x)[:, ::-1]}

    assert proved(kernel, later) == good


# ---------------------------------------------------------------------- last blocks
LAST = (("x", "ptr_in", "f32", ("n",)), ("part", "ptr_inout", "f32", ("n",)), ("count", "ptr_inout", "u32", ("1",)),
        ("y", "ptr_out", "f32", ("64",)))
TELL = """mul.wide.u32 %d20, %c, 4; add.s64 %d21, %a_x, %d20; add.s64 %d22, %a_part, %d20; mov.u32 %r58, smem;
    sub.s32 %r7, %i_n, 1; setp.ne.s32 %p1, %t, 0; @%p1 bra TOLD;
    ld.global.f32 %f1, [%d21]; st.volatile.global.f32 [%d22], %f1; membar.gl;
    atom.global.inc.u32 %r3, [%a_count], %r7; membar.gl; st.shared.u32 [%r58], %r3;
    TOLD: bar.sync 0; ld.shared.u32 %r4, [%r58]; setp.ne.s32 %p2, %r4, %r7; @%p2 bra DONE;"""
GATHER = """mov.f32 %f2, 0f00000000; mov.u32 %r5, %t; setp.ge.s32 %p3, %r5, %i_n; @%p3 bra OUT;
    L: mul.wide.u32 %d23, %r5, 4; add.s64 %d24, %a_part, %d23; ld.volatile.global.f32 %f3, [%d24];
    add.f32 %f2, %f2, %f3; add.s32 %r5, %r5, 64; setp.lt.s32 %p4, %r5, %i_n; @%p4 bra L;
    OUT: mul.wide.u32 %d25, %t, 4; add.s64 %d26, %a_y, %d25; st.global.f32 [%d26], %f2;"""


@pytest.mark.parametrize(("old", "new", "good"), [
    ("", "", True), ("%f1; membar.gl;", "%f1;", False), ("%r7; membar.gl;", "%r7;", False),
    ("bar.sync 0;", "", False), ("sub.s32 %r7, %i_n, 1", "sub.s32 %r7, %i_n, 0", False),
    ("sub.s32 %r7, %i_n, 1", "sub.s32 %r7, %i_n, 2", False), ("add.s32 %r5, %r5, 64", "add.s32 %r5, %r5, 63", False),
    ("mov.u32 %r5, %t", "add.s32 %r5, %t, 1", False), ("st.volatile.global.f32 [%d22], %f1;", "", False),
    ("atom.global.inc", "atom.cta.global.inc", False),
])
def test_a_last_block_whose_threads_share_the_sum(old: str, new: str, good: bool) -> None:
    """A counter that wraps, partial sums accessed as volatile, and each thread of the last block adds up every 64th."""
    kernel = Small((TELL + GATHER).replace(old, new) if old else TELL + GATHER, LAST, ("n",),
                   ("n >= 1", "n <= 100000"), ("n",), extra={"part": {"scratch": True}, "count": ZERO})

    def sums(x: Any, part: Any, count: Any, n: Any) -> dict[str, Any]:
        own = np.arange(n)[None, :] % 64 == np.arange(64)[:, None]
        return {"y": np.where(own, x[None, :], 0).sum(axis=1), "count": np.zeros(1, np.uint32)}

    assert proved(kernel, sums) == good


@pytest.mark.parametrize("good", [True, False])
def test_the_thread_whose_store_is_read_is_the_one_that_stored(good: bool) -> None:
    """Thread 63 stores at 63·n + block. In the last block each thread reads at t·n, which only thread 63 has stored."""
    alone = "setp.ne.s32 %p5, %t, 63; @%p5 bra DONE;" if good else ""
    body = f"""mul.lo.s32 %r20, %t, %i_n; add.s32 %r21, %r20, %c; mul.wide.u32 %d20, %r21, 4;
        add.s64 %d22, %a_part, %d20; mul.wide.u32 %d21, %c, 4; add.s64 %d21, %a_x, %d21; mov.u32 %r58, smem;
        setp.lt.u32 %p1, %t, 63; @%p1 bra TOLD; ld.global.f32 %f1, [%d21]; st.global.f32 [%d22], %f1; membar.gl;
        atom.global.add.u32 %r3, [%a_count], 1; membar.gl; st.shared.u32 [%r58], %r3;
        TOLD: bar.sync 0; ld.shared.u32 %r4, [%r58]; add.s32 %r4, %r4, 1; setp.ne.s32 %p2, %r4, %i_n; @%p2 bra DONE;
        {alone} mul.wide.u32 %d23, %r20, 4; add.s64 %d24, %a_part, %d23; ld.global.f32 %f2, [%d24];
        mul.wide.u32 %d25, {0 if good else "%t"}, 4; add.s64 %d26, %a_y, %d25; st.global.f32 [%d26], %f2;"""
    size = ("1",) if good else ("64",)
    params = (LAST[0], ("part", "ptr_inout", "f32", ("64 * n",)), LAST[2], ("y", "ptr_out", "f32", size))
    kernel = Small(body, params, ("n",), ("n >= 1", "n <= 1000"), ("n",),
                   extra={"count": {**ZERO, "scratch": True}, "part": {"scratch": True}})

    def spread(x: Any, part: Any, count: Any, n: Any) -> dict[str, Any]:
        return {"y": np.zeros(1 if good else 64) + x[0]}

    assert proved(kernel, spread) == good
