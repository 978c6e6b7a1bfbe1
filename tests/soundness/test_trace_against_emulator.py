"""The symbolic trace, evaluated at concrete sizes, says exactly what the bit-exact emulator does.

Every recorded store and load (which elements, which values) is evaluated by an independent evaluator. A difference is a
soundness bug of the symbolic machine, unless the trace itself leaves a condition open or reports a hazard.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from random_kernels import random_kernel
from random_loops import random_loops
from small_kernels import SMALL, Small
from trace_runs import Comparison, acceptance, compare, symbolic
from trace_values import Leftover

from warpproof.core import Unsupported

pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")

COMPILED: dict[str, dict[str, int]] = {
    "vadd": {"n": 700}, "saxpy": {"n": 150}, "scale4": {"n": 1003}, "embedding": {"tokens": 6, "vocab": 9, "dim": 33},
    "transpose-pad": {"height": 20, "width": 37}, "bias-gelu": {"rows": 2, "width": 64}, "big-constant": {"n": 100},
    "warp-mirror": {"groups": 3}, "matmul-naive": {"M": 5, "N": 9, "K": 5}, "matmul-tiled": {"M": 18, "N": 21, "K": 19},
    "rowsum-shfl": {"rows": 2, "n": 70, "pitch": 80}, "center-tree": {"rows": 1, "n": 300},
    "rmsnorm-tree": {"rows": 1, "n": 40}, "layernorm-2pass": {"rows": 4, "n": 45},
    "softmax-3pass": {"rows": 1, "n": 70},
    "softmax-unshifted": {"rows": 1, "n": 40}, "cross-entropy": {"rows": 2, "classes": 33},
    "int4-dequant": {"rows": 2, "cols": 64, "group": 64, "words": 16}, "variance-onepass": {"rows": 2, "n": 40},
    "bmm-strided": {"batch": 1, "M": 3, "N": 10, "K": 6, "lda": 7, "ldb": 12}, "cumsum": {"rows": 1, "n": 50},
    "maxpool": {"planes": 1, "H": 9, "W": 7, "OH": 5, "OW": 4, "k": 3, "s": 2, "p": 1},
    "sgemm-prefetch": {"M": 32, "N": 32, "K": 16}, "sgemm-ragged": {"M": 20, "N": 37, "K": 11},
    "splitk-atomic": {"M": 3, "N": 5, "K": 23, "splits": 4},
    "softmax-online": {"rows": 1, "n": 40}, "kahan-sum": {"rows": 20, "cols": 5}, "triton-vadd": {"n": 600},
    "half-roundtrip": {"n": 200}, "mma-tf32": {"M": 16, "N": 8, "K": 16}, "mma-ldmatrix": {"M": 32, "N": 32, "K": 16},
    "triton-matmul-sm80": {"M": 32, "N": 32, "K": 32}, "triton-softmax": {"rows": 2, "row_stride": 17, "n": 17},
    "triton-layernorm": {"rows": 2, "n": 20}, "wmma-bf16": {"M": 16, "N": 32, "K": 16},
    "bf16-accumulate": {"rows": 20, "cols": 40},
    "conv2d-flat": {"B": 1, "Ci": 2, "Co": 2, "H": 5, "W": 6, "R": 3, "S": 2, "ph": 1, "pw": 0},
    # wrong kernels: the trace says what they do, too
    "vadd-bad": {"n": 700}, "scale4-bad": {"n": 1003}, "transpose-pad-bad": {"height": 20, "width": 37},
    "bias-gelu-bad": {"rows": 2, "width": 64}, "matmul-naive-bad": {"M": 5, "N": 9, "K": 5},
    "matmul-tiled-oob-bad": {"M": 18, "N": 21, "K": 19}, "matmul-tiled-uninit-bad": {"M": 18, "N": 21, "K": 19},
    "rowsum-shfl-bad": {"rows": 2, "n": 20, "pitch": 24}, "rmsnorm-tree-bad": {"rows": 1, "n": 40},
    "layernorm-2pass-bad": {"rows": 4, "n": 45}, "warp-mirror-bad": {"groups": 3},
    "center-tree-bad": {"rows": 1, "n": 40},
    "softmax-3pass-bad": {"rows": 1, "n": 70},
}
ROUNDED = dict.fromkeys(("half-roundtrip", "mma-tf32", "mma-ldmatrix", "wmma-bf16", "bf16-accumulate"), 2e-2)
UNCLOSED = {"cumsum", "kahan-sum", "bf16-accumulate", "matmul-tiled-oob-bad", "matmul-tiled-uninit-bad"}
"""Kernels in which some stored values are not known: no closed form, or undefined."""


def disagreement(c: Comparison) -> str:
    """What is wrong with a comparison, for the assertion's message; empty when nothing is."""
    if c.unflagged:
        return f"the run shows faults that the trace does not: {c.unflagged[:3]}"
    if c.wrong and not (c.findings and c.flagged):
        return "; ".join(c.wrong[:3])
    return ""


@pytest.mark.parametrize("name", sorted(COMPILED))
def test_compiled_kernels(name: str) -> None:
    run = symbolic(*acceptance(name))
    c = compare(run, COMPILED[name], tolerance=ROUNDED.get(name, 0.0))
    assert not disagreement(c)
    if not name.endswith("-bad"):
        assert c.stores
        assert name in UNCLOSED or not c.undefined
        real = [v for v in c.violated if not v.startswith(("finite", "no opposite", "below infinity"))]
        assert not real


@pytest.mark.parametrize("name", sorted(SMALL))
def test_small_kernels(name: str) -> None:
    kernel = SMALL[name]
    run = symbolic(kernel.ptx(), kernel.manifest())
    for n in kernel.sizes:
        c = compare(run, {"n": n})
        assert not disagreement(c), n
        assert not c.violated, n
        assert c.stores, n
        assert kernel.undefined or not c.undefined, n
    for n in kernel.flagged:
        assert compare(run, {"n": n}).violated, f"nothing is open at n = {n}"


@pytest.mark.parametrize(("make", "first"), [(random_kernel, k) for k in (0, 8, 16, 40)] + [(random_loops, 8)])
def test_random_kernels(make: Callable[[int], Small], first: int) -> None:
    compared = 0
    for seed in range(first, first + 8):
        kernel = make(seed)
        try:
            run = symbolic(kernel.ptx(), kernel.manifest())
            for n in kernel.sizes:
                c = compare(run, {"n": n})
                assert not c.unflagged, (seed, n, c.unflagged)
                assert not c.wrong or c.flagged, (seed, n, c.wrong)
                compared += 1
        except (Unsupported, Leftover):
            continue
    assert compared >= 2
