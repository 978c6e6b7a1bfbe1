"""The facts of a run and what follows from them: the entailment oracle of the later stages (memoised)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import numpy as np

from warpproof.algebra import Points, cancel, check, pred_polys, prove_le, readd, support
from warpproof.solve.entailment import implies
from warpproof.solve.quotients import alternatives, below, candidates, isolated, quotient_facts, quotients
from warpproof.solve.relations import Problem
from warpproof.terms import Arena, BoolVector, Poly, Pred, const, divide_monomial

_FEW: Final = 6
_NONE: Final = 1 << 62  # no quotient is off limits


def _defines(arena: Arena, atom: int, value: int) -> tuple[Pred, ...]:
    """What it means for a minimum or maximum to have this value."""
    a = arena.atoms[atom]
    if a.kind not in ("min", "max"):
        return ()
    sign = 1 if a.kind == "min" else -1
    return (
        *(arena.le((value - p) * sign) for p in a.args), arena.disj(arena.eq(p - value) for p in a.args),
    )


def _scales(p: Poly, facts: Iterable[Poly]) -> list[int]:
    """Factors that bring a term of p to its coefficient in a fact."""
    out: set[int] = set()
    for f in facts:
        for m, c in p.terms.items():
            d = f.terms.get(m)
            if m and isinstance(c, int) and isinstance(d, int) and abs(d) > abs(c) and d % c == 0:
                out.add(abs(d // c))
    return sorted(out)[:2]


class Facts:
    """`base` holds in the whole launch. `implied(path, claim)` is sound and deterministic."""

    def __init__(self, arena: Arena, base: Iterable[Pred], case: tuple[Facts, Pred] | None = None) -> None:
        """`case` are the facts of which these are one case, and what distinguishes it."""
        self.arena = arena
        self._points: Points | None = None
        self._case = case
        self.base = tuple(p for q in base for p in arena.conjuncts(q))
        self.launch = self.base  # without what is learned about loaded values
        self._memo: dict[tuple[int, int, bool, int], bool] = {}
        self._cases: dict[tuple[int, int, int], Facts] = {}
        self._digits: dict[tuple[int, int], tuple[Pred, ...]] = {}
        self._continues: dict[tuple[int, int], Poly | None] = {}
        self._limit = _NONE
        self.proofs = 0
        self.samples = 4  # questions left to a solver for points that refute a claim: a few hints are enough

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
        key = (path.id, claim.id, hard, self._limit)
        if key not in self._memo and self.failing(path, claim) is not None:
            self._memo[key] = False
        if key not in self._memo:
            self._memo[key] = False  # where it is asked for again on the way
            self._memo[key] = self._found(path, claim, hard)
        return self._memo[key]

    def _found(self, path: Pred, claim: Pred, hard: bool) -> bool:
        """The answer for a claim that does not follow by the syntactic rules."""
        if claim.op == "and":
            return all(self.implied(path, p, hard=hard) for p in claim.args)
        if claim.op == "le" and (self._by_cancelling(path, claim) or self._by_digits(path, claim)):
            return True
        atom = self._small_factor(path, claim)
        return self._decide(path, claim, hard) if atom is None else self._by_values(atom, path, claim)

    def failing(self, path: Pred, claim: Pred) -> dict[int, int] | None:
        """Values of atoms, seen at a sample point, with which the path holds and the claim does not."""
        if self._case is not None:
            return self._case[0].failing(self.arena.conj((path, self._case[1])), claim)
        if self._points is None:
            self._points = Points(self.arena, self.launch)
        return self._points.refutes(self.base, path, claim)

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
            x = arena.variable(arena.atoms[atom])
            base = (*(put.pred(p) for p in self.base), *_defines(arena, atom, value))
            self._cases[atom, value, len(self.base)] = Facts(arena, base, (self, arena.eq(x - value)))
        return self._cases[atom, value, len(self.base)].implied(put.pred(path), put.pred(claim), hard=True)

    def _decide(self, path: Pred, claim: Pred, hard: bool) -> bool:
        match claim.op:
            case "or":
                return self._either(path, claim, hard) or (hard and self._sets(path, claim))
            case "le":
                return self._at_most_0(path, claim, hard)
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

    def _multiplied_out(self, path: Pred, claim: Pred, hard: bool) -> bool:
        """A bound on a quotient as a bound on its dividend."""
        return any(
            self._positive(path, d) and self.implied(path, self.arena.le(p), hard=hard)
            for p, d in isolated(self.arena, claim.data)
        )

    def _divided(self, path: Pred, claim: Pred) -> bool:
        """n + 1 ≤ e·d by what is known of ⌊n/d⌋, where the path speaks of that."""
        arena = self.arena
        for a in quotients(arena, (), arena.conjuncts(path)):
            n, d = arena.atoms[a].args
            if len(d.terms) == 1 and a not in claim.data.atoms() and a < self._limit:
                ((m, c),) = d.terms.items()
                e, rest = divide_monomial(n + 1 - claim.data, m, c if isinstance(c, int) else 1)
                if not rest.terms and self._positive(path, d):
                    short = arena.le(arena.variable(arena.atoms[a]) - e + 1)
                    if self.implied(path, short):
                        return True
        return False

    def _positive(self, path: Pred, p: Poly) -> bool:
        lo = self.arena.bounds(p)[0]
        return (lo is not None and lo >= 1) or self.implied(path, self.arena.le(1 - p))

    def _by_alternatives(self, path: Pred, claim: Pred, hard: bool) -> bool:
        """The claim for each value that a minimum or maximum in it may have."""
        found = alternatives(self.arena, claim.data)
        return bool(found) and all(self.implied(path, self.arena.le(p), hard=hard) for p in found)

    def _at_most_0(self, path: Pred, claim: Pred, hard: bool) -> bool:
        """A comparison that cancelling terms does not show, by the cheapest way that does."""
        bounded = self._bounded(path, claim)
        return (
            self._bitwise(path, claim.data, hard) or self._multiplied_out(path, claim, hard)
            or self._divided(path, claim) or self._by_cancelling(bounded, claim, slack=3)
            or self._certified(path, claim) or self._by_alternatives(path, claim, hard)
            or (bounded is not path and self._certified(bounded, claim)) or (hard and self._sets(path, claim))
        )

    def _by_digits(self, path: Pred, claim: Pred) -> bool:
        """A comparison by cancelling terms with the bounds of the quotients in it."""
        bounded = self._bounded(path, claim)
        return bounded is not path and self._by_cancelling(bounded, claim)

    def _bounded(self, path: Pred, claim: Pred) -> Pred:
        """The path with bounds of the quotients in the claim, which are shown first."""
        found = [a for a in quotients(self.arena, (claim.data,), self.arena.conjuncts(path)) if a < self._limit]
        found += [a for a in self._signless(path, claim) if a < self._limit]
        return self.arena.conj((path, *(q for a in found for q in self._digit_bounds(path, a))))

    def _signless(self, path: Pred, claim: Pred) -> list[int]:
        """The quotients by constants that their ranges do not show to be at least 0."""
        found = support(self.arena, (claim.data,), self.arena.conjuncts(path))
        kinds = [a for a in found if a >= 0 and self.arena.atoms[a].kind == "div" and not self.arena.atoms[a].tag]
        lows = {a: self.arena.ranges.get(a, (None, None))[0] for a in kinds if self.arena.atoms[a].args[1].as_int()}
        return [a for a, low in lows.items() if low is None or low < 0]

    def _by_cancelling(self, path: Pred, claim: Pred, slack: int = 0) -> bool:
        """The claim by multiples of the hypotheses and of the quotients' definitions, which are added up again."""
        atoms = claim.data.atoms()
        if slack:
            atoms |= set(quotients(self.arena, (), self.arena.conjuncts(path)))
        about = quotient_facts(self.arena, atoms, lambda d: self._positive(path, d))
        facts = [*self._at_least_0(path), *about]
        for k in (1, *(_scales(claim.data, facts) if slack else ())):
            p = claim.data * k - (k - 1)  # ≤ 0 as well, for integers
            rest, steps = cancel(self.arena, p, facts, slack)
            high = self.arena.bounds(rest)[1]
            if high is not None and high <= 0 and readd(self.arena, p, facts, steps) == rest:
                self.proofs += 1
                return True
        return False

    def _at_least_0(self, path: Pred) -> Iterator[Poly]:
        for p in (*self.arena.conjuncts(path), *self.base):
            if p.op in ("le", "eq"):
                yield -p.data
            if p.op == "eq":
                yield p.data
            if p.op == "ne":
                yield from (q - 1 for q in (p.data, -p.data) if self.implied(self._less(path, p), self.arena.le(-q)))
            if p.op == "dom" and (last := self._last_continue(path, p)) is not None:
                yield -last

    def _less(self, path: Pred, part: Pred) -> Pred:
        """The path without one of its conditions."""
        return self.arena.conj(q for q in self.arena.conjuncts(path) if q is not part)

    def _last_continue(self, path: Pred, domain: Pred) -> Poly | None:
        """What is ≤ 0 in every iteration: the condition after which the last one ran, where the loop was entered by it.

        A do-while loop runs its first iteration unasked; if the condition before it holds as well, all were asked for.
        """
        key = (path.id, domain.id)
        if key not in self._continues:
            self._continues[key] = None  # asked for again on the way
            atom, p = domain.data
            i = self.arena.variable(self.arena.atoms[atom])
            last = self.arena.substitute_poly(p, {atom: i - 1})
            first = self.arena.substitute_poly(p, {atom: const(-1)})
            others = self.arena.conj(q for q in self.arena.conjuncts(path) if q is not domain and atom not in q.free)
            if self.implied(others, self.arena.le(first)):
                self._continues[key] = last
        return self._continues[key]

    def _bitwise(self, path: Pred, p: Poly, hard: bool) -> bool:
        """a | b ≤ 2^k − 1 where both are, and a | b ≥ c where both are."""
        arena = self.arena
        (m, c), *more = sorted(p.symbolic().terms.items()) or [((), 0)]
        k = p.constant
        if more or len(m) != 1 or arena.atoms[m[0]].kind != "or" or not isinstance(k, int) or c not in (1, -1):
            return False
        if c == 1 and (k > 0 or (1 - k) & -k):
            return False
        return all(self.implied(path, arena.le(q * c + k), hard=hard) for q in arena.atoms[m[0]].args)

    def _digit_bounds(self, path: Pred, quotient: int) -> tuple[Pred, ...]:
        """What is known of a quotient under a path: at least 0, at most what the multiples of its divisor admit.

        On the way only bounds of quotients that are older are asked for, which are the ones inside.
        """
        key = (path.id, quotient)
        if key not in self._digits:
            outer, self._limit = self._limit, quotient
            try:
                self._digits[key] = tuple(self._bounds_of(path, quotient))
            finally:
                self._limit = outer
        return self._digits[key]

    def _bounds_of(self, path: Pred, quotient: int) -> Iterator[Pred]:
        arena = self.arena
        x, (n, d) = arena.variable(arena.atoms[quotient]), arena.atoms[quotient].args
        if not self._positive(path, d):
            return
        if self.implied(path, arena.le(-n)):
            yield arena.le(-x)
        if d.as_int() is not None:
            return
        known = [q for p in (*self.base, *arena.conjuncts(path)) for q in pred_polys(p)]
        inner = [q for a in support(arena, known) for q in arena.atoms[a].args]
        for e in candidates(arena, quotient, [*known, *inner]):
            if self.implied(path, arena.le(below(arena, quotient, e))):
                yield arena.le(x - e + 1)

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
