"""The three verdicts, their order, and the reason codes of an INCONCLUSIVE."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

PROPERTIES: Final = ("equivalence", "memory", "races", "barriers", "numerics")


class Verdict(Enum):
    """The verdict on one property, or on a kernel. Ordered REFUTED > INCONCLUSIVE > PROVED."""

    PROVED = "PROVED"
    INCONCLUSIVE = "INCONCLUSIVE"
    REFUTED = "REFUTED"

    @property
    def severity(self) -> int:
        """0 for PROVED, 1 for INCONCLUSIVE, 2 for REFUTED."""
        return (Verdict.PROVED, Verdict.INCONCLUSIVE, Verdict.REFUTED).index(self)


class Reason(Enum):
    """Why a property is INCONCLUSIVE, or REFUTED. A reason never turns into a pass."""

    UNSUPPORTED = "unsupported"  # an instruction, operand or reference construct without a sound rule
    UNPROVED = "unproved"  # an obligation was neither discharged nor refuted
    LOOP = "unbounded-loop"  # a loop whose recurrence did not close
    TIMEOUT = "timeout"
    MEMORY = "memory"
    REPLAY = "replay-mismatch"  # a symbolic failure that no concrete run confirms
    GATED = "gated"  # holds by itself, but a property it depends on is not proved
    NEEDS_PRECONDITION = "needs-precondition"
    WEAK_SYNC = "weak-synchronisation"  # refuted: a weak load synchronises
    CRASH = "crash"
    SANDBOX = "sandbox"  # a layer of confinement is missing, or the worker was killed for a call it may not make


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The most severe of the verdicts; INCONCLUSIVE when there is none (nothing was shown)."""
    found = list(verdicts)
    return max(found, key=lambda v: v.severity) if found else Verdict.INCONCLUSIVE
