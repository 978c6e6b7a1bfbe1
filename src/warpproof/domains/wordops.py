"""Exact integer operations on arrays of w-bit words, held as unsigned NumPy integers of that width (w = 8 … 64)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Words = NDArray[Any]
U32: Final = np.dtype(np.uint32)
U64: Final = np.dtype(np.uint64)
_UNSIGNED: Final[dict[int, np.dtype[Any]]] = {8: np.dtype(np.uint8), 16: np.dtype(np.uint16), 32: U32, 64: U64}
_SIGNED: Final[dict[int, np.dtype[Any]]] = {
    1: np.dtype(np.int8), 2: np.dtype(np.int16), 4: np.dtype(np.int32), 8: np.dtype(np.int64),
}  # fmt: skip


def word(width: int) -> np.dtype[Any]:
    """The unsigned dtype of a width of 8, 16, 32 or 64 bits."""
    return _UNSIGNED[width]


def bits_of(a: Words) -> int:
    """The width of the words of `a`."""
    return 8 * a.dtype.itemsize


def signed(a: Words) -> Words:
    """The same bits read as two's complement."""
    return a.view(_SIGNED[a.dtype.itemsize])


def negative(a: Words) -> NDArray[np.bool_]:
    """Where the sign bit is set."""
    return signed(a) < 0


def shift_left(a: Words, count: Words) -> Words:
    """a << count; zero from count = width on."""
    width = bits_of(a)
    near = np.minimum(count, width - 1).astype(a.dtype)
    result: Words = np.where(count >= width, a.dtype.type(0), a << near)
    return result


def shift_right(a: Words, count: Words) -> Words:
    """The logical shift; zero from count = width on."""
    width = bits_of(a)
    near = np.minimum(count, width - 1).astype(a.dtype)
    result: Words = np.where(count >= width, a.dtype.type(0), a >> near)
    return result


def shift_right_signed(a: Words, count: Words) -> Words:
    """The arithmetic shift; the sign everywhere from count = width on."""
    s = signed(a)
    result: Words = (s >> np.minimum(count, bits_of(a) - 1).astype(s.dtype)).view(a.dtype)
    return result


def low_mask(a: Words, count: Words) -> Words:
    """`count` ones in the low bits, all ones from count = width on; words as wide as those of `a`."""
    return ~shift_left(np.full_like(a, -1 % (1 << bits_of(a))), count)


def bit_length(a: Words) -> Words:
    """Position of the highest set bit plus one, as u32; 0 for zero."""
    x = a.copy()
    step = 1
    while step < bits_of(a):
        x |= x >> a.dtype.type(step)
        step *= 2
    return np.bitwise_count(x).astype(U32)


def reverse(a: Words) -> Words:
    """The bits in opposite order."""
    x, width = a, bits_of(a)
    step = width // 2
    while step:
        mask = a.dtype.type(((1 << width) - 1) // ((1 << step) + 1))
        s = a.dtype.type(step)
        x = ((x >> s) & mask) | ((x & mask) << s)
        step //= 2
    return x


def multiply_high(a: Words, b: Words, is_signed: bool) -> Words:
    """The upper half of the full product."""
    width = bits_of(a)
    if width < 64:
        full = multiply_wide(a, b, is_signed)
        return np.asarray(np.right_shift(full, full.dtype.type(width)), a.dtype)
    low, s = U64.type(0xFFFFFFFF), U64.type(32)
    a0, a1, b0, b1 = a & low, a >> s, b & low, b >> s
    cross = a1 * b0 + ((a0 * b0) >> s)
    other = a0 * b1 + (cross & low)
    high = a1 * b1 + (cross >> s) + (other >> s)
    if is_signed:
        zero = U64.type(0)
        high = high - np.where(negative(a), b, zero) - np.where(negative(b), a, zero)
    return np.asarray(high)


def multiply_wide(a: Words, b: Words, is_signed: bool) -> Words:
    """The full product, twice as wide (at most 64 bits)."""
    wide = word(2 * bits_of(a))
    if is_signed:
        twice = _SIGNED[wide.itemsize]
        return np.asarray(np.multiply(signed(a).astype(twice), signed(b).astype(twice))).view(wide)
    return np.asarray(np.multiply(a.astype(wide), b.astype(wide)))


def magnitude(a: Words) -> Words:
    """|a| of a two's complement value, as an unsigned word."""
    return np.where(negative(a), (~a) + a.dtype.type(1), a)


def divide(a: Words, b: Words, is_signed: bool) -> tuple[Words, Words]:
    """Quotient and remainder, rounded toward zero; all ones for both where b is zero (ledger: integer-division)."""
    ones = a.dtype.type(-1 % (1 << bits_of(a)))
    x, y = (magnitude(a), magnitude(b)) if is_signed else (a, b)
    zero = y == 0
    y = np.where(zero, a.dtype.type(1), y)
    quotient, rest = x // y, x % y
    if is_signed:
        quotient = np.where(negative(a ^ b), -quotient, quotient)
        rest = np.where(negative(a), -rest, rest)
    return np.where(zero, ones, quotient), np.where(zero, ones, rest)


def saturated(a: Words, b: Words, subtract: bool) -> Words:
    """a + b (or a - b) clamped to the signed range."""
    width = bits_of(a)
    total = a - b if subtract else a + b
    overflow = negative((a ^ b) & (a ^ total)) if subtract else negative((a ^ total) & (b ^ total))
    top = a.dtype.type((1 << (width - 1)) - 1)
    return np.where(overflow, np.where(negative(a), ~top, top), total)


def extract(a: Words, position: Words, length: Words, is_signed: bool) -> Words:
    """`bfe`: `length` bits from `position`, zero- or sign-extended; both operands taken modulo 256."""
    width = bits_of(a)
    pos, size = position & 0xFF, length & 0xFF
    inside = np.minimum(size, width - np.minimum(pos, width))
    keep = low_mask(a, inside)
    field = shift_right(a, pos) & keep
    if not is_signed:
        return field
    top = np.minimum(pos + size - np.where(size > 0, 1, 0).astype(U32), width - 1).astype(U32)
    sign = (size > 0) & ((shift_right(a, top) & a.dtype.type(1)) == 1)
    return np.where(sign, field | ~keep, field)


def insert(a: Words, b: Words, position: Words, length: Words) -> Words:
    """`bfi`: the low `length` bits of a placed into b at `position`; both operands taken modulo 256."""
    pos, size = position & 0xFF, length & 0xFF
    mask = shift_left(low_mask(a, size), pos)
    return (b & ~mask) | (shift_left(a, pos) & mask)


def find_highest(a: Words, is_signed: bool) -> Words:
    """`bfind`: position of the highest bit that differs from the sign (from zero if unsigned), or 0xffffffff."""
    x = np.where(negative(a), ~a, a) if is_signed else a
    return bit_length(x) - U32.type(1)


def find_nth(mask: Words, base: Words, offset: Words) -> Words:
    """`fns`: position of the |offset|-th set bit of `mask` from bit `base` on, upward or downward, or 0xffffffff."""
    start, count = base.astype(np.int64), signed(offset).astype(np.int64)
    step = np.where(count < 0, -1, 1)
    left = np.where(count == 0, 1, np.abs(count))
    out = np.full_like(mask, 0xFFFFFFFF)
    for k in range(32):
        at = start + step * k
        inside = (at >= 0) & (at < 32) & ((count != 0) | (k == 0))
        hit = inside & (((mask >> np.clip(at, 0, 31).astype(U32)) & 1) == 1)
        left = left - hit
        out = np.where(hit & (left == 0), at.astype(U32), out)
    return out


def funnel(a: Words, b: Words, count: Words, left: bool, wrap: bool) -> Words:
    """`shf`: the 64 bits b:a shifted by count; the high word for a left shift, the low word for a right shift."""
    n = ((count & 31) if wrap else np.minimum(count, 32)).astype(U64)
    both = (b.astype(U64) << U64.type(32)) | a.astype(U64)
    return ((both << n) >> U64.type(32) if left else both >> n).astype(U32)


_PRMT: Final[dict[int, tuple[tuple[int, ...], ...]]] = {  # selectors of d.b0 … d.b3 for c[1:0] = 0 … 3
    1: ((0, 1, 2, 3), (1, 2, 3, 4), (2, 3, 4, 5), (3, 4, 5, 6)),
    2: ((0, 7, 6, 5), (1, 0, 7, 6), (2, 1, 0, 7), (3, 2, 1, 0)),
    3: ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    4: ((0, 1, 2, 3), (1, 1, 2, 3), (2, 2, 2, 3), (3, 3, 3, 3)),
    5: ((0, 0, 0, 0), (0, 1, 1, 1), (0, 1, 2, 2), (0, 1, 2, 3)),
    6: ((0, 1, 0, 1), (2, 3, 2, 3), (0, 1, 0, 1), (2, 3, 2, 3)),
}


def permute(a: Words, b: Words, c: Words, mode: int) -> Words:
    """`prmt` in mode 0 (generic), 1 f4e, 2 b4e, 3 rc8, 4 ecl, 5 ecr, 6 rc16."""
    both = (b.astype(U64) << U64.type(32)) | a.astype(U64)
    out = np.zeros_like(a)
    for k in range(4):
        if mode:
            selector = np.array([row[k] for row in _PRMT[mode]], U32)[c & 3]
        else:
            selector = (c >> U32.type(4 * k)) & 15
        byte = ((both >> ((selector & 7) * 8).astype(U64)) & U64.type(0xFF)).astype(U32)
        byte = np.where(selector & 8, np.where(byte & 0x80, U32.type(0xFF), U32.type(0)), byte)
        out = out | (byte << U32.type(8 * k))
    return out


def lookup3(a: Words, b: Words, c: Words, table: int) -> Words:
    """`lop3`: bit i of the table is the value for inputs a, b, c = bits 2, 1, 0 of i."""
    out = np.zeros_like(a)
    for k in range(8):
        if table >> k & 1:
            out = out | ((a if k & 4 else ~a) & (b if k & 2 else ~b) & (c if k & 1 else ~c))
    return out

