"""The outside of a worker process: started, asked, watched, and killed with everything it started."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any, Final, Self

from warpproof.cli.worker import MEMORY_SIGNS
from warpproof.core import Reason
from warpproof.sandbox import Program, compile_policy, encode, shipped_policy

MAX_ANSWER_BYTES: Final = 256 << 20
MAX_VALUES: Final = 1 << 23  # of a message: two bytes of JSON can be an object of a hundred
MAX_NOISE_CHARS: Final = 20_000
# What a worker that holds nothing of the user's gets of the environment: where Python and its packages are.
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "HOME",
                "XDG_CACHE_HOME")
_SET: Final = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "MALLOC_ARENA_MAX": "1"}
POLICIES: Final = {"judge": "prove", "cuda": "compile", "triton": "triton", "print": "prove", "ask": "solver",
                   "solve": "solver", "verify": "prove", "litmus": "prove", "command": "command"}


@dataclass(frozen=True, slots=True)
class Stopped:
    """A worker gave no answer: why, and what it was doing."""

    reason: Reason
    detail: str
    noise: str = ""


@dataclass(frozen=True, slots=True)
class Guard:
    """How workers are run: the mode of confinement, bytes of memory, and when all has to be over (monotonic time)."""

    mode: str
    memory: int
    deadline: float

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self.deadline - time.monotonic()


@dataclass(frozen=True, slots=True)
class Outfit:
    """What a command has and a worker has not: a filter of its own, its standard streams, files, descriptors."""

    program: Program
    streams: tuple[int, int, int]
    grants: tuple[tuple[str, bool], ...]
    descriptors: int


@cache
def policy_filter(work: str) -> Program:
    """The filter that a work is confined by."""
    return compile_policy(shipped_policy(POLICIES[work]))


def worker_command(work: str, incoming: int, outgoing: int) -> list[str]:
    """How a worker is started. `-P` keeps the current folder, where a stray `numpy.py` may lie, off its path."""
    return [sys.executable, "-P", "-m", "warpproof.cli.boxed", work, str(incoming), str(outgoing), str(os.getpid())]


def worker_environment(work: str) -> dict[str, str]:
    """The user's own files see the user's environment; compilers and solvers see none of it."""
    if work == "judge":
        return {**os.environ, **_SET}
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    if work == "triton":
        kept.pop("HOME", None)
        kept |= {"TRITON_DISABLE_LINE_INFO": "1", "TRITON_DEFAULT_FP_FUSION": "1"}
    return {**kept, **_SET, "PYTHONDONTWRITEBYTECODE": "1"}


class Box:
    """A worker in a process group of its own. Leaving the `with` block kills the group."""

    def __init__(self, work: str, job: Mapping[str, Any], guard: Guard, memory: int | None = None,
                 outfit: Outfit | None = None) -> None:
        self.guard, self.stage = guard, ""
        self.program = outfit.program if outfit else policy_filter(work)
        self._pending, self._received = bytearray(), 0
        inside, self._write = os.pipe()
        self._read, outside = os.pipe()
        nothing, end = os.pipe()
        os.close(end)
        self._noise = tempfile.TemporaryFile("w+b")  # noqa: SIM115 - closed by `close`
        streams = outfit.streams if outfit else (nothing, self._noise, self._noise)
        try:
            self.process = subprocess.Popen(
                worker_command(work, inside, outside), stdin=streams[0], stdout=streams[1], stderr=streams[2],
                pass_fds=(inside, outside), start_new_session=True, env=worker_environment(work),
                cwd=None if work in ("judge", "command") else "/")
        finally:
            for number in (inside, outside, nothing):
                os.close(number)
        os.set_blocking(self._write, False)
        memory = min(memory or guard.memory, guard.memory)
        code = encode(self.program).hex() if guard.mode != "off" else ""
        self.send({"mode": guard.mode, "memory": memory, "seconds": max(1, int(guard.left)) + 5, "filter": code,
                   "grants": outfit.grants if outfit else (), "more": outfit.descriptors if outfit else 0, "job": job})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Kill the process group. The process is not reaped before, so nobody else can have its number."""
        if self._write < 0:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            self.process.kill()
        self.process.wait()
        for number in (self._write, self._read):
            os.close(number)
        self._write = -1
        self._noise.close()

    def send(self, message: Mapping[str, Any]) -> bool:
        """Hand a message in; False if the worker does not take it before the deadline. It never blocks for longer."""
        view = memoryview(json.dumps(message).encode() + b"\n")
        while view:
            if not select.select([], [self._write], [], max(0.0, min(self.guard.left, 3600.0)))[1]:
                return False
            try:
                view = view[os.write(self._write, view[: 1 << 16]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return False
        return True

    def receive(self, seconds: float | None = None, patience: float = 5.0) -> Mapping[str, Any] | Stopped:
        """The worker's next message, or why there is none. With `seconds`, TIMEOUT may come before the deadline; when
        it closes the channel, `patience` is how long it may take to end."""
        until = self.guard.deadline if seconds is None else min(self.guard.deadline, time.monotonic() + seconds)
        while (end := self._pending.find(b"\n")) < 0:
            left = until - time.monotonic()
            if left <= 0:
                return Stopped(Reason.TIMEOUT, "stopped at the time limit" + self.where(), self.noise())
            if not select.select([self._read], [], [], min(left, 3600.0))[0]:
                continue
            chunk = os.read(self._read, 1 << 20)
            self._received += len(chunk)
            if self._received > MAX_ANSWER_BYTES:
                return Stopped(Reason.CRASH, f"more than {MAX_ANSWER_BYTES >> 20} MiB of answers" + self.where())
            if not chunk:
                return self._ended(patience)
            self._pending += chunk
        line, self._pending = self._pending[:end], self._pending[end + 1 :]
        return self._parsed(line)

    def _parsed(self, line: bytearray) -> Mapping[str, Any] | Stopped:
        try:
            message = json.loads(line) if sum(map(line.count, b"[{,:")) <= MAX_VALUES else None
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, dict):
            return Stopped(Reason.CRASH, "the worker's answer cannot be read", self.noise())
        if isinstance(message.get("stage"), str):
            self.stage = message["stage"]
        return message

    def _ended(self, patience: float) -> Stopped:
        code, noise = _exit_code(self.process.pid, patience), self.noise()
        if code is None:
            return Stopped(Reason.CRASH, "the worker closed its answer without giving one", noise)
        return _cause_of_death(code, self.where(), noise)

    def process_code(self) -> int | None:
        """The exit code of the process, or minus the signal that ended it; None while it runs."""
        return _exit_code(self.process.pid, 0.0)

    def where(self) -> str:
        """What the worker last said that it was doing."""
        return f", while {self.stage}" if self.stage else ""

    def noise(self) -> str:
        """The last of what the worker printed."""
        size = self._noise.seek(0, os.SEEK_END)
        self._noise.seek(max(0, size - MAX_NOISE_CHARS))
        text = self._noise.read().decode("utf-8", "replace")
        with contextlib.suppress(OSError):
            self._noise.seek(0, os.SEEK_END)
        return text


def _exit_code(pid: int, seconds: float) -> int | None:
    """The exit code, or minus the signal, of a child that ends within the time; it is left unreaped."""
    deadline = time.monotonic() + seconds
    while True:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is not None:
            return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.01)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # most of the real-time signals have no name
        return f"signal {number}"


def _cause_of_death(code: int, where: str, noise: str) -> Stopped:
    if code == -signal.SIGSYS:
        return Stopped(Reason.SANDBOX, f"killed for a system call that its policy does not allow{where}", noise)
    if code == -signal.SIGKILL:
        return Stopped(Reason.MEMORY, f"killed by the system, most likely for its memory{where}", noise)
    if any(sign in noise[-4000:] for sign in MEMORY_SIGNS):
        return Stopped(Reason.MEMORY, f"out of memory{where}", noise)
    if code == -signal.SIGXCPU:
        return Stopped(Reason.TIMEOUT, f"out of processor time{where}", noise)
    how = f"died of {_signal_name(-code)}" if code < 0 else f"ended with code {code} and no answer"
    return Stopped(Reason.CRASH, f"the worker {how}{where}", noise)
