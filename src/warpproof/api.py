"""The pipeline, from a job to a report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warpproof.judge import Report

Progress = Callable[[str], None]


def silent(stage: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be proved: a contract file, or a spec, a kernel and a launch file; and how.

    `kernel` beside a contract replaces the one the contract names. Paths are as the user wrote them.
    """

    contract: str | None = None
    spec: str | None = None
    kernel: str | None = None
    launch: str | None = None
    kernel_name: str | None = None
    arch: str | None = None
    options: tuple[str, ...] = ()
    timeout_s: float = 100.0
    seed: int = 0
    sample: int = 0
