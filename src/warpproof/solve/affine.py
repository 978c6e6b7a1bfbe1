"""From isl's affine functions and sets back to polynomials and predicates of the arena."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import islpy as isl

from warpproof.terms import Arena, Poly, Pred, const


class Readback:
    """Reads isl objects over parameters named after atoms; `inputs` stand for the dimensions of their domain."""

    def __init__(self, arena: Arena, inputs: Sequence[Poly]) -> None:
        self.arena, self.inputs = arena, tuple(inputs)

    def poly(self, aff: Any) -> Poly:
        """An affine function whose value is an integer."""
        top, bottom = self._fraction(aff)
        return top if bottom == 1 else self.arena.floor_div(top, const(bottom))

    def _fraction(self, aff: Any) -> tuple[Poly, int]:
        """(p, d) with the function equal to p/d."""
        bottom = int(aff.get_denominator_val().to_python())

        def whole(v: Any) -> int:
            return int(v.mul(isl.Val.int_from_si(v.get_ctx(), bottom)).to_python())

        top = const(whole(aff.get_constant_val()))
        for kind, value in ((isl.dim_type.param, self._parameter), (isl.dim_type.in_, self._input),
                            (isl.dim_type.div, self._quotient)):
            for k in range(aff.dim(kind)):
                c = whole(aff.get_coefficient_val(kind, k))
                if c:
                    top = top + value(aff, k) * c
        return top, bottom

    def _parameter(self, aff: Any, k: int) -> Poly:
        name = str(aff.get_dim_name(isl.dim_type.param, k))
        factors = [int(a) for a in (name[2:].split("_") if name.startswith("m_") else [name[1:]])]
        return reduce(lambda x, a: x * Poly({(a,): 1}), factors, const(1))

    def _input(self, aff: Any, k: int) -> Poly:
        return self.inputs[k]

    def _quotient(self, aff: Any, k: int) -> Poly:
        top, bottom = self._fraction(aff.get_div(k))
        return top if bottom == 1 else self.arena.floor_div(top, const(bottom))

    def pred(self, s: Any) -> Pred:
        """A set, as a condition on the inputs."""
        parts: list[Pred] = []
        s.compute_divs().foreach_basic_set(lambda b: parts.append(self._basic(b)))
        return self.arena.disj(parts)

    def _basic(self, b: Any) -> Pred:
        found: list[Pred] = []

        def add(c: Any) -> None:
            p = self.poly(c.get_aff())
            found.append(self.arena.eq(p) if c.is_equality() else self.arena.le(-p))

        b.foreach_constraint(add)
        return self.arena.conj(found)
