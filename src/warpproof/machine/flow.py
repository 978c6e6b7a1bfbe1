"""The control-flow graph of a kernel: blocks, dominators, post-dominators and natural loops.

Dominators are computed by the algorithm of Lengauer and Tarjan with path compression (TOPLAS 1(1), 1979), so that long
chains of early exits stay near linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from warpproof.core import Unsupported
from warpproof.ptx import Instruction, Kernel, Symbol

ENDS: Final = frozenset({"ret", "exit", "trap"})
MAX_BODIES: Final = 4_000_000  # blocks over all loop bodies together


@dataclass(frozen=True, slots=True)
class Block:
    """The instructions `start` to `stop - 1`: entered at the first, left behind the last."""

    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A natural loop: `body` holds all its blocks, `latches` jump back to `header`, `exits` are the edges that leave.

    `parent` is the header of the innermost loop around it, `depth` is 1 for an outermost loop.
    """

    header: int
    latches: tuple[int, ...]
    body: frozenset[int]
    exits: tuple[tuple[int, int], ...]
    parent: int | None
    depth: int


@dataclass(frozen=True, slots=True)
class Graph:
    """The blocks in code order and how control passes between them; block 0 is the entry.

    `exits` are the blocks with an edge to the virtual exit: those that end in an unguarded `ret`, `exit` or `trap` or
    run past the end of the code. A guarded one takes lanes away and falls through, without that edge. Where no path
    leads to an exit (an endless loop) a block with a guarded exit, or else the last block, counts as one, so that every
    reachable block has a post-dominator. `idom` is None for the entry and for unreachable blocks, whose edges are left
    out of `predecessors`; `ipdom` is None where the immediate post-dominator is the virtual exit, and for unreachable
    blocks. `order` is a reverse post-order of the reachable blocks.
    """

    blocks: tuple[Block, ...]
    successors: tuple[tuple[int, ...], ...]
    predecessors: tuple[tuple[int, ...], ...]
    exits: tuple[int, ...]
    idom: tuple[int | None, ...]
    ipdom: tuple[int | None, ...]
    loops: dict[int, Loop]
    order: tuple[int, ...]

    def block_of(self, index: int) -> int:
        """The block that holds the instruction `index`."""
        low, high = 0, len(self.blocks)
        while high - low > 1:
            middle = (low + high) // 2
            if self.blocks[middle].start <= index:
                low = middle
            else:
                high = middle
        return low

    def dominates(self, a: int, b: int) -> bool:
        """Whether every path from the entry to `b` passes `a`; False for an unreachable `b`."""
        current: int | None = b
        if b != 0 and self.idom[b] is None:
            return False
        while current is not None and current != a:
            current = self.idom[current]
        return current == a


def control_flow(kernel: Kernel) -> Graph:
    """The control-flow graph of a kernel.

    Raises Unsupported for irreducible loops, for jumps whose targets are not known, and beyond `MAX_BODIES`.
    """
    if not kernel.code:
        return Graph((Block(0, 0),), ((),), ((),), (0,), (None,), (None,), {}, (0,))
    blocks, successors, exits, guarded = _blocks(kernel)
    return analyse(blocks, successors, exits, guarded)


def analyse(blocks: Sequence[Block], successors: Sequence[tuple[int, ...]], exits: Sequence[int],
            guarded: Sequence[int] = ()) -> Graph:
    """The graph over given edges; `guarded` are blocks where some lanes may leave though control also goes on."""
    count = len(blocks)
    search = _search(successors, 0)
    order = search.postorder[::-1]
    reached = set(order)
    live = [s if b in reached else () for b, s in enumerate(successors)]
    predecessors = _reversed_edges(live)
    leaving = _leaving(predecessors, [e for e in exits if e in reached], [g for g in guarded if g in reached], order)
    idom = _dominators(search, predecessors)
    ends = set(leaving)
    away = [*predecessors, tuple(leaving)]
    back = [(*s, count) if b in ends else s for b, s in enumerate(live)]
    ipdom = _dominators(_search(away, count), [*back, ()])[:count]
    loops = _loops(live, predecessors, idom, order, blocks)
    return Graph(tuple(blocks), tuple(successors), tuple(predecessors), tuple(leaving), tuple(idom),
                 tuple([None if d == count else d for d in ipdom]), loops, tuple(order))


def _blocks(kernel: Kernel) -> tuple[list[Block], list[tuple[int, ...]], list[int], list[int]]:
    """The blocks, their successors, those that leave the kernel, and those where some lanes may leave."""
    code, count = kernel.code, len(kernel.code)
    jumps: dict[int, tuple[int, ...]] = {i: _targets(kernel, x) for i, x in enumerate(code) if x.name in ("bra", "brx")}
    leaders = {0, *(t for targets in jumps.values() for t in targets), *(i + 1 for i in jumps)}
    leaders |= {i + 1 for i, x in enumerate(code) if x.name in ENDS}
    starts = sorted(s for s in leaders if s < count)
    number = {start: b for b, start in enumerate(starts)}
    blocks = [Block(a, b) for a, b in zip(starts, [*starts[1:], count])]
    successors: list[tuple[int, ...]] = []
    exits: list[int] = []
    guarded: list[int] = []
    for b, block in enumerate(blocks):
        last = code[block.stop - 1]
        following = jumps.get(block.stop - 1, ())
        if last.name in ENDS and last.guard is not None:
            guarded.append(b)
        if last.guard is not None or (last.name not in ENDS and block.stop - 1 not in jumps):
            following = (*following, block.stop)
        if (last.name in ENDS and last.guard is None) or count in following:
            exits.append(b)
        successors.append(tuple(dict.fromkeys(number[f] for f in following if f < count)))
    return blocks, successors, exits, guarded


def _targets(kernel: Kernel, jump: Instruction) -> tuple[int, ...]:
    """The instruction indices that a `bra` or `brx.idx` may go to, without the one behind it."""
    operand = jump.operands[-1] if jump.operands else None
    if isinstance(operand, Symbol):
        if jump.name == "bra" and operand.name in kernel.labels:
            return (kernel.labels[operand.name],)
        table = kernel.tables.get(operand.name)
        if jump.name == "brx" and table is not None and table.kind == "branchtargets":
            return tuple(kernel.labels[t] for t in table.targets)
    raise Unsupported(jump.opcode, "the target of the jump is not known", jump.span)


@dataclass(frozen=True, slots=True)
class _Search:
    """A depth-first search: nodes as they were entered and left, and the tree's parents (-1 outside)."""

    preorder: list[int]
    postorder: list[int]
    parent: list[int]


def _search(successors: Sequence[tuple[int, ...]], root: int) -> _Search:
    preorder, postorder, parent = [root], [], [-1] * len(successors)
    seen = [False] * len(successors)
    seen[root] = True
    stack = [(root, iter(successors[root]))]
    while stack:
        node, following = stack[-1]
        for succ in following:
            if not seen[succ]:
                seen[succ] = True
                parent[succ] = node
                preorder.append(succ)
                stack.append((succ, iter(successors[succ])))
                break
        else:
            postorder.append(node)
            stack.pop()
    return _Search(preorder, postorder, parent)


def _reversed_edges(successors: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    lists: list[list[int]] = [[] for _ in successors]
    for node, following in enumerate(successors):
        for succ in following:
            lists[succ].append(node)
    return [tuple(p) for p in lists]


def _leaving(predecessors: Sequence[tuple[int, ...]], exits: Sequence[int], guarded: Sequence[int],
             order: Sequence[int]) -> list[int]:
    """The exits, and one block more for each region from which no path leads to an exit."""
    leaving: list[int] = []
    seen: set[int] = set()
    for batch in (exits, sorted(guarded, reverse=True), sorted(order, reverse=True)):
        for block in batch:
            if block in seen and batch is not exits:
                continue
            leaving.append(block)
            stack = [block]
            while stack:
                node = stack.pop()
                if node not in seen:
                    seen.add(node)
                    stack += predecessors[node]
    return leaving


def _dominators(search: _Search, predecessors: Sequence[tuple[int, ...]]) -> list[int | None]:
    """The immediate dominator of each node; None for the root and for nodes the search did not reach."""
    size = len(predecessors)
    vertex, parent = search.preorder, search.parent
    semi = [-1] * size
    for n, node in enumerate(vertex):
        semi[node] = n
    forest = _Forest(semi, list(range(size)), [-1] * size)
    bucket: list[list[int]] = [[] for _ in range(size)]
    idom: list[int | None] = [None] * size
    for node in reversed(vertex[1:]):
        for pred in predecessors[node]:
            if semi[pred] >= 0:
                semi[node] = min(semi[node], semi[forest.lowest(pred)])
        bucket[vertex[semi[node]]].append(node)
        above = parent[node]
        forest.ancestor[node] = above
        for other in bucket[above]:
            low = forest.lowest(other)
            idom[other] = low if semi[low] < semi[other] else above
        bucket[above].clear()
    for node in vertex[1:]:
        above_ = idom[node]
        if above_ is not None and above_ != vertex[semi[node]]:
            idom[node] = idom[above_]
    return idom


@dataclass(frozen=True, slots=True)
class _Forest:
    """Linked trees with path compression: `lowest(v)` has the least semidominator between `v` and below its root."""

    semi: list[int]
    label: list[int]
    ancestor: list[int]

    def lowest(self, node: int) -> int:
        """The node of least `semi` on the path from `node` up to, but not including, its root."""
        ancestor, label, semi = self.ancestor, self.label, self.semi
        if ancestor[node] < 0:
            return label[node]
        path = []
        while ancestor[ancestor[node]] >= 0:
            path.append(node)
            node = ancestor[node]
        for below in reversed(path):
            above = ancestor[below]
            if semi[label[above]] < semi[label[below]]:
                label[below] = label[above]
            ancestor[below] = ancestor[above]
        return label[path[0]] if path else label[node]


def _loops(successors: Sequence[tuple[int, ...]], predecessors: Sequence[tuple[int, ...]], idom: Sequence[int | None],
           order: Sequence[int], blocks: Sequence[Block]) -> dict[int, Loop]:
    """The natural loops by header, outer ones first. Raises Unsupported for a cycle with two entries."""
    place = {node: i for i, node in enumerate(order)}
    enter, leave = _intervals(idom, order)
    latches: dict[int, list[int]] = {}
    for node in order:
        for succ in successors[node]:
            if place[succ] <= place[node]:
                if not enter[succ] <= enter[node] <= leave[succ]:
                    raise Unsupported("control flow", f"a loop is entered in the middle, at instruction "
                                      f"{blocks[succ].start}; such irreducible loops are not analysed")
                latches.setdefault(succ, []).append(node)
    loops: dict[int, Loop] = {}
    innermost: dict[int, int] = {}
    total = 0
    for header in sorted(latches, key=place.__getitem__):
        body = _body(predecessors, header, latches[header])
        total += len(body)
        if total > MAX_BODIES:
            raise Unsupported("control flow", "the loops are nested too deeply")
        parent = innermost.get(header)
        leaving = tuple([(b, s) for b in sorted(body) for s in successors[b] if s not in body])
        depth = 1 if parent is None else loops[parent].depth + 1
        loops[header] = Loop(header, tuple(sorted(latches[header])), body, leaving, parent, depth)
        innermost.update(dict.fromkeys(body, header))
    return loops


def _body(predecessors: Sequence[tuple[int, ...]], header: int, latches: Sequence[int]) -> frozenset[int]:
    body, stack = {header}, list(latches)
    while stack:
        node = stack.pop()
        if node not in body:
            body.add(node)
            stack += predecessors[node]
    return frozenset(body)


def _intervals(idom: Sequence[int | None], order: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Numbers in the dominator tree: `a` dominates `b` iff enter[a] <= enter[b] <= leave[a]."""
    children: list[list[int]] = [[] for _ in idom]
    for node in order:
        above = idom[node]
        if above is not None:
            children[above].append(node)
    search = _search([tuple(c) for c in children], order[0])
    enter = {node: i for i, node in enumerate(search.preorder)}
    leave: dict[int, int] = {}
    for node in search.postorder:
        leave[node] = max([enter[node], *(leave[c] for c in children[node])])
    return enter, leave
