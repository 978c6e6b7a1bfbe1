"""Random terms, each built together with a plain Python function that says what it means, and an exact evaluator.

The function never looks at the term: comparing it with the evaluated term tests every simplification on the way.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from warpproof.terms import Access, Arena, Poly, Pred, Real, const

LANES = 6
Env = Mapping[int, int]
Meaning = Callable[[Env, int], Any]
INFINITE = {1: Fraction(10) ** 30, -1: -(Fraction(10) ** 30)}


def loaded(buffer: str, index: int) -> Fraction:
    """Small integers, so that exponentials of sums stay exact."""
    return Fraction((index * 7 + len(buffer) * 3 + 11) % 9 - 4)


class Oracle:
    """Values of terms in one lane; `env` gives every atom that is not derived."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena

    def poly(self, p: Poly, env: Env, lane: int) -> int:
        total = 0
        for m, c in p.terms.items():
            term = c if isinstance(c, int) else int(c[lane])
            for a in m:
                term *= self.atom(a, env, lane)
            total += term
        return total

    def atom(self, ident: int, env: Env, lane: int) -> int:
        if ident in env:
            return env[ident]
        atom = self.arena.atoms[ident]
        args = [self.poly(q, env, lane) for q in atom.args]
        match atom.kind:
            case "div":
                return args[0] // args[1]
            case "min" | "max":
                return (min if atom.kind == "min" else max)(args)
            case "or":
                return args[0] | args[1]
            case "phi":
                return args[0] if self.pred(atom.pred, env, lane) else args[1]
        raise AssertionError(f"no value for {atom}")

    def pred(self, p: Pred, env: Env, lane: int) -> bool:
        match p.op:
            case "true" | "false":
                return p.op == "true"
            case "le":
                return self.poly(p.data, env, lane) <= 0
            case "eq":
                return self.poly(p.data, env, lane) == 0
            case "ne":
                return self.poly(p.data, env, lane) != 0
            case "lanes":
                return bool(p.data[lane])
            case "and":
                return all(self.pred(q, env, lane) for q in p.args)
            case "or":
                return any(self.pred(q, env, lane) for q in p.args)
            case "not":
                return not self.pred(p.args[0], env, lane)
            case "fcmp":
                a, b = (self.real(r, env, lane) for r in p.reals)
                return bool({"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b}[p.data])
            case "dom":
                i = env[p.data[0]] if p.data[0] in env else self.atom(p.data[0], env, lane)
                return i >= 0 and (i == 0 or self.poly(p.data[1], {**env, p.data[0]: i - 1}, lane) <= 0)
        raise AssertionError(p.op)

    def real(self, x: Real, env: Env, lane: int) -> Fraction:
        match x.op:
            case "const":
                return Fraction(x.data)
            case "inf":
                return INFINITE[x.data]
            case "int":
                return Fraction(self.poly(x.data, env, lane))
            case "load":
                return loaded(x.data[0].buffer, self.poly(x.data[1], env, lane))
            case "sel":
                return self.real(x.args[0 if self.pred(x.pred, env, lane) else 1], env, lane)
            case "gather":
                return self.real(x.args[0], env, int(self.arena.permutation(x)[lane]))
            case "red":
                return combined(x.data[0], [self.real(x.args[0], env, int(t)) for t in self.arena.matrix(x)[lane]])
            case "fold":
                op, b = x.data
                values = [{**env, b: k} for k in range(-1, 11)]
                assert not self.pred(x.pred, values[-1], lane)
                return combined(op, [self.real(x.args[0], e, lane) for e in values if self.pred(x.pred, e, lane)])
        return applied(x.op, [self.real(y, env, lane) for y in x.args])


def combined(op: str, values: list[Fraction]) -> Fraction:
    """A fold of numbers."""
    match op:
        case "add":
            return sum(values, Fraction(0))
        case "mul":
            return math.prod(values, start=Fraction(1))
        case "max":
            return max(values, default=INFINITE[-1])
    return min(values, default=INFINITE[1])


def applied(op: str, args: list[Fraction]) -> Fraction:
    """A function of numbers."""
    match op:
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
        case "abs":
            return abs(args[0])
        case "floor":
            return Fraction(math.floor(args[0]))
        case "ex2":
            assert args[0].denominator == 1
            return Fraction(2) ** int(args[0])
        case "sqrt":
            n, d = math.isqrt(args[0].numerator), math.isqrt(args[0].denominator)
            assert Fraction(n, d) ** 2 == args[0]
            return Fraction(n, d)
    raise AssertionError(op)


class Maker:
    """Random terms over one arena, with their meanings."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.arena = Arena(LANES)
        self.n = self._one(self.arena.symbol("size", "n", 1, 9))
        self.m = self._one(self.arena.symbol("size", "m", 0, 12))
        self.b = self._one(self.arena.symbol("block", "b", 0, 5))
        self.i = self.arena.fresh("loop", "i", 0, None).id
        self.j = self.arena.fresh("index", "j", None, None).id
        self.oracle = Oracle(self.arena)

    def _one(self, p: Poly) -> int:
        ((m, _),) = p.terms.items()
        return m[0]

    def variable(self, atom: int) -> Poly:
        return self.arena.variable(self.arena.atoms[atom])

    def env(self) -> dict[int, int]:
        """Values of the unknowns within their ranges."""
        r = self.rng
        return {self.n: r.randint(1, 9), self.m: r.randint(0, 12), self.b: r.randint(0, 5), self.i: r.randint(0, 7),
                self.j: r.randint(-6, 6)}

    # ------------------------------------------------------------------ integers
    def integer(self, depth: int) -> tuple[Poly, Meaning]:
        r = self.rng
        if depth <= 0 or r.random() < 0.2:
            return self._leaf()
        a, fa = self.integer(depth - 1)
        kind = r.randrange(9)
        if kind < 4:
            b, fb = self.integer(depth - 1)
            return [(a + b, lambda e, t: fa(e, t) + fb(e, t)), (a - b, lambda e, t: fa(e, t) - fb(e, t)),
                    (a * b, lambda e, t: fa(e, t) * fb(e, t)), (-a, lambda e, t: -fa(e, t))][kind]
        if kind == 4:
            k = r.choice([1, 2, 3, 4, 6, 8, 16, 64])
            return self.arena.floor_div(a, const(k)), lambda e, t: fa(e, t) // k
        if kind == 5:
            k = r.choice([2, 3, 8, 12])
            return self.arena.mod(a, const(k)), lambda e, t: fa(e, t) % k
        if kind == 6:
            k = r.choice([1, 1, 2, 4])
            return self.arena.floor_div(a, self.variable(self.n) * k), lambda e, t: fa(e, t) // (e[self.n] * k)
        b, fb = self.integer(depth - 1)
        if kind == 7:
            which = r.choice(["min", "max"])
            pick = min if which == "min" else max
            return self.arena.extremum(which, (a, b)), lambda e, t: pick(fa(e, t), fb(e, t))
        return self.arena.bit_or(a, b), lambda e, t: fa(e, t) | fb(e, t)

    def _leaf(self) -> tuple[Poly, Meaning]:
        r = self.rng
        kind = r.randrange(4)
        if kind == 0:
            k = r.randint(-9, 9)
            return const(k), lambda e, t: k
        if kind == 1:
            v = np.array([r.randint(-9, 9) for _ in range(LANES)], np.int64)
            return const(v), lambda e, t: int(v[t])
        if kind == 2:
            v = np.array([r.choice([0, 1, 4, 8, -2]) for _ in range(LANES)], np.int64)
            atom = r.choice([self.n, self.m, self.b, self.i])
            return self.variable(atom) * const(v), lambda e, t: e[atom] * int(v[t])
        atom, k = r.choice([self.n, self.m, self.b, self.i, self.j]), r.choice([1, 1, 2, 4, 16, -1, -3])
        return self.variable(atom) * k, lambda e, t: e[atom] * k

    # ------------------------------------------------------------------ predicates
    def predicate(self, depth: int, reals: bool = True) -> tuple[Pred, Meaning]:
        r, a = self.rng, self.arena
        kind = r.randrange(9 if depth > 0 else 5)
        if kind < 3:
            p, f = self.integer(2)
            return [(a.le(p), lambda e, t: f(e, t) <= 0), (a.eq(p), lambda e, t: f(e, t) == 0),
                    (a.ne(p), lambda e, t: f(e, t) != 0)][kind]
        if kind == 3:
            mask = np.array([r.random() < 0.6 for _ in range(LANES)])
            return a.lane_mask(mask), lambda e, t: bool(mask[t])
        if kind == 4:
            if not reals:
                return a.truth(True), lambda e, t: True
            (x, fx), (y, fy) = self.real(1), self.real(1)
            op = r.choice(["lt", "le", "eq", "ne"])
            return a.fcmp(op, x, y), lambda e, t: bool(
                {"lt": fx(e, t) < fy(e, t), "le": fx(e, t) <= fy(e, t), "eq": fx(e, t) == fy(e, t)}.get(
                    op, fx(e, t) != fy(e, t)))
        (p, f), (q, g) = self.predicate(depth - 1, reals), self.predicate(depth - 1, reals)
        if kind == 5:
            return a.conj((p, q)), lambda e, t: f(e, t) and g(e, t)
        if kind == 6:
            return a.disj((p, q)), lambda e, t: f(e, t) or g(e, t)
        if kind == 7:
            return a.negate(p), lambda e, t: not f(e, t)
        return a.conj((a.negate(p), a.disj((p, q)))), lambda e, t: not f(e, t) and g(e, t)

    # ------------------------------------------------------------------ reals
    def real(self, depth: int, *, exponent: bool = True) -> tuple[Real, Meaning]:
        r, a = self.rng, self.arena
        if depth <= 0:
            return self._real_leaf()
        x, f = self.real(depth - 1, exponent=exponent)
        kind = r.randrange(12)
        if kind < 5:
            y, g = self.real(depth - 1, exponent=exponent)
            return [(a.add(x, y), lambda e, t: f(e, t) + g(e, t)), (a.sub(x, y), lambda e, t: f(e, t) - g(e, t)),
                    (a.mul(x, y), lambda e, t: f(e, t) * g(e, t)),
                    (a.maximum(x, y), lambda e, t: max(f(e, t), g(e, t))),
                    (a.minimum(x, y), lambda e, t: min(f(e, t), g(e, t)))][kind]
        if kind == 5:
            (p, h), (y, g) = self.predicate(1), self.real(depth - 1, exponent=exponent)
            return a.sel(p, x, y), lambda e, t: f(e, t) if h(e, t) else g(e, t)
        if kind == 6:
            k = Fraction(r.choice([2, 3, -1, 5]), r.choice([1, 2, 3]))
            return a.div(x, a.rational(k)), lambda e, t: f(e, t) / k
        if kind == 7 and exponent:
            y, g = self.real(1, exponent=False)
            z = a.unary("floor", a.minimum(a.maximum(y, a.rational(-8)), a.rational(8)))
            return a.mul(x, a.unary("ex2", z)), (
                lambda e, t: f(e, t) * Fraction(2) ** math.floor(min(max(g(e, t), -8), 8)))
        if kind == 8:
            return a.unary("abs", x), lambda e, t: abs(f(e, t))
        if kind == 9:
            lanes = np.array([r.randrange(LANES) for _ in range(LANES)])
            lazy = r.random() < 0.5
            return a.permute(x, lanes, lazy=lazy), lambda e, t: f(e, int(lanes[t]))
        if kind == 10:
            op = r.choice(["add", "max", "min"])
            rows = np.array([[r.randrange(LANES) for _ in range(3)] for _ in range(LANES)])
            return a.reduction(op, x, rows), lambda e, t: combined(op, [f(e, int(s)) for s in rows[t]])
        return self._folded(x, f)

    def _folded(self, x: Real, f: Meaning) -> tuple[Real, Meaning]:
        r, a = self.rng, self.arena
        atom, low = self.arena.fresh("index", "k").id, r.choice([0, 1])
        k = self.variable(atom)
        most = r.randint(0, 4) if r.random() < 0.5 else None
        high = self.variable(self.n) if most is None else const(most)
        top: Meaning = lambda e, t: e[self.n] if most is None else most  # noqa: E731
        domain = a.conj((a.le(low - k), a.le(k - high + 1)))
        put = a.substitution({self.j: k})
        op = r.choice(["add", "max", "min", "mul"])
        return a.fold(op, atom, domain, put.real(x)), lambda e, t: combined(
            op, [f({**e, self.j: v}, t) for v in range(low, top(e, t))])

    def _real_leaf(self) -> tuple[Real, Meaning]:
        r, a = self.rng, self.arena
        kind = r.randrange(3)
        if kind == 0:
            k = Fraction(r.choice([0, 1, -1, 2, 3]))
            return a.rational(k), lambda e, t: k
        p, f = self.integer(1)
        if kind == 1:
            return a.of_int(p), lambda e, t: Fraction(f(e, t))
        name = r.choice(["x", "yy"])
        return a.load(Access(name), p), lambda e, t: loaded(name, f(e, t))
