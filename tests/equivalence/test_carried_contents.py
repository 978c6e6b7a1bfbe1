"""What one launch leaves, carried to the next one: the lanes it is read off, and contents of other launches."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from warpproof.core import Status, Unsupported
from warpproof.equivalence.carrying import Carrier
from warpproof.equivalence.pipeline import Pipeline
from warpproof.ptx import load, resolve
from warpproof.reference import load_launch
from warpproof.terms import Access, Arena

REGISTERS = ".reg .pred %p<9>; .reg .b32 %r<30>; .reg .b64 %d<20>; .reg .f32 %f<9>;"
POINTERS = "ld.param.u64 %d1, [pa]; cvta.to.global.u64 %d1, %d1; ld.param.u64 %d2, [pb]; cvta.to.global.u64 %d2, %d2;"
MODULE = f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry first(.param .u64 pa, .param .u64 pb, .param .u32 pn)
{{
{REGISTERS} {POINTERS} ld.param.u32 %r1, [pn];
mov.u32 %r2, %tid.x; mov.u32 %r3, %tid.y; shl.b32 %r3, %r3, 5; add.s32 %r2, %r2, %r3;
setp.eq.s32 %p1, %r2, 1; setp.eq.s32 %p2, %r2, OTHER; or.pred %p3, %p1, %p2; @!%p3 bra DONE;
and.b32 %r4, %r1, 1; sub.s32 %r8, OTHER, 1; mul.lo.s32 %r4, %r4, %r8; add.s32 %r4, %r4, 1;
setp.ne.s32 %p4, %r2, %r4; @%p4 bra DONE;
mov.u32 %r5, %ctaid.x; shl.b32 %r6, %r5, 6; rem.u32 %r7, %r2, PERIOD; add.s32 %r6, %r6, %r7;
mul.wide.s32 %d3, %r6, 4; add.s64 %d4, %d1, %d3; ld.global.f32 %f1, [%d4];
mul.wide.s32 %d5, %r5, 4; add.s64 %d6, %d2, %d5; st.global.f32 [%d6], %f1;
DONE: ret;
}}
.visible .entry second(.param .u64 pa, .param .u64 pb)
{{
{REGISTERS} {POINTERS} mov.u32 %r2, %tid.x; setp.ne.s32 %p1, %r2, 0; @%p1 bra DONE;
mov.u32 %r5, %ctaid.x; mul.wide.s32 %d5, %r5, 4; add.s64 %d6, %d1, %d5; ld.global.f32 %f1, [%d6];
add.s64 %d7, %d2, %d5; st.global.f32 [%d7], %f1;
DONE: ret;
}}
"""


def shown(other: int, period: int, column: int) -> bool:
    """Thread 1 or, for odd n, thread `other` of a block of 32 x 2 stores x at (thread mod period)."""
    module = load(MODULE.replace("OTHER", str(other)).replace("PERIOD", str(period)))
    arrays = (("x", "in", ["b", "64"]), ("tmp", "out", ["b"]), ("y", "out", ["b"]))
    params: list[dict[str, Any]] = [
        {"name": name, "kind": f"ptr_{kind}", "dtype": "f32", "shape": shape} for name, kind, shape in arrays
    ]
    params[1]["scratch"] = True
    params += [{"name": name, "kind": "scalar", "dtype": "i32"} for name in "bn"]
    steps = [{"kernel": "first", "args": ["x", "tmp", "n"], "grid": ["b"], "block": [32, 2, 1]},
             {"kernel": "second", "args": ["tmp", "y"], "grid": ["b"], "block": [32, 1, 1]}]
    launch = load_launch({"params": params, "sizes": {"b": [3, 3], "n": [4, 5]}, "launches": steps,
                          "preconditions": ["b >= 1", "b <= 1000", "n >= 1", "n <= 1000"]})

    def reference(x: Any, b: Any, n: Any) -> dict[str, Any]:
        return {"y": x[:, column] + 0.0}

    kernels = [resolve(module, name) for name in ("first", "second")]
    claims = Pipeline(kernels, launch, reference, time.monotonic() + 60.0).attempt().claims
    return all(c.status is Status.SHOWN for c in claims)


@pytest.mark.parametrize(("other", "period", "column", "good"), [
    (33, 32, 1, True), (33, 32, 0, False),
    (32, 31, 0, False),  # threads (1, 0) and (0, 1): no thread has the least x and the least y of these
])
def test_contents_are_those_of_a_lane_that_stores(other: int, period: int, column: int, good: bool) -> None:
    assert shown(other, period, column) == good


def test_contents_as_a_launch_found_them_are_not_carried_on() -> None:
    """Version 1 of a buffer is what the launches before this one left, which for the next one may be something else."""
    source, target = Arena(32), Arena(32)
    index = source.symbol("size", "n", 1, 9)
    carrier = Carrier(source, target, np.arange(32), ((np.arange(32), target.symbol("size", "t", 0, 31)),), {})
    assert carrier.real(source.load(Access("x"), index)).op == "load"
    with pytest.raises(Unsupported):
        carrier.real(source.load(Access("x", 1), index))
