"""Kernels without a proof for all sizes, proved for the check sizes of their launch, and said to be so.

The reference is Horner's scheme, whose recurrence is no fold: neither the kernel's loop nor the reference's closes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from warpproof.core import InputError, Verdict
from warpproof.frontends import compile_cuda
from warpproof.judge import Report
from warpproof.proving import Task, prove
from warpproof.ptx import parse, resolve
from warpproof.reference import load_launch
from warpproof.report import from_dict, report_lines, to_dict

SOURCE = """
extern "C" __global__ void k(const float* a, const float* x, float* y, int m, int n) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (i >= n) return;
    float acc = a[0];
    for (int j = 1; j < m; ++j) acc = acc * x[i] + a[j];
    y[i] = acc;
}
"""
PARAMS = [
    {"name": "a", "kind": "ptr_in", "dtype": "f32", "shape": ["m"]},
    {"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": ["n"]},
    {"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": ["n"]},
    {"name": "m", "kind": "scalar", "dtype": "i32"}, {"name": "n", "kind": "scalar", "dtype": "i32"},
]
LAUNCH: dict[str, Any] = {
    "kernel": "k", "params": PARAMS, "sizes": {"m": [3, 4], "n": [5, 40]},
    "preconditions": ["m >= 1", "n >= 1", "m <= 2**20", "n <= 2**20"],
    "grid": ["(n + 31) // 32", "1", "1"], "block": [32, 1, 1], "dynamic_shared": "0",
}


def polynomial(a: Any, x: Any, m: Any, n: Any) -> dict[str, Any]:
    """Σ a[j]·x^(m−1−j) by Horner's scheme."""
    y = a[0] + 0 * x
    for j in range(1, m):
        y = y * x + a[j]
    return {"y": y}


def judged(source: str, check_sizes: list[dict[str, int]], **fields: Any) -> Report:
    compiled = compile_cuda(source, kernel="k")
    kernel = resolve(parse(compiled.text, compiled.file), "k")
    launch = load_launch({**LAUNCH, "check_sizes": check_sizes, **fields})
    task = Task(kernel, launch, polynomial, compiled.text, compiled.file, compiled.sources, 20.0)
    return prove(task, lambda stage: None)


def text(report: Report) -> str:
    return "\n".join("".join(part for part, _ in line) for line in report_lines(report))


def test_without_check_sizes_it_is_inconclusive() -> None:
    report = judged(SOURCE, [])
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.fallback is None


def test_some_sizes_are_fixed_and_the_others_stay_symbolic() -> None:
    report = judged(SOURCE, [{"m": 1}, {"m": 4}])
    assert report.verdict is Verdict.PROVED
    result = report.properties["equivalence"]
    assert result is not None
    assert result.scope == "only for m = 1 and all 1 <= n <= 2**20; for m = 4 and all 1 <= n <= 2**20"
    assert result.detail.startswith("not for all sizes: not shown: ")
    assert report.sizes == result.scope
    assert report.fallback is not None
    assert [dict(row) for row in report.fallback.sizes] == [{"m": 1}, {"m": 4}]
    assert "equivalence" in report.fallback.shown
    shown = text(report)
    assert "only for m = 1 and all 1 <= n <= 2**20" in shown.splitlines()[1]
    assert "not for all sizes: " in shown.splitlines()[2]
    assert from_dict(to_dict(report)) == from_dict(to_dict(from_dict(to_dict(report))))
    assert to_dict(report)["fallback"]["sizes"] == [{"m": 1}, {"m": 4}]


def test_what_holds_for_all_sizes_keeps_its_scope() -> None:
    report = judged(SOURCE, [{"m": 3, "n": 40}])
    assert report.verdict is Verdict.PROVED
    for name in ("memory", "races", "barriers"):
        result = report.properties[name]
        assert result is not None
        assert report.fallback is not None
        assert result.scope.startswith("only for m = 3, n = 40" if name in report.fallback.shown else "for all ")


@pytest.mark.parametrize("fault", [("acc * x[i] + a[j]", "acc * x[i] + a[m - j]"), ("j < m", "j <= m - (m > 2)")])
def test_wrong_twins_are_refuted(fault: tuple[str, str]) -> None:
    report = judged(SOURCE.replace(*fault), [{"m": 4, "n": 5}])
    assert report.verdict is Verdict.REFUTED
    assert report.fallback is None


def test_a_fault_that_only_the_check_sizes_have_is_not_proved() -> None:
    wrong = SOURCE.replace("y[i] = acc;", "y[i] = m == 77 ? acc + x[i] : acc;")
    report = judged(wrong, [{"m": 4, "n": 5}, {"m": 77, "n": 5}])
    assert report.verdict is Verdict.INCONCLUSIVE
    result = report.properties["equivalence"]
    assert result is not None
    assert "m = 77" in result.detail


def test_the_search_looks_at_preconditions_of_check_sizes() -> None:
    with pytest.raises(InputError, match="does not meet the preconditions"):
        judged(SOURCE, [{"m": 0, "n": 5}])
    with pytest.raises(InputError, match="no size"):
        judged(SOURCE, [{"q": 5}])
    with pytest.raises(InputError, match="not an int"):
        judged(SOURCE, [{"m": True}])


def test_a_size_fixed_by_preconditions_is_a_number() -> None:
    report = judged(SOURCE, [], preconditions=[*LAUNCH["preconditions"], "m == 5"], sizes={"m": [5], "n": [40]})
    assert report.verdict is Verdict.PROVED
    assert report.fallback is None
    assert np.isfinite(report.time_s)
