"""Every example is proved, and every wrong twin refuted, with nothing proved that its first line says is wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings.nvrtc")

FOLDER = Path(__file__).parents[2] / "examples"
NAMES = sorted(p.stem for p in FOLDER.glob("*.py"))
TWINS = sorted(p.stem for p in (FOLDER / "wrong").glob("*.cu"))


@pytest.mark.parametrize("name", NAMES)
def test_example(cli, name: str) -> None:
    code, out, err = cli("prove", str(FOLDER / f"{name}.py"), "--format", "json")
    report = json.loads(out)
    assert (report["verdict"], code, err) == ("PROVED", 0, "")


@pytest.mark.parametrize("twin", TWINS)
def test_wrong_twin(cli, twin: str) -> None:
    file = FOLDER / "wrong" / f"{twin}.cu"
    said = re.match(r"// WRONG \(([a-z, ]+)\): ", file.read_text("utf-8"))
    assert said is not None
    contract = max((n for n in NAMES if twin.startswith(f"{n}_")), key=len)
    code, out, err = cli("prove", str(FOLDER / f"{contract}.py"), "--kernel", str(file), "--format", "json")
    report = json.loads(out)
    assert (report["verdict"], code, err) == ("REFUTED", 1, "")
    assert report["counterexample"]
    verdicts = {name: p["verdict"] for name, p in report["properties"].items() if p}
    assert "PROVED" not in {verdicts[name] for name in said[1].split(", ")}, verdicts
