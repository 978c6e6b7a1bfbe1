"""Confinement: what each layer does, that a missing one is named and nothing runs, and `sandbox run`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from warpproof.cli import confined, main
from warpproof.cli.confined import Outcome, run_confined
from warpproof.core import WarpproofError
from warpproof.frontends import nvrtc_version
from warpproof.sandbox import LAYERS, Kernel, Loaded, Unconfined, assemble

SCRIPT = """
import os, resource, socket, sys, threading
from warpproof.sandbox import Unconfined, assemble, confine, confinement, isolate
program = assemble("ret allow")
{before}
try:
    {isolation}
    confine(program, 8 << 30, 50)
except Unconfined as missing:
    print(missing.layer, flush=True)
    os._exit(5)
{after}
os._exit(0)
"""
ISOLATION = "pid = isolate()\n    if pid: os.waitpid(pid, 0); os._exit(0)"


def script(before: str = "", after: str = "", isolation: str = "pass", stdin: int = subprocess.PIPE,
           ) -> subprocess.CompletedProcess[str]:
    text = SCRIPT.format(before=before, after=after, isolation=isolation)
    return subprocess.run([sys.executable, "-c", text], stdin=stdin, capture_output=True, text=True, check=False,
                          timeout=60, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})


@pytest.fixture(scope="module")
def confinable(reader: Kernel) -> None:
    """Skips where this machine has no such layer at all: that is `sandbox run`'s answer too."""
    try:
        run_confined("solve", "(assert true)", timeout_s=30, memory_bytes=4 << 30)
    except Unconfined as missing:
        pytest.skip(str(missing))


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


def test_inherited_descriptors_are_closed(confinable: None) -> None:
    before = "secret = os.open('/etc/passwd', os.O_RDONLY); high = os.dup2(secret, 251)"
    after = "for f in (secret, 251):\n    try:\n        os.read(f, 1); print('read')\n    except OSError as e:\n" \
            "        print(e.errno)\nsys.stdout.flush()"
    assert script(before=before, after=after).stdout.split() == ["9", "9"]


MISSING: Mapping[str, str] = {
    "namespaces": "threading.Thread(target=threading.Event().wait, daemon=True).start()",
    "landlock": "confinement._LANDLOCK_ABI = 99",
    "limits": "def refuse(*a): raise ValueError('no')\nresource.setrlimit = refuse",
    "no-new-privileges": "confinement._PR_SET_NO_NEW_PRIVS = 9999",
    "filter": "program = assemble('ld #0')",
    "descriptors": "os.close(2)",
}


@pytest.mark.parametrize("layer", MISSING)
def test_a_missing_layer_is_named(layer: str, confinable: None) -> None:
    done = script(before=MISSING[layer], after="print('ran')", isolation=ISOLATION if layer == "namespaces" else "pass")
    assert (done.returncode, done.stdout.split()) == (5, [layer]), done.stderr
    assert layer in LAYERS


def test_a_terminal_or_device_is_no_plain_descriptor(confinable: None) -> None:
    assert script(stdin=subprocess.DEVNULL).stdout.split() == ["descriptors"]


def test_nothing_is_sent_to_another_filter(confinable: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if another filter had been loaded, or none: the input stays outside."""
    sent: list[str] = []
    monkeypatch.setattr(confined, "_send", lambda process, text: sent.append(text))
    others: list[Callable[[], dict[int, Loaded]]] = [
        lambda: {7: Loaded((assemble("ret allow"),), "python", True, "2")},
        lambda: {7: Loaded((), "python", True, "0")}, lambda: {},
    ]
    for other in others:
        monkeypatch.setattr(Kernel, "running", lambda self, pid, other=other: other())
        with pytest.raises(Unconfined) as error:
            run_confined("solve", "(assert true)", timeout_s=30, memory_bytes=4 << 30)
        assert error.value.layer == "read-back"
    assert sent == []


def test_a_confined_process_cannot_take_its_confinement_back(confinable: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it says after it has the input is an answer or nothing: `confined` or `missing` again are no answers."""
    said = [{"pid": 7}, {"confined": "solver"}, {"confined": "solver"}, {"answer": "unsat"}]
    sent: list[str] = []
    monkeypatch.setattr(confined, "_messages", lambda process, deadline: iter(said))
    monkeypatch.setattr(confined, "_read_back", lambda pid, program: None)
    monkeypatch.setattr(confined, "_send", lambda process, text: sent.append(text))
    made = run_confined("solve", "x", timeout_s=30, memory_bytes=4 << 30)
    assert made.answer is None
    assert made.stopped is not None
    assert sent == ["x"]
    said[:] = [{"pid": 7}, {"answer": "unsat"}]
    assert run_confined("solve", "x", timeout_s=30, memory_bytes=4 << 30).answer is None
    assert sent == ["x"]


def test_work(confinable: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    smt, ptx, bad = tmp_path / "q.smt2", tmp_path / "k.ptx", tmp_path / "bad"
    smt.write_text("(declare-const x Int)(assert (> x 3))(assert (< x 3))", encoding="utf-8")
    ptx.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n", encoding="utf-8")
    bad.write_text("(nonsense", encoding="utf-8")
    assert main(["sandbox", "run", "solve", str(smt)]) == 0
    assert capfd.readouterr().out == "unsat\n"
    assert main(["sandbox", "run", "print", str(ptx)]) == 0
    assert ".visible .entry k" in capfd.readouterr().out
    for work, code in (("solve", "BOX614"), ("print", "PTX009")):
        assert main(["sandbox", "run", work, str(bad)]) == 2
        assert code in capfd.readouterr().err
    assert main(["sandbox", "run", "solve", str(tmp_path / "none")]) == 2


def test_compiling(confinable: None) -> None:
    try:
        nvrtc_version()
    except WarpproofError as error:
        pytest.skip(error.message)
    source = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] = 1.f; }'
    made = run_confined("compile", source, timeout_s=60, memory_bytes=8 << 30)
    assert made.answer is not None
    assert ".visible .entry k(" in made.answer
    refused = run_confined("compile", "nonsense(", timeout_s=60, memory_bytes=8 << 30)
    assert refused.error is not None
    assert "CUD701" in refused.error


def test_limits_stop_the_work(confinable: None, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    hard = tmp_path / "hard.smt2"
    hard.write_text("(declare-const x (_ BitVec 64))(declare-const y (_ BitVec 64))"
                    "(assert (= (bvmul x y) #xffffffffffffffc5))(assert (bvugt x #x0000000000000001))"
                    "(assert (bvugt y #x0000000000000001))"
                    "(assert (bvult x #x00000000ffffffff))(assert (bvult y #x0000000fffffffff))", encoding="utf-8")
    assert main(["sandbox", "run", "solve", str(hard), "--timeout", "4"]) == 3
    assert "BOX615" in capsys.readouterr().err


def test_a_missing_layer_is_exit_code_three(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                            capsys: pytest.CaptureFixture[str]) -> None:
    def refuse(*_: object, **__: object) -> Outcome:
        raise Unconfined("landlock", "the kernel has none")

    monkeypatch.setattr("warpproof.cli.sandbox.run_confined", refuse)
    (tmp_path / "f").write_text("", encoding="utf-8")
    assert main(["sandbox", "run", "solve", str(tmp_path / "f")]) == 3
    assert "the layer 'landlock' is missing" in capsys.readouterr().err
