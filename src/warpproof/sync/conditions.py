"""Final conditions: read from text, evaluated over a final state."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NoReturn

from warpproof.core import InputError, Span
from warpproof.sync.mnemonics import number
from warpproof.sync.program import (
    Address,
    Comparison,
    Condition,
    Connective,
    Term,
    ThreadRegister,
    Value,
)

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>-?0[xX][0-9a-fA-F]{1,16}|-?\d{1,20})(?![\s\d]*:)|(?P<register>P?\d+\s*:\s*%?[A-Za-z_]\w*)"
    r"|(?P<name>[A-Za-z_$][\w$]*(?:\s*\+\s*\d+)?)"
    r"|(?P<symbol>/\\|\\/|&&|\|\||==|!=|>=|<=|[=<>~!()\[\];]))", re.ASCII)
_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "==": operator.eq, "!=": operator.ne, ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}
MAX_DEPTH: Final = 60
State = Mapping[Term, Value]


class _Reader:
    """A recursive-descent reader: `or` binds weaker than `and`, `and` weaker than `not`."""

    def __init__(self, text: str, span: Span, threads: Mapping[str, int], symbols: frozenset[str], source: str) -> None:
        self.span, self.threads, self.symbols, self.source = span, threads, symbols, source
        self.tokens: list[tuple[str, str]] = []
        position = 0
        while text[position:].strip():
            match = _TOKEN.match(text, position)
            if match is None:
                self.fail(f"unreadable condition at {text[position:].strip()[:20]!r}")
            self.tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            position = match.end()
        self.tokens = [t for t in self.tokens if t[1] != ";"]
        self.at = self.depth = 0

    def fail(self, message: str) -> NoReturn:
        raise InputError("SYN203", message, self.span, source=self.source)

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            self.fail("the condition ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def disjunction(self) -> Condition:
        parts = [self.conjunction()]
        while self.peek() in ("\\/", "||"):
            self.at += 1
            parts.append(self.conjunction())
        return parts[0] if len(parts) == 1 else Connective("or", tuple(parts))

    def conjunction(self) -> Condition:
        parts = [self.negation()]
        while self.peek() in ("/\\", "&&"):
            self.at += 1
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else Connective("and", tuple(parts))

    def negation(self) -> Condition:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.fail(f"the condition is nested more than {MAX_DEPTH} deep")
        found = self._negation()
        self.depth -= 1
        return found

    def _negation(self) -> Condition:
        if self.peek() in ("~", "not", "!"):
            self.at += 1
            return Connective("not", (self.negation(),))
        if self.peek() == "(":
            self.at += 1
            inner = self.disjunction()
            if self.take()[1] != ")":
                self.fail("a parenthesis is not closed")
            return inner
        if self.peek() == "true":
            self.at += 1
            return Connective("and", ())
        left = self.term()
        sign = self.take()[1]
        sign = "==" if sign == "=" else sign
        if sign not in _COMPARE:
            self.fail(f"{sign!r} is no comparison")
        return Comparison(sign, left, self.term())

    def term(self) -> Term:
        kind, text = self.take()
        if text == "[":
            inner = self.term()
            if self.take()[1] != "]" or not isinstance(inner, Address):
                self.fail("brackets hold a location")
            return inner
        if kind == "number":
            return number(text)
        if kind == "register":
            thread, _, name = text.partition(":")
            key = thread.strip().removeprefix("P")
            if key not in self.threads:
                self.fail(f"there is no thread P{key}")
            return ThreadRegister(self.threads[key], name.strip().lstrip("%"))
        if kind == "name":
            symbol, _, offset = text.partition("+")
            if symbol.strip() not in self.symbols:
                self.fail(f"{symbol.strip()!r} is no declared location")
            return Address(symbol.strip(), int(offset or 0))
        self.fail(f"{text!r} is no value")


def read_condition(text: str, span: Span, threads: Mapping[str, int], symbols: frozenset[str],
                   source: str) -> Condition:
    """The condition that the text stands for; InputError SYN203 if it stands for none."""
    reader = _Reader(text, span, threads, symbols, source)
    condition = reader.disjunction()
    if reader.at < len(reader.tokens):
        reader.fail(f"unexpected {reader.peek()!r} after the condition")
    return condition


def read_terms(text: str, span: Span, threads: Mapping[str, int], symbols: frozenset[str],
               source: str) -> tuple[Term, ...]:
    """The registers and locations of a `locations [...]` list."""
    reader = _Reader(text, span, threads, symbols, source)
    terms = []
    while reader.at < len(reader.tokens):
        terms.append(reader.term())
    return tuple(terms)


def terms_of(condition: Condition) -> Iterator[Term]:
    """Every register and location that the condition mentions."""
    match condition:
        case Comparison(_, left, right):
            yield from (t for t in (left, right) if not isinstance(t, int))
        case Connective(_, parts):
            for part in parts:
                yield from terms_of(part)


def holds(condition: Condition, state: State) -> bool:
    """Whether the condition is true of the final state, which maps every term the condition mentions."""
    match condition:
        case Connective("and", parts):
            return all(holds(p, state) for p in parts)
        case Connective("or", parts):
            return any(holds(p, state) for p in parts)
        case Connective(_, (part,)):
            return not holds(part, state)
        case Comparison(sign, left, right):
            a, b = (t if isinstance(t, int) else state[t] for t in (left, right))
            if isinstance(a, Address) or isinstance(b, Address):
                return (a == b) if sign == "==" else (a != b) if sign == "!=" else False
            return _COMPARE[sign](a, b)
    raise AssertionError(condition)


def may_hold(condition: Condition, state: State) -> bool:
    """False only if no completion of the partial state makes the condition true."""
    return _three(condition, state) is not False


def _three(condition: Condition, state: State) -> bool | None:
    match condition:
        case Connective("not", (part,)):
            inner = _three(part, state)
            return None if inner is None else not inner
        case Connective(kind, parts):
            found = [_three(p, state) for p in parts]
            decisive = kind == "or"
            if decisive in found:
                return decisive
            return None if None in found else not decisive
        case Comparison(_, left, right):
            known = all(isinstance(t, int) or t in state for t in (left, right))
            return holds(condition, state) if known else None
    raise AssertionError(condition)
