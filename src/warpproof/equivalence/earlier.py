"""Reads of what earlier launches left, opened up late: sums over whole axes are recognised before contents are put in.

While a launch is executed such an element is an opaque load of a later version of the buffer. A loop that the compiler
unrolled, or lanes and a loop together, are matched against the plain fold over the buffer's axis; only then is each
element replaced by its contents, which may be a fold themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from warpproof.equivalence.matching import Matcher
from warpproof.equivalence.outputs import Locator
from warpproof.equivalence.rewriting import Rewriter
from warpproof.machine import Access
from warpproof.solve import Facts
from warpproof.terms import Access as Version
from warpproof.terms import Arena, Poly, Pred, Real, const

LATER: Final = 1
"""The version of a buffer that an earlier launch has written."""
Element = Callable[[tuple[Poly, ...]], Real]


@dataclass(frozen=True, slots=True)
class Leftover:
    """A buffer that an earlier launch wrote: its shape, and its elements by coordinates."""

    shape: tuple[Poly, ...]
    element: Element


class Earlier:
    """Opens reads of leftovers in the terms of one launch."""

    def __init__(self, arena: Arena, facts: Facts, leftovers: Mapping[str, Leftover]) -> None:
        self.arena, self.facts, self.leftovers = arena, facts, leftovers
        self._locator = Locator(arena, facts)

    def opened(self, x: Real, path: Pred, matcher: Matcher) -> Real:
        """A term equal to x where the path holds, without opaque reads."""
        if not self.leftovers or not self._reads(x):
            return x
        guesses = self._axes(x, path, frozenset(), "", {})
        if guesses:
            rewriter = Rewriter(self.arena, matcher, self.facts, x)
            rewriter.folds = list(dict.fromkeys(guesses))
            x = rewriter.rewrite(x, path)
        return self._replaced(x, path, {})

    def coordinates(self, name: str, index: Poly, path: Pred) -> tuple[Poly, ...]:
        """The coordinates of an element index where the path holds."""
        shape = self.leftovers[name].shape
        place = self._locator.locate(Access("load", name, index, path, (), 0, 0), shape)
        return self._locator.coordinates(place, shape)

    def _reads(self, x: Real) -> bool:
        seen: set[int] = set()
        stack = [x]
        while stack:
            y = stack.pop()
            if y.id not in seen:
                seen.add(y.id)
                if self._opaque(y):
                    return True
                stack.extend(y.args)
        return False

    def _opaque(self, x: Real) -> bool:
        return x.op == "load" and x.data[0].version == LATER and x.data[0].buffer in self.leftovers

    # ------------------------------------------------------------------ folds over an axis
    def _axes(
        self, x: Real, path: Pred, bound: frozenset[int], op: str, seen: dict[tuple[int, int], bool],
        crossing: bool = False,
    ) -> list[Real]:
        """The folds over whole axes that reductions of opaque reads may be."""
        key = (x.id, path.id)
        if key in seen:
            return []
        seen[key] = True
        a = self.arena
        if self._opaque(x):
            found = self._axis(x, path, bound, op, crossing)
            return [] if found is None else [found]
        if x.op == "fold":
            kind, atom, domain, body = a.open(x)
            return self._axes(body, a.conj((path, domain)), bound | {atom}, op or kind, seen, crossing)
        if x.op == "red":
            return self._axes(x.args[0], self._everywhere(path), bound, op or x.data[0], seen, True)
        if x.op == "gather":
            return self._axes(x.args[0], self._everywhere(path), bound, op, seen, True)
        out: list[Real] = []
        for k, y in enumerate(x.args):
            out += self._axes(y, self._inner(x, path, k), bound, op, seen, crossing)
        return out

    def _axis(self, x: Real, path: Pred, bound: frozenset[int], op: str, crossing: bool) -> Real | None:
        """op over every axis along which the read moves from lane to lane or from iteration to iteration."""
        a, name = self.arena, x.data[0].buffer
        if not op:
            return None
        index = list(self.coordinates(name, x.data[1], path))
        shape = self.leftovers[name].shape
        moving = [d for d, q in enumerate(index) if a.poly_free(q) & bound or (crossing and not a.poly_uniform(q))]
        if not moving:
            return None
        atoms = {d: a.fresh("index", f"w{len(a.atoms)}", 0, None) for d in moving}
        for d, atom in atoms.items():
            index[d] = a.variable(atom)
        out = a.load(Version(name, LATER), _linear(index, shape))
        for d, atom in reversed(atoms.items()):
            v = a.variable(atom)
            out = a.fold(op, atom.id, a.conj((a.le(-v), a.le(v - shape[d] + 1))), out)
        return out

    # ------------------------------------------------------------------ contents
    def _replaced(self, x: Real, path: Pred, memo: dict[tuple[int, int], Real]) -> Real:
        key = (x.id, path.id)
        if key not in memo:
            memo[key] = self._replace(x, path, memo) if self._reads(x) else x
        return memo[key]

    def _replace(self, x: Real, path: Pred, memo: dict[tuple[int, int], Real]) -> Real:
        a = self.arena
        if self._opaque(x):
            name = x.data[0].buffer
            return self.leftovers[name].element(self.coordinates(name, x.data[1], path))
        match x.op:
            case "fold":
                op, atom, domain, body = a.open(x)
                return a.fold(op, atom, domain, self._replaced(body, a.conj((path, domain)), memo))
            case "red":
                return a.reduction(x.data[0], self._replaced(x.args[0], self._everywhere(path), memo), a.matrix(x))
            case "gather":
                inner = self._replaced(x.args[0], self._everywhere(path), memo)
                return a.permute(inner, a.permutation(x), lazy=True)
            case _:
                args = tuple(self._replaced(y, self._inner(x, path, k), memo) for k, y in enumerate(x.args))
                return self._rebuilt(x, args)

    def _rebuilt(self, x: Real, args: tuple[Real, ...]) -> Real:
        a = self.arena
        match x.op:
            case "add" | "mul" | "max" | "min":
                return a.combine(x.op, *args)
            case "div":
                return a.div(*args)
            case "sel" if x.pred is not None:
                return a.sel(x.pred, *args)
            case _ if len(args) == 1 and x.data is None:
                return a.unary(x.op, args[0])
            case _:
                return a.real(x.op, args, x.data, x.pred)

    def _inner(self, x: Real, path: Pred, side: int) -> Pred:
        if x.op != "sel" or x.pred is None:
            return path
        return self.arena.conj((path, x.pred if side == 0 else self.arena.negate(x.pred)))

    def _everywhere(self, path: Pred) -> Pred:
        return self.arena.conj(p for p in self.arena.conjuncts(path) if p.uniform)


def _linear(index: list[Poly], shape: tuple[Poly, ...]) -> Poly:
    out = const(0)
    for q, extent in zip(index, shape, strict=True):
        out = out * extent + q
    return out
