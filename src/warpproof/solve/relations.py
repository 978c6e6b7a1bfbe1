"""The isl sets and maps of one linear problem, and what is concluded from an empty or non-empty set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from warpproof.solve.linearise import Box, Linear, Region
from warpproof.solve.pieces import Body, rename_atoms
from warpproof.solve.presburger import DEFAULT_OPERATIONS, Names, Session, map_text, readable, set_text
from warpproof.terms import Arena, Poly, Pred

_FIRST_PRIME: Final = -2000
Coordinates = Callable[[Body], Sequence[Poly]]


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Facts about sizes and launch (block < grid among them) and the target; `operations` limits isl per question."""

    arena: Arena
    facts: tuple[Pred, ...] = ()
    target: Box | Region | None = None
    operations: int = DEFAULT_OPERATIONS
    seconds: float = 10.0


@dataclass(frozen=True, slots=True)
class Answer:
    """`holds`: True shown, False refuted with a witness, None undecided (why is in the evidence)."""

    holds: bool | None
    evidence: Mapping[str, object] = field(default_factory=dict)
    witness: Mapping[str, int] | str = ""


class Relations:
    """The isl objects of one linear problem."""

    def __init__(
        self, problem: Problem, linear: Linear, dims: frozenset[int], at: Mapping[str, int] | None = None,
        operations: int | None = None,
    ) -> None:
        """With `at` the parameters are fixed, so that only a refutation means anything."""
        self.problem, self.linear = problem, linear
        self.names = Names(problem.arena, dims)
        self._texts = [self.names.formula(b.formula) for b in linear.bodies]
        for b in linear.bodies:
            for p in b.polys():
                self.names.poly(p)
        target = self.names.formula(linear.target) if linear.target is not None else ""
        context = self.names.formula(linear.context)
        facts = self.names.product_facts(linear.context)
        self.relaxed = bool(self.names.products)
        self.parameters = sorted(self.names.parameters)
        self.session = Session(self.parameters, operations or problem.operations, problem.seconds)
        facts += [f"{k} = {v}" for k, v in (at or {}).items()]
        exists = sorted({self.names.name(a) for p in linear.context.polys() for a in p.atoms() if a < 0})
        self.context_text = set_text((), exists, [context, *facts])
        self.target_text = target
        self.log: list[str] = [self.context_text]
        self._where: Any = None
        self._points: dict[int, Any] = {}

    def again(self, at: Mapping[str, int] | None, operations: int) -> Relations:
        """The same sets with another budget, or at fixed parameters."""
        return Relations(self.problem, self.linear, self.names.dims, at, operations)

    def key(self) -> tuple[object, ...]:
        """What the answers depend on."""
        atoms = sorted({a for b in self.linear.bodies for p in b.polys() for a in p.atoms() if a >= 0})
        return (
            self.context_text, self.target_text, tuple(self.parameters), self.exact(), self.problem.operations,
            tuple(
                (text, b.dims, b.locals_, b.weight, b.strided, b.loop_ids, b.exact,
                 tuple(self.names.poly(p) for p in (*b.index, b.lane, *b.blocks, *b.loops, b.number)))
                for text, b in zip(self._texts, self.linear.bodies)
            ),
            tuple((a, self.problem.arena.atoms[a].name) for a in atoms),
        )

    def parameters_from(self, least: int) -> dict[str, int]:
        """Admitted parameters that are all ≥ `least` and not much larger, or nothing."""
        s = Session(self.parameters, self.problem.operations, self.problem.seconds)
        floor = set_text((), (), [f"{least} <= {k} <= {least + 15}" for k in self.parameters])
        both = s.guard(s.read_set(self.context_text).intersect, s.read_set(floor))
        return {} if s.guard(both.is_empty) else s.sample(s.guard(both.params), prefer_small=False)

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
