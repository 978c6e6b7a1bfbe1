"""The two sorts of hash-consed nodes: real-valued lane vectors (`Real`) and predicates (`Pred`).

A node denotes one value per lane. Nodes are interned by an `Arena`, so identity (`is`) decides equality of structure,
and equal structure means equal values in every lane.
"""

from __future__ import annotations

from typing import Any

EMPTY: frozenset[int] = frozenset()


class Real:
    """A vector of extended reals. `op` with `args` and `data`:

    `const` Fraction · `inf` ±1 · `log2e` · `log2e32`, `log2e_low` (the f32 constants for it) · `ln2` · `pi` ·
    `poison` (reason, where) · `symbol` name (a float scalar parameter) · `load` (Buffer access, index polynomial) ·
    `int` polynomial · `state` atom (loop-carried value) ·
    `add` n-ary · `mul` · `div` · `max` · `min` · unary functions (`ex2`, `lg2`, `sqrt`, `sin`, `cos`, `tanh`, `abs`,
    `floor`, …) · `sel` (Pred in `pred`) · `gather` permutation · `red` (op, lane matrix) · `fold` (op, bound atom,
    domain in `pred`) · `placed` (a value, with its position as polynomial; see the places module) · `place` (the
    position of the greatest of some placed values).
    """

    __slots__ = ("args", "data", "ext", "folds", "free", "height", "id", "op", "poisoned", "pred", "uniform")

    def __init__(
        self, id: int, op: str, args: tuple[Real, ...], data: Any, pred: Pred | None, free: frozenset[int],
        uniform: bool, ext: int, folds: bool, poisoned: bool, height: int,
    ) -> None:
        self.id, self.op, self.args, self.data, self.pred = id, op, args, data, pred
        self.free = free  # loop, state and bound atoms that occur
        self.uniform = uniform  # the same value in every lane, syntactically
        self.ext = ext  # which infinities it may be (bit mask)
        self.folds = folds  # contains a fold or a cross-lane reduction
        self.height = height  # the nesting depth of folds, those in conditions and indices included
        self.poisoned = poisoned  # contains a value nothing may depend on, or a choice by one

    def __repr__(self) -> str:
        inner = ", ".join(repr(a) for a in self.args) if self.id < 0 else ", ".join(f"#{a.id}" for a in self.args)
        return f"{self.op}#{self.id}({inner})"

    def __lt__(self, other: Real) -> bool:
        return self.id < other.id


class Pred:
    """A predicate per lane. `op` with `args` and `data`:

    `true` · `false` · `le` polynomial ≤ 0 · `eq` / `ne` polynomial = / ≠ 0 · `lanes` mask · `and` / `or` of a sorted
    set · `fcmp` (lt, le, eq, ne) of two reals · `dom` (loop atom i, continue polynomial p): i ≥ 0 ∧ (i = 0 ∨
    p(i−1) ≤ 0) · `state` atom.
    """

    __slots__ = ("args", "data", "free", "height", "id", "op", "reals", "uniform")

    def __init__(
        self, id: int, op: str, args: tuple[Pred, ...], data: Any, reals: tuple[Real, ...], free: frozenset[int],
        uniform: bool, height: int = 0,
    ) -> None:
        self.id, self.op, self.args, self.data, self.reals = id, op, args, data, reals
        self.free, self.uniform, self.height = free, uniform, height

    def __repr__(self) -> str:
        return f"{self.op}@{self.id}"

    def __lt__(self, other: Pred) -> bool:
        return self.id < other.id
