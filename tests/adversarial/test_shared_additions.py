"""Atomic additions to shared memory: wrong kernels whose sums would cancel if what an update adds were misread.

Only the proof is asked; sample runs would hide a wrong one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attempt import verdict

from warpproof.frontends import compile_cuda

pytest.importorskip("cuda.bindings.nvrtc")

MANIFEST = {
    "kernel": "k", "sizes": {"R": [3], "n": [5]}, "grid": ["R", "1", "1"], "block": [128, 1, 1],
    "preconditions": ["1 <= R", "R <= 2**20", "1 <= n", "n <= 2**20"], "dynamic_shared": "0",
    "params": [{"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": ["R", "n"]},
               {"name": "out", "kind": "ptr_out", "dtype": "f32", "shape": ["R"]},
               {"name": "n", "kind": "scalar", "dtype": "i32"}],
}
HEAD = 'extern "C" __global__ __launch_bounds__(128) void k(const float* x, float* out, int n) { x += (size_t)blockIdx.x * n;'


def sums(x: Any, **_: Any) -> dict[str, Any]:
    """The sum of each row."""
    return {"out": np.sum(x, axis=1)}


def zeros(x: Any, **_: Any) -> dict[str, Any]:
    """0 for each row."""
    return {"out": np.sum(x, axis=1) * 0}


LATE = HEAD + """
    __shared__ float s;
    float last = 0.0f;
    if (threadIdx.x == 0) s = 0.0f;
    #pragma unroll 1
    for (int i = 0; i < n; ++i) {
        __syncthreads();
        last = s;
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(&s, x[i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = s + last;
}
"""


@pytest.mark.parametrize("edit", [("= s + last", "= last"), ("= s + last", "= s - last"), ("s + last", "s + last")])
def test_an_iteration_sees_what_the_one_before_added_last(edit: tuple[str, str]) -> None:
    """`last` lacks the row's last element only; it is not what s held before the loop."""
    ptx = compile_cuda(LATE.replace(*edit)).text
    assert verdict(ptx, MANIFEST, sums) != "PROVED"
    assert verdict(ptx, MANIFEST, zeros) != "PROVED"


UNCLOSED = HEAD + """
    __shared__ float s, r, t, u;
    if (threadIdx.x == 0) s = r = t = u = 0.0f;
    __syncthreads();
    if (threadIdx.x == 0) {
        float v = 1.0f;
        #pragma unroll 1
        for (int i = 0; i < n; ++i) {
            atomicAdd(&s, v * x[i]);
            atomicAdd(&r, v);
            atomicAdd(&t, x[i]);
            atomicAdd(&u, 1.0f);
            STEP
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = s * u - r * t;
}
"""


def test_what_does_not_close_is_another_value_in_every_iteration() -> None:
    """Σ v·x · Σ 1 = Σ v · Σ x holds for a v that stays as it is, not for one that each iteration changes."""
    assert verdict(compile_cuda(UNCLOSED.replace("STEP", "")).text, MANIFEST, zeros) == "PROVED"
    assert verdict(compile_cuda(UNCLOSED.replace("STEP", "v = v * v + x[i];")).text, MANIFEST, zeros) != "PROVED"
