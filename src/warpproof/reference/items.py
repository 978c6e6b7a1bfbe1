"""Sequences whose length is a symbol: ranges, arrays, `enumerate` and `zip` of them, and comprehensions over them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from warpproof.core import Unsupported
from warpproof.reference.arrays import Array, Tracer
from warpproof.reference.containers import unchanged
from warpproof.reference.creation import range_length
from warpproof.reference.elements import Element, Index
from warpproof.reference.reductions import fold_over
from warpproof.reference.standin import StandIn
from warpproof.reference.wording import describe
from warpproof.terms import Poly, Pred, Real, const


class SymbolicSequence(StandIn):
    """`count` items, item r given by `at(r)`. Only a `for` statement or a comprehension can run over it."""

    def __init__(self, t: Tracer, count: Poly, at: Callable[[Poly], Any]) -> None:
        self.t, self.count, self.at = t, count, at

    def __iter__(self) -> Iterator[Any]:
        raise Unsupported("a range over a symbolic size", "only a for statement or a comprehension can run over it",
                          hint="write a for loop, or use an array operation")



def symbolic_range(t: Tracer, start: Poly, stop: Poly, step: Poly) -> SymbolicSequence:
    """`range` with a symbolic bound."""
    return SymbolicSequence(t, range_length(t, start, stop, step), lambda r: t.integer(start + r * step))


def as_sequence(t: Tracer, x: Any) -> SymbolicSequence | None:
    """x as a sequence of symbolic length, None if it is an ordinary iterable."""
    if isinstance(x, SymbolicSequence):
        return x
    if isinstance(x, Array) and x.dims and x.dims[0].as_int() is None:
        return SymbolicSequence(t, x.dims[0], lambda r: x[t.integer(r)])
    if isinstance(x, Items):
        return SymbolicSequence(t, x.count, x.item)
    return None


def enumerated(t: Tracer, x: Any, start: Any = 0) -> Any:
    """`enumerate`."""
    found = as_sequence(t, x)
    if found is None:
        return enumerate(x, start)
    first = t.poly(start)
    return SymbolicSequence(t, found.count, lambda r: (t.integer(first + r), found.at(r)))


def zipped(t: Tracer, *xs: Any, **kwargs: Any) -> Any:
    """`zip`; symbolic lengths must be known to be equal."""
    found = [as_sequence(t, x) for x in xs]
    if all(f is None for f in found):
        return zip(*xs, **kwargs)
    parts = [f for f in found if f is not None]
    if len(parts) < len(xs) or not all(t.facts.same(f.count, parts[0].count) for f in parts):
        raise Unsupported("zip", "the lengths are not known to be equal", hint="index with a range instead")
    return SymbolicSequence(t, parts[0].count, lambda r: tuple(f.at(r) for f in parts))


class Items(StandIn):
    """What a comprehension over a symbolic sequence yields: one template in the index symbol `atom`, and its filter."""

    def __init__(self, t: Tracer, count: Poly, atom: int, template: Array, kept: Pred) -> None:
        self.t, self.count, self.kept, self._atom, self._template = t, count, kept, atom, template
        self._read = template.reader()
        self._version = template.root().version

    def _at(self, i: Index, r: Poly) -> Element:
        A, table = self.t.arena, {self._atom: r}
        if self._template.root().version != self._version:
            raise Unsupported("a comprehension", "an array that its items are views of was updated in place",
                              hint="copy the items")
        e = self._read(i)
        if isinstance(e, Real):
            return A.substitute(e, table)
        return A.substitute_pred(e, table) if isinstance(e, Pred) else A.substitute_poly(e, table)

    def item(self, r: Poly) -> Array:
        """One item."""
        self._unfiltered()
        x = self._template
        if not x.dims:
            return self.t.scalar(self._at((), r), x.dtype, x.weak)
        return self.t.array(x.dims, x.dtype, lambda i: self._at(i, r))

    def stacked(self) -> Array:
        """All items along a new first axis."""
        self._unfiltered()
        if self._template.dims or self._template.dtype.kind != "f":  # np.array([]) is a float vector
            self.t.require(self.t.arena.le(-self.count + 1), "an array is made of a list that may be empty",
                           f"add the precondition {describe(self.t.arena, self.count)} >= 1")
        return self.t.array([self.count, *self._template.dims], self._template.dtype, lambda i: self._at(i[1:], i[0]))

    def length(self) -> Any:
        """How many items there are."""
        self._unfiltered()
        return self.t.integer(self.count)

    def _unfiltered(self) -> None:
        if self.kept.op != "true":
            raise Unsupported("a comprehension with if", "the number of its items depends on data",
                              hint="use np.where to choose by element")

    def total(self) -> Array:
        """The sum of the items that the filter keeps."""
        t, x = self.t, self._template
        A, els = t.arena, t.elements
        if x.dtype.kind != "f" and not x.weak:
            raise Unsupported("sum of integers over a symbolic range", "it may wrap around", hint="use np.sum")

        def at(i: Index, r: Poly) -> Real:
            guard = A.substitute_pred(self.kept, {self._atom: r})
            return A.sel(guard, els.real(self._at(i, r)), A.zero)

        def value(i: Index) -> Real:
            return fold_over(t, "add", const(0), self.count, lambda r: at(i, r))

        return t.array(x.dims, x.dtype, value) if x.dims else t.scalar(value(()), x.dtype, x.weak)

    def __iter__(self) -> Iterator[Any]:
        raise Unsupported("a comprehension over a symbolic range", "its length is symbolic",
                          hint="make it an array with np.array or np.stack")

    def __getitem__(self, key: Any) -> Any:
        return self.stacked()[key]


def comprehension(t: Tracer, env: Sequence[Mapping[str, Any]], kind: str, iterable: Any, item: Callable[[Any], Any],
                  filters: Sequence[Callable[[Any], Any]]) -> Any:
    """`[item(x) for x in iterable if …]`, or the generator of it."""
    source = as_sequence(t, iterable)
    if source is None:
        kept = (item(x) for x in iterable if all(f(x) for f in filters))
        return kept if kind == "generator" else list(kept)
    r = t.index_symbol(const(0), source.count, "c")
    (atom,) = r.atoms()
    x, guards = source.at(r), []
    outer, t.loop = t.loop, len(t.arena.atoms) + 1
    with t.path_open() as path, unchanged(env, "a comprehension over a symbolic range"):
        for f in filters:
            guard = t.elements.pred(t.lift(f(x)).element())
            guards.append(guard)
            path(guard)
        value = item(x)
        if isinstance(value, Items):
            value = value.stacked()
        template = t.lift(value)
    t.loop = outer
    return Items(t, source.count, atom, template, t.arena.conj(guards))
