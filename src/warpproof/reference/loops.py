"""Python loops over symbolic ranges, read as recurrences.

The body runs twice: once from the entry values, to see the types and shapes the variables take, and once with every
reassigned variable replaced by an unknown, from which `recurrences` reads off closed forms.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from warpproof.core import InputError, Unsupported
from warpproof.reference.arrays import Array, Tracer
from warpproof.reference.branches import Unusable
from warpproof.reference.broadcasting import broadcast_dims, pick
from warpproof.reference.containers import snapshot
from warpproof.reference.elements import Index
from warpproof.reference.items import as_sequence
from warpproof.reference.recurrences import Carried, Closer, Unknowns
from warpproof.terms import Pred, Real, const

_LAST: str = "it holds the value of the last iteration"


def _lost(name: str) -> Unusable:
    return Unusable(name, "a loop over a symbolic range", _LAST)


class Loop:
    """One `for` statement: the iterable, and for a symbolic range the variables it carries."""

    def __init__(
        self, t: Tracer, iterable: Any, entry: Mapping[str, Any], outer: Mapping[str, Any], names: Sequence[str],
        simple: bool, target: str,
    ) -> None:
        self.t, self.iterable, self.names, self.simple, self.target = t, iterable, names, simple, target
        self.source = as_sequence(t, iterable)
        self.carried: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self._entry = dict(entry) if self.source is not None else {}
        self._outer = outer
        self._containers = self._watch()
        self._after: dict[str, Any] = {}

    def __iter__(self) -> Iterator[Any]:
        source, t = self.source, self.t
        if source is None:
            yield from self.iterable
            return
        if not self.simple:
            raise Unsupported("a loop over a symbolic range", "break, return, else or a nested target in it",
                              hint="guard the rest of the body by an if")
        outer, t.loop = t.loop, len(t.arena.atoms) + 1
        variable = t.index_symbol(const(0), source.count, self.target or "r")
        (atom,) = variable.atoms()
        self._arrays = {n: t.lift(v) for n, v in self._entry.items() if n in self.names and _is_number(v)}
        self.carried = {n: self._copy(a, self._entry[n]) for n, a in self._arrays.items()}
        yield source.at(variable)
        first = dict(self._after)
        self._marks = Unknowns(t, atom)
        self._unknowns = {n: self._unknown(n, first.get(n)) for n in self._arrays}
        reads = {n: a.root().reads for n, a in self._arrays.items()}
        self.carried = dict(self._unknowns)
        yield source.at(variable)
        t.loop = outer
        self._finish(reads)

    def leave(self, after: Mapping[str, Any]) -> None:
        """Note the values at the end of the body."""
        if self.source is not None:
            self._after = {n: after[n] for n in self.names if n in after}
            if self._watch() != self._containers:
                raise Unsupported("a loop over a symbolic range", "the body changes a list, dict or set",
                                  hint="preallocate an array and assign to it, or use a comprehension")

    def _watch(self) -> list[dict[str, Any]]:
        """What the containers in reach hold; a body that changes one is not a recurrence over arrays."""
        return [snapshot(self._entry), snapshot(self._outer)] if self.source is not None else []

    # ------------------------------------------------------------------ the three states of a variable
    def _copy(self, a: Array, original: Any) -> Any:
        if not isinstance(original, Array):
            return original
        return Array(self.t, a.dims, a.dtype, a.reader(), weak=a.weak, readonly=a.root().readonly)

    def _unknown(self, name: str, after: Any) -> Any:
        """An array of unknowns in the type and shape the variable has after one iteration."""
        if not _is_number(after):
            return _lost(name)
        a = self.t.lift(after)
        if self._arrays[name].dtype.kind == "b" or a.dtype.kind == "b":
            return self._entry[name] if self._same(self._arrays[name], a) else _lost(name)
        readonly = self._arrays[name].root().readonly if isinstance(self._entry[name], Array) else ""
        mark = functools.partial(self._marks.at, name)
        return Array(self.t, a.dims, a.dtype, mark, weak=a.weak and not a.dims, readonly=readonly)

    def _same(self, a: Array, b: Array) -> bool:
        if a.dtype != b.dtype or len(a.dims) != len(b.dims):
            return False
        i = self.t.fresh_index(a.dims)
        return a.reader()(i) == b.reader()(i)

    # ------------------------------------------------------------------ closing the recurrences
    def _finish(self, reads: Mapping[str, int]) -> None:
        self.carried = {}
        mutated: list[Array] = []
        found: dict[str, tuple[Carried, Array, bool]] = {}
        if self.target:
            self.results[self.target] = _lost(self.target)
        for name in self.names:
            after: Any = self._after.get(name)
            unknown: Any = self._unknowns.get(name)
            if name not in self._arrays:
                self.results[name] = _lost(name)
            elif not isinstance(unknown, Array):
                changed = isinstance(unknown, Unusable) or after is not self._entry[name]
                self.results[name] = _lost(name) if changed else self._entry[name]
            elif not _is_number(after):
                self.results[name] = _lost(name)
            else:
                start = self._arrays[name]
                in_place = bool(unknown.version) and isinstance(self._entry[name], Array)
                if in_place:
                    self._check_alias(name, start, reads[name], mutated)
                    if after is not unknown:
                        raise Unsupported(f"variable {name!r}", "updated in place and reassigned in one loop")
                found[name] = (*self._carried(name, unknown, self.t.lift(after)), in_place)
        self._close(found)

    def _check_alias(self, name: str, start: Array, reads: int, mutated: list[Array]) -> None:
        root = start.root()
        if root.reads != reads or any(root is m for m in mutated):
            raise Unsupported(f"variable {name!r}", "updated in place while it is read under another name in the loop")
        mutated.append(root)

    def _carried(self, name: str, unknown: Array, after: Array) -> tuple[Carried, Array]:
        t, start = self.t, self._arrays[name]
        kinds = {after.dtype.kind, unknown.dtype.kind}
        if (after.dtype != unknown.dtype and kinds != {"f"}) or len(after.dims) != len(unknown.dims) or not all(
            t.facts.same(p, q) for p, q in zip(after.dims, unknown.dims)
        ):
            raise Unsupported(f"variable {name!r} in a loop over a symbolic range", "its type or shape keeps changing")
        grown = len(start.dims) != len(after.dims) or not all(
            t.facts.same(p, q) for p, q in zip(start.dims, after.dims))
        assert self.source is not None
        if grown:
            broadcast_dims(t, [after.dims, start.dims], onto_first=True)
            if not t.facts.nonnegative(self.source.count - 1):
                raise InputError("REF241", f"the shape of {name!r} depends on whether the loop runs at all",
                                 hint="add the precondition that the range is not empty")
        first, new, els = start.reader(), after.reader(), t.elements

        def before(i: Index) -> Real:
            return els.real(first(pick(t, start.dims, i)))

        return Carried(name, before, lambda i: els.real(new(i))), after

    def _close(self, found: Mapping[str, tuple[Carried, Array, bool]]) -> None:
        t = self.t
        assert self.source is not None
        closer, count = Closer(t, self._marks, self.source.count), self.source.count
        closer.settle({n: (v, t.fresh_index(a.dims)) for n, (v, a, _) in found.items()})
        for name, (carried, after, in_place) in found.items():
            value = functools.partial(_final, closer, carried, count)
            if in_place:
                self._arrays[name].write(lambda i: (self.t.arena.true, i), value)
                self.results[name] = self._entry[name]
            elif not after.dims:
                self.results[name] = t.scalar(value(()), after.dtype, after.weak)
            else:
                self.results[name] = t.array(after.dims, after.dtype, value)


def _final(closer: Closer, carried: Carried, count: Any, i: Index) -> Real:
    return closer.value(carried, i, count)


def _is_number(v: Any) -> bool:
    return isinstance(v, Array | int | float) and not isinstance(v, bool)


def walk(x: Real) -> Iterator[Real]:
    """Every node of a term once, comparisons of guards included."""
    seen: set[int] = set()
    done: set[int] = set()
    stack: list[Real] = [x]
    preds: list[Pred] = []
    while stack or preds:
        if preds:
            p = preds.pop()
            if p.id not in done:
                done.add(p.id)
                stack.extend(p.reals)
                preds.extend(p.args)
            continue
        y = stack.pop()
        if y.id in seen:
            continue
        seen.add(y.id)
        yield y
        stack.extend(y.args)
        if y.pred is not None:
            preds.append(y.pred)



