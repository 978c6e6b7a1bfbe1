"""Random rings: what is shown of the meetings of warps holds in every schedule, tried out at small sizes."""

from __future__ import annotations

import time
from itertools import product

import pytest
from random_rings import Place, Rings, fault, kernel, program

from warpproof.core import Status, Unsupported
from warpproof.equivalence import Proof
from warpproof.ptx import load, resolve
from warpproof.reference import load_launch

SIZES = [{"m": m, "n": n} for m, n in product(range(1, 7), range(1, 4))]


def shown(rings: Rings) -> bool:
    """All claims on races and barriers hold, and every load is of a store that is known."""
    small = kernel(rings)
    proof = Proof(resolve(load(small.ptx()), "k"), load_launch(small.manifest()), time.monotonic() + 60.0)
    try:
        return all(c.status is Status.SHOWN for c in proof.ordering())
    except Unsupported:
        return False


def faults(rings: Rings) -> list[str]:
    """What goes wrong, at the sizes tried."""
    return [why for sizes in SIZES if (why := fault(rings, sizes))]


@pytest.mark.parametrize("seed", [*range(40), 70, 206])
def test_what_is_shown_holds_in_every_schedule(seed: int) -> None:
    rings = program(seed)
    assert not (shown(rings) and faults(rings))


def test_right_rings_are_shown() -> None:
    right = [rings for rings in map(program, range(30)) if not faults(rings)]
    assert 2 * sum(map(shown, right)) >= len(right) >= 5


ALONE = Place(0, 1, 0, 0)


@pytest.mark.parametrize("more", [0, 1])
def test_arrivals_that_nobody_waits_for_may_come_twice_in_a_phase(more: int) -> None:
    """Nothing is passed on, so that only the phases themselves go wrong."""
    tell, hear = ("loop", ("m", more), [("arrive", ALONE)]), ("loop", ("m", more), [("sync", ALONE)])
    rings = Rings([tell], [hear])
    assert "a second arrival in one phase" in faults(rings)
    assert not shown(rings)
    back = Place(0, 2, 0, 0)
    assert shown(Rings([("loop", ("m", more), [("arrive", ALONE), ("sync", back)])],
                       [("loop", ("m", more), [("sync", ALONE), ("arrive", back)])]))
