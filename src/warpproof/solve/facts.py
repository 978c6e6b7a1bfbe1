"""The facts of a run and what follows from them: the entailment oracle of the later stages (memoised)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from warpproof.algebra import check, prove_le
from warpproof.solve.entailment import implies
from warpproof.solve.relations import Problem
from warpproof.terms import Arena, BoolVector, Poly, Pred, const

_FEW: Final = 6


def _defines(arena: Arena, atom: int, value: int) -> tuple[Pred, ...]:
    """What it means for a minimum or maximum to have this value."""
    a = arena.atoms[atom]
    if a.kind not in ("min", "max"):
        return ()
    sign = 1 if a.kind == "min" else -1
    return (
        *(arena.le((value - p) * sign) for p in a.args), arena.disj(arena.eq(p - value) for p in a.args),
    )


class Facts:
    """`base` holds in the whole launch. `implied(path, claim)` is sound and deterministic."""

    def __init__(self, arena: Arena, base: Iterable[Pred]) -> None:
        self.arena = arena
        self.base = tuple(p for q in base for p in arena.conjuncts(q))
        self.launch = self.base  # without what is learned about loaded values
        self._memo: dict[tuple[int, int, bool], bool] = {}
        self._cases: dict[tuple[int, int, int], Facts] = {}
        self.proofs = 0

    def learn(self, fact: Pred) -> None:
        """Add a fact about a new atom."""
        if fact not in self.base:
            self.base = (*self.base, *self.arena.conjuncts(fact))

    def problem(self, path: Pred | None = None) -> Problem:
        """A set problem under these facts (and the lane-uniform part of a path)."""
        extra = tuple(p for p in self.arena.conjuncts(path) if p.uniform) if path is not None else ()
        return Problem(self.arena, (*self.base, *extra))

    def implied(self, path: Pred, claim: Pred, *, hard: bool = False) -> bool:
        """True when the claim follows in every lane where the path holds; `hard` also asks integer sets."""
        if self.arena.implies(path, claim) or path.op == "false":
            return True
        key = (path.id, claim.id, hard)
        if key not in self._memo:
            atom = self._small_factor(path, claim)
            self._memo[key] = (
                self._decide(path, claim, hard) if atom is None else self._by_values(atom, path, claim)
            )
        return self._memo[key]

    def _by_values(self, atom: int, path: Pred, claim: Pred) -> bool:
        """One case for each value of a factor with few values (a grid of at most a few blocks)."""
        lo, hi = self.arena.ranges[atom]
        return lo is not None and hi is not None and all(
            self._at_value(atom, v, path, claim) for v in range(lo, hi + 1)
        )

    def _small_factor(self, path: Pred, claim: Pred) -> int | None:
        conjuncts = [p for q in (path, claim) for p in self.arena.conjuncts(q)]
        polys: list[Poly] = [p.data for p in conjuncts if p.op in ("le", "eq", "ne")]
        for p in polys:
            for m in p.terms:
                for a in m if len(m) > 1 else ():
                    lo, hi = self.arena.ranges.get(a, (None, None))
                    if lo is not None and hi is not None and hi - lo < _FEW and not self.arena.atoms[a].free:
                        return a
        return None

    def _at_value(self, atom: int, value: int, path: Pred, claim: Pred) -> bool:
        arena = self.arena
        put = arena.substitution({atom: const(value)})
        if (atom, value, len(self.base)) not in self._cases:
            base = (*(put.pred(p) for p in self.base), *_defines(arena, atom, value))
            self._cases[atom, value, len(self.base)] = Facts(arena, base)
        return self._cases[atom, value, len(self.base)].implied(put.pred(path), put.pred(claim), hard=True)

    def _decide(self, path: Pred, claim: Pred, hard: bool) -> bool:
        match claim.op:
            case "and":
                return all(self.implied(path, p, hard=hard) for p in claim.args)
            case "or":
                return self._either(path, claim, hard) or (hard and self._sets(path, claim))
            case "le":
                return self._certified(path, claim) or (hard and self._sets(path, claim))
            case "eq":
                parts = (self.arena.le(claim.data), self.arena.le(-claim.data))
                return all(self._certified(path, p) for p in parts) or (hard and self._sets(path, claim))
            case "ne":
                parts = (self.arena.le(claim.data + 1), self.arena.le(1 - claim.data))
                return any(self._certified(path, p) for p in parts) or (hard and self._sets(path, claim))
            case "false":
                return self.infeasible(path, hard=hard)
            case "dom":
                atom, p = claim.data
                i = self.arena.variable(self.arena.atoms[atom])
                before = self.arena.substitute_poly(p, {atom: i - 1})
                first = self.arena.conj((path, self.arena.ne(i)))
                return self.implied(path, self.arena.le(-i)) and self.implied(first, self.arena.le(before), hard=hard)
            case _:
                return False

    def _either(self, path: Pred, claim: Pred, hard: bool) -> bool:
        """One alternative follows from the path and the failure of the others."""
        for p in claim.args:
            others = [self.arena.negate(q) for q in claim.args if q is not p]
            if self.implied(self.arena.conj((path, *others)), p, hard=hard):
                return True
        return False

    def mask(self, path: Pred) -> BoolVector | None:
        """The lanes a path admits."""
        found = [self.arena.mask_of(p) for p in self.arena.conjuncts(path)]
        masks = [m for m in found if m is not None]
        return np.logical_and.reduce(masks) if masks else None

    def _certified(self, path: Pred, claim: Pred) -> bool:
        if claim.op != "le":
            return claim.op == "true"
        given = (*self.base, *self.arena.conjuncts(path))
        found = prove_le(self.arena, claim.data, given, mask=self.mask(path))
        if found is None or not check(found):
            return False
        self.proofs += 1
        return True

    def _sets(self, path: Pred, claim: Pred) -> bool:
        answer = implies(self.problem(), self.arena.conjuncts(path), claim, mask=self.mask(path))
        return answer.holds is True

    def infeasible(self, path: Pred, *, hard: bool = False) -> bool:
        """True when no lane, block and size can satisfy the path."""
        parts = self.arena.conjuncts(path)
        for p in parts:
            rest = self.arena.conj(q for q in parts if q is not p)
            if p.op == "le" and self.implied(rest, self.arena.negate(p)):
                return True
            if p.op == "or" and all(self.infeasible(self.arena.conj((rest, q))) for q in p.args):
                return True
        return hard and self._sets(path, self.arena.false)
