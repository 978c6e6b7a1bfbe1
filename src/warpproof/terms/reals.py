"""Real side of the arena: constructors that keep terms in a canonical shape.

Only rules that hold for extended reals under the machine's recorded obligations are applied: 0·x = 0 and x − x = 0
need x finite, which the reals domain demands where the operation is executed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, Final

import numpy as np

from warpproof.terms.access import Access
from warpproof.terms.nodes import EMPTY, Pred, Real
from warpproof.terms.poly import IntVector, Poly
from warpproof.terms.predicates import PredicateArena

MINUS_INF: Final = 1
PLUS_INF: Final = 2
_FLAT_LIMIT: Final = 4096


class RealArena(PredicateArena):
    """Owner of the real nodes."""

    def __init__(self, lanes: int) -> None:
        super().__init__(lanes)
        self._reals: dict[object, Real] = {}
        self.reals: list[Real] = []
        self.zero = self.rational(0)
        self.one = self.rational(1)
        self.log2e = self.real("log2e")
        self.minus_inf = self.real("inf", data=-1)
        self.plus_inf = self.real("inf", data=1)
        self._identity = np.arange(lanes)

    def real(
        self, op: str, args: tuple[Real, ...] = (), data: object = None, pred: Pred | None = None,
    ) -> Real:
        """The interned node of this structure (no simplification)."""
        poly = data if isinstance(data, Poly) else data[1] if isinstance(data, tuple) and len(data) == 2 else None
        dkey = (
            data.key if isinstance(data, Poly)
            else (data[0], data[1].key) if isinstance(poly, Poly) and isinstance(data, tuple) else data
        )
        key = (op, tuple(a.id for a in args), dkey, pred.id if pred else -1)
        found = self._reals.get(key)
        if found is not None:
            return found
        free: frozenset[int] = EMPTY
        uniform = op not in ("gather", "red", "state", "cell")
        for a in args:
            free = free | a.free if a.free and not a.free <= free else free
            uniform = uniform and a.uniform
        if pred is not None:
            free, uniform = free | pred.free, uniform and pred.uniform
        if isinstance(poly, Poly):
            free, uniform = free | self.poly_free(poly), uniform and self.poly_uniform(poly)
        if op in ("state", "cell") and isinstance(data, tuple):
            free = free | {data[0]}
        if op == "fold" and isinstance(data, tuple):
            free = free - {data[1]}
        folds = op in ("fold", "red") or any(a.folds for a in args)
        poisoned = op == "poison" or any(a.poisoned for a in args) or not self.unknown.isdisjoint(free)
        extent = self._extent(op, args, data, pred)
        height = max([a.height for a in args], default=0)
        if isinstance(poly, Poly):
            height = max(height, self.poly_height(poly))
        if pred is not None:
            height = max(height, pred.height)
        if op == "fold" and isinstance(data, tuple):
            height = max(height, self.atoms[data[1]].tag)
        node = Real(len(self.reals), op, args, data, pred, free, uniform, extent, folds, poisoned, height)
        self.reals.append(node)
        self._reals[key] = node
        return node

    def _extent(self, op: str, args: tuple[Real, ...], data: Any, pred: Pred | None) -> int:
        """Which infinities the value may be: MINUS_INF | PLUS_INF."""
        match op:
            case "inf":
                return MINUS_INF if data == -1 else PLUS_INF
            case "max":
                return (args[0].ext & args[1].ext & MINUS_INF) | ((args[0].ext | args[1].ext) & PLUS_INF)
            case "min":
                return ((args[0].ext | args[1].ext) & MINUS_INF) | (args[0].ext & args[1].ext & PLUS_INF)
            case "fold":
                empty = {"max": MINUS_INF, "min": PLUS_INF}.get(str(data[0]), 0)
                return args[0].ext | (0 if pred is not None and self.inhabited(pred, data[1]) else empty)
            case "add":
                return args[0].ext | args[1].ext
            case "mul":
                return self._scaled_extent(args)
            case "abs":
                return PLUS_INF if args[0].ext else 0
            case "sel" | "gather" | "red" | "placed":
                return args[0].ext | args[1].ext if op == "sel" else args[0].ext
            case "state":
                return int(data[2]) if isinstance(data, tuple) and len(data) > 2 else 0
            case _:
                return 0

    def _scaled_extent(self, args: tuple[Real, ...]) -> int:
        """A known non-zero factor keeps or flips infinities; other products are demanded finite where they are made."""
        for k, x in (args, args[::-1]):
            if k.op.startswith("log2e") or (k.op == "const" and k.data > 0):
                return x.ext
            if k.op == "const" and k.data < 0:
                return (x.ext & MINUS_INF and PLUS_INF) | (x.ext & PLUS_INF and MINUS_INF)
        return 0

    def inhabited(self, domain: Pred, atom: int) -> bool:
        """True when a fold's domain is known to be non-empty."""
        if domain.op == "dom":
            return True
        parts = self.conjuncts(domain)
        lows = [p for p in parts if p.op == "le" and p.data.split(atom)[0].as_int() == -1]
        highs = [p for p in parts if p.op == "le" and p.data.split(atom)[0].as_int() == 1]
        if len(lows) + len(highs) != len(parts) or any(atom in self.poly_free(p.data.split(atom)[1]) for p in parts):
            return False
        for lo in lows:
            for hi in highs:
                top = self.bounds(hi.data.split(atom)[1] + lo.data.split(atom)[1])[1]
                if top is None or top > 0:
                    return False
        return bool(lows) and bool(highs)

    # ------------------------------------------------------------------ leaves
    def rational(self, v: Fraction | int) -> Real:
        """An exact constant."""
        return self.real("const", data=Fraction(v))

    def load(self, access: Access, index: Poly) -> Real:
        """The real value of element `index` of a buffer version."""
        return self.real("load", data=(access, index))

    def of_int(self, p: Poly) -> Real:
        """An integer as a real; sums over a loop become folds."""
        k = p.as_int()
        if k is not None:
            return self.rational(k)
        sums = {m: c for m, c in p.terms.items() if len(m) == 1 and self._summed(m[0])}
        if not sums or not all(isinstance(c, int) for c in sums.values()):
            return self.real("int", data=p)
        out = self.of_int(Poly({m: c for m, c in p.terms.items() if m not in sums}))
        for (a,), c in sums.items():
            out = self.add(out, self.mul(self.rational(int(c)), self._spelled(a)))
        return out

    def _summed(self, ident: int) -> bool:
        """A sum over a loop, the position of an extremum, or a choice between values with such."""
        atom = self.atoms[ident]
        return atom.kind in ("sum", "place") or (
            atom.kind == "phi" and any(self._summed(a) for p in atom.args for m in p.terms for a in m if len(m) == 1)
        )

    def _spelled(self, ident: int) -> Real:
        atom = self.atoms[ident]
        pred = atom.pred if atom.pred is not None else self.true
        if atom.kind == "place" and atom.real is not None:
            return self.real("place", (atom.real,))
        if atom.kind == "sum":
            return self.fold("add", atom.tag, pred, self._products(atom.args[0]))
        return self.sel(pred, self.of_int(atom.args[0]), self.of_int(atom.args[1]))

    def _products(self, p: Poly) -> Real:
        """An integer as a sum of products of its unknowns."""
        out = self.zero
        for m, c in p.terms.items():
            term = self.of_int(Poly({(): c}))
            for a in m:
                term = self.mul(term, self.of_int(Poly({(a,): 1})))
            out = self.add(out, term)
        return out

    def whole(self, x: Real) -> Poly | None:
        """The polynomial that a term of integers, sums and products is, else None."""
        match x.op:
            case "int":
                return x.data  # type: ignore[no-any-return]
            case "const":
                return Poly({(): int(x.data)} if x.data else {}) if x.data.denominator == 1 else None
            case "add" | "mul":
                a, b = self.whole(x.args[0]), self.whole(x.args[1])
                if a is None or b is None:
                    return None
                return a + b if x.op == "add" else a * b
        return None

    def fcmp(self, op: str, a: Real, b: Real) -> Pred:
        """A comparison of reals; of integers, it is one of polynomials."""
        if {a.op, b.op} <= {"int", "const"} and (p := self.whole(a)) is not None and (q := self.whole(b)) is not None:
            match op:
                case "lt":
                    return self.lt(p, q)
                case "le":
                    return self.le(p - q)
                case _:
                    return self.eq(p - q) if op == "eq" else self.ne(p - q)
        return super().fcmp(op, a, b)

    def scalar(self, name: str) -> Real:
        """A float scalar parameter."""
        return self.real("symbol", data=name)

    def poison(self, why: str) -> Real:
        """A value nothing may depend on: uninitialised memory or an unsolved recurrence."""
        return self.real("poison", data=why)

    # ------------------------------------------------------------------ arithmetic
    def add(self, a: Real, b: Real) -> Real:
        """a + b, constants and integers folded, common reductions merged."""
        if a is self.zero:
            return b
        if b is self.zero:
            return a
        if a.op == "const" and b.op == "const":
            return self.rational(a.data + b.data)
        if a.op == b.op == "int":
            return self.of_int(a.data + b.data)
        merged = self._combine("add", a, b)
        if merged is not None:
            return merged
        a, b = self._near(a), self._near(b)
        return self.real("add", (a, b) if a.id <= b.id else (b, a))

    def neg(self, a: Real) -> Real:
        """−a."""
        if a.op == "inf":
            return self.plus_inf if a.data == -1 else self.minus_inf
        return self.mul(self.rational(-1), a)

    def sub(self, a: Real, b: Real) -> Real:
        """a − b."""
        return self.add(a, self.neg(b))

    def mul(self, a: Real, b: Real) -> Real:
        """a · b with 0 and 1 and constants folded."""
        a, b = self._near(a), self._near(b)
        for x, y in ((a, b), (b, a)):
            if x is self.one:
                return y
            if x is self.zero and not y.poisoned:
                return x
        if a.op == "const" and b.op == "const":
            return self.rational(a.data * b.data)
        if b.op == "const":
            a, b = b, a
        if a.op == "const" and b.op == "mul" and b.args[0].op == "const":
            return self.mul(self.rational(a.data * b.args[0].data), b.args[1])
        if a.op != "const" and b.id < a.id:
            a, b = b, a
        return self.real("mul", (a, b))

    def div(self, a: Real, b: Real) -> Real:
        """a / b; the caller shows b ≠ 0."""
        if b is self.one:
            return a
        a, b = self._near(a), self._near(b)
        if a.op == "const" and b.op == "const" and b.data:
            return self.rational(a.data / b.data)
        return self.real("div", (a, b))

    def unary(self, op: str, a: Real) -> Real:
        """A named function of one real."""
        if a.op == "const":
            v: Fraction = a.data
            if op == "abs":
                return self.rational(abs(v))
            if op == "floor":
                return self.rational(v.__floor__())
            if op == "ex2" and v == 0:
                return self.one
        return self.real(op, (self._near(a),))

    def maximum(self, a: Real, b: Real) -> Real:
        """max(a, b)."""
        return self._extremal("max", self.minus_inf, a, b)

    def minimum(self, a: Real, b: Real) -> Real:
        """min(a, b)."""
        return self._extremal("min", self.plus_inf, a, b)

    def _extremal(self, op: str, unit: Real, a: Real, b: Real) -> Real:
        if a is unit or a is b:
            return b
        if b is unit:
            return a
        if a.op == "const" and b.op == "const":
            return self.rational((max if op == "max" else min)(a.data, b.data))
        merged = self._combine(op, a, b)
        if merged is not None:
            return merged
        a, b = self._near(a), self._near(b)
        return self.real(op, (a, b) if a.id <= b.id else (b, a))

    def combine(self, op: str, a: Real, b: Real) -> Real:
        """The binary operation of a fold: add, max, min or mul."""
        match op:
            case "add":
                return self.add(a, b)
            case "max":
                return self.maximum(a, b)
            case "min":
                return self.minimum(a, b)
            case _:
                return self.mul(a, b)

    def identity(self, op: str) -> Real:
        """The identity of a fold operation."""
        return {"add": self.zero, "mul": self.one, "max": self.minus_inf, "min": self.plus_inf}[op]

    # ------------------------------------------------------------------ lanes
    def reduction(self, op: str, leaf: Real, matrix: IntVector) -> Real:
        """Per lane t, `op` over lanes matrix[t, :] of `leaf` (a multiset for add, a set for max and min)."""
        matrix = np.sort(matrix, axis=1)
        if op != "add":
            rows = [np.unique(r) for r in matrix] if (np.diff(matrix, axis=1) == 0).any() else None
            if rows is not None and len({len(r) for r in rows}) == 1:
                matrix = np.stack(rows)
        if op in ("max", "min") and leaf.op == "state":
            sources = np.frombuffer(leaf.data[1], np.int64)[matrix]
            if (sources == sources[:, :1]).all():
                matrix = matrix[:, :1]
        if matrix.shape[1] == 1:
            return self.permute(leaf, np.ascontiguousarray(matrix[:, 0]), lazy=True)
        return self.real("red", (leaf,), (op, np.ascontiguousarray(matrix).tobytes(), matrix.shape[1]))

    def matrix(self, node: Real) -> IntVector:
        """The lane matrix of a `red` node, shape [lanes, width]."""
        data: tuple[str, bytes, int] = node.data
        return np.frombuffer(data[1], np.int64).reshape(self.lanes, data[2])

    def permutation(self, node: Real) -> IntVector:
        """The source lanes of a `gather` node."""
        return np.frombuffer(node.data, np.int64)

    @abstractmethod
    def permute(self, x: Real, lanes: IntVector, *, lazy: bool = False) -> Real:
        """The node whose lane t is lane lanes[t] of x (see the mapping module)."""

    def _near(self, x: Real) -> Real:
        """x with a lane permutation of a term without folds carried out: only a reduction keeps it as a node."""
        return self.permute(x.args[0], self.permutation(x)) if x.op == "gather" and not x.args[0].folds else x

    def _combine(self, op: str, a: Real, b: Real) -> Real | None:
        for x, y in ((a, b), (b, a)):
            if y.op == "sel" and y.pred is not None and self._scattered(y.pred, y.args[0]) \
                    and y.args[1] is self.identity(op):
                both = self._combine(op, x, y.args[0])
                return None if both is None else self.sel(y.pred, both, x)
        if not ({"gather", "red"} & {a.op, b.op}):
            return None
        (x, A), (y, B) = self._as_reduction(op, a), self._as_reduction(op, b)
        return self.reduction(op, x, np.concatenate([A, B], axis=1)) if x is y else None

    def _scattered(self, g: Pred, x: Real) -> bool:
        """A sum or extremum taken from other lanes in some lanes only, as scans do."""
        moved = x.op == "gather" and x.args[0].op in ("add", "max", "min", "sel")
        return g.op == "lanes" and (moved or x.op == "red")

    def _as_reduction(self, op: str, x: Real) -> tuple[Real, IntVector]:
        if x.op == "red" and x.data[0] == op:
            return x.args[0], self.matrix(x)
        if x.op == "gather":
            return x.args[0], self.permutation(x)[:, None]
        return x, self._identity[:, None]

    # ------------------------------------------------------------------ choice
    def flatten(self, x: Real, op: str) -> list[Real]:
        """The operands of a nested `op` tree."""
        out, stack = [], [x]
        while stack:
            y = stack.pop()
            if y.op == op:
                stack.extend(y.args)
            else:
                out.append(y)
        return out

    def sel(self, g: Pred, a: Real, b: Real) -> Real:
        """g ? a : b, with implied inner choices removed and a common summand pulled out."""
        if a is b or g.op == "true":
            return a
        if g.op == "false":
            return b
        chosen = self._chosen(g, a, b) if "int" in (a.op, b.op) else None
        if chosen is not None:
            return chosen
        if a is self.zero or (a.op == "inf" and b.op != "inf"):
            g, a, b = self.negate(g), b, a
        b = self._near(b)
        if not (self._scattered(g, a) and (b is self.zero or b.op == "inf")):
            a = self._near(a)
        if g.op in ("fcmp", "and", "or"):
            if_less, if_more = self.where_less(g, a, b), self.where_less(g, b, a)
            if if_less is not None and if_more is (not if_less):  # where a = b, both sides are the same
                return self.minimum(a, b) if if_less else self.maximum(a, b)
            if any(self._tied(p, a, b) for p in self.conjuncts(g)):
                return b
        if b is self.zero and a.op == "sel" and a.args[1] is self.zero and a.pred is not None:
            return self.sel(self.conj((g, a.pred)), a.args[0], b)
        a, b = self.under(a, g, True), self.under(b, g, False)
        if a is b:
            return a
        for op in ("add", "max", "min"):
            out = self._pull_common(g, op, a, b)
            if out is not None:
                return out
        return self.real("sel", (a, b), pred=g)

    def _chosen(self, g: Pred, a: Real, b: Real) -> Real | None:
        """A choice between integers as one: by the lane, or p ≥ 1 ? p : q where p ≥ q ≥ 0, which is p."""
        p, q, mask = self.whole(a), self.whole(b), self.mask_of(g)
        if p is None or q is None:
            return None
        if mask is not None:
            return self.of_int(p * mask.astype(np.int64) + q * (~mask).astype(np.int64))
        for x, whole, other, test in ((a, p, q, 1 - p), (b, q, p, q)):
            if g.op == "le" and g.data == test and self._natural(other) and self._natural(whole - other):
                return x
        return None

    def _natural(self, p: Poly) -> bool:
        """p ≥ 0 by the ranges of its atoms."""
        low = self.bounds(p)[0]
        return low is not None and low >= 0

    def _carried_leaf(self, t: Real) -> bool:
        """A loop-carried unknown, or one with its position."""
        return t.op == "state" or (t.op == "placed" and any(self.atoms[i].kind == "state" for i in t.args[0].free))

    def _tied(self, p: Pred, a: Real, b: Real) -> bool:
        """The condition is a = c, and b the greater or lesser of a and c, so that it is a as well."""
        if p.op != "fcmp" or p.data != "eq" or a not in p.reals:
            return False
        c = p.reals[p.reals[0] is a]
        return any(self.combine(op, a, c) is b for op in ("max", "min"))

    def _pull_common(self, g: Pred, op: str, a: Real, b: Real) -> Real | None:
        """g ? s ⊕ x : s ⊕ y as s ⊕ (g ? x : y) where one side is all of s, or s is carried by a loop."""
        if op not in (a.op, b.op):
            return None
        xs, ys = Counter(self.flatten(a, op)), Counter(self.flatten(b, op))
        if max(xs.total(), ys.total()) > _FLAT_LIMIT:
            return None
        common = xs & ys
        if common not in (xs, ys):
            common = Counter({t: n for t, n in common.items() if self._carried_leaf(t)})
        if not common:
            return None
        x, y = (self._joined(op, rest.elements()) for rest in (xs - common, ys - common))
        base = a if common == xs else b if common == ys else self._joined(op, common.elements())
        return self.combine(op, base, self.sel(g, x, y))

    def _joined(self, op: str, parts: Iterable[Real]) -> Real:
        """The parts combined, or the identity of the operation."""
        out: Real | None = None
        for t in parts:
            out = t if out is None else self.combine(op, out, t)
        return self.identity(op) if out is None else out

    def under(self, x: Real, g: Pred, value: bool, depth: int = 8) -> Real:
        """x simplified at its outer choices where g has this value (same lane)."""
        if depth and x.op == "gather":
            return self._gathered_under(x, g, value, depth)
        if not depth or x.op != "sel" or x.pred is None:
            return x
        q = x.pred
        if q is g:
            return self.under(x.args[0] if value else x.args[1], g, value, depth - 1)
        if value:
            if self.implies(g, q):
                return self.under(x.args[0], g, value, depth - 1)
            if self.implies(g, self.negate(q)):
                return self.under(x.args[1], g, value, depth - 1)
            left = [r for r in self.conjuncts(q) if not self.implies(g, r)]
            if len(left) < len(self.conjuncts(q)):
                q = self.conj(left)
        elif self.implies(q, g):
            return self.under(x.args[1], g, value, depth - 1)
        a, b = self.under(x.args[0], g, value, depth - 1), self.under(x.args[1], g, value, depth - 1)
        return x if (a, b, q) == (*x.args, x.pred) else self.sel(q, a, b)

    def _gathered_under(self, x: Real, g: Pred, value: bool, depth: int) -> Real:
        """A value of other lanes: only what is equal in all lanes holds there too."""
        shared = [r for r in self.conjuncts(g) if r.uniform] if value else [g] * g.uniform
        if not shared:
            return x
        inner = self.under(x.args[0], self.conj(shared), value, depth - 1)
        return x if inner is x.args[0] else self.permute(inner, self.permutation(x), lazy=True)

    # ------------------------------------------------------------------ folds
    @abstractmethod
    def fold(self, op: str, atom: int, domain: Pred, body: Real) -> Real:
        """op over the values of `atom` in `domain` of `body`; the bound variable is renamed canonically."""
