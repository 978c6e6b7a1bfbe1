"""What a register can hold in the real-valued domain: a w-bit pattern known as an integer, a float, or parts."""

from __future__ import annotations

from dataclasses import dataclass, field

from warpproof.terms import Poly, Pred, Real


@dataclass(frozen=True, slots=True)
class Int:
    """Bits congruent to `poly` modulo 2^width. No range is implied: a signed or unsigned reading is an obligation.

    `known` is "u" or "s" where the computation itself shows that `poly` lies in that range (a widening product).
    """

    width: int
    poly: Poly
    known: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Float:
    """The bits of a float of format `kind` and `width` whose real value is `node`."""

    kind: str
    width: int
    node: Real


@dataclass(frozen=True, slots=True)
class Pack:
    """A concatenation of equal-width parts, the first in the low bits."""

    width: int
    parts: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Undef:
    """Bits that were never written."""

    width: int
    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    """`first` in the lanes where `pred`, else `second`: bits of different kinds, typed only when they are read."""

    width: int
    pred: Pred
    first: Value
    second: Value


@dataclass(frozen=True, slots=True)
class Part:
    """Bits place·width and up of a float, in a cell of memory narrower than it. Registers hold whole floats only."""

    width: int
    whole: Value
    place: int


Value = Int | Float | Pack | Undef | Choice | Part


def poisoned(v: Value | Pred | None) -> bool:
    """True when a register or cell holds what nothing may depend on, in part at least."""
    match v:
        case Float(_, _, node):
            return node.poisoned
        case Pack(_, parts):
            return any(map(poisoned, parts))
        case Choice(_, _, a, b):
            return poisoned(a) or poisoned(b)
        case Part(_, whole, _):
            return poisoned(whole)
        case _:
            return isinstance(v, Undef)
