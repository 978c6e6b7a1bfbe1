"""Guesses of which arrival at a barrier is the how-manieth: fitted to small launches, checked by whoever uses them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction


def fit(rows: Sequence[Sequence[int]], values: Sequence[int]) -> tuple[list[int], int] | None:
    """(c, d) with Σ c[k]·row[k] = d·value for every row, or None; columns that are not needed get 0."""
    width = len(rows[0])
    table = [[Fraction(x) for x in row] + [Fraction(v)] for row, v in zip(rows, values, strict=True)]
    pivots: list[int] = []
    for column in range(width):
        top = len(pivots)
        found = next((r for r in range(top, len(table)) if table[r][column]), None)
        if found is None:
            continue
        table[top], table[found] = table[found], table[top]
        lead = table[top][column]
        table[top] = [x / lead for x in table[top]]
        for r, row in enumerate(table):
            if r != top and row[column]:
                k = row[column]
                table[r] = [x - k * y for x, y in zip(row, table[top], strict=True)]
        pivots.append(column)
    if any(row[-1] for row in table[len(pivots):]):
        return None
    out = [Fraction(0)] * width
    for r, column in enumerate(pivots):
        out[column] = table[r][-1]
    scale = math.lcm(*(x.denominator for x in out))
    return [int(x * scale) for x in out], scale
