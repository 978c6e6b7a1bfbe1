"""Confinement: what each layer does, that a missing one is named and nothing runs, and `sandbox do`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from warpproof.cli import boxes, confined, main
from warpproof.cli.boxes import Box, Guard, Stopped
from warpproof.cli.confined import Sandbox, answer
from warpproof.core import Reason, WarpproofError
from warpproof.frontends import nvrtc_version
from warpproof.sandbox import LAYERS, Loaded, assemble

SCRIPT = """
import os, resource, socket, sys, threading
from warpproof.sandbox import Confinement, Unconfined, assemble, confinement, encode
program = encode(assemble("ret allow"))
made = Confinement("{mode}")
{before}
try:
    {isolation}
    made.confine(8 << 30, 50, 3)
    made.filter(program)
except Unconfined as missing:
    print(missing.layer, flush=True)
    os._exit(5)
{after}
os._exit(0)
"""
ISOLATION = "pid = made.isolate()\n    if pid: os.waitpid(pid, 0); os._exit(0)"


def script(before: str = "", after: str = "", isolation: str = "pass", stdin: int = subprocess.PIPE,
           mode: str = "strict") -> subprocess.CompletedProcess[str]:
    text = SCRIPT.format(before=before, after=after, isolation=isolation, mode=mode)
    return subprocess.run([sys.executable, "-c", text], stdin=stdin, capture_output=True, text=True, check=False,
                          timeout=60, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})


def guard(mode: str = "strict", seconds: float = 30.0) -> Guard:
    return Guard(mode, 4 << 30, time.monotonic() + seconds)


def solved(text: str, mode: str = "strict", seconds: float = 30.0) -> Stopped | Mapping[str, Any]:
    return answer("solve", {}, {"text": text}, guard(mode, seconds), Sandbox(mode))


@pytest.fixture(scope="module")
def confinable() -> None:
    """Skips where this machine has no such layer at all: that is `sandbox do`'s answer too."""
    made = solved("(assert true)")
    if isinstance(made, Stopped):
        pytest.skip(made.detail)


INSIDE: Mapping[str, tuple[str, str]] = {
    "opening": ("os.open('/etc/passwd', os.O_RDONLY)", "OSError"),
    "folders": ("os.mkdir('/dev/shm/warpproof-confinement')", "PermissionError"),
    "links": ("os.symlink('x', '/dev/shm/warpproof-confinement')", "PermissionError"),
    "network": ("socket.create_connection(('127.0.0.1', 9), 1)", "OSError"),
    "descriptors": ("os.open('/dev/null', os.O_RDONLY)", "Error"),
    "pipes": ("os.pipe()", "OSError"),
    "processes": ("os.kill(2, 0)", "ProcessLookupError"),
    "limits": ("resource.setrlimit(resource.RLIMIT_CPU, (5000, 5000))", "Error"),
    "namespaces": ("print(os.getpid())", "1"),
}


@pytest.mark.parametrize("name", INSIDE)
def test_inside_a_confined_process(name: str, confinable: None) -> None:
    """The filter allows everything here: what stops each is another layer."""
    text, expected = INSIDE[name]
    after = f"try:\n    {text}\nexcept Exception as e:\n    print(type(e).__mro__, flush=True)\nsys.stdout.flush()"
    done = script(before="socket.socket", after=after, isolation=ISOLATION)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


def test_namespaces_without_a_map_of_users(confinable: None) -> None:
    """As where AppArmor lets a user make namespaces but not fill in the map: no name there, and no rights."""
    before = "def refuse(*a, **k): raise PermissionError(1, 'no')\nconfinement.open = refuse"
    after = "print(os.getpid(), os.geteuid(), *made.in_force)\nsys.stdout.flush()"
    done = script(before=before, after=after, isolation=ISOLATION)
    number, user, *layers = done.stdout.split()
    assert (number, user) == ("1", "65534"), done.stderr
    assert {*layers, "read-back"} == set(LAYERS)


def test_inherited_descriptors_are_closed(confinable: None) -> None:
    before = "secret = os.open('/etc/passwd', os.O_RDONLY); high = os.dup2(secret, 251)"
    after = "for f in (secret, 251):\n    try:\n        os.read(f, 1); print('read')\n    except OSError as e:\n" \
            "        print(e.errno)\nsys.stdout.flush()"
    assert script(before=before, after=after).stdout.split() == ["9", "9"]


THREAD = "threading.Thread(target=threading.Event().wait, daemon=True).start()"
MISSING: Mapping[str, str] = {
    "namespaces": THREAD,
    "landlock": "confinement._LANDLOCK_ABI = 99",
    "limits": "def refuse(*a): raise ValueError('no')\nresource.setrlimit = refuse",
    "no-new-privileges": "confinement._PR_SET_NO_NEW_PRIVS = 9999",
    "filter": "program = encode(assemble('ld #0'))",
    "descriptors": "os.close(2)",
}


@pytest.mark.parametrize("layer", MISSING)
def test_a_missing_layer_is_named(layer: str, confinable: None) -> None:
    done = script(before=MISSING[layer], after="print('ran')", isolation=ISOLATION if layer == "namespaces" else "pass")
    assert (done.returncode, done.stdout.split()) == (5, [layer]), done.stderr
    assert layer in LAYERS


def test_other_threads_would_escape_landlock(confinable: None) -> None:
    assert script(before=THREAD, after="print('ran')").stdout.split() == ["descriptors"]


@pytest.mark.parametrize("layer", ["namespaces", "landlock"])
def test_a_looser_mode_goes_on_and_says_so(layer: str, confinable: None) -> None:
    """Without user namespaces, as in a container; without Landlock, as in an older kernel."""
    refuse = "def refuse(): raise Unconfined('namespaces', 'none here')\nconfinement.isolate = refuse"
    before = MISSING[layer] if layer == "landlock" else refuse
    after = "print(*made.missing)\nprint(*made.in_force)\nsys.stdout.flush()"
    done = script(before=before, after=after, isolation=ISOLATION, mode="auto")
    missing, in_force = done.stdout.splitlines()
    assert missing == layer, done.stderr
    assert {*in_force.split(), layer, "read-back"} == set(LAYERS)
    assert script(before=before, after=after, isolation=ISOLATION).stdout.split() == [layer]


def test_a_terminal_or_device_is_no_plain_descriptor(confinable: None) -> None:
    assert script(stdin=subprocess.DEVNULL).stdout.split() == ["descriptors"]


def test_nothing_is_sent_to_another_filter(confinable: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if another filter had been loaded, or none: the input stays outside."""
    sent: list[Mapping[str, Any]] = []
    send = Box.send
    monkeypatch.setattr(Box, "send", lambda self, message: sent.append(message) or send(self, message))
    others: list[dict[int, Loaded]] = [
        {7: Loaded((assemble("ret allow"),), "python", True, "2")}, {7: Loaded((), "python", True, "0")}, {},
    ]
    for other in others:
        monkeypatch.setattr(confined, "held_filters", lambda pid, other=other: other)
        made = solved("(assert true)")
        assert isinstance(made, Stopped)
        assert (made.reason, "read-back" in made.detail) == (Reason.SANDBOX, True)
    assert not [m for m in sent if "text" in m]


def test_what_is_said_before_the_confinement_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that was not given anything has nothing to say."""
    code = "import os, sys; os.write(int(sys.argv[1]), b'{\"result\": \"unsat\"}\\n'); os.read(0, 1)"
    monkeypatch.setattr(boxes, "worker_command", lambda work, incoming, outgoing: [
        sys.executable, "-c", code, str(outgoing)])
    sent: list[Mapping[str, Any]] = []
    send = Box.send
    monkeypatch.setattr(Box, "send", lambda self, message: sent.append(message) or send(self, message))
    assert isinstance(solved("x"), Stopped)
    assert not [m for m in sent if "text" in m]


def test_work(confinable: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    smt, ptx, bad = tmp_path / "q.smt2", tmp_path / "k.ptx", tmp_path / "bad"
    smt.write_text("(declare-const x Int)(assert (> x 3))(assert (< x 3))", encoding="utf-8")
    ptx.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n", encoding="utf-8")
    bad.write_text("(nonsense", encoding="utf-8")
    assert main(["sandbox", "do", "solve", str(smt)]) == 0
    assert capfd.readouterr().out == "unsat\n"
    assert main(["sandbox", "do", "print", str(ptx)]) == 0
    assert ".visible .entry k" in capfd.readouterr().out
    for work, code in (("solve", "BOX614"), ("print", "PTX009")):
        assert main(["sandbox", "do", work, str(bad)]) == 2
        assert code in capfd.readouterr().err
    assert main(["sandbox", "do", "solve", str(tmp_path / "none")]) == 2


def compiled(source: str) -> Any:
    text = {"text": source, "file": "k.cu", "arch": "sm_80", "kernel": None, "options": [], "headers": {}}
    return answer("cuda", {"headers": ["cuda_fp16.h"], "taken": []}, text, guard(seconds=60), Sandbox("strict"))


def test_compiling(confinable: None) -> None:
    try:
        nvrtc_version()
    except WarpproofError as error:
        pytest.skip(error.message)
    source = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1.f; }'
    made = compiled(source)
    assert isinstance(made, Mapping)
    assert ".visible .entry k(" in made["result"]["text"]
    assert ".visible .entry k(" in compiled(f"#include <cuda_fp16.h>\n{source}")["result"]["text"]
    assert "CUD701" in compiled("nonsense(")["rendered"]


def test_limits_stop_the_work(confinable: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    hard = tmp_path / "hard.smt2"
    hard.write_text("(declare-const x (_ BitVec 64))(declare-const y (_ BitVec 64))"
                    "(assert (= (bvmul x y) #xffffffffffffffc5))(assert (bvugt x #x0000000000000001))"
                    "(assert (bvugt y #x0000000000000001))"
                    "(assert (bvult x #x00000000ffffffff))(assert (bvult y #x0000000fffffffff))", encoding="utf-8")
    assert main(["sandbox", "do", "solve", str(hard), "--timeout", "4"]) == 3
    assert "BOX615" in capsys.readouterr().err


def test_a_missing_layer_is_exit_code_three(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    code = "import os, sys; os.write(int(sys.argv[1]), b'{\"missing\": \"landlock\", \"why\": \"none\"}\\n')"
    monkeypatch.setattr(boxes, "worker_command", lambda work, incoming, outgoing: [
        sys.executable, "-c", code, str(outgoing)])
    (tmp_path / "f").write_text("", encoding="utf-8")
    assert main(["sandbox", "do", "solve", str(tmp_path / "f")]) == 3
    error = capsys.readouterr().err
    assert "error[BOX613]" in error
    assert "the layer 'landlock' is missing" in error
