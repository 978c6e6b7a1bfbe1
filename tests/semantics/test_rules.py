"""Values of the composite rules, against the manual's pseudocode on Python integers and floats."""

from __future__ import annotations

import struct
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from instances import instruction, reg
from rule_runner import compute

from warpproof.domains import Bits, Carry
from warpproof.isa import scalar
from warpproof.ptx import syntax
from warpproof.semantics import bind, execute

WORD = st.integers(0, 2**32 - 1)
M32 = 0xFFFFFFFF


def u32(*values: int) -> np.ndarray:
    return np.array([v & M32 for v in values], np.uint32)


def s32(x: int) -> int:
    x &= M32
    return x - (1 << 32) if x >> 31 else x


def regs(opcode: str, count: int, *last: syntax.Operand) -> syntax.Instruction:
    return instruction(opcode, *(reg(f"%r{k}") for k in range(count)), *last)


def one(opcode: str, *args: int) -> int:
    return int(compute(regs(opcode, len(args) + 1), *(u32(a) for a in args))[0])


@settings(max_examples=150, deadline=None)
@given(WORD, WORD, WORD)
def test_multiply_add_family(a: int, b: int, c: int) -> None:
    assert one("mad.lo.s32", a, b, c) == (a * b + c) & M32
    assert one("mad.hi.s32", a, b, c) == ((s32(a) * s32(b) >> 32) + c) & M32
    assert one("mad.hi.u32", a, b, c) == ((a * b >> 32) + c) & M32
    assert one("mad.hi.sat.s32", a, b, c) == min(max((s32(a) * s32(b) >> 32) + s32(c), -(1 << 31)), (1 << 31) - 1) & M32
    wide = compute(regs("mad.wide.s32", 4), u32(a), u32(b), np.array([c << 20], np.uint64))
    assert int(wide[0]) == (s32(a) * s32(b) + (c << 20)) % (1 << 64)
    assert one("sad.s32", a, b, c) == (abs(s32(a) - s32(b)) + c) & M32
    assert one("sad.u32", a, b, c) == (abs(a - b) + c) & M32


def s24(x: int) -> int:
    x &= 0xFFFFFF
    return x - (1 << 24) if x >> 23 else x


@settings(max_examples=100, deadline=None)
@given(WORD, WORD, WORD)
def test_products_of_24_bits(a: int, b: int, c: int) -> None:
    unsigned = (a & 0xFFFFFF) * (b & 0xFFFFFF)
    signed = s24(a) * s24(b)
    assert one("mul24.lo.u32", a, b) == unsigned & M32
    assert one("mul24.hi.u32", a, b) == unsigned >> 16
    assert one("mul24.lo.s32", a, b) == signed & M32
    assert one("mul24.hi.s32", a, b) == signed >> 16 & M32
    assert one("mad24.lo.u32", a, b, c) == (unsigned + c) & M32
    assert one("mad24.hi.s32", a, b, c) == ((signed >> 16) + c) & M32
    assert one("mad24.hi.sat.s32", a, b, c) == min(max((signed >> 16) + s32(c), -(1 << 31)), (1 << 31) - 1) & M32


def parts(x: int, width: int, kind: str) -> list[int]:
    raw = [x >> k & ((1 << width) - 1) for k in range(0, 32, width)]
    return [v - (1 << width) if kind == "s" and v >> (width - 1) else v for v in raw]


@settings(max_examples=80, deadline=None)
@given(WORD, WORD, WORD, st.sampled_from("us"), st.sampled_from("us"))
def test_dot_products(a: int, b: int, c: int, ka: str, kb: str) -> None:
    four = sum(x * y for x, y in zip(parts(a, 8, ka), parts(b, 8, kb), strict=True))
    assert one(f"dp4a.{ka}32.{kb}32", a, b, c) == (c + four) & M32
    halves, bytes_ = parts(a, 16, ka), parts(b, 8, kb)
    low = halves[0] * bytes_[0] + halves[1] * bytes_[1]
    high = halves[0] * bytes_[2] + halves[1] * bytes_[3]
    assert one(f"dp2a.lo.{ka}32.{kb}32", a, b, c) == (c + low) & M32
    assert one(f"dp2a.hi.{ka}32.{kb}32", a, b, c) == (c + high) & M32


def bmsk(a: int, b: int, clamp: bool) -> int:
    a1, b1 = a & 31, b & 31
    mask0, total = M32 << a1 & M32, a1 + b1
    mask1 = M32 << total & M32
    position = width = False
    if clamp:
        if a >= 32:
            position, mask0 = True, 0
        width = b >= 32
    if total >= 32 or position or width:
        mask1 = 0
    elif b1 == 0:
        mask1 = M32
    return mask0 & ~mask1 & M32


def szext(a: int, b: int, clamp: bool, signed: bool) -> int:
    b1 = b & 31
    large = b >= 32 and clamp
    mask = 0 if large else M32 << b1 & M32
    sign = 0 if b1 == 0 or large or not signed else a >> (b1 - 1 & 31) & 1
    return (a & ~mask | (mask if sign else 0)) & M32


SIZES = [0, 1, 5, 16, 31, 32, 33, 40, 64, 0x80000001, M32]


def test_masks_and_extensions() -> None:
    for a, b in product(SIZES, SIZES):
        assert one("bmsk.wrap.b32", a, b) == bmsk(a, b, False)
        assert one("bmsk.clamp.b32", a, b) == bmsk(a, b, True)
    for a, b in product([0, 1, 0x80, 0xFF, 0x8000FFFF, M32, 0x7FFFFFFF], SIZES):
        for clamp, signed in product([False, True], repeat=2):
            opcode = f"szext.{'clamp' if clamp else 'wrap'}.{'s' if signed else 'u'}32"
            assert one(opcode, a, b) == szext(a, b, clamp, signed)


@pytest.mark.parametrize(("a", "found", "shift"), [(0, M32, M32), (1, 0, 31), (0x80000000, 31, 0), (0x00FF0000, 23, 8)])
def test_bfind(a: int, found: int, shift: int) -> None:
    assert one("bfind.u32", a) == found
    assert one("bfind.shiftamt.u32", a) == shift


@settings(max_examples=60, deadline=None)
@given(WORD, WORD)
def test_packed_integers(a: int, b: int) -> None:
    def lanes(x: int, y: int, f: Any, kind: str) -> int:
        low, high = (f(p, q) & 0xFFFF for p, q in zip(parts(x, 16, kind), parts(y, 16, kind), strict=True))
        return high << 16 | low

    assert one("add.u16x2", a, b) == lanes(a, b, lambda x, y: x + y, "u")
    assert one("max.s16x2", a, b) == lanes(a, b, max, "s")
    assert one("min.u16x2", a, b) == lanes(a, b, min, "u")
    assert one("min.relu.s16x2", a, b) == lanes(a, b, lambda x, y: max(min(x, y), 0), "s")
    assert one("max.relu.s32", a, b) == max(s32(a), s32(b), 0)


def test_cnot_and_lop3() -> None:
    assert compute(regs("cnot.b32", 2), u32(0, 1, 5)).tolist() == [1, 0, 0]
    table = syntax.Immediate(0xE8)  # majority
    out = compute(regs("lop3.b32", 4, table), u32(0b1100), u32(0b1010), u32(0b0110))
    assert out.tolist() == [0b1110]
    opcode = instruction("lop3.and.b32", syntax.Pair(reg("d"), reg("p")), *map(reg, "abc"), table, reg("q"))
    result, flag = compute(opcode, u32(1, 1, 0), u32(1, 1, 0), u32(0, 0, 0), np.array([True, False, True]))
    assert result.tolist() == [1, 1, 0]
    assert flag.tolist() == [True, False, False]


def test_shf_is_a_rotation_for_equal_words() -> None:
    out = compute(regs("shf.l.wrap.b32", 4), u32(0x80000001), u32(0x80000001), u32(36))
    assert out.tolist() == [0x00000018]
    assert compute(regs("shf.r.clamp.b32", 4), u32(1), u32(2), u32(40)).tolist() == [2]


def test_setp_combines_and_negates() -> None:
    a, b = u32(-1, 5, 5), u32(3, 5, 2)
    c = np.array([True, True, False])
    pair = syntax.Pair(reg("p"), reg("q"))
    p, q = compute(instruction("setp.lt.and.s32", pair, reg("a"), reg("b"), reg("c")), a, b, c)
    assert p.tolist() == [True, False, False]
    assert q.tolist() == [False, True, False]
    alone = compute(instruction("setp.lo.u32", reg("p"), reg("a"), reg("b")), a, b)
    assert alone.tolist() == [False, False, False]
    p, q = compute(instruction("setp.gt.xor.s32", pair, reg("a"), reg("b"), reg("c")), a, b, c)
    assert (p.tolist(), q.tolist()) == ([True, True, True], [False, False, False])


def test_setp_of_packed_halves_answers_low_then_high() -> None:
    a, b = u32(0x3C004000), u32(0x40003C00)  # (2, 1) and (1, 2), low half first
    pair = syntax.Pair(reg("p"), reg("q"))
    p, q = compute(instruction("setp.gt.f16x2", pair, reg("a"), reg("b")), a, b)
    assert (p.tolist(), q.tolist()) == ([True], [False])


@pytest.mark.parametrize(("opcode", "result"), [
    ("set.lt.u32.s32", M32), ("set.gt.u32.s32", 0), ("set.lt.f32.s32", 0x3F800000), ("set.lo.s32.u32", 0),
])  # fmt: skip
def test_set_writes_ones_or_one(opcode: str, result: int) -> None:
    assert one(opcode, -1 & M32, 3) == result


def test_set_of_halves() -> None:
    assert one("set.gt.u32.f16x2", 0x3C004000, 0x40003C00) == 0x0000FFFF
    assert one("set.gt.f16x2.f16x2", 0x3C004000, 0x40003C00) == 0x00003C00
    half = compute(regs("set.eq.u16.f16", 3), np.array([0x3C00], np.uint16), np.array([0x3C00], np.uint16))
    assert (half.dtype, half.tolist()) == (np.uint16, [0xFFFF])


def test_selections() -> None:
    p = np.array([True, False])
    assert compute(regs("selp.b32", 4), u32(1, 1), u32(2, 2), p).tolist() == [1, 2]
    f = np.array([0.0, -0.0, -1.0, np.nan], np.float32).view(np.uint32)
    assert compute(regs("slct.b32.f32", 4), u32(*[1] * 4), u32(*[2] * 4), f).tolist() == [1, 1, 2, 2]
    tiny = u32(0x80000001)
    assert compute(regs("slct.b32.f32", 4), u32(1), u32(2), tiny).tolist() == [2]
    assert compute(regs("slct.ftz.b32.f32", 4), u32(1), u32(2), tiny).tolist() == [1]
    assert compute(regs("slct.b32.s32", 4), u32(1, 1), u32(2, 2), u32(0, -1)).tolist() == [1, 2]


def half_bits(x: float) -> int:
    return struct.unpack("<H", struct.pack("<e", x))[0]


def f32_bits(x: float) -> int:
    return struct.unpack("<I", struct.pack("<f", x))[0]


def test_two_operand_conversions_put_the_first_above() -> None:
    a, b = u32(f32_bits(1.5)), u32(f32_bits(-2.0))
    assert compute(regs("cvt.rn.f16x2.f32", 3), a, b).tolist() == [half_bits(1.5) << 16 | half_bits(-2.0)]
    assert compute(regs("cvt.rn.bf16x2.f32", 3), a, b).tolist() == [0x3FC0C000]
    assert compute(regs("cvt.rn.satfinite.e4m3x2.f32", 3), a, b).tolist() == [0x3CC0]
    assert compute(regs("cvt.rn.satfinite.relu.e5m2x2.f32", 3), a, b).tolist() == [0x3E00]
    back = compute(regs("cvt.rn.f16x2.e4m3x2", 2), np.array([0x3CC0], np.uint16))
    assert back.tolist() == [half_bits(1.5) << 16 | half_bits(-2.0)]


def test_cvt_pack_clamps_and_shifts_in() -> None:
    assert one("cvt.pack.sat.s16.s32", 70000, -70000 & M32) == 0x7FFF8000
    out = compute(regs("cvt.pack.sat.u8.s32.b32", 4), u32(300), u32(-5), u32(0x12345678))
    assert out.tolist() == [0x5678FF00]
    out = compute(regs("cvt.pack.sat.s4.s32.b32", 4), u32(7), u32(-9), u32(0xABCDEF))
    assert out.tolist() == [0xABCDEF78]


def test_conversions_follow_their_types() -> None:
    assert compute(regs("cvt.s64.s32", 2), u32(-5)).tolist() == [2**64 - 5]
    assert compute(regs("cvt.u64.u32", 2), u32(-5)).tolist() == [2**32 - 5]
    assert compute(regs("cvt.rzi.s32.f32", 2), u32(f32_bits(-2.75))).tolist() == [2**32 - 2]
    assert compute(regs("cvt.rna.tf32.f32", 2), u32(0x3F801000)).tolist() == [0x3F802000]


def test_three_input_extrema_and_magnitudes() -> None:
    a, b, c = (u32(f32_bits(x)) for x in (-5.0, 2.0, 3.0))
    nan = u32(0x7FC00001)
    assert compute(regs("max.f32", 4), a, b, c).tolist() == [f32_bits(3.0)]
    assert compute(regs("max.abs.f32", 4), a, b, c).tolist() == [f32_bits(5.0)]
    assert compute(regs("min.f32", 4), a, nan, c).tolist() == [f32_bits(-5.0)]
    assert compute(regs("min.NaN.f32", 4), a, nan, c).tolist() == [0x7FFFFFFF]


def test_mixed_precision_adds_in_f32() -> None:
    a, c = np.array([half_bits(1.0009765625)], np.uint16), u32(f32_bits(2.0**-20))
    assert compute(regs("add.f32.f16", 3), a, c).tolist() == [f32_bits(1.0009765625 + 2.0**-20)]
    b = np.array([half_bits(3.0)], np.uint16)
    assert compute(regs("fma.rn.f32.f16", 4), a, b, c).tolist() == [f32_bits(3.0029296875 + 2.0**-20)]


def test_mov_packs_and_unpacks() -> None:
    two = syntax.Vector((reg("a"), reg("b")))
    packed = compute(instruction("mov.b64", reg("d"), two), (u32(1), u32(2)))
    assert packed.tolist() == [2 << 32 | 1]
    low, high = compute(instruction("mov.b64", two, reg("d")), packed)
    assert (low.tolist(), high.tolist()) == ([1], [2])


def wide_add(op: str, first: str, second: str, a: int, b: int) -> int:
    """A 64-bit sum of 32-bit halves through the carry flag."""
    state: list[Any] = [None]
    out = []
    for opcode, shift in ((first, 0), (second, 32)):
        bound = bind(regs(f"{op}{opcode}.u32", 3))
        process = execute(bound, Bits(1), (u32(a >> shift), u32(b >> shift)))
        try:
            effect = next(process)
            while True:
                assert isinstance(effect, Carry)
                if effect.value is not None:
                    state[0] = effect.value
                effect = process.send(None if effect.value is not None else state[0])
        except StopIteration as stop:
            out.append(int(stop.value[0][0]))
    return out[1] << 32 | out[0]


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_carry_chains_make_wide_sums(a: int, b: int) -> None:
    assert wide_add("add", ".cc", "c", a, b) == (a + b) % (1 << 64)
    assert wide_add("sub", ".cc", "c.cc", a, b) == (a - b) % (1 << 64)


def test_carry_out_of_a_sum_with_carry_in() -> None:
    ones = u32(M32)
    process = execute(bind(regs("addc.cc.u32", 3)), Bits(1), (ones, u32(0)))
    assert next(process) == Carry()
    effect = process.send(np.array([True]))
    assert isinstance(effect, Carry)
    assert isinstance(effect.value, np.ndarray)
    assert effect.value.tolist() == [True]
    with pytest.raises(StopIteration) as stop:
        process.send(None)
    assert stop.value.value[0].tolist() == [0]


def test_predicate_logic() -> None:
    p, q = np.array([True, True, False, False]), np.array([True, False, True, False])
    for opcode, expected in (("and", p & q), ("or", p | q), ("xor", p ^ q)):
        assert np.array_equal(compute(regs(f"{opcode}.pred", 3), p, q), expected)
    assert np.array_equal(compute(regs("not.pred", 2), p), ~p)
    assert np.array_equal(compute(regs("mov.pred", 2), p), p)
    assert scalar("pred").width == 1
