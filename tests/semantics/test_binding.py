"""Binding written instructions: slots, chosen modifiers, and the errors for what is not PTX."""

from __future__ import annotations

import pytest
from instances import instruction, reg

from warpproof.core import InputError, Unsupported
from warpproof.domains import FloatMode
from warpproof.isa import scalar
from warpproof.ptx import syntax
from warpproof.semantics import Slot, bind

R1, R2, R3, P1, P2 = (reg(n) for n in ("%r1", "%r2", "%r3", "%p1", "%p2"))
ADDRESS = syntax.Address(reg("%rd1"), 4)


def slots(opcode: str, *operands: syntax.Operand) -> list[tuple[str, str, int, bool]]:
    return [(s.role, str(s.type), s.vector, s.pair) for s in bind(instruction(opcode, *operands)).slots]


def test_slots_have_the_type_of_the_form() -> None:
    assert slots("mul.wide.s32", R1, R2, syntax.Immediate(4)) == [
        ("dst", "s64", 1, False), ("src", "s32", 1, False), ("src", "s32", 1, False),
    ]  # fmt: skip
    assert slots("shl.b64", R1, R2, R3)[2] == ("src", "u32", 1, False)
    assert slots("bfi.b64", R1, R2, R3, R1, R2)[3:] == [("src", "u32", 1, False)] * 2
    assert slots("cvt.rn.f16x2.f32", R1, R2, R3) == [
        ("dst", "f16x2", 1, False), ("src", "f32", 1, False), ("src", "f32", 1, False),
    ]  # fmt: skip


def test_predicate_pairs_and_negated_sources() -> None:
    pair = syntax.Pair(P1, P2)
    assert slots("setp.lt.and.s32", pair, R1, R2, syntax.Negated(P1)) == [
        ("dst", "pred", 1, True), ("src", "s32", 1, False), ("src", "s32", 1, False), ("src", "pred", 1, False),
    ]  # fmt: skip
    assert slots("setp.lt.s32", P1, R1, R2)[0] == ("dst", "pred", 1, False)
    assert slots("shfl.sync.bfly.b32", syntax.Pair(R1, P1), R2, R1, R2, R3)[0] == ("dst", "b32", 1, True)


def test_memory_operands_and_vectors() -> None:
    quad = syntax.Vector((R1, R2, R3, syntax.Sink()))
    assert slots("ld.global.v4.f32", quad, ADDRESS) == [("dst", "f32", 4, False), ("addr", "b64", 1, False)]
    assert slots("st.shared.v2.b64", ADDRESS, syntax.Vector((R1, R2)))[1] == ("src", "b64", 2, False)
    hint = slots("ld.global.L1::evict_last.L2::cache_hint.v4.b32", quad, ADDRESS, R1)
    assert hint[2] == ("src", "b64", 1, False)


def test_moves_pack_and_unpack_by_the_shape_of_their_operands() -> None:
    two = syntax.Vector((R1, R2))
    assert slots("mov.b64", R3, two)[1] == ("src", "b32", 2, False)
    assert slots("mov.b32", two, R3)[0] == ("dst", "b16", 2, False)
    assert slots("mov.u64", R3, syntax.Symbol("table", 8))[1] == ("src", "u64", 1, False)


def test_modifiers_become_a_float_mode() -> None:
    bound = bind(instruction("fma.rz.ftz.sat.f32", R1, R2, R3, R1))
    assert bound.mods.mode == FloatMode("rz", ftz=True, sat=True)
    assert bound.mods.ty == scalar("f32")
    assert bind(instruction("div.full.ftz.f32", R1, R2, R3)).mods.mode == FloatMode(ftz=True, approx=True, full=True)
    assert bind(instruction("max.NaN.xorsign.abs.f32", R1, R2, R3)).mods.mode == FloatMode(nan=True, xorsign=True)


def test_three_input_extrema_are_another_form() -> None:
    assert bind(instruction("max.f32", R1, R2, R3)).form == "max{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b"
    assert bind(instruction("max.f32", R1, R2, R3, R1)).form == "max{.ftz}{.NaN}{.abs}.f32 d, a, b, c"


def test_binding_is_cached() -> None:
    assert bind(instruction("add.s32", R1, R2, R3)) is bind(instruction("add.s32", R3, R1, R2))


@pytest.mark.parametrize(("opcode", "control"), [
    ("bra.uni", "bra"), ("ret", "ret"), ("exit", "exit"), ("trap", "trap"), ("brkpt", "trap"), ("nanosleep.u32", "nop"),
    ("setmaxnreg.dec.sync.aligned.u32", "nop"), ("prefetch.global.L2", "nop"),
])  # fmt: skip
def test_control_instructions(opcode: str, control: str) -> None:
    operands = {"bra.uni": (syntax.Symbol("L"),), "nanosleep.u32": (R1,), "prefetch.global.L2": (ADDRESS,),
                "setmaxnreg.dec.sync.aligned.u32": (syntax.Immediate(24),)}.get(opcode, ())  # fmt: skip
    bound = bind(instruction(opcode, *operands))
    assert (bound.control, bound.pure, bound.rule) == (control, False, None)


def test_branches_have_label_slots() -> None:
    assert slots("bra", syntax.Symbol("L1"))[0][0] == "label"
    assert [s[0] for s in slots("brx.idx", R1, syntax.Symbol("T"))] == ["src", "label"]
    call = slots("call.uni", syntax.Group((R1,)), syntax.Symbol("f"), syntax.Group((R2,)))
    assert [s[0] for s in call] == ["other", "label", "other"]


@pytest.mark.parametrize(("opcode", "code", "text"), [
    ("frob.s32", "ISA101", "frob is not a PTX instruction"),
    ("add.s33", "ISA102", ".s33 is not a modifier of add"),
    ("fma.f32", "ISA102", "fma.f32 makes no form of fma"),
    ("cvt.f16.f32", "ISA102", "cvt.f16.f32 makes no form"),
    ("add.u64.s32", "ISA102", "makes no form"),
    ("neg.s32", "ISA103", "the operands of neg.s32"),
])  # fmt: skip
def test_what_is_not_ptx_is_an_input_error(opcode: str, code: str, text: str) -> None:
    with pytest.raises(InputError) as caught:
        bind(instruction(opcode, R1, R2, R3))
    assert caught.value.code == code
    assert text in caught.value.message
    assert caught.value.span is not None
    assert (caught.value.hint == "") == (code == "ISA101")


@pytest.mark.parametrize(("opcode", "operands"), [
    ("add.s32", (R1, R2)), ("add.s32", (syntax.Immediate(1), R2, R3)), ("ld.b32", (R1, R2)), ("st.b32", (R1, R2)),
    ("ld.v2.b32", (syntax.Vector((R1, R2, R3)), ADDRESS)), ("selp.b32", (R1, R2, syntax.Negated(P1), P1)),
    ("lop3.b32", (R1, R2, R3, R1, R2)), ("elect.sync", (R1, R2)), ("mov.b32", (syntax.Vector((R1, R2, R3)), R1)),
])  # fmt: skip
def test_operands_that_do_not_fit(opcode: str, operands: tuple[syntax.Operand, ...]) -> None:
    with pytest.raises(InputError) as caught:
        bind(instruction(opcode, *operands))
    assert caught.value.code == "ISA103"


@pytest.mark.parametrize(("opcode", "why"), [
    ("tex.1d.v4.f32.f32", "texture"), ("tcgen05.wait::ld.sync.aligned", "tensor memory"),
    ("mbarrier.init.b64", "mbarrier"),
    ("ld.shared::cluster.b32", "cluster"), ("add.v2.f32", "PTX ISA 9.1"), ("discard.global.L2", "indeterminate"),
])  # fmt: skip
def test_forms_without_a_rule_are_unsupported(opcode: str, why: str) -> None:
    with pytest.raises(Unsupported) as caught:
        bind(instruction(opcode, R1, ADDRESS))
    assert why in caught.value.why
    assert caught.value.span is not None


def test_a_vector_register_operand_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="vector register"):
        bind(instruction("ld.global.v4.f32", R1, ADDRESS))


def test_slot_defaults() -> None:
    assert Slot("src", scalar("b32")) == Slot("src", scalar("b32"), 1, False)
