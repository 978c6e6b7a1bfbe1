"""An independent reading of terms at concrete sizes: folds are enumerated, atoms computed by their definitions."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from warpproof.terms import Arena, Poly, Pred, Real

REACH = 40
"""Folds are enumerated over [-REACH, REACH]; a domain that reaches an end counts as unbounded and fails the test."""


class Evaluator:
    """Values of terms where sizes, scalars and buffers are known. Buffers are flat arrays."""

    def __init__(
        self,
        arena: Arena,
        sizes: Mapping[str, int],
        scalars: Mapping[str, float],
        buffers: Mapping[str, np.ndarray],
    ) -> None:
        self.arena, self.sizes, self.scalars, self.buffers = arena, sizes, scalars, buffers
        self._memo: dict[object, float] = {}

    def poly(self, p: Poly, env: Mapping[int, int]) -> int:
        total = 0
        for m, c in p.terms.items():
            assert isinstance(c, int), "references are lane-uniform"
            for a in m:
                c *= self.atom(a, env)
            total += c
        return total

    def atom(self, ident: int, env: Mapping[int, int]) -> int:
        if ident in env:
            return env[ident]
        a = self.arena.atoms[ident]
        args = [self.poly(p, env) for p in a.args] if a.kind != "phi" else []
        match a.kind:
            case "size":
                return self.sizes[a.name]
            case "div":
                assert a.tag == 0
                assert args[1] > 0
                return args[0] // args[1]
            case "min":
                return min(args)
            case "max":
                return max(args)
            case "elem":
                flat = self.buffers[a.name]
                assert 0 <= args[0] < len(flat), "the reference reads out of bounds"
                return int(flat[args[0]])
            case "phi":
                assert a.pred is not None
                return self.poly(a.args[0] if self.pred(a.pred, env) else a.args[1], env)
            case _:
                raise AssertionError(f"free atom {a.kind} {a.name}")

    def pred(self, p: Pred, env: Mapping[int, int]) -> bool:
        match p.op:
            case "true":
                return True
            case "false":
                return False
            case "le":
                return self.poly(p.data, env) <= 0
            case "eq":
                return self.poly(p.data, env) == 0
            case "ne":
                return self.poly(p.data, env) != 0
            case "and":
                return self._all(p, env)
            case "or":
                return any(self.pred(q, env) for q in p.args)
            case "not":
                return not self.pred(p.args[0], env)
            case "fcmp":
                a, b = (self.real(r, env) for r in p.reals)
                return {"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b}[p.data]
            case _:
                raise AssertionError(p.op)

    def _all(self, p: Pred, env: Mapping[int, int]) -> bool:
        """A conjunction; a part may read out of bounds where another one is false."""
        outside = None
        for q in p.args:
            try:
                if not self.pred(q, env):
                    return False
            except AssertionError as e:
                outside = e
        if outside is not None:
            raise outside
        return True

    def real(self, x: Real, env: Mapping[int, int]) -> float:
        key = (x.id, tuple(env.get(a) for a in sorted(x.free)))
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._real(x, env)
        return found

    def _real(self, x: Real, env: Mapping[int, int]) -> float:
        if x.op == "sel":
            assert x.pred is not None
            return self.real(x.args[0] if self.pred(x.pred, env) else x.args[1], env)
        if x.op == "fold":
            return self._fold(x, env)
        args = [self.real(a, env) for a in x.args]
        match x.op:
            case "const" | "inf":
                return float(x.data) * (math.inf if x.op == "inf" else 1)
            case "log2e":
                return 1 / math.log(2)
            case "ln2":
                return math.log(2)
            case "symbol":
                return self.scalars[x.data]
            case "int":
                return float(self.poly(x.data, env))
            case "load":
                access, index = x.data
                at = self.poly(index, env)
                flat = self.buffers[access.buffer]
                assert access.version == 0
                assert 0 <= at < len(flat), "the reference reads out of bounds"
                return float(flat[at])
            case "add":
                return args[0] + args[1]
            case "mul":
                return args[0] * args[1]
            case "div":
                return args[0] / args[1]
            case "max":
                return max(args)
            case "min":
                return min(args)
            case "ex2":
                return 2.0 ** args[0]
            case "lg2":
                return math.log2(args[0])
            case "floor":
                return float(math.floor(args[0]))
            case "abs":
                return abs(args[0])
            case "sqrt" | "sin" | "cos" | "tanh":
                return float(getattr(math, x.op)(args[0]))
            case _:
                raise AssertionError(x.op)

    def _fold(self, x: Real, env: Mapping[int, int]) -> float:
        op, bound = x.data
        assert x.pred is not None
        values = [v for v in range(-REACH, REACH + 1) if self.pred(x.pred, {**env, bound: v})]
        assert not values or (values[0] > -REACH and values[-1] < REACH), "the fold's domain is not bounded"
        parts = [self.real(x.args[0], {**env, bound: v}) for v in values]
        match op:
            case "add":
                return math.fsum(parts)
            case "mul":
                return math.prod(parts)
            case "max":
                return max(parts, default=-math.inf)
            case _:
                return min(parts, default=math.inf)
