"""No two threads touch one element without order: shared memory between barriers, global memory within a launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from warpproof.core import Claim, Status
from warpproof.machine import Access, BufferInfo, Trace
from warpproof.solve import (
    Answer,
    Facts,
    Piece,
    Problem,
    disjoint,
    equal_index_same_thread,
    flattened,
    in_order,
    injective,
    regrouped,
    single_thread,
)
from warpproof.terms import Arena, Poly, Pred

Where = Callable[[int], str]
Split = Callable[[Access], tuple[tuple[Poly, ...], tuple[Poly, ...]]]
"""How many elements each coordinate of an access counts, and the coordinates."""


def race_claims(
    arena: Arena, facts: Facts, trace: Trace, buffers: Mapping[str, BufferInfo], blocks: Sequence[int],
    split: Split, where: Where, dims: Callable[[Sequence[Access]], tuple[int, ...]] | None = None,
) -> list[Claim]:
    """Claims for shared memory (from the run's footprints) and for every buffer that is written.

    `dims` are what tells the CTAs of some accesses apart, when it is not the block indices.
    """
    claims: list[Claim] = []
    races = [h for h in trace.hazards if h.kind in ("race", "shared-bounds")]  # an access outside is in no footprint
    for h in races:
        dead = h.path is not None and facts.infeasible(h.path)
        other = f" and {where(h.other)}" if h.other is not None and h.other >= 0 else ""
        claims.append(
            Claim("races", "shared-memory accesses are ordered by barriers", Status.SHOWN if dead else Status.OPEN,
                  "path" if dead else "", where(h.instruction) + other, hint=h.detail)
        )
    if not races:
        claims.append(Claim("races", "shared-memory accesses are ordered by barriers", Status.SHOWN, "footprints"))
    for name, info in buffers.items():
        if any(a.kind == "store" and a.buffer == name for a in trace.accesses):
            own = [a for a in trace.accesses if a.buffer == name and a.kind in ("load", "reload", "store")]
            claims += _buffer(arena, facts, trace, info, dims(own) if dims else blocks, split, where)
        if any(a.kind == "atomic" and a.buffer == name for a in trace.accesses):
            claims.append(_atomically(arena, facts, trace, name, blocks, split, where))
    return claims


def _atomically(
    arena: Arena, facts: Facts, trace: Trace, name: str, blocks: Sequence[int],
    split: Split, where: Where,
) -> Claim:
    """Atomic updates do not race with each other (both are strong, at the scope of all threads), only with others."""
    text = f"elements of {name} that are updated atomically are accessed in no other way"
    updates = [a for a in trace.accesses if a.kind == "atomic" and a.buffer == name]
    others = [a for a in trace.accesses if a.kind != "atomic" and a.buffer == name]
    if not others:
        return Claim("races", text, Status.SHOWN, "only atomic updates", where(updates[0].instruction))
    both, given = _pieces(facts, [*updates, *others], blocks, split)
    for k, a in enumerate(updates):
        for n, b in enumerate(others, len(updates)):
            if not disjoint(Problem(arena, (*facts.launch, *given)), (both[k], both[n])).holds:
                place = f"{where(a.instruction)} and {where(b.instruction)}"
                return Claim("races", text, Status.OPEN, place=place,
                             hint=f"an element may be both updated atomically and reached by a plain {b.kind}")
    return Claim("races", text, Status.SHOWN, "integer-sets", where(updates[0].instruction))


def _pieces(
    facts: Facts, accesses: Sequence[Access], blocks: Sequence[int], split: Split
) -> tuple[list[Piece], tuple[Pred, ...]]:
    """The accesses as pieces of one index map, counted by tile coordinates and digits where they have such."""
    arena = facts.arena
    placed = [split(a) for a in accesses]
    alike = len({extents for extents, _ in placed}) == 1
    parts = [index if alike else (a.index,) for a, (_, index) in zip(accesses, placed)]
    pieces = [Piece(arena.conjuncts(a.path), a.loops, tuple(blocks), p) for a, p in zip(accesses, parts)]
    pieces, launch = regrouped(facts, pieces)
    flat = flattened(facts, pieces, placed[0][0], arena.true) if alike else None
    return pieces if flat is None else flat[0], launch


def _buffer(
    arena: Arena, facts: Facts, trace: Trace, info: BufferInfo, blocks: Sequence[int],
    split: Split, where: Where,
) -> list[Claim]:
    """Writes of one buffer against each other, and its reads against its writes."""
    stores = [a for a in trace.accesses if a.kind == "store" and a.buffer == info.name]
    loads = [a for a in trace.accesses if a.kind in ("load", "reload") and a.buffer == info.name]
    both, launch = _pieces(facts, [*loads, *stores], blocks, split)
    problem = Problem(arena, launch)
    writes = both[len(loads) :]
    once = single_thread(problem, writes)
    if not once.holds and _in_order(facts, stores, blocks, split):
        once = Answer(True, {"intervals": len(stores)})
    claims = [_claim(f"each element of {info.name} is written by one thread", once, where(stores[0].instruction))]
    if loads:
        reads = both[: len(loads)]
        text = f"an element of {info.name} is read only by the thread that writes it"
        claims.append(_claim(text, equal_index_same_thread(problem, reads, writes), where(loads[0].instruction)))
        claims.append(_read_first(facts, problem, info.name, loads, stores, both, where))
    return claims


def _in_order(facts: Facts, stores: Sequence[Access], blocks: Sequence[int], split: Split) -> bool:
    """The threads write consecutive intervals of the buffer's rows."""
    placed = [split(a) for a in stores]
    pieces = [Piece(facts.arena.conjuncts(a.path), a.loops, tuple(blocks), p) for a, (_, p) in zip(stores, placed)]
    return len({e for e, _ in placed}) == 1 and in_order(facts, pieces, placed[0][0])


def _alone(loads: Sequence[Access], stores: Sequence[Access], both: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Accesses that must not reach one element twice: loads of the entry contents with all stores, and a reload with
    the stores of those loops in which one may have come after the store that it was answered by."""
    reads, writes = both[: len(loads)], both[len(loads) :]
    fresh = [p for a, p in zip(loads, reads) if a.kind == "load"]
    if fresh:
        yield [*fresh, *writes]
    for a, p in zip(loads, reads):
        between = [q for s, q in zip(stores, writes) if set(s.loops) & set(a.open_loops)]
        if between:
            yield [p, *between]


def _claim(text: str, answer: Answer, place: str) -> Claim:
    if answer.holds:
        kind = "intervals" if "intervals" in answer.evidence else "integer-sets"
        return Claim("races", text, Status.SHOWN, kind, place, data=dict(answer.evidence))
    hint = str(answer.witness or answer.evidence.get("why", "undecided"))
    case = {"case": {"sizes": dict(answer.witness)}} if isinstance(answer.witness, Mapping) else {}
    return Claim("races", text, Status.BROKEN if answer.holds is False else Status.OPEN, place=place, hint=hint,
                 data=case)


def _read_first(
    facts: Facts, problem: Problem, name: str, loads: Sequence[Access], stores: Sequence[Access],
    both: Sequence[Piece], where: Where,
) -> Claim:
    """A thread reads an element before it writes it: the run takes loads of a written buffer as the entry contents.

    One index is reached at one point (lane, block, iteration) only, and at one point a load that comes after a store
    has another index.
    """
    arena = facts.arena
    text = f"elements of {name} are read before they are written"
    place = where(loads[0].instruction)
    late = [
        (a, s) for a in loads if a.kind == "load" for s in stores
        if s.order < a.order and (a.loops == s.loops or not (a.loops and s.loops))
    ]
    apart = all(
        facts.implied(arena.conj((a.path, s.path)), arena.ne(a.index - s.index), hard=True) for a, s in late
    )
    if apart and all(
        injective(problem, group, ("lane", "blocks", "loops")).holds
        for group in _alone(loads, stores, both)
    ):
        return Claim("races", text, Status.SHOWN, "integer-sets", place)
    return Claim("races", text, Status.OPEN, place=place,
                 hint=f"{name} is read and written; the order within a thread was not shown")
