"""A litmus test: threads in a scope tree, straight instructions with branches, initial memory, a final condition."""

from __future__ import annotations

from dataclasses import dataclass, field

from warpproof.core import Span
from warpproof.sync.model import Scope

GENERIC = "generic"
ALIAS = "alias"


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A virtual address: a declared symbol and a byte offset."""

    symbol: str
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.symbol}+{self.offset}" if self.offset else self.symbol


@dataclass(frozen=True, slots=True)
class Register:
    """A register, private to its thread."""

    name: str


Value = int | Address
Operand = int | Address | Register


@dataclass(frozen=True, slots=True)
class Load:
    """`ld` and its kin: one register per element (`.v2` and `.v4` read several, `width` bytes apart)."""

    destinations: tuple[str, ...]
    address: Operand
    sem: str
    scope: Scope | None
    proxy: str = GENERIC
    width: int = 0


@dataclass(frozen=True, slots=True)
class Store:
    """`st` and its kin: one value per element."""

    address: Operand
    values: tuple[Operand, ...]
    sem: str
    scope: Scope | None
    proxy: str = GENERIC
    width: int = 0


@dataclass(frozen=True, slots=True)
class Atomic:
    """`atom` (with a destination) or `red` (without): a read, then a write unless a `cas` fails."""

    destination: str | None
    operation: str
    address: Operand
    operands: tuple[Operand, ...]
    sem: str
    scope: Scope
    proxy: str = GENERIC
    width: int = 0


@dataclass(frozen=True, slots=True)
class Fence:
    """A memory fence: `acq_rel`, `sc`, `acquire` or `release`."""

    sem: str
    scope: Scope


@dataclass(frozen=True, slots=True)
class ProxyFence:
    """A fence between the generic proxy and `proxy`, or between virtual aliases (`alias`)."""

    proxy: str


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier. `level` is cta, cluster or warp; `instance`, `resource` and `quorum` as in `bar.cta.sync i, r, q`."""

    level: str
    arrives: bool
    waits: bool
    orders: bool = True
    instance: int = 0
    resource: Operand = 0
    quorum: Operand | None = None


@dataclass(frozen=True, slots=True)
class Local:
    """A register operation: `destination = left operation right`."""

    destination: str
    operation: str
    left: Operand
    right: Operand = 0


@dataclass(frozen=True, slots=True)
class Branch:
    """Jump to `target` if `left comparison right` holds."""

    comparison: str
    left: Operand
    right: Operand
    target: str


@dataclass(frozen=True, slots=True)
class Goto:
    """Jump to `target`."""

    target: str


@dataclass(frozen=True, slots=True)
class Label:
    """A place to jump to."""

    name: str


Operation = Load | Store | Atomic | Fence | ProxyFence | Barrier | Local | Branch | Goto | Label


def assigned(operation: Operation) -> tuple[str, ...]:
    """The registers that an operation assigns."""
    match operation:
        case Load(destinations):
            return destinations
        case Atomic(destination) if destination is not None:
            return (destination,)
        case Local(destination):
            return (destination,)
    return ()


@dataclass(frozen=True, slots=True)
class Instruction:
    """An operation with the text and the place it came from."""

    operation: Operation
    text: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread: its place in the scope tree and its instructions. `warp` is None when the test names none."""

    name: str
    cta: int
    gpu: int
    instructions: tuple[Instruction, ...]
    cluster: int | None = None
    warp: int | None = None

    def group(self, scope: Scope) -> tuple[int, ...]:
        """What identifies the set of threads that share `scope` with this one."""
        cluster = self.cta if self.cluster is None else self.cluster
        return ((self.gpu, cluster, self.cta), (self.gpu, cluster), (self.gpu,), ())[scope]


@dataclass(frozen=True, slots=True)
class Variable:
    """A symbol: its initial value, or the symbol it aliases and the proxy through which (generic: virtual alias)."""

    name: str
    value: Value = 0
    alias_of: str = ""
    proxy: str = GENERIC


@dataclass(frozen=True, slots=True)
class Comparison:
    """`left operator right` over registers (`P0:r1`), locations and numbers."""

    operator: str
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class Connective:
    """`and`, `or` or `not` of conditions."""

    operator: str
    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class ThreadRegister:
    """A register of a thread, by the thread's position."""

    thread: int
    name: str


Condition = Comparison | Connective
Term = int | Address | ThreadRegister
TRUE = Connective("and", ())


@dataclass(frozen=True, slots=True)
class Litmus:
    """A litmus test. `quantifier` is `exists`, `~exists` or `forall`; `where` restricts the executions looked at."""

    name: str
    threads: tuple[Thread, ...]
    variables: tuple[Variable, ...]
    registers: tuple[tuple[ThreadRegister, Value], ...]
    quantifier: str
    condition: Condition
    where: Condition = TRUE
    observed: tuple[Term, ...] = ()
    description: str = ""
    source: str = field(default="", compare=False)
