"""What a load leaf names: a buffer, and the version of it that the load sees."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """Element type and buffer of a load; `version` 0 is the contents at kernel entry."""

    buffer: str
    version: int = 0
