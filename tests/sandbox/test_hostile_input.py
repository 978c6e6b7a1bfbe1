"""Hostile texts, hostile answers and a poor machine: an input error, INCONCLUSIVE or a refusal; never a traceback."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from test_hosts import FILTERED, NAMESPACES

from warpproof.cli import boxes, main
from warpproof.cli.confined import is_question
from warpproof.sandbox import Call, Kernel, compile_policy, describe, number_of, run, shipped_policy
from warpproof.sandbox.syscalls import NATIVE

EMPTY = ".version 8.0\n.target sm_80\n.address_size 64\n"
POLICIES = {
    "a number in half": 'default = "errno(0b)"', "an underscore": 'default = "errno(__name__)"',
    "a superscript": 'default = "allow"\n[[rule]]\ncalls = ["²"]\naction = "allow"',
    "lists in lists": "default = " + "[" * 20_000 + "]" * 20_000, "digits": 'default = "allow"\nname = ' + "1" * 6000,
    "an error of many digits": f'default = "errno({"9" * 6000})"',
    "a call of many digits": f'default = "allow"\n[[rule]]\ncalls = ["{"9" * 6000}"]\naction = "allow"',
}
PROFILES = {"lists": '{"defaultAction": ' + "[" * 100_000, "objects": '{"a": ' * 100_000,
            "a unit": "SystemCallFilter=read\nSystemCallErrorNumber=²\n"}


@pytest.mark.parametrize("what", POLICIES)
def test_a_hostile_policy_is_an_input_error(what: str, tmp_path: Path, kernel: Kernel,
                                            capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p.toml").write_text(POLICIES[what], "utf-8")
    assert main(["sandbox", "verify", str(tmp_path / "p.toml"), "--no-live"]) == 2
    assert main(["sandbox", "run", "--policy", str(tmp_path / "p.toml"), "--", "/bin/true"]) == 2
    said = capfd.readouterr().err
    assert "Traceback" not in said
    assert said.count("error[BOX60") == 2


@pytest.mark.parametrize("what", PROFILES)
def test_a_hostile_profile_is_an_input_error(what: str, tmp_path: Path, kernel: Kernel,
                                             capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "p").write_text(PROFILES[what], "utf-8")
    assert main(["sandbox", "verify", "--profile", str(tmp_path / "p"), "--no-live"]) == 2
    assert "error[BOX60" in capfd.readouterr().err


def test_standard_input_without_end(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("warpproof.cli.sandbox._MAX_INPUT_BYTES", 1 << 20)
    with open("/dev/zero", encoding="latin-1") as endless:
        monkeypatch.setattr(sys, "stdin", endless)
        assert main(["sandbox", "do", "print", "-"]) == 2
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["sandbox", "do", "print", "-"]) == 2
    assert "larger than 1 MiB" in capfd.readouterr().err


# A worker that says what it is told to; "hear" waits for a message, "signal N" ends it by that signal.
FORGER = """
import json, os, sys
heard = os.fdopen(int(sys.argv[1]), "rb")
heard.readline()
for line in json.loads(sys.argv[3]):
    if line == "hear": heard.readline()
    elif line.startswith("signal"): os.kill(os.getpid(), int(line[6:]))
    else: os.write(int(sys.argv[2]), line.encode() + b"\\n")
"""
LAYERS = ["namespaces", "landlock", "descriptors", "limits", "no-new-privileges", "filter"]
Forge = Callable[..., None]


@pytest.fixture
def forge(monkeypatch: pytest.MonkeyPatch) -> Forge:
    def begin(work: str, *lines: str) -> None:
        genuine = boxes.worker_command

        def command(wanted: str, incoming: int, outgoing: int) -> list[str]:
            if wanted != work:
                return genuine(wanted, incoming, outgoing)
            return [sys.executable, "-c", FORGER, str(incoming), str(outgoing), json.dumps(lines)]

        monkeypatch.setattr(boxes, "worker_command", command)
        monkeypatch.setattr("warpproof.cli.confined.held_filters", lambda pid: "it cannot be asked")

    return begin


def confined(layers: Any, missing: Any = None) -> str:
    return json.dumps({"confined": {"layers": layers, "missing": {} if missing is None else missing}, "pid": 1})


@pytest.fixture
def empty(tmp_path: Path) -> str:
    (tmp_path / "k.ptx").write_text(EMPTY, "utf-8")
    return str(tmp_path / "k.ptx")


@pytest.mark.parametrize(("mode", "layers", "missing", "named"), [
    ("auto", [], None, "descriptors"), ("auto", LAYERS[:-1], None, "filter"), ("filter", ["filter"], None, "descr"),
    ("strict", LAYERS[1:], None, "namespaces"), ("strict", [LAYERS[0], *LAYERS[2:]], None, "landlock"),
    ("auto", None, None, "filter"), ("auto", "filter", None, "filter"), ("auto", [{}], None, "descriptors"),
    ("auto", LAYERS, [1], "filter"),
])
def test_a_worker_that_lacks_a_layer_gets_nothing(mode: str, layers: Any, missing: Any, named: str, forge: Forge,
                                                  empty: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Whatever it says itself, without the layers that the mode needs nothing is handed over."""
    forge("print", confined(layers, missing), "hear", '{"result": "handed over"}')
    assert main(["sandbox", "do", "print", empty, f"--sandbox={mode}"]) == 3
    said = capfd.readouterr()
    assert "handed over" not in said.out
    assert f"error[BOX613]: not run, since the layer '{named}" in said.err
    forge("print", confined(LAYERS), "hear", '{"result": "handed over"}')
    assert main(["sandbox", "do", "print", empty, f"--sandbox={mode}"]) == 0


def test_a_signal_without_a_name(forge: Forge, empty: str, capfd: pytest.CaptureFixture[str]) -> None:
    forge("print", "signal 40")
    assert main(["sandbox", "do", "print", empty]) == 3
    assert "died of signal 40" in capfd.readouterr().err


def test_text_that_no_stream_takes(forge: Forge, empty: str, tmp_path: Path, kernel: Kernel,
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", out)
    forge("print", confined(LAYERS), "hear", '{"result": "\\ud800"}')
    assert main(["sandbox", "do", "print", empty]) == 0
    answer = {"exit": 0, "lines": [], "report": {}, "certificate": "\ud800"}
    forge("verify", confined(LAYERS), "hear", json.dumps({"result": answer}))
    assert main(["sandbox", "verify", "solver", "--no-live", "--certificate", str(tmp_path / "c")]) == 0


def test_a_question_of_any_length_of_time(forge: Forge, kernel: Kernel) -> None:
    question = {"text": "(assert true)", "milliseconds": 10**400, "rlimit": 0}
    assert not is_question(question)
    assert is_question(question | {"milliseconds": 10**6})
    forge("verify", confined(LAYERS), "hear", json.dumps({"question": question}))
    assert main(["sandbox", "verify", "solver", "--no-live"]) == 4


def test_an_answer_of_many_small_values(forge: Forge, empty: str, monkeypatch: pytest.MonkeyPatch,
                                        capfd: pytest.CaptureFixture[str]) -> None:
    """A few bytes of JSON become a hundred here."""
    monkeypatch.setattr(boxes, "MAX_VALUES", 1000)
    forge("print", confined(LAYERS), "hear", json.dumps({"result": "x", "more": [[]] * 1000}))
    assert main(["sandbox", "do", "print", empty]) == 3
    assert "cannot be read" in capfd.readouterr().err


@pytest.mark.parametrize("request_", [{}, {"path": "k.ptx", "kernel": 1, "sm": [], "options": 5, "triton": {}}])
def test_a_request_for_no_kernel(request_: dict[str, Any], forge: Forge, contract: Path,
                                 capfd: pytest.CaptureFixture[str]) -> None:
    forge("judge", json.dumps({"kernel": request_}))
    assert main(["prove", str(contract), "--format", "json"]) == 4
    assert json.loads(capfd.readouterr().out)["verdict"] == "INCONCLUSIVE"


def command(*arguments: str, descriptors: int = 0, refused: Sequence[int] = ()) -> subprocess.CompletedProcess[str]:
    def begin() -> None:
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    program = ["-c", FILTERED, json.dumps([["denied", n] for n in refused])] if refused else ["-m", "warpproof"]
    return subprocess.run([sys.executable, *program, *arguments], capture_output=True, text=True, check=False,
                          timeout=100, preexec_fn=begin)


def test_a_machine_without_descriptors(contract: Path, empty: str) -> None:
    """Exit code 1, which Python gives for a traceback, would say that the kernel is refuted."""
    done = command("prove", str(contract), "--format", "json", descriptors=8)
    assert (done.returncode, json.loads(done.stdout)["verdict"]) == (4, "INCONCLUSIVE"), done.stderr
    done = command("sandbox", "do", "print", empty, descriptors=8)
    assert done.returncode == 4
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("name", "layer"), [("prlimit64", "limits"), ("prctl", "namespaces"), ("seccomp", "filter")])
def test_a_call_that_confinement_needs_fails(name: str, layer: str, empty: str, kernel: Kernel) -> None:
    done = command("sandbox", "do", "print", empty, refused=[number_of(name)])
    assert (done.returncode, done.stdout) == (3, "")
    assert f"since the layer '{layer}' is missing" in done.stderr


TRUNC, CREATE, TMPFILE = os.O_TRUNC, os.O_CREAT, 0o20200000


@pytest.mark.parametrize(("flags", "mode", "action"), [
    (TRUNC, 0, "errno(EACCES)"), (TRUNC | 3, 0, "errno(EACCES)"), (TRUNC | 1, 0, "allow"), (TRUNC | 2, 0, "allow"),
    (0, 0o6777, "allow"), (CREATE | 1, 0o4755, "errno(EPERM)"), (CREATE | 2, 0o2755, "errno(EPERM)"),
    (TMPFILE | 2, 0o4755, "errno(EPERM)"), (CREATE | 1, 0o1777, "allow"), (3, 0, "allow"),
])
def test_how_a_command_opens(flags: int, mode: int, action: str) -> None:
    """Truncating a file opened for reading is out of sight of Landlock before ABI 3, set-user-ID of all."""
    program = compile_policy(shipped_policy("command"))
    assert describe(run(program, Call(number_of("open"), NATIVE, (1, flags, mode, 0, 0, 0)))) == action
    assert describe(run(program, Call(number_of("openat"), NATIVE, (1, 1, flags, mode, 0, 0)))) == action


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's writes clear the bits")
def test_no_command_leaves_a_program_that_runs_as_root(tmp_path: Path, kernel: Kernel) -> None:
    """Without namespaces root's rights keep the bits through a write."""
    code = "import os, sys; n = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR, 0o6755); os.write(n, b'#!')"
    done = command("sandbox", "run", "--sandbox=auto", "--write", str(tmp_path), "--", "/usr/bin/python3", "-I", "-c",
                   code, str(tmp_path / "made"), refused=[n for _, n in NAMESPACES])
    if done.returncode == 125 or "no program" in done.stderr:
        pytest.skip(done.stderr)
    assert "PermissionError" in done.stderr
    assert not (tmp_path / "made").exists()
