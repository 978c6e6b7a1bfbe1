"""A place in a token sequence, with the errors that point there."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from warpproof.core import InputError, Span
from warpproof.ptx.lexer import Tokens
from warpproof.ptx.syntax import Operand

MAX_NESTING: Final = 64
NAME_START: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_$%")
NUMBER_START: Final = frozenset("0123456789")


class Cursor:
    """Walks over the tokens of one text; `words[index]` is the next one, the empty word the end."""

    __slots__ = ("index", "names", "tokens", "words")

    def __init__(self, tokens: Tokens) -> None:
        self.tokens, self.words, self.index = tokens, tokens.words, 0
        self.names: dict[str, Operand] = {}  # equal simple operands share one object

    def take(self) -> str:
        """The next word, which is consumed."""
        word = self.words[self.index]
        if word:
            self.index += 1
        return word

    def accept(self, word: str) -> bool:
        """Whether the next word is `word`; it is consumed if so."""
        if self.words[self.index] == word:
            self.index += 1
            return True
        return False

    def expect(self, word: str, where: str) -> None:
        """Consume `word`, or raise PTX005."""
        if self.words[self.index] != word:
            raise self.unexpected(f"{word!r}", where)
        self.index += 1

    def name(self, where: str) -> str:
        """Consume an undotted identifier, or raise PTX005."""
        word = self.words[self.index]
        if not is_name(word) or "." in word:
            raise self.unexpected("a name", where)
        self.index += 1
        return word

    def end_statement(self, where: str) -> None:
        """Consume the `;` of a statement, or raise PTX006 behind the statement's last token."""
        if self.words[self.index] == ";":
            self.index += 1
            return
        last = self.index - 1
        raise self.error("PTX006", f"missing ';' {where}, before {shown(self.words[self.index])}", last,
                         "instructions and declarations end with ';'")

    def span(self, first: int, last: int | None = None) -> Span:
        """The span of tokens `first` to `last`."""
        return self.tokens.span(first, last)

    def error(self, code: str, message: str, index: int | None = None, hint: str = "") -> InputError:
        """The input error at token `index` (the next one when None)."""
        return self.tokens.error(code, message, self.index if index is None else index, hint)

    def unexpected(self, expected: str, where: str) -> InputError:
        """PTX005: the next word is not what the grammar asks for."""
        return self.error("PTX005", f"expected {expected} {where}, found {shown(self.words[self.index])}")


def is_name(word: str) -> bool:
    """Whether the token is an identifier (dotted or not), not the operator `%`."""
    return word[:1] in NAME_START and word != "%" and bool(word)


def shown(word: str) -> str:
    """A token as error messages quote it."""
    if not word:
        return "the end of the text"
    return repr(word if len(word) <= 60 else word[:57] + "...")


def nearest(word: str, known: list[str] | tuple[str, ...] | frozenset[str], lead: str = "did you mean") -> str:
    """A hint naming the known word closest to `word`, or nothing."""
    candidates = [k for k in known if len(k) <= 120] if len(known) <= 2000 else []
    close = get_close_matches(word[:80], candidates, 1, 0.75)
    return f"{lead} {close[0]!r}?" if close else ""
