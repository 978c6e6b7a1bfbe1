"""Means and centred sums merged pairwise: over the lanes of a warp, over the warps of a CTA.

A mean is S / W of a sum S and a weight W ≥ 0, a centred sum is Q − S² / W; both, S and Q are 0 where W is 0. Two of
them, (S, W, Q) and (S', W', Q'), merge into (S + S', W + W', Q + Q') (Chan, Golub and LeVeque 1983), however the code
says it: a term is taken for the merged mean or centred sum when it has that value in each of the four cases that W and
W' are 0 or not, as a rational function of the sums and weights. Sums over lanes are then what other stages know.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np

from warpproof.algebra import Normaliser, weighted
from warpproof.core import Unsupported
from warpproof.equivalence.rewriting import rebuilt
from warpproof.solve import Facts
from warpproof.terms import Arena, BoolVector, Coef, IntVector, Poly, Pred, Real, const

_ARITHMETIC: Final = frozenset({"add", "mul", "div", "sel", "max", "min"})
_MERGES: Final = frozenset({"add", "div", "sel"})
_GROUPS: Final = 4
_INTEGERS: Final = 4  # of a merge that may be weights
_OPENED: Final = 3
_PLACES: Final = 400  # of a term that one merge is looked for in
Ratio = tuple[Poly, Poly]  # numerator and denominator
ONE: Final = const(1)
NONE: Final = const(0)


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A mean `total` / `weight`, or with `squares` the centred sum `squares` − `total`² / `weight`."""

    total: Real
    weight: Poly
    squares: Real | None = None

    @property
    def group(self) -> tuple[int, Poly]:
        """What a mean and the sum centred on it have in common."""
        return self.total.id, self.weight


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """A mean and what is centred on it, by unknowns: the sum, the weight, the sum of squares."""

    moment: Moment
    zero: bool
    total: Poly
    weight: Poly
    squares: Poly


@dataclass(slots=True)
class _Case:
    """The two parts of a merge where the weight of each is known to be positive or 0."""

    path: Pred
    parts: dict[tuple[int, Poly], _Part]
    leaves: dict[int, Moment]
    known: dict[int, Ratio | None] = field(default_factory=dict)


class Moments:
    """Finds merges of means in kernel terms, innermost first."""

    def __init__(self, arena: Arena, facts: Facts, normal: Normaliser) -> None:
        self.arena, self.facts, self.normal = arena, facts, normal
        self._found: dict[int, Moment | None] = {}
        self._terms: dict[tuple[int, int], Real] = {}
        self._worth: dict[int, tuple[bool, bool]] = {}
        self._read: set[int] = set()  # the terms that other lanes read
        self._means: list[tuple[Real, Moment]] = []  # of single lanes

    def merged(self, x: Real, path: Pred) -> Real:
        """A term equal to x where the path holds; merged means and centred sums in it are quotients of sums."""
        if not x.folds or not all(self._contains(x)):
            return x
        key = (x.id, path.id)
        if key not in self._terms:
            found = self.moment(x)
            if found is not None:
                self._terms[key] = self._term(found, path)
            elif x.op in ("gather", "red", "fold"):
                self._terms[key] = x
            else:
                args = tuple(self.merged(y, path) for y in x.args)
                self._terms[key] = x if args == x.args else rebuilt(self.arena, x, args)
        return self._terms[key]

    def moment(self, x: Real) -> Moment | None:
        """The mean or centred sum that a merge is, else None."""
        if x.id not in self._found:
            self._found[x.id] = None
            if x.op == "gather":
                self._found[x.id] = self._moved(self.moment(x.args[0]), self.arena.permutation(x))
            elif x.op in _MERGES and all(self._contains(x)):
                self._found[x.id] = self._some_lanes(x) or self._merge(x)
        return self._found[x.id]

    def _contains(self, x: Real) -> tuple[bool, bool]:
        """Whether values of other lanes, and quotients, occur in a term."""
        if x.id not in self._worth:
            inner = [self._contains(y) for y in x.args]
            if x.op == "gather":
                self._read.add(x.args[0].id)
            moved, divided = any(g for g, _ in inner), any(d for _, d in inner)
            self._worth[x.id] = (moved or x.op == "gather", divided or x.op == "div")
        return self._worth[x.id]

    def _term(self, m: Moment, path: Pred) -> Real:
        a = self.arena
        top = m.total if m.squares is None else a.mul(m.total, m.total)
        weight = whole_floors(a, m.weight, self.facts.mask(path))
        positive = a.le(ONE - weight)
        value = a.div(top, a.of_int(weight))
        value = value if self.facts.implied(path, positive) else a.sel(positive, value, a.zero)
        return value if m.squares is None else a.sub(m.squares, value)

    def _moved(self, m: Moment | None, lanes: IntVector) -> Moment | None:
        if m is None:
            return None
        a = self.arena
        squares = None if m.squares is None else a.permute(m.squares, lanes, lazy=True)
        return Moment(a.permute(m.total, lanes, lazy=True), a.permutation_map(lanes).poly(m.weight), squares)

    def _some_lanes(self, x: Real) -> Moment | None:
        """A mean or centred sum in some lanes of a CTA and 0 in the others, where its weight is 0."""
        a, mask = self.arena, None if x.op != "sel" or x.pred is None else self.arena.mask_of(x.pred)
        if mask is None or a.zero not in x.args:
            return None
        where = mask if x.args[1] is a.zero else ~mask
        m, p = self.moment(x.args[x.args[0] is a.zero]), a.lane_mask(where)
        if m is None:
            return None
        squares = None if m.squares is None else a.sel(p, m.squares, a.zero)
        return Moment(a.sel(p, m.total, a.zero), m.weight * where.astype(np.int64), squares)

    # ------------------------------------------------------------------ the parts of a merge
    def _merge(self, x: Real) -> Moment | None:
        """A merge of what x is made of; what is one only on one side of a choice is looked into."""
        opened: frozenset[int] = frozenset()
        for _ in range(_OPENED):
            leaves = self._leaves(x, opened)
            found = self._merged(x, leaves)
            inner = [i for i in leaves if i not in self._read and self.arena.reals[i].op != "gather"]
            if found is not None or not inner:
                return found
            opened |= {max(inner)}
        return None

    def _merged(self, x: Real, leaves: dict[int, Moment]) -> Moment | None:
        """The merge of two of the leaves; values of others must not matter."""
        groups = {m.group: m for m in leaves.values()}
        if len(groups) > _GROUPS or any(t.ext for m in leaves.values() for t in (m.total, m.squares or m.total)):
            return None
        squares = {g: {q for m in leaves.values() if m.group == g and (q := m.squares) is not None} for g in groups}
        if any(len(found) > 1 for found in squares.values()):
            return None
        found = (self._merge_of(x, leaves, p, q, (squares[p.group], squares[q.group]))
                 for p, q in combinations(groups.values(), 2))
        return next((m for m in found if m is not None), None)

    def _merge_of(
        self, x: Real, leaves: dict[int, Moment], first: Moment, second: Moment, squares: tuple[set[Real], set[Real]],
    ) -> Moment | None:
        a = self.arena
        cases = list(self._cases(leaves, first, second))
        centred = not all(self._equals(x, case, centred=False) for case in cases)
        if centred and not (all(squares) and all(self._equals(x, case, centred=True) for case in cases)):
            return None
        weight = whole_floors(a, first.weight + second.weight)
        total = a.add(first.total, second.total)
        return Moment(total, weight, a.add(*(q for found in squares for q in found)) if centred else None)

    def _leaves(self, x: Real, opened: frozenset[int]) -> dict[int, Moment]:
        """The means and centred sums that a term is made of; none when it has other values of other lanes."""
        parts = self._parts(x, opened)
        moved = [y for y in parts if y.op == "gather" and self.moment(y) is None]
        sources = {y.args[0].id: y.args[0] for y in moved}
        if len({self.arena.permutation(y).tobytes() for y in moved}) > 1 or len(sources) > 2:
            return {}
        if moved:
            weights = self._weights([y.data for y in parts if y.op == "int"], self.arena.permutation(moved[0]))
            self._begin(list(sources.values()), weights)
        leaves = {y.id: m for y in parts if (m := self.moment(y)) is not None}
        return {} if any(y.op == "gather" and y.id not in leaves for y in parts) else leaves

    def _parts(self, x: Real, opened: frozenset[int]) -> list[Real]:
        """What arithmetic and choices put a term together from: values of other lanes, values that other lanes read,
        means and centred sums that are not `opened`, and others."""
        out, seen, stack = [], {x.id}, list(x.args)
        while stack and len(seen) < _PLACES:
            y = stack.pop()
            if y.id in seen:
                continue
            seen.add(y.id)
            inside = y.op in _ARITHMETIC and y.id not in self._read
            if inside and (y.id in opened or self.moment(y) is None):
                stack += y.args
            else:
                out.append(y)
        return [] if stack else out

    # ------------------------------------------------------------------ what each lane begins with
    def _weights(self, given: list[Poly], lanes: IntVector) -> list[Poly]:
        """What may be the weight of a lane's own mean: integers of a merge, other lanes' and differences."""
        move = self.arena.permutation_map(lanes)
        most = given[:_INTEGERS]
        return list(dict.fromkeys((*most, *(move.poly(p) for p in most), *(p - q for p in most for q in most))))

    def _begin(self, sources: list[Real], weights: list[Poly]) -> None:
        """Record the means, and the sums centred on them, among the terms that a merge reads of two lanes."""
        for y in sources:
            found = next((Moment(t, w) for w in weights if (t := self._total(y, w)) is not None), None)
            if found is not None:
                self._means.append((y, found))
                self._learn(y, found)
        for z in sources:
            for y, m in self._means if self._found.get(z.id) is None else ():
                squares = self._squares(z, y, self.arena.true) if self._vanishes(z, m.weight) else None
                if squares is not None:
                    self._learn(z, Moment(m.total, m.weight, squares))
                    break

    def _learn(self, y: Real, m: Moment) -> None:
        """Record the moment; what was not found for lack of it is looked for again."""
        self._found = {**{k: found for k, found in self._found.items() if found is not None}, y.id: m}

    def _total(self, y: Real, w: Poly) -> Real | None:
        a = self.arena
        if not self.facts.implied(a.true, a.le(-w)) or not self._vanishes(y, w):
            return None
        return weighted(a, y, w, a.true, self._same)

    def _same(self, path: Pred, p: Poly, q: Poly) -> bool:
        return p == q or self.facts.implied(path, self.arena.eq(p - q))

    def _vanishes(self, y: Real, w: Poly) -> bool:
        """y, a choice, is the constant 0 in every lane whose weight is 0."""
        return self._zero_on(y, self.arena.le(w))

    def _zero_on(self, y: Real, path: Pred) -> bool:
        a = self.arena
        if y is a.zero or path.op == "false":
            return True
        if y.op == "sel" and y.pred is not None:
            return (self._zero_on(y.args[0], a.conj((path, y.pred)))
                    and self._zero_on(y.args[1], a.conj((path, a.negate(y.pred)))))
        return self.facts.infeasible(path)

    def _squares(self, z: Real, mean: Real, path: Pred) -> Real | None:
        """z + S² / W, S / W being the mean; None when that keeps a quotient by W."""
        a = self.arena
        for choice in (mean, z):
            if choice.op == "sel" and (p := choice.pred) is not None:
                yes, no = (
                    self._squares(a.under(z, p, side), a.under(mean, p, side),
                                  a.conj((path, p if side else a.negate(p)))) for side in (True, False))
                return None if yes is None or no is None else a.sel(p, yes, no)
        if mean is a.zero:
            return z
        if mean.op != "div":
            return None
        total, weight = mean.args
        try:
            form = self.normal.form(a.add(z, a.div(a.mul(total, total), weight)))
            return self.normal.term(self.normal.assume(form, path, self.facts.implied))
        except Unsupported:
            return None

    # ------------------------------------------------------------------ the value in each case
    def _cases(self, leaves: dict[int, Moment], first: Moment, second: Moment) -> Iterator[_Case]:
        a, alike = self.arena, first.weight == second.weight
        for zeros in ((False, False), (False, True), (True, False), (True, True)):
            pairs = list(zip((first, second), zeros, strict=True))
            path = a.conj(a.le(m.weight if zero else ONE - m.weight) for m, zero in pairs)
            if path.op == "false":
                continue
            parts = {}
            for k, (m, zero) in enumerate(pairs):
                total, weight, squares = (Poly({(-1 - k - 2 * i,): 1}) for i in range(3))
                weight = m.weight if m.weight.is_constant() else Poly({(-3,): 1}) if alike else weight
                parts[m.group] = _Part(m, zero, total, weight, squares)
            yield _Case(path, parts, leaves)

    def _equals(self, x: Real, case: _Case, *, centred: bool) -> bool:
        return self._agrees(x, case, centred=centred) or (
            any(p.zero for p in case.parts.values()) and self.facts.infeasible(case.path))

    def _agrees(self, x: Real, case: _Case, *, centred: bool) -> bool:
        found = self._compute(x, case)
        if found is None:
            return False
        left = [p for p in case.parts.values() if not p.zero]
        total, weight, squares = (sum(values, NONE) for values in (
            [p.total for p in left], [p.weight for p in left], [p.squares for p in left]))
        wanted = (NONE, ONE) if not left else (total, weight)
        if left and centred:
            wanted = (squares * weight - total * total, weight)
        return found[0] * wanted[1] == wanted[0] * found[1]

    def _compute(self, x: Real, case: _Case) -> Ratio | None:
        """x as a rational function of the unknowns; None when a choice is not decided, or something else occurs."""
        if x.id not in case.known:
            case.known[x.id] = self._computed(x, case)
        return case.known[x.id]

    def _computed(self, x: Real, case: _Case) -> Ratio | None:
        if x.id in case.leaves:
            return self._leaf(case.leaves[x.id], case)
        match x.op:
            case "const":
                return Poly({(): x.data.numerator}), Poly({(): x.data.denominator})
            case "int":
                p = self._integer(x.data, case)
                return None if p is None else (p, ONE)
            case "sel" if x.pred is not None:
                side = self._decided(x.pred, case)
                return None if side is None else self._compute(x.args[0 if side else 1], case)
            case "max" | "min":
                return self._extremum(x, case)
            case "add" | "mul" | "div":
                a, b = self._compute(x.args[0], case), self._compute(x.args[1], case)
                return None if a is None or b is None else _combined(x.op, a, b)
        return None

    def _extremum(self, x: Real, case: _Case) -> Ratio | None:
        p, q = (self.arena.whole(y) for y in x.args)
        less = None if p is None or q is None else self._decided(self.arena.le(p - q), case)
        return None if less is None else self._compute(x.args[less == (x.op == "max")], case)

    def _leaf(self, m: Moment, case: _Case) -> Ratio | None:
        part = case.parts.get(m.group)
        if part is None:
            return (NONE, ONE) if self.facts.implied(case.path, self.arena.le(m.weight)) else None
        if part.zero:
            return NONE, ONE
        if m.squares is None:
            return part.total, part.weight
        return part.squares * part.weight - part.total * part.total, part.weight

    def _decided(self, p: Pred, case: _Case) -> bool | None:
        """What a condition is in this case; comparisons of weights first by the unknowns, which are at least 1."""
        if p.op in ("le", "eq", "ne") and (form := self._linear(p.data, case)) is not None:
            slopes = [c for m, c in form.terms.items() if m and isinstance(c, int)]
            first = sum(slopes) + form.constant
            least, most = all(c >= 0 for c in slopes), all(c <= 0 for c in slopes)
            if (least and first > 0) or (most and first < 0 and p.op != "le"):
                return p.op == "ne"
            if (most and first <= 0 and p.op == "le") or (not slopes and first == 0):
                return p.op != "ne"
        if self.facts.implied(case.path, p):
            return True
        return False if self.facts.implied(case.path, self.arena.negate(p)) else None

    def _integer(self, p: Poly, case: _Case) -> Poly | None:
        """A weight, or a sum of such, by the unknowns for the weights of the two parts."""
        found = self._linear(p, case)
        return NONE if found is None and self.facts.implied(case.path, self.arena.eq(p)) else found

    def _linear(self, p: Poly, case: _Case) -> Poly | None:
        """An integer that is a constant and multiples of the two weights; None for any other."""
        out, rest = NONE, p
        parts = {part.moment.weight: part for part in case.parts.values()}
        for weight, part in parts.items():
            lead = next((m for m in weight.terms if m and not any(m in w.terms for w in parts if w != weight)), None)
            times = 0 if lead is None else _quotient(rest.terms.get(lead, 0), weight.terms[lead])
            if times is None:
                return None
            out, rest = out + (NONE if part.zero else part.weight) * times, rest - weight * times
        return out + rest if rest.as_int() is not None else None


def _quotient(k: Coef, c: Coef) -> int | None:
    """The integer by which the coefficient c is multiplied to get k, else None."""
    if isinstance(k, int) and isinstance(c, int):
        return None if k % c else k // c
    return 1 if np.array_equal(k, c) else 0 if not np.any(k) else None


def _combined(op: str, a: Ratio, b: Ratio) -> Ratio | None:
    if op == "add":
        return (a[0] + b[0], a[1]) if a[1] == b[1] else (a[0] * b[1] + b[0] * a[1], a[1] * b[1])
    if op == "mul":
        return a[0] * b[0], a[1] * b[1]
    return None if b[0] == NONE else (a[0] * b[1], a[1] * b[0])


def _scalar(c: Coef, lanes: BoolVector) -> Coef:
    """The coefficient as one integer if it is the same in these lanes."""
    return c if isinstance(c, int) or (c[lanes] != c[lanes][0]).any() else int(c[lanes][0])


def whole_floors(arena: Arena, p: Poly, lanes: BoolVector | None = None) -> Poly:
    """p with ⌊x/m⌋ + ⌊(x + 1)/m⌋ + … + ⌊(x + m − 1)/m⌋ = x put in (Hermite's identity), in these lanes or all."""
    groups: dict[tuple[int, tuple[object, ...], int], list[tuple[int, Poly]]] = {}
    seen = np.ones(arena.lanes, dtype=bool) if lanes is None or not lanes.any() else lanes
    p = Poly({m: _scalar(c, seen) for m, c in p.terms.items()})
    for m, c in p.terms.items():
        atom = arena.atoms[m[0]] if len(m) == 1 else None
        divisor = atom.args[1].as_int() if atom is not None and atom.kind == "div" else None
        if atom is not None and divisor is not None and isinstance(c, int):
            groups.setdefault((divisor, atom.args[0].symbolic().key, c), []).append((m[0], atom.args[0]))
    for (divisor, _, c), found in groups.items():
        if len(found) != divisor:
            continue
        offsets = np.stack([const(x.constant).lanes(arena.lanes) for _, x in found])
        offsets[:, ~seen] = offsets[:, [int(np.argmax(seen))]]
        if (np.sort(offsets % divisor, axis=0) == np.arange(divisor)[:, None]).all():
            p = p - Poly({(a,): c for a, _ in found}) + found[0][1].symbolic() * c
            p = p + const((offsets // divisor).sum(axis=0)) * c
    return p
