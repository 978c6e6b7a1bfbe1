"""Preconditions that no size, element or scalar satisfies prove nothing, though every claim follows from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from attempt import HEAD, REGISTERS, buffer, function, scalar

from warpproof.core import Reason, Verdict
from warpproof.proving import Task, prove
from warpproof.ptx import parse, resolve
from warpproof.reference import load_launch

TAKE = f"""{HEAD}.visible .entry k(.param .u64 px, .param .u64 pi, .param .u64 py, .param .u32 pn, .param .u32 pv,
.param .f32 pa) {{ {REGISTERS} ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [pi]; ld.param.u64 %rd3, [py];
ld.param.u32 %r1, [pn]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r2, 64, %r3; setp.ge.s32 %p1, %r4, %r1;
@%p1 bra DONE; mul.wide.s32 %rd4, %r4, 4; add.s64 %rd2, %rd2, %rd4; add.s64 %rd3, %rd3, %rd4; ld.global.s32 %r5, [%rd2];
mul.wide.s32 %rd5, %r5, 4; add.s64 %rd1, %rd1, %rd5; ld.global.f32 %f1, [%rd1]; st.global.f32 [%rd3], %f1;
DONE: ret; }}
"""
SIZES = ("n >= 1", "n <= 2**20", "V >= 1", "V <= 2**20")


def report(preconditions: Sequence[str], **indices: Any) -> Any:
    launch = load_launch({
        "kernel": "k", "dynamic_shared": "0", "preconditions": [*SIZES, *preconditions], "sizes": {"n": [7], "V": [5]},
        "grid": ["(n + 63) // 64"], "block": [64],
        "params": [buffer("x", "ptr_in", "f32", "V"), buffer("ix", "ptr_in", "i32", "n", **indices),
                   buffer("y", "ptr_out", "f32", "n"), scalar("n"), scalar("V"), scalar("a", "f32")],
    })
    kernel = resolve(parse(TAKE, "kernel.ptx"), "k")
    return prove(Task(kernel, launch, function("x, ix, n, V", "y=x[ix]"), TAKE, "kernel.ptx", {}, 20.0), lambda s: None)


@pytest.mark.parametrize(("preconditions", "indices"), [
    (["0 <= ix[i] < V", "ix[i] < 0"], {}), (["ix[i] == 3", "ix[i] == 4"], {}), ([], {"range": ["V", "0"]}),
    (["0 <= ix[i] < V", "a > 1", "a < 0.5"], {}),
])
def test_nothing_is_proved_of_no_input(preconditions: Sequence[str], indices: Any) -> None:
    found = report(preconditions, **indices)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.properties["memory"].reason is Reason.NEEDS_PRECONDITION


@pytest.mark.parametrize(("preconditions", "indices"), [
    (["0 <= ix[i] < V"], {}), ([], {"range": ["0", "V"]}), (["0 <= ix[i] < V", "a > 0.5", "a < 1"], {}),
])
def test_twins_that_some_input_meets(preconditions: Sequence[str], indices: Any) -> None:
    assert report(preconditions, **indices).verdict is Verdict.PROVED
