"""Kernels built to be proved wrongly, each next to a sound twin: the first must not be PROVED, the second must."""

from __future__ import annotations

import pytest
from attempt import Case, Family
from block_cases import COPIES, LOOPS, ROWS, SHUFFLES, SUM, TILES, TREES
from elementwise_cases import (
    ELEMENTWISE,
    FALLS_SHORT,
    INDICES,
    LAUNCHES,
    NOT_A_NUMBER,
    PARTIAL,
    STORES,
    UNDEFINED,
    VALUES,
)
from memory_cases import (
    ALIASES,
    EMPTY,
    FORMATS,
    GATHER,
    GATHERS,
    GRIDS,
    HALVES,
    IN_PLACE,
    NEIGHBOURS,
    RANGES,
    SCRATCH,
    VACUOUS,
)
from space_cases import NAMED, NAMES, SPACES, WARP, WINDOW, WINDOWS

GROUPS: list[tuple[Family, list[Case]]] = [
    (ELEMENTWISE, [*VALUES, *NOT_A_NUMBER, *UNDEFINED, *PARTIAL, *INDICES, *LAUNCHES, *STORES, *FALLS_SHORT]),
    (SUM, [*SHUFFLES, *LOOPS, *TREES]),
    (ROWS, [*TILES, *COPIES]),
    (SCRATCH, ALIASES),
    (IN_PLACE, NEIGHBOURS),
    (HALVES, FORMATS),
    (GATHER, GATHERS),
    (EMPTY, GRIDS),
    (VACUOUS, RANGES),
    (WARP, SPACES),
    (NAMES, NAMED),
    (WINDOW, WINDOWS),
]
ALL = [(family, case) for family, cases in GROUPS for case in cases]


@pytest.mark.parametrize(("family", "case"), ALL, ids=[str(c) for _, c in ALL])
def test_verdict(family: Family, case: Case) -> None:
    found = family.verdict(case)
    assert (found == "PROVED") is case.good, found


def test_names_are_distinct() -> None:
    names = [c.name for _, c in ALL]
    assert len(names) == len(set(names))
