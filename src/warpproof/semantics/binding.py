"""From a written instruction to its form: modifiers, operand slots and the rule that gives it meaning."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from warpproof.core import InputError, Unsupported
from warpproof.domains import Domain, Effect, FloatMode
from warpproof.isa import Operand, ScalarType, is_type, scalar
from warpproof.ptx import syntax
from warpproof.semantics.registry import Row, table

Role = Literal["dst", "src", "addr", "label", "other"]
Shape = tuple[str, int]  # kind of operand, with its element count or its value
_B64 = ScalarType("b", 64)
_SINGLETONS = ("ld", "ldu", "st", "mov")  # where ptxas takes `{%r1}` for `%r1`
_ROUNDING = ("rnd", "irnd", "frnd", "frnd2", "rna")


@dataclass(frozen=True, slots=True)
class Slot:
    """What one written operand is to the instruction.

    A value read or written in the slot has `type` (each of `vector` elements for a vector operand); `pair` marks
    `d|p`, whose second part is a predicate. Roles `label` and `other` carry no value.
    """

    role: Role
    type: ScalarType
    vector: int = 1
    pair: bool = False


class Mods:
    """The modifiers an instruction chose: `m["rnd"]` is the word written for the class `.rnd` ("" when absent).

    `ty` is the form's main type, `mode` the rounding and clamping of its float arithmetic, `vector` the number of
    elements of its vector operand, `immediates` the operands that must be literals.
    """

    __slots__ = ("chosen", "immediates", "mode", "ty", "vector")

    def __init__(self, chosen: Mapping[str, str], ty: ScalarType, vector: int, immediates: tuple[int, ...]) -> None:
        self.chosen, self.ty, self.vector, self.immediates = dict(chosen), ty, vector, immediates
        rounding = next((chosen[name] for name in _ROUNDING if name in chosen), "rn")
        self.mode = FloatMode(
            rounding, "ftz" in chosen, "sat" in chosen, "approx" in chosen or "full" in chosen, "NaN" in chosen,
            "xorsign" in chosen, "relu" in chosen, "full" in chosen, "satfinite" in chosen,
        )  # fmt: skip

    def __getitem__(self, name: str) -> str:
        return self.chosen.get(name, "")

    def __contains__(self, name: object) -> bool:
        return name in self.chosen

    def type(self, name: str) -> ScalarType:
        """The type written for the class `name` (`atype`, `dtype`)."""
        return scalar(self.chosen[name])


@dataclass(frozen=True, slots=True)
class Bound:
    """An instruction bound to its form.

    `control` is non-empty for instructions the machine carries out itself (bra brx call ret exit trap nop). Otherwise
    `rule(dom, mods, *sources)` is the meaning; use `execute`, or `apply` when `pure`.
    """

    form: str
    rule: Callable[..., Any] | None
    mods: Mods
    slots: tuple[Slot, ...]
    control: str
    pure: bool
    results: int  # number of destination slots, 0 or 1
    drops_pair: bool  # the rule answers a pair, the instruction asks for its first part
    wraps: bool = False  # the destination is a vector of one element
    unwraps: tuple[int, ...] = ()  # sources that are vectors of one element

    def apply(self, dom: Domain[Any, Any], args: Sequence[object]) -> tuple[Any, ...]:
        """The destination results of a pure rule on source values `args`, in slot order."""
        if self.rule is None or not self.pure:
            raise Unsupported(self.form, "not a pure rule; use execute")
        return self._answer(self.rule(dom, self.mods, *(self._unwrapped(args) if self.unwraps else args)))

    def _unwrapped(self, args: Sequence[Any]) -> list[Any]:
        return [a[0] if k in self.unwraps else a for k, a in enumerate(args)]

    def _answer(self, result: Any) -> tuple[Any, ...]:
        if not self.results:
            return ()
        if self.drops_pair:
            result = result[0]
        return ((result,) if self.wraps else result,)


def execute(
    bound: Bound, dom: Domain[Any, Any], args: Sequence[object]
) -> Generator[Effect, Any, tuple[Any, ...]]:
    """Run a rule: yields its effects, takes their answers, returns the destination results in slot order.

    `args` are the values of the `src` and `addr` slots in order, each of its slot's width: predicates for `pred`
    slots, tuples for vectors. A pair destination gets a 2-tuple, a vector destination a tuple.
    """
    if bound.pure:
        return bound.apply(dom, args)
    if bound.rule is None:
        raise Unsupported(bound.form, "control instruction; the machine carries it out")
    return bound._answer((yield from bound.rule(dom, bound.mods, *bound._unwrapped(args))))


def bind(instruction: syntax.Instruction) -> Bound:
    """The form, slots and rule of an instruction.

    Raises `Unsupported` when its form has no rule, `InputError` ISA101 (no such opcode), ISA102 (modifiers that make no
    form) or ISA103 (operands that do not fit the form).
    """
    try:
        shapes = tuple(_shape(o) for o in instruction.operands)
        if instruction.name not in _literal_bases():  # so that all values of an immediate share one binding
            shapes = tuple((kind, 0) if kind == "immediate" else (kind, value) for kind, value in shapes)
        return _bind(instruction.opcode, shapes)
    except Unsupported as e:
        raise Unsupported(e.form, e.why, e.span or instruction.span, e.hint) from None
    except InputError as e:
        raise InputError(e.code, e.message, instruction.span, e.hint) from None


@cache
def _literal_bases() -> frozenset[str]:
    """The opcodes with an operand whose value is part of the form."""
    return frozenset(row.form.base for row in table() if any(o.type == "imm" for o in row.form.operands))


def _shape(operand: syntax.Operand) -> Shape:
    match operand:
        case syntax.Register():
            return ("register", 0)
        case syntax.Immediate(value):
            return ("immediate", value)
        case syntax.FloatImmediate():
            return ("float", 0)
        case syntax.Symbol():
            return ("symbol", 0)
        case syntax.Address(coords=()):
            return ("address", 0)
        case syntax.Vector(elements):
            return ("vector", len(elements))
        case syntax.Sink():
            return ("sink", 0)
        case syntax.Negated():
            return ("negated", 0)
        case syntax.Pair():
            return ("pair", 0)
        case _:
            return ("other", 0)


def candidates(opcode: str) -> Iterator[tuple[Row, dict[str, str]]]:
    """The rows whose modifiers the opcode makes, with the chosen words, in table order."""
    base, *words = opcode.split(".")
    for row in table().rows.get(base, ()):
        if row.any_suffix:
            stem = row.form.text.split(".")
            if [base, *words][: len(stem)] == stem:
                yield row, {}
        elif (chosen := row.form.match(tuple(words))) is not None:
            yield row, chosen


def reason_without_rule(row: Row, chosen: Mapping[str, str]) -> str:
    """Why an instruction of this row has no rule; "" when it has one."""
    if row.rule is not None and chosen.get("space") == "shared::cluster":
        return "shared memory of other CTAs of the cluster is not modelled"
    return row.why


@cache
def _bind(opcode: str, shapes: tuple[Shape, ...]) -> Bound:
    seen: list[Row] = []
    for row, chosen in candidates(opcode):
        if why := reason_without_rule(row, chosen):
            raise Unsupported(row.form.text, why)
        seen.append(row)
        if (bound := _fit(row, chosen, shapes)) is not None:
            return bound
    if seen:
        forms = "; ".join(dict.fromkeys(row.form.text for row in seen))
        raise InputError("ISA103", f"the operands of {opcode} fit no form of it", hint=f"forms: {forms}")
    raise _no_form(opcode)


def _no_form(opcode: str) -> Exception:
    base, *words = opcode.split(".")
    rows = table().rows.get(base)
    if not rows:
        return InputError("ISA101", f"{base} is not a PTX instruction")
    unknown = [w for w in words if w not in table().vocabulary and not is_type(w)]
    own = frozenset().union(*(row.form.vocabulary for row in rows))
    forms = "; ".join(dict.fromkeys(row.form.text for row in rows[:6]))
    if unknown:
        return InputError("ISA102", f".{unknown[0]} is not a modifier of {base}", hint=f"forms: {forms}")
    foreign = [w for w in words if w not in own]
    if foreign:
        return Unsupported(opcode, f"no form of {base} in PTX ISA 9.1 takes .{foreign[0]}", hint=f"forms: {forms}")
    return InputError("ISA102", f"{opcode} makes no form of {base}", hint=f"forms: {forms}")


def _fit(row: Row, chosen: dict[str, str], shapes: tuple[Shape, ...]) -> Bound | None:
    form = row.form
    operands = form.written_operands(chosen)
    required = sum(not o.optional for o in operands)
    if not required <= len(shapes) <= len(operands):
        return None
    if row.control:
        slots = tuple(_control_slot(operand, shape) for operand, shape in zip(operands, shapes, strict=False))
        mods = Mods(chosen, form.default_type(chosen) or _B64, 1, ())
        return Bound(form.text, None, mods, slots, row.control, False, 0, False)
    ty = form.default_type(chosen) or _B64
    vec = int(chosen["vec"][1:]) if "vec" in chosen else 1
    found: list[Slot] = []
    single: list[bool] = []
    for operand, (kind, value) in zip(operands, shapes, strict=False):
        alone = (kind, value) == ("vector", 1) and not operand.vector and form.base in _SINGLETONS
        slot = _slot(operand, "register" if alone else kind, value, ty, vec, chosen)
        if slot is None:
            return None
        found.append(slot)
        single.append(alone)
    return _bound(row, chosen, operands, shapes, tuple(found), single)


def _bound(
    row: Row, chosen: dict[str, str], operands: tuple[Operand, ...], shapes: tuple[Shape, ...],
    slots: tuple[Slot, ...], single: list[bool],
) -> Bound:
    vectors = sorted((s.role != "dst", s.vector) for s in slots if s.vector > 1)
    literals = tuple(value for o, (_, value) in zip(operands, shapes, strict=False) if o.type == "imm")
    mods = Mods(chosen, row.form.default_type(chosen) or _B64, vectors[0][1] if vectors else 1, literals)
    written = list(zip(operands, slots, single, strict=False))
    valued = [alone for _, slot, alone in written if slot.role in ("src", "addr")]
    return Bound(
        row.form.text, row.rule, mods, slots, "", not row.effects,
        results=sum(s.role == "dst" for s in slots),
        drops_pair=any(o.pair and not s.pair for o, s, _ in written if s.role == "dst"),
        wraps=any(alone for _, s, alone in written if s.role == "dst"),
        unwraps=tuple(k for k, alone in enumerate(valued) if alone),
    )  # fmt: skip


def _control_slot(operand: Operand, shape: Shape) -> Slot:
    kind = shape[0]
    if kind == "symbol" or operand.type == "label":
        return Slot("label", _B64)
    if kind in ("register", "immediate", "negated"):
        return Slot("src", scalar(operand.type) if operand.type and is_type(operand.type) else _B64)
    return Slot("addr" if kind == "address" else "other", _B64)


def _operand_type(operand: Operand, ty: ScalarType, chosen: Mapping[str, str]) -> ScalarType:
    if operand.type == "wide":
        return ScalarType(ty.kind, 2 * ty.width)
    if operand.type:
        return scalar(chosen.get(operand.type, operand.type))
    return scalar("pred") if operand.name in ("p", "q") else ty


def _slot(
    operand: Operand, kind: str, value: int, ty: ScalarType, vec: int, chosen: Mapping[str, str]
) -> Slot | None:
    """The slot of a written operand, or None when it does not fit."""
    if operand.address:
        return Slot("addr", _B64) if kind == "address" else None
    if operand.type == "imm":
        return Slot("other", scalar("b32")) if kind == "immediate" else None
    mine = _operand_type(operand, ty, chosen)
    role: Role = "dst" if operand.destination else "src"
    count = operand.vector or (vec if not operand.type and vec > 1 else 0)
    if count:
        return _vector_slot(role, mine, count, operand, kind, value)
    if operand.destination:
        allowed = operand.pair != "" if kind == "pair" else kind in ("register", "sink") and operand.pair != "must"
        return Slot(role, mine, 1, kind == "pair") if allowed else None
    if kind in ("register", "immediate", "float", "symbol") or (kind == "negated" and mine.kind == "pred"):
        return Slot(role, mine)
    return None


def _vector_slot(
    role: Role, mine: ScalarType, count: int, operand: Operand, kind: str, value: int
) -> Slot | None:
    if kind == "register" and operand.vector >= 0:
        raise Unsupported("vector register operand", "declare the elements as registers of their own")
    if kind != "vector" or (count > 0 and value != count):
        return None
    if count < 0:  # mov: the elements share the width
        if value < 2 or mine.width % value:
            return None
        mine = ScalarType("b", mine.width // value)
    return Slot(role, mine, value)
