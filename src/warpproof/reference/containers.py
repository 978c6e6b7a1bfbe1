"""What lists, dicts and sets in reach hold: code that is run once for many cases must not change them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from warpproof.core import Unsupported

_DEPTH: Final = 4


def snapshot(env: Mapping[str, Any]) -> dict[str, Any]:
    """The identities held by the containers among the variables, nested ones included."""
    return {n: _held(v, _DEPTH) for n, v in env.items()
            if isinstance(v, list | tuple | set | frozenset | dict) and not n.startswith("__")}


def _held(v: Any, depth: int) -> Any:
    if depth and isinstance(v, dict):
        return [(id(k), _held(x, depth - 1)) for k, x in v.items()]
    if depth and isinstance(v, list | tuple | set | frozenset):
        return [_held(x, depth - 1) for x in v]
    return id(v)


@contextlib.contextmanager
def unchanged(env: Sequence[Mapping[str, Any]], what: str) -> Iterator[None]:
    """Raise Unsupported if the block changes a container among the variables."""
    before = [snapshot(e) for e in env]
    yield
    if [snapshot(e) for e in env] != before:
        raise Unsupported(what, "a list, dict or set is changed in it",
                          hint="assign to an array, use a comprehension, or np.where")
