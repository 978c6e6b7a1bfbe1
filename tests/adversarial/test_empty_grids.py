"""Launches whose grid may be empty: no thread runs, so an output stays what it was, and no size may be left out.

Each kernel is right as soon as there is a CTA; the twin whose preconditions say so is PROVED.
"""

from __future__ import annotations

import pytest
from attempt import Case, Family, buffer, scalar

ONE_CTA = ("n >= 1", "n <= 1024", "g >= 1", "g <= 100", "s >= n", "s <= 2048")
PERHAPS_NONE = tuple(p.replace("g >= 1", "g >= 0") for p in ONE_CTA)


def family(dtype: str, reference: str) -> Family:
    """All elements of x go into y[0], which is 0 on entry; the launch has g CTAs of 32 threads."""
    x = buffer("x", "ptr_in", dtype, "n", **({"range": ["0", "50"]} if dtype == "i32" else {}))
    return Family(
        (("u64", "px"), ("u64", "py"), ("u32", "pn"), ("u32", "ps")),
        {"params": [x, buffer("y", "ptr_inout", dtype, "1", init="zero"), scalar("n"), scalar("s")],
         "sizes": {"n": [7], "g": [2], "s": [9]}, "preconditions": list(ONE_CTA), "grid": ["g"], "block": [32]},
        """
        ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py]; ld.param.u32 %r1, [pn]; ld.param.u32 %r2, [ps];
        mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; mov.u32 %r5, %nctaid.x; mul.lo.s32 %r6, %r5, 32;
        mul.lo.s32 %r8, %r2, %r4;
        """,
        "x, y, n, s", reference)


def strided(update: str) -> str:
    """A grid-stride loop over the elements."""
    return f"""
    mad.lo.s32 %r7, %r4, 32, %r3; setp.ge.s32 %p1, %r7, %r1; @%p1 bra DONE;
A:  mul.wide.s32 %rd3, %r7, 4; add.s64 %rd4, %rd1, %rd3; ld.global.b32 %r9, [%rd4]; {update}
    add.s32 %r7, %r7, %r6; setp.lt.s32 %p2, %r7, %r1; @%p2 bra A;
"""


ADD = "mov.b32 %f1, %r9; red.global.add.f32 [%rd2], %f1;"
WINDOWS = f"""
    mov.u32 %r7, %r3; setp.ge.s32 %p1, %r7, %r2; @%p1 bra DONE;
A:  add.s32 %r10, %r8, %r7; setp.ge.s32 %p3, %r10, %r1; @%p3 bra B;
    mul.wide.s32 %rd3, %r10, 4; add.s64 %rd4, %rd1, %rd3; ld.global.b32 %r9, [%rd4]; {ADD}
B:  add.s32 %r7, %r7, 32; setp.lt.s32 %p2, %r7, %r2; @%p2 bra A;
"""
SUM, MAX = family("f32", "y=x.sum(keepdims=True)"), family("i32", "y=x.max(keepdims=True)")
KERNELS = [
    pytest.param(SUM, strided(ADD), id="a sum by a grid-stride loop"),
    pytest.param(SUM, WINDOWS, id="a sum by windows of blocks"),
    pytest.param(MAX, strided("red.global.max.s32 [%rd2], %r9;"), id="a maximum"),
    pytest.param(MAX, strided("atom.global.max.s32 %r11, [%rd2], %r9;"), id="a maximum by updates with a result"),
]


@pytest.mark.parametrize(("kind", "body"), KERNELS)
def test_that_there_is_a_cta_is_no_fact_about_sizes(kind: Family, body: str) -> None:
    assert kind.verdict(Case("one CTA or more", True, body)) == "PROVED"
    assert kind.verdict(Case("perhaps none", False, body, pre=PERHAPS_NONE)) != "PROVED"
