"""PTX text to its syntax tree: modules, functions and statements (PTX ISA 9.x, chapters 4, 5 and 11)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from warpproof.ptx.constants import integer
from warpproof.ptx.cursor import MAX_NESTING, NUMBER_START, Cursor, is_name, nearest, shown
from warpproof.ptx.declarations import LINKAGES, SPACES, attribute_list, parameter, registers, variables
from warpproof.ptx.lexer import lex
from warpproof.ptx.operands import operand
from warpproof.ptx.syntax import (
    Block,
    Directive,
    Function,
    Guard,
    Instruction,
    Label,
    LabelTable,
    Module,
    Operand,
    RegisterDecl,
    Signature,
    Statement,
    Variable,
)

_LIMITS: Final[dict[str, tuple[int, int]]] = {  # directive: fewest and most integers
    ".maxntid": (1, 3), ".reqntid": (1, 3), ".maxnreg": (1, 1), ".minnctapersm": (1, 1), ".maxnctapersm": (1, 1),
    ".reqnctapercluster": (1, 3), ".maxclusterrank": (1, 1), ".explicitcluster": (0, 0), ".blocksareclusters": (0, 0),
    ".noreturn": (0, 0), ".abi_preserve": (1, 1), ".abi_preserve_control": (1, 1), ".language": (1, 1),
}
_TABLES: Final = frozenset({".branchtargets", ".calltargets"})
_KNOWN: Final = (*_LIMITS, *_TABLES, *SPACES, *LINKAGES, ".reg", ".callprototype", ".pragma", ".loc", ".file",
                 ".section", ".alias", ".entry", ".func", ".version", ".target", ".address_size", ".attribute")
_NO_OPERAND: Final = frozenset({"", ";", "}", "@", ":"})
_SECTION_DATA: Final = frozenset({".b8", ".b16", ".b32", ".b64"})


def parse(text: str, file: str = "") -> Module:
    """The syntax tree of a PTX text, one item per declaration in order.

    Raises InputError with code PTX001 to PTX012, the place and a hint for anything that is not PTX.
    """
    cursor = Cursor(lex(text, file))
    version, target = _header(cursor)
    written = cursor.accept(".address_size")
    size = integer(cursor, "after .address_size") if written else 32
    if size not in (32, 64):
        raise cursor.error("PTX009", f"the address size {size} is not 32 or 64", cursor.index - 1)
    items: list[Function | Variable | Directive] = []
    while cursor.words[cursor.index]:
        items += _item(cursor)
    return Module(version, target, size, tuple(items), cursor.tokens.text, file, written)


def _header(cursor: Cursor) -> tuple[str, tuple[str, ...]]:
    if not cursor.accept(".version"):
        found = shown(cursor.words[cursor.index])
        raise cursor.error("PTX009", f"expected '.version' first, found {found}", hint="every PTX module begins with "
                           ".version, .target and .address_size; is this PTX?")
    version = cursor.take()
    major, _, minor = version.partition(".")
    if not (major.isdigit() and minor.isdigit() and len(version) < 10):
        raise cursor.error("PTX009", f"{shown(version)} is no version", cursor.index - bool(version), "as in 8.8")
    if not cursor.accept(".target"):
        raise cursor.error("PTX009", f"expected '.target' behind .version, found {shown(cursor.words[cursor.index])}",
                           hint="as in .target sm_90a")
    return version, _names(cursor, "in .target")


def _names(cursor: Cursor, where: str) -> tuple[str, ...]:
    names = [cursor.name(where)]
    while cursor.accept(","):
        names.append(cursor.name(where))
    return tuple(names)


def _item(cursor: Cursor) -> list[Function | Variable | Directive]:
    """The module-level item at the cursor."""
    first, word = cursor.index, cursor.words[cursor.index]
    linkage = ""
    if word in LINKAGES:
        linkage = cursor.take()[1:]
        word = cursor.words[cursor.index]
    if word in (".entry", ".func"):
        return [_function(cursor, linkage, first)]
    if word in SPACES:
        declared = list(variables(cursor, linkage))
        cursor.end_statement("after a declaration")
        return [*declared]
    if linkage:
        raise cursor.unexpected("a variable or function", f"behind .{linkage}")
    parse_directive = _MODULE_DIRECTIVES.get(word)
    if parse_directive is None:
        raise _unknown(cursor, "at the top level of a module")
    return [parse_directive(cursor)]


def _unknown(cursor: Cursor, where: str) -> Exception:
    word = cursor.words[cursor.index]
    if word[:1] == "." and len(word) > 1 and word not in _KNOWN:
        return cursor.error("PTX008", f"unknown directive {shown(word)} {where}", hint=nearest(word, _KNOWN))
    hint = "a '}' may be missing or too many before this" if word == "}" or is_name(word) else ""
    return cursor.error("PTX005", f"{shown(word)} does not belong {where}", hint=hint)


def _function(cursor: Cursor, linkage: str, first: int) -> Function:
    """The `.entry` or `.func` at the cursor; `linkage` has been read at token `first`."""
    entry = cursor.take() == ".entry"
    attributes = tuple(attribute_list(cursor)) if cursor.accept(".attribute") else ()
    returns = None if entry or cursor.words[cursor.index] != "(" else _parameters(cursor)
    at = cursor.index
    name = cursor.name("as the name of a function")
    params = _parameters(cursor) if cursor.words[cursor.index] == "(" else None
    directives = _limits(cursor)
    span = cursor.span(first, at)
    body: Block | None = None
    if cursor.words[cursor.index] == "{":
        body = _block(cursor, 1)
    elif not cursor.accept(";"):
        raise cursor.unexpected("'{', ';' or a directive", f"behind the head of {name!r}")
    signature = Signature(returns, params, directives)
    return Function(name, entry, params or (), returns or (), directives, body, linkage, span, attributes, signature)


def _parameters(cursor: Cursor) -> tuple[Variable | RegisterDecl, ...]:
    cursor.expect("(", "before a parameter list")
    out: list[Variable | RegisterDecl] = []
    if cursor.accept(")"):
        return ()
    while True:
        out.append(parameter(cursor))
        if cursor.accept(")"):
            return tuple(out)
        cursor.expect(",", "in a parameter list")


def _limits(cursor: Cursor) -> tuple[Directive, ...]:
    """The directives between the head and the body of a function."""
    out: list[Directive] = []
    while (word := cursor.words[cursor.index]) in _LIMITS or word == ".pragma":
        out.append(_pragma(cursor) if word == ".pragma" else _limit(cursor))
    if word[:1] == ".":
        raise _unknown(cursor, "between the head and the body of a function")
    return tuple(out)


def _limit(cursor: Cursor) -> Directive:
    first = cursor.index
    word = cursor.take()
    least, most = _LIMITS[word]
    for position in range(most):
        if position >= least and not cursor.accept(","):
            break
        integer(cursor, f"behind {word}")
    return _directive(cursor, first)


def _directive(cursor: Cursor, first: int) -> Directive:
    """The directive whose tokens run from `first` to the cursor."""
    words = cursor.words[first : cursor.index]
    return Directive(words[0][1:], tuple(words[1:]), cursor.span(first, cursor.index - 1))


def _pragma(cursor: Cursor) -> Directive:
    first = cursor.index
    cursor.index += 1
    while True:
        _string(cursor, "in .pragma")
        if not cursor.accept(","):
            break
    made = _directive(cursor, first)
    cursor.end_statement("after .pragma")
    return made


def _string(cursor: Cursor, where: str) -> None:
    if cursor.words[cursor.index][:1] != '"':
        raise cursor.unexpected("a string", where)
    cursor.index += 1


def _number(cursor: Cursor, where: str) -> None:
    if cursor.words[cursor.index][:1] not in NUMBER_START or not cursor.words[cursor.index]:
        raise cursor.unexpected("a number", where)
    cursor.index += 1


def _file(cursor: Cursor) -> Directive:
    """`.file index "name" {, timestamp, size}` (section 11.5.3)."""
    first = cursor.index
    cursor.index += 1
    _number(cursor, "in .file")
    _string(cursor, "in .file")
    if cursor.accept(","):
        _number(cursor, "in .file")
        cursor.expect(",", "in .file")
        _number(cursor, "in .file")
    return _directive(cursor, first)


def _loc(cursor: Cursor) -> Directive:
    """`.loc file line column {, function_name label{+n}, inlined_at file line column}` (section 11.5.4)."""
    first = cursor.index
    cursor.index += 1
    for _ in range(3):
        _number(cursor, "in .loc")
    if cursor.words[cursor.index] == "," and cursor.words[cursor.index + 1] == "function_name":
        cursor.index += 2
        label = cursor.take()
        if not (is_name(label) or label[:1] == "."):
            cursor.index -= bool(label)
            raise cursor.unexpected("a label", "in .loc")
        if cursor.accept("+"):
            _number(cursor, "in .loc")
        cursor.expect(",", "in .loc")
        cursor.expect("inlined_at", "in .loc")
        for _ in range(3):
            _number(cursor, "in .loc")
    return _directive(cursor, first)


def _section(cursor: Cursor) -> Directive:
    """`.section name { data }`; its data stays tokens (section 11.5.2)."""
    first = cursor.index
    cursor.index += 1
    word = cursor.take()
    if not (word[:1] == "." or is_name(word)):
        cursor.index -= bool(word)
        raise cursor.unexpected("a name", "in .section")
    cursor.expect("{", "in .section")
    while not cursor.accept("}"):
        word = cursor.take()
        if word in _SECTION_DATA:
            _section_values(cursor)
        elif is_name(word) and cursor.accept(":"):
            continue
        else:
            cursor.index -= bool(word)
            raise cursor.unexpected("data, a label or '}'", "in .section")
    return _directive(cursor, first)


def _section_values(cursor: Cursor) -> None:
    while True:
        signed = cursor.accept("-")
        word = cursor.take()
        if not (word[:1] in NUMBER_START or (not signed and (is_name(word) or word[:1] == "."))) or not word:
            cursor.index -= bool(word)
            raise cursor.unexpected("a number or label", "in .section")
        if word[:1] not in NUMBER_START and (cursor.accept("+") or cursor.accept("-")):
            cursor.accept("-")
            cursor.take()
        if not cursor.accept(","):
            return


def _alias(cursor: Cursor) -> Directive:
    """`.alias name, function;` (section 11.2.3)."""
    first = cursor.index
    cursor.index += 1
    cursor.name("in .alias")
    cursor.expect(",", "in .alias")
    cursor.name("in .alias")
    made = _directive(cursor, first)
    cursor.end_statement("after .alias")
    return made


def _target(cursor: Cursor) -> Directive:
    first = cursor.index
    cursor.index += 1
    _names(cursor, "in .target")
    return _directive(cursor, first)


_MODULE_DIRECTIVES: Final[dict[str, Callable[[Cursor], Directive]]] = {
    ".pragma": _pragma, ".file": _file, ".section": _section, ".alias": _alias, ".target": _target, ".loc": _loc,
}
_BODY_DIRECTIVES: Final[dict[str, Callable[[Cursor], Directive]]] = {
    ".pragma": _pragma, ".loc": _loc, ".file": _file, ".section": _section, **dict.fromkeys(_LIMITS, _limit),
}


def _block(cursor: Cursor, depth: int) -> Block:
    """The `{ … }` at the cursor."""
    first = cursor.index
    if depth > MAX_NESTING:
        raise cursor.error("PTX007", f"blocks nest deeper than {MAX_NESTING} levels")
    cursor.index += 1
    words = cursor.words
    statements: list[Statement] = []
    while True:
        word = words[cursor.index]
        if word == "}":
            cursor.index += 1
            return Block(tuple(statements), cursor.span(first))
        start = word[:1]
        if start == "." and len(word) > 1:
            _declaration(cursor, statements)
        elif start == "@" or (is_name(word) and words[cursor.index + 1] != ":"):
            statements.append(_instruction(cursor))
        elif is_name(word):
            statements.append(_label(cursor))
        elif word == "{":
            statements.append(_block(cursor, depth + 1))
        elif not word:
            raise cursor.error("PTX005", "the text ends inside a block", first, "this '{' has no '}'")
        else:
            hint = "there is no empty statement in PTX; remove the ';'" if word == ";" else ""
            raise cursor.error("PTX005", f"expected a statement, found {shown(word)}", hint=hint)


def _declaration(cursor: Cursor, out: list[Statement]) -> None:
    """Append the declarations or the directive at the cursor."""
    word = cursor.words[cursor.index]
    linkage = ""
    if word in LINKAGES:
        linkage = cursor.take()[1:]
        word = cursor.words[cursor.index]
    if word == ".reg":
        out.append(registers(cursor))
        cursor.end_statement("after a declaration")
    elif word in SPACES:
        out += variables(cursor, linkage)
        cursor.end_statement("after a declaration")
    elif word in _BODY_DIRECTIVES and not linkage:
        out.append(_BODY_DIRECTIVES[word](cursor))
    else:
        raise _unknown(cursor, "in the body of a function")


def _label(cursor: Cursor) -> Label | LabelTable:
    first = cursor.index
    name = cursor.name("as a label")
    cursor.index += 1
    span = cursor.span(first)
    word = cursor.words[cursor.index]
    if word in _TABLES:
        cursor.index += 1
        targets = _names(cursor, f"in {word}")
        cursor.end_statement(f"after {word}")
        return LabelTable(name, word[1:], targets, span)
    if word == ".callprototype":
        cursor.index += 1
        returns = _parameters(cursor) if cursor.words[cursor.index] == "(" else None
        cursor.expect("_", "in .callprototype")
        params = _parameters(cursor) if cursor.words[cursor.index] == "(" else None
        signature = Signature(returns, params, _limits(cursor))
        cursor.end_statement("after .callprototype")
        return LabelTable(name, "callprototype", (), span, signature)
    return Label(name, span)


def _instruction(cursor: Cursor) -> Instruction:
    words, first = cursor.words, cursor.index
    guard: Guard | None = None
    if words[first] == "@":
        cursor.index += 1
        negated = cursor.accept("!")
        register = cursor.take()
        if not is_name(register):
            cursor.index -= bool(register)
            raise cursor.unexpected("a predicate register", "behind '@'")
        guard = Guard(register, negated)
    at = cursor.index
    opcode = cursor.take()
    if not opcode[:1].islower():
        cursor.index = at
        raise cursor.unexpected("an instruction", "here")
    while words[cursor.index][:1] == "." and len(words[cursor.index]) > 1:
        opcode += cursor.take()
    operands: list[Operand] = []
    if words[cursor.index] not in _NO_OPERAND:
        call = opcode == "call" or opcode.startswith("call.")
        while True:
            operands.append(operand(cursor, call))
            if words[cursor.index] != ",":
                break
            cursor.index += 1
    cursor.end_statement(f"after {shown(opcode)}")
    return Instruction(opcode, tuple(operands), guard, cursor.span(first, cursor.index - 1))
