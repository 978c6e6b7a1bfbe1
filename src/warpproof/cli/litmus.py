"""`warpproof litmus`: litmus tests under the PTX memory model."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpproof.core import InputError, Unsupported, WarpproofError
from warpproof.report import error_dict, print_lines, to_json
from warpproof.sync import Litmus, Model, Result, draw, evaluate, load_tests, model_named, result_dict, result_lines

_OK, _FAILS, _INPUT, _UNDECIDED = 0, 1, 2, 3


def litmus(arguments: argparse.Namespace) -> int:
    """Evaluate every test named and return the exit code.

    0 all claims hold, 1 one does not, 2 an input cannot be used, 3 something stayed undecided and nothing failed.
    """
    entries: list[dict[str, Any]] = []
    codes = {_OK}
    try:
        model = model_named(arguments.model, arguments.switch)
        files = list(_files(arguments.paths))
        target = _svg_target(arguments.svg, files)
    except WarpproofError as error:
        return _fail(arguments, error, entries)
    for file in files:
        try:
            for test in load_tests(file):
                code, entry = _one(arguments, file, test, model, target)
                codes.add(code)
                entries.append(entry)
        except WarpproofError as error:
            codes.add(_INPUT)
            entries.append({"file": str(file), **error_dict(error)})
            print_lines([((line, ""),) for line in error.render().splitlines()], sys.stderr)
    if arguments.format == "json":
        sys.stdout.write(to_json({"schema": 1, "tests": entries}) + "\n")
    elif len(entries) > 1:
        counts = [sum(e["code"] == c for e in entries if "code" in e) for c in (_OK, _FAILS, _UNDECIDED)]
        failed = len(entries) - sum(counts)
        print_lines([((f"{len(entries)} tests: {counts[0]} claims hold, {counts[1]} do not, {counts[2]} undecided, "
                       f"{failed} unusable", "bold"),)], sys.stdout)
    return next(code for code in (_INPUT, _FAILS, _UNDECIDED, _OK) if code in codes)


def _fail(arguments: argparse.Namespace, error: WarpproofError, entries: list[dict[str, Any]]) -> int:
    if arguments.format == "json":
        sys.stdout.write(to_json({"schema": 1, "tests": entries, "error": error_dict(error)["error"]}) + "\n")
    print_lines([((line, ""),) for line in error.render().splitlines()], sys.stderr)
    return _INPUT


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


def _one(arguments: argparse.Namespace, file: Path, test: Litmus, model: Model,
         target: Path | None) -> tuple[int, dict[str, Any]]:
    try:
        result = evaluate(test, model, states=arguments.outcomes, repair=arguments.repair, limit_s=arguments.timeout)
    except InputError as error:
        error.source = error.source or test.source
        raise
    except Unsupported as stop:
        if arguments.format == "text":
            print_lines([((f"{test.name}: undecided: {stop.why}", "yellow"),)], sys.stdout)
        return _UNDECIDED, {"file": str(file), "test": test.name, "undecided": stop.why, "code": _UNDECIDED}
    if target is not None:
        stem = file.stem if file.suffix != ".test" else test.name
        _write(test, result, target / f"{stem}.svg" if target.is_dir() else target)
    code = _UNDECIDED if not result.answer.conclusive else _OK if result.answer.validated else _FAILS
    if arguments.format == "text":
        first, *rest = result_lines(result)
        style = {_OK: "green", _FAILS: "red", _UNDECIDED: "yellow"}[code]
        print_lines([((first, style),), *(((line, ""),) for line in rest)], sys.stdout)
    return code, {"file": str(file), **result_dict(result), "code": code}


def _write(test: Litmus, result: Result, path: Path) -> None:
    """Draw the execution that shows the outcome, else a race, else endless waiting; without one, nothing."""
    shown = [(e, what) for e, what in (
        (result.answer.witness, "the outcome"), (result.race.execution if result.race else None, "a data race"),
        (result.hang.execution if result.hang else None, "endless waiting")) if e is not None]
    if not shown:
        sys.stderr.write(f"{test.name}: nothing to draw: no execution has the outcome, a race or endless waiting\n")
        return
    execution, what = shown[0]
    try:
        path.write_text(draw(test, execution, f"{test.name}: {what} (model {result.model.name})"), encoding="utf-8")
    except OSError as error:
        raise InputError("CLI602", f"cannot write {str(path)!r}: {error.strerror}") from None
