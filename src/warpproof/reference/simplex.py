"""Exact feasibility of a linear system over non-negative rationals (phase one of the simplex method, Bland's rule)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Final

from warpproof.terms import Monomial

Row = Mapping[Monomial, Fraction]
_PIVOTS: Final = 400


def feasible(goal: Row, rows: Sequence[Row]) -> bool:
    """True if goal = Σ λᵢ·rowsᵢ + σ for some λ ≥ 0 and constant σ ≥ 0; False also when the search is cut off.

    Columns are the rows, the slack σ of the constant monomial, then one artificial variable per monomial.
    """
    monomials = sorted({m for r in [goal, *rows] for m in r} | {()})
    reachable = {m for r in rows for m in r} | {()}
    if any(m not in reachable for m, v in goal.items() if v):
        return False
    table: list[list[Fraction]] = []
    for m in monomials:
        line = [r.get(m, Fraction(0)) for r in rows] + [Fraction(1 if not m else 0), goal.get(m, Fraction(0))]
        table.append([-v for v in line] if line[-1] < 0 else line)
    return _phase_one(table)


def _phase_one(table: list[list[Fraction]]) -> bool:
    width = len(table[0]) - 1
    basis = [width + i for i in range(len(table))]  # artificial variables; their columns need not be kept
    for _ in range(_PIVOTS):
        cost = [sum(row[j] for row, b in zip(table, basis) if b >= width) for j in range(width + 1)]
        if cost[width] == 0:
            return True
        entering = next((j for j in range(width) if cost[j] > 0), None)
        if entering is None:
            return False
        ratios = [(row[-1] / row[entering], basis[i], i) for i, row in enumerate(table) if row[entering] > 0]
        if not ratios:
            return False
        _, _, leaving = min(ratios)
        _pivot(table, leaving, entering)
        basis[leaving] = entering
    return False


def _pivot(table: list[list[Fraction]], i: int, j: int) -> None:
    scale = table[i][j]
    table[i] = [v / scale for v in table[i]]
    pivot = table[i]
    for k, row in enumerate(table):
        if k != i and row[j]:
            factor = row[j]
            table[k] = [v - factor * w if w else v for v, w in zip(row, pivot)]
