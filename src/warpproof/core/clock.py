"""A deadline for work that has no natural end, such as the search for a certificate."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Final

_DEADLINE: Final[ContextVar[float]] = ContextVar("deadline", default=float("inf"))


class OutOfTime(Exception):
    """The deadline has passed. What was at work may be left half done: nothing of it may be used again."""


@contextlib.contextmanager
def time_limit(deadline: float) -> Iterator[None]:
    """A block in which `check_time` raises once `time.monotonic()` is past the deadline."""
    token = _DEADLINE.set(min(deadline, _DEADLINE.get()))
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check_time() -> None:
    """Raise OutOfTime when the deadline of the surrounding block has passed."""
    if time.monotonic() > _DEADLINE.get():
        raise OutOfTime
