"""IEEE formats on exact rationals, written without the code under test: decode, round, and the basic operations."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

SHAPES = {"f16": (16, 5, 10), "bf16": (16, 8, 7), "f32": (32, 8, 23), "f64": (64, 11, 52), "e5m2": (8, 5, 2)}
NANS = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0x7FF8000000000000, "e5m2": 0x7F}
MODES = ("rn", "rz", "rm", "rp")


@dataclass(frozen=True)
class Number:
    """A decoded pattern: kind nan, inf or finite; the sign; the magnitude."""

    kind: str
    negative: bool
    magnitude: Fraction = Fraction(0)

    @property
    def value(self) -> Fraction:
        return -self.magnitude if self.negative else self.magnitude


def decode(name: str, bits: int) -> Number:
    width, exponent_bits, fraction_bits = SHAPES[name]
    negative = bool(bits >> (width - 1))
    e = bits >> fraction_bits & ((1 << exponent_bits) - 1)
    f = bits & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if e == (1 << exponent_bits) - 1:
        return Number("nan" if f else "inf", negative)
    if e == 0:
        return Number("finite", negative, Fraction(f) * Fraction(2) ** (1 - bias - fraction_bits))
    return Number("finite", negative, Fraction(f + (1 << fraction_bits)) * Fraction(2) ** (e - bias - fraction_bits))


def infinity(name: str, negative: bool) -> int:
    width, exponent_bits, fraction_bits = SHAPES[name]
    return (((1 << exponent_bits) - 1) << fraction_bits) | (int(negative) << (width - 1))


def zero(name: str, negative: bool) -> int:
    return int(negative) << (SHAPES[name][0] - 1)


def floor_log2(x: Fraction) -> int:
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def round_value(name: str, x: Fraction, mode: str, sticky: bool = False) -> int:
    """The pattern nearest to x != 0 in the mode; `sticky`: the true magnitude is a little larger than |x|."""
    _, exponent_bits, fraction_bits = SHAPES[name]
    bias = (1 << (exponent_bits - 1)) - 1
    negative, mag = x < 0, abs(x)
    exponent = max(floor_log2(mag), 1 - bias)
    scaled = mag / Fraction(2) ** (exponent - fraction_bits)
    n = scaled.numerator // scaled.denominator
    rest = scaled - n
    half = Fraction(1, 2)
    above = rest > half or (rest == half and sticky)
    up = {
        "rn": above or (rest == half and not sticky and n % 2 == 1),
        "rna": rest >= half,
        "rz": False,
        "rm": negative and (rest > 0 or sticky),
        "rp": not negative and (rest > 0 or sticky),
    }[mode]
    n += up
    value = n * Fraction(2) ** (exponent - fraction_bits)
    if value >= Fraction(2) ** (bias + 1):
        stays = mode == "rz" or mode == ("rp" if negative else "rm")
        return infinity(name, negative) - (1 if stays else 0)
    if n == 0:
        return zero(name, negative)
    if n < 1 << fraction_bits:
        return n | zero(name, negative)
    exponent = floor_log2(value)
    n = int(value / Fraction(2) ** (exponent - fraction_bits))
    return ((exponent + bias) << fraction_bits | (n - (1 << fraction_bits))) | zero(name, negative)


def add(name: str, a: int, b: int, mode: str) -> int:
    x, y = decode(name, a), decode(name, b)
    return _add(name, x, y, mode)


def _add(name: str, x: Number, y: Number, mode: str) -> int:
    if "nan" in (x.kind, y.kind) or (x.kind == y.kind == "inf" and x.negative != y.negative):
        return NANS[name]
    if x.kind == "inf" or y.kind == "inf":
        return infinity(name, x.negative if x.kind == "inf" else y.negative)
    total = x.value + y.value
    if total == 0:
        same = x.negative == y.negative
        return zero(name, x.negative if same else mode == "rm")
    return round_value(name, total, mode)


def product(x: Number, y: Number) -> Number:
    negative = x.negative != y.negative
    if "nan" in (x.kind, y.kind):
        return Number("nan", False)
    if "inf" in (x.kind, y.kind):
        other = y if x.kind == "inf" else x
        return Number("nan" if other.kind == "finite" and other.magnitude == 0 else "inf", negative)
    return Number("finite", negative, x.magnitude * y.magnitude)


def multiply(name: str, a: int, b: int, mode: str) -> int:
    p = product(decode(name, a), decode(name, b))
    if p.kind == "nan":
        return NANS[name]
    if p.kind == "inf":
        return infinity(name, p.negative)
    return round_value(name, p.value, mode) if p.magnitude else zero(name, p.negative)


def fma(name: str, a: int, b: int, c: int, mode: str) -> int:
    return _add(name, product(decode(name, a), decode(name, b)), decode(name, c), mode)


def divide(name: str, a: int, b: int, mode: str) -> int:
    x, y = decode(name, a), decode(name, b)
    negative = x.negative != y.negative
    zero_x = x.kind == "finite" and x.magnitude == 0
    zero_y = y.kind == "finite" and y.magnitude == 0
    if "nan" in (x.kind, y.kind) or (x.kind == y.kind == "inf") or (zero_x and zero_y):
        return NANS[name]
    if x.kind == "inf" or zero_y:
        return infinity(name, negative)
    if y.kind == "inf" or zero_x:
        return zero(name, negative)
    return round_value(name, x.value / y.value, mode)


def square_root(name: str, a: int, mode: str) -> int:
    x = decode(name, a)
    if x.kind == "nan" or (x.negative and (x.kind == "inf" or x.magnitude)):
        return NANS[name]
    if x.kind == "inf" or x.magnitude == 0:
        return a
    shifted = x.magnitude * Fraction(4) ** 1200
    r = isqrt(shifted.numerator)
    assert shifted.denominator == 1
    return round_value(name, Fraction(r) / Fraction(2) ** 1200, mode, sticky=r * r != shifted.numerator)


def corners(name: str) -> list[int]:
    width, exponent_bits, fraction_bits = SHAPES[name]
    bias = (1 << (exponent_bits - 1)) - 1
    one = bias << fraction_bits
    inf = infinity(name, False)
    positive = [
        0, 1, 2, (1 << fraction_bits) - 1, 1 << fraction_bits, (1 << fraction_bits) + 1, one - 1, one, one + 1,
        one + (1 << (fraction_bits - 1)), one + (1 << fraction_bits) - 1, (bias + 1) << fraction_bits,
        (bias + fraction_bits) << fraction_bits | 1, inf - 1, inf, inf + 1, inf | 1 << (fraction_bits - 1),
        (bias // 2) << fraction_bits | 5,
    ]  # fmt: skip
    return positive + [p | 1 << (width - 1) for p in positive]
