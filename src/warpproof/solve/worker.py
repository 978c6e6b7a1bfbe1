"""Child process: answers SMT-LIB questions with z3, one JSON object per line on standard input and output."""

from __future__ import annotations

import json
import resource
import sys
from typing import Any


def _value(z3: Any, v: Any) -> int | bool | None:
    if z3.is_int_value(v) or z3.is_bv_value(v):
        return int(v.as_long())
    if z3.is_true(v) or z3.is_false(v):
        return bool(z3.is_true(v))
    return None


def answer(z3: Any, question: dict[str, Any]) -> dict[str, Any]:
    """The status of one script, with the values of its constants when it is satisfiable."""
    solver = z3.Solver()
    solver.set("timeout", int(question["milliseconds"]))
    if question["rlimit"]:
        solver.set("rlimit", int(question["rlimit"]))
    try:
        solver.from_string(question["text"])
        status = str(solver.check())
        if status != "sat":
            return {"status": status, "detail": solver.reason_unknown() if status == "unknown" else ""}
        model = solver.model()
        values = {d.name(): _value(z3, model[d]) for d in model.decls() if d.arity() == 0}
        return {"status": status, "model": {k: v for k, v in values.items() if v is not None}}
    except z3.Z3Exception as e:
        return {"status": "unknown", "detail": f"z3: {e}"}


def main() -> None:
    """Serve questions until standard input closes."""
    megabytes = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    import z3

    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(z3, json.loads(line))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
