"""Float arithmetic of the bits domain against exact rationals, in every format and rounding mode."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import float_oracle as oracle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpproof.domains import Bits, FloatMode
from warpproof.isa import scalar

FORMATS = ("f16", "bf16", "f32", "f64")
BINARY: dict[str, Callable[..., int]] = {
    "add": oracle.add,
    "sub": lambda name, a, b, mode: oracle.add(name, a, b ^ oracle.zero(name, True), mode),
    "mul": oracle.multiply,
    "div": oracle.divide,
}
UNARY: dict[str, Callable[..., int]] = {
    "sqrt": oracle.square_root,
    "rcp": lambda name, a, mode: oracle.divide(name, oracle.round_value(name, oracle.Fraction(1), "rn"), a, mode),
}


def words(name: str, values: list[int]) -> np.ndarray:
    return np.array(values, f"u{scalar(name).width // 8}")


def check(name: str, op: str, mode: str, rows: list[tuple[int, ...]], expected: list[int]) -> None:
    columns = [words(name, list(column)) for column in zip(*rows, strict=True)]
    out = Bits(len(rows)).floating(op, scalar(name), FloatMode(mode), *columns)
    assert out.dtype == columns[0].dtype
    bad = [(tuple(map(hex, r)), hex(o), hex(e)) for r, o, e in zip(rows, out.tolist(), expected, strict=True) if o != e]
    assert not bad, f"{op}.{mode}.{name}: {bad[:3]}"


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("mode", oracle.MODES)
@pytest.mark.parametrize("op", BINARY)
def test_binary_operations_round_once_on_corner_values(name: str, mode: str, op: str) -> None:
    rows = list(product(oracle.corners(name), repeat=2))
    check(name, op, mode, rows, [BINARY[op](name, *row, mode) for row in rows])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("mode", oracle.MODES)
@pytest.mark.parametrize("op", UNARY)
def test_unary_operations_round_once_on_corner_values(name: str, mode: str, op: str) -> None:
    rows = [(a,) for a in oracle.corners(name)]
    check(name, op, mode, rows, [UNARY[op](name, *row, mode) for row in rows])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("mode", oracle.MODES)
def test_fma_rounds_once_on_corner_values(name: str, mode: str) -> None:
    few = oracle.corners(name)[1::3]
    rows = list(product(few, repeat=3))
    check(name, "fma", mode, rows, [oracle.fma(name, *row, mode) for row in rows])


@pytest.mark.parametrize("op", ["sqrt", "rcp"])
@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_every_half_precision_value(op: str, name: str) -> None:
    rows = [(a,) for a in range(0, 1 << 16, 7)]
    check(name, op, "rn", rows, [UNARY[op](name, *row, "rn") for row in rows])


@st.composite
def patterns(draw: st.DrawFn, count: int) -> tuple[str, list[int]]:
    """A format and patterns of it whose exponents are close, so that rounding and cancellation happen."""
    name = draw(st.sampled_from(FORMATS))
    width, exponent_bits, fraction_bits = oracle.SHAPES[name]
    centre = draw(st.integers(0, (1 << exponent_bits) - 1))
    out = []
    for _ in range(count):
        spread = draw(st.integers(-fraction_bits - 3, fraction_bits + 3))
        exponent = min(max(centre + spread, 0), (1 << exponent_bits) - 1)
        fraction = draw(st.integers(0, (1 << fraction_bits) - 1))
        out.append(draw(st.integers(0, 1)) << (width - 1) | exponent << fraction_bits | fraction)
    return name, out


@settings(max_examples=300, deadline=None)
@given(patterns(2), st.sampled_from(sorted(BINARY)), st.sampled_from(oracle.MODES))
def test_binary_operations_round_once(drawn: tuple[str, list[int]], op: str, mode: str) -> None:
    name, (a, b) = drawn
    check(name, op, mode, [(a, b)], [BINARY[op](name, a, b, mode)])


@settings(max_examples=300, deadline=None)
@given(patterns(3), st.sampled_from(oracle.MODES))
def test_fma_rounds_once(drawn: tuple[str, list[int]], mode: str) -> None:
    name, (a, b, c) = drawn
    check(name, "fma", mode, [(a, b, c)], [oracle.fma(name, a, b, c, mode)])


@settings(max_examples=200, deadline=None)
@given(patterns(1), st.sampled_from(["sqrt", "rcp"]), st.sampled_from(oracle.MODES))
def test_unary_operations_round_once(drawn: tuple[str, list[int]], op: str, mode: str) -> None:
    name, (a,) = drawn
    a &= (1 << scalar(name).width - 1) - 1
    check(name, op, mode, [(a,)], [UNARY[op](name, a, mode)])


def test_fma_of_f32_is_not_two_roundings() -> None:
    """a = 1 + 2^-23, so a*a = 1 + 2^-22 + 2^-46."""
    a, c = words("f32", [0x3F800001]), words("f32", [0xBF800002])
    out = Bits(1).floating("fma", scalar("f32"), FloatMode(), a, a, c)
    assert out.tolist() == [0x28800000]  # 2^-46


def test_flush_to_zero_covers_inputs_and_results() -> None:
    f32, mode = scalar("f32"), FloatMode(ftz=True)
    tiny, half, normal = (words("f32", [v]) for v in (0x80000001, 0x3F000000, 0x00800000))
    dom = Bits(1)
    assert dom.floating("add", f32, mode, tiny, tiny).tolist() == [0x80000000]
    assert dom.floating("mul", f32, mode, normal, half).tolist() == [0]
    assert dom.floating("mul", f32, FloatMode(), normal, half).tolist() == [0x00400000]


def test_saturation_clamps_and_maps_nan_to_zero() -> None:
    f32 = scalar("f32")
    values = words("f32", [0x40000000, 0xBF800000, 0x7FFFFFFF, 0x3F000000, 0x80000000, 0x7F800000])
    out = Bits(6).floating("add", f32, FloatMode(sat=True), values, words("f32", [0x80000000] * 6))
    assert out.tolist() == [0x3F800000, 0, 0, 0x3F000000, 0, 0x3F800000]


def test_relu_clamps_negative_results_and_keeps_nan() -> None:
    f16 = scalar("f16")
    values = words("f16", [0xBC00, 0x3C00, 0x7E01])
    one, none = words("f16", [0x3C00] * 3), words("f16", [0x8000] * 3)
    assert Bits(3).floating("fma", f16, FloatMode(relu=True), values, one, none).tolist() == [0, 0x3C00, 0x7FFF]


@pytest.mark.parametrize("name", ["f16x2", "bf16x2", "f32x2"])
def test_packed_arithmetic_is_lane_by_lane(name: str) -> None:
    ty = scalar(name)
    rng = np.random.default_rng(5)
    a, b = rng.integers(0, (1 << ty.width) - 1, (2, 64), np.uint64).astype(f"u{ty.width // 8}")
    dom = Bits(64)
    whole = dom.floating("mul", ty, FloatMode(), a, b)
    parts = [
        dom.floating("mul", ty.element, FloatMode(), x, y)
        for x, y in zip(dom.unpack(ty.width, a, 2), dom.unpack(ty.width, b, 2), strict=True)
    ]
    assert np.array_equal(whole, dom.pack(ty.width, parts))


def test_exact_f64_results_of_53_odd_bits_stay_as_they_are() -> None:
    least, odd = words("f64", [1]), words("f64", [0x4330000000000001])  # 2^-1074, 2^52 + 1
    out = Bits(1).floating("fma", scalar("f64"), FloatMode(), least, odd, words("f64", [0]))
    assert out.tolist() == [0x0010000000000001]
