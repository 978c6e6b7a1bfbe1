"""Constants of a reference that the kernel can only hold rounded to f32."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from warpproof.ptx import Kernel, syntax

_LARGEST: Final = 3.4028234663852886e38


@dataclass(frozen=True, slots=True)
class Roundings:
    """Says which constants of the reference stand for the f32 number next to them.

    That an f32 constant of the kernel is not the decimal number that was written is a rounding as any other, and
    rounding is not judged. It is taken so only for a number that is no f32, of which the kernel holds the nearest f32
    and not the number itself as f64; `note` is told, so that the report lists it as an assumption.
    """

    singles: frozenset[float] = frozenset()
    doubles: frozenset[float] = frozenset()
    note: Callable[[float, float], None] = field(default=lambda number, held: None)

    def held(self, number: float) -> float:
        """The f32 that the kernel holds for a constant of the reference; the constant itself if there is none."""
        if not abs(number) <= _LARGEST or abs(number) in self.doubles:
            return number
        near = _single(number)
        if near == number or near == 0 or abs(near) not in self.singles:
            return number
        self.note(number, near)
        return near


def roundings(kernels: Iterable[Kernel], note: Callable[[float, float], None]) -> Roundings:
    """The roundings to the f32 constants in the code of these kernels."""
    singles, doubles = set(), set()
    for operand in (o for k in kernels for ins in k.code for top in ins.operands for o in _parts(top)):
        match operand:
            case syntax.FloatImmediate(bits, 64):
                doubles.add(abs(struct.unpack("<d", bits.to_bytes(8, "little"))[0]))
            case syntax.FloatImmediate(bits, _) | syntax.Immediate(bits):
                singles.add(abs(struct.unpack("<f", (bits & 0xFFFFFFFF).to_bytes(4, "little"))[0]))
    return Roundings(frozenset(singles), frozenset(doubles), note)


def _parts(operand: syntax.Operand) -> Iterator[syntax.Operand]:
    match operand:
        case syntax.Vector(elements) | syntax.Group(elements):
            for e in elements:
                yield from _parts(e)
        case syntax.Negated(inner) | syntax.Minus(inner):
            yield from _parts(inner)
        case _:
            yield operand


def _single(number: float) -> float:
    """The f32 number nearest to a number."""
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


__all__ = ["Roundings", "roundings"]
