"""Barriers of some warps of a CTA: they order these warps only, and must be theirs alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proof_cases import Small, element, proved, put, verdicts, word

GROUP = "setp.gt.u32 %p1, %t, 63; @%p1 bra SECOND;"
FILL = element("%f1", "x", "%g") + word("%r20", "%t") + "st.shared.f32 [%r20], %f1;"


def take(far: int) -> str:
    return f"xor.b32 %r9, %t, {far};" + word("%r21", "%r9") + "ld.shared.f32 %f2, [%r21];" + put("%f2", "y", "%g")


def halves(first: str, second: str, far: int = 63) -> Small:
    """The halves of a CTA of four warps fill, meet each at a barrier of its own, and read what thread t ^ far wrote."""
    shape = ["n", "128"]
    body = f"{FILL} {GROUP} {first} bra BOTH; SECOND: {second} BOTH: {take(far)}"
    return Small(body, (("x", "ptr_in", "f32", shape), ("y", "ptr_out", "f32", shape)), ("n",),
                 ("n >= 1", "n <= 100000"), ("n",), 128)


def turned(x: Any, n: Any) -> dict[str, Any]:
    return {"y": np.reshape(np.reshape(x, (n, 2, 64))[:, :, ::-1], (n, 128))}


def crossed(x: Any, n: Any) -> dict[str, Any]:
    return {"y": x[:, ::-1]}


def test_each_half_meets_at_its_own_barrier() -> None:
    assert proved(halves("bar.sync 1, 64;", "bar.sync 2, 64;"), turned)
    assert proved(halves("barrier.sync.aligned 3, 64;", "bar.sync 0;".replace("0;", "4, 64;")), turned)


@pytest.mark.parametrize(("first", "second"), [
    ("bar.sync 1, 64;", "bar.sync 1, 64;"),
    ("bar.sync 1, 64;", ""),
    ("", "bar.sync 2, 64;"),
    ("bar.sync 1, 32;", "bar.sync 2, 64;"),
    ("bar.sync 1, 96;", "bar.sync 2, 64;"),
    ("bar.sync 1, 128;", "bar.sync 2, 64;"),
    ("bar.sync 1, 64;", "setp.lt.u32 %p2, %t, 96; @%p2 bar.sync 2, 64;"),
    ("bar.sync 1, 64;", "setp.lt.u32 %p2, %t, 96; @%p2 bar.sync 2, 32;"),
    ("bar.sync 1, 64;", "setp.gt.f32 %p2, %f1, 0f00000000; @!%p2 bra S; bar.sync 2, 64; S:"),
    ("bar.sync 1, 64;", "bar.warp.sync -1;"),
    ("bar.arrive 1, 64;", "bar.sync 2, 64;"),
])
def test_wrong_meetings_are_not_proved(first: str, second: str) -> None:
    assert not proved(halves(first, second), turned)


def test_a_half_does_not_see_the_other() -> None:
    assert verdicts(halves("bar.sync 1, 64;", "bar.sync 2, 64;", 127), crossed)["races"] != "PROVED"


def test_what_was_ordered_in_a_half_is_not_ordered_between_halves() -> None:
    """After the barrier of its half, thread t writes where the other half has written or read before."""
    spoil = word("%r22", "%r11") + "st.shared.f32 [%r22], %f1;"
    other = f"bar.sync 1, 64; xor.b32 %r11, %t, 64; {spoil}"
    assert verdicts(halves(other, "bar.sync 2, 64;"), turned)["races"] != "PROVED"
    own = f"bar.sync 1, 64; xor.b32 %r11, %t, 1; {spoil} bar.sync 1, 64;"
    assert verdicts(halves(own, "bar.sync 2, 64;"), turned)["races"] == "PROVED"


def test_a_barrier_of_all_after_those_of_halves() -> None:
    """The second exchange is across the whole CTA, behind a barrier of all threads."""
    shape = ["n", "128"]
    body = f"{FILL} {GROUP} bar.sync 1, 64; bra BOTH; SECOND: bar.sync 2, 64; BOTH: BAR {take(127)}"
    kernel = Small(body.replace("BAR", "bar.sync 0;"), (("x", "ptr_in", "f32", shape), ("y", "ptr_out", "f32", shape)),
                   ("n",), ("n >= 1", "n <= 100000"), ("n",), 128)
    assert proved(kernel, crossed)
    without = Small(body.replace("BAR", ""), kernel.params, ("n",), kernel.preconditions, ("n",), 128)
    assert verdicts(without, crossed)["races"] != "PROVED"


@pytest.mark.parametrize(("barrier", "good"), [("bar.sync %r15, 64;", True), ("", False)])
def test_in_a_loop(barrier: str, good: bool) -> None:
    """Each half turns one tile after another, with a barrier before and behind the reads."""
    params = (("x", "ptr_in", "f32", ("n", "m", "128")), ("y", "ptr_out", "f32", ("n", "128")))

    def loop(label: str, number: int) -> str:
        return f"""mov.u32 %r15, {number}; {label}: mad.lo.s32 %r2, %c, %i_m, %r1; shl.b32 %r2, %r2, 7;
            add.s32 %r2, %r2, %t; {element('%f1', 'x', '%r2')} st.shared.f32 [%r20], %f1; bar.sync %r15, 64;
            ld.shared.f32 %f2, [%r21]; add.f32 %f3, %f3, %f2; {barrier}
            add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %i_m; @%p2 bra {label};"""

    body = f"""mov.u32 %r1, 0; mov.f32 %f3, 0f00000000; {word('%r20', '%t')} xor.b32 %r9, %t, 63; {word('%r21', '%r9')}
        {GROUP} {loop('L', 1)} bra BOTH; SECOND: {loop('M', 2)} BOTH: {put('%f3', 'y', '%g')}"""
    kernel = Small(body, params, ("n", "m"), ("n >= 1", "n <= 1000", "m >= 1", "m <= 1000"), ("n",), 128)
    found = verdicts(kernel, lambda x, n, m: turned(x.sum(axis=1), n))
    assert (found["races"] == found["barriers"] == "PROVED") == good


# ---------------------------------------------------------------------- producers and consumers
def stages(count: int, *, empty: bool = True, full: bool = True, numbers: tuple[int, ...] = (1, 2, 3, 4),
           threads: int = 64) -> Small:
    """Warp 0 fills one of two stages, warp 1 empties them, `count` times; barriers tell of full and empty stages."""
    f0, f1, e0, e1 = numbers
    produce, consume = "", ""
    for k in range(count):
        s, full_id, empty_id = k % 2, (f0, f1)[k % 2], (e0, e1)[k % 2]
        index = f"mad.lo.s32 %r2, %c, {count}, {k}; shl.b32 %r2, %r2, 5; add.s32 %r2, %r2, %r3;"
        cell = f"add.s32 %r4, %r3, {32 * s}; {word('%r20', '%r4')}"
        if k >= 2 and empty:
            produce += f"bar.sync {empty_id}, {threads};"
        produce += f"{index} {element('%f1', 'x', '%r2')} {cell} st.shared.f32 [%r20], %f1;"
        consume += f"bar.sync {full_id}, {threads};" if full else ""
        produce += f"bar.arrive {full_id}, {threads};" if full else ""
        mirror = f"xor.b32 %r5, %r3, 31; add.s32 %r5, %r5, {32 * s}; {word('%r21', '%r5')}"
        consume += f"""{index} {cell} {mirror} ld.shared.f32 %f2, [%r20]; ld.shared.f32 %f3, [%r21];
            add.f32 %f2, %f2, %f3; {put('%f2', 'y', '%r2')}"""
        if k + 2 < count and empty:
            consume += f"bar.arrive {empty_id}, {threads};"
    body = f"""and.b32 %r3, %t, 31; setp.gt.u32 %p1, %t, 31; @%p1 bra SECOND; {produce} bra DONE;
        SECOND: {consume}"""
    shape = ["n", str(count), "32"]
    return Small(body, (("x", "ptr_in", "f32", shape), ("y", "ptr_out", "f32", shape)), ("n",),
                 ("n >= 1", "n <= 10000"), ("n",), 64)


def mirrored_sums(x: Any, n: Any) -> dict[str, Any]:
    return {"y": x + x[:, :, ::-1]}


def settled(kernel: Small) -> bool:
    found = verdicts(kernel, mirrored_sums)
    return found.get("races") == found.get("barriers") == "PROVED"


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_producer_and_consumer(count: int) -> None:
    assert proved(stages(count), mirrored_sums)


@pytest.mark.parametrize("kernel", [
    stages(5, empty=False), stages(5, full=False), stages(5, numbers=(1, 1, 3, 4)), stages(5, numbers=(1, 2, 1, 2)),
    stages(5, numbers=(1, 2, 3, 3)), stages(5, threads=96), stages(5, threads=32), stages(3, numbers=(1, 2, 2, 1)),
])
def test_wrong_producers_and_consumers(kernel: Small) -> None:
    assert not settled(kernel)


@pytest.mark.parametrize(("threads", "good"), [(128, True), (96, False), (64, False)])
def test_a_phase_ends_with_the_thread_it_waits_for(threads: int, good: bool) -> None:
    """Two warps arrive and two wait. Where 96 threads complete the phase, one producer may still be writing."""
    shape = ["n", "64"]
    body = f"""and.b32 %r3, %t, 63; shl.b32 %r2, %c, 6; add.s32 %r2, %r2, %r3; {word('%r20', '%r3')}
        setp.gt.u32 %p1, %t, 63; @%p1 bra SECOND; {element('%f1', 'x', '%r2')} st.shared.f32 [%r20], %f1;
        bar.arrive 1, {threads}; bra DONE;
        SECOND: bar.sync 1, {threads}; ld.shared.f32 %f2, [%r20]; {put('%f2', 'y', '%r2')}"""
    kernel = Small(body, (("x", "ptr_in", "f32", shape), ("y", "ptr_out", "f32", shape)), ("n",),
                   ("n >= 1", "n <= 10000"), ("n",), 128)
    assert proved(kernel, lambda x, n: {"y": x + 0.0}) == good
