"""Which threads have passed a barrier by: where in a kernel they are, against where they would still meet it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from warpproof.core import Unsupported
from warpproof.machine.batch import Mask
from warpproof.machine.flow import Graph, control_flow
from warpproof.ptx import Instruction, Kernel


class Passage:
    """For the barriers in a kernel's own code. A thread has passed barrier b by when no way forward (without going
    round a loop again) leads to b, but some way at all leads to a barrier: it took the other side of a condition around
    b, and has not simply left the kernel early."""

    __slots__ = ("_ahead", "_graph", "_kernel", "_known")

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._graph: Graph | None = None
        self._ahead: set[int] = set()
        self._known: dict[int, Mask] = {}

    def passed(self, barrier: int, pc: npt.NDArray[np.int64]) -> Mask:
        """For threads at `pc`, whether they have passed the barrier at that instruction by."""
        table = self._known.get(barrier)
        if table is None:
            table = self._known[barrier] = self._table(barrier)
        inside = pc < len(table)
        return inside & table[np.where(inside, pc, 0)]

    def _table(self, barrier: int) -> Mask:
        size = len(self._kernel.code)
        table: Mask = np.zeros(size, np.bool_)
        try:
            graph = self._graph or control_flow(self._kernel)
        except Unsupported:
            return table
        if self._graph is None:
            self._graph = graph
            ends = {n for n, b in enumerate(graph.blocks) if any(map(is_barrier, self._kernel.code[b.start:b.stop]))}
            self._ahead = _leading(graph, ends, forward=False)
        if barrier >= size:
            return table
        home = graph.block_of(barrier)
        leading = _leading(graph, {home}, forward=True)
        for number, block in enumerate(graph.blocks):
            last = max((i for i in range(block.start, block.stop) if is_barrier(self._kernel.code[i])), default=-1)
            beyond = any(n in self._ahead for n in graph.successors[number])
            for pc in range(block.start, block.stop):
                still = barrier >= pc if number == home else number in leading
                table[pc] = not still and (pc <= last or beyond)
        return table


def is_barrier(instruction: Instruction) -> bool:
    """True for the CTA barriers."""
    return instruction.name in ("bar", "barrier") and not {"warp", "cluster"} & set(instruction.modifiers)


def _leading(graph: Graph, goals: set[int], *, forward: bool) -> set[int]:
    """The blocks from which a goal can be reached; with `forward` without going back in the reverse post-order."""
    place = {block: at for at, block in enumerate(graph.order)}
    found, work = set(goals), list(goals)
    while work:
        block = work.pop()
        for before in graph.predecessors[block]:
            if before not in found and not (forward and place.get(before, 0) >= place.get(block, 0)):
                found.add(before)
                work.append(before)
    return found
