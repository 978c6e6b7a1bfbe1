"""The inside of `sandbox verify`: bytes of filters, policies and profiles in, everything said about them out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from warpproof.report import to_json
from warpproof.sandbox import (
    NATIVE,
    Call,
    Disagreement,
    Inspection,
    Kernel,
    Policy,
    Program,
    certificate,
    compile_policy,
    decode,
    encode,
    filter_of,
    inspect,
    name_of,
    policy_of,
    profile_of,
    table,
    transitions,
)

_SHOWN: Final = 6


def load() -> None:
    """Read the tables, at a time when files can be opened."""
    table()
    transitions()


def verified(given: Mapping[str, Any], kernel: Kernel | None) -> dict[str, Any]:
    """`exit`, `lines` for people, `report` and `certificate` for programs; or `disagreement`, an internal error.

    InputError where the bytes are no filter, policy or profile, or the kernel would refuse the filter.
    """
    filters, policy = _subject(given)
    if given["policy"] is not None:
        policy = policy_of(*_file(given["policy"]))
    try:
        made = inspect(filters, policy, given["assume"], given["permit"], kernel, given["kind"] == "running")
    except Disagreement as error:
        return {"disagreement": str(error)}
    wanted = to_json(certificate(filters, made.closure)) if given["certificate"] else None
    return {"exit": made.exit_code, "lines": list(_lines(made, given["title"])), "report": _as_dict(made, filters),
            "certificate": wanted}


def _file(entry: Mapping[str, str]) -> tuple[str, bytes]:
    return entry["name"], bytes.fromhex(entry["data"])


def _subject(given: Mapping[str, Any]) -> tuple[tuple[Program, ...], Policy | None]:
    """The filters to look at, oldest first."""
    match given["kind"]:
        case "running":
            return tuple(decode(bytes.fromhex(code)) for code in given["filters"]), None
        case "profile":
            groups = None if given["groups"] is None else bytes.fromhex(given["groups"])
            policy = profile_of(*_file(given["file"]), given["caps"], groups)
            return (compile_policy(policy),), policy
        case _:
            program, own = filter_of(*_file(given["file"]))
            return (program,), own


def _lines(made: Inspection, name: str) -> Iterable[str]:
    yield f"{name}: {made.instructions} instructions" if made.instructions else f"{name} holds no filter"
    for o in made.obligations:
        detail = f"  [{o.detail}]" if o.detail else ""
        yield f"  {o.id} {o.status:<8} {o.statement}{detail}"
        if o.witness is not None and o.status == "refuted":
            yield f"       witness: {_call(o.witness)}"
    if made.closure.layers:
        yield f"assumed in force, not checked: {', '.join(made.closure.layers)}"
    yield "lets a process reach, worst first:" if made.passages else "lets a process reach: nothing in the table"
    for passage in made.passages:
        yield f"  {passage.fact}: {passage.meaning}{'  (permitted)' if passage.permitted else ''}"
        for way in passage.ways[:_SHOWN]:
            after = f" after {way.needs}" if way.needs else ""
            yield f"      {_call(way.witness) if way.witness else way.name + ' (not decided)'}{after}"
        if len(passage.ways) > _SHOWN:
            yield f"      and {len(passage.ways) - _SHOWN} more"
    if made.confirmed:
        yield f"{made.confirmed} witnesses were tried on the running kernel and passed or failed as computed"
    yield from (f"note: {note}" for note in made.notes)


def _call(call: Call) -> str:
    known = table().get(name_of(call.nr))
    shown = ", ".join(f"{a:#x}" if a > 9 else str(a) for a in call.args[: known.arguments if known else 6])
    return f"{name_of(call.nr)}({shown})" if call.arch == NATIVE else f"arch {call.arch:#x}, number {call.nr}"


def _as_dict(made: Inspection, filters: tuple[Program, ...]) -> dict[str, Any]:
    verdict = {0: "PROVED", 1: "REFUTED", 3: "INCONCLUSIVE"}[made.exit_code]
    digest = hashlib.sha256(b"".join(encode(p) for p in filters)).hexdigest()
    passages = [{"fact": p.fact, "permitted": p.permitted,
                 "ways": [{"call": w.name, "needs": w.needs or None, "witness": _words(w.witness)} for w in p.ways]}
                for p in made.passages]
    obligations = [{"id": o.id, "statement": o.statement, "status": o.status, "detail": o.detail,
                    "witness": _words(o.witness)} for o in made.obligations]
    return {"schema": 1, "verdict": verdict, "sha256": digest, "instructions": made.instructions,
            "obligations": obligations, "reachable": passages, "assumed": list(made.closure.layers),
            "confirmed_live": made.confirmed, "notes": list(made.notes)}


def _words(call: Call | None) -> Mapping[str, Any] | None:
    return None if call is None else {"nr": call.nr, "arch": call.arch, "ip": call.ip, "args": list(call.args)}
