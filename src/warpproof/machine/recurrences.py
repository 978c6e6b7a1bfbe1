"""What registers, shared cells and the trace look like after a symbolic loop, once its body has been run from an
arbitrary iteration: affine counters, values set anew in each iteration, and folds.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Choice, Float, Int, Pack, Part, Undef, Value
from warpproof.machine import shared_updates
from warpproof.machine.extrema import Extrema
from warpproof.machine.gauge import Gauge, Maximum
from warpproof.machine.means import Means
from warpproof.machine.mixing import permute
from warpproof.machine.prefixes import Prefixes
from warpproof.machine.shifts import HOLE
from warpproof.machine.trace import RunningMaximum
from warpproof.machine.upcoming import free_atoms
from warpproof.terms import Atom, IntVector, Poly, Pred, Real, TermMap, const

if TYPE_CHECKING:
    from warpproof.machine.guesses import Guess, Snapshot
    from warpproof.machine.symbolic import SymbolicMachine

_ROUNDS: Final = 8


class Closer:
    """Closes one loop: `go` is the continue condition of iteration `var`, `held` its stand-in domain in the trace."""

    def __init__(
        self, machine: SymbolicMachine, header: int, var: Atom, guess: Guess, entry: Snapshot, go: Pred, held: Pred,
    ) -> None:
        self.machine, self.arena, self.header = machine, machine.arena, header
        self.var, self.guess, self.entry, self.go, self.held, self.changed = var, guess, entry, go, held, guess.changed
        self.states = self.arena.unknown.union(a for v in guess.states.values() for a in free_atoms(self.arena, v))

    def close(self) -> None:
        """Replace the machine's state by the state after the loop."""
        m = self.machine
        proceed = self._continue()
        domain = self.arena.domain(self.var.id, proceed)
        m.trace.replace_guard(self.arena, self.entry.mark, self.held, domain)
        self.swap = TermMap(self.arena, lambda i: None, lambda x: None, lambda p: domain if p is self.held else None)
        self.last = self._trip(proceed) - 1
        self.at_end = self.arena.substitution({self.var.id: self.last})
        self._name = "a value"  # the register at work, for messages
        self.results: dict[Real, Real] = {}  # what a carried value's update is after the last iteration
        self.prefixes = Prefixes(m, self.var.id)
        self.means = Means(m.dom.scaling, self.prefixes, self.states, self.var.id, domain, self.at_end)
        self.extrema = Extrema(m, self.prefixes, self.states, self.var, domain)
        self._gauge(domain)
        carried: dict[str, Any] = {}
        for _ in range(_ROUNDS):  # again for values that are updates of others, or whose updates read others
            known = len(self.results) + len(self.prefixes.starts)
            for n, v in m.registers.items():
                if n in self.guess.states and (n not in carried or _unclosed(carried[n])):
                    carried[n] = self._register(n, v, domain)
            if known == len(self.results) + len(self.prefixes.starts):
                break
        self.prefixes.fill(self.entry.mark)
        shared_updates.closed(m, self.entry.mark, self.var.id, self.states)
        new = {n: carried[n] if n in carried else self._register(n, v, domain) for n, v in m.registers.items()}
        m.registers = {n: v for n, v in new.items() if v is not None}
        self._cells()

    # ------------------------------------------------------------------ the exit test
    def _continue(self) -> Poly:
        """The polynomial p with "go on after iteration i" = p(i) ≤ 0, increasing in i."""
        go = self.go
        if go.op == "le":
            p: Poly = go.data
        elif go.op == "ne":
            p = self._counter(go.data)
        else:
            raise self._stuck("its test is not one integer comparison")
        slope, rest = p.split(self.var.id)
        if self.arena.poly_free(p) & self.states:
            raise self._stuck("its test depends on a recurrence that did not close")
        if self.var.id in self.arena.poly_free(rest) or self.arena.poly_free(slope):
            raise self._stuck("its test is not linear in the iteration number")
        low, high = self.arena.bounds(slope)
        if high is not None and high < 1:
            raise self._stuck("its counter does not move towards the bound")
        if (low is None or low < 1) and not self.machine.holds(self.arena.le(1 - slope)):
            self.machine.require("loop terminates", self.arena.le(1 - slope))
        return p

    def _counter(self, p: Poly) -> Poly:
        """i ≠ a as i < a, which needs a ≥ 0 and the step to hit a exactly."""
        slope, rest = p.split(self.var.id)
        k = slope.as_int()
        if k is None or k == 0:
            raise self._stuck("an inequality test whose step is symbolic")
        target = rest * (-1 if k > 0 else 1)
        k = abs(k)
        if k > 1:
            whole = self.arena.floor_div(target, const(k))
            self.machine.require("loop counter meets its bound", self.arena.eq(target - whole * k))
            target = whole
        self.machine.require("loop counter meets its bound", self.arena.le(-target))
        return self.arena.variable(self.var) - target + 1

    def _stuck(self, why: str) -> Unsupported:
        return Unsupported("loop", f"the loop at {self._place()} does not close: {why}")

    def _trip(self, p: Poly) -> Poly:
        """The number of iterations: the least n ≥ 1 with p(n−1) > 0."""
        slope, rest = p.split(self.var.id)
        n = self.arena.floor_div(-rest, slope) + 2
        low = self.arena.bounds(n)[0]
        if low is not None and low >= 1:
            return n
        if self.machine.holds(self.arena.le(1 - n)):
            return n
        return self.arena.extremum("max", (n, const(1)))

    # ------------------------------------------------------------------ registers
    def _register(self, name: str, value: Any, domain: Pred) -> Any:
        self._name = name
        if name in self.guess.affine:
            p0, d = self.guess.affine[name]
            if value.poly != p0 + (self.arena.variable(self.var) + 1) * d:
                return self._final(value)  # so it leaves an iteration only when there is another one
            return Int(value.width, p0 + (self.last + 1) * d)
        if name in self.guess.unknown and name in self.guess.states:
            return self._recurrence(name, value, self.guess.states[name], self.guess.unknown[name], domain)
        entry = self.entry.registers.get(name)
        if entry is not None and (value is entry or value == entry):
            return value
        return self._final(value)

    def _final(self, value: Any) -> Any:
        """A value set anew in every iteration, as the last one left it; None (undefined) when it is not closed."""
        if isinstance(value, Pred):
            p = self.swap.pred(value)
            return None if p.free & self.states else self.at_end.pred(p)
        if isinstance(value, Float):
            node = self.swap.real(value.node)
            if node.free & self.states:
                node = TermMap(self.arena, lambda i: None, self.results.get, lambda p: None).real(node)
            if node.free & self.states:
                return Float(value.kind, value.width, self._poison())
            return Float(value.kind, value.width, self.at_end.real(node))
        if isinstance(value, Int):
            if self.arena.poly_free(value.poly) & self.states:
                return Undef(value.width, self._open())
            return Int(value.width, self.at_end.poly(self.swap.poly(value.poly)))
        if isinstance(value, Pack):
            return Pack(value.width, tuple(self._final(p) for p in value.parts))
        if isinstance(value, Part):
            return replace(value, whole=self._final(value.whole))
        if isinstance(value, Choice):
            pred = self._final(value.pred)
            if pred is None:
                return Undef(value.width, self._open())
            return self.machine.dom.merge(pred, self._final(value.first), self._final(value.second))
        return value

    def _place(self) -> str:
        m = self.machine
        return m.where() if m.frames else m.where(m.graph.blocks[self.header].start)

    def _poison(self) -> Real:
        return self.arena.poison(self._open())

    def _open(self) -> str:
        return f"the recurrence of {self._name}, which did not close, in the loop at {self._place()}"

    def _gauge(self, domain: Pred) -> None:
        """Find the running maxima, whose closed forms the gauge rule needs."""
        maxima = []
        for name, state in self.guess.states.items():
            value, entry = self.machine.registers.get(name), self.guess.unknown[name]
            if not (isinstance(value, Float) and isinstance(state, Float) and isinstance(entry, Float)):
                continue
            new = self.swap.real(value.node)
            after = self._fold(new, state.node, entry.node, domain) if _grows(new) else None
            if after is not None:
                maxima.append(Maximum(state.node, new, after, entry.node))
                atom, path = state.node.data[0], self.machine.path.condition()
                self.machine.trace.maxima[atom] = RunningMaximum(atom, self.var.id, entry.node, new, path)
        self.gauge = Gauge(self.arena, self.machine.dom.scaling, self.states, maxima)

    def _recurrence(self, name: str, value: Any, state: Any, v0: Any, domain: Pred) -> Any:
        if isinstance(value, Float) and isinstance(state, Float) and isinstance(v0, Float):
            new = self.swap.real(value.node)
            node = self._fold(new, state.node, v0.node, domain)
            if node is None and new.free & self.states:
                node = self.gauge.close(new, state.node, v0.node, self.var.id, domain)
            if node is None and new.free & self.states:
                node = self.means.close(self._told(new, state.node), state.node, v0.node, new)
            if node is None and new.free & self.prefixes.starts.keys():
                node = self._fold(self.prefixes.real(new), state.node, v0.node, domain)
            if node is None:
                return self._final(value)
            self.results.setdefault(new, node)
            return Float(value.kind, value.width, node)
        if isinstance(value, Int) and isinstance(state, Int) and isinstance(v0, Int):
            step = self.swap.poly(value.poly) - state.poly
            if not self.arena.poly_free(step) & self.states:
                return Int(value.width, v0.poly + self.arena.total(self.var.id, domain, step))
            found = self._position(self.swap.poly(value.poly), state.poly, v0.poly)
            if found is not None:
                return Int(value.width, found)
        packs = isinstance(value, Pack) and isinstance(state, Pack) and isinstance(v0, Pack)
        if packs and len(value.parts) == len(state.parts) == len(v0.parts):
            each = zip(value.parts, state.parts, v0.parts, strict=True)
            parts: list[Value] = [self._recurrence(name, x, s, b, domain) for x, s, b in each]
            return Pack(value.width, tuple(parts))
        return self._final(value)

    def _position(self, new: Poly, state: Poly, entry: Poly) -> Poly | None:
        """The position of a running extremum after the loop."""
        for name, unknown in self.guess.states.items():
            value, first = self.machine.registers.get(name), self.guess.unknown.get(name)
            if isinstance(value, Float) and isinstance(unknown, Float) and isinstance(first, Float) and (
                    unknown.node.data[0] in self.arena.poly_free(new)):
                found = self.extrema.close(new, state, entry, (self.swap.real(value.node), unknown.node, first.node))
                if found is not None:
                    return found
        return None

    def _told(self, x: Real, state: Real) -> Real:
        """x with the start values of counters put in: those that are no means, which other updates are centred on."""
        means = {m.state.data[0] for m in self.means.means}
        return self.prefixes.without(means | {state.data[0]}).real(x)

    def _fold(self, x: Real, state: Real, x0: Real, domain: Pred) -> Real | None:
        """x = state ⊕ g with g free of loop state: the fold of g over the iterations, onto the entry value."""
        if x is state:
            self.prefixes.put(state, x0)
            return x0
        for op in ("add", "max", "min", "mul"):
            x = self._outside(op, x, state)
            if x.op != op:
                continue
            operands = self.arena.flatten(x, op)
            if operands.count(state) != 1 or any(y.free & self.states for y in operands if y is not state):
                continue
            rest = [y for y in operands if y is not state]
            g = rest[0]
            for y in rest[1:]:
                g = self.arena.combine(op, g, y)
            self.prefixes.put(state, self.prefixes.fold(op, x0, g))
            if op == "add" and g.op == "const":
                return self.arena.add(x0, self.arena.mul(g, self.arena.of_int(self.last + 1)))
            return self.arena.combine(op, x0, self.arena.fold(op, self.var.id, domain, g))
        return None

    def _outside(self, op: str, x: Real, state: Real) -> Real:
        """A reduction over lanes of max(s, g), where all its lanes hold one s: max(s, reduction of g)."""
        if op not in ("max", "min") or x.op != "red" or x.data[0] != op:
            return x
        matrix, leaf = self.arena.matrix(x), x.args[0]
        operands = self.arena.flatten(leaf, op)
        if operands.count(state) != 1 or self.arena.reduction(op, state, matrix) is not state:
            return x
        rest = [y for y in operands if y is not state]
        g = rest[0]
        for y in rest[1:]:
            g = self.arena.combine(op, g, y)
        return self.arena.combine(op, state, self.arena.reduction(op, g, matrix))

    # ------------------------------------------------------------------ shared memory
    def _cells(self) -> None:
        """What the last iteration left in the changed cells; where the loop was not entered, what they held before."""
        m, changed = self.machine, self.changed
        guard = m.path.symbolic()
        left, held = m.shared.owner[changed], self.entry.shared[0][changed]
        for now, old in {*zip(left.tolist(), held.tolist(), strict=True)}:
            if now < 0:
                continue
            final = self._final(m.shared.values[now])
            if final is None:
                final = Undef(m.shared.unit * 8, HOLE)
            where = changed[(left == now) & (held == old)]
            if guard.op != "true":
                final = m.dom.merge(guard, final, self._held(old, where))
            m.shared.owner[where] = m.shared.intern(final)

    def _held(self, old: int, cells: IntVector) -> Value:
        """What some cells held at entry, in the lanes whose values they have now."""
        m = self.machine
        hole = Undef(m.shared.unit * 8, HOLE)
        source, lanes, before = np.arange(self.arena.lanes), m.shared.lane[cells], self.entry.shared[1][cells]
        source[lanes] = before
        if old < 0 or (source[lanes] != before).any():
            return hole
        try:
            return permute(m.dom, m.shared.values[old], source)
        except Unsupported:
            return hole


def _unclosed(v: Any) -> bool:
    match v:
        case Float(_, _, node):
            return node.op == "poison"
        case Pack(_, parts):
            return any(map(_unclosed, parts))
        case _:
            return v is None or isinstance(v, Undef)


def _grows(x: Real) -> bool:
    """True for a maximum, or one over lanes."""
    return x.op == "max" or (x.op == "red" and x.data[0] == "max")
