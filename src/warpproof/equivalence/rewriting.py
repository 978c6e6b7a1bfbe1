"""Kernel terms with their reductions replaced by the reference's folds, innermost first."""

from __future__ import annotations

from warpproof.equivalence.matching import Matcher
from warpproof.equivalence.pieces import is_reduction
from warpproof.solve import Facts
from warpproof.terms import Arena, Pred, Real

_FOLDS = ("add", "max", "min", "mul")


def folds_of(arena: Arena, x: Real) -> list[Real]:
    """The folds of a term, inner ones first; a nest of one operation counts as its outermost."""
    out: list[Real] = []
    seen: set[int] = set()

    def visit(y: Real, inside: str) -> None:
        if y.id in seen:
            return
        seen.add(y.id)
        op = y.data[0] if y.op == "fold" else ""
        for z in y.args:
            visit(z, op)
        if op and op != inside:
            out.append(y)

    visit(x, "")
    return out


def rebuilt(a: Arena, x: Real, args: tuple[Real, ...]) -> Real:
    """The operation of x on other operands."""
    match x.op:
        case "add" | "mul" | "max" | "min":
            return a.combine(x.op, *args)
        case "div":
            return a.div(*args)
        case "sel":
            return a.sel(x.pred, *args)  # type: ignore[arg-type]
        case _ if len(args) == 1 and x.data is None:
            return a.unary(x.op, args[0])
        case _:
            return a.real(x.op, args, x.data, x.pred)


class Rewriter:
    """Rewrites kernel terms under a path, against the folds of one reference term."""

    def __init__(self, arena: Arena, matcher: Matcher, facts: Facts, reference: Real) -> None:
        self.arena, self.matcher, self.facts, self.reference = arena, matcher, facts, reference
        self.folds = folds_of(arena, reference)
        self._memo: dict[tuple[int, int], Real] = {}
        self._settled: dict[tuple[int, int], Real] = {}
        self.why = ""

    def rewrite(self, x: Real, path: Pred) -> Real:
        """A term equal to x in every lane where the path holds."""
        if not x.folds:
            return self.settle(x, path)
        key = (x.id, path.id)
        if key not in self._memo:
            self._memo[key] = self._rewrite(x, path)
        return self._memo[key]

    def settle(self, x: Real, path: Pred) -> Real:
        """x with choices that the path decides made (outside cross-lane parts)."""
        if not x.args or x.op in ("gather", "red", "fold"):
            return x
        key = (x.id, path.id)
        if key not in self._settled:
            self._settled[key] = self._settle(x, path)
        return self._settled[key]

    def _settle(self, x: Real, path: Pred) -> Real:
        if x.op == "sel" and x.pred is not None:
            if self.facts.implied(path, x.pred):
                return self.settle(x.args[0], path)
            if self.facts.implied(path, self.arena.negate(x.pred)):
                return self.settle(x.args[1], path)
        args = tuple(self.settle(y, self._inner(x, path, k)) for k, y in enumerate(x.args))
        return x if args == x.args else rebuilt(self.arena, x, args)

    def _inner(self, x: Real, path: Pred, side: int) -> Pred:
        """The path inside a choice."""
        if x.op != "sel" or x.pred is None:
            return path
        return self.arena.conj((path, x.pred if side == 0 else self.arena.negate(x.pred)))

    def _rewrite(self, x: Real, path: Pred) -> Real:
        op = next((o for o in _FOLDS if is_reduction(x, o)), "")
        if op:
            inner = self._leaves(x, op, path)
            for fold in self.folds:
                if fold.data[0] == op and inner is not fold:
                    found = self.matcher.match(inner, fold, path)
                    if found is not None:
                        return found
                    self.why = self.matcher.why or self.why
            if x.op not in (op, "sel"):
                return inner
            x = inner
        if x.op == "sel" and x.pred is not None:
            if self.facts.implied(path, x.pred):
                return self.rewrite(x.args[0], path)
            if self.facts.implied(path, self.arena.negate(x.pred)):
                return self.rewrite(x.args[1], path)
        if x.op in ("gather", "red", "fold"):
            return x
        args = tuple(self.rewrite(y, self._inner(x, path, k)) for k, y in enumerate(x.args))
        return x if args == x.args else rebuilt(self.arena, x, args)

    def _leaves(self, x: Real, op: str, path: Pred) -> Real:
        """The reduction with reductions inside its leaves rewritten."""
        a = self.arena
        match x.op:
            case "gather":
                return a.permute(self._leaves(x.args[0], op, self._everywhere(path)), a.permutation(x), lazy=True)
            case "red":
                return a.reduction(op, self._leaves(x.args[0], op, self._everywhere(path)), a.matrix(x))
            case "fold":
                _, atom, domain, body = a.open(x)
                return a.fold(op, atom, domain, self._leaves(body, op, a.conj((path, domain))))
            case "sel" if x.pred is not None:
                return a.sel(x.pred, self._leaves(x.args[0], op, self._inner(x, path, 0)),
                             self._leaves(x.args[1], op, self._inner(x, path, 1)))
            case _ if x.op == op:
                return a.combine(op, self._leaves(x.args[0], op, path), self._leaves(x.args[1], op, path))
            case _:
                return self.rewrite(x, path) if x.folds else x

    def _everywhere(self, path: Pred) -> Pred:
        """The part of a path that says the same in all lanes of the CTA, so that it holds at the source lanes too."""
        return self.arena.conj(p for p in self.arena.conjuncts(path) if p.uniform)
