"""What a thread's own earlier stores say about a global load.

Other threads' stores do not matter here: that an element is read only by the thread that writes it is a claim of its
own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from warpproof.core import Unsupported
from warpproof.domains import Float, Int, Value
from warpproof.machine.setup import BufferInfo
from warpproof.machine.trace import Access
from warpproof.machine.upcoming import free_atoms
from warpproof.terms import Poly, divide_monomial

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine


EARLIER: Final = "an element read in a loop was stored in an earlier one"


@dataclass(frozen=True, slots=True)
class Stored:
    """The value that an earlier store left. In iterations of `open_loops` other stores may have come between."""

    value: Value
    open_loops: tuple[int, ...] = ()


class Forwarding:
    """Finds the store that a load of the same thread sees."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena

    def find(self, info: BufferInfo, index: Poly) -> Stored | None:
        """What this thread stored to the element earlier, if that is known; Unsupported where it may have been."""
        if not info.writable:
            return None
        arena = self.arena
        path, loops = self.machine.path.condition(), tuple(self.machine.path.loops)
        stores = [a for a in self.machine.trace.accesses if a.kind == "store" and a.buffer == info.name]
        since: list[Poly] = []  # stores that came after the one looked for
        for a in reversed(stores):
            if a.loops != loops[: len(a.loops)]:
                found = self._after_loop(a, stores, index, loops)
                if found is not None and self._untouched(index, since):
                    return found
                since.append(a.index)
            elif a.index != index:
                since.append(a.index)
            elif arena.implies(path, a.path) and a.value is not None and self._untouched(index, since):
                return Stored(a.value, loops[len(a.loops) :])
            elif not self.machine.holds(arena.negate(a.path)):
                raise Unsupported("global memory", f"{info.name} is read where it may or may not have been written")
        return None

    def _untouched(self, index: Poly, since: list[Poly]) -> bool:
        return all(self.machine.holds(self.arena.ne(index - q)) for q in since)

    def _after_loop(self, a: Access, stores: list[Access], index: Poly, loops: tuple[int, ...]) -> Stored | None:
        """The value of a store in a loop that has ended, from the one iteration that stores to this element.

        In a loop, how far that one goes is not known yet: that the iteration took place is then a demand.
        """
        inner = [i for i in a.loops if i not in loops]
        if len(inner) != 1 or any(b.index == index for b in stores if b is not a and inner[0] in b.loops):
            return None
        slope, rest = a.index.split(inner[0])
        if len(slope.terms) != 1 or inner[0] in self.arena.poly_free(rest):
            return None
        ((m, c),) = slope.terms.items()
        low, high = self.arena.bounds(slope)
        if not isinstance(c, int) or not ((low is not None and low > 0) or (high is not None and high < 0)):
            return None
        iteration, left = divide_monomial(index - rest, m, c)
        if left.terms or not self.arena.poly_uniform(iteration):
            return None
        there = self.arena.substitution({inner[0]: iteration})
        others = [b.index for b in stores if b is not a and inner[0] in b.loops]
        if not self._untouched(index, others) or not (loops or self.machine.holds(there.pred(a.path))):
            return None
        value: Value
        match a.value:
            case Float(kind, width, node):
                value = Float(kind, width, there.real(node))
            case Int(width, poly):
                value = Int(width, there.poly(poly))
            case _:
                return None
        known = frozenset(loops)
        if any(self.arena.atoms[i].kind in ("loop", "state") for i in free_atoms(self.arena, value) - known):
            return None
        self.machine.require(EARLIER, there.pred(a.path))
        return Stored(value, tuple(i for i in loops if i not in a.loops))
