"""The one matcher: a reduction of the kernel against a fold of the reference.

Each part's loads are solved for the fold's bound variables; the part must then equal the fold's body at that index, and
the indices of all parts must tile the fold's domain (add, mul) or cover exactly it (max, min). Nothing here knows a
kernel family: buffers, ranks and the number of bound variables are arbitrary.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

import numpy as np

from warpproof.algebra import Normaliser
from warpproof.core import Unsupported
from warpproof.equivalence.guards import Guards
from warpproof.equivalence.inversion import choices_of, invert
from warpproof.equivalence.lanewise import AtLane, Progression, drawn, own, progressions, steps, together
from warpproof.equivalence.pieces import Part, Splitter, crosses_lanes
from warpproof.equivalence.questions import Question, Sharing
from warpproof.solve import (
    Answer,
    Consecutive,
    Facts,
    Piece,
    Problem,
    Region,
    box_of,
    covers,
    exactly_once,
    flattened,
    quotients,
    within,
)
from warpproof.terms import Arena, IntVector, Poly, Pred, Real, TermMap, const

_FEW_LANES: Final = 4


@dataclass(frozen=True, slots=True)
class Opened:
    """A fold with its bound variables made free: nested folds of one operation are one with several variables."""

    op: str
    variables: tuple[int, ...]
    domain: Pred
    body: Real


def open_fold(arena: Arena, fold: Real) -> Opened:
    """The fold, nested folds of the same operation included."""
    op, atom, domain, body = arena.open(fold)
    variables = [atom]
    while body.op == "fold" and body.data[0] == op:
        _, inner, more, body = arena.open(body)
        variables.append(inner)
        domain = arena.conj((domain, more))
    return Opened(op, tuple(variables), domain, body)


class Matcher:
    """Matches reductions under the facts of a run; `log` collects evidence."""

    def __init__(self, arena: Arena, normal: Normaliser, facts: Facts) -> None:
        self.arena, self.normal, self.facts = arena, normal, facts
        self.intervals = Consecutive(facts)
        self.guards = Guards(arena, normal, facts)
        self.log: list[dict[str, object]] = []
        self.why = ""
        self._memo: dict[tuple[int, int, int], Real | None] = {}
        self._sharing = Sharing(arena)
        self._answers: dict[Hashable, bool] = {}

    # ------------------------------------------------------------------ entry
    def match(self, x: Real, fold: Real, path: Pred) -> Real | None:
        """`fold`, plus what x adds to it, when shown equal to x in every lane where `path` holds; else None."""
        everywhere = self.arena.true
        alike = crosses_lanes(x, fold.data[0]) and fold.uniform
        for where in (everywhere, path) if alike and path is not everywhere else (path,):
            key = (x.id, fold.id, where.id)
            if key not in self._memo:
                self._memo[key] = self._attempt(x, fold, where)
            if self._memo[key] is not None:
                return self._memo[key]
        return None

    def _attempt(self, x: Real, fold: Real, path: Pred) -> Real | None:
        op = fold.data[0]
        try:
            if crosses_lanes(x, op):
                return fold if self._by_rows(x, fold, op, path) else None
            return self._in_lane(x, fold, op, path)
        except Unsupported as stuck:
            self.why = str(stuck)
            return None

    # ------------------------------------------------------------------ across lanes
    def _by_rows(self, x: Real, fold: Real, op: str, path: Pred) -> bool:
        """Lanes that draw on the same source lanes are one class; each class is one question."""
        active = self.facts.mask(path)
        lanes = np.arange(self.arena.lanes) if active is None else np.nonzero(active)[0]
        several = not fold.uniform and len(lanes) > _FEW_LANES
        if several and self._in_sequence(x, fold, op, path, lanes):
            return True
        if several and self._of_few_rows(x, op, lanes):  # before the lane is made an unknown: rows may ask the same
            if self._row_by_row(x, fold, op, path, lanes):
                return True
            return bool(self._by_progressions(x, fold, op, path, lanes))
        found = self._by_progressions(x, fold, op, path, lanes) if several else None
        return self._row_by_row(x, fold, op, path, lanes) if found is None else found

    def _of_few_rows(self, x: Real, op: str, lanes: IntVector) -> bool:
        """Many lanes share each reduction."""
        try:
            return len(self._classes(x, op, lanes)) * _FEW_LANES <= len(lanes)
        except Unsupported:
            return False

    def _row_by_row(self, x: Real, fold: Real, op: str, path: Pred, lanes: IntVector) -> bool:
        """Every class of lanes has its own question."""
        rows = (self._one_row(x, fold, op, path, members) for members in self._classes(x, op, lanes))
        return all(q is not None and self._shared(self._tiles, *q) for q in rows)

    def _in_sequence(self, x: Real, fold: Real, op: str, path: Pred, lanes: IntVector) -> bool:
        """Every class of lanes adds up consecutive intervals."""
        try:
            rows = (self._one_row(x, fold, op, path, members) for members in self._classes(x, op, lanes))
            return all(q is not None and self._shared(self._consecutive, *q) for q in rows)
        except Unsupported:
            return False

    def _shared(self, ask: Callable[[Opened, list[Piece], Pred], bool], opened: Opened, pieces: list[Piece],
                path: Pred) -> bool:
        """The answer to the question of one row; rows that ask the same get it once."""
        try:
            q = self._sharing.common(Question(opened.op, opened.variables, opened.domain, tuple(pieces), path))
        except Unsupported:  # values that each lane has of its own
            q = None
        if q is None:
            return ask(opened, pieces, path)
        for asked in (self._sharing.relevant(q), q):
            key = (ask.__name__, asked.key())
            if key not in self._answers:
                here = replace(opened, variables=q.variables, domain=q.domain)
                self._answers[key] = ask(here, list(q.pieces), asked.path)
            if self._answers[key]:
                return True
        return False

    def _by_progressions(self, x: Real, fold: Real, op: str, path: Pred, lanes: IntVector) -> bool | None:
        """One question for each progression of lanes; None when the lanes do not form such."""
        for step in steps(len(lanes)):
            split = progressions(self.arena, lanes, step)
            try:
                asked = [self._along(x, fold, op, path, p) for p in split] if split is not None else [None]
            except Unsupported:
                continue
            if all(asked):
                return all(self._tiles(*q) for q in asked if q is not None)
        return None

    def _along(
        self, x: Real, fold: Real, op: str, path: Pred, where: Progression
    ) -> tuple[Opened, list[Piece], Pred] | None:
        """The question whether x is the fold at the lanes of a progression; None when it cannot be asked this way."""
        a = self.arena
        at = AtLane(a, where)
        opened = open_fold(a, at.real(fold))
        local = at.pred(a.conj(p for p in a.conjuncts(path) if a.mask_of(p) is None))
        weight = np.zeros((where.count, a.lanes), np.int64)
        weight[np.arange(where.count), where.lanes()] = 1
        pieces = []
        parts = together(a, self.guards.unguarded(Splitter(a, op).split(x, weight), op))
        for part in (self.guards.where_it_counts(p) for p in parts if not self._below(p.leaf, fold)):
            seen = self._seen_along(part, at, where)
            if seen is None:
                return None
            here = a.conj((seen.guard, local))
            if here.op == "false":
                continue
            solved = self._solve(seen, opened, here)
            if solved is not None:
                pieces.append(Piece((seen.guard,), seen.loops, (), solved, seen.weight))
            elif not self.facts.infeasible(here):
                self.why = "a summand of the kernel is not a summand of the reference"
                return None
        return opened, pieces, local

    def _seen_along(self, part: Part, at: AtLane, where: Progression) -> Part | None:
        """A part with a row of weights for each lane of a progression, as one part of the unknown lane."""
        a = self.arena
        mine = own(part.weight, where)
        if mine is not None:
            first = np.zeros(a.lanes, np.int64)
            first[0] = 1
            return Part(at.pred(a.conj((part.guard, a.lane_mask(mine)))), part.loops, at.real(part.leaf), first)
        found = drawn(part.weight, where)
        if found is None:
            return None
        lanes, offset = found
        if offset is None:
            return Part(part.guard, part.loops, part.leaf, lanes)
        below = a.le(const(np.arange(a.lanes)) - where.lane() - offset)
        return Part(a.conj((part.guard, below)), part.loops, part.leaf, lanes)

    def _classes(self, x: Real, op: str, lanes: IntVector) -> list[IntVector]:
        columns = [np.zeros((self.arena.lanes, 1), np.int64)]
        self._sources(x, op, columns)
        table = np.concatenate(columns, axis=1)[lanes]
        _, inverse = np.unique(table, axis=0, return_inverse=True)
        flat = inverse.reshape(-1)
        classes = [lanes[flat == k] for k in range(int(flat.max(initial=-1)) + 1)]
        if len(classes) > 64:
            raise Unsupported("reduction", "more than 64 different lane groups")
        return classes

    def _sources(self, x: Real, op: str, columns: list[IntVector]) -> None:
        if x.op == "red":
            columns.append(self.arena.matrix(x))
        elif x.op == "gather":
            columns.append(self.arena.permutation(x)[:, None])
        elif x.op == "fold" and x.data[0] == op and crosses_lanes(x, op):
            if x.pred is None or not x.pred.uniform:
                raise Unsupported("reduction", "a loop of lane-dependent length around a cross-lane reduction")
            self._sources(x.args[0], op, columns)
        elif x.op in (op, "sel") and x.folds:
            if x.pred is not None and not x.pred.uniform:
                mask = self.arena.mask_of(x.pred)
                columns.append((np.arange(self.arena.lanes) if mask is None else mask.astype(np.int64))[:, None])
            for y in x.args:
                self._sources(y, op, columns)
        else:
            columns.append(np.arange(self.arena.lanes)[:, None])

    def _one_row(
        self, x: Real, fold: Real, op: str, path: Pred, members: IntVector
    ) -> tuple[Opened, list[Piece], Pred] | None:
        """The question whether x is the fold at lanes that draw on the same lanes; None when it cannot be asked."""
        a = self.arena
        lead = int(members[0])
        to_lead = np.arange(a.lanes)
        to_lead[members] = lead
        if a.permute(fold, to_lead) is not fold:
            raise Unsupported("reduction", "lanes that share a reduction need different results")
        here = np.full(a.lanes, lead)
        at_lead = a.permute(fold, here)
        weight = np.zeros(a.lanes, np.int64)
        weight[lead] = 1
        parts = self.guards.unguarded(Splitter(a, op).split(x, weight), op)
        # Only what the path says alike of every member may be used: the lead may stand where another does not.
        alike = a.permutation_map(to_lead)
        shared = a.conj(p for p in a.conjuncts(path) if a.mask_of(p) is None and alike.pred(p) is p)
        local = a.permutation_map(here).pred(shared)
        opened = open_fold(a, at_lead)
        pieces = []
        for part in (self.guards.where_it_counts(p) for p in parts if not self._below(p.leaf, fold)):
            here_guard = a.conj((part.guard, local))
            if here_guard.op == "false":
                continue
            solved = self._solve(part, opened, here_guard)
            if solved is None:
                if self.facts.infeasible(here_guard):
                    continue
                self.why = "a summand of the kernel is not a summand of the reference"
                return None
            pieces.append(Piece((part.guard,), part.loops, (), solved, part.weight))
        return *self._without_shared(opened, pieces, local), local

    # ------------------------------------------------------------------ within a lane
    def _in_lane(self, x: Real, fold: Real, op: str, path: Pred) -> Real | None:
        a = self.arena
        parts = self.guards.unguarded(Splitter(a, op).split(x, np.ones(a.lanes, np.int64)), op, path)
        opened = open_fold(a, fold)
        pieces: list[Piece] = []
        rest = a.identity(op)
        for part in parts:
            if self._below(part.leaf, fold):
                continue
            guard = self.guards.reduced(part.guard, path)
            solved = self._solve(part, opened, a.conj((guard, path)))
            if solved is not None:
                pieces.append(Piece((guard,), part.loops, (), solved, part.weight))
            elif self.facts.infeasible(a.conj((guard, path))):
                continue
            elif part.loops:
                self.why = "a summand of the kernel is not a summand of the reference"
                return None
            else:
                rest = a.combine(op, rest, a.sel(part.guard, part.leaf, a.identity(op)))
        if not pieces:
            return None
        opened, pieces = self._without_shared(opened, pieces, path)
        if self._alike(pieces, opened):
            shared = a.conj(p for p in a.conjuncts(path) if p.uniform)
            if any(self._tiles(opened, self._at_first(pieces), p) for p in dict.fromkeys((a.true, shared))):
                return a.combine(op, fold, rest)
        if rest is a.identity(op) and self._vary(pieces, opened, path) and self._along_lanes(x, fold, op, path):
            return fold
        for lane_pieces, lane in self._lane_kinds(pieces, opened, path):
            here = a.permutation_map(np.full(a.lanes, lane))
            if not self._tiles(self._at(opened, here), lane_pieces, here.pred(self._plain(path))):
                return None
        return a.combine(op, fold, rest)

    def _vary(self, pieces: list[Piece], opened: Opened, path: Pred) -> bool:
        """More than a few lanes ask different questions."""
        kinds = () if opened.domain.uniform else islice(self._lane_kinds(pieces, opened, path), _FEW_LANES + 1)
        return len(list(kinds)) > _FEW_LANES

    def _along_lanes(self, x: Real, fold: Real, op: str, path: Pred) -> bool:
        active = self.facts.mask(path)
        lanes = np.arange(self.arena.lanes) if active is None else np.nonzero(active)[0]
        return bool(self._by_progressions(x, fold, op, path, lanes))

    def _at(self, opened: Opened, here: TermMap) -> Opened:
        return Opened(opened.op, opened.variables, here.pred(opened.domain), opened.body)

    def _plain(self, path: Pred) -> Pred:
        return self.arena.conj(p for p in self.arena.conjuncts(path) if self.arena.mask_of(p) is None)

    def _alike(self, pieces: list[Piece], opened: Opened) -> bool:
        """Every lane asks the same question, its path apart."""
        return opened.domain.uniform and all(
            len({_count(p, t) for t in range(self.arena.lanes)}) == 1 and all(g.uniform for g in p.guards)
            and all(self.arena.poly_uniform(q) for q in p.index)
            for p in pieces
        )

    def _at_first(self, pieces: list[Piece]) -> list[Piece]:
        """The question of one lane."""
        return [Piece(p.guards, p.loops, p.blocks, p.index, _at_lane(p, self.arena.lanes, 0)) for p in pieces]

    def _lane_kinds(self, pieces: list[Piece], opened: Opened, path: Pred) -> Iterator[tuple[list[Piece], int]]:
        """Lanes that ask the same question need asking once."""
        a = self.arena
        active = self.facts.mask(path)
        lanes = np.arange(a.lanes) if active is None else np.nonzero(active)[0]
        plain = self._plain(path)
        uniform = plain.uniform and self._alike(pieces, opened)
        seen: set[object] = set()
        for lane in lanes[:1] if uniform else lanes:
            here = a.permutation_map(np.full(a.lanes, int(lane)))
            moved = [
                Piece(tuple(here.pred(g) for g in p.guards), p.loops, (), tuple(here.poly(q) for q in p.index),
                      _at_lane(p, a.lanes, int(lane)))
                for p in pieces
            ]
            asked = tuple((p.guards, tuple(q.key for q in p.index), _count(p, int(lane))) for p in moved)
            key = (asked, here.pred(opened.domain).id, here.pred(plain).id)
            if key in seen:
                continue
            seen.add(key)
            if len(seen) > 128:
                raise Unsupported("reduction", "more than 128 lanes with different index sets")
            yield moved, int(lane)

    def _below(self, leaf: Real, fold: Real) -> bool:
        """A pair of −∞ and a position, below all pairs of a fold of which there are some, all with finite values."""
        return leaf.op == "placed" and leaf.args[0] is self.arena.minus_inf and fold.data[0] == "max" and not fold.ext

    # ------------------------------------------------------------------ index equations
    def _solve(self, part: Part, opened: Opened, path: Pred) -> tuple[Poly, ...] | None:
        """Values of the bound variables that make the fold's body equal to the part."""
        for values in self._candidates(part.leaf, opened):
            body = self.arena.substitute(opened.body, dict(zip(opened.variables, values, strict=True)))
            if self.normal.equal(part.leaf, body, path, self.facts.implied):
                return values
        return None

    def _candidates(self, leaf: Real, opened: Opened) -> Iterator[tuple[Poly, ...]]:
        have = _reads(self.arena, leaf)
        want = [y for y in _reads(self.arena, opened.body) if set(opened.variables) & self.arena.poly_free(y[1])]
        seen: set[tuple[Poly, ...]] = set()
        found: dict[int, list[Poly]] = {}
        for y in want:
            for x in have:
                if x[0] != y[0]:
                    continue
                part = invert(y[1], x[1], opened.variables)
                if part is None:
                    continue
                for v, q in part.items():
                    found.setdefault(v, [])
                    if q not in found[v]:
                        found[v].append(q)
        if any(v not in found for v in opened.variables):
            return
        for values in choices_of([found[v] for v in opened.variables]):
            if values not in seen:
                seen.add(values)
                yield values

    # ------------------------------------------------------------------ sets
    def _consecutive(self, opened: Opened, pieces: list[Piece], path: Pred) -> bool:
        if len(opened.variables) != 1:
            return False
        domain = opened.variables[0], self.arena.conjuncts(opened.domain)
        return self.intervals.holds(domain, pieces, path)

    def _tiles(self, opened: Opened, pieces: list[Piece], path: Pred) -> bool:
        if self._consecutive(opened, pieces, path):
            self.log.append({"fold": opened.op, "intervals": len(pieces)})
            return True
        a = self.arena
        domain = a.conjuncts(opened.domain)
        facts = (*self.facts.launch, *(p for p in a.conjuncts(path) if p.uniform))
        problem = Problem(a, facts, Region(opened.variables, domain))
        extents = box_of(self.facts, opened.variables, domain)
        flat = flattened(self.facts, pieces, extents, path) if extents is not None else None
        if flat is not None:
            pieces, problem = flat[0], Problem(a, facts, flat[1])
        if opened.op in ("add", "mul"):
            answer = exactly_once(problem, pieces)
        else:
            answer = covers(problem, pieces)
            if answer.holds:
                answer = within(problem, pieces)
        return self._note(opened, answer)

    def _without_shared(
        self, opened: Opened, pieces: list[Piece], path: Pred
    ) -> tuple[Opened, list[Piece]]:
        """The domain's and the pieces' conditions, without those on quotients that every piece meets with its index.

        Pieces that tile a set still do so when elements are taken out of the set and the points that give them out of
        the pieces.
        """
        a = self.arena
        domain, out = list(a.conjuncts(opened.domain)), list(pieces)
        for p in a.conjuncts(opened.domain):
            if not set(opened.variables) & p.free or not quotients(a, (), (p,)):
                continue
            said = [
                a.substitution(dict(zip(opened.variables, q.index, strict=True))).pred(p) for q in out
            ]
            parts = [[g for h in q.guards for g in a.conjuncts(h)] for q in out]
            if all(s in mine or self.facts.implied(a.conj((path, *mine)), s) for s, mine in zip(said, parts)):
                domain.remove(p)
                out = [
                    replace(q, guards=tuple(g for g in mine if g is not s)) for q, s, mine in zip(out, said, parts)
                ]
        return replace(opened, domain=a.conj(domain)), out

    def _note(self, opened: Opened, answer: Answer) -> bool:
        if answer.holds:
            self.log.append({"fold": opened.op, **answer.evidence})
            return True
        found = answer.witness or answer.evidence.get("why", "")
        self.why = f"the kernel's {opened.op} does not run over the reference's index set: {found}"
        return False


def _count(p: Piece, lane: int) -> int:
    """How often the piece counts in a lane."""
    return p.weight if isinstance(p.weight, int) else int(p.weight[lane])


def _at_lane(p: Piece, lanes: int, lane: int) -> IntVector:
    """The weight of the piece in this lane alone."""
    w = np.zeros(lanes, np.int64)
    w[lane] = _count(p, lane)
    return w


def _reads(arena: Arena, x: Real) -> list[tuple[object, Poly]]:
    """What a term reads outside folds and cross-lane reductions: buffers, floats or integers, and indices."""
    out: list[tuple[object, Poly]] = []
    seen, stack = set[int](), [x]
    while stack:
        y = stack.pop()
        if y.id in seen:
            continue
        seen.add(y.id)
        if y.op == "load":
            out.append(y.data)
        elif y.op == "int":
            atoms = [arena.atoms[a] for a in sorted(y.data.atoms())]
            out += [((a.name, a.tag), a.args[0]) for a in atoms if a.kind == "elem"]
        elif y.op not in ("fold", "red", "gather"):
            stack.extend(y.args)
    return out
