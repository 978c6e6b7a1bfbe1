"""Litmus files: the herd-style PTX format of the public sets, with the extensions of docs/memory-model.md."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NoReturn

from warpproof.core import InputError, Span, read_regular
from warpproof.sync.conditions import read_condition, read_terms, terms_of
from warpproof.sync.mnemonics import Names, number, read_instruction
from warpproof.sync.program import (
    TRUE,
    Address,
    Branch,
    Condition,
    Goto,
    Instruction,
    Label,
    Litmus,
    Term,
    Thread,
    ThreadRegister,
    Value,
    Variable,
    assigned,
)

MAX_BYTES: Final = 1 << 20
_HEADER: Final = re.compile(r"\s*(?:GPU_)?PTX\b[ \t]*([^\n\"{]*)", re.IGNORECASE)
_THREAD: Final = re.compile(r"\s*P?(\d{1,9})\s*@(.*)", re.DOTALL | re.ASCII)
_PLACE: Final = re.compile(r"(warp|cta|cluster|gpu)\s*(\d{1,9})\Z", re.ASCII)
_ALIAS: Final = re.compile(r"([A-Za-z_$][\w$]*)\s*@\s*(\w+)\s+aliases\s+([A-Za-z_$][\w$]*)\Z")
_REGISTER: Final = re.compile(r"P?(\d+)\s*:\s*%?([A-Za-z_]\w*)\s*=\s*(.+)\Z", re.DOTALL)
_LOCATION: Final = re.compile(r"([A-Za-z_$][\w$]*)\s*(?:=\s*(.+))?\Z", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,20})\Z", re.ASCII)
_FINAL: Final = re.compile(r"(?:\A|\n|;)\s*(locations\s*\[|filter\b|exists\b|forall\b|~\s*exists\b|not\s+exists\b"
                           r"|final\b)")
_PROXIES: Final = ("generic", "constant", "texture", "surface")


class _File:
    """One file being read: text without comments, positions kept."""

    def __init__(self, text: str, name: str) -> None:
        self.source, self.name = text, name
        self.text = re.sub(r"\(\*.*?\*\)|//[^\n]*", _blank, _blank_strings(text), flags=re.DOTALL)
        self.symbols: frozenset[str] = frozenset()
        self.threads: dict[str, int] = {}

    def span(self, position: int, length: int = 1) -> Span:
        line = self.text.count("\n", 0, position) + 1
        return Span(line, position - (self.text.rfind("\n", 0, position) + 1) + 1, max(1, length), self.name)

    def fail(self, message: str, position: int, hint: str = "", code: str = "SYN201") -> NoReturn:
        raise InputError(code, message, self.span(min(position, len(self.text))), hint, self.source)

    def pieces(self, start: int, end: int, separator: str) -> list[tuple[int, str]]:
        """The trimmed pieces between separators, each with its position; empty ones too."""
        found = []
        for piece in re.finditer(rf"([^{separator}]*)(?:{separator}|\Z)", self.text[start:end]):
            if piece.start() == piece.end():
                break
            lead = len(piece[1]) - len(piece[1].lstrip())
            found.append((start + piece.start() + lead, piece[1].strip()))
        return found


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _blank_strings(text: str) -> str:
    return re.sub(r"\"[^\"]*\"", _blank, text)


def read_litmus(text: str, name: str = "") -> Litmus:
    """The litmus test in the text of a file; InputError SYN201..SYN205 if it cannot be read."""
    file = _File(text, name)
    header = _HEADER.match(file.text)
    if header is None:
        file.fail("a litmus file starts with `PTX name`", 0, hint="only PTX litmus tests are read")
    opening = file.text.find("{", header.end())
    closing = file.text.find("}", opening)
    if opening < 0 or closing < 0:
        file.fail("the initial state `{ … }` is missing", header.end())
    final = _FINAL.search(file.text, closing + 1)
    if final is None:
        file.fail("the final condition is missing", len(file.text.rstrip()),
                  hint="end with `exists (…)`, `~exists (…)` or `forall (…)`", code="SYN203")
    variables, registers = _initial(file, opening + 1, closing)
    rows = file.pieces(closing + 1, final.start(1), ";")
    threads, columns = _columns(file, rows, closing)
    names = Names(file.symbols)
    program = tuple(_with_code(file, t, columns[i], names) for i, t in enumerate(threads))
    variables += [Variable(name) for name in sorted(names.undeclared)]
    file.symbols |= names.undeclared
    initial = tuple((ThreadRegister(_thread(file, number, at), register), value)
                    for at, number, register, value in registers)
    quantifier, condition, where, observed = _final_part(file, final.start(1))
    known = {register for register, _ in initial} | {
        ThreadRegister(t, name) for t, thread in enumerate(program) for i in thread.instructions
        for name in assigned(i.operation)}
    for term in (*terms_of(condition), *terms_of(where), *observed):
        if isinstance(term, ThreadRegister) and term not in known:
            file.fail(f"thread {program[term.thread].name} never assigns the register {term.name!r}", final.start(1),
                      hint="a register that is never assigned would count as 0", code="SYN203")
    description = " ".join(d.strip() for d in re.findall(r"\"([^\"]*)\"", text[:opening]))
    return Litmus(header[1].strip() or Path(name).stem, program, tuple(variables), initial, quantifier, condition,
                  where, observed, description, text)


def load_litmus(path: Path) -> Litmus:
    """The litmus test in a file; InputError SYN201..SYN204 if it cannot be read."""
    return read_litmus(read_file(path), str(path))


def read_file(path: Path) -> str:
    """The text of a file; InputError SYN201 if it cannot be opened or is no UTF-8 text of at most 1 MiB."""
    try:
        return read_regular(path, MAX_BYTES).decode("utf-8")
    except OSError as error:
        raise InputError("SYN201", f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError("SYN201", f"{path} is not UTF-8 text") from None


_Initial = list[tuple[int, str, str, Value]]


def _initial(file: _File, start: int, end: int) -> tuple[list[Variable], _Initial]:
    entries = [(at, text) for at, text in file.pieces(start, end, ";") if text]
    names = [m[1] for _, t in entries if ":" not in t and (m := re.match(r"([A-Za-z_$][\w$]*)", t))]
    file.symbols = frozenset(names)
    variables: dict[str, Variable] = {}
    registers: _Initial = []
    for at, text in entries:
        register = _REGISTER.match(text)
        if register:
            registers.append((at, register[1], register[2], _value(file, register[3], at)))
            continue
        variable = _variable(file, text, at)
        if variable.name in variables:
            file.fail(f"{variable.name!r} is declared twice", at)
        if variable.alias_of and variable.alias_of not in variables:
            file.fail(f"{variable.alias_of!r} must be declared before its alias", at)
        variables[variable.name] = variable
    return list(variables.values()), registers


def _variable(file: _File, text: str, at: int) -> Variable:
    alias = _ALIAS.match(text)
    if alias:
        if alias[2] not in _PROXIES:
            file.fail(f"no proxy {alias[2]!r}", at, hint=", ".join(_PROXIES))
        return Variable(alias[1], alias_of=alias[3], proxy=alias[2])
    location = _LOCATION.match(text)
    if location is None:
        file.fail(f"{text!r} declares neither a location, a register nor an alias", at)
    return Variable(location[1], _value(file, location[2], at) if location[2] else 0)


def _value(file: _File, text: str, at: int) -> Value:
    text = text.strip()
    if _NUMBER.match(text):
        return number(text)
    if text.lstrip("&").strip() in file.symbols:
        return Address(text.lstrip("&").strip())
    file.fail(f"{text!r} is no number and no declared location", at)


def _columns(file: _File, rows: list[tuple[int, str]], at: int) -> tuple[list[Thread], list[list[tuple[int, str]]]]:
    rows = [(start, text) for start, text in rows if text]
    if not rows:
        file.fail("there are no threads", at)
    threads = [_thread_head(file, start, text) for start, text in _cells(file, rows[0])]
    columns: list[list[tuple[int, str]]] = [[] for _ in threads]
    for row in rows[1:]:
        cells = _cells(file, row)
        if len(cells) > len(threads):
            file.fail(f"{len(cells)} columns, but {len(threads)} threads", row[0])
        for column, cell in zip(columns, cells, strict=False):
            if cell[1]:
                column.append(cell)
    return threads, columns


def _cells(file: _File, row: tuple[int, str]) -> list[tuple[int, str]]:
    # A row may start with an empty cell: its text was trimmed, but the bar that follows is still there.
    return file.pieces(row[0], row[0] + len(row[1]), r"\|") + ([(row[0], "")] if row[1].endswith("|") else [])


def _thread_head(file: _File, at: int, text: str) -> Thread:
    head = _THREAD.match(text)
    if head is None:
        file.fail(f"{text[:30]!r} is no thread", at, hint="write `P0@cta 0,gpu 0`; cluster and warp may be added")
    if head[1] in file.threads:
        file.fail(f"thread P{head[1]} is declared twice", at)
    file.threads[head[1]] = len(file.threads)
    places: dict[str, int] = {}
    for part in head[2].split(","):
        place = _PLACE.match(part.strip())
        if place is None or place[1] in places:
            file.fail(f"{part.strip()!r} is no place", at, hint="write `P0@cta 0,gpu 0`; cluster and warp may be added")
        places[place[1]] = int(place[2])
    if "cta" not in places:
        file.fail(f"thread P{head[1]} has no CTA", at)
    return Thread(f"P{head[1]}", places["cta"], places.get("gpu", 0), (), places.get("cluster"), places.get("warp"))


def _thread(file: _File, number: str, at: int) -> int:
    if number not in file.threads:
        file.fail(f"there is no thread P{number}", at)
    return file.threads[number]


def _with_code(file: _File, thread: Thread, cells: list[tuple[int, str]], names: Names) -> Thread:
    code = []
    for at, text in cells:
        span = file.span(at, len(text))
        code.append(Instruction(read_instruction(text, span, names, file.source), re.sub(r"\s+", " ", text), span))
    labels = [i.operation.name for i in code if isinstance(i.operation, Label)]
    for instruction in code:
        if isinstance(instruction.operation, Goto | Branch) and labels.count(instruction.operation.target) != 1:
            raise InputError("SYN204", f"label {instruction.operation.target!r} is not defined exactly once in "
                             f"{thread.name}", instruction.span, source=file.source)
    return Thread(thread.name, thread.cta, thread.gpu, tuple(code), thread.cluster, thread.warp)


def _final_part(file: _File, start: int) -> tuple[str, Condition, Condition, tuple[Term, ...]]:
    where: Condition = TRUE
    observed: tuple[Term, ...] = ()
    quantifier = ""
    condition: Condition = TRUE
    marks = list(_FINAL.finditer(file.text, start - 1)) or list(_FINAL.finditer(file.text, start))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        end = following.start(1) if following else len(file.text)
        word = re.sub(r"\s+", "", mark[1])
        body, span = file.text[mark.end():end].strip().strip(";"), file.span(mark.start(1), len(mark[1]))
        if word.startswith("locations"):
            observed = read_terms(body.rstrip("] \n"), span, file.threads, file.symbols, file.source)
            continue
        if word == "final":
            raise InputError("SYN203", "`final` conditions are not supported", span,
                             "write exists, ~exists or forall", file.source)
        read = read_condition(body, span, file.threads, file.symbols, file.source)
        if word == "filter":
            where = read
        elif quantifier:
            raise InputError("SYN203", "more than one final condition", span, source=file.source)
        else:
            quantifier, condition = ("~exists" if word in ("~exists", "notexists") else word), read
    if not quantifier:
        file.fail("the final condition is missing", start, code="SYN203")
    return quantifier, condition, where, observed
