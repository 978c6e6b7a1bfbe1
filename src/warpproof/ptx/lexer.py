"""PTX text to tokens: one compiled regular expression, linear time (PTX ISA 9.x, sections 4.1 to 4.5).

A dotted opcode or register (`ld.global.v4.f32`, `%tid.x`) is one token; a directive keyword (`.reg`) is one token.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from itertools import islice
from typing import Final

from warpproof.core import InputError, Span

MAX_CHARACTERS: Final = 64 << 20
MAX_TOKENS: Final = 16_000_000

_TOKEN: Final = re.compile(
    r"""
    (?:\s+|//[^\n]*+|/\*(?s:.*?)(?:\*/|\Z))*+
    (
      [A-Za-z_$%][\w$]*+(?:\.\w++(?:::\w++)*+)*+      # name, opcode, register
    | \.[A-Za-z_][\w$]*+(?:::\w++)*+                  # directive
    | 0[xXbBfFdD][\w$]++                              # integer or float by its bits
    | \.?\d(?:[eE][+-](?=\d)|[\w$.])*+                # other number
    | "(?:[^"\\\n]|\\.)*+"?                           # string
    | <<|>>|<=|>=|==|!=|&&|\|\|
    | (?s:.)
    | \Z
    )
    """,
    re.ASCII | re.VERBOSE,
)
_SKIPPED: Final = re.compile(r"(?:\s+|//[^\n]*+|/\*(?s:.*?)\*/)*+", re.ASCII)
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*+"')
_SINGLE: Final = frozenset("{}()[];:,|+-*/<>=?&^~!@%")
_WORD_START: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_$%<>=!&|")


class Tokens:
    """The tokens of one text: `words`, ending in an empty one, and the offset of each in `starts`."""

    __slots__ = ("_newlines", "file", "starts", "text", "words")

    def __init__(self, text: str, file: str, words: list[str], starts: array[int]) -> None:
        self.text, self.file, self.words, self.starts = text, file, words, starts
        self._newlines = array("L", (m.start() for m in re.finditer("\n", text)))

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of a character offset."""
        line = bisect_right(self._newlines, offset - 1)
        return line + 1, offset - (self._newlines[line - 1] if line else -1)

    def span(self, first: int, last: int | None = None) -> Span:
        """The span of tokens `first` to `last` (itself when None), cut at the end of the first line."""
        start = self.starts[first]
        line, column = self.position(start)
        end = self.starts[last] + len(self.words[last]) if last is not None else start + len(self.words[first])
        if line <= len(self._newlines):
            end = min(end, self._newlines[line - 1])
        return Span(line, column, max(1, end - start), self.file)

    def error(self, code: str, message: str, index: int, hint: str = "") -> InputError:
        """The input error that points at token `index`."""
        return InputError(code, message, self.span(index), hint, self.text)


def lex(text: str, file: str = "") -> Tokens:
    """The tokens of `text` without comments and white space, with their places.

    Raises InputError PTX001 (too large), PTX002 (unterminated comment or string), PTX003 (a stray character).
    """
    if len(text) > MAX_CHARACTERS:
        raise InputError("PTX001", f"the text has {len(text)} characters, more than {MAX_CHARACTERS}",
                         Span(1, 1, 1, file), "split the module, or strip its debug sections")
    body = text.rstrip("\0")
    if body.startswith("\ufeff"):
        body = " " + body[1:]
    words: list[str] = []
    starts = array("I")
    known: dict[str, str] = {}
    same, add, at = known.setdefault, words.append, starts.append
    for match in islice(_TOKEN.finditer(body), MAX_TOKENS + 1):
        word = match[1]
        add(same(word, word))
        at(match.start(1))
    if len(words) > 1 and not words[-2]:  # the end matches once more after trailing white space
        words.pop()
        starts.pop()
    tokens = Tokens(body, file, words, starts)
    if len(words) > MAX_TOKENS:
        raise tokens.error("PTX001", f"the text has more than {MAX_TOKENS} tokens", MAX_TOKENS, "split the module")
    _check(tokens, known)
    return tokens


def tokens(text: str, file: str = "") -> tuple[str, ...]:
    """The token words of `text` in order; raises InputError like `lex`."""
    return tuple(lex(text, file).words[:-1])


def _check(tokens: Tokens, known: dict[str, str]) -> None:
    bad = [word for word in known if word and not _acceptable(word)]
    if bad:
        words = set(bad)
        index = next(i for i, word in enumerate(tokens.words) if word in words)
        word = tokens.words[index]
        if word[0] == '"':
            raise tokens.error("PTX002", "unterminated string", index, 'close it with " on the same line')
        hint = "run the C preprocessor first" if word == "#" else "PTX is ASCII text; check how the file was produced"
        raise tokens.error("PTX003", f"unexpected character {word!r}", index, hint)
    before = tokens.starts[-2] + len(tokens.words[-2]) if len(tokens.words) > 1 else 0
    match = _SKIPPED.match(tokens.text, before)
    if match is not None and match.end() < len(tokens.text):
        line, column = tokens.position(match.end())
        raise InputError("PTX002", "unterminated comment", Span(line, column, 2, tokens.file), "close it with */",
                         tokens.text)


def _acceptable(word: str) -> bool:
    if word[0] == '"':
        return _STRING.fullmatch(word) is not None
    return word in _SINGLE or word[0] in _WORD_START or (word[0] == "." and len(word) > 1)
