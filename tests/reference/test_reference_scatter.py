"""`np.add.at` and its like, and `np.bincount`, traced for all sizes and compared with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_agrees, buffer, launch_of

from warpproof.core import InputError, Unsupported
from warpproof.reference import trace
from warpproof.terms import Arena

SAMPLES = [{"n": 5, "m": 3, "d": 4}, {"n": 1, "m": 1, "d": 1}, {"n": 7, "m": 2, "d": 3}]


def one_axis(x: Any, w: Any, idx: Any, row: Any, y: Any) -> Any:
    out = np.array(y, np.float64)
    np.add.at(out, idx, x)
    return out


def repeated(x: Any, w: Any, idx: Any, row: Any, y: Any) -> Any:
    out = np.zeros(y.shape)
    np.add.at(out, idx, x)
    np.subtract.at(out, (idx, slice(None)), 2 * x)
    return out


def both_axes(x: Any, w: Any, idx: Any, row: Any, y: Any) -> Any:
    out = np.array(y, np.float64)
    np.add.at(out, (idx, row), w)
    return out


def broadcast(x: Any, w: Any, idx: Any, row: Any, y: Any) -> Any:
    out = np.array(y, np.float64)
    np.add.at(out, (idx[:, None], row), x[:, :1])
    np.add.at(out, (0, row), 1.5)
    return out


def columns(x: Any, w: Any, idx: Any, row: Any, y: Any) -> Any:
    out = np.array(y, np.float64)
    np.add.at(out[:, ::-1], (slice(None), row), 1.0)
    return out


def extrema(x: Any, w: Any, idx: Any, row: Any, y: Any) -> Any:
    out = np.array(y, np.float64)
    np.maximum.at(out, idx, x)
    np.minimum.at(out, idx, x + 0.5)
    return out


def plain(x: Any, w: Any, idx: Any, row: Any, y: Any) -> Any:
    out = np.array(y, np.float64)
    np.add.at(out, (slice(0, 1), slice(None)), 3.0)
    return out


def launch() -> Any:
    return launch_of(
        [buffer("x", "n", "d"), buffer("w", "n"), buffer("idx", "n", dtype="i32", range=["0", "m"]),
         buffer("row", "n", dtype="i32", range=["0", "d"]), buffer("y", "m", "d", kind="ptr_inout")],
        ["n", "m", "d"], ["n >= 1", "m >= 1", "d >= 1", "n <= 1000", "m <= 1000", "d <= 1000"])


@pytest.mark.parametrize("function", [one_axis, repeated, both_axes, broadcast, columns, extrema, plain])
def test_accumulation_by_index_agrees_with_numpy(function: Callable[..., Any]) -> None:
    def reference(x: Any, w: Any, idx: Any, row: Any, y: Any) -> dict[str, Any]:
        return {"y": function(x, w, idx, row, y)}

    assert_agrees(reference, launch(), SAMPLES)


def bins(idx: Any, w: Any, h: Any, g: Any, n: Any, m: Any) -> dict[str, Any]:
    return {"h": np.bincount(idx, minlength=m), "g": np.bincount(idx, w, m)}


def test_counts_agree_with_numpy() -> None:
    made = launch_of([buffer("idx", "n", dtype="i32", range=["0", "m"]), buffer("w", "n"),
                      buffer("h", "m", kind="ptr_out", dtype="i64"), buffer("g", "m", kind="ptr_out")],
                     ["n", "m"], ["n >= 1", "m >= 1", "n <= 1000", "m <= 1000"])
    assert_agrees(bins, made, [{"n": 5, "m": 3}, {"n": 9, "m": 12}])


def test_bins_that_depend_on_data_are_not_traced() -> None:
    made = launch_of([buffer("idx", "n", dtype="i32", range=["0", "m + 1"]), buffer("w", "n"),
                      buffer("h", "m", kind="ptr_out", dtype="i64"), buffer("g", "m", kind="ptr_out")],
                     ["n", "m"], ["n >= 1", "m >= 1"])
    with pytest.raises(Unsupported, match="bins"):
        trace(bins, made, Arena(1))


def narrow(idx: Any, h: Any, n: Any, m: Any) -> dict[str, Any]:
    out = np.zeros(m, np.int16)
    np.add.at(out, idx, 1)
    return {"h": out}


def test_a_sum_that_may_wrap_is_not_traced() -> None:
    made = launch_of([buffer("idx", "n", dtype="i32", range=["0", "m"]),
                      buffer("h", "m", kind="ptr_out", dtype="i16")], ["n", "m"], ["n >= 1", "m >= 1", "n <= 40000"])
    with pytest.raises(Unsupported, match="wrap"):
        trace(narrow, made, Arena(1))


def test_an_index_out_of_bounds_is_an_error() -> None:
    def reference(x: Any, w: Any, idx: Any, row: Any, y: Any) -> dict[str, Any]:
        out = np.array(y, np.float64)
        np.add.at(out, idx + 1, x)
        return {"y": out}

    with pytest.raises(InputError, match="out of bounds"):
        trace(reference, launch(), Arena(1))
