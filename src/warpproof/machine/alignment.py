"""Divisors of addresses that are evident from the launch's divisibility facts (`K % 16 == 0`)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from warpproof.terms import Arena, Coef, Poly, Pred


class Divisors:
    """What divides a polynomial in every lane, under the facts of a launch."""

    def __init__(self, arena: Arena, facts: Iterable[Pred]) -> None:
        self.arena = arena
        self._atoms: dict[int, int] = {}
        for fact in facts:
            if fact.op == "eq":
                self._learn(fact.data)

    def _learn(self, p: Poly) -> None:
        """a − d·⌊a/d⌋ = 0 says that d divides the atom a (either sign)."""
        for sign in (1, -1):
            q = p * sign
            for m, c in q.terms.items():
                if len(m) != 1 or not (isinstance(c, int) and c == 1):
                    continue
                atom = self.arena.variable(self.arena.atoms[m[0]])
                rest = atom - q
                if len(rest.terms) == 1:
                    ((n, d),) = rest.terms.items()
                    quotient = self.arena.atoms[n[0]] if len(n) == 1 else None
                    halves = quotient is not None and quotient.kind == "div" and quotient.args[0] == atom
                    if halves and isinstance(d, int):
                        self._atoms[m[0]] = math.lcm(self._atoms.get(m[0], 1), abs(d))

    def of(self, p: Poly) -> int:
        """A number that divides p in every lane (0 for p = 0)."""
        out = 0
        for m, c in p.terms.items():
            out = math.gcd(out, _content(c) * math.prod(self._atom(a) for a in m))
        return out

    def _atom(self, ident: int) -> int:
        if ident not in self._atoms:
            a = self.arena.atoms[ident]
            choice = a.kind in ("phi", "min", "max") and a.args
            self._atoms[ident] = math.gcd(*(self.of(q) for q in a.args)) if choice else 1
        return self._atoms[ident]


def _content(c: Coef) -> int:
    return abs(c) if isinstance(c, int) else int(np.gcd.reduce(np.abs(c)))
