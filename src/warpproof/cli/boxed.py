"""The inside of a worker process: `python -m warpproof.cli.boxed WORK IN OUT PARENT`, two pipes and a process number.

First comes an order: how to confine, by which filter, limits, and what the user trusts. The process loads everything
that the work needs, confines itself, says so, and only then gets what it works on, one message at a time.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import traceback  # noqa: F401 - for a crash, loaded beforehand
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from warpproof.cli.worker import DESCRIPTORS, RECURSION_LIMIT, Channel, forget_environment, guarded, limit
from warpproof.cli.works import WORKS, Do
from warpproof.core import Reason
from warpproof.sandbox import Confinement, Unconfined


def main() -> NoReturn:
    """Load, confine, serve, leave without any clean-up."""
    work, channel = WORKS[sys.argv[1]], Channel(int(sys.argv[2]), int(sys.argv[3]))
    order = channel.hear()
    try:
        limit(order["memory"], int(sys.argv[4]))
    except (OSError, ValueError) as error:
        channel.say({"missing": "limits", "why": str(error)})
        _leave(1)
    warnings.simplefilter("ignore")  # whatever a reference or library warns of is not part of the answer
    sys.setrecursionlimit(RECURSION_LIMIT)
    begun = guarded(lambda: work.begin(order["job"], channel))
    if "result" not in begun:
        channel.say(begun)
        _leave(0)
    if work.forgets:
        forget_environment()
    gc.freeze()  # what was loaded stays; a fork then shares it, since no collection writes to it
    confinement = Confinement(order["mode"])
    try:
        _wait_for(confinement.isolate())
        pid = _number()
        _quiet(channel)
        confinement.confine(order["memory"], order["seconds"], DESCRIPTORS, more=order["more"],
                            grants=[(path, writable) for path, writable in order["grants"]])
    except Unconfined as missing:
        channel.say({"missing": missing.layer, "why": missing.why})
        _leave(1)
    threading.stack_size(work.stack_bytes)  # if there is no room for it, the traceback says so
    thread = threading.Thread(target=_serve, args=(channel, confinement, bytes.fromhex(order["filter"]), pid,
                                                   begun["result"]))
    thread.start()
    thread.join()
    os._exit(1)


def _serve(channel: Channel, confinement: Confinement, code: bytes, pid: int, do: Do) -> NoReturn:
    """The filter goes on last, when this thread runs and the other one waits."""
    try:
        confinement.filter(code)
    except Unconfined as missing:
        channel.say({"missing": missing.layer, "why": missing.why})
        _leave(1)
    channel.say({"confined": confinement.report(), "pid": pid})
    while (given := channel.hear()) is not None:
        _answer(channel, lambda given=given: do(given))  # type: ignore[misc]
    _leave(0)


def _answer(channel: Channel, work: Callable[[], Any]) -> None:
    message = guarded(work)
    try:
        channel.say(message)
    except (TypeError, ValueError, MemoryError, RecursionError) as error:
        channel.say({"stopped": {"reason": Reason.CRASH.value, "detail": f"the answer cannot be written: {error}"}})


def _wait_for(inner: int) -> None:
    """Outside the namespaces: end as the process inside ends. Inside, or without namespaces: nothing."""
    if inner == 0:
        return
    os.closerange(0, 1 << 16)
    _, status = os.waitpid(inner, 0)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


def _number() -> int:
    """The number of this process where the process file system was mounted, which is outside."""
    try:
        return int(os.readlink("/proc/self"))
    except (OSError, ValueError):
        return os.getpid()


def _quiet(channel: Channel) -> None:
    """From here on prints go to standard error, and the channel has its place."""
    sys.stdout.flush()
    sys.stderr.flush()
    sys.stdout = sys.stderr
    channel.settle()


def _leave(code: int) -> NoReturn:
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
