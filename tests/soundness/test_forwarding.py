"""What a load sees of its own thread's stores in earlier loops and on other branches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proof_cases import Small, element, proved, put, vector

SCRATCH = {"y": {"scratch": True}}
PARAMS = (vector("x"), vector("y", "ptr_inout"), vector("z", "ptr_out"))
DOUBLE = f"{element('%f1', 'x', '%r1')} add.f32 %f2, %f1, %f1;"
ZERO = "mov.f32 %f9, 0f00000000;"


def doubled(x: Any, y: Any, n: int) -> dict[str, Any]:
    return {"z": 2 * x}


def kept(x: Any, y: Any, n: int) -> dict[str, Any]:
    return {"z": y + 0.0}


def two_loops(first: str, second: str, bound: str = "%i_n") -> Small:
    """The threads of one block go through the elements twice."""
    return Small(f"""{ZERO} mov.u32 %r1, %t; setp.ge.s32 %p1, %r1, {bound}; @%p1 bra E;
        L: {first} add.s32 %r1, %r1, 64; setp.lt.s32 %p2, %r1, {bound}; @%p2 bra L;
        E: mov.u32 %r2, %t; setp.ge.s32 %p3, %r2, %i_n; @%p3 bra DONE;
        M: {second} add.s32 %r2, %r2, 64; setp.lt.s32 %p4, %r2, %i_n; @%p4 bra M;""",
                 PARAMS, grid=("1",), extra=SCRATCH)


READ = f"{element('%f4', 'y', '%r2')} {put('%f4', 'z', '%r2')}"


def test_a_later_loop_sees_what_an_earlier_one_stored() -> None:
    assert proved(two_loops(f"{DOUBLE} {put('%f2', 'y', '%r1')}", READ), doubled)


def test_an_earlier_loop_that_stops_short_stored_less() -> None:
    short = "sub.s32 %r20, %i_n, 1; setp.ge.s32 %p9, %r1, %r20; @%p9 bra S;"
    first = f"{DOUBLE} {short} {put('%f2', 'y', '%r1')} S:"
    assert not proved(two_loops(first, READ), doubled)


def test_a_second_store_of_the_earlier_loop_may_come_later() -> None:
    """The next iteration overwrites what this one stored."""
    back = f"setp.lt.s32 %p8, %r1, 64; @%p8 bra S; sub.s32 %r8, %r1, 64; {put('%f9', 'y', '%r8')} S:"
    assert not proved(two_loops(f"{DOUBLE} {put('%f2', 'y', '%r1')} {back}", READ), doubled)


def test_a_store_of_the_loop_that_reads_may_come_between() -> None:
    """An iteration overwrites what the next one reads."""
    ahead = f"add.s32 %r8, %r2, 64; setp.ge.s32 %p8, %r8, %i_n; @%p8 bra S; {put('%f9', 'y', '%r8')} S:"
    assert not proved(two_loops(f"{DOUBLE} {put('%f2', 'y', '%r1')}", f"{READ} {ahead}"), doubled)


def test_a_store_between_the_loops_comes_later() -> None:
    first = f"{DOUBLE} {put('%f2', 'y', '%r1')}"
    kernel = two_loops(first, READ)
    between = f"E: setp.ge.s32 %p9, %t, %i_n; @%p9 bra DONE; {put('%f9', 'y', '%t')} mov.u32"
    assert not proved(Small(kernel.body.replace("E: mov.u32", between, 1), PARAMS, grid=("1",), extra=SCRATCH), doubled)


def test_a_loop_that_updates_the_element_it_reads() -> None:
    """The store before the loop answers the load of the first iteration only."""
    body = f"""mov.f32 %f2, 0f3F800000; setp.ge.s32 %p1, %t, %i_n; @%p1 bra DONE; {put('%f2', 'y', '%t')}
        mov.u32 %r2, %t;
        M: {element('%f4', 'y', '%t')} {put('%f4', 'z', '%r2')} add.f32 %f5, %f4, %f2; {put('%f5', 'y', '%t')}
        add.s32 %r2, %r2, 64; setp.lt.s32 %p4, %r2, %i_n; @%p4 bra M;"""

    def ones(x: Any, y: Any, n: int) -> dict[str, Any]:
        return {"z": np.ones(n)}

    assert not proved(Small(body, PARAMS, grid=("1",), extra=SCRATCH), ones)


@pytest.mark.parametrize(("second", "good"), [("@%p1 bra DONE;", True), ("", False)])
def test_branches_that_exclude_each_other(second: str, good: bool) -> None:
    """Only what the same thread stored on a path that it took can be seen."""
    body = f"""{ZERO} mov.u32 %r1, %g; setp.ge.s32 %p2, %g, %i_n; @%p2 bra DONE;
        rem.u32 %r3, %g, 2; setp.eq.s32 %p1, %r3, 0;
        {element('%f4', 'y', '%g')} @!%p1 bra A; {put('%f9', 'y', '%g')} {put('%f4', 'z', '%g')} A: {second}
        {element('%f5', 'y', '%g')} {put('%f5', 'z', '%g')}"""
    assert proved(Small(body, PARAMS, extra=SCRATCH), kept) == good
