"""Bounds of quotients: ⌊n/d⌋ ≤ e − 1 exactly when n ≤ e·d − 1, and ⌊n/d⌋ ≥ e exactly when n ≥ e·d, for d ≥ 1.

Index arithmetic takes a flat index apart by sizes; that its digits stay below the extents is what all bounds of the
digits' recomposition rest on. Candidates for e are read off the products in the hypotheses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from warpproof.algebra import nested_quotients, support
from warpproof.terms import Arena, Monomial, Poly, Pred, const, divide_monomial

_MOST: Final = 6


def quotients(arena: Arena, polys: Iterable[Poly], preds: Iterable[Pred] = ()) -> list[int]:
    """The quotients by unknowns among the atoms that polynomials reach, inner ones first."""
    found = (arena.atoms[a] for a in support(arena, polys, preds) if a >= 0)
    return [a.id for a in found if a.kind == "div" and not a.tag and a.args[1].as_int() is None]


def quotient_facts(arena: Arena, atoms: Iterable[int], positive: Callable[[Poly], bool]) -> Iterator[Poly]:
    """Polynomials ≥ 0 about the quotients, minima and maxima among atoms: definitions, digits between quotients.

    `positive` says of a divisor that it is ≥ 1.
    """
    found = [a for a in sorted(atoms) if a >= 0 and arena.atoms[a].args]
    for a in found:
        atom, x = arena.atoms[a], arena.variable(arena.atoms[a])
        if atom.kind == "div" and positive(atom.args[1]):
            n, d = atom.args
            yield from (n - d * x, d * x + d - 1 - n)
        elif atom.kind in ("min", "max"):
            yield from ((q - x) * (1 if atom.kind == "min" else -1) for q in atom.args)
    for f in nested_quotients(arena, found):
        yield from (-q for q in f.polys())


def digits(arena: Arena, p: Poly, extent: Poly) -> Iterator[Poly]:
    """Remainders and digits of the quotients in p that lie in [0, extent) for divisors ≥ 1.

    A quotient by a multiple of the extent tells of one by the extent: digits that stand together leave only their own.
    """
    found = [a for a in sorted(p.atoms()) if a >= 0 and arena.atoms[a].kind == "div"]
    for a in found:
        n, d = arena.atoms[a].args
        if d == extent or _divides(extent, d):
            yield n - extent * arena.floor_div(n, extent)
    for f in nested_quotients(arena, found):
        low, high = f.polys()
        if 1 - low - high == extent:
            yield -low


def _divides(m: Poly, p: Poly) -> bool:
    """p is a product of the monomial m, which is not a number, and something else."""
    (lead, c), *more = m.terms.items() or [((), 0)]
    return not more and bool(lead) and isinstance(c, int) and not divide_monomial(p, lead, c)[1].terms


def below(arena: Arena, atom: int, e: Poly) -> Poly:
    """The polynomial that is ≤ 0 exactly when the quotient is ≤ e − 1, for a divisor ≥ 1."""
    n, d = arena.atoms[atom].args
    return n - e * d + 1


def isolated(arena: Arena, p: Poly) -> Iterator[tuple[Poly, Poly]]:
    """(q, d): p ≤ 0 follows from q ≤ 0 and d ≥ 1; a quotient by d that p has once, c times, is multiplied out.

    c·⌊n/d⌋ ≤ r follows from n + 1 ≤ (r + 1)·d/c, and c·⌊n/d⌋ ≥ r from n ≥ (r + c − 1)·d/c, where c divides d.
    """
    for m, c in p.terms.items():
        if len(m) != 1 or not isinstance(c, int) or m[0] < 0:
            continue
        atom = arena.atoms[m[0]]
        if atom.kind != "div" or atom.tag:
            continue
        n, d = atom.args
        rest = p - Poly({m: c})
        if d.as_int() is None and d.content(constant=True) % c == 0 and m[0] not in support(arena, (rest,)):
            part = d.exact_div(abs(c))
            yield (n + 1 - (1 - rest) * part if c > 0 else (rest - c - 1) * part - n), d


def alternatives(arena: Arena, p: Poly) -> list[Poly]:
    """Polynomials of which one equals p: a minimum or maximum in p replaced by each of its arguments."""
    for a in sorted(p.atoms(), reverse=True):
        if a >= 0 and arena.atoms[a].kind in ("min", "max"):
            return [_replaced(p, a, q) for q in arena.atoms[a].args]
    return []


def _replaced(p: Poly, atom: int, value: Poly) -> Poly:
    out = Poly({m: c for m, c in p.terms.items() if atom not in m})
    for m, c in p.terms.items():
        if atom in m:
            term = Poly({tuple(a for a in m if a != atom): c})
            for _ in range(m.count(atom)):
                term = term * value
            out = out + term
    return out


def candidates(arena: Arena, atom: int, polys: Iterable[Poly]) -> list[Poly]:
    """Polynomials e of which n ≤ e·d − 1 may follow from what is known: the multiples of d in these polynomials."""
    d = arena.atoms[atom].args[1]
    out: list[Poly] = []
    for p in polys:
        if not p.uniform() or atom in support(arena, (p,)):
            continue
        for lead, c in d.terms.items():
            if not lead or c not in (1, -1):
                continue
            e = multiple(p, d, lead)
            for f in (e, -e):
                if f.terms and f not in out and _positive(arena, f):
                    out.append(f)
    return sorted(out, key=lambda e: (len(e.terms), e.key))[:_MOST]


def _positive(arena: Arena, e: Poly) -> bool:
    hi = arena.bounds(e)[1]
    return hi is None or hi >= 1


def multiple(p: Poly, d: Poly, lead: Monomial) -> Poly:
    """e such that p − e·d has no monomial left that `lead` divides (as far as a few rounds go)."""
    c = d.terms[lead]
    out = const(0)
    for _ in range(4):
        whole: dict[Monomial, int] = {}
        for m, k in p.terms.items():
            left = list(m)
            for a in lead:
                if a not in left:
                    break
                left.remove(a)
            else:
                if isinstance(k, int) and isinstance(c, int):
                    whole[tuple(left)] = k * c
        if not whole:
            break
        e = Poly(dict(whole))
        out, p = out + e, p - e * d
    return out
