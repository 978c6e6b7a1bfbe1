"""Broadcasting of symbolic shapes: lengths are equal by the preconditions, or one of them is the constant 1."""

from __future__ import annotations

from collections.abc import Sequence

from warpproof.core import InputError
from warpproof.reference.arrays import Tracer
from warpproof.reference.elements import Index
from warpproof.reference.wording import describe
from warpproof.terms import Poly, const

_ONE = const(1)


def broadcast_dims(t: Tracer, shapes: Sequence[Sequence[Poly]], *, onto_first: bool = False) -> Index:
    """The common shape; InputError REF241 for lengths that may differ. `onto_first` keeps the first shape as it is."""
    rank = max((len(s) for s in shapes), default=0)
    out: list[Poly] = []
    for axis in range(rank):
        dims = [s[axis - rank + len(s)] for s in shapes if axis - rank + len(s) >= 0]
        found = _ONE
        for k, d in enumerate(dims):
            if d == found or (d == _ONE and not (onto_first and k == 0)):
                continue
            if found == _ONE and not (onto_first and k > 0):
                found = d
            elif not t.facts.same(found, d):
                raise _differ(t, found, d)
        out.append(found)
    return tuple(out)


def _differ(t: Tracer, a: Poly, b: Poly) -> InputError:
    x, y = describe(t.arena, a), describe(t.arena, b)
    return InputError("REF241", f"the axis lengths {x} and {y} are not equal for all admitted sizes",
                      hint=f"correct the shapes, or add the precondition {x} == {y}")


def pick(t: Tracer, dims: Sequence[Poly], index: Index) -> Index:
    """The index into an operand of shape `dims` that is broadcast to the shape `index` belongs to."""
    tail = index[len(index) - len(dims) :]
    return tuple(const(0) if d == _ONE else i for d, i in zip(dims, tail))
