"""Piecewise values: equal exactly when they agree at the borders too; layouts whose elements may overlap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from proof_cases import INSIDE, Small, element, proved, put, vector

IO = (vector("x"), vector("y", "ptr_out"))
ONE, THREE, SIX = "0f3F800000", "0f40400000", "0f40C00000"
STEP = f"setp.gt.f32 %p1, %f1, 0f00000000; selp.f32 %f2, {ONE}, 0f00000000, %p1;"
RELU = "max.f32 %f2, %f1, 0f00000000;"
CLAMP = f"add.f32 %f2, %f1, {THREE}; max.f32 %f2, %f2, 0f00000000; min.f32 %f2, %f2, {SIX};"
BOW = "neg.f32 %f3, %f1; max.f32 %f2, %f1, %f3;"
REFERENCES: list[tuple[str, Callable[[Any], Any], bool]] = [
    (STEP, lambda x: np.where(x > 0, 1, 0), True),
    (STEP, lambda x: np.where(x >= 0, 1, 0), False),
    (STEP, lambda x: np.where(x <= 0, 0, 1), True),
    (STEP, lambda x: np.where(2 * x > 0, 1, 0), True),
    (STEP, lambda x: np.where(x > 1e-30, 1, 0), False),
    (RELU, lambda x: np.where(x >= 0, x, 0), True),
    (RELU, lambda x: np.where(x > 1, x, 0), False),
    (RELU, lambda x: np.where(x >= -1, np.where(x <= 0, 0, x), 0), True),
    (RELU, lambda x: 0.5 * (x + np.abs(x)), True),
    (RELU, lambda x: 0.5 * (x - np.abs(x)), False),
    (CLAMP, lambda x: np.where(x < -3, 0, np.where(x > 3, 6, x + 3)), True),
    (CLAMP, lambda x: np.where(x < -3, 0, np.where(x > 2, 6, x + 3)), False),
    (CLAMP, lambda x: np.clip(x, -3, 3) + 3, True),
    (CLAMP, lambda x: np.clip(x, -3, 4) + 3, False),
    (BOW, np.abs, True),
    (BOW, lambda x: np.where(x < 0, -x, x), True),
    (BOW, lambda x: np.where(x < 0, x, -x), False),
]


@pytest.mark.parametrize(("code", "function", "good"), REFERENCES)
def test_piecewise_values(code: str, function: Callable[[Any], Any], good: bool) -> None:
    kernel = Small(f"{INSIDE} {element('%f1', 'x', '%g')} {code} {put('%f2', 'y', '%g')}", IO)

    def reference(x: Any, n: int) -> dict[str, Any]:
        return {"y": function(x) * 1.0}

    assert proved(kernel, reference) == good


@pytest.mark.parametrize(("condition", "column", "good"), [
    ("pitch >= 8", "%t", True), ("pitch >= 7", "%t", False), ("pitch >= 8", "%r4", False),
])
def test_rows_that_are_a_pitch_apart(condition: str, column: str, good: bool) -> None:
    """Rows that may overlap have elements with two values; a store between rows is no element at all."""
    params = (("x", "ptr_in", "f32", ("rows", "8")), ("y", "ptr_out", "f32", ("rows", "8")))
    body = f"""setp.ge.s32 %p1, %t, 8; shl.b32 %r3, %c, 3; add.s32 %r3, %r3, %t; @%p1 bra DONE; add.s32 %r4, %t, 1;
        mul.lo.s32 %r5, %c, %i_pitch; add.s32 %r6, %r5, {column}; {element('%f1', 'x', '%r3')}
        {put('%f1', 'y', '%r6')}"""
    limits = ("rows >= 1", "rows <= 1000", "pitch <= 1000", "pitch >= 1", condition)
    kernel = Small(body, params, ("rows", "pitch"), limits, ("rows",), 64, {"y": {"strides": ["pitch", "1"]}})

    def reference(x: Any, rows: int, pitch: int) -> dict[str, Any]:
        return {"y": x + 0.0}

    assert proved(kernel, reference) == good


def test_what_holds_in_a_lane_says_nothing_of_its_neighbour() -> None:
    """Where a lane's own sum is positive, the maximum with 0 is that sum; the neighbour's may still be 0."""
    body = f"""mov.f32 %f1, 0f00000000; mov.u32 %r1, 0; L: shl.b32 %r3, %r1, 6; add.s32 %r3, %r3, %t;
        {element('%f2', 'x', '%r3')} add.f32 %f1, %f1, %f2; add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %i_n; @%p2 bra L;
        max.f32 %f3, %f1, 0f00000000; shfl.sync.bfly.b32 %f4, %f3, 1, 31, -1; setp.gt.f32 %p3, %f1, 0f00000000;
        selp.f32 %f5, %f4, 0f00000000, %p3; {put('%f5', 'y', '%t')}"""
    params = (("x", "ptr_in", "f32", ("n", "64")), vector("y", "ptr_out", "64"))

    def reference(x: Any, n: int) -> dict[str, Any]:
        own = x.sum(axis=0)
        return {"y": np.where(own > 0, own.reshape(32, 2)[:, ::-1].reshape(64), 0)}

    assert not proved(Small(body, params, grid=("1",)), reference)
