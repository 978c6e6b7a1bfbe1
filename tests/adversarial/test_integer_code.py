"""Integers of the symbolic run are those of the bit-exact emulator, wherever the run's conditions hold."""

from __future__ import annotations

import pytest
from random_integers import run


@pytest.mark.parametrize("seed", range(0, 150, 10))
def test_random_integer_code(seed: int) -> None:
    compared = 0
    for k in range(seed, seed + 10):
        for place, symbolic, exact in run(k):
            assert symbolic == exact, f"seed {k}: {symbolic:#x}, not {exact:#x}, at {place}"
            compared += 1
    assert compared
