"""Binary floating-point formats on bit patterns: exact conversion to float64 and one rounding back.

Every format here has at most 24 significant bits, so float64 holds its values exactly. An operation is computed in
float64 together with the sign of its error and rounded to odd; rounding that to the format is then a single correct
rounding in every mode (Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from warpproof.domains.wordops import U32, U64, Words, word
from warpproof.isa import ScalarType

Doubles = NDArray[np.float64]
_SIGN64: Final = U64.type(1 << 63)


@dataclass(frozen=True, slots=True)
class Format:
    """A binary format: storage width, exponent and stored significand bits, low bits unused (tf32), infinities, NaN."""

    width: int
    exponent: int
    fraction: int
    nan: int
    unused: int = 0
    infinite: bool = True

    @property
    def sign(self) -> int:
        """The sign bit."""
        return 1 << (self.width - 1)

    @property
    def bias(self) -> int:
        """The exponent bias."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def infinity(self) -> int:
        """Bits of +infinity; one past the largest finite value where the format has none."""
        if not self.infinite:
            return self.nan
        return ((1 << self.exponent) - 1) << (self.fraction + self.unused)

    @property
    def largest(self) -> int:
        """Bits of the largest finite value."""
        return self.infinity - (1 << self.unused)

    @property
    def smallest_normal(self) -> int:
        """Bits of the smallest normal value."""
        return 1 << (self.fraction + self.unused)

    @property
    def one(self) -> int:
        """Bits of 1.0."""
        return self.bias << (self.fraction + self.unused)


FORMATS: Final = {
    ("f", 64): Format(64, 11, 52, 0x7FF8000000000000),
    ("f", 32): Format(32, 8, 23, 0x7FFFFFFF),
    ("f", 16): Format(16, 5, 10, 0x7FFF),
    ("bf", 16): Format(16, 8, 7, 0x7FFF),
    ("tf", 32): Format(32, 8, 10, 0x7FFFFFFF & ~0x1FFF, unused=13),
    ("e4m3", 8): Format(8, 4, 3, 0x7F, infinite=False),
    ("e5m2", 8): Format(8, 5, 2, 0x7F),
}


def format_of(ty: ScalarType) -> Format:
    """The format of a floating scalar type."""
    return FORMATS[ty.kind, ty.width]


def is_nan(fmt: Format, a: Words) -> NDArray[np.bool_]:
    """Where the pattern is a NaN."""
    mag = a & a.dtype.type(fmt.sign - 1)
    result: NDArray[np.bool_] = mag > a.dtype.type(fmt.infinity) if fmt.infinite else mag >= a.dtype.type(fmt.nan)
    return result


def flush(fmt: Format, a: Words) -> Words:
    """Subnormal patterns replaced by zero of the same sign."""
    mag = a & a.dtype.type(fmt.sign - 1)
    return np.where(mag < a.dtype.type(fmt.smallest_normal), a & a.dtype.type(fmt.sign), a)


def canonical(fmt: Format, a: Words) -> Words:
    """Every NaN replaced by the format's canonical NaN."""
    return np.where(is_nan(fmt, a), a.dtype.type(fmt.nan), a)


def saturate(fmt: Format, a: Words) -> Words:
    """Clamped to [+0, 1], NaN to +0."""
    low = (a & a.dtype.type(fmt.sign)) != 0
    a = np.where(low | is_nan(fmt, a), a.dtype.type(0), a)
    result: Words = np.minimum(a, a.dtype.type(fmt.one))
    return result


def relu(fmt: Format, a: Words) -> Words:
    """Negative values (and -0) replaced by +0, NaN by the canonical NaN."""
    low = (a & a.dtype.type(fmt.sign)) != 0
    return np.where(is_nan(fmt, a), a.dtype.type(fmt.nan), np.where(low, a.dtype.type(0), a))


def order_key(fmt: Format, a: Words) -> Words:
    """Unsigned keys in the order of the values, -0 below +0 (not for NaN)."""
    sign = a.dtype.type(fmt.sign)
    return np.where(a & sign != 0, ~a, a | sign)


def small_table(fmt: Format) -> Doubles:
    """The value of each pattern of an 8-bit format."""
    out = []
    for code in range(256):
        mag, sign = code & 0x7F, -1.0 if code & 0x80 else 1.0
        e, f = mag >> fmt.fraction, mag & ((1 << fmt.fraction) - 1)
        if mag > (fmt.infinity if fmt.infinite else fmt.largest):
            out.append(float("nan"))
        elif fmt.infinite and mag == fmt.infinity:
            out.append(sign * float("inf"))
        else:
            scaled = (f + (1 << fmt.fraction if e else 0)) * 2.0 ** (max(e, 1) - fmt.bias - fmt.fraction)
            out.append(sign * scaled)
    return np.array(out, np.float64)


_SMALL: Final[dict[Format, Doubles]] = {}


def to_double(fmt: Format, a: Words) -> Doubles:
    """The exact value of each pattern; NaN for NaN."""
    with np.errstate(all="ignore"):
        if fmt.width == 64:
            return a.view(np.float64)
        if fmt.width == 32:
            return a.view(np.float32).astype(np.float64)
        if fmt.width == 16 and fmt.exponent == 5:
            return a.view(np.float16).astype(np.float64)
        if fmt.width == 16:
            return (a.astype(U32) << U32.type(16)).view(np.float32).astype(np.float64)
    if fmt not in _SMALL:
        _SMALL[fmt] = small_table(fmt)
    return _SMALL[fmt][a]


def round_to(fmt: Format, x: Doubles, rounding: str = "rn", satfinite: bool = False) -> Words:
    """x rounded once to a format of at most 24 significant bits: rn rz rm rp rna; NaN becomes the canonical NaN."""
    if fmt.width == 32 and not fmt.unused and rounding == "rn" and not satfinite:
        return canonical(fmt, x.astype(np.float32).view(U32))
    bits = np.ascontiguousarray(x).view(U64)
    negative = bits >= _SIGN64
    mag = bits & ~_SIGN64
    exponent = (mag >> U64.type(52)).astype(np.int64)
    significand = (mag & U64.type((1 << 52) - 1)) | np.where(exponent > 0, U64.type(1 << 52), U64.type(0))
    scale = np.maximum(exponent, 1) - 1023
    least = 1 - fmt.bias
    shift = np.minimum(52 - fmt.fraction + np.maximum(least - scale, 0), 54).astype(U64)
    kept = significand >> shift
    rest = significand - (kept << shift)
    half = U64.type(1) << (shift - U64.type(1))
    kept = kept + _increment(rounding, negative, kept, rest, half)
    biased = (np.maximum(scale, least) + fmt.bias - 1).astype(U64)
    finite = ((biased << U64.type(fmt.fraction)) + kept) << U64.type(fmt.unused)
    out = np.where(exponent == 2047, U64.type(fmt.infinity), finite)
    overflow = (out >= U64.type(fmt.infinity)) & ((exponent < 2047) | satfinite)
    out = np.where(overflow, _overflow(fmt, rounding, negative, satfinite), out)
    out = out | np.where(negative, U64.type(fmt.sign), U64.type(0))
    nan = (exponent == 2047) & (mag > U64.type(0x7FF << 52))
    return np.where(nan, U64.type(fmt.nan), out).astype(word(fmt.width))


def _increment(rounding: str, negative: NDArray[np.bool_], kept: Words, rest: Words, half: Words) -> Words:
    match rounding:
        case "rn":
            up = (rest > half) | ((rest == half) & ((kept & U64.type(1)) == 1))
        case "rna":
            up = rest >= half
        case "rm":
            up = negative & (rest != 0)
        case "rp":
            up = ~negative & (rest != 0)
        case "rz":
            up = np.zeros_like(negative)
        case _:
            raise ValueError(f"rounding {rounding}")
    result: Words = up.astype(U64)
    return result


def _overflow(fmt: Format, rounding: str, negative: NDArray[np.bool_], satfinite: bool) -> Any:
    largest, infinity = U64.type(fmt.largest), U64.type(fmt.infinity)
    if satfinite or rounding == "rz":
        return largest
    match rounding:
        case "rm":
            return np.where(negative, infinity, largest)
        case "rp":
            return np.where(negative, largest, infinity)
        case _:
            return infinity


def to_odd(x: Doubles, error: Doubles) -> Doubles:
    """x + error rounded to odd, where x is that sum rounded to nearest; a NaN error counts as zero."""
    up, down = error > 0, error < 0
    toward_zero = np.where(x > 0, down, up)
    return ((x.view(U64) - toward_zero) | (up | down)).view(np.float64)


def adjust(x: Doubles, error: Doubles, rounding: str) -> Doubles:
    """x + error rounded to float64 in the mode, where x is that sum rounded to nearest."""
    if rounding == "rn":
        return x
    match rounding:
        case "rm":
            step = error < 0
        case "rp":
            step = error > 0
        case _:
            step = error * x < 0
    toward = {"rm": -np.inf, "rp": np.inf}.get(rounding, 0.0)
    return np.where(step, np.nextafter(x, toward), x)


def two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """a + b to nearest, and the exact error (Knuth); the error is NaN where the sum is not finite."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def product_error(a: Doubles, b: Doubles, p: Doubles) -> Doubles:
    """a*b - p exactly, for p = a*b to nearest, away from overflow and underflow (Dekker, Veltkamp)."""
    splitter = 134217729.0
    t = splitter * a
    ah = t - (t - a)
    al = a - ah
    t = splitter * b
    bh = t - (t - b)
    bl = b - bh
    return ((ah * bh - p) + ah * bl + al * bh) + al * bl


def zero_sum_sign(s: Doubles, a: Doubles, b: Doubles, rounding: str) -> Doubles:
    """An exact zero sum of values of opposite sign is -0 when rounding down."""
    if rounding != "rm":
        return s
    return np.where((s == 0) & (np.signbit(a) != np.signbit(b)), -0.0, s)


def add(a: Doubles, b: Doubles, rounding: str) -> Doubles:
    """a + b rounded to odd."""
    with np.errstate(all="ignore"):
        s, error = two_sum(a, b)
        return zero_sum_sign(to_odd(s, error), a, b, rounding)


def fma(a: Doubles, b: Doubles, c: Doubles, rounding: str) -> Doubles:
    """a*b + c rounded to odd; a*b must be exact in float64."""
    with np.errstate(all="ignore"):
        return add(a * b, c, rounding)


def divide(a: Doubles, b: Doubles) -> Doubles:
    """a / b rounded to odd."""
    with np.errstate(all="ignore"):
        q = a / b
        p = q * b
        rest = (a - p) - product_error(q, b, p)
        return to_odd(q, rest * np.sign(b))


def root(a: Doubles) -> Doubles:
    """The square root rounded to odd; NaN below zero, -0 for -0."""
    with np.errstate(all="ignore"):
        q = np.sqrt(a)
        p = q * q
        return to_odd(q, (a - p) - product_error(q, q, p))
