"""Synchronisation bugs of public projects as small kernels: each is refuted, and its repair proved."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from proof_cases import INSIDE, Small, element, proved, put, vector, word
from test_protocols import BAR, COUNT, FENCE, GOOD, PART, RESET, SUM, changed, last, pairs, reversed_squares, total

from warpproof.counterexample import Search
from warpproof.ptx import load, resolve
from warpproof.reference import load_launch
from warpproof.safety import weak_uses

IO = (vector("x"), vector("y", "ptr_out"))
ROWS = (("x", "ptr_in", "f32", ("n", "64")), ("y", "ptr_out", "f32", ("n", "64")))
CELL = word("%r20", "%t")
MIRROR = "xor.b32 %r9, %t, 31;" + word("%r21", "%r9")
WARP_BAR = "bar.warp.sync -1;"


@dataclass(frozen=True)
class Bug:
    """The wrong kernel, the repaired one, what they compute, the property at fault, and what the finding says."""

    bad: Small
    fixed: Small
    reference: Callable[..., Any]
    fault: str = "races"
    weak: str = ""  # part of what is said about the weak load


def rows(*parts: str, block: int = 64) -> Small:
    shape = ["n", str(block)]
    return Small("\n".join(parts), (("x", "ptr_in", "f32", shape), ("y", "ptr_out", "f32", shape)), ("n",),
                 ("n >= 1", "n <= 100000"), ("n",), block)


def mirrored(x: Any, n: Any) -> dict[str, Any]:
    return {"y": np.reshape(np.reshape(x, (n, 2, 32))[:, :, ::-1], (n, 64))}


def warp_sums(x: Any, n: Any) -> dict[str, Any]:
    return {"y": np.zeros((n, 32)) + x.sum(axis=1, keepdims=True)}


FILL = element("%f1", "x", "%g") + CELL + "st.shared.f32 [%r20], %f1;"
TAKE = MIRROR + "ld.shared.f32 %f2, [%r21];" + put("%f2", "y", "%g")


def tree(between: str, after: str) -> str:
    """A reduction of one warp through shared memory: every thread adds the value `k` further on, in a ring."""
    steps = []
    for k in (16, 8, 4, 2, 1):
        steps.append(f"""add.s32 %r9, %t, {k}; and.b32 %r9, %r9, 31; {word('%r21', '%r9')} ld.shared.f32 %f2, [%r21];
            {between} add.f32 %f1, %f1, %f2; st.shared.f32 [%r20], %f1; {after}""")
    return "\n".join(steps) + put("%f1", "y", "%g")


def copied(wait: str, meet: str, groups: str = "") -> Small:
    """cp.async of a row into shared memory, read by the mirrored thread."""
    issue = element("%f1", "x", "%g").split("ld.global")[0] + f"""{CELL}
        cp.async.ca.shared.global [%r20], [%d51], 4; cp.async.commit_group; {groups} {wait} {meet}"""
    return rows(issue, TAKE)


def staged(last_barrier: str) -> Small:
    """A loop over tiles that reuses one shared buffer."""
    body = f"""mov.f32 %f3, 0f00000000; mov.u32 %r1, 0; setp.lt.s32 %p1, %i_m, 1; @%p1 bra E; {CELL} {MIRROR}
        L: mad.lo.s32 %r2, %c, %i_m, %r1; shl.b32 %r2, %r2, 6; add.s32 %r2, %r2, %t; {element('%f1', 'x', '%r2')}
        st.shared.f32 [%r20], %f1; bar.sync 0; ld.shared.f32 %f2, [%r21]; add.f32 %f3, %f3, %f2; {last_barrier}
        add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %i_m; @%p2 bra L;
        E: {put('%f3', 'y', '%g')}"""
    params = (("x", "ptr_in", "f32", ("n", "m", "64")), ("y", "ptr_out", "f32", ("n", "64")))
    return Small(body, params, ("n", "m"), ("n >= 1", "n <= 1000", "m >= 1", "m <= 1000"), ("n",))


def tile_sums(x: Any, n: Any, m: Any) -> dict[str, Any]:
    return {"y": np.reshape(np.reshape(x.sum(axis=1), (n, 2, 32))[:, :, ::-1], (n, 64))}


def scratch(load: str, meet: str = BAR) -> Small:
    """Threads of a CTA pass values on through global memory."""
    shape = ("n", "64")
    params = (("x", "ptr_in", "f32", shape), ("buf", "ptr_inout", "f32", shape), ("y", "ptr_out", "f32", shape))
    body = f"""{element('%f1', 'x', '%g')} {put('%f1', 'buf', '%g')} {meet} xor.b32 %r9, %g, 31;
        {element('%f2', 'buf', '%r9', load)} {put('%f2', 'y', '%g')}"""
    return Small(body, params, ("n",), ("n >= 1", "n <= 100000"), ("n",), extra={"buf": {"scratch": True}})


def partial_barrier(barrier: str) -> Small:
    return Small(f"{barrier} {INSIDE} {element('%f1', 'x', '%g')} {put('%f1', 'y', '%g')}", IO)


def kept(x: Any, n: Any) -> dict[str, Any]:
    return {"y": x + 0.0}


def spinning(load: str) -> Small:
    return pairs(*changed("ld.acquire.gpu.global", load))


BUGS = {
    "cub#345 look-back waits on ld.cg": Bug(
        spinning("ld.global.cg"), pairs(*GOOD), reversed_squares, weak=".cg is a cache operator"),
    "cub#345 the same with ld.cv": Bug(
        spinning("ld.global.cv"), pairs(*GOOD), reversed_squares, weak="waits on a weak"),
    "cub#591 value read after a flag without acquire": Bug(
        spinning("ld.relaxed.gpu.global"), pairs(*GOOD), reversed_squares),
    "deepep#136 non-coherent load of data in flight": Bug(
        scratch("ld.global.nc.f32"), scratch("ld.global.f32"), lambda x, buf, n: mirrored(x, n), weak="non-coherent"),
    "pytorch#128455 last block without a second fence": Bug(
        last(PART, FENCE, COUNT, SUM, RESET), last(PART, FENCE, COUNT, FENCE, SUM, RESET), total),
    "fuser#2391 flag raised without a fence": Bug(
        pairs(*changed("st.release.gpu.global", "st.relaxed.gpu.global")),
        pairs(*changed("st.release.gpu.global", "fence.acq_rel.gpu; st.relaxed.gpu.global")), reversed_squares),
    "kokkos#2681 partial sums without a fence between blocks": Bug(
        last(PART, COUNT, FENCE, SUM, RESET), last(PART, FENCE, COUNT, FENCE, SUM, RESET), total),
    "cuml#4157 only the leader fences": Bug(
        pairs(*GOOD[:3], *GOOD[4:]), pairs(*GOOD), reversed_squares),
    "rocm/triton#745 flag raised before all warps have stored": Bug(
        pairs(*changed("bar.sync 0;\n@%p1 bra DONE;", "@%p1 bra DONE;")), pairs(*GOOD), reversed_squares),
    "cutlass#3324 release at CTA scope": Bug(
        pairs(*changed("st.release.gpu.global", "st.release.cta.global")), pairs(*GOOD), reversed_squares),
    "cutlass#3643 acquire at CTA scope": Bug(spinning("ld.acquire.cta.global"), pairs(*GOOD), reversed_squares),
    "kokkos#1520 warp-synchronous reduction": Bug(
        rows(FILL, WARP_BAR, tree("", ""), block=32), rows(FILL, WARP_BAR, tree(WARP_BAR, WARP_BAR), block=32),
        warp_sums, weak="lock-step"),
    "kaldi#3211 exchange in a warp without a barrier": Bug(
        rows(FILL, TAKE), rows(FILL, WARP_BAR, TAKE), mirrored, weak="bar.warp.sync"),
    "cucollections#337 a vote is no memory barrier": Bug(
        rows(FILL, "setp.ge.s32 %p5, %t, 0; vote.sync.any.pred %p6, %p5, -1;", TAKE), rows(FILL, WARP_BAR, TAKE),
        mirrored, weak="bar.warp.sync"),
    "kokkos#1958 a mask that does not name the thread": Bug(
        rows(FILL, "bar.warp.sync 65535;", TAKE), rows(FILL, WARP_BAR, TAKE), mirrored, "barriers"),
    "ninfer#49 cp.async waited for by one thread, read by another": Bug(
        copied("cp.async.wait_group 0;", ""), copied("cp.async.wait_group 0;", BAR), mirrored),
    "fuser#3438 barrier without a wait": Bug(
        copied("", BAR), copied("cp.async.wait_all;", BAR), mirrored, "equivalence"),
    "deepep#657 wait count one too large": Bug(
        copied("cp.async.wait_group 1;", BAR), copied("cp.async.wait_group 0;", BAR), mirrored, "equivalence"),
    "deepep#657 with a later, empty group": Bug(
        copied("cp.async.wait_group 2;", BAR, "cp.async.commit_group;"),
        copied("cp.async.wait_group 1;", BAR, "cp.async.commit_group;"), mirrored, "equivalence"),
    "llama.cpp#13469 barrier under a condition": Bug(
        partial_barrier(f"setp.lt.s32 %p5, %g, %i_n; @!%p5 bra S; {BAR} S: {BAR}"), partial_barrier(BAR), kept,
        "barriers"),
    "tilelang#2613 missing barrier at the loop's end": Bug(staged(""), staged(BAR), tile_sums),
    "vllm#11205 shared memory used again without a barrier": Bug(
        rows(FILL, BAR, TAKE.replace("ld.shared", "st.shared.f32 [%r20], %f1; ld.shared")),
        rows(FILL, BAR, TAKE.replace("ld.shared", f"st.shared.f32 [%r20], %f1; {BAR} ld.shared")), mirrored),
    "apex#1798 tile read before the others have filled it": Bug(rows(FILL, TAKE.replace("31", "63")), rows(
        FILL, BAR, TAKE.replace("31", "63")), lambda x, n: {"y": x[:, ::-1]}),
}


def refutation(kernel: Small, reference: Callable[..., Any], runs: int = 60) -> tuple[dict[str, str], str]:
    """What a concrete run contradicts, and what is said about weak loads."""
    code = resolve(load(kernel.ptx()), "k")
    found = Search((code,), load_launch(kernel.manifest()), reference, time.monotonic() + 20.0, (), limit=runs).run()
    if found is None:
        return {}, ""
    return dict(found.properties), " ".join(f"{u.why}; {u.repair}" for u in weak_uses(code, found.findings))


@pytest.mark.parametrize("name", BUGS)
def test_the_bug_is_refuted(name: str) -> None:
    bug = BUGS[name]
    properties, weak = refutation(bug.bad, bug.reference)
    assert bug.fault in properties
    assert bug.weak in weak
    assert not proved(bug.bad, bug.reference)


@pytest.mark.parametrize("name", BUGS)
def test_the_repair_is_proved(name: str) -> None:
    bug = BUGS[name]
    assert refutation(bug.fixed, bug.reference, 3) == ({}, "")
    assert proved(bug.fixed, bug.reference)
