"""Device functions that are not inlined are executed in place; wrong twins are refuted."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpproof.api import Job, prove
from warpproof.core import Verdict

LAUNCH = """{"kernel": "k", "params": [
  {"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": ["n"]},
  {"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": ["n"]},
  {"name": "s", "kind": "scalar", "dtype": "f32"}, {"name": "n", "kind": "scalar", "dtype": "i32"}],
 "sizes": {"n": [10, 300]}, "preconditions": ["n >= 1", "n <= 2**30"],
 "grid": ["(n + 127) // 128", "1", "1"], "block": [128, 1, 1], "dynamic_shared": "0"}"""

SPEC = """import numpy as np

def reference(x, s, n):
    x = np.asarray(x, np.float64)
    return {"y": np.where(x > 0, x * s, x) + 1.0}
"""

KERNEL = """
__device__ __noinline__ float twice(float v) { return v + v; }
__device__ __noinline__ float scale(float v, float s) { if (v > 0.0f) return 0.5f * twice(v * s); return v; }
extern "C" __global__ void k(const float* x, float* y, float s, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = scale(x[i], s) + 1.0f;
}
"""

WRONG = {
    "argument": ("scale(x[i], s)", "scale(s, x[i])"),
    "result": ("return v + v;", "return v + v + v;"),
    "early return": ("return v; }", "return -v; }"),
}


def _prove(folder: Path, source: str) -> Verdict:
    for name, text in (("kernel.cu", source), ("spec.py", SPEC), ("launch.json", LAUNCH)):
        (folder / name).write_text(text)
    job = Job(spec=str(folder / "spec.py"), kernel=str(folder / "kernel.cu"), launch=str(folder / "launch.json"),
              timeout_s=40)
    return prove(job, lambda stage: None).verdict


def test_nested_calls_are_proved(tmp_path: Path) -> None:
    assert _prove(tmp_path, KERNEL) is Verdict.PROVED


@pytest.mark.parametrize("what", WRONG)
def test_wrong_functions_are_refuted(tmp_path: Path, what: str) -> None:
    old, new = WRONG[what]
    assert old in KERNEL
    assert _prove(tmp_path, KERNEL.replace(old, new)) is Verdict.REFUTED
