"""Communication between CTAs in the symbolic machine: tickets, waits, and loads of what another CTA stored.

The kernel is run twice. The first run records every store and every strong access; in the second a load that follows a
wait, or the last ticket of a counter, is answered with the value that the CTA which was waited for has stored. That the
order holds in every execution is claimed later, from the recorded events (`safety.protocols`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Atomic, Float, Int, Load, Pack, Store, Undef, Value
from warpproof.machine.instances import Instances
from warpproof.machine.locks import Locks
from warpproof.machine.mixing import permute
from warpproof.machine.setup import BufferInfo
from warpproof.machine.trace import Access, Handover, SyncEvent, Trace
from warpproof.machine.turns import Turns
from warpproof.machine.uses import reads, writes
from warpproof.terms import Access as Leaf
from warpproof.terms import Poly, Pred, const

if TYPE_CHECKING:
    from warpproof.machine.flow import Loop
    from warpproof.machine.symbolic import SymbolicMachine
    from warpproof.ptx import Instruction

OPAQUE: Final = -1
"""The version of a buffer that other CTAs have written."""
STRONG: Final = frozenset({"relaxed", "acquire", "volatile", "mmio"})
_QUIET: Final = frozenset({
    "ld", "atom", "setp", "mov", "and", "or", "xor", "not", "cvt", "selp", "add", "sub", "shl", "shr", "bra", "membar",
    "fence", "nanosleep", "cvta",
})


def crosses(instruction: Instruction) -> bool:
    """True for a strong access or an atomic with a result: what CTAs can talk through."""
    strong = STRONG | {"release", "acq_rel"}
    access = instruction.name in ("ld", "st") and bool(strong & set(instruction.modifiers))
    return access or instruction.name == "atom"


class Crossing:
    """The protocol side of one machine. `survey` is the trace of the run before, if there was one."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena
        self.survey: Trace | None = None
        self.opaque = False  # answer loads by the last ticket with an unknown element
        self.locks = Locks(machine)
        self.turns = Turns(machine)
        self._polled: list[SyncEvent] | None = None  # in a waiting loop, what has been read

    # ------------------------------------------------------------------ events
    def _event(self, kind: str, semantics: str = "", scope: str = "", **more: Any) -> SyncEvent:
        m = self.machine
        held = self.locks.held or self.turns.held
        inside = held.count if held is not None else 0
        event = SyncEvent(kind, m.current, m.path.condition(), tuple(m.path.loops), len(m.trace.accesses), semantics,
                          scope, **{"inside": inside, **more})
        m.trace.sync.append(event)
        return event

    def fence(self, semantics: str, scope: str) -> None:
        """Record a fence."""
        self._event("fence", semantics, scope)

    def barrier(self) -> None:
        """Record a barrier of the whole CTA."""
        if self.locks.held is not None:
            self.turns.enter(self.locks.held)
            self.locks.held = None
        self._event("barrier")

    def _place(self, effect: Atomic | Load | Store, space: str, name: str, offset: Poly) -> tuple[BufferInfo, Poly]:
        if space != "global":
            raise Unsupported(f"{effect.semantics} access", f"through {space} memory: not modelled yet")
        info, index, per = self.machine.answers.elements(name, offset, effect.type, 1)
        if per != 1 or info.kind not in ("u", "s"):
            raise Unsupported(f"{effect.semantics} access", f"{name} does not hold integers of this size")
        return info, index

    def store(self, effect: Store, space: str, name: str, offset: Poly) -> None:
        """A strong store."""
        info, index = self._place(effect, space, name, offset)
        if len(effect.values) != 1:
            raise Unsupported(f"{effect.semantics} access", "a strong store of a vector")
        value: Any = effect.values[0]
        if self.locks.held is not None and self.machine.dom.integers.poly(value).as_int() == 0:
            self._unlock(effect, info, index, "st")
            return
        self._write(effect, info, index, value, "st")

    def _write(self, effect: Atomic | Store, info: BufferInfo, index: Poly, value: Value, how: str) -> None:
        """A strong write of a value. By the thread that drew the last ticket of the very counter it counts as a weak
        one, of which the memory model promises less."""
        given = self.machine.dom.integers.poly(value)
        mine = [e for e in self.machine.trace.sync if e.kind == "ticket" and (e.buffer, e.index) == (info.name, index)]
        if len(mine) == 1 and self._same_thread_path(mine[0]) and self._last(mine[0]):
            self.machine.answers.record("store", info, index, value)
            return
        self.machine.answers.record("sync", info, index)
        if self.turns.passes(info.name, index, given):
            self._pass(effect, info, index, how)
            return
        self._event("write", effect.semantics, effect.scope, buffer=info.name, index=index, value=given, how=how)

    def _pass(self, effect: Atomic | Store, info: BufferInfo, index: Poly, how: str) -> None:
        whole = self.turns.held is not None and self.turns.held.number is None
        count = self.turns.end()
        kind = "unlock" if whole else "pass"
        self._event(kind, effect.semantics, effect.scope, buffer=info.name, index=index, how=how, inside=count,
                    whole=whole)

    def load(self, effect: Load, space: str, name: str, offset: Poly) -> Value:
        """A strong load: only a waiting loop knows what it reads."""
        info, index = self._place(effect, space, name, offset)
        if self._polled is None or effect.count != 1:
            raise Unsupported(f"{effect.semantics} access", "what a strong load outside of a waiting loop reads is not "
                              "modelled yet")
        self.machine.answers.record("sync", info, index)
        return self._read(effect, info, index)

    def _read(self, effect: Atomic | Load, info: BufferInfo, index: Poly) -> Value:
        m = self.machine
        alone = int(m.path.mask.sum()) == 1
        if not (alone or index.uniform()) or self.locks.held is not None:
            raise Unsupported("loop", "several lanes wait for different places, or one that holds a lock")
        high = (1 << info.width) - 1 if info.kind == "u" else (1 << info.width - 1) - 1
        low = high - (1 << info.width) + 1
        seen = self.arena.variable(self.arena.fresh("polled", f"{info.name} after the wait", low, high))
        # An update that leaves what it finds is a load to all others; what it may release is not counted on.
        semantics = {"acq_rel": "acquire", "release": "relaxed"}.get(effect.semantics, effect.semantics)
        event = self._event("poll", semantics, effect.scope, buffer=info.name, index=index, value=seen)
        assert self._polled is not None
        self._polled.append(event)
        return Int(info.width, seen)

    def plain(self, effect: Load | Store, space: str, name: str) -> bool:
        """A weak access, or a strong one that may be taken for one: the memory model promises less of it then, and
        nothing is said through floats, or by integers that are read without waiting for a value."""
        if effect.semantics == "weak" or space != "global":
            return True
        info = self.machine.setup.buffers.get(name)
        numbers = info is not None and info.kind in ("f", "bf")
        return numbers or (isinstance(effect, Load) and self._polled is None)

    # ------------------------------------------------------------------ tickets
    def update(self, effect: Atomic) -> Value | None:
        """An atomic that counts CTAs: its result is the CTA's ticket, from 0 up and different in every CTA."""
        m = self.machine
        space, name, offset = m.answers.space(effect)
        if self._polled is not None and self._keeps(effect):
            info, index = self._place(effect, space, name, offset)
            m.answers.record("sync", info, index)
            return self._read(effect, info, index)
        if self._polled is not None and effect.op in ("cas", "exch"):
            return self._try(effect, space, name, offset)
        why = self._no_ticket(effect, space, name)
        if why:
            raise Unsupported("Atomic", f"no symbolic meaning yet: {why}")
        info, index = self._place(effect, space, name, offset)
        if index.as_int() is None:
            raise Unsupported("Atomic", "no symbolic meaning yet: the counter depends on the CTA or thread")
        m.answers.record("sync", info, index)
        ticket = m.setup.tickets[name]
        self._event("ticket", effect.semantics, effect.scope, buffer=name, index=index, value=ticket,
                    how=effect.op if self._wraps(effect) else "atom" if effect.returns else "red")
        return Int(effect.type.width, ticket) if effect.returns else None

    def counts(self, effect: Atomic) -> bool:
        """An update whose result nobody uses counts CTAs, and the kernel waits for what it counts."""
        m = self.machine
        if not any(crosses(x) for x in m.kernel.code):
            return False
        split = m.answers.by_base(effect)
        space, name, _ = ("", "", None) if split else m.answers.space(effect)
        waited = self.survey is None or any(e.kind == "poll" and e.buffer == name for e in self.survey.sync)
        return waited and not split and self._no_ticket(effect, space, name) == ""

    def _keeps(self, effect: Atomic) -> bool:
        """An update that leaves what it finds: of 0 added, or of a value compared with and exchanged for itself."""
        given = [self.machine.dom.integers.poly(x) for x in effect.args]  # type: ignore[arg-type]
        if effect.op == "cas":
            return bool(given[0] == given[1])
        return effect.op in ("add", "or", "xor") and given[0].as_int() == 0

    def _try(self, effect: Atomic, space: str, name: str, offset: Poly) -> Value:
        """One turn of a loop that waits until a compare-and-swap, or an exchange, takes a lock."""
        m = self.machine
        info, index = self._place(effect, space, name, offset)
        given = [m.dom.integers.poly(x).as_int() for x in effect.args]  # type: ignore[arg-type]
        free, taken = given if effect.op == "cas" else (0, given[0])
        if not info.zero or free != 0 or not taken or int(m.path.mask.sum()) != 1:
            raise Unsupported("lock", "not a lock that one thread takes by swapping 0 for a constant")
        m.answers.record("sync", info, index)
        seen = self.arena.variable(self.arena.fresh("polled", f"{name} before it is taken", 0, (1 << info.width) - 1))
        event = self._event("lock", effect.semantics, effect.scope, buffer=name, index=index, value=seen, how=effect.op)
        assert self._polled is not None
        self._polled.append(event)
        return Int(effect.type.width, seen)

    def writes(self, effect: Atomic, used: bool) -> bool:
        """An update that is a strong write: an exchange whose result nobody uses, 1 more at the end of a turn, or
        what one thread adds to a flag that is waited for."""
        if used or effect.type.floating or self._polled is not None or self.machine.answers.by_base(effect):
            return False
        space, name, _ = self.machine.answers.space(effect)
        if effect.op == "add" and self.turns.held is None and self._raises(effect, name):
            return True
        held = self.turns.held
        turn = held is not None and held.number is not None and effect.op == "add" and held.counter == name
        return space == "global" and (effect.op == "exch" or turn)

    def _raises(self, effect: Atomic, name: str) -> bool:
        """A constant added, by one thread, to a flag that starts at zero and that CTAs wait for."""
        m, info = self.machine, self.machine.setup.buffers.get(name)
        value: Any = effect.args[0]
        waited = self.survey is not None and any(e.kind == "poll" and e.buffer == name for e in self.survey.sync)
        single = int(m.path.mask.sum()) == 1 and not m.path.loops
        added = m.dom.integers.poly(value).as_int()
        flag = info is not None and info.zero and info.kind in ("u", "s")
        return bool(added and flag and single and (waited or self.survey is None) and m.path.symbolic().op != "true")

    def write(self, effect: Atomic) -> Value | None:
        """A strong write by an update: of what it exchanges for, of what it adds to a flag, which is 0 if nothing else
        is ever written to it (as hand-overs ask), or at the end of turn k of k + 1.

        In its turn nobody else writes the counter, so that adding to it finds the turn's number there.
        """
        space, name, offset = self.machine.answers.space(effect)
        info, index = self._place(effect, space, name, offset)
        value: Any = effect.args[0]
        given = self.machine.dom.integers.poly(value)
        if effect.op == "add" and self.turns.held is not None and self.turns.held.number is not None:
            value = Int(effect.type.width, self.turns.held.number + given)
            if not self.turns.passes(name, index, self.machine.dom.integers.poly(value)):
                raise Unsupported("turn", "what is added to the counter of turns does not pass the turn on")
        if effect.op == "exch" and self.locks.held is not None and given.as_int() == 0:
            self._unlock(effect, info, index, "exch")
        else:
            self._write(effect, info, index, value, effect.op)
        return Undef(effect.type.width, "the old value of a lock or flag") if effect.returns else None

    def _unlock(self, effect: Atomic | Store, info: BufferInfo, index: Poly, how: str) -> None:
        inside = self.locks.held.count if self.locks.held is not None else 0
        self.locks.release(info.name, index)
        self.machine.answers.record("sync", info, index)
        self._event("unlock", effect.semantics, effect.scope, buffer=info.name, index=index, how=how, inside=inside)

    def _no_ticket(self, effect: Atomic, space: str, name: str) -> str:
        """Why an atomic does not count every CTA once; empty if it does."""
        m = self.machine
        step: Any = effect.args[0]
        by = m.dom.integers.poly(step).as_int() if isinstance(step, Int) else None
        if self._polled is not None:
            return "an atomic in a waiting loop"
        if space != "global" or name not in m.setup.tickets:
            return "not a counter that starts at zero"
        if not self._wraps(effect) and (effect.op != "add" or by != 1):
            return "its result depends on the order of the threads"
        if int(m.path.mask.sum()) != 1 or m.path.loops or m.path.symbolic().op != "true":
            return "not executed once by one thread of every CTA"
        return ""

    def _wraps(self, effect: Atomic) -> bool:
        """An increment that goes back to 0 exactly when all CTAs have counted."""
        given: Any = effect.args[0]
        return effect.op == "inc" and self.machine.dom.integers.poly(given) == self.machine.setup.ctas - 1

    # ------------------------------------------------------------------ waiting loops
    @contextmanager
    def polling(self) -> Iterator[list[SyncEvent]]:
        """What strong loads read in the meantime are values of a waiting loop; the list gets their events."""
        self._polled = []
        try:
            yield self._polled
        finally:
            self._polled = None

    @staticmethod
    def crosses(instruction: Instruction) -> bool:
        """A strong access or an atomic with a result."""
        return crosses(instruction)

    def waits(self, loop: Loop) -> bool:
        """True for a loop that only reads a strong value again and again: one block, no carried register, one load."""
        graph, code = self.machine.graph, self.machine.kernel.code
        if loop.body != {loop.header} or len(loop.exits) != 1:
            return False
        block = graph.blocks[loop.header]
        body = code[block.start : block.stop]
        loads = [x for x in body if x.name in ("ld", "atom")]
        if len(loads) != 1 or any(x.name not in _QUIET for x in body) or self._carried(body):
            return False
        if not crosses(loads[0]):
            place = f"PTX line {loads[0].span.line} `{loads[0].opcode}`"
            raise Unsupported("loop", f"it waits on a weak load ({place}), which may be taken out of the loop")
        return True

    def _carried(self, body: tuple[Instruction, ...]) -> bool:
        written: set[str] = set()
        targets = {r for x in body for r in writes(x)}
        for x in body:
            if (reads(x) & targets) - written or (x.guard is not None and writes(x)):
                return True
            written |= writes(x)
        return False

    def wait(self, header: int, body: Callable[[int, int], Pred]) -> int:
        """Run a waiting loop once, as the iteration that ends it; the block where control goes on.

        Inside another loop one unknown would stand for what is read in all its turns.
        """
        m = self.machine
        if m.path.loops:
            raise Unsupported("loop", "a waiting loop inside a loop of unknown length")
        loop = m.graph.loops[header]
        test, out = loop.exits[0]
        inside = next(s for s in m.graph.successors[test] if s != out)
        with self.polling() as polled:
            go = body(test, inside)
        if len(polled) != 1:
            raise Unsupported("loop", "a waiting loop without a strong load")
        if polled[0].kind == "lock":
            self._locked(polled[0], self.arena.negate(go))
            return out
        at = next(k for k, e in enumerate(m.trace.sync) if e is polled[0])
        m.trace.sync[at] = replace(polled[0], until=self.arena.negate(go))
        number = self.turns.number(m.trace.sync[at])
        if int(m.path.mask.sum()) != 1:
            self._each(header, m.trace.sync[at], number)
        if number is None:
            self._awaited(at)
        else:
            m.trace.sync[at] = replace(m.trace.sync[at], kind="turn", awaited=number)
            self.turns.begin(m.trace.sync[at], number)
        return out

    def _each(self, header: int, event: SyncEvent, number: Poly | None) -> None:
        """Several lanes wait, each until its own load ends its loop: what each has read is not told apart, and lost."""
        m = self.machine
        if event.kind != "poll" or number is not None or event.until is None or not event.until.uniform:
            raise Unsupported("loop", "several lanes wait for a turn, or each for another value")
        block = m.graph.blocks[header]
        for x in m.kernel.code[block.start : block.stop]:
            for name in writes(x):
                m.registers.pop(name, None)

    def _locked(self, event: SyncEvent, until: Pred) -> None:
        """The loop ends exactly when the lock was free."""
        ((atom,),) = event.value.terms
        free = self.arena.substitute_pred(until, {atom: const(0)})
        zero = self.arena.eq(event.value)
        if free.op != "true" or not self.machine.oracle.implied(until, zero, hard=True):
            raise Unsupported("lock", "a loop that does not wait for the lock to be free")
        self.locks.take(event.buffer, event.index)

    def _awaited(self, at: int) -> None:
        """Note which CTA surely ends the wait. What ends it is known of the last value read only if some value does."""
        events = self.machine.trace.sync
        poll = events[at]
        if self.survey is None or poll.until is None:
            return
        solver = Instances(self.machine)
        writes = [e for e in self.survey.sync if e.kind == "write" and e.buffer == poll.buffer and not e.loops]
        if any(solver.ends_by(poll, e.value) for e in writes):
            self.machine.learn(poll.until)
        for given in writes:
            sigma = solver.by_flag(given, poll, self.survey)
            if sigma is not None and solver.happens(solver.plain(given), sigma):
                ((a, value),) = sigma.items()
                own = self.arena.variable(self.arena.atoms[a]) if a in solver.tickets else None
                events[at] = replace(poll, awaited=value, drawn=own)

    # ------------------------------------------------------------------ values of other CTAs
    def handed_over(self, info: BufferInfo, index: Poly) -> Value | None:
        """An element that another CTA stored before something that this CTA has seen; None if nothing tells so."""
        if not info.writable or info.kind not in ("f", "bf"):
            return None
        inside = self._within_cta(info, index)
        if inside is not None or self.survey is None:
            return inside
        stores = [a for a in self.survey.accesses if a.kind == "store" and a.buffer == info.name and not a.loops]
        heard = [e for e in self.machine.trace.sync if e.kind in ("ticket", "poll") and self._same_thread_path(e)]
        for event in reversed(heard):
            for store in stores:
                found = self._answer(info, index, store, event)
                if found is not None:
                    return found
        return None

    def _within_cta(self, info: BufferInfo, index: Poly) -> Value | None:
        """The value that a thread of this CTA stored before a barrier that lies behind."""
        m = self.machine
        barriers = [e for e in m.trace.sync if e.kind == "barrier"] if not m.path.loops else []
        stores = any(a.kind == "store" and a.buffer == info.name for a in m.trace.accesses) if barriers else False
        if not stores:
            return None
        solver = Instances(m)
        barriers = [e for e in barriers if self._same_thread_path(e)]
        for store in [a for a in reversed(m.trace.accesses) if a.kind == "store" and a.buffer == info.name]:
            meeting = next((e for e in barriers if e.at > store.order), None)
            lanes = solver.lanes(store, index, {}) if meeting is not None and not store.loops else None
            if meeting is not None and lanes is not None and solver.executed(store, lanes, {}):
                return self._take(Handover(self._record(info, index), store, meeting, meeting), lanes, {})
        return None

    def _same_thread_path(self, event: SyncEvent) -> bool:
        """Whoever executes the current instruction is in a CTA where the event has happened.

        A condition that differs by lane speaks of the lane that it is read in, and so only of the event's own lanes.
        """
        a = self.arena
        parts = [p for p in a.conjuncts(event.path) if a.mask_of(p) is None]
        masks = [m for m in map(a.mask_of, a.conjuncts(event.path)) if m is not None]
        own = all(m[self.machine.path.mask].all() for m in masks)
        alike = own or all(p.uniform for p in parts)
        return alike and not event.loops and a.implies(self.machine.path.condition(), a.conj(parts))

    def _answer(self, info: BufferInfo, index: Poly, store: Access, event: SyncEvent) -> Value | None:
        solver = Instances(self.machine)
        assert self.survey is not None
        for given in self.survey.sync:
            if given.buffer != event.buffer or given.at <= store.order or given.loops:
                continue
            if given.kind == "ticket" and self._after_all(given, event):
                sigma = solver.by_element(store, index)
            elif given.kind == "write" and event.kind == "poll":
                sigma = solver.by_flag(given, event, self.survey)
            else:
                continue
            lanes = solver.lanes(store, index, sigma) if sigma is not None else None
            if sigma is not None and lanes is not None and solver.executed(store, lanes, sigma):
                self.machine.require("the CTA whose value is read exists", solver.exists(sigma))
                return self._take(Handover(self._record(info, index), store, given, event), lanes, sigma)
        return None

    def _last(self, event: SyncEvent) -> bool:
        """This CTA drew the last ticket: all others have drawn theirs before."""
        return event.how != "red" and self.machine.holds(self.arena.eq(event.value - self.machine.setup.ctas + 1))

    def _after_all(self, given: SyncEvent, event: SyncEvent) -> bool:
        """Behind the event all CTAs have drawn their ticket."""
        if event.kind == "ticket":
            return self._last(event)
        return event.kind == "poll" and given.index == event.index and self.all_drawn(event)

    def all_drawn(self, event: SyncEvent) -> bool:
        """The wait ends only when a counter of CTAs has counted them all."""
        last: Pred = self.arena.le(self.machine.setup.ctas - event.value)
        return event.until is not None and self.machine.oracle.implied(event.until, last, hard=True)

    def _record(self, info: BufferInfo, index: Poly) -> Access:
        self.machine.answers.record("handover", info, index)
        return self.machine.trace.accesses[-1]

    def _take(self, handover: Handover, lanes: Any, sigma: dict[int, Poly]) -> Value:
        self.machine.trace.handovers.append(handover)
        value = handover.store.value
        if self.opaque and handover.given.kind == "ticket" and isinstance(value, Float):
            leaf = Leaf(handover.store.buffer, OPAQUE)
            return Float(value.kind, value.width, self.arena.load(leaf, handover.load.index))
        if value is None:
            raise Unsupported("global memory", f"a store to {handover.store.buffer} without a value")
        return self._moved(permute(self.machine.dom, value, np.asarray(lanes)), sigma)

    def _moved(self, value: Value, sigma: dict[int, Poly]) -> Value:
        put = self.arena.substitution(sigma)
        match value:
            case Float(kind, width, node):
                return Float(kind, width, put.real(node))
            case Int(width, poly):
                return Int(width, put.poly(poly))
            case Pack(width, parts):
                return Pack(width, tuple(self._moved(p, sigma) for p in parts))
        return value


