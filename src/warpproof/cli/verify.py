"""`warpproof sandbox verify`: files and filters of processes are read here, and looked at in a confined worker.

That worker asks another one for what z3 says, and this process for what the running kernel does under a filter. Its
questions to the kernel are checked: none of them has a call carried out.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpproof.cli.boxes import Box, Guard, Stopped
from warpproof.cli.confined import Sandbox, Solver, converse, ready
from warpproof.cli.supervise import default_memory
from warpproof.core import InputError, Reason
from warpproof.report import print_lines, to_json
from warpproof.sandbox import Kernel, encode, read_file, read_input


def verify(arguments: argparse.Namespace) -> int:
    """Run it and return the exit code."""
    sandbox = Sandbox(arguments.sandbox)
    if sandbox.mode == "off":
        sys.stderr.write("warning: nothing is confined: the filter is read with all rights of the user\n")
    memory = int(arguments.memory * 2**30) if arguments.memory else default_memory()
    with Kernel() as kernel:
        given = subject(arguments, kernel)
        guard = Guard(sandbox.mode, memory, time.monotonic() + arguments.timeout)
        made = verdict(given, guard, sandbox, None if arguments.no_live else kernel)
    return _print(made, arguments, sandbox)


def verdict(given: Mapping[str, Any], guard: Guard, sandbox: Sandbox, kernel: Kernel | None
            ) -> Stopped | Mapping[str, Any]:
    """What the worker says of a subject, or why it says nothing."""
    solver = Solver(guard, sandbox)
    try:
        with Box("verify", {"live": kernel is not None}, guard) as box:
            other = ready(box, sandbox)
            if other is not None:
                return other
            box.send(given)
            return converse(box, solver, kernel.answer_for if kernel is not None else None)
    finally:
        solver.close()


def subject(arguments: argparse.Namespace, kernel: Kernel) -> dict[str, Any]:
    """What is to be looked at, as bytes."""
    given: dict[str, Any] = {
        "assume": arguments.assume, "permit": arguments.permit, "certificate": bool(arguments.certificate),
        "policy": None if arguments.policy is None else _file(*read_input(arguments.policy)),
        "title": arguments.filter or arguments.profile or f"process {arguments.pid}"}
    if arguments.pid is not None:
        return given | {"kind": "running", "filters": _running(arguments.pid, kernel)}
    if arguments.profile:
        data = read_file(arguments.profile.partition("::")[0])
        groups = read_file(arguments.groups).hex() if arguments.groups else None
        return given | {"kind": "profile", "file": _file(arguments.profile, data), "caps": arguments.cap,
                        "groups": groups}
    return given | {"kind": "filter", "file": _file(*read_input(arguments.filter))}


def _file(name: str, data: bytes) -> dict[str, str]:
    return {"name": name, "data": data.hex()}


def _running(pid: int, kernel: Kernel) -> list[str]:
    """The filters that all threads of a process hold, oldest first."""
    threads = kernel.running(pid)
    held = {loaded.filters for loaded in threads.values()}
    if len(held) > 1:
        raise InputError("BOX612", f"the {len(threads)} threads of process {pid} hold different filters")
    (found,) = held or {()}
    return [encode(program).hex() for program in reversed(found)]


def _print(made: Stopped | Mapping[str, Any], arguments: argparse.Namespace, sandbox: Sandbox) -> int:
    as_json = arguments.format == "json"
    match made:
        case {"error": dict(error), "rendered": str(rendered)}:
            if as_json:
                sys.stdout.write(to_json({"schema": 1, "verdict": None, "error": error}) + "\n")
            print_lines([((line, ""),) for line in rendered.splitlines()], sys.stderr)
            return 2
        case {"result": {"disagreement": str(why)}}:
            print_lines([((f"internal error: two evaluations disagree: {why}", ""),)], sys.stderr)
            return 4
        case {"result": {"exit": 0 | 1 | 3 as code, "lines": list(lines), "report": dict(report),
                         "certificate": str() | None as wanted}}:
            if arguments.certificate and wanted is not None:
                _write(arguments.certificate, wanted + "\n")
            if as_json:
                sys.stdout.write(to_json({**report, "sandbox": sandbox.as_dict()}) + "\n")
            else:
                print_lines([((str(line), ""),) for line in [*lines, sandbox.line()]], sys.stdout)
            return int(code)
        case {"stopped": {"reason": str(reason), "detail": str(detail)}}:
            stopped = Stopped(Reason(reason) if reason in {r.value for r in Reason} else Reason.CRASH, detail)
        case Stopped() as stopped:
            pass
        case _:
            stopped = Stopped(Reason.CRASH, "the worker said something that is no answer")
    return stop(stopped, as_json, sandbox)


def stop(stopped: Stopped, as_json: bool, sandbox: Sandbox) -> int:
    """Say that there is no answer, and why; the exit code for that."""
    code = "BOX613" if stopped.reason is Reason.SANDBOX and not sandbox.seen else "BOX615"
    if as_json:
        why = {"reason": stopped.reason.value, "detail": stopped.detail}
        sys.stdout.write(to_json({"schema": 1, "verdict": "INCONCLUSIVE", "stopped": why,
                                  "sandbox": sandbox.as_dict()}) + "\n")
    print_lines([((f"error[{code}]: {stopped.detail}", ""),)], sys.stderr)
    return 4 if stopped.reason is Reason.CRASH else 3


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError("CLI602", f"cannot write {path!r}: {error.strerror}") from None
