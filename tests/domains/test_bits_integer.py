"""Integer operations of the bits domain against Python integers, following the manual's pseudocode."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpproof.domains import Bits
from warpproof.isa import ScalarType, scalar


def unsigned(x: int, width: int) -> int:
    return x % (1 << width)


def value(ty: ScalarType, bits: int) -> int:
    return bits - (1 << ty.width) if ty.signed and bits >> (ty.width - 1) else bits


def truncating(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def bfe(ty: ScalarType, a: int, b: int, c: int) -> int:
    msb, pos, length = ty.width - 1, b & 0xFF, c & 0xFF
    sbit = 0 if not ty.signed or length == 0 else a >> min(pos + length - 1, msb) & 1
    d = 0
    for i in range(msb + 1):
        bit = a >> (pos + i) & 1 if i < length and pos + i <= msb else sbit
        d |= bit << i
    return d


def bfi(ty: ScalarType, a: int, b: int, c: int, d: int) -> int:
    msb, pos, length = ty.width - 1, c & 0xFF, d & 0xFF
    f = b
    for i in range(length):
        if pos + i <= msb:
            f = f & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
    return f


def bfind(ty: ScalarType, a: int) -> int:
    if ty.signed and a >> (ty.width - 1):
        a = ~a % (1 << ty.width)
    return a.bit_length() - 1 if a else 0xFFFFFFFF


def shr(ty: ScalarType, a: int, n: int) -> int:
    return unsigned(value(ty, a) >> min(n, ty.width), ty.width)


def clamp(ty: ScalarType, x: int) -> int:
    half = 1 << (ty.width - 1)
    return unsigned(min(max(x, -half), half - 1), ty.width)


def op2(f: Callable[[int, int], int]) -> Callable[..., int]:
    return lambda ty, a, b: unsigned(f(value(ty, a), value(ty, b)), ty.width)


BINARY: dict[str, tuple[str, Callable[..., int]]] = {
    "add": ("us", op2(lambda a, b: a + b)),
    "sub": ("us", op2(lambda a, b: a - b)),
    "mul_lo": ("us", op2(lambda a, b: a * b)),
    "mul_hi": ("us", lambda ty, a, b: unsigned(value(ty, a) * value(ty, b) >> ty.width, ty.width)),
    "div": ("us", lambda ty, a, b: unsigned(truncating(value(ty, a), value(ty, b)) if b else -1, ty.width)),
    "rem": ("us", lambda ty, a, b: unsigned(
        value(ty, a) - value(ty, b) * truncating(value(ty, a), value(ty, b)) if b else -1, ty.width)),
    "min": ("us", op2(min)),
    "max": ("us", op2(max)),
    "and": ("b", op2(lambda a, b: a & b)),
    "or": ("b", op2(lambda a, b: a | b)),
    "xor": ("b", op2(lambda a, b: a ^ b)),
    "add_sat": ("s", lambda ty, a, b: clamp(ty, value(ty, a) + value(ty, b))),
    "sub_sat": ("s", lambda ty, a, b: clamp(ty, value(ty, a) - value(ty, b))),
}  # fmt: skip
UNARY: dict[str, tuple[str, Callable[..., int]]] = {
    "neg": ("s", lambda ty, a: unsigned(-value(ty, a), ty.width)),
    "abs": ("s", lambda ty, a: unsigned(abs(value(ty, a)), ty.width)),
    "not": ("b", lambda ty, a: unsigned(~a, ty.width)),
    "popc": ("b", lambda ty, a: bin(a).count("1")),
    "clz": ("b", lambda ty, a: ty.width - a.bit_length()),
    "brev": ("b", lambda ty, a: int(f"{a:0{ty.width}b}"[::-1], 2)),
    "bfind": ("us", bfind),
}


def corner_words(width: int) -> list[int]:
    top = 1 << width
    return [0, 1, 2, 3, 7, top // 2 - 1, top // 2, top // 2 + 1, top - 1, top - 2, top // 3, 0x1234567890ABCDEF % top]


def run(op: str, ty: ScalarType, rows: list[tuple[int, ...]], widths: tuple[int, ...], control: int = 0) -> list[int]:
    columns = [np.array(c, f"u{w // 8}") for c, w in zip(zip(*rows, strict=True), widths, strict=True)]
    return Bits(len(rows)).integer(op, ty, *columns, control=control).tolist()


CASES = [(op, f"{k}{w}") for op, (kinds, _) in BINARY.items() for k in kinds for w in (16, 32, 64)]


@pytest.mark.parametrize(("op", "name"), CASES)
def test_binary_operations(op: str, name: str) -> None:
    ty = scalar(name)
    rows = list(product(corner_words(ty.width), repeat=2))
    assert run(op, ty, rows, (ty.width,) * 2) == [BINARY[op][1](ty, a, b) for a, b in rows]


UNARY_CASES = [(op, f"{k}{w}") for op, (kinds, _) in UNARY.items() for k in kinds for w in (32, 64)]


@pytest.mark.parametrize(("op", "name"), UNARY_CASES)
def test_unary_operations(op: str, name: str) -> None:
    ty = scalar(name)
    rows = [(a,) for a in corner_words(ty.width)]
    assert run(op, ty, rows, (ty.width,)) == [UNARY[op][1](ty, a) for (a,) in rows]


@pytest.mark.parametrize("name", ["u16", "s16", "u32", "s32"])
def test_wide_products(name: str) -> None:
    ty = scalar(name)
    rows = list(product(corner_words(ty.width), repeat=2))
    expected = [unsigned(value(ty, a) * value(ty, b), 2 * ty.width) for a, b in rows]
    assert run("mul_wide", ty, rows, (ty.width,) * 2) == expected


SHIFTS = [0, 1, 5, 15, 16, 31, 32, 33, 63, 64, 65, 255, 0x80000000, 0xFFFFFFFF]


@pytest.mark.parametrize("name", ["b16", "u16", "s16", "b32", "u32", "s32", "b64", "u64", "s64"])
def test_shifts_clamp_their_amount(name: str) -> None:
    ty = scalar(name)
    rows = list(product(corner_words(ty.width), SHIFTS))
    assert run("shl", ty, rows, (ty.width, 32)) == [unsigned(a << min(n, 200), ty.width) for a, n in rows]
    assert run("shr", ty, rows, (ty.width, 32)) == [shr(ty, a, n) for a, n in rows]


def test_funnel_shifts() -> None:
    b32 = scalar("b32")
    rows = list(product(corner_words(32)[::2], corner_words(32)[1::2], SHIFTS))
    for wrap in (True, False):
        mode = "wrap" if wrap else "clamp"
        n = [c % 32 if wrap else min(c, 32) for _, _, c in rows]
        both = [b << 32 | a for a, b, _ in rows]
        left = [(x << k >> 32) % (1 << 32) for x, k in zip(both, n, strict=True)]
        right = [(x >> k) % (1 << 32) for x, k in zip(both, n, strict=True)]
        assert run(f"shf_l_{mode}", b32, rows, (32,) * 3) == left
        assert run(f"shf_r_{mode}", b32, rows, (32,) * 3) == right


FIELDS = [0, 1, 4, 8, 31, 32, 33, 63, 64, 100, 255, 256 + 4]


@pytest.mark.parametrize("name", ["u32", "s32", "u64", "s64"])
def test_bit_field_extract(name: str) -> None:
    ty = scalar(name)
    rows = list(product(corner_words(ty.width), FIELDS, FIELDS))
    assert run("bfe", ty, rows, (ty.width, 32, 32)) == [bfe(ty, *row) for row in rows]


@pytest.mark.parametrize("name", ["b32", "b64"])
def test_bit_field_insert(name: str) -> None:
    ty = scalar(name)
    rows = list(product(corner_words(ty.width)[4::2], corner_words(ty.width)[::3], FIELDS, FIELDS))
    assert run("bfi", ty, rows, (ty.width, ty.width, 32, 32)) == [bfi(ty, *row) for row in rows]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 255))
def test_lop3_follows_its_table(a: int, b: int, c: int, table: int) -> None:
    expected = sum((table >> ((a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1)) & 1) << i for i in range(32))
    assert run("lop3", scalar("b32"), [(a, b, c)], (32,) * 3, table) == [expected]


def prmt(a: int, b: int, c: int) -> int:
    source = (b << 32 | a).to_bytes(8, "little")
    out = 0
    for i in range(4):
        selector = c >> 4 * i & 15
        byte = source[selector & 7]
        out |= (byte if selector < 8 else 0xFF * (byte >> 7)) << 8 * i
    return out


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_generic_prmt(a: int, b: int, c: int) -> None:
    assert run("prmt", scalar("b32"), [(a, b, c)], (32,) * 3) == [prmt(a, b, c)]


@pytest.mark.parametrize(("mode", "code"), [
    (1, ["3210", "4321", "5432", "6543"]), (2, ["5670", "6701", "7012", "0123"]), (3, ["0000", "1111", "2222", "3333"]),
    (4, ["3210", "3211", "3222", "3333"]), (5, ["0000", "1110", "2210", "3210"]), (6, ["1010", "3232", "1010", "3232"]),
])  # fmt: skip
def test_named_prmt_modes(mode: int, code: list[str]) -> None:
    rows = [(0x03020100, 0x07060504, c) for c in range(8)]
    expected = [int("".join(f"0{d}" for d in code[c & 3]), 16) for _, _, c in rows]
    assert run("prmt", scalar("b32"), rows, (32,) * 3, mode) == expected


def fns(mask: int, base: int, offset: int) -> int:
    if offset == 0:
        return base if mask >> base & 1 else 0xFFFFFFFF
    pos, count, inc = base, abs(offset) - 1, 1 if offset > 0 else -1
    while 0 <= pos < 32:
        if mask >> pos & 1:
            if count == 0:
                return pos
            count -= 1
        pos += inc
    return 0xFFFFFFFF


def test_find_nth_set() -> None:
    rows = list(product([0, 1, 0x80000000, 0xF0F0F0F0, 0xFFFFFFFF, 0x12345678], range(0, 32, 5), range(-6, 7)))
    words = [(m, b, o % (1 << 32)) for m, b, o in rows]
    assert run("fns", scalar("b32"), words, (32,) * 3) == [fns(*row) for row in rows]


@pytest.mark.parametrize(("width", "parts"), [(16, 2), (32, 2), (32, 4), (64, 2), (64, 4), (64, 8), (128, 2), (128, 4)])
def test_pack_and_unpack_are_inverse_and_little_endian(width: int, parts: int) -> None:
    step = width // parts
    dom = Bits(1)
    small = [np.array([k + 1], f"u{step // 8}") for k in range(parts)]
    whole = dom.pack(width, small)
    number = int(whole[0]) if width < 128 else int(whole[0, 0]) | int(whole[0, 1]) << 64
    assert number == sum((k + 1) << (k * step) for k in range(parts))
    assert [p.tolist() for p in dom.unpack(width, whole, parts)] == [[k + 1] for k in range(parts)]


def test_resize_truncates_and_zero_extends() -> None:
    dom = Bits(2)
    wide = np.array([0x1122334455667788, 0xFFFFFFFFFFFFFFFF], np.uint64)
    assert dom.resize(16, wide).tolist() == [0x7788, 0xFFFF]
    assert dom.resize(64, np.array([0xFFFF, 1], np.uint16)).tolist() == [0xFFFF, 1]
    assert dom.resize(64, dom.resize(128, wide)).tolist() == wide.tolist()
    assert dom.constant(scalar("b128"), (5 << 64) | 7).tolist() == [[7, 5], [7, 5]]
