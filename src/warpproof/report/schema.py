"""Reports as JSON, schema 1: one object per kernel, strict JSON without NaN, the same fields in every report."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from warpproof.core import PROPERTIES, Advice, Assumption, Reason, Verdict, WarpproofError
from warpproof.judge import Evidence, Fallback, PropertyResult, Report

SCHEMA: Final = 1
MAX_CLAIMS: Final = 500
MAX_DEPTH: Final = 40


def to_dict(report: Report) -> dict[str, Any]:
    """The report as JSON values. Every property is a key; one that nothing asked for is None."""
    return {
        "schema": SCHEMA,
        "kernel": report.kernel,
        "verdict": report.verdict.value,
        "properties": {name: _property(report.properties.get(name)) for name in PROPERTIES},
        "sizes": report.sizes,
        "assumptions": [{"name": a.name, "text": a.text, "source": a.source} for a in report.assumptions],
        "counterexample": None if report.counterexample is None else jsonable(report.counterexample),
        "certificate": report.certificate,
        "advice": [_advice(a) for a in report.advice],
        "fallback": _fallback(report.fallback),
        "time_s": round(report.time_s, 3),
        "peak_mb": round(report.peak_mb, 1),
    }


def _advice(a: Advice) -> dict[str, Any]:
    return {"kind": a.kind, "text": a.text, "instruction": a.instruction, "ptx_line": a.ptx_line, "file": a.file,
            "line": a.line}


def _fallback(f: Fallback | None) -> dict[str, Any] | None:
    if f is None:
        return None
    return {"sizes": [dict(row) for row in f.sizes], "reason": f.reason, "shown": list(f.shown)}


def to_json(value: Mapping[str, Any]) -> str:
    """`value` as JSON text, never holding NaN or infinities."""
    return json.dumps(jsonable(value), indent=2, allow_nan=False, ensure_ascii=True)


def error_dict(error: WarpproofError) -> dict[str, Any]:
    """What `--format json` prints when the input cannot be used: no verdict, an error object."""
    span = error.span
    place = None if span is None else {"file": span.file, "line": span.line, "column": span.column}
    return {"schema": SCHEMA, "verdict": None, "error": {
        "code": error.code, "message": error.message, "hint": error.hint, "span": place}}


def _property(result: PropertyResult | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        "verdict": result.verdict.value,
        "reason": None if result.reason is None else result.reason.value,
        "detail": result.detail,
        "scope": result.scope,
        "evidence": sorted({e.kind for e in result.evidence}),
        "obligations": len(result.evidence),
        "claims": [{"kind": e.kind, "claim": e.claim} for e in result.evidence[:MAX_CLAIMS]],
    }


def from_dict(data: Mapping[str, Any]) -> Report:
    """The report that `to_dict` wrote, without the data of its evidence; ValueError if it is not one."""
    try:
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {data['schema']!r} is not {SCHEMA}")
        return Report(
            kernel=str(data["kernel"]), verdict=Verdict(data["verdict"]),
            properties={str(name): _result(p) for name, p in data["properties"].items()},
            assumptions=tuple(Assumption(a["name"], a["text"], a["source"]) for a in data["assumptions"]),
            counterexample=data["counterexample"], certificate=data["certificate"],
            time_s=float(data["time_s"]), peak_mb=float(data["peak_mb"]), sizes=str(data["sizes"]),
            advice=tuple(Advice(**a) for a in data.get("advice", ())),
            fallback=_restored(data.get("fallback")))
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a report: {error!r}") from None


def _restored(data: Mapping[str, Any] | None) -> Fallback | None:
    if data is None:
        return None
    return Fallback(tuple({str(k): int(v) for k, v in row.items()} for row in data["sizes"]), str(data["reason"]),
                    tuple(map(str, data["shown"])))


def _result(data: Mapping[str, Any] | None) -> PropertyResult | None:
    if data is None:
        return None
    claims = tuple(Evidence(c["kind"], c["claim"]) for c in data["claims"])
    rest = data["obligations"] - len(claims)
    kinds = data["evidence"] or ["?"]
    claims += tuple(Evidence(kinds[0], "") for _ in range(rest))
    reason = None if data["reason"] is None else Reason(data["reason"])
    return PropertyResult(Verdict(data["verdict"]), reason, data["detail"], data["scope"], claims)


def jsonable(value: Any, depth: int = 0) -> Any:
    """`value` as plain JSON values: non-finite floats and unknown objects become strings, mappings get string keys."""
    if depth > MAX_DEPTH:
        return "…"
    match value:
        case None | bool() | str():
            return value
        case Enum():
            return jsonable(value.value, depth + 1)
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else repr(float(value))
        case Mapping():
            return {str(k): jsonable(v, depth + 1) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [jsonable(v, depth + 1) for v in value]
        case _ if hasattr(value, "tolist"):  # NumPy arrays and scalars
            return jsonable(value.tolist(), depth + 1)
        case _:
            return str(value)
