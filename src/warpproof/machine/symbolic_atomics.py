"""Atomic updates of the symbolic machine: contributions to an element, from any thread and in any order.

An update by a commutative, associative operation whose old value nobody uses leaves the initial value combined with all
contributions, whatever the order (PTX ISA 9.7.13.5: each is one atomic read-modify-write). What an update returns
depends on the order, so a kernel that uses it is not followed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from warpproof.core import Unsupported
from warpproof.domains import Atomic, Float, Int, ScalarType, Undef, Value
from warpproof.machine import shared_updates
from warpproof.machine.setup import BufferInfo
from warpproof.machine.uses import reads
from warpproof.ptx import syntax
from warpproof.terms import Poly

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

_FOLDS: Final = frozenset({"add", "min", "max", "and", "or"})
_SCOPES: Final = frozenset({"gpu", "sys"})


def update(m: SymbolicMachine, effect: Atomic) -> Value | None:
    """Record the update in the trace; the old value is undefined, and nothing reads it."""
    _check(m, effect)
    answers = m.answers
    split = answers.by_base(effect)
    for lanes, address in split:
        with m.path.under(lanes):
            update(m, replace(effect, address=address))
    if not split:
        space, name, offset = answers.space(effect)
        if space == "shared":
            given: Any = effect.args[0]
            shared_updates.record(m, effect, offset, given)
        elif space != "global":
            raise Unsupported(_name(effect), f"atomic updates of {space} memory have no symbolic meaning yet")
        else:
            info, index, per = answers.elements(name, offset, effect.type, 1)
            _record(m, effect, info, index, per)
    return Undef(effect.type.width, "the old value of an atomic update") if effect.returns else None


def _record(m: SymbolicMachine, effect: Atomic, info: BufferInfo, index: Poly, per: int) -> None:
    if per != 1 or effect.type.packed > 1:
        raise Unsupported(_name(effect), f"it updates several elements of {info.name} at once")
    if not info.initialised:
        m.answers.hazard("unwritten", f"{info.name} is updated where nothing has been written")
    given: Any = effect.args[0]
    m.answers.record("atomic", info, index, _contribution(m, effect, info, given), op=effect.op)


def _contribution(m: SymbolicMachine, effect: Atomic, info: BufferInfo, given: Value) -> Value:
    """The operand in the element's own type."""
    ty = effect.type
    floating = info.kind in ("f", "bf")
    if floating != ty.floating:
        raise Unsupported(_name(effect), f"the bits of the {info.kind}{info.width} elements of {info.name} are updated")
    if floating:
        own = ScalarType(info.kind, info.width)
        node = m.dom.real(given, own)
        if effect.op != "add":
            raise Unsupported(_name(effect), "only sums of floats are followed")
        m.require_real("finite", node)
        return Float(info.kind, info.width, node)
    if effect.op == "add":
        return Int(ty.width, m.dom.integers.poly(given))
    if effect.op in ("min", "max") and ty.signed != (info.kind == "s"):
        raise Unsupported(_name(effect), f"the {info.kind}{info.width} elements of {info.name} are compared as {ty}")
    return Int(ty.width, m.dom.integers.view(given, ScalarType(info.kind, info.width)))


def _check(m: SymbolicMachine, effect: Atomic) -> None:
    """Raise `Unsupported` for an update that is no unordered contribution."""
    if effect.op not in _FOLDS:
        raise Unsupported(_name(effect), f"{effect.op} is no commutative fold: its result depends on the order")
    if effect.scope not in _SCOPES and effect.space.split("::")[0] != "shared":
        raise Unsupported(_name(effect), f"updates of scope .{effect.scope} are not atomic for other CTAs")
    if result_used(m, effect):
        raise Unsupported(_name(effect), "the old value it returns is used, which depends on the order of the threads "
                          f"({m.where()})")


def result_used(m: SymbolicMachine, effect: Atomic) -> bool:
    """Some instruction may read what the update returns."""
    ins = m.instruction
    return bool(effect.returns and ins is not None and ins.operands and _register(ins.operands[0]) in _read(m))


def _name(effect: Atomic) -> str:
    return f"{'atom' if effect.returns else 'red'}.{effect.space}.{effect.op}.{effect.type}"


def _register(operand: syntax.Operand) -> str:
    return operand.name if isinstance(operand, syntax.Register) else ""


def _read(m: SymbolicMachine) -> frozenset[str]:
    """The registers that some instruction of the kernel or function under way may read."""
    known = m.answers.sources
    key = id(m.kernel)
    if key not in known:
        known[key] = frozenset().union(*map(reads, m.kernel.code))
    return known[key]
