"""Integer sums over loops: exact while they fit the register, and no longer."""

from __future__ import annotations

from typing import Any

import pytest
from proof_cases import Small, element, proved, vector


def row_sums(start: int, step: int, limit: int) -> Small:
    """Each thread of one block sums its column of x, integers below 1000; at most `limit` rows."""
    body = f"""mov.u32 %r1, {start}; mov.u32 %r2, 0; setp.ge.s32 %p1, %r1, %i_n; @%p1 bra E;
        L: shl.b32 %r3, %r1, 6; add.s32 %r3, %r3, %t; {element('%r4', 'x', '%r3', 'ld.global.u32')}
        add.s32 %r2, %r2, %r4; add.s32 %r1, %r1, {step}; setp.lt.s32 %p2, %r1, %i_n; @%p2 bra L;
        E: {element('%r2', 'y', '%t', 'st.global.u32')}"""
    params = (("x", "ptr_in", "i32", ("n", "64")), vector("y", "ptr_out", "64", "i32"))
    return Small(body, params, preconditions=("n >= 1", f"n <= {limit}"), grid=("1",),
                 extra={"x": {"range": [0, 1000]}})


def column_sums(x: Any, n: int) -> dict[str, Any]:
    return {"y": x.sum(axis=0)}


@pytest.mark.parametrize(("start", "step", "limit", "good"), [
    (0, 1, 1_000_000, True), (0, 1, 3_000_000, False), (1, 1, 1_000_000, False), (0, 2, 1_000_000, False),
])
def test_sum_of_integers(start: int, step: int, limit: int, good: bool) -> None:
    assert proved(row_sums(start, step, limit), column_sums) == good


@pytest.mark.parametrize(("dtype", "good"), [("i32", True), ("i8", False), ("u32", False)])
def test_stored_integers_fit_their_type(dtype: str, good: bool) -> None:
    """-2 x for x below 100 needs a sign and nine bits."""
    wide = "mul.wide.s32 %d1, %g, 4;" if dtype != "i8" else "cvt.s64.s32 %d1, %g;"
    body = f"""setp.ge.s32 %p1, %g, %i_n; @%p1 bra DONE; {element('%r1', 'x', '%g', 'ld.global.u32')}
        mul.lo.s32 %r2, %r1, -2; {wide}
        add.s64 %d2, %a_y, %d1; st.global.{'u8' if dtype == 'i8' else 'u32'} [%d2], %r2;"""
    params = (vector("x", dtype="i32"), vector("y", "ptr_out", dtype=dtype))
    kernel = Small(body, params, extra={"x": {"range": [0, 100]}})

    def reference(x: Any, n: int) -> dict[str, Any]:
        return {"y": -2 * x}

    assert proved(kernel, reference) == good
