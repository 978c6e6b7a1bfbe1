"""A job in a child process that can be killed: a hang, crash or memory bomb becomes a reason, never a pass."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

from warpproof.core import Reason

MAX_ANSWER_BYTES: Final = 512 << 20
MAX_NOISE_CHARS: Final = 20_000
_MEMORY_SIGNS: Final = ("MemoryError", "bad_alloc", "out of memory", "Cannot allocate memory", "Unable to allocate")
_ENVIRONMENT: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The child's last message, and what it printed beside."""

    message: Mapping[str, Any]
    noise: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The child gave no answer: why, and what it was doing."""

    reason: Reason
    detail: str
    noise: str


def worker_command(write: int, memory_bytes: int) -> list[str]:
    """How the child is started. `-P` keeps the current folder, where a stray `numpy.py` may lie, off its path."""
    return [sys.executable, "-P", "-m", "warpproof.cli.worker", str(write), str(memory_bytes), str(os.getpid())]


def supervise(job: Mapping[str, Any], timeout_s: float, memory_bytes: int,
              on_stage: Callable[[str], None]) -> Answer | Stopped:
    """Run the job in a child of its own process group, under limits; the whole group is dead on return."""
    read, write = os.pipe()
    with tempfile.TemporaryFile("w+b") as noise, tempfile.TemporaryFile("w+b") as order:
        order.write(json.dumps(job).encode())
        order.seek(0)
        child = subprocess.Popen(worker_command(write, memory_bytes), stdin=order, stdout=noise, stderr=noise,
                                 pass_fds=(write,), start_new_session=True, env={**os.environ, **_ENVIRONMENT})
        try:
            os.close(write)
            return _converse(child, read, timeout_s, on_stage, noise)
        finally:
            _kill_group(child)
            os.close(read)


def _converse(child: subprocess.Popen[bytes], read: int, timeout_s: float, on_stage: Callable[[str], None],
              noise: IO[bytes]) -> Answer | Stopped:
    deadline = time.monotonic() + timeout_s
    listener = _Listener(read, on_stage)
    state = listener.listen(deadline)
    if isinstance(state, Mapping):
        return Answer(state, _noise(noise))
    if state == "late":
        detail = f"stopped after {timeout_s:g} s" + (f", while {listener.stage}" if listener.stage else "")
        return Stopped(Reason.TIMEOUT, detail, _noise(noise))
    if state == "garbled":
        return Stopped(Reason.CRASH, "the prover's answer cannot be read", _noise(noise))
    code = _exit_code(child.pid, seconds=5.0)
    if code is None:
        return Stopped(Reason.CRASH, "the prover closed its answer without giving one", _noise(noise))
    return _cause_of_death(code, listener.stage, _noise(noise))


class _Listener:
    """Reads the child's messages, one JSON object a line."""

    def __init__(self, read: int, on_stage: Callable[[str], None]) -> None:
        self._read, self._on_stage, self._buffer = read, on_stage, bytearray()
        self.stage = ""

    def listen(self, deadline: float) -> Mapping[str, Any] | str:
        """The final message; `late` at the deadline, `ended` if there is none, `garbled` if it is no message."""
        received = 0
        with selectors.DefaultSelector() as selector:
            selector.register(self._read, selectors.EVENT_READ)
            while True:
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    return "late"
                if not selector.select(min(remaining, 3600)):
                    continue
                chunk = os.read(self._read, 1 << 20)
                received += len(chunk)
                if not chunk or received > MAX_ANSWER_BYTES:
                    return "ended"
                try:
                    final = self._take(chunk)
                except ValueError:
                    return "garbled"
                if final is not None:
                    return final

    def _take(self, chunk: bytes) -> Mapping[str, Any] | None:
        self._buffer += chunk
        while b"\n" in chunk and b"\n" in self._buffer:
            line, _, rest = self._buffer.partition(b"\n")
            self._buffer = bytearray(rest)
            message = json.loads(line)
            if not isinstance(message, dict):
                raise ValueError("not a message")
            if "stage" not in message:
                return message
            self.stage = str(message["stage"])
            self._on_stage(self.stage)
        return None


def _exit_code(pid: int, seconds: float) -> int | None:
    """The exit code, or minus the signal, of a child that ends within the time; it is left unreaped."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is not None:
            return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        time.sleep(0.01)
    return None


def _cause_of_death(code: int, stage: str, noise: str) -> Stopped:
    where = f", while {stage}" if stage else ""
    if code == -signal.SIGKILL:
        return Stopped(Reason.MEMORY, f"killed by the system, most likely for its memory{where}", noise)
    if any(sign in noise[-4000:] for sign in _MEMORY_SIGNS):
        return Stopped(Reason.MEMORY, f"out of memory{where}", noise)
    if code == -signal.SIGXCPU:
        return Stopped(Reason.TIMEOUT, f"out of processor time{where}", noise)
    how = f"died of {signal.Signals(-code).name}" if code < 0 else f"ended with code {code} and no answer"
    return Stopped(Reason.CRASH, f"the prover {how}{where}", noise)


def _noise(noise: IO[bytes]) -> str:
    size = noise.seek(0, os.SEEK_END)
    noise.seek(max(0, size - MAX_NOISE_CHARS))
    return noise.read().decode("utf-8", "replace")


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    # The child is not reaped yet, so nobody else can have its process-group id.
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        child.kill()
    child.wait()


def default_memory() -> int:
    """Three quarters of the machine's memory, at most 16 GiB, in bytes."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(16 << 30, total * 3 // 4)
