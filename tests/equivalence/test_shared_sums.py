"""Atomic additions to shared memory: each kernel is proved for all sizes, its wrong twins are not; what is wrong in
every run is refuted by one.

The references are NumPy's sums and its `add.at`.
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
    """A kernel with the edits that make it wrong in a run, those that make it racy, its launch and its reference."""

    source: str
    faults: tuple[tuple[str, str], ...]
    races: tuple[tuple[str, str], ...]
    manifest: Mapping[str, Any]
    reference: Callable[..., Mapping[str, Any]]


def rows(x: Any, **_: Any) -> dict[str, Any]:
    """The sum of each row."""
    return {"out": np.sum(x, axis=1)}


def bins(x: Any, w: Any, counts: Any, **_: Any) -> dict[str, Any]:
    """The weights added to their bins."""
    out = counts.copy()
    np.add.at(out, x, w)
    return {"counts": out}


HEAD = 'extern "C" __global__ __launch_bounds__(128) void k('
SUM = HEAD + """const float* x, float* out, int R, int n) {
    __shared__ float s;
    if (threadIdx.x == 0) s = 0.0f;
    __syncthreads(); // first
    float v = 0.0f;
    for (int i = threadIdx.x; i < n; i += 128) v += x[(size_t)blockIdx.x * n + i];
    for (int m = 16; m > 0; m >>= 1) v += __shfl_xor_sync(0xffffffffu, v, m);
    if (threadIdx.x % 32 == 0) atomicAdd(&s, v);
    __syncthreads(); // last
    if (threadIdx.x == 0) out[blockIdx.x] = s;
}
"""
EVERY = HEAD + """const float* x, float* out, int R, int n) {
    __shared__ float s[4];
    if (threadIdx.x < 4) s[threadIdx.x] = 0.0f;
    __syncthreads(); // first
    for (int i = threadIdx.x; i < n; i += 128) atomicAdd(&s[threadIdx.x % 4], x[(size_t)blockIdx.x * n + i]);
    __syncthreads(); // last
    if (threadIdx.x == 0) out[blockIdx.x] = s[0] + s[1] + s[2] + s[3];
}
"""
BINS = HEAD + """const int* x, const float* w, float* counts, int n) {
    __shared__ float local[64];
    if (threadIdx.x < 64) local[threadIdx.x] = 0.0f;
    __syncthreads(); // first
    for (int i = threadIdx.x; i < n; i += 128) atomicAdd(&local[x[i]], w[i]);
    __syncthreads(); // last
    if (threadIdx.x < 64) atomicAdd(&counts[threadIdx.x], local[threadIdx.x]);
}
"""
ROWS = launch([array("x", "in", "R", "n"), array("out", "out", "R"), count("R"), count("n")],
              {"R": [3], "n": [300]}, "R", 128)
RACES = (("__syncthreads(); // first", ""), ("__syncthreads(); // last", ""))
FAMILIES = {
    "warps": Family(SUM, (
        ("% 32 == 0) atomicAdd", "% 64 == 0) atomicAdd"), ("s = 0.0f", "s = 1.0f"), ("atomicAdd(&s, v)", "s += v"),
        ("i < n", "i < n - 1"), ("% 32 == 0) atomicAdd(&s, v)", "% 16 == 0) atomicAdd(&s, v)"),
    ), RACES, ROWS, rows),
    "every": Family(EVERY, (
        ("+ s[3]", "+ s[2]"), ("threadIdx.x % 4]", "threadIdx.x % 5]"), ("s[threadIdx.x] = 0.0f", "s[0] = 0.0f"),
        ("i += 128", "i += 129"), ("int i = threadIdx.x;", "int i = threadIdx.x + 1;"),
    ), RACES, ROWS, rows),
    "bins": Family(BINS, (
        ("w[i])", "w[i] + 1.0f)"), ("w[i])", "w[x[i]])"), ("local[x[i]]", "local[x[i] ^ 1]"),
        ("local[x[i]]", "local[i % 64]"), ("threadIdx.x < 64) atomicAdd", "threadIdx.x < 63) atomicAdd"),
    ), RACES, launch(
        [{**array("x", "in", "n", dtype="i32"), "range": ["0", "64"]}, array("w", "in", "n"),
         array("counts", "inout", "64"), count("n")], {"n": [300]}, "1", 128), bins),
}


def subject(family: Family) -> Subject:
    """The family as a subject."""
    return Subject(family.source, family.races[0], family.manifest, family.reference)


@pytest.mark.parametrize("name", FAMILIES)
def test_the_kernel_is_proved_for_all_sizes(name: str) -> None:
    family = FAMILIES[name]
    assert verdict(subject(family), family.source) is Verdict.PROVED


@pytest.mark.parametrize(("name", "fault"), [
    (n, f) for n, family in FAMILIES.items() for f in (*family.faults, *family.races)])
def test_the_wrong_twin_is_refuted(name: str, fault: tuple[str, str]) -> None:
    family = FAMILIES[name]
    source = family.source.replace(*fault)
    assert source != family.source
    assert verdict(subject(family), source, 60.0) is Verdict.REFUTED


LATE = HEAD + """const float* x, float* out, int R, int n) {
    __shared__ float s;
    float last = 0.0f;
    if (threadIdx.x == 0) s = 0.0f;
    for (int i = 0; i < n; ++i) {
        __syncthreads();
        last = s;
        __syncthreads();
        if (threadIdx.x == 0) atomicAdd(&s, x[(size_t)blockIdx.x * n + i]);
    }
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = FINAL;
}
"""


@pytest.mark.parametrize("final", ["last", "last - s", "s + last"])
def test_updates_after_the_last_barrier_of_a_loop_reach_the_next_iteration(final: str) -> None:
    """None of these is the sum of the row: `last` lacks its last element."""
    family = FAMILIES["warps"]
    assert verdict(subject(family), LATE.replace("FINAL", final), 60.0) is not Verdict.PROVED
