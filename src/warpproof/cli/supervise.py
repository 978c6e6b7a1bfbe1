"""A job in worker processes that can be killed: a hang, crash or memory bomb becomes a reason, never a pass.

One worker executes the user's own files, confines itself and judges; one compiles; one answers SMT questions. They
never share a process: who breaks the compiler does not reach the judge. Only this process talks to all of them.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from warpproof.cli.boxes import Box, Guard, Stopped
from warpproof.cli.confined import Sandbox, Solver, confirm, finish, is_question, unconfined
from warpproof.cli.worker import refusal
from warpproof.core import InputError, Reason, WarpproofError
from warpproof.sandbox import Unconfined, load_reader

_CODE: Final = re.compile(r"(CUD|PTX)\d{3}")
_NAME: Final = re.compile(r"[\w$]{1,5000}")
_VERSION: Final = re.compile(r"[\w.+-]{1,40}")
_REASONS: Final = frozenset(reason.value for reason in Reason)
_MAX_MESSAGE_CHARS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Answer:
    """The worker's last message, and what it printed beside."""

    message: Mapping[str, Any]
    noise: str


def supervise(job: Mapping[str, Any], timeout_s: float, memory_bytes: int, on_stage: Callable[[str], None],
              sandbox: Sandbox | None = None) -> Answer | Stopped:
    """Do the job of `prove`, `run` or `replay`, confined as `sandbox` says, by default in mode `auto`; there it is
    written what was in force. All processes are dead on return."""
    sandbox = sandbox or Sandbox("auto")
    guard = Guard(sandbox.mode, memory_bytes, time.monotonic() + timeout_s)
    with Box("judge", job, guard) as box:
        load_reader()
        run = _Run(box, guard, sandbox, on_stage)
        try:
            made = run.converse()
        finally:
            run.close()
        if isinstance(made, Stopped):
            late = made.reason is Reason.TIMEOUT and guard.left <= 0
            detail = f"stopped after {timeout_s:g} s{box.where()}" if late else made.detail
            return Stopped(made.reason, detail, made.noise)
        return Answer(made, box.noise())


def _quoted(message: str) -> str:
    """A message of a process that the kernel's author may have in hand: its further lines are marked as quoted, so that
    none of them can pass for a line of a report."""
    first, *others = message[:_MAX_MESSAGE_CHARS].splitlines() or [""]
    return "\n".join([first, *(f"  | {line}" for line in others)])


class _Run:
    """The talk with the worker that judges, which has others do part of the work."""

    def __init__(self, box: Box, guard: Guard, sandbox: Sandbox, on_stage: Callable[[str], None]) -> None:
        self._box, self._guard, self._sandbox, self._on_stage = box, guard, sandbox, on_stage
        self._kernel: _Kernel | None = None
        self._solver = Solver(guard, sandbox)
        self._sent = False

    def close(self) -> None:
        """End the workers that were started for this one."""
        self._solver.close()
        if self._kernel is not None:
            self._kernel.close()

    def converse(self) -> Mapping[str, Any] | Stopped:
        """Until the answer, or why there is none. What the worker may say depends on whether it has the kernel yet:
        before, it ran nothing but the user's own files; afterwards its word is worth nothing but as an answer."""
        while True:
            message = self._box.receive()
            if isinstance(message, Stopped):
                return message
            made = self._take(message)
            if made is not None:
                return made

    def _take(self, message: Mapping[str, Any]) -> Mapping[str, Any] | Stopped | None:
        match message:
            case {"stage": str(stage)}:
                self._on_stage(stage)
            case {"error": dict(), "rendered": str()} | {"stopped": {"reason": str(), "detail": str()}}:
                return message
            case {"missing": str(layer), "why": str(why)} if not self._sent:
                return unconfined(layer, why, self._sandbox.mode)
            case {"kernel": dict(request)} if not self._sent and self._kernel is None:
                return self._start(request)
            case {"confined": dict(), "pid": int()} if not self._sent and self._kernel is not None:
                return self._hand_in(message)
            case {"question": dict(question)} if self._sent and is_question(question):
                self._box.send(self._solver.ask(question))
            case {"result": dict()} if self._sent:
                return message
            case _:
                return Stopped(Reason.CRASH, "the worker said something that is no answer", self._box.noise())
        return None

    def _start(self, request: dict[str, Any]) -> Mapping[str, Any] | Stopped | None:
        """The kernel's file is read, and its compiler started, while the worker goes on loading the prover."""
        try:
            self._kernel = _Kernel(request, self._guard)
        except WarpproofError as error:
            return refusal(error)
        except (KeyError, TypeError, ValueError, AttributeError):
            return Stopped(Reason.CRASH, "the worker asked for no kernel that there can be", self._box.noise())
        return None

    def _hand_in(self, message: Mapping[str, Any]) -> Mapping[str, Any] | Stopped | None:
        assert self._kernel is not None
        try:
            confirm(self._box.program, self._sandbox, message)
        except Unconfined as error:
            return unconfined(error.layer, error.why, self._sandbox.mode)
        self._on_stage(self._kernel.stage)
        self._box.stage = self._kernel.stage
        given = self._kernel.ptx(self._sandbox)
        if isinstance(given, Stopped) or "text" not in given:
            return given
        self._sent = True
        self._box.send(given)
        return None


class _Kernel:
    """The candidate's file: read here and looked at nowhere but in workers."""

    def __init__(self, request: dict[str, Any], guard: Guard) -> None:
        from warpproof.frontends import Request, kernel_kind

        self._request = Request.from_dict(request)
        path = Path(self._request.path)
        self._file, self._kind = path.name, kernel_kind(path)
        self.stage = f"reading {path.name}" if self._kind == "ptx" else f"compiling {path.name}"
        self._box: Box | None = None
        self._read(path, guard)

    def _read(self, path: Path, guard: Guard) -> None:
        from warpproof.frontends import included, read_source, triton_job, wanted_headers

        request = self._request
        self._text = read_source(path)
        if self._kind == "cuda":
            own = included(self._text, path.resolve().parent, request.options)
            self._given: dict[str, Any] = {
                "text": self._text, "file": self._file, "arch": request.sm, "kernel": request.kernel,
                "options": list(request.options), "headers": dict(own.texts)}
            self._box = Box("cuda", {"headers": wanted_headers(own), "taken": list(own.texts)}, guard)
        elif self._kind == "triton":
            self._given = triton_job(self._text, self._file, request.triton, request.sm, request.kernel)
            self._box = Box("triton", {}, guard)

    def ptx(self, sandbox: Sandbox) -> Mapping[str, Any] | Stopped:
        """What the judge is given: PTX with `text` and more. Else an error's message, or why there is none."""
        if self._box is None:
            return {**self._given_on(self._text, self._request.kernel, ""), "file": self._file}
        made = finish(self._box, self._given, sandbox)
        self._box.close()
        if isinstance(made, Stopped):
            return Stopped(made.reason, f"{made.detail}, while {self.stage}", "")
        match made:
            case {"error": {"code": str(code), "message": str(message), "hint": str(hint)}} if _CODE.fullmatch(code):
                return refusal(InputError(code, _quoted(message), hint=_quoted(hint)))
            case {"stopped": {"reason": str(reason), "detail": str(detail)}} if reason in _REASONS:
                return Stopped(Reason(reason), f"{detail[:_MAX_MESSAGE_CHARS]}, while {self.stage}", "")
            case {"result": {"text": str(ptx), "kernel": str(kernel), "version": str(version), "log": str(log)}} if (
                    _NAME.fullmatch(kernel) and _VERSION.fullmatch(version)):
                return self._given_on(ptx, kernel, version, log)
        return Stopped(Reason.CRASH, f"the compiler's answer is none, while {self.stage}")

    def _given_on(self, ptx: str, kernel: str | None, version: str, log: str = "") -> Mapping[str, Any]:
        """The compiler's word counts for the PTX only: what it was made from is known here."""
        asked = self._request.kernel
        if self._kind == "triton":
            asked, kernel = kernel, None  # the PTX has one kernel, under a name of its own
        origin = {"ptx": "ptx", "cuda": f"nvrtc {version}", "triton": f"triton {version}"}[self._kind]
        sources = {} if self._kind == "ptx" else {self._file: self._text}
        arch = "" if self._kind == "ptx" else self._request.sm
        return {"text": ptx, "file": str(Path(self._file).with_suffix(".ptx")), "kernel": kernel, "asked": asked,
                "arch": arch, "origin": origin, "sources": sources, "log": log}

    def close(self) -> None:
        """End the compiler, if one runs."""
        if self._box is not None:
            self._box.close()


def default_memory() -> int:
    """Three quarters of the machine's memory, at most 16 GiB, in bytes."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(16 << 30, total * 3 // 4)
