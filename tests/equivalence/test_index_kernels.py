"""Index arithmetic by sizes that are symbols: flat indices taken apart by quotients and remainders, windows with
padding and stride, regrouped program ids. Each is proved for all sizes; a replayed run refutes its wrong twin.

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


def counts(names: str, dtype: str = "i32") -> list[dict[str, Any]]:
    """Integer parameters in the launch manifest."""
    return [{"name": name, "kind": "scalar", "dtype": dtype} for name in names.split()]


def launch(
    params: list[dict[str, Any]], sizes: dict[str, list[int]], limits: list[str], grid: list[str], block: int
) -> dict[str, Any]:
    """The launch manifest."""
    return {"kernel": "k", "params": params, "sizes": sizes, "preconditions": limits, "grid": grid,
            "block": [block, 1, 1], "dynamic_shared": "0"}


def batchnorm(x: Any, g: Any, b: Any, y: Any, **sizes: Any) -> dict[str, Any]:
    """Scale and shift by channel."""
    return {"y": np.asarray(x, np.float64) * g[None, :, None] + b[None, :, None]}


def to_channels_last(x: Any, N: Any, C: Any, P: Any) -> dict[str, Any]:
    """NCP to NPC."""
    return {"y": np.transpose(np.asarray(x, np.float64), (0, 2, 1))}


def depthwise(x: Any, w: Any, planes: Any, H: Any, W: Any, OH: Any, OW: Any, s: Any, p: Any) -> dict[str, Any]:
    """A 3 x 3 window of each plane, stride s, padding p."""
    x = np.pad(np.asarray(x, np.float64), ((0, 0), (p, p), (p, p)))
    y = np.zeros((planes, OH, OW))
    for r in range(3):
        for c in range(3):
            y = y + w[:, r, c][:, None, None] * x[:, r:r + (OH - 1) * s + 1:s, c:c + (OW - 1) * s + 1:s]
    return {"y": y}


def upsampled(x: Any, planes: Any, H: Any, W: Any, f: Any) -> dict[str, Any]:
    """Each pixel f x f times."""
    return {"y": np.repeat(np.repeat(np.asarray(x, np.float64), f, axis=1), f, axis=2)}


def reversed_rows(x: Any, rows: Any, n: Any) -> dict[str, Any]:
    """Each row from its end."""
    return {"y": np.asarray(x, np.float64)[:, ::-1]}


def seven_point(x: Any, D: Any, H: Any, W: Any) -> dict[str, Any]:
    """The sum of the neighbours in three dimensions less six times the cell, zero outside."""
    x = np.pad(np.asarray(x, np.float64), 1)
    c = x[1:D + 1, 1:H + 1, 1:W + 1]
    return {"y": x[:D, 1:H + 1, 1:W + 1] + x[2:, 1:H + 1, 1:W + 1] + x[1:D + 1, :H, 1:W + 1] + x[1:D + 1, 2:, 1:W + 1]
            + x[1:D + 1, 1:H + 1, :W] + x[1:D + 1, 1:H + 1, 2:] - 6 * c}


def doubled(x: Any, rows: Any, n: Any) -> dict[str, Any]:
    """Twice x."""
    return {"y": 2 * np.asarray(x, np.float64)}


def added(x: Any, b: Any, M: Any, N: Any) -> dict[str, Any]:
    """A row vector added to each row."""
    return {"y": np.asarray(x, np.float64) + b}


NCHW = ["N >= 1", "C >= 1", "P >= 1", "N <= 512", "C <= 512", "P <= 4096"]
WINDOW = ["planes >= 1", "planes <= 1024", "H >= 1", "W >= 1", "H <= 512", "W <= 512", "s >= 1", "s <= 4", "p >= 0",
          "p <= 1", "3 <= H + 2 * p", "3 <= W + 2 * p",
          "OH == (H + 2 * p - 3) // s + 1", "OW == (W + 2 * p - 3) // s + 1"]

SUBJECTS = {
    "batchnorm": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, const float* __restrict__ g, const float* __restrict__ b,
                             float* __restrict__ y, int N, int C, int P) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N * C * P) return;
    int c = i / P % C;
    y[i] = x[i] * g[c] + b[c];
}""",
        ("i / P % C", "i % C / P"),
        launch([array("x", "in", "N", "C", "P"), array("g", "in", "C"), array("b", "in", "C"),
                array("y", "out", "N", "C", "P"), *counts("N C P")],
               {"N": [2, 3], "C": [3, 2], "P": [5, 40]}, NCHW, ["(N * C * P + 255) // 256", "1", "1"], 256),
        batchnorm,
    ),
    "channels-last": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int N, int C, int P) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i >= N * C * P) return;
    int p = i % P, c = i / P % C, n = i / (P * C);
    y[(n * P + p) * C + c] = x[i];
}""",
        ("(n * P + p) * C + c", "(n * C + c) * P + p"),
        launch([array("x", "in", "N", "C", "P"), array("y", "out", "N", "P", "C"), *counts("N C P")],
               {"N": [2, 3], "C": [3, 2], "P": [5, 40]}, NCHW, ["(N * C * P + 255) // 256", "1", "1"], 256),
        to_channels_last,
    ),
    "depthwise": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y,
                             int planes, int H, int W, int OH, int OW, int s, int p) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= planes * OH * OW) return;
    int ox = i % OW, oy = i / OW % OH, plane = i / (OW * OH);
    float sum = 0.f;
    for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 3; ++c) {
            int iy = oy * s + r - p, ix = ox * s + c - p;
            if (iy >= 0 && iy < H && ix >= 0 && ix < W) sum += x[(plane * H + iy) * W + ix] * w[plane * 9 + r * 3 + c];
        }
    y[i] = sum;
}""",
        ("ix >= 0", "ix > 0"),
        launch([array("x", "in", "planes", "H", "W"), array("w", "in", "planes", "3", "3"),
                array("y", "out", "planes", "OH", "OW"), *counts("planes H W OH OW s p")],
               {"planes": [2, 3], "H": [5, 8], "W": [9, 7], "OH": [5, 3], "OW": [9, 3], "s": [1, 2], "p": [1, 0]},
               WINDOW, ["(planes * OH * OW + 127) // 128", "1", "1"], 128),
        depthwise,
    ),
    "upsampling": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int planes, int H, int W, int f) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= planes * H * f * (W * f)) return;
    int ox = i % (W * f), oy = i / (W * f) % (H * f), plane = i / (W * f * (H * f));
    y[i] = x[(plane * H + oy / f) * W + ox / f];
}""",
        ("+ ox / f]", "+ ox % W]"),
        launch([array("x", "in", "planes", "H", "W"), array("y", "out", "planes", "H * f", "W * f"),
                *counts("planes H W f")],
               {"planes": [2, 1], "H": [3, 4], "W": [5, 2], "f": [2, 3]},
               ["planes >= 1", "H >= 1", "W >= 1", "f >= 1", "planes <= 256", "H <= 256", "W <= 256", "f <= 8"],
               ["(planes * H * f * (W * f) + 127) // 128", "1", "1"], 128),
        upsampled,
    ),
    "reversed": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int rows, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= rows * n) return;
    int r = i / n;
    y[i] = x[r * n + (n - 1 - (i - r * n))];
}""",
        ("n - 1 - (i", "n - (i"),
        launch([array("x", "in", "rows", "n"), array("y", "out", "rows", "n"), *counts("rows n")],
               {"rows": [2, 3], "n": [5, 70]}, ["rows >= 1", "n >= 1", "rows <= 2**14", "n <= 2**14"],
               ["(rows * n + 63) // 64", "1", "1"], 64),
        reversed_rows,
    ),
    "seven-point": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int D, int H, int W) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i >= D * H * W) return;
    int c = i % W, r = i / W % H, d = i / (W * H);
    float s = -6.f * x[i];
    if (d > 0) s += x[i - H * W];
    if (d + 1 < D) s += x[i + H * W];
    if (r > 0) s += x[i - W];
    if (r + 1 < H) s += x[i + W];
    if (c > 0) s += x[i - 1];
    if (c + 1 < W) s += x[i + 1];
    y[i] = s;
}""",
        ("if (r + 1 < H)", "if (r + 1 < D)"),
        launch([array("x", "in", "D", "H", "W"), array("y", "out", "D", "H", "W"), *counts("D H W")],
               {"D": [2, 3], "H": [3, 5], "W": [5, 4]},
               ["D >= 1", "H >= 1", "W >= 1", "D <= 512", "H <= 512", "W <= 512"],
               ["(D * H * W + 127) // 128", "1", "1"], 128),
        seven_point,
    ),
    "flat-64-bit": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, float* __restrict__ y, int rows, int n) {
    long long i = (long long)blockIdx.x * 256 + threadIdx.x;
    if (i < (long long)rows * n) y[i] = 2.f * x[i];
}""",
        ("(long long)blockIdx.x * 256 + threadIdx.x", "(int)(blockIdx.x * 256 + threadIdx.x)"),
        launch([array("x", "in", "rows", "n"), array("y", "out", "rows", "n"), *counts("rows n")],
               {"rows": [2, 3], "n": [5, 70]}, ["rows >= 1", "n >= 1", "rows <= 2**18", "n <= 2**18"],
               ["(rows * n + 255) // 256", "1", "1"], 256),
        doubled,
    ),
    "regrouped-tiles": Subject(
        """
extern "C" __global__ void k(const float* __restrict__ x, const float* __restrict__ b, float* __restrict__ y,
                             int M, int N) {
    int tm = (M + 7) / 8, tn = (N + 7) / 8, pid = blockIdx.x;
    int first = pid / (4 * tn) * 4, height = min(tm - first, 4);
    int pm = first + pid % (4 * tn) % height, pn = pid % (4 * tn) / height;
    int r = pm * 8 + threadIdx.x / 8, c = pn * 8 + threadIdx.x % 8;
    if (r < M && c < N) y[r * N + c] = x[r * N + c] + b[c];
}""",
        ("min(tm - first, 4)", "4"),
        launch([array("x", "in", "M", "N"), array("b", "in", "N"), array("y", "out", "M", "N"), *counts("M N")],
               {"M": [9, 70], "N": [20, 5]}, ["M >= 1", "N >= 1", "M <= 2**14", "N <= 2**14"],
               ["((M + 7) // 8) * ((N + 7) // 8)", "1", "1"], 64),
        added,
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
