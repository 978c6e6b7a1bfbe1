"""Errors for people: a code, a place, a hint."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text: 1-based line and column, `length` characters on that line."""

    line: int
    column: int
    length: int = 1
    file: str = ""

    def __str__(self) -> str:
        return f"{self.file or '<text>'}:{self.line}:{self.column}"


class WarpproofError(Exception):
    """An error with a code, span and hint.

    Codes: `PTX0xx` parse, `ISA1xx`, `REF2xx` contracts and references, `BOX6xx`, `CLI6xx`, `CUD7xx`.
    """

    def __init__(self, code: str, message: str, span: Span | None = None, hint: str = "", source: str = "") -> None:
        super().__init__(message)
        self.code, self.message, self.span, self.hint, self.source = code, message, span, hint, source

    def render(self) -> str:
        """`file:line:col: error[CODE]: message`, the source line with a caret, and the hint."""
        head = f"{self.span}: " if self.span else ""
        out = [f"{head}error[{self.code}]: {self.message}"]
        if self.span and self.source:
            lines = self.source.splitlines()
            if 0 < self.span.line <= len(lines):
                text = lines[self.span.line - 1].replace("\t", " ")
                start = max(0, self.span.column - 61)
                out.append(f"  | {text[start : start + 120]}")
                out.append("  | " + " " * (self.span.column - 1 - start) + "^" * max(1, min(self.span.length, 40)))
        if self.hint:
            out.append(f"  hint: {self.hint}")
        return "\n".join(out)


class InputError(WarpproofError):
    """The user's input (PTX, contract, launch file, command line) cannot be used; exit code 2."""


class Unsupported(Exception):
    """No sound answer exists for `form`; raising it anywhere makes the run INCONCLUSIVE, never a pass."""

    def __init__(self, form: str, why: str, span: Span | None = None, hint: str = "") -> None:
        super().__init__(f"{form}: {why}")
        self.form, self.why, self.span, self.hint = form, why, span, hint
