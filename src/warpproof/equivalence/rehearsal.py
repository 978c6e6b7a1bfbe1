"""A run before the one that is judged, for kernels whose CTAs or warps tell each other something."""

from __future__ import annotations

from collections.abc import Callable

from warpproof.core import Claim, Unsupported
from warpproof.machine import SymbolicMachine, Trace, crosses
from warpproof.ptx import Kernel
from warpproof.safety import Dimensions, Split, meeting_claims, protocol_claims, rehearsed
from warpproof.solve import Facts, Finding


class Rehearsal:
    """What the first run of one kernel has left: the `survey` of what CTAs store, the findings on meetings of warps."""

    def __init__(self, kernel: Kernel) -> None:
        self.crossing = any(crosses(x) for x in kernel.code)
        self.arriving = any(x.name in ("bar", "barrier") and "arrive" in x.modifiers for x in kernel.code)
        self.survey: Trace | None = None
        self.findings: tuple[Finding, ...] = ()

    def prepare(self, facts: Facts, fresh: Callable[[], SymbolicMachine], machine: SymbolicMachine) -> None:
        """Run a `fresh` machine where that is of use, and tell `machine` what loads are to be answered with."""
        if self.arriving:
            self.findings = rehearsed(facts, fresh(), machine)
            if self.findings and self.crossing:
                raise Unsupported("barrier", "warps that meet in loops, in a kernel whose CTAs communicate")
        if self.crossing:
            before = fresh()
            try:
                self.survey = machine.crossing.survey = before.run()
            except Unsupported:
                machine.current = before.current
                raise

    def claims(
        self, facts: Facts, trace: Trace, machine: SymbolicMachine, dims: Dimensions, blocks: tuple[int, ...],
        split: Split,
    ) -> list[Claim]:
        """That loads were answered by what they read in every execution."""
        claims: list[Claim] = []
        if self.findings or trace.meetings:
            claims += meeting_claims(self.findings, trace, machine)
        if self.crossing or trace.handovers:
            claims += protocol_claims(machine.arena, facts, trace, machine, dims, blocks, split)
        return claims
