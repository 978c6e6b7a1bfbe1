"""All CTAs of a cooperative launch meet at a counter and read what the others have stored; and wrong forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from proof_cases import Small, claims_of, proved

from warpproof.core import Status
from warpproof.proving import Task, prove
from warpproof.ptx import load, resolve
from warpproof.reference import load_launch

PARAMS = (
    ("x", "ptr_in", "f32", ("n", "64")), ("buf", "ptr_inout", "f32", ("n", "64")),
    ("count", "ptr_inout", "u32", ("1",)),
    ("y", "ptr_out", "f32", ("n", "64")),
)
STORE = """setp.ne.s32 %p1, %t, 0; mul.wide.u32 %d20, %g, 4; add.s64 %d21, %a_x, %d20; add.s64 %d22, %a_buf, %d20;
    add.s64 %d25, %a_y, %d20; ld.global.f32 %f1, [%d21]; mul.f32 %f1, %f1, %f1; st.global.f32 [%d22], %f1;"""
BAR = "bar.sync 0;"
LEAD = "@%p1 bra MET;"
ARRIVE = "membar.gl; red.global.add.u32 [%a_count], 1;"
WAIT = "L: ld.acquire.gpu.global.u32 %r10, [%a_count]; setp.lt.u32 %p3, %r10, %i_n; @%p3 bra L; MET:"
READ = """not.b32 %r11, %c; add.s32 %r11, %r11, %i_n; shl.b32 %r11, %r11, 6; mov.u32 %r12, 63; sub.s32 %r12, %r12, %t;
    add.s32 %r11, %r11, %r12; mul.wide.u32 %d26, %r11, 4; add.s64 %d27, %a_buf, %d26; ld.global.f32 %f2, [%d27];
    st.global.f32 [%d25], %f2;"""
GOOD = (STORE, BAR, LEAD, ARRIVE, WAIT, BAR, READ)


def grid(*parts: str, cooperative: bool = True, **extra: Any) -> Small:
    marks = {"buf": {"scratch": True}, "count": {"init": "zero", "scratch": True}, **extra,
             "launch": {"cooperative": cooperative}}
    return Small("\n".join(parts), PARAMS, ("n",), ("n >= 1", "n <= 100000"), ("n",), extra=marks)


def mirrored(x: Any, buf: Any, count: Any, n: Any) -> dict[str, Any]:
    return {"y": np.square(x)[::-1, ::-1]}


def put(old: str, new: str) -> tuple[str, ...]:
    """The good kernel with one part changed."""
    text = "\n".join(GOOD)
    assert text.count(old) == 1
    return (text.replace(old, new),)


ATOM = "atom.add.release.gpu.global.u32 %r13, [%a_count], 1;"


@pytest.mark.parametrize("parts", [
    GOOD, put("setp.lt.u32 %p3, %r10, %i_n", "setp.ne.u32 %p3, %r10, %i_n"),
    put("membar.gl; red.global", "fence.acq_rel.gpu; red.relaxed.gpu.global"),
    put(ARRIVE, "red.release.gpu.global.add.u32 [%a_count], 1;"),
    put(ARRIVE, "membar.gl; atom.global.add.u32 %r13, [%a_count], 1;"),
    put(ARRIVE, "atom.acq_rel.gpu.global.add.u32 %r13, [%a_count], 1;"),
    put("ld.acquire.gpu.global.u32 %r10", "ld.volatile.global.u32 %r10")[0].replace("MET:", "membar.gl; MET:"),
])
def test_grid_barrier(parts: Any) -> None:
    assert proved(grid(*([parts] if isinstance(parts, str) else parts)), mirrored)


WRONG = [
    put("ld.acquire.gpu.global.u32 %r10", "ld.global.u32 %r10"),
    put("ld.acquire.gpu.global.u32 %r10", "ld.relaxed.gpu.global.u32 %r10"),
    put("ld.acquire.gpu.global.u32 %r10", "ld.acquire.cta.global.u32 %r10"),
    put(ARRIVE, "red.global.add.u32 [%a_count], 1;"), put(ARRIVE, "membar.cta; red.global.add.u32 [%a_count], 1;"),
    put(ARRIVE, "membar.gl; red.cta.global.add.u32 [%a_count], 1;"),
    put(ARRIVE, "red.global.add.u32 [%a_count], 1; membar.gl;"),
    put(ARRIVE, ""), put(ARRIVE, "membar.gl; red.global.add.u32 [%a_count], 2;"),
    put("@%p1 bra MET; ".strip() + "\n" + ARRIVE, f"@%p1 bra SKIP; {ARRIVE} SKIP: @%p1 bra MET;")[0].replace(
        "SKIP: @%p1 bra MET;", "SKIP: setp.ne.s32 %p1, %t, 1; @%p1 bra MET;"),
    (STORE, LEAD, ARRIVE, WAIT, BAR, READ), (STORE, BAR, LEAD, ARRIVE, WAIT, READ),
    (BAR, STORE.split("ld.global")[0], LEAD, ARRIVE, WAIT, BAR, "ld.global" + STORE.split("ld.global")[1], READ),
    put("%r10, %i_n; @%p3", "%r10, 1; @%p3"), put("%r10, %i_n; @%p3", "%r10, %r14; @%p3")[0].replace(
        "L: ld", "sub.s32 %r14, %i_n, 1; L: ld"),
    put("%r10, %i_n; @%p3", "%r10, %r14; @%p3")[0].replace("L: ld", "add.s32 %r14, %i_n, 1; L: ld"),
    (STORE, BAR, LEAD, WAIT.replace("MET:", ""), ARRIVE, "MET:", BAR, READ),
    (STORE, BAR, "setp.gt.s32 %p5, %c, 0; @%p5 bra LATE; " + LEAD.replace("MET", "LATE"), ARRIVE, "LATE:", LEAD,
     WAIT, BAR, READ),
    put("not.b32 %r11, %c", "not.b32 %r11, %c; add.s32 %r11, %r11, 1"),
    (STORE, BAR, LEAD, ARRIVE, WAIT, BAR, READ, "st.global.f32 [%d22], 0f00000000;"),
]


@pytest.mark.parametrize("parts", WRONG)
def test_wrong_grid_barriers_are_not_proved(parts: Any) -> None:
    assert not proved(grid(*([parts] if isinstance(parts, str) else parts)), mirrored)


@pytest.mark.parametrize("parts", [WRONG[k] for k in (0, 1, 3, 5, 7, 12, 13, 15, 16, 17, 18, 19)])
def test_wrong_grid_barriers_are_refuted(parts: Any) -> None:
    kernel = grid(*([parts] if isinstance(parts, str) else parts))
    launch = load_launch({**kernel.manifest(), "sizes": {"n": [5, 2]}})
    task = Task(resolve(load(kernel.ptx()), "k"), launch, mirrored, kernel.ptx(), "k.ptx", {}, 20.0)
    assert prove(task, lambda stage: None).verdict.value == "REFUTED"


def test_the_ctas_must_be_resident_together() -> None:
    (claim,) = [c for c in claims_of(grid(*GOOD, cooperative=False), mirrored) if c.status is not Status.SHOWN]
    assert claim.property == "barriers"
    assert "cooperative" in claim.hint


def test_a_counter_that_does_not_start_at_zero() -> None:
    assert not proved(grid(*GOOD, count={"scratch": True}), mirrored)


def test_two_meetings() -> None:
    """What is read behind the first meeting is summed up, stored and read behind a second one at another counter."""
    params = (*PARAMS[:3], ("sum", "ptr_inout", "f32", ("n", "64")), ("again", "ptr_inout", "u32", ("1",)), PARAMS[3])
    first = READ.replace("st.global.f32 [%d25], %f2;", "")
    later = """add.s64 %d28, %a_sum, %d20; add.f32 %f3, %f1, %f1; st.global.f32 [%d28], %f3;"""
    second = WAIT.replace("L:", "M:").replace("bra L", "bra M").replace("count", "again").replace("MET", "TWO")
    last = "add.s64 %d29, %a_sum, %d26; ld.global.f32 %f4, [%d29]; add.f32 %f4, %f4, %f2; st.global.f32 [%d25], %f4;"
    body = (STORE, BAR, LEAD, ARRIVE, WAIT, BAR, first, later, BAR, LEAD.replace("MET", "TWO"),
            ARRIVE.replace("count", "again"), second, BAR, last)
    marks = {"buf": {"scratch": True}, "count": {"init": "zero", "scratch": True}, "sum": {"scratch": True},
             "again": {"init": "zero", "scratch": True}, "launch": {"cooperative": True}}

    def three(x: Any, buf: Any, count: Any, sum: Any, again: Any, n: Any) -> dict[str, Any]:
        return {"y": 3 * np.square(x)[::-1, ::-1]}

    kernel = Small("\n".join(body), params, ("n",), ("n >= 1", "n <= 100000"), ("n",), extra=marks)
    assert proved(kernel, three)
    for k in (8, 12):
        assert not proved(replace(kernel, body="\n".join(p for j, p in enumerate(body) if j != k)), three)
