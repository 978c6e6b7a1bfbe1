"""Launches that pass something else than the kernel takes are refused before anything is proved."""

from __future__ import annotations

from typing import Any

import pytest

from warpproof.core import InputError
from warpproof.ptx import load, resolve
from warpproof.reference import check_signature, load_launch

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 a, .param .f32 b, .param .u32 c, .param .b32 d, .param .u16 e, .param .u64 y)
{
    ret;
}
"""
X = {"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": ["n"]}
Y = X | {"name": "y", "kind": "ptr_out"}
RIGHT = (X, "f32", "i32", "f32", "f16")


def launch(given: tuple[Any, ...]) -> Any:
    params = [g if isinstance(g, dict) else {"name": f"p{k}", "kind": "scalar", "dtype": g}
              for k, g in enumerate((*given, Y))]
    return load_launch({"kernel": "k", "params": params, "sizes": {"n": [3]}, "preconditions": ["n >= 1"],
                        "grid": ["1"], "block": ["32"]})


@pytest.mark.parametrize("given", [
    RIGHT, (X, "f32", "u32", "i32", "u16"), (X, "f32", "u32", "u32", "bf16"),
    ({"name": "x", "kind": "ptr_null", "dtype": "f32"}, *RIGHT[1:]), ("i64", *RIGHT[1:]),
])
def test_what_fits(given: tuple[Any, ...]) -> None:
    check_signature(resolve(load(KERNEL), "k"), launch(given))


@pytest.mark.parametrize(("given", "words"), [
    (RIGHT[:-1], "6 parameters, the launch passes 5: x, p1, p2, p3, y"),
    (("f32", X, *RIGHT[2:]), "parameter 1 of k is a .u64 of 8 bytes"),
    ((X, "i32", *RIGHT[2:]), "parameter 2 of k is a .f32"),
    ((X, "f32", "f32", *RIGHT[3:]), "parameter 3 of k is a .u32"),
    ((X, "f32", "i64", *RIGHT[3:]), "parameter 3 of k is a .u32"),
    ((X, "f64", *RIGHT[2:]), "parameter 2 of k is a .f32 of 4 bytes, the launch passes 'p1': f64, 8 bytes"),
    (("f64", *RIGHT[1:]), "parameter 1"),
])
def test_what_does_not_fit(given: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        check_signature(resolve(load(KERNEL), "k"), launch(given))
    assert caught.value.code == "CLI629"
    assert "order" in caught.value.hint
