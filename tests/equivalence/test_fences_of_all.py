"""A fence of every thread, then a barrier, then one thread's update: ordered by the order of the sc fences alone.

The threads' fences come before the update that the last CTA's read of the counter sees. Were its own fence before one
of them, the read would come before the update it reads from (PTX memory model, axiom Causality with Fence-SC).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from subjects import Subject, array, count, launch, verdict

from warpproof.core import Verdict

SOURCE = """
extern "C" __global__ void k(const float* __restrict__ x, float* part, unsigned* arrived, float* out, int n) {
    __shared__ unsigned last;
    const int t = threadIdx.x, i = blockIdx.x * 32 + t;
    part[i] = i < n ? x[i] * x[i] : 0.0f;
    __threadfence();
    __syncthreads();
    if (t == 0) last = atomicAdd(arrived, 1u) + 1u == gridDim.x;
    __syncthreads();
    if (!last) return;
    __threadfence();
    float v = 0.0f;
    for (unsigned b = 0; b < gridDim.x; ++b) v += part[b * 32 + t];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_down_sync(0xffffffffu, v, d);
    if (t == 0) { *out = v; *arrived = 0u; }
}"""
PARTS = {"name": "part", "kind": "ptr_inout", "dtype": "f32", "shape": ["((n + 31) // 32) * 32"], "scratch": True}
COUNTER = {"name": "arrived", "kind": "ptr_inout", "dtype": "u32", "shape": ["1"], "init": "zero"}
MANIFEST = launch([array("x", "in", "n"), PARTS, COUNTER, array("out", "out", "1"), count("n")],
                  {"n": [70, 33, 1000]}, "(n+31)//32", 32)


def squares(x: Any, **_: Any) -> dict[str, Any]:
    """The sum of the squares, and the counter as it was."""
    return {"out": np.sum(x * x).reshape(1), "arrived": np.zeros(1, np.uint32)}


FENCED = "    __threadfence();\n    __syncthreads();"
SUBJECT = Subject(SOURCE, (FENCED, "    __syncthreads();"), MANIFEST, squares)


def test_no_race_is_reported() -> None:
    assert verdict(SUBJECT, SOURCE) is not Verdict.REFUTED


def test_without_the_first_fence_there_is_one() -> None:
    assert FENCED in SOURCE
    assert verdict(SUBJECT, SOURCE.replace(*SUBJECT.fault)) is Verdict.REFUTED
