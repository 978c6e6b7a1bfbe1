"""One case of `fuzz.py` run under limits: in the parser, in a fork of the loaded prover, or as a whole command."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from hostile import LIMITS, Case

import warpproof.api  # noqa: F401 - loaded before the forks
from warpproof.cli.arguments import parse_arguments
from warpproof.cli.worker import RECURSION_LIMIT, STACK_BYTES, outcome
from warpproof.core import InputError, Unsupported
from warpproof.ptx import parse, resolve

WALL_S: Final = float(LIMITS[1]) + 12.0
PARSE_S: Final = 5.0
MEMORY_MB: Final = float(LIMITS[3]) * 1024 + 300
SHARED_BYTES: Final = 1 << 30
LATE: Final = "late"


@dataclass(frozen=True, slots=True)
class Result:
    """What a case did: `code` as of a shell (-1 for a parser case), and `fault`, empty when all is well."""

    code: int
    seconds: float
    peak_mb: float
    fault: str
    output: str


class Late(Exception):
    """The processor time of a parser case is over."""


def _late(number: int, frame: FrameType | None) -> NoReturn:
    raise Late


def run_parser(case: Case) -> Result:
    """Parse and resolve in this process; it hangs when it takes more than `PARSE_S` of processor time."""
    text = case.files["kernel.ptx"].decode("utf-8", "replace")
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, PARSE_S)
    fault = output = ""
    try:
        module = parse(text, "kernel.ptx")
        for entry in module.entries()[:3]:
            resolve(module, entry.name)
    except InputError as error:
        output = error.render()
    except Unsupported as error:
        output = str(error)
    except Late:
        fault = "hang in the parser"
    except Exception as error:  # noqa: BLE001 - what should not come out is what this looks for
        fault = f"{type(error).__name__} from {_innermost(error)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if not fault and peak > MEMORY_MB:
        fault = "memory of the parser"
    return Result(-1, time.monotonic() - began, peak, fault, output)


def _innermost(error: BaseException) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return f"{Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}" if frame else "nowhere"


def run_command(case: Case, folder: Path | None = None) -> Result:
    """Run `warpproof` on the case's files, in a folder of its own."""
    with tempfile.TemporaryDirectory() as made:
        where = folder or Path(made)
        for name, data in case.files.items():
            (where / name).write_bytes(data)
        (where / "folder.py").mkdir(exist_ok=True)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            command = [sys.executable, "-m", "warpproof", *case.argv]
            began = time.monotonic()
            child = subprocess.Popen(command, cwd=where, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     start_new_session=True)
            code, peak = _wait(child, began + WALL_S)
            seconds = time.monotonic() - began
            texts = [_read(f) for f in (out, err)]
    return Result(code, seconds, peak, fault_of(case, code, peak, *texts), "\n".join(texts))


def _wait(child: subprocess.Popen[bytes], deadline: float) -> tuple[int, float]:
    """The exit code as of a shell (-999 when it had to be killed) and the peak memory of it and what it waited for."""
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, usage.ru_maxrss / 1024
        if time.monotonic() > deadline:
            os.killpg(child.pid, signal.SIGKILL)
            _, _, usage = os.wait4(child.pid, 0)
            child.returncode = -999
            return -999, usage.ru_maxrss / 1024
        time.sleep(0.005)


def _read(file: Any) -> str:
    file.seek(0)
    return bytes(file.read(1 << 22)).decode("utf-8", "replace")


def fault_of(case: Case, code: int, peak: float, out: str, err: str) -> str:
    """What is wrong with an answer; empty when nothing is."""
    if code == -999:
        return "hang"
    if "Traceback (most recent call last)" in err and case.kind != "contract":
        return "traceback: " + _last_frame(err)
    if "Traceback (most recent call last)" in err and "/warpproof/" in err:
        return "traceback: " + _last_frame(err)
    if code not in (0, 1, 2, 3, 4):
        return f"exit code {code}"
    if code == 4 and not case.dies:
        found = re.search(r"internal error: (.*)|the prover ([^\"]*)", out + err)
        return "internal: " + (re.sub(r"'.*'|\d{3,}", "…", found[0])[:160] if found else "without a reason")
    if code == 2 and "error[" not in err and "usage" not in err:
        return "exit code 2 without an error"
    if peak > MEMORY_MB:
        return "memory"
    if "--format json" in " ".join(case.argv) and case.kind != "arguments":
        try:
            json.loads(out)
        except ValueError:
            return "no JSON"
    return ""


def _last_frame(err: str) -> str:
    frames = re.findall(r'File "[^"]*?([\w.]+)", line (\d+)', err)
    name = re.findall(r"^(\w[\w.]*(?:Error|Exception|Warning|Interrupt|Exit)?)\b", err.strip().splitlines()[-1])
    place = ":".join(frames[-1]) if frames else "nowhere"
    return f"{name[0] if name else '?'} at {place}"


def run_forked(case: Case) -> Result:
    """What the prover's child process would do with the case, in a fork of this process that has it loaded already."""
    try:
        job = _job(case)
    except SystemExit:
        return run_command(case)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as made, tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as noise:
        for name, data in case.files.items():
            (Path(made) / name).write_bytes(data)
        pid = os.fork()
        if not pid:
            _child(job, made, answer.fileno(), noise.fileno())
        ended, peak = _reap(pid, began + float(LIMITS[1]))
        output, said = _read(answer), _read(noise)
    seconds = time.monotonic() - began
    return Result(_code(output), seconds, peak, _forked_fault(case, ended, peak, output), output + said)


def _code(output: str) -> int:
    """The exit code that the command would have for an answer; 4 without one."""
    try:
        message = json.loads(output)
    except ValueError:
        return 4
    if "result" in message:
        result = message["result"]
        shown = result["verdict"] if "verdict" in result else {True: "PROVED", False: "REFUTED"}[result["agrees"]]
        return {"PROVED": 0, "REFUTED": 1, "INCONCLUSIVE": 3}[shown]
    return 2 if "error" in message else 4 if message["stopped"]["reason"] == "crash" else 3


def _job(case: Case) -> dict[str, Any]:
    arguments = parse_arguments(case.argv)
    names = ("contract", "spec", "kernel", "launch", "kernel_name", "arch", "seed", "sample", "file")
    job = {n: v for n in names if (v := getattr(arguments, n, None)) is not None}
    return {**job, "task": arguments.command, "options": getattr(arguments, "option", []),
            "timeout_s": arguments.timeout}


def _child(job: Mapping[str, Any], folder: str, answer: int, noise: int) -> NoReturn:
    """In the fork: limits as in the product, the job in a thread with a deep stack, the answer into a file."""
    os.setsid()
    os.chdir(folder)
    os.dup2(noise, 1)
    os.dup2(noise, 2)
    bound = int(float(LIMITS[3]) * 2**30) + SHARED_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (bound, bound))
    warnings.simplefilter("ignore")
    sys.setrecursionlimit(RECURSION_LIMIT)
    threading.stack_size(STACK_BYTES)

    def answers() -> None:
        os.write(answer, json.dumps(outcome(dict(job), lambda stage: None), allow_nan=False).encode())

    thread = threading.Thread(target=answers)
    thread.start()
    thread.join()
    os._exit(0)


def _reap(pid: int, deadline: float) -> tuple[int, float]:
    """How the fork ended (-999: killed for its time) and its peak memory; its whole session is dead on return."""
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        late = time.monotonic() > deadline
        if done or late:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        if done:
            return os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024
        if late:
            return -999, os.wait4(pid, 0)[2].ru_maxrss / 1024
        time.sleep(0.002)


def _forked_fault(case: Case, ended: int, peak: float, output: str) -> str:
    if ended == -999:
        return LATE
    if peak > MEMORY_MB:
        return "memory"
    try:
        message = json.loads(output)
    except ValueError:
        return "" if case.dies else f"no answer, ended with {ended}"
    stopped = message.get("stopped")
    if stopped and stopped["reason"] == "crash" and not case.dies:
        return "internal: " + re.sub(r"'.*'|\d{3,}", "…", str(stopped["detail"]).removeprefix("internal error: "))[:160]
    return ""


def run(case: Case, whole: bool = False) -> Result:
    """The result of a case: of the parser, of the prover in a fork, or (`whole`) of the command."""
    if case.parser:
        return run_parser(case)
    if whole or case.whole:
        return run_command(case)
    result = run_forked(case)
    # The deadlines inside the prover are soft: whether the supervisor ends it is the command's business.
    return run_command(case) if result.fault == LATE else result
