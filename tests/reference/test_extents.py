"""Sizes expressed by the extents of outputs that are sums of sizes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from warpproof.algebra import evaluate
from warpproof.reference import SymbolicLaunch, load_launch, symbolic_launch
from warpproof.terms import Arena, const

SIZES = ("C", "H", "W", "KH", "KW")


def launch(output: Sequence[str], *preconditions: str) -> SymbolicLaunch:
    """A launch that reads x[C, H, W] and writes an output of this shape."""
    params: list[dict[str, Any]] = [
        {"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": ["C", "H", "W"]},
        {"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": list(output)},
        *({"name": n, "kind": "scalar", "dtype": "i32"} for n in SIZES),
    ]
    whole = "*".join(f"({e})" for e in output)
    return symbolic_launch(load_launch({
        "kernel": "k", "params": params, "sizes": {n: [4] for n in SIZES},
        "grid": [f"({whole} + 255) // 256", "1", "1"],
        "preconditions": [*(f"1 <= {n} <= 64" for n in SIZES), *preconditions], "block": [32, 1, 1],
        "dynamic_shared": "0",
    }), Arena(32))


def test_extents_of_the_output_are_unknowns() -> None:
    found = launch(["C", "H - KH + 1", "W - KW + 1"], "KH <= H", "KW <= W")
    extents = found.buffers["y"].shape
    assert [len(e.terms) for e in extents] == [1, 1, 1]
    assert found.buffers["x"].shape[1] == extents[1] + found.sizes["KH"] - 1
    assert found.sizes["H"] == found.buffers["x"].shape[1]
    for e in extents:
        assert found.arena.bounds(e) == (1, 64)


def test_what_was_known_of_the_size_stays_known() -> None:
    found = launch(["C", "H - KH + 1", "W - KW + 1"], "KH <= H", "KW <= W")
    assert {found.arena.le(1 - found.sizes["H"]), found.arena.le(found.sizes["H"] - 64)} - set(found.facts) <= {
        found.arena.true}


@pytest.mark.parametrize("output", [["C", "H", "W"], ["C * H - W + 1"], ["H + 1"], ["C", "2 * H - KH"]])
def test_other_outputs_change_nothing(output: Sequence[str]) -> None:
    found = launch(output, "W <= C * H", "KH <= H")
    assert all(len(p.terms) == 1 and len(next(iter(p.terms))) == 1 for p in found.sizes.values())
    assert {found.arena.atoms[a].name for p in found.sizes.values() for a in p.atoms()} == set(SIZES)


def test_all_values_are_kept() -> None:
    """The shapes at sizes are those that NumPy's sliding windows have, whatever the unknowns are."""
    found = launch(["C", "H - KH + 1", "W - KW + 1"], "KH <= H", "KW <= W")
    for h, w, kh, kw in product(range(1, 5), repeat=4):
        if kh > h or kw > w:
            continue
        values = found.assignment({"C": 2, "H": h, "W": w, "KH": kh, "KW": kw})
        shape = np.lib.stride_tricks.sliding_window_view(np.zeros((2, h, w)), (kh, kw), axis=(1, 2)).shape[:3]
        assert tuple(evaluate(found.arena, e, values, 0) for e in found.buffers["y"].shape) == shape
        assert [evaluate(found.arena, found.sizes[n], values, 0) for n in SIZES] == [2, h, w, kh, kw]


def test_a_size_that_does_not_fit_has_no_values() -> None:
    found = launch(["C", "H"], "H % 4 == 0")
    assert found.sizes["H"] != const(0)
    assert found.assignment({"H": 6}) == {}
    assert set(found.assignment({"H": 8}).values()) == {2}
