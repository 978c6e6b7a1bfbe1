"""SMT-LIB questions answered by z3 in a child process that can be killed; a crash or a timeout answers unknown."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_WORKER: Final = Path(__file__).with_name("worker.py")
_GRACE_S: Final = 0.5
_START_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class SmtAnswer:
    """`status` sat, unsat or unknown; the model's values by constant name when sat; why when unknown."""

    status: str
    model: Mapping[str, int] = field(default_factory=dict)
    detail: str = ""


class SmtWorker:
    """A z3 process, started at the first question and again after a kill.

    `memory_mb` limits the address space of the process. Not for use by two threads at once.
    """

    def __init__(self, memory_mb: int = 2048) -> None:
        self._memory = memory_mb
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    def ask(self, text: str, *, timeout_s: float = 10.0, rlimit: int = 0) -> SmtAnswer:
        """The answer to one script (declarations and assertions; no `check-sat` needed).

        `rlimit` is z3's deterministic resource limit (0: none); `timeout_s` is wall time, enforced by a kill.
        """
        fresh = self._start()
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return SmtAnswer("unknown", detail="the solver process does not start")
        question = {"text": text, "milliseconds": int(timeout_s * 1000), "rlimit": rlimit}
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            line = self._read_line(process, timeout_s + _GRACE_S + (_START_S if fresh else 0.0))
        except OSError as e:
            self.close()
            return SmtAnswer("unknown", detail=f"the solver process failed: {e}")
        if line is None:
            self.close()
            return SmtAnswer("unknown", detail="timeout")
        return self._decode(line)

    def _decode(self, line: bytes) -> SmtAnswer:
        try:
            reply = json.loads(line)
        except ValueError:
            self.close()
            return SmtAnswer("unknown", detail="the solver process crashed")
        status = reply.get("status")
        if status not in ("sat", "unsat"):
            return SmtAnswer("unknown", detail=str(reply.get("detail", "")))
        return SmtAnswer(status, {k: int(v) for k, v in reply.get("model", {}).items()})

    def _start(self) -> bool:
        if self._owner != os.getpid():  # after a fork the pipe belongs to the parent
            self._process, self._owner = None, os.getpid()
        if self._process is not None and self._process.poll() is None:
            return False
        self.close()
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(_WORKER), str(self._memory)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, close_fds=True,
        )
        return True

    @staticmethod
    def _read_line(process: subprocess.Popen[bytes], seconds: float) -> bytes | None:
        """One line, b"" at end of file, None when the time is over."""
        assert process.stdout is not None
        deadline, parts = time.monotonic() + seconds, b""
        handle = process.stdout.fileno()
        while not parts.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([handle], [], [], left)[0]:
                return None
            chunk = os.read(handle, 1 << 16)
            if not chunk:
                return b""
            parts += chunk
        return parts

    def close(self) -> None:
        """End the process, if one runs."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # unsent input of a killed process
                    pipe.close()


_SHARED: Final = SmtWorker()
atexit.register(_SHARED.close)


_other: Callable[[str, float, int], SmtAnswer] | None = None


def answer_with(other: Callable[[str, float, int], SmtAnswer] | None) -> None:
    """Let `other(text, timeout_s, rlimit)` answer for the process-wide worker; None undoes that."""
    global _other
    _other = other


def ask(text: str, *, timeout_s: float = 10.0, rlimit: int = 0) -> SmtAnswer:
    """The answer of the process-wide worker to one script."""
    if _other is not None:
        return _other(text, timeout_s, rlimit)
    return _SHARED.ask(text, timeout_s=timeout_s, rlimit=rlimit)
