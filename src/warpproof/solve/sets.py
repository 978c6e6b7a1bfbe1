"""Questions on index maps: coverage, containment, tiling, injectivity, single-threaded elements, entailment.

All hold for every value of the parameters that the problem's facts admit. `holds` is True only when shown; False only
when the sets are exact and isl has a counterexample; None otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final

from warpproof.algebra import DERIVED, pred_polys, support
from warpproof.core import Unsupported
from warpproof.solve.families import merge
from warpproof.solve.linearise import Box, Linear, Linearizer, Region, lifted_atoms
from warpproof.solve.pieces import Body, Piece, bodies
from warpproof.solve.presburger import Memo, OutOfBudget, readable
from warpproof.solve.relations import Answer, Coordinates, Problem, Relations, combine
from warpproof.terms import Arena, Poly, Pred

_GRID_LIMIT: Final = 65535
_PROBES: Final = (1, 2, 3, 4, 5, 9, 17, 33, 65, 100, 129, 257, 300, 513, 769, 1000, 1025, 1281)
_MEMO: Final = Memo()
_FIRST_PROBES: Final = 3
_SPENT: Final = "isl used up its budget"
Question = Callable[[Relations], Answer]


# ---------------------------------------------------------------------- asking
def _ask(
    name: str, problem: Problem, pieces: Sequence[Piece], question: Question, *,
    numbered: bool = False, needs_exact: bool = False, domains: bool = False, some: bool = False,
    side: Callable[[int], object] = lambda number: None,
) -> Answer:
    dims = frozenset(d for p in pieces for d in (*p.loops, *p.blocks))
    found = Answer(None)
    try:
        if domains:
            _require_domains(problem, pieces)
        _require_one_role(problem, pieces, dims)
        for light in (True, False):  # what holds under weaker facts holds; the contrary needs all facts
            spent = found.evidence.get("why") == _SPENT
            answers: list[Answer] = []
            for linear in linear_problems(problem, pieces, numbered, side, light):
                if needs_exact and not all(b.exact for b in linear.bodies):
                    return Answer(None, {"why": "a guard or an index has no exact integer meaning"})
                answers.append(_memoised(name, Relations(problem, linear, dims), question, light, some, spent))
            shown = next((a for a in answers if a.holds), None) if some else None
            found = shown or combine(answers)
            if found.holds is not None and found.holds is not some:
                return found
    except Unsupported as e:
        return Answer(None, {"why": str(e)})
    return found


def _memoised(name: str, sets: Relations, question: Question, light: bool, some: bool, spent: bool) -> Answer:
    key = (name, light, *sets.key())
    found: Answer | None = _MEMO.get(key)
    if found is None:
        found = _first_attempt(sets, question) if light else _decide(sets, question, some, spent)
        _MEMO.put(key, found)
    return found


def _first_attempt(sets: Relations, question: Question) -> Answer:
    try:
        return question(sets.again(None, max(1, sets.problem.operations // 10)))
    except OutOfBudget:
        return Answer(None, {"why": _SPENT})


def _decide(sets: Relations, question: Question, some: bool, spent: bool) -> Answer:
    """The answer for all parameters from a small budget, unless weaker facts have `spent` such a one; then one at a few
    parameters, if it settles it; then with all the budget; then one at more parameters."""
    few = max(1, sets.problem.operations // 10)
    if not spent:
        with suppress(OutOfBudget):
            return question(sets.again(None, few))
    probes = _probes(sets)
    found = _at_some(sets, question, islice(probes, _FIRST_PROBES), some)
    if found is None:
        with suppress(OutOfBudget):
            return question(sets)
        found = _at_some(sets, question, probes, some)
    return found or Answer(None, {"why": _SPENT})


def _at_some(
    sets: Relations, question: Question, probes: Iterable[Mapping[str, int]], some: bool
) -> Answer | None:
    """An answer at one of the parameters that settles the question, if there is one."""
    for at in probes:
        with suppress(OutOfBudget):
            found = question(sets.again(at, max(1, sets.problem.operations // 10)))
            if found.holds is some:
                return found
    return None


def _probes(sets: Relations) -> Iterator[Mapping[str, int]]:
    """A few admitted values of the parameters."""
    seen: set[tuple[int, ...]] = set()
    for least in _PROBES:
        try:
            point = sets.parameters_from(least)
        except OutOfBudget:
            continue
        if point and tuple(point.values()) not in seen:
            seen.add(tuple(point.values()))
            yield point


def linear_problems(
    problem: Problem, pieces: Sequence[Piece], numbered: bool, side: Callable[[int], object], light: bool
) -> list[Linear]:
    arena = problem.arena
    dims = frozenset(d for p in pieces for d in (*p.loops, *p.blocks))
    if len({len(p.index) for p in pieces}) > 1:
        raise Unsupported("integer sets", "pieces of different rank")
    every = [q for p in pieces for q in (*p.index, *_polys(arena, p.guards))] + _polys(arena, problem.facts)
    if isinstance(problem.target, Box):
        every += problem.target.extents
    elif isinstance(problem.target, Region):
        every += _polys(arena, problem.target.preds)
        dims |= set(problem.target.index)
    lifted = lifted_atoms(arena, every, dims)
    if isinstance(problem.target, Box):
        lifted |= {a for e in problem.target.extents for a in e.atoms() if arena.atoms[a].kind in DERIVED}
    if any(set(support(arena, (arena.variable(arena.atoms[a]),))) & dims for a in lifted):
        raise Unsupported("integer sets", "a target that depends on a dimension")
    items = bodies(arena, problem.facts, pieces, lifted, light=light)
    family = partial(merge, keep_number=numbered, side=side)
    return Linearizer(arena, problem.facts, pieces, light=light).run(items, problem.target, lifted, family)


def _polys(arena: Arena, preds: Sequence[Pred]) -> list[Poly]:
    """The polynomials of predicates and of every derived atom below them."""
    polys = [q for p in preds for q in pred_polys(p)]
    return polys + [q for a in support(arena, polys) for q in arena.atoms[a].args]


def _require_one_role(problem: Problem, pieces: Sequence[Piece], dims: frozenset[int]) -> None:
    for p in pieces:
        others = set(support(problem.arena, p.index, p.guards)) & (dims - {*p.loops, *p.blocks})
        if others:
            names = ", ".join(problem.arena.atoms[a].name for a in sorted(others))
            raise Unsupported("integer sets", f"{names}: a dimension of one piece and a parameter of another")


def _require_domains(problem: Problem, pieces: Sequence[Piece]) -> None:
    """Coverage is only meaningful when the points are described: blocks by the launch, loops by their domains."""
    arena = problem.arena
    for p in pieces:
        for b in p.blocks:
            high = arena.ranges.get(b, (None, None))[1]
            told = any(f.op in ("le", "eq") and b in f.data.atoms() for g in problem.facts for f in arena.conjuncts(g))
            if not told and (high is None or high >= _GRID_LIMIT):
                raise Unsupported("integer sets", f"no fact bounds the block index {arena.atoms[b].name}")
        for i in p.loops:
            if not any(i in support(arena, (), (g,)) for g in (*p.guards, *problem.facts)):
                raise Unsupported("integer sets", f"no guard bounds the loop counter {arena.atoms[i].name}")


# ---------------------------------------------------------------------- questions
def covers(problem: Problem, pieces: Sequence[Piece]) -> Answer:
    """Every element of the target is the index of some point of some piece."""
    return _ask("covers", problem, pieces, _covers, needs_exact=True, domains=True)


def _covers(sets: Relations) -> Answer:
    return sets.verdict(_missing(sets, [sets.image(k) for k in range(len(sets.linear.bodies))]), "missing elements")


def _missing(sets: Relations, images: Sequence[Any]) -> Any:
    """The target less the union of the images."""
    whole = _union(sets, images)
    return sets.target() if whole is None else sets.session.guard(sets.target().subtract, whole)


def _union(sets: Relations, images: Sequence[Any]) -> Any:
    whole = None
    for image in images:
        whole = image if whole is None else sets.session.guard(sets.session.guard(whole.union, image).coalesce)
    return whole


def within(problem: Problem, pieces: Sequence[Piece]) -> Answer:
    """Every index of every piece is an element of the target."""
    return _ask("within", problem, pieces, _within)


def _within(sets: Relations) -> Answer:
    target = sets.target()
    answers = []
    for k, b in enumerate(sets.linear.bodies):
        extra = sets.session.guard(sets.image(k).subtract, target)
        answers.append(sets.verdict(extra, "elements outside the target", exact=_sure(sets, b)))
    return combine(answers)


def _sure(sets: Relations, *items: Body) -> bool:
    return sets.linear.exact and not sets.relaxed and all(b.exact for b in items)


def exactly_once(problem: Problem, pieces: Sequence[Piece]) -> Answer:
    """The images tile the target: each element is the index of one point of one piece, which contributes once."""
    return _ask("exactly_once", problem, pieces, _exactly_once, needs_exact=True, domains=True)


def _exactly_once(sets: Relations) -> Answer:
    s, count = sets.session, len(sets.linear.bodies)
    images = [sets.image(k) for k in range(count)]
    answers, inverses = [], []
    for k, b in enumerate(sets.linear.bodies):
        if b.weight != 1:
            answers.append(sets.verdict(images[k], f"elements that contribute {b.weight} times"))
        points = sets.points(k)
        inverses.append(str(s.guard(points.reverse)))
        if not s.guard(points.is_injective):
            twice = _collisions(sets, points, points)
            answers.append(sets.verdict(twice, "elements touched by two points of one piece"))
    for k, image in enumerate(images):
        for other in images[:k]:
            if not s.guard(image.is_disjoint, other):
                answers.append(sets.verdict(s.guard(image.intersect, other), "elements touched by two pieces"))
    union, target = _union(sets, images), sets.target()
    if union is None or not s.guard(union.is_equal, target):
        answers.append(sets.verdict(_missing(sets, images), "missing elements"))
        if union is not None:
            answers.append(sets.verdict(s.guard(union.subtract, target), "elements outside the target"))
    whole = combine(answers)
    evidence = {"sets": tuple(sets.log), "inverses": tuple(inverses)}
    return Answer(True, evidence) if whole.holds else whole


def _collisions(sets: Relations, first: Any, second: Any) -> Any:
    """The elements that two different sources map to."""
    s = sets.session
    pairs = s.guard(first.apply_range, s.guard(second.reverse))
    space = s.guard(pairs.get_space)
    same = s.guard(type(pairs).identity, space)
    bad = s.guard(pairs.subtract, same)
    return s.guard(s.guard(bad.domain().apply, first).coalesce)


def _compare(
    sets: Relations, firsts: Sequence[int], seconds: Sequence[int], coordinates: Coordinates, what: str
) -> Answer:
    """Points of `firsts` and of `seconds` with the same index agree in the coordinates."""
    s, items = sets.session, sets.linear.bodies
    answers = []
    for k in firsts:
        for n in seconds:
            if set(firsts) == set(seconds) and n < k:
                continue
            pairs = s.guard(sets.points(k).apply_range, s.guard(sets.points(n).reverse))
            bad = s.guard(pairs.subtract, sets.agreement(k, n, coordinates))
            sure = _sure(sets, items[k], items[n]) and not (items[k].strided or items[n].strided)
            hit = s.guard(s.guard(bad.domain).apply, sets.points(k))
            answers.append(sets.verdict(hit, what, exact=sure))
    return combine(answers)


def _same_launch(sets: Relations, pieces: Sequence[Piece]) -> None:
    """Coordinates are comparable: the same block dimensions, and the same grid where loops were folded in."""
    items = sets.linear.bodies
    if len({p.blocks for p in pieces}) > 1:
        raise Unsupported("integer sets", "pieces over different block dimensions")
    grids: dict[int, int] = {}
    for b in items:
        for block, _, grid in zip(b.strided[::3], b.strided[1::3], b.strided[2::3]):
            if grids.setdefault(block, grid) != grid:
                raise Unsupported("integer sets", "loops with different grid strides")


def disjoint(problem: Problem, pieces: Sequence[Piece]) -> Answer:
    """No element is the index of points of two different pieces."""

    def question(sets: Relations) -> Answer:
        every = range(len(sets.linear.bodies))
        return _compare(sets, every, every, lambda b: (b.number,), "elements touched by two pieces")

    return _ask("disjoint", problem, pieces, question, numbered=True)


def injective(
    problem: Problem, pieces: Sequence[Piece], dims: Sequence[str] = ("lane", "blocks", "loops")
) -> Answer:
    """Points of any pieces with the same index agree in the chosen coordinates (`lane`, `blocks`, `loops`)."""
    chosen = tuple(dims)
    loops = {p.loops: n for n, p in enumerate(pieces)}

    def coordinates(b: Body) -> Sequence[Poly]:
        out: list[Poly] = [b.lane] if "lane" in chosen else []
        out += b.blocks if "blocks" in chosen else ()
        if "loops" in chosen:
            width = max(len(p.loops) for p in pieces)
            out += [Poly({(): loops[b.loop_ids]}), *b.loops, *[Poly({})] * (width - len(b.loops))]
        return out

    def question(sets: Relations) -> Answer:
        _same_launch(sets, pieces)
        if "blocks" not in chosen and any(b.strided for b in sets.linear.bodies):
            raise Unsupported("integer sets", "loops of a grid-stride loop without its blocks")
        every = range(len(sets.linear.bodies))
        return _compare(sets, every, every, coordinates, "elements touched by two points")

    return _ask("injective " + " ".join(chosen), problem, pieces, question)


def single_thread(problem: Problem, pieces: Sequence[Piece]) -> Answer:
    """Points with the same index belong to the same lane of the same block."""
    return injective(problem, pieces, ("lane", "blocks"))


def equal_index_same_thread(problem: Problem, reads: Sequence[Piece], writes: Sequence[Piece]) -> Answer:
    """A point of `reads` and a point of `writes` with the same index belong to the same lane of the same block."""
    pieces = [*reads, *writes]

    def question(sets: Relations) -> Answer:
        _same_launch(sets, pieces)
        items = sets.linear.bodies
        sides = [[k for k, b in enumerate(items) if (_number(b) < len(reads)) == side] for side in (True, False)]
        return _compare(
            sets, sides[0], sides[1], lambda b: (b.lane, *b.blocks), "elements touched by two threads"
        )

    name = f"equal_index_same_thread {len(reads)}"
    return _ask(name, problem, pieces, question, side=lambda number: number < len(reads))


def _number(b: Body) -> int:
    return int(b.number.constant)


def nonempty(problem: Problem, pieces: Sequence[Piece]) -> Answer:
    """Some piece has a point for some admitted parameters."""
    return _ask("nonempty", problem, pieces, _nonempty, some=True)


def _nonempty(sets: Relations) -> Answer:
    empty = True
    for k, b in enumerate(sets.linear.bodies):
        image = sets.image(k)
        if sets.session.guard(image.is_empty):
            continue
        empty = False
        if _sure(sets, b):
            return Answer(True, {"sets": tuple(sets.log)}, readable(sets.problem.arena, sets.session.sample(image)))
    return Answer(False if empty else None, {"sets": tuple(sets.log), "why": "no point was found"})
