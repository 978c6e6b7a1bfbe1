"""Numbers by their bits, against NumPy and ml_dtypes."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from warpproof.core import FLOAT_FORMATS, element_width, number, ulp, ulps_apart

ORACLE = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "e5m2": ml_dtypes.float8_e5m2, "e4m3": ml_dtypes.float8_e4m3fn,
          "f32": np.float32, "f64": np.float64}


@pytest.mark.parametrize("dtype", sorted(ORACLE))
def test_every_short_pattern_and_many_long_ones(dtype: str) -> None:
    width = element_width(dtype)
    unsigned = np.dtype(f"u{width // 8}")
    if width <= 16:
        patterns = np.arange(1 << width, dtype=unsigned)
    else:
        top = (1 << width) - 1
        corners = [0, 1, 1 << (width - 1), top, top >> 1, FLOAT_FORMATS[dtype].mantissa]
        random = np.random.default_rng(1).integers(0, top, 2000, dtype=unsigned, endpoint=True)
        patterns = np.concatenate([np.array(corners, dtype=unsigned), random])
    with np.errstate(invalid="ignore"):  # signalling NaNs
        values = patterns.view(ORACLE[dtype]).astype(np.float64)
    for bits, value in zip(patterns.tolist(), values.tolist(), strict=True):
        assert repr(number(bits, dtype)) == repr(value) or (math.isnan(number(bits, dtype)) and math.isnan(value))


def test_integers() -> None:
    assert number(0xFF, "i8") == -1
    assert number(0xFF, "u8") == 255
    assert number(1 << 63, "i64") == -(1 << 63)
    assert number(1 << 31, "s32") == -(1 << 31)
    with pytest.raises(KeyError):
        element_width("complex")


def test_ulp() -> None:
    assert ulp(1.0, "f32") == 2.0**-23
    assert ulp(-1.5, "f16") == 2.0**-10
    assert ulp(0.0, "f32") == ulp(1e-45, "f32") == 2.0**-149
    for value in (1.0, 3.7, 1e-310, 5e300):
        assert ulp(value, "f64") == math.ulp(value)
    assert ulps_apart(1.0, 1.0 + 2.0**-22, "f32") == 2.0
    assert ulps_apart(1.0, math.nan, "f32") is None
    assert ulps_apart(1.0, 2.0, "i32") is None
