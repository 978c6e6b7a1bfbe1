"""Trace a reference once for all sizes, then compare its terms with real NumPy at concrete ones."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from evaluator import Evaluator

from warpproof.reference import Launch, SymbolicArray, evaluate, load_launch, trace
from warpproof.terms import Arena, Poly, const


def launch_of(params: Sequence[dict[str, Any]], sizes: Sequence[str], preconditions: Sequence[str] = ()) -> Launch:
    """A launch whose grid and block do not matter."""
    return load_launch(
        {
            "kernel": "k",
            "params": list(params),
            "sizes": {s: [1] for s in sizes},
            "preconditions": list(preconditions),
            "grid": ["1"],
            "block": [32],
        }
    )


def buffer(name: str, *shape: str, kind: str = "ptr_in", dtype: str = "f32", **extra: Any) -> dict[str, Any]:
    """One pointer parameter."""
    return {"name": name, "kind": kind, "dtype": dtype, "shape": list(shape), **extra}


def random_inputs(launch: Launch, sizes: Mapping[str, int], rng: np.random.Generator) -> dict[str, Any]:
    """Random values of every input: multiples of 1/8 for floats, the declared range for integers."""
    shapes = launch.concrete(sizes).shapes
    out: dict[str, Any] = {}
    for p in launch.params:
        if p.kind in ("ptr_out", "ptr_null") or p.name in sizes:
            continue
        shape = shapes.get(p.name, ())
        if p.init_zero:
            out[p.name] = np.zeros(shape)
        elif p.is_integer:
            lo, hi = (
                (eval(e.text, {}, dict(sizes)) for e in p.range) if p.range else (0, 2 if p.dtype == "bool" else 100)
            )
            out[p.name] = rng.integers(lo, hi, shape)
        else:
            out[p.name] = rng.integers(-16, 17, shape) / 8
    return out


def assert_agrees(
    reference: Callable[..., Any],
    launch: Launch,
    samples: Sequence[Mapping[str, int]],
    seed: int = 0,
    inputs: Callable[[dict[str, Any]], dict[str, Any]] = lambda x: x,
    traced: Mapping[str, SymbolicArray] | None = None,
) -> dict[str, SymbolicArray]:
    """The traced outputs, after they agreed with NumPy at every index of every sample."""
    if traced is None:
        traced = trace(reference, launch, Arena(4))
    rng = np.random.default_rng(seed)
    symbols = {name: a.index_symbols() for name, a in traced.items()}
    terms = {name: a.at(symbols[name]) for name, a in traced.items()}
    for sizes in samples:
        values = inputs(random_inputs(launch, sizes, rng))
        want = evaluate(reference, launch, sizes, values)
        flat = {
            k: np.asarray(v, dtype=np.float64 if np.asarray(v).dtype.kind == "f" else object).reshape(-1)
            for k, v in values.items()
        }
        scalars = {k: float(v) for k, v in values.items() if np.ndim(v) == 0}
        integers = {**sizes, **{k: int(v) for k, v in values.items() if np.ndim(v) == 0 and float(v).is_integer()}}
        arena = next(iter(traced.values())).tracer.arena
        quotients = {arena.atoms[a].name: v for a, v in launch.symbolic(arena).assignment(integers).items()}
        ev = Evaluator(arena, {**integers, **quotients}, scalars, flat)
        for name, expected in want.items():
            shape = tuple(ev.poly(d, {}) for d in traced[name].shape)
            assert shape == expected.shape
            atoms = [next(iter(p.atoms())) for p in symbols[name]]
            got = np.empty(shape)
            for index in itertools.product(*(range(d) for d in shape)):
                got[index] = ev.real(terms[name], dict(zip(atoms, index)))
                if not any(index):  # the same through substituted indices
                    direct = ev.real(traced[name].at([const(i) for i in index]), {})
                    np.testing.assert_allclose(direct, got[index], rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(got, np.asarray(expected, dtype=np.float64), rtol=1e-9, atol=1e-9, err_msg=name)
    return dict(traced)


def poly_of(launch: Launch, arena: Arena, name: str) -> Poly:
    """The symbol of a size."""
    return launch.symbolic(arena).sizes[name]
