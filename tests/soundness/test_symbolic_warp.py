"""Warp operations on symbolic values and partial member masks, against the emulator."""

from __future__ import annotations

import pytest
from warp_kernels import WarpKernel, load_words, store_words

NS = (0, 5, 33, 64)
_EVEN = "0x55555555"


def _check(code: str, words: int, n: tuple[int, ...] = NS, buffers: dict[str, str] | None = None) -> None:
    WarpKernel(code, buffers or {"z": "i32", "o": "i32"}, n=n).agrees(64 * words)


@pytest.mark.parametrize("mode", ["all", "any", "uni"])
@pytest.mark.parametrize("test", ["setp.lt.s32 %p1, %t, %n;", "setp.gt.s32 %p1, %n, 7;", "setp.lt.u32 %p1, %l, 40;"])
def test_votes(mode: str, test: str) -> None:
    _check(f"{test} vote.sync.{mode}.pred %p2, %p1, -1; selp.b32 %r1, 7, 3, %p2;" + store_words(["%r1"]), 1)


@pytest.mark.parametrize("test", ["setp.lt.s32 %p1, %t, %n;", "setp.gt.s32 %p1, %n, 7;", "setp.lt.u32 %p1, %l, 9;"])
def test_ballots(test: str) -> None:
    _check(f"{test} vote.sync.ballot.b32 %r1, %p1, -1;" + store_words(["%r1"]), 1)


@pytest.mark.parametrize("mask", [_EVEN, "0xAAAAAAAA"])
def test_operations_of_the_lanes_of_a_mask(mask: str) -> None:
    odd = mask != _EVEN
    code = "\n".join([
        f"and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, {int(odd)}; mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0;",
        "@!%p1 bra DONE;",
        f"add.s32 %r5, %n, %t; shfl.sync.bfly.b32 %r2, %r5, 4, 31, {mask};",
        f"setp.lt.s32 %p2, %t, %n; vote.sync.ballot.b32 %r3, %p2, {mask};",
        f"redux.sync.add.u32 %r4, %r5, {mask};",
        "DONE:", store_words(["%r2", "%r3", "%r4"]),
    ])
    _check(code, 3)


def test_reductions_of_integers() -> None:
    code = load_words(0, 1, "z") + "\n".join([
        "xor.b32 %r1, %t, 21; add.s32 %r2, %n, %t;",
        "redux.sync.add.s32 %r10, %r0, -1; redux.sync.min.s32 %r11, %r1, -1; redux.sync.max.u32 %r12, %r2, -1;",
        "redux.sync.xor.b32 %r13, %r1, -1; redux.sync.and.b32 %r14, %n, -1; redux.sync.or.b32 %r15, %r1, -1;",
        store_words([f"%r{10 + i}" for i in range(6)]),
    ])
    _check(code, 6)


def test_reductions_of_floats() -> None:
    code = load_words(0, 1, "a", "%f") + "\n".join([
        "redux.sync.max.f32 %f1, %f0, -1; redux.sync.min.abs.f32 %f2, %f0, -1;", store_words(["%f1", "%f2"]),
    ])
    _check(code, 2, (5,), {"a": "f32", "o": "f32"})


def test_matches_of_constant_and_of_uniform_values() -> None:
    code = "\n".join([
        "shr.u32 %r0, %t, 3; match.any.sync.b32 %r1, %r0, -1;", "match.all.sync.b32 %r2|%p1, %n, -1;",
        "match.all.sync.b32 %r3|%p2, %r0, -1;",
        "selp.b32 %r4, 1, 0, %p1; selp.b32 %r5, 1, 0, %p2;", store_words([f"%r{i}" for i in range(1, 6)]),
    ])
    _check(code, 5)


def test_the_elected_lane_and_the_active_mask_are_assumed() -> None:
    code = "\n".join([
        "elect.sync %r1|%p1, 0xFFFFFFFF; selp.b32 %r2, 1, 0, %p1; activemask.b32 %r3;",
        store_words(["%r1", "%r2", "%r3"]),
    ])
    run = WarpKernel(code, {"o": "i32"}).agrees(192)
    assert {a.name for a, _ in run.machine.ledger.items()} >= {"elect", "converged"}


@pytest.mark.parametrize("operation", [
    "shfl.sync.bfly.b32 %r2, %t, 1, 31, -1;", "vote.sync.ballot.b32 %r2, %p1, -1;", "bar.warp.sync -1;",
    "redux.sync.add.u32 %r2, %t, -1;", "shfl.sync.bfly.b32 %r2, %t, 1, 31, 0x0000FFFF;",
])
def test_a_mask_that_names_absent_lanes_is_a_hazard(operation: str) -> None:
    for test in ("setp.lt.u32 %p1, %l, 8;", "setp.lt.s32 %p1, %t, %n;"):
        code = f"{test} mov.b32 %r2, 0; @!%p1 bra DONE; {operation} DONE:" + store_words(["%r2"])
        assert "divergence" in WarpKernel(code, {"o": "i32"}).hazards()


_ROUND = """
shl.b32 %r1, %t, 2; add.s32 %r2, %s, %r1; xor.b32 %r3, %r1, 4; add.s32 %r4, %s, %r3;
st.shared.b32 [%r2], %t; BARRIER ld.shared.b32 %r5, [%r4];
"""


@pytest.mark.parametrize(("barrier", "racy"), [
    ("bar.warp.sync -1;", False), ("", True),
    ("@%p1 bar.warp.sync -1;", True),  # only where n > 3
])
def test_warp_barriers_order_the_accesses_of_their_warp(barrier: str, racy: bool) -> None:
    code = "setp.gt.s32 %p1, %n, 3;" + _ROUND.replace("BARRIER", barrier) + store_words(["%r5"])
    assert ("race" in WarpKernel(code, {"o": "i32"}).hazards()) is racy


def test_a_barrier_in_a_branch_that_a_warp_may_skip_orders_nothing_after_it() -> None:
    code = _ROUND.replace("BARRIER", "shr.u32 %r6, %t, 5; setp.gt.s32 %p1, %n, %r6; @!%p1 bra NEXT; "
                                     "bar.warp.sync -1; NEXT:") + store_words(["%r5"])
    assert "race" in WarpKernel(code, {"o": "i32"}).hazards()
    inside = ("shr.u32 %r6, %t, 5; setp.gt.s32 %p1, %n, %r6; mov.b32 %r5, 0; @!%p1 bra NEXT;"
              + _ROUND.replace("BARRIER", "bar.warp.sync -1;") + "NEXT:" + store_words(["%r5"]))
    assert "race" not in WarpKernel(inside, {"o": "i32"}).hazards()
    _check(inside, 1)


def test_threads_that_store_one_value_to_one_place_do_not_race() -> None:
    alike = ("shr.u32 %r1, %t, 5; shl.b32 %r2, %r1, 2; add.s32 %r3, %s, %r2; add.s32 %r4, %r1, %n;"
             "st.shared.b32 [%r3], VALUE; bar.sync 0; ld.shared.b32 %r5, [%s];" + store_words(["%r5"]))
    _check(alike.replace("VALUE", "%r4"), 1)
    assert "race" in WarpKernel(alike.replace("VALUE", "%t"), {"o": "i32"}).hazards()
    rewritten = alike.replace("bar.sync 0;", "st.shared.b32 [%r3], %n; bar.sync 0;")
    assert "race" in WarpKernel(rewritten.replace("VALUE", "%r4"), {"o": "i32"}).hazards()
