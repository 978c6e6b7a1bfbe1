"""Prefix sums of rows of any length: one thread a row, warps, shared-memory trees, with a carry from tile to tile.

The references are NumPy's cumsum and cumprod. Wrong twins leave out the carry, an element, or include one too many.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest
from subjects import Subject, array, count, launch, verdict

from warpproof.core import Verdict

TILED: Final = """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int n) {
    __shared__ float s[WIDTH];
    const float* a = x + (size_t)blockIdx.x * n;
    float* b = y + (size_t)blockIdx.x * n;
    int t = threadIdx.x;
    float carry = 0.f;
    for (int base = 0; base < n; base += WIDTH) {
        int i = base + t;
        float v = i < n ? a[i] : 0.f;
        BODY
        __syncthreads();
    }
}"""
SERIAL: Final = """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int rows, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= rows) return;
    const float* a = x + (size_t)r * n;
    float* b = y + (size_t)r * n;
    BODY
}"""
WARP: Final = """
#pragma unroll
for (int d = 1; d < 32; d <<= 1) { float u = __shfl_up_sync(~0u, v, d); if (t >= d) v += u; }
if (i < n) b[i] = v + carry;
carry += __shfl_sync(~0u, v, 31);"""
HILLIS_STEELE: Final = """
s[t] = v;
__syncthreads();
#pragma unroll
for (int d = 1; d < WIDTH; d <<= 1) {
    float u = t >= d ? s[t - d] : 0.f;
    __syncthreads();
    s[t] += u;
    __syncthreads();
}
if (i < n) b[i] = s[t] + carry;
carry += s[WIDTH - 1];"""
BLELLOCH: Final = """
s[t] = v;
__syncthreads();
#pragma unroll
for (int d = 1; d < WIDTH; d <<= 1) {
    if ((t + 1) % (2 * d) == 0) s[t] += s[t - d];
    __syncthreads();
}
float total = s[WIDTH - 1];
__syncthreads();
if (t == WIDTH - 1) s[t] = 0.f;
__syncthreads();
#pragma unroll
for (int d = WIDTH / 2; d > 0; d >>= 1) {
    if ((t + 1) % (2 * d) == 0) { float u = s[t - d]; s[t - d] = s[t]; s[t] += u; }
    __syncthreads();
}
if (i < n) b[i] = s[t] + v + carry;
carry += total;"""
WARP_TOTALS: Final = """
int lane = t & 31, warp = t >> 5;
#pragma unroll
for (int d = 1; d < 32; d <<= 1) { float u = __shfl_up_sync(~0u, v, d); if (lane >= d) v += u; }
if (lane == 31) s[warp] = v;
__syncthreads();
float before = carry;
#pragma unroll
for (int q = 0; q < WIDTH / 32; ++q) { if (q < warp) before += s[q]; carry += s[q]; }
if (i < n) b[i] = v + before;"""


def cumsum(x: Any, y: Any, n: Any) -> dict[str, Any]:
    """Inclusive sums along each row."""
    return {"y": np.cumsum(x, axis=1)}


def tiled(body: str, width: int, fault: tuple[str, str]) -> Subject:
    """One block a row, tile after tile."""
    rows = launch([array("x", "in", "rows", "n"), array("y", "out", "rows", "n"), count("n")],
                  {"rows": [1, 2], "n": [5, 150]}, "rows", width)
    return Subject(TILED.replace("BODY", body).replace("WIDTH", str(width)),
                   (fault[0].replace("WIDTH", str(width)), fault[1].replace("WIDTH", str(width))), rows, cumsum)


def serial(body: str, fault: tuple[str, str], reference: Any) -> Subject:
    """One thread a row."""
    rows = launch([array("x", "in", "rows", "n"), array("y", "out", "rows", "n"), count("rows"), count("n")],
                  {"rows": [2, 3], "n": [5, 70]}, "(rows+127)//128", 128)
    return Subject(SERIAL.replace("BODY", body), fault, rows, reference)


SUBJECTS = {
    "serial": serial("float s = 0.f; for (int i = 0; i < n; ++i) { s += a[i]; b[i] = s; }", ("s += a[i]; b[i] = s;",
                     "b[i] = s; s += a[i];"), lambda x, y, rows, n: {"y": np.cumsum(x, axis=1)}),
    "product": serial("float s = 1.f; for (int i = 0; i < n; ++i) { s *= a[i]; b[i] = s; }", ("s = 1.f", "s = a[0]"),
                      lambda x, y, rows, n: {"y": np.cumprod(x, axis=1)}),
    "warp": tiled(WARP, 32, ("carry += __shfl_sync(~0u, v, 31)", "carry = __shfl_sync(~0u, v, 31)")),
    "warp, last lane": tiled(WARP, 32, ("v, 31", "v, 30")),
    "warp, a step short": tiled(WARP, 32, ("t >= d", "t > d")),
    "Hillis-Steele": tiled(HILLIS_STEELE, 64, ("carry += s[WIDTH - 1];", "")),
    "Hillis-Steele, unordered": tiled(HILLIS_STEELE, 64, ("0.f;\n    __syncthreads();", "0.f;")),
    "Blelloch": tiled(BLELLOCH, 64, ("s[t] + v + carry", "s[t] + carry")),
    "warp totals": tiled(WARP_TOTALS, 64, ("q < warp", "q <= warp")),
}


@pytest.mark.parametrize("name", [n for n in SUBJECTS if "," not in n])
def test_the_scan_is_proved_for_all_lengths(name: str) -> None:
    subject = SUBJECTS[name]
    assert verdict(subject, subject.source) is Verdict.PROVED


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_wrong_twin_is_refuted(name: str) -> None:
    subject = SUBJECTS[name]
    source = subject.source.replace(*subject.fault)
    assert source != subject.source
    assert verdict(subject, source) is Verdict.REFUTED
