"""Confined work is the same work: verdicts with and without the sandbox, the solver, what the report says."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from warpproof.cli import main
from warpproof.cli.boxes import Guard
from warpproof.cli.confined import Sandbox, Solver
from warpproof.core import WarpproofError
from warpproof.frontends import nvrtc_version
from warpproof.sandbox import LAYERS, Kernel

EXAMPLES = Path(__file__).parents[2] / "examples"
TRITON = Path(__file__).parents[1] / "frontends" / "triton_sources" / "scaled_sum.py"
SPEC = "import numpy as np\n\ndef reference(x, y, out, n, alpha):\n    return {'out': alpha * x + y}\n"
POINTERS = ("x", "y", "out")
PARAMETERS = [
    *({"name": p, "kind": "ptr_out" if p == "out" else "ptr_in", "dtype": "f32", "shape": ["n"]} for p in POINTERS),
    {"name": "n", "kind": "scalar", "dtype": "i32"}, {"name": "alpha", "kind": "scalar", "dtype": "f32"},
    *({"name": name, "kind": "ptr_null", "dtype": "u8"} for name in ("scratch", "profile")),
]
LAUNCH = {
    "kernel": "scaled_sum", "params": PARAMETERS,
    "sizes": {"n": [5, 300]}, "preconditions": ["n >= 1", "n <= 2**28"], "grid": ["(n + 255) // 256", "1", "1"],
    "block": [64, 1, 1], "dynamic_shared": "0",
    "launch": {"constexprs": {"BLOCK": 256}, "num_warps": 2, "divisible_by_16": list(POINTERS)},
}
HARD = ("(declare-const x (_ BitVec 64))(declare-const y (_ BitVec 64))(assert (= (bvmul x y) #xffffffffffffffc5))"
        "(assert (bvugt x #x0000000000000001))(assert (bvugt y #x0000000000000001))"
        "(assert (bvult x #x00000000ffffffff))(assert (bvult y #x0000000fffffffff))")
Prove = Callable[..., tuple[int, dict[str, Any], str]]


@pytest.fixture
def prove(capsys: pytest.CaptureFixture[str], kernel: Kernel) -> Prove:
    """Run `prove` here; gives its exit code, the report and stderr."""

    def run(*arguments: str) -> tuple[int, dict[str, Any], str]:
        code = main(["prove", *arguments, "--format", "json"])
        captured = capsys.readouterr()
        return code, json.loads(captured.out), captured.err

    return run


def same(prove: Prove, *arguments: str) -> dict[str, Any]:
    """The confined report, which says what the other one says, times and memory apart."""
    code, report, error = prove(*arguments)
    other_code, other, warning = prove(*arguments, "--no-sandbox")
    assert (code, error) == (other_code, "")
    assert "nothing is confined" in warning
    assert [a["name"] for a in other["assumptions"] if a not in report["assumptions"]] == ["no-sandbox"]
    measured = ("time_s", "peak_mb", "sandbox", "assumptions")
    said, other_said = ({k: v for k, v in r.items() if k not in measured} for r in (report, other))
    assert said == other_said
    return report


@pytest.mark.parametrize("twin", [None, "vector_add_off_by_one.cu"])
def test_the_same_verdict(twin: str | None, prove: Prove) -> None:
    try:
        nvrtc_version()
    except WarpproofError as error:
        pytest.skip(error.message)
    more = ["--kernel", str(EXAMPLES / "wrong" / twin)] if twin else []
    report = same(prove, str(EXAMPLES / "vector_add.py"), *more)
    assert report["verdict"] == ("REFUTED" if twin else "PROVED")


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
def test_the_same_verdict_on_triton(prove: Prove, tmp_path: Path) -> None:
    (tmp_path / "spec.py").write_text(SPEC, "utf-8")
    (tmp_path / "launch.json").write_text(json.dumps(LAUNCH), "utf-8")
    report = same(prove, "--spec", str(tmp_path / "spec.py"), "--launch", str(tmp_path / "launch.json"), "--kernel",
                  str(TRITON))
    assert report["verdict"] == "PROVED"
    assert "kernel-file-executed" in [a["name"] for a in report["assumptions"]]


def test_the_report_says_what_confined(prove: Prove, contract: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for mode in ("auto", "filter"):
        code, report, _ = prove(str(contract), f"--sandbox={mode}")
        assert code == 0
        said = report["sandbox"]
        assert said["mode"] == mode
        assert {*said["layers"], *said["missing"]} == set(LAYERS)
    assert main(["prove", str(contract)]) == 0
    assert "\n  sandbox: " in capsys.readouterr().out
    assert main(["run", str(contract)]) == 0
    assert "\n  sandbox: " in capsys.readouterr().out


@pytest.fixture
def solver(kernel: Kernel) -> Iterator[Solver]:
    made = Solver(Guard("filter", 4 << 30, time.monotonic() + 120.0), Sandbox("filter"))
    yield made
    made.close()


def question(text: str, milliseconds: int = 20_000, rlimit: int = 0) -> Mapping[str, Any]:
    return {"text": text, "milliseconds": milliseconds, "rlimit": rlimit}


def test_a_confined_solver(solver: Solver) -> None:
    assert solver.ask(question("(declare-const x Int)(assert (= x 3))")) == {"status": "sat", "model": {"x": 3}}
    assert solver.ask(question("(assert false)"))["status"] == "unsat"
    assert solver.ask(question("(nonsense"))["status"] == "unknown"
    assert solver.ask(question(HARD, rlimit=1000))["status"] == "unknown"
    assert solver.ask(question("(assert true)"))["status"] == "sat"


def test_a_solver_that_takes_too_long_or_dies_is_replaced(solver: Solver) -> None:
    assert solver.ask(question(HARD, milliseconds=300))["status"] == "unknown"
    assert solver.ask(question("(assert false)"))["status"] == "unsat"
    assert solver._box is not None
    os.kill(solver._box.process.pid, 9)
    assert solver.ask(question("(assert false)"))["status"] in ("unknown", "unsat")
    assert solver.ask(question("(assert false)"))["status"] == "unsat"
