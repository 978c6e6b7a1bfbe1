"""`warpproof explain CODE`: what an error or reason code means and what to do about it."""

from __future__ import annotations

import difflib
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final, TextIO

_FILES: Final = ("verdicts", "cli", "kernels", "ptx", "isa", "contracts", "runs", "sandbox", "litmus")
_FAMILIES: Final = {
    "PTX": "the PTX text cannot be read", "ISA": "an instruction or type is not valid PTX",
    "SEM": "an instruction form has no semantics", "SYN": "synchronisation", "EQV": "equivalence",
    "REF": "the contract, launch file or reference cannot be used", "SMT": "solvers", "CRT": "certificates",
    "CLI": "the command line", "CUD": "reading and compiling kernels", "RUN": "concrete runs",
    "BOX": "system call filters",
}


@cache
def explanations() -> dict[str, dict[str, str]]:
    """Every documented code with its `title`, `text` and `fix`."""
    folder = files("warpproof.cli").joinpath("explanations")
    data: dict[str, Any] = {}
    for name in _FILES:
        data |= tomllib.loads(folder.joinpath(f"{name}.toml").read_text("utf-8"))
    return {code: {key: str(value) for key, value in entry.items()} for code, entry in data.items()}


def explain(code: str | None, out: TextIO, err: TextIO) -> int:
    """Print the explanation of `code`, or the list of codes; 2 if there is no such code."""
    known = explanations()
    if code is None:
        width = max(len(name) for name in known)
        out.writelines(f"{name:<{width}}  {entry['title']}\n" for name, entry in known.items())
        return 0
    found = {name.lower(): name for name in known}.get(code.lower())
    if found is None:
        near = difflib.get_close_matches(code, known, n=3)
        family = _FAMILIES.get(code[:3].upper())
        about = f"; {code[:3].upper()} codes are about: {family}" if family else ""
        hint = f"did you mean {', '.join(near)}?" if near else "`warpproof explain` lists all codes"
        err.write(f"error[CLI603]: no explanation for {code[:60]!r}{about}\n  hint: {hint}\n")
        return 2
    entry = known[found]
    out.write(f"{found}: {entry['title']}\n\n{entry['text'].strip()}\n")
    if entry.get("fix"):
        out.write(f"\nWhat to do: {entry['fix'].strip()}\n")
    return 0
