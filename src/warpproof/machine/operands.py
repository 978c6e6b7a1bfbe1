"""Operand access shared by every machine: how a bound instruction's written operands become values of a domain.

An instruction is decoded once (`decode`) into readers and writers; `step` runs it on one domain and one register file.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from warpproof.core import InputError, Span, Unsupported
from warpproof.domains import Domain, Effect, FloatMode, ScalarType
from warpproof.ptx import syntax
from warpproof.semantics import Bound, Slot, execute

_B64: Final = ScalarType("b", 64)


class Registers(Protocol):
    """What operands name: registers (special ones too) by name, and variables by symbol."""

    def read(self, name: str) -> Any:
        """The value of a register at its declared width, or the predicate."""
        ...

    def write(self, name: str, value: Any) -> None:
        """Set a register; the value has the declared width."""
        ...

    def address(self, symbol: str) -> Any:
        """The 64-bit address of a variable in its own state space (of a function, its generic address)."""
        ...


Widths = Callable[[str], int]
"""The declared width in bits of a register (1 for a predicate), or of a special register."""

Reader = Callable[[Domain[Any, Any], Registers], Any]
Writer = Callable[[Domain[Any, Any], Registers, Any], None]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A bound instruction with its operand access: `readers` for the src and addr slots in order, `writers` for dst."""

    bound: Bound
    readers: tuple[Reader, ...]
    writers: tuple[Writer, ...]


def decode(instruction: syntax.Instruction, bound: Bound, widths: Widths) -> Decoded:
    """The operand access of an instruction; raises `InputError` ISA110 when an operand does not fit its slot."""
    readers: list[Reader] = []
    writers: list[Writer] = []
    for operand, slot in zip(instruction.operands, bound.slots, strict=False):
        match slot.role:
            case "dst":
                writers.append(_writer(operand, slot, widths, instruction.span))
            case "src" | "addr":
                readers.append(reader(operand, slot, widths, instruction.span))
            case "label" | "other":
                pass
    return Decoded(bound, tuple(readers), tuple(writers))


def step(decoded: Decoded, dom: Domain[Any, Any], registers: Registers) -> Generator[Effect, Any, None]:
    """Execute one non-control instruction on every lane of `dom`: yields its effects, then writes its results."""
    args = tuple(read(dom, registers) for read in decoded.readers)
    if decoded.bound.pure:
        results = decoded.bound.apply(dom, args)
    else:
        results = yield from execute(decoded.bound, dom, args)
    for write, value in zip(decoded.writers, results, strict=True):
        write(dom, registers, value)


def step_pure(decoded: Decoded, dom: Domain[Any, Any], registers: Registers) -> None:
    """Execute one instruction without effects on every lane of `dom`."""
    args = tuple(read(dom, registers) for read in decoded.readers)
    for write, value in zip(decoded.writers, decoded.bound.apply(dom, args), strict=True):
        write(dom, registers, value)


def reader(operand: syntax.Operand, slot: Slot, widths: Widths, span: Span | None) -> Reader:
    """How to read `operand` as a value of `slot`: its width is the slot's, a vector gives a tuple."""
    match operand:
        case syntax.Vector(elements):
            part = Slot(slot.role, slot.type)
            parts = tuple(reader(element, part, widths, span) for element in elements)
            return lambda dom, registers: tuple(read(dom, registers) for read in parts)
        case syntax.Address(base, offset, ()):
            return _address_reader(base, offset, widths, span)
        case syntax.Negated(inner):
            read = reader(inner, slot, widths, span)
            return lambda dom, registers: dom.predicate("not", read(dom, registers))
        case syntax.Register(name):
            return _register_reader(name, slot.type, widths(name), span)
        case syntax.Immediate(value):
            return _constant_reader(slot.type, value)
        case syntax.FloatImmediate(bits, width):
            return _constant_reader(slot.type, _literal_bits(bits, width, slot.type, span))
        case syntax.Symbol(name, offset):
            ty = slot.type
            located = _address_reader(syntax.Symbol(name), offset, widths, span)
            if ty.width == 64:
                return located
            return lambda dom, registers: dom.resize(ty.width, located(dom, registers))
        case _:
            raise _misfit(operand, slot, span)


def _constant_reader(ty: ScalarType, value: int) -> Reader:
    if ty.kind == "pred":
        return lambda dom, registers: dom.truth(value != 0)
    return lambda dom, registers: dom.constant(ty, value)


def _register_reader(name: str, ty: ScalarType, width: int, span: Span | None) -> Reader:
    if (width == 1) != (ty.kind == "pred"):
        raise InputError("ISA110", f"{name} cannot be read as .{ty}: predicates and values do not mix", span)
    if width == 1 or width == ty.width:
        return lambda dom, registers: registers.read(name)
    if width < ty.width:
        raise InputError("ISA110", f"{name} has {width} bits, the operand needs .{ty}", span)
    return lambda dom, registers: dom.resize(ty.width, registers.read(name))


def _address_reader(base: syntax.Register | syntax.Symbol | syntax.Immediate, offset: int, widths: Widths,
                    span: Span | None) -> Reader:
    read: Reader
    match base:
        case syntax.Immediate(value):
            return _constant_reader(_B64, value + offset)
        case syntax.Symbol(name, inner):
            offset += inner
            read = lambda dom, registers: registers.address(name)  # noqa: E731
        case syntax.Register(name):
            width = widths(name)
            if width not in (32, 64):
                raise InputError("ISA110", f"the address register {name} has {width} bits", span)
            if width == 64:
                read = lambda dom, registers: registers.read(name)  # noqa: E731
            else:
                return _narrow_address_reader(name, offset)
    if not offset:
        return read
    return lambda dom, registers: dom.integer("add", _B64, read(dom, registers), dom.constant(_B64, offset))


def _narrow_address_reader(name: str, offset: int) -> Reader:
    """A 32-bit base is zero-extended, then the offset is added (PTX ISA 6.4.1)."""
    if not offset:
        return lambda dom, registers: dom.resize(64, registers.read(name))
    return lambda dom, registers: dom.integer(
        "add", _B64, dom.resize(64, registers.read(name)), dom.constant(_B64, offset))


def _literal_bits(bits: int, width: int, ty: ScalarType, span: Span | None) -> int:
    if ty.width == width:
        return bits
    if width == 64 and str(ty) == "f32":
        return int(np.array([bits], np.uint64).view(np.float64).astype(np.float32).view(np.uint32)[0])
    raise Unsupported(f"float literal of {width} bits", f"as an operand of type .{ty}", span)


def _writer(operand: syntax.Operand, slot: Slot, widths: Widths, span: Span | None) -> Writer:
    match operand:
        case syntax.Sink():
            return lambda dom, registers, value: None
        case syntax.Pair(first, second):
            left = _writer(first, Slot("dst", slot.type, slot.vector), widths, span)
            right = _writer(second, Slot("dst", ScalarType("pred", 1)), widths, span)

            def write_pair(dom: Domain[Any, Any], registers: Registers, value: Any) -> None:
                left(dom, registers, value[0])
                right(dom, registers, value[1])

            return write_pair
        case syntax.Vector(elements):
            parts = tuple(_writer(element, Slot("dst", slot.type), widths, span) for element in elements)

            def write_vector(dom: Domain[Any, Any], registers: Registers, value: Any) -> None:
                for write, element in zip(parts, value, strict=True):
                    write(dom, registers, element)

            return write_vector
        case syntax.Register(name):
            return _register_writer(name, slot.type, widths(name), span)
        case _:
            raise _misfit(operand, slot, span)


def _register_writer(name: str, ty: ScalarType, width: int, span: Span | None) -> Writer:
    if (width == 1) != (ty.kind == "pred"):
        raise InputError("ISA110", f"{name} cannot take a .{ty}: predicates and values do not mix", span)
    if width == 1 or width == ty.width:
        return lambda dom, registers, value: registers.write(name, value)
    if width < ty.width:
        raise InputError("ISA110", f"{name} has {width} bits, the result is .{ty}", span)
    if not ty.signed:
        return lambda dom, registers, value: registers.write(name, dom.resize(width, value))
    wide = ScalarType("s", width)
    return lambda dom, registers, value: registers.write(name, dom.convert(wide, ty, FloatMode(), value))


def _misfit(operand: syntax.Operand, slot: Slot, span: Span | None) -> InputError:
    kind = type(operand).__name__.lower()
    return InputError("ISA110", f"a {kind} operand cannot stand where .{slot.type} is expected", span)
