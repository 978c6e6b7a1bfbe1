"""Commands that need no kernel: help, version, explain, doctor, usage errors."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warpproof import __version__
from warpproof.cli import main
from warpproof.cli.explain import explanations
from warpproof.core import Reason, Verdict

CODE = re.compile(r"\b(?:PTX|ISA|SEM|SYN|EQV|REF|SMT|CRT|CLI|CUD|RUN|BOX)\d{3}\b")
SOURCE = Path(__file__).parents[2] / "src" / "warpproof"


def test_help_is_fast_and_loads_nothing_heavy() -> None:
    code = ("import sys\nfrom warpproof.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
            "heavy = {'numpy', 'z3', 'rich', 'islpy', 'flint', 'cuda', 'subprocess'} & set(sys.modules)\n"
            "sys.exit(f'loaded {heavy}' if heavy else 0)")
    best = 9.0
    for _ in range(3):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        best = min(best, time.perf_counter() - began)
        assert done.returncode == 0, done.stderr
        assert "prove" in done.stdout
    assert best < 0.3


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"warpproof {__version__}\n"


@pytest.mark.parametrize("argv", [
    [], ["nothing"], ["prove"], ["prove", "--spec", "a.py"], ["prove", "c.py", "--spec", "a.py"], ["replay"],
    ["prove", "c.py", "--timeout", "0"], ["prove", "c.py", "--timeout", "nan"], ["prove", "c.py", "--timeout", "x"],
    ["prove", "c.py", "--memory", "-1"], ["prove", "c.py", "--format", "xml"], ["run", "c.py", "--sample", "-1"],
    ["run", "c.py", "--seed", "1.5"],
])
def test_usage_errors(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "CLI601" in captured.err or argv == []


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "cud701"]) == 0
    assert capsys.readouterr().out.startswith("CUD701: ")
    assert main(["explain"]) == 0
    assert "unbounded-loop" in capsys.readouterr().out
    assert main(["explain", "CUD799\x1b[31m"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "\x1b" not in captured.err
    assert "CUD7" in captured.err


def test_every_code_is_documented() -> None:
    used = {code for file in SOURCE.rglob("*.py") for code in CODE.findall(file.read_text("utf-8"))}
    assert len(used) > 10
    known = explanations()
    assert sorted(used - set(known)) == []
    documented = {code for code in known if CODE.fullmatch(code)}
    assert sorted(documented - used) == []
    assert {r.value for r in Reason} | {v.value for v in Verdict} <= set(known)
    for code, entry in known.items():
        assert entry["title"], code
        assert entry["text"].strip(), code
        assert set(entry) == {"title", "text", "fix"}, code


def test_doctor(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    for name in ("numpy", "z3-solver", "islpy", "NVRTC", "sandbox", "memory limit"):
        assert name in out


def test_a_reader_that_goes_away() -> None:
    done = subprocess.run(f"{sys.executable} -m warpproof explain | head -c 1", shell=True, capture_output=True,
                          text=True, check=False)
    assert done.stderr == ""
