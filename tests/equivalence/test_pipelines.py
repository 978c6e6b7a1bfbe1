"""Several launches in order against one reference: proved for all sizes, and each wrong twin refuted by a run of all
launches. The references are plain NumPy and say nothing about what the launches leave in between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from warpproof.core import InputError, Verdict
from warpproof.counterexample import run_call, sample_call
from warpproof.frontends import compile_cuda
from warpproof.judge import Report
from warpproof.proving import Task, prove
from warpproof.ptx import Kernel, parse, resolve
from warpproof.reference import load_launch


@dataclass(frozen=True)
class Subject:
    """Kernels, their launches and reference, and what makes them wrong: text and its replacement, by name."""

    source: str
    manifest: Mapping[str, Any]
    reference: Callable[..., Mapping[str, Any]]
    faults: Mapping[str, tuple[str, str]]


def array(name: str, kind: str, *shape: str, **extra: Any) -> dict[str, Any]:
    """An f32 buffer in the launch manifest."""
    return {"name": name, "kind": f"ptr_{kind}", "dtype": "f32", "shape": list(shape), **extra}


def step(kernel: str, args: str, grid: list[str], block: int | list[int]) -> dict[str, Any]:
    """One launch; an argument that starts with `=` is computed."""
    given = [{"value": a[1:], "dtype": "i32"} if a.startswith("=") else a for a in args.split()]
    return {"kernel": kernel, "args": given, "grid": grid,
            "block": block if isinstance(block, list) else [block, 1, 1]}


def launches(params: list[dict[str, Any]], sizes: dict[str, list[int]], steps: list[dict[str, Any]], most: int = 2**20,
             *more: str) -> dict[str, Any]:
    """The launch manifest; every size is at least 1 and at most `most`."""
    counts = [{"name": n, "kind": "scalar", "dtype": "i32"} for n in sizes]
    bounds = [f"{name} {text}" for name in sizes for text in (">= 1", f"<= {most}")]
    return {"params": [*params, *counts], "sizes": sizes, "preconditions": [*more, *bounds], "launches": steps}


GLOBAL = 'extern "C" __global__ void '
TILE = "const int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;\n"
TILES = ["(N + 15) // 16", "(M + 7) // 8"]
SUBJECTS = {
    "dot": Subject(
        GLOBAL + """partial(const float* __restrict__ x, const float* __restrict__ y, float* part, int n) {
    __shared__ float s[256];
    int i = blockIdx.x * 256 + threadIdx.x;
    s[threadIdx.x] = i < n ? x[i] * y[i] : 0.f;
    __syncthreads();
    for (int d = 128; d; d >>= 1) { if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d]; __syncthreads(); }
    if (threadIdx.x == 0) part[blockIdx.x] = s[0];
}
""" + GLOBAL + """finish(const float* __restrict__ part, float* out, int m) {
    float v = 0.f;
    for (int i = threadIdx.x; i < m; i += 32) v += part[i];
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x == 0) *out = v;
}""",
        launches([array("x", "in", "n"), array("y", "in", "n"), array("part", "out", "(n+255)//256", scratch=True),
                  array("out", "out", "1")], {"n": [5, 700]},
                 [step("partial", "x y part n", ["(n+255)//256"], 256),
                  step("finish", "part out =(n+255)//256", ["1"], 32)]),
        lambda x, y, n: {"out": np.reshape(np.sum(x * y), (1,))},
        {"last partial sum left out": ("i < m", "i < m - 1"), "first half only": ("int d = 128", "int d = 64"),
         "no barrier": ("s[threadIdx.x + d]; __syncthreads();", "s[threadIdx.x + d];")},
    ),
    "split-k": Subject(
        GLOBAL + "partial(const float* __restrict__ A, const float* __restrict__ B, float* W, int M, int N, int K) {"
        + TILE + """if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int k = blockIdx.z; k < K; k += gridDim.z) sum = fmaf(A[row * K + k], B[k * N + col], sum);
    W[((size_t)blockIdx.z * M + row) * N + col] = sum;
}
""" + GLOBAL + "finish(const float* __restrict__ W, float* C, int M, int N, int splits) {" + TILE + """
    if (row >= M || col >= N) return;
    float sum = 0.0f;
    for (int s = 0; s < splits; ++s) sum += W[((size_t)s * M + row) * N + col];
    C[row * N + col] = sum;
}""",
        launches([array("A", "in", "M", "K"), array("B", "in", "K", "N"),
                  array("W", "out", "splits", "M", "N", scratch=True), array("C", "out", "M", "N")],
                 {"M": [3, 11], "N": [5, 20], "K": [7, 50], "splits": [2, 3]},
                 [step("partial", "A B W M N K", [*TILES, "splits"], [16, 8, 1]),
                  step("finish", "W C M N splits", TILES, [16, 8, 1])], 16384, "splits <= 64"),
        lambda A, B, M, N, K, splits: {"C": A @ B},
        {"first split left out": ("int s = 0", "int s = 1"), "stride too small": ("k += gridDim.z", "k += 1"),
         "splits overwrite each other": ("W[((size_t)blockIdx.z * M + row)", "W[((size_t)0 * M + row)")},
    ),
    "centred rows": Subject(
        GLOBAL + """stats(const float* __restrict__ x, float* mean, int n) {
    float s = 0.f;
    for (int i = threadIdx.x; i < n; i += 32) s += x[(size_t)blockIdx.x * n + i];
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    if (threadIdx.x == 0) mean[blockIdx.x] = s / n;
}
""" + GLOBAL + """centre(const float* __restrict__ x, const float* __restrict__ mean, float* y, int n) {
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) y[(size_t)blockIdx.y * n + i] = x[(size_t)blockIdx.y * n + i] - mean[blockIdx.y];
}""",
        launches([array("x", "in", "rows", "n"), array("mean", "out", "rows", scratch=True),
                  array("y", "out", "rows", "n")], {"rows": [2, 3], "n": [5, 700]},
                 [step("stats", "x mean n", ["rows"], 32), step("centre", "x mean y n", ["(n+127)//128", "rows"], 128)],
                 2**20, "rows <= 65535"),
        lambda x, rows, n: {"y": x - x.mean(axis=1, keepdims=True)},
        {"one mean for all": ("mean[blockIdx.y]", "mean[0]"), "off by one": ("s / n", "s / (n + 1)")},
    ),
    "column sums after a clear": Subject(
        GLOBAL + "clear(float* y, int n) { int i = blockIdx.x * 64 + threadIdx.x; if (i < n) y[i] = 0.f; }\n"
        + GLOBAL + """sums(const float* __restrict__ x, float* y, int rows, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) atomicAdd(y + i, x[(size_t)blockIdx.y * n + i]);
}""",
        launches([array("x", "in", "rows", "n"), array("y", "out", "n")], {"rows": [2, 3], "n": [5, 70]},
                 [step("clear", "y n", ["(n+63)//64"], 64), step("sums", "x y rows n", ["(n+63)//64", "rows"], 64)],
                 2**20, "rows <= 65535"),
        lambda x, rows, n: {"y": x.sum(axis=0)},
        {"set to one": ("y[i] = 0.f", "y[i] = 1.f"), "not all cleared": ("if (i < n) y[i]", "if (i < n - 1) y[i]"),
         "no atomic": ("atomicAdd(y + i, x[(size_t)blockIdx.y * n + i])", "y[i] += x[(size_t)blockIdx.y * n + i]")},
    ),
    "mean by atomics": Subject(
        GLOBAL + """total(const float* __restrict__ x, float* s, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    float v = i < n ? x[i] : 0.f;
    for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x % 32 == 0) atomicAdd(s, v);
}
""" + GLOBAL + """centre(const float* __restrict__ x, const float* __restrict__ s, float* y, int n) {
    int i = blockIdx.x * 256 + threadIdx.x;
    if (i < n) y[i] = x[i] - *s / n;
}""",
        launches([array("x", "in", "n"), array("s", "inout", "1", scratch=True, init="zero"), array("y", "out", "n")],
                 {"n": [5, 700]},
                 [step("total", "x s n", ["(n+255)//256"], 256), step("centre", "x s y n", ["(n+255)//256"], 256)]),
        lambda x, n: {"y": x - x.mean()},
        {"every half warp": ("threadIdx.x % 32", "threadIdx.x % 16"), "sum for mean": ("*s / n", "*s")},
    ),
    "scaled in place": Subject(
        GLOBAL + """largest(const float* __restrict__ y, float* m, int n) {
    float v = 0.f;
    for (int i = threadIdx.x; i < n; i += 32) v = fmaxf(v, fabsf(y[i]));
    for (int d = 16; d; d >>= 1) v = fmaxf(v, __shfl_xor_sync(~0u, v, d));
    if (threadIdx.x == 0) *m = v;
}
""" + GLOBAL + """scale(float* y, const float* __restrict__ m, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = y[i] / (1.f + *m);
}
""" + GLOBAL + """shift(float* y, const float* __restrict__ m, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = y[i] + *m;
}""",
        launches([array("y", "inout", "n"), array("m", "out", "1", scratch=True)], {"n": [5, 70]},
                 [step("largest", "y m n", ["1"], 32), step("scale", "y m n", ["(n+63)//64"], 64),
                  step("shift", "y m n", ["(n+63)//64"], 64)]),
        lambda y, n: {"y": y / (1 + np.maximum(np.abs(y).max(), 0)) + np.maximum(np.abs(y).max(), 0)},
        {"one element twice": ("y[i] = y[i] + *m", "y[i] = y[i == 3 ? 2 : i] + *m"), "no shift": ("y[i] + *m", "y[i]")},
    ),
}


def kernels(subject: Subject, source: str) -> tuple[str, tuple[Kernel, ...]]:
    """The PTX of a source, and the kernel of every launch."""
    names = [s["kernel"] for s in subject.manifest["launches"]]
    text = compile_cuda(source, kernel=names[0]).text
    module = parse(text, "k.ptx")
    return text, tuple(resolve(module, name) for name in names)


def report(subject: Subject, source: str) -> Report:
    """The report on a source under the subject's launches."""
    text, (first, *later) = kernels(subject, source)
    launch = load_launch(subject.manifest)
    return prove(Task(first, launch, subject.reference, text, "k.ptx", {}, 60.0, 0, tuple(later)), lambda stage: None)


@pytest.mark.parametrize("name", SUBJECTS)
def test_the_launches_are_proved_for_all_sizes(name: str) -> None:
    subject = SUBJECTS[name]
    found = report(subject, subject.source)
    assert found.verdict is Verdict.PROVED, found.properties


@pytest.mark.parametrize(("name", "fault"), [(n, f) for n, s in SUBJECTS.items() for f in s.faults])
def test_the_wrong_twin_is_refuted(name: str, fault: str) -> None:
    subject = SUBJECTS[name]
    source = subject.source.replace(*subject.faults[fault])
    assert source != subject.source
    found = report(subject, source)
    assert found.verdict is Verdict.REFUTED, found.properties


def exchanged(subject: Subject) -> Subject:
    """The same with the launches in the other order."""
    return Subject(subject.source, {**subject.manifest, "launches": subject.manifest["launches"][::-1]},
                   subject.reference, {})


@pytest.mark.parametrize("name", ["centred rows", "column sums after a clear"])
def test_launches_in_the_wrong_order_are_refuted(name: str) -> None:
    subject = exchanged(SUBJECTS[name])
    assert report(subject, subject.source).verdict is Verdict.REFUTED


def test_contents_that_no_function_describes_are_named() -> None:
    source = SUBJECTS["centred rows"].source.replace("mean[blockIdx.x] = s / n", "mean[blockIdx.x ^ 1] = s / n")
    found = report(SUBJECTS["centred rows"], source)
    assert found.verdict is not Verdict.PROVED


def test_the_launches_share_one_memory_in_a_run() -> None:
    subject = SUBJECTS["split-k"]
    _, found = kernels(subject, subject.source)
    call = sample_call(load_launch(subject.manifest), {"M": 3, "N": 5, "K": 7, "splits": 2}, 1)
    outcome = run_call(found, call)
    a, b = (call.values[n].astype(np.float64) for n in "AB")
    assert outcome.completed
    assert not outcome.findings
    np.testing.assert_allclose(outcome.buffers["C"].array(np.float32).reshape(3, 5), a @ b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("change", "words"), [
    ({"launches": []}, "empty"), ({"grid": ["1"]}, "grid belongs"),
    ({"launches": [{"kernel": "a", "args": ["nothing"], "grid": ["1"], "block": ["32"]}]}, "no parameter"),
    ({"launches": [{"kernel": "a", "grid": ["1"], "block": ["32"]}]}, "args is missing"),
    ({"launches": [{"kernel": "a", "args": [{"value": "q"}], "grid": ["1"], "block": ["32"]}]}, "unknown size"),
])
def test_a_list_of_launches_is_checked(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        load_launch({**SUBJECTS["dot"].manifest, **change})
