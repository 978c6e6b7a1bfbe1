"""Grid-stride loops: block + grid·loop as one dimension, exactly."""

from __future__ import annotations

from dataclasses import replace

from warpproof.algebra import FALSE, TRUE, Formula, at_most, conjunction, contradicts, disjunction
from warpproof.solve.pieces import Body, substitute
from warpproof.terms import Arena, Poly


class Stride:
    """The substitution B = block + grid·loop for 0 ≤ block < grid and loop ≥ 0, which is one to one, and onto all B ≥ 0
    unless the grid is empty. The block may also be the counter of another loop with these bounds.

    The first iteration is B < grid with block = B; in the later ones, for which there has to be a block, block and loop
    must only occur as B, but for conditions that the others imply. `limit` is the largest grid, if known.
    """

    def __init__(self, arena: Arena, block: int, loop: int, grid: int, new: int, limit: int | None) -> None:
        self._arena, self._limit = arena, limit
        self._block, self._loop = Poly({(block,): 1}), Poly({(loop,): 1})
        self._grid, self._new = Poly({(grid,): 1}), Poly({(new,): 1})
        self._ids, self._dim = (block, loop, grid), new
        self._relaxed = False

    def body(self, b: Body, known: Formula) -> Body | None:
        """The rewritten body, or None when the index or a later iteration needs block or loop on their own."""
        index = [self._combined(p) for p in b.index]
        later = self._later(b.formula, known)
        if later is None or any(p is None for p in index):
            return None
        first = self._settle(b.formula, True).map(self._first)
        whole = disjunction((
            conjunction((first, at_most(self._new - self._grid + 1))),
            conjunction((later, at_most(self._grid - self._new), at_most(1 - self._grid))),
        ))
        block, loop, _ = self._ids
        return replace(
            b, dims=(*(d for d in b.dims if d not in (block, loop)), self._dim),
            index=tuple(p for p in index if p is not None), formula=conjunction((at_most(-self._new), whole)),
            blocks=tuple(self._new if p == self._block else p for p in b.blocks),
            loops=tuple(self._new if p == self._block else Poly({}) if p == self._loop else p for p in b.loops),
            exact=b.exact and not self._relaxed, strided=(*b.strided, *self._ids),
        )

    def _first(self, p: Poly) -> Poly:
        """A polynomial in the first iteration."""
        return substitute(p, {self._ids[0]: self._new, self._ids[1]: Poly({})})

    def _combined(self, p: Poly) -> Poly | None:
        """A polynomial that mentions block and loop only as block + grid·loop."""
        if not set(self._ids[:2]) & p.atoms():
            return p
        a, _ = p.split(self._ids[0])
        rest = p - a * (self._block + self._grid * self._loop)
        if set(self._ids[:2]) & (rest.atoms() | a.atoms()):
            return None
        return rest + a * self._new

    def _settle(self, f: Formula, first: bool) -> Formula:
        """The formula with comparisons on the counter alone decided for loop = 0, or for loop ≥ 1."""
        if f.op in ("and", "or"):
            return (conjunction if f.op == "and" else disjunction)([self._settle(a, first) for a in f.args])
        y = self._loop
        if f.op == "eq" and f.poly in (y, -y):
            return TRUE if first else FALSE
        if f.op == "le" and f.poly == -y:
            return TRUE
        if f.op == "le" and f.poly in (y, 1 - y):
            return TRUE if (f.poly == y) == first else FALSE
        return f

    def _later(self, f: Formula, known: Formula) -> Formula | None:
        """The formula for loop ≥ 1, or None when it cannot be said in B."""
        settled = self._settle(f, False)
        parts = settled.args if settled.op == "and" else (settled,)
        out: list[Formula] = []
        open_: list[Formula] = []
        for g in parts:
            h = g.map(self._combined)
            (out if h.exact() or not g.exact() else open_).append(h if h.exact() or not g.exact() else g)
        kept = [g for g in parts if g not in open_]
        given = (*kept, known, at_most(1 - self._loop), at_most(-self._block), at_most(self._block - self._grid + 1))
        for g in open_:
            if self._implied(g, given):
                continue
            if not self._generous(g):
                return None
            self._relaxed = True
        return conjunction(out)

    def _implied(self, g: Formula, given: tuple[Formula, ...]) -> bool:
        if g.op != "le":
            return False
        if g.poly.symbolic() == self._block and self._limit is not None and self._limit <= 1 - int(g.poly.constant):
            return True
        return contradicts(self._arena, g.poly, given)

    def _generous(self, g: Formula) -> bool:
        """A limit of the launch or of the counter's type: dropping it adds points that do not exist."""
        return g.op == "le" and g.poly.symbolic() in (self._block, self._loop) and int(g.poly.constant) <= -(1 << 15)
