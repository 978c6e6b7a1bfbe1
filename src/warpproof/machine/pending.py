"""Shared-memory cells that a `cp.async` may still write: how far each copy is from being known complete.

A cell's stage is 0 (nothing outstanding), 1 (issued, not committed) or 2 + the number of groups its issuing thread has
committed since. A smaller stage is the safer claim, so joins take the smaller one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from warpproof.terms import BoolVector, IntVector

Codes = npt.NDArray[np.int32]
_OLDEST: Final = 1 << 20
_SEVERAL: Final = -1
"""The issuer of copies of several threads, which are never known complete."""


class Pending:
    """Outstanding copies by cell: stage and issuing lane."""

    __slots__ = ("issuer", "stage")

    def __init__(self, cells: int) -> None:
        self.stage: Codes = np.zeros(cells, np.int32)
        self.issuer: Codes = np.zeros(cells, np.int32)

    def copy(self) -> Pending:
        """An independent copy."""
        new = Pending(0)
        new.stage, new.issuer = self.stage.copy(), self.issuer.copy()
        return new

    def issue(self, cells: IntVector, lanes: IntVector) -> None:
        """Lane lanes[k] starts a copy into cells[k]."""
        self.stage[cells], self.issuer[cells] = 1, lanes

    def commit(self, mask: BoolVector) -> None:
        """The lanes of `mask` close a group."""
        at = self._of(mask)
        self.stage[at] = np.minimum(self.stage[at] + 1, _OLDEST)

    def complete(self, pending: int | None, mask: BoolVector) -> tuple[IntVector, Codes]:
        """The lanes of `mask` wait for all but their `pending` latest groups (None: for everything). The cells that
        are complete now, and their issuers."""
        at = self._of(mask)
        done = at[self.stage[at] >= (1 if pending is None else 2 + pending)]
        self.stage[done] = 0
        return done, self.issuer[done]

    def _of(self, mask: BoolVector) -> IntVector:
        at = np.flatnonzero(self.stage)
        return np.asarray(at[(self.issuer[at] >= 0) & mask[self.issuer[at]]])

    def union(self, other: Pending) -> Pending:
        """Copies outstanding in either, as far as both agree."""
        out = self.copy()
        fresh = (self.stage == 0) & (other.stage != 0)
        both = (self.stage != 0) & (other.stage != 0)
        out.stage[fresh] = other.stage[fresh]
        out.stage[both] = np.minimum(self.stage, other.stage)[both]
        out.issuer[fresh] = other.issuer[fresh]
        mixed = both & (self.issuer != other.issuer)
        out.stage[mixed] = 1
        out.issuer[mixed] = _SEVERAL
        return out

    def within(self, other: Pending) -> bool:
        """True when everything claimed by `other` holds here."""
        mine = self.stage != 0
        agree = (other.stage != 0) & (other.stage <= self.stage)
        agree &= (other.issuer == _SEVERAL) | (other.issuer == self.issuer)
        return bool(np.all(agree[mine]))
