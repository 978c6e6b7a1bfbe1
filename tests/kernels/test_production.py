"""Kernels as they are written in production: each is proved for all sizes, and its wrong twin refuted by a run.

A folder holds `kernel.cu`, its contract and `bad.cu`, whose first line says what is wrong. `OPEN` lists the kernels
that are not proved yet, with the reason that equivalence gives: one that gets proved leaves the list.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warpproof import api
from warpproof.frontends import Job
from warpproof.judge import Report

pytest.importorskip("cuda.bindings.nvrtc")

FOLDER = Path(__file__).parent / "production"
NAMES = sorted(p.parent.name for p in FOLDER.glob("*/contract.py"))
OPEN = {  # data-dependent stores, the library's tanh …
    "gelu": {"unsupported"},
    "scatter_permutation": {"unsupported"},
}
OPEN_TIMEOUT_S = 15.0
TWIN_TIMEOUT_S = 40.0  # half of it for what cannot be shown, before runs are tried
SAID = re.compile(r"// WRONG \(([a-z, ]+)\): ")


def report(name: str, kernel: str, seconds: float = 100.0) -> Report:
    """The report on a kernel of the suite."""
    folder = FOLDER / name
    return api.prove(Job(contract=str(folder / "contract.py"), kernel=str(folder / kernel), timeout_s=seconds))


@pytest.mark.parametrize("name", [n for n in NAMES if n not in OPEN])
def test_kernel_is_proved(name: str) -> None:
    found = report(name, "kernel.cu")
    assert found.verdict.value == "PROVED", {k: p.detail for k, p in found.properties.items() if p}
    assert found.sizes.startswith("for all ")


@pytest.mark.parametrize("name", sorted(OPEN))
def test_kernel_is_not_proved_yet(name: str) -> None:
    found = report(name, "kernel.cu", OPEN_TIMEOUT_S)
    equivalence = found.properties["equivalence"]
    assert equivalence is not None
    assert equivalence.reason is not None
    assert found.verdict.value == "INCONCLUSIVE"
    assert equivalence.reason.value in OPEN[name]


@pytest.mark.parametrize("name", NAMES)
def test_wrong_twin_is_refuted(name: str) -> None:
    said = SAID.match((FOLDER / name / "bad.cu").read_text("utf-8"))
    assert said is not None
    found = report(name, "bad.cu", TWIN_TIMEOUT_S)
    assert found.verdict.value == "REFUTED", {k: p.detail for k, p in found.properties.items() if p}
    assert found.counterexample
    wrong = [found.properties[name] for name in said[1].split(", ")]
    assert all(p is not None and p.verdict.value != "PROVED" for p in wrong)
