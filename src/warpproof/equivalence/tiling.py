"""Contributions of all blocks against the index set of a summand, also where each block takes a window of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from warpproof.algebra import support
from warpproof.equivalence.summands import Summand
from warpproof.solve import Answer, Facts, Piece, Problem, Region, covers, exactly_once, within, without_other_blocks
from warpproof.terms import Arena, Poly, Pred


def tiles(facts: Facts, op: str, s: Summand, pieces: Sequence[Piece]) -> Answer:
    """The pieces reach every point of coordinates and bound variables, once each for a sum, and nothing else."""
    arena = facts.arena
    region = Region((*s.index.values(), *s.variables), arena.conjuncts(s.domain))
    if not pieces:
        return Answer(None, {"why": "missing elements"})
    answer = _ask(facts, op, region, pieces)
    if answer.holds:
        return answer
    for slot, block, step in _windows(arena, pieces):
        if _partition(facts, region, slot, block, step):
            found = _ask(facts, op, _window(facts, region, slot, block, step), _fixed(pieces, block), (block,))
            if found.holds:
                return Answer(True, {**found.evidence, "windows": f"of {arena.atoms[block].name}"})
    return answer


def _ask(facts: Facts, op: str, region: Region, pieces: Sequence[Piece], given: tuple[int, ...] = ()) -> Answer:
    """The question for all launches, also empty ones, or for the block indices that are given."""
    dims = (*given, *(b for p in pieces for b in p.blocks))
    problem = Problem(facts.arena, without_other_blocks(facts.arena, facts.launch, dims), region)
    if op in ("add", "mul"):
        return exactly_once(problem, pieces)
    answer = covers(problem, pieces)
    return within(problem, pieces) if answer.holds else answer


# ---------------------------------------------------------------------- windows
def _windows(arena: Arena, pieces: Sequence[Piece]) -> Iterator[tuple[int, int, Poly]]:
    """(position, block, step) where a piece's index is step·block + something, with a symbolic step."""
    seen: list[tuple[int, int, Poly]] = []
    for p in pieces:
        for slot, index in enumerate(p.index):
            for block in p.blocks:
                step = index.split(block)[0]
                found = (slot, block, step)
                free = step.as_int() is None and step.uniform() and block not in support(arena, (step,))
                if free and found not in seen:
                    seen.append(found)
                    yield found


def _partition(facts: Facts, region: Region, slot: int, block: int, step: Poly) -> bool:
    """The windows [step·b, step·(b+1)) over all blocks b cut the range of the region's variable into parts: the step is
    at least 1 and the variable lies in [0, step·blocks), also where there is no block."""
    arena = facts.arena
    extent = _extent(facts, block)
    v = arena.variable(arena.atoms[region.index[slot]])
    domain = arena.conj(region.preds)
    sizes = Facts(arena, without_other_blocks(arena, facts.launch, ()))
    return extent is not None and sizes.implied(domain, arena.le(1 - step)) and sizes.implied(
        domain, arena.le(-v)) and _below(sizes, domain, v, step * extent)


def _below(facts: Facts, domain: Pred, v: Poly, end: Poly) -> bool:
    """v < end: also by an upper bound of v in the domain that is at most the end."""
    arena = facts.arena
    if facts.implied(domain, arena.le(v - end + 1)):
        return True
    tops = [v - p.data for p in arena.conjuncts(domain) if p.op == "le"
            and (p.data - v).atoms().isdisjoint(v.atoms())]
    return any(facts.implied(arena.true, arena.le(top - end + 1), hard=True) for top in tops)


def _extent(facts: Facts, block: int) -> Poly | None:
    """The number of blocks along an axis, from the fact block − extent + 1 ≤ 0."""
    for p in facts.launch:
        if p.op == "le" and p.data.split(block)[0].as_int() == 1:
            extent: Poly = 1 - p.data.split(block)[1]
            return extent
    return None


def _window(facts: Facts, region: Region, slot: int, block: int, step: Poly) -> Region:
    """The part of the region that belongs to one block."""
    arena = facts.arena
    v = arena.variable(arena.atoms[region.index[slot]])
    start = step * arena.variable(arena.atoms[block])
    return Region(region.index, (*region.preds, arena.le(start - v), arena.le(v - start - step + 1)))


def _fixed(pieces: Sequence[Piece], block: int) -> list[Piece]:
    """The pieces of one block: its index is a parameter."""
    return [replace(p, blocks=tuple(b for b in p.blocks if b != block)) for p in pieces]
