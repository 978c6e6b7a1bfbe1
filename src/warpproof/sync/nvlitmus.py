"""The `.test` notation of the public mixed-proxy set, read by way of the herd-style notation.

A file declares addresses, threads placed as `d0.b1.t0` (device, block, thread), and commands `permit`, `check` (the
condition is reachable) and `assert` (it always holds). A load may state the value it returns; executions in which it
returns another are left out. Lines after `$$` are rows of substitutions for `$0`, `$1`, … in the text before.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NoReturn

from warpproof.core import InputError, Span
from warpproof.sync.program import Litmus
from warpproof.sync.reading import read_file, read_litmus

_ADDRESS: Final = re.compile(r"\s*\.(global|shared|texref|surfref)\s+(\w+)"
                             r"(?:\s+(physically|virtually)\s+aliases\s+(\w+))?\s*;", re.ASCII)
_THREAD: Final = re.compile(r"\s*d(\d{1,9})\.b(\d{1,9})\.t(\d{1,9})\s*\{([^}]*)\}", re.ASCII)
_COMMAND: Final = re.compile(r"\s*(permit|check|assert)\s*\((.*?)\)\s*as\s+(\w+)\s*;", re.DOTALL | re.ASCII)
_RETURNS: Final = re.compile(r"==\s*(\d{1,19})\s*\Z", re.ASCII)
_REGISTER: Final = re.compile(r"\br\d+\b", re.ASCII)
_PROXIES: Final = {"texref": "texture", "surfref": "surface", "global": "generic", "shared": "generic"}


def load_tests(path: Path) -> tuple[Litmus, ...]:
    """The tests of a file: several for `.test`, one otherwise; InputError SYN201..SYN205 if it cannot be read."""
    return read_tests(read_file(path), str(path))


def read_tests(text: str, name: str) -> tuple[Litmus, ...]:
    """The tests of a text in a file of that name, which is not opened."""
    if Path(name).suffix == ".test":
        return read_nvlitmus(text, name)
    return (read_litmus(text, name),)


def read_nvlitmus(text: str, name: str = "") -> tuple[Litmus, ...]:
    """One test per command and row of substitutions. Positions in errors are those in the herd-style form."""
    body, _, table = re.sub(r"//[^\n]*", "", text).partition("$$")
    rows = [[cell.strip() for cell in row.split("|")] for row in table.splitlines() if row.strip()]
    stem = Path(name).stem or "test"
    found: list[Litmus] = []
    for number, row in enumerate(rows or [[]]):
        def cell(match: re.Match[str], row: list[str] = row) -> str:
            if int(match[1]) >= len(row):
                _fail(f"${match[1]} has no value in a row of {len(row)}", name)
            return row[int(match[1])]

        found += _tests(re.sub(r"\$(\d{1,3})", cell, body), f"{stem}-{number}" if rows else stem, name)
    return tuple(found)


def _fail(message: str, name: str) -> NoReturn:
    raise InputError("SYN201", message, Span(1, 1, 1, name))


def _tests(text: str, title: str, name: str) -> list[Litmus]:
    at = 0
    declarations: list[str] = []
    heads: list[str] = []
    columns: list[list[str]] = []
    returned: list[str] = []
    owner: dict[str, int] = {}
    while match := _ADDRESS.match(text, at):
        kind, symbol, _, other = match.groups()
        declarations.append(f"{symbol} @ {_PROXIES[kind]} aliases {other};" if other else f"{symbol}=0;")
        at = match.end()
    while match := _THREAD.match(text, at):
        thread = len(heads)
        heads.append(f"P{thread}@cta {match[2]},gpu {match[1]}")
        column = []
        for instruction in (i.strip() for i in match[4].split(";")):
            value = _RETURNS.search(instruction)
            plain = instruction[: value.start()].strip() if value else instruction
            registers = _REGISTER.findall(plain.partition("[")[0])
            owner.update(dict.fromkeys(registers[:1], thread))
            if value and registers:
                returned.append(f"P{thread}:{registers[0]} == {value[1]}")
            column += [plain] if plain else []
        columns.append(column)
        at = match.end()
    commands = list(_COMMAND.finditer(text, at))
    if not heads or not commands or _COMMAND.sub("", text[at:]).strip():
        _fail("this is no test of addresses, threads and commands", name)
    depth = max(map(len, columns))
    table = [" | ".join(c[i] if i < len(c) else "" for c in columns) + " ;" for i in range(depth)]
    where = f"filter ({' && '.join(returned)})\n" if returned else ""
    tests = []
    for command in commands:
        condition = _REGISTER.sub(lambda m: f"P{owner.get(m[0], 0)}:{m[0]}", command[2])
        word = "forall" if command[1] == "assert" else "exists"
        herd = "\n".join([f"PTX {title}-{command[3]}", "{", *declarations, "}", " | ".join(heads) + " ;", *table,
                          f"{where}{word} ({condition})", ""])
        tests.append(read_litmus(herd, name))
    return tests
