"""`prove`, `run` and `replay`: do the job in a supervised child, print the answer, choose the exit code."""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any, Final, NoReturn

from warpproof.cli.boxes import Stopped
from warpproof.cli.confined import Sandbox
from warpproof.cli.progress import Progress
from warpproof.cli.supervise import Answer, default_memory, supervise
from warpproof.core import InputError, Ledger, Reason, Verdict, WarpproofError
from warpproof.judge import Report, undecided
from warpproof.report import error_dict, from_dict, print_lines, report_lines, to_dict, to_json

_EXIT: Final = {Verdict.PROVED: 0, Verdict.REFUTED: 1, Verdict.INCONCLUSIVE: 3}
_LOUD: Final = "nothing is confined: compilers and prover read the kernel with all rights of the user"
_FIELDS: Final = ("contract", "spec", "kernel", "launch", "kernel_name", "arch", "seed", "sample", "file")


def run_command(arguments: argparse.Namespace) -> int:
    """Do `prove`, `run` or `replay` and return the exit code."""
    return _Command(arguments).execute()


class _Command:
    """One command: what was asked, and what confines the work."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.arguments, self.format = arguments, arguments.format
        self.sandbox = Sandbox("off" if arguments.debug else arguments.sandbox)
        self.started = time.monotonic()

    def execute(self) -> int:
        """Its exit code."""
        if self.sandbox.mode == "off":
            sys.stderr.write(f"warning: {_LOUD}\n")
        previous = signal.signal(signal.SIGTERM, _terminate)
        try:
            return self._finish(self._work())
        except WarpproofError as error:
            return _print_error(self.format, error_dict(error)["error"], error.render())
        except (KeyboardInterrupt, SystemExit) as stop:
            code = stop.code if isinstance(stop, SystemExit) and isinstance(stop.code, int) else 130
            if self.arguments.command == "prove":
                elapsed = time.monotonic() - self.started
                self._print_report(undecided(self._name(), Reason.TIMEOUT, f"interrupted by signal {code - 128}",
                                             time_s=elapsed))
            return code
        finally:
            signal.signal(signal.SIGTERM, previous)

    def _work(self) -> Answer | Stopped:
        arguments = self.arguments
        job: dict[str, Any] = {name: value for name in _FIELDS if (value := getattr(arguments, name, None)) is not None}
        job |= {"task": arguments.command, "options": getattr(arguments, "option", []), "timeout_s": arguments.timeout,
                "check_sizes": getattr(arguments, "check_sizes", [])}
        if arguments.debug:
            return _in_process(job)
        memory = int(arguments.memory * 2**30) if arguments.memory else default_memory()
        with Progress(sys.stderr, arguments.timeout) as progress:
            try:
                return supervise(job, arguments.timeout, memory, progress.show, self.sandbox)
            except OSError as error:
                return Stopped(Reason.CRASH, f"workers cannot be started or talked to: {error}")

    def _finish(self, answer: Answer | Stopped) -> int:
        if isinstance(answer, Stopped):
            return self._finish_stopped(answer)
        try:
            return self._finish_answer(answer)
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            detail = f"the worker's answer cannot be read: {type(error).__name__}"
            return self._finish_stopped(Stopped(Reason.CRASH, detail, answer.noise))

    def _finish_answer(self, answer: Answer) -> int:
        message = answer.message
        if "stopped" in message:
            return self._finish_stopped(Stopped(Reason(message["stopped"]["reason"]), message["stopped"]["detail"],
                                                answer.noise))
        _write_noise(answer.noise)
        if "error" in message:
            return _print_error(self.format, message["error"], str(message["rendered"]))
        if self.arguments.command != "prove":
            return self._print_run(message["result"])
        report = self._stated(from_dict(message["result"]))
        if self.arguments.save and report.counterexample is not None:
            self._save(report)
        return self._print_report(report)

    def _finish_stopped(self, stopped: Stopped) -> int:
        if stopped.reason not in (Reason.CRASH, Reason.MEMORY) and self.format == "text":
            _write_noise(stopped.noise)
        if self.arguments.command != "prove":
            return self._print_stopped(stopped)
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        elapsed = time.monotonic() - self.started
        return self._print_report(self._stated(undecided(self._name(), stopped.reason, stopped.detail, time_s=elapsed,
                                                         peak_mb=peak)))

    def _stated(self, report: Report) -> Report:
        """The report, with what has to be taken for granted when nothing was confined."""
        if self.sandbox.mode != "off":
            return report
        ledger = Ledger()
        ledger.use("no-sandbox", _LOUD, "--debug" if self.arguments.debug else "--no-sandbox")
        return replace(report, assumptions=(*report.assumptions, *(a for a, _ in ledger.items())))

    def _print_stopped(self, stopped: Stopped) -> int:
        """A `run` or `replay` without an outcome."""
        if self.format == "json":
            value = {"reason": stopped.reason.value, "detail": stopped.detail}
            sys.stdout.write(to_json({"schema": 1, "kernel": self._name(), "agrees": None, "stopped": value,
                                      "sandbox": self.sandbox.as_dict()}) + "\n")
        else:
            line = f"{self._name()}  no outcome: {stopped.reason.value}: {stopped.detail}"
            print_lines([((line, "yellow"),)], sys.stdout)
        return 4 if stopped.reason is Reason.CRASH else 3

    def _print_report(self, report: Report) -> int:
        if self.format == "json":
            sys.stdout.write(to_json({**to_dict(report), "sandbox": self.sandbox.as_dict()}) + "\n")
        else:
            *lines, last = report_lines(report)
            print_lines([*lines, ((f"  {self.sandbox.line()}", "dim"),), last], sys.stdout)
        reasons = {p.reason for p in report.properties.values() if p is not None}
        internal = report.verdict is Verdict.INCONCLUSIVE and Reason.CRASH in reasons
        return 4 if internal else _EXIT[report.verdict]

    def _print_run(self, result: Mapping[str, Any]) -> int:
        if self.format == "json":
            sys.stdout.write(to_json({**result, "sandbox": self.sandbox.as_dict()}) + "\n")
        else:
            from warpproof.cli.runs import run_lines

            print_lines([*run_lines(result), ((f"  {self.sandbox.line()}", "dim"),)], sys.stdout)
        return {True: 0, False: 1, None: 3}[result["agrees"]]

    def _save(self, report: Report) -> None:
        job = {name: _absolute(name, getattr(self.arguments, name, None)) for name in _FIELDS}
        bundle = {"schema": 1, "job": {**job, "options": self.arguments.option}, "report": to_dict(report)}
        try:
            Path(self.arguments.save).write_text(to_json(bundle) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError("CLI602", f"cannot write {self.arguments.save!r}: {error.strerror}") from None

    def _name(self) -> str:
        given = self.arguments
        names = (given.kernel_name, given.kernel, given.contract) if given.command != "replay" else ()
        return next((str(n) for n in names if n), getattr(given, "file", None) or "kernel")


def _terminate(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _in_process(job: Mapping[str, Any]) -> Answer:
    from warpproof.cli.tasks import perform

    return Answer({"result": perform(job, lambda stage: print(stage, file=sys.stderr))}, "")


def _print_error(form: str, error: Mapping[str, Any], rendered: str) -> int:
    if form == "json":
        sys.stdout.write(to_json({"schema": 1, "verdict": None, "error": error}) + "\n")
    print_lines([((line, ""),) for line in rendered.splitlines()], sys.stderr)
    return 2


def _absolute(name: str, value: object) -> object:
    is_path = name in ("contract", "spec", "kernel", "launch") and isinstance(value, str)
    return os.path.abspath(value) if is_path and isinstance(value, str) else value


def _write_noise(noise: str) -> None:
    """What the user's own files printed; nothing that a terminal would take for a command."""
    if noise:
        print_lines([((line, ""),) for line in noise.splitlines()], sys.stderr)
