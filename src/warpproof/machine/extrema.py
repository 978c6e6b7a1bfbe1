"""Best values and their positions, carried by a loop: the running pair is a maximum of placed values.

Registers (best, at) that an iteration makes the greater of the pair they hold and a pair free of loop state hold, after
the loop, the greatest of the entry pair and the pairs of all iterations. Where equal values are told apart by the order
of the iterations alone, positions have to come in that order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warpproof.domains import READINGS, Carried, Reader, Reading, Unread, untied
from warpproof.terms import Atom, Leaf, Poly, Pred, Real

if TYPE_CHECKING:
    from warpproof.machine.prefixes import Prefixes
    from warpproof.machine.symbolic import SymbolicMachine


class Extrema:
    """Closes positions of running extrema of one loop; `states` are the loop's unknowns."""

    def __init__(
        self, machine: SymbolicMachine, prefixes: Prefixes, states: frozenset[int], var: Atom, domain: Pred,
    ) -> None:
        self.machine, self.arena, self.pairs, self.prefixes = machine, machine.arena, machine.dom.pairs, prefixes
        self.states, self.var, self.domain = states, var, domain

    def close(self, new: Poly, state: Poly, entry: Poly, value: tuple[Real, Real, Real]) -> Poly | None:
        """The position after the loop, and its start value recorded; `value` is the update of the best value, its
        unknown and its entry value."""
        for reading in READINGS:
            try:
                found = self._closed(new, state, entry, value, reading)
            except Unread:
                continue
            if found is not None:
                return found
        return None

    def _closed(
        self, new: Poly, state: Poly, entry: Poly, value: tuple[Real, Real, Real], reading: Reading,
    ) -> Poly | None:
        a, (update, unknown, first) = self.arena, value
        signed = unknown if reading.value == 1 else a.neg(unknown)
        carried = Carried(unknown, state, a.placed(signed, state * reading.place))
        reader = Reader(self.pairs, reading, carried)
        operands = a.flatten(reader.pair(new, update), "max")
        rest = [x for x in operands if x is not carried.pair]
        if len(rest) + 1 != len(operands) or any(x.free & self.states for x in rest):
            return None
        start = self.pairs.read(entry, first, reading)
        if start is None or start.free & self.states:
            return None
        leaves = [leaf for x in rest for leaf in a.leaves(x)]
        if not all(self._shown(reader, leaf, after, start, leaves) for leaf, after in reader.later):
            return None
        g = a.minus_inf
        for x in rest:
            g = a.maximum(g, x)
        (atom,) = state.atoms()
        self.prefixes.put_integer(atom, a.place(a.maximum(start, self._before(g))) * reading.place)
        return a.place(a.maximum(start, a.fold("max", self.var.id, self.domain, g))) * reading.place

    def _before(self, g: Real) -> Real:
        """The greatest pair of the iterations before this one, which are iterations of the loop."""
        a = self.arena
        made = a.fresh("index", "j", 0, None)
        j = a.variable(made)
        put = a.substitution({self.var.id: j})
        earlier = a.conj((put.pred(self.domain), a.le(j - a.variable(self.var) + 1)))
        return a.fold("max", made.id, earlier, put.real(g))

    def _shown(self, reader: Reader, leaf: Leaf, after: bool, start: Real, leaves: list[Leaf]) -> bool:
        """What the loop carries does not come after the leaf of iteration i, or not before it: neither the entry pair
        nor one of an iteration j < i."""
        a = self.arena
        j = a.variable(a.fresh("index", "j", 0, None))
        i = a.variable(self.var)
        earlier = a.substitution({self.var.id: j})
        before = [*a.leaves(start), *(
            Leaf(earlier.pred(x.guard), earlier.real(x.value), tuple(map(earlier.poly, x.positions)), x.elsewhere)
            for x in leaves
        )]
        for x in before:
            given = a.conj((a.le(j - i + 1), self.domain, x.guard, leaf.guard))
            if untied(x.value, leaf.value):
                continue
            if x.elsewhere or leaf.elsewhere or not all(
                self._follows(given, *((q, p) if after else (p, q))) for p in x.positions for q in leaf.positions
            ):
                return False
        return True

    def _follows(self, given: Pred, p: Poly, q: Poly) -> bool:
        """p ≤ q wherever the condition holds on the path."""
        m = self.machine
        claim = self.arena.le(p - q)
        return m.holds(claim) or m.oracle.implied(self.arena.conj((m.path.condition(), given)), claim)
