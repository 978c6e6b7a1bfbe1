"""Integer-set questions: typical index maps and wrong variants, each answer against enumeration."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable

import numpy as np
import pytest
from brute_force import admitted, answer, points, target

from kernels import CASES, Case, block, idof, loop, size, vec
from warpproof import solve
from warpproof.solve import Answer, Box, Piece, Problem, Region
from warpproof.terms import Arena, const

QUESTIONS: dict[str, Callable[[Problem, tuple[Piece, ...]], Answer]] = {
    q: getattr(solve, q) for q in ("exactly_once", "covers", "within", "disjoint", "single_thread", "injective")
}


def truth(case: Case, question: str) -> bool:
    """The answer by enumeration at all listed sizes (True means: not refuted there)."""
    names = list(case.sizes)
    for values in itertools.product(*case.sizes.values()):
        sizes = dict(zip(names, values))
        if not admitted(case.problem, sizes):
            continue
        found = points(case.problem, case.pieces, sizes, case.reach)
        goal = target(case.problem, sizes) if question in ("exactly_once", "covers", "within") else set()
        if not answer(question, found, goal):
            return False
    return True


@pytest.mark.parametrize("name", CASES)
def test_kernels(name: str) -> None:
    case = CASES[name]()
    for question, ask in QUESTIONS.items():
        start = time.perf_counter()
        found = ask(case.problem, case.pieces)
        print(f"{name}: {question} {found.holds} {1e3 * (time.perf_counter() - start):.1f} ms {found.witness}")
        if question in case.expected:
            assert found.holds is case.expected[question], (question, found.evidence)
        if case.problem.arena.lanes < 32 and found.holds is not None:
            assert truth(case, question) or not found.holds
        if found.holds is False:
            confirm(case, question, found)


def confirm(case: Case, question: str, found: Answer) -> None:
    """The sizes of the witness refute the question by enumeration (where they are small enough)."""
    assert isinstance(found.witness, dict)
    arena = case.problem.arena
    sizes = {i: found.witness[arena.atoms[i].name] for i in case.sizes if arena.atoms[i].name in found.witness}
    sizes = {i: sizes.get(i, arena.ranges[i][0] or 0) for i in case.sizes}
    if max(sizes.values()) > 60 or arena.lanes > 32:
        return
    pts = points(case.problem, case.pieces, sizes, reach=64 if len(case.pieces[0].blocks) < 2 else 24)
    goal = target(case.problem, sizes) if case.problem.target else set()
    assert not answer(question, pts, goal), (question, found.witness)


def test_reads_and_writes_of_other_threads() -> None:
    a = Arena(32)
    n, t = size(a, "n"), vec(np.arange(32))
    write = Piece((a.le(t - n + 1),), (), (), (t,))
    own = Piece((a.le(t - n + 1),), (), (), (t,))
    neighbour = Piece((a.le(t - n + 2),), (), (), (t + 1,))
    far = Piece((a.le(t - n + 1),), (), (), (t + 32,))
    p = Problem(a)
    assert solve.equal_index_same_thread(p, [own], [write]).holds is True
    assert solve.equal_index_same_thread(p, [far], [write]).holds is True
    assert solve.equal_index_same_thread(p, [own, far], [write]).holds is True
    found = solve.equal_index_same_thread(p, [own, neighbour], [write])
    assert found.holds is False
    # reads of two threads do not conflict with each other
    broadcast = Piece((), (), (), (vec(np.full(32, 40)),))
    assert solve.equal_index_same_thread(p, [broadcast], [write]).holds is True


def test_copies_on_the_two_sides_are_not_one_family() -> None:
    a = Arena(8)
    t = vec(np.arange(8))
    reads = [Piece((), (), (), (t + 8 * u,)) for u in (0, 2)]
    writes = [Piece((), (), (), (t + 8 * u,)) for u in (1, 3)]
    assert solve.equal_index_same_thread(Problem(a), reads, writes).holds is True
    shifted = [Piece((), (), (), (t + 8 * u + 4,)) for u in (1, 3)]
    assert solve.equal_index_same_thread(Problem(a), reads, shifted).holds is False


def test_blocks_without_a_bound_answer_nothing_about_coverage() -> None:
    a = Arena(4)
    n, bx = size(a, "n"), block(a, "bx")
    at = bx * 4 + vec(np.arange(4))
    piece = Piece((a.le(at - n + 1),), (), (idof(bx),), (at,))
    assert solve.covers(Problem(a, (), Box((n,))), [piece]).holds is None
    assert solve.within(Problem(a, (), Box((n,))), [piece]).holds is True
    one = Problem(a, (a.le(bx),), Box((n,)))
    assert solve.covers(one, [piece]).holds is False


def test_a_dropped_guard_is_never_used_for_coverage() -> None:
    a = Arena(4)
    n, t = size(a, "n"), vec(np.arange(4))
    opaque = a.state_pred(a.fresh("state", "s").id)
    pieces = [Piece((a.le(t - n + 1), opaque), (), (), (t,))]
    p = Problem(a, (a.le(n - 4),), Box((n,)))
    assert solve.covers(p, pieces).holds is None
    assert solve.exactly_once(p, pieces).holds is None
    assert solve.within(p, pieces).holds is True
    assert solve.single_thread(p, pieces).holds is True
    assert solve.nonempty(p, pieces).holds is None


def test_loaded_indices_are_unknown() -> None:
    a = Arena(4)
    n, t = size(a, "n"), vec(np.arange(4))
    e = a.derived("elem", (t,), name="idx")
    p = Problem(a, (), Box((n,)))
    assert solve.within(p, [Piece((), (), (), (e,))]).holds is None
    guarded = Piece((a.le(-e), a.le(e - n + 1)), (), (), (e,))
    assert solve.within(p, [guarded]).holds is True
    assert solve.single_thread(p, [guarded]).holds is None
    assert solve.covers(p, [guarded]).holds is None


def test_a_loaded_value_differs_between_single_lanes() -> None:
    """Pieces of one lane each: a lane-dependent loaded value is not one parameter for both."""
    a = Arena(2)
    e = a.derived("elem", (vec([0, 1]),), name="idx")
    pieces = [
        Piece((a.lane_mask(np.asarray([True, False])), a.le(-e), a.le(e)), (), (), (e,)),
        Piece((a.lane_mask(np.asarray([False, True])), a.le(-e), a.le(e - 1)), (), (), (e * 0 + e + 1,)),
    ]
    assert solve.disjoint(Problem(a), pieces).holds is None or solve.disjoint(Problem(a), pieces).holds is True
    same = [
        Piece((a.lane_mask(np.asarray([True, False])),), (), (), (e,)),
        Piece((a.lane_mask(np.asarray([False, True])),), (), (), (e + 1,)),
    ]
    assert solve.disjoint(Problem(a), same).holds is None


def test_weights_count() -> None:
    a = Arena(4)
    n, t = size(a, "n"), vec(np.arange(4))
    p = Problem(a, (a.le(n - 4),), Box((n,)))
    guard = (a.le(t - n + 1),)
    assert solve.exactly_once(p, [Piece(guard, (), (), (t,), np.asarray([1, 1, 1, 1]))]).holds is True
    assert solve.exactly_once(p, [Piece(guard, (), (), (t,), np.asarray([1, 2, 1, 1]))]).holds is False
    assert solve.exactly_once(p, [Piece(guard, (), (), (t,), np.asarray([1, 0, 1, 1]))]).holds is False
    assert solve.covers(p, [Piece(guard, (), (), (t,), np.asarray([1, 2, 1, 1]))]).holds is True


def test_regions_as_targets() -> None:
    """A lower triangle: row by block, columns ≤ row."""
    a = Arena(8)
    n, bx, i = size(a, "n"), block(a, "bx"), loop(a, "i")
    r, c = a.symbol("index", "r", 0), a.symbol("index", "c", 0)
    t = vec(np.arange(8))
    col = t + i * 8
    region = Region((idof(r), idof(c)), (a.le(r - n + 1), a.le(c - r)))
    guards = (a.le(t - bx), a.domain(idof(i), col + 8 - bx))
    p = Problem(a, (a.le(bx - n + 1),), region)
    good = [Piece(guards, (idof(i),), (idof(bx),), (bx, col))]
    assert solve.exactly_once(p, good).holds is True
    strict = [Piece((a.le(t - bx + 1), a.domain(idof(i), col + 9 - bx)), (idof(i),), (idof(bx),), (bx, col))]
    assert solve.covers(p, strict).holds is False
    assert solve.within(p, strict).holds is True


def test_small_ranges_are_split() -> None:
    """A stride that is a launch constant of few values makes a product with the loop counter linear in each case."""
    a = Arena(4)
    n, s, i = size(a, "n"), a.symbol("size", "s", 1, 3), loop(a, "i")
    at = i * s
    one = np.asarray([1, 0, 0, 0])
    pieces = [Piece((a.domain(idof(i), at + s - n + 1),), (idof(i),), (), (at,), one)]
    p = Problem(a, (), Box((n,)))
    assert solve.within(p, pieces).holds is True
    assert solve.injective(p, pieces).holds is True
    found = solve.covers(p, pieces)
    assert found.holds is False
    wide = a.symbol("size", "w", 1, 50)
    q = [Piece((a.domain(idof(i), i * wide + wide - n + 1),), (idof(i),), (), (i * wide,), one)]
    assert solve.covers(p, q).holds is None


def test_trip_counts_and_choices_are_expanded() -> None:
    a = Arena(4)
    n, i, j, t = size(a, "n"), loop(a, "i"), loop(a, "j"), vec(np.arange(4))
    trips = a.derived("trip", (t + i * 4 + 4 - n + 1,), tag=idof(i))
    last = Piece((a.le(t - n + 1),), (), (), (t + (trips - 1) * 4,))
    p = Problem(a, (), Box((n,)))
    assert solve.within(p, [last]).holds is True
    assert solve.injective(p, [last]).holds is True
    whole = Piece((a.le(t - n + 1), a.le(j - trips + 1)), (idof(j),), (), (t + j * 4,))
    assert solve.exactly_once(p, [whole]).holds is True
    short = a.derived("phi", (n, const(4)), pred=a.le(n - 4))
    clipped = Piece((a.le(t - short + 1),), (), (), (t,))
    assert solve.exactly_once(Problem(a, (a.le(n - 4),), Box((n,))), [clipped]).holds is True
    assert solve.covers(p, [clipped]).holds is False
    least = a.extremum("min", [n, const(4)])
    assert solve.exactly_once(Problem(a, (), Box((least,))), [clipped]).holds is True


def test_sign_fix_quotients() -> None:
    """⌊(K + 15 + ⌊⌊(K + 15)/2^31⌋/2^28⌋)/16⌋ tiles, as nvcc writes a signed division."""
    a = Arena(4)
    k, i = a.symbol("size", "K", 1, 2**31 - 17), loop(a, "i")
    sign = a.derived("div", (a.derived("div", (k + 15, const(2**31))), const(2**28)))
    tiles = a.derived("div", (k + 15 + sign, const(16)))
    one = np.asarray([1, 0, 0, 0])
    pieces = [
        Piece((a.le(i * 16 + u - k + 1), a.domain(idof(i), i + 2 - tiles)), (idof(i),), (), (i * 16 + u,), one)
        for u in range(16)
    ]
    assert solve.exactly_once(Problem(a, (), Box((k,))), pieces).holds is True
    assert solve.exactly_once(Problem(a, (), Box((k,))), pieces[:-1]).holds is False


def test_operations_limit_ends_hard_questions() -> None:
    a = Arena(64)
    n, t = size(a, "n"), np.arange(64)
    rng = np.random.default_rng(3)
    scattered = vec(rng.permutation(64))
    pieces = [Piece((a.le(scattered * (u + 2) - n + 1),), (), (), (scattered * (u + 2),)) for u in range(6)]
    start = time.perf_counter()
    found = solve.exactly_once(Problem(a, (), Box((n,)), operations=200_000), pieces)
    print(f"{time.perf_counter() - start:.2f} s: {found.evidence}")
    assert found.holds is None
    assert "budget" in str(found.evidence["why"])
    small = Problem(a, (), Box((n,)), operations=50)
    assert solve.covers(small, [Piece((a.le(vec(t) - n + 1),), (), (), (vec(t),))]).holds is None


def test_dimension_and_parameter_roles_do_not_mix() -> None:
    a = Arena(4)
    n, bx, t = size(a, "n"), block(a, "bx"), vec(np.arange(4))
    first = Piece((a.le(t - n + 1),), (), (idof(bx),), (bx * 4 + t,))
    second = Piece((a.le(t - n + 1),), (), (), (bx * 4 + t,))
    assert solve.disjoint(Problem(a), [first, second]).holds is None


def test_memoised_answers_do_not_leak_between_problems() -> None:
    for extent, expected in ((8, True), (7, False), (8, True)):
        a = Arena(8)
        t = vec(np.arange(8))
        assert solve.within(Problem(a, (), Box((const(extent),))), [Piece((), (), (), (t,))]).holds is expected
