"""`warpproof litmus`: litmus tests under the PTX memory model, each file read and evaluated in a confined worker."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from warpproof.cli.boxes import Box, Guard, Stopped
from warpproof.cli.confined import Sandbox, ready
from warpproof.cli.supervise import default_memory
from warpproof.core import InputError, Reason, WarpproofError
from warpproof.report import Line, error_dict, print_lines, to_json
from warpproof.sync import model_named, read_file

_OK, _FAILS, _INPUT, _UNDECIDED, _INTERNAL = 0, 1, 2, 3, 4
_STYLES: Final = {_OK: "green", _FAILS: "red", _UNDECIDED: "yellow"}
_LONG_S: Final = 1e6
_PARTS, _SPARE_S = 6, 20.0  # a test is stopped from outside if it takes longer than all its parts may
_STEM: Final = re.compile(r"[\w+,@%=-][\w.+,@%=-]{0,150}")


def litmus(arguments: argparse.Namespace) -> int:
    """Evaluate every test named and return the exit code.

    0 all claims hold, 1 one does not, 2 an input cannot be used, 3 something stayed undecided and nothing failed, 4 a
    worker failed.
    """
    run = _Run(arguments)
    try:
        model_named(arguments.model, arguments.switch)
        files = list(_files(arguments.paths))
        run.target = _svg_target(arguments.svg, files)
    except WarpproofError as error:
        return run.fail(error)
    try:
        for file, after in zip(files, [*files[1:], None], strict=True):
            run.take(file, after is not None)
    finally:
        run.close()
    return run.finish()


class _Run:
    """All tests of one command. Each file has a worker of its own, and the next one's starts meanwhile."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments, self._text = arguments, arguments.format == "text"
        self._sandbox = Sandbox(arguments.sandbox)
        self._memory = int(arguments.memory * 2**30) if arguments.memory else default_memory()
        self._box: Box | None = None
        self._next: Box | None = None
        self._entries: list[dict[str, Any]] = []
        self._codes = {_OK}
        self.target: Path | None = None
        if self._sandbox.mode == "off":
            sys.stderr.write("warning: nothing is confined: tests are read with all rights of the user\n")

    def close(self) -> None:
        """End the workers."""
        for box in (self._box, self._next):
            if box is not None:
                box.close()
        self._box = self._next = None

    def fail(self, error: WarpproofError) -> int:
        """What was asked makes no sense."""
        if not self._text:
            sys.stdout.write(to_json({"schema": 1, "tests": self._entries, "error": error_dict(error)["error"]}) + "\n")
        print_lines([((line, ""),) for line in error.render().splitlines()], sys.stderr)
        return _INPUT

    def finish(self) -> int:
        """The last lines and the exit code."""
        if not self._text:
            sys.stdout.write(to_json({"schema": 1, "tests": self._entries, "sandbox": self._sandbox.as_dict()}) + "\n")
        else:
            lines: list[Line] = [((f"  {self._sandbox.line()}", "dim"),)] if self._sandbox.seen else []
            if len(self._entries) > 1:
                counts = [sum(e.get("code") == c for e in self._entries) for c in (_OK, _FAILS, _UNDECIDED)]
                lines.append(((f"{len(self._entries)} tests: {counts[0]} claims hold, {counts[1]} do not, {counts[2]} "
                               f"undecided, {len(self._entries) - sum(counts)} unusable", "bold"),))
            print_lines(lines, sys.stdout)
        return next(code for code in (_INTERNAL, _INPUT, _FAILS, _UNDECIDED, _OK) if code in self._codes)

    def take(self, file: Path, more: bool) -> None:
        """The tests of one file."""
        try:
            given = {"text": read_file(file), "name": str(file)}
        except WarpproofError as error:
            self._refused(file, error_dict(error)["error"], error.render())
            return
        names = self._start(given, more)
        if isinstance(names, list):
            at = 0
            while at < len(names):
                made = self._ask({"test": at, **self._options()})
                self._say(file, str(names[at]), made)
                at += 1
                if not isinstance(made, Stopped) and "error" in made:
                    break  # it would be said again of each test
                if isinstance(made, Stopped) and at < len(names):  # the worker is gone: another one for what is left
                    again = self._start(given, False)
                    if again != names:
                        self._say(file, str(names[at]), again if isinstance(again, Stopped) else _nonsense())
                        return
        else:
            self._say(file, file.stem, names)
        self._end()

    def _options(self) -> dict[str, Any]:
        a = self._arguments
        return {"model": a.model, "switch": a.switch, "outcomes": a.outcomes, "repair": a.repair, "timeout": a.timeout,
                "svg": self.target is not None}

    def _end(self) -> None:
        if self._box is not None:
            self._box.close()
        self._box = None

    def _start(self, given: Mapping[str, Any], more: bool) -> list[Any] | Stopped | Mapping[str, Any]:
        """The names of the file's tests, or why there are none. With `more`, a worker is started for the next file."""
        self._end()
        self._box, self._next = self._next or self._worker(), None
        if more:
            self._next = self._worker()
        self._box.guard = replace(self._box.guard, deadline=self._until())
        other = ready(self._box, self._sandbox)
        if other is not None:
            return other
        made = self._ask(given)
        match made:
            case {"result": {"tests": list(names)}}:
                return names
        return made

    def _worker(self) -> Box:
        return Box("litmus", {}, Guard(self._sandbox.mode, self._memory, time.monotonic() + _LONG_S))

    def _until(self) -> float:
        timeout: float = self._arguments.timeout
        return time.monotonic() + _PARTS * timeout + _SPARE_S

    def _ask(self, given: Mapping[str, Any]) -> Stopped | Mapping[str, Any]:
        assert self._box is not None
        self._box.guard = replace(self._box.guard, deadline=self._until())
        self._box.send(given)
        return self._box.receive()

    def _say(self, file: Path, name: str, made: Stopped | Mapping[str, Any]) -> None:
        """Print what was answered about a test, or a file as a whole."""
        match made:
            case {"error": dict(error), "rendered": str(rendered)}:
                self._refused(file, error, rendered)
            case {"result": {"code": 0 | 1 | 3 as code, "entry": dict(entry), "lines": [first, *rest],
                             "svg": str() | None as svg}}:
                self._codes.add(int(code))
                self._entries.append({"file": str(file), **entry, "code": int(code)})
                if self.target is not None and "undecided" not in entry:
                    self._draw(file, name, svg)
                if self._text:
                    print_lines([((str(first), _STYLES[int(code)]),), *(((str(line), ""),) for line in rest)],
                                sys.stdout)
            case {"stopped": {"reason": str(reason), "detail": str(detail)}}:
                known = {r.value: r for r in Reason}
                self._stopped(file, name, Stopped(known.get(reason, Reason.CRASH), detail))
            case Stopped():
                self._stopped(file, name, made)
            case _:
                self._stopped(file, name, _nonsense())

    def _refused(self, file: Path, error: Mapping[str, Any], rendered: str) -> None:
        self._codes.add(_INPUT)
        self._entries.append({"file": str(file), "schema": 1, "verdict": None, "error": error})
        print_lines([((line, ""),) for line in rendered.splitlines()], sys.stderr)

    def _stopped(self, file: Path, name: str, stopped: Stopped) -> None:
        code = _INTERNAL if stopped.reason is Reason.CRASH else _UNDECIDED
        self._codes.add(code)
        why = {"reason": stopped.reason.value, "detail": stopped.detail}
        self._entries.append({"file": str(file), "test": name, "stopped": why, "code": _UNDECIDED})
        if self._text:
            print_lines([((f"{name}: undecided: {stopped.reason.value}: {stopped.detail}", "yellow"),)], sys.stdout)

    def _draw(self, file: Path, name: str, svg: str | None) -> None:
        """Write the drawing under the file's name, or that of the test where a file has several."""
        assert self.target is not None
        if svg is None:
            line = f"{name}: nothing to draw: no execution has the outcome, a race or endless waiting"
            print_lines([((line, ""),)], sys.stderr)
            return
        stem = file.stem if file.suffix != ".test" else name
        path = self.target / f"{stem}.svg" if self.target.is_dir() else self.target
        try:
            if file.suffix == ".test" and not _STEM.fullmatch(stem):
                raise OSError(0, "the test's name is no file name")
            path.write_text(svg, encoding="utf-8")
        except OSError as error:
            wrong = InputError("CLI602", f"cannot write {str(path)!r}: {error.strerror}")
            self._refused(file, error_dict(wrong)["error"], wrong.render())


def _nonsense() -> Stopped:
    return Stopped(Reason.CRASH, "the worker said something that is no answer")


def _files(paths: list[str]) -> Iterator[Path]:
    for text in paths:
        path = Path(text)
        if path.is_dir():
            inside = (Path(folder, name) for folder, _, names in os.walk(path) for name in names)
            found = sorted(p for p in inside if p.suffix in (".litmus", ".test"))
            if not found:
                raise InputError("SYN201", f"no .litmus or .test file in {text}")
            yield from found
        else:
            yield path


def _svg_target(svg: str | None, files: list[Path]) -> Path | None:
    if svg is None:
        return None
    target = Path(svg)
    several = len(files) > 1 or any(f.suffix == ".test" for f in files)
    if several and not target.is_dir():
        raise InputError("CLI602", f"{svg!r} is no folder", hint="with several tests --svg names an existing folder")
    return target
