"""Shared-memory accesses of the symbolic machine: bounds, alignment, races by footprint, initialisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Choice, Float, Pack, ScalarType, Undef, Value, poisoned
from warpproof.machine.mixing import mix, permute
from warpproof.machine.reach import reach, value_at
from warpproof.machine.shared import SYMBOLIC_ADDRESS
from warpproof.machine.trace import Hazard
from warpproof.terms import IntVector, Poly, Pred, Real, const

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

_ANY: Final = "at an address that depends on a symbol"


class SharedAccess:
    """Reads and writes shared memory for one machine, leaving a hazard wherever something is not shown."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena

    def _hazard(self, kind: str, detail: str) -> None:
        m = self.machine
        m.trace.hazards.append(Hazard(kind, detail, m.current, None, m.path.condition()))

    def align(self, offset: Poly, size: int) -> None:
        """Report a shared address that is not a multiple of the access size (PTX ISA, alignment of memory operands);
        demand it of one that depends on a symbol."""
        m = self.machine
        if m.streams.running is not None:
            m.streams.align(offset, size)
        elif not offset.is_constant():
            if m.answers.divisors.of(offset) % size:
                m.require("alignment", self.arena.eq(self.arena.mod(offset, const(size))))
        elif (offset.lanes(self.arena.lanes)[m.path.mask] % size).any():
            self._hazard("misaligned", f"a shared-memory address is not a multiple of {size}")

    def _cells(self, offset: Poly, width: int) -> IntVector | None:
        m = self.machine
        m.streams.closed()
        cells = m.shared.locate(offset, width, m.path.mask)
        if m.shared.in_bounds(cells, width):
            return cells
        self._hazard("shared-bounds", "shared memory is accessed outside its allocation")
        return None

    def target(self, offset: Poly, size: int) -> IntVector | None:
        """The cells an asynchronous copy of `size` bytes overwrites, recorded as written; None outside of it."""
        self.align(offset, size)
        cells = self._cells(offset, size)
        if cells is not None:
            self._touch(cells, size, write=True)
        return cells

    def updated(self, offset: Poly, width: int) -> IntVector | None:
        """The cells that an atomic update may reach, recorded as updated; None outside of shared memory."""
        m = self.machine
        lanes = np.nonzero(m.path.mask)[0]
        if offset.is_constant():
            found = self._cells(offset, width)
            if found is None:
                return None
            cells = np.unique(found[lanes])
        else:
            cells = reach(m, offset, width).cells
            if not m.shared.in_bounds(cells, width):
                self._hazard("shared-bounds", "shared memory is accessed outside its allocation")
                return None
        clash = m.shared.footprint.update(cells, lanes, m.current)
        if clash is not None:
            m.trace.hazards.append(
                Hazard("race", "shared memory updated atomically while another thread's plain access is unordered",
                       m.current, clash, m.path.condition())
            )
        return cells

    def _touch(self, cells: IntVector, width: int, write: bool, alike: bool = False) -> None:
        m = self.machine
        lanes = np.nonzero(m.path.mask)[0]
        for j in range(width // m.shared.unit):
            fp = m.shared.footprint
            at = cells[lanes] + j
            found = fp.write(at, lanes, m.current, alike) if write else fp.read(at, lanes, m.current)
            if found is not None:
                t = int(lanes[found[0]])
                what = "written" if write else "read"
                if fp.pending.stage[cells[t] + j]:
                    self._hazard("race", f"shared memory {what} by thread {t} while a cp.async into it may be running")
                    continue
                m.trace.hazards.append(
                    Hazard("race", f"shared memory {what} by thread {t} while another thread's access is unordered",
                           m.current, found[1], m.path.condition())
                )

    def load(self, offset: Poly, ty: ScalarType, count: int) -> list[Value]:
        """Elements at a shared offset and the next ones, for every active lane."""
        width = ty.width // 8
        self.align(offset, width * count)
        if self.machine.streams.running is not None:
            return [self.machine.streams.get(offset + i * width, ty) for i in range(count)]
        return [self._element(offset + i * width, width) for i in range(count)]

    def _element(self, offset: Poly, width: int) -> Value:
        m = self.machine
        if width < m.shared.unit:
            return self._piece(offset, width)
        if not offset.is_constant():
            return self._somewhere(offset, width)
        cells = self._cells(offset, width)
        if cells is None:
            return Undef(8 * width, "shared memory read outside its allocation")
        self._touch(cells, width, write=False)
        value, written = m.shared.load(cells, width, m.path.mask)
        value = self._on_path(value)
        if not written and poisoned(value):
            self._hazard("uninitialised", "shared memory is read where it may not have been written")
        return value

    def _somewhere(self, offset: Poly, width: int) -> Value:
        """The value at an address that depends on a symbol; every cell it may reach counts as read."""
        m = self.machine
        found = reach(m, offset, width)
        clash = m.shared.footprint.read_any(found.cells, np.nonzero(m.path.mask)[0], m.current)
        if clash is not None:
            m.trace.hazards.append(
                Hazard("race", f"shared memory read {_ANY} while another thread's access is unordered", m.current,
                       clash, m.path.condition())
            )
        value = self._on_path(value_at(m, found))
        if poisoned(value):
            self._hazard("uninitialised", "shared memory is read where it may not have been written")
        return value

    def _piece(self, offset: Poly, width: int) -> Value:
        """Part of a cell: no store is as narrow, so the cell is one value."""
        m, unit = self.machine, self.machine.shared.unit
        if not offset.is_constant():
            raise Unsupported("shared memory", SYMBOLIC_ADDRESS)
        inside = offset.lanes(self.arena.lanes) % unit
        whole = self._element(offset - const(inside), unit)
        parts = m.dom.unpack(8 * unit, whole, unit // width)
        which = inside // width
        which = np.where(m.path.mask, which, which[int(np.argmax(m.path.mask))])
        if (which == which[0]).all():
            return parts[int(which[0])]
        return mix(m.dom, list(parts), which, np.arange(self.arena.lanes))

    def _under(self, x: Real, guard: Pred) -> Real:
        """x with choices that the guard decides made; a value of another lane by what the guard says in all lanes."""
        a = self.arena
        if x.op != "gather":
            return a.under(x, guard, True)
        alike = a.conj(p for p in a.conjuncts(guard) if p.uniform)
        inner = x.args[0] if alike.op == "true" else a.under(x.args[0], alike, True)
        return x if inner is x.args[0] else a.permute(inner, a.permutation(x), lazy=True)

    def _on_path(self, value: Value) -> Value:
        """The value with choices decided by the reader's own path."""
        guard = self.machine.path.symbolic()
        if isinstance(value, Float) and guard.op != "true":
            return Float(value.kind, value.width, self._under(value.node, guard))
        if isinstance(value, Pack) and guard.op != "true":
            return Pack(value.width, tuple(self._on_path(p) for p in value.parts))
        if isinstance(value, Choice) and self.arena.implies(guard, value.pred):
            return self._on_path(value.first)
        return value

    def store(self, offset: Poly, width: int, value: Value) -> None:
        """Store `width` bytes at a shared offset in every active lane."""
        m = self.machine
        if m.streams.running is not None:
            m.streams.put(offset, width, value)
            return
        cells = self._cells(offset, width)
        if cells is not None:
            self._touch(cells, width, write=True, alike=self._alike(cells, value))
            guard = m.path.symbolic()
            with m.path.beyond_guards():
                m.shared.store(cells, value, width, m.path.mask, guard)

    def _alike(self, cells: IntVector, value: Value) -> bool:
        """Lanes that store to the same cell in this instruction store the same value."""
        m = self.machine
        lanes = np.nonzero(m.path.mask)[0]
        _, first, which = np.unique(cells[lanes], return_index=True, return_inverse=True)
        if len(first) == len(lanes):
            return False
        source = np.arange(self.arena.lanes)
        source[lanes] = lanes[first[which.reshape(-1)]]
        if poisoned(value) or not m.path.warp_uniform(source) or not self._same(value, source):
            return False
        m.assume("same-value-stores", "several threads storing one value to one place leave that value there",
                 "PTX memory model: what is read there is one of the values written")
        return True

    def _same(self, value: Value, source: IntVector) -> bool:
        """Every lane holds what lane source[t] holds."""
        if isinstance(value, Float):
            return self.arena.permute(value.node, source) is value.node
        if isinstance(value, Pack):
            return all(self._same(p, source) for p in value.parts)
        return permute(self.machine.dom, value, source) == value
