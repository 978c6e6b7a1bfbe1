"""Random choices between extrema over loops: what is read of them is what the code computes, on data full of ties."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from warpproof.algebra import Normaliser
from warpproof.domains import READINGS, Reading
from warpproof.domains.pairs import Pairs
from warpproof.solve import Facts
from warpproof.terms import Access, Arena, Poly, Pred, Real, const

SEEDS, ITERATIONS = range(2640, 2760), 12
Env = Mapping[int, int]
Side = tuple[Poly, Real]


class Values:
    """Terms on small integer data, by enumeration of the iterations."""

    def __init__(self, arena: Arena, data: list[int]) -> None:
        self.arena, self.data = arena, data

    def poly(self, p: Poly, env: Env) -> int:
        total = 0
        for m, c in p.terms.items():
            assert isinstance(c, int)
            for i in m:
                c *= self.atom(i, env)
            total += c
        return total

    def atom(self, ident: int, env: Env) -> int:
        if ident in env:
            return env[ident]
        atom = self.arena.atoms[ident]
        if atom.real is not None:
            return -max(self.pairs(atom.real, env))[1]
        if atom.pred is not None:
            return self.poly(atom.args[not self.truth(atom.pred, env)], env)
        x, *more = (self.poly(q, env) for q in atom.args)
        return x // more[0] if atom.kind == "div" else (min if atom.kind == "min" else max)(x, *more)

    def truth(self, p: Pred, env: Env) -> bool:
        match p.op:
            case "and" | "or":
                return (all if p.op == "and" else any)(self.truth(q, env) for q in p.args)
            case "fcmp":
                x, y = (self.real(r, env) for r in p.reals)
                return bool({"lt": x < y, "le": x <= y, "eq": x == y, "ne": x != y}[p.data])
            case "dom":
                i, goes_on = p.data
                return env[i] == 0 or self.poly(goes_on, {**env, i: env[i] - 1}) <= 0
        v = self.poly(p.data, env)
        return bool({"le": v <= 0, "eq": v == 0, "ne": v != 0}[p.op])

    def iterations(self, x: Real, env: Env) -> list[Env]:
        assert x.pred is not None
        all_ = [{**env, x.data[1]: k} for k in range(ITERATIONS)]
        return [e for e in all_ if self.truth(x.pred, e)]

    def real(self, x: Real, env: Env) -> int:
        match x.op:
            case "load":
                return self.data[self.poly(x.data[1], env) % len(self.data)]
            case "inf":
                return 10**6 * int(x.data)
            case "const":
                return int(x.data)
            case "mul":
                return self.real(x.args[0], env) * self.real(x.args[1], env)
            case "fold":
                found = [self.real(x.args[0], e) for e in self.iterations(x, env)]
                return (max if x.data[0] == "max" else min)(found)
        assert x.op in ("max", "min")
        return (max if x.op == "max" else min)(self.real(y, env) for y in x.args)

    def pairs(self, x: Real, env: Env) -> list[tuple[int, int]]:
        """All pairs of an extremum, as (value, −position)."""
        match x.op:
            case "placed":
                return [(self.real(x.args[0], env), -self.poly(x.data, env))]
            case "fold":
                return [p for e in self.iterations(x, env) for p in self.pairs(x.args[0], e)]
        assert x.op == "max"
        return [p for y in x.args for p in self.pairs(y, env)]


class Made:
    """One random kernel: extrema over loops, joined by comparisons."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.arena = rng, Arena(1)
        self.n = self.arena.symbol("size", "n", 1, 8)
        facts = Facts(self.arena, ())
        self.pairs = Pairs(self.arena, Normaliser(self.arena), lambda p: facts.implied(self.arena.true, p))
        self.reading = rng.choice(READINGS)
        self.op = "max" if self.reading.value == 1 else "min"
        self.shape = rng.choice(self.shapes())

    def shapes(self) -> list[Callable[[Poly], Poly]]:
        """Positions by iteration, but for an offset."""
        a, k, w = self.arena, self.rng.randint(2, 3), self.rng.choice([1, 2, -1])
        return [
            lambda x: x * w, lambda x: x * w, lambda x: x * self.n, lambda x: a.floor_div(x, const(k)) * k + x,
            lambda x: a.extremum("min", [x, const(k)]) * w, lambda x: a.mod(x, const(k)) * w,
            lambda x: a.floor_div(x, const(k)) * self.n, lambda x: a.extremum("max", [x - k, const(0)]) * w,
        ]

    def side(self) -> Side:
        """A start value and its position, and the extremum over a loop."""
        a, rng = self.arena, self.rng
        i = a.fresh("loop", "i", 0, None)
        x = a.variable(i)
        shape = self.shape if rng.random() < 0.8 else rng.choice(self.shapes())
        at = shape(x) + rng.choice([const(rng.randint(-1, 3)), self.n])
        domain = rng.choice([a.conj((a.le(-x), a.le(x - self.n + 1))), a.domain(i.id, x - self.n + 2)])
        value, first = a.load(Access("x", 0), at), const(rng.randint(-1, 2))
        start = rng.choice([a.identity(self.op), a.load(Access("x", 0), first)])
        signed, begin = (value, start) if self.reading.value == 1 else (a.neg(value), a.neg(start))
        s = self.reading.place
        best = a.maximum(a.placed(begin, first * s), a.fold("max", i.id, domain, a.placed(signed, at * s)))
        return a.place(best) * s, a.combine(self.op, start, a.fold(self.op, i.id, domain, value))

    def join(self, one: Side, two: Side) -> Side:
        """Both, by a comparison that may look at the positions of equal values."""
        a, ((p, x), (q, y)) = self.arena, (one, two)
        order = (x, y) if self.reading.value == 1 else (y, x)
        test = a.fcmp(self.rng.choice(["lt", "le"]), *order)
        if self.rng.random() < 0.5:
            tie = self.rng.choice([a.lt(q, p), a.lt(p, q), a.le(q - p)])
            test = a.disj((a.fcmp("lt", *order), a.conj((a.fcmp("eq", x, y), tie))))
        if test.op in ("true", "false"):
            return q if test.op == "true" else p, a.combine(self.op, x, y)
        return a.derived("phi", (q, p), test), a.combine(self.op, x, y)


def _check(made: Made, at: Poly, best: Real, read: Mapping[Reading, Real | None], settled: Poly) -> None:
    size = {next(iter(made.n.atoms())): made.rng.randint(1, 8)}
    values = Values(made.arena, [made.rng.randint(0, 2) for _ in range(97)])
    place, value = values.poly(at, size), values.real(best, size)
    assert values.poly(settled, size) == place
    for reading, found in read.items():
        if found is not None:
            assert max(values.pairs(found, size)) == (value * reading.value, -place * reading.place)
            low, high = made.arena.place_range(found)
            at_sign = place * reading.place
            assert low is None or low <= at_sign
            assert high is None or at_sign <= high


def test_what_is_read_of_extrema_over_loops_is_what_the_code_computes() -> None:
    count = 0
    for seed in SEEDS:
        made = Made(random.Random(seed))
        at, best = made.side()
        for _ in range(made.rng.randint(1, 2)):
            sides = (at, best), made.side()
            at, best = made.join(*(sides if made.rng.random() < 0.7 else sides[::-1]))
        read = {r: made.pairs.read(at, best, r) for r in READINGS}
        settled = made.pairs.settled(at)
        count += sum(f is not None for f in read.values())
        for _ in range(4):
            _check(made, at, best, read, settled)
    assert count > len(SEEDS) // 8
