"""The matcher on sums built by hand: each summand counts exactly as often as it occurs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from warpproof.algebra import Normaliser
from warpproof.equivalence.matching import Matcher
from warpproof.solve import Facts
from warpproof.terms import Access, Arena, Poly, Pred, Real

LANES = 32


def total(arena: Arena, inside: Callable[[int, Poly], Pred], body: Callable[[Poly], Real]) -> Real:
    """The sum of the body over the indices inside."""
    index = arena.fresh("index", "k", 0, None)
    k = arena.variable(index)
    return arena.fold("add", index.id, inside(index.id, k), body(k))


def matches(kernel: Callable[[Arena, Poly], Real]) -> bool:
    """Whether a kernel's value is accepted for x[0] + … + x[n−1]."""
    arena = Arena(LANES)
    n = arena.symbol("size", "n", 1, 1000)
    wanted = total(arena, lambda i, k: arena.conj((arena.le(-k), arena.le(k - n + 1))), lambda k: arena.load(X, k))
    matcher = Matcher(arena, Normaliser(arena), Facts(arena, ()))
    return bool(matcher.match(kernel(arena, n), wanted, arena.true))


X = Access("x")


def serial(arena: Arena, n: Poly, body: Callable[[Poly], Real], short: int = 0) -> Real:
    """A loop that runs max(1, n − short) times."""
    return total(arena, lambda i, k: arena.domain(i, k - n + 2 + short), body)


def test_the_sum_itself_is_accepted() -> None:
    assert matches(lambda a, n: serial(a, n, lambda k: a.load(X, k)))


@pytest.mark.parametrize("kernel", [
    lambda a, n: serial(a, n, lambda k: a.real("add", (a.load(X, k), a.load(X, k)))),
    lambda a, n: a.add(serial(a, n, lambda k: a.load(X, k)), a.load(X, n - 1)),
    lambda a, n: serial(a, n, lambda k: a.load(X, k), short=1),
    lambda a, n: serial(a, n, lambda k: a.load(X, Poly({}))),
    lambda a, n: a.neg(serial(a, n, lambda k: a.load(X, k))),
], ids=["twice", "last twice", "last missing", "first only", "negated"])
def test_other_sums_are_not(kernel: Callable[[Arena, Poly], Real]) -> None:
    assert not matches(kernel)
