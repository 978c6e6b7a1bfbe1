"""Sample points: integers that satisfy all facts, on which a claim that does not follow is often seen to fail.

Proof search that must fail is the slow kind. A point where the hypotheses hold and the claim does not ends it at once.
Nothing is ever shown by points; what they say is only "do not try".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpproof.algebra.constraints import support
from warpproof.terms import Arena, Atom, BoolVector, Poly, Pred

Values = npt.NDArray[np.float64]
_CANDIDATES: Final = 1 << 14
_POINTS: Final = 512
_FEWEST: Final = 8
_EXACT: Final = float(1 << 51)  # whole numbers below are exact in binary64, their sums too
_KEPT: Final = 4096
_TOP: Final = 1 << 31
_DRAWN: Final = frozenset({"size", "grid", "block", "loop", "index", "bound", "elem", "state", "undef"})


class _Unknown(Exception):
    """A value or truth that the points do not determine."""


class Points:
    """Points for one set of facts about sizes and blocks; loop counters and loaded values are drawn when met."""

    def __init__(self, arena: Arena, facts: Sequence[Pred]) -> None:
        self._arena = arena
        self._values: dict[int, tuple[Values, BoolVector]] = {}
        self._defined: dict[int, Poly] = {}
        self._checked: set[int] = set()
        self._count = _CANDIDATES
        self._lane = np.zeros(self._count, np.int64)
        self._live: BoolVector = np.ones(self._count, np.bool_)
        self._truths: dict[int, tuple[BoolVector, BoolVector]] = {}
        self._facts = tuple(facts)
        self._draw_sizes()

    # ------------------------------------------------------------------ question
    def refutes(self, facts: Sequence[Pred], path: Pred, claim: Pred) -> dict[int, int] | None:
        """The atoms' values at a point where facts and path hold and the claim does not; None when none is known."""
        if np.count_nonzero(self._live) < _FEWEST:
            return None
        self._require(facts)
        try:
            holds, sure = self._truth(claim)
        except _Unknown:
            return None
        bad = self._live & ~holds & sure
        for p in self._arena.conjuncts(path):
            if not bad.any():
                return None
            try:
                holds, sure = self._truth(p)
            except _Unknown:  # no proof can use it either
                continue
            bad = bad & holds & sure
        return self._point(int(np.argmax(bad)), (claim, path, *facts)) if bad.any() else None

    def _point(self, k: int, preds: Sequence[Pred]) -> dict[int, int]:
        return {a: int(self._values[a][0][k]) for a in support(self._arena, (), preds) if a in self._values}

    # ------------------------------------------------------------------ drawing
    def _draw_sizes(self) -> None:
        arena = self._arena
        flat = [p for f in self._facts for p in arena.conjuncts(f)]
        blocks = {a for p in flat for a in support(arena, (), (p,)) if arena.atoms[a].kind == "block"}
        own = [p for p in flat if not blocks & set(support(arena, (), (p,)))]
        self._defined = _solved(arena, own)
        self._require(own)
        keep = np.flatnonzero(self._live)[:_POINTS]
        self._values = {a: (v[keep], ok[keep]) for a, (v, ok) in self._values.items()}
        self._count = len(keep)
        self._live = np.ones(self._count, np.bool_)
        self._truths.clear()
        if not self._count:
            return
        rng = np.random.default_rng(1)
        lanes = rng.integers(0, arena.lanes, self._count)
        lanes[::8], lanes[1::8] = 0, arena.lanes - 1
        self._lane = lanes
        for b in sorted(blocks):
            self._values[b] = self._draw_below(b, flat, rng)
        self._require(flat)

    def _draw_below(self, b: int, facts: Sequence[Pred], rng: np.random.Generator) -> tuple[Values, BoolVector]:
        high = np.full(self._count, float(min(self._arena.ranges.get(b, (0, None))[1] or _TOP, _TOP)))
        for p in facts:
            if p.op == "le" and b in p.data.atoms():
                slope, rest = p.data.split(b)
                if slope.as_int() == 1 and b not in support(self._arena, (rest,)):
                    top, ok = self._poly(-rest)
                    high = np.where(ok, np.minimum(high, top), high)
        v = np.floor(rng.random(self._count) * (np.maximum(high, 0) + 1))
        v[::4], v[1::4] = 0, np.maximum(high, 0)[1::4]
        return v, np.ones(self._count, np.bool_)

    def _require(self, facts: Sequence[Pred]) -> None:
        """Only keep points where the facts hold; facts without a value do not count."""
        for f in facts:
            if f.id in self._checked:
                continue
            self._checked.add(f.id)
            try:
                holds, sure = self._truth(f)
            except _Unknown:
                continue
            self._live = self._live & holds & sure

    def _drawn(self, atom: Atom) -> Values:
        lo, hi = self._arena.ranges.get(atom.id, (None, None))
        rng = np.random.default_rng(atom.id + 17)
        low = 0 if lo is None else lo
        n = self._count
        if atom.kind in ("size", "grid"):
            span = min(_TOP, (hi if hi is not None else low + _TOP) - low)
            small = rng.integers(0, min(span, 9) + 1, n)
            powers = np.minimum(2 ** rng.integers(0, 13, n), span) - min(low, 1)
            wide = np.floor(np.exp(rng.random(n) * np.log(span + 1.0)))
            kind = np.arange(n) % 8
            v = np.where(kind < 4, small, np.where(kind < 6, np.maximum(powers, 0), np.minimum(wide, span)))
            return np.asarray(low + np.where(rng.random(n) < 0.05, span, v), np.float64)
        span = min(_TOP, (hi - low) if hi is not None else _TOP)
        v = np.minimum(rng.choice(np.asarray([0, 0, 0, 1, 1, 2, 3, 4, 5, 7, 8, 15, 100, 1 << 20]), n), span)
        v = np.where(rng.random(n) < 0.05, span, v)
        if lo is None and atom.kind != "loop":
            v = v * rng.choice(np.asarray([1, -1]), n)
        return np.asarray(low + v, np.float64)

    # ------------------------------------------------------------------ values
    def _atom(self, ident: int) -> tuple[Values, BoolVector]:
        found = self._values.get(ident)
        if found is None:
            if len(self._values) > _KEPT:
                kept = {a for a in self._values if not self._arena.atoms[a].args}
                self._values = {a: v for a, v in self._values.items() if a in kept}
            found = self._values[ident] = self._compute(self._arena.atoms[ident])
        return found

    def _compute(self, atom: Atom) -> tuple[Values, BoolVector]:
        if atom.id in self._defined:
            return self._poly(self._defined[atom.id])
        match atom.kind:
            case "div":
                (a, u), (b, v) = (self._poly(q) for q in atom.args)
                ok = u & v & (b >= 1)
                b = np.where(ok, b, 1.0)
                q = np.floor(a / b)
                rest = a - b * q
                return np.where(rest < 0, q - 1, np.where(rest >= b, q + 1, q)), ok
            case "min" | "max":
                parts = [self._poly(q) for q in atom.args]
                pick = np.minimum if atom.kind == "min" else np.maximum
                return pick.reduce([v for v, _ in parts]), np.logical_and.reduce([ok for _, ok in parts])
            case "or":
                (a, u), (b, v) = (self._poly(q) for q in atom.args)
                return (a.astype(np.int64) | b.astype(np.int64)).astype(np.float64), u & v
            case "phi" if atom.pred is not None:
                holds, sure = self._truth(atom.pred)
                (a, u), (b, v) = (self._poly(q) for q in atom.args)
                return np.where(holds, a, b), sure & np.where(holds, u, v)
            case kind if kind in _DRAWN:
                return self._drawn(atom), np.ones(self._count, np.bool_)
        raise _Unknown

    def _poly(self, p: Poly) -> tuple[Values, BoolVector]:
        total: Values = np.zeros(self._count)
        ok: BoolVector = np.ones(self._count, np.bool_)
        for m, c in p.terms.items():
            term: Any = np.full(self._count, float(c)) if isinstance(c, int) else c[self._lane].astype(np.float64)
            for a in m:
                v, sure = self._atom(a)
                term, ok = term * v, ok & sure
            total = total + term
            ok = ok & (np.abs(term) < _EXACT) & (np.abs(total) < _EXACT)
        return total, ok

    # ------------------------------------------------------------------ truth
    def _truth(self, p: Pred) -> tuple[BoolVector, BoolVector]:
        found = self._truths.get(p.id)
        if found is None:
            if len(self._truths) > _KEPT:
                self._truths.clear()
            found = self._truths[p.id] = self._decide(p)
        return found

    def _decide(self, p: Pred) -> tuple[BoolVector, BoolVector]:
        every = np.ones(self._count, np.bool_)
        match p.op:
            case "true":
                return every, every
            case "false":
                return ~every, every
            case "le" | "eq" | "ne":
                v, ok = self._poly(p.data)
                return (v <= 0 if p.op == "le" else v == 0 if p.op == "eq" else v != 0), ok
            case "lanes":
                return np.frombuffer(p.data, dtype=bool)[self._lane], every
            case "not":
                holds, sure = self._truth(p.args[0])
                return ~holds, sure
            case "and" | "or":
                parts = [self._truth(q) for q in p.args]
                pick = np.logical_and if p.op == "and" else np.logical_or
                return pick.reduce([h for h, _ in parts]), np.logical_and.reduce([s for _, s in parts])
            case "dom":
                i, ok = self._atom(p.data[0])
                before, sure = self._poly(self._arena.substitute_poly(p.data[1], {
                    p.data[0]: Poly({(p.data[0],): 1, (): -1})}))
                return (i >= 0) & ((i == 0) | (before <= 0)), ok & (sure | (i == 0))
        raise _Unknown


def _solved(arena: Arena, facts: Sequence[Pred]) -> dict[int, Poly]:
    """Sizes that equations among the facts determine from others."""
    out: dict[int, Poly] = {}
    for f in facts:
        for m, c in f.data.terms.items() if f.op == "eq" else ():
            if len(m) != 1 or not isinstance(c, int) or abs(c) != 1 or arena.atoms[m[0]].kind != "size" or m[0] in out:
                continue
            value = (f.data - Poly({m: c})) * -c
            if m[0] not in _reaches(arena, value, out):
                out[m[0]] = value
                break
    return out


def _reaches(arena: Arena, p: Poly, defined: dict[int, Poly]) -> set[int]:
    seen: set[int] = set()
    stack = list(support(arena, (p,)))
    while stack:
        a = stack.pop()
        if a not in seen:
            seen.add(a)
            if a in defined:
                stack.extend(support(arena, (defined[a],)))
    return seen
