"""Binary float formats: bit patterns to exact values (IEEE 754; PTX ISA, fundamental types)."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from warpproof.core import Unsupported

_FORMATS: Final = {("f", 16): (5, 10), ("f", 32): (8, 23), ("f", 64): (11, 52), ("bf", 16): (8, 7), ("tf", 32): (8, 23)}


def exact_value(kind: str, width: int, bits: int) -> Fraction | str:
    """The exact value of a bit pattern, or "inf", "-inf", "nan"; `Unsupported` for the 8-bit formats."""
    if (kind, width) not in _FORMATS:
        raise Unsupported(f"{kind} constant", "no exact reading of this format")
    exponent_bits, fraction_bits = _FORMATS[kind, width]
    sign = -1 if bits >> (width - 1) & 1 else 1
    exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1)
    fraction = bits & ((1 << fraction_bits) - 1)
    bias = (1 << (exponent_bits - 1)) - 1
    if exponent == (1 << exponent_bits) - 1:
        return "nan" if fraction else ("inf" if sign > 0 else "-inf")
    if exponent == 0:
        return sign * Fraction(fraction, 1) * Fraction(2) ** (1 - bias - fraction_bits)
    return sign * Fraction((1 << fraction_bits) + fraction) * Fraction(2) ** (exponent - bias - fraction_bits)


LOG2E_F32: Final = exact_value("f", 32, 0x3FB8AA3B)
"""The f32 constant compilers use for log2 e."""

LN2_F32: Final = exact_value("f", 32, 0x3F317218)
"""The f32 constant compilers use for ln 2."""

LOG2E_LOW_F32: Final = exact_value("f", 32, 0x32A57060)
"""The f32 constant expf adds to the one for log2 e: log2 e less that constant, rounded."""


def power_of_two_times(x: Fraction | str, y: Fraction | str) -> bool:
    """x = ±2^k·y for an integer k."""
    ratio = abs(Fraction(x) / Fraction(y))
    n, d = ratio.numerator, ratio.denominator
    return n > 0 and n & (n - 1) == 0 and d & (d - 1) == 0
