"""Products with exponentials kept as S·2^E, so that rescaled sums add up: S₁·2^E + S₂·2^E = (S₁ + S₂)·2^E.

Online softmax, its tree merges and flash attention carry sums in this form; with equal exponents in canonical form the
sums meet as one reduction. Only terms that contain reductions are touched.
"""

from __future__ import annotations

from warpproof.algebra.normal import Normaliser
from warpproof.core import Unsupported
from warpproof.terms import Arena, IntVector, Real


class Scaling:
    """Scaled arithmetic over one arena."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.normal = Normaliser(arena)

    def split(self, x: Real) -> tuple[Real, Real | None]:
        """(S, y) with x = S·2^y; y is None when no exponential factor stands outside."""
        if x.op == "ex2":
            return self.arena.one, x.args[0]
        if x.op == "mul":
            (s, y), (t, z) = self.split(x.args[0]), self.split(x.args[1])
            if y is None and z is None:
                return x, None
            return self.arena.mul(s, t), y if z is None else z if y is None else self.arena.add(y, z)
        if x.op == "gather":
            s, y = self.split(x.args[0])
            if y is not None:
                lanes = self.arena.permutation(x)
                return self.arena.permute(s, lanes, lazy=True), self._push(y, lanes)
        return x, None

    def _push(self, y: Real, lanes: IntVector) -> Real:
        """A lane permutation of an exponent, moved down to its atoms."""
        if y.op in ("add", "mul"):
            return self.arena.combine(y.op, self._push(y.args[0], lanes), self._push(y.args[1], lanes))
        return self.arena.permute(y, lanes, lazy=True)

    def mul(self, x: Real, y: Real) -> Real:
        """x·y, exponentials joined."""
        a = self.arena
        if not (x.folds or y.folds):
            return a.mul(x, y)
        (s, e), (t, f) = self.split(x), self.split(y)
        if e is None or f is None:
            return a.mul(x, y)
        return self._scaled(a.mul(s, t), a.add(e, f))

    def add(self, x: Real, y: Real) -> Real:
        """x + y, joined over a common exponential."""
        a = self.arena
        if not (x.folds and y.folds):
            return a.add(x, y)
        (s, e), (t, f) = self.split(x), self.split(y)
        if e is None or f is None:
            return a.add(x, y)
        e, f = self._exponent(e), self._exponent(f)
        return a.mul(a.add(s, t), a.unary("ex2", e)) if e is f else a.add(x, y)

    def _scaled(self, s: Real, e: Real) -> Real:
        return self.arena.mul(s, self.arena.unary("ex2", self._exponent(e)))

    def _exponent(self, e: Real) -> Real:
        try:
            return self.normal.canonical(e)
        except Unsupported:
            return e
