"""Reports as JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from warpproof.core import PROPERTIES, Advice, Assumption, InputError, Reason, Span, Verdict
from warpproof.judge import Evidence, PropertyResult, Report, undecided
from warpproof.report import error_dict, from_dict, report_lines, to_dict, to_json

GOOD = PropertyResult(
    Verdict.PROVED, evidence=(Evidence("normal-form", "y = e / s", {"x": 1}), Evidence("solver", "b")))


def proved(**changes: object) -> Report:
    fields: dict[str, object] = {
        "kernel": "k.cu::k", "verdict": Verdict.PROVED, "sizes": "n >= 1", "time_s": 1.23456, "peak_mb": 99.94,
        "properties": {**dict.fromkeys(PROPERTIES[:4], GOOD), "numerics": None},
        "assumptions": (Assumption("no-alias", "buffers do not overlap", "contract"),),
    }
    return Report(**{**fields, **changes})  # type: ignore[arg-type]


def test_schema_one() -> None:
    data = json.loads(to_json(to_dict(proved())))
    assert list(data) == ["schema", "kernel", "verdict", "properties", "sizes", "assumptions", "counterexample",
                          "certificate", "advice", "fallback", "time_s", "peak_mb"]
    assert data["schema"] == 1
    assert data["verdict"] == "PROVED"
    assert list(data["properties"]) == list(PROPERTIES)
    assert data["properties"]["numerics"] is None
    assert data["properties"]["memory"] == {
        "verdict": "PROVED", "reason": None, "detail": "", "scope": "", "evidence": ["normal-form", "solver"],
        "obligations": 2, "claims": [{"kind": "normal-form", "claim": "y = e / s"}, {"kind": "solver", "claim": "b"}]}
    assert data["assumptions"] == [{"name": "no-alias", "text": "buffers do not overlap", "source": "contract"}]
    assert data["certificate"] is None
    assert data["advice"] == []
    assert data["time_s"] == 1.235


def test_advice_is_written_and_read_back() -> None:
    advice = Advice("redundant-barrier", "not needed", "bar.sync", 12, "k.cu", 7)
    data = to_dict(proved(advice=(advice,)))
    assert data["advice"] == [{"kind": "redundant-barrier", "text": "not needed", "instruction": "bar.sync",
                               "ptx_line": 12, "file": "k.cu", "line": 7}]
    assert from_dict(data).advice == (advice,)
    assert any("PTX line 12 `bar.sync` (k.cu:7): not needed" in "".join(t for t, _ in line)
               for line in report_lines(proved(advice=(advice,))))


@pytest.mark.parametrize("report", [
    proved(),
    undecided("k", Reason.TIMEOUT, "late", "n >= 1", 3.0, 5.0),
    proved(verdict=Verdict.REFUTED, counterexample={"sizes": {"n": 3}},
           properties={"memory": PropertyResult(Verdict.REFUTED, None, "stray"), "races": GOOD}),
])
def test_round_trip(report: Report) -> None:
    data = to_dict(report)
    assert to_dict(from_dict(json.loads(to_json(data)))) == data


def test_many_claims_are_counted_but_not_all_listed() -> None:
    many = PropertyResult(Verdict.PROVED, evidence=tuple(Evidence("solver", str(i)) for i in range(5000)))
    data = to_dict(proved(properties=dict.fromkeys(PROPERTIES[:4], many)))
    assert data["properties"]["races"]["obligations"] == 5000
    assert len(data["properties"]["races"]["claims"]) == 500
    assert to_dict(from_dict(data)) == data


def test_json_is_strict() -> None:
    deep: list[object] = []
    for _ in range(1000):
        deep = [deep]
    cex = {"expected": math.nan, "big": 10**400, "deep": deep, 3: np.float32(0.5), "a": np.arange(3),
           "v": Verdict.PROVED, "inf": -math.inf, "o": object}
    text = to_json(to_dict(undecided("k\x1b", Reason.CRASH, "d")) | {"counterexample": cex})
    data = json.loads(text, parse_constant=lambda c: pytest.fail(c))["counterexample"]
    assert data["expected"] == "nan"
    assert data["inf"] == "-inf"
    assert data["a"] == [0, 1, 2]
    assert data["3"] == 0.5


def test_a_report_cannot_contradict_itself() -> None:
    with pytest.raises(ValueError, match="not the worst"):
        proved(properties={**dict.fromkeys(PROPERTIES[:4], GOOD), "races": PropertyResult(Verdict.INCONCLUSIVE)})
    with pytest.raises(ValueError, match="required"):
        proved(properties={"equivalence": GOOD})
    with pytest.raises(ValueError, match="not the worst"):
        proved(properties={})
    with pytest.raises(ValueError, match="unknown"):
        proved(properties={"speed": GOOD})
    with pytest.raises(ValueError, match="not the worst"):
        from_dict({**to_dict(undecided("k", Reason.MEMORY, "d")), "verdict": "PROVED"})


@pytest.mark.parametrize("change", [{"schema": 2}, {"properties": None}, {"properties": {"memory": {"verdict": "OK"}}},
                                    {"verdict": "proved"}, {"assumptions": [{}]}, {"assumptions": 3}, {"time_s": None}])
def test_what_is_no_report_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_dict({**to_dict(proved()), **change})


def test_errors_as_json() -> None:
    error = InputError("REF201", "bad", Span(3, 4, 5, "s.py"), "try this")
    assert error_dict(error) == {"schema": 1, "verdict": None, "error": {
        "code": "REF201", "message": "bad", "hint": "try this", "span": {"file": "s.py", "line": 3, "column": 4}}}
    assert error_dict(InputError("REF201", "bad"))["error"]["span"] is None
