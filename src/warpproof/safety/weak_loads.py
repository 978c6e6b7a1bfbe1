"""Loads that a kernel synchronises through although they are weak: what may go wrong with each, and its repair.

A weak load may be merged with others, moved and taken out of a loop (PTX memory model, 8.4: only strong operations are
guaranteed to be performed as written); assemblers do all of this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from warpproof.core import Unsupported
from warpproof.machine import Event, Finding, Graph, Loop, control_flow, crosses, reads, writes
from warpproof.ptx import Instruction, Kernel

_ORDERING: Final = frozenset({
    "st", "atom", "red", "fence", "membar", "bar", "barrier", "nanosleep", "mbarrier", "call",
})
_CONSTANT: Final = frozenset({"param", "const", "local"})


@dataclass(frozen=True, slots=True)
class WeakUse:
    """A load (by instruction), why its being weak matters, and what to write instead."""

    instruction: int
    why: str
    repair: str


def weak_polls(kernel: Kernel) -> list[WeakUse]:
    """The weak loads that a loop waits on: at one address, with nothing but the loaded value to end the loop."""
    try:
        graph = control_flow(kernel)
    except Unsupported:
        return []
    found: dict[int, WeakUse] = {}
    for loop in graph.loops.values():
        for use in _polls(kernel, graph, loop):
            found.setdefault(use.instruction, use)
    return list(found.values())


def _polls(kernel: Kernel, graph: Graph, loop: Loop) -> Iterator[WeakUse]:
    at = [i for b in sorted(loop.body) for i in range(graph.blocks[b].start, graph.blocks[b].stop)]
    body = [kernel.code[i] for i in at]
    changed = frozenset().union(*map(writes, body))
    for i in at:
        ins = kernel.code[i]
        if not _weak_load(ins) or reads(ins) & changed:
            continue
        if any(_decided_by(kernel, graph, loop, at, i, exit_) for exit_, _ in loop.exits):
            repair = f"make it ld.acquire.{_scope(ins)} (or ld.relaxed and a fence behind the loop)"
            yield WeakUse(i, _why(ins, body), repair)


def _weak_load(ins: Instruction) -> bool:
    words = {m.split("::")[0] for m in ins.modifiers}
    return ins.name == "ld" and not crosses(ins) and not words & _CONSTANT


def _decided_by(kernel: Kernel, graph: Graph, loop: Loop, at: Sequence[int], load: int, exit_: int) -> bool:
    """The exit test depends on the loaded value, and on no other value that changes from turn to turn."""
    test = kernel.code[graph.blocks[exit_].stop - 1]
    if test.guard is None:
        return False
    depends, carried = {test.guard.register}, False
    loaded = writes(kernel.code[load])
    heard = bool(depends & loaded)
    for i in reversed([k for k in at if k < graph.blocks[exit_].stop]):
        ins = kernel.code[i]
        if not writes(ins) & depends:
            continue
        if i == load:
            heard = True
        elif ins.name in ("ld", "atom"):
            return False
        else:
            carried = carried or bool(reads(ins) & writes(ins))
            depends |= reads(ins)
    return heard and not carried


def _why(ins: Instruction, body: Sequence[Instruction]) -> str:
    cached = sorted({"cg", "cv", "cs", "ca", "nc"} & set(ins.modifiers))
    note = f" (.{cached[0]} is a cache operator and does not make it strong)" if cached else ""
    if any(x.name in _ORDERING for x in body):
        return f"the loop waits on a weak load, which races with the store it waits for{note}"
    return f"the loop waits on a weak load, which may be taken out of the loop{note}"


def _scope(ins: Instruction) -> str:
    return "cta" if any(m.split("::")[0] == "shared" for m in ins.modifiers) else "gpu"


def weak_uses(kernel: Kernel, findings: Sequence[Finding], warp: int = 32) -> list[WeakUse]:
    """The weak loads behind the races and non-coherent reads of a run."""
    polls = {use.instruction: use for use in weak_polls(kernel)}
    found: dict[int, WeakUse] = {}
    wide = any(f.kind == "race" and f.space == "shared" and f.other is not None and not _one_warp(f.at, f.other, warp)
               for f in findings)  # then a barrier of the CTA is what lacks
    for f in findings:
        for event in (f.at, f.other):
            if f.kind == "race" and event is not None and event.instruction in polls:
                found.setdefault(event.instruction, polls[event.instruction])
        use = _non_coherent(f) or (None if wide else _warp_synchronous(kernel, f, warp))
        if use is not None:
            found.setdefault(use.instruction, use)
    return list(found.values())


def _non_coherent(f: Finding) -> WeakUse | None:
    if f.kind != "non-coherent-read" or f.instruction is None:
        return None
    return WeakUse(f.instruction, "a non-coherent load reads what the kernel has written, and may see an old value",
                   "make it ld.global (no const __restrict__ or __ldg), ordered behind the store")


def _warp_synchronous(kernel: Kernel, f: Finding, warp: int) -> WeakUse | None:
    """A race on shared memory between threads of one warp."""
    if f.kind != "race" or f.space != "shared" or f.other is None or f.at.cta != f.other.cta:
        return None
    if f.at.instruction is None or f.other.instruction is None or not _one_warp(f.at, f.other, warp):
        return None
    load = next((e.instruction for e in (f.at, f.other) if e.instruction is not None
                 and kernel.code[e.instruction].name == "ld"), None)
    if load is None:
        return None
    why = ("threads of a warp exchange values without a barrier: they need not run in lock-step, and a weak load may "
           "be moved above stores")
    return WeakUse(load, why, "put bar.warp.sync (__syncwarp) between them")


def _one_warp(a: Event, b: Event, warp: int) -> bool:
    """Both threads are surely of one warp: they differ in x only, inside one warp of x."""
    return a.thread[1:] == b.thread[1:] == (0, 0) and a.thread[0] // warp == b.thread[0] // warp
