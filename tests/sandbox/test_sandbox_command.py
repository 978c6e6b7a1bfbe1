"""`warpproof sandbox`: output and exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from warpproof.cli import main, verify
from warpproof.cli.verifying import verified
from warpproof.sandbox import (
    SHIPPED,
    Call,
    Kernel,
    assemble,
    check_certificate,
    compile_policy,
    encode,
    shipped_policy,
)
from warpproof.sandbox.policy_files import shipped_text


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_policy(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "verify", name, "--no-live"]) == 0
    out = capsys.readouterr().out
    assert "P1 proved" in out
    assert "nothing in the table" in out


def test_the_policy_in_the_documentation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[2].joinpath("docs/sandbox.md").read_text("utf-8")
    (tmp_path / "reader.toml").write_text(page.split("```toml\n")[1].split("```")[0], "utf-8")
    assert main(["sandbox", "verify", str(tmp_path / "reader.toml"), "--no-live"]) == 0
    assert "P8 proved" in capsys.readouterr().out


def test_raw_bytes_against_a_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw, certificate = tmp_path / "filter", tmp_path / "certificate.json"
    raw.write_bytes(encode(compile_policy(shipped_policy("solver"), "linear")))
    arguments = ["sandbox", "verify", str(raw), "--no-live", "--format", "json"]
    assert main([*arguments, "--policy", "solver", "--certificate", str(certificate)]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["verdict"] == "PROVED"
    assert made["reachable"] == []
    assert check_certificate(json.loads(certificate.read_text("utf-8"))) == []
    assert main([*arguments, "--policy", "prove"]) == 1
    made = json.loads(capsys.readouterr().out)
    assert made["verdict"] == "REFUTED"
    assert next(o for o in made["obligations"] if o["id"] == "P1")["witness"] is not None


def test_what_is_let_through_worst_first(tmp_path: Path, capsys: pytest.CaptureFixture[str], kernel: Kernel) -> None:
    text = tmp_path / "filter.asm"
    lines = ["ld arch", "jeq #0xc000003e, next, kill", "ld nr", "jge #0x40000000, kill, next", "jeq #2, ok, next",
             "jeq #101, ok, next", "jeq #41, socket, kill", "socket: ld arg0.lo", "jeq #2, ok, kill", "ok: ret allow",
             "kill: ret kill_process"]
    text.write_text("\n".join(lines), encoding="utf-8")
    assert main(["sandbox", "verify", str(text)]) == 1
    out = capsys.readouterr().out
    facts = ("write-other", "read-other", "file-open", "file-change", "net")
    places = [out.index(f"  {fact}: ") for fact in facts]
    assert places == sorted(places)
    assert "socket(2, 0, 0)" in out
    assert "ptrace(0, 0, 0, 0)" in out
    assert "4 witnesses were tried" in out
    allowed = [a for f in facts for a in ("--permit", f)]
    assert main(["sandbox", "verify", str(text), *allowed]) == 0
    assert main(["sandbox", "verify", str(text), "--assume", "pid-namespace"]) == 1
    assert "assumed in force, not checked: pid-namespace" in capsys.readouterr().out


def test_an_unconfined_process(reader: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "verify", "--pid", str(os.getppid())]) in (1, 2)
    captured = capsys.readouterr()
    assert "holds no filter" in captured.out or "BOX605" in captured.err


def test_a_confined_process(reader: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    """Its filters are read from the kernel and proved; a second filter over them makes a stack, proved as one."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import confined, os; confined.confine('solver'); " \
              "os.write(1, b'ready'); os.read(0, 1); os._exit(0)"
    with subprocess.Popen([sys.executable, "-c", program, str(Path(__file__).parent)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.read(5) == b"ready"
        assert main(["sandbox", "verify", "--pid", str(process.pid), "--policy", "solver"]) == 0
        assert "P1 proved" in capsys.readouterr().out
        process.kill()


@pytest.mark.parametrize(("arguments", "code"), [
    (["verify", "nothing-here"], "BOX600"), (["verify", "solver", "--policy", "root"], "BOX600"),
    (["verify", "solver", "--assume", "hope"], "BOX611"), (["explain", "fly"], "BOX606"),
    (["verify", "--pid", "4194305"], "BOX605"), (["verify", "--profile", "nothing-here"], "BOX600"),
    (["verify", "solver", "--no-live", "--certificate", "/nowhere/c.json"], "CLI602"),
    (["verify", "solver", "--permit", "everything"], "BOX611"),
])
def test_input_errors(arguments: Sequence[str], code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", *arguments]) == 2
    assert f"error[{code}]" in capsys.readouterr().err
    if arguments[0] == "verify":
        assert main(["sandbox", *arguments, "--format", "json"]) == 2
        made = json.loads(capsys.readouterr().out)
        assert made["verdict"] is None
        assert made["error"]["code"] == code


@pytest.mark.parametrize("arguments", [[], ["verify"], ["verify", "solver", "--pid", "1"], ["fly"]])
def test_usage_errors(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["sandbox", *arguments])
    assert stop.value.code == 2
    assert "CLI601" in capsys.readouterr().err


def given(data: bytes, name: str = "filter") -> dict[str, Any]:
    """What the worker of `sandbox verify` gets."""
    return {"kind": "filter", "file": {"name": name, "data": data.hex()}, "policy": None, "assume": [], "permit": [],
            "title": name, "certificate": False}


def test_a_kernel_that_contradicts_is_an_internal_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                         capsys: pytest.CaptureFixture[str]) -> None:
    def contradict(self: Kernel, filters: object, calls: Sequence[Call]) -> tuple[None, ...]:
        return (None,) * len(calls)

    code = encode(assemble("ld nr\njeq #2, next, kill\nret allow\nkill: ret kill_process"))
    monkeypatch.setattr(Kernel, "observe", contradict)
    with Kernel() as other:
        made = verified(given(code), other)
    assert set(made) == {"disagreement"}
    monkeypatch.setattr(verify, "verdict", lambda *_: {"result": made})
    raw = tmp_path / "filter"
    raw.write_bytes(code)
    assert main(["sandbox", "verify", str(raw)]) == 4
    assert "disagree" in capsys.readouterr().err


def test_a_solver_without_an_answer_is_inconclusive(monkeypatch: pytest.MonkeyPatch) -> None:
    from warpproof.sandbox import decisions
    from warpproof.solve import SmtAnswer

    monkeypatch.setattr(decisions, "ask", lambda text, timeout_s: SmtAnswer("unknown", detail="timeout"))
    made = verified(given(shipped_text("prove").encode(), "prove.toml"), None)
    assert made["exit"] == 3
    said = {o["id"]: o["status"] for o in made["report"]["obligations"]}
    assert said["P1"] == said["P7"] == "unknown"


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "explain"]) == 0
    assert "write-other" in capsys.readouterr().out
    assert main(["sandbox", "explain", "mmap"]) == 0
    assert "gives rwx if arg2:32 & 0x4 != 0x0" in capsys.readouterr().out
    for topic in ("rwx", "landlock", "P5", "read", "create_module"):
        assert main(["sandbox", "explain", topic]) == 0
        assert capsys.readouterr().out
    assert main(["sandbox", "explain", "solver"]) == 0
    out = capsys.readouterr().out
    assert assemble(out.split("\n\n", 1)[1]) == compile_policy(shipped_policy("solver"))


def test_doctor(reader: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sandbox", "doctor"]) == 0
    out = capsys.readouterr().out
    assert "reading filters back    works" in out
    assert "proved, certificate checked" in out
