"""Lane-vectorised integer polynomials: monomial -> coefficient, one integer for all lanes or one per lane.

A polynomial stands for one exact integer per lane, over atoms (sizes, block indices, loop counters, quotients …) that
an `Arena` owns. Coefficients are Python ints when lane-uniform and int64 vectors otherwise; a vector coefficient that
would leave ±2^62 raises `Unsupported` rather than wrapping.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from warpproof.core import Unsupported

IntVector = npt.NDArray[np.int64]
Coef = int | IntVector
Monomial = tuple[int, ...]
_LIMIT: Final = 1 << 62


def coefficient(v: Coef) -> Coef:
    """The canonical form of a coefficient: an int when all lanes agree, else a checked int64 vector."""
    if isinstance(v, int):
        return v
    if not isinstance(v, np.ndarray):
        return int(v)
    lo, hi = int(v.min()), int(v.max())
    if lo == hi:
        return lo
    if lo < -_LIMIT or hi > _LIMIT:
        raise Unsupported("integer arithmetic", "a lane-dependent coefficient leaves the 62-bit range")
    return v if v.dtype == np.int64 else v.astype(np.int64)


def _add(a: Coef, b: Coef) -> Coef:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if (isinstance(a, int) and abs(a) > _LIMIT) or (isinstance(b, int) and abs(b) > _LIMIT):
        raise Unsupported("integer arithmetic", "a lane-dependent coefficient leaves the 62-bit range")
    return coefficient(np.add(a, b))


def _mul(a: Coef, b: Coef) -> Coef:
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if magnitude(a) * magnitude(b) > _LIMIT:
        raise Unsupported("integer arithmetic", "a lane-dependent coefficient leaves the 62-bit range")
    return coefficient(np.multiply(a, b))


def magnitude(v: Coef) -> int:
    """The largest absolute value over the lanes."""
    return abs(v) if isinstance(v, int) else max(abs(int(v.min())), abs(int(v.max())))


class Poly:
    """An integer per lane, Σ coefficient · monomial. Immutable; zero coefficients are never stored."""

    __slots__ = ("_atoms", "_key", "terms")

    def __init__(self, terms: dict[Monomial, Coef]) -> None:
        self.terms = {m: c for m, c in terms.items() if not (isinstance(c, int) and c == 0)}
        self._key: tuple[tuple[Monomial, int | bytes], ...] | None = None
        self._atoms: frozenset[int] | None = None

    @property
    def key(self) -> tuple[tuple[Monomial, int | bytes], ...]:
        """A hashable identity: equal keys mean equal polynomials."""
        if self._key is None:
            self._key = tuple(
                (m, c if isinstance(c, int) else c.tobytes()) for m, c in sorted(self.terms.items(), key=lambda t: t[0])
            )
        return self._key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Poly) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __add__(self, other: Poly | int) -> Poly:
        q = other.terms if isinstance(other, Poly) else {(): other}
        out = dict(self.terms)
        for m, c in q.items():
            out[m] = _add(out[m], c) if m in out else c
        return Poly(out)

    __radd__ = __add__

    def __neg__(self) -> Poly:
        return Poly({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Poly | int) -> Poly:
        return self + (-other)

    def __rsub__(self, other: int) -> Poly:
        return (-self) + other

    def __mul__(self, other: Poly | int | IntVector) -> Poly:
        if not isinstance(other, Poly):
            k = coefficient(other)
            return Poly({m: _mul(c, k) for m, c in self.terms.items()})
        out: dict[Monomial, Coef] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                q = tuple(sorted(m + n)) if m and n else m or n
                v = _mul(c, d)
                out[q] = _add(out[q], v) if q in out else v
        return Poly(out)

    __rmul__ = __mul__

    @property
    def constant(self) -> Coef:
        """The coefficient of the empty monomial."""
        return self.terms.get((), 0)

    def is_constant(self) -> bool:
        """True when no atom occurs (the value may still differ by lane)."""
        return not self.terms or (len(self.terms) == 1 and () in self.terms)

    def as_int(self) -> int | None:
        """The value when it is one integer for all lanes, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and () in self.terms and isinstance(self.terms[()], int):
            return self.terms[()]
        return None

    def lanes(self, count: int) -> IntVector:
        """The constant part as a vector over `count` lanes; only meaningful for constants."""
        c = self.constant
        if isinstance(c, int) and abs(c) > _LIMIT:
            raise Unsupported("integer arithmetic", "a constant leaves the 62-bit range")
        return np.broadcast_to(np.asarray(c, dtype=np.int64), (count,))

    def symbolic(self) -> Poly:
        """The polynomial without its constant term."""
        return Poly({m: c for m, c in self.terms.items() if m})

    def uniform(self) -> bool:
        """True when every coefficient is the same in all lanes (atoms may still depend on the lane)."""
        return all(isinstance(c, int) for c in self.terms.values())

    def atoms(self) -> frozenset[int]:
        """The atoms that occur directly."""
        if self._atoms is None:
            self._atoms = frozenset(a for m in self.terms for a in m)
        return self._atoms

    def split(self, atom: int) -> tuple[Poly, Poly]:
        """(a, b) with self = a·atom + b, where b has no monomial containing `atom` and a is the exact cofactor."""
        a: dict[Monomial, Coef] = {}
        b: dict[Monomial, Coef] = {}
        for m, c in self.terms.items():
            if atom in m:
                rest = list(m)
                rest.remove(atom)
                a[tuple(rest)] = c
            else:
                b[m] = c
        return Poly(a), Poly(b)

    def content(self, *, constant: bool = False) -> int:
        """The gcd of the coefficients over all lanes, of the symbolic ones only unless `constant`."""
        g = 0
        for m, c in self.terms.items():
            if m or constant:
                g = int(np.gcd(g, c)) if isinstance(c, int) and abs(c) < _LIMIT and g < _LIMIT else _gcd(g, c)
        return g

    def exact_div(self, k: int) -> Poly:
        """self / k, where k divides every coefficient."""
        return Poly({m: c // k for m, c in self.terms.items()})

    def __iter__(self) -> Iterator[tuple[Monomial, Coef]]:
        return iter(self.terms.items())


def _gcd(g: int, c: Coef) -> int:
    import math

    if isinstance(c, int):
        return math.gcd(g, c)
    return math.gcd(g, int(np.gcd.reduce(np.abs(c))))


ZERO: Final = Poly({})


def const(v: Coef) -> Poly:
    """The constant polynomial `v`."""
    return Poly({(): coefficient(v)})
