"""The question whether pieces tile a fold's domain, in a form that rows which ask the same share.

Rows of one block (a warp each, say) draw on lanes of their own, and often differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from warpproof.algebra import support
from warpproof.solve import Piece
from warpproof.terms import Arena, Poly, Pred


@dataclass(frozen=True, slots=True)
class Question:
    """Whether the pieces, where `path` holds, tile (or cover) the values of `variables` in `domain`."""

    op: str
    variables: tuple[int, ...]
    domain: Pred
    pieces: tuple[Piece, ...]
    path: Pred

    def key(self) -> Hashable:
        """Equal for questions that say the same."""
        said = [
            (tuple(g.id for g in p.guards), p.loops, tuple(q.key for q in p.index),
             p.weight if isinstance(p.weight, int) else p.weight.tobytes())
            for p in self.pieces
        ]
        return self.op, self.variables, self.domain.id, tuple(said), self.path.id


class Sharing:
    """Puts questions into a common form."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._slots: dict[tuple[int, int | None, int | None], int] = {}

    def common(self, q: Question) -> Question | None:
        """The question with lanes that count moved to the front and bound variables named by position; None if not so.

        A piece is the points of the lanes that it counts in, whichever these are, and of all values of its variables,
        whatever these are called; so the answer is the same. Bound variables are of a fold, none is used outside.
        """
        to: dict[int, int] = {}
        for v in (*q.variables, *(v for p in q.pieces for v in p.loops)):
            if v not in to:
                if self.arena.atoms[v].kind != "index":
                    return None
                to[v] = self._slot(len(to), v)
        if set(to) & q.path.free or not (q.path.uniform and q.domain.uniform):
            return None
        pieces = tuple(p for x in q.pieces if (p := self._compact(x, to)) is not None)
        rename = self.arena.substitution({v: Poly({(w,): 1}) for v, w in to.items()})
        return replace(q, variables=tuple(to[v] for v in q.variables), domain=rename.pred(q.domain), pieces=pieces)

    def relevant(self, q: Question) -> Question:
        """The question without the conditions of the path on symbols that nothing else in it is related to.

        Less is known than in the question itself: what is shown of the one holds for the other.
        """
        near = support(self.arena, [i for p in q.pieces for i in p.index], [q.domain, *_guards(q.pieces)])
        rest = {p: set(support(self.arena, (), (p,))) for p in self.arena.conjuncts(q.path)}
        seen, kept = set(near), []
        while found := [p for p, s in rest.items() if s & seen]:
            for p in found:
                seen |= rest.pop(p)
                kept.append(p)
        return replace(q, path=self.arena.conj(kept))

    def _slot(self, position: int, v: int) -> int:
        """The variable at a position, of the same range as v."""
        low, high = self.arena.ranges[v]
        key = (position, low, high)
        if key not in self._slots:
            self._slots[key] = self.arena.fresh("index", f"q{position}", low, high).id
        return self._slots[key]

    def _compact(self, p: Piece, to: Mapping[int, int]) -> Piece | None:
        """The piece with the lanes in which it counts first, the rest like the first one; None if it counts nowhere."""
        a = self.arena
        weight = np.full(a.lanes, p.weight) if isinstance(p.weight, int) else p.weight
        lanes = np.flatnonzero(weight)
        if not len(lanes):
            return None
        source = np.full(a.lanes, lanes[0])
        source[: len(lanes)] = lanes
        counts = np.zeros(a.lanes, np.int64)
        counts[: len(lanes)] = weight[lanes]
        move = a.permutation_map(source)
        rename = a.substitution({v: Poly({(w,): 1}) for v, w in to.items()})
        return Piece(
            tuple(rename.pred(move.pred(g)) for g in p.guards), tuple(to[v] for v in p.loops), p.blocks,
            tuple(rename.poly(move.poly(i)) for i in p.index), counts,
        )


def _guards(pieces: Sequence[Piece]) -> list[Pred]:
    return [g for p in pieces for g in p.guards]


__all__ = ["Question", "Sharing"]
