"""The arena: substitution, lane permutation and bound variables over all three sorts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.terms.integers import OWN_KINDS
from warpproof.terms.nodes import Pred, Real
from warpproof.terms.places import PlaceArena
from warpproof.terms.poly import IntVector, Poly

_LAZY: Final = frozenset({"add", "max", "min", "mul", "div", "ex2", "fold", "red"})


class TermMap:
    """A structure-preserving rewrite of atoms and leaves, memoised over shared nodes."""

    def __init__(
        self,
        arena: Arena,
        atom: Callable[[int], Poly | None],
        leaf: Callable[[Real], Real | None],
        pred: Callable[[Pred], Pred | None],
        lanes: IntVector | None = None,
        touches: frozenset[int] | None = None,
    ) -> None:
        self.arena, self._atom, self._leaf, self._pred_leaf, self._lanes = arena, atom, leaf, pred, lanes
        self._touches = touches
        self._reals: dict[int, Real] = {}
        self._preds: dict[int, Pred] = {}
        self._atoms: dict[int, Poly] = {}

    def _skip(self, free: frozenset[int], uniform: bool) -> bool:
        if self._lanes is not None:
            return uniform
        return self._touches is not None and not (self._touches & free)

    def poly(self, p: Poly) -> Poly:
        """The image of a polynomial."""
        pi, a = self._lanes, self.arena
        if self._skip(a.poly_free(p), a.poly_uniform(p)):
            return p
        if pi is not None and a.uniform_atoms(p):
            return Poly(_canonical({m: c if isinstance(c, int) else c[pi] for m, c in p.terms.items()}))
        out = Poly({})
        plain: dict[tuple[int, ...], int | IntVector] = {}
        for m, c in p.terms.items():
            k = c[pi] if pi is not None and not isinstance(c, int) else c
            images = [self.atom(x) for x in m]
            if all(len(q.terms) == 1 and q.terms.get((x,)) == 1 for x, q in zip(m, images) if q.uniform()) and all(
                q.uniform() for q in images
            ):
                plain[m] = k
                continue
            t = Poly({(): k})
            for q in images:
                t = t * q
            out = out + t
        return out + Poly(_canonical(plain))

    def atom(self, ident: int) -> Poly:
        """The image of one atom."""
        found = self._atoms.get(ident)
        if found is None:
            found = self._atoms[ident] = self._map_atom(ident)
        return found

    def _map_atom(self, ident: int) -> Poly:
        direct = self._atom(ident)
        if direct is not None:
            return direct
        a = self.arena.atoms[ident]
        if self._lanes is not None and a.kind in OWN_KINDS:
            raise Unsupported("lane exchange", f"the value of {a.name} in another lane")
        if self._skip(a.free, a.uniform):
            return Poly({(ident,): 1})
        if a.real is not None:
            image = self.real(a.real) if self._lanes is None else self.arena.permute(a.real, self._lanes, lazy=True)
            return self.arena.place(image)
        if not a.args:
            return Poly({(ident,): 1})
        args = tuple(self.poly(q) for q in a.args)
        if a.kind == "sum" and self.atom(a.tag) != Poly({(a.tag,): 1}):
            raise Unsupported("substitution", "a sum's bound variable would be captured")
        match a.kind:
            case "div":
                return self.arena.floor_div(*args) if not a.tag else self.arena.derived("div", args, tag=a.tag)
            case "or":
                return self.arena.bit_or(*args)
            case "min" | "max":
                return self.arena.extremum(a.kind, args)
            case _:
                pred = self.pred(a.pred) if a.pred else None
                if a.kind == "phi" and pred is not None and pred.op in ("true", "false"):
                    return args[0] if pred.op == "true" else args[1]
                return self.arena.derived(a.kind, args, pred, a.tag, a.name)

    def pred(self, p: Pred | None) -> Pred:
        """The image of a predicate (of a node that has one)."""
        if p is None:
            raise Unsupported("substitution", "a node without its predicate")
        if self._skip(p.free, p.uniform):
            return p
        found = self._preds.get(p.id)
        if found is None:
            found = self._preds[p.id] = self._map_pred(p)
        return found

    def _map_pred(self, p: Pred) -> Pred:
        a = self.arena
        direct = self._pred_leaf(p)
        if direct is not None:
            return direct
        match p.op:
            case "le":
                return a.le(self.poly(p.data))
            case "eq":
                return a.eq(self.poly(p.data))
            case "ne":
                return a.ne(self.poly(p.data))
            case "lanes":
                return a.lane_mask(np.frombuffer(p.data, dtype=bool)[self._lanes]) if self._lanes is not None else p
            case "and":
                return a.conj(self.pred(q) for q in p.args)
            case "or":
                return a.disj(self.pred(q) for q in p.args)
            case "not":
                return a.negate(self.pred(p.args[0]))
            case "fcmp":
                return a.fcmp(str(p.data), self._compared(p.reals[0]), self._compared(p.reals[1]))
            case "dom":
                return self._map_domain(p)
            case "state" if self._lanes is not None:
                raise Unsupported("lane exchange", "a loop-carried predicate of another lane")
            case _:
                return p

    def _compared(self, x: Real) -> Real:
        """The image of a compared real, the same node as that of the register that holds it."""
        if self._lanes is None or not x.folds:
            return self.real(x)
        return self.arena.permute(x, self._lanes, lazy=True)

    def _map_domain(self, p: Pred) -> Pred:
        atom, q = p.data
        image = self.atom(atom)
        if len(image.terms) == 1 and next(iter(image.terms.items()))[1] == 1 and len(next(iter(image.terms))) == 1:
            return self.arena.domain(next(iter(image.terms))[0], self.poly(q))
        a = self.arena
        prior = self.poly(a.substitute_poly(q, {atom: Poly({(atom,): 1}) - 1}))
        return a.conj((a.le(-image), a.disj((a.eq(image), a.le(prior)))))

    def real(self, x: Real) -> Real:
        """The image of a real node."""
        if self._skip(x.free, x.uniform):
            return x
        found = self._reals.get(x.id)
        if found is None:
            found = self._reals[x.id] = self._map_real(x)
        return found

    def _map_real(self, x: Real) -> Real:
        a = self.arena
        direct = self._leaf(x)
        if direct is not None:
            return direct
        match x.op:
            case "load":
                access, index = x.data
                return a.load(access, self.poly(index))
            case "int":
                return a.of_int(self.poly(x.data))
            case "placed":
                return a.placed(self.real(x.args[0]), self.poly(x.data))
            case "add":
                return a.add(self.real(x.args[0]), self.real(x.args[1]))
            case "mul":
                return a.mul(self.real(x.args[0]), self.real(x.args[1]))
            case "max":
                return a.maximum(self.real(x.args[0]), self.real(x.args[1]))
            case "min":
                return a.minimum(self.real(x.args[0]), self.real(x.args[1]))
            case "div":
                return a.div(self.real(x.args[0]), self.real(x.args[1]))
            case "sel":
                return a.sel(self.pred(x.pred), self.real(x.args[0]), self.real(x.args[1]))
            case "fold":
                op, atom = x.data
                image = self.atom(atom)
                if image != Poly({(atom,): 1}):
                    raise Unsupported("substitution", "a fold's bound variable would be captured")
                return a.fold(op, atom, self.pred(x.pred), self.real(x.args[0]))
            case "gather":
                return a.permute(self.real(x.args[0]), a.permutation(x), lazy=True)
            case "red":
                return a.reduction(x.data[0], self.real(x.args[0]), a.matrix(x))
            case _:
                return a.unary(x.op, self.real(x.args[0])) if len(x.args) == 1 else x


class Arena(PlaceArena):
    """All terms of one run. Nodes of different arenas never mix."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self._permutations: dict[bytes, TermMap] = {}
        self._still: dict[bytes, dict[int, bool]] = {}  # by permutation: whether it leaves a term as it is

    # ------------------------------------------------------------------ substitution
    def substitution(self, atoms: Mapping[int, Poly], reals: Mapping[Real, Real] | None = None) -> TermMap:
        """A reusable substitution of atoms by polynomials and of leaf nodes by nodes."""
        table = dict(reals or {})
        touches: frozenset[int] | None = frozenset(atoms) | frozenset(i for r in table for i in r.free)
        if any(a not in self.atoms[a].free for a in atoms):
            touches = None  # sizes and blocks are not tracked by `free`
        return TermMap(self, atoms.get, table.get, lambda p: None, None, touches)

    def substitute(self, x: Real, atoms: Mapping[int, Poly]) -> Real:
        """x with atoms replaced."""
        return self.substitution(atoms).real(x)

    def substitute_poly(self, p: Poly, atoms: Mapping[int, Poly]) -> Poly:
        """p with atoms replaced (all kinds of atoms, not only variables)."""
        return TermMap(self, atoms.get, lambda x: None, lambda q: None).poly(p)

    def substitute_pred(self, p: Pred, atoms: Mapping[int, Poly]) -> Pred:
        """A predicate with atoms replaced."""
        return self.substitution(atoms).pred(p)

    # ------------------------------------------------------------------ lanes
    def permute(self, x: Real, lanes: IntVector, *, lazy: bool = False) -> Real:
        """The node whose lane t is lane lanes[t] of x.

        `lazy` keeps reductions as one `gather` node, so that tree and butterfly reductions are recognised.
        """
        if x.uniform:
            return x
        if x.op == "gather":
            return self.permute(x.args[0], self.permutation(x)[lanes], lazy=lazy)
        if (lanes == self._identity).all():
            return x
        if x.op == "red":
            return self.reduction(x.data[0], x.args[0], self.matrix(x)[lanes])
        if lazy and _kept(x) and (x.folds or x.op in ("max", "min") or not self._carried(x)):
            if x.folds and self._unmoved(x, lanes, self._still.setdefault(lanes.tobytes(), {})):
                return x
            return self.real("gather", (x,), np.ascontiguousarray(lanes).tobytes())
        return self.permutation_map(lanes).real(x)

    def _unmoved(self, x: Real, lanes: IntVector, seen: dict[int, bool]) -> bool:
        """Lane lanes[t] of x is lane t of x, evidently: reductions over the same lanes, arithmetic on such."""
        if x.uniform:
            return True
        if x.id not in seen:
            seen[x.id] = self._leaf_unmoved(x, lanes) and (x.op in ("red", "gather") or all(
                self._unmoved(y, lanes, seen) for y in x.args
            ))
        return seen[x.id]

    def _leaf_unmoved(self, x: Real, lanes: IntVector) -> bool:
        match x.op:
            case "red":
                return bool((self.matrix(x)[lanes] == self.matrix(x)).all())
            case "gather":
                return bool((self.permutation(x)[lanes] == self.permutation(x)).all())
            case "load" | "int" | "placed":
                p = x.data[1] if x.op == "load" else x.data
                return bool(self.permutation_map(lanes).poly(p) == p)
            case "state" | "cell":
                source = np.frombuffer(x.data[1], np.int64)
                return bool((source[lanes] == source).all())
            case _:
                return x.pred is None or self.permutation_map(lanes).pred(x.pred) is x.pred

    def _carried(self, x: Real) -> bool:
        """A loop-carried unknown occurs."""
        return any(self.atoms[i].kind == "state" for i in x.free)

    def permutation_map(self, lanes: IntVector) -> TermMap:
        """The lane permutation as a mapping (memoised)."""
        lanes = np.ascontiguousarray(lanes, dtype=np.int64)
        key = lanes.tobytes()
        found = self._permutations.get(key)
        if found is None:
            found = TermMap(self, lambda i: None, lambda x: self._permute_leaf(x, lanes), lambda p: None, lanes)
            self._permutations[key] = found
        return found

    def _permute_leaf(self, x: Real, lanes: IntVector) -> Real | None:
        match x.op:
            case "gather":
                return self.permute(x.args[0], self.permutation(x)[lanes])
            case "red":
                return self.reduction(x.data[0], x.args[0], self.matrix(x)[lanes])
            case "state" | "cell":
                atom, source, ext = x.data
                return self.real(x.op, (), (atom, np.frombuffer(source, np.int64)[lanes].tobytes(), ext))
            case _:
                return None

    def state(self, atom: int, ext: int, lanes: IntVector | None = None) -> Real:
        """An unknown loop-carried value, one per lane."""
        source = self._identity if lanes is None else lanes
        return self.real("state", (), (atom, np.ascontiguousarray(source, dtype=np.int64).tobytes(), ext))

    # ------------------------------------------------------------------ folds
    def bound(self, height: int) -> int:
        """The canonical bound variable of folds of this nesting height."""
        key = ("bound", height)
        atom = self._atom_key.get(key) or self._new(key, "bound", f"k{height}", tag=height)
        return atom.id

    def fold(self, op: str, atom: int, domain: Pred, body: Real) -> Real:
        """op over the values of `atom` in `domain` of `body`; the bound variable is renamed canonically."""
        body = self._near(body)
        if body is self.identity(op):
            return body
        while (b := self._variable(atom, max(body.height, domain.height), body.free | domain.free)) != atom:
            rename = self.substitution({atom: Poly({(b,): 1})})
            explicit = self._range_preds(atom, b) if domain.op != "dom" else ()
            domain, body, atom = self.conj((rename.pred(domain), *explicit)), rename.real(body), b
        return self.real("fold", (body,), (op, b), domain)

    def _variable(self, atom: int, height: int, free: frozenset[int]) -> int:
        """The bound variable for what `atom` is now: the canonical one, or the next that is not free there already.

        Inside a fold that is being rewritten its own variable is free, and a term put in may raise an inner fold to it.
        """
        b = self.bound(height + 1)
        while b != atom and b in free:
            height += 1
            b = self.bound(height + 1)
        return b

    def total(self, atom: int, domain: Pred, body: Poly) -> Poly:
        """The integer sum of `body` over the values of `atom` in `domain`, as a `sum` unknown."""
        b = self._variable(atom, max(self.poly_height(body), domain.height), self.poly_free(body) | domain.free)
        rename = self.substitution({atom: Poly({(b,): 1})})
        explicit = self._range_preds(atom, b) if domain.op != "dom" else ()
        return self.derived("sum", (rename.poly(body),), self.conj((rename.pred(domain), *explicit)), b)

    def _range_preds(self, atom: int, b: int) -> tuple[Pred, ...]:
        """The known range of a variable as conditions on the bound variable, which itself has no range."""
        lo, hi = self.ranges.get(atom, (None, None))
        v = Poly({(b,): 1})
        return (*(() if lo is None else (self.le(lo - v),)), *(() if hi is None else (self.le(v - hi),)))

    def open(self, fold: Real) -> tuple[str, int, Pred, Real]:
        """(op, fresh variable, domain, body) of a fold, the bound variable replaced by a fresh one."""
        op, b = fold.data
        least = [
            -p.data.constant for p in self.conjuncts(fold.pred)
            if p.op == "le" and p.data.symbolic() == Poly({(b,): -1}) and isinstance(p.data.constant, int)
        ] if fold.pred is not None else []
        lo = 0 if fold.pred is not None and fold.pred.op == "dom" else -min(least) if least else None
        fresh = self.fresh("index", f"j{len(self.atoms)}", lo, None)
        rename = self.substitution({b: self.variable(fresh)})
        return op, fresh.id, rename.pred(fold.pred), rename.real(fold.args[0])


def _kept(x: Real) -> bool:
    """True for values that stay one gather: computed ones; loads and guarded loads are moved to their new index."""
    return x.op in _LAZY or (x.op == "sel" and (x.folds or x.args[0].op not in ("load", "const", "int")))


def _canonical(terms: dict[tuple[int, ...], int | IntVector]) -> dict[tuple[int, ...], int | IntVector]:
    from warpproof.terms.poly import coefficient

    return {m: coefficient(c) for m, c in terms.items()}
