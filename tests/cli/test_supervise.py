"""Children that hang, crash, bomb or lie."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warpproof.cli import boxes
from warpproof.cli.boxes import Stopped
from warpproof.cli.confined import Sandbox
from warpproof.cli.supervise import Answer, supervise
from warpproof.core import Reason

PRELUDE = """
import json, os, resource, signal, sys, time
fd = int(sys.argv[1])
def say(**m): os.write(fd, json.dumps(m).encode() + b'\\n')
say(kernel={"path": sys.argv[2], "kernel": None, "sm": "sm_80", "options": [],
            "triton": {"arguments": [], "constexprs": {}, "divisible_by_16": [], "options": {}}})
say(confined={"layers": [], "missing": {}}, pid=os.getpid())
"""


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Supervise a child that runs the given code; gives the outcome, the stages and the seconds it took."""

    def start(code: str, timeout: float = 20.0, memory: int = 2 << 30) -> tuple[Answer | Stopped, list[str], float]:
        kernel = tmp_path / "kernel.ptx"
        kernel.write_text("", encoding="utf-8")
        monkeypatch.setattr(boxes, "worker_command", lambda work, incoming, outgoing: [
            sys.executable, "-c", PRELUDE + code, str(outgoing), str(kernel)])
        stages: list[str] = []
        began = time.monotonic()
        outcome = supervise({"task": "prove"}, timeout, memory, stages.append, Sandbox("off"))
        return outcome, stages, time.monotonic() - began

    return start


def stopped(outcome: Answer | Stopped) -> Stopped:
    assert isinstance(outcome, Stopped)
    return outcome


def test_an_answer_ends_it(child) -> None:
    outcome, stages, seconds = child("say(stage='a'); say(stage='b'); print('noise'); sys.stdout.flush()\n"
                                     "say(result={}); time.sleep(60)")
    assert outcome == Answer({"result": {}}, "noise\n")
    assert stages == ["reading kernel.ptx", "a", "b"]
    assert seconds < 10


def test_a_long_answer_in_pieces(child) -> None:
    outcome, _, _ = child("""
data = json.dumps({'result': {'long': 'x' * 3_000_000}}).encode() + b'\\n'
while data: data = data[os.write(fd, data[:100_003]):]
""")
    assert isinstance(outcome, Answer)
    assert len(outcome.message["result"]["long"]) == 3_000_000


def test_hang(child) -> None:
    outcome, _, seconds = child("say(stage='proving'); signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)",
                                timeout=0.5)
    assert stopped(outcome).reason is Reason.TIMEOUT
    assert "proving" in stopped(outcome).detail
    assert seconds < 10


def test_chatter_does_not_move_the_deadline(child) -> None:
    outcome, _, seconds = child("while True: say(stage='still busy'); time.sleep(0.01)", 0.5)
    assert stopped(outcome).reason is Reason.TIMEOUT
    assert seconds < 10


@pytest.mark.parametrize(("code", "reason"), [
    ("os.kill(os.getpid(), signal.SIGSEGV)", Reason.CRASH),
    ("os.abort()", Reason.CRASH),
    ("sys.exit(0)", Reason.CRASH),
    ("sys.exit(7)", Reason.CRASH),
    ("os.close(fd); sys.exit(1)", Reason.CRASH),
    ("os.write(fd, b'{\"result\": 1'); sys.exit(0)", Reason.CRASH),
    ("os.write(fd, b'no json\\n'); time.sleep(60)", Reason.CRASH),
    ("os.write(fd, b'[1]\\n'); time.sleep(60)", Reason.CRASH),
    ("os.write(fd, b'[' * 100_000 + b'\\n'); time.sleep(60)", Reason.CRASH),
    ("say(kernel={'path': '/etc/passwd'}); time.sleep(60)", Reason.CRASH),
    ("say(confined={}, pid=1); time.sleep(60)", Reason.CRASH),
    ("say(question={'text': 3}); time.sleep(60)", Reason.CRASH),
    ("say(result=3); time.sleep(60)", Reason.CRASH),
    ("os.kill(os.getpid(), signal.SIGSYS)", Reason.SANDBOX),
    ("os.write(fd, b'\\xff\\n'); time.sleep(60)", Reason.CRASH),
    ("os.kill(os.getpid(), signal.SIGKILL)", Reason.MEMORY),
    ("sys.stderr.write('terminate: std::bad_alloc'); sys.stderr.flush(); os.abort()", Reason.MEMORY),
    ("resource.setrlimit(resource.RLIMIT_AS, (1 << 29,) * 2); b'x' * (1 << 30)", Reason.MEMORY),
    ("resource.setrlimit(resource.RLIMIT_CPU, (1, 5))\nwhile True: pass", Reason.TIMEOUT),
])
def test_no_answer(child, code: str, reason: Reason) -> None:
    outcome, _, seconds = child("say(stage='thinking')\n" + code)
    assert stopped(outcome).reason is reason
    assert stopped(outcome).detail
    assert seconds < 15


def test_grandchildren_die_too(child, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = f"""
import subprocess
p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])
open({str(note)!r}, 'w').write(str(p.pid))
"""
    for ending in ("say(result={})", "os.abort()", "time.sleep(60)"):
        child(code + ending, 1.5)
        pid = int(note.read_text())
        for _ in range(100):
            try:
                state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            except OSError:
                break
            if state == "Z":
                break
            time.sleep(0.05)
        else:
            pytest.fail(f"the grandchild survived {ending}")


def test_the_child_dies_with_its_parent(case, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    case.spec = f"import os, time\nopen({str(note)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)\n"
    parent = subprocess.Popen([sys.executable, "-m", "warpproof", "prove", *case.arguments()],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(400):
        if note.exists() and note.read_text():
            break
        time.sleep(0.05)
    pid = int(note.read_text())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the child outlived its parent")
