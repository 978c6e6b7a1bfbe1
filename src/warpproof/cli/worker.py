"""The child's side of `supervise`: one job in, one answer out; `python -m warpproof.cli.worker FD BYTES PARENT`."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import threading
import warnings
from typing import Any, Final, NoReturn

from warpproof.core import InputError, Reason, Unsupported, WarpproofError

STACK_BYTES: Final = 256 << 20
RECURSION_LIMIT: Final = 20_000
MAX_WRITTEN_BYTES: Final = 1 << 30
_PR_SET_PDEATHSIG: Final = 1


def main() -> NoReturn:
    """Set the limits, do the job in a thread with a deep stack, answer, and leave without any clean-up."""
    answers, memory, parent = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    os.set_inheritable(answers, False)
    _limit(memory, parent)
    job = json.loads(sys.stdin.buffer.read())
    warnings.simplefilter("ignore")  # whatever a reference or library warns of is not part of the answer
    sys.setrecursionlimit(RECURSION_LIMIT)
    threading.stack_size(STACK_BYTES)
    thread = threading.Thread(target=_answer, args=(job, answers))
    thread.start()
    thread.join()
    sys.stderr.flush()
    os._exit(0)


def _limit(memory: int, parent: int) -> None:
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


def _answer(job: dict[str, Any], answers: int) -> None:
    message = outcome(job, lambda stage: _send(answers, {"stage": stage}))
    try:
        _send(answers, message)
    except (TypeError, ValueError, MemoryError) as error:
        _send(answers, {"stopped": {"reason": Reason.CRASH.value, "detail": f"the answer cannot be written: {error}"}})


def _send(answers: int, message: dict[str, Any]) -> None:
    data = json.dumps(message, allow_nan=False).encode() + b"\n"
    view = memoryview(data)
    while view:
        view = view[os.write(answers, view) :]


def outcome(job: dict[str, Any], on_stage: Any) -> dict[str, Any]:
    """What becomes of the job: `result`, `error` or `stopped` with a reason. No exception leaves it."""
    import traceback

    from warpproof.report import error_dict

    try:
        from warpproof.cli.tasks import perform

        return {"result": perform(job, on_stage)}
    except WarpproofError as error:
        return {"error": error_dict(error)["error"], "rendered": error.render()}
    except Unsupported as error:
        return {"stopped": {"reason": Reason.UNSUPPORTED.value, "detail": _unsupported(error)}}
    except MemoryError:
        return {"stopped": {"reason": Reason.MEMORY.value, "detail": "out of memory"}}
    except Exception as error:  # the boundary: whatever went wrong is a reason, with the place for a bug report
        traceback.print_exc()
        return {"stopped": {"reason": Reason.CRASH.value, "detail": _crash(error)}}
    except BaseException as error:  # SystemExit and the like are raised by the user's own files only
        left = InputError("CLI604", f"the contract or spec file ends the interpreter ({type(error).__name__})",
                          hint="guard what is not part of the contract by if __name__ == '__main__'")
        return {"error": error_dict(left)["error"], "rendered": left.render()}


def _unsupported(error: Unsupported) -> str:
    place = f"{error.span}: " if error.span else ""
    return f"{place}{error.form}: {error.why}" + (f"; {error.hint}" if error.hint else "")


def _crash(error: Exception) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = f" at {os.path.basename(frame.tb_frame.f_code.co_filename)}:{frame.tb_lineno}" if frame else ""
    return f"internal error: {type(error).__name__}: {str(error)[:500]}{where}"


if __name__ == "__main__":
    main()
