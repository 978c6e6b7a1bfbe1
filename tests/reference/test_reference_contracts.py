"""Contracts written in Python, and contract and spec files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agreement import assert_agrees

from warpproof.core import InputError, Unsupported
from warpproof.reference import (
    Contract,
    In,
    InOut,
    Out,
    Scalar,
    Size,
    bf16,
    cdiv,
    contract,
    f32,
    i32,
    i64,
    load_contract,
    load_launch,
    load_spec,
    trace,
)
from warpproof.terms import Arena

rows, n = Size("rows", min=1), Size("n", min=1, max=2**20, multiple_of=4)


@contract(
    kernel="softmax.cu::rowsoftmax",
    grid=(rows, cdiv(n, 4), -(-n // 8)),
    block=256,
    where=[n <= rows * 2**20, "eps > 0"],
)
def softmax(x: In[f32, rows, n], y: Out[f32, rows, n], n: n, eps: f32) -> Any:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": e / e.sum(axis=1, keepdims=True)}


@contract(kernel="gather.ptx", grid=rows, block=(32, 2), dynamic_shared=n * 4, sm="sm_90")
def gather(
    ids: In(range=(0, n))[i64, rows],
    table: In[bf16, n],
    y: InOut(init="zero")[f32, rows],
    count: InOut(scratch=True)[i32, 1],
    scale: Scalar[f32],
) -> Any:
    return {"y": np.asarray(y) + scale * table[ids]}


def test_contract() -> None:
    assert isinstance(softmax, Contract)
    assert softmax.kernel_path == Path(__file__).parent / "softmax.cu"
    assert softmax.kernel_name == "rowsoftmax"
    launch = softmax.launch
    assert [(p.name, p.kind, p.dtype) for p in launch.params] == [
        ("x", "ptr_in", "f32"),
        ("y", "ptr_out", "f32"),
        ("n", "scalar", "i32"),
        ("eps", "scalar", "f32"),
    ]
    assert [p.text for p in launch.preconditions] == [
        "rows >= 1",
        "n >= 1",
        "n <= 1048576",
        "n % 4 == 0",
        "n <= rows * 1048576",
        "eps > 0",
    ]
    assert launch.concrete({"rows": 3, "n": 12}).grid == (3, 3, 2)
    assert launch.examples >= 1
    assert all(launch.check_preconditions(launch.example(i)) for i in range(launch.examples))


def test_contract_fields_and_agreement() -> None:
    assert gather.kernel_name is None
    assert gather.launch.sm == "sm_90"
    assert gather.launch.param("y").init_zero
    assert gather.launch.param("count").scratch
    assert_agrees(gather.reference, gather.launch, [{"rows": 3, "n": 4}])
    assert_agrees(softmax.reference, softmax.launch, [{"rows": 2, "n": 4}])


def test_size_arithmetic() -> None:
    m = Size("m")
    e = (2 * n + m - 1) // 3 % 7 + (5 - m) * n**2
    assert eval(str(e), {}, {"n": 4, "m": 3}) == (2 * 4 + 3 - 1) // 3 % 7 + (5 - 3) * 4**2
    assert str(3 // m) == "(3 // m)"
    assert str(3 % m >= 1) == "((3 % m) >= 1)"
    for bad in (lambda: n + 1.5, lambda: n + True, lambda: bool(n < 3), lambda: 1 <= n < 3):
        with pytest.raises(InputError):
            bad()


@pytest.mark.parametrize(
    "bad",
    [
        lambda: Size("2n"),
        lambda: In[n, f32],
        lambda: In[f32, 1.5],
        lambda: Scalar[3],
        lambda: contract("k.cu", 1, 32)(len),
        lambda: contract("k.cu", grid=1, block=32)(lambda x: {}),
        lambda: contract("k.cu", grid="q", block=32)(softmax.reference),
        lambda: contract("k.cu", grid=1, block=32, where=["nn > 1"])(softmax.reference),
    ],
)
def test_faults_have_codes(bad: Any) -> None:
    with pytest.raises(InputError) as caught:
        bad()
    assert caught.value.code.startswith("REF2")


def test_parameter_names_must_be_sizes() -> None:
    def f(x: In[f32, n], y: Out[f32, n], count: n) -> Any:
        return {"y": x}

    with pytest.raises(InputError, match="stands for the size") as caught:
        contract("k.cu", 1, 32)(f)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


SPEC = """
import numpy as np
from numpy import exp
from warpproof import contract, In, Out, Size, f32
import numpy.linalg as la

def helper(x):
    total = np.zeros(x.shape[0])
    for j in range(x.shape[1]):
        total = total + x[:, j]
    return total

def reference(x, n, m):
    return {"y": exp(helper(x) / 4) + la.norm(x, axis=1)}

N, M = Size("n", min=1), Size("m", min=1)

@contract(kernel="k.cu::k", grid=N, block=32)
def first(x: In[f32, N, M], y: Out[f32, N], n: N, m: M):
    return reference(x, n, m)
"""


def test_files(tmp_path: Path) -> None:
    file = tmp_path / "spec.py"
    file.write_text(SPEC)
    found = load_contract(file)
    assert (found.name, found.kernel_path) == ("first", tmp_path / "k.cu")
    assert_agrees(found.reference, found.launch, [{"n": 3, "m": 2}, {"n": 1, "m": 1}])
    assert_agrees(load_spec(file), found.launch, [{"n": 2, "m": 3}])
    file.write_text(SPEC.replace("def first", "def second") + "\nfirst = second\nthird = 3\n")
    assert load_contract(file, "second").name == "second"
    with pytest.raises(InputError, match="defines 2 contracts"):
        load_contract(file)
    with pytest.raises(InputError, match="no contract"):
        load_contract(file, "other")


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("x = (\n", "REF230", 1),
        ("x = 1\ny = 1 / 0\n", "REF230", 2),
        ("reference = 3\n", "REF231", None),
        ("", "REF231", None),
        ("import not_a_module_anywhere\n", "REF230", 1),
    ],
)
def test_bad_files(tmp_path: Path, text: str, code: str, line: int | None) -> None:
    file = tmp_path / "spec.py"
    file.write_text(text)
    with pytest.raises(InputError) as caught:
        load_spec(file)
    assert caught.value.code == code
    if line is not None:
        assert caught.value.span is not None
        assert caught.value.span.line == line


def test_missing_file(tmp_path: Path) -> None:
    for load in (load_spec, load_contract):
        with pytest.raises(InputError) as caught:
            load(tmp_path / "none.py")
        assert caught.value.code == "REF230"


def test_nothing_is_left_beside_the_file(tmp_path: Path) -> None:
    file = tmp_path / "spec.py"
    file.write_text(SPEC)
    load_spec(file)
    assert [p.name for p in tmp_path.iterdir()] == ["spec.py"]


def test_unsupported_passes_through(tmp_path: Path) -> None:
    file = tmp_path / "spec.py"
    file.write_text("from warpproof.core import Unsupported\nraise Unsupported('a', 'b')\n")
    with pytest.raises(Unsupported):
        load_spec(file)


def test_a_file_that_changes_between_loading_and_tracing(tmp_path: Path) -> None:
    """What is traced is what was loaded, or nothing is."""
    file, text = tmp_path / "c.py", "def reference(x):\n    return {'y': 2 * x}\n"
    manifest = load_launch({
        "kernel": "k", "sizes": {"n": [3]}, "preconditions": ["n >= 1"], "grid": ["1"], "block": ["32"],
        "params": [{"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": ["n"]},
                   {"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": ["n"]}],
    })
    file.write_text(text, "utf-8")
    first = load_spec(file)
    file.write_text(text.replace("2 *", "3 *"), "utf-8")
    second = load_spec(file)
    arena = Arena(1)
    found = trace(second, manifest, arena)["y"]
    assert found.at(found.index_symbols()).args[0].data == 3
    with pytest.raises(Unsupported, match="its source is not what runs"):
        trace(first, manifest, Arena(1))
