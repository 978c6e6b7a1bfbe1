"""Turnstiles: CTAs take turns by a counter, and what each does in its turn is ordered before what the next does.

The counter starts at 0, and only the CTA whose turn is k stores k + 1, once it has read k. If no two CTAs have one
number at one counter, then whoever reads k reads it from the store of turn k − 1 (for k = 0 from the start), so turns
follow each other. Two successive turns are cut out as a core; as causality order is transitive, and each turn lies
between what it hears and what it tells, what holds for successive turns holds for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from warpproof.algebra import support
from warpproof.core import Claim, Status
from warpproof.machine import Access, SymbolicMachine, SyncEvent, Trace
from warpproof.safety.cores import Core, Cores, operation, verdict
from warpproof.solve import Facts, Piece, Problem, injective
from warpproof.terms import Arena, Poly

_LIMIT: Final = 1 << 31
Split = Callable[[Access], tuple[tuple[Poly, ...], tuple[Poly, ...]]]


class Turnstiles(Cores):
    """The questions about the turns of one trace; `blocks` tell CTAs apart, `split` gives coordinates of accesses."""

    def __init__(
        self, arena: Arena, facts: Facts, trace: Trace, machine: SymbolicMachine, blocks: tuple[int, ...], split: Split,
    ) -> None:
        super().__init__(arena, facts, trace, machine)
        self.blocks, self.split = blocks, split

    def claims(self) -> Iterator[Claim]:
        """Claims on every counter that CTAs take turns by."""
        for name in dict.fromkeys(e.buffer for e in self.trace.sync if e.kind in ("turn", "pass")):
            events = [e for e in self.trace.sync if e.buffer == name]
            text = f"CTAs take turns by {name}, one at a time, and each sees what was done in earlier turns"
            wrong = self._wrong(name, events)
            place = self.machine.where(events[0].instruction)
            if wrong:
                yield Claim("races", text, Status.OPEN, place=place, hint=wrong)
                continue
            yield Claim("races", text, Status.SHOWN, "memory-model", place)
            yield self._wait(name, events[0], place)

    def section(self, name: str, events: Sequence[SyncEvent]) -> str:
        """What is not shown of the critical sections that whole CTAs are in; empty when all is.

        Whoever takes the lock by an atomic reads what the one before has given it back with, and nobody else reads
        that: critical sections follow each other like turns.
        """
        touched = [a for a in self.trace.accesses if a.lock == name]
        if [e.kind for e in events] != ["lock", "unlock"] or events[0].loops or not touched:
            return "the lock is accessed in other ways too, or nothing is done while it is held"
        taken = self.shared(events[0].path)
        if taken is not self.plain(events[0].path) or not all(self.facts.implied(a.path, taken) for a in touched):
            return "a CTA may access what the lock protects without having taken it"
        data = {a.buffer for a in touched}
        if any(a.buffer in data and a.kind == "atomic" and a.lock != name for a in self.trace.accesses):
            return "what is updated under the lock is also updated without"
        if not self._one_lock(events[0], touched):
            return "an element may be updated under different locks"
        if not self._one_thread(touched):
            return "an element may be updated by two threads in one critical section"
        return next((why for core in self._turns(events, touched) if (why := verdict(core.text()))), "")

    def _one_lock(self, lock: SyncEvent, touched: Sequence[Access]) -> bool:
        """CTAs that touch one element agree in the block indices that choose the lock, and nothing else does."""
        choosing = tuple(support(self.arena, (lock.index,)))
        if not set(choosing) <= set(self.blocks):
            return False
        others = tuple(b for b in self.blocks if b not in choosing)
        pieces = [Piece(self.arena.conjuncts(a.path), others, choosing, self._place(a)) for a in touched]
        return not choosing or self._apart(touched, pieces, ("blocks",))

    # ------------------------------------------------------------------ one at a time
    def _wrong(self, name: str, events: Sequence[SyncEvent]) -> str:
        """What is not shown of the turns; empty when all is."""
        touched = [a for a in self.trace.accesses if a.lock == name]
        if [e.kind for e in events] != ["turn", "pass"] or not touched:
            return "the counter is accessed in other ways too, or nothing is done in a turn"
        turn = events[0]
        if turn.loops or self.plain(turn.path).op != "true":
            return "not every CTA waits for its turn"
        if not self.facts.implied(self.arena.true, self.arena.le(turn.awaited + 1 - _LIMIT), hard=True):
            return "more turns than the counter can count"
        if not self._numbered(turn):
            return "two CTAs may have the same turn"
        data = {a.buffer for a in touched}
        if any(a.buffer in data and a.kind == "atomic" and a.lock != name for a in self.trace.accesses):
            return "what is updated in turns is also updated without"
        if not self._one_counter(turn, touched):
            return "an element may be updated in turns by different counters"
        if not self._one_thread(touched):
            return "an element may be updated by two threads in one turn"
        return next((why for core in self._turns(events, touched) if (why := verdict(core.text()))), "")

    def _number(self, turn: SyncEvent) -> int:
        ((atom,),) = turn.awaited.terms
        return int(atom)

    def _drawn(self, turn: SyncEvent) -> bool:
        """The turns are tickets, so that the CTA of an earlier turn has started earlier."""
        return any(turn.awaited == t for t in self.machine.setup.tickets.values())

    def _numbered(self, turn: SyncEvent) -> bool:
        """No two CTAs have the same counter and number, and the number is not part of the counter's index."""
        if self._drawn(turn):
            return turn.index.as_int() is not None
        number = self._number(turn)
        if number not in self.blocks or number in support(self.arena, (turn.index,)):
            return False
        piece = Piece((), (), self.blocks, (turn.index, turn.awaited))
        return bool(injective(Problem(self.arena, self.facts.launch), [piece], ("blocks",)).holds)

    def _one_counter(self, turn: SyncEvent, touched: Sequence[Access]) -> bool:
        """CTAs that touch one element agree in the block indices that choose the counter."""
        if turn.index.as_int() is not None:
            return True
        number = self._number(turn)
        others = tuple(b for b in self.blocks if b != number)
        pieces = [Piece(self.arena.conjuncts(a.path), (number,), others, self._place(a)) for a in touched]
        return self._apart(touched, pieces, ("blocks",))

    def _one_thread(self, touched: Sequence[Access]) -> bool:
        """In one CTA no two threads touch the same element."""
        pieces = [Piece(self.arena.conjuncts(a.path), (), (), self._place(a)) for a in touched]
        return self._apart(touched, pieces, ("lane",))

    def _place(self, a: Access) -> tuple[Poly, ...]:
        return self.split(a)[1]

    def _apart(self, touched: Sequence[Access], pieces: Sequence[Piece], dims: tuple[str, ...]) -> bool:
        problem = Problem(self.arena, self.facts.launch)
        for name in {a.buffer for a in touched}:
            own = [(a, p) for a, p in zip(touched, pieces, strict=True) if a.buffer == name]
            alike = len({self.split(a)[0] for a, _ in own}) == 1
            group = [p if alike else Piece(p.guards, p.loops, p.blocks, (a.index,)) for a, p in own]
            if not injective(problem, group, dims).holds:
                return False
        return True

    # ------------------------------------------------------------------ cores
    def _turns(self, events: Sequence[SyncEvent], touched: Sequence[Access]) -> Iterator[Core]:
        """Two successive turns: threads that touch an element in both, that tell, and that hear."""
        turn, told = events
        lanes = sorted({t for a in touched for t in self.lanes(a.path)})
        start, end = (next(k for k, e in enumerate(self.trace.sync) if e is x) for x in (turn, told))
        inside = self.trace.sync[start + 1 : end]
        last = [e for e in inside if e.inside == told.inside]
        first = [e for e in inside if e.inside == 0]
        for giver in self._givers(told, last, lanes):
            for taker, reader in self._takers(turn, first, lanes):
                at = f"P{len(giver) + reader}"
                yield Core((*((0, g) for g in giver), *((1, t) for t in taker)), f"{at}:r1 == 0")

    def _givers(
        self, told: SyncEvent, events: Sequence[SyncEvent], lanes: Sequence[int],
    ) -> Iterator[tuple[tuple[str, ...], ...]]:
        (leader,) = self.lanes(told.path)
        context, touch = self.shared(told.path), ("ld.weak r5, d", "st.weak d, 1")
        own = self.steps(events, leader, self.plain(told.path))
        tell = operation(told, "r9")
        if leader in lanes:
            yield ((*touch, *own, tell),)
        for steps in {self.steps(events, t, context) for t in lanes if t != leader}:
            yield (*touch, *steps), (*own, tell)

    def _takers(
        self, turn: SyncEvent, events: Sequence[SyncEvent], lanes: Sequence[int],
    ) -> Iterator[tuple[tuple[tuple[str, ...], ...], int]]:
        """The threads of the later turn, and which of them touches the element."""
        (leader,) = self.lanes(turn.path)
        context, touch = self.shared(turn.path), ("ld.weak r1, d", "st.weak d, 2")
        own = self.steps(events, leader, self.plain(turn.path))
        heard = ("LW0:", operation(turn, "r0"), "bne r0, 1, LW0")
        if leader in lanes:
            yield ((*heard, *own, *touch),), 0
        for steps in {self.steps(events, t, context) for t in lanes if t != leader}:
            yield ((*heard, *own), (*steps, *touch)), 1

    # ------------------------------------------------------------------ waits
    def _wait(self, name: str, turn: SyncEvent, place: str) -> Claim:
        """The wait ends: the CTA of the turn before is running, and waits for nothing but earlier turns itself."""
        text = f"the wait for a turn by {name} ends"
        others = [e for e in self.trace.sync if e.kind in ("poll", "lock", "turn") and e is not turn]
        if others:
            return Claim("barriers", text, Status.OPEN, place=place, hint="CTAs also wait for other things")
        if self._drawn(turn):
            return Claim("barriers", text, Status.SHOWN, "earlier ticket", place)
        if not self.machine.setup.cooperative:
            return Claim("barriers", text, Status.OPEN, place=place, hint="the CTA before may never be started beside "
                         "this one: draw turns from an atomic counter, or say that the launch is cooperative")
        self.machine.assume("cooperative", "all CTAs of the grid are resident at once", "a cooperative launch")
        return Claim("barriers", text, Status.SHOWN, "cooperative launch", place)
