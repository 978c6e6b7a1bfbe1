"""Where a term could be infinite: extended reals on a path, with running maxima that become finite and stay so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from warpproof.machine import RunningMaximum
from warpproof.solve import Facts
from warpproof.terms import MINUS_INF, PLUS_INF, Arena, Poly, Pred, Real, TermMap

MINUS: Final = -1
PLUS: Final = 1
_LANES_TRIED: Final = 4


class Infinities:
    """Answers "could x be −∞ (+∞) in some lane where the path holds"; False is shown, True may be doubt."""

    def __init__(self, arena: Arena, facts: Facts, maxima: Mapping[int, RunningMaximum]) -> None:
        self.arena, self.facts, self.maxima = arena, facts, maxima
        self._warm: dict[int, bool] = {}

    def may(self, x: Real, path: Pred, side: int) -> bool:
        """Whether x could be infinite on this side."""
        if not x.ext & (MINUS_INF if side == MINUS else PLUS_INF):
            return False
        if self._beyond(x, path, side):
            return False
        match x.op:
            case "max" | "min":
                every = (x.op == "max") == (side == MINUS)
                found = (self.may(y, path, side) for y in x.args)
                return all(found) if every else any(found)
            case "add":
                return any(self.may(y, path, side) for y in x.args)
            case "mul":
                k, y = x.args if x.args[0].op == "const" or x.args[0].op.startswith("log2e") else x.args[::-1]
                return self.may(y, path, -side if k.op == "const" and k.data < 0 else side)
            case "sel" if x.pred is not None:
                if self.facts.implied(path, x.pred):
                    return self.may(x.args[0], path, side)
                if self.facts.implied(path, self.arena.negate(x.pred)):
                    return self.may(x.args[1], path, side)
                return any(self.may(y, path, side) for y in x.args)
            case "red":
                return self._reduction(x, path, side)
            case "state":
                return self._state(x, path, side)
            case _:
                return True

    def _beyond(self, x: Real, path: Pred, side: int) -> bool:
        """A comparison on the path bounds x by something finite on this side."""
        for p in self.arena.conjuncts(path):
            if p.op == "fcmp" and p.data in ("lt", "le", "eq"):
                low, high = p.reals
                near = (low, high) if side == MINUS else (high, low)
                if near[1] is x and not near[0].ext:
                    return True
        return False

    def _reduction(self, x: Real, path: Pred, side: int) -> bool:
        """A maximum over lanes is above −∞ where one of them is."""
        leaf = x.args[0]
        if x.data[0] not in ("max", "min") or (x.data[0] == "max") != (side == MINUS):
            return True
        active = self.facts.mask(path)
        lanes = np.arange(self.arena.lanes) if active is None else np.nonzero(active)[0]
        rows = np.unique(self.arena.matrix(x)[lanes], axis=0)
        plain = self.arena.conj(p for p in self.arena.conjuncts(path) if p.uniform)
        return not all(any(self._lane_finite(leaf, int(k), plain, side) for k in row[:_LANES_TRIED]) for row in rows)

    def _lane_finite(self, leaf: Real, lane: int, path: Pred, side: int) -> bool:
        return not self.may(self.arena.permute(leaf, np.full(self.arena.lanes, lane)), path, side)

    # ------------------------------------------------------------------ running maxima
    def _state(self, x: Real, path: Pred, side: int) -> bool:
        """From iteration 1 on a running maximum is finite if the first iteration made it so."""
        found = self.maxima.get(x.data[0])
        if found is None or side != MINUS or not self._becomes_finite(found):
            return True
        i = self.arena.variable(self.arena.atoms[found.var])
        return not self.facts.implied(path, self.arena.le(1 - i))

    def _becomes_finite(self, m: RunningMaximum) -> bool:
        if m.state not in self._warm:
            self._warm[m.state] = False
            self._warm[m.state] = not self.may(self.at_start(m, m.new), m.path, MINUS)
        return self._warm[m.state]

    def at_start(self, m: RunningMaximum, x: Real) -> Real:
        """x in iteration 0, where the register holds its entry value."""

        def leaf(y: Real) -> Real | None:
            if y.op != "state" or y.data[0] != m.state:
                return None
            return self.arena.permute(m.entry, np.frombuffer(y.data[1], np.int64), lazy=True)

        zero = {m.var: Poly({})}
        return TermMap(self.arena, zero.get, leaf, lambda p: None).real(x)

    def cases(self, x: Real, path: Pred) -> list[tuple[Real, Pred]]:
        """x in iteration 0 and in later ones, for the first running maximum it depends on; empty when there is none."""
        m = next((self.maxima[a] for a in sorted(x.free) if a in self.maxima), None)
        if m is None:
            return []
        i = self.arena.variable(self.arena.atoms[m.var])
        first = self.arena.substitute_pred(path, {m.var: Poly({})})
        return [(self.at_start(m, x), first), (x, self.arena.conj((path, self.arena.le(1 - i))))]
