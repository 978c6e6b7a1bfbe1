"""Constants of the reference that are no f32 numbers: the kernel's nearest f32 stands for them, no other does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warpproof import api
from warpproof.frontends import Job
from warpproof.reference import Roundings

pytest.importorskip("cuda.bindings.nvrtc")

CONTRACT = """
from warpproof import In, Out, Size, cdiv, contract, {type}
n = Size("n", min=1, max=2**20)
@contract(kernel="k.cu::k", grid=(cdiv(n, 64),), block=64)
def k(x: In[{type}, n], y: Out[{type}, n], n: n):
    return {{"y": x * x {constant}}}
"""
KERNEL = """
extern "C" __global__ void k(const TYPE* x, TYPE* y, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = x[i] * x[i] CONSTANT;
}
"""


def judged(folder: Path, kernel: str, reference: str, type_: str = "f32") -> tuple[str, set[str]]:
    """Verdict and assumptions for constants of kernel and reference."""
    folder = folder / str(len(list(folder.iterdir())))
    folder.mkdir()
    (folder / "c.py").write_text(CONTRACT.format(type=type_, constant=reference))
    c_type = {"f32": "float", "f64": "double"}[type_]
    (folder / "k.cu").write_text(KERNEL.replace("TYPE", c_type).replace("CONSTANT", kernel))
    found = api.prove(Job(contract=str(folder / "c.py"), timeout_s=20.0))
    return found.verdict.value, {a.name for a in found.assumptions}


@pytest.mark.parametrize(("kernel", "reference"), [("+ 1e-5f", "+ 1e-5"), ("- 0.1f", "- 0.1"), ("- 0.1f", "+ (-0.1)")])
def test_the_nearest_f32_stands_for_the_constant(tmp_path: Path, kernel: str, reference: str) -> None:
    verdict, assumed = judged(tmp_path, kernel, reference)
    assert verdict == "PROVED"
    assert "f32-constants" in assumed


@pytest.mark.parametrize(("kernel", "reference"), [
    ("+ 1.0001e-5f", "+ 1e-5"), ("+ 0.10000002f", "+ 0.1"), ("+ 0.25f", "+ 0.2500001"), ("+ 1e-4f", "+ 1e-5"),
])
def test_another_f32_does_not(tmp_path: Path, kernel: str, reference: str) -> None:
    assert judged(tmp_path, kernel, reference)[0] != "PROVED"


def test_a_double_is_not_rounded(tmp_path: Path) -> None:
    verdict, assumed = judged(tmp_path, "+ 0.1", "+ 0.1", "f64")
    assert verdict == "PROVED"
    assert "f32-constants" not in assumed
    assert judged(tmp_path, "+ 0.1f", "+ 0.1", "f64")[0] != "PROVED"
    assert judged(tmp_path, "+ 0.1", f"+ {float(np.float32(0.1))!r}", "f64")[0] != "PROVED"


def test_only_numbers_that_are_no_f32_are_rounded() -> None:
    held = Roundings(frozenset({float(np.float32(0.1)), 0.5, 0.0}), frozenset({0.3}))
    assert held.held(0.1) == float(np.float32(0.1))
    assert held.held(-0.1) == -float(np.float32(0.1))
    for same in (0.5, 0.3, 0.2, 1e300, 1e-300, float("inf")):
        assert held.held(same) == same
