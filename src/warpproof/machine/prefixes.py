"""What registers hold when iteration i of a loop starts, and the record of the iteration with these values put in.

A register that closes as a fold holds, before iteration i, the fold over the iterations 0 ≤ j < i. A run from an
arbitrary state speaks about every state, so it speaks about this one: stores of running sums, and registers whose
update reads other registers, are instances of it.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from warpproof.machine.upcoming import free_atoms, moved
from warpproof.terms import Poly, Real, TermMap

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine
    from warpproof.machine.trace import Mark


class Prefixes:
    """The values at the start of iteration `var`, by the atom of the unknown that stands for them."""

    def __init__(self, machine: SymbolicMachine, var: int) -> None:
        self.machine, self.arena, self.var = machine, machine.arena, var
        self.starts: dict[int, Real] = {}
        self.integers: dict[int, Poly] = {}
        self.updates: dict[Real, Real] = {}  # what an iteration leaves, in closed form, by the term it computes
        self._map: TermMap | None = None

    def fold(self, op: str, entry: Real, body: Real) -> Real:
        """entry ⊕ the fold of the body over the iterations before this one."""
        a = self.arena
        i = a.variable(a.atoms[self.var])
        if op == "add" and body.op == "const":
            return a.add(entry, a.mul(body, a.of_int(i)))
        j = a.fresh("index", "j")
        v = a.variable(j)
        before = a.conj((a.le(-v), a.le(v - i + 1)))
        return a.combine(op, entry, a.fold(op, j.id, before, a.substitute(body, {self.var: v})))

    def put(self, state: Real, start: Real) -> None:
        """Record the start value of a register."""
        self.starts[state.data[0]] = start
        self._map = None

    def put_integer(self, atom: int, start: Poly) -> None:
        """Record the start value of an integer register."""
        self.integers[atom] = start
        self._map = None

    def map(self) -> TermMap:
        """The substitution of the start values for the unknowns."""
        if self._map is None:
            touches = frozenset(self.starts) | frozenset(self.integers)
            self._map = TermMap(self.arena, self.integers.get, self._leaf, lambda p: None, None, touches)
        return self._map

    def real(self, x: Real) -> Real:
        """x with the known start values put in."""
        return self.map().real(x) if x.free & self.starts.keys() else x

    def _leaf(self, x: Real) -> Real | None:
        if x in self.updates:
            return self.updates[x]
        if x.op != "state" or x.data[0] not in self.starts:
            return None
        return self.arena.permute(self.starts[x.data[0]], np.frombuffer(x.data[1], np.int64), lazy=True)

    # ------------------------------------------------------------------ the record
    def fill(self, mark: Mark) -> None:
        """Put the start values into everything recorded since `mark`; running maxima stay unknowns in obligations."""
        trace, put = self.machine.trace, self.map()
        for k in range(mark[0], len(trace.accesses)):
            a = trace.accesses[k]
            if self._mentions(a.value) or self._mentions(a.path) or self._touched(a.index):
                value = None if a.value is None else moved(self.machine.dom, put, a.value)
                trace.accesses[k] = replace(a, value=value, path=put.pred(a.path), index=put.poly(a.index))
        for k in range(mark[7], len(trace.updates)):
            u = trace.updates[k]
            if self._mentions(u.value) or self._mentions(u.path) or self._touched(u.offset):
                value = moved(self.machine.dom, put, u.value)
                trace.updates[k] = replace(u, value=value, path=put.pred(u.path), offset=put.poly(u.offset))
        self.without(trace.maxima.keys())._fill_conditions(mark)

    def without(self, atoms: AbstractSet[int]) -> Prefixes:
        """The start values of other registers than these."""
        if not self.starts.keys() & atoms:
            return self
        out = Prefixes(self.machine, self.var)
        out.integers = self.integers
        out.starts = {s: x for s, x in self.starts.items() if s not in atoms}
        return out

    def _fill_conditions(self, mark: Mark) -> None:
        trace, put = self.machine.trace, self.map()
        for k in range(mark[1], len(trace.obligations)):
            o = trace.obligations[k]
            if any(self._mentions(p) for p in (o.path, o.claim)) or (o.node is not None and self._mentions(o.node)):
                claim = None if o.claim is None else put.pred(o.claim)
                node = None if o.node is None else put.real(o.node)
                trace.obligations[k] = replace(o, path=put.pred(o.path), claim=claim, node=node)
        for k in range(mark[2], len(trace.barriers)):
            b = trace.barriers[k]
            if self._mentions(b.path):
                trace.barriers[k] = replace(b, path=put.pred(b.path))
        for k in range(mark[3], len(trace.hazards)):
            h = trace.hazards[k]
            if h.path is not None and self._mentions(h.path):
                trace.hazards[k] = replace(h, path=put.pred(h.path))

    def _touched(self, index: Poly) -> bool:
        return self._has(self.arena.poly_free(index))

    def _has(self, free: AbstractSet[int]) -> bool:
        return bool(free & self.starts.keys() or free & self.integers.keys())

    def _mentions(self, v: object) -> bool:
        free = v.free if isinstance(v, Real) else free_atoms(self.arena, v)
        return self._has(free)
