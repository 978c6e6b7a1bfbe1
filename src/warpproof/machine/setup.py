"""What a symbolic run is told about its launch: grid, block, arguments, buffers, facts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from warpproof.domains import Value
from warpproof.terms import ZERO, Poly, Pred, Real


@dataclass(frozen=True, slots=True)
class BufferInfo:
    """A global buffer: element kind and width in bits, number of elements, and how the launch declares it.

    `elements` bounds the integers stored in it (half-open), when the contract gives a range; `zero` says that it holds
    zeros at entry. `left` is what an earlier launch left in it, by element index and path: integers are read from it,
    floats become loads of version 1 of the buffer.
    """

    name: str
    kind: str
    width: int
    size: Poly
    writable: bool
    initialised: bool
    elements: tuple[Poly | None, Poly | None] = (None, None)
    zero: bool = False
    left: Callable[[Poly, Pred], Real] | None = None


@dataclass(frozen=True, slots=True)
class Setup:
    """`grid` as polynomials, `block` as integers, `arguments` by parameter name, `facts` about sizes and blocks.

    All CTAs of a `cooperative` launch are resident at once.
    """

    grid: tuple[Poly, Poly, Poly]
    block: tuple[int, int, int]
    arguments: Mapping[str, Value]
    buffers: Mapping[str, BufferInfo]
    shared_bytes: int
    facts: tuple[Pred, ...]
    step_limit: int = 2_000_000
    blocks: tuple[Poly, ...] = ()
    ctas: Poly = ZERO
    tickets: Mapping[str, Poly] = field(default_factory=dict)
    cooperative: bool = False
