"""References' positions of extrema as kernels carry them: folds of placed values.

min {i : i ∈ D, f(i) = max f over D}, as np.argmax is traced, is the position of the greatest of the pairs (f(i), i)
where D is not empty and f is finite; for a least value of f, of the pairs (−f(i), i).
"""

from __future__ import annotations

from warpproof.terms import Arena, Poly, Real, TermMap


def has_places(x: Real) -> bool:
    """True when a position of placed values occurs."""
    seen: set[int] = set()
    stack = [x]
    while stack:
        y = stack.pop()
        if y.op == "place":
            return True
        if y.id not in seen:
            seen.add(y.id)
            stack.extend(y.args)
    return False


def as_places(arena: Arena, x: Real) -> Real:
    """The same term, positions of extrema written as those of placed values."""
    return TermMap(arena, lambda i: None, lambda y: _place(arena, y), lambda p: None).real(x)


def _place(arena: Arena, x: Real) -> Real | None:
    if x.op != "fold" or x.data[0] != "min" or x.pred is None:
        return None
    body, b = x.args[0], x.data[1]
    if body.op != "sel" or body.pred is None or body.args[1] is not arena.plus_inf:
        return None
    test, position = body.pred, arena.whole(body.args[0])
    if position is None or test.op != "fcmp" or test.data != "eq":
        return None
    for value, top in (test.reals, test.reals[::-1]):
        if top.op != "fold" or top.data[0] not in ("max", "min") or top.ext or value.ext or top.pred is None:
            continue
        renamed = arena.substitution({b: Poly({(top.data[1],): 1})})
        if renamed.pred(x.pred) is top.pred and renamed.real(value) is top.args[0]:
            placed = arena.placed(value if top.data[0] == "max" else arena.neg(value), position)
            return arena.real("place", (arena.fold("max", b, x.pred, placed),))
    return None
