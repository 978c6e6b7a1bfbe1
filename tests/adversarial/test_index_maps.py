"""Where a random index map is proved to store every element once and nothing else, it does so at every size."""

from __future__ import annotations

import pytest
from random_stores import sample


@pytest.mark.parametrize("seed", range(0, 60, 20))
def test_random_index_maps(seed: int) -> None:
    proved = 0
    for k in range(seed, seed + 20):
        s = sample(k)
        if s.verdict() == "PROVED":
            proved += 1
            assert s.fault() == "", f"seed {k}\n{s.text}"
    assert proved
