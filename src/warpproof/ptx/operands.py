"""Operands: registers, constants, addresses, vectors, pairs and call lists (PTX ISA 9.x, chapter 6)."""

from __future__ import annotations

from typing import Final

from warpproof.ptx.constants import additive_tail, constant, expression, immediate, integer, literal
from warpproof.ptx.cursor import MAX_NESTING, NAME_START, NUMBER_START, Cursor, is_name
from warpproof.ptx.syntax import (
    Address,
    Group,
    Immediate,
    Minus,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Symbol,
    Text,
    Vector,
)

_ENDS: Final = frozenset(",;})]")
_SINK: Final = Sink()


def named(word: str) -> Register | Symbol:
    """A name as an operand: a register when it starts with `%`; `resolve` decides by declaration."""
    return Register(word) if word[0] == "%" else Symbol(word)


def operand(cursor: Cursor, call: bool = False, depth: int = 0) -> Operand:
    """The operand at the cursor; with `call`, parentheses are a list. Raises PTX004, PTX005, PTX007 or PTX010."""
    words, index = cursor.words, cursor.index
    word = words[index]
    if words[index + 1 : index + 2] and words[index + 1] in _ENDS:
        simple = cursor.names.get(word) or _simple(cursor, word)
        if simple is not None:
            cursor.index += 1
            return simple
    first = _primary(cursor, call, depth)
    if words[cursor.index] != "|":
        return first
    cursor.index += 1
    return Pair(first, _primary(cursor, call, depth))


def _simple(cursor: Cursor, word: str) -> Operand | None:
    """An operand of one token, remembered; None when the token is no operand by itself."""
    start = word[:1]
    made: Operand
    if start in NAME_START and word not in ("%", "_", "WARP_SZ"):
        made = named(word)
    elif word == "_":
        made = _SINK
    elif start in NUMBER_START or word == "WARP_SZ":
        number = literal(word)
        if number is None:
            return None
        made = immediate(number, word)
    else:
        return None
    cursor.names[word] = made
    return made


def _primary(cursor: Cursor, call: bool, depth: int) -> Operand:
    word = cursor.words[cursor.index]
    if depth > MAX_NESTING:
        raise cursor.error("PTX007", f"an operand nests deeper than {MAX_NESTING} levels")
    if word == "{":
        cursor.index += 1
        return Vector(_list(cursor, "}", False, depth + 1, "in a vector"))
    if word == "[":
        return _address(cursor, depth)
    if word == "(" and call:
        cursor.index += 1
        return Group(_list(cursor, ")", True, depth + 1, "in an argument list"))
    following = cursor.words[cursor.index + 1 : cursor.index + 2]
    if word in ("!", "-") and following and is_name(following[0]) and following[0] != "WARP_SZ":
        cursor.index += 2
        return (Negated if word == "!" else Minus)(named(following[0]))
    if word[:1] == '"':
        cursor.index += 1
        return Text(word[1:-1])
    if is_name(word) and word != "WARP_SZ":
        cursor.index += 1
        return _SINK if word == "_" else _name_tail(cursor, word)
    return constant(cursor)


def _name_tail(cursor: Cursor, word: str) -> Operand:
    """A name with what may follow it: an offset, or an index in brackets."""
    following = cursor.words[cursor.index]
    if following in ("+", "-"):
        offset, text = additive_tail(cursor)
        return Symbol(word, offset, None, text)
    if following == "[":
        cursor.index += 1
        first = cursor.index
        index = integer(cursor, "as an array index")
        text = "".join(cursor.words[first : cursor.index])
        cursor.expect("]", "after an array index")
        return Symbol(word, 0, index, text)
    return cursor.names.setdefault(word, named(word))


def _list(cursor: Cursor, close: str, call: bool, depth: int, where: str) -> tuple[Operand, ...]:
    elements: list[Operand] = []
    if cursor.accept(close):
        return ()
    while True:
        elements.append(operand(cursor, call, depth))
        if cursor.accept(close):
            return tuple(elements)
        cursor.expect(",", where)


def _address(cursor: Cursor, depth: int) -> Address:
    """`[base+offset{, operand}…]{.unified}`."""
    words = cursor.words
    cursor.index += 1
    word = words[cursor.index]
    base: Register | Symbol | Immediate
    offset, text = 0, ""
    if is_name(word) and word not in ("_", "WARP_SZ"):
        cursor.index += 1
        known = cursor.names.get(word)
        base = known if isinstance(known, Register | Symbol) else named(word)
        if words[cursor.index] in ("+", "-"):
            offset, text = additive_tail(cursor)
    else:
        first = cursor.index
        number = expression(cursor)
        value = immediate(number, "".join(words[first : cursor.index]))
        if not isinstance(value, Immediate):
            raise cursor.error("PTX004", "an address is an integer", first)
        base = value
    coords: list[Operand] = []
    while cursor.accept(","):
        coords.append(operand(cursor, False, depth + 1))
    if words[cursor.index] != "]":
        raise cursor.unexpected("']'", "in an address")
    cursor.index += 1
    return Address(base, offset, tuple(coords), cursor.accept(".unified"), text)
