"""`warpproof sandbox explain | do | doctor`, and the way to `verify` and `run`."""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, TextIO

from warpproof.cli.boxes import Guard, Stopped
from warpproof.cli.confined import Sandbox, answer
from warpproof.core import InputError, Reason, Unsupported, read_regular
from warpproof.report import error_dict, print_lines, to_json
from warpproof.sandbox import (
    NAMES,
    STATEMENTS,
    Call,
    Disagreement,
    Kernel,
    Policy,
    Program,
    certificate,
    check_certificate,
    compile_policy,
    describe,
    disassemble,
    inspect,
    name_of,
    shipped_policy,
    table,
    transitions,
)

_EMPTY: Final = ".version 8.0\n.target sm_80\n.address_size 64\n"


def sandbox_command(arguments: argparse.Namespace) -> int:
    """Run one of the subcommands and return its exit code."""
    try:
        match arguments.action:
            case "verify":
                from warpproof.cli.verify import verify

                return verify(arguments)
            case "explain":
                return explain_sandbox(arguments.topic, sys.stdout)
            case "run":
                from warpproof.cli.launch import launch

                return launch(arguments)
            case "do":
                return _do(arguments)
            case _:
                return sandbox_doctor(sys.stdout)
    except InputError as error:
        if getattr(arguments, "format", "text") == "json":
            sys.stdout.write(to_json(error_dict(error)) + "\n")
        print_lines([((line, ""),) for line in error.render().splitlines()], sys.stderr)
        return 2
    except Unsupported as error:
        print_lines([((f"error[BOX605]: {error.form}: {error.why}", ""),)], sys.stderr)
        return 2
    except Disagreement as error:
        sys.stderr.write(f"internal error: two evaluations disagree: {error}\n")
        return 4


_MAX_INPUT_BYTES: Final = 64 << 20


def _input(file: str) -> str:
    if file == "-":
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        data = sys.stdin.buffer.read(_MAX_INPUT_BYTES + 1)
        if len(data) > _MAX_INPUT_BYTES:
            raise OSError(errno.EFBIG, f"larger than {_MAX_INPUT_BYTES >> 20} MiB")
        return data.decode("utf-8")
    return read_regular(Path(file), _MAX_INPUT_BYTES).decode("utf-8")


def _do(arguments: argparse.Namespace) -> int:
    try:
        text = _input(arguments.file)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise InputError("BOX600", f"{arguments.file}: {why}") from None
    sandbox = Sandbox(arguments.sandbox)
    guard = Guard(sandbox.mode, int(arguments.memory * 2**30), time.monotonic() + arguments.timeout)
    made = run_work(arguments.work, text, guard, sandbox)
    if isinstance(made, str):
        from warpproof.cli.launch import Sink

        Sink(sys.stdout).write(made.encode("utf-8", "replace"))
        return 0
    if isinstance(made, Stopped):
        code = "BOX613" if made.reason is Reason.SANDBOX and not sandbox.seen else "BOX615"
        made = {"rendered": f"error[{code}]: {made.detail}"}
    print_lines([((line, ""),) for line in str(made["rendered"]).splitlines()], sys.stderr)
    return 2 if "error" in made else 3


def run_work(work: str, text: str, guard: Guard, sandbox: Sandbox) -> str | Stopped | Mapping[str, Any]:
    """The answer to one of the works of `sandbox do`, what is wrong with the input, or why there is neither."""
    if work == "compile":
        from warpproof.frontends import included, wanted_headers

        job = {"headers": wanted_headers(included(text, None, ())), "taken": []}
        given: dict[str, Any] = {"text": text, "file": "kernel.cu", "arch": "sm_80", "kernel": None, "options": [],
                                 "headers": {}}
        made = answer("cuda", job, given, guard, sandbox)
    else:
        made = answer(work, {}, {"text": text}, guard, sandbox)
    match made:
        case {"result": str(result)} | {"result": {"text": str(result)}}:
            return result
        case Stopped() | {"error": dict(), "rendered": str()}:
            return made
        case {"stopped": {"detail": str(detail)}}:
            return Stopped(Reason.CRASH, detail)
    return Stopped(Reason.CRASH, "the worker said something that is no answer")


def explain_sandbox(topic: str | None, out: TextIO) -> int:
    """Print what a capability, layer, obligation, system call or shipped policy is; without a topic, list them."""
    known = transitions()
    if topic is None:
        groups = (("capabilities, worst first", known.facts), ("layers for --assume", known.layers),
                  ("obligations", STATEMENTS))
        for title, entries in groups:
            out.write(f"{title}:\n" + "".join(f"  {name:<18} {text}\n" for name, text in entries.items()))
        out.write(f"shipped policies: {', '.join(NAMES)}\n")
        return 0
    if topic in NAMES:
        return _explain_policy(shipped_policy(topic), out)
    meaning = known.facts.get(topic) or known.layers.get(topic) or STATEMENTS.get(topic.upper())
    if meaning:
        out.write(f"{topic}: {meaning}\n")
        ways = [e for e in known.edges if topic in (e.gains, e.unless)]
        for name in dict.fromkeys(name_of(e.number) for e in ways):
            out.write(f"  {name}\n")
        return 0
    call = table().get(topic)
    if call is None:
        raise InputError("BOX606", f"no system call, capability, layer, obligation or policy {topic[:40]!r}",
                         hint="`warpproof sandbox explain` lists them")
    out.write(f"{call.name}: number {call.number}, {call.arguments} arguments, {known.class_of(call.number)}\n")
    for edge in known.edges:
        if edge.number == call.number:
            tests = "".join(f" if {' and '.join(map(str, edge.when))}" if edge.when else "")
            rest = f"{f' after {edge.needs}' if edge.needs else ''}{f' unless {edge.unless}' if edge.unless else ''}"
            out.write(f"  gives {edge.gains}{tests}{rest}{f': {edge.why}' if edge.why else ''}\n")
    return 0


def _explain_policy(policy: Policy, out: TextIO) -> int:
    out.write(f"{policy.name}: by default {describe(policy.default)}\n")
    for title, names in (("permits", policy.permit), ("assumes", policy.assume)):
        if names:
            out.write(f"  {title} {', '.join(names)}\n")
    for rule in policy.rules:
        tests = f" if {' and '.join(map(str, rule.when))}" if rule.when else ""
        out.write(f"  {describe(rule.action)} {', '.join(map(name_of, rule.calls))}{tests}: {rule.why}\n")
    out.write("\n" + disassemble(compile_policy(policy)))
    return 0


def sandbox_doctor(out: TextIO) -> int:
    """Show what this machine lets `sandbox verify` do; 0 if filters can be tried and read back, else 2."""
    out.write(f"actions of the kernel   {_file('/proc/sys/kernel/seccomp/actions_avail')}\n")
    policy = shipped_policy("solver")
    program = compile_policy(policy)
    works = []
    with Kernel() as kernel:
        for title, check in (("trying filters", _try), ("reading filters back", _read_back)):
            try:
                works.append(check(kernel, program, policy.needs[0].call))
                out.write(f"{title:<23} {'works' if works[-1] else 'GIVES A WRONG RESULT'}\n")
            except Unsupported as error:
                works.append(False)
                out.write(f"{title:<23} not possible here: {error.why}\n")
    made = inspect([program], policy)
    faults = check_certificate(certificate([program], made.closure))
    proved = made.exit_code == 0 and not faults
    out.write(f"a shipped policy        {'proved, certificate checked' if proved else 'NOT PROVED'}\n")
    out.write(f"table of system calls   {len(table())} calls, {len(transitions().edges)} transitions\n")
    out.write(f"this process            uid {os.geteuid()}, seccomp mode {_status('Seccomp')}\n")
    out.write(f"{workers_here()}\n")
    return 0 if proved and all(works) else 2


def workers_here() -> str:
    """What confines a worker on this machine, found out with one."""
    sandbox = Sandbox("auto")
    made = answer("print", {}, {"text": _EMPTY}, Guard("auto", 4 << 30, time.monotonic() + 60.0), sandbox)
    return f"sandbox: {made.detail}" if isinstance(made, Stopped) else sandbox.line()


def _try(kernel: Kernel, program: Program, call: Call) -> bool:
    seen = kernel.observe([program], [call])[0]
    return seen is not None and seen.kind == "passed"


def _read_back(kernel: Kernel, program: Program, _: Call) -> bool:
    return kernel.read_back([program]).filters == (program,)


def _file(path: str) -> str:
    try:
        return Path(path).read_text("utf-8").strip()
    except OSError:
        return "not known"


def _status(name: str) -> str:
    lines = _file("/proc/self/status").splitlines()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(f"{name}:")), "not known")
