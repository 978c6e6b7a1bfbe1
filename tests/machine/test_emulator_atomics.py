"""Atomics: exact results under contention, old values, every operation; what races with what."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cases import output, run, store_at_thread, updated, written

from warpproof.machine import SCHEDULES

T = np.arange(40, dtype=np.int64)


def _after(op: str, ty: str, start: float, dtype: type, value: str = "%t", more: str = "") -> object:
    register = {"f32": "%f1", "f64": "%g1"}.get(ty, "%r1" if ty.endswith("32") else "%d1")
    kernel = written(f"{more} atom.global.{op}.{ty} {register}, [%a0], {value}; ret;")
    outcome = run(kernel, 40, updated("cell", np.array([start, 0], dtype)))
    assert outcome.findings == ()
    return outcome.buffers["cell"].array(dtype)[0]


@pytest.mark.parametrize(("op", "ty", "start", "dtype", "expected"), [
    ("add", "u32", 7, np.uint32, 7 + int(T.sum())), ("min", "s32", 17, np.int32, 0), ("max", "s32", -3, np.int32, 39),
    ("max", "u32", 0xFFFFFF00, np.uint32, 0xFFFFFF00), ("and", "b32", 0xFF, np.uint32, 0),
    ("or", "b32", 0, np.uint32, 63),
    ("xor", "b32", 1, np.uint32, 1 ^ int(np.bitwise_xor.reduce(T))), ("exch", "b32", 5, np.uint32, 39),
])
def test_contended_operations(op: str, ty: str, start: int, dtype: type, expected: int) -> None:
    assert _after(op, ty, start, dtype) == expected


def test_inc_and_dec_wrap() -> None:
    assert _after("inc", "u32", 0, np.uint32, "6") == 40 % 7
    assert _after("dec", "u32", 3, np.uint32, "6") == (3 - 40) % 7
    assert _after("dec", "u32", 9, np.uint32, "6") == (6 - 39) % 7  # 9 > 6 becomes 6 first


def test_wide_and_float_additions_are_sequential_in_lane_order() -> None:
    value = _after("add", "u64", 2**40, np.uint64, "%d2", "cvt.u64.u32 %d2, %t;")
    assert value == 2**40 + T.sum()
    total = np.float32(0.1)
    for t in T:
        total = np.float32(total + np.float32(t) * np.float32(0.3))
    value = _after("add", "f32", 0.1, np.float32, "%f2", "cvt.rn.f32.u32 %f2, %t; mul.rn.f32 %f2, %f2, 0f3E99999A;")
    assert value == total


def test_float_addition_flushes_subnormals_in_global_memory_only() -> None:
    one = np.array([1, 0], np.uint32)
    kernel = written("mov.b32 %f1, 0f00000001; atom.global.add.f32 %f2, [%a0], %f1; st.shared.f32 [cell], %f1;",
                     "atom.shared.add.f32 %f2, [cell], %f1; ld.shared.f32 %f3, [cell];",
                     "st.global.f32 [%a0+4], %f3; ret;",
                     declared=".shared .align 4 .f32 cell;")
    assert run(kernel, 1, updated("cell", one)).buffers["cell"].array(np.uint32).tolist() == [0, 2]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_old_values_are_distinct_tickets(schedule: str) -> None:
    kernel = written("atom.shared.add.u32 %r1, [cell], 1;", store_at_thread("%r1"), "ret;",
                     declared=".shared .align 4 .u32 cell;")
    outcome = run(kernel, 96, output("out", 96), schedule=schedule)
    assert outcome.kinds() == {"uninitialised-read"}
    kernel = written("setp.eq.u32 %p1, %t, 0; mov.u32 %r2, 0; @%p1 st.shared.u32 [cell], %r2; bar.sync 0;",
                     "atom.shared.add.u32 %r1, [cell], 1;", store_at_thread("%r1"), "ret;",
                     declared=".shared .align 4 .u32 cell;")
    outcome = run(kernel, 96, output("out", 96), schedule=schedule)
    assert outcome.findings == ()
    assert sorted(outcome.buffers["out"].array(np.uint32)) == list(range(96))


def test_compare_and_swap_succeeds_once() -> None:
    kernel = written("add.u32 %r2, %t, 1; atom.global.cas.b32 %r1, [%a0+4], 0, %r2; setp.eq.u32 %p1, %r1, 0;",
                     "@%p1 red.global.add.u32 [%a0], 1; ret;")
    outcome = run(kernel, 64, updated("cell", np.zeros(2, np.uint32)), ctas=3)
    assert outcome.findings == ()
    assert outcome.buffers["cell"].array(np.uint32).tolist() == [1, 1]


@pytest.mark.parametrize(("first", "second", "kinds"), [
    ("red.global.add.u32 [%a0], 1;", "red.global.add.u32 [%a0], 1;", set()),
    ("red.global.add.u32 [%a0], 1;", "ld.relaxed.gpu.global.u32 %r1, [%a0];", set()),
    ("red.global.add.u32 [%a0], 1;", "ld.global.u32 %r1, [%a0];", {"race"}),
    ("red.global.add.u32 [%a0], 1;", "st.global.u32 [%a0], %t;", {"race"}),
    ("st.volatile.global.u32 [%a0], %t;", "ld.volatile.global.u32 %r1, [%a0];", set()),
    ("st.relaxed.cta.global.u32 [%a0], %t;", "ld.relaxed.cta.global.u32 %r1, [%a0];", set()),
    ("st.global.u32 [%a0], %t;", "st.global.u32 [%a0], %t;", {"race"}),
    ("st.global.u32 [%a0], %r9;", "st.global.u32 [%a0], %r9;", {"race-same-value"}),
    ("ld.global.u32 %r1, [%a0];", "ld.global.u32 %r1, [%a0];", set()),
    ("st.global.u8 [%a0], %t;", "st.global.u8 [%a0+1], %t;", set()),
    ("st.global.u8 [%a0+3], %t;", "ld.global.u32 %r1, [%a0];", {"race"}),
])
def test_what_races_between_two_threads(first: str, second: str, kinds: set[str]) -> None:
    kernel = written("mov.u32 %r9, 7; setp.eq.u32 %p1, %t, 0; setp.eq.u32 %p2, %t, 1;", f"@%p1 {first}",
                     f"@%p2 {second}", "ret;")
    for schedule in SCHEDULES:
        outcome = run(kernel, 2, updated("cell", np.zeros(2, np.uint32)), schedule=schedule)
        assert outcome.kinds() == kinds


def test_cta_scope_does_not_reach_another_cta() -> None:
    kernel = written("red.relaxed.cta.global.add.u32 [%a0], 1; ret;")
    cell = np.zeros(1, np.uint32)
    assert run(kernel, 32, updated("cell", cell)).findings == ()
    assert run(kernel, 32, updated("cell", cell), ctas=2).kinds() == {"race"}
