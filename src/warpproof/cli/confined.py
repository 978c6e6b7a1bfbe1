"""`warpproof sandbox run`: a piece of work in a process whose confinement was checked before it got its input."""

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
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from warpproof.core import InputError, Unsupported
from warpproof.sandbox import Kernel, Program, Unconfined, compile_policy, shipped_policy

POLICIES: Final = {"compile": "compile", "print": "prove", "solve": "solver"}
_ENVIRONMENT: Final = ("PATH", "HOME", "LANG", "XDG_CACHE_HOME")
_MAX_ANSWER: Final = 1 << 26


@dataclass(frozen=True, slots=True)
class Outcome:
    """The work's answer, or why the input was refused, or why there is no answer."""

    answer: str | None = None
    error: str | None = None
    stopped: str | None = None


def run_confined(work: str, text: str, *, timeout_s: float, memory_bytes: int) -> Outcome:
    """Do the work on the text in a confined process. Unconfined names a missing layer; then the text was not sent.

    The layers: new namespaces, no descriptors but pipes and one file, a Landlock ruleset that grants nothing, limits,
    no_new_privs, the policy's filter on all threads; and what the kernel holds, read back, is the proved filter.
    """
    program = compile_policy(shipped_policy(POLICIES[work]))
    command = [sys.executable, "-P", "-m", "warpproof.cli.boxed", work, str(memory_bytes), str(int(timeout_s) + 1)]
    environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    with tempfile.TemporaryFile() as noise:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=noise, cwd="/",
                                   env=environment | {"PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"})
        try:
            return _converse(process, program, text, time.monotonic() + timeout_s)
        finally:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(BrokenPipeError):  # unsent input of a process that ended
                    if pipe is not None:
                        pipe.close()


def _converse(process: subprocess.Popen[bytes], program: Program, text: str, deadline: float) -> Outcome:
    inner, sent = 0, False
    for message in _messages(process, deadline):
        match message:
            case {"pid": int(number)} if not sent:
                inner = number
            case {"missing": str(layer), "why": str(why)} if not sent:
                raise Unconfined(layer, why)
            case {"confined": _} if not sent:
                _read_back(inner, program)
                _send(process, text)
                sent = True
            case {"error": str(error)}:
                return Outcome(error=error)
            case {"answer": str(answer)} if sent:
                return Outcome(answer=answer)
            case {"status": int(status)}:
                killed = status == -signal.SIGSYS
                why = "it made a system call that its policy does not allow" if killed else f"status {status}"
                return Outcome(stopped=f"the confined process ended without an answer: {why}")
            case _:
                return Outcome(stopped="the confined process said something that is no answer")
    return Outcome(stopped="the time limit was reached, or the confined process went away")


def _read_back(pid: int, program: Program) -> None:
    try:
        with Kernel() as kernel:
            threads = kernel.running(pid)
    except (InputError, Unsupported) as error:
        raise Unconfined("read-back", str(error)) from None
    for tid, thread in threads.items():
        if thread.filters != (program,) or not thread.no_new_privs or thread.mode != "2":
            raise Unconfined("read-back", f"thread {tid} holds {len(thread.filters)} filters, not the one proved")
    if not threads:
        raise Unconfined("read-back", "the process has no threads")


def _send(process: subprocess.Popen[bytes], text: str) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(text.encode("utf-8"))
        process.stdin.close()
    except BrokenPipeError:
        return  # it ended; its status says how


def _messages(process: subprocess.Popen[bytes], deadline: float) -> Iterator[dict[str, Any]]:
    """Lines until the end, the deadline, or more than an answer may have."""
    assert process.stdout is not None
    handle, pending = process.stdout.fileno(), b""
    while len(pending) < _MAX_ANSWER:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([handle], [], [], left)[0]:
            return
        part = os.read(handle, 1 << 16)
        if not part:
            return
        *lines, pending = (pending + part).split(b"\n")
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                message = None
            yield message if isinstance(message, dict) else {}
