"""References that could tell tracing from a run under NumPy, or whose calls depend on each other, are not traced."""

from __future__ import annotations

import linecache
import types
from typing import Any

import numpy as np
import pytest

from warpproof.core import InputError, Unsupported
from warpproof.reference import SymbolicArray, load_launch, trace
from warpproof.terms import Arena

MANIFEST = {
    "kernel": "k", "grid": ["1"], "block": [1], "sizes": {"n": [7]}, "preconditions": ["n >= 1"],
    "params": [{"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": ["n"]},
               {"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": ["n"]},
               {"name": "n", "kind": "scalar", "dtype": "i32"}],
}


def module(source: str) -> Any:
    """The module with this source, kept where `inspect` finds it."""
    name = f"<reference {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    made = types.ModuleType("reference_under_test")
    vars(made)["np"] = np
    exec(compile(source, name, "exec"), vars(made))
    return made


def traced(source: str) -> dict[str, SymbolicArray]:
    return trace(module(source).reference, load_launch(MANIFEST), Arena(1))


def factor(expression: str, before: str = "") -> str:
    return f"{before}\ndef reference(x, n):\n    return {{'y': x * ({expression})}}\n"


TELLING = {
    "a dict looked up by a size": "{7: 1.0}.get(n, 2.0)",
    "a size in a set": "1.0 if n in {7} else 2.0",
    "a shape as a key": "{(7,): 1.0}.get(x.shape, 2.0)",
    "distinct sizes counted": "len({n, x.shape[0]})",
    "hash": "1.0 if hash(n) == 7 else 2.0",
    "type": "1.0 if type(n) == int else 2.0",
    "__class__": "1.0 if n.__class__ == int else 2.0",
    "a special attribute": "getattr(x, '__array_priority__', 2.0)",
    "text": "1.0 if str(n) == '7' else 2.0",
    "formatted text": "1.0 if f'{n}' == '7' else 2.0",
    "identity": "1.0 if n is x.shape[0] else 2.0",
    "id": "1.0 if id(n) == id(7) else 2.0",
    "attributes listed": "2.0 if 'dims' in dir(x) else 1.0",
    "a scalar that NumPy gives": "1.0 if isinstance(x.sum(), float) else 2.0",
}


@pytest.mark.parametrize("expression", TELLING.values(), ids=TELLING.keys())
def test_values_do_not_show_that_they_are_symbolic(expression: str) -> None:
    with pytest.raises((Unsupported, InputError)):
        traced(factor(expression))


LASTING = {
    "global": "C = 0\ndef reference(x, n):\n    global C\n    C += 1\n    return {'y': x * C}\n",
    "list": "C = [0]\ndef reference(x, n):\n    C[0] += 1\n    return {'y': x * C[0]}\n",
    "nested list": "C = {'a': [[0]]}\ndef reference(x, n):\n    C['a'][0][0] += 1\n    return {'y': x * 2.0}\n",
    "array": "C = np.zeros(1)\ndef reference(x, n):\n    C[0] += 1\n    return {'y': x * float(C[0])}\n",
    "default": "def reference(x, n, c=[0]):\n    c[0] += 1\n    return {'y': x * c[0]}\n",
    "attribute": "def reference(x, n):\n    reference.k = getattr(reference, 'k', 0) + 1\n    return {'y': x}\n",
    "iterator": "import itertools\nC = itertools.count(2)\ndef reference(x, n):\n    return {'y': x * next(C)}\n",
    "generator of a helper": "C = (k for k in (2.0, 1.0))\ndef f():\n    return next(C)\n\n"
                             "def reference(x, n):\n    return {'y': x * f()}\n",
    "clock": "import time\ndef reference(x, n):\n    return {'y': x * (2.0 if time.time() > 0 else 1.0)}\n",
    "random numbers": "import random\ndef reference(x, n):\n    return {'y': x * random.random()}\n",
    "the interpreter": "def reference(x, n):\n    import sys\n    return {'y': x * (sys.getrefcount(n) > 3)}\n",
}


@pytest.mark.parametrize("source", LASTING.values(), ids=LASTING.keys())
def test_nothing_outlives_a_call(source: str) -> None:
    with pytest.raises((Unsupported, InputError)):
        traced(source)


SAME = {
    "isinstance": "2.0 if isinstance(x, np.ndarray) and isinstance(n, (int, np.integer)) else 1.0",
    "a size is no array": "1.0 if isinstance(n, np.ndarray) else 2.0",
    "truth values are integers": "2.0 if isinstance(n >= 1, int) else 1.0",
    "hasattr": "2.0 if hasattr(x, 'shape') and not hasattr(n, 'shape') else 1.0",
    "attributes of symbolic values only": "1.0 if hasattr(x, 'dims') else 2.0",
    "None": "2.0 if n is not None else 1.0",
    "a dict of names": "{'a': 2.0}['a']",
}


@pytest.mark.parametrize("expression", SAME.values(), ids=SAME.keys())
def test_what_is_answered_is_numpys_answer(expression: str) -> None:
    source = factor(expression)
    (index,) = (out := traced(source)["y"]).index_symbols()
    found = out.at((index,))
    assert found is traced_twice(out, index)
    assert (module(source).reference(np.ones(7), 7)["y"] == 2.0).all()


def traced_twice(out: SymbolicArray, index: Any) -> Any:
    """2·x at an index, in the arena of `out`."""
    a = out.tracer.arena
    loads = [x for x in a.reals if x.op == "load" and x.data[1] == index]
    return a.mul(a.rational(2), loads[0])


def test_a_reference_may_print() -> None:
    assert traced("def reference(x, n):\n    print(x, n)\n    return {'y': x * 2.0}\n")
