"""Sums of which each block takes a window: windows that blocks do not take one after the other leave gaps."""

from __future__ import annotations

import pytest
from attempt import Case
from test_empty_grids import SUM, WINDOWS

SIZES = ("n >= 1", "n <= 4096", "g >= 1", "g <= 100", "s >= 1", "s <= 2048", "n <= s * g")
FACTORS = ["div.u32 %r12, %r4, 2;", "div.u32 %r12, %r4, 3;", "add.s32 %r12, %r4, 1; div.u32 %r12, %r12, 2;"]


def test_windows_of_one_length_are_the_whole() -> None:
    assert SUM.verdict(Case("one length", True, WINDOWS, pre=SIZES)) == "PROVED"


@pytest.mark.parametrize("factor", FACTORS)
def test_a_length_that_depends_on_the_block_is_none(factor: str) -> None:
    """Block b takes f(b)·s elements from b·f(b)·s on, where f(b) is 1 plus a quotient of b."""
    longer = f"{factor} mad.lo.s32 %r2, %r2, %r12, %r2; mul.lo.s32 %r8, %r2, %r4;"
    assert SUM.verdict(Case("longer and longer", False, longer + WINDOWS, pre=SIZES)) != "PROVED"
