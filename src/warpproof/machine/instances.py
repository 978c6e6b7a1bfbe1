"""Which CTA and thread stored an element: solving a store's index for its block indices, ticket and lane.

An instance is a substitution of block indices and tickets. A candidate is read off the index equation; it is used only
if the equation then holds as it stands, and the store is executed there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from warpproof.algebra import support
from warpproof.machine.trace import Access, SyncEvent, Trace
from warpproof.terms import IntVector, Poly, Pred, TermMap, const, divide_monomial

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

Instance = dict[int, Poly]
_RESIDUES: Final = 64


class Instances:
    """Solves for instances under the current path of one machine."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena
        tickets = [next(iter(t.terms))[0] for t in machine.setup.tickets.values()]
        blocks = [next(iter(b.terms))[0] for b in machine.setup.blocks]
        self.extents: dict[int, Poly] = dict.fromkeys(tickets, machine.setup.ctas)
        self.extents |= dict(zip(blocks, machine.setup.grid, strict=False))
        self.tickets = frozenset(tickets)

    def _atoms(self, polys: list[Poly], preds: list[Pred]) -> frozenset[int]:
        return frozenset(support(self.arena, polys, preds)) & frozenset(self.extents)

    # ------------------------------------------------------------------ candidates
    def by_element(self, store: Access, index: Poly) -> Instance | None:
        """The instance that stores the element `index`, when the index depends on one block index or ticket."""
        pattern = store.index
        atoms = self._atoms([pattern], [store.path])
        if len(atoms) != 1 or not self._others_single(atoms):
            return None
        (a,) = atoms
        slope, rest = pattern.split(a)
        if not index.uniform() and slope.as_int() in (1, -1) and rest.as_int() is not None:
            return {a: (index - rest) * (slope.as_int() or 1)}  # each lane reads what another CTA has stored
        return next(({a: value} for value in self._solutions(pattern, index, a)), None)

    def _others_single(self, atoms: frozenset[int]) -> bool:
        """One unknown names a CTA: a ticket, or the only block index that has more than one value."""
        if atoms & self.tickets:
            return True
        return all(self.extents[b].as_int() == 1 for b in self.extents if b not in atoms and b not in self.tickets)

    def by_flag(self, given: SyncEvent, taken: SyncEvent, survey: Trace) -> Instance | None:
        """The one instance whose strong store can have ended the wait `taken`."""
        lane, heard = self._only_lane(given), self._only_lane(taken)
        if heard is None and taken.index.uniform():  # all that wait do so for one place
            heard = int(np.argmax(self._mask(taken.path)))
        if lane is None or heard is None:
            return None
        raised, read = self._at(lane).poly(given.index), self._at(heard).poly(taken.index)
        atoms = self._atoms([raised], self.plain(given))
        if len(atoms) != 1 or not self._others_single(atoms) or not self._ends(given, taken):
            return None
        if not self._only_source(given, taken, survey):
            return None
        (a,) = atoms
        for value in self._solutions(raised, read, a):
            same = self.arena.substitution({a: value}).poly(raised) == read
            if same and self._inside(a, value) and self._unique(given, raised, read, a, value):
                return {a: value}
        return None

    def _only_lane(self, event: SyncEvent) -> int | None:
        lanes = np.flatnonzero(self._mask(event.path))
        return int(lanes[0]) if len(lanes) == 1 else None

    def _at(self, lane: int) -> TermMap:
        """What holds in one lane, said of all."""
        return self.arena.permutation_map(np.full(self.arena.lanes, lane))

    def plain(self, event: SyncEvent) -> list[Pred]:
        """The path of an event of one lane, without lane masks, as it is in that lane."""
        lane = self._only_lane(event)
        parts = self._plain(event.path)
        return parts if lane is None else [self._at(lane).pred(p) for p in parts]

    def _solutions(self, pattern: Poly, target: Poly, a: int) -> Iterator[Poly]:
        """Values of `a` (by itself, or in quotients by constants) that may make `pattern` equal to `target`."""
        target = Poly({m: c if isinstance(c, int) else int(c[self._lane()]) for m, c in target.terms.items()})
        pattern = Poly({m: c if isinstance(c, int) else int(c[self._lane()]) for m, c in pattern.terms.items()})
        slope, rest = pattern.split(a)
        if len(slope.terms) == 1 and a not in support(self.arena, [rest]):
            ((m, c),) = slope.terms.items()
            if isinstance(c, int):
                yield self._quotient(target - rest, m, c)
        for d in sorted(pattern.atoms()):
            atom = self.arena.atoms[d]
            by = atom.args[1].as_int() if atom.kind == "div" and len(atom.args) == 2 else None
            if by is None or not 0 < by <= _RESIDUES or atom.args[0] != self.arena.variable(self.arena.atoms[a]):
                continue
            slope, rest = pattern.split(d)
            if len(slope.terms) != 1 or a in support(self.arena, [rest]):
                continue
            ((m, c),) = slope.terms.items()
            if isinstance(c, int):
                whole = self._quotient(target - rest, m, c)
                for r in range(by):
                    yield whole * by + r

    def _quotient(self, p: Poly, m: tuple[int, ...], c: int) -> Poly:
        return divide_monomial(p, m, c)[0] if m else self.arena.floor_div(p, const(c))

    def _lane(self) -> int:
        return int(np.argmax(self.machine.path.mask))

    # ------------------------------------------------------------------ what a candidate has to satisfy
    def exists(self, sigma: Instance) -> Pred:
        """The grid has such a CTA."""
        le = self.arena.le
        return self.arena.conj(
            le(p) for a, value in sigma.items() for p in (-value, value - self.extents[a] + 1))

    def _inside(self, a: int, value: Poly) -> bool:
        return self.machine.oracle.implied(self.machine.path.condition(), self.exists({a: value}), hard=True)

    def _ends(self, given: SyncEvent, taken: SyncEvent) -> bool:
        """What was there at the start does not end the wait; what `given` writes may."""
        info = self.machine.setup.buffers.get(taken.buffer)
        return info is not None and info.zero and self._excluded(taken, const(0)) and self.ends_by(taken, given.value)

    def _excluded(self, taken: SyncEvent, value: Poly) -> bool:
        """The wait does not end by reading `value`."""
        return self._ended(taken, value) == "false"

    def ends_by(self, taken: SyncEvent, value: Poly) -> bool:
        """The wait ends by reading `value`, a constant."""
        return self._ended(taken, value) == "true"

    def _ended(self, taken: SyncEvent, value: Poly) -> str:
        if taken.until is None or value.as_int() is None:
            return ""
        ((atom, _),) = [(m[0], c) for m, c in taken.value.terms.items()]
        return self.arena.substitute_pred(taken.until, {atom: value}).op

    def _only_source(self, given: SyncEvent, taken: SyncEvent, survey: Trace) -> bool:
        others = [e for e in survey.sync if e.buffer == taken.buffer and e is not given and e.kind != "poll"]
        plain = [a for a in survey.accesses if a.buffer == taken.buffer and a.kind in ("store", "atomic")]
        if any(e.how == "add" for e in (given, *others)):  # what is added is what is found later only if it is alone
            return not plain and not others
        return not plain and all(e.kind == "write" and self._excluded(taken, e.value) for e in others)

    def _unique(self, given: SyncEvent, raised: Poly, read: Poly, a: int, value: Poly) -> bool:
        """Every instance that raises this flag is the one at `value`."""
        arena = self.arena
        other = arena.variable(arena.fresh("size", "another CTA", 0, arena.bounds(self.extents[a])[1]))
        put = arena.substitution({a: other})
        path = arena.conj((
            self.machine.path.condition(), arena.le(other - self.extents[a] + 1),
            arena.eq(put.poly(raised) - read),
            *map(put.pred, self.plain(given)),
        ))
        return self.machine.oracle.implied(path, arena.eq(other - value), hard=True)

    def lanes(self, store: Access, index: Poly, sigma: Instance) -> IntVector | None:
        """For each lane the lane of the instance that stores what it reads; None unless each has exactly one."""
        pattern: Poly = store.index.symbolic()
        gap: Poly = index - self.arena.substitution(sigma).poly(pattern)
        if not gap.is_constant():
            return None
        n = self.arena.lanes
        wanted, offered = gap.lanes(n), const(store.index.constant).lanes(n)
        writes = self._mask(store.path)
        out = np.zeros(n, np.int64)
        for t in np.flatnonzero(self.machine.path.mask):
            found = np.flatnonzero(writes & (offered == wanted[t]))
            if len(found) != 1:
                return None
            out[t] = found[0]
        active = np.flatnonzero(self.machine.path.mask)
        if any(not isinstance(c, int) and np.any(c[out[active]] != c[active]) for c in pattern.terms.values()):
            return None  # the storing lane's index is another than the one that was solved for
        idle = np.flatnonzero(~self.machine.path.mask)
        out[idle] = out[self._lane()]
        return out

    def _mask(self, path: Pred) -> Any:
        masks = [m for m in map(self.arena.mask_of, self.arena.conjuncts(path)) if m is not None]
        return np.logical_and.reduce(masks) if masks else np.ones(self.arena.lanes, bool)

    def executed(self, store: Access, lanes: IntVector, sigma: Instance) -> bool:
        """The store happens in that instance, by those lanes."""
        move = self.arena.permutation_map(lanes)
        return self.happens([move.pred(p) for p in self._plain(store.path)], sigma)

    def happens(self, path: Sequence[Pred], sigma: Instance) -> bool:
        """All conditions of a path hold in that instance."""
        put = self.arena.substitution(sigma)
        return all(self.machine.holds(put.pred(p)) for p in path)

    def _plain(self, path: Pred) -> list[Pred]:
        return [p for p in self.arena.conjuncts(path) if self.arena.mask_of(p) is None]
