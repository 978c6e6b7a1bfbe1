"""The shapes of terms that the matcher relies on."""

from __future__ import annotations

from typing import Any

import numpy as np
from agreement import buffer, launch_of

from warpproof.reference import SymbolicArray, trace
from warpproof.terms import Access, Arena, Poly, Real, const

LAUNCH = launch_of(
    [buffer("x", "n", "m"), buffer("k", "n", dtype="i32", range=["0", "m"]), buffer("y", "n", kind="ptr_out")],
    ["n", "m"],
    ["n >= 1", "m >= 1"],
)


def traced(f: Any) -> tuple[Arena, SymbolicArray, Poly, Real]:
    arena = Arena(4)
    out = trace(f, LAUNCH, arena)["y"]
    (i,) = out.index_symbols()
    return arena, out, i, out.at((i,))


def test_functions() -> None:
    def f(x: Any) -> Any:
        z = x[:, 0]
        return {"y": np.exp(z) * np.log(z * z) + np.tanh(z) / np.sqrt(z * z) + abs(np.exp2(z))}

    a, _, i, got = traced(f)
    z = a.load(Access("x", 0), i * a.symbol("size", "m"))
    e = a.unary("ex2", a.mul(a.rational(2), a.mul(z, a.log2e)))
    tanh = a.sub(a.one, a.div(a.rational(2), a.add(e, a.one)))
    want = a.add(
        a.add(
            a.mul(a.unary("ex2", a.mul(z, a.log2e)), a.mul(a.unary("lg2", a.mul(z, z)), a.real("ln2"))),
            a.div(tanh, a.unary("sqrt", a.mul(z, z))),
        ),
        a.unary("abs", a.unary("ex2", z)),
    )
    assert got is want


def test_mean_is_a_bounded_fold_divided_by_the_length() -> None:
    a, _, i, got = traced(lambda x: {"y": x.mean(axis=1)})
    m = a.symbol("size", "m")
    v = a.fresh("index", "v")
    j = a.variable(v)
    fold = a.fold("add", v.id, a.conj((a.le(-j), a.le(j - m + 1))), a.load(Access("x", 0), i * m + j))
    assert got is a.div(fold, a.of_int(m))
    assert len(a.conjuncts(fold.pred)) == 2 if fold.pred else False


def test_masked_maximum_is_a_fold_over_the_masked_range() -> None:
    def f(x: Any, n: Any, m: Any) -> Any:
        s = np.where(np.arange(m)[None, :] <= np.arange(n)[:, None], x, -np.inf)
        p = np.exp(s - s.max(axis=1, keepdims=True))
        return {"y": p.sum(axis=1)}

    a, _, i, got = traced(f)
    assert got.op == "fold"
    assert got.ext == 0
    assert got.pred is not None
    assert len(a.conjuncts(got.pred)) == 3
    assert got.args[0].op == "ex2"
    del i


def test_gather_is_an_element_atom_with_its_range() -> None:
    a, _, i, got = traced(lambda x, k, n: {"y": x[np.arange(n), k]})
    elem = a.derived("elem", (i,), name="k")
    assert got is a.load(Access("x", 0), i * a.symbol("size", "m") + elem)
    (atom,) = elem.atoms()
    assert a.ranges[atom] == (0, (1 << 31) - 1)  # m has no upper bound here, the element type has


def test_the_same_reference_gives_the_same_nodes() -> None:
    def f(x: Any) -> Any:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return {"y": (e / e.sum(axis=1, keepdims=True))[:, 0]}

    arena = Arena(4)
    first, second = (trace(f, LAUNCH, arena)["y"] for _ in range(2))
    i = first.index_symbols()
    assert first.at(i) is second.at(i)
    assert first.at((const(0),)) is arena.substitute(first.at(i), {next(iter(i[0].atoms())): const(0)})


def test_loop_is_the_fold_of_the_array_operation() -> None:
    def loop(x: Any, m: Any) -> Any:
        total = np.zeros(x.shape[0])
        for j in range(m):
            total += x[:, j]
        return {"y": total}

    arena = Arena(4)
    a, b = trace(loop, LAUNCH, arena)["y"], trace(lambda x: {"y": x.sum(axis=1)}, LAUNCH, arena)["y"]
    i = a.index_symbols()
    assert a.at(i) is b.at(i)
