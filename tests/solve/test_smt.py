"""The SMT process: answers, kills, restarts; translation against evaluation; samples; entailment."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import idof, size, vec
from warpproof.algebra.evaluation import evaluate, satisfies
from warpproof.solve import Problem, SmtWorker, ask, entails, implies, refute_le, sample
from warpproof.terms import Arena, Poly, const

HARD = """
(declare-const x Int)(declare-const y Int)(declare-const z Int)
(assert (> x 1))(assert (> y 1))(assert (> z 1))
(assert (= (+ (* x x x x x) (* y y y y y)) (* z z z z z)))
"""


def test_answers_and_models() -> None:
    found = ask("(declare-const x Int)(assert (= (* x x) 49))(assert (< x 0))")
    assert (found.status, found.model) == ("sat", {"x": -7})
    assert ask("(declare-const x Int)(assert (= (* 2 x) 7))").status == "unsat"
    bits = ask("(declare-const b (_ BitVec 8))(assert (= (bvmul b #x03) #x01))")
    assert bits.model == {"b": 0xAB}


def test_bad_text_and_rlimit_are_unknown() -> None:
    assert ask("(assert (= nothing 1))").status == "unknown"
    assert ask(HARD, rlimit=1000).status == "unknown"
    assert ask("(declare-const x Int)(assert (= x 3))").model == {"x": 3}


def test_a_query_over_time_is_killed_and_the_next_one_works() -> None:
    worker = SmtWorker()
    try:
        start = time.monotonic()
        assert worker.ask(HARD, timeout_s=0.3).status == "unknown"
        assert time.monotonic() - start < 20
        assert worker.ask("(declare-const x Int)(assert (= x 3))").status == "sat"
    finally:
        worker.close()


def test_a_dead_process_is_unknown_then_replaced() -> None:
    worker = SmtWorker()
    try:
        assert worker.ask("(assert true)").status == "sat"
        process = worker._process
        assert process is not None
        os.kill(process.pid, 9)
        process.wait()
        assert worker.ask("(assert true)").status in ("sat", "unknown")
        assert worker.ask("(assert false)").status == "unsat"
    finally:
        worker.close()
    assert worker._process is None


def test_memory_is_limited() -> None:
    worker = SmtWorker(memory_mb=1)
    try:
        assert worker.ask("(assert true)", timeout_s=5).status == "unknown"
    finally:
        worker.close()


def test_refutations_are_concrete() -> None:
    a = Arena(256)
    by, m, k = a.symbol("block", "by", 0), size(a, "M"), size(a, "K")
    row, col = by * 64 + vec(np.arange(256) // 4), vec(np.arange(256) % 4 * 4)
    goal = row * k + col - m * k + 2
    hyps = [a.le(row - m + 1), a.le(col - k + 1)]
    found = refute_le(a, goal, hyps)
    assert found is not None
    assert evaluate(a, goal, found.values, found.lane) > 0
    assert all(satisfies(a, h, found.values, found.lane) for h in hyps)
    assert max(found.values.values()) <= 1024
    assert refute_le(a, goal - 1, hyps, timeout_s=1) is None


def test_wrapping_indices_have_witnesses() -> None:
    a = Arena(256)
    top = 2**31 - 1
    bx, rows, pitch = a.symbol("block", "bx", 0, top), size(a, "rows"), size(a, "pitch")
    goal = bx * pitch + vec(np.arange(256)) - top
    hyps = [a.le(bx - rows + 1), a.le(vec(np.arange(256)) - pitch + 1)]
    found = refute_le(a, goal, hyps)
    assert found is not None
    assert evaluate(a, goal, found.values, found.lane) > 0


def test_samples_satisfy_definitions() -> None:
    a = Arena(32)
    n, i = size(a, "n"), a.symbol("loop", "i", 0)
    t = vec(np.arange(32))
    trips = a.derived("trip", (t + i * 32 + 32 - n + 1,), tag=idof(i))
    least = a.extremum("min", [n, const(50)])
    quotient = a.floor_div(n, const(7))
    choice = a.derived("phi", (n, quotient), pred=a.le(n - 40))
    preds = [a.eq(trips - 3), a.le(60 - n), a.eq(least - 50), a.le(9 - choice), a.ne(quotient - 9)]
    found = sample(a, preds)
    assert found is not None
    assert all(satisfies(a, p, found.values, found.lane) for p in preds)
    assert sample(a, [*preds, a.le(n - 60)]) is None


def test_masks_select_lanes() -> None:
    a = Arena(8)
    n, t = size(a, "n"), vec(np.arange(8))
    found = sample(a, [a.lane_mask(np.arange(8) >= 5), a.le(n - t), a.le(7 - n)])
    assert found is not None
    assert found.lane == 7
    assert sample(a, [a.le(n - t), a.le(7 - n)], mask=np.arange(8) < 7) is None


@pytest.mark.parametrize("lanes", [1, 4])
def test_entailment_by_z3(lanes: int) -> None:
    a = Arena(lanes)
    x, y, t = size(a, "x"), size(a, "y"), vec(np.arange(lanes))
    assert entails(a, [a.le(x - y)], a.le(x * x - y * y)).status == "unsat"
    assert entails(a, [a.le(x - y)], a.le(y - x)).status == "sat"
    assert entails(a, [a.le(x - t)], a.le(x - (lanes - 1))).status == "unsat"
    state = a.state_pred(a.fresh("state", "s").id)
    assert entails(a, [a.le(x - y)], state).status == "unknown"


def test_implication_ladder() -> None:
    a = Arena(32)
    n, m, t = size(a, "n"), size(a, "m"), vec(np.arange(32))
    p = Problem(a)
    assert implies(p, [a.le(t - n + 1), a.ne(n - 1 - t)], a.le(t - n + 2)).holds is True
    assert implies(p, [a.le(n - m), a.eq(a.mod(m, const(4)))], a.le(a.floor_div(n + 3, const(4)) * 4 - m)).holds is True
    found = implies(p, [a.le(n - m)], a.le(a.floor_div(n + 3, const(4)) * 4 - m))
    assert found.holds is False
    assert found.witness["m"] % 4
    assert implies(p, [], a.disj((a.le(n - 5), a.le(6 - n)))).holds is True
    square = a.le(n * m * 2 - n * n - m * m)
    assert implies(p, [], square).holds is None
    assert implies(p, [], square, smt_s=5).holds is True
    low, wide = a.lane_mask(np.arange(32) < 4), a.lane_mask(np.arange(32) < 8)
    assert implies(p, [low], wide).holds is True
    assert implies(p, [wide], low).holds is False
    assert implies(p, [wide], wide, mask=np.arange(32) < 9).holds is True
    assert implies(p, [a.false], a.le(n)).holds is True
    assert implies(p, [], a.conj((a.le(-n), low))).holds is False
    state = a.state_pred(a.fresh("state", "s").id)
    assert implies(p, [state], state, smt_s=1).holds is None


def test_products_of_parameters_are_relaxed_not_refuted() -> None:
    a = Arena(4)
    x, y = size(a, "x"), size(a, "y")
    p = Problem(a)
    assert implies(p, [a.eq(x * y - 6), a.eq(y - 1)], a.le(x - 6)).holds is not False
    assert implies(p, [a.eq(x * x - 4)], a.eq(x - 2)).holds is not False


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_entailment_agrees_with_enumeration(data: st.DataObject) -> None:
    a = Arena(3)
    x, y = a.symbol("size", "x", 0, 4), a.symbol("size", "y", 0, 4)
    small = st.integers(-3, 3)

    def term() -> Poly:
        p = x * data.draw(small) + y * data.draw(small) + data.draw(small)
        p = p + vec([data.draw(small) for _ in range(3)])
        return p + a.floor_div(p, const(data.draw(st.integers(2, 4)))) * data.draw(small)

    hyps = [a.le(term()), data.draw(st.sampled_from([a.ne, a.eq, a.le]))(term())]
    goal = data.draw(st.sampled_from([a.le, a.ne, lambda p: a.disj((a.le(p), a.le(2 - p)))]))(term())
    cases = [(u, v, lane) for u in range(5) for v in range(5) for lane in range(3)]
    truth = all(
        satisfies(a, goal, {idof(x): u, idof(y): v}, lane) for u, v, lane in cases
        if all(satisfies(a, h, {idof(x): u, idof(y): v}, lane) for h in hyps)
    )
    assert implies(Problem(a), hyps, goal).holds in (truth, None)


def test_a_choice_by_a_condition_that_differs_by_lane_is_asked_lane_by_lane() -> None:
    """Nothing else in the question differs by lane. What is not asserted may make an answer `sat`, never `unsat`."""
    a = Arena(32)
    x, y, z = size(a, "x"), size(a, "y"), size(a, "z")
    odd = vec([(k * k) % 7 for k in range(32)])
    chosen = a.derived("phi", (x, const(0)), a.eq(odd + y - 40)) * z
    assert refute_le(a, chosen - 1, [a.le(x - 5)]) is not None
    assert entails(a, [a.le(x - 5)], a.le(chosen - 1)).status != "unsat"
    assert entails(a, [a.eq(chosen - 3)], a.le(2 - chosen)).status == "unsat"
