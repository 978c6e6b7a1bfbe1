"""Communication between CTAs is ordered in every execution, its counters count, and no wait lasts for ever.

For each load that was answered with another CTA's store the core of the protocol is cut out of the kernel: the store,
the fences, barriers and strong accesses between it and the load in the threads concerned. The memory model then decides
whether some execution reads an old value or has a race.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Final

from warpproof.core import Claim, Status, Unsupported
from warpproof.machine import Access, Handover, SymbolicMachine, SyncEvent, Trace
from warpproof.safety.cores import Core, Cores, operation, verdict
from warpproof.safety.turns import Split, Turnstiles
from warpproof.solve import Facts, Piece, Problem, disjoint, injective
from warpproof.terms import Arena, Pred

_FAR: Final = ("gpu", "sys")
Dimensions = Callable[[Sequence[Access]], tuple[int, ...]]


def protocol_claims(
    arena: Arena, facts: Facts, trace: Trace, machine: SymbolicMachine, dims: Dimensions,
    blocks: tuple[int, ...], split: Split,
) -> list[Claim]:
    """Claims on every hand-over, every location that CTAs talk through, and every wait."""
    turnstiles = Turnstiles(arena, facts, trace, machine, blocks, split)
    judge = _Protocols(arena, facts, trace, machine, dims, turnstiles)
    claims = [*judge.same_program(), *judge.locations(), *judge.written_once(), *judge.waits()]
    claims += [judge.handover(h) for h in trace.handovers]
    return [*claims, *turnstiles.claims()]


class _Protocols(Cores):
    """The questions about one trace; `survey` is the run before, whose stores answered the loads."""

    def __init__(
        self, arena: Arena, facts: Facts, trace: Trace, machine: SymbolicMachine, dims: Dimensions,
        turnstiles: Turnstiles,
    ) -> None:
        super().__init__(arena, facts, trace, machine)
        self.dims, self.turnstiles = dims, turnstiles
        self.survey: Trace = machine.crossing.survey or trace

    # ------------------------------------------------------------------ both runs are one program
    def same_program(self) -> list[Claim]:
        """The stores and events that answers rest on are those of the run that is judged."""
        if not self.trace.handovers:
            return []
        stores = {(a.buffer, a.index.key, a.path.id, a.instruction, a.value) for a in self.trace.accesses}
        events = set(map(_identity, self.trace.sync))
        same = all(
            (h.store.buffer, h.store.index.key, h.store.path.id, h.store.instruction, h.store.value) in stores
            and _identity(h.given) in events
            for h in self.trace.handovers
        )
        text = "what CTAs hand over does not depend on what they were handed"
        if same:
            return [Claim("races", text, Status.SHOWN, "two runs")]
        return [Claim("races", text, Status.OPEN, hint="the second run stores other values")]

    # ------------------------------------------------------------------ locations
    def locations(self) -> Iterator[Claim]:
        """Buffers that CTAs talk through see strong operations of sufficient scope only, and counters count."""
        for name in dict.fromkeys(e.buffer for e in self.trace.sync if e.buffer):
            events = [e for e in self.trace.sync if e.buffer == name]
            yield self._strong(name, events)
            if any(e.kind == "ticket" for e in events):
                yield self._counter(name, events)
            if any(e.kind in ("lock", "unlock") for e in events):
                yield self._lock(name, events)

    def _strong(self, name: str, events: Sequence[SyncEvent]) -> Claim:
        text = f"{name} is accessed by strong operations that all CTAs observe"
        near = [e for e in events if e.scope not in _FAR and e.semantics not in ("volatile", "mmio")]
        weak = [a for a in self.trace.accesses if a.buffer == name and a.kind != "sync" and not self._reset(a, events)]
        if near:
            return self.open(text, near[0].instruction, f"scope .{near[0].scope} does not reach other CTAs")
        if weak:
            hint = f"a weak {weak[0].kind} of {name}, which CTAs synchronise through"
            return self.open(text, weak[0].instruction, hint)
        return Claim("races", text, Status.SHOWN, "scopes", self.machine.where(events[0].instruction))

    def _reset(self, a: Access, events: Sequence[SyncEvent]) -> bool:
        """A plain store to the counter by the thread that drew the last ticket, after it has."""
        ticket = events[0]
        if len(events) > 1 or ticket.kind != "ticket":
            return False
        if a.kind != "store" or a.order < ticket.at or a.index != ticket.index:
            return False
        last = self.arena.eq(ticket.value - self.machine.setup.ctas + 1)
        if self.lanes(a.path) != self.lanes(ticket.path) or not self.facts.implied(a.path, last):
            return False
        take, branch = _drawn(ticket)
        others = (0, (operation(ticket, "r9"),))
        core = Core((others, (1, (*take, *branch, "st.weak f, 0", "LC0:"))), "P1:r0 == 7")
        return verdict(core.text()) == ""

    def _counter(self, name: str, events: Sequence[SyncEvent]) -> Claim:
        text = f"every CTA draws one ticket from {name}"
        events = [e for e in events if e.kind != "poll"]
        if len(events) != 1:
            return self.open(text, events[1].instruction, "the counter is accessed in other ways too")
        if not self.facts.implied(self.arena.true, self.arena.le(self.machine.setup.ctas - (1 << 31)), hard=True):
            return self.open(text, events[0].instruction, "more CTAs than the counter can count")
        place = self.machine.where(events[0].instruction)
        return Claim("races", text, Status.SHOWN, "executed once by each CTA", place)

    def _lock(self, name: str, events: Sequence[SyncEvent]) -> Claim:
        text = f"{name} is a lock: critical sections exclude each other, and see what was done in earlier ones"
        pairs = list(zip(events[::2], events[1::2], strict=False))
        place = self.machine.where(events[0].instruction)
        if any(e.whole for e in events):
            why = self.turnstiles.section(name, events)
            return Claim("races", text, Status.OPEN if why else Status.SHOWN, "" if why else "memory-model", place,
                         hint=why)
        if len(events) % 2 or any((a.kind, b.kind) != ("lock", "unlock") for a, b in pairs):
            return self.open(text, events[0].instruction, "it is taken, given back or accessed in other ways too")
        data = {a.buffer for a in self.trace.accesses if a.lock == name}
        mixed = [a for a in self.trace.accesses if a.buffer in data and a.kind == "atomic" and a.lock != name]
        if mixed:
            return self.open(text, mixed[0].instruction, f"{mixed[0].buffer} is also updated without this lock")
        if len({e.index.key for e in events}) > 1 or events[0].index.as_int() is None:
            return self.open(text, events[0].instruction, "several locks in one buffer")
        bodies = {self._section(a, b, t) for a, b in pairs for t in "01"}
        for first, second in product((b for b in bodies if "LW0:" in b), (b for b in bodies if "LW1:" in b)):
            why = verdict(Core(((0, first), (1, second)), "P0:r1 == 0 /\\ P1:r1 == 0").text())
            if why:
                return Claim("races", text, Status.OPEN, place=place, hint=why)
        return Claim("races", text, Status.SHOWN, "memory-model", place)

    def _section(self, lock: SyncEvent, unlock: SyncEvent, number: str) -> tuple[str, ...]:
        """A critical section that adds to one element, between the fences that the kernel has around the accesses.

        An exchange that finds the lock taken leaves it so: to all others it is the failing compare-and-swap.
        """
        start, end = (next(k for k, e in enumerate(self.trace.sync) if e is x) for x in (lock, unlock))
        fences = [(e.inside, f"fence.{e.semantics}.{e.scope}") for e in self.trace.sync[start + 1 : end]
                  if e.kind == "fence" and e.path is lock.path]
        first = [text for inside, text in fences if inside == 0]
        last = [text for inside, text in fences if inside == unlock.inside]
        free = f"atom.{unlock.semantics}.{unlock.scope}.exch r3, f, 0" if unlock.how == "exch" else (
            f"st.{unlock.semantics}.{unlock.scope} f, 0")
        return (f"LW{number}:", f"atom.{lock.semantics}.{lock.scope}.cas r0, f, 0, 1", f"bne r0, 0, LW{number}",
                *first, "ld.weak r1, d", "add r2, r1, 1", "st.weak d, r2", *last, free)

    def written_once(self) -> Iterator[Claim]:
        """Elements that are handed over are written once: what is read is the only value."""
        for name in dict.fromkeys(h.store.buffer for h in self.trace.handovers):
            stores = [a for a in self.trace.accesses if a.kind == "store" and a.buffer == name]
            dims = self.dims(stores)
            pieces = [Piece(self.arena.conjuncts(a.path), a.loops, dims, (a.index,)) for a in stores]
            text = f"each element of {name} is written once"
            problem = Problem(self.arena, self.facts.launch)
            apart = len(pieces) == 1 or disjoint(problem, pieces).holds
            if apart and injective(problem, pieces, ("lane", "blocks", "loops")).holds:
                yield Claim("races", text, Status.SHOWN, "integer-sets", self.machine.where(stores[0].instruction))
            else:
                yield self.open(text, stores[0].instruction, "an element may be written again after the hand-over")

    # ------------------------------------------------------------------ waits
    def waits(self) -> Iterator[Claim]:
        """Every wait ends: it is for a CTA that has started before and itself waits for earlier ones only."""
        for e in self.trace.sync:
            if e.kind == "poll":
                yield self._wait(e)
            whole = any(u.whole and u.buffer == e.buffer for u in self.trace.sync)
            if e.kind == "lock" and whole and sum(w.kind in ("poll", "lock", "turn") for w in self.trace.sync) > 1:
                yield Claim("barriers", f"the wait for {e.buffer} ends", Status.OPEN,
                            place=self.machine.where(e.instruction), hint="CTAs also wait for other things")
            elif e.kind == "lock":
                yield Claim("barriers", f"the wait for {e.buffer} ends: nobody waits who holds it", Status.SHOWN,
                            "critical sections", self.machine.where(e.instruction))

    def _wait(self, e: SyncEvent) -> Claim:
        text = f"the wait for {e.buffer} ends"
        where = self.machine.where(e.instruction)
        if self.machine.crossing.all_drawn(e):
            return self._gathering(e, text, where)
        if e.awaited is None:
            return Claim("barriers", text, Status.OPEN, place=where, hint="no store was found that surely ends it")
        writes = [w for w in self.trace.sync if w.kind == "write" and w.buffer == e.buffer]
        if len(writes) != 1:
            return Claim("barriers", text, Status.OPEN, place=where, hint=f"{e.buffer} is written in several places")
        if e.drawn is None:
            return self._resident(writes[0], text, where)
        if not self.facts.implied(e.path, self.arena.le(e.awaited - e.drawn + 1), hard=True):
            return Claim("barriers", text, Status.OPEN, place=where, hint="it may be for a CTA with a later ticket")
        return Claim("barriers", text, Status.SHOWN, "earlier ticket", where)

    def _resident(self, write: SyncEvent, text: str, where: str) -> Claim:
        """A wait for a CTA that is resident together with this one, and that waits for nothing before it ends it."""
        at = next(k for k, w in enumerate(self.trace.sync) if w is write)
        waits = [w for w in self.trace.sync[:at] if w.kind in ("poll", "lock", "turn")]
        if not all(self._never_both(w, write) for w in waits):
            return Claim("barriers", text, Status.OPEN, place=where, hint="the CTA it waits for may itself wait before")
        if not self.machine.setup.cooperative:
            return Claim("barriers", text, Status.OPEN, place=where, hint="the CTA it waits for may never be started "
                         "beside this one: draw CTA numbers from an atomic counter, or say that the launch is "
                         "cooperative")
        self.machine.assume("cooperative", "all CTAs of the grid are resident at once", "a cooperative launch")
        return Claim("barriers", text, Status.SHOWN, "cooperative launch", where)

    def _never_both(self, wait: SyncEvent, write: SyncEvent) -> bool:
        """No CTA executes both."""
        one = self.lanes(wait.path) == self.lanes(write.path) and len(self.lanes(wait.path)) == 1
        said = self.plain if one else self.shared
        return self.facts.infeasible(self.arena.conj((said(wait.path), said(write.path))))

    def _gathering(self, e: SyncEvent, text: str, where: str) -> Claim:
        """A wait until all CTAs have drawn: each does so before it waits for anything else than such a meeting, and
        all are resident."""
        tickets = [t for t in self.trace.sync if t.kind == "ticket" and t.buffer == e.buffer and t.index == e.index]
        at = next(k for k, w in enumerate(self.trace.sync) if w is e)
        before = [w for w in self.trace.sync[:at] if w.kind in ("poll", "lock", "turn")]
        also = all(w.kind == "poll" and self.machine.crossing.all_drawn(w) for w in before)
        ((atom,),) = e.value.terms
        ends = e.until is not None and self.facts.implied(
            self.arena.true, self.arena.substitute_pred(e.until, {atom: self.machine.setup.ctas}), hard=True)
        counted = any(t in self.trace.sync[:at] for t in tickets) and all(t.how != "inc" for t in tickets)
        if not counted or not ends or not also:
            return Claim("barriers", text, Status.OPEN, place=where, hint="not every CTA surely ends it")
        if not self.machine.setup.cooperative:
            return Claim("barriers", text, Status.OPEN, place=where, hint="it is for all CTAs, which need not be "
                         "resident at once: say that the launch is cooperative")
        self.machine.assume("cooperative", "all CTAs of the grid are resident at once", "a cooperative launch")
        return Claim("barriers", text, Status.SHOWN, "cooperative launch", where)

    # ------------------------------------------------------------------ hand-overs
    def handover(self, h: Handover) -> Claim:
        """The claim that every execution orders the store before the load."""
        by = h.given.buffer or "a barrier"
        text = f"every execution orders the store to {h.store.buffer} before the load, by {by}"
        place = f"{self.machine.where(h.load.instruction)}; stored at {self.machine.where(h.store.instruction)}"
        if h.given is h.taken:
            tests = [self._meeting(h).text()]
        else:
            tests = [core.text() for core in self._cores(h)]
        for test in tests:
            why = verdict(test)
            if why:
                return Claim("races", text, Status.OPEN, place=place, hint=why, data={"litmus": test})
        return Claim("races", text, Status.SHOWN, "memory-model", place, data={"litmus": tests})

    def _meeting(self, h: Handover) -> Core:
        """Two threads of one CTA with a barrier between store and load."""
        whole = not h.given.loops and len(self.lanes(h.given.path)) == self.arena.lanes
        barrier = ("bar.sync 0",) if whole else ()
        threads = ((0, ("st.weak d, 1", *barrier)), (0, (*barrier, "ld.weak r1, d")))
        return Core(threads, "P1:r1 == 0")

    def _cores(self, h: Handover) -> Iterator[Core]:
        for giver in self._givers(h):
            for taker, last in self._takers(h, len(giver)):
                yield Core((*giver, *taker), last)

    def _givers(self, h: Handover) -> Iterator[tuple[tuple[int, tuple[str, ...]], ...]]:
        """The storing CTA: by the thread that also tells of it, or by another thread."""
        (leader,) = self.lanes(h.given.path)[:1]
        stores = self.lanes(h.store.path)
        told = operation(h.given, "r9")
        stored, given = h.store.path, h.given.path
        if leader in stores:
            both = self.arena.conj((self.plain(stored), self.plain(given)))
            yield ((0, ("st.weak d, 1", *self._given(h, leader, both), told)),)
        here = self.arena.conj((self.plain(stored), self.shared(given)))
        tells = self._given(h, leader, self.arena.conj((self.shared(stored), self.plain(given))))
        for steps in {self._given(h, t, here) for t in stores if t != leader}:
            yield ((0, ("st.weak d, 1", *steps)), (0, (*tells, told)))

    def _takers(self, h: Handover, start: int) -> Iterator[tuple[tuple[tuple[int, tuple[str, ...]], ...], str]]:
        (leader,) = self.lanes(h.taken.path)[:1]
        reads = self.lanes(h.load.path)
        take, branch = _drawn(h.taken) if h.taken.kind == "ticket" else self._awaited(h)
        heard = (*take, *branch)
        end = ("LC0:",) if h.taken.kind == "ticket" else ()
        hearing = set(self.lanes(h.taken.path))
        if len(hearing) > 1 and h.given.kind == "ticket":
            raise Unsupported("barrier", "several threads wait until all CTAs have counted")
        for steps in {self._taken(h, t) for t in reads if t in hearing}:
            yield ((1, (*heard, *steps, "ld.weak r1, d", *end)),), _stale(h, start, start)
        for steps in {self._taken(h, t) for t in reads if t not in hearing}:
            if h.taken.kind == "poll":
                told = (*heard, *self._taken(h, leader, reads=False))
                yield ((1, told), (1, (*steps, "ld.weak r1, d"))), f"P{start + 1}:r1 == 0"
                continue
            check = ("ld.weak r2, s", "bne r2, 1, LC0")
            yield ((1, (*take, "st.weak s, r0", *self._taken(h, leader, reads=False))),
                   (1, (*steps, *check, "ld.weak r1, d", "LC0:"))), (
                f"P{start + 1}:r2 == 1 /\\ P{start + 1}:r1 == 0")

    def _awaited(self, h: Handover) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Waiting for a flag, or until both CTAs have drawn."""
        if h.given.kind != "ticket":
            return _waited(h.taken)
        at = self._position(h.taken)
        own = next(k for k, e in enumerate(self.trace.sync) if e.kind == "ticket" and e.buffer == h.taken.buffer)
        (leader,) = self.lanes(h.taken.path)[:1]
        if leader not in self.lanes(self.trace.sync[own].path):
            raise Unsupported("barrier", "another thread waits than the one that counts")
        between = self.steps(self.trace.sync[own + 1 : at], leader, self.plain(h.taken.path))
        take, _ = _waited(h.taken)
        return (operation(self.trace.sync[own], "r8"), *between, *take), ("bne r0, 2, LW0",)

    def _position(self, event: SyncEvent) -> int:
        """Where the event itself is: one instruction may have left several, by an unrolled loop."""
        at = next((k for k, e in enumerate(self.trace.sync) if e is event), None)
        if at is None:
            raise Unsupported("hand-over", "the event that a load relies on is not one of this run")
        return at

    def _given(self, h: Handover, lane: int, context: Pred) -> tuple[str, ...]:
        end = next(k for k, e in enumerate(self.survey.sync) if e is h.given)
        events = [e for e in self.survey.sync[:end] if e.at > h.store.order]
        return self.steps(events, lane, context)

    def _taken(self, h: Handover, lane: int, *, reads: bool = True) -> tuple[str, ...]:
        start = self._position(h.taken)
        events = [e for e in self.trace.sync[start + 1 :] if e.at <= h.load.order]
        heard = self.arena.conj((self.plain(h.taken.path), self.shared(h.load.path)))
        return self.steps(events, lane, self.plain(h.load.path) if reads else heard)


def _identity(e: SyncEvent) -> tuple[object, ...]:
    return e.kind, e.buffer, None if e.index is None else e.index.key, e.path.id, e.instruction


def _stale(h: Handover, first: int, last: int) -> str:
    old = f"P{last}:r1 == 0"
    return f"P{first}:r0 == 1 /\\ {old}" if h.taken.kind == "ticket" else old


def _drawn(e: SyncEvent) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Drawing the last of two tickets: the atomic, and the branch that only it passes."""
    return (operation(e, "r0"),), ("bne r0, 1, LC0",)


def _waited(e: SyncEvent) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Waiting for a flag."""
    return ("LW0:", operation(e, "r0")), ("beq r0, 0, LW0",)
