"""What a reference may not do: each case names its line and, where one is missing, the precondition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_agrees, buffer, launch_of

from warpproof.core import InputError, Unsupported
from warpproof.reference import depends_on_inputs, evaluate, trace
from warpproof.terms import Arena

LAUNCH = launch_of(
    [
        buffer("x", "n", "m"),
        buffer("k", "n", dtype="i32"),
        buffer("b", "n", dtype="bool"),
        buffer("y", "n", kind="ptr_out"),
    ],
    ["n", "m", "p"],
    ["n >= 1", "m >= 1"],
)


def undecided_loop(x: Any, n: Any, m: Any) -> Any:
    while n > m:
        m = m + 1
    return {"y": x[:, 0] + 1}


def data_loop(x: Any) -> Any:
    while x[0, 0] > 0:
        x = x - 1
    return {"y": -x[:, 0]}


def branch_that_leaves(x: Any) -> Any:
    for _ in range(3):
        if x[0, 0] > 0:
            break
    return {"y": x[:, 0]}


def slice_too_long(x: Any, n: Any, p: Any) -> Any:
    return {"y": x[:, :p].sum(axis=1)}


def index_may_be_out_of_bounds(x: Any) -> Any:
    return {"y": x[:, 1]}


def gather_may_be_out_of_bounds(x: Any, k: Any) -> Any:
    return {"y": x[np.arange(x.shape[0]), k]}


def shapes_differ(x: Any) -> Any:
    return {"y": (x + x.T)[:, 0]}


def empty_axis(x: Any, p: Any) -> Any:
    return {"y": x[:, 0] + np.zeros((p,)).max()}


def reshape_differs(x: Any, n: Any, p: Any) -> Any:
    return {"y": x.reshape(n, p).sum(axis=1)}


def unknown_range(x: Any, n: Any, p: Any) -> Any:
    return {"y": x[:, 0] + np.arange(p).sum()}


def integer_divisor(x: Any, k: Any) -> Any:
    return {"y": x[:, 0] + 5 // k}


def wrong_shape(x: Any) -> Any:
    return {"y": x}


def no_such_function(x: Any) -> Any:
    return {"y": np.linalg.nrm(x, axis=1)}


def no_such_method(x: Any) -> Any:
    return {"y": x.sums(axis=1)}


def missing_output(x: Any) -> Any:
    return {}


def extra_output(x: Any) -> Any:
    return {"y": x[:, 0], "z": x[:, 0]}


def not_a_dict(x: Any) -> Any:
    return x[:, 0]


def unknown_parameter(x: Any, q: Any) -> Any:
    return {"y": x[:, 0]}


def reads_output(x: Any, y: Any) -> Any:
    return {"y": y + 1}


def writes_input(x: Any) -> Any:
    x[0] = 0
    return {"y": x[:, 0]}


def writes_input_through_asarray(x: Any) -> Any:
    x = np.asarray(x, np.float64)
    x -= 1
    return {"y": x[:, 0]}


def raises(x: Any) -> Any:
    return {"y": x[:, 0] + {}["missing"]}


def type_error(x: Any) -> Any:
    return {"y": x[:, 0].reshape("a")}


def unread_empty(x: Any, n: Any) -> Any:
    y = np.empty(n)
    y[:1] = x[:1, 0]
    return {"y": y}


MISSING = [
    undecided_loop,
    slice_too_long,
    index_may_be_out_of_bounds,
    gather_may_be_out_of_bounds,
    shapes_differ,
    empty_axis,
    reshape_differs,
    unknown_range,
    integer_divisor,
    data_loop,
    branch_that_leaves,
]
INPUT = {
    wrong_shape: "REF242",
    missing_output: "REF242",
    extra_output: "REF242",
    not_a_dict: "REF242",
    unknown_parameter: "REF244",
    reads_output: "REF243",
    writes_input: "REF243",
    writes_input_through_asarray: "REF243",
    raises: "REF240",
    no_such_function: "REF240",
    no_such_method: "REF240",
    type_error: "REF240",
    unread_empty: "REF242",
}


@pytest.mark.parametrize("reference", MISSING, ids=lambda f: f.__name__)
def test_missing_preconditions_are_named(reference: Callable[..., Any]) -> None:
    with pytest.raises(InputError) as caught:
        trace(reference, LAUNCH, Arena(4))
    e = caught.value
    assert e.code == "REF241", e.message
    assert e.hint
    assert e.span is not None
    first = reference.__code__.co_firstlineno
    assert first < e.span.line <= first + 3
    assert "^" in e.render()


@pytest.mark.parametrize("reference", list(INPUT), ids=lambda f: f.__name__)
def test_faults_have_codes(reference: Callable[..., Any]) -> None:
    with pytest.raises(InputError) as caught:
        trace(reference, LAUNCH, Arena(4))
    assert caught.value.code == INPUT[reference], caught.value.message


def _try(x: Any) -> Any:
    try:
        return {"y": np.frompyfunc(x)}
    except TypeError:
        return {"y": x[:, 0]}


def _list_in_loop(x: Any, n: Any, m: Any) -> Any:
    parts = []
    for j in range(m):
        parts.append(x[:, j])
    return {"y": sum(parts)}


SEEN: list[int] = []


def _global_in_loop(x: Any, m: Any) -> Any:
    for _ in range(m):
        SEEN.append(1)
    return {"y": x[:, 0] * len(SEEN)}


def _helper_store(x: Any, n: Any, m: Any) -> Any:
    out = np.zeros(n)

    def store(j: Any) -> None:
        out[0] = x[0, j]

    for j in range(m):
        store(j)
    return {"y": out}


def _alias_in_loop(x: Any, n: Any, m: Any) -> Any:
    out = np.zeros(n)
    view = out[:1]
    for j in range(m):
        out += x[:, j] + view[0]
    return {"y": out}


def _recurrence(x: Any, n: Any, m: Any) -> Any:
    out = np.zeros(n)
    for j in range(m):
        out = np.exp(out) + x[:, j]
    return {"y": out}


def _break_in_loop(x: Any, n: Any, m: Any) -> Any:
    out = np.zeros(n)
    for j in range(m):
        out = out + x[:, j]
        break
    return {"y": out}


def _after_loop(x: Any, n: Any, m: Any) -> Any:
    for j in range(m):
        last = x[:, j]
    return {"y": last}


def _index_after_loop(x: Any, n: Any, m: Any) -> Any:
    for j in range(m):  # noqa: B007
        pass
    return {"y": x[:, j]}


def _index_by_counter(x: Any, n: Any, m: Any) -> Any:
    count = 0
    for _ in range(m):
        count = count + 1
    return {"y": x[:, count - 1]}


def _small_counter(x: Any, n: Any, m: Any) -> Any:
    count = np.int32(0)
    for _ in range(m):
        count = count + np.int32(1)
    return {"y": x[:, 0] * count}


def _list_in_comprehension(x: Any, n: Any, m: Any) -> Any:
    seen: list[Any] = []
    total = sum(seen.append(j) or x[:, j] for j in range(m))
    return {"y": total * len(seen)}


def _store_in_comprehension(x: Any, n: Any, m: Any) -> Any:
    out = np.zeros(n)

    def store(j: Any) -> Any:
        out[0] = x[0, j]
        return x[:, j]

    return {"y": sum(store(j) for j in range(m)) + out}


def _list_in_branch(x: Any, n: Any, m: Any) -> Any:
    seen: list[Any] = []
    if x[0, 0] > 0:
        seen.append(1)
    return {"y": x[:, 0] * len(seen)}


def _global_in_branch(x: Any, m: Any) -> Any:
    if x[0, 0] > 0:
        SEEN.append(1)
    return {"y": x[:, 0] * len(SEEN)}


def _list_in_conditional(x: Any) -> Any:
    seen: list[Any] = []
    _ = seen.append(1) if x[0, 0] > 0 else None
    return {"y": x[:, 0] * len(seen)}


def _list_in_and(x: Any) -> Any:
    seen: list[Any] = []
    _ = x[0, 0] > 0 and seen.append(1)
    return {"y": x[:, 0] * len(seen)}


def _one_sided(x: Any) -> Any:
    if x[0, 0] > 0:
        z = x[:, 0]
    return {"y": z}


def _shapes_by_branch(x: Any) -> Any:
    z = x[:, 0] if x[0, 0] > 0 else x[:, :1]
    return {"y": z.reshape(-1)}


def _types_by_branch(x: Any, k: Any) -> Any:
    v = 0
    if x[0, 0] > 0:
        v = k[0]
    return {"y": x[:, 0] * (v * 2**30)}


def _aliased_by_branch(x: Any, n: Any) -> Any:
    a, b = np.zeros(n), np.zeros(n)
    z = a if x[0, 0] > 0 else b
    a[0] = 1
    return {"y": z + x[:, 0]}


def _int_or_float(x: Any, n: Any) -> Any:
    v = 0
    if x[0, 0] > 0:
        v = x[0, 0]
    z = np.full(n, v)
    z[0] = 0.5
    return {"y": z}


def _nonlocal(x: Any, n: Any, m: Any) -> Any:
    total = 0.0

    def add(v: Any) -> None:
        nonlocal total
        total = total + v

    for j in range(m):
        add(x[0, j])
    return {"y": x[:, 0] * total}


def _clash(x: Any, n: Any, k: Any) -> Any:
    out = np.zeros(n)
    out[k - k] = x[:, 0]
    return {"y": out}


def _length_by_list(x: Any, n: Any, m: Any) -> Any:
    return {"y": x[:, 0] + len([j for j in range(m) if x[0, j] > 0])}


def _two_masks(x: Any) -> Any:
    z = x[:, 0].copy()
    z[z > 0] = x[:, 0][x[:, 0] > 1]
    return {"y": z}


def _rounded_index(x: Any, n: Any) -> Any:
    at = (np.arange(n) * 0.1).astype(np.int64)
    return {"y": x[at % n, 0]}


UNSUPPORTED: list[Callable[..., Any]] = [
    lambda x: {"y": np.fft.fft(x)},
    lambda x: {"y": np.sort(x[:, 0])},
    lambda x: {"y": x[x > 0]},
    lambda x: {"y": x[:, 0] ** x[:, 0]},
    lambda x: {"y": np.where(x[:, 0] > 0)[0]},
    lambda x: {"y": x[:, 0].tolist()},
    lambda x: {"y": x[:, 0] - np.full(x.shape[0], np.inf) + np.full(x.shape[0], np.inf)},
    lambda x: {"y": 0 * np.where(x[:, 0] > 0, x[:, 0], -np.inf)},
    lambda x: {"y": x[:, 0] / 0},
    lambda x: {"y": x[:, 0] + np.nan},
    lambda x: {"y": np.add(x[:, 0], 1, where=x[:, 0] > 0)},
    lambda x: {"y": np.sum(x, axis=1, initial=3)},
    lambda x, k: {"y": k * k & k},
    lambda x: {"y": x[:, 0].astype(np.int32)},
    lambda x, k: {"y": np.cumsum(k * 100000)},
    lambda x, n: {"y": np.linspace(0, 1, n)},
    lambda x: {"y": round(x[0, 0])},
    lambda x: {"y": np.arange(0.0, 1.0, 0.1)},
    lambda x: {"y": np.average(x, axis=1, weights=x)},
    _try,
    _list_in_loop,
    _global_in_loop,
    _helper_store,
    _alias_in_loop,
    _recurrence,
    _break_in_loop,
    _after_loop,
    _index_after_loop,
    _index_by_counter,
    _small_counter,
    _list_in_comprehension,
    _store_in_comprehension,
    _list_in_branch,
    _global_in_branch,
    _list_in_conditional,
    _list_in_and,
    _one_sided,
    _shapes_by_branch,
    _types_by_branch,
    _aliased_by_branch,
    _int_or_float,
    _nonlocal,
    _clash,
    _length_by_list,
    _two_masks,
    _rounded_index,
]


@pytest.mark.parametrize("reference", UNSUPPORTED, ids=lambda f: f"{f.__name__}{f.__code__.co_firstlineno}")
def test_constructs_without_a_rule_are_unsupported(reference: Callable[..., Any]) -> None:
    with pytest.raises(Unsupported):
        trace(reference, LAUNCH, Arena(4))


def test_integer_output_must_be_integer() -> None:
    launch = launch_of([buffer("x", "n"), buffer("y", "n", kind="ptr_out", dtype="i32")], ["n"], ["n >= 1"])
    with pytest.raises(InputError, match="returns reals"):
        trace(lambda x: {"y": x}, launch, Arena(4))


def test_dependence_on_inputs() -> None:
    def constant(x: Any, n: Any) -> Any:
        return {"y": np.full(n, 3.0) + np.arange(n)}

    assert not depends_on_inputs(trace(constant, LAUNCH, Arena(4)))
    assert depends_on_inputs(trace(lambda x: {"y": x[:, 0]}, LAUNCH, Arena(4)))
    assert depends_on_inputs(trace(lambda k: {"y": k * 1.0}, LAUNCH, Arena(4)))
    assert depends_on_inputs(trace(lambda b: {"y": np.where(b, 1.0, 2.0)}, LAUNCH, Arena(4)))


def test_integers_wrap_as_in_numpy() -> None:
    launch = launch_of(
        [
            buffer("a", "n", dtype="u8", range=["0", "256"]),
            buffer("b", "n", dtype="i8", range=["-128", "128"]),
            buffer("y", "n", kind="ptr_out", dtype="i64"),
        ],
        ["n"],
        ["n >= 1"],
    )

    def reference(a: Any, b: Any) -> Any:
        s = a * a + np.uint8(200) - 3
        t = (b << 1) - b * 7
        u = a.astype(np.int8) // 3 + (~b) + abs(b.astype(np.int16)) % 5
        return {"y": s.astype(np.int64) * 2**30 + t.astype(np.int64) * 1000 + u.astype(np.int64)}

    assert_agrees(reference, launch, [{"n": 6}, {"n": 9}])


def test_branches_decided_by_preconditions() -> None:
    launch = launch_of(
        [buffer("x", "n"), buffer("y", "n", kind="ptr_out"), {"name": "eps", "kind": "scalar", "dtype": "f32"}],
        ["n", "m"],
        ["n >= 4", "n % 4 == 0", "m == n // 4", "eps > 0"],
    )

    def reference(x: Any, n: Any, m: Any, eps: Any) -> Any:
        assert isinstance(n, int)
        if n % 4 == 0 and m * 4 == n and m >= 1 and not n < 3 and eps >= 0 and max(n, 3) == n:
            return {"y": x.reshape(m, 4).reshape(n) * eps}
        return {"y": x}

    assert_agrees(reference, launch, [{"n": 8, "m": 2}], inputs=lambda v: {**v, "eps": 0.5})


def test_strided_buffers() -> None:
    launch = launch_of(
        [buffer("x", "n", "m", strides=["2 * m + 1", "2"]), buffer("y", "n", kind="ptr_out")],
        ["n", "m"],
        ["n >= 1", "m >= 1"],
    )
    arena = Arena(4)
    made = launch.symbolic(arena)
    out = trace(lambda x: {"y": x[:, 0]}, made, arena)
    (i,) = out["y"].index_symbols()
    load = out["y"].at((i,))
    assert load.op == "load"
    assert load.data[1] == i * (made.sizes["m"] * 2 + 1)
    assert made.buffers["x"].count == (made.sizes["n"] - 1) * (made.sizes["m"] * 2 + 1) + (made.sizes["m"] - 1) * 2 + 1


def test_evaluate_reports_faults() -> None:
    sizes, good = {"n": 2, "m": 2, "p": 1}, {"x": np.ones((2, 2)), "k": np.zeros(2), "b": np.zeros(2)}
    for reference, code in INPUT.items():
        if reference not in (reads_output, unread_empty, raises):
            with pytest.raises(InputError) as caught:
                evaluate(reference, LAUNCH, sizes, good)
            assert caught.value.code in (code, "REF240")
    with pytest.raises(InputError, match="no value for the input"):
        evaluate(lambda x: {"y": x[:, 0]}, LAUNCH, sizes, {})
    with pytest.raises(InputError, match="the reference raised RecursionError"):
        evaluate(lambda x: {"y": (lambda f: f(f))(lambda f: f(f))}, LAUNCH, sizes, good)
    with pytest.raises(InputError, match="has the shape"):
        evaluate(lambda x: {"y": x[:, 0]}, LAUNCH, sizes, {**good, "x": np.ones(3)})
    for kind in ("U1", object, complex, "M8[s]"):
        with pytest.raises(InputError, match="no real numbers"):
            evaluate(lambda x, kind=kind: {"y": x[:, 0].astype(np.int64).astype(kind)}, LAUNCH, sizes, good)
    out = evaluate(lambda x, k: {"y": x[:, 0] + k}, LAUNCH, sizes, good)
    assert out["y"].dtype == np.float64
