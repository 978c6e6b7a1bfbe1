"""A slow, direct reading of the axioms, to compare the engine with: relations are sets of pairs, orders are guessed.

It takes straight-line tests only (no branches, no counts on barriers). Reads-from, coherence (any partial order, not
only the least) and Fence-SC order are enumerated in full; values follow from reads-from. It shares the file reader and
the names of the instructions with the engine, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from warpproof.sync import Litmus, Model
from warpproof.sync.program import Address, Atomic, Barrier, Fence, Load, Local, ProxyFence, Register, Store

Pair = tuple[int, int]
SCOPE_FIELDS = {"CTA": ("gpu", "cta"), "GPU": ("gpu",), "SYS": ()}


@dataclass
class Event:
    kind: str
    thread: int
    operation: Any = None
    sem: str = ""
    proxy: str = "generic"
    address: str = ""
    place: str = ""
    value: Any = None
    needs: set[int] = field(default_factory=set)
    number: int = 0


def compose(*relations: set[Pair]) -> set[Pair]:
    result = relations[0]
    for r in relations[1:]:
        result = {(a, d) for a, b in result for c, d in r if b == c}
    return result


def closure(relation: set[Pair]) -> set[Pair]:
    result = set(relation)
    while True:
        more = result | compose(result, result)
        if more == result:
            return result
        result = more


def acyclic(relation: set[Pair]) -> bool:
    return all(a != b for a, b in closure(relation))


class Reference:
    """All executions of a test under a model."""

    def __init__(self, test: Litmus, model: Model) -> None:
        self.test, self.model = test, model
        self.virtual: dict[str, str] = {}
        self.physical: dict[str, str] = {}
        for v in test.variables:
            self.physical[v.name] = self.physical[v.alias_of] if v.alias_of else v.name
            self.virtual[v.name] = self.virtual[v.alias_of] if v.alias_of and v.proxy != "generic" else v.name

    def programs(self) -> Iterator[tuple[list[Event], set[Pair], set[Pair], dict[int, dict[str, Any]]]]:
        """Events, program order and rmw pairs, for each guess of which compare-and-swaps succeed."""
        swaps = [(t, i) for t, thread in enumerate(self.test.threads) for i, ins in enumerate(thread.instructions)
                 if isinstance(ins.operation, Atomic) and ins.operation.operation == "cas"]
        for guess in product((True, False), repeat=len(swaps)):
            yield self.program(dict(zip(swaps, guess, strict=True)))

    def program(self, success: dict[tuple[int, int], bool]) -> tuple[list[Event], set[Pair], set[Pair],
                                                                     dict[int, dict[str, Any]]]:
        events = [Event("W", -1, address=v.name, place=v.name, value=v.value) for v in self.test.variables
                  if not v.alias_of]
        po: set[Pair] = set()
        rmw: set[Pair] = set()
        final: dict[int, dict[str, Any]] = {}

        def add(e: Event) -> int:
            e.number = len(events)
            po.update((o.number, e.number) for o in events if o.thread == e.thread)
            events.append(e)
            return e.number

        for n, e in enumerate(events):
            e.number = n
        for t, thread in enumerate(self.test.threads):
            registers: dict[str, Any] = {}
            for i, ins in enumerate(thread.instructions):
                o = ins.operation
                where = {}
                if isinstance(o, Load | Store | Atomic):
                    assert isinstance(o.address, Address)
                    where = {"address": self.virtual[o.address.symbol], "place": self.physical[o.address.symbol],
                             "proxy": o.proxy, "operation": o}
                if isinstance(o, Load):
                    registers[o.destinations[0]] = ("read", add(Event("R", t, sem=o.sem, **where)))
                elif isinstance(o, Store):
                    value = self.expression(o.values[0], registers)
                    add(Event("W", t, sem=o.sem, value=value, needs=self.reads(value), **where))
                elif isinstance(o, Atomic):
                    r = add(Event("R", t, sem=o.sem, **where))
                    given = [self.expression(x, registers) for x in o.operands]
                    if o.operation == "cas":
                        events[r].value = ("is" if success[t, i] else "is not", given[0])
                    if o.operation != "cas" or success[t, i]:
                        value = {"cas": lambda g: g[1], "exch": lambda g: g[0],
                                 "add": lambda g, r=r: ("add", ("read", r), g[0])}[o.operation](given)
                        needs = self.reads(value) | (self.reads(given[0]) | {r} if o.operation == "cas" else set())
                        rmw.add((r, add(Event("W", t, sem=o.sem, value=value, needs=needs, **where))))
                    if o.destination is not None:
                        registers[o.destination] = ("read", r)
                elif isinstance(o, Local):
                    left, right = self.expression(o.left, registers), self.expression(o.right, registers)
                    registers[o.destination] = left if o.operation == "mov" else (o.operation, left, right)
                elif isinstance(o, Fence):
                    add(Event("F", t, o, o.sem))
                elif isinstance(o, ProxyFence):
                    add(Event("P", t, o, proxy=o.proxy))
                elif isinstance(o, Barrier):
                    add(Event("B", t, o))
                else:
                    raise AssertionError(o)
            final[t] = registers
        return events, po, rmw, final

    def expression(self, operand: Any, registers: dict[str, Any]) -> Any:
        return registers.get(operand.name, 0) if isinstance(operand, Register) else operand

    def reads(self, value: Any) -> set[int]:
        if isinstance(value, tuple):
            return {value[1]} if value[0] == "read" else self.reads(value[1]) | self.reads(value[2])
        return set()

    def evaluate(self, value: Any, known: dict[int, int]) -> int:
        if not isinstance(value, tuple):
            return int(value)
        if value[0] == "read":
            return known[value[1]]
        left, right = (self.evaluate(v, known) for v in value[1:])
        return {"add": left + right, "and": left & right, "xor": left ^ right}[value[0]]

    def outcomes(self) -> tuple[set[tuple[tuple[str, int], ...]], bool]:
        """The final states (registers and memory), and whether some execution has a race."""
        states: set[tuple[tuple[str, int], ...]] = set()
        race = False
        for events, po, rmw, final in self.programs():
            reads = [e for e in events if e.kind == "R"]
            options = [[w.number for w in events if w.kind == "W" and w.place == r.place] for r in reads]
            for choice in product(*options):
                rf = {(w, r.number) for w, r in zip(choice, reads, strict=True)}
                dep = {(n, e.number) for e in events for n in e.needs}
                if not acyclic(rf | dep):
                    continue
                values = self.values(events, rf)
                if values is None:
                    continue
                for co, raced in self.consistent(events, po, rmw, rf):
                    race = race or raced
                    states |= self.finals(events, final, values, co)
        return states, race

    def values(self, events: list[Event], rf: set[Pair]) -> dict[int, int] | None:
        known: dict[int, int] = {}
        source = {r: w for w, r in rf}
        while len(known) < sum(e.kind in "RW" for e in events):
            for e in events:
                if e.kind == "W" and e.number not in known and self.reads(e.value) <= known.keys():
                    known[e.number] = self.evaluate(e.value, known)
                if e.kind == "R" and source.get(e.number) in known:
                    known[e.number] = known[source[e.number]]
        for e in events:
            if e.kind == "R" and e.value is not None:
                verb, expected = e.value
                if (known[e.number] == self.evaluate(expected, known)) != (verb == "is"):
                    return None
        return known

    def finals(self, events: list[Event], final: dict[int, dict[str, Any]], values: dict[int, int],
               co: set[Pair]) -> set[tuple[tuple[str, int], ...]]:
        registers = [(f"P{t}:{r}", self.evaluate(v, values)) for t, regs in final.items() for r, v in regs.items()]
        places = sorted({e.place for e in events if e.kind == "W"})
        last = [[(p, values[e.number]) for e in events if e.kind == "W" and e.place == p
                 and not any(a == e.number for a, _ in co)] for p in places]
        return {tuple(sorted([*registers, *memory])) for memory in product(*last)}

    def includes(self, a: Event, b: Event) -> bool:
        """The scope of a includes the thread of b."""
        one, other = self.test.threads[a.thread], self.test.threads[b.thread]
        return all(getattr(one, f) == getattr(other, f) for f in SCOPE_FIELDS[a.operation.scope.name])

    def strong(self, e: Event) -> bool:
        return e.kind == "F" or (e.kind in "RW" and e.thread >= 0 and e.sem != "weak")

    def morally_strong(self, events: list[Event], po: set[Pair]) -> set[Pair]:
        found = set()
        for a in events:
            for b in events:
                if a is b or a.thread < 0 or b.thread < 0 or a.kind in "PB" or b.kind in "PB" or a.proxy != b.proxy:
                    continue
                if a.kind in "RW" and b.kind in "RW" and a.address != b.address:
                    continue
                ordered = (a.number, b.number) in po or (b.number, a.number) in po
                if ordered or (self.strong(a) and self.strong(b) and self.includes(a, b) and self.includes(b, a)):
                    found.add((a.number, b.number))
        return found

    def patterns(self, events: list[Event], po: set[Pair]) -> tuple[set[Pair], set[Pair]]:
        release, acquire = set(), set()
        for a in events:
            for b in events:
                later = (a.number, b.number) in po
                same = a.address == b.address
                fence_a = a.kind == "F" and a.sem in ("acq_rel", "sc", "release")
                fence_b = b.kind == "F" and b.sem in ("acq_rel", "sc", "acquire")
                releases = a.kind == "W" and a.thread >= 0 and a.sem in ("release", "acq_rel")
                if b.kind == "W" and self.strong(b) and ((later and (fence_a or (releases and same)))
                                                         or (a is b and releases)):
                    release.add((a.number, b.number))
                acquires = b.kind == "R" and b.sem in ("acquire", "acq_rel")
                reduction = isinstance(a.operation, Atomic) and a.operation.destination is None
                if a.kind == "R" and self.strong(a) and not reduction and (
                        (later and (fence_b or (acquires and same))) or (a is b and acquires)):
                    acquire.add((a.number, b.number))
        return release, acquire

    def barriers(self, events: list[Event]) -> set[Pair]:
        """Pairs of the k-th operations of different threads of a CTA on one barrier."""
        count: dict[Any, int] = {}
        phase = {}
        for e in events:
            if e.kind == "B":
                thread = self.test.threads[e.thread]
                key = (thread.gpu, thread.cta, e.operation.instance, e.operation.resource)
                count[key, e.thread] = count.get((key, e.thread), 0) + 1
                phase[e.number] = (key, count[key, e.thread])
        return {(a, b) for a in phase for b in phase if phase[a] == phase[b] and events[a].thread != events[b].thread
                and events[b].operation.waits}

    def consistent(self, events: list[Event], po: set[Pair], rmw: set[Pair],
                   rf: set[Pair]) -> Iterator[tuple[set[Pair], bool]]:
        """Each coherence order of an allowed execution, with whether the execution has a race."""
        ms = self.morally_strong(events, po)
        release, acquire = self.patterns(events, po)
        seen = ms & rf
        obs = seen | compose(seen, closure(compose(rmw, seen)))
        sync = compose(release, obs, acquire) & ms
        fences = [e.number for e in events if e.kind == "F" and e.sem == "sc"]
        pairs = [(a, b) for a in fences for b in fences if a < b and (a, b) in ms]
        for flips in product((False, True), repeat=len(pairs)):
            sc = {(b, a) if flip else (a, b) for (a, b), flip in zip(pairs, flips, strict=True)}
            if not acyclic(sc):
                continue
            sw = sync | sc | self.barriers(events)
            every = closure(po | sw)
            if self.model.base_has_po:
                base = every
                preserved = self.preserved(events, base)
                cause = preserved | compose(obs, preserved)
            else:
                same = {(e.number, e.number) for e in events}
                base = compose(po | same, sw, every | same)
                local = {(a, b) for a, b in po if events[a].kind in "RW" and events[a].address == events[b].address}
                cause = base | compose(obs, base | local)
            if any((b, a) in sc for a, b in base if a in fences and b in fences):
                continue
            for co in self.coherences(events, ms, cause):
                if self.allowed(events, po, rmw, rf, ms, cause, co):
                    yield co, self.race(events, ms, cause | compose(rmw, cause))

    def preserved(self, events: list[Event], base: set[Pair]) -> set[Pair]:
        """Proxy-preserved base causality order, by its clauses."""

        def near(a: Event, b: Event) -> bool:
            s, t = self.test.threads[a.thread], self.test.threads[b.thread]
            return (s.gpu, s.cta) == (t.gpu, t.cta)

        memory = [e for e in events if e.kind in "RW" and e.thread >= 0]
        out = {e.number: {e.number} if e.proxy == "generic" else
               {f.number for f in events if f.kind == "P" and f.proxy == e.proxy and near(e, f)
                and (e.number, f.number) in base} for e in memory}
        into = {e.number: {e.number} if e.proxy == "generic" else
                {f.number for f in events if f.kind == "P" and f.proxy == e.proxy and near(e, f)
                 and (f.number, e.number) in base} for e in memory}
        alias = [f.number for f in events if f.kind == "P" and f.proxy == "alias"]
        found = set()
        for x in memory:
            for y in memory:
                if (x.number, y.number) not in base or x.place != y.place:
                    continue
                same = x.address == y.address
                direct = same and any((f, g) in base for f in out[x.number] for g in into[y.number])
                own = same and x.proxy == y.proxy and near(x, y)
                through = any((f, a) in base and (a, g) in base for a in alias for f in out[x.number]
                              for g in into[y.number])
                if direct or own or through:
                    found.add((x.number, y.number))
        return found

    def coherences(self, events: list[Event], ms: set[Pair], cause: set[Pair]) -> Iterator[set[Pair]]:
        """Every transitive partial order on the writes of each place: initial first, ms and causality related."""
        writes = [e for e in events if e.kind == "W"]
        first = {(a.number, b.number) for a in writes for b in writes
                 if a.place == b.place and a.thread < 0 <= b.thread}
        pairs = [(a.number, b.number) for a in writes for b in writes
                 if a.place == b.place and a.thread >= 0 and b.thread >= 0 and a.number < b.number]
        needed = {(a, b) for a, b in cause if events[a].kind == events[b].kind == "W"
                  and events[a].place == events[b].place}
        for choice in product((None, False, True), repeat=len(pairs)):
            co = first | {(b, a) if c else (a, b) for (a, b), c in zip(pairs, choice, strict=True) if c is not None}
            if any(c is None and p in ms for p, c in zip(pairs, choice, strict=True)):
                continue
            if needed <= co and closure(co) == co and acyclic(co):
                yield co

    def allowed(self, events: list[Event], po: set[Pair], rmw: set[Pair], rf: set[Pair], ms: set[Pair],
                cause: set[Pair], co: set[Pair]) -> bool:
        fr = compose({(r, w) for w, r in rf}, co)
        if rmw & compose(ms & fr, ms & co):
            return False
        local = {(a, b) for a, b in po if events[a].kind in "RW" and events[b].kind in "RW"
                 and events[a].address == events[b].address}
        if self.model.sc_per_location and not acyclic((ms & (rf | co | fr)) | local):
            return False
        return all(a != b for a, b in compose(rf | fr, cause))

    def race(self, events: list[Event], ms: set[Pair], cause: set[Pair]) -> bool:
        memory = [e for e in events if e.kind in "RW" and e.thread >= 0]
        return any(a.place == b.place and a.number < b.number and "W" in (a.kind, b.kind)
                   and not {(a.number, b.number), (b.number, a.number)} & (ms | cause) for a in memory for b in memory)
