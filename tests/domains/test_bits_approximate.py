"""`.approx` functions of the bits domain: the manual's special values and error bounds."""

from __future__ import annotations

import math

import numpy as np
import pytest

from warpproof.domains import Bits, FloatMode
from warpproof.isa import scalar

INF, NAN = math.inf, math.nan
APPROX = FloatMode(approx=True)


def run(op: str, *values: list[float], mode: FloatMode = APPROX) -> list[float]:
    with np.errstate(all="ignore"):
        columns = [np.array(v, np.float32).view(np.uint32) for v in values]
    out = Bits(len(values[0])).floating(op, scalar("f32"), mode, *columns)
    results = out.view(np.float32)
    assert np.all(out[np.isnan(results)] == 0x7FFFFFFF)
    return results.tolist()


def same(a: list[float], b: list[float]) -> bool:
    left, right = ([repr(x) for x in values if not math.isnan(x)] for values in (a, b))
    return left == right


@pytest.mark.parametrize(("op", "inputs", "results"), [
    ("ex2", [-INF, -0.0, 0.0, INF, NAN, -200.0, 3.0], [0.0, 1.0, 1.0, INF, NAN, 0.0, 8.0]),
    ("lg2", [-INF, -1.0, -0.0, 0.0, INF, NAN, 8.0], [NAN, NAN, -INF, -INF, INF, NAN, 3.0]),
    ("sin", [-INF, -0.0, 0.0, INF, NAN], [NAN, -0.0, 0.0, NAN, NAN]),
    ("cos", [-INF, -0.0, 0.0, INF, NAN], [NAN, 1.0, 1.0, NAN, NAN]),
    ("rcp", [-INF, -0.0, 0.0, INF, NAN, 4.0], [-0.0, -INF, INF, 0.0, NAN, 0.25]),
    ("sqrt", [-INF, -1.0, -0.0, 0.0, INF, NAN, 9.0], [NAN, NAN, -0.0, 0.0, INF, NAN, 3.0]),
    ("rsqrt", [-INF, -1.0, -0.0, 0.0, INF, NAN, 4.0], [NAN, NAN, -INF, INF, 0.0, NAN, 0.5]),
    ("tanh", [-INF, -0.0, 0.0, INF, NAN], [-1.0, -0.0, 0.0, 1.0, NAN]),
])  # fmt: skip
def test_special_values(op: str, inputs: list[float], results: list[float]) -> None:
    out = run(op, inputs)
    assert [math.isnan(x) for x in out] == [math.isnan(x) for x in results]
    assert same(out, results)


def test_results_are_within_half_an_ulp() -> None:
    x = np.random.default_rng(2).uniform(0.01, 6, 500).astype(np.float32)
    reference = {"ex2": lambda v: 2.0**v, "lg2": math.log2, "sin": math.sin, "cos": math.cos, "sqrt": math.sqrt,
                 "rsqrt": lambda v: 1 / math.sqrt(v), "rcp": lambda v: 1 / v, "tanh": math.tanh}  # fmt: skip
    for op, f in reference.items():
        out = np.array(run(op, x.tolist()))
        exact = np.array([f(float(v)) for v in x])
        assert np.all(np.abs(out - exact) <= 0.5001 * np.spacing(np.abs(exact).astype(np.float32)))


def test_div_approx_gives_zero_for_huge_divisors_and_div_full_does_not() -> None:
    huge = [2.0**127, -(2.0**127), 2.0**127, 2.0**126]
    top = [2.0**127, 2.0**127, INF, 2.0**126]
    out = run("div", top, huge)
    assert math.isnan(out[2])
    assert same([out[0], out[1], out[3]], [0.0, -0.0, 1.0])
    assert run("div", top[:2], huge[:2], mode=FloatMode(approx=True, full=True)) == [1.0, -1.0]


def test_half_precision_functions_round_once_to_the_format() -> None:
    codes = np.arange(0, 0x7C00, 13, dtype=np.uint16)
    with np.errstate(all="ignore"):
        expected = np.exp2(codes.view(np.float16).astype(np.float64)).astype(np.float16)
    out = Bits(len(codes)).floating("ex2", scalar("f16"), APPROX, codes)
    assert np.array_equal(out, expected.view(np.uint16))


def test_rsqrt_of_f64() -> None:
    x = np.array([4.0, 0.0, -1.0, 3.0, 0.7]).view(np.uint64)
    out = Bits(5).floating("rsqrt", scalar("f64"), APPROX, x)
    assert out[:3].tolist() == [0x3FE0000000000000, 0x7FF0000000000000, 0x7FF8000000000000]
    assert np.allclose(out[3:].view(np.float64), [3**-0.5, 0.7**-0.5], rtol=2.0**-52, atol=0)
