"""PTX that Triton 3.9 made for sm_80 from kernels like its tutorials: proved for all sizes, wrong twins refuted.

A folder holds `kernel.ptx`, its launch (`case.json`) and a NumPy reference. A twin changes one thing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from warpproof.core import Verdict
from warpproof.judge import Report
from warpproof.proving import Task, prove
from warpproof.ptx import parse, resolve
from warpproof.reference import load_launch, load_spec

FOLDER = Path(__file__).parent / "triton_ptx"
NAMES = sorted(p.name for p in FOLDER.iterdir())
TWINS = {  # kernel: a text in its PTX, what it becomes everywhere
    "vadd": ("setp.lt.s32 \t%p1,", "setp.le.s32 \t%p1,"),
    "vadd_div16": ("add.f32", "sub.f32"),
    "softmax": ("setp.lt.s32 \t%p1,", "setp.le.s32 \t%p1,"),
    "softmax_online": ("setp.lt.s32 \t%p2,", "setp.le.s32 \t%p2,"),
    "layernorm": ("sqrt.", "rsqrt."),
    "matmul_small": (".trans.shared", ".shared"),
    "matmul_tf32": ("cp.async.wait_group", "cp.async.commit_group; //"),
    "matmul": ("cp.async.wait_group \t2", "cp.async.wait_group \t3"),
}


def report(name: str, change: tuple[str, str] | None = None, seconds: float = 300.0) -> Report:
    """The report on a kernel, or on its twin with one place changed."""
    folder = FOLDER / name
    text = (folder / "kernel.ptx").read_text("utf-8")
    if change is not None:
        assert change[0] in text
        text = text.replace(*change)
    launch = load_launch(folder / "case.json")
    kernel = resolve(parse(text, f"{name}.ptx"), launch.kernel)
    task = Task(kernel, launch, load_spec(folder / "reference.py"), text, f"{name}.ptx", {}, seconds)
    return prove(task, lambda stage: None)


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_is_proved_for_all_sizes(name: str) -> None:
    found = report(name)
    assert found.verdict is Verdict.PROVED, {k: p.detail for k, p in found.properties.items() if p}


@pytest.mark.parametrize("name", TWINS)
def test_the_wrong_twin_is_refuted(name: str) -> None:
    found = report(name, TWINS[name], 60.0)
    assert found.verdict is Verdict.REFUTED, {k: p.detail for k, p in found.properties.items() if p}
    assert found.counterexample
