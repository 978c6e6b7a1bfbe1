"""The conditions of summands: moved from factors to the part, and without what is known anyway."""

from __future__ import annotations

import numpy as np

from warpproof.algebra import Form, Normaliser
from warpproof.equivalence.pieces import Part
from warpproof.solve import Facts
from warpproof.terms import Arena, Pred


class Guards:
    """Simplifies the conditions of parts under the facts of a run."""

    def __init__(self, arena: Arena, normal: Normaliser, facts: Facts) -> None:
        self.arena, self.normal, self.facts = arena, normal, facts

    def where_it_counts(self, p: Part) -> Part:
        """The part with lanes that do not contribute replaced by one that does, so that only these are compared."""
        lanes = np.arange(self.arena.lanes)
        counts = (p.weight > 0).reshape(-1, self.arena.lanes).any(axis=0)
        to = np.where(counts, lanes, lanes[int(np.argmax(counts))])
        move = self.arena.permutation_map(to)
        return Part(move.pred(p.guard), p.loops, self.arena.permute(p.leaf, to), p.weight)

    def unguarded(self, parts: list[Part], op: str, path: Pred | None = None) -> list[Part]:
        """Summands with the conditions of their factors moved to the part: [g]·x is x where g holds.

        Where several conditions are left, what the path and the part imply is left out of them, so that factors which
        are read under conditions of their own meet again.
        """
        if op != "add":
            return parts
        out = []
        for p in parts:
            groups: dict[Pred, Form] = {}
            for key, c in self.normal.form(p.leaf).items():
                groups.setdefault(key[0], {})[self.arena.true, key[1], key[2]] = c
            if len(groups) > 1 and path is not None:
                groups = self._met(groups, self.arena.conj((p.guard, path)))
            for g, form in groups.items():
                leaf = p.leaf if g.op == "true" and len(groups) == 1 else self.normal.term(form)
                out.append(Part(self.arena.conj((p.guard, g)), p.loops, leaf, p.weight))
        return out

    def _met(self, groups: dict[Pred, Form], known: Pred) -> dict[Pred, Form]:
        """The groups by what their conditions say beyond what is known, and beyond each other."""
        out: dict[Pred, Form] = {}
        for g, form in groups.items():
            short = self.reduced(g, known)
            same = next((h for h in out if self._says(known, h, short) and self._says(known, short, h)), short)
            into = out.setdefault(same, {})
            for key, c in form.items():
                into[key] = into.get(key, 0) + c
        return out

    def _says(self, known: Pred, g: Pred, h: Pred) -> bool:
        return self.facts.implied(self.arena.conj((known, g)), h)

    def reduced(self, guard: Pred, path: Pred) -> Pred:
        """A guard without what the path implies anyway."""
        a = self.arena
        return a.conj(p for p in a.conjuncts(guard) if not self.facts.implied(path, p, hard=not p.free))
