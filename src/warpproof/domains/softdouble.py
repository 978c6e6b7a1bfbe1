"""Correctly rounded f64 operations that float64 hardware does not give: fused multiply-add and directed rounding.

Each lane is computed on Python integers, exactly.
"""

from __future__ import annotations

from math import isqrt
from typing import Final

import numpy as np

from warpproof.domains.wordops import U64, Words

_FRACTION: Final = 52
_INFINITY: Final = 0x7FF << 52
_NAN: Final = 0x7FF8000000000000
_SIGN: Final = 1 << 63


def _decode(bits: int) -> tuple[int, int]:
    """(integer, exponent) with value integer * 2^exponent, for a finite pattern; the integer carries the sign."""
    e, f = bits >> _FRACTION & 0x7FF, bits & ((1 << _FRACTION) - 1)
    value = f | (1 << _FRACTION) if e else f
    return (-value if bits & _SIGN else value), max(e, 1) - 1075


def _round(negative: bool, value: int, exponent: int, sticky: bool, rounding: str) -> int:
    """The pattern of (value + sticky fraction) * 2^exponent, value > 0 (at least 55 bits when sticky), rounded once."""
    shift = max(value.bit_length() - 53, -1074 - exponent)
    if shift > 0:
        kept, rest = value >> shift, value & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        tie = rest == half and not sticky
        above = rest > half or (rest == half and sticky)
        inexact = rest != 0 or sticky
    else:
        kept, tie, above, inexact = value << -shift, False, False, sticky
    exponent += shift
    match rounding:
        case "rn":
            kept += above or (tie and kept & 1 == 1)
        case "rm":
            kept += negative and inexact
        case "rp":
            kept += not negative and inexact
        case _:
            pass
    out = ((exponent + 1074) << _FRACTION) + kept
    if out >= _INFINITY:
        toward_zero = rounding == "rz" or rounding == ("rp" if negative else "rm")
        out = _INFINITY - 1 if toward_zero else _INFINITY
    return out | (_SIGN if negative else 0)


def _special(*patterns: int) -> bool:
    return any(p & _INFINITY == _INFINITY for p in patterns)


def _native(op: str, args: tuple[int, ...]) -> int:
    """The result where an operand is infinite or NaN (rounding plays no part)."""
    with np.errstate(all="ignore"):
        x = [np.array(a, U64).view(np.float64) for a in args]
        match op:
            case "add":
                r = x[0] + x[1]
            case "mul":
                r = x[0] * x[1]
            case "fma":
                r = x[0] * x[1] + x[2] if not np.isinf(x[2]) or _special(*args[:2]) else x[2]
            case "div":
                r = x[0] / x[1]
            case _:
                r = np.sqrt(x[0])
    return _NAN if np.isnan(r) else int(np.asarray(r).view(U64))


def _sum(m: int, e: int, n: int, f: int, rounding: str, zero: int) -> int:
    """m*2^e + n*2^f rounded; `zero` is the pattern when both terms are zeros of one sign, -1 otherwise."""
    low = min(e, f)
    total = (m << (e - low)) + (n << (f - low))
    if total == 0:
        return zero if zero >= 0 else _SIGN if rounding == "rm" else 0
    return _round(total < 0, abs(total), low, False, rounding)


def _lane(op: str, rounding: str, args: tuple[int, ...]) -> int:
    if _special(*args):
        return _native(op, args)
    a = args[0]
    m, e = _decode(a)
    if op == "sqrt":
        if m <= 0:
            return a if m == 0 else _NAN
        shift = 130 + (e & 1)
        value = m << shift
        r = isqrt(value)
        return _round(False, r, (e - shift) // 2, r * r != value, rounding)
    b = args[1]
    n, f = _decode(b)
    sign = (a ^ b) & _SIGN
    if op == "add":
        return _sum(m, e, n, f, rounding, a if m == n == 0 and not sign else -1)
    if op == "div":
        if n == 0:
            return _NAN if m == 0 else sign | _INFINITY
        if m == 0:
            return sign
        q, r = divmod(abs(m) << 120, abs(n))
        return _round(sign != 0, q, e - 120 - f, r != 0, rounding)
    if op == "mul":
        return sign if m * n == 0 else _round(m * n < 0, abs(m * n), e + f, False, rounding)
    c = args[2]
    k, g = _decode(c)
    zero = c if m * n == 0 and k == 0 and not (sign ^ c) & _SIGN else -1
    return _sum(m * n, e + f, k, g, rounding, zero)


def compute(op: str, rounding: str, *args: Words) -> Words:
    """`add`, `mul`, `fma`, `div` or `sqrt` of f64 patterns, rounded once in the mode; NaN results are canonical."""
    lists = [np.broadcast_to(a, args[0].shape).ravel().tolist() for a in args]
    out = [_lane(op, rounding, lane) for lane in zip(*lists)]
    return np.array(out, U64).reshape(args[0].shape)
