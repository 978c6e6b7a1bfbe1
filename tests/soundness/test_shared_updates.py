"""What a symbolic run says of atomic additions to shared memory, against bit-exact runs of random kernels."""

from __future__ import annotations

import pytest
from random_updates import manifest, random_updates
from trace_runs import compare, symbolic
from trace_values import Leftover

from warpproof.core import Unsupported
from warpproof.frontends import compile_cuda

pytest.importorskip("cuda.bindings.nvrtc")


@pytest.mark.parametrize("first", [0, 60, 90])
def test_recorded_sums_are_what_the_run_leaves(first: int) -> None:
    compared = 0
    for seed in range(first, first + 30):
        source = random_updates(seed)
        try:
            run = symbolic(compile_cuda(source).text, manifest(source))
            for n in (1, 5, 70):
                c = compare(run, {"n": n})
                assert not c.unflagged, (seed, n, c.unflagged)
                assert not c.wrong or c.flagged, (seed, n, c.wrong)
                compared += bool(run.trace.updates)
        except (Unsupported, Leftover):
            continue
    assert compared >= 15
