"""Declarations of variables, registers and parameters (PTX ISA 9.x, sections 5.1 to 5.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from warpproof.ptx.constants import integer
from warpproof.ptx.cursor import Cursor, nearest, shown
from warpproof.ptx.initial import Image, image, value
from warpproof.ptx.syntax import Pointer, RegisterDecl, Value, Variable

SPACES: Final = frozenset({".global", ".shared", ".const", ".local", ".param", ".tex"})
LINKAGES: Final = frozenset({".visible", ".extern", ".weak", ".common"})
OPAQUE_TYPES: Final = frozenset({"texref", "samplerref", "surfref"})
TYPE_BITS: Final[dict[str, int]] = {
    **{f"{k}{w}": w for k in "bus" for w in (8, 16, 32, 64)}, "b128": 128, "pred": 1, "f16": 16, "f32": 32, "f64": 64,
    "bf16": 16, "tf32": 32, "f16x2": 32, "bf16x2": 32, "f32x2": 64, "u16x2": 32, "s16x2": 32, "e4m3": 8, "e5m2": 8,
    "e4m3x2": 16, "e5m2x2": 16, "u8x4": 32, "s8x4": 32, **dict.fromkeys(OPAQUE_TYPES, 64),
}
_POINTED: Final = frozenset({".global", ".shared", ".const", ".local"})
MAX_BYTES: Final = 1 << 48
MAX_LIST: Final = 4096  # names in one declaration


@dataclass(slots=True)
class _Head:
    """What comes before the names of a declaration."""

    space: str
    align: int | None = None
    vector: int = 1
    type: str = ""
    pointer: Pointer | None = None
    attributes: list[str] = field(default_factory=list)


def alignment(cursor: Cursor) -> int:
    """The power of two behind `.align`."""
    at = cursor.index
    align = integer(cursor, "after .align")
    if not 0 < align <= 1 << 31 or align & (align - 1):
        raise cursor.error("PTX012", f"alignment {align} is no power of two", at)
    return align


def attribute_list(cursor: Cursor) -> list[str]:
    """The attributes of `.attribute(…)` as text: `managed`, `unified(19,95)`."""
    cursor.expect("(", "after .attribute")
    out: list[str] = []
    while True:
        word = cursor.take()
        if word not in (".managed", ".unified"):
            cursor.index -= bool(word)
            raise cursor.unexpected(".managed or .unified", "in .attribute")
        text = word[1:]
        if cursor.accept("("):
            first = integer(cursor, "in .unified")
            cursor.expect(",", "in .unified")
            text += f"({first},{integer(cursor, 'in .unified')})"
            cursor.expect(")", "in .unified")
        out.append(text)
        if cursor.accept(")"):
            return out
        cursor.expect(",", "in .attribute")


def _head(cursor: Cursor) -> _Head:
    """The state space, qualifiers and type at the cursor."""
    head = _Head(cursor.take()[1:])
    if head.space == "const" and cursor.accept("["):
        raise cursor.error("PTX008", "constant banks are not supported", cursor.index - 1)
    while cursor.words[cursor.index][:1] == ".":
        word = cursor.take()
        name = word[1:]
        if word == ".align":
            head.align = alignment(cursor)
        elif word in (".v2", ".v4", ".v8"):
            head.vector = int(name[1:])
        elif word == ".attribute":
            head.attributes += attribute_list(cursor)
        elif name in TYPE_BITS and not head.type:
            head.type = name
        elif word == ".ptr" and head.space == "param":
            head.pointer = _pointer(cursor)
        else:
            hint = nearest(word, [f".{t}" for t in TYPE_BITS])
            raise cursor.error("PTX005", f"{shown(word)} does not belong in a declaration", cursor.index - 1, hint)
    if not head.type:
        raise cursor.unexpected("a type", f"in a .{head.space} declaration")
    return head


def _pointer(cursor: Cursor) -> Pointer:
    space = cursor.take()[1:] if cursor.words[cursor.index] in _POINTED else ""
    return Pointer(space, alignment(cursor) if cursor.accept(".align") else None)


def registers(cursor: Cursor) -> RegisterDecl:
    """The `.reg` declaration at the cursor, without its end; a parameter has one name."""
    first = cursor.index
    head = _head(cursor)
    if head.align is not None or head.attributes:
        raise cursor.error("PTX005", "registers have no alignment or attributes", first)
    names = [_register_name(cursor)]
    while cursor.words[cursor.index] == "," and cursor.words[cursor.index + 1][:1] != ".":
        cursor.index += 1
        names.append(_register_name(cursor))
    return RegisterDecl(head.type, head.vector, tuple(names), cursor.span(first, cursor.index - 1))


def _register_name(cursor: Cursor) -> tuple[str, int | None]:
    name = cursor.name("in a .reg declaration")
    return name, _copies(cursor)


def _copies(cursor: Cursor) -> int | None:
    """The count of `<n>` at the cursor, None when there is none."""
    if not cursor.accept("<"):
        return None
    at = cursor.index
    word = cursor.take()
    if not (word.isascii() and word.isdigit() and len(word) <= 18) or int(word) == 0:
        raise cursor.error("PTX012", f"{shown(word)} is no count of names", at, "write a positive integer, as in %r<9>")
    cursor.expect(">", "after the count of names")
    return int(word)


def variables(cursor: Cursor, linkage: str = "") -> list[Variable]:
    """The variables of the declaration at the cursor, without its end."""
    first = cursor.index
    head = _head(cursor)
    out = [_variable(cursor, head, linkage, first, False)]
    while cursor.words[cursor.index] == "," and cursor.words[cursor.index + 1][:1] != ".":
        cursor.index += 1
        if len(out) >= MAX_LIST:
            raise cursor.error("PTX007", f"a declaration has more than {MAX_LIST} names")
        out.append(_variable(cursor, head, linkage, cursor.index, True))
    return out


def parameter(cursor: Cursor) -> Variable | RegisterDecl:
    """The `.param` or `.reg` parameter at the cursor."""
    word = cursor.words[cursor.index]
    if word == ".reg":
        return registers(cursor)
    first = cursor.index
    hidden = cursor.accept(".hidden")  # of a driver's own parameters; the manual does not name it
    if cursor.words[cursor.index] != ".param":
        raise cursor.unexpected("'.param' or '.reg'", "in a parameter list")
    return _variable(cursor, _head(cursor), "hidden" if hidden else "", first, False)


def _dims(cursor: Cursor) -> tuple[int | None, ...]:
    dims: list[int | None] = []
    while cursor.accept("["):
        if cursor.accept("]"):
            if dims:
                raise cursor.error("PTX012", "only the first dimension may be left out", cursor.index - 1)
            dims.append(None)
            continue
        at = cursor.index
        size = integer(cursor, "as an array size")
        if not 0 <= size <= MAX_BYTES or len(dims) >= 16:
            raise cursor.error("PTX012", f"an array cannot have the extent {size}", at)
        dims.append(size)
        cursor.expect("]", "after an array size")
    return tuple(dims)


def _variable(cursor: Cursor, head: _Head, linkage: str, first: int, joined: bool) -> Variable:
    at = cursor.index
    name = cursor.name(f"in a .{head.space} declaration")
    copies, dims = _copies(cursor), _dims(cursor)
    given: Value | None = None
    if cursor.accept("="):
        if linkage == "extern" or head.space not in ("global", "const"):
            raise cursor.error("PTX011", f"{name!r} cannot have an initialiser here", at,
                               "only .global and .const variables defined in this module can")
        given = value(cursor)
    unit = -(-TYPE_BITS[head.type] // 8)
    element = unit * head.vector
    shape = dims + ((head.vector,) if head.vector > 1 else ())
    made = Image(None, "", None) if given is None else image(cursor, at, given, head.type, unit, shape)
    count = _count((made.outer, *dims[1:]) if dims and dims[0] is None else dims)
    if element * (count or 1) * (copies or 1) > MAX_BYTES:
        raise cursor.error("PTX012", f"{name!r} is larger than any address space", at)
    size = element * (1 if count is None else count)
    return Variable(
        name, head.space, head.type, head.vector, count, head.align or element, size, cursor.span(first, at),
        linkage == "extern", made.data, tuple(head.attributes), linkage, head.pointer, dims, copies, given, made.opaque,
        head.align is not None, joined,
    )


def _count(dims: tuple[int | None, ...]) -> int | None:
    if not dims:
        return None
    total = 1
    for extent in dims:
        total *= extent or 0
    return total
