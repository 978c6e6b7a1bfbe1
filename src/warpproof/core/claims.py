"""What a stage hands to the judge: claims about one property, each with its status and its evidence as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from warpproof.core.verdict import Reason


class Status(Enum):
    """`SHOWN` deterministically, `BROKEN` symbolically (only a replay refutes), `OPEN` undecided."""

    SHOWN = "shown"
    BROKEN = "broken"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Claim:
    """One obligation of a property. `kind` names how it was decided, `data` is the evidence a certificate will hold.

    `place` is the instruction, `hint` what would settle an open claim.
    """

    property: str
    text: str
    status: Status
    kind: str = ""
    place: str = ""
    reason: Reason = Reason.UNPROVED
    hint: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Advice:
    """Something that a proved kernel could do without: an instruction by PTX line and, if known, source line."""

    kind: str
    text: str
    instruction: str
    ptx_line: int
    file: str | None = None
    line: int | None = None
