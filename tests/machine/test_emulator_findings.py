"""The wrong twins of compiled kernels: what is found, where."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cases import (
    Case,
    center,
    compiled,
    dot,
    handoff,
    i32,
    launch,
    matmul_naive,
    matmul_tiled,
    mirror,
    named,
    output,
    saxpy,
    spinlock,
    split_k,
    transpose,
    vadd,
)

from warpproof.machine import SCHEDULES, Buffer, Outcome, emulate


def _run(case: Case, schedule: str = "min-pc", seed: int = 0) -> Outcome:
    return emulate(compiled(case.file), case.launch, schedule=schedule, seed=seed)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize(("case", "kind"), [
    (saxpy("saxpy-bad"), "race"), (transpose("transpose-pad-bad"), "race"), (center("center-tree-bad"), "race"),
    (matmul_naive("matmul-naive-bad"), "race"), (split_k("splitk-atomic-bad"), "race"),
    (mirror("warp-mirror-bad"), "race"), (handoff("flag-handoff-bad"), "race"),
    (spinlock("spinlock-bad"), "race"), (matmul_tiled("matmul-tiled-oob-bad"), "out-of-bounds"),
    (matmul_tiled("matmul-tiled-uninit-bad", 16, 16, 8), "uninitialised-read"), (vadd("vadd-bad"), "out-of-bounds"),
    (matmul_naive("matmul-naive-bad", 45, 7, 13), "out-of-bounds"), (center("center-tree-bad"), "exited-at-barrier"),
])
def test_fault_is_found_under_every_schedule(case: Case, kind: str, schedule: str) -> None:
    assert kind in _run(case, schedule, 7).kinds()


def test_a_race_that_sc_fences_may_order_shows_in_some_schedule() -> None:
    found = ["race" in _run(dot("dot-lastblock-bad"), schedule, 7).kinds() for schedule in SCHEDULES]
    assert any(found)
    assert all("race" not in _run(dot("dot-lastblock"), schedule, 7).kinds() for schedule in SCHEDULES)


def test_barrier_inside_a_divergent_branch_of_a_tree_reduction() -> None:
    found = [f for f in _run(center("center-tree-bad")).findings if f.kind == "barrier-divergence"]
    assert found
    assert {f.source for f in found} == {("kernel.cu", 11)}


def test_named_barrier_without_its_empty_twin() -> None:
    assert "barrier-mismatch" in _run(named("named-barriers-bad")).kinds()
    assert "race" in _run(named("named-barriers-bad"), "round-robin").kinds()


def test_missing_barrier_names_both_accesses() -> None:
    outcome = _run(transpose("transpose-pad-bad"))
    race = next(f for f in outcome.findings if f.kind == "race")
    kernel = compiled("transpose-pad-bad")
    assert race.space == "shared"
    assert race.instruction is not None
    assert race.other is not None
    assert race.other.instruction is not None
    names = {kernel.code[race.instruction].name, kernel.code[race.other.instruction].name}
    assert names == {"ld", "st"}
    assert race.thread != race.other.thread
    assert race.cta == race.other.cta
    assert race.span == kernel.code[race.instruction].span
    assert race.source is not None
    assert race.source[0] == "kernel.cu"


def test_out_of_bounds_names_buffer_offset_and_thread() -> None:
    outcome = _run(vadd("vadd-bad", 700))
    reads = [f for f in outcome.findings if f.kind == "out-of-bounds" and f.buffer == "a"]
    assert [(f.offset, f.size, f.cta, f.thread, f.lanes) for f in reads] == [(2800, 4, (2, 0, 0), (188, 0, 0), 1)]
    assert {f.buffer for f in outcome.findings} == {"a", "b", "c"}
    np.testing.assert_array_equal(outcome.buffers["c"].array(np.float32),
                                  vadd(n=700).expected["c"].astype(np.float32))


def test_stores_of_one_value_by_many_threads_are_told_apart() -> None:
    x = np.random.default_rng(1).standard_normal((3, 9)).astype(np.float32)
    args = ["x", "y", i32(9), i32(9), bytes(8), bytes(8)]
    kernel = compiled("triton-softmax")
    wanted = launch((3,), (128,), args, Buffer("x", x.nbytes, False, x), output("y", x.size), shared=16)
    outcome = emulate(kernel, wanted)
    assert outcome.kinds() == {"race-same-value"}
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(outcome.buffers["y"].array(np.float32).reshape(3, 9), e / e.sum(axis=1, keepdims=True),
                               rtol=1e-5)


def test_race_between_ctas_names_both() -> None:
    outcome = _run(saxpy("saxpy-bad"))
    race = next(f for f in outcome.findings if f.kind == "race")
    assert race.buffer == "y"
    assert race.other is not None
    assert race.other.cta != race.cta


def _content(start: int, stop: int) -> np.ndarray:
    """A pure function of the position: float32 words in [0, 1)."""
    word = np.arange(start // 4, -(-stop // 4), dtype=np.uint64)
    values = ((word * np.uint64(2654435761)) >> np.uint64(8) & np.uint64(1023)).astype(np.float32) / 1024
    return values.view(np.uint8)[start % 4:start % 4 + stop - start]


@pytest.mark.parametrize(("file", "faulty"), [("rowsum-shfl", False), ("rowsum-shfl-bad", True)])
def test_index_overflow_in_a_sparse_buffer_of_many_gigabytes(file: str, faulty: bool) -> None:
    rows, n, pitch = 3, 40, 1073741830
    x = Buffer("x", rows * pitch * 4, False, fill=_content)
    outcome = emulate(compiled(file), launch((rows,), (64,), ["x", "out", i32(n), i32(pitch)], x, output("out", rows)),
                      ctas=[(2, 0, 0)])
    assert ("out-of-bounds" in outcome.kinds()) == faulty
    pages = outcome.buffers["x"].touched_pages()
    assert pages is not None
    assert len(pages) <= 2
    if faulty:
        found = next(f for f in outcome.findings if f.kind == "out-of-bounds")
        assert found.buffer == "x"
        assert found.offset == 4 * (2 * pitch - 2**32)
    else:
        row = _content(8 * pitch, 8 * pitch + 4 * n).view(np.float32)
        np.testing.assert_allclose(outcome.buffers["out"].array(np.float32)[2], row.sum(), rtol=1e-5)
