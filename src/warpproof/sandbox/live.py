"""The running kernel as an oracle: filters in a throwaway process, what becomes of calls, what it holds."""

from __future__ import annotations

import contextlib
import json
import platform
import select
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from warpproof.core import InputError, Unsupported
from warpproof.sandbox import actions
from warpproof.sandbox.instructions import Program, decode, encode
from warpproof.sandbox.interpreter import Call
from warpproof.sandbox.syscalls import I386, NATIVE

_PROBER: Final = Path(__file__).with_name("prober.py")
_ANSWER_S: Final = 30.0
_SIGSYS: Final = 31
_CAP_SYS_ADMIN: Final = 21
_GUARDS: Final = (4093, 4092)  # error numbers that no kernel uses
_MAX_FILTERS, _MAX_CALLS, _MAX_HEX = 64, 4096, 16 * 4096


@dataclass(frozen=True, slots=True)
class Seen:
    """What the kernel did with a call: "killed" (SIGSYS, also for trap), "errno" with its number, or "passed"."""

    kind: str
    number: int = 0

    def agrees(self, value: int) -> bool:
        """Whether that is what a filter's returned value stands for."""
        value = actions.effective(value)
        action = value & actions.ACTION_MASK
        if action == actions.ERRNO:
            return self == Seen("errno", value & actions.DATA_MASK)
        if actions.passes(value):
            return self.kind == "passed"
        return self.kind == "killed"


@dataclass(frozen=True, slots=True)
class Loaded:
    """The filters of a thread, most recently added first, and its name, no_new_privs bit and seccomp mode."""

    filters: tuple[Program, ...]
    name: str
    no_new_privs: bool
    mode: str


class Kernel:
    """A prober process, started at the first question. Not for use by two threads at once.

    With `elsewhere`, that answers the questions instead: a confined process has no prober of its own.
    """

    def __init__(self, elsewhere: Callable[[dict[str, Any]], Any] | None = None) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._elsewhere = elsewhere

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, if one runs."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()

    def refusal(self, program: Program) -> int:
        """0 if the kernel loads the program, else the errno of its refusal."""
        answer = self._probe([program], [], _GUARDS[0])
        value = answer["installed"][0]
        if value is None:
            raise Unsupported("live kernel", "the installation of the filter did not return")
        return -int(value)

    def observe(self, filters: Sequence[Program], calls: Sequence[Call]) -> tuple[Seen | None, ...]:
        """What becomes of the calls, in order, under the filters (oldest first); None after a call that killed.

        No call is carried out. `ip` is the kernel's to choose; only the native and the i386 architecture can be tried.
        An action that the kernel does not know is seen as "passed" although it kills: the guard's error is stricter.
        """
        if platform.machine() != "x86_64" or sys.platform != "linux":
            raise Unsupported("live kernel", f"filters are tried on x86-64 Linux, not on {platform.machine()}")
        first = self._probe(filters, calls, _GUARDS[0])
        # Only what passes shows the guard's number, whichever it is; a filter may return either of them itself.
        second = self._probe(filters, calls, _GUARDS[1])["results"] if -_GUARDS[0] in first["results"] else []
        if not first["guarded"] or any(value != 0 for value in first["installed"]):
            raise Unsupported("live kernel", f"the filters were not installed: {first['installed']}")
        seen: list[Seen | None] = []
        for at, value in enumerate(first["results"]):
            if value is None:
                dead = any(s is not None and s.kind == "killed" for s in seen)
                seen.append(None if dead or first["signal"] != _SIGSYS else Seen("killed"))
            else:
                passed = value == -_GUARDS[0] and second[at] == -_GUARDS[1]
                seen.append(Seen("passed") if passed else Seen("errno", -value))
        return tuple(seen)

    def _probe(self, filters: Sequence[Program], calls: Sequence[Call], guard: int) -> dict[str, Any]:
        described = [{"call": [c.nr, *c.args], "foreign": int(_foreign(c))} for c in calls]
        code = [encode(p).hex() for p in filters]
        return self._ask({"task": "probe", "filters": code, "calls": described, "guard": guard})

    def read_back(self, filters: Sequence[Program]) -> Loaded:
        """What the kernel holds after the filters (oldest first) were installed in a process of their own."""
        answer = self._ask({"task": "read_back", "filters": [encode(p).hex() for p in filters]})
        if "filters" not in answer:
            raise Unsupported("live kernel", f"reading filters back: {answer['error']}",
                              hint="PTRACE_SECCOMP_GET_FILTER needs CAP_SYS_ADMIN")
        return _loaded(answer)

    def running(self, pid: int) -> dict[int, Loaded]:
        """The filters of each thread of a running process; BOX605 if they may not be read."""
        answer = self._ask({"task": "running", "pid": pid})
        if "threads" not in answer:
            raise InputError("BOX605", f"process {pid}: {answer['error']}")
        for tid, thread in answer["threads"].items():
            if "filters" not in thread:
                raise InputError("BOX605", f"process {pid}, thread {tid}: {thread['error']}",
                                 hint="reading filters needs CAP_SYS_ADMIN and an unconfined reader")
        return {int(tid): _loaded(thread) for tid, thread in answer["threads"].items()}

    def answer_for(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to what a process asks whose word is worth nothing: only probes under the guard, and filters
        installed where no call is made. Anything else, and what cannot be answered, is `unsupported`."""
        if not _harmless(question):
            return {"unsupported": "the question is none that may be asked"}
        try:
            return self._ask(dict(question))
        except Unsupported as error:
            return {"unsupported": error.why}

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._elsewhere is not None:
            other = self._elsewhere(question)
            if not isinstance(other, dict) or "unsupported" in other:
                why = other.get("unsupported") if isinstance(other, dict) else "no answer"
                raise Unsupported("live kernel", str(why))
            return other
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen([sys.executable, "-I", str(_PROBER)], stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            ready = select.select([process.stdout], [], [], _ANSWER_S)[0]
            line = process.stdout.readline() if ready else b""
            answer: dict[str, Any] = json.loads(line)
        except (OSError, ValueError) as error:
            self.close()
            raise Unsupported("live kernel", f"the prober process gave no answer: {error}") from None
        return answer


def _harmless(question: Mapping[str, Any]) -> bool:
    """Exactly what `observe`, `refusal` and `read_back` ask: the guard is in force for every call, its error number is
    one of two, and filters are of bounded size. Under the guard no call is carried out."""
    filters, calls = question.get("filters"), question.get("calls", [])
    if not isinstance(filters, list) or not 1 <= len(filters) <= _MAX_FILTERS:
        return False
    if any(not isinstance(f, str) or len(f) > _MAX_HEX or len(f) % 16 or set(f) - set("0123456789abcdef")
           for f in filters):
        return False
    if question.get("task") == "read_back":
        return set(question) == {"task", "filters"} and len(filters) == 1
    proper = isinstance(calls, list) and len(calls) <= _MAX_CALLS and all(
        isinstance(c, dict) and set(c) == {"call", "foreign"} and c["foreign"] in (0, 1)
        and isinstance(c["call"], list) and len(c["call"]) == 7
        and all(type(v) is int and 0 <= v < 1 << 64 for v in c["call"]) for c in calls)
    return (question.get("task") == "probe" and set(question) == {"task", "filters", "calls", "guard"} and proper
            and question["guard"] in _GUARDS)


def load_reader() -> None:
    """Import what `held_filters` needs, at a time when nobody waits for it."""
    import warpproof.sandbox.prober  # noqa: F401


def held_filters(pid: int) -> dict[int, Loaded] | str:
    """The filters of each thread of a process, asked for by this one; if the kernel does not show them, why not."""
    from warpproof.sandbox import prober

    try:
        with open("/proc/self/status", encoding="utf-8") as file:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    except OSError as error:
        return f"/proc/self/status: {error.strerror}"
    if not int(status["CapEff"], 16) >> _CAP_SYS_ADMIN & 1:
        return "it needs CAP_SYS_ADMIN"
    if status.get("Seccomp", "0") != "0":
        return "this process is itself under a filter"
    answer = prober.running({"pid": pid})
    if "threads" not in answer:
        return str(answer["error"])
    refused = next((t["error"] for t in answer["threads"].values() if "filters" not in t), None)
    return refused or {int(tid): _loaded(thread) for tid, thread in answer["threads"].items()}


def _foreign(call: Call) -> bool:
    if call.arch not in (NATIVE, I386):
        raise Unsupported("live kernel", f"architecture {call.arch:#x} cannot be tried on this machine")
    return call.arch == I386


def _loaded(answer: dict[str, Any]) -> Loaded:
    filters = tuple(decode(bytes.fromhex(text)) for text in answer["filters"])
    status = answer["status"]
    return Loaded(filters, status["Name"], status["NoNewPrivs"] == "1", status["Seccomp"])
