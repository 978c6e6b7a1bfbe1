"""Events of an execution, and where symbols live: virtual and physical locations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from warpproof.core import Unsupported
from warpproof.sync.model import Scope
from warpproof.sync.program import GENERIC, Address, Litmus, Value


class Kind(Enum):
    """What an event does."""

    READ = "R"
    WRITE = "W"
    FENCE = "F"
    PROXY_FENCE = "P"
    BARRIER = "B"


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a thread's path, without the value it reads or writes.

    `address` is virtual; `after` the earlier reads of the path it depends on; `rmw` marks both halves of an atomic (the
    write follows its read); `red` those of a reduction. The barrier fields are as in `program.Barrier`.
    """

    kind: Kind
    instruction: int
    sem: str = "weak"
    scope: Scope | None = None
    proxy: str = GENERIC
    address: Address | None = None
    width: int = 0
    rmw: bool = False
    red: bool = False
    after: frozenset[int] = frozenset()
    level: str = ""
    key: tuple[Value, ...] = ()
    arrives: bool = False
    waits: bool = False
    orders: bool = True
    quorum: int | None = None

    @property
    def is_memory(self) -> bool:
        """Whether it reads or writes memory."""
        return self.kind in (Kind.READ, Kind.WRITE)

    @property
    def acquires(self) -> bool:
        """Whether it is an acquire read, or a fence that acquires."""
        wanted = ("acquire", "acq_rel", "sc") if self.kind is Kind.FENCE else ("acquire", "acq_rel")
        return self.kind in (Kind.READ, Kind.FENCE) and self.sem in wanted

    @property
    def releases(self) -> bool:
        """Whether it is a release write, or a fence that releases."""
        wanted = ("release", "acq_rel", "sc") if self.kind is Kind.FENCE else ("release", "acq_rel")
        return self.kind in (Kind.WRITE, Kind.FENCE) and self.sem in wanted

    @property
    def strong(self) -> bool:
        """Whether it is a strong operation (PTX 8.4): a fence, or a memory operation that is not weak."""
        return self.kind is Kind.FENCE or (self.is_memory and self.sem != "weak")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where each symbol lives: its virtual symbol (proxy aliases share one) and its physical symbol."""

    virtual: dict[str, str]
    physical: dict[str, str]
    initial: dict[str, Value]

    def address(self, address: Address) -> Address:
        """The virtual address in its canonical symbol."""
        return Address(self.virtual[address.symbol], address.offset)

    def location(self, address: Address) -> Address:
        """The physical location of an address."""
        return Address(self.physical[address.symbol], address.offset)

    def initial_value(self, location: Address) -> Value:
        """What the hypothetical initial write (PTX 8.2.6) wrote to the physical location; 0 unless declared."""
        return self.initial.get(location.symbol, 0) if location.offset == 0 else 0


def layout_of(test: Litmus) -> Layout:
    """The layout that the test's declarations give."""
    virtual: dict[str, str] = {}
    physical: dict[str, str] = {}
    initial: dict[str, Value] = {}
    for variable in test.variables:
        name = variable.name
        if not variable.alias_of:
            virtual[name] = physical[name] = name
            initial[name] = variable.value
            continue
        physical[name] = physical[variable.alias_of]
        virtual[name] = name if variable.proxy == GENERIC else virtual[variable.alias_of]
    return Layout(virtual, physical, initial)


def check_overlap(events: list[Event], layout: Layout) -> None:
    """Returns only if accesses overlap completely or not at all; partial overlap leaves the model (PTX 8.7.2)."""
    ranges: dict[str, dict[int, int]] = {}
    for event in events:
        if event.address is None:
            continue
        location = layout.location(event.address)
        known = ranges.setdefault(location.symbol, {})
        if known.setdefault(location.offset, event.width or 4) not in (event.width or 4, 0):
            raise Unsupported("mixed sizes", f"accesses of different sizes at {location}",
                              hint="the model gives no guarantees for partially overlapping accesses")
    for symbol, known in ranges.items():
        end = -1
        for offset in sorted(known):
            if offset < end:
                raise Unsupported("mixed sizes", f"partially overlapping accesses at {symbol}+{offset}",
                                  hint="the model gives no guarantees for partially overlapping accesses")
            end = offset + known[offset]
