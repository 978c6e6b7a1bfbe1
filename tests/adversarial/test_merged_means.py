"""Means and variances merged over lanes and warps: each way to write the merge is proved, and no wrong one.

Only the proof is asked; sample runs would hide a wrong one. The reference is NumPy's mean and variance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from attempt import buffer, scalar, verdict

from warpproof.equivalence.moments import whole_floors
from warpproof.frontends import compile_cuda
from warpproof.terms import Arena, const

pytest.importorskip("cuda.bindings.nvrtc")

LOOP = """extern "C" __global__ void k(const float* __restrict__ x, float* mean_out, float* m2_out, int n) {
    const float* in = x + (size_t)blockIdx.x * n;
    float mean = 0.0f, m2 = 0.0f, count = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        count += 1.0f;
        const float delta = in[i] - mean;
        mean += delta / count;
        m2 += delta * (in[i] - mean);
    }
"""
LANES = """    for (int mask = 16; mask > 0; mask >>= 1) {
        const float om = __shfl_xor_sync(0xffffffffu, mean, mask);
        const float o2 = __shfl_xor_sync(0xffffffffu, m2, mask);
        const float oc = __shfl_xor_sync(0xffffffffu, count, mask);
        MERGE
    }
"""
SHARE = """    __shared__ float sm[2], s2[2], sc[2];
    if (threadIdx.x % 32 == 0) {
        sm[threadIdx.x / 32] = mean; s2[threadIdx.x / 32] = m2; sc[threadIdx.x / 32] = count;
    }
    __syncthreads();
"""
IN_TURN = SHARE + """    if (threadIdx.x == 0) for (int w = 1; w < 2; ++w) { const float om = sm[w], o2 = s2[w], oc = sc[w]; MERGE }
"""
ONE_WARP = SHARE + """    if (threadIdx.x < 32) {
        const bool there = threadIdx.x < 2;
        mean = there ? sm[threadIdx.x] : 0.0f; m2 = there ? s2[threadIdx.x] : 0.0f;
        count = there ? sc[threadIdx.x] : 0.0f;
        const float om = __shfl_xor_sync(0xffffffffu, mean, 1), o2 = __shfl_xor_sync(0xffffffffu, m2, 1);
        const float oc = __shfl_xor_sync(0xffffffffu, count, 1);
        MERGE
    }
"""
STORE = """    if (threadIdx.x == 0) { mean_out[blockIdx.x] = mean; m2_out[blockIdx.x] = m2; }
}
"""
DIRECT = """const float t = count + oc; if (t > 0.0f) { const float d = om - mean; mean = (mean * count + om * oc) / t;
            m2 += o2 + d * d * count * oc / t; count = t; }"""
SHIFTED = """const float t = count + oc; const float d = om - mean; const float r = oc / fmaxf(t, 1.0f); mean += d * r;
            m2 += o2 + d * d * count * r; count = t;"""
EARLY = """if (count == 0.0f) { mean = om; m2 = o2; count = oc; } else if (oc != 0.0f) { const float t = count + oc;
            const float d = om - mean, r = oc / t; mean += d * r; m2 += o2 + d * d * count * r; count = t; }"""
DOWN = LANES.replace("shfl_xor", "shfl_down")
WRONG_SECONDS = 6.0
MANIFEST = {
    "kernel": "k", "sizes": {"R": [3], "n": [5]}, "grid": ["R", "1", "1"], "block": [32, 1, 1],
    "preconditions": ["1 <= R", "R <= 2**20", "1 <= n", "n <= 2**20"], "dynamic_shared": "0",
    "params": [buffer("x", "ptr_in", "f32", "R", "n"), buffer("mean", "ptr_out", "f32", "R"),
               buffer("m2", "ptr_out", "f32", "R"), scalar("n")],
}


def moments(x: Any, **_: Any) -> dict[str, Any]:
    """The mean of each row, and the sum of the squared distances from it."""
    return {"mean": x.mean(axis=1), "m2": x.var(axis=1) * x.shape[1]}


def judged(text: str, merge: str, block: int = 32, seconds: float = WRONG_SECONDS) -> str:
    """The proof's verdict; that of a wrong kernel is waited for long enough for the right one to be proved."""
    made = compile_cuda(text.replace("MERGE", merge)).text
    return verdict(made, {**MANIFEST, "block": [block, 1, 1]}, moments, seconds)


@pytest.mark.parametrize(("body", "merge", "block"), [
    (LANES, DIRECT, 32), (LANES, SHIFTED, 32), (LANES, EARLY, 32), (DOWN, DIRECT, 32), (DOWN, EARLY, 32),
    (LANES + IN_TURN, DIRECT, 64), (LANES + ONE_WARP, DIRECT, 64),
])
def test_every_way_to_merge(body: str, merge: str, block: int) -> None:
    assert judged(LOOP + body + STORE, merge, block, 100.0) == "PROVED"


WRONG = [
    (DIRECT, "mean * count + om * oc", "mean * oc + om * count"), (DIRECT, "d * d * count * oc / t", "d * d * count / t"),
    (DIRECT, "o2 + d", "d"), (DIRECT, "count = t", "count = oc"), (DIRECT, "t > 0.0f", "t > 3.0f"),
    (SHIFTED, "fmaxf(t, 1.0f)", "fmaxf(t, 2.0f)"), (SHIFTED, "count * r", "r"), (EARLY, "oc != 0.0f", "oc > 1.0f"),
    (EARLY, "m2 += o2 +", "m2 +="), (EARLY, "r = oc / t", "r = count / t"),
]


@pytest.mark.parametrize(("merge", "right", "wrong"), WRONG)
def test_no_wrong_merge(merge: str, right: str, wrong: str) -> None:
    assert right in merge
    assert judged(LOOP + LANES + STORE, merge.replace(right, wrong)) != "PROVED"


@pytest.mark.parametrize(("body", "block", "right", "wrong"), [
    (LANES, 32, "mask = 16", "mask = 8"), (LANES, 32, "__shfl_xor_sync(0xffffffffu, count, mask)", "count"),
    (LANES, 32, "count += 1.0f", "count += 2.0f"), (LANES, 32, "i = threadIdx.x", "i = threadIdx.x + 1"),
    (LANES + IN_TURN, 64, "w = 1;", "w = 0;"), (LANES + IN_TURN, 64, "blockDim.x", "32"),
])
def test_no_wrong_lanes(body: str, block: int, right: str, wrong: str) -> None:
    text = LOOP + body + STORE
    assert right in text
    assert judged(text.replace(right, wrong), DIRECT, block) != "PROVED"


def test_floors_of_all_remainders_sum_to_the_number() -> None:
    """Against Python's floors, lane by lane; a remainder twice or a lane that lacks one changes nothing."""
    rng = np.random.default_rng(0)
    for trial in range(200):
        arena, m = Arena(4), int(rng.integers(2, 6))
        n = arena.symbol("size", "n", 0, 10**6)
        offsets = np.stack([rng.permutation(m) + m * rng.integers(-2, 3, m) for _ in range(4)], axis=1)
        if trial % 2:
            offsets[0, rng.integers(0, 4)] += 1
        quotients = [arena.floor_div(n + const(row), const(m)) for row in offsets]
        before = sum(quotients, n * 2)
        after = whole_floors(arena, before)
        for value in (0, 1, 17, 1000):
            assert (lanes(arena, after, value, m) == lanes(arena, before, value, m)).all()
        if trial % 2 == 0:
            assert after.symbolic() == n * 3


def lanes(arena: Arena, p: Any, n: int, m: int) -> Any:
    """The polynomial with n put in, per lane."""
    out = np.zeros(4, dtype=np.int64)
    for monomial, c in p.terms.items():
        value: Any = 1
        for a in monomial:
            atom = arena.atoms[a]
            inner = lanes(arena, atom.args[0], n, m) if atom.args else n
            value = value * (inner // m if atom.args else inner)
        out = out + value * np.asarray(c)
    return out
