"""Reductions taken apart: a tree of one associative operation as pieces (guard, loops, leaf, lane counts)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from warpproof.algebra import is_data
from warpproof.core import Unsupported
from warpproof.terms import Arena, BoolVector, IntVector, Pred, Real


@dataclass(frozen=True, slots=True)
class Part:
    """`leaf` taken `weight[..., l]` times at lane l, for all values of `loops`, where `guard` holds there."""

    guard: Pred
    loops: tuple[int, ...]
    leaf: Real
    weight: IntVector


def is_reduction(x: Real, op: str) -> bool:
    """True when the term combines several values by `op` across lanes or iterations."""
    if x.op in (op, "sel"):
        return x.folds and any(is_reduction(y, op) for y in x.args)
    if x.op == "gather":
        return is_reduction(x.args[0], op)
    return x.op in ("red", "fold") and x.data[0] == op


def crosses_lanes(x: Real, op: str) -> bool:
    """True when some leaf is taken from another lane."""
    if x.op in ("gather", "red"):
        return True
    if x.op in (op, "sel"):
        return any(crosses_lanes(y, op) for y in x.args)
    return x.op == "fold" and x.data[0] == op and crosses_lanes(x.args[0], op)


class Splitter:
    """Takes one reduction apart; choices made by data (`x > 0 ? 1 : 0`) stay whole if `whole`.

    Terms are visited from the top, each once with all that is wanted of it.
    """

    def __init__(self, arena: Arena, op: str, *, whole: bool = False) -> None:
        self.arena, self.op, self.unit, self.whole = arena, op, arena.identity(op), whole
        self.parts: list[Part] = []
        self._wanted: dict[tuple[int, int, tuple[int, ...]], IntVector] = {}
        self._heap: list[tuple[int, int, tuple[int, ...]]] = []
        self._guards: dict[int, Pred] = {}
        self._opened: dict[int, tuple[int, Pred, Real]] = {}

    def split(self, x: Real, weight: IntVector) -> list[Part]:
        """The parts of x, with lane l of x wanted weight[..., l] times; leading axes are questions of their own."""
        self._want(x, weight, self.arena.true, ())
        while self._heap:
            key = heapq.heappop(self._heap)
            y, guard = self.arena.reals[-key[0]], self._guards[key[1]]
            self._visit(y, self._wanted.pop(key), guard, key[2])
        return self.parts

    def _want(self, x: Real, weight: IntVector, guard: Pred, loops: tuple[int, ...]) -> None:
        if x is self.unit or not weight.any() or guard.op == "false":
            return
        key = (-x.id, guard.id, loops)
        self._guards[guard.id] = guard
        old = self._wanted.get(key)
        if old is None:
            heapq.heappush(self._heap, key)
        self._wanted[key] = weight if old is None else old + weight

    def _visit(self, x: Real, weight: IntVector, guard: Pred, loops: tuple[int, ...]) -> None:
        a = self.arena
        match x.op:
            case self.op:
                for y in x.args:
                    self._want(y, weight, guard, loops)
            case "sel" if x.pred is not None and not (self.whole and not x.folds and is_data(a, x.pred)):
                for y, p in zip(x.args, (x.pred, a.negate(x.pred)), strict=True):
                    mask, rest = self._lanes(p)
                    self._want(y, np.where(mask, weight, 0), a.conj((guard, rest)), loops)
            case "gather":
                moved, kept = self._move(guard, a.permutation(x)[:, None], weight)
                self._want(x.args[0], moved, kept, loops)
            case "red" if x.data[0] == self.op:
                moved, kept = self._move(guard, a.matrix(x), weight)
                self._want(x.args[0], moved, kept, loops)
            case "fold" if x.data[0] == self.op:
                if x.id not in self._opened:
                    self._opened[x.id] = a.open(x)[1:]
                atom, domain, body = self._opened[x.id]
                self._want(body, weight, a.conj((guard, domain)), (*loops, atom))
            case _:
                self.parts.append(Part(guard, loops, x, weight))

    def _move(self, guard: Pred, matrix: IntVector, weight: IntVector) -> tuple[IntVector, Pred]:
        """Weights at the source lanes; the guard must say the same there as at the lanes it came from."""
        mask, rest = self._lanes(guard)
        if not rest.uniform:
            raise Unsupported("reduction", "a lane-dependent condition above a cross-lane reduction")
        weight = np.where(mask, weight, 0)
        moved = np.zeros_like(weight)
        for column in matrix.T:
            np.add.at(moved.T, column, weight.T)
        return moved, rest

    def _lanes(self, p: Pred) -> tuple[BoolVector, Pred]:
        """A condition as the lanes it names and what else it says."""
        a = self.arena
        mask = np.ones(a.lanes, dtype=bool)
        rest = []
        for q in a.conjuncts(p):
            lanes = a.mask_of(q)
            if lanes is None:
                rest.append(q)
            else:
                mask &= lanes
        return mask, a.conj(rest)


def loads_of(x: Real) -> list[Real]:
    """The loads of a term outside folds and cross-lane reductions."""
    out, seen, stack = [], set(), [x]
    while stack:
        y = stack.pop()
        if y.id in seen:
            continue
        seen.add(y.id)
        if y.op == "load":
            out.append(y)
        elif y.op not in ("fold", "red", "gather"):
            stack.extend(y.args)
    return out
