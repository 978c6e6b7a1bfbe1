"""Numbers by their bits: value, decimal, hexadecimal float and unit in the last place of each element type."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A binary floating-point format: total width, exponent bits, mantissa bits, whether it has infinities."""

    width: int
    exponent: int
    mantissa: int
    infinities: bool = True

    @property
    def minimum_exponent(self) -> int:
        """The exponent of the smallest normal number."""
        return 2 - (1 << (self.exponent - 1))


FLOAT_FORMATS: Final[dict[str, FloatFormat]] = {
    "f64": FloatFormat(64, 11, 52), "f32": FloatFormat(32, 8, 23), "tf32": FloatFormat(32, 8, 23),
    "f16": FloatFormat(16, 5, 10), "bf16": FloatFormat(16, 8, 7), "e5m2": FloatFormat(8, 5, 2),
    "e4m3": FloatFormat(8, 4, 3, infinities=False),
}
INTEGER_WIDTHS: Final[dict[str, int]] = {
    **{f"{kind}{width}": width for kind in "iusb" for width in (8, 16, 32, 64)}, "bool": 8,
}


def element_width(dtype: str) -> int:
    """The width in bits of an element type; KeyError for a name that is none."""
    return FLOAT_FORMATS[dtype].width if dtype in FLOAT_FORMATS else INTEGER_WIDTHS[dtype]


def number(bits: int, dtype: str) -> float | int:
    """The number that the bits stand for: a float for float types, else an int (two's complement for i and s)."""
    if dtype not in FLOAT_FORMATS:
        width = INTEGER_WIDTHS[dtype]
        value = bits & ((1 << width) - 1)
        return value - (1 << width) if dtype[0] in "is" and value >> (width - 1) else value
    fmt = FLOAT_FORMATS[dtype]
    if dtype == "f64":
        return float(struct.unpack("<d", struct.pack("<Q", bits & (1 << 64) - 1))[0])
    sign = -1.0 if bits >> (fmt.width - 1) & 1 else 1.0
    exponent = bits >> fmt.mantissa & ((1 << fmt.exponent) - 1)
    mantissa = bits & ((1 << fmt.mantissa) - 1)
    top = exponent == (1 << fmt.exponent) - 1
    if top and fmt.infinities:
        return math.nan if mantissa else sign * math.inf
    if top and mantissa == (1 << fmt.mantissa) - 1:
        return math.nan
    if exponent == 0:
        return sign * math.ldexp(mantissa, fmt.minimum_exponent - fmt.mantissa)
    scaled = mantissa + (1 << fmt.mantissa)
    return sign * math.ldexp(scaled, exponent - 1 + fmt.minimum_exponent - fmt.mantissa)


def ulp(value: float, dtype: str) -> float:
    """The distance between neighbours of the format at `value` (at its smallest normal below that)."""
    fmt = FLOAT_FORMATS[dtype]
    exponent = math.frexp(value)[1] - 1 if value and math.isfinite(value) else fmt.minimum_exponent
    return math.ldexp(1.0, max(exponent, fmt.minimum_exponent) - fmt.mantissa)


def ulps_apart(expected: float, actual: float, dtype: str) -> float | None:
    """`|actual − expected|` in units of the format's last place at `expected`; None if either is not finite."""
    if dtype not in FLOAT_FORMATS or not (math.isfinite(expected) and math.isfinite(actual)):
        return None
    return abs(actual - expected) / ulp(expected, dtype)
