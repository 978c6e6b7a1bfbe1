"""isfinite, isinf and isnan: inputs are finite, infinities come from masks, and NaN never arises."""

from __future__ import annotations

from typing import Any

from warpproof.core import Unsupported
from warpproof.reference.arrays import BOOL, Array, Tracer, numpy_function
from warpproof.reference.elements import Element
from warpproof.reference.elementwise import combine, plain
from warpproof.terms import Pred, Real


def _classify(name: str, at_infinity: bool, finite: bool) -> None:
    def function(t: Tracer, x: Any, **kwargs: Any) -> Array:
        plain(kwargs)

        def value(p: Element) -> Pred:
            return _class(t, p, at_infinity, finite)

        return combine(t, [t.lift(x)], BOOL, value)

    function.__doc__ = f"np.{name}; inputs are finite, NaN never arises."
    numpy_function(name)(function)


def _class(t: Tracer, p: Element, at_infinity: bool, finite: bool) -> Pred:
    A = t.arena
    if not isinstance(p, Real) or not t.elements.infinite(p):
        return A.truth(finite)
    if p.op == "inf":
        return A.truth(at_infinity)
    if p.op == "sel" and p.pred is not None:
        yes, no = (_class(t, q, at_infinity, finite) for q in p.args)
        return A.disj((A.conj((p.pred, yes)), A.conj((A.negate(p.pred), no))))
    raise Unsupported("isfinite", "an extremum that may be infinite")


_classify("isfinite", False, True)
_classify("isinf", True, False)
_classify("isnan", False, False)
