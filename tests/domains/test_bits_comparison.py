"""Comparisons, extrema, sign operations and `testp` of the bits domain, on exact rationals."""

from __future__ import annotations

import operator
from itertools import product

import float_oracle as oracle
import numpy as np
import pytest

from warpproof.domains import Bits, FloatMode
from warpproof.isa import scalar

FORMATS = ("f16", "bf16", "f32", "f64")
ORDERED = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
}  # fmt: skip


def grid(name: str) -> tuple[list[tuple[int, int]], np.ndarray, np.ndarray]:
    rows = list(product(oracle.corners(name), repeat=2))
    dtype = f"u{scalar(name).width // 8}"
    return rows, np.array([r[0] for r in rows], dtype), np.array([r[1] for r in rows], dtype)


def extended(name: str, bits: int) -> object:
    """A key that orders infinities and rationals; None for NaN."""
    x = oracle.decode(name, bits)
    if x.kind == "nan":
        return None
    sign = -1 if x.negative else 1
    return (sign, 0) if x.kind == "inf" else (0, x.value)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("op", ORDERED)
def test_ordered_and_unordered_comparisons(name: str, op: str) -> None:
    rows, a, b = grid(name)
    dom, ty = Bits(len(rows)), scalar(name)
    keys = [(extended(name, x), extended(name, y)) for x, y in rows]
    ordered = [x is not None and y is not None and ORDERED[op](x, y) for x, y in keys]
    unordered = [x is None or y is None or ORDERED[op](x, y) for x, y in keys]
    assert dom.compare(op, ty, a, b).tolist() == ordered
    assert dom.compare(f"{op}u", ty, a, b).tolist() == unordered


@pytest.mark.parametrize("name", FORMATS)
def test_num_and_nan(name: str) -> None:
    rows, a, b = grid(name)
    dom, ty = Bits(len(rows)), scalar(name)
    nan = [None in (extended(name, x), extended(name, y)) for x, y in rows]
    assert dom.compare("nan", ty, a, b).tolist() == nan
    assert dom.compare("num", ty, a, b).tolist() == [not n for n in nan]


def test_comparison_with_ftz_takes_subnormals_as_zero() -> None:
    dom, f32 = Bits(1), scalar("f32")
    tiny, zero = np.array([1], np.uint32), np.array([0x80000000], np.uint32)
    assert dom.compare("eq", f32, tiny, zero, ftz=True).tolist() == [True]
    assert dom.compare("gt", f32, tiny, zero).tolist() == [True]


def key(name: str, bits: int) -> tuple[object, bool]:
    return extended(name, bits), not oracle.decode(name, bits).negative  # -0 < +0


def expected_extremum(name: str, a: int, b: int, larger: bool, propagate: bool, xorsign: bool) -> int:
    sign = oracle.zero(name, True)
    result_sign = (a ^ b) & sign
    if xorsign:
        a, b = a & ~sign, b & ~sign
    nan_a, nan_b = (oracle.decode(name, x).kind == "nan" for x in (a, b))
    if (nan_a and nan_b) or (propagate and (nan_a or nan_b)):
        return oracle.NANS[name]
    if nan_a or nan_b:
        out = b if nan_a else a
    else:
        out = (max if larger else min)((a, b), key=lambda x: key(name, x))
    return out | result_sign if xorsign else out


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("larger", [False, True])
@pytest.mark.parametrize("propagate", [False, True])
@pytest.mark.parametrize("xorsign", [False, True])
def test_min_and_max(name: str, larger: bool, propagate: bool, xorsign: bool) -> None:
    rows, a, b = grid(name)
    mode = FloatMode(nan=propagate, xorsign=xorsign)
    out = Bits(len(rows)).floating("max" if larger else "min", scalar(name), mode, a, b).tolist()
    assert out == [expected_extremum(name, x, y, larger, propagate, xorsign) for x, y in rows]


@pytest.mark.parametrize("name", FORMATS)
def test_sign_operations_touch_the_sign_bit_only(name: str) -> None:
    rows, a, b = grid(name)
    sign, dom, ty = oracle.zero(name, True), Bits(len(rows)), scalar(name)
    assert dom.floating("neg", ty, FloatMode(), a).tolist() == [x ^ sign for x, _ in rows]
    assert dom.floating("abs", ty, FloatMode(), a).tolist() == [x & ~sign for x, _ in rows]
    assert dom.floating("copysign", ty, FloatMode(), a, b).tolist() == [(y & ~sign) | (x & sign) for x, y in rows]


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_number_properties(name: str) -> None:
    values = oracle.corners(name)
    a = np.array(values, f"u{scalar(name).width // 8}")
    decoded = [oracle.decode(name, v) for v in values]
    _, exponent_bits, _ = oracle.SHAPES[name]
    least = oracle.Fraction(2) ** (2 - (1 << (exponent_bits - 1)))
    subnormal = [d.kind == "finite" and 0 < d.magnitude < least for d in decoded]
    expected = {
        "finite": [d.kind == "finite" for d in decoded],
        "infinite": [d.kind == "inf" for d in decoded],
        "number": [d.kind != "nan" for d in decoded],
        "notanumber": [d.kind == "nan" for d in decoded],
        "subnormal": subnormal,
        "normal": [d.kind == "finite" and not s for d, s in zip(decoded, subnormal, strict=True)],
    }
    dom = Bits(len(values))
    for property_name, answer in expected.items():
        assert dom.test(property_name, scalar(name), a).tolist() == answer
