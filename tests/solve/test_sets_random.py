"""Random index maps: no answer of the integer sets contradicts enumeration at small sizes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from brute_force import answer, points, target
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels import block, idof, loop, vec
from warpproof import solve
from warpproof.solve import Box, Piece, Problem
from warpproof.terms import Arena, Poly, Pred, const

SIZES = range(0, 8)
QUESTIONS = ("exactly_once", "covers", "within", "disjoint", "single_thread", "injective")


@dataclass
class Drawn:
    problem: Problem
    pieces: list[Piece]
    n: int


@st.composite
def problems(draw: st.DrawFn) -> Drawn:
    """A size n, perhaps a block and a loop, index and guards with lane vectors that may be irregular."""
    count = draw(st.sampled_from([1, 2, 4, 6]))
    a = Arena(count)
    n = a.symbol("size", "n", 0)
    t = vec(np.arange(count))
    small = st.integers(-2, 3)
    use_block, use_loop = draw(st.booleans()), draw(st.booleans())
    bx, i = block(a, "bx"), loop(a, "i")
    stride = draw(st.integers(1, 4))
    facts: list[Pred] = []
    if use_block:
        grid = a.floor_div(n + (stride - 1), const(stride)) if draw(st.booleans()) else const(draw(st.integers(1, 3)))
        facts.append(a.le(bx - grid + 1))

    def lane_vector() -> Poly:
        if draw(st.integers(0, 2)):
            return t * draw(st.integers(0, 3))
        return vec(draw(st.lists(st.integers(0, 4), min_size=count, max_size=count)))

    def base() -> Poly:
        p = lane_vector() + draw(st.integers(-1, 2))
        if use_block:
            p = p + bx * draw(st.sampled_from([0, 1, stride, count]))
        if use_loop:
            p = p + i * draw(st.sampled_from([1, stride, count, 2 * count]))
        if draw(st.integers(0, 4)) == 0:
            p = p + a.floor_div(n + lane_vector(), const(draw(st.integers(2, 3))))
        return p

    def guard(p: Poly) -> Pred:
        match draw(st.integers(0, 6)):
            case 0:
                return a.ne(p - draw(small))
            case 1:
                return a.lane_mask(np.asarray(draw(st.lists(st.booleans(), min_size=count, max_size=count))))
            case 2:
                return a.disj((a.le(p - n + 2), a.le(lane_vector() - draw(small))))
            case _:
                return a.le(p - n + draw(st.integers(0, 2)))

    pieces: list[Piece] = []
    for _ in range(draw(st.integers(1, 2))):
        p = base()
        guards = [guard(p) for _ in range(draw(st.integers(0, 2)))]
        if use_loop:
            more = a.domain(idof(i), p + draw(st.integers(1, 3)) - n + 1)
            guards += [more, a.le(i - draw(st.integers(0, 4)))]
        weight = np.asarray(draw(st.lists(st.sampled_from([0, 1, 1, 1, 2]), min_size=count, max_size=count)))
        loops, blocks = (idof(i),) * use_loop, (idof(bx),) * use_block
        whole = draw(st.booleans())
        for u in range(draw(st.integers(1, 3))):
            shift = u * draw(st.sampled_from([1, count, stride]))
            index = (p + shift,) if not draw(st.booleans()) else (p + shift + 0 * n,)
            pieces.append(Piece(tuple(guards), loops, blocks, index, 1 if whole else weight))
    return Drawn(Problem(a, tuple(facts), Box((n,))), pieces, idof(n))


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(problems())
def test_answers_agree_with_enumeration(d: Drawn) -> None:
    found = {v: points(d.problem, d.pieces, {d.n: v}, reach=10) for v in SIZES}
    goals = {v: target(d.problem, {d.n: v}) for v in SIZES}
    for question in QUESTIONS:
        reply = getattr(solve, question)(d.problem, d.pieces)
        if reply.holds is True:
            wrong = [v for v in SIZES if not answer(question, found[v], goals[v])]
            assert not wrong, (question, wrong, reply.evidence)
        elif reply.holds is False:
            at = int(reply.witness["n"])
            if at <= 30:
                pts = points(d.problem, d.pieces, {d.n: at}, reach=40)
                assert not answer(question, pts, target(d.problem, {d.n: at})), (question, reply)
    every = [p for v in SIZES for p in found[v]]
    reply = solve.nonempty(d.problem, d.pieces)
    assert reply.holds is not False or not every
    half = len(d.pieces) // 2
    reply = solve.equal_index_same_thread(d.problem, d.pieces[:half], d.pieces[half:])
    if reply.holds:
        assert all(answer("equal_index_same_thread", found[v], set(), half) for v in SIZES)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(problems())
def test_most_answers_are_definite(d: Drawn) -> None:
    """Random pieces are exact, so `within` is decided unless a lane pattern is too irregular."""
    reply = solve.within(d.problem, d.pieces)
    assert reply.holds is not None or "affine" in str(reply.evidence["why"])


def strided_loop(a: Arena, threads: int, factor: int, n: Poly) -> list[Piece]:
    """A loop over t, t + T, … unrolled by `factor`: remainder first, then whole rounds."""
    t, i, k = vec(np.arange(threads)), loop(a, "i"), loop(a, "k")
    rem = a.mod(a.floor_div(n - 1 - t, const(threads)) + 1, const(factor))
    live, base, step = a.le(t - n + 1), t + rem * threads, factor * threads
    some = a.le((factor - 1) * threads - (n - 1 - t))
    rounds = a.domain(idof(k), base + k * step + step - n + 1)
    return [
        Piece((live, a.ne(rem), a.domain(idof(i), i + 2 - rem)), (idof(i),), (), (t + i * threads,)),
        *(Piece((live, some, rounds), (idof(k),), (), (base + k * step + u * threads,)) for u in range(factor)),
    ]


def vector_copies(a: Arena, threads: int, width: int, n: Poly) -> list[Piece]:
    """`width` elements per lane and a tail."""
    t, i = vec(np.arange(threads)), loop(a, "i")
    whole = a.floor_div(n, const(width))
    at = t + i * threads
    rounds = (a.le(t - whole + 1), a.domain(idof(i), at + threads - whole + 1))
    first = a.lane_mask(np.arange(threads) == threads - 1)
    return [
        *(Piece(rounds, (idof(i),), (), (at * width + u,)) for u in range(width)),
        *(Piece((first, a.le(whole * width + u - n + 1)), (), (), (whole * width + u,)) for u in range(width - 1)),
    ]


@st.composite
def near_tilings(draw: st.DrawFn) -> Drawn:
    """Right tilings, most of them with one small change."""
    threads, factor = draw(st.integers(1, 6)), draw(st.integers(2, 4))
    a = Arena(threads)
    n = a.symbol("size", "n", draw(st.integers(0, 2)))
    pieces = draw(st.sampled_from([strided_loop, vector_copies]))(a, threads, factor, n)
    k = draw(st.integers(0, len(pieces) - 1))
    p = pieces[k]
    match draw(st.integers(0, 6)):
        case 0:
            pieces.pop(k)
        case 1:
            pieces[k] = Piece(p.guards, p.loops, p.blocks, (p.index[0] + draw(st.sampled_from([-1, 1])),), p.weight)
        case 2:
            extra = a.ne(p.index[0] - draw(st.integers(0, 9)))
            pieces[k] = Piece((*p.guards, extra), p.loops, p.blocks, p.index, p.weight)
        case 3:
            pieces[k] = Piece(p.guards[1:], p.loops, p.blocks, p.index, p.weight)
        case 4:
            weight = np.asarray(draw(st.lists(st.sampled_from([0, 1, 1, 1]), min_size=threads, max_size=threads)))
            pieces[k] = Piece(p.guards, p.loops, p.blocks, p.index, weight)
        case _:
            pass
    return Drawn(Problem(a, (), Box((n,))), pieces, idof(n))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(near_tilings())
def test_near_tilings_agree_with_enumeration(d: Drawn) -> None:
    sizes = [v for v in range(40) if v >= (d.problem.arena.ranges[d.n][0] or 0)]
    found = {v: points(d.problem, d.pieces, {d.n: v}, reach=40) for v in sizes}
    goals = {v: target(d.problem, {d.n: v}) for v in sizes}
    for question in QUESTIONS:
        reply = getattr(solve, question)(d.problem, d.pieces)
        wrong = [v for v in sizes if not answer(question, found[v], goals[v])]
        assert reply.holds is not True or not wrong, (question, wrong, reply.evidence)
        assert reply.holds is not False or wrong or int(reply.witness["n"]) >= 40, (question, reply)
        assert reply.holds is not None or "bounds the loop counter" in str(reply.evidence["why"]), (question, reply)
