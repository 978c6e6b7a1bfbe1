"""The paths of each thread: every sequence of events it may run through, for each choice of the values it reads.

Loops that only wait (no write and no barrier between two visits in the same state) are cut at the second visit: the
shorter path has fewer events and hence fewer constraints. Such a cut is kept as a *stuck* path for the liveness notes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, assert_never

from warpproof.core import InputError, Unsupported
from warpproof.sync.conditions import terms_of
from warpproof.sync.events import Event, Kind, Layout, check_overlap
from warpproof.sync.program import (
    Address,
    Atomic,
    Barrier,
    Branch,
    Fence,
    Goto,
    Label,
    Litmus,
    Load,
    Local,
    Operand,
    ProxyFence,
    Register,
    Store,
    Thread,
    ThreadRegister,
    Value,
)

MAX_VISITS: Final = 4
MAX_PATHS: Final = 20_000
MAX_ROUNDS: Final = 64
MAX_EVENTS: Final = 120
Cost = Mapping[Address, int]
Domain = dict[Address, dict[Value, Cost]]
_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "gt": lambda a, b: a > b,
    "le": lambda a, b: a <= b, "ge": lambda a, b: a >= b,
}


@dataclass(frozen=True, slots=True)
class Path:
    """One way through a thread: events, the value of each, and the registers at its end.

    `stuck` holds the reads of the last turn of a waiting loop that the path never leaves, None for a path that ends.
    """

    events: tuple[Event, ...]
    values: tuple[Value | None, ...]
    registers: Mapping[str, Value]
    stuck: tuple[int, ...] | None = None


@dataclass(slots=True)
class _State:
    pc: int
    registers: dict[str, Value]
    taints: dict[str, frozenset[int]]
    control: frozenset[int]
    events: tuple[Event, ...]
    values: tuple[Value | None, ...]
    history: tuple[tuple[tuple[object, ...], int], ...]


@dataclass(slots=True)
class _Explorer:
    thread: Thread
    layout: Layout
    domain: Domain
    observed: frozenset[str]
    repeats: int
    bounded: bool = False
    labels: dict[str, int] = field(default_factory=dict)
    live: list[frozenset[str]] = field(default_factory=list)
    found: int = 0

    def prepare(self) -> None:
        """Fill in the targets of jumps and the registers alive at each instruction."""
        code = self.thread.instructions
        self.labels = {i.operation.name: at for at, i in enumerate(code) if isinstance(i.operation, Label)}
        self.live = [frozenset()] * len(code) + [self.observed]
        changed = True
        while changed:
            changed = False
            for at in range(len(code) - 1, -1, -1):
                operation = code[at].operation
                after = self.live[at + 1] if not isinstance(operation, Goto) else frozenset()
                if isinstance(operation, Goto | Branch):
                    after |= self.live[self.labels[operation.target]]
                reads, writes = _uses(operation)
                alive = (after - writes) | reads
                changed, self.live[at] = changed or alive != self.live[at], alive

    def fail(self, state: _State, message: str) -> InputError:
        instruction = self.thread.instructions[state.pc]
        return InputError("SYN205", f"{message} in {instruction.text!r}", instruction.span)

    def run(self, state: _State) -> Iterator[Path]:
        """Every path from the state on."""
        code = self.thread.instructions
        while state.pc < len(code):
            operation = code[state.pc].operation
            match operation:
                case Load() | Atomic():
                    yield from self._read(state, operation)
                    return
                case Label():
                    verdict = self._enter(state)
                    if verdict is not None:
                        yield from verdict
                        return
                case Goto(target):
                    state.pc = self.labels[target]
                    continue
                case Branch():
                    state.pc = self._branch(state, operation)
                    continue
                case Local():
                    self._local(state, operation)
                case Store():
                    for element, value in enumerate(operation.values):
                        self._write(state, operation, element, *self._value(state, value))
                case Fence(sem, scope):
                    self._add(state, Event(Kind.FENCE, state.pc, sem, scope))
                case ProxyFence(proxy):
                    self._add(state, Event(Kind.PROXY_FENCE, state.pc, proxy=proxy))
                case Barrier():
                    self._barrier(state, operation)
                case _:
                    assert_never(operation)
            state.pc += 1
        yield self._finish(state, None)

    def _finish(self, state: _State, stuck: tuple[int, ...] | None) -> Path:
        self.found += 1
        if self.found > MAX_PATHS:
            raise Unsupported("litmus test", f"more than {MAX_PATHS} paths through {self.thread.name}")
        return Path(state.events, state.values, dict(state.registers), stuck)

    def _add(self, state: _State, event: Event, value: Value | None = None) -> None:
        state.events += (event,)
        state.values += (value,)

    def _value(self, state: _State, operand: Operand) -> tuple[Value, frozenset[int]]:
        if isinstance(operand, Register):
            return state.registers.get(operand.name, 0), state.taints.get(operand.name, frozenset())
        return operand, frozenset()

    def _integer(self, state: _State, operand: Operand) -> int:
        value, _ = self._value(state, operand)
        if not isinstance(value, int):
            raise self.fail(state, f"the address {value} is used as a number")
        return value

    def _address(self, state: _State, operation: Load | Store | Atomic, element: int) -> tuple[Address, frozenset[int]]:
        value, taint = self._value(state, operation.address)
        if not isinstance(value, Address):
            raise self.fail(state, f"the number {value} is used as an address")
        return self.layout.address(replace(value, offset=value.offset + element * (operation.width or 4))), taint

    def _write(self, state: _State, operation: Store | Atomic, element: int, value: Value,
               taint: frozenset[int]) -> None:
        address, where = self._address(state, operation, element)
        atomic = isinstance(operation, Atomic)
        sem = {"acquire": "relaxed"}.get(operation.sem, operation.sem) if atomic else operation.sem
        self._add(state, Event(Kind.WRITE, state.pc, sem, operation.scope, operation.proxy, address, operation.width,
                               atomic, isinstance(operation, Atomic) and operation.destination is None,
                               taint | where | state.control), value)

    def _read(self, state: _State, operation: Load | Atomic, element: int = 0) -> Iterator[Path]:
        if len(state.events) > MAX_EVENTS:
            raise Unsupported("litmus test", f"a path through {self.thread.name} has more than {MAX_EVENTS} events")
        address, where = self._address(state, operation, element)
        atomic = isinstance(operation, Atomic)
        sem = {"release": "relaxed"}.get(operation.sem, operation.sem) if atomic else operation.sem
        event = Event(Kind.READ, state.pc, sem, operation.scope, operation.proxy, address, operation.width, atomic,
                      isinstance(operation, Atomic) and operation.destination is None, where | state.control)
        location = self.layout.location(address)
        for value in self.domain.get(location) or {self.layout.initial_value(location): {}}:
            branch = _State(state.pc, dict(state.registers), dict(state.taints), state.control, (*state.events, event),
                            (*state.values, value), state.history)
            mine = frozenset({len(state.events)})
            if isinstance(operation, Atomic):
                self._update(branch, operation, value, mine)
                name = operation.destination
            else:
                name = operation.destinations[element]
            if name is not None:
                branch.registers[name], branch.taints[name] = value, mine
            if isinstance(operation, Load) and element + 1 < len(operation.destinations):
                yield from self._read(branch, operation, element + 1)
                continue
            branch.pc += 1
            yield from self.run(branch)

    def _update(self, state: _State, operation: Atomic, old: Value, mine: frozenset[int]) -> None:
        given = [self._value(state, o) for o in operation.operands]
        if operation.operation == "cas":
            (expected, taint), (new, more) = given
            if old == expected:
                self._write(state, operation, 0, new, mine | taint | more)
            # The read itself is not a partner of any write then: it stays a plain strong read.
            elif state.events[-1].rmw:
                state.events = (*state.events[:-1], replace(state.events[-1], rmw=False))
            return
        if operation.operation == "exch":
            self._write(state, operation, 0, *given[0])
            return
        value, taint = given[0] if given else (None, frozenset())
        if not isinstance(old, int) or isinstance(value, Address):
            raise self.fail(state, "arithmetic on an address")
        self._write(state, operation, 0, atomic_result(operation.operation, old, value), mine | taint)

    def _local(self, state: _State, operation: Local) -> None:
        left, taint = self._value(state, operation.left)
        right, more = self._value(state, operation.right)
        if operation.operation == "mov":
            result: Value = left
        elif isinstance(left, Address) and isinstance(right, int) and operation.operation in ("add", "sub"):
            result = replace(left, offset=left.offset + (right if operation.operation == "add" else -right))
        elif isinstance(left, int) and isinstance(right, int):
            result = arithmetic(operation.operation, left, right)
        else:
            raise self.fail(state, "arithmetic on an address")
        state.registers[operation.destination], state.taints[operation.destination] = result, taint | more

    def _branch(self, state: _State, operation: Branch) -> int:
        left, taint = self._value(state, operation.left)
        right, more = self._value(state, operation.right)
        state.control |= taint | more
        if isinstance(left, int) and isinstance(right, int):
            taken = _COMPARE[operation.comparison](left, right)
        elif operation.comparison in ("eq", "ne"):
            taken = (left == right) == (operation.comparison == "eq")
        else:
            raise self.fail(state, "an address is compared")
        return self.labels[operation.target] if taken else state.pc + 1

    def _barrier(self, state: _State, operation: Barrier) -> None:
        quorum = None if operation.quorum is None else self._integer(state, operation.quorum)
        resource = self._integer(state, operation.resource)
        taint = state.control
        for operand in (operation.resource, operation.quorum):
            if operand is not None:
                taint |= self._value(state, operand)[1]
        self._add(state, Event(Kind.BARRIER, state.pc, after=taint, level=operation.level,
                               key=(operation.instance, resource), arrives=operation.arrives, waits=operation.waits,
                               orders=operation.orders, quorum=quorum))

    def _enter(self, state: _State) -> Iterator[Path] | None:
        """At a label: None to go on, else the paths that end here."""
        names = sorted(self.live[state.pc])
        key = (state.pc, *(state.registers.get(n, 0) for n in names))
        same = [at for k, at in state.history if k == key]
        waiting = [at for at in same if all(e.kind in (Kind.READ, Kind.FENCE, Kind.PROXY_FENCE) and not e.rmw
                                            for e in state.events[at:])]
        visits = sum(k[0] == state.pc for k, _ in state.history)
        if waiting and len(same) > self.repeats:
            turn = range(waiting[-1], len(state.events))
            reads = tuple(at for at in turn if state.events[at].kind is Kind.READ)
            return iter([self._finish(state, reads)])
        if visits >= MAX_VISITS + self.repeats:
            self.bounded = True
            return iter(())
        state.history += ((key, len(state.events)),)
        return None


def _uses(operation: object) -> tuple[frozenset[str], frozenset[str]]:
    match operation:
        case Load(destinations, address):
            return _names(address), frozenset(destinations)
        case Store(address, values):
            return _names(address, *values), frozenset()
        case Atomic(destination, _, address, operands):
            return _names(address, *operands), frozenset({destination} if destination else ())
        case Local(destination, _, left, right):
            return _names(left, right), frozenset({destination})
        case Branch(_, left, right):
            return _names(left, right), frozenset()
        case Barrier(resource=resource, quorum=quorum):
            return _names(resource, *(() if quorum is None else (quorum,))), frozenset()
    return frozenset(), frozenset()


def _names(*operands: Operand) -> frozenset[str]:
    return frozenset(o.name for o in operands if isinstance(o, Register))


def _wrap(value: int) -> int:
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def arithmetic(operation: str, left: int, right: int) -> int:
    """The 64-bit signed result; a division by zero gives all ones (docs/ledger.md, integer-division)."""
    match operation:
        case "add":
            return _wrap(left + right)
        case "sub":
            return _wrap(left - right)
        case "mul":
            return _wrap(left * right)
        case "div":
            return -1 if right == 0 else _wrap(abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1))
        case "and":
            return left & right
        case "or":
            return left | right
        case "xor":
            return left ^ right
    raise AssertionError(operation)


def atomic_result(operation: str, old: int, operand: int | None) -> int:
    """What an atomic writes; `inc` and `dec` without an operand just count."""
    match operation:
        case "inc":
            return 0 if operand is not None and old >= operand else _wrap(old + 1)
        case "dec":
            return operand if operand is not None and (old == 0 or old > operand) else _wrap(old - 1)
        case "min" | "max":
            return (min if operation == "min" else max)(old, operand or 0)
    return arithmetic(operation, old, operand or 0)


def thread_paths(test: Litmus, layout: Layout, repeats: int = 0) -> tuple[list[list[Path]], bool]:
    """The paths of each thread, and whether some loop was cut off so that paths may be missing.

    The values read at a location are those that some write may put there: a fixpoint, in which a value is kept only if
    it can come about with as many writes per location as the paths have. Raises Unsupported when there are too many
    paths, InputError SYN205 for arithmetic on addresses.
    """
    domain: Domain = {}
    for _ in range(MAX_ROUNDS):
        paths: list[list[Path]] = []
        bounded = False
        for index, thread in enumerate(test.threads):
            registers = {r.name: v for r, v in test.registers if r.thread == index}
            observed = frozenset(_observed(test, index))
            explorer = _Explorer(thread, layout, domain, observed, repeats)
            explorer.prepare()
            paths.append(list(explorer.run(_State(0, dict(registers), {}, frozenset(), (), (), ()))))
            bounded |= explorer.bounded
        grown = _domain(paths, layout, domain)
        if grown == domain:
            check_overlap([e for per in paths for p in per for e in p.events], layout)
            return paths, bounded
        domain = grown
    raise Unsupported("litmus test", f"the values did not settle in {MAX_ROUNDS} rounds")


def _observed(test: Litmus, index: int) -> Iterator[str]:
    for term in (*terms_of(test.condition), *terms_of(test.where), *test.observed):
        if isinstance(term, ThreadRegister) and term.thread == index:
            yield term.name


def _domain(paths: list[list[Path]], layout: Layout, old: Domain) -> Domain:
    limits: dict[Address, int] = {}
    for per in paths:
        most: dict[Address, int] = {}
        for events in {p.events for p in per}:
            count: dict[Address, int] = {}
            for event in events:
                if event.kind is Kind.WRITE and event.address is not None:
                    location = layout.location(event.address)
                    count[location] = count.get(location, 0) + 1
            for location, n in count.items():
                most[location] = max(n, most.get(location, 0))
        for location, n in most.items():
            limits[location] = limits.get(location, 0) + n
    new: Domain = {}
    for per in paths:
        for path in per:
            for at, event in enumerate(path.events):
                if event.address is not None:
                    location = layout.location(event.address)
                    values = new.setdefault(location, {layout.initial_value(location): {}})
                    value = path.values[at]
                    if event.kind is Kind.WRITE and value is not None:
                        cost = _cost(path, at, layout, old)
                        if all(cost[p] <= limits.get(p, 0) for p in cost):
                            values[value] = _cheaper(values.get(value), cost)
    return new


def _cost(path: Path, at: int, layout: Layout, domain: Domain) -> dict[Address, int]:
    cost: dict[Address, int] = {}
    for source in path.events[at].after:
        address, value = path.events[source].address, path.values[source]
        if address is None or value is None:
            continue
        location = layout.location(address)
        for place, n in domain.get(location, {}).get(value, {}).items():
            cost[place] = max(n, cost.get(place, 0))
    address = path.events[at].address
    if address is not None:
        location = layout.location(address)
        cost[location] = cost.get(location, 0) + 1
    return cost


def _cheaper(known: Cost | None, cost: Cost) -> Cost:
    return cost if known is None else {p: min(known[p], cost[p]) for p in known.keys() & cost.keys()}
