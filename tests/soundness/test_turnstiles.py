"""CTAs that add to an element in turns, by a counter that holds whose turn it is (split-K); and wrong forms."""

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

PARAMS = (("x", "ptr_in", "f32", ("m", "n", "64")), ("turn", "ptr_inout", "u32", ("n",)),
          ("y", "ptr_inout", "f32", ("n", "64")))
PLACE = """mov.u32 %r20, %ctaid.y; setp.ne.s32 %p1, %t, 0; mad.lo.s32 %r21, %r20, %i_n, %c; shl.b32 %r21, %r21, 6;
    add.s32 %r21, %r21, %t; mul.wide.s32 %d20, %r21, 4; add.s64 %d21, %a_x, %d20; ld.global.f32 %f1, [%d21];
    mul.wide.u32 %d22, %c, 4; add.s64 %d23, %a_turn, %d22; mul.wide.u32 %d24, %g, 4; add.s64 %d25, %a_y, %d24;"""
WAIT = "@%p1 bra MET; L: ld.acquire.gpu.global.u32 %r10, [%d23]; setp.ne.s32 %p3, %r10, %r20; @%p3 bra L; MET:"
BAR = "bar.sync 0;"
ADD = "ld.global.f32 %f2, [%d25]; fma.rn.f32 %f2, %f1, %f1, %f2; st.global.f32 [%d25], %f2;"
PASS = "@%p1 bra DONE; add.s32 %r22, %r20, 1; st.release.gpu.global.u32 [%d23], %r22;"
GOOD = (PLACE, WAIT, BAR, ADD, BAR, PASS)


def split(*parts: str, cooperative: bool = True, **extra: Any) -> Small:
    marks = {"turn": {"init": "zero", "scratch": True}, "launch": {"cooperative": cooperative}, **extra}
    bounds = ("n >= 1", "n <= 1000", "m >= 1", "m <= 1000")
    return Small("\n".join(parts), PARAMS, ("n", "m"), bounds, ("n", "m"), extra=marks)


def squares(x: Any, turn: Any, y: Any, n: Any, m: Any) -> dict[str, Any]:
    return {"y": y + np.square(x).sum(axis=0)}


def put(old: str, new: str) -> tuple[str, ...]:
    """The good kernel with one part changed."""
    text = "\n".join(GOOD)
    assert text.count(old) == 1, old
    return (text.replace(old, new),)


TAIL = "setp.gt.u32 %p5, %t, 49; @%p5 bra TAIL;"


@pytest.mark.parametrize("parts", [
    GOOD, put("st.release.gpu", "membar.gl; st.relaxed.gpu"), put("st.release.gpu", "fence.acq_rel.gpu; st.volatile"),
    put("ld.acquire.gpu", "ld.relaxed.gpu")[0].replace("MET:", "fence.acq_rel.gpu; MET:"),
    put("ld.acquire.gpu", "ld.volatile")[0].replace("MET:", "membar.gl; MET:"),
    put("setp.ne.s32 %p3", "setp.ne.u32 %p3"),
])
def test_turnstile(parts: Any) -> None:
    assert proved(split(*([parts] if isinstance(parts, str) else parts)), squares)


def test_some_threads_have_nothing_to_add() -> None:
    def reference(x: Any, turn: Any, y: Any, n: Any, m: Any) -> dict[str, Any]:
        return {"y": np.where(np.arange(64) < 50, y + np.square(x).sum(axis=0), y)}

    assert proved(split(PLACE, WAIT, BAR, TAIL, ADD, "TAIL:", BAR, PASS), reference)
    bounded = ADD.replace("ld.global", "setp.lt.u32 %p6, %t, 50; @%p6 ld.global").replace("st.g", "@%p6 st.g")
    assert proved(split(PLACE, WAIT, BAR, bounded, BAR, PASS), reference)


WRONG = [
    put("ld.acquire.gpu", "ld"), put("ld.acquire.gpu", "ld.relaxed.gpu"), put("ld.acquire.gpu", "ld.acquire.cta"),
    put("st.release.gpu", "st.relaxed.gpu"), put("st.release.gpu", "st.release.cta"), put("st.release.gpu", "st"),
    put("st.release.gpu", "membar.cta; st.relaxed.gpu"),
    (PLACE, WAIT, ADD, BAR, PASS), (PLACE, WAIT, BAR, ADD, PASS), (PLACE, WAIT, ADD, PASS),
    (PLACE, WAIT, BAR, BAR, PASS.replace("bra DONE", "bra PAST"), "PAST:", ADD), (PLACE, ADD, WAIT, BAR, BAR, PASS),
    (PLACE, BAR, ADD, BAR, PASS), (PLACE, WAIT, BAR, ADD, BAR),
    put("setp.ne.s32 %p3", "setp.lt.s32 %p3"), put("setp.ne.s32 %p3", "setp.gt.s32 %p3"),
    put("add.s32 %r22, %r20, 1", "add.s32 %r22, %r20, 2"), put("add.s32 %r22, %r20, 1", "mov.u32 %r22, 1"),
    put("add.s64 %d23, %a_turn, %d22;", "mov.u64 %d23, %a_turn;"),
    put("st.global.f32 [%d25], %f2;", "mul.f32 %f2, %f2, %f2; st.global.f32 [%d25], %f2;"),
    put("st.global.f32 [%d25], %f2;", "st.global.f32 [%d25], %f1;"),
    put("mul.wide.u32 %d24, %g, 4", "mul.wide.u32 %d24, %c, 256"),
    put("mul.wide.u32 %d24, %g, 4", "mul.wide.u32 %d24, %t, 4"),
    put("fma.rn.f32 %f2, %f1, %f1, %f2", "fma.rn.f32 %f2, %f1, %f1, %f2; red.global.add.f32 [%d25], %f1"),
    (*GOOD[:5], "st.global.f32 [%d25], %f2;", PASS),
]


@pytest.mark.parametrize("parts", WRONG)
def test_wrong_turnstiles_are_not_proved(parts: Any) -> None:
    assert not proved(split(*([parts] if isinstance(parts, str) else parts)), squares)


@pytest.mark.parametrize("parts", [WRONG[k] for k in (1, 3, 4, 7, 8, 10, 11, 12, 18, 19)])
def test_wrong_turnstiles_are_refuted(parts: Any) -> None:
    kernel = split(*parts)
    launch = load_launch({**kernel.manifest(), "sizes": {"n": [2, 3], "m": [3, 2]}})
    task = Task(resolve(load(kernel.ptx()), "k"), launch, squares, kernel.ptx(), "k.ptx", {}, 20.0)
    assert prove(task, lambda stage: None).verdict.value == "REFUTED"


def test_the_cta_before_must_be_running() -> None:
    (claim,) = [c for c in claims_of(split(*GOOD, cooperative=False), squares) if c.status is not Status.SHOWN]
    assert claim.property == "barriers"
    assert "cooperative" in claim.hint


@pytest.mark.parametrize("which", ["shr.u32 %r40, %r20, 1;", "shr.u32 %r40, %r20, 3;"])
def test_the_turn_before_is_at_another_counter(which: str) -> None:
    """The row of counters is chosen by a quotient of the turn: whoever starts a row waits for a number never stored."""
    place = PLACE.replace("mul.wide.u32 %d22, %c, 4;",
                          f"{which} mad.lo.s32 %r40, %r40, %i_n, %c; mul.wide.u32 %d22, %r40, 4;")
    params = (PARAMS[0], ("turn", "ptr_inout", "u32", ("m * n",)), PARAMS[2])
    assert not proved(replace(split(place, *GOOD[1:]), params=params), squares)
    place = PLACE.replace("mul.wide.u32 %d22, %c, 4;", "shr.u32 %r40, %c, 0; mul.wide.u32 %d22, %r40, 4;")
    assert proved(replace(split(place, *GOOD[1:]), params=params), squares)


def test_a_counter_that_does_not_start_at_zero() -> None:
    assert not proved(split(*GOOD, turn={"scratch": True}), squares)


DRAW = """setp.ne.s32 %p1, %t, 0; @%p1 bra DRAWN;
    atom.global.add.u32 %r3, [%a_ticket], 1; mov.u32 %r58, smem; st.shared.u32 [%r58], %r3;
    DRAWN: bar.sync 0; mov.u32 %r58, smem; ld.shared.u32 %r20, [%r58];
    shl.b32 %r21, %r20, 6; add.s32 %r21, %r21, %t; mul.wide.s32 %d20, %r21, 4; add.s64 %d21, %a_x, %d20;
    ld.global.f32 %f1, [%d21]; mov.u64 %d23, %a_turn; mul.wide.u32 %d24, %t, 4; add.s64 %d25, %a_y, %d24;"""


def test_turns_by_ticket_need_no_cooperative_launch() -> None:
    params = (("x", "ptr_in", "f32", ("n", "64")), ("turn", "ptr_inout", "u32", ("1",)),
              ("ticket", "ptr_inout", "u32", ("1",)), ("y", "ptr_inout", "f32", ("64",)))
    marks = {"turn": {"init": "zero", "scratch": True}, "ticket": {"init": "zero", "scratch": True}}
    kernel = Small("\n".join((DRAW, WAIT, BAR, ADD, BAR, PASS)), params, ("n",), ("n >= 1", "n <= 1000"), ("n",),
                   extra=marks)

    def total(x: Any, turn: Any, ticket: Any, y: Any, n: Any) -> dict[str, Any]:
        return {"y": y + np.square(x).sum(axis=0)}

    assert proved(kernel, total)
    assert not proved(replace(kernel, extra={**marks, "ticket": {"scratch": True}}), total)
