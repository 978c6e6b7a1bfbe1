"""`cp.async` on symbolic values (PTX ISA 9.7.9.25): the copied values are put in shared memory when the copy is issued,
and until the issuing thread has waited for them every access of these cells is a race.

Groups are counted per thread. What is done under a condition counts only where the condition holds (see `fork`), so
what is not known complete stays outstanding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import AsyncCopy, AsyncGroup, Int, ScalarType, Value
from warpproof.terms import const

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine


class AsyncCopies:
    """The copies of one machine; what is outstanding is kept in the footprint, which forks and joins with the run."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena

    # ------------------------------------------------------------------ issue
    def issue(self, effect: AsyncCopy) -> None:
        """Start one copy of `size` bytes in every active lane."""
        m = self.machine
        destination: Any = effect.destination
        space, name, offset = m.answers.locate(destination)
        if space and (space, name) != ("shared", "window"):
            raise Unsupported("cp.async", f"a destination in {space} memory")
        value = self._value(effect)
        cells = m.answers.shared.target(offset, effect.size)
        if cells is None:
            return
        guard = m.path.symbolic()
        with m.path.beyond_guards():
            m.shared.store(cells, value, effect.size, m.path.mask, guard)
        lanes = np.nonzero(m.path.mask)[0]
        for j in range(effect.size // m.shared.unit):
            m.shared.footprint.pending.issue(cells[lanes] + j, lanes)

    def _value(self, effect: AsyncCopy) -> Value:
        """The bytes copied: elements below the source size, then zeros."""
        m, size = self.machine, effect.size
        source: Any = effect.source
        space, name, offset = m.answers.locate(source)
        if space != "global":
            raise Unsupported("cp.async", "a source that is not a buffer")
        read = self._reads(effect)
        with m.path.under(read(1)):
            info, index, count = m.answers.elements(name, offset, ScalarType("b", 8 * size), 1)
        if info.writable:
            raise Unsupported("cp.async", f"a copy from {name}, which the kernel writes")
        width = info.width // 8
        parts: list[Value] = []
        for j in range(count):
            here = read((j + 1) * width)
            at = index + j
            with m.path.under(here):
                if m.path.mask.any() and here.op != "false":
                    m.answers.record("load", info, at)
            parts.append(m.dom.merge(here, m.answers.element(info, at), Int(info.width, const(0))))
        return parts[0] if count == 1 else m.dom.pack(8 * size, parts)

    def _reads(self, effect: AsyncCopy) -> Any:
        """The condition under which the first k bytes are read."""
        arena, m = self.arena, self.machine
        ignored: Any = effect.ignore
        kept = arena.true if ignored is None else arena.negate(ignored)
        if effect.source_size is None:
            return lambda k: kept
        source_size: Any = effect.source_size
        p = m.dom.integers.view(source_size, ScalarType("u", 32))
        m.require("cp.async source size at most the copy size", arena.le(p - effect.size))
        return lambda k: arena.conj((kept, arena.le(const(k) - p)))

    # ------------------------------------------------------------------ groups
    def group(self, effect: AsyncGroup) -> None:
        """`commit_group`, `wait_group` or `wait_all`."""
        m = self.machine
        fp = m.shared.footprint
        if m.conditional():
            return  # it may not happen: nothing gets closer to completion
        match effect.kind:
            case "commit":
                fp.pending.commit(m.path.mask)
            case "wait" | "wait_all":
                left = effect.pending if effect.kind == "wait" else None
                fp.settle(*fp.pending.complete(left, m.path.mask))
            case _:
                raise Unsupported(f"cp.async.{effect.kind}", "unknown group operation")
