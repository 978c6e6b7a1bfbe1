"""`prove`, `run` and `replay`: do the job in a supervised child, print the answer, choose the exit code."""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from warpproof.cli.progress import Progress
from warpproof.cli.supervise import Answer, Stopped, default_memory, supervise
from warpproof.core import InputError, Reason, Verdict, WarpproofError
from warpproof.judge import Report, undecided
from warpproof.report import error_dict, from_dict, print_lines, report_lines, to_dict, to_json

_EXIT: Final = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.INCONCLUSIVE: 3}
_FIELDS: Final = ("contract", "spec", "kernel", "launch", "kernel_name", "arch", "seed", "sample", "file")


def run_command(arguments: argparse.Namespace) -> int:
    """Do `prove`, `run` or `replay` and return the exit code."""
    job: dict[str, Any] = {name: value for name in _FIELDS if (value := getattr(arguments, name, None)) is not None}
    job |= {"task": arguments.command, "options": getattr(arguments, "option", []), "timeout_s": arguments.timeout}
    previous = signal.signal(signal.SIGTERM, _terminate)
    started = time.monotonic()
    try:
        if arguments.debug:
            return _finish(arguments, _in_process(job), started)
        memory = int(arguments.memory * 2**30) if arguments.memory else default_memory()
        with Progress(sys.stderr, arguments.timeout) as progress:
            answer = supervise(job, arguments.timeout, memory, progress.show)
        return _finish(arguments, answer, started)
    except WarpproofError as error:
        return _print_error(arguments.format, error_dict(error)["error"], error.render())
    except (KeyboardInterrupt, SystemExit) as stop:
        code = stop.code if isinstance(stop, SystemExit) and isinstance(stop.code, int) else 130
        if arguments.command == "prove":
            _print_report(arguments, undecided(_name(arguments), Reason.TIMEOUT, f"interrupted by signal {code - 128}",
                                               time_s=time.monotonic() - started))
        return code
    finally:
        signal.signal(signal.SIGTERM, previous)


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _in_process(job: Mapping[str, Any]) -> Answer:
    from warpproof.cli.tasks import perform

    return Answer({"result": perform(job, lambda stage: print(stage, file=sys.stderr))}, "")


def _finish(arguments: argparse.Namespace, answer: Answer | Stopped, started: float) -> int:
    elapsed = time.monotonic() - started
    if isinstance(answer, Answer) and "stopped" in answer.message:
        stopped = answer.message["stopped"]
        answer = Stopped(Reason(stopped["reason"]), str(stopped["detail"]), answer.noise)
    if isinstance(answer, Stopped):
        return _finish_stopped(arguments, answer, elapsed)
    if answer.noise:
        sys.stderr.write(answer.noise)
    if "error" in answer.message:
        return _print_error(arguments.format, answer.message["error"], str(answer.message["rendered"]))
    result = answer.message["result"]
    if arguments.command == "prove":
        report = from_dict(result)
        if arguments.save and report.counterexample is not None:
            _save(arguments, report)
        return _print_report(arguments, report)
    return _print_run(arguments.format, result)


def _finish_stopped(arguments: argparse.Namespace, stopped: Stopped, elapsed: float) -> int:
    if stopped.reason is not Reason.CRASH and stopped.noise and arguments.format == "text":
        sys.stderr.write(stopped.noise)
    if arguments.command != "prove":
        return _print_stopped(arguments, stopped)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    report = undecided(_name(arguments), stopped.reason, stopped.detail, time_s=elapsed, peak_mb=peak)
    return _print_report(arguments, report)


def _print_stopped(arguments: argparse.Namespace, stopped: Stopped) -> int:
    """A `run` or `replay` without an outcome."""
    if arguments.format == "json":
        value = {"reason": stopped.reason.value, "detail": stopped.detail}
        sys.stdout.write(to_json({"schema": 1, "kernel": _name(arguments), "agrees": None, "stopped": value}) + "\n")
    else:
        line = f"{_name(arguments)}  no outcome: {stopped.reason.value}: {stopped.detail}"
        print_lines([((line, "yellow"),)], sys.stdout)
    return 4 if stopped.reason is Reason.CRASH else 3


def _print_report(arguments: argparse.Namespace, report: Report) -> int:
    if arguments.format == "json":
        sys.stdout.write(to_json(to_dict(report)) + "\n")
    else:
        print_lines(report_lines(report), sys.stdout)
    reasons = {p.reason for p in report.properties.values() if p is not None}
    internal = report.verdict is Verdict.INCONCLUSIVE and Reason.CRASH in reasons
    return 4 if internal else _EXIT[report.verdict]


def _print_error(form: str, error: Mapping[str, Any], rendered: str) -> int:
    if form == "json":
        sys.stdout.write(to_json({"schema": 1, "verdict": None, "error": error}) + "\n")
    print_lines([((line, ""),) for line in rendered.splitlines()], sys.stderr)
    return 2


def _print_run(form: str, result: Mapping[str, Any]) -> int:
    if form == "json":
        sys.stdout.write(to_json(result) + "\n")
    else:
        from warpproof.cli.runs import run_lines

        print_lines(run_lines(result), sys.stdout)
    return 0 if result["agrees"] else 1


def _save(arguments: argparse.Namespace, report: Report) -> None:
    job = {name: _absolute(name, getattr(arguments, name, None)) for name in _FIELDS}
    bundle = {"schema": 1, "job": {**job, "options": arguments.option}, "report": to_dict(report)}
    try:
        Path(arguments.save).write_text(to_json(bundle) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError("CLI602", f"cannot write {arguments.save!r}: {error.strerror}") from None


def _absolute(name: str, value: object) -> object:
    is_path = name in ("contract", "spec", "kernel", "launch") and isinstance(value, str)
    return os.path.abspath(value) if is_path and isinstance(value, str) else value


def _name(arguments: argparse.Namespace) -> str:
    names = (arguments.kernel_name, arguments.kernel, arguments.contract) if arguments.command != "replay" else ()
    return next((str(n) for n in names if n), getattr(arguments, "file", None) or "kernel")

