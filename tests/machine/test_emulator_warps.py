"""Warp operations: shuffles, votes, matches, reductions, elections, member masks, whole matrices."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cases import given, output, run, store_at_thread, written

from warpproof.core import Unsupported
from warpproof.machine import SCHEDULES, Outcome

T = np.arange(64)
LANE = T % 32


def _u32(outcome: Outcome) -> np.ndarray:
    return outcome.buffers["out"].array(np.uint32)


@pytest.mark.parametrize(("operation", "source", "in_range"), [
    ("up.b32 %r1|%p1, %r0, 3, 0", np.where(LANE >= 3, T - 3, T), LANE >= 3),
    ("down.b32 %r1|%p1, %r0, 3, 31", np.where(LANE + 3 <= 31, T + 3, T), LANE + 3 <= 31),
    ("bfly.b32 %r1|%p1, %r0, 5, 31", T ^ 5, LANE >= 0),
    ("idx.b32 %r1|%p1, %r0, 9, 31", T - LANE + 9, LANE >= 0),
    ("down.b32 %r1|%p1, %r0, 1, 6175", np.where(LANE % 8 < 7, T + 1, T), LANE % 8 < 7),  # segments of 8: c = 0x181F
    ("idx.b32 %r1|%p1, %r0, 2, 6175", T - LANE % 8 + 2, LANE >= 0),
    ("up.b32 %r1|%p1, %r0, 1, 6144", np.where(LANE % 8 > 0, T - 1, T), LANE % 8 > 0),
])
def test_shuffle_modes(operation: str, source: np.ndarray, in_range: np.ndarray) -> None:
    kernel = written(f"mul.lo.u32 %r0, %t, 7; shfl.sync.{operation}, -1; selp.u32 %r2, 1000000, 0, %p1;",
                     "add.u32 %r1, %r1, %r2;", store_at_thread("%r1"), "ret;")
    outcome = run(kernel, 64, output("out", 64))
    assert outcome.findings == ()
    np.testing.assert_array_equal(_u32(outcome), 7 * source + np.where(in_range, 1000000, 0))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_disjoint_member_masks_in_divergent_code(schedule: str) -> None:
    kernel = written(
        "and.b32 %r1, %t, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra even;",
        "shfl.sync.bfly.b32 %r2, %t, 2, 31, 0xAAAAAAAA; bra done;",
        "even: add.u32 %r3, %t, 100; shfl.sync.bfly.b32 %r2, %r3, 4, 31, 0x55555555;",
        "done:", store_at_thread("%r2"), "ret;")
    outcome = run(kernel, 64, output("out", 64), schedule=schedule)
    assert outcome.findings == ()
    np.testing.assert_array_equal(_u32(outcome), np.where(T % 2, T ^ 2, (T ^ 4) + 100))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_members_meet_at_two_instructions(schedule: str) -> None:
    kernel = written(
        "setp.lt.u32 %p1, %t, 16; @%p1 bra low;",
        "add.u32 %r3, %t, 100; shfl.sync.bfly.b32 %r2, %r3, 16, 31, -1; bra done;",
        "low: add.u32 %r4, %t, 200; shfl.sync.bfly.b32 %r2, %r4, 16, 31, -1;",
        "done:", store_at_thread("%r2"), "ret;")
    outcome = run(kernel, 32, output("out", 32), schedule=schedule)
    assert outcome.findings == ()
    t = np.arange(32)
    np.testing.assert_array_equal(_u32(outcome), np.where(t < 16, t + 116, t - 16 + 200))


def test_exited_lanes_are_not_waited_for() -> None:
    kernel = written("setp.ge.u32 %p1, %t, 20; @%p1 exit; vote.sync.ballot.b32 %r1, 1, -1;", store_at_thread("%r1"),
                     "ret;")
    outcome = run(kernel, 32, output("out", 32))
    assert outcome.findings == ()
    assert (_u32(outcome)[:20] == (1 << 20) - 1).all()


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_waiting_ends_when_the_missing_member_exits(schedule: str) -> None:
    kernel = written(
        "setp.eq.u32 %p1, %t, 3; @%p1 bra leave; vote.sync.ballot.b32 %r1, 1, -1;", store_at_thread("%r1"), "ret;",
        "leave: mov.u32 %r2, 0; add.u32 %r2, %r2, 1; exit;")
    outcome = run(kernel, 32, output("out", 32), schedule=schedule)
    assert outcome.findings == ()
    assert _u32(outcome)[0] == 0xFFFFFFF7


def test_member_that_never_comes_is_a_deadlock() -> None:
    kernel = written("setp.eq.u32 %p1, %t, 3; @%p1 bra other; vote.sync.ballot.b32 %r1, 1, -1; bar.sync 0; ret;",
                     "other: bar.sync 0; ret;")
    outcome = run(kernel, 32, output("out", 1))
    assert not outcome.completed
    assert {"deadlock", "barrier-divergence"} == outcome.kinds()


def test_value_of_an_absent_lane_is_reported() -> None:
    kernel = written("setp.ge.u32 %p1, %t, 31; @%p1 exit; shfl.sync.idx.b32 %r1, %t, 31, 31, -1;", "ret;")
    assert run(kernel, 32, output("out", 1)).kinds() == {"undefined-collective"}


def test_thread_outside_its_own_mask_is_reported() -> None:
    found = run(written("vote.sync.any.pred %p1, 1, 0xFF; ret;"), 32, output("out", 1)).findings
    assert [(f.kind, f.thread, f.lanes) for f in found] == [("undefined-collective", (8, 0, 0), 24)]


def test_votes() -> None:
    kernel = written(
        "setp.lt.u32 %p1, %t, 40; vote.sync.all.pred %p2, %p1, -1; vote.sync.any.pred %p3, %p1, -1;",
        "vote.sync.uni.pred %p4, %p1, -1; vote.sync.ballot.b32 %r1, %p1, -1;",
        "selp.u32 %r2, 1, 0, %p2; selp.u32 %r3, 2, 0, %p3; selp.u32 %r4, 4, 0, %p4; add.u32 %r2, %r2, %r3;",
        "add.u32 %r2, %r2, %r4; shr.u32 %r1, %r1, 4; add.u32 %r1, %r1, %r2;", store_at_thread("%r1"), "ret;")
    outcome = run(kernel, 96, output("out", 96))
    got = _u32(outcome).reshape(3, 32)
    assert (got == np.array([[0x0FFFFFFF + 7], [(0xFF >> 4) + 2], [4]])).all()


def test_match_and_elect() -> None:
    kernel = written(
        "and.b32 %r1, %t, 3; match.any.sync.b32 %r2, %r1, -1; match.all.sync.b32 %r3|%p1, %r1, -1;",
        "mov.u32 %r4, 5; match.all.sync.b32 %r5|%p2, %r4, -1; selp.u32 %r6, 1, 0, %p2; add.u32 %r5, %r5, %r6;",
        "add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, %r5;", store_at_thread("%r2"), "ret;")
    outcome = run(kernel, 32, output("out", 32))
    masks = np.array([0x11111111 << k for k in range(4)])[np.arange(32) % 4]
    # match.all gives 0 where values disagree, all ones where they agree; with one more that wraps to 0
    np.testing.assert_array_equal(_u32(outcome), masks)
    kernel = written("elect.sync %r1|%p1, -1; selp.u32 %r2, 1, 0, %p1;", store_at_thread("%r2"), "ret;", target="sm_90")
    assert _u32(run(kernel, 64, output("out", 64))).tolist() == [1] + [0] * 31 + [1] + [0] * 31


@pytest.mark.parametrize(("op", "reduce"), [
    ("add.u32", np.sum), ("min.s32", np.min), ("max.u32", np.max), ("xor.b32", np.bitwise_xor.reduce),
    ("or.b32", np.bitwise_or.reduce), ("and.b32", np.bitwise_and.reduce),
])
def test_redux_over_part_of_a_warp(op: str, reduce: object) -> None:
    kernel = written(
        "setp.ge.u32 %p1, %t, 11; @%p1 bra done; mad.lo.u32 %r1, %t, 37, 5; redux.sync." + op + " %r2, %r1, 0x7FF;",
        store_at_thread("%r2"), "done: ret;")
    outcome = run(kernel, 32, output("out", 32))
    assert outcome.findings == ()
    assert (_u32(outcome)[:11] == reduce(37 * np.arange(11) + 5)).all()  # type: ignore[operator]


def test_active_mask_is_of_the_lanes_at_the_instruction() -> None:
    kernel = written("setp.lt.u32 %p1, %t, 9; @%p1 activemask.b32 %r1;", "@%p1 " + store_at_thread("%r1").replace(
        "; ", "; @%p1 ").removesuffix("@%p1 "), "ret;")
    assert (_u32(run(kernel, 32, output("out", 32)))[:9] == 511).all()


@pytest.mark.parametrize("transposed", [False, True])
def test_matrices_go_through_shared_memory_and_back(transposed: bool) -> None:
    data = np.arange(4 * 64, dtype=np.uint16)
    words = "\n".join(f"ld.global.u32 %r{k}, [%d2+{128 * k}];" for k in range(4))
    suffix = ".trans" if transposed else ""
    kernel = written(
        "mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a0, %d1; mov.u32 %r10, tile; mad.lo.u32 %r11, %t, 4, %r10;",
        words, *(f"st.shared.u32 [%r11+{128 * k}], %r{k};" for k in range(4)), "bar.warp.sync -1;",
        "mad.lo.u32 %r12, %t, 16, %r10;",
        f"ldmatrix.sync.aligned.m8n8.x4{suffix}.shared.b16 {{%r4, %r5, %r6, %r7}}, [%r12];", "bar.warp.sync -1;",
        f"stmatrix.sync.aligned.m8n8.x4{suffix}.shared.b16 [%r12], {{%r4, %r5, %r6, %r7}};", "bar.warp.sync -1;",
        "mul.wide.u32 %d1, %t, 32; add.s64 %d2, %a1, %d1; st.global.v4.u32 [%d2], {%r4, %r5, %r6, %r7};",
        *(f"ld.shared.u32 %r{20 + k}, [%r11+{128 * k}];" for k in range(4)),
        "st.global.v4.u32 [%d2+16], {%r20, %r21, %r22, %r23}; ret;", params=2, target="sm_90",
        declared=".shared .align 16 .b8 tile[512];")
    outcome = run(kernel, 32, given("in", data), output("out", 32 * 8))
    assert outcome.findings == ()
    rows = outcome.buffers["out"].array(np.uint16).reshape(32, 2, 4, 2)
    matrices = data.reshape(4, 8, 8)
    for lane in range(32):
        r, c = lane // 4, 2 * (lane % 4)
        for k in range(4):
            expected = matrices[k].T[r, c:c + 2] if transposed else matrices[k][r, c:c + 2]
            assert rows[lane, 0, k].tolist() == expected.tolist()
    np.testing.assert_array_equal(rows[:, 1].transpose(1, 0, 2).reshape(-1), data)


def test_matrix_operation_by_part_of_a_warp_has_no_meaning() -> None:
    kernel = written("setp.lt.u32 %p1, %t, 8; mov.u32 %r1, tile;",
                     "@%p1 exit; ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1]; ret;",
                     declared=".shared .align 16 .b8 tile[128];")
    with pytest.raises(Unsupported):
        run(kernel, 32, output("out", 1))


@pytest.mark.parametrize(("ab", "shape", "k"), [
    ("f16", "m16n8k16", 16), ("bf16", "m16n8k16", 16), ("f16", "m16n8k8", 8), ("tf32", "m16n8k8", 8),
    ("tf32", "m16n8k4", 4),
])
def test_mma_fragments(ab: str, shape: str, k: int) -> None:
    rng = np.random.default_rng(k)
    a, b, c = (rng.integers(-4, 5, s).astype(np.float32) for s in ((16, k), (k, 8), (16, 8)))
    per = 1 if ab == "tf32" else 2
    lane = np.arange(32)
    g, q = lane // 4, lane % 4
    na, nb = 16 * k // (32 * per), 8 * k // (32 * per)

    def packed(pick: list[np.ndarray]) -> np.ndarray:
        if ab == "tf32":
            return pick[0].view(np.uint32)
        halves = [p.astype(np.float16).view(np.uint16) if ab == "f16" else (p.view(np.uint32) >> 16) for p in pick]
        return halves[0].astype(np.uint32) | halves[1].astype(np.uint32) << 16

    ra = [packed([np.ascontiguousarray(a[g + 8 * (i % 2), q * per + j + 4 * per * (i // 2)]) for j in range(per)])
          for i in range(na)]
    rb = [packed([np.ascontiguousarray(b[q * per + j + 4 * per * i, g]) for j in range(per)]) for i in range(nb)]
    rc = [np.ascontiguousarray(c[g + 8 * (i // 2), q * 2 + i % 2]).view(np.uint32) for i in range(4)]
    image = np.stack([*ra, *rb, *rc])
    regs = [f"%r{i}" for i in range(na + nb)]
    lines = [f"ld.global.u32 {name}, [%d2+{128 * i}];" for i, name in enumerate([*regs])]
    lines += [f"ld.global.f32 %f{i}, [%d2+{128 * (na + nb + i)}];" for i in range(4)]
    sa, sb, sc = ", ".join(regs[:na]), ", ".join(regs[na:]), "%f0, %f1, %f2, %f3"
    lines.append(f"mma.sync.aligned.{shape}.row.col.f32.{ab}.{ab}.f32 {{{sc}}}, {{{sa}}}, {{{sb}}}, {{{sc}}};")
    lines += [f"st.global.f32 [%d3+{128 * i}], %f{i};" for i in range(4)]
    kernel = written("mul.wide.u32 %d1, %t, 4; add.s64 %d2, %a0, %d1; add.s64 %d3, %a1, %d1;", *lines, "ret;", params=2)
    outcome = run(kernel, 32, given("in", image), output("out", 128))
    assert outcome.findings == ()
    assert any("mma" in note for note in outcome.notes)
    d = a @ b + c
    got = outcome.buffers["out"].array(np.float32).reshape(4, 32)
    for i in range(4):
        np.testing.assert_array_equal(got[i], d[g + 8 * (i // 2), q * 2 + i % 2])
