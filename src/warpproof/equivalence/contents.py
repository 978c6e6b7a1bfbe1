"""What a launch leaves in a buffer, as a function of the coordinates, for the launches that follow.

The function is a guess made from one store, or from all atomic updates: blocks, lanes and iterations are solved from
the coordinates, and what these do not determine is folded over. It is used only once the outputs' own check has shown
that the launch leaves exactly this (`OutputChecker.check`, `Contributions.check`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpproof.core import Unsupported
from warpproof.equivalence.carrying import Carrier, fit
from warpproof.machine import Access
from warpproof.terms import Arena, BoolVector, IntVector, Poly, Pred, Real, const


@dataclass(frozen=True, slots=True)
class Write:
    """A store or update with its coordinates and value; `mask` are the lanes that its path admits."""

    access: Access
    at: tuple[Poly, ...]
    value: Real
    mask: BoolVector


@dataclass(frozen=True, slots=True)
class Contents:
    """A buffer after a launch: of stores the first in `writes` is read, of updates all.

    `op` is the operation of updates, "" for stores; `grid` gives the number of blocks by block atom.
    """

    arena: Arena
    name: str
    op: str
    writes: Sequence[Write]
    grid: Mapping[int, Poly]
    block: tuple[int, int, int]

    def threads(self) -> list[IntVector]:
        """The thread coordinates by lane, of the axes that are longer than 1."""
        lanes, (x, y, z) = np.arange(self.arena.lanes), self.block
        axes = ((lanes % x, x), (lanes // x % y, y), (lanes // (x * y), z))
        return [v for v, extent in axes if extent > 1] or [lanes]

    def at(self, target: Arena, index: Sequence[Poly], start: Real) -> Real:
        """The element at these coordinates as a term of another arena; `start` is what an updated element held."""
        if not self.op:
            return self._stored(target, self.writes[0], index)
        out = start
        for w in self.writes:
            out = target.combine(self.op, out, self._folded(target, w, index))
        return out

    # ------------------------------------------------------------------ stores
    def _stored(self, target: Arena, w: Write, index: Sequence[Poly]) -> Real:
        """The value stored, with blocks, loop counters and lanes from the coordinates; of lanes that these do not tell
        apart, the first."""
        solved = _Solved(self, target, w, index)
        if target is self.arena and not solved.positions:  # reductions over lanes stay what they are
            here = self.arena.permutation_map(np.full(self.arena.lanes, solved.lanes[0]))
            return self.arena.substitute(here.real(w.value), solved.images)
        for k in range(len(solved.fields)):
            if k not in solved.positions:
                solved.fix(k)
        return solved.carrier().real(w.value)

    # ------------------------------------------------------------------ updates
    def _folded(self, target: Arena, w: Write, index: Sequence[Poly]) -> Real:
        """Everything that goes to the element: a fold over what its coordinates leave open, where the path holds."""
        solved = _Solved(self, target, w, index)
        opened: list[tuple[int, list[Pred]]] = []

        def variable(name: str, end: Poly | None) -> Poly:
            v = target.fresh("index", f"{name}{len(target.atoms)}", 0, None)
            p = target.variable(v)
            opened.append((v.id, [] if end is None else [target.le(-p), target.le(p - end + 1)]))
            return p

        for b, extent in self.grid.items():
            if b not in solved.images:
                solved.images[b] = variable("b", solved.size(extent))
        for loop in w.access.loops:
            if loop not in solved.images:
                solved.images[loop] = variable("i", None)
        for k, field in enumerate(solved.fields):
            if k not in solved.positions and field.count > 1:
                solved.positions[k] = variable("t", const(field.count))
        carrier = solved.carrier()
        parts = [carrier.pred(p) for p in self.arena.conjuncts(w.access.path)]
        return _nest(target, self.op, opened, parts, carrier.real(w.value))


@dataclass(frozen=True, slots=True)
class Field:
    """A thread coordinate by lane; on the lanes in question it takes the values start + step·j, 0 ≤ j < count."""

    values: IntVector
    start: int
    step: int
    count: int

    @classmethod
    def on(cls, values: IntVector, lanes: IntVector) -> Field:
        """The field on these lanes."""
        own = np.unique(values[lanes])
        steps = np.unique(np.diff(own))
        if len(steps) > 1:
            raise Unsupported("intermediate buffer", "lanes that do not follow each other evenly")
        return cls(values, int(own[0]), int(steps[0]) if len(steps) else 1, len(own))

    def positions(self, lanes: IntVector) -> IntVector:
        """j by lane."""
        return np.asarray((self.values[lanes] - self.start) // self.step)


class _Solved:
    """Coordinates solved: images of blocks and loop counters, and positions of the lanes in their fields."""

    def __init__(self, contents: Contents, target: Arena, w: Write, index: Sequence[Poly]) -> None:
        self.contents, self.target = contents, target
        self.lanes = np.flatnonzero(w.mask)
        self.fields = [Field.on(v, self.lanes) for v in contents.threads()]
        self.images = {b: const(0) for b, extent in contents.grid.items() if extent.as_int() == 1}
        self.positions: dict[int, Poly] = {}
        dims = {*contents.grid, *w.access.loops}
        for p, c in zip(w.at, index, strict=True):
            self._solve(p, c, dims)

    def _solve(self, p: Poly, c: Poly, dims: set[int]) -> None:
        """p = c, the unknown with the largest slope first."""
        rest, slopes = c, []
        for m, k in p.terms.items():
            if not m and not isinstance(k, int):
                start, found = fit([f.positions(self.lanes) for f in self.fields], k[self.lanes])
                rest = rest - const(start)
                slopes += [(b, -1 - n) for n, b in enumerate(found) if b]
            elif not m:
                rest = rest - const(k)
            elif len(m) == 1 and m[0] in dims and isinstance(k, int):
                if m[0] in self.images:
                    rest = rest - self.images[m[0]] * k
                else:
                    slopes.append((k, m[0]))
            else:
                name = self.contents.name
                raise Unsupported("intermediate buffer", f"an address of {name} that is not solved for its blocks")
        for n, (k, which) in enumerate(sorted(slopes, reverse=True)):
            if k < 0:
                raise Unsupported("intermediate buffer", "an address that falls from block to block")
            image = rest if k == 1 and n == len(slopes) - 1 else self.target.floor_div(rest, const(k))
            rest = rest - image * k
            if which >= 0:
                self.images[which] = image
            else:
                self.positions[-1 - which] = image

    def fix(self, k: int) -> None:
        """Only the lanes where a field has its first value."""
        self.lanes = self.lanes[self.fields[k].values[self.lanes] == self.fields[k].start]
        if not len(self.lanes):
            raise Unsupported("intermediate buffer", "no lane has the first value of every thread coordinate")

    def size(self, extent: Poly) -> Poly:
        """A grid extent in the target."""
        return Carrier(self.contents.arena, self.target, self.lanes[:1], (), {}).poly(extent)

    def carrier(self) -> Carrier:
        """What rebuilds terms of the writing lanes; fields without a position have their first value."""
        fields = tuple((f.values, self.positions.get(k, const(0)) * f.step + const(f.start))
                       for k, f in enumerate(self.fields))
        return Carrier(self.contents.arena, self.target, self.lanes, fields, self.images)


def _nest(target: Arena, op: str, opened: list[tuple[int, list[Pred]]], parts: list[Pred], body: Real) -> Real:
    """Folds over the open variables, every condition at the innermost variable that it mentions."""
    out = body
    rest = list(parts)
    for k in range(len(opened) - 1, -1, -1):
        atom, domain = opened[k]
        here = [p for p in rest if atom in p.free]
        rest = [p for p in rest if p not in here]
        out = target.fold(op, atom, target.conj((*domain, *here)), out)
    return target.sel(target.conj(rest), out, target.identity(op))
