"""What a symbolic run leaves behind: accesses, obligations, barriers, hazards. The later stages read nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from warpproof.domains import ScalarType, Value
from warpproof.terms import Arena, Pred, Real, TermMap

Mark = tuple[int, int, int, int, int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Access:
    """One global load or store of one element, by every lane for which `path` holds, in every iteration of `loops`.

    `index` counts elements of the buffer; `value` is what a store writes, or what an atomic update contributes by `op`.
    A reload is right where no store came between in earlier iterations of its `open_loops`.
    A `handover` is a load answered by another thread's store, `sync` any strong access to global memory.
    """

    kind: str  # load | store | atomic | reload (answered by an earlier store of the same thread) | handover | sync
    buffer: str
    index: Any  # Poly
    path: Pred
    loops: tuple[int, ...]
    instruction: int
    order: int
    value: Value | None = None
    open_loops: tuple[int, ...] = ()
    op: str = ""  # add min max and or
    lock: str = ""  # the buffer of the lock under which an update is made by plain accesses


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
    """A CTA barrier executed under `path`; with `warp` a collective operation of each warp, with `members` (a lane mask
    as bytes) a named barrier of these lanes."""

    path: Pred
    instruction: int
    warp: bool = False
    members: bytes | None = None
    loops: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Hazard:
    """A possible fault at one place: `kind` race, uninitialised, unwritten, divergence, shared-bounds, misaligned."""

    kind: str
    detail: str
    instruction: int
    other: int | None = None
    path: Pred | None = None


@dataclass(frozen=True, slots=True)
class SyncEvent:
    """What orders accesses, in program order: behind the first `at` accesses of the trace, by the lanes of `path`.

    kind: fence, barrier (of the CTA), write (a strong store), ticket (an atomic counter, read as `value`), poll (a loop
    that ends when the strong load in it has read `value`), lock (a loop that waits for a compare-and-swap), unlock,
    turn (a loop that waits for the number `awaited`), pass (the store of one more).
    """

    kind: str
    instruction: int
    path: Pred
    loops: tuple[int, ...]
    at: int
    semantics: str = ""
    scope: str = ""
    buffer: str = ""
    index: Any = None  # Poly
    value: Any = None  # Poly; for a ticket and a poll the unknown that was read
    how: str = ""  # of an unlock: exch or st; of a ticket: atom or red
    inside: int = 0  # accesses of the critical section under way so far
    awaited: Any = None  # Poly; the ticket or block index of the CTA that surely ends a poll
    until: Pred | None = None  # the condition on `value` that ends a poll
    drawn: Any = None  # Poly; this CTA's own ticket, when `awaited` is one
    whole: bool = False  # of an unlock: barriers let the whole CTA into the critical section


@dataclass(frozen=True, slots=True)
class Handover:
    """A load answered by what another thread stored: `load` and `store` are accesses, `given` the event after the store
    that tells of it, `taken` the event before the load that hears it. `store` and `given` are of the run before, or all
    of one CTA: then both events are one barrier."""

    load: Access
    store: Access
    given: SyncEvent
    taken: SyncEvent


@dataclass(frozen=True, slots=True)
class Meeting:
    """A step of one side of a branch whose warps meet at named barriers, in program order, by the lanes of `path`.

    kind: arrive, sync (arrive and wait), put (a store to shared memory), get (a load from it). `place` is the number of
    the barrier or of the cell; `size` the threads that the barrier waits for, or the bytes of the cell.
    """

    kind: str
    side: int
    place: Any  # Poly
    size: int
    path: Pred
    loops: tuple[int, ...]
    instruction: int
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class SharedUpdate:
    """An atomic addition to shared memory at a byte offset, by the lanes of `path` in every iteration of `loops`.

    `cells` are all that it may reach, `lanes` those that may be active (both as bytes of int64).
    """

    offset: Any  # Poly
    cells: bytes
    value: Value
    type: ScalarType
    path: Pred
    loops: tuple[int, ...]
    lanes: bytes
    instruction: int


@dataclass(frozen=True, slots=True)
class Source:
    """Where `condition` holds a get reads what the put with number `put` left in its iteration `at` (polynomials by
    the put's loops), in lane t what its lane lanes[t] left."""

    condition: Pred
    put: int
    at: dict[int, Any]
    lanes: Any  # IntVector


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
    sync: list[SyncEvent] = field(default_factory=list)
    handovers: list[Handover] = field(default_factory=list)
    meetings: list[Meeting] = field(default_factory=list)
    updates: list[SharedUpdate] = field(default_factory=list)
    settled: int = 0  # of the updates, those that are in the cells
    executed: set[int] = field(default_factory=set)
    maxima: dict[int, RunningMaximum] = field(default_factory=dict)
    steps: int = 0

    def mark(self) -> Mark:
        """A point to rewind to."""
        return (len(self.accesses), len(self.obligations), len(self.barriers), len(self.hazards), len(self.sync),
                len(self.handovers), len(self.meetings), len(self.updates), self.settled)

    def rewind(self, mark: Mark) -> None:
        """Forget everything recorded since `mark`."""
        del self.accesses[mark[0] :], self.obligations[mark[1] :], self.barriers[mark[2] :], self.hazards[mark[3] :]
        del self.sync[mark[4] :], self.handovers[mark[5] :], self.meetings[mark[6] :]
        del self.updates[mark[7] :]
        self.settled = mark[8]

    def replace_guard(self, arena: Arena, mark: Mark, old: Pred, new: Pred) -> None:
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
        for i in range(mark[4], len(self.sync)):
            self.sync[i] = replace(self.sync[i], path=swap.pred(self.sync[i].path))
        for i in range(mark[5], len(self.handovers)):
            h = self.handovers[i]
            self.handovers[i] = replace(h, load=replace(h.load, path=swap.pred(h.load.path)))
        for i in range(mark[6], len(self.meetings)):
            self.meetings[i] = replace(self.meetings[i], path=swap.pred(self.meetings[i].path))
        for i in range(mark[7], len(self.updates)):
            self.updates[i] = replace(self.updates[i], path=swap.pred(self.updates[i].path))
