"""Changes of unknowns that make products small: W := X + S − 2·pad − 1 when W − S + 2·pad is known to be ≥ 0.

Output sizes such as H + 2·pad − R + 1 occur in index arithmetic as factors. Multiplied out, the product of two of
them hides that it is a product of positive numbers; with one unknown for each factor it is a monomial. A change is one
to one on the integers, so a statement and its image are equivalent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from warpproof.terms import Arena, Poly

_WORTH_A_LOOK: Final = 10
_MAX_CHANGES: Final = 4
_MAX_EQUATION: Final = 6


@dataclass(frozen=True, slots=True)
class Change:
    """The unknown `old` is `sign`·(`new`) + `rest`, where `rest` mentions neither."""

    old: int
    new: int
    sign: int
    rest: Poly

    def value(self) -> Poly:
        """What replaces `old`."""
        return self.rest + Poly({(self.new,): self.sign})

    def valid(self, used: Iterable[int]) -> bool:
        """True when the change is one to one: `new` is fresh, `rest` is free of both, the slope is ±1."""
        apart = not {self.old, self.new} & self.rest.atoms()
        return self.sign in (1, -1) and self.new not in used and apart and self.rest.uniform()

    def apply(self, p: Poly) -> Poly:
        """The image of a lane-uniform polynomial."""
        return replace_unknown(p, self.old, self.value())


@dataclass(frozen=True, slots=True)
class Elimination:
    """The unknown `old` replaced by a polynomial it is equal to by one of the facts."""

    old: int
    by: Poly

    def equation(self) -> Poly:
        """What must be among the facts to be 0, up to sign."""
        return Poly({(self.old,): 1}) - self.by

    def apply(self, p: Poly) -> Poly:
        """The image of a lane-uniform polynomial."""
        return replace_unknown(p, self.old, self.by)


def find_elimination(equations: Iterable[Poly]) -> Elimination | None:
    """The first small equation that can be solved for an unknown with slope ±1."""
    for p in equations:
        if len(p.terms) > _MAX_EQUATION:
            continue
        for m, c in sorted(p.terms.items()):
            if len(m) == 1 and isinstance(c, int) and abs(c) == 1 and sum(m[0] in n for n in p.terms) == 1:
                return Elimination(m[0], (p - Poly({m: c})) * -c)
    return None


def replace_unknown(p: Poly, old: int, value: Poly) -> Poly:
    """p with an unknown replaced by a polynomial."""
    if old not in p.atoms():
        return p
    out = Poly({m: c for m, c in p.terms.items() if old not in m})
    for m, c in p.terms.items():
        if old in m:
            t = Poly({tuple(a for a in m if a != old): c})
            for _ in range(m.count(old)):
                t = t * value
            out = out + t
    return out


def choose_changes(
    polys: Sequence[Poly], facts: Sequence[Poly], fresh: Callable[[Poly], int], usable: Callable[[int], bool],
) -> list[Change]:
    """Changes that clearly shrink the nonlinear part of `polys`.

    `facts` are ≥ 0; the linear ones give the candidates. `fresh` gives the new unknown that stands for a polynomial;
    only unknowns that are `usable` take part.
    """
    current, known = list(polys), list(facts)
    size = _size(current)
    out: list[Change] = []
    while size >= _WORTH_A_LOOK and len(out) < _MAX_CHANGES:
        best: tuple[int, Poly, int, int] | None = None
        curved = {a for p in current for m in p.terms if len(m) > 1 for a in m}
        tried: set[Poly] = set()
        for f in known:
            for old in _pivots(f, curved, usable):
                for shift in (1, 0):
                    trial = _change(f + shift, old, -(1 << 30))
                    if (key := trial.value() - Poly({(old,): 1})) in tried:
                        continue
                    tried.add(key)
                    mine = [p for p in current if old in p.atoms()]
                    after = size - _size(mine) + _size([trial.apply(p) for p in mine])
                    if best is None or after < best[0]:
                        best = (after, f + shift, old, after)
        if best is None or best[0] > 0.75 * size:
            break
        change = _change(best[1], best[2], fresh(best[1]))
        out.append(change)
        current, known = [change.apply(p) for p in current], [change.apply(p) for p in known]
        size = _size(current)
    return out


def _size(polys: Iterable[Poly]) -> int:
    return sum(len(m) > 1 for p in polys for m in p.terms)


def _pivots(f: Poly, curved: set[int], usable: Callable[[int], bool]) -> list[int]:
    """The unknowns of a linear fact with slope ±1 that occur in products; none when the fact is about one unknown."""
    if not len(f.symbolic().terms) + 1 > 2 or any(len(m) > 1 for m in f.terms):
        return []
    if not all(usable(a) for a in f.atoms()):
        return []
    return sorted(m[0] for m, c in f.terms.items() if m and m[0] in curved and isinstance(c, int) and abs(c) == 1)


def _change(f: Poly, old: int, new: int) -> Change:
    """The change new = f, solved for `old`."""
    slope, rest = f.split(old)
    sign = slope.as_int()
    assert sign in (1, -1)
    return Change(old, new, sign, rest * -sign)


def linear_text(arena: Arena, p: Poly) -> str:
    """A linear polynomial for people, such as `W - S + 2*pad + 1`."""
    parts = [
        f"{'-' if c < 0 else '+'} {'' if abs(c) == 1 and m else abs(c)}{'*' if abs(c) != 1 and m else ''}"
        f"{arena.atoms[m[0]].name if m else ''}"
        for m, c in sorted(p.terms.items(), reverse=True) if isinstance(c, int)
    ]
    return " ".join(parts).removeprefix("+ ") or "0"
