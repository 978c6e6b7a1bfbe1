"""Questions on index maps: coverage, containment, tiling, injectivity, single-threaded elements, entailment.

All hold for every value of the parameters that the problem's facts admit. `holds` is True only when shown; False only
when the sets are exact and isl has a counterexample; None otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from warpproof.algebra.constraints import DERIVED, pred_polys, support
from warpproof.core import Unsupported
from warpproof.solve.families import merge
from warpproof.solve.linearise import Box, Linear, Linearizer, Region, lifted_atoms
from warpproof.solve.pieces import Body, Piece, bodies, rename_atoms
from warpproof.solve.presburger import (
    DEFAULT_OPERATIONS,
    Memo,
    Names,
    OutOfBudget,
    Session,
    map_text,
    readable,
    set_text,
)
from warpproof.terms import Arena, Poly, Pred

_GRID_LIMIT: Final = 65535
_FIRST_PRIME: Final = -2000
_MEMO: Final = Memo()
Coordinates = Callable[[Body], Sequence[Poly]]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Facts about sizes and launch (block < grid among them) and the target; `operations` limits isl per question."""

    arena: Arena
    facts: tuple[Pred, ...] = ()
    target: Box | Region | None = None
    operations: int = DEFAULT_OPERATIONS
    seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    """`holds`: True shown, False refuted with a witness, None undecided (why is in the evidence)."""

    holds: bool | None
    evidence: Mapping[str, object] = field(default_factory=dict)
    witness: Mapping[str, int] | str = ""


class _Sets:
    """The isl objects of one linear problem."""

    def __init__(self, problem: Problem, linear: Linear, dims: frozenset[int]) -> None:
        self.problem, self.linear = problem, linear
        self.names = Names(problem.arena, dims)
        self._texts = [self._constraint(b) for b in linear.bodies]
        for b in linear.bodies:
            for p in b.polys():
                self.names.poly(p)
        target = self.names.formula(linear.target) if linear.target is not None else ""
        context = self.names.formula(linear.context)
        facts = self.names.product_facts()
        self.relaxed = bool(self.names.products)
        self.parameters = sorted(self.names.parameters)
        self.session = Session(self.parameters, problem.operations, problem.seconds)
        exists = sorted({self.names.name(a) for p in linear.context.polys() for a in p.atoms() if a < 0})
        self.context_text = set_text((), exists, [context, *facts])
        self.target_text = target
        self.log: list[str] = [self.context_text]
        self._where: Any = None
        self._points: dict[int, Any] = {}

    def _constraint(self, b: Body) -> str:
        return self.names.formula(b.formula)

    def where(self) -> Any:
        """The admitted parameters."""
        if self._where is None:
            self._where = self.session.guard(self.session.read_set(self.context_text).params)
        return self._where

    def image(self, k: int) -> Any:
        """The elements that body k touches."""
        s = self.session
        return s.guard(s.guard(self.points(k).range).coalesce)

    def points(self, k: int) -> Any:
        """The map from the points of body k to elements."""
        b = self.linear.bodies[k]
        if k not in self._points:
            dims, rest = [self.names.name(d) for d in b.dims], [self.names.name(d) for d in b.locals_]
            text = map_text(dims, self._outputs(), rest, [self._texts[k], *self._equations(b)])
            self._points[k] = self._bound(self.session.read_map(text), text)
        return self._points[k]

    def agreement(self, k: int, n: int, coordinates: Coordinates) -> Any:
        """The pairs of a point of body k and a point of body n with equal coordinates."""
        first, second = self.linear.bodies[k], self.linear.bodies[n]
        rename = {d: _FIRST_PRIME - m for m, d in enumerate(second.dims)}
        same = [
            f"{self.names.poly(p - rename_atoms(q, rename))} = 0"
            for p, q in zip(coordinates(first), coordinates(second), strict=True)
        ]
        sides = [self.names.name(d) for d in first.dims], [self.names.name(d) for d in rename.values()]
        return self.session.read_map(map_text(*sides, (), same))

    def target(self) -> Any:
        """The target box or region."""
        exists = [self.names.name(a) for a in self.linear.target_locals]
        text = set_text(self._outputs(), exists, [self.target_text])
        return self._bound(self.session.read_set(text), text)

    def _bound(self, s: Any, text: str) -> Any:
        self.log.append(text)
        return self.session.guard(s.intersect_params, self.where())

    def _outputs(self) -> list[str]:
        return [f"j{k}" for k in range(self.linear.rank)]

    def _equations(self, b: Body) -> list[str]:
        return [f"j{k} = {self.names.poly(p)}" for k, p in enumerate(b.index)]

    def exact(self) -> bool:
        """True when a counterexample of the sets is one of the problem."""
        return self.linear.exact and not self.relaxed and all(b.exact for b in self.linear.bodies)

    def verdict(self, bad: Any, what: str, *, exact: bool | None = None) -> Answer:
        """The answer "nothing is bad": True when the set is empty, else False with a point, or None if inexact."""
        if self.session.guard(bad.is_empty):
            return Answer(True, {"sets": tuple(self.log)})
        point = readable(self.problem.arena, self.session.sample(bad))
        sure = self.exact() if exact is None else exact
        return Answer(False if sure else None, {"sets": tuple(self.log), "why": what, "candidate": point}, point)


# ---------------------------------------------------------------------- asking
def _ask(
    name: str, problem: Problem, pieces: Sequence[Piece], question: Callable[[_Sets], Answer], *,
    numbered: bool = False, needs_exact: bool = False, domains: bool = False, some: bool = False,
    side: Callable[[int], object] = lambda number: None,
) -> Answer:
    dims = frozenset(d for p in pieces for d in (*p.loops, *p.blocks))
    try:
        if domains:
            _require_domains(problem, pieces)
        _require_one_role(problem, pieces, dims)
        linears = _linear(problem, pieces, numbered, side)
        answers: list[Answer] = []
        for linear in linears:
            if needs_exact and not all(b.exact for b in linear.bodies):
                return Answer(None, {"why": "a guard or an index has no exact integer meaning"})
            sets = _Sets(problem, linear, dims)
            answers.append(_memoised(name, sets, question))
    except Unsupported as e:
        return Answer(None, {"why": str(e)})
    except OutOfBudget:
        return Answer(None, {"why": "isl used up its budget"})
    shown = next((a for a in answers if a.holds), None) if some else None
    return shown or combine(answers)


def _memoised(name: str, sets: _Sets, question: Callable[[_Sets], Answer]) -> Answer:
    key = (
        name, sets.context_text, sets.target_text, tuple(sets.parameters), sets.exact(), sets.problem.operations,
        tuple(
            (sets.names.formula(b.formula), b.dims, b.locals_, b.weight, b.strided, b.loop_ids, b.exact,
             tuple(sets.names.poly(p) for p in (*b.index, b.lane, *b.blocks, *b.loops, b.number)))
            for b in sets.linear.bodies
        ),
        tuple(sorted((a, sets.problem.arena.atoms[a].name) for b in sets.linear.bodies for p in b.polys()
                     for a in p.atoms() if a >= 0)),
    )
    found: Answer | None = _MEMO.get(key)
    if found is None:
        found = question(sets)
        _MEMO.put(key, found)
    return found


def combine(answers: Sequence[Answer]) -> Answer:
    """The conjunction of answers: the first False, else the first None, else True with all evidence."""
    for wanted in (False, None):
        for a in answers:
            if a.holds is wanted:
                return a
    return Answer(True, {"sets": tuple(dict.fromkeys(t for a in answers for t in _texts(a)))})


def _texts(a: Answer) -> tuple[object, ...]:
    found = a.evidence.get("sets", ())
    return found if isinstance(found, tuple) else ()


def _linear(
    problem: Problem, pieces: Sequence[Piece], numbered: bool, side: Callable[[int], object]
) -> list[Linear]:
    arena = problem.arena
    dims = frozenset(d for p in pieces for d in (*p.loops, *p.blocks))
    if len({len(p.index) for p in pieces}) > 1:
        raise Unsupported("integer sets", "pieces of different rank")
    every = [q for p in pieces for q in (*p.index, *_polys(arena, p.guards))] + _polys(arena, problem.facts)
    if isinstance(problem.target, Box):
        every += problem.target.extents
    lifted = lifted_atoms(arena, every, dims)
    if isinstance(problem.target, Box):
        lifted |= {a for e in problem.target.extents for a in e.atoms() if arena.atoms[a].kind in DERIVED}
    if any(set(support(arena, (arena.variable(arena.atoms[a]),))) & dims for a in lifted):
        raise Unsupported("integer sets", "a target that depends on a dimension")
    items = bodies(arena, problem.facts, pieces, lifted)
    merged = merge(items, keep_number=numbered, side=side)
    return Linearizer(arena, problem.facts, pieces).run(merged, problem.target, lifted)


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


def _covers(sets: _Sets) -> Answer:
    return sets.verdict(_missing(sets, [sets.image(k) for k in range(len(sets.linear.bodies))]), "missing elements")


def _missing(sets: _Sets, images: Sequence[Any]) -> Any:
    """The target less the union of the images."""
    whole = _union(sets, images)
    return sets.target() if whole is None else sets.session.guard(sets.target().subtract, whole)


def _union(sets: _Sets, images: Sequence[Any]) -> Any:
    whole = None
    for image in images:
        whole = image if whole is None else sets.session.guard(sets.session.guard(whole.union, image).coalesce)
    return whole


def within(problem: Problem, pieces: Sequence[Piece]) -> Answer:
    """Every index of every piece is an element of the target."""
    return _ask("within", problem, pieces, _within)


def _within(sets: _Sets) -> Answer:
    target = sets.target()
    answers = []
    for k, b in enumerate(sets.linear.bodies):
        extra = sets.session.guard(sets.image(k).subtract, target)
        answers.append(sets.verdict(extra, "elements outside the target", exact=_sure(sets, b)))
    return combine(answers)


def _sure(sets: _Sets, *items: Body) -> bool:
    return sets.linear.exact and not sets.relaxed and all(b.exact for b in items)


def exactly_once(problem: Problem, pieces: Sequence[Piece]) -> Answer:
    """The images tile the target: each element is the index of one point of one piece, which contributes once."""
    return _ask("exactly_once", problem, pieces, _exactly_once, needs_exact=True, domains=True)


def _exactly_once(sets: _Sets) -> Answer:
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


def _collisions(sets: _Sets, first: Any, second: Any) -> Any:
    """The elements that two different sources map to."""
    s = sets.session
    pairs = s.guard(first.apply_range, s.guard(second.reverse))
    space = s.guard(pairs.get_space)
    same = s.guard(type(pairs).identity, space)
    bad = s.guard(pairs.subtract, same)
    return s.guard(s.guard(bad.domain().apply, first).coalesce)


def _compare(sets: _Sets, firsts: Sequence[int], seconds: Sequence[int], coordinates: Coordinates, what: str) -> Answer:
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


def _same_launch(sets: _Sets, pieces: Sequence[Piece]) -> None:
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

    def question(sets: _Sets) -> Answer:
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

    def question(sets: _Sets) -> Answer:
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

    def question(sets: _Sets) -> Answer:
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


def _nonempty(sets: _Sets) -> Answer:
    empty = True
    for k, b in enumerate(sets.linear.bodies):
        image = sets.image(k)
        if sets.session.guard(image.is_empty):
            continue
        empty = False
        if _sure(sets, b):
            return Answer(True, {"sets": tuple(sets.log)}, readable(sets.problem.arena, sets.session.sample(image)))
    return Answer(False if empty else None, {"sets": tuple(sets.log), "why": "no point was found"})
