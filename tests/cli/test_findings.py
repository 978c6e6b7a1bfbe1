"""What `bench/fuzz.py` found: kernels, each made from one of the acceptance kernels, that once crashed the prover."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from warpproof.cli.worker import outcome

FOUND = sorted((Path(__file__).parent / "findings").glob("*.ptx"))
PROBLEMS = Path(__file__).parents[1] / "kernels" / "acceptance"


@pytest.mark.parametrize("file", FOUND, ids=lambda p: p.stem)
def test_no_crash(file: Path) -> None:
    named = re.match(r"// problem: (\S+)\n", file.read_text("utf-8"))
    assert named is not None
    folder = PROBLEMS / named[1]
    job = {"task": "prove", "timeout_s": 8.0, "kernel": str(file), "spec": str(folder / "reference.py"),
           "launch": str(folder / "case.json")}
    answer = outcome(job, lambda stage: None)
    assert answer.get("stopped", {}).get("reason") != "crash", answer
    assert answer.get("result", {}).get("verdict") != "PROVED"
