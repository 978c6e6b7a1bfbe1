"""Random references: what is traced agrees with NumPy at every size tried, all else is an error with a code."""

from __future__ import annotations

import contextlib

import pytest
from agreement import assert_agrees, buffer, launch_of
from random_references import compiled

from warpproof.core import InputError, Unsupported

LAUNCH = launch_of(
    [
        buffer("x", "n", "m"),
        buffer("w", "m"),
        buffer("k", "n", dtype="i32", range=["0", "m"]),
        buffer("y", "n", "m", kind="ptr_out"),
        buffer("z", "n", kind="ptr_out"),
    ],
    ["n", "m"],
    ["n >= 1", "m >= 1", "n <= 1000", "m <= 1000"],
)
SIZES = [{"n": 3, "m": 4}, {"n": 1, "m": 1}, {"n": 4, "m": 2}, {"n": 2, "m": 3}]
FOUND = (506, 3873)  # a fold without its lower bound, when a closed variable was put into a fold of an inner loop


@pytest.mark.parametrize("seed", [*range(60), *FOUND])
def test_random_reference(seed: int) -> None:
    _, reference = compiled(seed)
    expected = () if seed in FOUND else (InputError, Unsupported)
    with contextlib.suppress(*expected):
        assert_agrees(reference, LAUNCH, SIZES, seed)


def test_most_random_references_are_traced() -> None:
    traced = 0
    for seed in range(100, 140):
        try:
            assert_agrees(compiled(seed)[1], LAUNCH, SIZES[:1], seed)
            traced += 1
        except (InputError, Unsupported):
            continue
    assert traced >= 20
