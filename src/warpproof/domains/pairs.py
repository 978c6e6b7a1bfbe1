"""A best value and its position, carried in two registers and updated by one comparison: read as one placed value.

`v > best ? (v, i) : (best, at)` is the greater of two placed values when the comparison decides like their order: it is
told apart into best < v, best = v and best > v; of equals the smaller position has to win, which the code decides
itself or the order in which positions come. All four readings are tried: greatest or least value, and of equals the
least or the greatest position, by values and positions with the sign changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from warpproof.algebra import Normaliser, same_extremum
from warpproof.terms import MINUS_INF, PLUS_INF, Arena, Atom, BoolVector, Leaf, Poly, Pred, Real, coefficient

_DEPTH = 24


@dataclass(frozen=True, slots=True)
class Reading:
    """What the order of placed values says: the greatest value wins (1) or the least (−1); of equal ones the least
    position (1) or the greatest (−1)."""

    value: int
    place: int


READINGS = tuple(Reading(v, p) for v in (1, -1) for p in (1, -1))
_CASES = ("lt", "eq", "gt")


class Unread(Exception):
    """A position that is not chosen like that of an extremum."""


class Pairs:
    """Reads positions over one arena; `holds` decides integer conditions on the current path."""

    def __init__(self, arena: Arena, normal: Normaliser, holds: Callable[[Pred], bool]) -> None:
        self.arena, self.normal, self._holds = arena, normal, holds

    def settled(self, position: Poly) -> Poly:
        """The position itself, as that of an extremum where it is chosen between such by comparing their values, or
        between that of all of some pairs and that of a part of them."""
        a = self.arena
        choice = _choice(a, position)
        if choice is None or not any(map(self.has_place, a.atoms[choice].args)):
            return position
        pred = a.atoms[choice].pred
        if pred is not None and not _floats(pred):
            return self._joined(position, choice, pred)
        for reading in READINGS:
            reader = Reader(self, reading)
            for x, y in _compared(a.atoms[choice].pred):
                try:
                    return a.place(reader.greater(position, x, y)) * reading.place
                except Unread:
                    continue
        return position

    def _joined(self, position: Poly, choice: int, p: Pred) -> Poly:
        """p ? place of P : place of Q as the place of (p ? P : Q), where one has all pairs of the other."""
        a = self.arena
        one, two = (_replaced(position, choice, side) for side in a.atoms[choice].args)
        for sign in (1, -1):
            for p_one, first, second in ((p, one * sign, two * sign), (a.negate(p), two * sign, one * sign)):
                whole = _place_of(a, first)
                if whole is None:
                    continue
                operands = a.flatten(whole, "max")
                part = _place_of(a, second)
                fewer = [x for x in operands if x.op == "placed" and x.data == second] if part is None else (
                    a.flatten(part, "max"))
                if fewer and set(fewer) <= set(operands):
                    return a.place(a.sel(p_one, whole, fewer[0] if part is None else part)) * sign
        return position

    def read(self, position: Poly, value: Real, reading: Reading) -> Real | None:
        """The placed value that both are."""
        try:
            return Reader(self, reading).pair(position, value)
        except Unread:
            return None

    def has_place(self, p: Poly) -> bool:
        """The position of an extremum occurs, also inside a choice."""
        a = self.arena
        return any(a.atoms[i].kind == "place" or any(map(self.has_place, a.atoms[i].args)) for i in p.atoms())

    def holds(self, claim: Pred) -> bool:
        """True when the condition is shown."""
        return claim.op == "true" or self._holds(claim)

    def same(self, op: str, x: Real, y: Real) -> bool:
        """The same extremum by its operands."""
        return not x.poisoned and not y.poisoned and same_extremum(self.normal, op, x, y)


@dataclass(frozen=True, slots=True)
class Carried:
    """The unknowns for a best value and its position at the start of an iteration, and the pair of both."""

    value: Real
    position: Poly
    pair: Real


class Reader:
    """Reads one position and its value in one way.

    `later` collects what has to be shown of a pair that a loop carries: placed values that its position must not come
    after, or not before (True), where the values are equal.
    """

    def __init__(self, pairs: Pairs, reading: Reading, carried: Carried | None = None) -> None:
        self.pairs, self.arena, self.reading, self.carried = pairs, pairs.arena, reading, carried
        self.later: list[tuple[Leaf, bool]] = []
        self._own: list[tuple[Poly, Real, Real]] = []
        self._shown = 0  # conditions that were shown by the path
        self._unread: set[tuple[Poly, Real]] = set()
        self._op = "max" if reading.value == 1 else "min"

    # ------------------------------------------------------------------ pairs
    def pair(self, position: Poly, value: Real, depth: int = _DEPTH) -> Real:
        """The placed value of which both are the parts; raises when none is found."""
        if not depth or value.poisoned or (position, value) in self._unread:
            raise Unread
        before = self._shown
        found = self._known(position, value) or self._elsewhere(position, value)
        if found is None:
            self._unread.add((position, value))  # also where it is asked for again on the way
            found = self._read(position, value, depth - 1)
            self._unread.remove((position, value))
        if self._shown == before:
            self._own.append((position, value, found))
        return found

    def _known(self, position: Poly, value: Real) -> Real | None:
        """The pair that a loop carries, or that of which the position is the place."""
        a = self.arena
        c = self.carried
        if c is not None and position == c.position and value is c.value:
            return c.pair
        x = _place_of(a, position * self.reading.place)
        return x if x is not None and self.pairs.same(self._op, self.values(x), value) else None

    def _elsewhere(self, position: Poly, value: Real) -> Real | None:
        """A pair read before, in other lanes."""
        if value.op != "gather":
            return None
        a = self.arena
        lanes = a.permutation(value)
        for p, v, found in self._own:
            if v is value.args[0] and a.permutation_map(lanes).poly(p) == position:
                return a.permute(found, lanes, lazy=True)
        return None

    def _read(self, position: Poly, value: Real, depth: int) -> Real:
        a = self.arena
        if value.op == "sel" and value.pred is not None and not _floats(value.pred):
            return self._by_cases(position, value, value.pred, depth)
        choice = _choice(a, position)
        if choice is None:
            return self._leaf(position, value)
        pred = a.atoms[choice].pred
        for x, y in _compared(pred):
            if self.pairs.same(self._op, a.combine(self._op, x, y), value):
                try:
                    return self.greater(position, x, y, depth)
                except Unread:
                    continue
        for p in _plain(pred):
            if not self._compares_places(p):
                return self._by_cases(position, value, p, depth)
        raise Unread

    def _leaf(self, position: Poly, value: Real) -> Real:
        a, c = self.arena, self.carried
        if any(a.atoms[i].kind == "place" for i in position.atoms()):
            raise Unread
        if c is not None and (c.position.atoms() & position.atoms() or c.value.free & value.free):
            raise Unread
        return a.placed(value if self.reading.value == 1 else a.neg(value), position * self.reading.place)

    def _compares_places(self, p: Pred) -> bool:
        """A condition on positions of extrema, or on one that a loop carries: it breaks ties."""
        if p.args:
            return any(map(self._compares_places, p.args))
        mine = self.carried.position.atoms() if self.carried is not None else frozenset()
        return isinstance(p.data, Poly) and bool(
            self.arena.poly_free(p.data) & mine or self.pairs.has_place(p.data))

    def _by_cases(self, position: Poly, value: Real, p: Pred, depth: int) -> Real:
        a = self.arena
        sides = []
        for q in (p, a.negate(p)):
            there, best = Assumption(a, self._by(q)).poly(position, a.mask_of(q)), _under(a, value, q)
            if there == position and best is value:
                raise Unread
            sides.append(self.pair(there, best, depth))
        return a.sel(p, *sides)

    def _by(self, given: Pred) -> Callable[[Pred], Pred]:
        """What is left of a comparison where a condition holds."""
        a = self.arena

        def told(p: Pred) -> Pred:
            if p.op == "fcmp":
                return a.fcmp(str(p.data), *(_under(a, x, given) for x in p.reals))
            if a.implies(given, p):
                return a.true
            return a.false if a.implies(given, a.negate(p)) else p

        return told

    def values(self, x: Real) -> Real:
        """The greatest (or least) value of an extremum of placed values."""
        a, sign, op = self.arena, self.reading.value, self._op
        match x.op:
            case "placed":
                return x.args[0] if sign == 1 else a.neg(x.args[0])
            case "max":
                return a.combine(op, self.values(x.args[0]), self.values(x.args[1]))
            case "sel" if x.pred is not None:
                return a.sel(x.pred, self.values(x.args[0]), self.values(x.args[1]))
            case "gather":
                return a.permute(self.values(x.args[0]), a.permutation(x), lazy=True)
            case "red":
                return a.reduction(op, self.values(x.args[0]), a.matrix(x))
            case "fold" if x.pred is not None:
                return a.fold(op, x.data[1], x.pred, self.values(x.args[0]))
            case "inf":
                return a.identity(op)
        raise Unread

    # ------------------------------------------------------------------ one comparison
    def greater(self, position: Poly, x: Real, y: Real, depth: int = _DEPTH) -> Real:
        """The greater of the pairs with the values x and y, when the position is chosen like that between theirs."""
        a = self.arena
        less, tied, more = (Assumption(a, partial(_told, a, x, y, c)).poly(position) for c in _CASES)
        of_x, of_y = (more, less) if self.reading.value == 1 else (less, more)
        first, second = self.pair(of_x, x, depth), self.pair(of_y, y, depth)
        if tied == of_x:
            self._ordered(first, second)
        elif tied == of_y:
            self._ordered(second, first)
        elif of_x == of_y or not self._broken(tied, of_x, of_y):
            raise Unread
        return a.maximum(first, second)

    def _broken(self, tied: Poly, p: Poly, q: Poly) -> bool:
        """The code takes the position that comes first of two."""
        a = self.arena
        if tied == a.extremum("min" if self.reading.place == 1 else "max", (p, q)):
            return True
        s = self.reading.place
        for test in (a.le((p - q) * s), a.lt(p * s, q * s)):
            sides = [Assumption(a, self._by(t)).poly(tied, a.mask_of(t)) for t in (test, a.negate(test))]
            if sides == [p, q]:
                return True
        return False

    def _ordered(self, earlier: Real, later: Real) -> None:
        """Where values of both are equal, the position of the first does not come after that of the second."""
        c = self.carried
        for x in self.arena.leaves(earlier):
            for y in self.arena.leaves(later):
                if untied(x.value, y.value):
                    continue
                if c is not None and c.pair.args[0] in (x.value, y.value):
                    if x.value is y.value:
                        raise Unread
                    self._shown += 1
                    self.later.append((x, True) if y.value is c.pair.args[0] else (y, False))
                elif not self.follows(x, y):
                    raise Unread

    def follows(self, x: Leaf, y: Leaf) -> bool:
        """The positions of y do not come before those of x."""
        a = self.arena
        for p in x.positions:
            for q in y.positions:
                if x.elsewhere or y.elsewhere:
                    high, low = a.bounds(p)[1], a.bounds(q)[0]
                    if high is None or low is None or high > low:
                        return False
                    continue
                claim = a.disj((a.le(p - q), a.negate(x.guard), a.negate(y.guard)))
                if claim.op == "true":
                    continue
                self._shown += 1
                if not self.pairs.holds(claim):
                    return False
        return True


def untied(x: Real, y: Real) -> bool:
    """Two values of which one is an infinity that the other cannot be are never equal."""
    return any(
        v.op == "inf" and not w.ext & (MINUS_INF if v.data == -1 else PLUS_INF) for v, w in ((x, y), (y, x))
    )


def _place_of(arena: Arena, position: Poly) -> Real | None:
    """The placed values that a position is the place of."""
    if len(position.terms) != 1:
        return None
    ((m, k),) = position.terms.items()
    return arena.atoms[m[0]].real if isinstance(k, int) and k == 1 and len(m) == 1 else None


def _choice(arena: Arena, p: Poly) -> int | None:
    """A choice that the position is, made by comparing floats if there is such."""
    found = [i for i in sorted(p.atoms()) if arena.atoms[i].kind == "phi" and arena.atoms[i].pred is not None]
    return next((i for i in reversed(found) if _floats(arena.atoms[i].pred)), found[-1] if found else None)


def _floats(p: Pred | None) -> bool:
    return p is not None and (p.op == "fcmp" or any(map(_floats, p.args)))


def _compared(p: Pred | None) -> Iterator[tuple[Real, Real]]:
    """The reals that a condition compares, each two once."""
    seen: set[frozenset[Real]] = set()
    stack = [p] if p is not None else []
    while stack:
        q = stack.pop()
        if q.op == "fcmp" and frozenset(q.reals) not in seen:
            seen.add(frozenset(q.reals))
            yield q.reals[0], q.reals[1]
        stack.extend(q.args)


def _plain(p: Pred | None) -> Iterator[Pred]:
    """The comparisons of integers in a condition, and other parts that compare no floats."""
    if p is not None and p.args:
        for q in p.args:
            yield from _plain(q)
    elif p is not None and p.op != "fcmp":
        yield p


def _told(arena: Arena, x: Real, y: Real, case: str, p: Pred) -> Pred:
    """What is left of a comparison where x < y, x = y or x > y."""
    if p.op != "fcmp" or set(p.reals) != {x, y}:
        return p
    if p.data in ("eq", "ne"):
        return arena.truth((case == "eq") == (p.data == "eq"))
    strict = "lt" if p.reals[0] is x else "gt"
    return arena.truth(case == strict or (p.data == "le" and case == "eq"))


class Assumption:
    """Positions under a condition on the lane that they are of; what is taken from other lanes is left alone."""

    def __init__(self, arena: Arena, told: Callable[[Pred], Pred]) -> None:
        self.arena, self._told = arena, told
        self._polys: dict[Poly, Poly] = {}

    def poly(self, p: Poly, mask: BoolVector | None = None) -> Poly:
        """The position where the condition holds, which names the lanes of a mask; elsewhere it may be anything."""
        if mask is not None:
            p = _in_lanes(p, mask)
        found = self._polys.get(p)
        if found is None:
            found = p
            for i in sorted(p.atoms()):
                atom = self.arena.atoms[i]
                if atom.kind == "phi" and atom.pred is not None:
                    image = self._choice(atom, mask)
                    found = found if image == self.arena.variable(atom) else _replaced(found, i, image)
            self._polys[p] = found
        return found

    def _choice(self, atom: Atom, mask: BoolVector | None) -> Poly:
        test = self.pred(atom.pred) if atom.pred is not None else self.arena.true
        if test.op in ("true", "false"):
            return self.poly(atom.args[test.op == "false"], mask)
        sides = tuple(self.poly(q, mask) for q in atom.args)
        same = test is atom.pred and sides == atom.args
        return self.arena.variable(atom) if same else self.arena.derived("phi", sides, test)

    def pred(self, p: Pred) -> Pred:
        """What is left of a condition."""
        a = self.arena
        match p.op:
            case "and":
                return a.conj(map(self.pred, p.args))
            case "or":
                return a.disj(map(self.pred, p.args))
            case "not":
                return a.negate(self.pred(p.args[0]))
            case "le" | "eq" | "ne":
                q = self.poly(p.data)
                return self._told(p if q == p.data else a.le(q) if p.op == "le" else
                                  a.eq(q) if p.op == "eq" else a.ne(q))
            case _:
                return self._told(p)


def _replaced(p: Poly, atom: int, q: Poly) -> Poly:
    """p with q for an atom, but not inside other atoms: what holds here may not hold where they are taken from."""
    while atom in p.atoms():
        slope, rest = p.split(atom)
        p = slope * q + rest
    return p


def _in_lanes(p: Poly, mask: BoolVector) -> Poly:
    """The polynomial that p is in some lanes."""
    out = {}
    for m, c in p.terms.items():
        if not isinstance(c, int):
            inside = c[mask]
            c = int(inside[0]) if len(inside) and (inside == inside[0]).all() else coefficient(np.where(mask, c, 0))
        if not (isinstance(c, int) and c == 0):
            out[m] = c
    return Poly(out)


def _under(arena: Arena, x: Real, p: Pred) -> Real:
    """A value where a condition holds, also inside extrema."""
    if x.op in ("max", "min"):
        return arena.combine(x.op, _under(arena, x.args[0], p), _under(arena, x.args[1], p))
    return arena.under(x, p, True)
