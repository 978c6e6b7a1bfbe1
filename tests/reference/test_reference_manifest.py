"""Launch manifests: every fault has a code, and hostile input gets no further than a coded error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpproof.core import InputError, Unsupported
from warpproof.reference import Launch, describe, load_launch, parse_expression
from warpproof.terms import Arena

GOOD: dict[str, Any] = {
    "kernel": "k",
    "params": [
        {"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": ["rows", "pitch"]},
        {"name": "t", "kind": "ptr_in", "dtype": "i32", "shape": ["rows"]},
        {"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": ["rows", "n"]},
        {"name": "n", "kind": "scalar", "dtype": "i32"},
        {"name": "eps", "kind": "scalar", "dtype": "f32"},
    ],
    "sizes": {"rows": [3, 5], "n": [4, 6], "pitch": [8, 6]},
    "preconditions": ["rows >= 1", "1 <= n", "n <= 2**20", "n <= pitch", "n % 2 == 0", "eps > 0", "0 <= t[i] < n"],
    "grid": ["(n + 255) // 256", "min(rows, 4)"],
    "block": [32, 4],
    "dynamic_shared": "4 * n",
}


def with_(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


def param(**changes: Any) -> dict[str, Any]:
    return with_(params=[{**GOOD["params"][0], **changes}, *GOOD["params"][1:]])


def test_concrete_launch() -> None:
    shape = load_launch(GOOD).concrete({"rows": 7, "n": 300, "pitch": 512})
    assert (shape.grid, shape.block, shape.dynamic_shared) == ((2, 4, 1), (32, 4, 1), 1200)
    assert shape.shapes["x"] == (7, 512)
    assert shape.strides["x"] == (512, 1)


def test_examples_and_names() -> None:
    launch = load_launch(GOOD)
    assert launch.examples == 2
    assert launch.example(1) == {"rows": 5, "n": 6, "pitch": 6}
    assert [p.name for p in launch.outputs] == ["y"]
    assert launch.integers == ("rows", "n", "pitch")


def test_symbolic_launch() -> None:
    arena = Arena(4)
    made = load_launch(GOOD).symbolic(arena)
    (n,) = made.sizes["n"].atoms()
    (rows,) = made.sizes["rows"].atoms()
    assert arena.ranges[n] == (1, 1 << 20)
    assert arena.ranges[rows] == (1, None)
    assert [describe(arena, f) for f in made.facts] == ["n <= pitch", "n == 2*((n) // (2))"]
    assert [(f.name, f.op, f.value) for f in made.float_facts] == [("eps", ">", 0)] or [
        (f.name, f.op) for f in made.float_facts
    ] == [("eps", ">")]
    assert made.block == (32, 4, 1)
    assert describe(arena, made.dynamic_shared) == "4*n"
    limits = made.buffers["t"].range
    assert limits is not None
    assert limits[0] is not None
    assert limits[0].as_int() == 0
    assert limits[1] == made.sizes["n"]
    assert arena.elements["t", 0] == (0, (1 << 20) - 1)
    assert [e.text for e in made.element_facts] == ["0 <= t[i]", "t[i] < n"]


def test_a_scalar_of_a_size_gives_its_type_range() -> None:
    arena = Arena(4)
    launch = load_launch(with_(preconditions=[], params=[*GOOD["params"][2:]], sizes={"rows": [1], "n": [1]}))
    (n,) = launch.symbolic(arena).sizes["n"].atoms()
    assert arena.ranges[n] == (0, (1 << 31) - 1)  # i32, and an axis is not negative


@pytest.mark.parametrize(
    ("sizes", "inputs", "admitted"),
    [
        ({"rows": 2, "n": 4, "pitch": 4}, {}, True),
        ({"rows": 2, "n": 4, "pitch": 3}, {}, False),
        ({"rows": 2, "n": 3, "pitch": 4}, {}, False),
        ({"rows": 0, "n": 4, "pitch": 4}, {}, False),
        ({"rows": 2, "n": 4, "pitch": 4}, {"eps": 0.0}, False),
        ({"rows": 2, "n": 4, "pitch": 4}, {"eps": 1.0, "t": np.array([0, 3])}, True),
        ({"rows": 2, "n": 4, "pitch": 4}, {"t": np.array([0, 4])}, False),
        ({"rows": 2, "n": 4, "pitch": 4}, {"t": np.array([-1, 0])}, False),
        ({"rows": 2, "n": 4, "pitch": 4}, {"t": np.array([0, 1, 2])}, False),
    ],
)
def test_check_preconditions(sizes: dict[str, int], inputs: dict[str, Any], admitted: bool) -> None:
    assert load_launch(GOOD).check_preconditions(sizes, inputs) is admitted


SQUARE = {
    "kernel": "k",
    "sizes": {"n": [2], "m": [2]},
    "grid": ["1"],
    "block": [32],
    "params": [
        {"name": "A", "kind": "ptr_in", "dtype": "f32", "shape": ["n", "n"]},
        {"name": "v", "kind": "ptr_in", "dtype": "f32", "shape": ["n"]},
        {"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": ["n"]},
    ],
}


@pytest.mark.parametrize(
    ("condition", "good", "bad"),
    [
        ("A[i][j] == A[j][i]", [[1, 2], [2, 3]], [[1, 2], [4, 3]]),
        ("i >= j or A[i][j] == 0", [[1, 0], [2, 3]], [[1, 5], [2, 3]]),
        ("sum(A[i][j]**2 for j in range(n)) > 0", [[1, 0], [0, 3]], [[1, 0], [0, 0]]),
        ("sum(sum(A[i, j] for i in range(n)) for j in range(n)) == 6", [[1, 2], [2, 1]], [[1, 2], [2, 2]]),
        ("A[i][i] > 0 and not A[0][0] == 5", [[1, 0], [0, 3]], [[5, 0], [0, 1]]),
        ("A[i][j] <= A[i][j + 1]", [[1, 2], [2, 3]], [[1, 2], [4, 3]]),
        ("max(A[i][j], 0) < 4", [[1, -9], [2, 3]], [[1, 2], [4, 3]]),
    ],
)
def test_element_preconditions(condition: str, good: Any, bad: Any) -> None:
    launch = load_launch({**SQUARE, "preconditions": [condition]})
    assert launch.check_preconditions({"n": 2, "m": 1}, {"A": np.array(good, np.float32)})
    assert not launch.check_preconditions({"n": 2, "m": 1}, {"A": np.array(bad, np.float32)})
    made = launch.symbolic(Arena(4))
    assert made.element_facts
    assert all(e.buffers == {"A"} for e in made.element_facts)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (with_(block=None), "REF205"),
        ({k: v for k, v in GOOD.items() if k != "block"}, "REF203"),
        (with_(kernel=3), "REF201"),
        (with_(typo=1), "REF202"),
        (with_(params={}), "REF201"),
        (with_(params=[1]), "REF201"),
        (with_(params=[]), "REF203"),
        (param(kind="pointer"), "REF208"),
        (param(dtype="f33"), "REF208"),
        (param(shape="n"), "REF201"),
        (param(shape=None), "REF201"),
        (param(name="2x"), "REF201"),
        (param(name="for"), "REF201"),
        (param(extra=1), "REF202"),
        (param(range=[0, 1]), "REF209"),
        (param(init="zero"), "REF209"),
        (param(init="one"), "REF208"),
        (param(scratch=True), "REF209"),
        (param(strides=["1"]), "REF209"),
        (param(name="t"), "REF204"),
        (param(shape=["unknown", "n"]), "REF206"),
        (param(shape=["x", "n"]), "REF206"),
        (param(shape=["1.5"]), "REF205"),
        (with_(params=[{"name": "n", "kind": "scalar", "dtype": "i32", "shape": ["1"]}]), "REF202"),
        (with_(params=[{"name": "x", "kind": "ptr_in", "dtype": "f32"}]), "REF203"),
        (with_(sizes={"n": [1, 2], "rows": [1]}), "REF210"),
        (with_(sizes={"n": ["1"]}), "REF210"),
        (with_(sizes={"n": [1.5]}), "REF210"),
        (with_(sizes={"n": [True]}), "REF210"),
        (with_(sizes={"n": [1 << 80]}), "REF210"),
        (with_(sizes=[1]), "REF201"),
        (with_(sizes={"a b": [1]}), "REF201"),
        (with_(sizes={"eps": [1], "rows": [1], "n": [1], "pitch": [1]}), "REF209"),
        (with_(preconditions="n > 1"), "REF201"),
        (with_(preconditions=["n >"]), "REF205"),
        (with_(preconditions=[None]), "REF205"),
        (with_(preconditions=["q > 1"]), "REF206"),
        (with_(preconditions=["x > 1"]), "REF206"),
        (with_(preconditions=["t[i][j] > 1"]), "REF206"),
        (with_(preconditions=["n.real > 1"]), "REF205"),
        (with_(preconditions=["__import__('os')"]), "REF205"),
        (with_(preconditions=["(lambda: n)() > 1"]), "REF205"),
        (with_(preconditions=["n ** n > 1"]), "REF207"),
        (with_(preconditions=["2 ** 2 ** 99 > n"]), "REF207"),
        (with_(preconditions=["n > " + "(" * 300 + "1" + ")" * 300]), "REF205"),
        (with_(preconditions=["n > " + "-" * 150 + "1"]), "REF207"),
        (with_(preconditions=["n" + " + 1" * 600 + " > 0"]), "REF207"),
        (with_(preconditions=["n > 0", "n < 0"]), "REF209"),
        (with_(preconditions=["n + rows >= 1", "n + rows <= 0", "n > 0", "rows > 0"]), "REF209"),
        (with_(preconditions=["rows % pitch == 0"]), "REF241"),
        (with_(grid=[]), "REF201"),
        (with_(grid=["1"] * 4), "REF201"),
        (with_(grid=[{"x": 1}]), "REF205"),
        (with_(block=["0"]), "REF211"),
        (with_(dynamic_shared=1.5), "REF205"),
        (with_(launch={"num_warp": 3}), "REF202"),
        (with_(launch={"divisible_by_16": ["q"]}), "REF206"),
        (with_(launch={"cooperative": "yes"}), "REF201"),
        (with_(launch={"num_warps": -1}), "REF201"),
        (with_(params=[p for p in GOOD["params"] if p["name"] != "y"]), "REF203"),
    ],
)
def test_faults_have_codes(data: dict[str, Any], code: str) -> None:
    with pytest.raises(InputError) as caught:
        load_launch(data).symbolic(Arena(4))
    assert caught.value.code == code, caught.value.message


def test_unknown_fields_of_your_own_are_ignored() -> None:
    assert isinstance(load_launch(with_(x_mine={"a": 1}, notes="n", expected={})), Launch)


def test_a_block_that_depends_on_a_size_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="block"):
        load_launch(with_(block=["n"])).symbolic(Arena(4))


def test_specialisation_attributes_are_preconditions() -> None:
    launch = load_launch(with_(launch={"divisible_by_16": ["x", "n"], "num_warps": 4}))
    assert launch.preconditions[-1].text == "n % 16 == 0"
    assert launch.options.num_warps == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "nul",
        "{",
        '{"kernel": NaN}',
        '{"kernel": Infinity}',
        '{"a": 1, "a": 2}',
        "[" * 100000,
        '{"a":' * 5000,
        '{"sizes": {"n": ' + "9" * 5000 + "}}",
        '"\\ud800"',
        "\ufeff{}",
    ],
)
def test_hostile_files_give_coded_errors(tmp_path: Path, text: str) -> None:
    file = tmp_path / "launch.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_launch(file)
    assert caught.value.code in ("REF200", "REF201", "REF203", "REF204")


def test_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.json", "bytes.json", "."):
        with pytest.raises(InputError, match="cannot read"):
            load_launch(tmp_path / name)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text("nx[](),.*/-%<=1 é\x00", max_size=8)
    | st.sampled_from(
        ["n", "rows", "x", "x[i]", "1", "n // 0", "n % n", "sum(x[i][j] for j in range(n))", "-", "min()"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*GOOD, "name", "kind"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(sorted(GOOD)), json_values, min_size=1, max_size=2), st.booleans())
def test_any_json_gives_a_launch_or_a_coded_error(changes: dict[str, Any], inner: bool) -> None:
    data = param(**{k: v for k, v in changes.items() if k not in GOOD}) if inner else with_(**changes)
    try:
        launch = load_launch(json.loads(json.dumps(data)))
        launch.symbolic(Arena(4))
        launch.concrete(dict.fromkeys(launch.sizes, 1), {"eps": 1.0, "n": 1})
        error = "REF2"
    except InputError as e:
        error = e.code
    except Unsupported:
        error = "REF2"
    assert error.startswith("REF2")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3 - -4 // 3 % 5", 1 + 2 * 3 - -4 // 3 % 5),
        ("2 ** 10", 1024),
        ("min(3, 1) + max(2, 5)", 6),
        ("n // 2", 3),
        ("(n + 255) // 256", 1),
        ("-(-n // 4)", 2),
        ("sum(j * n for j in range(1, 4))", 42),
    ],
)
def test_expressions(text: str, value: int) -> None:
    launch = load_launch(with_(dynamic_shared=text))
    assert launch.concrete({"n": 7, "rows": 1, "pitch": 8}).dynamic_shared == value
    if "sum" not in text:
        arena = Arena(4)
        poly = (
            load_launch(with_(dynamic_shared=text, preconditions=["n == 7", "rows >= 1"]))
            .symbolic(arena)
            .dynamic_shared
        )
        assert arena.bounds(poly) == (value, value)


def test_division_by_zero_is_a_coded_error() -> None:
    with pytest.raises(InputError, match="division by zero"):
        load_launch(with_(grid=["n // rows"])).concrete({"n": 7, "rows": 0, "pitch": 8})


def test_expression_parts() -> None:
    e = parse_expression("1 <= n < m and x[i] > 0", "here")
    assert [c.text for c in e.conjuncts()] == ["1 <= n", "n < m", "x[i] > 0"]
    assert e.names == {"n", "m", "x", "i"}
    assert e.buffers == {"x"}
