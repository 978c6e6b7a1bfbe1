"""Fifteen known ways to a false PROVED, each as a wrong kernel that must not be PROVED.

Where one guard of the engine stands between the kernel and PROVED, the test also takes that guard away and shows that
the kernel then passes: so the kernel really tests the guard. Right twins show that nothing else is in the way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proof_cases import INSIDE, Small, claims_of, element, proved, put, vector, verdicts, word
from small_kernels import SMALL
from trace_runs import compare, symbolic

from warpproof import proving
from warpproof.core import Claim, InputError, Status, Verdict
from warpproof.domains import Choice
from warpproof.equivalence import OutputChecker, Proof, matching
from warpproof.equivalence import proof as proof_module
from warpproof.machine import SymbolicMachine
from warpproof.machine.footprint import Footprint
from warpproof.machine.loops import LoopSolver
from warpproof.machine.shifts import Shifter
from warpproof.machine.upcoming import moved
from warpproof.proving import Task, prove
from warpproof.ptx import load, resolve
from warpproof.reference import load_launch, trace
from warpproof.solve import covers
from warpproof.terms import Arena, Pred, TermMap

pytestmark = pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")

Patch = pytest.MonkeyPatch
IO = (vector("x"), vector("y", "ptr_out"))


def copies(x: Any, n: int) -> dict[str, Any]:
    return {"y": x + 0.0}


# ---------------------------------------------------------------------- 1: ∞ − ∞
EMPTY_MAX = Small(f"""{INSIDE} {element('%f2', 'x', '%g')} mov.f32 %f1, 0fFF800000; mov.u32 %r1, %t;
    setp.ge.s32 %p1, %r1, %i_m; @%p1 bra E; L: {element('%f3', 'x', '%r1')} max.f32 %f1, %f1, %f3; add.s32 %r1, %r1, 64;
    setp.lt.s32 %p2, %r1, %i_m; @%p2 bra L; E: sub.f32 %f4, %f1, %f1; add.f32 %f5, %f4, %f2; {put('%f5', 'y', '%g')}""",
                  IO, ("n", "m"), ("n >= 1", "n <= 1000000", "m >= 1", "m <= n"))


def same(x: Any, n: int, m: int) -> dict[str, Any]:
    return {"y": x + 0.0}


def test_1_infinity_minus_infinity(monkeypatch: Patch) -> None:
    """m − m is 0 in algebra; lanes without elements have m = −∞, and the kernel gives NaN."""
    assert not proved(EMPTY_MAX, same)
    monkeypatch.setattr(Arena, "_extent", lambda *a: 0)
    assert proved(EMPTY_MAX, same)


# ---------------------------------------------------------------------- 2: havoc leftovers
LEFTOVER = SMALL["defined first by a predicated instruction"]


def test_2_what_a_loop_carries(monkeypatch: Patch) -> None:
    """A register that the loop changes must not keep its entry value (here one defined by a predicated instruction)."""
    def wrong() -> list[str]:
        return compare(symbolic(LEFTOVER.ptx(), LEFTOVER.manifest()), {"n": 5}).wrong

    assert not wrong()
    unknown = LoopSolver._unknown
    monkeypatch.setattr(LoopSolver, "_unknown", lambda self, name, v0, guess: v0 if isinstance(v0, Choice)
                        else unknown(self, name, v0, guess))
    assert wrong()


FLOATING = Small(f"""mov.f32 %f1, 0f3F800000; mov.f32 %f3, 0f40000000; mov.u32 %r2, 0; L: mov.f32 %f4, %f1;
    mov.f32 %f1, %f3; mov.f32 %f3, %f4; add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %i_n; @%p2 bra L;
    setp.ge.s32 %p1, %g, %i_n;
    setp.ge.s32 %p1, %g, %i_n; @%p1 bra DONE; {put('%f1', 'y', '%g')}""", IO)


def test_2_exchanged_registers_do_not_close() -> None:
    """What alternates is neither of its values."""
    for value in (1.0, 2.0):
        def constant(x: Any, n: int, value: float = value) -> dict[str, Any]:
            return {"y": 0 * x + value}

        assert not proved(FLOATING, constant)


# ---------------------------------------------------------------------- 3: the continue predicate
STEPS = f"""{INSIDE} mov.f32 %f1, 0f00000000; mov.u32 %r1, 0; L: {element('%f2', 'x', '%r1')} add.f32 %f1, %f1, %f2;
    add.s32 %r1, %r1, 2; setp.ne.s32 %p1, %r1, %i_n; @%p1 bra L; {put('%f1', 'y', '%g')}"""


def every_second(x: Any, n: int) -> dict[str, Any]:
    return {"y": x[::2].sum() + 0 * x}


def test_3_a_counter_that_misses_its_bound(monkeypatch: Patch) -> None:
    """`i != n` with steps of 2 ends only for even n."""
    kernel = Small(STEPS, IO)
    assert verdicts(kernel, every_second)["barriers"] != "PROVED"
    require = SymbolicMachine.require
    monkeypatch.setattr(SymbolicMachine, "require", lambda self, kind, claim: None
                        if kind == "loop counter meets its bound" else require(self, kind, claim))
    assert verdicts(kernel, every_second)["barriers"] == "PROVED"


def test_3_even_counts_are_fine() -> None:
    kernel = Small(STEPS, IO, preconditions=("n >= 2", "n <= 1000000", "n % 2 == 0"))
    assert verdicts(kernel, every_second)["barriers"] == "PROVED"


# ---------------------------------------------------------------------- 4: masked products
MASKED = Small(f"""add.s32 %r1, %g, 1; {element('%f1', 'x', '%r1')} setp.lt.s32 %p1, %r1, %i_n;
    selp.f32 %f2, 0f3F800000, 0f00000000, %p1; mul.f32 %f3, %f1, %f2; setp.ge.s32 %p2, %g, %i_n; @%p2 bra DONE;
    {put('%f3', 'y', '%g')}""", IO)


def shifted(x: Any, n: int) -> dict[str, Any]:
    return {"y": np.concatenate([x[1:], np.zeros(1)])}


def test_4_a_mask_hides_an_access_out_of_bounds(monkeypatch: Patch) -> None:
    """0 · x[n] is 0 in algebra; x[n] does not exist, and may be NaN."""
    found = verdicts(MASKED, shifted)
    assert found["memory"] != "PROVED"
    assert found["equivalence"] != "PROVED"
    monkeypatch.setattr(proof_module, "memory_claims", lambda *a: [Claim("memory", "", Status.SHOWN)])
    assert proved(MASKED, shifted)


# ---------------------------------------------------------------------- 5: lock-step execution
REVERSED = f"""{word('%r1', '%t')} {element('%f1', 'x', '%g')} st.shared.f32 [%r1], %f1; BARRIER
    sub.s32 %r2, 63, %t; {word('%r3', '%r2')} ld.shared.f32 %f2, [%r3]; {put('%f2', 'y', '%g')}"""
BLOCKS = {"sizes": ("b",), "preconditions": ("b >= 1", "b <= 10000"), "grid": ("b",)}
ROWS = (("x", "ptr_in", "f32", ("b", "64")), ("y", "ptr_out", "f32", ("b", "64")))


def reverse(x: Any, b: int) -> dict[str, Any]:
    return {"y": x[:, ::-1]}


def test_5_a_missing_barrier(monkeypatch: Patch) -> None:
    kernel = Small(REVERSED.replace("BARRIER", ""), ROWS, **BLOCKS)
    assert proved(Small(REVERSED.replace("BARRIER", "bar.sync 0;"), ROWS, **BLOCKS), reverse)
    assert verdicts(kernel, reverse)["races"] != "PROVED"
    assert verdicts(kernel, reverse)["equivalence"] != "PROVED"
    monkeypatch.setattr(Footprint, "read", lambda *a: None)
    assert proved(kernel, reverse)


def test_5_two_lanes_write_one_cell(monkeypatch: Patch) -> None:
    """Of different values in one cell, which one stays is not determined."""
    pairs = f"and.b32 %r4, %t, 62; {word('%r1', '%r4')}"
    body = REVERSED.replace("BARRIER", "bar.sync 0;").replace(word("%r1", "%t"), pairs)
    body = body.replace("sub.s32 %r2, 63, %t;", "and.b32 %r2, %t, 62;")
    kernel = Small(body, ROWS, **BLOCKS)

    def second(x: Any, b: int) -> dict[str, Any]:
        return {"y": np.repeat(x.reshape(b, 32, 2)[:, :, 1], 2, axis=1)}

    assert verdicts(kernel, second)["races"] != "PROVED"


# ---------------------------------------------------------------------- 6: guards and gathers
GUARDED = Small(f"""{word('%r1', '%t')} mov.f32 %f1, 0f00000000; setp.lt.s32 %p1, %t, %i_m; mad.lo.s32 %r5, %c, 64, %t;
    {element('%f2', 'x', '%r5')} selp.f32 %f1, %f2, 0f00000000, %p1; st.shared.f32 [%r1], %f1; bar.sync 0;
    sub.s32 %r2, 63, %t; {word('%r3', '%r2')} ld.shared.f32 %f3, [%r3]; @%p1 bra A; mov.f32 %f3, 0f00000000;
    A: {put('%f3', 'y', '%g')}""", ROWS, ("b", "m"), ("b >= 1", "b <= 1000", "m >= 0", "m <= 64"), ("b",))


def test_6_a_condition_belongs_to_its_own_lane(monkeypatch: Patch) -> None:
    """What another lane stored under its own condition is not decided by the reader's condition."""
    def careless(x: Any, b: int, m: int) -> dict[str, Any]:
        return {"y": np.where(np.arange(64) < m, x[:, ::-1], 0.0)}

    def right(x: Any, b: int, m: int) -> dict[str, Any]:
        t = np.arange(64)
        return {"y": np.where((t < m) & (63 - t < m), x[:, ::-1], 0.0)}

    assert proved(GUARDED, right)
    assert not proved(GUARDED, careless)
    pred = TermMap._map_pred
    monkeypatch.setattr(TermMap, "_map_pred", lambda self, p: p if self._lanes is not None else pred(self, p))
    assert proved(GUARDED, careless)


# ---------------------------------------------------------------------- 7: lane-dependent atoms
QUOTIENT = Small(f"""add.s32 %r4, %t, 1; mul.lo.s32 %r1, %r4, %i_n; div.u32 %r2, %r1, 7;
    shfl.sync.idx.b32 %r3, %r2, 5, 31, -1;
    {element('%f1', 'x', '%r3')} {put('%f1', 'y', '%t')}""", (vector("x", size="8 * n"), vector("y", "ptr_out", "32")),
                 grid=("1",), block=32)


def test_7_quotients_move_with_their_lane(monkeypatch: Patch) -> None:
    """⌊(t + 1)·n/7⌋ of another lane is not one's own."""
    def own(x: Any, n: int) -> dict[str, Any]:
        return {"y": x[(np.arange(32) + 1) * n // 7]}

    def other(x: Any, n: int) -> dict[str, Any]:
        return {"y": x[(0 * np.arange(32) + 6) * n // 7]}

    assert proved(QUOTIENT, other)
    assert not proved(QUOTIENT, own)
    atom = TermMap._map_atom
    monkeypatch.setattr(TermMap, "_map_atom", lambda self, i: self.arena.variable(self.arena.atoms[i])
                        if self._lanes is not None else atom(self, i))
    assert proved(QUOTIENT, own)


# ---------------------------------------------------------------------- 8: lanes that do not take part
PARTIAL = Small(f"""{word('%r1', '%t')} {element('%f1', 'x', '%g')} st.shared.f32 [%r1], %f1; bar.sync 0;
    mov.f32 %f2, 0f40A00000; setp.ge.s32 %p1, %t, 32;
    @%p1 ld.shared.f32 %f2, [%r1]; {put('%f2', 'y', '%g')}""", ROWS, **BLOCKS)


def test_8_lanes_that_do_not_load_keep_their_value(monkeypatch: Patch) -> None:
    def filled(x: Any, b: int) -> dict[str, Any]:
        return {"y": x[:, np.maximum(np.arange(64), 32)]}

    assert not proved(PARTIAL, filled)
    monkeypatch.setattr(SymbolicMachine, "_kept", lambda self, p, name, value: value)
    assert proved(PARTIAL, filled)


# ---------------------------------------------------------------------- 9: log2 e
def power(constant: str) -> Small:
    return Small(f"""{INSIDE} {element('%f1', 'x', '%g')} mul.f32 %f2, %f1, {constant}; ex2.approx.f32 %f3, %f2;
        {put('%f3', 'y', '%g')}""", IO)


def exponential(x: Any, n: int) -> dict[str, Any]:
    return {"y": np.exp(x)}


def test_9_only_the_constant_itself_stands_for_log2_e() -> None:
    kernel = power("0f3FB8AA3B")
    launch = load_launch(kernel.manifest())
    proof = Proof(resolve(load(kernel.ptx()), "k"), launch, float("inf"))
    outcome = proof.attempt(trace(exponential, proof.symbolic, proof.arena))
    assert all(c.status is Status.SHOWN for c in outcome.claims)
    assert "log2e" in {a.name for a, _ in outcome.ledger.items()}
    assert not proved(power("0f3FB8AA3C"), exponential)
    assert not proved(power("0f3FB8AA3A"), exponential)


def test_9_outside_an_exponent_the_constant_is_a_number() -> None:
    kernel = Small(f"{INSIDE} {element('%f1', 'x', '%g')} mul.f32 %f2, %f1, 0f3FB8AA3B; {put('%f2', 'y', '%g')}", IO)

    def ideal(x: Any, n: int) -> dict[str, Any]:
        return {"y": np.log2(np.exp(x))}

    def scaled(x: Any, n: int) -> dict[str, Any]:
        return {"y": x * (12102203 / 8388608)}

    assert proved(kernel, scaled)
    assert not proved(kernel, ideal)


# ---------------------------------------------------------------------- 10: counting
def folded(op: str, start: str, step: int) -> Small:
    """Warp 0 combines x by a butterfly; lanes take every `step`-th element."""
    tree = " ".join(f"shfl.sync.bfly.b32 %f3, %f1, {k}, 31, -1; {op}.f32 %f1, %f1, %f3;" for k in (16, 8, 4, 2, 1))
    return Small(f"""mov.f32 %f1, {start}; mov.u32 %r1, %t; setp.ge.s32 %p1, %r1, %i_n; @%p1 bra E;
        L: {element('%f2', 'x', '%r1')} {op}.f32 %f1, %f1, %f2; add.s32 %r1, %r1, {step}; setp.lt.s32 %p2, %r1, %i_n;
        @%p2 bra L; E: {tree} setp.ne.s32 %p3, %t, 0; @%p3 bra DONE; mov.u32 %r4, 0; {put('%f1', 'y', '%r4')}""",
                 (vector("x"), vector("y", "ptr_out", "1")), grid=("1",), block=32)


def total(x: Any, n: int) -> dict[str, Any]:
    return {"y": x.sum(keepdims=True)}


def greatest(x: Any, n: int) -> dict[str, Any]:
    return {"y": x.max(keepdims=True)}


def test_10_a_sum_counts_every_element_once(monkeypatch: Patch) -> None:
    """A maximum may see an element twice, a sum may not."""
    assert proved(folded("add", "0f00000000", 32), total)
    assert proved(folded("max", "0fFF800000", 16), greatest)
    twice = folded("add", "0f00000000", 16)
    assert not proved(twice, total)
    monkeypatch.setattr(matching, "exactly_once", covers)
    assert proved(twice, total)


def test_10_a_sum_misses_nothing() -> None:
    assert not proved(folded("add", "0f00000000", 64), total)
    assert not proved(folded("max", "0fFF800000", 64), greatest)


# ---------------------------------------------------------------------- 11: vacuity
def test_11_a_kernel_without_stores(monkeypatch: Patch) -> None:
    kernel = Small("bra DONE;", IO)
    assert not proved(kernel, copies)
    monkeypatch.setattr(OutputChecker, "_coverage", lambda *a: Claim("equivalence", "", Status.SHOWN))
    monkeypatch.setattr(proof_module, "memory_claims", lambda *a: [Claim("memory", "", Status.SHOWN)])
    assert proved(kernel, copies)


def test_11_some_elements_are_not_stored() -> None:
    body = f"{INSIDE} {element('%f1', 'x', '%g')} SKIP {put('%f1', 'y', '%g')}"
    assert proved(Small(body.replace("SKIP", ""), IO), copies)
    assert not proved(Small(body.replace("SKIP", "setp.eq.s32 %p1, %g, 77; @%p1 bra DONE;"), IO), copies)
    assert not proved(Small(body.replace("SKIP", "setp.eq.s32 %p1, %t, 7; @%p1 ret;"), IO), copies)


def test_11_preconditions_that_nothing_satisfies() -> None:
    kernel = Small(f"{INSIDE} {put('0f00000000', 'y', '%g')}", IO, preconditions=("n >= 5", "n <= 4"))
    with pytest.raises(InputError):
        claims_of(kernel, copies)


def test_11_preconditions_that_contradict_each_other(monkeypatch: Patch) -> None:
    """The sizes' ranges do not show it, and from a contradiction everything follows."""
    kernel = Small(f"{element('%f1', 'x', '%g')} {put('%f1', 'y', '%g')}", IO,
                   preconditions=("n >= 1", "n <= 1000", "n % 2 == 0", "n % 2 == 1"))
    ready = resolve(load(kernel.ptx()), "k")
    task = Task(ready, load_launch(kernel.manifest()), copies, kernel.ptx(), "k.ptx", {}, 10.0)
    assert prove(task, lambda stage: None).verdict is Verdict.INCONCLUSIVE
    shown = Claim("conditions", "", Status.SHOWN)
    monkeypatch.setattr(proving, "_admits_something", lambda launch: shown)
    assert prove(task, lambda stage: None).verdict is Verdict.PROVED


# ---------------------------------------------------------------------- 12: time and wrap-around
IN_PLACE = Small(f"""mad.lo.s32 %r2, %c, 64, 63; sub.s32 %r1, %r2, %t; {element('%f1', 'y', '%r1')}
    {put('%f1', 'y', '%g')}""",
                 (("y", "ptr_inout", "f32", ("b", "64")),), **BLOCKS)


def test_12_a_load_sees_earlier_stores(monkeypatch: Patch) -> None:
    """Loads are taken as the contents at entry: another thread may have written by then."""
    def mirrored(y: Any, b: int) -> dict[str, Any]:
        return {"y": y[:, ::-1]}

    assert verdicts(IN_PLACE, mirrored)["races"] != "PROVED"
    monkeypatch.setattr(proof_module, "race_claims", lambda *a: [Claim("races", "", Status.SHOWN)])
    assert proved(IN_PLACE, mirrored)


def test_12_a_store_to_what_may_be_the_same_element() -> None:
    """y[g + k] may be y[g]: the load after it is not what was stored before it."""
    kernel = Small(f"""{INSIDE} {element('%f1', 'y', '%g')} add.f32 %f2, %f1, 0f3F800000; {put('%f2', 'y', '%g')}
        mad.lo.s32 %r1, %i_k, %i_n, %g; add.f32 %f3, %f1, 0f3F800000; mov.f32 %f4, 0f40000000; add.f32 %f3, %f3, %f4;
        {put('%f3', 'y', '%r1')} {element('%f5', 'y', '%g')} {put('%f5', 'z', '%g')}""",
                   (vector("y", "ptr_inout", "2 * n"), vector("z", "ptr_out")), ("n", "k"),
                   ("n >= 1", "n <= 100000", "k >= 0", "k <= 1"))

    def first(y: Any, n: int, k: int) -> dict[str, Any]:
        return {"z": y[:n] + 1.0, "y": np.concatenate([y[:n] + 1.0, y[:n] + 3.0])}

    assert not proved(kernel, first)


WRAPPING = Small(f"""setp.ge.s32 %p1, %g, %i_n; @%p1 bra DONE; mul.lo.s32 %r1, %g, %i_m; add.s32 %r1, %r1, 3;
    {element('%f1', 'x', '%r1')} {put('%f1', 'y', '%g')}""", (vector("x", size="n * m + 4"), vector("y", "ptr_out")),
                 ("n", "m"), ("n >= 1", "n <= 1000000", "m >= 1", "m <= 1000000"))


def rows(x: Any, n: int, m: int) -> dict[str, Any]:
    return {"y": x[np.arange(n) * m + 3]}


def test_12_index_arithmetic_wraps_around(monkeypatch: Patch) -> None:
    """g·m leaves 32 bits for large n and m."""
    assert not proved(WRAPPING, rows)
    require = SymbolicMachine.require
    monkeypatch.setattr(SymbolicMachine, "require", lambda self, kind, claim: None
                        if kind == "no-wrap" else require(self, kind, claim))
    assert proved(WRAPPING, rows)


# ---------------------------------------------------------------------- 13: base cases
PREFETCH = f"""mov.f32 %f1, 0f00000000; mov.u32 %r1, 0; START
    L: add.f32 %f1, %f1, %f5; add.s32 %r1, %r1, 1; {element('%f5', 'x', '%r1')} setp.lt.s32 %p2, %r1, %i_n; @%p2 bra L;
    setp.ne.s32 %p3, %t, 0; @%p3 bra DONE; mov.u32 %r4, 0; {put('%f1', 'y', '%r4')}"""
ONE = {"grid": ("1",), "block": 32}


def test_13_the_prologue_is_not_what_the_loop_does(monkeypatch: Patch) -> None:
    """A pipelined load needs a first value that is the load of iteration −1."""
    params = (vector("x", size="n + 1"), vector("y", "ptr_out", "1"))
    right = Small(PREFETCH.replace("START", element("%f5", "x", "%r1")), params, **ONE)
    wrong = Small(PREFETCH.replace("START", "mov.f32 %f5, 0f40A00000;"), params, **ONE)

    def first(x: Any, n: int) -> dict[str, Any]:
        return {"y": x[:n].sum(keepdims=True)}

    assert proved(right, first)
    assert not proved(wrong, first)
    monkeypatch.setattr(Shifter, "_start",
                        lambda self, entry, left: moved(self.machine.dom, self._back, left))
    assert proved(wrong, first)


# ---------------------------------------------------------------------- 14: state between runs
def test_14_runs_do_not_influence_each_other() -> None:
    """Lane counts, facts and answers of one proof are not those of the next."""
    half = {**BLOCKS, "block": 32}
    rows32 = (("x", "ptr_in", "f32", ("b", "32")), ("y", "ptr_out", "f32", ("b", "32")))
    body = REVERSED.replace("BARRIER", "bar.sync 0;")
    assert proved(Small(body, ROWS, **BLOCKS), reverse)
    assert not proved(Small(body, rows32, **half), reverse)
    assert proved(Small(body.replace("63", "31"), rows32, **half), reverse)
    copy = f"{element('%f1', 'x', '%g')} {put('%f1', 'y', '%g')}"
    assert proved(Small(copy, IO, preconditions=("n >= 64", "n % 64 == 0", "n <= 4096")), copies)
    assert not proved(Small(copy, IO, preconditions=("n >= 64", "n % 32 == 0", "n <= 4096")), copies)


# ---------------------------------------------------------------------- 15: sorts
def test_15_predicates_and_reals_are_different_sorts(monkeypatch: Patch) -> None:
    """Joined predicates go through Boolean operations, never through a choice of reals of the same number."""
    body = f"""{INSIDE} {element('%f1', 'x', '%g')} setp.gt.s32 %p1, %i_n, 50; @!%p1 bra A; setp.lt.s32 %p2, %g, 20;
        bra B; A: setp.gt.s32 %p2, %g, 7; B: selp.f32 %f2, %f1, 0f00000000, %p2; {put('%f2', 'y', '%g')}"""

    def wrong(x: Any, n: int) -> dict[str, Any]:
        return {"y": np.where(np.arange(n) > 7, x, 0.0)}

    kernel = Small(body, IO)
    assert not proved(kernel, wrong)
    merge = SymbolicMachine.merge
    monkeypatch.setattr(SymbolicMachine, "merge", lambda self, guard, x, y: x if isinstance(x, Pred)
                        else merge(self, guard, x, y))
    assert proved(kernel, wrong)
