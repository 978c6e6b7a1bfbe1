"""Atomic updates as folds over all threads of all CTAs: kernels proved for all sizes, wrong twins refuted by a
replayed run.

The references are plain NumPy; the runs that refute are compared with it in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from warpproof.core import Verdict
from warpproof.frontends import compile_cuda
from warpproof.judge import Report
from warpproof.proving import Task, prove
from warpproof.ptx import parse, resolve
from warpproof.reference import load_launch


@dataclass(frozen=True)
class Subject:
    """A kernel, its launch and reference, and what makes it wrong: text and its replacement, by name."""

    source: str
    manifest: Mapping[str, Any]
    reference: Callable[..., Mapping[str, Any]]
    faults: Mapping[str, tuple[str, str]]


def array(name: str, kind: str, *shape: str, dtype: str = "f32", **extra: Any) -> dict[str, Any]:
    """A buffer in the launch manifest."""
    return {"name": name, "kind": f"ptr_{kind}", "dtype": dtype, "shape": list(shape), **extra}


def launch(params: list[dict[str, Any]], sizes: dict[str, list[int]], grid: tuple[str, ...], block: int,
           *more: str) -> dict[str, Any]:
    """The launch manifest; every size is at least 1 and at most a million, `g` (a grid) is no parameter."""
    bounds = [f"{name} {text}" for name in sizes for text in (">= 1", "<= 2**20")]
    counts = [{"name": n, "kind": "scalar", "dtype": "i32"} for n in sizes if n != "g"]
    return {"kernel": "k", "params": [*params, *counts], "sizes": sizes, "preconditions": [*more, *bounds],
            "grid": [*grid, "1", "1"][:3], "block": [block, 1, 1], "dynamic_shared": "0"}


def scattered(x: Any, idx: Any, y: Any, n: Any, m: Any, d: Any) -> dict[str, Any]:
    """Rows of x added to the rows of y that idx names."""
    out = np.array(y, np.float64)
    np.add.at(out, idx, x)
    return {"y": out}


def counted_by_4096(x: Any, h: Any, n: Any, bins: Any) -> dict[str, Any]:
    """4096 for every occurrence, as int64."""
    out = np.zeros(bins, np.int64)
    np.add.at(out, x, 4096)
    return {"h": out}


HEAD = 'extern "C" __global__ void k('
SUBJECTS = {
    "dot": Subject(
        HEAD + """const float* __restrict__ x, const float* __restrict__ y, float* out, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float v = i < n ? x[i] * y[i] : 0.f;
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    __shared__ float part[8];
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    if (threadIdx.x < 32) {
        float s = threadIdx.x < 8 ? part[threadIdx.x] : 0.f;
        for (int d = 4; d; d >>= 1) s += __shfl_down_sync(~0u, s, d);
        if (threadIdx.x == 0) atomicAdd(out, s);
    }
}""",
        launch([array("x", "in", "n"), array("y", "in", "n"), array("out", "inout", "1", init="zero")],
               {"n": [5, 700]}, ("(n+255)//256",), 256),
        lambda x, y, out, n: {"out": np.reshape(np.sum(x * y), (1,))},
        {"no atomic": ("atomicAdd(out, s)", "*out += s"),
         "counted twice": ("atomicAdd(out, s)", "atomicAdd(out, s); if (blockIdx.x == 1) atomicAdd(out, s)"),
         "first block only": ("atomicAdd(out, s)", "if (blockIdx.x == 0) atomicAdd(out, s)")},
    ),
    "dot by warps": Subject(
        HEAD + """const float* __restrict__ x, const float* __restrict__ y, float* out, int n) {
    float v = 0.f;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x) v += x[i] * y[i];
    for (int d = 16; d; d >>= 1) v += __shfl_down_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) atomicAdd(out, v);
}""",
        launch([array("x", "in", "n"), array("y", "in", "n"), array("out", "inout", "1")],
               {"n": [5, 700], "g": [2, 3]}, ("g",), 256, "g <= 1024"),
        lambda x, y, out, n: {"out": out + np.sum(x * y)},
        {"stride of one block": ("i += 256 * gridDim.x", "i += 256"),
         "every half warp": ("threadIdx.x % 32", "threadIdx.x % 16"),
         "no atomic": ("atomicAdd(out, v)", "*out += v")},
    ),
    "column sums": Subject(
        HEAD + """const float* __restrict__ x, float* y, int rows, int cols) {
    int c = blockIdx.x * 64 + threadIdx.x;
    if (c >= cols) return;
    float s = 0.f;
    for (int r = blockIdx.y; r < rows; r += gridDim.y) s += x[(size_t)r * cols + c];
    atomicAdd(y + c, s);
}""",
        launch([array("x", "in", "rows", "cols"), array("y", "inout", "cols", init="zero")],
               {"rows": [5, 40], "cols": [7, 70], "g": [2, 3]}, ("(cols+63)//64", "g"), 64, "g <= 64"),
        lambda x, y, rows, cols: {"y": x.sum(axis=0)},
        {"no atomic": ("atomicAdd(y + c, s)", "y[c] += s"), "first row": ("r = blockIdx.y;", "r = blockIdx.y + 1;")},
    ),
    "mean": Subject(
        HEAD + """const float* __restrict__ x, float* m, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float v = i < n ? x[i] : 0.f;
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) atomicAdd(m, v / n);
}""",
        launch([array("x", "in", "n"), array("m", "inout", "1", init="zero")], {"n": [5, 700]}, ("(n+255)//256",), 256),
        lambda x, m, n: {"m": np.reshape(np.mean(x), (1,))},
        {"wrong divisor": ("v / n", "v / 256.f")},
    ),
    "histogram": Subject(
        HEAD + """const int* __restrict__ x, int* h, int n, int bins) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(h + x[i], 1);
}""",
        launch([array("x", "in", "n", dtype="i32", range=["0", "bins"]),
                array("h", "inout", "bins", dtype="i32", init="zero")], {"n": [5, 700], "bins": [3, 16]},
               ("(n+255)//256",), 256),
        lambda x, h, n, bins: {"h": np.bincount(x, minlength=bins)},
        {"no atomic": ("atomicAdd(h + x[i], 1)", "h[x[i]] += 1"), "two at once": ("x[i], 1)", "x[i], 2)"),
         "last one missing": ("i < n", "i < n - 1"), "atomic in the block only": ("atomicAdd(", "atomicAdd_block(")},
    ),
    "histogram of bytes": Subject(
        HEAD + """const unsigned char* __restrict__ x, unsigned* h, int n) {
    for (int i = blockIdx.x * 256 + threadIdx.x; i < n; i += 256 * gridDim.x) atomicAdd(h + x[i], 1u);
}""",
        launch([array("x", "in", "n", dtype="u8"), array("h", "inout", "256", dtype="u32", init="zero")],
               {"n": [5, 700], "g": [2, 3]}, ("g",), 256, "g <= 1024"),
        lambda x, h, n: {"h": np.bincount(x, minlength=256)},
        {"low bits": ("h + x[i]", "h + (x[i] & 63)")},
    ),
    "weighted histogram": Subject(
        HEAD + """const int* __restrict__ x, const float* __restrict__ w, float* h, int n, int bins) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) atomicAdd(h + x[i], w[i]);
}""",
        launch([array("x", "in", "n", dtype="i32", range=["0", "bins"]), array("w", "in", "n"),
                array("h", "inout", "bins", init="zero")], {"n": [5, 700], "bins": [3, 16]}, ("(n+255)//256",), 256),
        lambda x, w, h, n, bins: {"h": np.bincount(x, weights=w, minlength=bins)},
        {"another weight": ("w[i])", "w[n - 1 - i])")},
    ),
    "scattered rows": Subject(
        HEAD + """const float* __restrict__ x, const int* __restrict__ idx, float* y, int n, int m, int d) {
    int i = blockIdx.y, j = blockIdx.x * 64 + threadIdx.x;
    if (j < d) atomicAdd(y + (size_t)idx[i] * d + j, x[(size_t)i * d + j]);
}""",
        launch([array("x", "in", "n", "d"), array("idx", "in", "n", dtype="i32", range=["0", "m"]),
                array("y", "inout", "m", "d")], {"n": [5, 40], "m": [4, 3], "d": [7, 70]}, ("(d+63)//64", "n"), 64,
               "n <= 65535"),
        scattered,
        {"another row": ("(size_t)idx[i] * d", "(size_t)idx[n - 1 - i] * d"), "no atomic": (
            "atomicAdd(y + (size_t)idx[i] * d + j, x[(size_t)i * d + j])", "y[idx[i] * d + j] += x[i * d + j]")},
    ),
    "row maxima": Subject(
        HEAD + """const int* __restrict__ x, int* y, int rows, int cols) {
    int c = blockIdx.x * 64 + threadIdx.x;
    if (c < cols) atomicMax(y + blockIdx.y, x[(size_t)blockIdx.y * cols + c]);
}""",
        launch([array("x", "in", "rows", "cols", dtype="i32"), array("y", "inout", "rows", dtype="i32")],
               {"rows": [5, 40], "cols": [7, 70]}, ("(cols+63)//64", "rows"), 64, "rows <= 65535"),
        lambda x, y, rows, cols: {"y": np.maximum(y, x.max(axis=1))},
        {"minimum": ("atomicMax", "atomicMin"), "unsigned": ("atomicMax(y", "atomicMax((unsigned*)y"),
         "last column missing": ("c < cols", "c < cols - 1")},
    ),
    "row maxima of naturals": Subject(
        HEAD + """const unsigned* __restrict__ x, unsigned* y, int rows, int cols) {
    int c = blockIdx.x * 64 + threadIdx.x;
    if (c < cols) atomicMax(y + blockIdx.y, x[(size_t)blockIdx.y * cols + c]);
}""",
        launch([array("x", "in", "rows", "cols", dtype="u32"), array("y", "inout", "rows", dtype="u32", init="zero")],
               {"rows": [5, 40], "cols": [7, 70]}, ("(cols+63)//64", "rows"), 64, "rows <= 65535"),
        lambda x, y, rows, cols: {"y": x.max(axis=1)},
        {"sum": ("atomicMax", "atomicAdd")},
    ),
    "count": Subject(
        HEAD + """const float* __restrict__ x, unsigned* c, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n && x[i] > 0.5f) atomicAdd(c, 1u);
}""",
        launch([array("x", "in", "n"), array("c", "inout", "1", dtype="u32", init="zero")], {"n": [5, 700]},
               ("(n+255)//256",), 256),
        lambda x, c, n: {"c": np.reshape(np.sum(x > 0.5), (1,))},
        {"threshold": ("0.5f", "0.25f"), "no atomic": ("atomicAdd(c, 1u)", "*c += 1u")},
    ),
    "flags": Subject(
        HEAD + """const float* __restrict__ x, int* f, int rows, int cols) {
    int c = blockIdx.x * 64 + threadIdx.x;
    if (c < cols) atomicOr(f + blockIdx.y, x[(size_t)blockIdx.y * cols + c] > 1.f ? 1 : 0);
}""",
        launch([array("x", "in", "rows", "cols"), array("f", "inout", "rows", dtype="i32", init="zero")],
               {"rows": [5, 40], "cols": [7, 70]}, ("(cols+63)//64", "rows"), 64, "rows <= 65535"),
        lambda x, f, rows, cols: {"f": (x > 1).any(axis=1).astype(np.int32)},
        {"comparison": ("> 1.f", "< 1.f")},
    ),
    "split sum": Subject(
        HEAD + """const float* __restrict__ x, const float* __restrict__ b, float* y, int n) {
    const int span = (n + gridDim.x - 1) / gridDim.x, first = blockIdx.x * span, last = min(first + span, n);
    float s = 0.f;
    for (int i = first + threadIdx.x; i < last; i += 64) s += x[i];
    if (blockIdx.x == 0 && threadIdx.x == 0) s += b[0];
    atomicAdd(y, s);
}""",
        launch([array("x", "in", "n"), array("b", "in", "1"), array("y", "inout", "1", init="zero")],
               {"n": [5, 700], "g": [2, 3]}, ("g",), 64, "g <= 64"),
        lambda x, b, y, n: {"y": np.sum(x) + b},
        {"span rounded down": ("(n + gridDim.x - 1) / gridDim.x", "n / gridDim.x"),
         "bias in every block": ("blockIdx.x == 0 && ", ""),
         "overlap": ("min(first + span, n)", "min(first + span + 1, n)")},
    ),
}


def report(subject: Subject, source: str, manifest: Mapping[str, Any] | None = None) -> Report:
    """The report on a source under the subject's launch, or another one."""
    text = compile_cuda(source, kernel="k").text
    kernel = resolve(parse(text, "k.ptx"), "k")
    checked = load_launch(manifest or subject.manifest)
    return prove(Task(kernel, checked, subject.reference, text, "k.ptx", {}, 120.0), lambda stage: None)


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_kernel_is_proved_for_all_sizes(name: str) -> None:
    subject = SUBJECTS[name]
    found = report(subject, subject.source)
    assert found.verdict is Verdict.PROVED, found.properties
    rounding = any(a.name == "atomic-order" for a in found.assumptions)
    outputs = [p for p in subject.manifest["params"] if p["kind"] == "ptr_inout"]
    assert rounding == (outputs[0]["dtype"] == "f32")


@pytest.mark.parametrize(("name", "fault"), [(n, f) for n, s in SUBJECTS.items() for f in s.faults])
def test_the_wrong_twin_is_refuted(name: str, fault: str) -> None:
    subject = SUBJECTS[name]
    source = subject.source.replace(*subject.faults[fault])
    assert source != subject.source
    found = report(subject, source)
    assert found.verdict is Verdict.REFUTED, found.properties


def with_output(subject: Subject, **changes: Any) -> dict[str, Any]:
    """The manifest with its output declared otherwise."""
    params = [{**p, **changes} if p["kind"] == "ptr_inout" else p for p in subject.manifest["params"]]
    return {**subject.manifest, "params": [{k: v for k, v in p.items() if v is not None} for p in params]}


def test_contents_at_entry_that_the_reference_ignores_are_refuted() -> None:
    subject = SUBJECTS["mean"]
    assert report(subject, subject.source, with_output(subject, init=None)).verdict is Verdict.REFUTED


def test_updates_of_memory_that_nobody_wrote_are_refuted() -> None:
    subject = SUBJECTS["mean"]
    found = report(subject, subject.source, with_output(subject, init=None, kind="ptr_out"))
    assert found.verdict is Verdict.REFUTED


@pytest.mark.parametrize(("name", "old", "new", "words"), [
    ("histogram", "atomicAdd(h + x[i], 1)", "h[atomicAdd(h + x[i], 1) & 0] = 0", "the old value it returns is used"),
    ("count", "atomicAdd(c, 1u)", "atomicCAS(c, 0u, 1u)", "cas is no commutative fold"),
    ("count", "atomicAdd(c, 1u)", "atomicExch(c, 1u)", "exch is no commutative fold"),
    ("flags", "? 1 : 0", "? 5 : 0", "bit masks other than 0 and 1"),
])
def test_what_is_not_followed_is_named(name: str, old: str, new: str, words: str) -> None:
    subject = SUBJECTS[name]
    source = subject.source.replace(old, new)
    assert source != subject.source
    found = report(subject, source)
    assert found.verdict is not Verdict.PROVED
    details = " ".join(p.detail for p in found.properties.values() if p is not None)
    assert words in details or found.verdict is Verdict.REFUTED


def test_a_sum_that_may_leave_the_range_of_its_type_is_not_proved() -> None:
    subject = SUBJECTS["histogram"]
    found = report(subject, subject.source.replace("x[i], 1)", "x[i], 4096)"), subject.manifest)
    assert found.verdict is Verdict.REFUTED
    many = Subject(subject.source.replace("x[i], 1)", "x[i], 4096)"), subject.manifest, counted_by_4096, {})
    assert report(many, many.source).verdict is not Verdict.PROVED
