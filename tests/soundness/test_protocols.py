"""CTAs that hand values over: by a flag, by the last ticket of a counter; and wrong forms of both."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proof_cases import Small, proved, verdicts

ZERO = {"init": "zero", "scratch": True}
PAIRS = (
    ("x", "ptr_in", "f32", ("n", "64")), ("buf", "ptr_inout", "f32", ("n", "64")),
    ("ready", "ptr_inout", "u32", ("n",)), ("ticket", "ptr_inout", "u32", ("1",)), ("y", "ptr_out", "f32", ("n", "64")),
)
DRAW = """setp.ne.s32 %p1, %t, 0; @%p1 bra DRAWN;
    atom.global.add.u32 %r3, [%a_ticket], 1; mov.u32 %r58, smem; st.shared.u32 [%r58], %r3;
    DRAWN: bar.sync 0; mov.u32 %r58, smem; ld.shared.u32 %r4, [%r58];"""
ROLE = """shr.u32 %r2, %r4, 1; and.b32 %r5, %r4, 1; setp.eq.s32 %p2, %r5, 1;
    shl.b32 %r6, %r2, 6; add.s32 %r7, %r6, %t; mul.wide.u32 %d20, %r7, 4; mul.wide.u32 %d21, %r2, 4;
    add.s64 %d22, %a_x, %d20; add.s64 %d23, %a_buf, %d20; add.s64 %d24, %a_ready, %d21; add.s64 %d25, %a_y, %d20;
    mov.u32 %r8, 63; sub.s32 %r9, %r8, %t; add.s32 %r9, %r9, %r6; mul.wide.u32 %d26, %r9, 4; add.s64 %d27, %a_buf, %d26;
    @%p2 bra TAKE;"""
STORE = "ld.global.f32 %f1, [%d22]; mul.f32 %f1, %f1, %f1; st.global.f32 [%d23], %f1;"
RAISE = "@%p1 bra DONE; st.release.gpu.global.u32 [%d24], 1; bra DONE; TAKE: @%p1 bra HEARD;"
WAIT = "L: ld.acquire.gpu.global.u32 %r10, [%d24]; setp.eq.s32 %p3, %r10, 0; @%p3 bra L; HEARD:"
READ = "ld.global.f32 %f2, [%d27]; st.global.f32 [%d25], %f2;"
BAR = "bar.sync 0;"
GOOD = (DRAW, ROLE, STORE, BAR, RAISE, WAIT, BAR, READ)


def pairs(*parts: str, **extra: Any) -> Small:
    marks = {"buf": {"scratch": True}, "ready": ZERO, "ticket": ZERO, **extra}
    return Small("\n".join(parts), PAIRS, ("n",), ("n >= 1", "n <= 100000"), ("2 * n",), extra=marks)


def reversed_squares(x: Any, buf: Any, ready: Any, ticket: Any, n: Any) -> dict[str, Any]:
    return {"y": np.square(x)[:, ::-1]}


def changed(old: str, new: str, which: int = 1) -> tuple[str, ...]:
    """The good kernel with one occurrence of `old` replaced."""
    text = "\n".join(GOOD)
    head, *rest = text.split(old)
    assert len(rest) >= which
    return (old.join([head, *rest[:which - 1]]) + new + old.join(["", *rest[which - 1:]])[len(old):]
            if which > 1 else text.replace(old, new, 1),)


@pytest.mark.parametrize("parts", [
    GOOD,
    changed("st.release.gpu.global", "fence.acq_rel.gpu; st.relaxed.gpu.global"),
    changed("st.release.gpu.global", "membar.gl; st.volatile.global"),
    changed("ld.acquire.gpu.global", "ld.relaxed.sys.global")[0].replace("HEARD:", "fence.acq_rel.gpu; HEARD:"),
    changed("setp.eq.s32 %p3, %r10, 0", "setp.ne.s32 %p3, %r10, 1"),
])
def test_flag_handover(parts: Any) -> None:
    assert proved(pairs(*([parts] if isinstance(parts, str) else parts)), reversed_squares)


@pytest.mark.parametrize(("parts", "what"), [
    (changed("ld.acquire.gpu.global", "ld.global"), "equivalence"),
    (changed("ld.acquire.gpu.global", "ld.relaxed.gpu.global"), "races"),
    (changed("ld.acquire.gpu.global", "ld.acquire.cta.global"), "races"),
    (changed("st.release.gpu.global", "st.relaxed.gpu.global"), "races"),
    (changed("st.release.gpu.global", "st.release.cta.global"), "races"),
    (changed("st.release.gpu.global", "st.global"), "races"),
    (changed("st.release.gpu.global", "fence.acq_rel.cta; st.relaxed.gpu.global"), "races"),
    ((DRAW, ROLE, STORE, RAISE, WAIT, BAR, READ), "races"),
    ((DRAW, ROLE, STORE, BAR, RAISE, WAIT, READ), "races"),
    ((DRAW, ROLE, BAR, "@%p1 bra LATE; st.release.gpu.global.u32 [%d24], 1; LATE:", STORE,
      "bra DONE; TAKE: @%p1 bra HEARD;", WAIT, BAR, READ), "equivalence"),
    (changed("st.release.gpu.global.u32 [%d24], 1", "st.release.gpu.global.u32 [%d24], 0"), "barriers"),
    (changed("setp.eq.s32 %p3, %r10, 0", "setp.ne.s32 %p3, %r10, 2"), "barriers"),
    (changed("setp.eq.s32 %p3, %r10, 0", "setp.ge.u32 %p3, %r10, 0"), "barriers"),
    (changed("and.b32 %r5, %r4, 1;", "and.b32 %r5, %r4, 1; xor.b32 %r5, %r5, 1;"), "barriers"),
    (changed("ld.shared.u32 %r4, [%r58];", "mov.u32 %r4, %c;"), "barriers"),
    (changed("sub.s32 %r9, %r8, %t", "sub.s32 %r9, %t, 0"), "equivalence"),
    (changed("atom.global.add", "atom.cta.global.add"), "races"),
    (changed("atom.global.add.u32 %r3, [%a_ticket], 1", "atom.global.add.u32 %r3, [%a_ticket], 2"), "equivalence"),
])
def test_wrong_flag_handovers_are_not_proved(parts: Any, what: str) -> None:
    found = verdicts(pairs(*parts), reversed_squares)
    assert found.get(what, "UNSUPPORTED") != "PROVED"
    assert found["overall"] != "PROVED"


def test_a_flag_that_may_be_up_at_the_start_says_nothing() -> None:
    assert not proved(pairs(*GOOD, ready={"scratch": True}), reversed_squares)
    assert not proved(pairs(*GOOD, ticket={"scratch": True}), reversed_squares)


def test_a_second_store_after_the_flag() -> None:
    again = RAISE.replace("bra DONE; TAKE", "st.global.f32 [%d23], 0f00000000; bra DONE; TAKE")
    assert not proved(pairs(DRAW, ROLE, STORE, BAR, again, WAIT, BAR, READ), reversed_squares)


# ---------------------------------------------------------------------- last block
LAST = (
    ("x", "ptr_in", "f32", ("n",)), ("part", "ptr_inout", "f32", ("n",)), ("count", "ptr_inout", "u32", ("1",)),
    ("y", "ptr_out", "f32", ("1",)),
)
PART = """setp.ne.s32 %p1, %t, 0; @%p1 bra DONE;
    mul.wide.u32 %d20, %c, 4; add.s64 %d21, %a_x, %d20; add.s64 %d22, %a_part, %d20;
    ld.global.f32 %f1, [%d21]; st.global.f32 [%d22], %f1;"""
FENCE = "membar.gl;"
COUNT = "atom.global.add.u32 %r3, [%a_count], 1; add.s32 %r4, %r3, 1; setp.ne.s32 %p2, %r4, %i_n; @%p2 bra DONE;"
SUM = """mov.f32 %f2, 0f00000000; mov.u32 %r5, 0;
    L: mul.wide.u32 %d23, %r5, 4; add.s64 %d24, %a_part, %d23; ld.global.f32 %f3, [%d24]; add.f32 %f2, %f2, %f3;
    add.s32 %r5, %r5, 1; setp.lt.s32 %p3, %r5, %i_n; @%p3 bra L; st.global.f32 [%a_y], %f2;"""
RESET = "st.global.u32 [%a_count], 0;"


def last(*parts: str, **extra: Any) -> Small:
    marks = {"part": {"scratch": True}, "count": {"init": "zero"}, **extra}
    return Small("\n".join(parts), LAST, ("n",), ("n >= 1", "n <= 100000"), ("n",), extra=marks)


def total(x: Any, part: Any, count: Any, n: Any) -> dict[str, Any]:
    return {"y": x.sum().reshape(1), "count": np.zeros(1, np.uint32)}


def test_last_block() -> None:
    assert proved(last(PART, FENCE, COUNT, FENCE, SUM, RESET), total)


@pytest.mark.parametrize("parts", [
    (PART, COUNT, FENCE, SUM, RESET),
    (PART, FENCE, COUNT, SUM, RESET),
    (PART, "membar.cta;", COUNT, FENCE, SUM, RESET),
    (PART, FENCE, COUNT.replace("global", "cta.global"), FENCE, SUM, RESET),
    (FENCE, PART, COUNT, FENCE, SUM, RESET),
    (PART, FENCE, COUNT.replace("setp.ne.s32 %p2, %r4", "setp.ne.s32 %p2, %r3"), FENCE, SUM, RESET),
    (PART, FENCE, COUNT.replace("setp.ne", "setp.gt"), FENCE, SUM, RESET),
    (PART, FENCE, COUNT, FENCE, SUM),
    (PART, FENCE, COUNT, FENCE, SUM.replace("setp.lt.s32 %p3, %r5", "setp.le.s32 %p3, %r5"), RESET),
    (PART, FENCE, COUNT, FENCE, SUM.replace("mov.u32 %r5, 0", "mov.u32 %r5, 1"), RESET),
    (PART, FENCE, RESET, COUNT, FENCE, SUM, RESET),
    (PART, FENCE, COUNT, FENCE, SUM, RESET, "st.global.f32 [%d22], 0f00000000;"),
    (PART.replace("st.global.f32 [%d22], %f1;", ""), FENCE, COUNT, FENCE, SUM, RESET),
])
def test_wrong_last_blocks_are_not_proved(parts: tuple[str, ...]) -> None:
    assert not proved(last(*parts), total)


def test_a_counter_that_does_not_start_at_zero() -> None:
    assert not proved(last(PART, FENCE, COUNT, FENCE, SUM, RESET, count={}), total)


@pytest.mark.parametrize(("before", "after", "good"), [(BAR, BAR, True), ("", BAR, False), (BAR, "", False)])
def test_other_threads_of_the_last_block(before: str, after: str, good: bool) -> None:
    """All threads store, one of them counts, all threads of the last block read."""
    body = f"""shl.b32 %r20, %c, 6; add.s32 %r20, %r20, %t; mul.wide.u32 %d20, %r20, 4; add.s64 %d21, %a_x, %d20;
        add.s64 %d22, %a_part, %d20; ld.global.f32 %f1, [%d21]; st.global.f32 [%d22], %f1; {before}
        setp.ne.s32 %p1, %t, 0; @%p1 bra COUNTED; membar.gl; atom.global.add.u32 %r3, [%a_count], 1; membar.gl;
        mov.u32 %r58, smem; st.shared.u32 [%r58], %r3;
        COUNTED: {after} mov.u32 %r58, smem; ld.shared.u32 %r4, [%r58]; add.s32 %r4, %r4, 1;
        setp.ne.s32 %p2, %r4, %i_n; @%p2 bra DONE; mov.f32 %f2, 0f00000000; mov.u32 %r5, 0;
        L: shl.b32 %r6, %r5, 6; add.s32 %r6, %r6, %t; mul.wide.u32 %d23, %r6, 4; add.s64 %d24, %a_part, %d23;
        ld.global.f32 %f3, [%d24]; add.f32 %f2, %f2, %f3; add.s32 %r5, %r5, 1; setp.lt.s32 %p3, %r5, %i_n; @%p3 bra L;
        mul.wide.u32 %d25, %t, 4; add.s64 %d26, %a_y, %d25; st.global.f32 [%d26], %f2;"""
    params = (("x", "ptr_in", "f32", ("n", "64")), ("part", "ptr_inout", "f32", ("n", "64")),
              ("count", "ptr_inout", "u32", ("1",)), ("y", "ptr_out", "f32", ("64",)))
    kernel = Small(body, params, ("n",), ("n >= 1", "n <= 100000"), ("n",),
                   extra={"part": {"scratch": True}, "count": ZERO})
    assert proved(kernel, lambda x, part, count, n: {"y": x.sum(axis=0)}) == good




# ---------------------------------------------------------------------- locks
LOCKED = (
    ("x", "ptr_in", "f32", ("n",)), ("y", "ptr_inout", "f32", ("2",)), ("lock", "ptr_inout", "u32", ("1",)),
)
MINE = """setp.ne.s32 %p1, %t, 0; @%p1 bra DONE;
    mul.wide.u32 %d20, %c, 4; add.s64 %d21, %a_x, %d20; ld.global.f32 %f1, [%d21];"""
TAKE = "L: atom.global.cas.b32 %r3, [%a_lock], 0, 1; setp.ne.s32 %p2, %r3, 0; @%p2 bra L;"
ADD = """ld.global.f32 %f2, [%a_y]; add.f32 %f2, %f2, %f1; st.global.f32 [%a_y], %f2;
    ld.global.f32 %f3, [%a_y+4]; fma.rn.f32 %f3, %f1, %f1, %f3; st.global.f32 [%a_y+4], %f3;"""
FREE = "atom.global.exch.b32 %r4, [%a_lock], 0;"


def locked(*parts: str, **extra: Any) -> Small:
    return Small("\n".join(parts), LOCKED, ("n",), ("n >= 1", "n <= 100000"), ("n",),
                 extra={"lock": {"init": "zero"}, **extra})


def moments(x: Any, y: Any, lock: Any, n: Any) -> dict[str, Any]:
    return {"y": y + np.array([x.sum(), np.square(x).sum()]), "lock": np.zeros(1, np.uint32)}


@pytest.mark.parametrize("parts", [
    (MINE, TAKE, FENCE, ADD, FENCE, FREE),
    (MINE, TAKE.replace("atom", "atom.acquire.gpu"), ADD, FREE.replace("atom", "atom.release.gpu")),
    (MINE, TAKE.replace("atom", "atom.acquire.gpu"), ADD, "st.release.gpu.global.u32 [%a_lock], 0;"),
    (MINE, TAKE, "fence.acq_rel.gpu;", ADD, "fence.acq_rel.gpu;", "st.relaxed.gpu.global.u32 [%a_lock], 0;"),
])
def test_spin_lock(parts: tuple[str, ...]) -> None:
    assert proved(locked(*parts), moments)


@pytest.mark.parametrize("parts", [
    (MINE, TAKE, ADD, FENCE, FREE),
    (MINE, TAKE, FENCE, ADD, FREE),
    (MINE, FENCE, TAKE, ADD, FENCE, FREE),
    (MINE, TAKE, FENCE, ADD, FREE, FENCE),
    (MINE, TAKE, "membar.cta;", ADD, FENCE, FREE),
    (MINE, TAKE, FENCE, ADD, "membar.cta;", FREE),
    (MINE, TAKE.replace("atom", "atom.cta"), FENCE, ADD, FENCE, FREE),
    (MINE, TAKE, FENCE, ADD, FENCE, FREE.replace("atom", "atom.cta")),
    (MINE, TAKE, FENCE, ADD, FENCE, "st.global.u32 [%a_lock], 0;"),
    (MINE, TAKE, FENCE, ADD, FENCE),
    (MINE, TAKE, FENCE, FREE, ADD, FENCE),
    (MINE, TAKE.replace("setp.ne.s32 %p2, %r3, 0", "setp.gt.s32 %p2, %r3, 1"), FENCE, ADD, FENCE, FREE),
    (MINE, TAKE.replace("0, 1;", "1, 1;"), FENCE, ADD, FENCE, FREE),
    (MINE, FENCE, ADD, FENCE),
    (MINE, TAKE, FENCE, ADD.replace("add.f32 %f2, %f2, %f1", "mul.f32 %f2, %f2, %f1"), FENCE, FREE),
    (MINE, TAKE, FENCE, ADD.replace("add.f32 %f2, %f2, %f1", "fma.rn.f32 %f2, %f2, %f1, %f2"), FENCE, FREE),
    (MINE, TAKE, FENCE, ADD.replace("add.f32 %f2, %f2, %f1", "mov.f32 %f2, %f1"), FENCE, FREE),
    (MINE, TAKE, FENCE, ADD, ADD, FENCE, FREE),
    (MINE, TAKE, FENCE, ADD, FENCE, FREE, "st.global.f32 [%a_y], %f2;"),
    (MINE, TAKE, FENCE, ADD, FENCE, FREE, "red.global.add.f32 [%a_y], 0f00000000;"),
    (MINE, TAKE, FENCE, "setp.gt.f32 %p3, %f1, 0f00000000; @!%p3 bra S;", ADD, "S:", FENCE, FREE),
    (MINE, TAKE, FENCE, ADD, "bar.sync 0;", FENCE, FREE),
])
def test_wrong_locks_are_not_proved(parts: tuple[str, ...]) -> None:
    assert not proved(locked(*parts), moments)


def test_a_lock_that_may_be_taken_at_the_start() -> None:
    assert not proved(locked(MINE, TAKE, FENCE, ADD, FENCE, FREE, lock={}), moments)


def test_what_is_found_under_a_lock_is_not_known_outside() -> None:
    """Two sections of each CTA, and what they found: it is not the same in both, nor in another CTA."""
    first, second = ADD.split("\n")
    body = (MINE, TAKE, FENCE, first, FENCE, FREE, TAKE.replace("L", "M"), FENCE, second, FENCE, FREE)
    assert proved(locked(*body), moments)
    for leak in ("setp.eq.f32 %p4, %f2, %f3;", "setp.gt.f32 %p4, %f2, 0f00000000;"):
        assert not proved(locked(*body, leak, "@%p4 bra DONE; st.global.f32 [%a_y], %f1;"), moments)
        assert not proved(locked(*body, leak, "@%p4 bra DONE; trap;"), moments)


def test_a_flag_of_another_thread_is_another_flag() -> None:
    """Thread 0 raises flag 64p, thread 1 waits for flag 64p + 1, in the same form of index by thread."""
    flags = "shl.b32 %r11, %r2, 6; add.s32 %r11, %r11, %t; mul.wide.u32 %d21, %r11, 4; add.s64 %d24, %a_ready, %d21;"
    role = ROLE.replace("@%p2 bra TAKE;", flags + "@%p2 bra TAKE;")
    wait = "TAKE: setp.ne.s32 %p6, %t, 1; @%p6 bra HEARD;"
    raised = RAISE.replace("TAKE: @%p1 bra HEARD;", wait)
    params = tuple((n, k, d, ("n", "64") if n == "ready" else s) for n, k, d, s in PAIRS)
    marks = {"buf": {"scratch": True}, "ready": ZERO, "ticket": ZERO}

    def kernel(told: str) -> Small:
        body = "\n".join((DRAW, role, STORE, BAR, told, WAIT, BAR, READ))
        return Small(body, params, ("n",), ("n >= 1", "n <= 100000"), ("2 * n",), extra=marks)

    assert not proved(kernel(raised), reversed_squares)
    assert proved(kernel(raised.replace("@%p1 bra DONE;", "setp.ne.s32 %p6, %t, 1; @%p6 bra DONE;")), reversed_squares)


def test_waiting_in_a_loop_is_not_followed() -> None:
    around = f"mov.u32 %r12, 0; AGAIN: {WAIT.replace('HEARD:', '')} add.s32 %r12, %r12, 1; setp.lt.s32 %p7, %r12, %i_n;"
    parts = (DRAW, ROLE, STORE, BAR, RAISE, around, "@%p7 bra AGAIN; HEARD:", BAR, READ)
    assert not proved(pairs(*parts), reversed_squares)


@pytest.mark.parametrize(("lanes", "good"), [(64, True), (32, False)])
def test_fences_of_some_threads_order_only_what_these_do(lanes: int, good: bool) -> None:
    """The flag is relaxed; each thread has a fence.sc between store and barrier, and between barrier and load."""

    def fence(label: str) -> str:
        return f"setp.ge.u32 %p6, %t, {lanes}; @%p6 bra {label}; membar.gl; {label}:"

    raised, heard = RAISE.replace("st.release.gpu", "st.relaxed.gpu"), WAIT.replace("acquire", "relaxed")
    parts = (DRAW, ROLE, STORE, fence("F"), BAR, raised, heard, BAR, fence("H"), READ)
    assert proved(pairs(*parts), reversed_squares) == good


@pytest.mark.parametrize(("choice", "good"), [("%r3", True), ("%c", False)])
def test_which_cta_draws_which_ticket_is_open(choice: str, good: bool) -> None:
    """Each CTA stores where its ticket says; or only the one with the last ticket, where its block index says."""
    only = "" if good else "add.s32 %r4, %r3, 1; setp.ne.s32 %p2, %r4, %i_n; @%p2 bra DONE;"
    body = f"""setp.ne.s32 %p1, %t, 0; @%p1 bra DONE; atom.global.add.u32 %r3, [%a_count], 1; {only}
        mul.wide.u32 %d20, {choice}, 4; add.s64 %d21, %a_x, %d20; add.s64 %d22, %a_y, %d20;
        ld.global.f32 %f1, [%d21]; st.global.f32 [%d22], %f1;"""
    params = (("x", "ptr_in", "f32", ("n",)), ("count", "ptr_inout", "u32", ("1",)), ("y", "ptr_out", "f32", ("n",)))
    kernel = Small(body, params, ("n",), ("n >= 1", "n <= 1000"), ("n",), extra={"count": ZERO})
    assert proved(kernel, lambda x, count, n: {"y": x}) == good


@pytest.mark.parametrize(("place", "good"), [
    ("mov.u32 %r5, %c;", True), ("mov.u32 %r5, %r3;", True), ("add.s32 %r5, %r3, %c; shr.u32 %r5, %r5, 1;", False),
    ("add.s32 %r5, %r3, %c; rem.u32 %r5, %r5, %i_n;", False),
])
def test_contributions_by_ticket_or_by_block(place: str, good: bool) -> None:
    body = f"""setp.ne.s32 %p1, %t, 0; @%p1 bra DONE; atom.global.add.u32 %r3, [%a_count], 1; {place}
        mul.wide.u32 %d20, %r5, 4; add.s64 %d22, %a_y, %d20; mov.f32 %f1, 0f3F800000; red.global.add.f32 [%d22], %f1;"""
    params = (("count", "ptr_inout", "u32", ("1",)), ("y", "ptr_inout", "f32", ("n",)))
    kernel = Small(body, params, ("n",), ("n >= 1", "n <= 1000"), ("n",), extra={"count": ZERO})
    assert proved(kernel, lambda count, y, n: {"y": y + 1}) == good


# ---------------------------------------------------------------------- CTAs that are resident together
PLACE = """setp.ne.s32 %p1, %t, 0; mul.wide.u32 %d20, %g, 4; mul.wide.u32 %d21, %c, 4;
    add.s64 %d22, %a_x, %d20; add.s64 %d23, %a_buf, %d20; add.s64 %d24, %a_ready, %d21; add.s64 %d25, %a_y, %d20;
    not.b32 %r6, %c; add.s32 %r6, %r6, %i_n; mul.wide.u32 %d26, %r6, 4; add.s64 %d28, %a_ready, %d26;
    shl.b32 %r7, %r6, 6; mov.u32 %r8, 63; sub.s32 %r8, %r8, %t; add.s32 %r7, %r7, %r8; mul.wide.u32 %d26, %r7, 4;
    add.s64 %d27, %a_buf, %d26;"""
TELL = "@%p1 bra TOLD; st.release.gpu.global.u32 [%d24], 1; TOLD:"
HEAR = "@%p1 bra HEARD; L: ld.acquire.gpu.global.u32 %r10, [%d28]; setp.eq.s32 %p3, %r10, 0; @%p3 bra L; HEARD:"


def exchange(*parts: str, cooperative: bool = True) -> Small:
    """CTA c hands its squares to CTA n − 1 − c."""
    params = tuple(p for p in PAIRS if p[0] != "ticket")
    marks = {"buf": {"scratch": True}, "ready": ZERO, "launch": {"cooperative": cooperative}}
    return Small("\n".join(parts), params, ("n",), ("n >= 1", "n <= 100000"), ("n",), extra=marks)


def exchanged(x: Any, buf: Any, ready: Any, n: Any) -> dict[str, Any]:
    return {"y": np.square(x)[::-1, ::-1]}


def test_exchange_between_resident_ctas() -> None:
    assert proved(exchange(PLACE, STORE, BAR, TELL, HEAR, BAR, READ), exchanged)
    assert not proved(exchange(PLACE, STORE, BAR, TELL, HEAR, BAR, READ, cooperative=False), exchanged)


@pytest.mark.parametrize("parts", [
    (PLACE, STORE, BAR, HEAR, TELL, BAR, READ), (PLACE, STORE, TELL, HEAR, BAR, READ),
    (PLACE, STORE, BAR, TELL, BAR, READ), (PLACE, STORE, BAR, HEAR, BAR, READ),
    (PLACE, STORE, BAR, TELL.replace("release", "relaxed"), HEAR, BAR, READ),
    (PLACE, STORE, BAR, TELL, HEAR, READ), (PLACE, STORE, BAR, TELL, HEAR.replace("acquire", "relaxed"), BAR, READ),
    (PLACE, STORE, BAR, "setp.gt.s32 %p5, %c, 3; @%p5 bra PAST;", TELL, "PAST:", HEAR, BAR, READ),
    (PLACE, STORE, BAR, TELL, HEAR.replace("%d28", "%d24"), BAR, READ),
])
def test_wrong_exchanges_are_not_proved(parts: tuple[str, ...]) -> None:
    assert not proved(exchange(*parts), exchanged)


# ---------------------------------------------------------------------- one instruction that waits several times
TWO = """mov.u32 %r30, 0; mov.u64 %d30, %d24; mov.u64 %d31, %d27; mov.u64 %d32, %d25;
    NEXT: @%p1 bra HEARD; L: ld.relaxed.gpu.global.u32 %r10, [%d30]; setp.eq.s32 %p3, %r10, 0; @%p3 bra L; HEARD:
    FENCED bar.sync 0; ld.global.f32 %f2, [%d31]; st.global.f32 [%d32], %f2;
    add.s64 %d30, %a_late, %d21; add.s64 %d31, %a_more, %d26; add.s64 %d32, %a_z, %d20;
    add.s32 %r30, %r30, 1; setp.lt.s32 %p8, %r30, 2; @%p8 bra NEXT;"""
MORE = """add.f32 %f1, %f1, %f1; add.s64 %d33, %a_more, %d20; st.global.f32 [%d33], %f1; bar.sync 0; @%p1 bra DONE;
    add.s64 %d34, %a_late, %d21; st.release.gpu.global.u32 [%d34], 1; bra DONE; TAKE:"""


@pytest.mark.parametrize(("fence", "good"), [
    ("fence.acq_rel.gpu;", True), ("setp.ne.s32 %p7, %r30, 0; @%p7 bra PAST; fence.acq_rel.gpu; PAST:", False),
    ("setp.ne.s32 %p7, %r30, 1; @%p7 bra PAST; fence.acq_rel.gpu; PAST:", False),
])
def test_fences_of_another_turn_of_an_unrolled_loop(fence: str, good: bool) -> None:
    """Two waits by one instruction: a fence behind the first one does nothing for what the second one hears."""
    tell = "@%p1 bra TOLD; st.release.gpu.global.u32 [%d24], 1; TOLD:"
    params = (*PAIRS, ("more", "ptr_inout", "f32", ("n", "64")), ("late", "ptr_inout", "u32", ("n",)),
              ("z", "ptr_out", "f32", ("n", "64")))
    marks = {"buf": {"scratch": True}, "more": {"scratch": True}, "ready": ZERO, "late": ZERO, "ticket": ZERO}

    def reference(x: Any, buf: Any, ready: Any, ticket: Any, more: Any, late: Any, n: Any) -> dict[str, Any]:
        return {"y": np.square(x)[:, ::-1], "z": 2 * np.square(x)[:, ::-1]}

    body = "\n".join((DRAW, ROLE, STORE, BAR, tell, MORE, TWO.replace("FENCED", fence)))
    kernel = Small(body, params, ("n",), ("n >= 1", "n <= 100000"), ("2 * n",), extra=marks)
    assert proved(kernel, reference) == good
