"""Executions of a frame: reads-from, Fence-SC order and coherence chosen by backtracking, checked against the axioms.

Every axiom is monotone in these choices, so each is checked after every choice. Coherence is the least one: the initial
write first, what causality implies, and one direction for each morally strong pair; more of it only forbids more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from warpproof.sync.events import Kind
from warpproof.sync.frame import Frame, Rows, add_edge, bits
from warpproof.sync.model import Model
from warpproof.sync.phases import Meeting
from warpproof.sync.program import ALIAS, GENERIC, Value


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution that the model allows, with its relations as rows of bit masks."""

    frame: Frame
    values: tuple[Value | None, ...]
    reads_from: dict[int, int]
    coherence: Rows
    fence_sc: tuple[tuple[int, int], ...]
    synchronises: tuple[tuple[int, int], ...]
    cause: Rows
    meeting: Meeting


@dataclass(slots=True)
class _Orders:
    base: Rows
    cause: Rows
    coherence: Rows
    sync: list[tuple[int, int]]


class Search:
    """The search for executions of one frame with given values. `failed` collects the axioms that rejected choices."""

    def __init__(self, frame: Frame, values: Sequence[Value | None], model: Model, failed: set[str],
                 tick: Callable[[], None]) -> None:
        self.frame, self.values, self.model, self.failed, self.tick = frame, tuple(values), model, failed, tick
        self.writes = [frame.writes_at(i) for i in range(len(frame.locations))]

    def executions(self, every_coherence: bool) -> Iterator[Execution]:
        """Every allowed execution; with `every_coherence` off, one coherence order for each choice of the rest."""
        candidates = self._candidates(0)
        if candidates is None:
            return
        order = sorted(candidates, key=lambda r: len(candidates[r]))
        for meeting in self.frame.meetings:
            base = list(self.frame.po)
            for a, b in meeting.edges:
                add_edge(base, a, b)
            yield from self._choose(order, candidates, {}, base, list(self.frame.deps), meeting, every_coherence)

    def _candidates(self, free: int) -> dict[int, list[int]] | None:
        """The writes that each read outside `free` may take its value from; None if some read has none."""
        candidates = {}
        for r in self.frame.reads:
            if not free >> r & 1:
                candidates[r] = [w for w in bits(self.writes[self.frame.location[r]])
                                 if self.values[w] == self.values[r] and self.frame.partner.get(r) != w]
                if not candidates[r]:
                    return None
        return candidates

    def feasible(self, free: int) -> bool:
        """False only if no execution of these threads along with any others is allowed.

        The reads in `free` may read from the others. Barriers are left out: they only add order.
        """
        candidates = self._candidates(free)
        if candidates is None:
            return False
        order = sorted(candidates, key=lambda r: len(candidates[r]))
        nowhere = Meeting(())
        found = self._choose(order, candidates, {}, list(self.frame.po), list(self.frame.deps), nowhere, False)
        return next(found, None) is not None

    def _choose(self, order: list[int], candidates: dict[int, list[int]], rf: dict[int, int], base: Rows, thin: Rows,
                meeting: Meeting, every: bool) -> Iterator[Execution]:
        if len(rf) == len(order):
            yield from self._fence(rf, base, meeting, every, ())
            return
        read = order[len(rf)]
        # Where nothing is left to choose, one check at the end of the forced reads is enough.
        checked = len(candidates[read]) > 1 and len(rf) + 1 < len(order)
        for write in candidates[read]:
            if thin[read] >> write & 1:
                self.failed.add("no-thin-air")
                continue
            if self._taken(rf, read, write):
                self.failed.add("atomicity")
                continue
            chosen = {**rf, read: write}
            causal = list(thin)
            add_edge(causal, write, read)
            if not checked or self._consistent(chosen, base, meeting):
                yield from self._choose(order, candidates, chosen, base, causal, meeting, every)

    def _taken(self, rf: dict[int, int], read: int, write: int) -> bool:
        """Whether another atomic has read this write already, so that one of the two would come between."""
        frame = self.frame
        mine = frame.partner.get(read)
        if mine is None or write not in rf.values():
            return False
        visible = -1 if write < frame.first else frame.moral[write]
        for other, source in rf.items():
            theirs = frame.partner.get(other)
            if source == write and theirs is not None and visible >> read & visible >> other & 1:
                mutual = frame.moral[read] >> theirs & frame.moral[mine] >> theirs & frame.moral[other] >> mine
                if mutual & 1:
                    return True
        return False

    def _consistent(self, rf: dict[int, int], base: Rows, meeting: Meeting) -> bool:
        orders = self._orders(rf, base, meeting, ())
        return orders is not None and self._allowed(rf, orders.cause, orders.coherence)

    def _fence(self, rf: dict[int, int], base: Rows, meeting: Meeting, every: bool,
               sc: tuple[tuple[int, int], ...]) -> Iterator[Execution]:
        orders = self._orders(rf, base, meeting, sc)
        if orders is None or not self._allowed(rf, orders.cause, orders.coherence):
            return
        for a, b in self.frame.sc_pairs:
            if (a, b) not in sc and (b, a) not in sc:
                forward, backward = orders.base[a] >> b & 1, orders.base[b] >> a & 1
                for edge, excluded in (((a, b), backward), ((b, a), forward)):
                    if not excluded:
                        yield from self._fence(rf, base, meeting, every, (*sc, edge))
                return
        for coherence in self._cohere(rf, orders.cause, orders.coherence):
            yield Execution(self.frame, self.values, rf, coherence, sc, tuple(orders.sync), orders.cause, meeting)
            if not every:
                return

    def _cohere(self, rf: dict[int, int], cause: Rows, coherence: Rows) -> Iterator[Rows]:
        for a, b in self.frame.write_pairs:
            if not (coherence[a] >> b & 1 or coherence[b] >> a & 1):
                for before, after in ((a, b), (b, a)):
                    rows = list(coherence)
                    add_edge(rows, before, after)
                    if self._allowed(rf, cause, rows):
                        yield from self._cohere(rf, cause, rows)
                return
        if self.model.sc_per_location and not self._sequential(rf, coherence):
            self.failed.add("sc-per-location")
            return
        yield coherence

    def _observation(self, rf: dict[int, int]) -> Rows:
        """`(ms∩rf);(rmw;(ms∩rf))*`, from a write to reads (PTX 8.9.2)."""
        frame = self.frame
        observed = [0] * len(frame.events)
        for r, w in rf.items():
            if frame.moral[w] >> r & 1:
                observed[w] |= 1 << r
        pending = [(r, w) for r, w in rf.items() if r in frame.partner and frame.moral[w] >> r & 1]
        for _ in pending:
            changed = False
            for r, w in pending:
                more = observed[w] | observed[frame.partner[r]]
                changed = changed or more != observed[w]
                observed[w] = more
            if not changed:
                break
        return observed

    def _orders(self, rf: dict[int, int], start: Rows, meeting: Meeting,
                sc: tuple[tuple[int, int], ...]) -> _Orders | None:
        """The orders that follow from the choices, or None if they contradict each other."""
        self.tick()
        frame = self.frame
        base = list(start)
        observed = self._observation(rf)
        sync = []
        for x, writes in frame.releases:
            seen = 0
            for w in bits(writes):
                seen |= observed[w]
            ends = 0
            for r in bits(seen):
                ends |= frame.acquires.get(r, 0)
            for y in bits(ends & frame.moral[x]):
                if frame.thread[x] != frame.thread[y]:
                    sync.append((x, y))
                    add_edge(base, x, y)
        for a, b in sc:
            add_edge(base, a, b)
        if not self.model.base_has_po:
            base = self._through_sync(base, [*sync, *sc, *meeting.edges])
        for a, b in frame.sc_pairs:
            if (base[a] >> b & 1 and ((b, a) in sc or base[b] >> a & 1)) or (base[b] >> a & 1 and (a, b) in sc):
                self.failed.add("fence-sc")
                return None
        cause = self._cause(base, observed)
        coherence = self._coherence(cause)
        return None if coherence is None else _Orders(base, cause, coherence, sync)

    def _through_sync(self, closed: Rows, edges: Sequence[tuple[int, int]]) -> Rows:
        """Base causality of 6.0: only paths with at least one synchronisation."""
        direct = [0] * len(closed)
        for a, b in edges:
            direct[a] |= 1 << b
        rows = []
        for a in range(len(closed)):
            middle = 0
            for s in bits(self.frame.po[a] | 1 << a):
                middle |= direct[s]
            row = middle
            for m in bits(middle):
                row |= closed[m]
            rows.append(row)
        return rows

    def _cause(self, base: Rows, observed: Rows) -> Rows:
        frame = self.frame
        if not self.model.base_has_po:
            # 6.0: observation, then base causality or program order at one address.
            step = [row | frame.po[a] & frame.same_address[a] for a, row in enumerate(base)]
            kept = base
        else:
            kept = step = self._preserved(base)
        cause = list(kept)
        for w, mask in enumerate(observed):
            for r in bits(mask):
                cause[w] |= step[r]
        return cause

    def _preserved(self, base: Rows) -> Rows:
        """Proxy-preserved base causality order (PTX 8.9.5; its rules for other proxies as in docs/memory-model.md)."""
        frame = self.frame
        if frame.plain:
            return [base[a] & frame.same_address[a] for a in range(len(base))]
        events = frame.events
        memory = [i for i in range(frame.first, len(events)) if events[i].is_memory]
        fences = [i for i, e in enumerate(events) if e.kind is Kind.PROXY_FENCE]
        aliases = sum(1 << f for f in fences if events[f].proxy == ALIAS)

        def passages(x: int, leaving: bool) -> list[int]:
            if events[x].proxy == GENERIC:
                return [x]
            return [f for f in fences if events[f].proxy == events[x].proxy and frame.same_cta[x] >> f & 1
                    and (base[x] >> f if leaving else base[f] >> x) & 1]

        out, into = ({x: passages(x, leaving) for x in memory} for leaving in (True, False))
        rows = [0] * len(base)
        for x in memory:
            for y in bits(base[x] & frame.same_location[x]):
                same = frame.same_address[x] >> y & 1
                near = events[x].proxy == events[y].proxy and frame.same_cta[x] >> y & 1
                if same and near:
                    rows[x] |= 1 << y
                    continue
                for f in out[x]:
                    for g in into[y]:
                        via = any(base[alias] >> g & 1 for alias in bits(base[f] & aliases))
                        if via or (same and base[f] >> g & 1):
                            rows[x] |= 1 << y
        return rows

    def _coherence(self, cause: Rows) -> Rows | None:
        """What causality says about coherence, closed; None if that is cyclic."""
        frame = self.frame
        rows = list(frame.init_order)
        for a in frame.own_writes:
            implied = cause[a] & frame.writes & frame.same_location[a]
            if implied >> a & 1:
                self.failed.add("coherence")
                return None
            for b in bits(implied):
                if rows[b] >> a & 1:
                    self.failed.add("coherence")
                    return None
                add_edge(rows, a, b)
        return rows

    def _allowed(self, rf: dict[int, int], cause: Rows, coherence: Rows) -> bool:
        """Causality and atomicity (PTX 8.10.3, 8.10.6) for the reads chosen so far."""
        frame = self.frame
        for r, w in rf.items():
            later = coherence[w]
            if cause[r] >> w & 1 or any(cause[x] >> r & 1 for x in bits(later)):
                self.failed.add("causality")
                return False
            partner = frame.partner.get(r)
            if partner is not None:
                between = later & frame.moral[r] & frame.moral[partner]
                if any(coherence[x] >> partner & 1 for x in bits(between)):
                    self.failed.add("atomicity")
                    return False
        return not self.model.identity or self._identity(cause, coherence)

    def _identity(self, cause: Rows, coherence: Rows) -> bool:
        """`(co ∪ id);cause` is irreflexive, which the public Alloy text of 7.5 adds."""
        for a, row in enumerate(cause):
            if row >> a & 1 or any(cause[b] >> a & 1 for b in bits(coherence[a])):
                self.failed.add("causality")
                return False
        return True

    def _sequential(self, rf: dict[int, int], coherence: Rows) -> bool:
        """SC per location (PTX 8.10.5): po at one address with morally strong communication has no cycle."""
        frame = self.frame
        rows = [0] * len(frame.events)
        edges = [(a, b) for a in range(frame.first, len(rows)) for b in bits(frame.po[a] & frame.same_address[a])]
        for r, w in rf.items():
            edges += [(w, r)] if frame.moral[w] >> r & 1 else []
            edges += [(r, x) for x in bits(coherence[w] & frame.moral[r])]
        for w in bits(frame.writes):
            edges += [(w, x) for x in bits(coherence[w] & frame.moral[w])]
        for a, b in edges:
            if a == b or rows[b] >> a & 1:
                return False
            add_edge(rows, a, b)
        return True


def races(execution: Execution) -> list[tuple[int, int]]:
    """The pairs in a data race (PTX 8.7.1): they conflict, are not morally strong, and not ordered by causality.

    An atomic is one operation here: what comes behind its write comes behind its read too.
    """
    frame = execution.frame
    later = [row | (execution.cause[frame.partner[a]] if a in frame.partner else 0)
             for a, row in enumerate(execution.cause)]
    found = []
    for a in range(frame.first, len(frame.events)):
        for b in bits(frame.same_location[a] >> a + 1 << a + 1):
            conflict = Kind.WRITE in (frame.events[a].kind, frame.events[b].kind)
            ordered = frame.moral[a] >> b | later[a] >> b | later[b] >> a
            if conflict and not ordered & 1:
                found.append((a, b))
    return found
