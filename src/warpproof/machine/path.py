"""The condition under which the symbolic machine executes: active lanes, symbolic guards, enclosing loops."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from warpproof.core import Unsupported
from warpproof.terms import Arena, BoolVector, IntVector, Pred


class Path:
    """Active lanes `mask`, guards in force, and the loops the current instruction is inside of."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.mask: BoolVector = np.ones(arena.lanes, dtype=bool)
        self.guards: list[Pred] = []
        self.loops: list[int] = []
        self._cache: tuple[tuple[int, ...], bytes, Pred] | None = None

    def condition(self) -> Pred:
        """The conjunction of everything in force, the lane mask included."""
        key = tuple(g.id for g in self.guards)
        raw = self.mask.tobytes()
        if self._cache is None or self._cache[0] != key or self._cache[1] != raw:
            pred = self.arena.conj([*self.guards, self.arena.lane_mask(self.mask)])
            self._cache = (key, raw, pred)
        return self._cache[2]

    def symbolic(self) -> Pred:
        """The symbolic guards that can be false inside the current loops (loop domains hold there)."""
        return self.arena.conj(g for g in self.guards if g.op != "dom")

    @contextmanager
    def under(self, guard: Pred) -> Iterator[None]:
        """Execute under a further condition; a pure lane condition narrows the mask."""
        mask, count = self.mask, len(self.guards)
        lanes = self.arena.mask_of(guard)
        if lanes is not None:
            self.mask = mask & lanes
        else:
            for part in self.arena.conjuncts(guard):
                only = self.arena.mask_of(part)
                if only is not None:
                    self.mask = self.mask & only
                else:
                    self.guards.append(part)
        try:
            yield
        finally:
            self.mask = mask
            del self.guards[count:]

    @contextmanager
    def beyond_guards(self) -> Iterator[None]:
        """Decide nothing from the symbolic guards in force, for a value that is read after they end."""
        guards = self.guards
        self.guards = [g for g in guards if g.op == "dom"]
        try:
            yield
        finally:
            self.guards = guards

    def warp_uniform(self, source: IntVector) -> bool:
        """True when lane t and lane source[t] are active together, for every active t."""
        if not np.all(self.mask[source] | ~self.mask):
            return False
        move = self.arena.permutation_map(source)
        try:
            return all(g.uniform or move.pred(g) is g for g in self.guards)
        except Unsupported:
            return False

    def cta_uniform(self) -> bool:
        """True when all lanes of the CTA are active together, evidently."""
        return bool(self.mask.all()) and all(g.uniform for g in self.guards)
