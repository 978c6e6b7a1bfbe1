"""From the syntax tree to the kernel that runs: the entry chosen, names resolved, memory laid out."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from warpproof.core import InputError, Span, Unsupported, read_regular
from warpproof.ptx.constants import integer
from warpproof.ptx.cursor import Cursor, nearest, shown
from warpproof.ptx.flatten import MAX_COPIES, Flat, Flattener, Formal, locate
from warpproof.ptx.kernel import Kernel
from warpproof.ptx.layout import Memory, memory_of, parameters
from warpproof.ptx.lexer import MAX_CHARACTERS, lex
from warpproof.ptx.parser import parse
from warpproof.ptx.scopes import Names, Scope
from warpproof.ptx.syntax import Directive, Function, Module, Variable

_TRIPLES: Final = frozenset({"maxntid", "reqntid", "reqnctapercluster"})


def load(source: Path | str) -> Module:
    """The syntax tree of a PTX file, or of a text that has a `.version` directive or a line break.

    Raises InputError PTX001 for a file that cannot be read or is too large, and as `parse` does.
    """
    if isinstance(source, str) and ("\n" in source or ".version" in source):
        return parse(source)
    path = Path(source)
    try:
        data = read_regular(path, MAX_CHARACTERS)
    except OSError as error:
        raise InputError("PTX001", f"cannot read {str(path)[:200]!r}: {error.strerror}",
                         hint="give a .ptx file") from error
    return parse(data.decode("utf-8", "replace"), str(path))


def resolve(module: Module, name: str | None = None) -> Kernel:
    """The kernel `name`, or the only one, with names resolved and memory laid out, and what it calls.

    Raises InputError PTX020 (no such entry, or several), PTX021 and PTX022 (undeclared registers, names, labels),
    PTX023 (declared twice), PTX024 (too many names), PTX025 (the wrong kind of name); Unsupported for recursion and for
    variables whose initial bytes are not known.
    """
    return _Resolver(module).kernel(_entry(module, name))


def _entry(module: Module, name: str | None) -> Function:
    entries = module.entries()
    names = [f.name for f in entries]
    listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    if not entries:
        raise InputError("PTX020", "the module has no kernel (.entry with a body)", Span(1, 1, 1, module.file),
                         "functions alone cannot be launched", module.text)
    if name is None:
        if len(entries) > 1:
            raise InputError("PTX020", f"the module has {len(entries)} kernels: {listed}", entries[1].span,
                             "name one of them, as in file.ptx::name", module.text)
        return entries[0]
    found = [f for f in entries if f.name == name]
    if len(found) > 1:
        raise InputError("PTX023", f"the kernel {shown(name)} is defined twice", found[1].span, "", module.text)
    if not found:
        hint = nearest(name, names) or f"it has {listed}"
        raise InputError("PTX020", f"the module has no kernel {shown(name)}", Span(1, 1, 1, module.file), hint,
                         module.text)
    return found[0]


class _Resolver:
    """Resolves the functions that one entry reaches."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.names = Names()
        self.files: dict[str, str] = {}
        self.outer = Scope(None)
        self.aliases: dict[str, str] = {}
        self.flats: dict[str, Flat] = {}
        for item in module.items:
            if isinstance(item, Variable):
                self._variable(item)
            elif isinstance(item, Function):
                self._function(item)
            elif item.name == "file":
                self.files[item.arguments[0]] = item.arguments[1][1:-1]
            elif item.name == "alias":
                self._alias(item)

    def _variable(self, variable: Variable) -> None:
        copies = range(variable.copies or 0)
        self.names.copies += len(copies)
        if self.names.copies > MAX_COPIES:
            raise self._error("PTX024", f"{shown(variable.name)} declares too many variables", variable.span,
                              variable.name)
        for name in [f"{variable.name}{i}" for i in copies] if variable.copies is not None else [variable.name]:
            self.names.taken.add(name)
            earlier = self.outer.things.get(name)
            known = earlier.variable if isinstance(earlier, Formal) else None
            if known is not None and (known.extern or variable.extern):
                if not variable.extern:
                    self.outer.things[name] = Formal(name, variable)
            elif not self.outer.declare(name, Formal(name, variable)):
                raise self._error("PTX023", f"{shown(name)} is declared twice", variable.span, name)

    def _function(self, function: Function) -> None:
        earlier = self.outer.things.get(function.name)
        if isinstance(earlier, Formal) and earlier.function is not None and (
                earlier.function.entry == function.entry) and None in (earlier.function.body, function.body):
            if function.body is not None:
                self.outer.things[function.name] = Formal(function.name, None, function)
        elif not self.outer.declare(function.name, Formal(function.name, None, function)):
            raise self._error("PTX023", f"{shown(function.name)} is declared twice", function.span,
                              function.name)
        self.names.taken.add(function.name)

    def _alias(self, directive: Directive) -> None:
        name, function = directive.arguments[0], directive.arguments[2]
        target = self.outer.things.get(function)
        if not isinstance(target, Formal) or target.function is None:
            raise self._error("PTX022", f"{shown(function)} is no function", directive.span, function)
        self.outer.things[name] = Formal(name, None, target.function)

    def kernel(self, entry: Function) -> Kernel:
        """The resolved entry with its callees."""
        order = self._reach(entry)
        variables: dict[str, Variable] = {}
        for flat in order:
            variables |= flat.variables
        memory = memory_of(variables)
        done: dict[int, Kernel] = {}
        for flat in order:
            done[id(flat.function)] = self._finish(flat, memory, done)
        return done[id(entry)]

    def _reach(self, entry: Function) -> list[Flat]:
        """The functions the entry reaches, callees first. Raises Unsupported for recursion."""
        order: list[Flat] = []
        state: dict[int, bool] = {}  # False while a function is on the path, True behind it
        stack: list[tuple[Function, Flat | None]] = [(entry, None)]
        while stack:
            function, flat = stack.pop()
            if flat is not None:
                state[id(function)] = True
                order.append(flat)
                continue
            if id(function) in state:
                if not state[id(function)]:
                    raise Unsupported("call", f"{shown(function.name)} is recursive", function.span)
                continue
            state[id(function)] = False
            flat = Flattener(self.module, function, Scope(self.outer), self.names, self.files).run()
            stack.append((function, flat))
            stack += [(f, None) for f in flat.functions.values() if f.body is not None and not f.entry]
        return order

    def _finish(self, flat: Flat, memory: Memory, done: dict[int, Kernel]) -> Kernel:
        function = flat.function
        callees = {n: done[id(f)] for n, f in flat.functions.items() if id(f) in done}
        externs = {n: f for n, f in flat.functions.items() if id(f) not in done}
        limits = {d.name: _numbers(d) for d in flat.directives if d.name != "pragma"}
        pragmas = tuple(a[1:-1] for d in flat.directives if d.name == "pragma" for a in d.arguments if a != ",")
        return Kernel(
            function.name, function.entry, parameters(function.params), parameters(function.returns), flat.registers,
            tuple(flat.code), flat.labels, flat.tables, memory.variables, memory.shared, memory.shared_size,
            memory.dynamic, memory.const, memory.global_, memory.local, limits, pragmas, callees, externs, self.module,
        )

    def _error(self, code: str, message: str, span: Span, name: str) -> InputError:
        return InputError(code, message, locate(self.module.text, span, name), "", self.module.text)


def _numbers(directive: Directive) -> tuple[int, ...]:
    """The integers of a directive; one for each dimension where it has dimensions."""
    cursor = Cursor(lex(" ".join(directive.arguments)))
    out: list[int] = []
    while cursor.words[cursor.index]:
        out.append(integer(cursor, f"in .{directive.name}"))
        cursor.accept(",")
    if directive.name in _TRIPLES:
        out += [1] * (3 - len(out))
    return tuple(out)
