"""Random sets of pieces: those said to be consecutive intervals contain each element once, counted one by one."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise, product

import numpy as np

from warpproof.algebra import evaluate
from warpproof.solve import Consecutive, Facts, Piece, in_order
from warpproof.terms import Arena, Poly, Pred, const

LANES, SIZES, LOOP = 3, range(8), range(-14, 15)
Env = Mapping[int, int]


def true(a: Arena, p: Pred, env: Env, lane: int) -> bool:
    """A condition at a point."""
    match p.op:
        case "true" | "false":
            return p.op == "true"
        case "lanes":
            return bool(np.frombuffer(p.data, dtype=bool)[lane])
        case "dom":
            i, goes_on = p.data
            return env[i] == 0 or (env[i] > 0 and evaluate(a, goes_on, {**env, i: env[i] - 1}, lane) <= 0)
    v = evaluate(a, p.data, env, lane)
    return bool({"le": v <= 0, "eq": v == 0, "ne": v != 0}[p.op])


def elements(a: Arena, pieces: list[Piece], env: Env) -> Counter[tuple[int, ...]]:
    """How often each index occurs, over lanes and iterations."""
    found: Counter[tuple[int, ...]] = Counter()
    for p, lane in product(pieces, range(LANES)):
        weight = p.weight if isinstance(p.weight, int) else int(p.weight[lane])
        for k in LOOP if weight and p.loops else [0] * bool(weight):
            low, high = a.ranges[p.loops[0]] if p.loops else (None, None)
            inside = (low is None or low <= k) and (high is None or k <= high)
            at = {**env, **dict.fromkeys(p.loops, k)}
            if inside and all(true(a, g, at, lane) for g in p.guards):
                found[tuple(evaluate(a, q, at, lane) for q in p.index)] += weight
    return found


class Made:
    """Pieces between random cuts of [0, n), some of them wrong."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.arena = rng, Arena(LANES)
        a = self.arena
        self.n, self.c = a.symbol("size", "n", rng.choice([0, 1]), 40), a.symbol("size", "c", rng.choice([0, 1]), 40)
        self.ids = [next(iter(x.atoms())) for x in (self.n, self.c)]
        cuts = sorted((self.cut() for _ in range(rng.randint(0, 2))), key=lambda p: evaluate(a, p, self.env(7, 3), 0))
        self.pieces = [p for x, y in pairwise([const(0), *cuts, self.n]) for p in self.between(x, y)]
        rng.shuffle(self.pieces)

    def env(self, n: int, c: int) -> dict[int, int]:
        return dict(zip(self.ids, (n, c), strict=True))

    def cut(self) -> Poly:
        a, n, c, k = self.arena, self.n, self.c, self.rng.randint(0, 4)
        return self.rng.choice([
            a.extremum("min", [n, c * k]), a.extremum("min", [n, c * k]), a.floor_div(n + k, const(3)), c,
            a.extremum("max", [n - c * k, const(0)]), const(k),
        ])

    def condition(self, x: Poly, y: Poly) -> Pred:
        a, n, c = self.arena, self.n, self.c
        return self.rng.choice([a.le(x - y + 1), a.le(1 - n), a.le(c - n), a.ne(c - 2), a.le(1 - c)])

    def between(self, x: Poly, y: Poly) -> Iterator[Piece]:
        """x … y − 1 in one lane: by a loop of one of three forms, or every s-th element by each of s loops."""
        a, rng = self.arena, self.rng
        x, y = (p + (rng.choice([-1, 1]) if rng.random() < 0.03 else 0) for p in (x, y))
        i = a.fresh("loop", "i", *rng.choice([(0, None), (0, None), (0, None), (-2, None), (0, 9), (1, None)]))
        v = a.variable(i)
        lane = a.lane_mask(np.arange(LANES) == rng.randrange(LANES))
        more = (lane, self.condition(x, y)) if rng.random() < 0.25 else (lane,)
        step = rng.choice([1, 1, 2, 3])
        if step > 1:
            count = rng.choice([self.c, a.floor_div(self.n, const(step))])
            for k in range(step):
                off = k + (rng.choice([1, -1]) if rng.random() < 0.05 else 0)
                yield Piece((*more, a.le(v - count + 1)), (i.id,), (), (x + v * step + off,))
            x, i = x + count * step, a.fresh("loop", "i", 0, None)
            v = a.variable(i)
        match rng.randrange(3):
            case 0:
                entered = (a.le(x - y + 1),) if rng.random() < 0.9 else ()
                yield Piece((*more, *entered, a.domain(i.id, x + v + 1 - y)), (i.id,), (), (x + v,))
            case 1:
                yield Piece((*more, a.le(x - v), a.le(v - y + 1)), (i.id,), (), (v,))
            case _:
                yield Piece((*more, a.le(x + v - y + 1)), (i.id,), (), (x + v,))


def test_what_is_said_to_be_consecutive_contains_each_element_once() -> None:
    held = 0
    for seed in range(300):
        rng = random.Random(seed)
        made = Made(rng)
        a, n, c = made.arena, made.n, made.c
        facts = rng.choice([(), (a.le(n - c * rng.randint(1, 4)),), (a.le(c - n),)])
        path = rng.choice([a.true, a.true, a.le(1 - n), a.le(c - n)])
        at = a.fresh("index", "j", 0, None)
        whole = (at.id, (a.le(a.variable(at) - n + 1),))
        if not Consecutive(Facts(a, facts)).holds(whole, made.pieces, path):
            continue
        held += 1
        for env in (made.env(*sizes) for sizes in product(SIZES, range(5))):
            admitted = all(low <= env[k] for k in made.ids if (low := a.ranges[k][0]) is not None)
            if admitted and all(true(a, p, env, 0) for p in (*facts, path)):
                want = Counter((k,) for k in range(env[made.ids[0]]))
                assert elements(a, made.pieces, env) == want, (seed, env)
    assert held > 15


def test_what_is_said_to_be_in_order_contains_each_element_once() -> None:
    held = 0
    for seed in range(150):
        rng = random.Random(seed)
        a = Arena(LANES)
        r, s, n = (a.symbol("size", name, 0, 20) for name in "rsn")
        x, y = (a.symbol("block", f"block.{axis}", 0, None) for axis in "xy")
        grid = rng.choice([r, r, r + 1]), rng.choice([s, s, s + 1])
        half = a.floor_div(n + 1, const(2))
        pieces = []
        for k, (first, end) in enumerate(pairwise(rng.choice([[const(0), n], [const(0), half, n]]))):
            i = a.fresh("loop", "i", 0, None)
            v = a.variable(i)
            guards = [a.lane_mask(np.arange(LANES) == k), a.le(first + v - end + 1)]
            guards += [rng.choice([a.le(x - r + 1), a.le(1 - y), a.le(first - end + 1)])] * (rng.random() < 0.1)
            rows = (x, y + (rng.random() < 0.05))
            pieces.append(Piece(tuple(guards), (i.id,), (*x.atoms(), *y.atoms()), (*rows, first + v)))
        facts = Facts(a, (a.le(x - grid[0] + 1), a.le(y - grid[1] + 1)))
        extents = (rng.choice([r, r, grid[0]]), rng.choice([s, s, grid[1]]), n)
        if not in_order(facts, pieces, extents):
            continue
        held += 1
        ids = [next(iter(p.atoms())) for p in (r, s, n, x, y)]
        for sizes in product(range(3), range(3), range(4)):
            env = dict(zip(ids, sizes, strict=False))
            found: Counter[tuple[int, ...]] = Counter()
            for ctas in product(*(range(evaluate(a, g, env, 0)) for g in grid)):
                found += elements(a, pieces, {**env, **dict(zip(ids[3:], ctas, strict=True))})
            assert found == Counter(product(*(range(evaluate(a, e, env, 0)) for e in extents))), (seed, env)
    assert held > 30
