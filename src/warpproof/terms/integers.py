"""Integer side of the arena: atoms, their ranges, interval bounds, floor division in canonical form."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np

from warpproof.terms.atoms import Atom, Range
from warpproof.terms.nodes import EMPTY, Pred, Real
from warpproof.terms.poly import ZERO, Poly, const

_VARIABLE_KINDS = frozenset({"loop", "state", "bound", "index", "unknown"})
OWN_KINDS = frozenset({"state", "undef", "unknown"})


class IntegerArena:
    """Owner of the atoms. `lanes` is the number of threads a node speaks about."""

    def __init__(self, lanes: int) -> None:
        self.lanes = lanes
        self.atoms: list[Atom] = []
        self.ranges: dict[int, Range] = {}
        self.elements: dict[tuple[str, int], Range] = {}  # (buffer, version) -> range of its integer elements
        self._atom_key: dict[object, Atom] = {}
        self._free: dict[frozenset[int], frozenset[int]] = {}  # by sets of atoms
        self._uniform: dict[frozenset[int], bool] = {}
        self.unknown: frozenset[int] = frozenset()  # conditions on values nothing may depend on

    # ------------------------------------------------------------------ atoms
    def _new(
        self, key: object, kind: str, name: str, args: tuple[Poly, ...] = (), pred: Pred | None = None, tag: int = 0,
        real: Real | None = None,
    ) -> Atom:
        free: frozenset[int] = (pred.free if pred else EMPTY) | (real.free if real else EMPTY)
        for p in args:
            free |= self.poly_free(p)
        # A loop-carried or undefined register has a value of its own in every lane, though one atom stands for it.
        uniform = kind not in OWN_KINDS and all(self.poly_uniform(p) for p in args) and (pred is None or pred.uniform)
        uniform = uniform and (real is None or real.uniform)
        ident = len(self.atoms)
        if kind in _VARIABLE_KINDS:
            free = free | {ident}
        if kind == "unknown":
            self.unknown = self.unknown | {ident}
        if kind == "sum":
            free = free - {tag}
        inside = [self.poly_height(p) for p in args] + [x.height for x in (pred, real) if x is not None]
        height = max([*inside, *([self.atoms[tag].tag] if kind == "sum" else [])], default=0)
        atom = Atom(ident, kind, name, args, pred, tag, free, uniform, real, height)
        self.atoms.append(atom)
        self._atom_key[key] = atom
        return atom

    def symbol(self, kind: str, name: str, lo: int | None = None, hi: int | None = None) -> Poly:
        """The unknown `name` of this kind; ranges given again are intersected."""
        key = (kind, name)
        atom = self._atom_key.get(key) or self._new(key, kind, name)
        self.restrict(atom.id, lo, hi)
        return Poly({(atom.id,): 1})

    def fresh(self, kind: str, name: str, lo: int | None = None, hi: int | None = None) -> Atom:
        """A new unknown, different from all others even of the same name."""
        atom = self._new((kind, name, len(self.atoms), "fresh"), kind, name)
        self.restrict(atom.id, lo, hi)
        return atom

    def variable(self, atom: Atom) -> Poly:
        """The polynomial that is just this atom."""
        return Poly({(atom.id,): 1})

    def restrict(self, ident: int, lo: int | None, hi: int | None) -> None:
        """Intersect the known range of an atom."""
        a, b = self.ranges.get(ident, (None, None))
        self.ranges[ident] = (
            lo if a is None else a if lo is None else max(a, lo),
            hi if b is None else b if hi is None else min(b, hi),
        )

    def refresh(self, ident: int) -> None:
        """Narrow the range of a derived atom to what its arguments' ranges now say."""
        lo, hi = self._derived_range(self.atoms[ident])
        self.restrict(ident, lo, hi)

    def derived(
        self, kind: str, args: tuple[Poly, ...], pred: Pred | None = None, tag: int = 0, name: str = "",
        real: Real | None = None,
    ) -> Poly:
        """The atom defined by `kind` and its arguments; equal definitions give the same atom."""
        key = (kind, name, tuple(p.key for p in args), pred.id if pred else -1, tag,
               real.id if real else -1)
        atom = self._atom_key.get(key)
        if atom is None:
            atom = self._new(key, kind, name, args, pred, tag, real)
            lo, hi = self._derived_range(atom)
            self.restrict(atom.id, lo, hi)
        return Poly({(atom.id,): 1})

    def poly_free(self, p: Poly) -> frozenset[int]:
        """Loop, state, bound and index atoms a polynomial depends on."""
        atoms = p.atoms()
        out = self._free.get(atoms)
        if out is None:
            out = self._free[atoms] = EMPTY.union(*(self.atoms[a].free for a in atoms))
        return out

    def chooses(self, p: Poly) -> bool:
        """True when a choice (`phi`) occurs in the polynomial."""
        atoms = [self.atoms[a] for a in p.atoms()]
        return any(a.kind == "phi" or any(map(self.chooses, a.args)) for a in atoms)

    def poly_height(self, p: Poly) -> int:
        """The nesting depth of folds inside a polynomial's atoms."""
        return max((self.atoms[a].height for a in p.atoms()), default=0)

    def poly_uniform(self, p: Poly) -> bool:
        """True when the polynomial is syntactically the same in every lane."""
        return p.uniform() and self.uniform_atoms(p)

    def uniform_atoms(self, p: Poly) -> bool:
        """True when no atom of the polynomial differs by lane; its factors may."""
        atoms = p.atoms()
        out = self._uniform.get(atoms)
        if out is None:
            out = self._uniform[atoms] = all(self.atoms[a].uniform for a in atoms)
        return out

    # ------------------------------------------------------------------ ranges
    def bounds(self, p: Poly) -> Range:
        """An interval that contains the polynomial in every lane, from the atoms' ranges alone."""
        lo: int | None = 0
        hi: int | None = 0
        for m, c in p.terms.items():
            mlo, mhi = self._monomial_range(m)
            cs = (c, c) if isinstance(c, int) else (int(c.min()), int(c.max()))
            tlo, thi = _interval_mul((mlo, mhi), cs)
            lo = None if lo is None or tlo is None else lo + tlo
            hi = None if hi is None or thi is None else hi + thi
            if lo is None and hi is None:
                break
        return lo, hi

    def _monomial_range(self, m: tuple[int, ...]) -> Range:
        r: Range = (1, 1)
        for a in m:
            r = _interval_mul(r, self.ranges.get(a, (None, None)))
        return r

    def _derived_range(self, atom: Atom) -> Range:
        if atom.kind == "div":
            (a, b), (c, d) = self.bounds(atom.args[0]), self.bounds(atom.args[1])
            if c is None or c <= 0:
                return None, None
            lo = None if a is None else min(a // c, a // d if d is not None else (0 if a >= 0 else -1))
            hi = None if b is None else max(b // c, b // d if d is not None else (0 if b >= 0 else -1))
            return lo, hi
        if atom.kind in ("min", "max"):
            rs = [self.bounds(p) for p in atom.args]
            pick = min if atom.kind == "min" else max
            los, his = [r[0] for r in rs], [r[1] for r in rs]
            lo = _extreme(pick, los, atom.kind == "max")
            hi = _extreme(pick, his, atom.kind == "min")
            return lo, hi
        if atom.kind == "phi":
            rs = [self.bounds(p) for p in atom.args]
            los, his = [r[0] for r in rs], [r[1] for r in rs]
            lo = None if None in los else min(x for x in los if x is not None)
            hi = None if None in his else max(x for x in his if x is not None)
            return lo, hi
        if atom.kind == "trip":
            return 1, None
        if atom.kind == "sum":
            return self._sum_range(atom)
        if atom.kind == "or":
            (a, b), (c, d) = self.bounds(atom.args[0]), self.bounds(atom.args[1])
            if a is None or c is None or a < 0 or c < 0:
                return None, None
            return max(a, c), None if b is None or d is None else (1 << max(b.bit_length(), d.bit_length())) - 1
        if atom.kind == "place" and atom.real is not None:
            return self.place_range(atom.real)
        if atom.kind == "elem":
            return self.elements.get((atom.name, atom.tag), (None, None))
        return None, None

    def place_range(self, x: Real) -> Range:
        """An interval that contains the positions of all placed values of a term (see the places module)."""
        return None, None

    def _sum_range(self, atom: Atom) -> Range:
        """The range of a sum from that of its summand and the largest number of iterations."""
        if atom.pred is None or atom.pred.op != "dom":
            return None, None
        slope, rest = atom.pred.data[1].split(atom.tag)
        least, most = self.bounds(slope)[0], self.bounds(-rest)[1]
        if least is None or least < 1 or most is None:
            return None, None
        count = max(1, most // least + 2)
        lo, hi = self.bounds(atom.args[0])
        return None if lo is None else min(lo, lo * count), None if hi is None else max(hi, hi * count)

    # ------------------------------------------------------------------ division
    def mod(self, p: Poly, q: Poly) -> Poly:
        """p − q·⌊p/q⌋ (non-negative for q > 0)."""
        return p - q * self.floor_div(p, q)

    def floor_div(self, p: Poly, q: Poly) -> Poly:
        """⌊p/q⌋ for q > 0 (the caller shows q > 0), in a canonical form."""
        k = q.as_int()
        if k is None:
            return self._div_symbolic(p, q)
        if k == 1:
            return p
        if p.is_constant():
            c = p.constant
            return const(c // k)
        whole = Poly({m: c // k for m, c in p.terms.items() if m and not np.any(np.asarray(c % k))})
        rest = Poly({m: c for m, c in p.terms.items() if m not in whole.terms})
        shift = rest.constant // k if not isinstance(rest.constant, int) or rest.constant else 0
        if rest.is_constant():
            return whole + const(shift)
        whole, rest = whole + const(shift), rest - const(shift * k)
        halves = self._or_operands(rest)
        if halves is not None and k & (k - 1) == 0:
            return whole + self.bit_or(*(self.floor_div(p, const(k)) for p in halves))
        for lo, hi in (self.bounds(rest), self._bounds_by_digits(rest), self._bounds_by_remainders(rest)):
            if lo is not None and hi is not None and lo // k == hi // k:
                return whole + const(lo // k)
        g = math.gcd(rest.content(), k)
        if g > 1:
            rest, k = rest.symbolic().exact_div(g) + const(rest.constant // g), k // g
            if k == 1:
                return whole + rest
            return whole + self.floor_div(rest, const(k))
        return whole + (self._div_nested(rest, const(k)) or self._div_magic(rest, k) or self._quotient(rest, const(k)))

    def _bounds_by_digits(self, p: Poly) -> Range:
        """Bounds in which k·⌊x/b⌋ − k·c·⌊x/(b·c)⌋, which is k times a digit of x, lies in [0, k·(c − 1)]."""
        rest, high = dict(p.terms), 0
        for m in p.terms:
            k = rest.get(m)
            for n in [n for n in rest if n != m] if isinstance(k, int) and k > 0 else ():
                size = self._digit(m, n)
                if size is not None and isinstance(k, int) and isinstance(rest[n], int) and rest[n] == -size * k:
                    high += k * (size - 1)
                    del rest[m], rest[n]
                    break
        if len(rest) == len(p.terms):
            return None, None
        lo, hi = self.bounds(Poly(rest))
        return lo, None if hi is None else high + hi

    def _bounds_by_remainders(self, p: Poly) -> Range:
        """Bounds in which c·x − c·b·⌊x/b⌋, which is c times a remainder, lies in [0, c·(b − 1)]."""
        rest, high = p, 0
        for m, k in p.terms.items():
            x, b = self._over_constant(m[0]) if len(m) == 1 else (Poly({}), 1)
            if b > 1 and isinstance(k, int) and k < 0 and k % b == 0:
                left = rest - Poly({m: k}) + x * (k // b)
                if len(left.symbolic().terms) < len(rest.symbolic().terms) - 1:
                    rest, high = left, high - (k // b) * (b - 1)
        lo, hi = self.bounds(rest) if rest is not p else (None, None)
        return lo, None if hi is None else hi + high

    def _digit(self, m: tuple[int, ...], n: tuple[int, ...]) -> int | None:
        """c when the second monomial is ⌊x/(b·c)⌋ and the first ⌊x/b⌋ for a number x and constants b, c ≥ 1."""
        if len(m) != 1 or len(n) != 1 or self.atoms[n[0]].kind != "div":
            return None
        (x, b), (y, d) = self._over_constant(m[0]), self._over_constant(n[0])
        return d // b if x == y and d > b and d % b == 0 else None

    def _over_constant(self, a: int) -> tuple[Poly, int]:
        """(x, b) with the atom equal to ⌊x/b⌋ for a constant b ≥ 1."""
        atom = self.atoms[a]
        k = atom.args[1].as_int() if atom.kind == "div" else None
        return (Poly({(a,): 1}), 1) if k is None else (atom.args[0], k)

    def _quotient(self, p: Poly, q: Poly, tag: int = 0) -> Poly:
        return self.derived("div", (p, q), tag=tag)

    def _div_nested(self, p: Poly, q: Poly) -> Poly | None:
        """⌊(⌊a/b⌋ + c)/q⌋ = ⌊(a + b·c)/(b·q)⌋ for b, q > 0."""
        s = p.symbolic()
        if len(s.terms) != 1:
            return None
        ((m, c),) = s.terms.items()
        if len(m) != 1 or not (isinstance(c, int) and c == 1):
            return None
        atom = self.atoms[m[0]]
        if atom.kind != "div":
            return None
        a, b = atom.args
        if atom.tag:
            return self._div_magic_tagged(a, b, q, atom.tag) if not p.terms.get(()) else None
        return self.floor_div(a + b * const(p.constant), b * q)

    def _div_magic_tagged(self, a: Poly, b: Poly, q: Poly, width: int) -> Poly | None:
        k, shift = b.as_int(), q.as_int()
        if k is None or shift is None:
            return None
        return self._magic(a, k * shift, (1 << width) - 1) or self._quotient(a, const(k * shift), width)

    def _div_magic(self, p: Poly, k: int) -> Poly | None:
        content = p.content(constant=True)
        if content < 3:
            return None
        lo, hi = self.bounds(p)
        if lo is None or lo < 0 or hi is None:
            return None
        return self._magic(p, k, hi // content)

    def _magic(self, p: Poly, k: int, x_max: int) -> Poly | None:
        """⌊M·x/k⌋ = ⌊x/d⌋ for 0 ≤ x ≤ x_max when M·d = k + e, e ≥ 0 and x_max·e < k (division by multiplication); and
        ⌊M·x/k⌋ = (M div k)·x when x_max·(M mod k) < k."""
        m = p.content(constant=True)
        if m < 3:
            return None
        if m >= k:
            return p.exact_div(m) * (m // k) if m % k * x_max < k else None
        d = -(-k // m)
        e = m * d - k
        if e * x_max >= k:
            return None
        return self.floor_div(p.exact_div(m), const(d))

    def magic_shift(self, p: Poly, shift: int, width: int) -> Poly:
        """⌊p/2^shift⌋ for p that the caller has shown to lie in [0, 2^width)."""
        content = p.content(constant=True)
        short = self._magic(p, 1 << shift, ((1 << width) - 1) // content) if content > 2 else None
        return short or self.floor_div(p, const(1 << shift))

    def unsigned_high(self, x: Poly, m: int, width: int) -> Poly:
        """⌊m·x/2^width⌋ for x that the caller has shown to lie in [0, 2^width)."""
        k = 1 << width
        p = x * m
        if p.is_constant():
            return const(np.asarray([int(v) * m // k for v in x.lanes(self.lanes)], dtype=np.int64))
        return self._magic(p, k, k - 1) or self._quotient(p, const(k), width)

    def _div_symbolic(self, p: Poly, q: Poly) -> Poly:
        if p == q:
            return const(1)
        g = math.gcd(p.content(), q.content(constant=True))
        if g > 1:  # ⌊(g·x + c)/(g·y)⌋ = ⌊(x + ⌊c/g⌋)/y⌋
            return self.floor_div(p.symbolic().exact_div(g) + const(p.constant // g), q.exact_div(g))
        if len(q.terms) == 1:
            ((m, c),) = q.terms.items()
            if isinstance(c, int):
                whole, rest = divide_monomial(p, m, c)
                if whole.terms:
                    return whole + self.floor_div(rest, q)
        lo = self.bounds(p)[0]
        gap = self.bounds(q - p)[0]
        if lo is not None and lo >= 0 and gap is not None and gap >= 1:
            return ZERO
        return self._div_nested(p, q) or self._quotient(p, q)

    # ------------------------------------------------------------------ bitwise or
    def bit_or(self, p: Poly, q: Poly) -> Poly:
        """The bitwise or of two integers in two's complement without end."""
        if p == q or q == ZERO:
            return p
        if p == ZERO:
            return q
        if p.is_constant() and q.is_constant():
            return const(p.lanes(self.lanes) | q.lanes(self.lanes))
        a, b = sorted((p, q), key=lambda r: repr(r.key))
        return self.derived("or", (a, b))

    def _or_operands(self, p: Poly) -> tuple[Poly, Poly] | None:
        """The operands when a polynomial is one bitwise or."""
        if len(p.terms) != 1:
            return None
        ((m, c),) = p.terms.items()
        atom = self.atoms[m[0]] if len(m) == 1 else None
        if atom is None or atom.kind != "or" or not (isinstance(c, int) and c == 1):
            return None
        return atom.args[0], atom.args[1]

    # ------------------------------------------------------------------ min, max
    def extremum(self, kind: str, args: Iterable[Poly]) -> Poly:
        """min or max of polynomials, dropping arguments that never decide; one inside another where that is shorter."""
        keep = self._deciding(kind, args)
        for k, p in enumerate(keep if len(keep) > 1 else ()):
            inner = self._spread(kind, p)
            if inner:
                flat = self._deciding(kind, [*keep[:k], *inner, *keep[k + 1 :]])
                if len(flat) <= len(keep):
                    return self.extremum(kind, flat)
        if len(keep) == 1:
            return keep[0]
        if all(p.is_constant() for p in keep):
            pick = np.minimum if kind == "min" else np.maximum
            return const(pick.reduce([np.asarray(p.lanes(self.lanes)) for p in keep]))
        shared = {p.constant if isinstance(p.constant, int) else None for p in keep}
        if len(shared) == 1 and (offset := shared.pop()):
            return self.extremum(kind, [p - offset for p in keep]) + offset
        if all(_led_by_minus(p) for p in keep):
            return -self.extremum("max" if kind == "min" else "min", [-p for p in keep])
        return self.derived(kind, tuple(sorted(keep, key=lambda p: p.key.__repr__())))

    def _deciding(self, kind: str, args: Iterable[Poly]) -> list[Poly]:
        """The arguments but for those that another one always decides over."""
        keep: list[Poly] = []
        for p in args:
            if not any(self._dominates(kind, q, p) for q in keep):
                keep = [q for q in keep if not self._dominates(kind, p, q)] + [p]
        return keep

    def _spread(self, kind: str, p: Poly) -> list[Poly]:
        """Arguments whose min (or max) is p = min(…) + q, as addition distributes over it; none for another p."""
        found = []
        for m, c in p.terms.items():
            if len(m) == 1 and self.atoms[m[0]].kind in ("min", "max"):
                if not isinstance(c, int) or abs(c) != 1 or (self.atoms[m[0]].kind == kind) != (c == 1):
                    return []
                found.append((m[0], c))
        if len(found) != 1:
            return []
        atom, sign = found[0]
        rest = p - Poly({(atom,): sign})
        return [rest + q * sign for q in self.atoms[atom].args]

    def _dominates(self, kind: str, p: Poly, q: Poly) -> bool:
        """p decides over q in every lane: p ≤ q for min, p ≥ q for max."""
        lo, hi = self.bounds(p - q)
        return (hi is not None and hi <= 0) if kind == "min" else (lo is not None and lo >= 0)


def _led_by_minus(p: Poly) -> bool:
    """The first of the unknowns has a negative factor."""
    led = [c for m, c in sorted(p.terms.items(), key=lambda t: t[0]) if m][:1]
    return bool(led) and bool(np.all(np.asarray(led[0]) < 0))


def _interval_mul(a: Range, b: Range) -> Range:
    if a == (0, 0) or b == (0, 0):
        return 0, 0
    (al, ah), (bl, bh) = a, b
    if al is not None and ah is not None and bl is not None and bh is not None:
        ps = (al * bl, al * bh, ah * bl, ah * bh)
        return min(ps), max(ps)
    if al is not None and al >= 0 and bl is not None and bl >= 0:
        return al * bl, None if ah is None or bh is None else ah * bh
    if ah is not None and ah <= 0:
        lo, hi = _interval_mul((None if ah is None else -ah, None if al is None else -al), b)
        return None if hi is None else -hi, None if lo is None else -lo
    if bh is not None and bh <= 0:
        return _interval_mul(b, a)
    return None, None


def _extreme(pick: Callable[..., int], values: list[int | None], ignore_none: bool) -> int | None:
    known = [v for v in values if v is not None]
    if len(known) < len(values) and not ignore_none:
        return None
    if not known:
        return None
    return int(pick(known))


def divide_monomial(p: Poly, m: tuple[int, ...], c: int) -> tuple[Poly, Poly]:
    """(w, r) with p = w·(c·m) + r, moving every term that c·m divides into w."""
    whole, rest = {}, {}
    for n, d in p.terms.items():
        left = list(n)
        for a in m:
            if a in left:
                left.remove(a)
            else:
                left = []
                break
        else:
            if not np.any(np.asarray(d % c)):
                whole[tuple(left)] = d // c
                continue
        rest[n] = d
    return Poly(whole), Poly(rest)
