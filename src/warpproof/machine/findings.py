"""What a concrete run found, and how the run ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from warpproof.core import Span
from warpproof.machine.storage import Region

KINDS: Final = {
    "out-of-bounds": "an access outside every allocation, or outside the variable space it names",
    "misaligned": "an address that is no multiple of the access size",
    "uninitialised-read": "a read of bytes that nobody wrote",
    "race": "conflicting accesses of two threads that nothing orders",
    "non-coherent-read": "an ld.global.nc of data that the kernel has written",
    "race-same-value": "such a pair of writes, of the same value",
    "write-to-input": "a store into a read-only buffer",
    "barrier-divergence": "an aligned barrier that the live threads of a warp did not execute together",
    "barrier-mismatch": "arrivals at one barrier that disagree: count, kind, instruction, or a second in one phase",
    "exited-at-barrier": "a barrier that completed because threads had exited that never arrived at it",
    "undefined-collective": "a warp operation outside its member mask, or a value from a lane that does not take part",
    "undefined-branch": "an indirect branch or call to a target outside its table",
    "deadlock": "threads that wait for ever",
    "trap": "a trap instruction",
    "step-limit": "the run was stopped by its step limit",
}
"""The kinds of findings, with what each says."""


@dataclass(frozen=True, slots=True)
class Event:
    """One dynamic access or event: CTA coordinates, thread coordinates, and the instruction."""

    cta: tuple[int, int, int]
    thread: tuple[int, int, int]
    instruction: int | None
    span: Span | None
    source: tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of one dynamic instruction instance. `lanes` counts the threads that showed it at this instruction first.

    `space` and `address` are the accessed bytes' start, `size` their number; `buffer` and `offset` the (nearest) global
    buffer or variable and the byte offset from its start; `other` the earlier access of a race.
    """

    kind: str
    message: str
    at: Event
    lanes: int = 1
    space: str = ""
    address: int | None = None
    size: int = 0
    buffer: str | None = None
    offset: int | None = None
    other: Event | None = None

    @property
    def cta(self) -> tuple[int, int, int]:
        """The CTA of the thread at fault."""
        return self.at.cta

    @property
    def thread(self) -> tuple[int, int, int]:
        """The thread at fault."""
        return self.at.thread

    @property
    def instruction(self) -> int | None:
        """The index of the instruction at fault in the flattened program."""
        return self.at.instruction

    @property
    def span(self) -> Span | None:
        """The place in the PTX text."""
        return self.at.span

    @property
    def source(self) -> tuple[str, int] | None:
        """File and line of the source, by `.loc`."""
        return self.at.source


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run: `completed` is True only when every chosen CTA ran to its end."""

    findings: tuple[Finding, ...]
    buffers: Mapping[str, Region]
    steps: int
    completed: bool
    executed: frozenset[int]
    notes: tuple[str, ...] = field(default=())

    def kinds(self) -> frozenset[str]:
        """The kinds of findings."""
        return frozenset(f.kind for f in self.findings)
