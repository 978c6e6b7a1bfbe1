"""A position chosen by comparing values is read as that of the greatest pair only where it is: every choice that is
read agrees with the code on all small values and positions, and the usual ones are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

import pytest

from warpproof.algebra import Normaliser
from warpproof.domains import READINGS, Reading
from warpproof.domains.pairs import Pairs
from warpproof.terms import Access, Arena, Poly, Pred, Real, const

VALUES, PLACES = range(3), range(2)
COMPARISONS = [(op, swap) for op in ("lt", "le") for swap in (False, True)]
TIES = ["none", "lt", "le", "gt", "ge"]


def number(x: Real, values: Mapping[str, int]) -> int:
    """A real under values by name."""
    match x.op:
        case "symbol":
            return values[x.data]
        case "max" | "min":
            return (max if x.op == "max" else min)(number(y, values) for y in x.args)
        case "mul":
            return int(x.args[0].data) * number(x.args[1], values)
    raise AssertionError(x.op)


def truth(p: Pred, values: Mapping[str, int], places: Mapping[int, int], arena: Arena) -> bool:
    """A condition under values of reals by name and positions by atom."""
    match p.op:
        case "fcmp":
            a, b = (number(x, values) for x in p.reals)
            return bool({"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b}[p.data])
        case "and" | "or":
            return (all if p.op == "and" else any)(truth(q, values, places, arena) for q in p.args)
        case "true" | "false":
            return p.op == "true"
    at = position(p.data, values, places, arena)
    return bool({"le": at <= 0, "eq": at == 0, "ne": at != 0}[p.op])


def position(p: Poly, values: Mapping[str, int], places: Mapping[int, int], arena: Arena) -> int:
    """A position, choices decided."""
    total = 0
    for m, c in p.terms.items():
        term = int(c)  # type: ignore[arg-type]
        for i in m:
            atom = arena.atoms[i]
            if i in places:
                term *= places[i]
            else:
                assert atom.pred is not None
                side = atom.args[0 if truth(atom.pred, values, places, arena) else 1]
                term *= position(side, values, places, arena)
        total += term
    return total


def greatest(x: Real, values: Mapping[str, int], places: Mapping[int, int], arena: Arena) -> tuple[int, int]:
    """The greatest pair as (value, −position)."""
    match x.op:
        case "placed":
            return number(x.args[0], values), -position(x.data, values, places, arena)
        case "max":
            return max(greatest(y, values, places, arena) for y in x.args)
        case "sel":
            side = x.args[0 if truth(x.pred, values, places, arena) else 1]  # type: ignore[arg-type]
            return greatest(side, values, places, arena)
    raise AssertionError(x.op)


def choice(a: Arena, first: tuple[Real, Poly], second: tuple[Real, Poly], how: tuple[str, bool], tie: str) -> Poly:
    """A position chosen between two pairs: by a comparison, and by positions where the values are equal."""
    (x, i), (y, j) = first, second
    op, swap = how
    test = a.fcmp(op, y, x) if swap else a.fcmp(op, x, y)
    if tie != "none":
        order = {"lt": a.lt(i, j), "le": a.le(i - j), "gt": a.lt(j, i), "ge": a.le(j - i)}[tie]
        test = a.disj((test, a.conj((a.fcmp("eq", x, y), order))))
    return a.derived("phi", (j, i), test)


def pairs_of(a: Arena, *, ordered: bool) -> tuple[Pairs, list[tuple[Real, Poly]]]:
    """Three pairs; with `ordered` their positions are known to come one after the other."""
    size = [a.symbol("size", f"i{k}", 0, None) for k in range(3)]
    places = [size[0], size[0] + size[1], size[0] + size[1] + size[2]] if ordered else size
    return Pairs(a, Normaliser(a), lambda p: False), [(a.scalar(f"x{k}"), places[k]) for k in range(3)]


def agrees(a: Arena, chosen: Poly, found: Real, reading: Reading) -> None:
    ids = [next(iter(a.symbol("size", f"i{k}").atoms())) for k in range(3)]
    for v, p in product(product(VALUES, repeat=3), product(PLACES, repeat=3)):
        values, places = {f"x{k}": x for k, x in enumerate(v)}, dict(zip(ids, p, strict=True))
        want = position(chosen, values, places, a)
        assert -greatest(found, values, places, a)[1] * reading.place == want, (values, places)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("reading", READINGS)
def test_what_is_read_is_the_position_of_the_greatest_pair(reading: Reading, ordered: bool) -> None:
    read = 0
    for how, tie, other, last in product(COMPARISONS, TIES, COMPARISONS, TIES):
        a = Arena(1)
        pairs, (first, second, third) = pairs_of(a, ordered=ordered)
        inner = choice(a, first, second, how, tie)
        best = a.combine("max" if reading.value == 1 else "min", first[0], second[0])
        outer = choice(a, (best, inner), third, other, last)
        top = a.combine("max" if reading.value == 1 else "min", best, third[0])
        for chosen, value in ((inner, best), (outer, top)):
            found = pairs.read(chosen, value, reading)
            if found is not None:
                read += 1
                agrees(a, chosen, found, reading)
    assert read


@pytest.mark.parametrize(("how", "tie", "ordered", "places"), [
    (("lt", False), "none", True, [1]), (("le", False), "none", True, [-1]), (("lt", False), "none", False, []),
    (("lt", False), "gt", False, [1]), (("lt", False), "lt", False, [-1]), (("le", False), "gt", False, []),
])
def test_which_ties_are_read(how: tuple[str, bool], tie: str, ordered: bool, places: list[int]) -> None:
    a = Arena(1)
    pairs, (first, second, _) = pairs_of(a, ordered=ordered)
    chosen = choice(a, first, second, how, tie)
    top = a.maximum(first[0], second[0])
    assert [r.place for r in READINGS if r.value == 1 and pairs.read(chosen, top, r) is not None] == places


def test_folds_next_to_each_other_do_not_share_their_iteration() -> None:
    """Positions 0, 1, 4, 5, … and 2, 3, 6, 7, …: in each iteration the first comes before the second, but 4 does not
    come before 2."""
    a = Arena(1)
    n = a.symbol("size", "n", 1, 1000)
    pairs = Pairs(a, Normaliser(a), lambda p: False)
    folds = []
    for shift in (0, 2):
        i = a.fresh("loop", "i", 0, None)
        x = a.variable(i)
        at = a.floor_div(x, const(2)) * 2 + x + shift
        value, domain = a.load(Access("x", 0), at), a.conj((a.le(-x), a.le(x - n + 1)))
        folds.append([a.fold("max", i.id, domain, y) for y in (value, a.placed(value, at))])
    (first, one), (second, two) = folds
    chosen = a.derived("phi", (a.place(two), a.place(one)), a.fcmp("lt", first, second))
    assert all(pairs.read(chosen, a.maximum(first, second), r) is None for r in READINGS)
