"""Initialisers: their tree, and the bytes they stand for (PTX ISA 9.x, section 5.4.4)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from warpproof.ptx.constants import additive_tail, constant, immediate, literal, spelled
from warpproof.ptx.cursor import MAX_NESTING, Cursor, is_name
from warpproof.ptx.syntax import AddressValue, FieldValue, FloatImmediate, Immediate, ListValue, Value

MAX_IMAGE: Final = 64 << 20
_PACK: Final = {4: "<f", 8: "<d"}


@dataclass(frozen=True, slots=True)
class Image:
    """The bytes of an initialised variable, or why they are not known; `outer` is the extent of a `[]` dimension."""

    data: bytes | None
    opaque: str
    outer: int | None


def value(cursor: Cursor, depth: int = 0) -> Value:
    """The initialiser at the cursor. Raises PTX005, PTX007, PTX010 or PTX011."""
    words, word = cursor.words, cursor.words[cursor.index]
    if word == "{":
        if depth >= MAX_NESTING:
            raise cursor.error("PTX007", f"an initialiser nests deeper than {MAX_NESTING} levels")
        return _list(cursor, depth)
    following = words[cursor.index + 1 : cursor.index + 2]
    if following and following[0] in (",", "}") and word[:1].isdigit():
        number = literal(word)
        if number is not None:
            cursor.index += 1
            return immediate(number, word)
    if is_name(word) and word != "WARP_SZ":
        if following == ["="]:
            cursor.index += 2
            return FieldValue(word, cursor.take())
        return _address(cursor, cursor.index, None)
    if word[:1].isdigit() and following == ["("]:
        first = cursor.index
        number = literal(word)
        if number is None or number.kind not in "su" or int(number.value) not in _MASKS:
            raise cursor.error("PTX011", "the mask is one byte of 64 bits", first, "0xff, 0xff00, … 0xff00000000000000")
        cursor.index += 2
        return _masked(cursor, first, int(number.value))
    return constant(cursor)


_MASKS: Final = frozenset(0xFF << shift for shift in range(0, 64, 8))


def _list(cursor: Cursor, depth: int) -> ListValue:
    cursor.index += 1
    elements: list[Value] = []
    if cursor.accept("}"):
        return ListValue(())
    while True:
        elements.append(value(cursor, depth + 1))
        if cursor.accept("}"):
            return ListValue(tuple(elements))
        cursor.expect(",", "in an initialiser")


def _masked(cursor: Cursor, first: int, mask: int) -> Value:
    """`mask(expression)` with the cursor behind the parenthesis."""
    if is_name(cursor.words[cursor.index]) and cursor.words[cursor.index] != "WARP_SZ":
        inner = _address(cursor, first, mask)
        cursor.expect(")", "after a masked address")
        return AddressValue(inner.name, inner.offset, inner.generic, mask, inner.text + ")")
    number = constant(cursor)
    cursor.expect(")", "after a masked constant")
    if not isinstance(number, Immediate):
        raise cursor.error("PTX011", "a mask selects a byte of an integer", first)
    shift = (mask & -mask).bit_length() - 1
    return Immediate((number.value & mask) >> shift, spelled(cursor.words[first : cursor.index]))


def _address(cursor: Cursor, first: int, mask: int | None) -> AddressValue:
    """`sym+off` or `generic(sym)+off`; the spelling starts at token `first`."""
    name = cursor.name("in an initialiser")
    generic = name == "generic" and cursor.accept("(")
    offset = 0
    if generic:
        name = cursor.name("in generic()")
        inner, _ = additive_tail(cursor)
        offset += inner
        cursor.expect(")", "after generic(")
    tail, _ = additive_tail(cursor)
    return AddressValue(name, offset + tail, generic, mask, spelled(cursor.words[first : cursor.index]))


def image(cursor: Cursor, at: int, given: Value, kind: str, unit: int, shape: tuple[int | None, ...]) -> Image:
    """The little-endian bytes of `given` for elements of `unit` bytes; `shape` counts array and vector elements.

    Missing elements are zero. Where the manual and the assembler read partly filled inner lists differently, the bytes
    are not known.
    """
    if kind in ("texref", "samplerref", "surfref"):
        return Image(None, "its contents are opaque", len(given.elements) if isinstance(given, ListValue) else None)
    if isinstance(given, ListValue) != bool(shape):
        what = "a list in braces" if shape else "one value"
        raise cursor.error("PTX011", f"the initialiser has to be {what}", at)
    flat: list[Value] = []
    exact = _flatten(cursor, at, given, shape, flat) if isinstance(given, ListValue) else True
    if not isinstance(given, ListValue):
        flat.append(given)
    outer = len(given.elements) if isinstance(given, ListValue) else None
    total = 1
    for position, extent in enumerate(shape):
        total *= (outer or 0) if position == 0 and extent is None else (extent or 0)
    if total * unit > MAX_IMAGE:
        raise cursor.error("PTX011", f"an initialised variable of {total * unit} bytes is too large", at,
                           f"initialised variables may have {MAX_IMAGE} bytes")
    if any(isinstance(v, AddressValue) for v in flat):
        return Image(None, "its initial value holds addresses", outer)
    if not exact:
        return Image(None, "its initialiser leaves an inner list incomplete", outer)
    data = b"".join([_bytes(cursor, at, v, kind, unit) for v in flat])
    return Image(data + bytes(total * unit - len(data)), "", outer)


def _flatten(cursor: Cursor, at: int, given: ListValue, shape: tuple[int | None, ...], out: list[Value]) -> bool:
    """Append the scalars in order; whether every inner list but the last is complete."""
    extent = shape[0] if shape else None
    if not shape or (extent is not None and len(given.elements) > extent):
        raise cursor.error("PTX011", "the initialiser has more elements than the variable", at)
    exact, inner = True, 1
    for size in shape[1:]:
        inner *= size or 0
    for position, element in enumerate(given.elements):
        if isinstance(element, ListValue) != (len(shape) > 1):
            raise cursor.error("PTX011", "the braces of the initialiser do not match the dimensions", at)
        if isinstance(element, ListValue):
            before = len(out)
            exact &= _flatten(cursor, at, element, shape[1:], out)
            exact &= position == len(given.elements) - 1 or len(out) - before == inner
        else:
            out.append(element)
    return exact


def _bytes(cursor: Cursor, at: int, element: Value, kind: str, unit: int) -> bytes:
    if isinstance(element, Immediate):
        if kind[0] == "f" or kind.startswith("bf"):
            raise cursor.error("PTX011", f"an integer cannot initialise a .{kind}", at, "write a float, as in 1.0")
        return (element.value & ((1 << 8 * unit) - 1)).to_bytes(unit, "little")
    if not isinstance(element, FloatImmediate) or kind[0] in "us" or unit not in _PACK:
        raise cursor.error("PTX011", f"the value cannot initialise a .{kind}", at)
    if element.width == 8 * unit:
        return element.bits.to_bytes(unit, "little")
    if element.width == 32:
        raise cursor.error("PTX011", "a 0f literal cannot initialise 64 bits", at, "write 0d and 16 hexadecimal digits")
    return single(struct.unpack("<d", element.bits.to_bytes(8, "little"))[0])


def single(number: float) -> bytes:
    """The little-endian bytes of the nearest single, infinity beyond the range."""
    try:
        return struct.pack("<f", number)
    except OverflowError:
        return struct.pack("<f", float("inf") if number > 0 else float("-inf"))
