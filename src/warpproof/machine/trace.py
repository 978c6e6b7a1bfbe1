"""What a symbolic run leaves behind: accesses, obligations, barriers, hazards. The later stages read nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from warpproof.domains import Value
from warpproof.terms import Arena, Pred, Real, TermMap


@dataclass(frozen=True, slots=True)
class Access:
    """One global load or store of one element, by every lane for which `path` holds, in every iteration of `loops`.

    `index` counts elements of the buffer; `value` is what a store writes, or what an atomic update contributes by `op`.
    A reload is right where no store came between in earlier iterations of its `open_loops`.
    """

    kind: str  # "load" | "store" | "atomic" | "reload" (a load answered by an earlier store of the same thread)
    buffer: str
    index: Any  # Poly
    path: Pred
    loops: tuple[int, ...]
    instruction: int
    order: int
    value: Value | None = None
    open_loops: tuple[int, ...] = ()
    op: str = ""  # add min max and or


@dataclass(frozen=True, slots=True)
class Obligation:
    """A condition the run relied on: `claim` (or `kind` of `node`) in every lane and iteration where `path` holds."""

    kind: str
    path: Pred
    loops: tuple[int, ...]
    instruction: int
    claim: Pred | None = None
    node: Real | None = None


@dataclass(frozen=True, slots=True)
class BarrierEvent:
    """A CTA barrier executed under `path`; with `warp` a collective operation of each warp."""

    path: Pred
    instruction: int
    warp: bool = False


@dataclass(frozen=True, slots=True)
class Hazard:
    """A possible fault at one place: `kind` race, uninitialised, unwritten, divergence, shared-bounds, misaligned."""

    kind: str
    detail: str
    instruction: int
    other: int | None = None
    path: Pred | None = None


@dataclass(frozen=True, slots=True)
class RunningMaximum:
    """A loop register that only grows: unknown `state` of loop `var`, entry value, update, and the path to the loop."""

    state: int
    var: int
    entry: Real
    new: Real
    path: Pred


@dataclass(slots=True)
class Trace:
    """The record of a run, rewindable to a mark."""

    accesses: list[Access] = field(default_factory=list)
    obligations: list[Obligation] = field(default_factory=list)
    barriers: list[BarrierEvent] = field(default_factory=list)
    hazards: list[Hazard] = field(default_factory=list)
    executed: set[int] = field(default_factory=set)
    maxima: dict[int, RunningMaximum] = field(default_factory=dict)
    steps: int = 0

    def mark(self) -> tuple[int, int, int, int]:
        """A point to rewind to."""
        return len(self.accesses), len(self.obligations), len(self.barriers), len(self.hazards)

    def rewind(self, mark: tuple[int, int, int, int]) -> None:
        """Forget everything recorded since `mark`."""
        del self.accesses[mark[0] :], self.obligations[mark[1] :], self.barriers[mark[2] :], self.hazards[mark[3] :]

    def replace_guard(self, arena: Arena, mark: tuple[int, int, int, int], old: Pred, new: Pred) -> None:
        """Put `new` for the path condition `old` in everything recorded since `mark`."""
        swap = TermMap(arena, lambda i: None, lambda x: None, lambda p: new if p is old else None)
        for i in range(mark[0], len(self.accesses)):
            self.accesses[i] = replace(self.accesses[i], path=swap.pred(self.accesses[i].path))
        for i in range(mark[1], len(self.obligations)):
            self.obligations[i] = replace(self.obligations[i], path=swap.pred(self.obligations[i].path))
        for i in range(mark[2], len(self.barriers)):
            self.barriers[i] = replace(self.barriers[i], path=swap.pred(self.barriers[i].path))
        for i in range(mark[3], len(self.hazards)):
            path = self.hazards[i].path
            if path is not None:
                self.hazards[i] = replace(self.hazards[i], path=swap.pred(path))
