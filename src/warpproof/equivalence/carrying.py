"""Terms carried over to another arena: lanes become a variable, reductions over lanes become folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.terms import Arena, BoolVector, IntVector, Poly, Pred, Real, const

_CONSTANTS: Final = frozenset({"inf", "log2e", "log2e32", "log2e_low", "ln2", "pi", "symbol"})

Fields = tuple[tuple[IntVector, Poly], ...]


class Carrier:
    """Rebuilds terms of one arena in another, for the lanes `lanes`.

    `fields` are numbers that tell the lanes apart (thread coordinates), each with what it is there; `atoms` gives
    blocks and loop counters as polynomials of the target; sizes keep their names. `Unsupported` for what has no such
    image, as values that differ between lanes by more than a linear function of the fields.
    """

    def __init__(self, source: Arena, target: Arena, lanes: IntVector, fields: Fields, atoms: Mapping[int, Poly]
                 ) -> None:
        self.source, self.target, self.lanes, self.fields, self.known = source, target, lanes, fields, dict(atoms)
        self._atoms: dict[int, Poly] = dict(atoms)
        self._reals: dict[int, Real] = {}

    # ------------------------------------------------------------------ integers
    def poly(self, p: Poly) -> Poly:
        """The image of a polynomial."""
        out = const(0)
        for m, c in p.terms.items():
            t = const(c) if isinstance(c, int) else self._vector(c)
            for a in m:
                t = t * self.atom(a)
            out = out + t
        return out

    def _vector(self, v: IntVector) -> Poly:
        """A lane-dependent integer as a linear function of the fields."""
        start, slopes = fit([values[self.lanes] for values, _ in self.fields], v[self.lanes])
        out = const(start)
        for k, (_, image) in zip(slopes, self.fields, strict=True):
            out = out + image * k
        return out

    def atom(self, ident: int) -> Poly:
        """The image of an atom."""
        found = self._atoms.get(ident)
        if found is None:
            found = self._atoms[ident] = self._atom(ident)
        return found

    def _atom(self, ident: int) -> Poly:
        atom, t = self.source.atoms[ident], self.target
        match atom.kind:
            case "size":
                return t.symbol("size", atom.name, *self.source.ranges.get(ident, (None, None)))
            case "div" if not atom.tag:
                return t.floor_div(*map(self.poly, atom.args))
            case "min" | "max":
                return t.extremum(atom.kind, tuple(map(self.poly, atom.args)))
            case "phi" if atom.pred is not None:
                return t.derived("phi", tuple(map(self.poly, atom.args)), self.pred(atom.pred))
            case "elem":
                return t.derived("elem", tuple(map(self.poly, atom.args)), tag=atom.tag, name=atom.name)
            case _:
                raise Unsupported("intermediate buffer", f"its contents depend on {atom.name or atom.kind}")

    # ------------------------------------------------------------------ conditions
    def pred(self, p: Pred) -> Pred:
        """The image of a condition."""
        t = self.target
        match p.op:
            case "true" | "false":
                return t.truth(p.op == "true")
            case "le":
                return t.le(self.poly(p.data))
            case "eq":
                return t.eq(self.poly(p.data))
            case "ne":
                return t.ne(self.poly(p.data))
            case "and":
                return t.conj(map(self.pred, p.args))
            case "or":
                return t.disj(map(self.pred, p.args))
            case "not":
                return t.negate(self.pred(p.args[0]))
            case "fcmp":
                return t.fcmp(str(p.data), self.real(p.reals[0]), self.real(p.reals[1]))
            case "lanes":
                return self._mask(np.frombuffer(p.data, dtype=bool)[self.lanes])
            case "dom":
                return self._domain(p)
            case _:
                raise Unsupported("intermediate buffer", "its contents depend on a condition that is not closed")

    def _mask(self, mask: BoolVector) -> Pred:
        """Some of the lanes: all, none, or those below or from a value of one field on."""
        t = self.target
        if mask.all() or not mask.any():
            return t.truth(bool(mask.all()))
        for values, image in self.fields:
            own = values[self.lanes]
            for below in (mask, ~mask):
                edge = int(own[~below].min())
                if (below == (own < edge)).all():
                    return t.lt(image, const(edge)) if below is mask else t.le(const(edge) - image)
        raise Unsupported("intermediate buffer", "its contents depend on scattered lanes")

    def _domain(self, p: Pred) -> Pred:
        atom, q = p.data
        image, t = self.atom(atom), self.target
        before = self.poly(self.source.substitute_poly(q, {atom: Poly({(atom,): 1}) - 1}))
        if len(image.terms) == 1 and next(iter(image.terms.items()))[1] == 1 and len(next(iter(image.terms))) == 1:
            return t.domain(next(iter(image.terms))[0], self.poly(q))
        return t.conj((t.le(-image), t.disj((t.eq(image), t.le(before)))))

    # ------------------------------------------------------------------ reals
    def real(self, x: Real) -> Real:
        """The image of a real."""
        found = self._reals.get(x.id)
        if found is None:
            found = self._reals[x.id] = self._real(x)
        return found

    def _real(self, x: Real) -> Real:
        t = self.target
        match x.op:
            case "const":
                return t.rational(x.data)
            case "load" if x.data[0].version == 0:  # later versions are other contents in another launch
                return t.load(x.data[0], self.poly(x.data[1]))
            case "int":
                return t.of_int(self.poly(x.data))
            case "add" | "mul" | "max" | "min":
                return t.combine(x.op, self.real(x.args[0]), self.real(x.args[1]))
            case "div":
                return t.div(self.real(x.args[0]), self.real(x.args[1]))
            case "sel" if x.pred is not None:
                return t.sel(self.pred(x.pred), self.real(x.args[0]), self.real(x.args[1]))
            case "fold":
                return self._fold(x)
            case "red":
                return self._reduction(x)
            case "gather":
                return self._elsewhere(self.source.permutation(x)).real(x.args[0])
            case _ if x.op in _CONSTANTS:
                return t.real(x.op, (), x.data)
            case _ if len(x.args) == 1 and x.data is None and x.pred is None:
                return t.unary(x.op, self.real(x.args[0]))
            case _:
                raise Unsupported("intermediate buffer", f"its contents contain a term ({x.op}) that is not closed")

    def _fold(self, x: Real) -> Real:
        op, atom, domain, body = self.source.open(x)
        low = self.source.ranges.get(atom, (None, None))[0]
        made = self.target.fresh("index", f"c{len(self.target.atoms)}", low, None)
        inner = self._with(atom, self.target.variable(made))
        return self.target.fold(op, made.id, inner.pred(domain), inner.real(body))

    def _with(self, atom: int, image: Poly) -> Carrier:
        return Carrier(self.source, self.target, self.lanes, self.fields, {**self.known, atom: image})

    def _elsewhere(self, source: IntVector) -> Carrier:
        """The same in the lanes source[t], whose fields are linear functions of those of t."""
        fields = tuple((values, self._vector(values[source])) for values, _ in self.fields)
        return Carrier(self.source, self.target, np.unique(source[self.lanes]), fields, self.known)

    def _reduction(self, x: Real) -> Real:
        """A reduction over lanes as a fold over their position, of which their fields are linear functions."""
        t, op, matrix = self.target, x.data[0], self.source.matrix(x)
        rows = matrix[self.lanes]
        count = rows.shape[1]
        made = t.fresh("index", f"u{len(t.atoms)}", 0, None)
        u = t.variable(made)
        columns = [np.repeat(values[self.lanes], count) for values, _ in self.fields]
        columns.append(np.tile(np.arange(count), len(self.lanes)))
        fields = []
        for values, _ in self.fields:
            start, slopes = fit(columns, values[rows].reshape(-1))
            image = const(start) + u * slopes[-1]
            for k, (_, own) in zip(slopes, self.fields, strict=False):
                image = image + own * k
            fields.append((values, image))
        inner = Carrier(self.source, t, np.unique(rows), tuple(fields), self.known)
        out = body = t.identity(op)
        for y in self.source.flatten(x.args[0], op):
            if y.uniform and op in ("max", "min"):
                out = t.combine(op, out, self.real(y))  # the same in all lanes, of which there are some
            else:
                body = t.combine(op, body, inner.real(y))
        return t.combine(op, out, t.fold(op, made.id, t.conj((t.le(-u), t.le(u - count + 1))), body))


def fit(columns: Sequence[IntVector], values: IntVector) -> tuple[int, list[int]]:
    """(start, slopes) of the integer linear function of the columns that gives the values; a column that is the same
    everywhere has slope 0."""
    varying = [k for k, c in enumerate(columns) if (c != c[:1]).any()]
    table = np.column_stack([np.ones(len(values), np.int64), *(columns[k] for k in varying)])
    found = np.linalg.lstsq(table.astype(np.float64), values.astype(np.float64), rcond=None)[0]
    whole = np.rint(found).astype(np.int64)
    if (table @ whole != values).any():
        raise Unsupported("intermediate buffer", "values that differ between lanes by more than a linear function")
    slopes = dict(zip(varying, whole[1:].tolist(), strict=True))
    return int(whole[0]), [slopes.get(k, 0) for k in range(len(columns))]
