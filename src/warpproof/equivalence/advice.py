"""Barriers and fences that a proved kernel does not need: its accesses stay ordered without each of them.

Values do not depend on a barrier; what a proof without it has to show again is that no race appears and that threads
still meet at the others. Each is left out alone: two that are unnecessary need not be so together.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from warpproof.core import Advice, Status, Unsupported
from warpproof.equivalence.proof import Proof
from warpproof.ptx import Instruction, Kernel
from warpproof.reference import Launch

STEPS: Final = 60_000  # symbolic steps to spend; more barriers than that allows are not looked at


def redundant(
    kernel: Kernel, launch: Launch, executed: frozenset[int], steps: float, seconds: float,
    needed: Callable[[int], bool],
) -> list[Advice]:
    """The barriers and fences without which the ordering of all accesses is still proved, in code order.

    `needed` says, by runs, which instructions there is no use in leaving out. What a source line became in several
    copies (unrolled, inlined) is left out as one: a line that only some copies can do without is needed.
    """
    sites = [s for s in _sites(kernel, executed) if not any(map(needed, s))]
    if steps * len(sites) > STEPS:
        return []
    deadline = time.monotonic() + seconds
    return [_advice(kernel.code[s[0]], len(s)) for s in sites if _ordered_without(kernel, launch, s, deadline)]


def _sites(kernel: Kernel, executed: frozenset[int]) -> list[list[int]]:
    """The executed instructions that can be left out, those of one source line together; without lines, each alone."""
    made: dict[tuple[object, ...], list[int]] = {}
    for i in sorted(executed):
        if i < len(kernel.code) and _removable(kernel.code[i]):
            ins = kernel.code[i]
            key = (ins.source[0], ins.source[1]) if ins.source else (i,)
            made.setdefault(key, []).append(i)
    return list(made.values())


def _removable(ins: Instruction) -> bool:
    """Orders accesses and has no result: not a reduction over the CTA, an arrival, or a proxy fence."""
    if ins.name in ("bar", "barrier"):
        return "sync" in ins.modifiers and "cluster" not in ins.modifiers
    return ins.name in ("membar", "fence") and not any(m.startswith("proxy") for m in ins.modifiers)


def _ordered_without(kernel: Kernel, launch: Launch, site: list[int], deadline: float) -> bool:
    try:
        claims = Proof(kernel, launch, deadline, frozenset(site)).ordering()
    except (Unsupported, RecursionError):
        return False
    return time.monotonic() < deadline and all(c.status is Status.SHOWN for c in claims)


def _advice(ins: Instruction, copies: int) -> Advice:
    what = "fence" if ins.name in ("membar", "fence") else "barrier"
    line = ins.source[1] if ins.source else None
    file = ins.source[0] if ins.source else None
    many = f" (in PTX {copies} times, all left out)" if copies > 1 else ""
    text = f"this {what} is unnecessary: without it{many} all accesses are still ordered, and the proof still holds"
    return Advice(f"redundant-{what}", text, ins.opcode, ins.span.line, file, line)
