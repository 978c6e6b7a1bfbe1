"""Shared-memory cells that a `cp.async` may still write: how far each copy is from being known complete.

A cell's stage is 0 (nothing outstanding), 1 (issued, not committed) or 2 + the number of groups its issuing thread has
committed since. A smaller stage is the safer claim, so joins take the smaller one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt

from warpproof.terms import BoolVector, IntVector

Codes = npt.NDArray[np.int32]
ALWAYS: Final = -1
"""Nothing is known about the condition under which a copy was issued."""
_OLDEST: Final = 1 << 20
_SEVERAL: Final = -1
"""The issuer of copies of several threads, which are never known complete."""


class Pending:
    """Outstanding copies by cell: stage, issuing lane, and the id of the condition under which it was issued."""

    __slots__ = ("issuer", "stage", "under")

    def __init__(self, cells: int) -> None:
        self.stage: Codes = np.zeros(cells, np.int32)
        self.issuer: Codes = np.zeros(cells, np.int32)
        self.under: Codes = np.full(cells, ALWAYS, np.int32)

    def copy(self) -> Pending:
        """An independent copy."""
        new = Pending(0)
        new.stage, new.issuer, new.under = self.stage.copy(), self.issuer.copy(), self.under.copy()
        return new

    def issue(self, cells: IntVector, lanes: IntVector, condition: int) -> None:
        """Lane lanes[k] starts a copy into cells[k]."""
        self.stage[cells], self.issuer[cells], self.under[cells] = 1, lanes, condition

    def commit(self, mask: BoolVector, certain: Callable[[int], bool]) -> None:
        """The lanes of `mask` close a group; copies count when `certain` of their condition."""
        at = self._of(mask, certain)
        self.stage[at] = np.minimum(self.stage[at] + 1, _OLDEST)

    def complete(
        self, pending: int | None, mask: BoolVector, certain: Callable[[int], bool],
    ) -> tuple[IntVector, Codes]:
        """The lanes of `mask` wait for all but their `pending` latest groups (None: for everything). The cells that
        are complete now, and their issuers."""
        at = self._of(mask, certain)
        done = at[self.stage[at] >= (1 if pending is None else 2 + pending)]
        self.stage[done] = 0
        return done, self.issuer[done]

    def _of(self, mask: BoolVector, certain: Callable[[int], bool]) -> IntVector:
        at = np.flatnonzero(self.stage)
        at = at[(self.issuer[at] >= 0) & mask[self.issuer[at]]]
        conditions = self.under[at]
        good = [int(c) for c in np.unique(conditions) if certain(int(c))]
        return at[np.isin(conditions, good)]

    def union(self, other: Pending) -> Pending:
        """Copies outstanding in either, as far as both agree."""
        out = self.copy()
        fresh = (self.stage == 0) & (other.stage != 0)
        both = (self.stage != 0) & (other.stage != 0)
        out.stage[fresh] = other.stage[fresh]
        out.stage[both] = np.minimum(self.stage, other.stage)[both]
        out.issuer[fresh] = other.issuer[fresh]
        out.under[fresh | (both & (self.under != other.under))] = ALWAYS
        mixed = both & (self.issuer != other.issuer)
        out.stage[mixed] = 1
        out.issuer[mixed] = _SEVERAL
        return out

    def within(self, other: Pending) -> bool:
        """True when everything claimed by `other` holds here."""
        mine = self.stage != 0
        agree = (other.stage != 0) & (other.stage <= self.stage)
        agree &= (other.issuer == _SEVERAL) | (other.issuer == self.issuer)
        agree &= (other.under == ALWAYS) | (other.under == self.under)
        return bool(np.all(agree[mine]))
