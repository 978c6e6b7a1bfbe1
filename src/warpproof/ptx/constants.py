"""Literals and constant expressions, evaluated by the manual's 64-bit rules (PTX ISA 9.x, section 4.5)."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from warpproof.ptx.cursor import MAX_NESTING, NUMBER_START, Cursor, shown
from warpproof.ptx.syntax import FloatImmediate, Immediate

_INTEGER: Final = re.compile(r"(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|(0[0-7]*)|([1-9][0-9]*))(U?)", re.ASCII)
_DECIMAL: Final = re.compile(r"(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+", re.ASCII)
_BITS: Final = re.compile(r"0[fF]([0-9a-fA-F]{8})|0[dD]([0-9a-fA-F]{16})", re.ASCII)
_MASK: Final = (1 << 64) - 1
_LONGEST: Final = 1100  # characters of a literal; the longest exact double has 1077
WARP_SZ: Final = 32


@dataclass(frozen=True, slots=True)
class Number:
    """A constant: `kind` is `s` (.s64), `u` (.u64), `d` (double) or `f` (single by its bits, kept as an int)."""

    kind: str
    value: int | float


def literal(word: str) -> Number | None:
    """The number that one token spells; None when it is no well-formed literal that fits 64 bits."""
    if len(word) > _LONGEST:
        return None
    match = _INTEGER.fullmatch(word)
    if match:
        hexadecimal, binary, octal, decimal, unsigned = match.groups()
        digits, base = next((d, b) for d, b in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10)) if d)
        value = int(digits, base)
        if value > _MASK:
            return None
        return Number("u" if unsigned or value >> 63 else "s", value)
    match = _BITS.fullmatch(word)
    if match:
        if match[1]:
            return Number("f", int(match[1], 16))
        return Number("d", struct.unpack("<d", int(match[2], 16).to_bytes(8, "little"))[0])
    if _DECIMAL.fullmatch(word):
        value_ = float(word)
        return None if math.isinf(value_) else Number("d", value_)
    return Number("s", WARP_SZ) if word == "WARP_SZ" else None


def immediate(number: Number, text: str) -> Immediate | FloatImmediate:
    """The operand that a constant is."""
    if number.kind == "f":
        return FloatImmediate(int(number.value), 32, text)
    if number.kind == "d":
        if text[:2] in ("0d", "0D") and len(text) == 18:
            return FloatImmediate(int(text[2:], 16), 64, text)  # keeps NaN payloads
        return FloatImmediate(int.from_bytes(struct.pack("<d", number.value), "little"), 64, text)
    return Immediate(int(number.value), text)


def spelled(words: list[str]) -> str:
    """The tokens joined so that they lex to themselves again."""
    return (" " if "%" in words else "").join(words)


def constant(cursor: Cursor) -> Immediate | FloatImmediate:
    """The constant expression at the cursor as an operand. Raises PTX004, PTX007 or PTX010."""
    first = cursor.index
    number = expression(cursor)
    return immediate(number, spelled(cursor.words[first : cursor.index]))


def integer(cursor: Cursor, where: str) -> int:
    """The value of the integer constant expression at the cursor."""
    first = cursor.index
    number = expression(cursor)
    if number.kind not in "su":
        raise cursor.error("PTX004", f"expected an integer {where}", first)
    return int(number.value)


def expression(cursor: Cursor, depth: int = 0) -> Number:
    """The value of the conditional expression at the cursor."""
    first = cursor.index
    left = _binary(cursor, 0, depth)
    if not cursor.accept("?"):
        return left
    yes = expression(_deeper(cursor, depth), depth + 1)
    cursor.expect(":", "in a conditional expression")
    no = expression(cursor, depth + 1)
    if left.kind not in "su" or "f" in (yes.kind, no.kind) or ("d" in (yes.kind, no.kind) and yes.kind != no.kind):
        raise cursor.error("PTX010", "the operands of ?: have types that do not agree", first)
    chosen = yes if left.value else no
    return _wrapped("u", chosen.value) if "u" in (yes.kind, no.kind) else chosen


def additive_tail(cursor: Cursor) -> tuple[int, str]:
    """The sum of the `+ …` and `- …` that follow a base, with its spelling; (0, "") when there is none."""
    words, first = cursor.words, cursor.index
    total = 0
    while words[cursor.index] in ("+", "-"):
        sign = 1 if cursor.take() == "+" else -1
        at = cursor.index
        number = _binary(cursor, _LEVEL["*"], 0)
        if number.kind not in "su":
            raise cursor.error("PTX004", "an address offset is an integer", at)
        total += sign * int(_wrapped("s", number.value).value)
    return total, spelled(words[first : cursor.index])


def _deeper(cursor: Cursor, depth: int) -> Cursor:
    if depth >= MAX_NESTING:
        raise cursor.error("PTX007", f"an expression nests deeper than {MAX_NESTING} levels")
    return cursor


def _binary(cursor: Cursor, level: int, depth: int) -> Number:
    left = _unary(cursor, depth)
    while True:
        operator = cursor.words[cursor.index]
        strength = _LEVEL.get(operator, -1)
        if strength < level:
            return left
        at = cursor.index
        cursor.index += 1
        right = _binary(_deeper(cursor, depth), strength + 1, depth + 1)
        left = _apply(cursor, at, operator, left, right)


def _unary(cursor: Cursor, depth: int) -> Number:
    first = cursor.index
    word = cursor.take()
    if word == "(":
        if cursor.words[cursor.index] in (".s64", ".u64") and cursor.words[cursor.index + 1] == ")":
            kind = cursor.take()[1]
            cursor.index += 1
            operand = _unary(_deeper(cursor, depth), depth + 1)
            return _wrapped(kind, _integral(cursor, first, "a cast", operand))
        value = expression(_deeper(cursor, depth), depth + 1)
        cursor.expect(")", "in a constant expression")
        return value
    if word in ("-", "+", "!", "~"):
        operand = _unary(_deeper(cursor, depth), depth + 1)
        if operand.kind == "d" and word in "+-":
            return Number("d", -operand.value if word == "-" else operand.value)
        value_ = _integral(cursor, first, f"unary {word!r}", operand)
        results: dict[str, Number] = {"-": _wrapped(operand.kind, -value_), "+": operand,
                                      "!": Number("s", int(not value_)), "~": _wrapped("u", ~value_)}
        return results[word]
    number = literal(word)
    if number is None:
        cursor.index = first
        if word[:1] in NUMBER_START or word[:1] == ".":
            raise cursor.error("PTX004", f"{shown(word)} is no number", hint="integers have 64 bits; a float by its "
                               "bits is 0f and 8 or 0d and 16 hexadecimal digits; a leading 0 means octal")
        raise cursor.unexpected("an operand", "in a constant expression")
    return number


def _integral(cursor: Cursor, at: int, what: str, *numbers: Number) -> int:
    if any(n.kind not in "su" for n in numbers):
        raise cursor.error("PTX010", f"{what} needs integers", at)
    return int(numbers[0].value)


def _wrapped(kind: str, value: float) -> Number:
    bits = int(value) & _MASK
    return Number(kind, bits - (1 << 64) if kind == "s" and bits >> 63 else bits)


def _divided(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_LEVELS: Final = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<", ">", "<=", ">="), ("<<", ">>"),
                  ("+", "-"), ("*", "/", "%"))
_LEVEL: Final = {operator: level for level, operators in enumerate(_LEVELS) for operator in operators}
_COMPARE: Final[dict[str, Callable[[float, float], bool]]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b, ">=": lambda a, b: a >= b, "&&": lambda a, b: bool(a) and bool(b),
    "||": lambda a, b: bool(a) or bool(b),
}
_INTEGERS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": _divided,
    "%": lambda a, b: (a & _MASK) % (b & _MASK), "<<": lambda a, b: a << b, ">>": lambda a, b: a >> b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b, "&": lambda a, b: a & b,
}
_FLOATS: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
}


def _apply(cursor: Cursor, at: int, operator: str, left: Number, right: Number) -> Number:
    """The result of a binary operator by the rules of section 4.5.5; mixed and 0f operands are errors."""
    if "f" in (left.kind, right.kind) or (left.kind == "d") != (right.kind == "d"):
        raise cursor.error("PTX010", f"{operator!r} mixes types", at, "there is no cast between integers and "
                           "floats; 0f literals may not be used in expressions")
    if left.kind == "d":
        return _apply_double(cursor, at, operator, float(left.value), float(right.value))
    kind = "u" if "u" in (left.kind, right.kind) else "s"
    if operator in ("<<", ">>"):
        if not 0 <= right.value < 64:
            raise cursor.error("PTX010", f"shift by {right.value}", at, "shift amounts are 0 to 63")
        return _wrapped(left.kind, _INTEGERS[operator](int(left.value), int(right.value)))
    if operator in ("/", "%") and right.value == 0:
        raise cursor.error("PTX010", "division by zero in a constant expression", at)
    a, b = (int(_wrapped(kind, n.value).value) for n in (left, right))
    if operator in _COMPARE:
        return Number("s", int(_COMPARE[operator](a, b)))
    return _wrapped("u" if operator == "%" else kind, _INTEGERS[operator](a, b))


def _apply_double(cursor: Cursor, at: int, operator: str, a: float, b: float) -> Number:
    if operator in _COMPARE and operator not in ("&&", "||"):
        return Number("s", int(_COMPARE[operator](a, b)))
    if operator == "/":
        if b == 0:
            sign = math.copysign(1.0, a) * math.copysign(1.0, b)
            return Number("d", math.nan if a == 0 or math.isnan(a) else sign * math.inf)
        return Number("d", a / b)
    if operator not in _FLOATS:
        raise cursor.error("PTX010", f"{operator!r} needs integers", at)
    return Number("d", _FLOATS[operator](a, b))

