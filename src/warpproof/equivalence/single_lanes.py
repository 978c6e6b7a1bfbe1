"""Equality lane by lane, every reduction written out: for what is left when sizes are numbers.

A reduction of one lane runs over known lanes, and a fold over known integers where its bounds are numbers in that lane.
Written out, both are sums (products, maxima) of scalars, which the normal form compares. A fold without such bounds
ends the attempt. Few CTAs are taken one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Final

import numpy as np

from warpproof.algebra import Normaliser
from warpproof.core import Unsupported, check_time
from warpproof.solve import Facts
from warpproof.terms import Arena, IntVector, Poly, Pred, Real, const

_LONGEST: Final = 4096
_NODES: Final = 400_000
_CASES: Final = 20_000
_BINARY: Final = ("add", "mul", "max", "min")


class SingleLanes:
    """The scalar terms of single lanes."""

    def __init__(self, arena: Arena, normal: Normaliser, facts: Facts, blocks: Sequence[int] = ()) -> None:
        self.arena, self.normal, self.facts, self.blocks = arena, normal, facts, tuple(blocks)
        self._memo: dict[tuple[int, int], Real] = {}
        self._maps: dict[int, IntVector] = {}

    def equal(self, x: Real, y: Real, path: Pred) -> bool:
        """True when x = y in every lane in which the path holds."""
        if x.poisoned or y.poisoned:
            return False
        try:
            return all(self._equal_at(x, y, path, lane) for lane in range(self.arena.lanes))
        except Unsupported:
            return False

    def _equal_at(self, x: Real, y: Real, path: Pred, lane: int) -> bool:
        here = self.arena.permutation_map(self._lane(lane)).pred(path)
        if here.op == "false":
            return True
        mine, theirs = self.at(x, lane), self.at(y, lane)
        if mine is theirs:
            return True
        cases = self._cases()
        if not cases:
            return self.normal.equal(mine, theirs, here, self.facts.implied)
        return all(self._equal_in(mine, theirs, here, case) for case in cases)

    def _cases(self) -> list[dict[int, Poly]]:
        """The CTAs one by one, where their number is a small one; empty otherwise."""
        tops = [self.arena.ranges.get(b, (None, None))[1] for b in self.blocks]
        extents = [top + 1 for top in tops if top is not None]
        if len(extents) < len(tops) or prod(extents) * self.arena.lanes > _CASES:
            return []
        return [dict(zip(self.blocks, map(const, at))) for at in product(*map(range, extents))]

    def _equal_in(self, x: Real, y: Real, path: Pred, case: dict[int, Poly]) -> bool:
        check_time()
        here = self.arena.substitute_pred(path, case)
        if here.op == "false":
            return True
        mine, theirs = self.arena.substitute(x, case), self.arena.substitute(y, case)
        return mine is theirs or self.normal.equal(mine, theirs, here, self.facts.implied)

    def _lane(self, lane: int) -> IntVector:
        found = self._maps.get(lane)
        if found is None:
            found = self._maps[lane] = np.full(self.arena.lanes, lane, dtype=np.int64)
        return found

    def at(self, x: Real, lane: int) -> Real:
        """The value of one lane; Unsupported when a fold cannot be written out."""
        lane = 0 if x.uniform else lane
        key = (x.id, lane)
        found = self._memo.get(key)
        if found is None:
            if len(self._memo) > _NODES:
                raise Unsupported("lanes", "too many terms")
            if not len(self._memo) % 256:
                check_time()
            found = self._memo[key] = self._at(x, lane)
        return found

    def _at(self, x: Real, lane: int) -> Real:
        A = self.arena
        match x.op:
            case "gather":
                return self.at(x.args[0], int(A.permutation(x)[lane]))
            case "red":
                op: str = x.data[0]
                return self._joined(op, [self.at(x.args[0], int(k)) for k in A.matrix(x)[lane]])
            case "fold":
                return self._unrolled(x, lane)
            case "sel":
                pred = A.permutation_map(self._lane(lane)).pred(x.pred)
                if pred.op in ("true", "false"):
                    return self.at(x.args[pred.op == "false"], lane)
                return A.sel(pred, self.at(x.args[0], lane), self.at(x.args[1], lane))
            case op if op in _BINARY:
                return A.combine(op, self.at(x.args[0], lane), self.at(x.args[1], lane))
            case "div":
                return A.div(self.at(x.args[0], lane), self.at(x.args[1], lane))
            case "placed":
                return A.placed(self.at(x.args[0], lane), A.permutation_map(self._lane(lane)).poly(x.data))
            case "state" | "cell":
                raise Unsupported("lanes", "a value that a loop carries")
            case _ if len(x.args) == 1:
                return A.unary(x.op, self.at(x.args[0], lane))
            case _:
                return A.permute(x, self._lane(lane))

    def _joined(self, op: str, parts: list[Real]) -> Real:
        out = self.arena.identity(op)
        for part in parts:
            out = self.arena.combine(op, out, part)
        return out

    def _unrolled(self, x: Real, lane: int) -> Real:
        A, (op, bound) = self.arena, x.data
        pick = A.permutation_map(self._lane(lane))
        domain = pick.pred(x.pred)
        lo, hi = self._range(domain, bound)
        parts: list[Real] = []
        for v in range(lo, hi + 1):
            table = {bound: const(v)}
            guard = A.substitute_pred(domain, table)
            if guard.op != "false":
                body = self.at(A.substitute(x.args[0], table), lane)
                parts.append(A.sel(guard, body, A.identity(op)))
        return self._joined(op, parts)

    def _range(self, domain: Pred, bound: int) -> tuple[int, int]:
        """The least and the greatest value that a domain's bounds leave to its variable."""
        lows: list[int] = []
        highs: list[int] = []
        for p in self.arena.conjuncts(domain):
            slope, rest = p.data.split(bound) if p.op in ("le", "eq") else (Poly({}), Poly({}))
            k, r = slope.as_int(), rest.as_int()
            if k not in (1, -1) or r is None:
                continue
            if k == 1 or p.op == "eq":
                highs.append(-r * k)
            if k == -1 or p.op == "eq":
                lows.append(-r * k)
        if not lows or not highs or min(highs) - max(lows) >= _LONGEST:
            raise Unsupported("lanes", "a fold whose bounds are not numbers")
        return max(lows), min(highs)
