"""What a choice of one path per thread fixes: events, program order, moral strength, patterns, barrier meetings.

Relations are rows of bit masks: bit `b` of `rows[a]` says that `a` is related to `b`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from warpproof.core import InputError
from warpproof.sync.events import Event, Kind, Layout
from warpproof.sync.model import Model, Scope
from warpproof.sync.phases import Meeting, barrier_groups, meetings
from warpproof.sync.program import GENERIC, Address, Thread

Rows = list[int]


def bits(mask: int) -> Iterator[int]:
    """The numbers of the set bits, ascending."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def add_edge(rows: Rows, a: int, b: int) -> None:
    """Keeps transitively closed rows closed while relating `a` to `b`."""
    if rows[a] >> b & 1:
        return
    more = rows[b] | 1 << b
    bit = 1 << a
    for u, row in enumerate(rows):
        if row & bit or u == a:
            rows[u] = row | more


@dataclass(slots=True)
class Frame:
    """The fixed part of a candidate execution. Event numbers below `first` are the initial writes."""

    events: list[Event]
    thread: list[int]
    first: int
    locations: list[Address]
    location: list[int]
    po: Rows
    moral: Rows
    same_address: Rows
    same_location: Rows
    partner: dict[int, int]
    reads: list[int]
    writes: int
    deps: Rows
    releases: list[tuple[int, int]]
    acquires: dict[int, int]
    sc_pairs: list[tuple[int, int]]
    write_pairs: list[tuple[int, int]]
    meetings: list[Meeting]
    same_cta: Rows
    plain: bool
    init_order: Rows = field(default_factory=list)
    own_writes: list[int] = field(default_factory=list)

    def writes_at(self, location: int) -> int:
        """The writes to the location, initial one included."""
        return sum(1 << w for w in bits(self.writes) if self.location[w] == location)


def inclusive(threads: Sequence[Thread], scope: Scope | None, of: int, other: int) -> bool:
    """Whether the scope of an operation by thread `of` includes thread `other`."""
    return scope is not None and threads[of].group(scope) == threads[other].group(scope)


def morally_strong(a: Event, b: Event, s: int, t: int, threads: Sequence[Thread]) -> bool:
    """PTX 8.7: po-related, or both strong with inclusive scopes; same proxy; complete overlap if both access memory."""
    related = s == t or (a.strong and b.strong and inclusive(threads, a.scope, s, t)
                         and inclusive(threads, b.scope, t, s))
    return related and a.proxy == b.proxy and (not (a.is_memory and b.is_memory) or a.address == b.address)


def levels(thread: Thread) -> dict[str, tuple[object, ...]]:
    """The barrier groups of a thread by level."""
    cta = thread.group(Scope.CTA)
    return {"cta": cta, "cluster": thread.group(Scope.CLUSTER), "warp": (*cta, thread.warp)}


def build_frame(shapes: Sequence[tuple[Event, ...]], threads: Sequence[Thread], layout: Layout, model: Model) -> Frame:
    """The frame of one path shape per thread."""
    places = sorted({layout.location(e.address) for shape in shapes for e in shape if e.address is not None})
    number = {p: i for i, p in enumerate(places)}
    events = [Event(Kind.WRITE, -1, address=p) for p in places]
    thread = [-1] * len(places)
    first = len(places)
    for t, shape in enumerate(shapes):
        events += shape
        thread += [t] * len(shape)
    n = len(events)
    location = [number[layout.location(e.address)] if e.address is not None else -1 for e in events]
    for i in range(first):
        location[i] = i
    po, deps, moral, same_address, same_location, same_cta = ([0] * n for _ in range(6))
    start = first
    for shape in shapes:
        for i in range(len(shape)):
            po[start + i] = sum(1 << start + j for j in range(i + 1, len(shape)))
            for source in shape[i].after:
                add_edge(deps, start + source, start + i)
        start += len(shape)
    groups = [levels(t) for t in threads]
    memory_or_fence = [e.is_memory or e.kind is Kind.FENCE for e in events]
    for a in range(n):
        for b in range(n):
            if events[a].is_memory and events[b].is_memory and location[a] == location[b]:
                same_location[a] |= 1 << b
                same_address[a] |= (events[a].address == events[b].address) << b
            if a >= first and b >= first:
                s, t = thread[a], thread[b]
                same_cta[a] |= (groups[s]["cta"] == groups[t]["cta"]) << b
                if a != b and memory_or_fence[a] and memory_or_fence[b]:
                    moral[a] |= morally_strong(events[a], events[b], s, t, threads) << b
    frame = Frame(events, thread, first, places, location, po, moral, same_address, same_location, {}, [], 0, deps, [],
                  {}, [], [], [], same_cta, plain=False)
    _classify(frame, threads, model)
    numbered = [(i, thread[i], events[i]) for i in range(first, n)]
    frame.meetings = meetings(barrier_groups(numbered, groups))
    return frame


def _classify(frame: Frame, threads: Sequence[Thread], model: Model) -> None:
    events, first, n = frame.events, frame.first, len(frame.events)
    for i, e in enumerate(events):
        if e.kind is Kind.WRITE:
            frame.writes |= 1 << i
        elif e.kind is Kind.READ:
            frame.reads.append(i)
            if e.rmw:
                frame.partner[i] = i + 1
    frame.init_order = [frame.writes & frame.same_location[i] & ~((1 << first) - 1) if i < first else 0
                        for i in range(n)]
    frame.own_writes = [w for w in bits(frame.writes) if w >= first]
    frame.releases = [(x, w) for x in range(first, n) if (w := _release_writes(frame, x))]
    frame.acquires = {r: y for r in frame.reads if (y := _acquire_ends(frame, r, model))}
    sc = [i for i in range(first, n) if events[i].kind is Kind.FENCE and events[i].sem == "sc"]
    frame.sc_pairs = [(a, b) for a in sc for b in sc if a < b and frame.moral[a] >> b & 1]
    frame.write_pairs = [(a, b) for a in bits(frame.writes) for b in bits(frame.writes & frame.same_location[a])
                         if first <= a < b and frame.moral[a] >> b & 1]
    generic = all(e.proxy == GENERIC for e in events)
    frame.plain = not model.proxies or (generic and frame.same_address == frame.same_location)


def _release_writes(frame: Frame, x: int) -> int:
    """The writes `w` for which `x … w` is a release pattern (PTX 8.8), as a mask."""
    event = frame.events[x]
    if not event.releases:
        return 0
    if event.kind is Kind.FENCE:
        later = frame.po[x]
        found = 0
    else:
        later = frame.po[x] & frame.same_address[x]
        found = 1 << x
    return found | sum(1 << w for w in bits(later & frame.writes) if frame.events[w].strong)


def _acquire_ends(frame: Frame, r: int, model: Model) -> int:
    """The events `y` for which `r … y` is an acquire pattern; none for the read of a `red` (PTX 8.11.1)."""
    event = frame.events[r]
    if not event.strong or (event.red and not model.red_acquires):
        return 0
    found = 1 << r if event.acquires else 0
    for y in bits(frame.po[r]):
        later = frame.events[y]
        if later.acquires and (later.kind is Kind.FENCE or frame.same_address[r] >> y & 1):
            found |= 1 << y
    return found


def check_model(threads: Sequence[Thread], shapes: Sequence[Sequence[tuple[Event, ...]]], model: Model) -> None:
    """Returns only if the model's version has everything the test uses; InputError SYN207 or SYN208 otherwise."""
    for thread, paths in zip(threads, shapes, strict=True):
        for event in {e for path in paths for e in path}:
            instruction = thread.instructions[event.instruction]
            missing = _missing(event, model)
            if missing:
                raise InputError("SYN207", f"{instruction.text!r} needs {missing}, which model {model.name} has not",
                                 instruction.span, hint="choose a later model")
            if event.level == "warp" and thread.warp is None:
                raise InputError("SYN208", f"{instruction.text!r} needs the warp of {thread.name}", instruction.span,
                                 hint=f"write `{thread.name}@warp 0,cta {thread.cta},gpu {thread.gpu}`")


def _missing(event: Event, model: Model) -> str:
    if (event.scope is Scope.CLUSTER or event.level == "cluster") and not model.clusters:
        return "clusters (7.8)"
    if event.kind is Kind.FENCE and event.sem in ("acquire", "release") and not model.one_sided_fences:
        return "one-sided fences (8.6)"
    if event.proxy == "async" and not model.async_proxy:
        return "the async proxy (8.0)"
    if event.proxy != GENERIC and not model.proxies:
        return "proxies (7.5)"
    return ""
