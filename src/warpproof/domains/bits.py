"""The bits domain: exact register bits, one NumPy operation for all lanes.

A value is an array of unsigned words of the register's width (8, 16, 32, 64 bits; 128 bits as a last axis of two u64,
low first), a predicate an array of booleans. What the manual leaves open is chosen as docs/ledger.md says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from warpproof.core import Unsupported
from warpproof.domains import softdouble, softfloat, wordops
from warpproof.domains.base import Comparison, FloatMode, FloatOp, IntOp
from warpproof.domains.softfloat import Format, format_of
from warpproof.domains.wordops import U32, U64, Words, word
from warpproof.isa import ScalarType

Flags = NDArray[np.bool_]
_Double = NDArray[np.float64]


def _by_sign(operation: Any) -> Callable[..., Words]:
    return lambda is_signed, a, b: operation(a, b, is_signed)


def _minimum(is_signed: bool, a: Words, b: Words) -> Words:
    return np.minimum(wordops.signed(a), wordops.signed(b)).view(a.dtype) if is_signed else np.minimum(a, b)


def _maximum(is_signed: bool, a: Words, b: Words) -> Words:
    return np.maximum(wordops.signed(a), wordops.signed(b)).view(a.dtype) if is_signed else np.maximum(a, b)


_INTEGER: Final[dict[str, Callable[..., Words]]] = {  # (signed?, operands) → result
    "add": lambda _, a, b: a + b,
    "sub": lambda _, a, b: a - b,
    "mul_lo": lambda _, a, b: a * b,
    "mul_hi": _by_sign(wordops.multiply_high),
    "mul_wide": _by_sign(wordops.multiply_wide),
    "div": lambda s, a, b: wordops.divide(a, b, s)[0],
    "rem": lambda s, a, b: wordops.divide(a, b, s)[1],
    "min": _minimum,
    "max": _maximum,
    "neg": lambda _, a: ~a + a.dtype.type(1),
    "abs": lambda _, a: wordops.magnitude(a),
    "not": lambda _, a: ~a,
    "and": lambda _, a, b: a & b,
    "or": lambda _, a, b: a | b,
    "xor": lambda _, a, b: a ^ b,
    "shl": lambda _, a, n: wordops.shift_left(a, n),
    "shr": lambda s, a, n: wordops.shift_right_signed(a, n) if s else wordops.shift_right(a, n),
    "popc": lambda _, a: np.bitwise_count(a).astype(U32),
    "clz": lambda _, a: U32.type(wordops.bits_of(a)) - wordops.bit_length(a),
    "brev": lambda _, a: wordops.reverse(a),
    "bfind": lambda s, a: wordops.find_highest(a, s),
    "bfe": lambda s, a, b, c: wordops.extract(a, b, c, s),
    "bfi": lambda _, a, b, c, d: wordops.insert(a, b, c, d),
    "fns": lambda _, a, b, c: wordops.find_nth(a, b, c),
    "add_sat": lambda _, a, b: wordops.saturated(a, b, False),
    "sub_sat": lambda _, a, b: wordops.saturated(a, b, True),
    "shf_l_wrap": lambda _, a, b, n: wordops.funnel(a, b, n, True, True),
    "shf_l_clamp": lambda _, a, b, n: wordops.funnel(a, b, n, True, False),
    "shf_r_wrap": lambda _, a, b, n: wordops.funnel(a, b, n, False, True),
    "shf_r_clamp": lambda _, a, b, n: wordops.funnel(a, b, n, False, False),
}

_ORDER: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}  # fmt: skip
_APPROXIMATE: Final[dict[str, Callable[[_Double], _Double]]] = {
    "ex2": np.exp2, "lg2": np.log2, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x), "rcp": lambda x: 1.0 / x,
}  # fmt: skip
_NATIVE: Final[dict[str, Callable[..., Any]]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt,
}  # fmt: skip
_INTEGRAL: Final[dict[str, Callable[[_Double], _Double]]] = {
    "rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil,
}  # fmt: skip


class Bits:
    """Exact evaluation of every operation on `lanes` threads at once (implements `Domain`)."""

    __slots__ = ("lanes",)

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes

    def constant(self, ty: ScalarType, bits: int) -> Words:
        """The bit pattern `bits` (taken modulo 2^width) in every lane."""
        bits %= 1 << ty.width
        if ty.width == 128:
            return np.tile(np.array([bits & ((1 << 64) - 1), bits >> 64], U64), (self.lanes, 1))
        return np.full(self.lanes, bits, word(ty.width))

    def integer(self, op: IntOp, ty: ScalarType, *args: Words, control: int = 0) -> Words:
        """The operation modulo 2^width; popc, clz and bfind give u32, mul_wide twice the width."""
        if op == "lop3":
            return wordops.lookup3(args[0], args[1], args[2], control)
        if op == "prmt":
            return wordops.permute(args[0], args[1], args[2], control)
        if op not in _INTEGER:
            raise Unsupported(f"{op}.{ty}", "not an operation of the bits domain")
        with np.errstate(all="ignore"):
            return _INTEGER[op](ty.signed, *args)

    def floating(self, op: FloatOp, ty: ScalarType, mode: FloatMode, *args: Words) -> Words:
        """One correctly rounded operation; `.approx` functions are rounded from float64 (ledger: approximations)."""
        if ty.packed > 1:
            element = word(ty.width // ty.packed)
            lanes = [np.ascontiguousarray(a).view(element) for a in args]
            return self.floating(op, ty.element, mode, *lanes).view(word(ty.width))
        fmt = format_of(ty)
        if mode.ftz:
            args = tuple(softfloat.flush(fmt, a) for a in args)
        with np.errstate(all="ignore"):
            out = _float_result(op, fmt, mode, args)
        if mode.ftz:
            out = softfloat.flush(fmt, out)
        if mode.sat:
            out = softfloat.saturate(fmt, out)
        return softfloat.relu(fmt, out) if mode.relu else out

    def compare(self, op: Comparison, ty: ScalarType, a: Words, b: Words, ftz: bool = False) -> Flags:
        """The comparison by type; ordered float comparisons are false on NaN, unordered ones true."""
        if not ty.floating:
            if ty.signed:
                a, b = wordops.signed(a), wordops.signed(b)
            return np.asarray(_ORDER[op](a, b))
        fmt = format_of(ty)
        if ftz:
            a, b = softfloat.flush(fmt, a), softfloat.flush(fmt, b)
        unordered = softfloat.is_nan(fmt, a) | softfloat.is_nan(fmt, b)
        if op == "nan":
            return unordered
        if op == "num":
            return ~unordered
        x, y = softfloat.to_double(fmt, a), softfloat.to_double(fmt, b)
        with np.errstate(all="ignore"):
            if op in _ORDER:
                return np.asarray(_ORDER[op](x, y)) & ~unordered
            return np.asarray(_ORDER[op[:-1]](x, y)) | unordered

    def test(self, property: str, ty: ScalarType, a: Words) -> Flags:
        """`testp`: zeros count as normal."""
        fmt = format_of(ty)
        mag = a & a.dtype.type(fmt.sign - 1)
        infinity, least = a.dtype.type(fmt.infinity), a.dtype.type(fmt.smallest_normal)
        properties: dict[str, Flags] = {
            "finite": mag < infinity,
            "infinite": mag == infinity,
            "number": mag <= infinity,
            "notanumber": mag > infinity,
            "normal": (mag < infinity) & ((mag >= least) | (mag == 0)),
            "subnormal": (mag < least) & (mag != 0),
        }
        return properties[property]

    def truth(self, value: bool) -> Flags:
        """The constant predicate."""
        return np.full(self.lanes, value, np.bool_)

    def predicate(self, op: Literal["and", "or", "xor", "not"], *args: Flags) -> Flags:
        """Boolean operations on predicates."""
        match op:
            case "not":
                return ~args[0]
            case "and":
                return args[0] & args[1]
            case "or":
                return args[0] | args[1]
            case "xor":
                return args[0] ^ args[1]

    def select(self, ty: ScalarType, p: Flags, a: Words, b: Words) -> Words:
        """Lane-wise `p ? a : b`."""
        return np.where(p[..., None] if ty.width == 128 else p, a, b)

    def convert(self, dst: ScalarType, src: ScalarType, mode: FloatMode, a: Words) -> Words:
        """`cvt`: the value in the destination type, rounded and clamped as the mode and the manual say."""
        if src.floating and mode.ftz and (src.kind, src.width) == ("f", 32):
            a = softfloat.flush(format_of(src), a)
        with np.errstate(all="ignore"):
            if not src.floating and not dst.floating:
                return _resize_integer(dst, src, mode.sat, a)
            if not dst.floating:
                return _float_to_integer(dst, format_of(src), mode, a)
            fmt = format_of(dst)
            out = _to_float(dst, src, mode, a)
        if mode.ftz and (dst.kind, dst.width) == ("f", 32):
            out = softfloat.flush(fmt, out)
        if mode.sat:
            out = softfloat.saturate(fmt, out)
        return softfloat.relu(fmt, out) if mode.relu else out

    def pack(self, width: int, parts: Sequence[Words]) -> Words:
        """The parts side by side, the first in the low bits."""
        if width == 128:
            words = parts if len(parts) == 2 else [self.pack(64, parts[:2]), self.pack(64, parts[2:])]
            return np.stack(list(words), axis=-1)
        dtype = word(width)
        step = width // len(parts)
        out = parts[0].astype(dtype)
        for k, part in enumerate(parts[1:], 1):
            out = out | (part.astype(dtype) << dtype.type(k * step))
        return out

    def unpack(self, width: int, value: Words, parts: int) -> tuple[Words, ...]:
        """The equal pieces of a value, low bits first."""
        if width == 128:
            low, high = value[..., 0], value[..., 1]
            return (low, high) if parts == 2 else self.unpack(64, low, parts // 2) + self.unpack(64, high, parts // 2)
        step = width // parts
        small = word(step)
        return tuple((value >> value.dtype.type(k * step)).astype(small) for k in range(parts))

    def resize(self, width: int, value: Words) -> Words:
        """The raw bits truncated or zero-extended to `width`."""
        wide = value.ndim > 1 and value.shape[-1] == 2 and value.shape[0] == self.lanes
        if width == 128:
            return value if wide else np.stack([value.astype(U64), np.zeros(value.shape, U64)], axis=-1)
        return (value[..., 0] if wide else value).astype(word(width), copy=False)


def _float_result(op: str, fmt: Format, mode: FloatMode, args: tuple[Words, ...]) -> Words:
    a = args[0]
    sign = a.dtype.type(fmt.sign)
    match op:
        case "neg":
            return np.asarray(a ^ sign)
        case "abs":
            return np.asarray(a & ~sign)
        case "copysign":
            return np.asarray((args[1] & ~sign) | (a & sign))
        case "min" | "max":
            return _extremum(op, fmt, mode, a, args[1])
        case "rsqrt" | "ex2" | "lg2" | "sin" | "cos" | "tanh":
            return _approximate(op, fmt, args)
        case _ if mode.approx:
            return _approximate_divide(fmt, mode, a, args[1]) if op == "div" else _approximate(op, fmt, args)
        case _ if fmt.width == 64:
            return _double(op, mode.rounding, args)
        case _ if fmt.width == 32 and mode.rounding == "rn" and op in _NATIVE:
            return softfloat.canonical(fmt, _NATIVE[op](*(x.view(np.float32) for x in args)).view(U32))
        case _:
            return softfloat.round_to(fmt, _odd(op, fmt, mode.rounding, args), mode.rounding)


def _odd(op: str, fmt: Format, rounding: str, args: tuple[Words, ...]) -> _Double:
    """The result of an operation of a format of at most 24 bits, rounded to odd in float64."""
    x = [softfloat.to_double(fmt, a) for a in args]
    match op:
        case "add":
            return softfloat.add(x[0], x[1], rounding)
        case "sub":
            return softfloat.add(x[0], -x[1], rounding)
        case "mul":
            return x[0] * x[1]
        case "fma":
            return softfloat.fma(x[0], x[1], x[2], rounding)
        case "div":
            return softfloat.divide(x[0], x[1])
        case "rcp":
            return softfloat.divide(np.ones_like(x[0]), x[0])
        case "sqrt":
            return softfloat.root(x[0])
        case _:
            raise Unsupported(op, "not a float operation of the bits domain")


def _double(op: str, rounding: str, args: tuple[Words, ...]) -> Words:
    """An f64 operation: native for rounding to nearest, else exactly on integers."""
    fmt = softfloat.FORMATS["f", 64]
    if op == "rcp":
        op, args = "div", (np.full_like(args[0], fmt.one), args[0])
    if rounding == "rn" and op in _NATIVE:
        return softfloat.canonical(fmt, _NATIVE[op](*(x.view(np.float64) for x in args)).view(U64))
    if op == "sub":
        op, args = "add", (args[0], args[1] ^ U64.type(fmt.sign))
    if op not in ("add", "mul", "fma", "div", "sqrt"):
        raise Unsupported(f"{op}.f64", "not a float operation of the bits domain")
    return softdouble.compute(op, rounding, *args)


def _extremum(op: str, fmt: Format, mode: FloatMode, a: Words, b: Words) -> Words:
    signs = (a ^ b) & a.dtype.type(fmt.sign)
    if mode.xorsign:
        a, b = a & ~a.dtype.type(fmt.sign), b & ~b.dtype.type(fmt.sign)
    nan_a, nan_b = softfloat.is_nan(fmt, a), softfloat.is_nan(fmt, b)
    lower = softfloat.order_key(fmt, a) < softfloat.order_key(fmt, b)
    out = np.where(lower == (op == "min"), a, b)
    out = np.where(nan_a, b, np.where(nan_b, a, out))
    none = nan_a | nan_b if mode.nan else nan_a & nan_b
    if mode.xorsign:
        out = out | signs
    return np.where(none, a.dtype.type(fmt.nan), out)


def _approximate(op: str, fmt: Format, args: tuple[Words, ...]) -> Words:
    x = _APPROXIMATE[op](softfloat.to_double(fmt, args[0]))
    if fmt.width == 64:
        return softfloat.canonical(fmt, x.view(U64))
    return softfloat.round_to(fmt, x)


def _approximate_divide(fmt: Format, mode: FloatMode, a: Words, b: Words) -> Words:
    """a / b rounded from float64; without .full, a divisor above 2^126 gives zero, or NaN for an infinite a."""
    x, y = softfloat.to_double(fmt, a), softfloat.to_double(fmt, b)
    q = x / y
    if not mode.full:
        huge = (np.abs(y) > 2.0**126) & np.isfinite(y)
        q = np.where(huge, x * (0.0 * y), q)
    return softfloat.round_to(fmt, q)


def _resize_integer(dst: ScalarType, src: ScalarType, sat: bool, a: Words) -> Words:
    """Integer to integer: extended by the source's sign, truncated, or clamped to the destination's range."""
    if not sat:
        return (wordops.signed(a) if src.signed else a).astype(word(dst.width))
    low, high = (-(1 << dst.width - 1), (1 << dst.width - 1) - 1) if dst.signed else (0, (1 << dst.width) - 1)
    if src.signed:
        value = wordops.signed(a).astype(np.int64)
        value = np.clip(value, max(low, -(1 << 63)), min(high, (1 << 63) - 1))
        return value.astype(word(dst.width))
    return np.minimum(a.astype(U64), U64.type(high)).astype(word(dst.width))


def _float_to_integer(dst: ScalarType, fmt: Format, mode: FloatMode, a: Words) -> Words:
    """Rounded to integral, clamped to the range; NaN gives 0, or the top bit alone when a 64-bit type is involved."""
    x = softfloat.to_double(fmt, a)
    nan = np.isnan(x)
    r = _INTEGRAL[mode.rounding](np.where(nan, 0.0, x))
    width = dst.width
    low, high = (-(1 << width - 1), (1 << width - 1) - 1) if dst.signed else (0, (1 << width) - 1)
    over, under = r >= float(high + 1), r < float(low)
    inside = np.where(over | under, 0.0, r)
    kind = np.int64 if dst.signed else np.uint64
    out = inside.astype(kind).astype(word(width))
    out = np.where(over, word(width).type(high), out)
    out = np.where(under, word(width).type(low % (1 << width)), out)
    invalid = 1 << (width - 1) if fmt.width == 64 or width == 64 else 0
    return np.where(nan, word(width).type(invalid), out)


def _to_float(dst: ScalarType, src: ScalarType, mode: FloatMode, a: Words) -> Words:
    fmt = format_of(dst)
    rounding = mode.rounding
    if src.floating and rounding not in _INTEGRAL and not mode.satfinite:
        if src == dst:
            return softfloat.canonical(fmt, a)
        if rounding == "rn" and (str(dst), str(src)) == ("f16", "f32"):
            return softfloat.canonical(fmt, a.view(np.float32).astype(np.float16).view(word(16)))
    if src.floating:
        x = softfloat.to_double(format_of(src), a)
        error = np.zeros_like(x)
        if rounding in _INTEGRAL:
            x, rounding = _INTEGRAL[rounding](x), "rn"
    else:
        x, error = _integer_to_double(src, a)
    if fmt.width == 64:
        return softfloat.canonical(fmt, softfloat.adjust(x, error, rounding).view(U64))
    return softfloat.round_to(fmt, softfloat.to_odd(x, error), rounding, mode.satfinite)


def _integer_to_double(src: ScalarType, a: Words) -> tuple[_Double, _Double]:
    """The integer to nearest, and the exact error."""
    value = wordops.signed(a) if src.signed else a
    if src.width < 64:
        x = value.astype(np.float64)
        return x, np.zeros_like(x)
    low = (a & U64.type(0xFFFFFFFF)).astype(np.float64)
    high = (value >> value.dtype.type(32)).astype(np.float64) * 2.0**32
    return softfloat.two_sum(high, low)
