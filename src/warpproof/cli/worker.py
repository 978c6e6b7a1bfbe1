"""What a worker's process needs for itself: its pipes, limits, and outcomes in which no exception is left."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import posix
import resource
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from warpproof.core import InputError, Reason, Unsupported, WarpproofError

STACK_BYTES: Final = 256 << 20
RECURSION_LIMIT: Final = 20_000
MAX_WRITTEN_BYTES: Final = 1 << 30
MEMORY_SIGNS: Final = ("MemoryError", "bad_alloc", "out of memory", "Cannot allocate memory", "Unable to allocate",
                      "failed to map segment", "can't start new thread")
DESCRIPTORS: Final = 5  # standard input, output and error, and the two pipes of the channel
_IN, _OUT = 3, 4
_PR_SET_PDEATHSIG: Final = 1


class Channel:
    """One JSON object a line, from and to the process outside."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._in, self._out, self._rest = incoming, outgoing, bytearray()
        for number in (incoming, outgoing):
            os.set_inheritable(number, False)

    def say(self, message: dict[str, Any]) -> None:
        """Send a message; ValueError or TypeError, with nothing sent, if it is not JSON."""
        view = memoryview(json.dumps(message, allow_nan=False).encode() + b"\n")
        while view:
            view = view[os.write(self._out, view) :]

    def hear(self) -> Any:
        """The next message; None when there will be none."""
        while (end := self._rest.find(b"\n")) < 0:
            part = os.read(self._in, 1 << 20)
            if not part:
                return None
            self._rest += part
        line, self._rest = self._rest[:end], self._rest[end + 1 :]
        return json.loads(line)

    def settle(self) -> None:
        """Move the pipes to the descriptors right behind the standard ones."""
        high = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 16) for number in (self._in, self._out)]
        for number, place in zip(high, (_IN, _OUT), strict=True):
            os.dup2(number, place, inheritable=False)
        self._in, self._out = _IN, _OUT


def limit(memory: int, parent: int) -> None:
    """Bound memory and what is written, and die with the process outside."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = memory if hard == resource.RLIM_INFINITY else min(memory, hard)
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    if hard == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_WRITTEN_BYTES, MAX_WRITTEN_BYTES))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the request took effect
            os._exit(1)


def forget_environment() -> None:
    """Leave nothing of the environment to what runs here next: neither in Python's copies, nor where the kernel put it
    or the C library keeps it. What Triton's compiler looks up again stays; it is the same in every run."""
    kept = {name: value for name, value in os.environ.items() if name.startswith("TRITON_")}
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        block = ctypes.POINTER(ctypes.c_void_p).in_dll(library, "environ")
        at = 0
        while block and (text := block[at]):
            ctypes.memset(text, 0, len(ctypes.string_at(text)))
            at += 1
        library.clearenv()
    os.environ.clear()
    posix.environ.clear()
    os.environ.update(kept)


def outcome(job: dict[str, Any], on_stage: Any) -> dict[str, Any]:
    """What becomes of a job of `tasks` in this process: `result`, `error` or `stopped` with a reason."""
    from warpproof.cli.tasks import perform

    return guarded(lambda: perform(job, on_stage))


def guarded(work: Callable[[], Any]) -> dict[str, Any]:
    """What becomes of the work: `result`, `error` or `stopped` with a reason. No exception leaves it."""
    try:
        return {"result": work()}
    except WarpproofError as error:
        return refusal(error)
    except Unsupported as error:
        return {"stopped": {"reason": Reason.UNSUPPORTED.value, "detail": _unsupported(error)}}
    except MemoryError:
        return {"stopped": {"reason": Reason.MEMORY.value, "detail": "out of memory"}}
    except Exception as error:  # the boundary: whatever went wrong is a reason, with the place for a bug report
        import traceback

        traceback.print_exc()
        reason = Reason.MEMORY if any(sign in str(error) for sign in MEMORY_SIGNS) else Reason.CRASH
        return {"stopped": {"reason": reason.value, "detail": _crash(error)}}
    except BaseException as error:  # SystemExit and the like are raised by the user's own files only
        return refusal(InputError("CLI604", f"the contract or spec file ends the interpreter ({type(error).__name__})",
                                  hint="guard what is not part of the contract by if __name__ == '__main__'"))


def refusal(error: WarpproofError) -> dict[str, Any]:
    """The message that says an input cannot be used."""
    span = error.span
    place = None if span is None else {"file": span.file, "line": span.line, "column": span.column}
    return {"error": {"code": error.code, "message": error.message, "hint": error.hint, "span": place},
            "rendered": error.render()}


def _unsupported(error: Unsupported) -> str:
    place = f"{error.span}: " if error.span else ""
    return f"{place}{error.form}: {error.why}" + (f"; {error.hint}" if error.hint else "")


def _crash(error: Exception) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" at {os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}" if frame else ""
    return f"internal error: {type(error).__name__}: {str(error)[:500]}{where}"
