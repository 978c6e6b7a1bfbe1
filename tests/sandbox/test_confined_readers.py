"""`litmus` and `sandbox verify` look at what they are given in confined workers, whose word is checked."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from warpproof.cli import boxes, main
from warpproof.sandbox import LAYERS, Kernel, assemble, encode
from warpproof.sandbox.live import _harmless

LITMUS = Path(__file__).parents[1] / "sync" / "litmus"
PASSWD = Path("/etc/passwd").read_text("utf-8").splitlines()[0]
# A worker whose code for the work is what a break of it would make of it, once it is confined.
BROKEN = """
import sys
from warpproof.cli import boxed, evaluating, verifying
def broken(*args, **more):
    import ctypes, os, socket, subprocess
    {attempt}
evaluating.read_tests = verifying.filter_of = broken
boxed.main()
"""
ATTEMPTS = {
    "a file": "raise ValueError(open('/etc/passwd').read())", "a program": "os.execv('/bin/true', ['true'])",
    "a process": "os.fork()", "the network": "socket.socket()", "a signal": "os.kill(os.getppid(), 9)",
    "a crash": "ctypes.string_at(0)", "its end": "os._exit(0)", "memory": "b'x' * (1 << 50)",
    "no answer": "os.close(4)", "another answer": "os.write(4, b'[1, 2]\\n')",
    "half an answer": "os.write(4, b'{\"result\": {\"exit\": 0, \"lines\": 3}}\\n')",
    "a long answer": "\n    while True: os.write(4, b'x' * 65536)", "a hang": "\n    while True: pass",
}
COMMANDS = {"litmus": ["litmus", str(LITMUS / "mp-weak.litmus"), "--timeout", "1"],
            "verify": ["sandbox", "verify", "solver", "--no-live", "--timeout", "10"]}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch, kernel: Kernel) -> Callable[[str], None]:
    def begin(attempt: str) -> None:
        def command(work: str, incoming: int, outgoing: int) -> list[str]:
            code = BROKEN.format(attempt=attempt) if work in ("litmus", "verify") else "import warpproof.cli.boxed"
            arguments = [work, str(incoming), str(outgoing), str(os.getpid())]
            return [sys.executable, "-P", "-c", code, *arguments]

        monkeypatch.setattr(boxes, "worker_command", command)
        monkeypatch.setattr(boxes, "MAX_ANSWER_BYTES", 1 << 20)
        monkeypatch.setattr("warpproof.cli.litmus._SPARE_S", 4.0)

    return begin


@pytest.mark.parametrize("attempt", ATTEMPTS)
@pytest.mark.parametrize("work", COMMANDS)
def test_a_broken_worker_gets_nothing(work: str, attempt: str, broken: Callable[[str], None],
                                      capfd: pytest.CaptureFixture[str]) -> None:
    """It has no file, process or network, and what it says instead of an answer is none."""
    broken(ATTEMPTS[attempt])
    began = time.monotonic()
    code = main([*COMMANDS[work], "--format", "json"])
    assert time.monotonic() - began < 60
    captured = capfd.readouterr()
    assert code in (3, 4), captured
    assert PASSWD not in captured.out + captured.err
    made = json.loads(captured.out)
    stopped = made["stopped"] if work == "verify" else made["tests"][0]["stopped"]
    assert made.get("verdict", "INCONCLUSIVE") == "INCONCLUSIVE"
    wanted = {"a hang": "timeout", "memory": "memory", "a program": "sandbox", "a process": "sandbox",
              "the network": "sandbox", "a signal": "sandbox", "no answer": "sandbox"}.get(attempt, "crash")
    assert stopped["reason"] == wanted
    assert "filter" in made["sandbox"]["layers"]


@pytest.mark.parametrize("work", COMMANDS)
def test_the_report_says_what_confined(work: str, kernel: Kernel, capsys: pytest.CaptureFixture[str]) -> None:
    for mode in ("--sandbox=auto", "--sandbox=filter", "--no-sandbox"):
        assert main([*COMMANDS[work], "--timeout", "60", mode, "--format", "json"]) == 0
        captured = capsys.readouterr()
        said = json.loads(captured.out)["sandbox"]
        assert (said["mode"] == "off") == (mode == "--no-sandbox") == ("nothing is confined" in captured.err)
        assert {*said["layers"], *said["missing"]} == (set() if said["mode"] == "off" else set(LAYERS))


def test_litmus_goes_on_after_a_test_that_is_stopped(kernel: Kernel, tmp_path: Path,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    """Several files, one of them unreadable, one unusable: each is told, and the others evaluated."""
    (tmp_path / "a.litmus").write_text("PTX", "utf-8")
    (tmp_path / "b.litmus").write_bytes(b"\xff")
    (tmp_path / "c.litmus").write_text((LITMUS / "mp-weak.litmus").read_text("utf-8"), "utf-8")
    assert main(["litmus", str(tmp_path), "--format", "json"]) == 2
    first, second, third = json.loads(capsys.readouterr().out)["tests"]
    assert first["error"]["code"].startswith("SYN")
    assert second["error"]["code"] == "SYN201"
    assert third["code"] == 0


PROGRAM = encode(assemble("ret allow")).hex()
CALL = {"call": [39, 0, 0, 0, 0, 0, 0], "foreign": 0}
PROBE: dict[str, Any] = {"task": "probe", "filters": [PROGRAM], "calls": [CALL], "guard": 4093}


@pytest.mark.parametrize("change", [
    {"guard": 0x7FFF0000}, {"guard": -1}, {"guard": None}, {"task": "running", "pid": 1}, {"task": "fly"},
    {"filters": []}, {"filters": ["zz" * 8]}, {"filters": ["00"]}, {"filters": [PROGRAM] * 65},
    {"filters": ["00" * 8 * 5000]}, {"filters": [3]}, {"filters": None}, {"calls": [CALL] * 5000}, {"calls": [3]},
    {"calls": [{"call": [1], "foreign": 0}]}, {"calls": [CALL | {"call": [1 << 64] + [0] * 6}]},
    {"calls": [CALL | {"foreign": 2}]}, {"calls": [CALL | {"more": 1}]}, {"more": 1}, {"task": "read_back"},
], ids=str)
def test_what_a_worker_may_not_ask_of_the_kernel(change: dict[str, Any], kernel: Kernel) -> None:
    assert _harmless(PROBE)
    assert _harmless({"task": "read_back", "filters": [PROGRAM]})
    assert not _harmless(PROBE | change)
    assert set(kernel.answer_for(PROBE | change)) == {"unsupported"}


def test_what_is_asked_is_not_carried_out(kernel: Kernel, tmp_path: Path) -> None:
    """Under a filter that allows everything: the guard answers, nothing is made."""
    names: Sequence[int] = (83, 57, 59, 231)
    for number in names:
        made = kernel.answer_for(PROBE | {"calls": [{"call": [number, 0, 0, 0, 0, 0, 0], "foreign": 0}]})
        assert made["results"] == [-4093]
