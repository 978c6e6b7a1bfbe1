"""The form notation: parsing, matching in any order, types in order, tied operands."""

from __future__ import annotations

import pytest

from warpproof.isa import ScalarType, parse_form, scalar


def test_form_of_the_manual_is_read() -> None:
    form = parse_form("setp.cmp{.ftz}.f32 p[|q], a, b")
    assert form.base == "setp"
    assert [(m.name, m.group) for m in form.modifiers] == [("cmp", 0), ("ftz", 1), ("f32", 0)]
    assert "leu" in form.modifiers[0].choices
    operands = [(o.name, o.pair, o.destination) for o in form.operands]
    assert operands == [("p", "may", True), ("a", "", False), ("b", "", False)]


def test_operand_suffixes() -> None:
    form = parse_form("op.type d*4:b32, [a], b:wide{, c:pred}, e*", {"type": "u32"})
    d, a, b, c, e = form.operands
    assert (d.vector, d.type, d.destination) == (4, "b32", True)
    assert a.address
    assert (b.type, c.optional, c.type, e.vector) == ("wide", True, "pred", -1)


@pytest.mark.parametrize("written", ["rn.ftz.sat.f32", "ftz.rn.f32.sat", "f32.rn"])
def test_modifiers_may_come_in_any_order(written: str) -> None:
    form = parse_form("fma.rnd{.ftz}{.sat}.f32 d, a, b, c")
    chosen = form.match(tuple(written.split(".")))
    assert chosen is not None
    assert chosen["rnd"] == "rn"
    assert ("ftz" in chosen) == ("ftz" in written)


@pytest.mark.parametrize("written", ["f32", "rn", "rn.rz.f32", "rn.f64", "rn.ftz.ftz.f32", "rn.f32.xx"])
def test_what_is_no_form_does_not_match(written: str) -> None:
    assert parse_form("fma.rnd{.ftz}{.sat}.f32 d, a, b, c").match(tuple(written.split("."))) is None


def test_type_words_keep_their_order() -> None:
    form = parse_form("cvt.dtype.atype d:dtype, a:atype", {"dtype": "f32 f64", "atype": "f16 f32"})
    assert form.match(("f32", "f16")) == {"dtype": "f32", "atype": "f16"}
    assert form.match(("f32", "f32")) == {"dtype": "f32", "atype": "f32"}
    assert form.match(("f16", "f32")) is None


def test_an_optional_group_stands_or_falls_together() -> None:
    form = parse_form("max{.xorsign.abs}.f32 d, a, b")
    assert form.match(("f32",)) is not None
    assert form.match(("xorsign", "abs", "f32")) is not None
    assert form.match(("xorsign", "f32")) is None


def test_an_operand_named_like_a_modifier_comes_with_it() -> None:
    form = parse_form("ld{.hint}.b32 d, [a]{, hint:b64}")
    assert [o.name for o in form.written_operands({"b32": "b32"})] == ["d", "a"]
    with_hint = form.written_operands({"b32": "b32", "hint": "L2::cache_hint"})
    assert [(o.name, o.optional) for o in with_hint] == [("d", False), ("a", False), ("hint", False)]


def test_malformed_notation_is_refused() -> None:
    with pytest.raises(ValueError, match="operand notation"):
        parse_form("add.s32 d, ;")
    with pytest.raises(ValueError, match="without opcode"):
        parse_form(".s32 d")


@pytest.mark.parametrize(("name", "kind", "width", "packed"), [
    ("f32", "f", 32, 1), ("bf16x2", "bf", 32, 2), ("pred", "pred", 1, 1), ("e4m3x2", "e4m3", 16, 2),
    ("s64", "s", 64, 1), ("b128", "b", 128, 1), ("tf32", "tf", 32, 1),
])  # fmt: skip
def test_types_print_as_they_are_written(name: str, kind: str, width: int, packed: int) -> None:
    assert scalar(name) == ScalarType(kind, width, packed)
    assert str(scalar(name)) == name
    assert scalar(name).element.width == width // packed
