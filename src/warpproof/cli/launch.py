"""`warpproof sandbox run -- CMD`: a command in a confined process, its output passed on as long as it is bounded."""

from __future__ import annotations

import argparse
import codecs
import os
import re
import select
import shutil
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from warpproof.cli.boxes import Box, Guard, Outfit, Stopped
from warpproof.cli.confined import Sandbox, ready
from warpproof.core import InputError, Reason
from warpproof.report import print_lines
from warpproof.sandbox import (
    NAMES,
    NATIVE,
    Call,
    Policy,
    Program,
    compile_policy,
    describe,
    inspect,
    load_policy,
    number_of,
    parse_action,
    run,
)

# What programs of the system need: nothing in it is anybody's own. Beneath `dev`, three files that hold nothing.
_SYSTEM: Final = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc/ld.so.cache", "etc/alternatives",
                  "etc/localtime", "dev/urandom", "dev/zero")
_MAX_OUTPUT_BYTES: Final = 256 << 20
_DESCRIPTORS: Final = 256
_MAX_FILES: Final = 200_000
_ESCAPED: Final = re.compile(rb"\\([0-7]{3})")
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TIMED_OUT, _NO_LAYER = 124, 125
# Layers that are put in force here, so that a policy may assume them: by which of the layers of confinement.
_PROVIDED: Final = {"closed-procfs": "landlock", "pid-namespace": "namespaces", "network-namespace": "namespaces",
                    "plain-descriptors": "descriptors"}


def launch(arguments: argparse.Namespace) -> int:
    """Run it and return its exit code."""
    policy, program = _policy(arguments.policy)
    path = _program(arguments.command_line[0])
    grants = _grants(arguments, path)
    sandbox = Sandbox(arguments.sandbox)
    guard = Guard(sandbox.mode, int(arguments.memory * 2**30), time.monotonic() + arguments.timeout)
    given = {"path": path, "arguments": arguments.command_line, "environment": _environment(arguments.env)}
    pipes = [os.pipe() for _ in range(3)]
    inner = (pipes[0][0], pipes[1][1], pipes[2][1])
    space = Space([os.path.abspath(name) for name in arguments.write], int(arguments.disk * 2**30))
    relay = _Relay(pipes[0][1], pipes[1][0], pipes[2][0], guard, space)
    try:
        with Box("command", {}, guard, outfit=Outfit(program, inner, grants, _DESCRIPTORS)) as box:
            for number in inner:
                os.close(number)
            other = ready(box, sandbox) or _lacking(policy, sandbox)
            if other is None:
                box.send(given)
                other = box.receive(patience=0.0)
                if isinstance(other, Stopped) and other.reason is not Reason.TIMEOUT:
                    return _ended(box, relay)
            return _refused(other, sandbox)
    finally:
        relay.close()


def _policy(name: str) -> tuple[Policy, Program]:
    """The policy with its filter, proved: those that are shipped beforehand, others here."""
    policy = load_policy(name)
    program = compile_policy(policy)
    start = run(program, Call(number_of("execve"), NATIVE))
    if start != parse_action("allow"):
        raise InputError("BOX616", f"policy {policy.name!r} does not allow execve but gives {describe(start)}: no "
                                   "command can start under it",
                         hint="`warpproof sandbox explain command` shows one that does")
    foreign = [layer for layer in policy.assume if layer not in _PROVIDED]
    if foreign:
        raise InputError("BOX617", f"policy {policy.name!r} assumes {foreign[0]!r}, which is not put in force here",
                         hint=f"it may assume {', '.join(_PROVIDED)}")
    if name not in NAMES or Path(name).exists():
        made = inspect([program], policy)
        open_ = [o for o in made.obligations if o.status != "proved"]
        if open_:
            worst = ", ".join(p.fact for p in made.passages if not p.permitted)
            raise InputError("BOX617", f"policy {policy.name!r} is not proved: {open_[0].id}: {open_[0].statement}"
                                       f"{f'; it lets through {worst}' if worst else ''}",
                             hint="`warpproof sandbox verify` says more; name in `permit` what it may let through")
    return policy, program


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise InputError("BOX616", f"no program {name[:200]!r} is on the path, or it is not executable")
    return os.path.abspath(found)


def _grants(arguments: argparse.Namespace, path: str) -> tuple[tuple[str, bool], ...]:
    """What Landlock leaves: the system's programs, the program itself, and what was asked for."""
    given = [(p, False) for p in arguments.read] + [(p, True) for p in arguments.write]
    for name, _ in given:
        if not Path(name).exists():
            raise InputError("BOX600", f"{name}: no such file or folder")
        real = os.path.realpath(name)
        if real == "/" or real.split(os.sep)[1] in ("proc", "sys"):
            raise InputError("BOX616", f"{name}: the root folder, /proc and /sys are not granted")
    system = [os.sep + name for name in _SYSTEM]
    fixed = [(p, False) for p in (*system, path, os.path.realpath(path)) if os.path.exists(p)]
    granted = (*fixed, *([("/dev/null", True)] if os.path.exists("/dev/null") else []),
               *((os.path.abspath(name), writable) for name, writable in given))
    _without_processes([name for name, _ in granted])
    return granted


def _without_processes(granted: Sequence[str]) -> None:
    """No process file system is mounted beneath what is granted, as in the tree of a container: what is assumed of
    procfs rests on that. A Landlock rule for a folder is one for all that is mounted beneath it, too."""
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError as error:
        raise InputError("BOX616", f"it cannot be seen what is mounted: {error.strerror}") from None
    fields = [line.partition(b" - ") for line in lines]
    places = [os.fsdecode(_ESCAPED.sub(lambda m: bytes([int(m[1], 8)]), before.split()[4]))
              for before, _, after in fields if after.split()[:1] in ([b"proc"], [b"sysfs"])]
    for name in granted:
        real = os.path.realpath(name)
        for place in places:
            if os.path.commonpath((real, place)) in (real, place):
                raise InputError("BOX616", f"{name}: {place} is a process or system file system, which would "
                                           "be granted with it")


def _environment(wanted: list[str]) -> dict[str, str]:
    made = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    for text in wanted:
        name, equals, value = text.partition("=")
        if not name or "\0" in text:
            raise InputError("BOX616", f"{text[:80]!r} is no environment variable")
        if equals:
            made[name] = value
        elif name in os.environ:
            made[name] = os.environ[name]
        else:
            raise InputError("BOX616", f"there is no environment variable {name!r}")
    return made


def _lacking(policy: Policy, sandbox: Sandbox) -> Stopped | None:
    """A layer that is not in force: Landlock, by which files are granted, or one that the policy assumes."""
    for layer in ("landlock", *(_PROVIDED[name] for name in policy.assume)):
        if layer not in sandbox.layers:
            why = sandbox.missing.get(layer, "not in force")
            return Stopped(Reason.SANDBOX, f"not run, since the layer {layer!r} is missing: {why}")
    return None


def _refused(other: Stopped | Mapping[str, Any], sandbox: Sandbox) -> int:
    """It was not started."""
    match other:
        case {"error": dict(), "rendered": str(rendered)}:
            print_lines([((line, ""),) for line in rendered.splitlines()], sys.stderr)
            return 2
        case Stopped():
            code = "BOX613" if other.reason is Reason.SANDBOX else "BOX615"
            print_lines([((f"error[{code}]: {other.detail}", ""),)], sys.stderr)
            return _TIMED_OUT if other.reason is Reason.TIMEOUT else _NO_LAYER
    print_lines([(("error[BOX615]: the process said something else than that it is confined", ""),)], sys.stderr)
    return _NO_LAYER


def _ended(box: Box, relay: _Relay) -> int:
    """Pass streams on until the command ends; its exit code."""
    why = relay.run(lambda: box.process_code())
    if isinstance(why, str):
        print_lines([((f"error[BOX615]: {why}", ""),)], sys.stderr)
        return _TIMED_OUT
    if why == -signal.SIGSYS:
        print_lines([(("error[BOX615]: killed for a system call that its policy does not allow", ""),)], sys.stderr)
    return 128 - why if why < 0 else why


class Space:
    """What is free where a command may write. No limit of the kernel bounds all files of a process, so what is gone is
    watched, whoever took it: also files that have no name any more count."""

    def __init__(self, folders: Sequence[str], limit_bytes: int) -> None:
        self._limit, self._before = limit_bytes, {folder: _free(folder) for folder in folders}

    def fault(self) -> str:
        """Why to stop, or nothing."""
        for folder, (size, files) in self._before.items():
            size_now, files_now = _free(folder)
            if size - size_now > self._limit:
                return f"stopped: {(size - size_now) >> 20} MiB less are free at {folder}; --disk allows more"
            if files - files_now > _MAX_FILES:
                return f"stopped: {files - files_now} more files are at {folder}"
        return ""


def _free(folder: str) -> tuple[int, int]:
    try:
        state = os.statvfs(folder)
    except OSError:  # it was removed, and with it what was written there
        return (1 << 63, 1 << 63)
    return state.f_bavail * state.f_frsize, state.f_ffree


class _Relay:
    """Standard input in, standard output and error out, by pipes: the command holds no descriptor of anybody's."""

    def __init__(self, to_input: int, output: int, error: int, guard: Guard, space: Space) -> None:
        self._guard, self._passed, self._input, self._space = guard, 0, to_input, space
        self._outs = {output: Sink(sys.stdout), error: Sink(sys.stderr)}
        self._pending = b""
        try:
            self._own = sys.stdin.fileno() if not sys.stdin.isatty() else -1
        except (OSError, ValueError, AttributeError):
            self._own = -1
        os.set_blocking(to_input, False)

    def close(self) -> None:
        """Close all pipes."""
        for number in (*self._outs, self._input):
            if number >= 0:
                os.close(number)
        self._outs.clear()
        self._input = -1

    def run(self, code: Any) -> int | str:
        """The exit code when all output was passed on, or why it was stopped."""
        if self._own < 0:
            self._close_input()
        while True:
            if self._guard.left <= 0:
                return "stopped at the time limit"
            if self._passed > _MAX_OUTPUT_BYTES:
                return f"stopped after {_MAX_OUTPUT_BYTES >> 20} MiB of output"
            fault = self._space.fault()
            if fault:
                return fault
            ended = code()
            moved = self._step(0.0 if ended is not None else min(0.1, self._guard.left))
            if ended is not None and not moved:
                return int(ended)

    def _step(self, seconds: float) -> bool:
        """Move what can be moved; whether there was output."""
        wanted = [*self._outs, *([self._own] if self._own >= 0 and self._input >= 0 and not self._pending else [])]
        readable, writable, _ = select.select(wanted, [self._input] if self._pending else [], [], max(0.0, seconds))
        moved = False
        for number in readable:
            part = os.read(number, 1 << 16)
            if number == self._own:
                self._pending = part
                if not part:
                    self._close_input()
            elif part:
                self._passed += len(part)
                self._outs[number].write(part)
                moved = True
            else:
                os.close(number)
                del self._outs[number]
        if writable:
            self._feed()
        return moved

    def _feed(self) -> None:
        try:
            self._pending = self._pending[os.write(self._input, self._pending[:4096]) :]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self._close_input()

    def _close_input(self) -> None:
        self._pending, self._own = b"", -1
        if self._input >= 0:
            os.close(self._input)
        self._input = -1


class Sink:
    """One of this process's streams. A terminal gets text without control characters, anything else the bytes."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace") if stream.isatty() else None

    def write(self, part: bytes) -> None:
        """Pass it on."""
        buffer = getattr(self._stream, "buffer", None)
        if self._decoder is not None or buffer is None:
            text = self._decoder.decode(part) if self._decoder else part.decode("utf-8", "replace")
            self._stream.write(_CONTROL.sub("?", text) if self._decoder else text)
        else:
            buffer.write(part)
        self._stream.flush()
