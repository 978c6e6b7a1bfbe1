"""Where a random kernel is shown to be free of races and barrier faults, no run of it has any."""

from __future__ import annotations

import pytest
from random_sharing import sample


@pytest.mark.parametrize("seed", range(140, 220, 20))
def test_random_sharing(seed: int) -> None:
    safe = 0
    for k in range(seed, seed + 20):
        s = sample(k)
        if s.safe():
            safe += 1
            assert s.fault() == "", f"seed {k}\n{s.text}"
    assert safe
