"""Shared loads at an address that depends on a symbol: the cells they may reach, and what is there as a function of the
cell number.

Cells that one store filled lane by lane hold its value at lane a + b·q for cell number q; the value is carried over to
that lane number, a polynomial, when all its lane vectors are affine in the lane.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Choice, Float, Int, Pack, Part, Reals, Undef, Value
from warpproof.machine.shared import SYMBOLIC_ADDRESS
from warpproof.terms import Arena, IntVector, Poly, Pred, Real, TermMap, const

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

_SEGMENTS: Final = 8


@dataclass(frozen=True, slots=True)
class Reach:
    """Cells start, start + step, …, one for each value of `number` from 0 to count - 1."""

    number: Poly
    start: int
    step: int
    count: int

    @property
    def cells(self) -> IntVector:
        """All cells that may be reached."""
        return np.asarray(self.start + self.step * np.arange(self.count))


def reach(m: SymbolicMachine, offset: Poly, width: int) -> Reach:
    """The cells of a load at a byte offset. Raises `Unsupported` when no bound on them is known."""
    unit = m.shared.unit
    if width != unit or any(np.any(np.asarray(c % unit)) for c in offset.terms.values()):
        raise Unsupported("shared memory", f"{SYMBOLIC_ADDRESS} and is not a whole cell")
    cell = offset.exact_div(unit)
    step = cell.symbolic().content() or 1
    fixed = np.asarray(cell.constant)
    rest = int(fixed.reshape(-1)[0]) % step
    if (fixed % step != rest).any():
        step, rest = 1, 0
    number = (cell - rest).exact_div(step)
    low, high = _range(m, number, step, rest)
    return Reach(number - low, rest + step * low, step, high - low + 1)


def _range(m: SymbolicMachine, number: Poly, step: int, rest: int) -> tuple[int, int]:
    arena = m.arena
    last = (m.shared.cells - 1 - rest) // step
    low, high = arena.bounds(number)
    filled = m.shared.owner[rest::step] >= 0
    if low is not None and high is not None and low >= 0 and high <= last and filled[low : high + 1].all():
        return low, high
    written = np.flatnonzero(filled)
    runs = np.split(written, np.flatnonzero(np.diff(written) != 1) + 1) if len(written) else []
    candidates = [(int(r[0]), int(r[-1])) for r in runs] + [(0, last)]
    for a, b in candidates:
        if m.holds(arena.conj((arena.le(a - number), arena.le(number - b)))):
            return a, b
    raise Unsupported("shared memory", f"{SYMBOLIC_ADDRESS} without a known bound")


def value_at(m: SymbolicMachine, r: Reach) -> Value:
    """What the reached cells hold, as a function of the cell number."""
    owner, lane = m.shared.owner[r.cells], m.shared.lane[r.cells]
    if (owner < 0).any():
        return Undef(8 * m.shared.unit, "shared memory that may not have been written")
    cuts = _cuts(owner, lane)
    if len(cuts) > _SEGMENTS:
        raise Unsupported("shared memory", f"{SYMBOLIC_ADDRESS} reaches cells of more than {_SEGMENTS} stores")
    out: Value | None = None
    for a, b in reversed(list(zip(cuts, [*cuts[1:], r.count], strict=True))):
        here = _carried(m.dom, m.shared.values[int(owner[a])], lane[a:b], r.number - a)
        out = here if out is None else m.dom.merge(m.arena.le(r.number - (b - 1)), here, out)
    assert out is not None
    return out


def _cuts(owner: IntVector, lane: IntVector) -> list[int]:
    """Where runs begin that hold one value in lanes of one step."""
    cuts = [0]
    for k in range(1, len(owner)):
        start = cuts[-1]
        step = lane[start + 1] - lane[start] if k > start + 1 else lane[k] - lane[k - 1]
        if owner[k] != owner[start] or lane[k] - lane[k - 1] != step:
            cuts.append(k)
    return cuts


def _carried(dom: Reals, value: Value, lanes: IntVector, number: Poly) -> Value:
    step = int(lanes[1] - lanes[0]) if len(lanes) > 1 else 0
    return _move(dom, value, Carrier(dom.arena, lanes, number * step + int(lanes[0])))


def _move(dom: Reals, value: Value, carrier: Carrier) -> Value:
    match value:
        case Float(kind, width, node):
            return Float(kind, width, carrier.real(node))
        case Int(width, poly):
            return Int(width, carrier.poly(poly))
        case Pack(width, parts):
            return Pack(width, tuple(_move(dom, p, carrier) for p in parts))
        case Choice(_, pred, a, b):
            return dom.merge(carrier.pred(pred), _move(dom, a, carrier), _move(dom, b, carrier))
        case Part(width, whole, place):
            return Part(width, _move(dom, whole, carrier), place)
        case Undef():
            return value


class Carrier(TermMap):
    """Maps a term to its value in lane `target`, one of `lanes`; `Unsupported` unless affine in the lane."""

    def __init__(self, arena: Arena, lanes: IntVector, target: Poly) -> None:
        super().__init__(arena, lambda i: None, self._leaf_of, self._mask_of, np.asarray(lanes, np.int64))
        self.among, self.target = np.asarray(lanes, np.int64), target

    def poly(self, p: Poly) -> Poly:
        """The polynomial in the target lane."""
        if self.arena.poly_uniform(p):
            return p
        out = Poly({})
        for m, c in p.terms.items():
            t = const(c) if isinstance(c, int) else self._affine(c)
            for x in m:
                t = t * self.atom(x)
            out = out + t
        return out

    def _affine(self, c: IntVector) -> Poly:
        """A lane vector as a polynomial in the target lane."""
        at = c[self.among]
        if len(at) == 1 or (at == at[0]).all():
            return const(int(at[0]))
        slope, rest = divmod(int(at[1] - at[0]), int(self.among[1] - self.among[0])) if (
            self.among[1] != self.among[0]) else (0, 1)
        if rest or (at - at[0] != slope * (self.among - self.among[0])).any():
            raise Unsupported("shared memory", f"{SYMBOLIC_ADDRESS}, of values without a common form")
        return self.target * slope + int(at[0] - slope * self.among[0])

    def _mask_of(self, p: Pred) -> Pred | None:
        if p.op != "lanes":
            return None
        inside = np.frombuffer(p.data, dtype=bool)[self.among]
        if inside.all() or not inside.any():
            return self.arena.true if inside.all() else self.arena.false
        raise Unsupported("shared memory", f"{SYMBOLIC_ADDRESS}, of values that some lanes do not have")

    def _leaf_of(self, x: Real) -> Real | None:
        match x.op:
            case "red":
                rows = self.arena.matrix(x)[self.among]
                if (rows == rows[0]).all():
                    return self.arena.reduction(x.data[0], x.args[0], np.repeat(rows[:1], self.arena.lanes, axis=0))
            case "gather":
                return self._moved(x)
            case "state" | "cell":
                pass
            case _:
                return None
        raise Unsupported("shared memory", f"{SYMBOLIC_ADDRESS}, of values exchanged between lanes")

    def _moved(self, x: Real) -> Real | None:
        source = self.arena.permutation(x)[self.among]
        inner = x.args[0]
        steps = np.diff(source)
        if len(source) > 1 and (steps == steps[0]).all() and (np.diff(self.among) != 0).all():
            slope, rest = divmod(int(steps[0]), int(self.among[1] - self.among[0]))
            if not rest:
                moved = self.target * slope + int(source[0] - slope * self.among[0])
                return Carrier(self.arena, source, moved).real(inner)
        raise Unsupported("shared memory", f"{SYMBOLIC_ADDRESS}, of values exchanged between lanes")
