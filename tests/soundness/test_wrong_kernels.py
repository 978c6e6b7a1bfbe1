"""Wrong kernels that once were, or nearly were, PROVED: each stands for one hole that was closed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proof_cases import INSIDE, Small, element, proved, put, vector, verdicts, word
from trace_runs import symbolic

from warpproof.core import Unsupported

IO = (vector("x"), vector("y", "ptr_out"))
BLOCKS = {"sizes": ("b",), "preconditions": ("b >= 1", "b <= 10000"), "grid": ("b",)}
ROWS = (("x", "ptr_in", "f32", ("b", "64")), ("y", "ptr_out", "f32", ("b", "64")))


def copies(x: Any, n: int) -> dict[str, Any]:
    return {"y": x + 0.0}


def row_copies(x: Any, b: int) -> dict[str, Any]:
    return {"y": x + 0.0}


# ---------------------------------------------------------------------- paths
@pytest.mark.parametrize("exits", ["@%p1 ret; @%p2 ret;", "@%p2 exit; @%p1 exit;", "@%p1 ret; @%p2 ret; @%p3 ret;"])
def test_every_guarded_exit_takes_lanes_away(exits: str) -> None:
    """The first exit was forgotten when a second one came."""
    kernel = Small(f"""setp.eq.s32 %p1, %g, 13; setp.ge.s32 %p2, %g, %i_n; setp.gt.s32 %p3, %g, 5000; {exits}
        {element('%f1', 'x', '%g')} {put('%f1', 'y', '%g')}""", IO)
    assert not proved(kernel, copies)


SUMS = (vector("x"), vector("y", "ptr_out", "32 - k"))
LAST = {"sizes": ("n", "k"), "preconditions": ("n >= 1", "n <= 1000000", "k >= 1", "k <= 20"), "grid": ("1",), "block": 32}


def all_sums(x: Any, n: int, k: int) -> dict[str, Any]:
    return {"y": np.zeros(32 - k) + x.sum()}


def tail(value: str) -> str:
    return f"setp.lt.s32 %p3, %t, %i_k; @%p3 bra DONE; sub.s32 %r9, %t, %i_k; {put(value, 'y', '%r9')}"


@pytest.mark.parametrize(("first", "step", "good"), [("%t", 32, True), ("%t", 64, False), ("%r8", 32, False)])
def test_a_reduction_is_not_judged_by_a_lane_that_does_not_store(first: str, step: int, good: bool) -> None:
    """Lanes below k do not store. Judged at lane 0, `t >= k` is a contradiction from which everything follows."""
    tree = " ".join(f"shfl.sync.bfly.b32 %f3, %f1, {k}, 31, -1; add.f32 %f1, %f1, %f3;" for k in (16, 8, 4, 2, 1))
    kernel = Small(f"""mov.f32 %f1, 0f00000000; add.s32 %r8, %t, 1; mov.u32 %r1, {first}; setp.ge.s32 %p1, %r1, %i_n; @%p1 bra E;
        L: {element('%f2', 'x', '%r1')} add.f32 %f1, %f1, %f2; add.s32 %r1, %r1, {step}; setp.lt.s32 %p2, %r1, %i_n;
        @%p2 bra L; E: {tree} {tail('%f1')}""", SUMS, **LAST)
    assert proved(kernel, all_sums) == good


@pytest.mark.parametrize(("start", "good"), [(0, True), (1, False)])
def test_a_sum_within_a_lane_is_judged_where_it_is_stored(start: int, good: bool) -> None:
    kernel = Small(f"""mov.f32 %f1, 0f00000000; mov.u32 %r1, {start}; setp.ge.s32 %p1, %r1, %i_n; @%p1 bra E;
        L: {element('%f2', 'x', '%r1')} add.f32 %f1, %f1, %f2; add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %i_n; @%p2 bra L;
        E: {tail('%f1')}""", SUMS, **LAST)
    assert proved(kernel, all_sums) == good


# ---------------------------------------------------------------------- warps and barriers
def exchanged(n_of: str) -> Small:
    return Small(f"""mov.f32 %f1, 0f00000000; mov.u32 %r1, %t; LOOP: {element('%f2', 'x', '%r1')}
        shfl.sync.bfly.b32 %f3, %f2, 1, 31, -1; add.f32 %f1, %f1, %f3; add.s32 %r1, %r1, 64; setp.lt.s32 %p2, {n_of}, %i_n;
        @%p2 bra LOOP; {put('%f1', 'y', '%t')}""", (vector("x", size="n + 64"), vector("y", "ptr_out", "64")), grid=("1",))


def test_a_shuffle_in_a_loop_of_unequal_length() -> None:
    """Whether the lanes of a warp run equally long is only known when the loop is closed."""
    def zero(x: Any, n: int) -> dict[str, Any]:
        return {"y": np.zeros(64)}

    assert verdicts(exchanged("%r1"), zero)["barriers"] != "PROVED"
    alike = Small(exchanged("%r7").body.replace("setp.lt", "sub.s32 %r7, %r1, %t; setp.lt"), exchanged("%r1").params, grid=("1",))
    assert verdicts(alike, zero)["barriers"] == "PROVED"


@pytest.mark.parametrize("condition", [
    "setp.eq.s32 %p1, %r40, 3;",  # never defined
    "mov.u32 %r1, %t; mov.u32 %r2, 0; L: mad.lo.s32 %r1, %r1, 3, 1; add.s32 %r2, %r2, 1; setp.gt.s32 %p1, %r1, 50; @%p1 bra M; "
    "bar.sync 0; M: setp.lt.s32 %p2, %r2, %i_b; @%p2 bra L; setp.lt.s32 %p1, %t, 0;",  # a recurrence of its own per lane
    "setp.lt.s32 %p1, %t, 40;", "setp.ge.s32 %p1, %t, %i_b;",
])
def test_a_barrier_under_a_condition_of_the_lane(condition: str) -> None:
    kernel = Small(f"{condition} @%p1 bra A; bar.sync 0; A: {element('%f1', 'x', '%g')} {put('%f1', 'y', '%g')}", ROWS, **BLOCKS)
    assert verdicts(kernel, row_copies)["barriers"] != "PROVED"


def test_sides_of_a_lane_condition_race_with_each_other() -> None:
    body = f"""{word('%r1', '%t')} {element('%f1', 'x', '%g')} st.shared.f32 [%r1], %f1; bar.sync 0; xor.b32 %r2, %t, 32;
        {word('%r3', '%r2')} setp.lt.s32 %p1, %t, 32; @%p1 bra A; ld.shared.f32 %f2, [%r3]; bra B;
        A: st.shared.f32 [%r1], 0f00000000; mov.f32 %f2, %f1; B: {put('%f2', 'y', '%g')}"""
    assert verdicts(Small(body, ROWS, **BLOCKS), row_copies)["races"] != "PROVED"


# ---------------------------------------------------------------------- values
@pytest.mark.parametrize("body", [
    "max.xorsign.abs.f32 %f2, %f1, %f1;", "min.xorsign.abs.f32 %f2, %f1, %f1;",
    "cvt.rn.relu.f16.f32 %h1, %f1; cvt.f32.f16 %f2, %h1;", "max.f32 %f2, %f1, 0f00000000;",
    "add.sat.f32 %f2, %f1, 0f00000000;", "abs.f32 %f2, %f1;", "cvt.rzi.f32.f32 %f2, %f1;",
])
def test_operations_that_are_not_the_identity(body: str) -> None:
    assert not proved(Small(f"{INSIDE} {element('%f1', 'x', '%g')} {body} {put('%f2', 'y', '%g')}", IO), copies)


def test_relu_of_a_conversion() -> None:
    def relu(x: Any, n: int) -> dict[str, Any]:
        return {"y": np.maximum(x, 0.0)}

    body = "cvt.rn.relu.f16.f32 %h1, %f1; cvt.f32.f16 %f2, %h1;"
    assert proved(Small(f"{INSIDE} {element('%f1', 'x', '%g')} {body} {put('%f2', 'y', '%g')}", IO), relu)


@pytest.mark.parametrize("undo", [
    "neg.f32 %f4, %f1; add.f32 %f5, %f1, %f2; add.f32 %f5, %f5, %f4;", "abs.f32 %f4, %f1; add.f32 %f5, %f4, %f2; sub.f32 %f5, %f5, %f4;",
    "mul.f32 %f4, %f1, 0fBF800000; add.f32 %f5, %f2, %f4; sub.f32 %f5, %f5, %f4;", "sub.f32 %f4, %f1, %f1; add.f32 %f5, %f4, %f2;",
    "mul.f32 %f4, %f1, 0f00000000; add.f32 %f5, %f4, %f2;", "ex2.approx.f32 %f4, %f1; rcp.rn.f32 %f4, %f4; mul.f32 %f4, %f4, 0f00000000; add.f32 %f5, %f4, %f2;",
])
def test_an_empty_maximum_does_not_cancel(undo: str) -> None:
    """A lane without elements holds −∞; what cancels in algebra is NaN there."""
    kernel = Small(f"""{INSIDE} {element('%f2', 'x', '%g')} mov.f32 %f1, 0fFF800000; mov.u32 %r1, %t; setp.ge.s32 %p1, %r1, %i_m;
        @%p1 bra E; L: {element('%f3', 'x', '%r1')} max.f32 %f1, %f1, %f3; add.s32 %r1, %r1, 64; setp.lt.s32 %p2, %r1, %i_m;
        @%p2 bra L; E: {undo} {put('%f5', 'y', '%g')}""", IO, ("n", "m"),
                   ("n >= 1", "n <= 1000000", "m >= 1", "m <= n"))

    def same(x: Any, n: int, m: int) -> dict[str, Any]:
        return {"y": x + 0.0}

    assert not proved(kernel, same)


# ---------------------------------------------------------------------- memory
def test_reading_what_nobody_wrote() -> None:
    """The value is not used, but the read is undefined all the same."""
    kernel = Small(f"{INSIDE} {element('%f9', 'y', '%g')} {element('%f1', 'x', '%g')} {put('%f1', 'y', '%g')}", IO)
    assert verdicts(kernel, copies)["memory"] != "PROVED"


@pytest.mark.parametrize(("offset", "good"), [(0, True), (4, False), (8, True)])
def test_vector_accesses_to_shared_memory_are_aligned(offset: int, good: bool) -> None:
    kernel = Small(f"""{word('%r1', '%t')} {element('%f1', 'x', '%g')} st.shared.f32 [%r1+{offset}], %f1; bar.sync 0;
        and.b32 %r2, %t, 62; {word('%r3', '%r2')} ld.shared.v2.f32 {{%f2, %f3}}, [%r3+{offset}]; {put('%f1', 'y', '%g')}""",
                   ROWS, **BLOCKS)
    assert (verdicts(kernel, row_copies)["memory"] == "PROVED") == good


@pytest.mark.parametrize(("access", "good"), [
    ("st.local.f32 [%d3+28], %f1;", True), ("ld.local.f32 %f9, [%d3+28];", True), ("st.local.f32 [%d3+32], %f1;", False),
    ("st.local.f32 [%d3+-4], %f1;", False), ("ld.local.f32 %f9, [%d3+2];", False),
    ("ld.local.v2.f32 {%f8, %f9}, [%d3+4];", False), ("ld.local.v2.f32 {%f8, %f9}, [%d3+28];", False),
])
def test_local_memory_stays_inside(access: str, good: bool) -> None:
    kernel = Small(f"""{element('%f1', 'x', '%g')} mov.u64 %d3, depot; st.local.f32 [%d3], %f1; {access}
        {put('%f1', 'y', '%g')}""", ROWS, **BLOCKS)
    ptx = kernel.ptx().replace(".shared .align 16", ".local .align 16 .b8 depot[32]; .shared .align 16")
    try:
        ran = not symbolic(ptx, kernel.manifest()).trace.hazards
    except Unsupported:
        ran = False
    assert ran == good


@pytest.mark.parametrize("grid", ["n // 64", "(n + 63) // 64 - 1", "(n + 62) // 64"])
def test_a_grid_that_is_too_small(grid: str) -> None:
    kernel = Small(f"{INSIDE} {element('%f1', 'x', '%g')} {put('%f1', 'y', '%g')}", IO,
                   preconditions=("n >= 128", "n <= 100000"), grid=(grid,))
    assert verdicts(kernel, copies)["equivalence"] != "PROVED"


def test_an_element_stored_again_with_another_value() -> None:
    kernel = Small(f"""{INSIDE} {element('%f1', 'x', '%g')} {put('%f1', 'y', '%g')} setp.eq.s32 %p1, %g, 100; @!%p1 bra DONE;
        add.f32 %f2, %f1, 0f3F800000; {put('%f2', 'y', '%g')}""", IO)
    assert not proved(kernel, copies)


def test_indices_in_an_empty_range() -> None:
    """`0 <= z[i] < v` with v = 0 means that z has no elements, not that v is at least 1."""
    kernel = Small(f"""setp.ne.s32 %p1, %t, 0; @%p1 bra DONE; {element('%r1', 'z', '%t', 'ld.global.u32')}
        {element('%f1', 'x', '%r1')} {put('%f1', 'y', '%t')}""",
                   (vector("z", size="n", dtype="i32"), vector("x", size="v"), vector("y", "ptr_out", "1")), ("n", "v"),
                   ("n >= 0", "n <= 1000", "v >= 0", "v <= 1000"), grid=("1",), extra={"z": {"range": ["0", "v"]}})

    def first(z: Any, x: Any, n: int, v: int) -> dict[str, Any]:
        return {"y": np.zeros(1)}

    assert verdicts(kernel, first)["memory"] != "PROVED"


# ---------------------------------------------------------------------- asynchronous copies
COMMIT, WAIT = "cp.async.commit_group;", "cp.async.wait_group 0;"
SOME = "setp.ge.s32 %p1, %t, %i_n;"


@pytest.mark.parametrize(("middle", "good"), [
    (f"{COMMIT} {WAIT}", True), ("cp.async.wait_all;", True), (WAIT, False), (COMMIT, False), ("", False),
    (f"{COMMIT} cp.async.wait_group 1;", False), (f"{COMMIT} {COMMIT} cp.async.wait_group 1;", True),
    (f"{SOME} @%p1 bra S; {COMMIT} S: {WAIT}", False), (f"{SOME} @!%p1 {COMMIT} {WAIT}", False),
    (f"{COMMIT} {SOME} @%p1 bra S; {WAIT} S:", False), (f"{COMMIT} {SOME} @!%p1 {WAIT}", False),
    (f"setp.ge.s32 %p1, %t, 5; @%p1 bra S; {COMMIT} S: {WAIT}", False),
    (f"setp.ge.s32 %p1, %i_n, 5; @%p1 bra S; {COMMIT} S: {WAIT}", False),
    (f"setp.ge.s32 %p1, %i_n, 5; @%p1 bra S; {COMMIT} bra T; S: {COMMIT} T: {WAIT}", True),
])
def test_a_copy_is_there_when_its_thread_has_waited_for_it(middle: str, good: bool) -> None:
    kernel = Small(f"""{word('%r1', '%t')} mul.wide.s32 %d3, %g, 4; add.s64 %d4, %a_x, %d3;
        cp.async.ca.shared.global [%r1], [%d4], 4; {middle} bar.sync 0; sub.s32 %r2, 63, %t; {word('%r3', '%r2')}
        ld.shared.f32 %f1, [%r3]; {put('%f1', 'y', '%g')}""", ROWS, ("b", "n"),
                   ("b >= 1", "b <= 10000", "n >= 0", "n <= 64"), ("b",))

    def reverse(x: Any, b: int, n: int) -> dict[str, Any]:
        return {"y": x[:, ::-1]}

    assert proved(kernel, reverse) == good
