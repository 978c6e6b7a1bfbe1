"""State spaces, generic addressing, constants, local memory, alignment, vectors, sparse storage."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cases import given, output, run, store_at_thread, updated, written

from warpproof.core import InputError
from warpproof.machine import Buffer, ConcreteLaunch, Outcome, Pointer, Region, emulate


def _u32(outcome: Outcome, name: str = "out") -> np.ndarray:
    return outcome.buffers[name].array(np.uint32)


def test_generic_addresses_reach_every_space() -> None:
    kernel = written(
        "mov.u64 %d1, cell; cvta.shared.u64 %d2, %d1; mul.wide.u32 %d3, %t, 4; add.s64 %d2, %d2, %d3;",
        "st.u32 [%d2], %t;",
        "mov.u64 %d4, here; cvta.local.u64 %d5, %d4; add.u32 %r1, %t, 100; st.u32 [%d5+4], %r1;",
        "mov.u64 %d6, table; cvta.const.u64 %d7, %d6; ld.u32 %r2, [%d7+8];",
        "cvta.to.shared.u64 %d8, %d2; ld.shared.u32 %r3, [%d8]; ld.local.u32 %r4, [here+4];",
        "isspacep.shared %p1, %d2; isspacep.global %p2, %a0; isspacep.local %p3, %d5; isspacep.shared %p4, %a0;",
        "and.pred %p1, %p1, %p2; and.pred %p1, %p1, %p3; not.pred %p4, %p4; and.pred %p1, %p1, %p4;",
        "selp.u32 %r5, 1000, 0, %p1; add.u32 %r6, %r2, %r3; add.u32 %r6, %r6, %r4; add.u32 %r6, %r6, %r5;",
        store_at_thread("%r6"), "ret;",
        declared=".shared .align 4 .b8 cell[256]; .local .align 4 .b8 here[8];",
        before=".const .align 4 .u32 table[4] = {7, 8, 9, 10};")
    outcome = run(kernel, 64, output("out", 64))
    assert outcome.findings == ()
    np.testing.assert_array_equal(_u32(outcome), 9 + 2 * np.arange(64) + 100 + 1000)


def test_module_variables_are_initialised_and_kept() -> None:
    kernel = written(
        "mov.u64 %d1, counter; atom.global.add.u32 %r1, [%d1], 1; mov.u64 %d2, zeros; ld.global.u32 %r2, [%d2+4];",
        "add.u32 %r1, %r1, %r2;", store_at_thread("%r1"), "ret;",
        before=".global .align 4 .u32 counter = 5; .global .align 4 .u32 zeros[2];")
    outcome = run(kernel, 40, output("out", 40))
    assert outcome.findings == ()
    np.testing.assert_array_equal(_u32(outcome), 5 + np.arange(40))
    assert _u32(outcome, "counter")[0] == 45


def test_local_memory_is_private_and_checked() -> None:
    kernel = written(
        "st.local.u32 [own], %t; bar.sync 0; ld.local.u32 %r1, [own]; ld.local.u32 %r2, [own+4];",
        "ld.local.u32 %r3, [own+8];", store_at_thread("%r1"), "ret;", declared=".local .align 4 .b8 own[8];")
    outcome = run(kernel, 64, output("out", 64))
    np.testing.assert_array_equal(_u32(outcome), np.arange(64))
    assert [(f.kind, f.instruction) for f in outcome.findings] == [("uninitialised-read", 5), ("out-of-bounds", 6)]
    assert all(f.space == "local" and f.lanes == 64 for f in outcome.findings)


def test_vectors_and_narrow_types_extend_by_sign() -> None:
    data = np.array([0x80, 0x7F, 0xFF, 0x01], np.uint8)
    kernel = written(
        "ld.global.s8 %r1, [%a0]; ld.global.u8 %r2, [%a0+2]; ld.global.v2.s16 {%r3, %r4}, [%a0];",
        "st.global.v4.u32 [%a1], {%r1, %r2, %r3, %r4}; st.global.u8 [%a1+16], %r2; ret;", params=2)
    outcome = run(kernel, 1, given("in", data), output("out", 5))
    assert outcome.findings == ()
    np.testing.assert_array_equal(outcome.buffers["out"].array(np.int32)[:4], [-128, 255, 0x7F80, 0x01FF])
    np.testing.assert_array_equal(outcome.buffers["out"].written(16, 20), [True, False, False, False])


@pytest.mark.parametrize(("access", "kind"), [
    ("ld.global.u32 %r1, [%a0+2];", "misaligned"), ("ld.global.v2.u32 {%r1, %r2}, [%a0+4];", "misaligned"),
    ("ld.global.u32 %r1, [%a0+-4];", "out-of-bounds"), ("ld.global.v2.u32 {%r1, %r2}, [%a0+56];", "fine"),
    ("ld.global.v2.u32 {%r1, %r2}, [%a0+64];", "out-of-bounds"), ("st.global.u32 [%a0], %t;", "write-to-input"),
    ("atom.global.add.u32 %r1, [%a0], 1;", "write-to-input"), ("ld.shared.u32 %r1, [%r9];", "out-of-bounds"),
    ("mov.u64 %d1, 0; ld.u32 %r1, [%d1];", "out-of-bounds"),
    ("mov.u64 %d1, 0; st.global.u32 [%d1], %t;", "out-of-bounds"),
])
def test_faulting_accesses(access: str, kind: str) -> None:
    outcome = run(written("mov.u32 %r9, 0;", access, "ret;"), 1, given("in", np.zeros(16, np.uint32)))
    assert outcome.kinds() == (frozenset() if kind == "fine" else {kind})
    assert outcome.completed


def test_dynamic_shared_memory_ends_where_the_launch_says() -> None:
    kernel = written("mov.u32 %r1, dyn; shl.b32 %r2, %t, 2; add.u32 %r1, %r1, %r2; st.shared.u32 [%r1], %t;", "ret;",
                     before=".extern .shared .align 16 .b8 dyn[];", declared=".shared .align 4 .b8 fixed[20];")
    launched = ConcreteLaunch((1, 1, 1), (8, 1, 1), 32, (Pointer("out"),), {"out": output("out", 1)})
    assert emulate(kernel, launched).findings == ()
    short = ConcreteLaunch((1, 1, 1), (8, 1, 1), 28, (Pointer("out"),), {"out": output("out", 1)})
    found = emulate(kernel, short).findings
    assert [(f.kind, f.thread, f.lanes) for f in found] == [("out-of-bounds", (7, 0, 0), 1)]


def test_partial_initialisation_is_seen_by_the_byte() -> None:
    kernel = written("st.shared.u16 [cell], %h1; ld.shared.u16 %h2, [cell]; ld.shared.u32 %r1, [cell]; ret;",
                     declared=".shared .align 4 .b8 cell[4];")
    found = run(kernel, 1, output("out", 1)).findings
    assert [(f.kind, f.instruction, f.size) for f in found] == [("uninitialised-read", 4, 4)]


def test_reading_an_output_before_it_is_written() -> None:
    kernel = written("ld.global.u32 %r1, [%a0]; st.global.u32 [%a0], %r1; ld.global.u32 %r1, [%a0]; ret;")
    found = run(kernel, 1, output("out", 1)).findings
    assert [(f.kind, f.buffer, f.offset) for f in found] == [("uninitialised-read", "out", 0)]


def test_carry_chain_adds_128_bits() -> None:
    kernel = written(
        "mov.u64 %d1, 0xFFFFFFFFFFFFFFFF; mov.u64 %d2, 1; add.cc.u64 %d3, %d1, %d2; addc.u64 %d4, %d2, %d2;",
        "st.global.v2.u64 [%a0], {%d3, %d4}; ret;")
    outcome = run(kernel, 1, output("out", 4))
    np.testing.assert_array_equal(outcome.buffers["out"].array(np.uint64), [0, 3])


def test_special_registers() -> None:
    names = ["%tid.y", "%ntid.x", "%ctaid.x", "%nctaid.x", "%laneid", "%warpid", "%nwarpid", "%lanemask_lt",
             "%lanemask_ge", "%tid.z"]
    lines = [f"mov.u32 %r{i}, {name}; st.global.u32 [%d2+{4 * i}], %r{i};" for i, name in enumerate(names, 1)]
    kernel = written(
        "mov.u32 %r20, %tid.y; mov.u32 %r21, %ntid.x; mad.lo.u32 %r20, %r20, %r21, %t; mov.u32 %r22, %ctaid.x;",
        "mad.lo.u32 %r20, %r22, 70, %r20; mul.wide.u32 %d1, %r20, 64; add.s64 %d2, %a0, %d1;", *lines, "ret;")
    out = output("out", 16 * 140)
    outcome = emulate(kernel, ConcreteLaunch((2, 1, 1), (10, 7, 1), 0, (Pointer("out"),), {"out": out}))
    assert outcome.findings == ()
    table = _u32(outcome).reshape(2, 70, 16)[:, :, 1:11]
    thread = np.arange(70)
    lane = thread % 32
    for cta in range(2):
        rows = table[cta].T
        below = (1 << lane) - 1
        expected = [thread // 10, 10, cta, 2, lane, thread // 32, 3, below, 0xFFFFFFFF & ~below, 0]
        for got, want in zip(rows, expected, strict=True):
            np.testing.assert_array_equal(got, np.broadcast_to(want, 70))


def test_clock_never_goes_back() -> None:
    kernel = written("mov.u64 %d1, %clock64; mov.u32 %r1, %clock; mov.u64 %d2, %clock64; sub.u64 %d3, %d2, %d1;",
                     "cvt.u32.u64 %r2, %d3;", store_at_thread("%r2"), "ret;")
    assert (_u32(run(kernel, 32, output("out", 32))) == 2).all()


@pytest.mark.parametrize("size", [1 << 20, 1 << 40])
def test_region_reads_back_what_was_written(size: int) -> None:
    region = Region("r", size, content=0x11)
    offsets = np.array([0, 8, size - 8, size // 2], np.int64)
    region.write(region.slots(offsets), 8, np.arange(4, dtype=np.uint64) + 5)
    np.testing.assert_array_equal(region.read(region.slots(offsets), 8), np.arange(4) + 5)
    assert region.content(16, 20).tolist() == [0x11] * 4
    assert region.content(size - 9, size - 7).tolist() == [0x11, 7]
    assert (region.touched_pages() is None) == (size == 1 << 20)


def test_sparse_region_tracks_bytes_never_written() -> None:
    region = Region("r", 1 << 40)
    slots = region.slots(np.array([1 << 39], np.int64))
    region.write(slots, 4, np.array([1], np.uint32))
    assert region.initialised(slots, 4) is None
    assert region.initialised(slots, 8) is not None
    assert region.written(1 << 39, (1 << 39) + 6).tolist() == [True] * 4 + [False] * 2


def test_launches_that_cannot_be() -> None:
    kernel = written("ret;")
    good = updated("out", np.zeros(1, np.uint32))
    with pytest.raises(InputError, match="parameter"):
        run(kernel, 1)
    with pytest.raises(InputError, match="1024 threads"):
        run(kernel, 1025, good)
    with pytest.raises(InputError, match="at least 1"):
        run(kernel, 0, good)
    with pytest.raises(InputError, match="not in the grid"):
        emulate(kernel, ConcreteLaunch((1, 1, 1), (1, 1, 1), 0, (Pointer("out"),), {"out": good}), ctas=[(1, 0, 0)])
    with pytest.raises(InputError, match="unknown buffer"):
        emulate(kernel, ConcreteLaunch((1, 1, 1), (1, 1, 1), 0, (Pointer("no"),), {"out": good}))
    with pytest.raises(InputError, match="fewer than its data"):
        run(kernel, 1, Buffer("out", 2, True, np.zeros(1, np.uint32)))
    with pytest.raises(InputError, match="no schedule"):
        run(kernel, 1, good, schedule="lifo")
