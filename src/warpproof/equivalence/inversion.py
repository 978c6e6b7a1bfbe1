"""The values of unknowns at which an index pattern is a given index."""

from __future__ import annotations

from collections.abc import Iterator

from warpproof.terms import Coef, Poly, const, divide_monomial


def invert(
    pattern: Poly, target: Poly, variables: tuple[int, ...], *, digits: bool = False
) -> dict[int, Poly] | None:
    """Solve pattern(variables) = target, the variable with the largest stride first; with `digits`, constants are
    shared out between strides as in a mixed radix number."""
    rest = target
    slopes = []
    for v in variables:
        slope, other = pattern.split(v)
        if not slope.terms:
            continue
        if set(slope.atoms()) & set(variables):
            return None
        pattern = other
        slopes.append((v, slope))
    rest = rest - pattern
    slopes.sort(key=lambda t: (-len(_lead(t[1])[0]), -abs(_leading(t[1]))))
    out: dict[int, Poly] = {}
    for v, slope in slopes:
        m, c = _lead(slope)
        if not isinstance(c, int):
            return None
        out[v] = divide_monomial(rest, m, c)[0]
        rest = rest - out[v] * slope
        if digits and not m and c > 1:
            share = const(rest.constant // c)
            out[v], rest = out[v] + share, rest - share * c
    return out if not rest.terms else None


def _lead(p: Poly) -> tuple[tuple[int, ...], Coef]:
    """The monomial of highest degree with its coefficient."""
    return max(p.terms.items(), key=lambda t: (len(t[0]), t[0]))


def _leading(p: Poly) -> int:
    c = _lead(p)[1]
    return c if isinstance(c, int) else 0


def choices_of(choices: list[list[Poly]]) -> Iterator[tuple[Poly, ...]]:
    """One of the first choices of each list, in all combinations."""
    if not choices:
        yield ()
        return
    for q in choices[0][:4]:
        for tail in choices_of(choices[1:]):
            yield (q, *tail)
