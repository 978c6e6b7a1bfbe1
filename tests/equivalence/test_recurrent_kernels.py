"""Loops whose carried values need more than a sum or a maximum: rescaled sums, values read one iteration ahead, library
calls; each proved for all sizes, with a wrong twin that a replayed run refutes.

The references are plain NumPy over float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from warpproof.core import Verdict
from warpproof.frontends import compile_cuda
from warpproof.proving import Task, prove
from warpproof.ptx import parse, resolve
from warpproof.reference import load_launch


@dataclass(frozen=True)
class Subject:
    """A kernel, what makes it wrong (text and its replacement), its launch and its reference."""

    source: str
    fault: tuple[str, str]
    manifest: Mapping[str, Any]
    reference: Callable[..., Mapping[str, Any]]


def array(name: str, kind: str, *shape: str) -> dict[str, Any]:
    """An f32 buffer in the launch manifest."""
    return {"name": name, "kind": f"ptr_{kind}", "dtype": "f32", "shape": list(shape)}


def count(name: str) -> dict[str, Any]:
    """A size in the launch manifest."""
    return {"name": name, "kind": "scalar", "dtype": "i32"}


def launch(params: list[dict[str, Any]], sizes: dict[str, list[int]], grid: str, block: int) -> dict[str, Any]:
    """The launch manifest; every size is at least 1 and at most a million."""
    bounds = [f"{name} {text}" for name in sizes for text in (">= 1", "<= 2**20")]
    return {"kernel": "k", "params": params, "sizes": sizes, "preconditions": bounds, "grid": [grid, "1", "1"],
            "block": [block, 1, 1], "dynamic_shared": "0"}


def logsumexp(x: Any, y: Any, n: Any) -> dict[str, Any]:
    """log Σ exp of each row."""
    top = x.max(axis=1)
    return {"y": np.log(np.exp(x - top[:, None]).sum(axis=1)) + top}


def weighted(x: Any, w: Any, y: Any, n: Any) -> dict[str, Any]:
    """Row sums weighted by w."""
    return {"y": x @ w}


def swish(x: Any, y: Any, n: Any) -> dict[str, Any]:
    """x · sigmoid(x)."""
    return {"y": x / (1 + np.exp(-x))}


SUBJECTS = {
    "rescaled-sum": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    const float* row = x + (size_t)blockIdx.x * n;
    float m = -INFINITY, s = 0.f;
    for (int i = threadIdx.x; i < n; i += 32) {
        float v = row[i], next = fmaxf(m, v);
        s = s * __expf(m - next) + __expf(v - next);
        m = next;
    }
    float all = m;
    for (int d = 1; d < 32; d *= 2) all = fmaxf(all, __shfl_xor_sync(~0u, all, d));
    s *= __expf(m - all);
    for (int d = 1; d < 32; d *= 2) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x == 0) y[blockIdx.x] = __logf(s) + all;
}""",
        ("s *= __expf(m - all);", ""),
        launch([array("x", "in", "rows", "n"), array("y", "out", "rows"), count("n")], {"rows": [2, 3], "n": [5, 70]},
               "rows", 32),
        logsumexp,
    ),
    "read-ahead": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int n) {
    const float* row = x + (size_t)blockIdx.x * n;
    float s = 0.f;
    int i = threadIdx.x;
    float a = i < n ? row[i] : 0.f, b = i < n ? w[i] : 0.f;
    for (int t = 0; t < n; t += 32) {
        float c = 0.f, d = 0.f;
        int next = t + 32 + threadIdx.x;
        if (next < n) { c = row[next]; d = w[next]; }
        s += a * b;
        a = c; b = d;
    }
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}""",
        ("s += a * b;", "s += a * d;"),
        launch([array("x", "in", "rows", "n"), array("w", "in", "n"), array("y", "out", "rows"), count("n")],
               {"rows": [2, 3], "n": [5, 70]}, "rows", 32),
        weighted,
    ),
    "library-exponential": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.f + expf(-x[i]));
}""",
        ("expf(-x[i])", "exp2f(-x[i])"),
        launch([array("x", "in", "n"), array("y", "out", "n"), count("n")], {"n": [5, 300]}, "(n+63)//64", 64),
        swish,
    ),
}


def verdict(subject: Subject, source: str) -> Verdict:
    """The verdict on a source under the subject's launch."""
    text = compile_cuda(source, kernel="k").text
    manifest = load_launch(subject.manifest)
    kernel = resolve(parse(text, "k.ptx"), "k")
    return prove(Task(kernel, manifest, subject.reference, text, "k.ptx", {}, 120.0), lambda stage: None).verdict


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_kernel_is_proved_for_all_sizes(name: str) -> None:
    subject = SUBJECTS[name]
    assert verdict(subject, subject.source) is Verdict.PROVED


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_wrong_twin_is_refuted(name: str) -> None:
    subject = SUBJECTS[name]
    source = subject.source.replace(*subject.fault)
    assert source != subject.source
    assert verdict(subject, source) is Verdict.REFUTED
