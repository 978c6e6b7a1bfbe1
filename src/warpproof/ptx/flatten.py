"""One function's body as flat code with unique names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final

from warpproof.core import InputError, Span, Unsupported
from warpproof.ptx.cursor import nearest, shown
from warpproof.ptx.kernel import RegisterType
from warpproof.ptx.scopes import COMPONENTS, MAX_RANGE, Names, Registers, Scope, is_special, register_type
from warpproof.ptx.syntax import (
    Address,
    Block,
    Directive,
    Function,
    Group,
    Guard,
    Immediate,
    Instruction,
    Label,
    LabelTable,
    Minus,
    Module,
    Negated,
    Operand,
    Pair,
    Register,
    RegisterDecl,
    Symbol,
    Variable,
    Vector,
)

_JUMPS: Final = frozenset({"bra", "brx"})
_MEMORY: Final = frozenset({"ld", "ldu", "st", "atom", "red", "prefetch", "prefetchu", "applypriority", "discard"})
_SELECTOR: Final = re.compile(r"[bh][0-3]")
MAX_COPIES: Final = 65536


@dataclass(frozen=True, slots=True, eq=False)
class Formal:
    """A declared name that keeps its name: a parameter, a module variable or a function."""

    name: str
    variable: Variable | None = None
    function: Function | None = None


@dataclass(slots=True)
class Flat:
    """What a function's body came to."""

    function: Function
    registers: dict[str, RegisterType] = field(default_factory=dict)
    code: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    tables: dict[str, LabelTable] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)  # named in the code
    directives: list[Directive] = field(default_factory=list)


class Flattener:
    """Flattens one function; `outer` holds the module's names, `names` the unique variable names of the whole run."""

    def __init__(self, module: Module, function: Function, outer: Scope, names: Names, files: dict[str, str]) -> None:
        self.module, self.names, self.files = module, names, files
        self.registers, self.label_names = Names(), Names()
        self.source: tuple[str, int] | None = None
        self.flat = Flat(function, directives=list(function.directives))
        self.top = Scope(outer)

    def run(self) -> Flat:
        """The flat body. Raises InputError PTX021 to PTX025, and Unsupported for variables of unknown content."""
        function = self.flat.function
        for item in (*function.returns, *function.params):
            if isinstance(item, RegisterDecl):
                self._declare_registers(self.top, item)
                self._register(self.top, item.names[0][0], item.span)
            elif item.name != "_" and not self.top.declare(item.name, Formal(item.name, item)):
                raise self._duplicate(item.name, item.span)
        if function.body is not None:
            self._block(function.body, self.top)
        return self.flat

    def _block(self, block: Block, scope: Scope) -> None:
        for statement in block.statements:
            if isinstance(statement, Label | LabelTable):
                if statement.name in scope.labels:
                    raise self._duplicate(statement.name, statement.span)
                scope.labels[statement.name] = self.label_names.fresh(statement.name)
        for statement in block.statements:
            match statement:
                case Instruction():
                    self.flat.code.append(self._instruction(statement, scope))
                case Label(name):
                    self.flat.labels[scope.labels[name]] = len(self.flat.code)
                case RegisterDecl():
                    self._declare_registers(scope, statement)
                case Variable():
                    self._declare_variable(scope, statement)
                case Block():
                    self._block(statement, Scope(scope))
                case LabelTable():
                    self._table(statement, scope)
                case Directive():
                    self._directive(statement)

    def _directive(self, directive: Directive) -> None:
        if directive.name == "loc":
            index, line = directive.arguments[:2]
            self.source = (self.files.get(index, index), small(line))
        elif directive.name not in ("file", "section"):
            self.flat.directives.append(directive)

    def _table(self, table: LabelTable, scope: Scope) -> None:
        unique = scope.labels[table.name]
        targets = table.targets
        if table.kind == "branchtargets":
            targets = tuple(self._label(scope, t, table.span) for t in targets)
        elif table.kind == "calltargets":
            for target in targets:
                found = scope.find(target)
                if not isinstance(found, Formal) or found.function is None:
                    raise self._error("PTX022", f"{shown(target)} is no function", table.span, target)
                self.flat.functions[target] = found.function
        self.flat.tables[unique] = replace(table, name=unique, targets=targets)

    def _declare_registers(self, scope: Scope, declaration: RegisterDecl) -> None:
        kind = register_type(declaration.type)
        for name, count in declaration.names:
            if count is None:
                fine = scope.declare(name, Registers(kind, declaration.vector, None))
            elif count > MAX_RANGE:
                raise self._error("PTX024", f"{shown(name)} declares {count} registers, more than {MAX_RANGE}",
                                  declaration.span, name)
            else:
                fine = scope.declare_range(name, Registers(kind, declaration.vector, count))
            if not fine:
                raise self._duplicate(name, declaration.span)

    def _declare_variable(self, scope: Scope, variable: Variable) -> None:
        copies = [variable.name]
        if variable.copies is not None:
            self.names.copies += variable.copies
            if self.names.copies > MAX_COPIES:
                raise self._error("PTX024", f"{shown(variable.name)} declares more than {MAX_COPIES} variables",
                                  variable.span, variable.name)
            copies = [f"{variable.name}{i}" for i in range(variable.copies)]
        for name in copies:
            unique = self.names.fresh(name)
            if not scope.declare(name, Formal(unique, variable)):
                raise self._duplicate(name, variable.span)
            self.flat.variables[unique] = replace(variable, name=unique, copies=None)

    def _instruction(self, instruction: Instruction, scope: Scope) -> Instruction:
        guard = instruction.guard
        if guard is not None:
            guard = self._guard(guard, scope, instruction.span)
        name = instruction.name
        if name in _JUMPS:
            operands = tuple([self._target(o, scope, instruction.span) for o in instruction.operands])
        else:
            operands = tuple([self._operand(o, scope, instruction.span) for o in instruction.operands])
            if name in _MEMORY:
                operands = tuple([
                    Address(Symbol(o.name), o.offset) if isinstance(old, Symbol) and old.index is not None
                    and isinstance(o, Symbol) else o for o, old in zip(operands, instruction.operands)])
        return Instruction(instruction.opcode, operands, guard, instruction.span, self.source)

    def _guard(self, guard: Guard, scope: Scope, span: Span) -> Guard:
        operand = self._register(scope, guard.register, span)
        declared = self.flat.registers.get(operand.name) if isinstance(operand, Register) else None
        if not isinstance(operand, Register) or declared is None or declared.kind != "pred":
            raise self._error("PTX025", f"the guard {shown(guard.register)} is no predicate register", span,
                              guard.register)
        return Guard(operand.name, guard.negated)

    def _target(self, operand: Operand, scope: Scope, span: Span) -> Operand:
        if isinstance(operand, Symbol | Register):
            label = scope.find_label(operand.name)
            if label is not None:
                return Symbol(label)
            if isinstance(operand, Symbol) and not isinstance(scope.find(operand.name), Registers):
                self._label(scope, operand.name, span)
        return self._operand(operand, scope, span)

    def _label(self, scope: Scope, name: str, span: Span) -> str:
        label = scope.find_label(name)
        if label is None:
            raise self._error("PTX022", f"there is no label {shown(name)} in scope", span, name,
                              nearest(name, scope.known()))
        return label

    def _operand(self, operand: Operand, scope: Scope, span: Span) -> Operand:
        match operand:
            case Register(name):
                return self._name(scope, name, span)
            case Symbol(name, 0, None):
                return self._name(scope, name, span)
            case Symbol():
                return self._offset(operand, self._name(scope, operand.name, span), span)
            case Address():
                base = operand.base
                if not isinstance(base, Immediate):
                    found = self._name(scope, base.name, span)
                    if isinstance(found, Vector):
                        raise self._error("PTX025", f"{shown(base.name)} is no address", span, base.name)
                    base = found
                coords = tuple([self._operand(c, scope, span) for c in operand.coords])
                return Address(base, operand.offset, coords, operand.unified, operand.text)
            case Vector(elements):
                return Vector(tuple([self._operand(e, scope, span) for e in elements]))
            case Group(elements):
                return Group(tuple([self._operand(e, scope, span) for e in elements]))
            case Negated(inner):
                return Negated(self._operand(inner, scope, span))
            case Minus(inner):
                return Minus(self._operand(inner, scope, span))
            case Pair(first, second):
                return Pair(self._operand(first, scope, span), self._operand(second, scope, span))
            case _:
                return operand

    def _offset(self, operand: Symbol, found: Operand, span: Span) -> Symbol:
        """A symbol with an offset in bytes, or an element of an array (section 6.4.2)."""
        if not isinstance(found, Symbol):
            raise self._error("PTX025", f"only an address in brackets may add to the register {shown(operand.name)}",
                              span, operand.name)
        if operand.index is None:
            return Symbol(found.name, operand.offset, None, operand.text)
        variable = self.flat.variables.get(found.name)
        if variable is None or len(variable.dims) != 1:
            raise Unsupported("array operand", f"{shown(operand.name)} is not a variable of one dimension", span)
        return Symbol(found.name, operand.index * (variable.size // (variable.count or 1)))

    def _name(self, scope: Scope, name: str, span: Span) -> Register | Symbol | Vector:
        """The operand that a name stands for."""
        known = scope.cache.get(name)
        if known is None:
            known = scope.cache[name] = self._meaning(scope, name, span)
        return known

    def _meaning(self, scope: Scope, name: str, span: Span) -> Register | Symbol | Vector:
        found = scope.find(name)
        if isinstance(found, Formal):
            return self._formal(found, span)
        if found is None and not name.startswith("%"):
            label = scope.find_label(name)
            if label is not None:
                return Symbol(label)
            if "." not in name:
                raise self._error("PTX022", f"{shown(name)} is not declared", span, name, nearest(name, scope.known()))
        return self._register(scope, name, span)

    def _formal(self, found: Formal, span: Span) -> Symbol:
        if found.function is not None:
            self.flat.functions[found.name] = found.function
        elif found.variable is not None and found.variable.opaque:
            raise Unsupported("initialised variable", f"{shown(found.name)}: {found.variable.opaque}", span)
        elif found.variable is not None and found.variable.space != "param":
            self.flat.variables.setdefault(found.name, replace(found.variable, name=found.name, copies=None))
        return Symbol(found.name)

    def _register(self, scope: Scope, name: str, span: Span) -> Register | Vector:
        """The register operand of a name, noted as used; a whole vector register is a vector of its components."""
        base, _, part = name.partition(".")
        found = scope.find(name) or scope.find(base)
        if not isinstance(found, Registers):
            if is_special(name):
                return Register(name)
            what = "register" if name.startswith("%") or part else "name"
            raise self._error("PTX021", f"the {what} {shown(name)} is not declared", span, name,
                              nearest(name, scope.known()))
        unique = self.registers.of(found, base)
        if found.vector == 1:
            if part and not _SELECTOR.fullmatch(part):
                raise self._error("PTX025", f"{shown(base)} is no vector register", span, name)
            self.flat.registers[unique] = found.type
            return Register(f"{unique}.{part}" if part else unique)
        parts = "xyzw"[: found.vector]
        for p in parts:
            self.flat.registers[f"{unique}.{p}"] = found.type
        if not part:
            return Vector(tuple([Register(f"{unique}.{p}") for p in parts]))
        if COMPONENTS.get(part, "?") not in parts:
            raise self._error("PTX025", f"{shown(base)} has no component {shown(part)}", span, name)
        return Register(f"{unique}.{COMPONENTS[part]}")

    def _duplicate(self, name: str, span: Span) -> InputError:
        return self._error("PTX023", f"{shown(name)} is declared twice in one scope", span, name)

    def _error(self, code: str, message: str, span: Span, name: str, hint: str = "") -> InputError:
        """The error that points at `name` in the statement at `span`."""
        return InputError(code, message, locate(self.module.text, span, name), hint, self.module.text)


def small(word: str) -> int:
    """The value of a decimal number in a directive; 0 for one beyond any line number."""
    return int(word) if word.isdigit() and len(word) < 18 else 0


def locate(text: str, span: Span, name: str) -> Span:
    """The place of `name` in the statement that starts at `span`; `span` itself when it is not there."""
    start = 0
    for _ in range(span.line - 1):
        start = text.find("\n", start) + 1
    begin = start + span.column - 1
    match = re.compile(rf"(?<![\w$%.]){re.escape(name)}(?![\w$])").search(text, begin, begin + 4000)
    if match is None:
        return span
    line_start = text.rfind("\n", 0, match.start()) + 1
    line = span.line + text.count("\n", begin, match.start())
    return Span(line, match.start() - line_start + 1, len(name), span.file)
