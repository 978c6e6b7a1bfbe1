"""`warpproof litmus`: exit codes, both formats, drawings."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from warpproof.cli import main

FOLDER = Path(__file__).parents[1] / "sync" / "litmus"


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(["litmus", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_claims_and_exit_codes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, str(FOLDER / "mp-weak.litmus"), "--repair")
    assert code == 0
    assert "allowed" in out
    assert "data race" in out
    assert "ld.acquire.gpu r0, f" in out
    code, out, _ = run(capsys, str(FOLDER / "mp-release-acquire.litmus"))
    assert (code, "rejected by" in out) == (1, True)
    assert run(capsys, str(FOLDER / "manual-mp.litmus"))[0] == 0
    loop = tmp_path / "loop.litmus"
    loop.write_text("PTX loop\n{ x=0; }\nP0@cta 0,gpu 0 ;\nL0: ;\natom.relaxed.gpu.add r0, x, 1 ;\nblt r0, 9, L0 ;\n"
                    "~exists (x == 10)\n")
    code, out, _ = run(capsys, str(loop))
    assert code == 3
    assert "up to the loop bound" in out
    mixed = tmp_path / "mixed.litmus"
    mixed.write_text("PTX mixed\n{ x=0; }\nP0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\nst.u64 [x], 1 | ld.u32 r0, [x] ;\n"
                     "exists (P1:r0 == 1)\n")
    assert run(capsys, str(mixed))[0] == 3


def test_faults(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    bad = tmp_path / "bad.litmus"
    bad.write_text("PTX bad\n{ x=0; }\nP0@cta 0,gpu 0 ;\nld.wek r0, x ;\nexists (x == 0)\n")
    code, out, err = run(capsys, str(bad), "--format", "json")
    assert code == 2
    assert json.loads(out)["tests"][0]["error"]["code"] == "SYN202"
    assert "bad.litmus:4:1" in err
    assert run(capsys, str(tmp_path / "none.litmus"))[0] == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(capsys, str(empty))[0] == 2
    code, _, err = run(capsys, str(FOLDER / "mp-weak.litmus"), "--model", "5")
    assert (code, "SYN209" in err) == (2, True)
    code, _, err = run(capsys, str(FOLDER / "cluster-scope.litmus"), "--model", "7.5")
    assert (code, "SYN207" in err) == (2, True)


def test_json_and_svg(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, str(FOLDER / "mp-weak.litmus"), "--format", "json", "--outcomes", "--repair", "--svg",
                       str(tmp_path / "mp.svg"))
    assert code == 0
    (entry,) = json.loads(out)["tests"]
    assert entry["allowed"] is entry["validated"] is True
    assert {"P1:r0": 1, "P1:r1": 0} in entry["outcomes"]
    assert len(entry["outcomes"]) == 4
    assert entry["race"]["between"][0]["thread"] == "P0"
    assert [e["after"] for e in entry["repair"]["edits"]] == ["st.release.gpu f, 1", "ld.acquire.gpu r0, f"]
    assert ET.parse(tmp_path / "mp.svg").getroot().tag.endswith("svg")
    assert run(capsys, str(FOLDER / "coww.litmus"), "--svg", str(tmp_path / "none.svg"))[0] == 1
    assert not (tmp_path / "none.svg").exists()
    assert run(capsys, str(FOLDER), "--svg", str(tmp_path / "missing"))[0] == 2


def test_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for name in ("mp-weak", "sb-weak"):
        (tmp_path / f"{name}.litmus").write_text((FOLDER / f"{name}.litmus").read_text())
    code, out, _ = run(capsys, str(tmp_path), "--svg", str(tmp_path))
    assert code == 0
    assert "2 tests: 2 claims hold" in out
    assert sorted(p.name for p in tmp_path.glob("*.svg")) == ["mp-weak.svg", "sb-weak.svg"]
