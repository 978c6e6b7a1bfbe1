"""The syntax tree back to PTX text that lexes to the tokens it was read from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from warpproof.ptx.syntax import (
    Address,
    AddressValue,
    Block,
    Directive,
    FieldValue,
    FloatImmediate,
    Function,
    Group,
    Immediate,
    Instruction,
    Label,
    LabelTable,
    ListValue,
    Minus,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    RegisterDecl,
    Signature,
    Sink,
    Statement,
    Symbol,
    Text,
    Value,
    Variable,
    Vector,
)

_INDENT: Final = "    "
_SEMICOLON: Final = frozenset({"pragma", "alias"})
_DATA: Final = frozenset({".b8", ".b16", ".b32", ".b64"})


def print_module(module: Module) -> str:
    """PTX text with the module's tokens in a canonical layout, without comments."""
    lines = [f".version {module.version}", f".target {', '.join(module.target)}"]
    if module.written_address_size or module.address_size != 32:
        lines.append(f".address_size {module.address_size}")
    for item in module.items:
        match item:
            case Function():
                lines.append("")
                lines += _function(item)
            case Variable():
                _add_variable(lines, item, "")
            case Directive():
                lines.append(_directive(item))
            case _:
                assert_never(item)
    return "\n".join(lines) + "\n"


def print_instruction(instruction: Instruction) -> str:
    """One instruction as PTX text, ending in `;`."""
    guard = ""
    if instruction.guard is not None:
        guard = f"@{'!' if instruction.guard.negated else ''}{instruction.guard.register} "
    operands = ", ".join([print_operand(o) for o in instruction.operands])
    return f"{guard}{instruction.opcode}{' ' if operands else ''}{operands};"


def print_operand(operand: Operand) -> str:
    """One operand as PTX text."""
    match operand:
        case Register(name):
            return name
        case Immediate() | FloatImmediate():
            return _number(operand)
        case Symbol(name, offset, index, text):
            return f"{name}[{text or index}]" if index is not None else name + (text or _offset(offset))
        case Address():
            return _address(operand)
        case Vector(elements):
            return "{" + ", ".join([print_operand(e) for e in elements]) + "}"
        case Group(elements):
            return "(" + ", ".join([print_operand(e) for e in elements]) + ")"
        case Sink():
            return "_"
        case Negated(inner):
            return "!" + print_operand(inner)
        case Minus(inner):
            return "-" + print_operand(inner)
        case Pair(first, second):
            return f"{print_operand(first)}|{print_operand(second)}"
        case Text(value):
            return f'"{value}"'
        case _:
            assert_never(operand)


def _number(number: Immediate | FloatImmediate) -> str:
    if number.text:
        return number.text
    if isinstance(number, Immediate):
        return str(number.value)
    return f"0f{number.bits:08X}" if number.width == 32 else f"0d{number.bits:016X}"


def _offset(offset: int) -> str:
    return f"+{offset}" if offset else ""


def _address(address: Address) -> str:
    base = print_operand(address.base) + (address.text or _offset(address.offset))
    return "[" + ", ".join([base, *(print_operand(c) for c in address.coords)]) + (
        "].unified" if address.unified else "]")


def _function(function: Function) -> list[str]:
    """The lines of a function; `signature` tells which lists were written."""
    written = function.signature or Signature(function.returns or None, function.params, function.directives)
    head = [f".{function.linkage}"] if function.linkage else []
    head.append(".entry" if function.entry else ".func")
    if function.attributes:
        head.append(_attributes(function.attributes))
    if written.returns is not None or function.returns:
        head.append(_parameters(function.returns))
    head.append(function.name)
    if written.params is not None or function.params:
        head.append(_parameters(function.params))
    lines = [" ".join(head), *(_directive(d) for d in function.directives)]
    if function.body is None:
        lines[-1] += " ;" if lines[-1].endswith(";") else ";"
        return lines
    _add_block(lines, function.body, "")
    return lines


def _parameters(parameters: tuple[Variable | RegisterDecl, ...]) -> str:
    if not parameters:
        return "()"
    listed = [_registers(p) if isinstance(p, RegisterDecl) else _variable(p) for p in parameters]
    return "(\n" + ",\n".join(_INDENT + p for p in listed) + "\n)"


def _attributes(attributes: Iterable[str]) -> str:
    return ".attribute(" + ", ".join("." + a for a in attributes) + ")"


def _registers(declaration: RegisterDecl) -> str:
    vector = f".v{declaration.vector} " if declaration.vector > 1 else ""
    names = [name if count is None else f"{name}<{count}>" for name, count in declaration.names]
    return f".reg {vector}.{declaration.type} {', '.join(names)}"


def _variable(variable: Variable) -> str:
    """A variable's declaration without its end."""
    parts = [f".{variable.linkage}"] if variable.linkage else []
    parts.append(f".{variable.space}")
    if variable.attributes:
        parts.append(_attributes(variable.attributes))
    if variable.written_align:
        parts.append(f".align {variable.align}")
    if variable.vector > 1:
        parts.append(f".v{variable.vector}")
    parts.append(f".{variable.type}")
    if variable.pointer is not None:
        parts.append(".ptr")
        if variable.pointer.space:
            parts.append(f".{variable.pointer.space}")
        if variable.pointer.align is not None:
            parts.append(f".align {variable.pointer.align}")
    return " ".join([*parts, _declarator(variable)])


def _declarator(variable: Variable) -> str:
    copies = "" if variable.copies is None else f"<{variable.copies}>"
    dims = "".join(["[]" if d is None else f"[{d}]" for d in variable.dims])
    given = "" if variable.value is None else " = " + _value(variable.value)
    return variable.name + copies + dims + given


def _value(value: Value) -> str:
    match value:
        case ListValue(elements):
            return "{" + ", ".join([_value(e) for e in elements]) + "}"
        case FieldValue(name, given):
            return f"{name} = {given}"
        case AddressValue(name, offset, generic, mask, text):
            inner = (f"generic({name})" if generic else name) + _offset(offset)
            return text or (inner if mask is None else f"{mask:#x}({inner})")
        case Immediate() | FloatImmediate():
            return _number(value)
        case _:
            assert_never(value)


def _add_variable(lines: list[str], variable: Variable, indent: str) -> None:
    if variable.joined and lines and lines[-1].endswith(";"):
        lines[-1] = f"{lines[-1][:-1]}, {_declarator(variable)};"
    else:
        lines.append(f"{indent}{_variable(variable)};")


def _directive(directive: Directive) -> str:
    end = ";" if directive.name in _SEMICOLON else ""
    words = _broken(directive.arguments) if directive.name == "section" else directive.arguments
    return "".join([f".{directive.name}", *("," if w == "," else f" {w}" for w in words), end])


def _broken(words: Iterable[str]) -> Iterator[str]:
    """Section data with a line break before each datum."""
    for word in words:
        yield "\n" + word if word in _DATA else word


def _add_block(lines: list[str], block: Block, indent: str) -> None:
    lines.append(indent + "{")
    inner = indent + _INDENT
    for statement in block.statements:
        _add_statement(lines, statement, inner)
    lines.append(indent + "}")


def _add_statement(lines: list[str], statement: Statement, indent: str) -> None:
    match statement:
        case Instruction():
            lines.append(indent + print_instruction(statement))
        case Label(name):
            lines.append(f"{name}:")
        case RegisterDecl():
            lines.append(f"{indent}{_registers(statement)};")
        case Variable():
            _add_variable(lines, statement, indent)
        case Directive():
            lines.append(indent + _directive(statement))
        case Block():
            _add_block(lines, statement, indent)
        case LabelTable():
            lines.append(f"{statement.name}: {_table(statement)};")
        case _:
            assert_never(statement)


def _table(table: LabelTable) -> str:
    if table.signature is None:
        return f".{table.kind} {', '.join(table.targets)}"
    written = table.signature
    parts = [f".{table.kind}"]
    if written.returns is not None:
        parts.append(_parameters(written.returns))
    parts.append("_")
    if written.params is not None:
        parts.append(_parameters(written.params))
    return " ".join([*parts, *(_directive(d) for d in written.directives)])
