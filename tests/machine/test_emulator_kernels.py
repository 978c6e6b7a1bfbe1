"""Compiled kernels against NumPy in double precision, under every schedule, with nothing to find."""

from __future__ import annotations

import numpy as np
import pytest
from emulator_cases import GOOD, compiled, dot, matmul_tiled, saxpy, vadd

from warpproof.machine import SCHEDULES, emulate


@pytest.mark.parametrize("name", sorted(GOOD))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_result_is_the_reference_and_nothing_is_found(name: str, schedule: str) -> None:
    case = GOOD[name]()
    case.check(emulate(compiled(case.file), case.launch, schedule=schedule, seed=3))


@pytest.mark.parametrize("seed", range(4))
def test_random_schedules_of_synchronising_kernels(seed: int) -> None:
    for name in ("dot-lastblock", "flag-handoff", "named-barriers", "spinlock", "warp-mirror"):
        case = GOOD[name]()
        case.check(emulate(compiled(case.file), case.launch, schedule="random", seed=seed))


def test_ctas_in_batches_give_the_same_bits() -> None:
    case = matmul_tiled()
    kernel = compiled(case.file)
    together = emulate(kernel, case.launch)
    apart = emulate(kernel, case.launch, batch_ctas=1)
    assert apart.findings == ()
    assert (together.buffers["C"].content() == apart.buffers["C"].content()).all()


def test_handoff_across_batches_is_ordered() -> None:
    case = dot()
    case.check(emulate(compiled(case.file), case.launch, batch_ctas=1))


def test_chosen_ctas_write_only_their_part() -> None:
    case = vadd()
    outcome = emulate(compiled(case.file), case.launch, ctas=[(1, 0, 0)])
    assert outcome.completed
    known = outcome.buffers["c"].written().reshape(-1, 4).all(axis=1)
    assert known[256:512].all()
    assert not known[:256].any()
    assert not known[512:].any()
    got = outcome.buffers["c"].array(np.float32)[256:512]
    np.testing.assert_array_equal(got, case.expected["c"][256:512].astype(np.float32))


def test_executed_instructions_and_steps_are_reported() -> None:
    case = saxpy(n=64)
    kernel = compiled(case.file)
    outcome = emulate(kernel, case.launch)
    assert outcome.executed <= set(range(len(kernel.code)))
    assert {i for i, ins in enumerate(kernel.code) if ins.name == "ret"} & outcome.executed
    assert outcome.steps >= len(outcome.executed)


def test_poison_of_uninitialised_memory_is_configurable() -> None:
    case = matmul_tiled("matmul-tiled-uninit-bad", 16, 16, 8)
    kernel = compiled(case.file)
    contents = []
    for poison in (0, 0x3F8000003F800000):
        changed = type(case.launch)(**{**{f: getattr(case.launch, f) for f in case.launch.__slots__}, "poison": poison})
        outcome = emulate(kernel, changed)
        assert "uninitialised-read" in outcome.kinds()
        contents.append(outcome.buffers["C"].content())
    assert (contents[0] != contents[1]).any()
