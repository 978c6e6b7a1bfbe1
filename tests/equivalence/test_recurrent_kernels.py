"""Loops whose carried values need more than a sum or a maximum: rescaled sums, values read one iteration ahead, library
calls; each proved for all sizes, with a wrong twin that a replayed run refutes.

The references are plain NumPy over float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from subjects import Subject, array, count, launch, verdict

from warpproof.core import Verdict


def logsumexp(x: Any, y: Any, n: Any) -> dict[str, Any]:
    """log Σ exp of each row."""
    top = x.max(axis=1)
    return {"y": np.log(np.exp(x - top[:, None]).sum(axis=1)) + top}


def weighted(x: Any, w: Any, y: Any, n: Any) -> dict[str, Any]:
    """Row sums weighted by w."""
    return {"y": x @ w}


def row_sums(x: Any, y: Any, n: Any) -> dict[str, Any]:
    """Row sums."""
    return {"y": x.sum(axis=1)}


def running_maximum(x: Any, y: Any, rows: Any, n: Any) -> dict[str, Any]:
    """The greatest element so far along each row."""
    before = np.arange(n)[None, :] <= np.arange(n)[:, None]
    return {"y": np.where(before[None], x[:, None, :], -np.inf).max(axis=2)}


def statistics(x: Any, mean: Any, variance: Any, rows: Any, n: Any) -> dict[str, Any]:
    """Mean and variance of each row."""
    return {"mean": x.mean(axis=1), "variance": x.var(axis=1)}


def normalised(x: Any, y: Any, rows: Any, n: Any) -> dict[str, Any]:
    """Each row less its mean, over its standard deviation."""
    centred = x - x.mean(axis=1, keepdims=True)
    return {"y": centred / np.sqrt(x.var(axis=1, keepdims=True) + np.float32(1e-5))}


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
    "several-exits": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    const float* row = x + (size_t)blockIdx.x * n;
    float s = 0.f;
    for (int base = 0; base < n; base += 64) {
        int i = base + threadIdx.x;
        if (i >= n) break;
        s += row[i];
        if (i + 32 >= n) break;
        s += row[i + 32];
    }
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x == 0) y[blockIdx.x] = s;
}""",
        ("i + 32 >= n", "i + 33 >= n"),
        launch([array("x", "in", "rows", "n"), array("y", "out", "rows"), count("n")], {"rows": [2, 3], "n": [5, 150]},
               "rows", 32),
        row_sums,
    ),
    "running-maximum": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float m = -INFINITY;
    for (int i = 0; i < n; ++i) { m = fmaxf(m, x[(size_t)r * n + i]); y[(size_t)r * n + i] = m; }
}""",
        ("m = -INFINITY", "m = 0.f"),
        launch([array("x", "in", "rows", "n"), array("y", "out", "rows", "n"), count("rows"), count("n")],
               {"rows": [2, 3], "n": [5, 70]}, "(rows+127)//128", 128),
        running_maximum,
    ),
    "welford": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ mean, float* __restrict__ variance,
                             int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    float m = 0.f, q = 0.f;
    for (int i = 0; i < n; ++i) {
        float v = x[(size_t)r * n + i], d = v - m;
        m += d / (i + 1);
        q += d * (v - m);
    }
    mean[r] = m; variance[r] = q / n;
}""",
        ("q += d * (v - m);", "q += d * d;"),
        launch([array("x", "in", "rows", "n"), array("mean", "out", "rows"), array("variance", "out", "rows"),
                count("rows"), count("n")], {"rows": [2, 3], "n": [5, 70]}, "(rows+127)//128", 128),
        statistics,
    ),
    "welford-layernorm": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* a = x + (size_t)r * n;
    float m = 0.f, q = 0.f, c = 0.f;
    for (int i = 0; i < n; ++i) { c += 1.f; float d = a[i] - m; m += d / c; q += d * (a[i] - m); }
    float scale = rsqrtf(q / n + 1e-5f);
    for (int i = 0; i < n; ++i) y[(size_t)r * n + i] = (a[i] - m) * scale;
}""",
        ("m += d / c;", "m += d / n;"),
        launch([array("x", "in", "rows", "n"), array("y", "out", "rows", "n"), count("rows"), count("n")],
               {"rows": [2, 3], "n": [5, 70]}, "(rows+127)//128", 128),
        normalised,
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
