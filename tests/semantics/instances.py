"""Written instructions that make a given form: every member of every class once, every optional part on and off."""

from __future__ import annotations

from collections.abc import Iterator

from warpproof.core import Span
from warpproof.isa import Form, Operand
from warpproof.ptx import syntax

SPAN = Span(1, 1)


def instruction(opcode: str, *operands: syntax.Operand) -> syntax.Instruction:
    return syntax.Instruction(opcode, operands, None, SPAN)


def reg(name: str) -> syntax.Register:
    return syntax.Register(name)


def _words(form: Form) -> Iterator[list[str]]:
    """Modifier lists: a base choice, then each other choice of each part, then the optional groups dropped."""
    required = [m for m in form.modifiers if m.group == 0]
    base = {m.name: m.choices[0] for m in form.modifiers}
    yield [base[m.name] for m in form.modifiers]
    if len(required) < len(form.modifiers):
        yield [base[m.name] for m in required]
    for part in form.modifiers:
        for choice in part.choices[1:]:
            yield [choice if m is part else base[m.name] for m in form.modifiers if m.group in (0, part.group)]


def opcodes(form: Form) -> list[str]:
    """Opcodes that make the form, without repetition."""
    return list(dict.fromkeys(".".join([form.base, *words]) for words in _words(form)))


def _operand(spec: Operand, chosen: dict[str, str], pair: bool) -> syntax.Operand:
    if spec.address:
        return syntax.Address(reg(f"%{spec.name}"), 16)
    if spec.type == "imm":
        return syntax.Immediate({"size": 16, "lut": 0x96}.get(spec.name, 1))
    count = spec.vector if spec.vector > 0 else 2 if spec.vector else 0
    if not spec.type and "vec" in chosen:
        count = int(chosen["vec"][1:])
    if count:
        return syntax.Vector(tuple(reg(f"%{spec.name}{k}") for k in range(count)))
    if spec.pair == "must" or (spec.pair == "may" and pair):
        return syntax.Pair(reg(f"%{spec.name}"), reg("%pq"))
    return reg(f"%{spec.name}")


def instances(form: Form) -> Iterator[syntax.Instruction]:
    """Instructions of the form, with all operands, with the optional ones dropped, and with and without a pair."""
    for opcode in opcodes(form):
        chosen = form.match(tuple(opcode.split(".")[1:]))
        assert chosen is not None, opcode
        written = form.written_operands(chosen)
        for operands in dict.fromkeys((written, tuple(o for o in written if not o.optional))):
            for pair in (False, True) if any(o.pair == "may" for o in operands) else (False,):
                yield instruction(opcode, *(_operand(o, chosen, pair) for o in operands))
