"""Limits on all elements of a buffer at once, as preconditions such as `0 <= target[i] < V` give them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from warpproof.reference.concrete import holds, integer
from warpproof.reference.expressions import Expression
from warpproof.reference.manifest import Launch, dtype_range

FLIP: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def plain_limit(c: Expression, known: frozenset[str]) -> tuple[str, str, Expression] | None:
    """(buffer, op, bound) of `x[i][j] op bound`, either way round, with distinct free indices."""
    match c.comparison():
        case (a, op, b):
            for x, o, y in ((a, op, b), (b, FLIP[op], a)):
                name = x.whole_buffer()
                if name is not None and not (known | y.names) & (x.names - {name}):
                    return name, o, y
    return None


def uniform_contents(launch: Launch, sizes: Mapping[str, int]) -> dict[str, tuple[int, int]] | None:
    """The least and largest value that all elements of each buffer may have together.

    Float buffers are zero. None when a precondition on elements is no plain limit, or zero does not meet it.
    """
    out = {
        p.name: launch.concrete_range(p, sizes) if p.range is not None else
        (dtype_range(p.dtype)[0], dtype_range(p.dtype)[1] + 1) if p.is_integer else (0, 1)
        for p in launch.buffers
    }
    for c in (c for p in launch.preconditions if p.buffers & set(out) for c in p.conjuncts()):
        found = plain_limit(c, frozenset(sizes)) if c.buffers & set(out) else None
        if found is None:
            if c.buffers & set(out) or not c.names <= set(sizes) or not holds(c, sizes):
                return None
            continue
        name, op, bound = found
        if not bound.names <= set(sizes):
            return None
        limit = _limited(*out[name], op, integer(bound, sizes))
        if limit is None or limit[0] >= limit[1]:
            return None
        out[name] = limit
    return {name: (lo, hi - 1) for name, (lo, hi) in out.items()}


def _limited(lo: int, hi: int, op: str, k: int) -> tuple[int, int] | None:
    match op:
        case "<":
            return lo, min(hi, k)
        case "<=":
            return lo, min(hi, k + 1)
        case ">":
            return max(lo, k + 1), hi
        case ">=":
            return max(lo, k), hi
        case "==":
            return max(lo, k), min(hi, k + 1)
        case _:
            return None
