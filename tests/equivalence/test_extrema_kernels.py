"""Positions of extrema: a best value and its index carried through loops, shuffles and shared memory. Each kernel is
proved for all sizes; a replayed run refutes each of its wrong twins.

The references are NumPy's argmax and argmin, which give the first of equal positions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from subjects import Subject, array, count, launch, verdict

from warpproof.core import Verdict


@dataclass(frozen=True)
class Family:
    """A kernel with the edits that make it wrong, its launch and its reference."""

    source: str
    faults: tuple[tuple[str, str], ...]
    manifest: Mapping[str, Any]
    reference: Callable[..., Mapping[str, Any]]


def greatest(x: Any, at: Any, **_: Any) -> dict[str, Any]:
    """The first position of the greatest element of each row."""
    return {"at": np.argmax(x, axis=1)}


def least(x: Any, at: Any, **_: Any) -> dict[str, Any]:
    """The first position of the least element of each row."""
    return {"at": np.argmin(x, axis=1)}


def both(x: Any, v: Any, at: Any, **_: Any) -> dict[str, Any]:
    """The greatest element of each row and its first position."""
    return {"v": x.max(axis=1), "at": x.argmax(axis=1)}


X, AT, V = array("x", "in", "rows", "n"), array("at", "out", "rows", dtype="i32"), array("v", "out", "rows")
SIZES = {"rows": [2, 3], "n": [5, 300]}
ROWS = launch([X, AT, count("rows"), count("n")], SIZES, "(rows+127)//128", 128)
_ROW = """
extern "C" __global__ void k(const float* __restrict__ x, int* __restrict__ at, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* a = x + (size_t)r * n;
    BODY
    at[r] = best;
}"""

FAMILIES = {
    "from-the-first": Family(
        _ROW.replace("BODY", """float top = a[0];
    int best = 0;
    for (int j = 1; j < n; ++j) if (a[j] > top) { top = a[j]; best = j; }"""),
        (("> top", ">= top"), ("best = 0", "best = 1"), ("j = 1", "j = 2")), ROWS, greatest,
    ),
    "downwards": Family(
        _ROW.replace("BODY", """float top = -INFINITY;
    int best = -1;
    for (int j = n - 1; j >= 0; --j) { float v = a[j]; if (v >= top) { top = v; best = j; } }"""),
        ((">= top", "> top"), ("-INFINITY", "0.f")), ROWS, greatest,
    ),
    "from-the-last": Family(
        _ROW.replace("BODY", """float top = a[n - 1];
    int best = n - 1;
    for (int j = n - 2; j >= 0; --j) if (a[j] >= top) { top = a[j]; best = j; }"""),
        ((">= top", "> top"),), ROWS, greatest,
    ),
    "least-first": Family(
        _ROW.replace("BODY", """float top = INFINITY;
    int best = 0;
    for (int j = 0; j < n; ++j) if (a[j] < top) { top = a[j]; best = j; }"""),
        (("< top", "<= top"), ("INFINITY", "0.f"), ("best = j", "best = j + 1")), ROWS, least,
    ),
    "ties-told-apart": Family(
        _ROW.replace("BODY", """float top = -INFINITY;
    int best = n;
#pragma unroll 1
    for (int j = n - 1; j >= 0; --j) {
        float v = a[j];
        if (v > top || (v == top && j < best)) { top = v; best = j; }
    }"""),
        (("j < best", "j > best"),), ROWS, greatest,
    ),
    "two-accumulators": Family(
        _ROW.replace("BODY", """float p = -INFINITY, q = -INFINITY;
    int best = 0, other = 0;
#pragma unroll 1
    for (int j = 0; j < n; j += 2) {
        if (a[j] > p) { p = a[j]; best = j; }
        if (j + 1 < n && a[j + 1] > q) { q = a[j + 1]; other = j + 1; }
    }
    if (q > p || (q == p && other < best)) best = other;"""),
        (("other < best", "other > best"),), ROWS, greatest,
    ),
    "warp": Family(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ v, int* __restrict__ at, int n) {
    const float* a = x + (size_t)blockIdx.x * n;
    float top = -INFINITY;
    int best = 0x7fffffff;
    for (int j = threadIdx.x; j < n; j += 32) if (a[j] > top) { top = a[j]; best = j; }
    for (int d = 16; d; d >>= 1) {
        float w = __shfl_xor_sync(~0u, top, d);
        int i = __shfl_xor_sync(~0u, best, d);
        if (w > top || (w == top && i < best)) { top = w; best = i; }
    }
    if (threadIdx.x == 0) { v[blockIdx.x] = top; at[blockIdx.x] = best; }
}""",
        ((" || (w == top && i < best)", ""), ("i < best", "i > best"), ("a[j] > top", "a[j] >= top"),
         ("d = 16", "d = 8")),
        launch([X, V, AT, count("n")], SIZES, "rows", 32), both,
    ),
    "tree": Family(
        """
extern "C" __global__ void k(const float* __restrict__ x, int* __restrict__ at, int n) {
    __shared__ float top[128];
    __shared__ int best[128];
    const float* a = x + (size_t)blockIdx.x * n;
    int t = threadIdx.x, i = 0;
    float m = INFINITY;
    for (int j = t; j < n; j += 128) { float v = a[j]; if (v < m) { m = v; i = j; } }
    top[t] = m; best[t] = i;
    __syncthreads();
    for (int s = 64; s > 0; s >>= 1) {
        if (t < s) {
            float w = top[t + s];
            int k = best[t + s];
            if (w < top[t] || (w == top[t] && k < best[t])) { top[t] = w; best[t] = k; }
        }
        __syncthreads();
    }
    if (t == 0) at[blockIdx.x] = best[0];
}""",
        ((" || (w == top[t] && k < best[t])", ""), ("s > 0", "s > 1")),
        launch([X, AT, count("n")], SIZES, "rows", 128), least,
    ),
    "warps-of-a-block": Family(
        """
extern "C" __global__ void k(const float* __restrict__ x, int* __restrict__ at, int n) {
    __shared__ float top[4];
    __shared__ int best[4];
    const float* a = x + (size_t)blockIdx.x * n;
    int t = threadIdx.x, i = 0;
    float m = -INFINITY;
    for (int j = t; j < n; j += 128) { float v = a[j]; if (v > m) { m = v; i = j; } }
    for (int d = 16; d; d >>= 1) {
        float w = __shfl_down_sync(~0u, m, d);
        int k = __shfl_down_sync(~0u, i, d);
        if (w > m || (w == m && k < i)) { m = w; i = k; }
    }
    if (t % 32 == 0) { top[t / 32] = m; best[t / 32] = i; }
    __syncthreads();
    if (t < 32) {
        m = t < 4 ? top[t] : -INFINITY;
        i = t < 4 ? best[t] : 0;
        for (int d = 2; d; d >>= 1) {
            float w = __shfl_down_sync(~0u, m, d);
            int k = __shfl_down_sync(~0u, i, d);
            if (w > m || (w == m && k < i)) { m = w; i = k; }
        }
        if (t == 0) at[blockIdx.x] = i;
    }
}""",
        (("t < 4 ? top[t]", "t < 3 ? top[t]"), ("d = 2", "d = 1")),
        launch([X, AT, count("n")], SIZES, "rows", 128), greatest,
    ),
}


def subject(family: Family) -> Subject:
    """The family as one subject."""
    return Subject(family.source, family.faults[0], family.manifest, family.reference)


@pytest.mark.parametrize("edit", [("-INFINITY", "-1e30f"), ("j = n - 1", "j = n - 2"), ("best = -1", "best = 0")])
def test_what_may_not_be_the_greatest_is_not_proved(edit: tuple[str, str]) -> None:
    """A start value that elements may be below, and one element left out; the start position alone does not matter."""
    family = FAMILIES["downwards"]
    source = family.source.replace(*edit)
    assert source != family.source
    assert (verdict(subject(family), source, 120.0) is Verdict.PROVED) == (edit[0] == "best = -1")


@pytest.mark.parametrize("name", FAMILIES)
def test_the_kernel_is_proved_for_all_sizes(name: str) -> None:
    family = FAMILIES[name]
    assert verdict(subject(family), family.source) is Verdict.PROVED


@pytest.mark.parametrize(("name", "fault"), [(n, f) for n, family in FAMILIES.items() for f in family.faults])
def test_the_wrong_twin_is_refuted(name: str, fault: tuple[str, str]) -> None:
    family = FAMILIES[name]
    source = family.source.replace(*fault)
    assert source != family.source
    assert verdict(subject(family), source, 120.0) is Verdict.REFUTED
