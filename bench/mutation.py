"""Single mutants of a kernel's PTX, made by editing its syntax tree: the slips that testing tends to miss.

Each operator is `(Site, Context, rng) -> replacement statements or None`; None says that it does not apply there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from warpproof.ptx import (
    Address,
    Block,
    FloatImmediate,
    Guard,
    Immediate,
    Instruction,
    Module,
    Operand,
    Pair,
    Register,
    Statement,
    Symbol,
    Variable,
    Vector,
    print_instruction,
    print_module,
)

Rng = np.random.Generator
Path = tuple[int, ...]

_SPECIAL: Final = ("%tid.x", "%tid.y", "%ctaid.x", "%ctaid.y", "%ntid.x", "%ntid.y", "%nctaid.x", "%laneid", "%tid.z")
_COMPARE: Final = ("lt", "le", "gt", "ge", "eq", "ne")
_SWAPS: Final = (
    {"add", "sub", "mul"}, {"min", "max"}, {"and", "or", "xor"}, {"shl.b32", "shr.u32", "shr.s32"},
    {"shl.b64", "shr.u64", "shr.s64"}, {"lo", "hi"}, {"ex2", "lg2", "rcp", "sqrt", "rsqrt"}, {"wide.s32", "wide.u32"},
    {"s32", "u32"}, {"s64", "u64"}, {"bfly", "down", "up", "idx"}, {"div", "rem"}, {"rn", "rz"}, {"neg", "abs"},
)
_FLOATS: Final = (0.0, 1.0, -1.0, 0.5, 2.0)


@dataclass(frozen=True, slots=True)
class Context:
    """What operators may draw on: labels and registers of the kernel, by the prefix that stands for their type."""

    labels: tuple[str, ...]
    registers: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Site:
    """One statement of the kernel's body and where it stands."""

    path: Path
    statement: Statement


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed module: the operator, the line of the change in the original, both forms, and the whole new text."""

    kind: str
    line: int
    before: str
    after: str
    text: str


Operator = Callable[[Site, Context, Rng], "tuple[Statement, ...] | None"]


def mutate(module: Module, kernel: str, rng: Rng) -> Mutant:
    """A random single mutant of the kernel: the operator is drawn first, then a place where it applies."""
    function = next(f for f in module.entries() if f.name == kernel)
    assert function.body is not None
    sites = list(_sites(function.body, ()))
    context = _context(sites)
    while True:
        kind = str(rng.choice(list(OPERATORS)))
        for at in rng.permutation(len(sites)):
            site = sites[int(at)]
            new = OPERATORS[kind](site, context, rng)
            if new is None:
                continue
            elsewhere = sites[int(rng.integers(len(sites)))] if kind in ELSEWHERE else None
            body = _rebuilt(function.body, (), site, new, elsewhere)
            items = tuple(replace(f, body=body) if f is function else f for f in module.items)
            text = print_module(replace(module, items=items))
            if text != print_module(module):
                after = _shown(new)
                if elsewhere is not None:
                    after = f"before line {elsewhere.statement.span.line}: {_shown((elsewhere.statement,))}"
                return Mutant(kind, site.statement.span.line, _shown((site.statement,)), after, text)


def _sites(block: Block, path: Path) -> list[Site]:
    out: list[Site] = []
    for i, s in enumerate(block.statements):
        if isinstance(s, Block):
            out += _sites(s, (*path, i))
        elif isinstance(s, Instruction | Variable):
            out.append(Site((*path, i), s))
    return out


def _rebuilt(block: Block, path: Path, site: Site, new: tuple[Statement, ...], elsewhere: Site | None) -> Block:
    """The block with the site's statement replaced by `new`, and put in front of `elsewhere` if that is given."""
    out: list[Statement] = []
    for i, s in enumerate(block.statements):
        here = (*path, i)
        if elsewhere is not None and elsewhere.path == here:
            out.append(site.statement)
        if site.path == here:
            out += new
        elif isinstance(s, Block):
            out.append(_rebuilt(s, here, site, new, elsewhere))
        else:
            out.append(s)
    return replace(block, statements=tuple(out))


def _context(sites: Sequence[Site]) -> Context:
    labels: set[str] = set()
    names: dict[str, set[str]] = {}
    for site in sites:
        if isinstance(site.statement, Instruction):
            if site.statement.name == "bra":
                labels |= {o.name for o in site.statement.operands if isinstance(o, Symbol)}
            for name in _registers(site.statement.operands):
                names.setdefault(_prefix(name), set()).add(name)
    names["special"] = set(_SPECIAL)
    return Context(tuple(sorted(labels)), {k: tuple(sorted(v)) for k, v in names.items()})


def _registers(operands: Sequence[Operand]) -> list[str]:
    out: list[str] = []
    for o in operands:
        match o:
            case Register(name):
                out.append(name)
            case Vector(elements):
                out += _registers(elements)
            case Pair(first, second):
                out += _registers((first, second))
            case Address(base=Register(name)):
                out.append(name)
    return out


def _prefix(register: str) -> str:
    found = re.fullmatch(r"(%[A-Za-z_]+?)\d+", register)
    return found[1] if found else "special" if "." in register or register == "%laneid" else register


def _shown(statements: Sequence[Statement]) -> str:
    return " ".join(_text(s) for s in statements) or "(nothing)"


def _text(statement: Statement) -> str:
    match statement:
        case Instruction():
            return print_instruction(statement)
        case Variable(name=name, type=kind, dims=dims):
            return f".{kind} {name}{list(dims)}"
    return type(statement).__name__


# ---------------------------------------------------------------------- operators
def _instruction(site: Site) -> Instruction | None:
    return site.statement if isinstance(site.statement, Instruction) else None


def _edited(ins: Instruction, at: int, operand: Operand) -> tuple[Statement, ...]:
    return (replace(ins, operands=(*ins.operands[:at], operand, *ins.operands[at + 1:])),)


def swap_operands(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """Two source operands exchanged."""
    ins = _instruction(site)
    if ins is None or ins.name in ("st", "ld", "bra", "bar", "ret", "mov") or len(ins.operands) < 3:
        return None
    i, j = sorted(int(x) for x in rng.choice(np.arange(1, len(ins.operands)), 2, replace=False))
    ops = list(ins.operands)
    ops[i], ops[j] = ops[j], ops[i]
    return (replace(ins, operands=tuple(ops)),)


def integer_constant(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """An integer constant changed a little or by a factor."""
    ins = _instruction(site)
    if ins is None or ins.name in ("bar", "barrier"):
        return None
    where = [i for i, o in enumerate(ins.operands) if isinstance(o, Immediate)]
    if not where:
        return None
    at = int(rng.choice(where))
    old = ins.operands[at]
    assert isinstance(old, Immediate)
    v = old.value
    choices = [v + 1, v - 1, 2 * v, v // 2, -v, 0, v + 4, v ^ 32]
    return _edited(ins, at, Immediate(int(rng.choice([c for c in choices if c != v]))))


def float_constant(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """A float constant replaced by another one, down to its neighbour."""
    ins = _instruction(site)
    if ins is None:
        return None
    where = [i for i, o in enumerate(ins.operands) if isinstance(o, FloatImmediate) and o.width == 32]
    if not where:
        return None
    at = int(rng.choice(where))
    old = ins.operands[at]
    assert isinstance(old, FloatImmediate)
    bits = [int(np.float32(c).view(np.uint32)) for c in _FLOATS]
    bits += [old.bits + 1, old.bits ^ 0x80000000, old.bits + 0x00800000, 0x7F800000, old.bits ^ 0x00400000]
    chosen = int(rng.choice([b for b in bits if b != old.bits and b < 1 << 32]))
    return _edited(ins, at, FloatImmediate(chosen, 32))


def drop_barrier(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """A barrier or fence taken out."""
    ins = _instruction(site)
    return () if ins is not None and ins.name in ("bar", "barrier", "membar", "fence", "cp.async") else None


def drop_guard(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """A guard taken off."""
    ins = _instruction(site)
    return (replace(ins, guard=None),) if ins is not None and ins.guard is not None else None


def negate_guard(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """A guard negated."""
    ins = _instruction(site)
    if ins is None or ins.guard is None:
        return None
    return (replace(ins, guard=Guard(ins.guard.register, not ins.guard.negated)),)


def opcode(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """An opcode or modifier exchanged for one that takes the same operands."""
    ins = _instruction(site)
    if ins is None or ins.name in ("ld", "st", "cvta"):
        return None
    parts = ins.opcode.split(".")
    options: list[str] = []
    for i, part in enumerate(parts):
        if ins.name in ("setp", "set") and part in _COMPARE:
            options += [".".join([*parts[:i], c, *parts[i + 1:]]) for c in _COMPARE if c != part]
        for width in (1, 2):
            word = ".".join(parts[i:i + width])
            for group in _SWAPS:
                if word in group and word.count(".") == width - 1:
                    options += [".".join([*parts[:i], w, *parts[i + width:]]) for w in sorted(group - {word})]
    return (replace(ins, opcode=str(rng.choice(options))),) if options else None


def change_register(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """A register exchanged for another one of its type: a source, a destination, an address base or a guard."""
    ins = _instruction(site)
    if ins is None:
        return None
    names = _registers(ins.operands) + ([ins.guard.register] if ins.guard else [])
    names = [n for n in names if len(context.registers.get(_prefix(n), ())) > 1]
    if not names:
        return None
    old = str(rng.choice(names))
    new = str(rng.choice([n for n in context.registers[_prefix(old)] if n != old]))
    if ins.guard is not None and ins.guard.register == old:
        return (replace(ins, guard=Guard(new, ins.guard.negated)),)
    at = int(rng.choice([i for i, o in enumerate(ins.operands) if old in _registers((o,))]))
    return _edited(ins, at, _renamed(ins.operands[at], old, new))


def _renamed(operand: Operand, old: str, new: str) -> Operand:
    match operand:
        case Register(name):
            return Register(new if name == old else name)
        case Vector(elements):
            return Vector(tuple(_renamed(e, old, new) for e in elements))
        case Pair(first, second):
            return Pair(_renamed(first, old, new), _renamed(second, old, new))
        case Address(base=Register(name)) if name == old:
            return replace(operand, base=Register(new))
    return operand


def address_offset(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """The constant offset of an address changed."""
    ins = _instruction(site)
    if ins is None or "param" in ins.modifiers:
        return None
    where = [i for i, o in enumerate(ins.operands) if isinstance(o, Address)]
    if not where:
        return None
    at = int(rng.choice(where))
    old = ins.operands[at]
    assert isinstance(old, Address)
    offset = old.offset + int(rng.choice([4, -4, 4, -4, 8, 16, 128, -128, 1024, 1, 2]))
    return _edited(ins, at, replace(old, offset=offset, text=f"+{offset}" if offset >= 0 else str(offset)))


def shuffle(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """A shuffle's distance, clamp or member mask changed."""
    ins = _instruction(site)
    if ins is None or ins.name not in ("shfl", "vote", "redux", "activemask") or len(ins.operands) < 5:
        return None
    at = int(rng.choice([2, 3, 4]))
    values = {2: [0, 1, 2, 3, 4, 8, 16, 31, 32], 3: [0, 15, 31, 0x1F00, 0x101F, 0x181F], 4: [-1, 1, 0xFFFF, 0x7FFFFFFF]}
    return _edited(ins, at, Immediate(int(rng.choice(values[at]))))


def delete(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """An instruction taken out."""
    ins = _instruction(site)
    return () if ins is not None and ins.name != "ret" else None


def duplicate_store(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """A store done a second time elsewhere."""
    ins = _instruction(site)
    return (ins,) if ins is not None and ins.name in ("st", "red", "atom") else None


def move(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """An instruction moved elsewhere."""
    ins = _instruction(site)
    return () if ins is not None and ins.name not in ("ret", "bra") else None


def retarget(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """A branch to another label."""
    ins = _instruction(site)
    if ins is None or ins.name != "bra" or len(context.labels) < 2:
        return None
    others = [n for n in context.labels if n != ins.operands[0].name] if isinstance(ins.operands[0], Symbol) else []
    return _edited(ins, 0, Symbol(str(rng.choice(others)))) if others else None


def shrink(site: Site, context: Context, rng: Rng) -> tuple[Statement, ...] | None:
    """A shared array made smaller."""
    v = site.statement
    if not isinstance(v, Variable) or v.space != "shared" or not v.dims or v.dims[0] is None or v.dims[0] < 2:
        return None
    size = int(rng.choice([v.dims[0] - 1, v.dims[0] // 2, max(1, v.dims[0] - 4)]))
    return (replace(v, dims=(size, *v.dims[1:])),)


OPERATORS: Final[dict[str, Operator]] = {
    "swap-operands": swap_operands, "integer-constant": integer_constant, "float-constant": float_constant,
    "drop-barrier": drop_barrier, "drop-guard": drop_guard, "negate-guard": negate_guard, "opcode": opcode,
    "register": change_register, "address-offset": address_offset, "shuffle": shuffle, "delete": delete,
    "duplicate-store": duplicate_store, "move": move, "retarget": retarget, "shrink-shared": shrink,
}
ELSEWHERE: Final = ("duplicate-store", "move")
"""Operators that also put the statement in front of another one."""
