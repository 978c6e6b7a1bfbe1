"""Lane gathers over register values: permutation of one value, and anti-unification of several."""

from __future__ import annotations

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Choice, Float, Int, Pack, Part, Reals, Undef, Value
from warpproof.terms import Arena, Coef, IntVector, Poly, Pred, Real, coefficient

_PARALLEL = frozenset({"add", "mul", "max", "min", "div"})


def permute(dom: Reals, value: Value, lanes: IntVector) -> Value:
    """The value whose lane t is lane lanes[t] of `value`."""
    match value:
        case Float(kind, width, node):
            return Float(kind, width, dom.arena.permute(node, lanes, lazy=True))
        case Int(width, poly):
            return Int(width, dom.arena.permutation_map(lanes).poly(poly))
        case Pack(width, parts):
            return Pack(width, tuple(permute(dom, p, lanes) for p in parts))
        case Choice(_, pred, a, b):
            moved = dom.arena.permutation_map(lanes).pred(pred)
            return dom.merge(moved, permute(dom, a, lanes), permute(dom, b, lanes))
        case Part(width, whole, place):
            return Part(width, permute(dom, whole, lanes), place)
        case Undef():
            return value


def mix(dom: Reals, table: list[Value], owner: IntVector, lane: IntVector) -> Value:
    """The value whose lane t is lane lane[t] of table[owner[t]]."""
    ids = np.unique(owner)
    which = np.searchsorted(ids, owner)
    values = [table[int(i)] for i in ids]
    first = values[0]
    if all(isinstance(v, Float) for v in values):
        nodes = [v.node for v in values if isinstance(v, Float)]
        if isinstance(first, Float) and len({(v.kind, v.width) for v in values if isinstance(v, Float)}) == 1:
            return Float(first.kind, first.width, Mixer(dom.arena, which, lane).real(nodes))
    if all(isinstance(v, Int) for v in values):
        return Int(first.width, Mixer(dom.arena, which, lane).poly([v.poly for v in values if isinstance(v, Int)]))
    pieces = [v for v in values if isinstance(v, Part)]
    if len(pieces) == len(values) and len({(v.width, v.place, v.whole.width) for v in pieces}) == 1:
        whole = mix(dom, [v.whole for v in pieces], which, lane)
        return Part(pieces[0].width, whole, pieces[0].place)
    packed = [v for v in values if isinstance(v, Pack)]
    if packed and len({v.width for v in values}) == 1:
        split = [dom.unpack(v.width, v, len(packed[0].parts)) for v in values]
        return Pack(first.width, tuple(mix(dom, list(column), which, lane) for column in zip(*split, strict=True)))
    out = permute(dom, values[-1], lane)
    for i in range(len(values) - 1):
        out = dom.merge(dom.arena.lane_mask(which == i), permute(dom, values[i], lane), out)
    return out


class _Apart(Exception):
    """Reductions of different shape."""


class Mixer:
    """Joins k terms into one whose lane t is lane lane[t] of term which[t]; equal skeletons are kept."""

    def __init__(self, arena: Arena, which: IntVector, lane: IntVector) -> None:
        self.arena, self.which, self.lane = arena, which, lane
        self._memo: dict[tuple[int, ...], Real] = {}
        self._inside = False  # within terms that have reductions

    def poly(self, ps: list[Poly]) -> Poly:
        """Polynomials coefficient by coefficient; atoms must be the same up to the permutation."""
        moved = [self.arena.permutation_map(self.lane).poly(p) for p in ps]
        keys = {m for p in moved for m in p.terms}
        out = {}
        for m in keys:
            c = coefficient(self._chosen([p.terms.get(m, 0) for p in moved]))
            if not (isinstance(c, int) and c == 0):
                out[m] = c
        return Poly(out)

    def _chosen(self, cs: list[Coef]) -> Coef:
        """The coefficient whose lane t is that of cs[which[t]]."""
        if all(isinstance(c, int) for c in cs):
            return cs[0] if len(set(cs)) == 1 else np.array(cs, np.int64)[self.which]
        out = np.empty(self.arena.lanes, np.int64)
        for i, c in enumerate(cs):
            mine = self.which == i
            out[mine] = c if isinstance(c, int) else c[mine]
        return out

    def pred(self, ps: list[Pred]) -> Pred:
        """Predicates; comparisons of the same kind are mixed, others are chosen by lane."""
        a = self.arena
        if all(p is ps[0] for p in ps):
            return a.permutation_map(self.lane).pred(ps[0])
        if all(p.op == "le" for p in ps):
            return a.le(self.poly([p.data for p in ps]))
        if all(p.op == "and" and len(p.args) == len(ps[0].args) and all(q.op == "le" for q in p.args) for p in ps):
            sorted_args = [sorted(p.args, key=_shape) for p in ps]
            if all([_shape(q)[0] for q in row] == [_shape(q)[0] for q in sorted_args[0]] for row in sorted_args):
                return a.conj(self.pred(list(column)) for column in zip(*sorted_args, strict=True))
        parts = []
        for i, p in enumerate(ps):
            mine = a.lane_mask(self.which == i)
            parts.append(a.conj((mine, a.permutation_map(self.lane).pred(p))))
        return a.disj(parts)

    def real(self, xs: list[Real]) -> Real:
        """Real terms: equal skeletons recursively, else a choice by lane."""
        key = tuple(x.id for x in xs)
        found = self._memo.get(key)
        if found is None:
            found = self._memo[key] = self._real(xs)
        return found

    def _real(self, xs: list[Real]) -> Real:
        if all(y is xs[0] for y in xs):
            return self.arena.permute(xs[0], self.lane, lazy=True)
        if self._inside or not any(y.folds for y in xs):
            return self._together(xs)
        self._inside = True
        try:
            return self._together(xs)
        except _Apart:  # one choice at the top keeps the reductions below it recognisable
            return self._choose(xs)
        finally:
            self._inside = False

    def _together(self, xs: list[Real]) -> Real:
        a, x = self.arena, xs[0]
        if all(y.op == x.op for y in xs):
            if x.op == "load" and all(y.data[0] == x.data[0] for y in xs):
                return a.load(x.data[0], self.poly([y.data[1] for y in xs]))
            if x.op == "int":
                return a.of_int(self.poly([y.data for y in xs]))
            if x.op == "sel":
                preds = [y.pred for y in xs if y.pred is not None]
                return a.sel(self.pred(preds), self.real([y.args[0] for y in xs]), self.real([y.args[1] for y in xs]))
            if x.op in _PARALLEL:
                columns = zip(*(sorted(y.args, key=_skeleton) for y in xs), strict=True) if x.op != "div" else zip(
                    *(y.args for y in xs), strict=True
                )
                parts = [self.real(list(c)) for c in columns]
                return a.div(*parts) if x.op == "div" else a.combine(x.op, *parts)
            if x.op == "fold" and x.pred is not None and all(y.data == x.data and y.pred is x.pred for y in xs):
                op, atom = x.data
                return a.fold(op, atom, self.pred([x.pred]), self.real([y.args[0] for y in xs]))
            if len(x.args) == 1 and x.data is None and x.pred is None:
                return a.unary(x.op, self.real([y.args[0] for y in xs]))
        if self._inside and any(y.folds for y in xs):
            raise _Apart
        return self._choose(xs)

    def _choose(self, xs: list[Real]) -> Real:
        a = self.arena
        if len(xs) > 64:
            raise Unsupported("shared memory", "a load that mixes more than 64 different values")
        out = a.permute(xs[-1], self.lane, lazy=True)
        for i in range(len(xs) - 2, -1, -1):
            out = a.sel(a.lane_mask(self.which == i), a.permute(xs[i], self.lane, lazy=True), out)
        return out


def _shape(p: Pred) -> tuple[str, ...]:
    return (repr(sorted((m, c if isinstance(c, int) else 0) for m, c in p.data.symbolic().terms.items())),)


def _skeleton(x: Real) -> tuple[str, str, str]:
    inner = _skeleton(x.args[0]) if x.op == "sel" else ("", "", "")
    return (x.op, str(x.data[0]) if x.op == "load" else "", str(inner))
