"""The inside of `litmus`: the text of a file in, what is said about each of its tests out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpproof.core import InputError, Unsupported
from warpproof.sync import Litmus, Result, draw, evaluate, model_named, read_tests, result_dict, result_lines

OK, FAILS, UNDECIDED = 0, 1, 3


class Tests:
    """The tests of one file, read by the first message and evaluated one by one by those that follow."""

    def __init__(self) -> None:
        self._tests: tuple[Litmus, ...] = ()

    def answer(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """`{"text", "name"}`: the names of the tests. `{"test", …}`: its `code`, `entry`, `lines` and `svg`."""
        if "text" in given:
            self._tests = read_tests(given["text"], given["name"])
            return {"tests": [test.name for test in self._tests]}
        return _evaluated(self._tests[given["test"]], given)


def _evaluated(test: Litmus, given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        result = evaluate(test, model_named(given["model"], given["switch"]), states=given["outcomes"],
                          repair=given["repair"], limit_s=given["timeout"])
    except InputError as error:
        error.source = error.source or test.source
        raise
    except Unsupported as stop:
        entry = {"test": test.name, "undecided": stop.why, "code": UNDECIDED}
        return {"code": UNDECIDED, "entry": entry, "lines": [f"{test.name}: undecided: {stop.why}"], "svg": None}
    code = UNDECIDED if not result.answer.conclusive else OK if result.answer.validated else FAILS
    return {"code": code, "entry": {**result_dict(result), "code": code}, "lines": list(result_lines(result)),
            "svg": _drawing(test, result) if given["svg"] else None}


def _drawing(test: Litmus, result: Result) -> str | None:
    """The execution that shows the outcome, else a race, else endless waiting; without one, nothing."""
    shown = [(e, what) for e, what in (
        (result.answer.witness, "the outcome"), (result.race.execution if result.race else None, "a data race"),
        (result.hang.execution if result.hang else None, "endless waiting")) if e is not None]
    if not shown:
        return None
    execution, what = shown[0]
    return draw(test, execution, f"{test.name}: {what} (model {result.model.name})")
