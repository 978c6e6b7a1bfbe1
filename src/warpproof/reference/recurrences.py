"""Closed forms of the variables that a symbolic loop carries.

The body ran once with every carried variable replaced by unknowns (`Unknowns`). From the value of an element after one
iteration, `Closer` reads off what it is after any number of them: the old value combined once by +, ·, max or min with
a term free of unknowns is a fold; a store at the loop index is a scatter; a store that reads the element stored one
iteration before is a scan. Unknowns of variables that are closed already are replaced by their closed forms first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from warpproof.core import Unsupported
from warpproof.reference.arrays import Tracer
from warpproof.reference.elements import Index
from warpproof.reference.reductions import fold_over
from warpproof.terms import Access, Poly, Pred, Real, TermMap, const

OPS: Final = ("add", "max", "min", "mul")
_BUFFER: Final = "$carried:"


class Unknowns:
    """The values that the variables of one loop have at the start of an iteration."""

    def __init__(self, t: Tracer, variable: int) -> None:
        self.t, self.variable = t, variable
        self.tag = t.arena.variable(t.arena.fresh("index", "$loop"))
        (self.marker,) = self.tag.atoms()

    def at(self, name: str, i: Index) -> Real:
        """The unknown element of a variable."""
        A = self.t.arena
        return A.load(Access(_BUFFER + name, 0), A.derived("tuple", (self.tag, *i)))

    def inside(self, x: Real | Pred | Poly) -> bool:
        """True when an unknown of this loop occurs."""
        return self.marker in (self.t.arena.poly_free(x) if isinstance(x, Poly) else x.free)

    def changing(self, x: Real | Pred | Poly) -> bool:
        """True when the value may differ between iterations."""
        free = self.t.arena.poly_free(x) if isinstance(x, Poly) else x.free
        return self.marker in free or self.variable in free

    def read(self, x: Real) -> tuple[str, Index] | None:
        """(variable, index) of an unknown element."""
        if x.op != "load" or not x.data[0].buffer.startswith(_BUFFER):
            return None
        (atom,) = x.data[1].atoms()
        tag, *index = self.t.arena.atoms[atom].args
        return (x.data[0].buffer[len(_BUFFER) :], tuple(index)) if tag == self.tag else None

    def names(self, x: Real) -> set[str]:
        """The variables of which an unknown occurs."""
        out: set[str] = set()

        def note(y: Real) -> Real | None:
            found = self.read(y)
            if found is not None:
                out.add(found[0])
            return None

        _Replacing(self, note).real(x)
        return out


class _Replacing(TermMap):
    """A rewrite of the unknowns of one loop, bound variables kept apart from those of the new terms."""

    def __init__(self, unknowns: Unknowns, leaf: Callable[[Real], Real | None]) -> None:
        super().__init__(unknowns.t.arena, lambda a: None, leaf, lambda p: None, None, frozenset({unknowns.marker}))

    def _map_real(self, x: Real) -> Real:
        if x.op != "fold":
            return super()._map_real(x)
        op, atom, domain, body = self.arena.open(x)
        return self.arena.fold(op, atom, self.pred(domain), self.real(body))


@dataclass(frozen=True, slots=True)
class Carried:
    """One variable: its elements before the loop, and after one iteration from unknown ones."""

    name: str
    before: Callable[[Index], Real]
    after: Callable[[Index], Real]


class Closer:
    """The closed forms of one loop, of as many variables as could be closed so far."""

    def __init__(self, t: Tracer, unknowns: Unknowns, count: Poly) -> None:
        self.t, self.unknowns, self._count = t, unknowns, count
        self._r = unknowns.variable
        self._closed: dict[str, Carried] = {}
        self._generic: dict[str, Index] = {}
        self._forms: dict[object, Real] = {}

    def settle(self, variables: Mapping[str, tuple[Carried, Index]]) -> None:
        """Close every variable (given with a generic index); Unsupported names the first that does not close."""
        pending = dict(variables)
        self._generic = {n: i for n, (_, i) in variables.items()}
        while pending:
            ready = [n for n, (v, i) in pending.items()
                     if self.unknowns.names(v.after(i)) <= {n, *self._closed}]
            if not ready:
                names = ", ".join(sorted(pending))
                raise Unsupported(f"variables {names} in a loop over a symbolic range", "they depend on each other",
                                  hint="write the recurrence with array operations (np.cumsum, np.max, …)")
            for n in ready:
                v, i = pending.pop(n)
                self.value(v, i, self._count)
                self._closed[n] = v

    def value(self, v: Carried, i: Index, end: Poly) -> Real:
        """The element after `end` iterations, from the closed form at the generic index."""
        key, generic = (v.name, end.key, self.t.path), self._generic[v.name]
        found = self._forms.get(key)
        if found is None:
            position = self._position(v, generic, end)
            found = self._solve(v, generic, self._new(v, generic), end) if position is None else position
            self._forms[key] = found
        if i == generic:
            return found
        return self.t.arena.substitute(found, {next(iter(p.atoms())): q for p, q in zip(generic, i, strict=True)})

    def _new(self, v: Carried, i: Index, *others: Index) -> Real:
        """The element after one iteration: unknowns of closed variables replaced, those at the indices recognised."""
        return self._unified(self._replaced(v.after(i), v.name), v.name, (i, *others), ())

    def _replaced(self, x: Real, name: str) -> Real:
        def leaf(y: Real) -> Real | None:
            found = self.unknowns.read(y)
            if found is None or found[0] == name or found[0] not in self._closed:
                return None
            value = self.value(self._closed[found[0]], found[1], Poly({(self._r,): 1}))
            if self.t.elements.infinite(value):
                raise Unsupported(f"variable {found[0]!r} in a loop over a symbolic range",
                                  "it may be infinite where its value from the iteration before is used",
                                  hint="start it from the first element")
            return value

        return _Replacing(self.unknowns, leaf).real(x) if self.unknowns.inside(x) else x

    def _unified(self, x: Real, name: str, targets: tuple[Index, ...], context: tuple[Pred, ...]) -> Real:
        """x with elements that the surrounding choices make the one at a target index written as that one."""
        if not self.unknowns.inside(x):
            return x
        A, found = self.t.arena, self.unknowns.read(x)
        if found is not None:
            if found[0] != name or found[1] in targets:
                return x
            same = (i for i in targets if all(
                p == q or self.t.facts.holds_given(A.eq(p - q), context) for p, q in zip(found[1], i, strict=True)))
            index = next(same, None)
            return x if index is None else self.unknowns.at(name, index)
        if x.op == "sel" and x.pred is not None:
            no = A.negate(x.pred)
            for k, p in enumerate((x.pred, no)):
                if context and self.t.facts.holds_given(p, context):
                    return self._unified(x.args[k], name, targets, context)
            return A.sel(x.pred, self._unified(x.args[0], name, targets, (*context, x.pred)),
                         self._unified(x.args[1], name, targets, (*context, no)))
        if x.op in OPS:
            return A.combine(x.op, *(self._unified(y, name, targets, context) for y in x.args))
        return x

    # ------------------------------------------------------------------ the forms
    def _solve(self, v: Carried, i: Index, new: Real, end: Poly) -> Real:
        own, A = self.unknowns.at(v.name, i), self.t.arena
        if new is own:
            return v.before(i)
        if new.op == "sel" and new.pred is not None and not self.unknowns.changing(new.pred):
            return A.sel(new.pred, self._solve(v, i, new.args[0], end), self._solve(v, i, new.args[1], end))
        for op in OPS:
            g = self._rest(new, op, own)
            if g is not None:
                return self._joined(op, v.before(i), const(0), end, self._iteration(g))
        for pred in self._guards(new):
            for moment in A.conjuncts(pred):
                made = self._store(v, i, new, pred, moment, end) if moment.op == "eq" else None
                if made is not None:
                    return made
        raise Unsupported(
            f"variable {v.name!r} in a loop over a symbolic range",
            "its new value is not the old one combined once with a term that is free of it",
            hint="accumulate with +, *, np.maximum or np.minimum, or store at the loop index",
        )

    def _position(self, v: Carried, i: Index, end: Poly) -> Real | None:
        """`if x[r] > best: best, at = x[r], r`: where the extremum is taken first, or last for >=."""
        A = self.t.arena
        own, new = self.unknowns.at(v.name, i), self._unified(v.after(i), v.name, (i,), ())
        if new.op != "sel" or new.pred is None or new.pred.op != "fcmp" or own not in new.args:
            return None
        pred = new.pred if new.args[1] is own else A.negate(new.pred)
        place = new.args[0] if new.args[1] is own else new.args[1]
        if pred.op != "fcmp" or pred.data not in ("lt", "le") or self.unknowns.inside(place):
            return None
        for kind, (best, g) in (("max", pred.reals), ("min", pred.reals[::-1])):
            held = self.unknowns.read(best)
            if held is None or held[0] not in self._closed or self.unknowns.inside(g):
                continue
            other = self._closed[held[0]]
            if self._rest(self._new(other, held[1]), kind, best) is g:
                extremum, start = self.value(other, held[1], end), other.before(held[1])
                beaten = (start, extremum) if kind == "max" else (extremum, start)
                taken = self._taken(g, place, extremum, str(pred.data), end)
                return None if taken is None else A.sel(A.fcmp(str(pred.data), *beaten), taken, v.before(i))
        return None

    def _taken(self, g: Real, place: Real, extremum: Real, op: str, end: Poly) -> Real | None:
        """`place`, growing with the iteration, at the first iteration (the last, for ≤) where g is the extremum."""
        A, els = self.t.arena, self.t.elements
        slope, rest = (place.data if place.op == "int" else Poly({})).split(self._r)
        k = slope.as_int()
        if k is None or k < 1 or self._r in A.poly_free(rest):
            return None
        first = "min" if op == "lt" else "max"

        def hit(n: Poly) -> Real:
            here = els.compare("==", A.substitute(g, {self._r: n}), extremum)
            return A.sel(here, A.of_int(n * k + rest), A.identity(first))

        taken = fold_over(self.t, first, const(0), end, hit)
        lo, hi = A.bounds(rest)[0], A.bounds((end - 1) * k + rest)[1]
        if lo is not None and hi is not None:
            els.integral[taken] = lo, hi
        els.finite.add(taken)  # it is chosen only where the extremum is an element's
        return taken

    def _iteration(self, g: Real) -> Callable[[Poly], Real]:
        """What iteration n contributes."""
        return lambda n: self.t.arena.substitute(g, {self._r: n})

    def _rest(self, x: Real, op: str, own: Real) -> Real | None:
        """g where x = own op g and g is free of unknowns."""
        if x.op != op:
            return None
        rest = self.t.arena.flatten(x, op)
        if rest.count(own) != 1:
            return None
        rest.remove(own)
        g = rest[0]
        for y in rest[1:]:
            g = self.t.arena.combine(op, g, y)
        return None if self.unknowns.inside(g) else g

    def _joined(self, op: str, start: Real, lo: Poly, hi: Poly, body: Callable[[Poly], Real]) -> Real:
        els, total = self.t.elements, fold_over(self.t, op, lo, hi, body)
        match op:
            case "add":
                return els.add(start, total)
            case "mul":
                return els.mul(start, total)
            case _:
                return els.extremum(op, start, total)

    def _guards(self, x: Real) -> list[Pred]:
        """The guards of the choices that make up a new value."""
        if x.op == "sel" and x.pred is not None:
            inner = [p for y in x.args for p in self._guards(y)]
            return list(dict.fromkeys((x.pred, self.t.arena.negate(x.pred), *inner)))
        return list(dict.fromkeys(p for y in x.args for p in self._guards(y))) if x.op in OPS else []

    def _store(self, v: Carried, i: Index, new: Real, pred: Pred, moment: Pred, end: Poly) -> Real | None:
        """The element where only the iteration that a guard equates with what the index says can change it."""
        A, own = self.t.arena, self.unknowns.at(v.name, i)
        slope, rest = moment.data.split(self._r)
        k = slope.as_int()
        if k not in (1, -1) or self._r in A.poly_free(rest) or self.unknowns.inside(moment):
            return None
        at = -rest if k == 1 else rest
        here = self.t.facts.simplify(A.conj((A.le(-at), A.lt(at, end))))
        if self._kept(new, own, frozenset({moment})):
            value = self._with(new, own, v.before(i))
            if not self.unknowns.inside(value):
                return A.sel(here, A.substitute(value, {self._r: at}), v.before(i))
        fixed = [g for g in A.conjuncts(pred) if g is not moment]
        if any(self.unknowns.changing(g) for g in fixed) or not self._kept(new, own, frozenset(A.conjuncts(pred))):
            return None
        return self._scan(v, i, at, A.conj((here, *fixed)), fixed)

    def _kept(self, x: Real, own: Real, guard: frozenset[Pred]) -> bool:
        """True when x is the old value unless the guard holds."""
        if x is own:
            return True
        A = self.t.arena
        if x.op == "sel" and x.pred is not None:
            for p, other in ((x.pred, x.args[1]), (A.negate(x.pred), x.args[0])):
                if guard <= set(A.conjuncts(p)):
                    return self._kept(other, own, guard)
            return all(self._kept(y, own, guard) for y in x.args)
        if x.op in OPS:
            rest = A.flatten(x, x.op)
            old = [y for y in rest if self._kept(y, own, guard)]
            return len(old) == 1 and all(self._kept(y, A.identity(x.op), guard) for y in rest if y is not old[0])
        return False

    def _with(self, x: Real, unknown: Real, value: Real) -> Real:
        """x with one unknown replaced by a value."""
        return _Replacing(self.unknowns, lambda y: value if y is unknown else None).real(x)

    def _scan(self, v: Carried, i: Index, at: Poly, here: Pred, fixed: Sequence[Pred]) -> Real | None:
        """Iteration r stores at one position of an axis what it makes of the element stored by iteration r − 1."""
        A, axis = self.t.arena, self._axis(i, at)
        if axis is None:
            return None
        k, sign = axis

        def place(r: Poly) -> Index:
            """The index that iteration r stores to, the other axes as in i."""
            return (*i[:k], i[k] + (r - at) * sign, *i[k + 1 :])

        r = Poly({(self._r,): 1})
        first, last = self.unknowns.at(v.name, place(r - 1)), self.unknowns.at(v.name, place(r))
        step = self._with(self._new(v, place(r), place(r - 1)), last, v.before(place(r)))
        step = self._unified(step, v.name, (place(r - 1),), tuple(fixed))
        start = v.before(place(const(-1)))
        if step is first:
            return A.sel(here, start, v.before(i))
        for op in OPS:
            g = self._rest(step, op, first)
            if g is not None:
                return A.sel(here, self._joined(op, start, const(0), at + 1, self._iteration(g)), v.before(i))
        return None

    def _axis(self, i: Index, at: Poly) -> tuple[int, int] | None:
        """(k, ±1) where the storing iteration is ±i[k] + what the other axes and sizes say."""
        for k, p in enumerate(i):
            atom = next(iter(p.atoms()), None)
            if atom is None or p != Poly({(atom,): 1}):
                continue
            slope, rest = at.split(atom)
            s = slope.as_int()
            if s in (1, -1) and atom not in self.t.arena.poly_free(rest) and sum(
                    atom in self.t.arena.poly_free(q) for q in i) == 1:
                return k, s
        return None
