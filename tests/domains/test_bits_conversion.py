"""`convert` of the bits domain against Python integers, exact rationals and ml_dtypes."""

from __future__ import annotations

from fractions import Fraction

import float_oracle as oracle
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpproof.domains import Bits, FloatMode
from warpproof.isa import scalar

INTEGERS = ("u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
PLAIN = FloatMode()


def value_of(name: str, bits: int) -> int:
    width = int(name[1:])
    return bits - (1 << width) if name[0] == "s" and bits >> (width - 1) else bits


def range_of(name: str) -> tuple[int, int]:
    width = int(name[1:])
    return (-(1 << width - 1), (1 << width - 1) - 1) if name[0] == "s" else (0, (1 << width) - 1)


def integer_corners(name: str) -> list[int]:
    width = int(name[1:])
    top = 1 << width
    near = [0, 1, 2, 3, top // 2 - 1, top // 2, top // 2 + 1, top - 1, top - 2, 0x55 % top, 0xAA % top]
    return near + [(1 << k) + d for k in range(1, width - 1) for d in (-1, 0, 1)]


def convert(dst: str, src: str, mode: FloatMode, values: list[int]) -> list[int]:
    a = np.array(values, f"u{scalar(src).width // 8}")
    out = Bits(len(values)).convert(scalar(dst), scalar(src), mode, a)
    assert out.dtype == np.dtype(f"u{scalar(dst).width // 8}")
    return out.tolist()


@pytest.mark.parametrize("dst", INTEGERS)
@pytest.mark.parametrize("src", INTEGERS)
def test_integer_to_integer(dst: str, src: str) -> None:
    values = integer_corners(src)
    low, high = range_of(dst)
    width = int(dst[1:])
    wrapped = [value_of(src, v) % (1 << width) for v in values]
    clamped = [min(max(value_of(src, v), low), high) % (1 << width) for v in values]
    assert convert(dst, src, PLAIN, values) == wrapped
    assert convert(dst, src, FloatMode(sat=True), values) == clamped


@pytest.mark.parametrize("dst", FLOATS)
@pytest.mark.parametrize("src", INTEGERS)
@pytest.mark.parametrize("rounding", oracle.MODES)
def test_integer_to_float_rounds_once(dst: str, src: str, rounding: str) -> None:
    values = integer_corners(src)
    numbers = [value_of(src, v) for v in values]
    expected = [oracle.round_value(dst, Fraction(n), rounding) if n else 0 for n in numbers]
    assert convert(dst, src, FloatMode(rounding), values) == expected


def integral(x: Fraction, rounding: str) -> int:
    down = x.numerator // x.denominator
    rest = x - down
    match rounding:
        case "rmi":
            return down
        case "rpi":
            return down + (rest > 0)
        case "rzi":
            return down + (rest > 0 and x < 0)
        case _:
            return down + (rest > Fraction(1, 2) or (rest == Fraction(1, 2) and down % 2 == 1))


def float_values(name: str) -> list[int]:
    whole = (1, 3, 5, 7, 127, 128, 255, 256, 32767, 65535, 2**31 - 1, 2**31, 2**32, 2**63, 2**64)
    numbers = [Fraction(n, d) for n in whole for d in (1, 2, 4)]
    near = [oracle.round_value(name, s * x, "rz") for x in numbers for s in (1, -1)]
    return oracle.corners(name) + near + [v - 1 for v in near] + [v + 1 for v in near]


def expected_integer(dst: str, src: str, bits: int, rounding: str) -> int:
    width = int(dst[1:])
    low, high = range_of(dst)
    x = oracle.decode(src, bits)
    if x.kind == "nan":
        return 1 << (width - 1) if src == "f64" or width == 64 else 0
    if x.kind == "inf":
        return (low if x.negative else high) % (1 << width)
    return min(max(integral(x.value, rounding), low), high) % (1 << width)


@pytest.mark.parametrize("dst", INTEGERS)
@pytest.mark.parametrize("src", FLOATS)
@pytest.mark.parametrize("rounding", ["rni", "rzi", "rmi", "rpi"])
def test_float_to_integer_clamps(dst: str, src: str, rounding: str) -> None:
    values = float_values(src)
    assert convert(dst, src, FloatMode(rounding), values) == [expected_integer(dst, src, v, rounding) for v in values]


def expected_float(dst: str, src: str, bits: int, rounding: str) -> int:
    x = oracle.decode(src, bits)
    if x.kind == "nan":
        return oracle.NANS[dst]
    if x.kind == "inf":
        return oracle.infinity(dst, x.negative)
    return oracle.round_value(dst, x.value, rounding) if x.magnitude else oracle.zero(dst, x.negative)


@pytest.mark.parametrize("dst", FLOATS)
@pytest.mark.parametrize("src", FLOATS)
@pytest.mark.parametrize("rounding", oracle.MODES)
def test_float_to_float_rounds_once(dst: str, src: str, rounding: str) -> None:
    values = float_values(src)
    assert convert(dst, src, FloatMode(rounding), values) == [expected_float(dst, src, v, rounding) for v in values]


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**64 - 1), st.sampled_from(FLOATS[:3]), st.sampled_from(oracle.MODES))
def test_f64_narrows_with_one_rounding(bits: int, dst: str, rounding: str) -> None:
    assert convert(dst, "f64", FloatMode(rounding), [bits]) == [expected_float(dst, "f64", bits, rounding)]


@pytest.mark.parametrize("rounding", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("name", FLOATS)
def test_rounding_to_an_integral_value_keeps_the_format(name: str, rounding: str) -> None:
    values = [v for v in float_values(name) if oracle.decode(name, v).kind == "finite"]
    expected = []
    for v in values:
        x = oracle.decode(name, v)
        n = integral(x.value, rounding)
        expected.append(oracle.round_value(name, Fraction(n), "rn") if n else oracle.zero(name, x.negative))
    assert convert(name, name, FloatMode(rounding), values) == expected


def test_ftz_applies_to_f32_operands_and_results_only() -> None:
    assert convert("s32", "f32", FloatMode("rpi", ftz=True), [1]) == [0]
    assert convert("s32", "f32", FloatMode("rpi"), [1]) == [1]
    assert convert("f32", "f16", FloatMode(ftz=True), [1]) == [0x33800000]
    assert convert("f32", "f64", FloatMode("rn", ftz=True), [0x3800000000000000]) == [0]


def test_sat_clamps_float_results() -> None:
    assert convert("f32", "f32", FloatMode(sat=True), [0x40000000, 0xBF800000, 0x7FC00000]) == [0x3F800000, 0, 0]


def test_satfinite_gives_the_largest_finite_value() -> None:
    mode = FloatMode("rn", satfinite=True)
    values = [0x7F800000, 0xFF800000, 0x7FC00000, 0x48000000]
    assert convert("f16", "f32", mode, values) == [0x7BFF, 0xFBFF, 0x7FFF, 0x7BFF]


@pytest.mark.parametrize("bits", [0x3F801000, 0x3F802000, 0x3F803000, 0xBF801000, 0x00000FFF, 0x00001000, 0x7F7FF000])
def test_tf32_rounds_ties_away_and_clears_the_low_bits(bits: int) -> None:
    up = (bits & 0x7FFFFFFF) + 0x1000 & ~0x1FFF
    assert convert("tf32", "f32", FloatMode("rna"), [bits]) == [up | bits & 0x80000000]


@pytest.mark.parametrize(("name", "dtype"), [("e4m3", ml_dtypes.float8_e4m3fn), ("e5m2", ml_dtypes.float8_e5m2)])
def test_eight_bit_floats_against_ml_dtypes(name: str, dtype: type) -> None:
    codes = np.arange(256, dtype=np.uint8)
    with np.errstate(all="ignore"):
        back = codes.view(dtype).astype(np.float16)
    ours = Bits(256).convert(scalar("f16"), scalar(name), PLAIN, codes).view(np.float16)
    assert np.array_equal(ours, back, equal_nan=True)
    largest = float(ml_dtypes.finfo(dtype).max)
    x = np.random.default_rng(1).normal(0, 60, 4096).astype(np.float32).clip(-largest, largest)
    out = Bits(4096).convert(scalar(name), scalar("f32"), FloatMode("rn", satfinite=True), x.view(np.uint32))
    assert np.array_equal(out, x.astype(dtype).view(np.uint8))


@pytest.mark.parametrize(("name", "largest", "nan"), [("e4m3", 0x7E, 0x7F), ("e5m2", 0x7B, 0x7F)])
def test_eight_bit_floats_saturate(name: str, largest: int, nan: int) -> None:
    values = [0x7F800000, 0xFF800000, 0x4B000000, 0x7FC00000]
    out = convert(name, "f32", FloatMode("rn", satfinite=True), values)
    assert out == [largest, largest | 0x80, largest, nan]


@pytest.mark.parametrize(("name", "dtype"), [("f16", np.float16), ("bf16", ml_dtypes.bfloat16)])
def test_every_sixteen_bit_float_widens_exactly(name: str, dtype: type) -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        wide = codes.view(dtype).astype(np.float32)
    ours = Bits(1 << 16).convert(scalar("f32"), scalar(name), PLAIN, codes).view(np.float32)
    assert np.array_equal(ours, wide, equal_nan=True)
    assert np.array_equal(np.signbit(ours), np.signbit(wide) & ~np.isnan(wide))
