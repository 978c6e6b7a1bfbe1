"""What an INCONCLUSIVE says: the loop, the register or the index that resisted, and where."""

from __future__ import annotations

import re
import time

from test_check_sizes import LAUNCH, SOURCE, judged, text

from warpproof.core import Reason, Status
from warpproof.equivalence import Proof
from warpproof.equivalence.differences import difference
from warpproof.frontends import compile_cuda
from warpproof.ptx import parse, resolve
from warpproof.reference import load_launch, trace
from warpproof.terms import Access, Arena, Poly, Real


def load(arena: Arena, i: Poly) -> Real:
    """x[i]."""
    return arena.load(Access("x", 0), i)


def test_a_recurrence_is_named_by_register_loop_and_source_line() -> None:
    compiled = compile_cuda(SOURCE, kernel="k")
    proof = Proof(resolve(parse(compiled.text, compiled.file), "k"), load_launch(LAUNCH), time.monotonic() + 60)
    outputs = trace(lambda a, x: {"y": a[0] * x}, proof.symbolic, proof.arena)
    (open_claim,) = [c for c in proof.attempt(outputs).claims if c.status is not Status.SHOWN]
    assert re.search(r"the recurrence of %f\d+, which did not close, in the loop at PTX line \d+ .*\.cu:6\)",
                     open_claim.hint)
    assert re.search(r"PTX line \d+ `st\.global\.f32` \(.*\.cu:7\)", open_claim.place)


def test_work_that_takes_too_long_is_named() -> None:
    compiled = compile_cuda(SOURCE, kernel="k")
    proof = Proof(resolve(parse(compiled.text, compiled.file), "k"), load_launch(LAUNCH), time.monotonic() - 1)
    outputs = trace(lambda a, x: {"y": a[0] * x}, proof.symbolic, proof.arena)
    (claim,) = proof.attempt(outputs).claims
    assert claim.reason is Reason.TIMEOUT
    assert claim.text == "executing the kernel to its end"


def test_what_could_settle_it_is_said() -> None:
    shown = text(judged(SOURCE, []))
    assert "INCONCLUSIVE" in shown
    assert "try --check-sizes" in shown


def test_terms_are_told_apart_by_what_only_one_of_them_reads() -> None:
    arena = Arena(1)
    n, i = arena.symbol("size", "n", 1, 100), arena.variable(arena.fresh("index", "i", 0, 99))
    mine = arena.add(load(arena, i), load(arena, i + n))
    theirs = arena.add(load(arena, i), load(arena, i + 1))
    assert difference(arena, mine, theirs) == (
        "the normal forms differ: only the kernel reads x[n + i], only the reference reads x[i + 1]")
    assert "has ex2 where" in difference(arena, arena.unary("ex2", mine), mine)
    with_int = arena.mul(arena.of_int(n), mine)
    assert "only the kernel has the integer n" in difference(arena, with_int, mine)
    chosen = arena.sel(arena.le(i - 5), mine, arena.zero)
    assert "a choice by i <= 5" in difference(arena, chosen, mine)
