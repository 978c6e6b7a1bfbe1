"""Integer polynomial inequalities in every lane, proved with a certificate that a second routine re-adds exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

import numpy as np

from warpproof.algebra.constraints import (
    DERIVED,
    Formula,
    definition,
    formula,
    lane_classes,
    nested_quotients,
    support,
)
from warpproof.algebra.lane_fields import LaneFields, affine_parts, distinct_lanes, lane_fields, vectors
from warpproof.algebra.refutation import System, Tree, refutes
from warpproof.algebra.search import Refuted, Search
from warpproof.algebra.simplex import OutOfSteps, Steps
from warpproof.algebra.variables import Change, Elimination, choose_changes, find_elimination
from warpproof.core import Unsupported
from warpproof.terms import Arena, BoolVector, IntVector, Poly, Pred

DEFAULT_BUDGET: Final = 6000
_POINTWISE_LIMIT: Final = 64
_PARTS_LIMIT: Final = 8
_FIRST_HULL: Final = -1000
_FIRST_CHANGE: Final = -5000
_MAX_ELIMINATIONS: Final = 8


@dataclass(frozen=True, slots=True)
class LaneCase:
    """A refutation of `goal > 0` on some lanes.

    `style`: `fields` (radices of the lane fields), `hull` (every lane vector an unknown between its extremes) or
    `point` (one lane stands for those with the same coefficients). `changes` of unknowns come before the
    tree.
    """

    lanes: tuple[int, ...]
    style: str
    radices: tuple[int, ...]
    changes: tuple[Change | Elimination, ...]
    tree: Tree


@dataclass(frozen=True, slots=True, eq=False)
class Certificate:
    """A proof that goal ≤ 0 in every lane of the mask under the hypotheses; `cases` is empty for an interval proof."""

    arena: Arena
    goal: Poly
    hypotheses: tuple[Pred, ...]
    mask: tuple[bool, ...]
    interval: bool
    cases: tuple[LaneCase, ...]


def prove_le(
    arena: Arena, p: Poly, hypotheses: Sequence[Pred] = (), *, mask: BoolVector | None = None,
    budget: int = DEFAULT_BUDGET,
) -> Certificate | None:
    """A certificate that p ≤ 0 in every lane (of the mask), for all integers that satisfy the hypotheses.

    Also used: the atoms' ranges and the definitions of quotients, min, max, phi and trip counts. Hypotheses without an
    integer meaning are ignored. None means "not shown", never "false". `budget` bounds the work deterministically.
    """
    lanes = np.arange(arena.lanes) if mask is None else np.flatnonzero(mask)
    live = tuple(bool(b) for b in (np.ones(arena.lanes, dtype=bool) if mask is None else mask))
    high = arena.bounds(p)[1]
    if high is not None and high <= 0:
        return Certificate(arena, p, tuple(hypotheses), live, True, ())
    steps = Steps(budget)
    try:
        cases: list[LaneCase] = []
        for part in _classes(arena, p, hypotheses, lanes):
            found = _prove_class(arena, p, hypotheses, part, steps)
            if found is None:
                return None
            cases.extend(found)
    except (OutOfSteps, Refuted, Unsupported):
        return None
    return Certificate(arena, p, tuple(hypotheses), live, False, tuple(cases))


def check(certificate: Certificate) -> bool:
    """True when the certificate proves its goal: facts are rebuilt from the statement, sums are re-added exactly."""
    c = certificate
    if c.interval:
        high = c.arena.bounds(c.goal)[1]
        return high is not None and high <= 0
    if len(c.mask) != c.arena.lanes:
        return False
    wanted = np.flatnonzero(np.asarray(c.mask))
    for part in _classes(c.arena, c.goal, c.hypotheses, wanted):
        done: set[int] = set()
        for case in c.cases:
            lanes = np.asarray(case.lanes, dtype=np.int64)
            if set(case.lanes) <= set(part.tolist()) and _check_case(c, case, lanes):
                done |= set(case.lanes)
        if done != set(part.tolist()):
            return False
    return True


def _check_case(c: Certificate, case: LaneCase, lanes: IntVector) -> bool:
    if case.style == "point":
        polys = _relevant(c.arena, c.goal, c.hypotheses, lanes)[0]
        if len(distinct_lanes(vectors(polys), lanes)) != 1:
            return False
    system = system_of(c, case)
    return system is not None and refutes(system, case.tree)


def system_of(c: Certificate, case: LaneCase) -> System | None:
    """The facts that the tree of this case refutes, rebuilt from the statement; None when a change is unjustified."""
    view = _View(case.style, LaneFields(np.asarray(case.lanes, dtype=np.int64), case.radices))
    system = _system(c.arena, c.goal, c.hypotheses, view.fields.lanes, view)
    return None if system is None else _changed(system, case.changes)


def _changed(system: System, changes: Iterable[Change | Elimination]) -> System | None:
    """The system after changes of unknowns, None when one of them is not justified."""
    for change in changes:
        if isinstance(change, Elimination):
            equation = change.equation()
            if not any(p in (equation, -equation) for p in system.equations()):
                return None
        elif not change.valid({a for p in system.every_poly() for a in p.atoms()}):
            return None
        system = system.changed(change.apply)
    system = system.copy()
    system.add_signs()
    return system


# ---------------------------------------------------------------------- lanes
def _classes(arena: Arena, p: Poly, hypotheses: Sequence[Pred], lanes: IntVector) -> list[IntVector]:
    return lane_classes(arena, hypotheses, support(arena, (p,), hypotheses), lanes)


def _prove_class(
    arena: Arena, p: Poly, hypotheses: Sequence[Pred], lanes: IntVector, steps: Steps
) -> list[LaneCase] | None:
    polys, _ = _relevant(arena, p, hypotheses, lanes)
    found = vectors(polys)
    fields = lane_fields(found, lanes)
    styles = [("fields", fields)] if fields is not None else [("hull", LaneFields(lanes, ()))]
    for style, view in styles:
        try:
            done = _attempt(arena, p, hypotheses, lanes, _View(style, view), steps)
        except Refuted:  # lanes taken together are weaker than each lane alone
            done = None
        if done is not None:
            return [LaneCase(tuple(lanes.tolist()), style, view.radices, *done)]
    if not found or style == "fields":
        return None
    return _by_parts(arena, p, hypotheses, lanes, found, steps) or _pointwise(arena, p, hypotheses, lanes, found, steps)


def _by_parts(
    arena: Arena, p: Poly, hypotheses: Sequence[Pred], lanes: IntVector, found: list[IntVector], steps: Steps
) -> list[LaneCase] | None:
    """The lanes taken apart so that all vectors are affine in fields on each part."""
    out: list[LaneCase] = []
    try:
        for view in affine_parts(found, lanes, _PARTS_LIMIT):
            done = _attempt(arena, p, hypotheses, view.lanes, _View("fields", view), steps)
            if done is None:
                return None
            out.append(LaneCase(tuple(view.lanes.tolist()), "fields", view.radices, *done))
    except (Refuted, Unsupported):
        return None
    return out


def _pointwise(
    arena: Arena, p: Poly, hypotheses: Sequence[Pred], lanes: IntVector, found: list[IntVector], steps: Steps
) -> list[LaneCase] | None:
    _, group = np.unique(np.stack([v[lanes] for v in found]), axis=1, return_inverse=True)
    count = int(group.max()) + 1
    if count > _POINTWISE_LIMIT:
        return None
    out: list[LaneCase] = []
    for k in range(count):
        some = lanes[group.reshape(-1) == k]
        done = _attempt(arena, p, hypotheses, some, _View("point", LaneFields(some, ())), steps)
        if done is None:
            return None
        out.append(LaneCase(tuple(some.tolist()), "point", (), *done))
    return out


def _attempt(
    arena: Arena, p: Poly, hypotheses: Sequence[Pred], lanes: IntVector, view: _View, steps: Steps
) -> tuple[tuple[Change | Elimination, ...], Tree] | None:
    system = _system(arena, p, hypotheses, lanes, view)
    if system is None:
        return None
    derived = frozenset(a for a in support(arena, (p,)) if arena.atoms[a].kind in DERIVED)
    return refutation(system, steps, derived)


def refutation(
    system: System, steps: Steps, focus: frozenset[int] = frozenset()
) -> tuple[tuple[Change | Elimination, ...], Tree] | None:
    """Changes of unknowns and a refutation of the changed system; raises `OutOfSteps`."""
    changes: list[Change | Elimination] = []
    after = system
    while len(changes) < _MAX_ELIMINATIONS and (found := find_elimination(after.equations())) is not None:
        changes.append(found)
        after = after.changed(found.apply)
    numbers = count(_FIRST_CHANGE, -1)
    changes += choose_changes(after.every_poly(), after.inequalities(), lambda f: next(numbers), lambda a: True)
    changed = _changed(system, changes)
    tree = None if changed is None else _staged(changed, steps, focus)
    return None if tree is None else (tuple(changes), tree)


def _staged(system: System, steps: Steps, focus: frozenset[int]) -> Tree | None:
    """A refutation found without products, else with products about the goal, else with all; raises `OutOfSteps`."""
    products_of = [m for p in system.every_poly() for m in p.terms if len(m) > 1]
    about_goal = [m for m in products_of if m in system.polys[0].terms or not focus.isdisjoint(m)]
    attempts: list[tuple[int, frozenset[int] | None, str]] = [(6 if products_of else 1, focus, "none")]
    if about_goal:
        attempts.append((3, focus, "early"))
    if products_of:
        attempts.append((1, None, "late"))
    for share, wanted, products in attempts:
        part = Steps(steps.left // share)
        before = part.left
        try:
            found = Search(system.copy(), part, wanted, products=products).run()
        except OutOfSteps:
            found = None
        steps.take(min(before - max(part.left, 0), steps.left))
        if found is not None:
            return found
    return None


class _View:
    """How lane vectors are read on one set of lanes, with the facts on the unknowns that stand for them."""

    def __init__(self, style: str, fields: LaneFields) -> None:
        self.style, self.fields = style, fields
        self._hull: dict[bytes, tuple[int, int, int]] = {}

    def uniform(self, p: Poly) -> Poly | None:
        """p with its lane vectors replaced; None when they are not affine in the fields."""
        if p.uniform():
            return p
        if self.style == "fields":
            return self.fields.uniform(p)
        lanes = self.fields.lanes
        out = Poly({m: c for m, c in p.terms.items() if isinstance(c, int)})
        for m, c in p.terms.items():
            if isinstance(c, int):
                continue
            v = c[lanes]
            lo, hi = int(v.min()), int(v.max())
            if lo == hi:
                out = out + Poly({m: lo})
            elif self.style == "point":
                return None
            else:
                x = self._hull.setdefault(v.tobytes(), (_FIRST_HULL - len(self._hull), lo, hi))[0]
                out = out + Poly({tuple(sorted((x, *m))): 1})
        return out

    def bounds(self) -> list[Poly]:
        """Polynomials that are ≥ 0: the ranges of the unknowns."""
        out: list[Poly] = []
        for f, r in zip(self.fields.ids(), self.fields.radices):
            out += [Poly({(f,): 1}), Poly({(f,): -1, (): r - 1})]
        if self.fields.ragged():
            out.append(-self.fields.position() + (len(self.fields.lanes) - 1))
        for x, lo, hi in self._hull.values():
            out += [Poly({(x,): 1, (): -lo}), Poly({(x,): -1, (): hi})]
        return out


# ---------------------------------------------------------------------- the system
def _relevant(
    arena: Arena, p: Poly, hypotheses: Iterable[Pred], lanes: IntVector
) -> tuple[list[Poly], list[Formula]]:
    """The polynomials and formulas of the statement and of all definitions it reaches."""
    given_preds = tuple(hypotheses)
    given = [formula(arena, h, lanes) for h in given_preds]
    polys = [p, *(q for f in given for q in f.polys())]
    done: set[int] = set()
    while True:
        reached = support(arena, polys, given_preds)
        new = [a for a in reached if a not in done and arena.atoms[a].kind in DERIVED]
        if not new:
            nested = list(nested_quotients(arena, sorted(done)))
            return [*polys, *(q for f in nested for q in f.polys())], [*given, *nested]
        for a in new:
            done.add(a)
            d = definition(arena, arena.atoms[a], lanes)
            given.append(d)
            polys.extend(d.polys())


def _system(
    arena: Arena, p: Poly, hypotheses: Sequence[Pred], lanes: IntVector, view: _View
) -> System | None:
    """The facts whose contradiction proves the goal: its negation p ≥ 1, hypotheses, definitions, ranges, fields."""
    polys, formulas = _relevant(arena, p, hypotheses, lanes)
    goal = view.uniform(p)
    if goal is None:
        return None
    out = System()
    out.fact(goal - 1)
    for f in formulas:
        out.assume(f.map(view.uniform))
    for a in sorted({a for q in polys for a in q.atoms()}):
        lo, hi = arena.ranges.get(a, (None, None))
        if lo is not None:
            out.fact(Poly({(a,): 1, (): -lo}))
        if hi is not None:
            out.fact(Poly({(a,): -1, (): hi}))
    for q in view.bounds():
        out.fact(q)
    return out


def contradicts(arena: Arena, goal: Poly, formulas: Iterable[Formula], budget: int = DEFAULT_BUDGET) -> bool:
    """True when goal ≤ 0 follows from lane-uniform formulas and the atoms' ranges (re-checked exactly).

    Unknowns with negative ids have only the constraints that the formulas give them.
    """
    out = System()
    out.fact(goal - 1)
    given = list(formulas)
    for f in given:
        out.assume(f)
    for a in sorted({a for q in (goal, *(p for f in given for p in f.polys())) for a in q.atoms() if a >= 0}):
        lo, hi = arena.ranges.get(a, (None, None))
        if lo is not None:
            out.fact(Poly({(a,): 1, (): -lo}))
        if hi is not None:
            out.fact(Poly({(a,): -1, (): hi}))
    try:
        found = refutation(out, Steps(budget))
    except (OutOfSteps, Refuted):
        return False
    if found is None:
        return False
    changed = _changed(out, found[0])
    return changed is not None and refutes(changed, found[1])


__all__ = ["Certificate", "LaneCase", "check", "contradicts", "prove_le", "system_of"]
