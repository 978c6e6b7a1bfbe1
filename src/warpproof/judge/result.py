"""What a run has found out: a verdict and its evidence per property, and one report per kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from warpproof.core import PROPERTIES, Advice, Assumption, Reason, Verdict, worst

REQUIRED: Final = ("equivalence", "memory", "races", "barriers")


@dataclass(frozen=True, slots=True)
class Evidence:
    """One piece of support for a verdict. `kind` says how it was checked (`normal-form`, `solver`, `exhaustive`, …)."""

    kind: str
    claim: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PropertyResult:
    """The verdict on one property: why, for which sizes it holds, and what supports it."""

    verdict: Verdict
    reason: Reason | None = None
    detail: str = ""
    scope: str = ""
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Fallback:
    """Sizes for which a kernel was judged because no proof for all sizes was found, and why there was none.

    `shown` lists the properties that hold for these sizes only. Each entry of `sizes` gives some or all sizes.
    """

    sizes: tuple[Mapping[str, int], ...]
    reason: str
    shown: tuple[str, ...]

    @property
    def why(self) -> str:
        """The reason in words."""
        return f"not for all sizes: {self.reason}"


@dataclass(frozen=True, slots=True)
class Report:
    """Everything found out about one kernel. A property that nothing asked for is None.

    The overall verdict is always the worst of the property verdicts, and it is PROVED only if the four required
    properties are; building a report that says otherwise raises ValueError.
    """

    kernel: str
    verdict: Verdict
    properties: Mapping[str, PropertyResult | None]
    assumptions: tuple[Assumption, ...] = ()
    counterexample: Mapping[str, Any] | None = None
    certificate: str | None = None
    time_s: float = 0.0
    peak_mb: float = 0.0
    sizes: str = ""
    advice: tuple[Advice, ...] = ()
    fallback: Fallback | None = None

    def __post_init__(self) -> None:
        unknown = set(self.properties) - set(PROPERTIES)
        if unknown:
            raise ValueError(f"unknown properties {sorted(unknown)}")
        found = {name: p.verdict for name, p in self.properties.items() if p is not None}
        if self.verdict is not worst(found.values()):
            raise ValueError(f"overall verdict {self.verdict.value} is not the worst of the properties")
        if self.verdict is Verdict.PROVED and any(name not in found for name in REQUIRED):
            raise ValueError("a kernel is PROVED only if all required properties are")


def undecided(kernel: str, reason: Reason, detail: str, sizes: str = "", time_s: float = 0.0,
              peak_mb: float = 0.0) -> Report:
    """A report in which every required property is INCONCLUSIVE for one and the same reason."""
    result = PropertyResult(Verdict.INCONCLUSIVE, reason, detail, sizes)
    properties: dict[str, PropertyResult | None] = dict.fromkeys(REQUIRED, result)
    return Report(kernel, Verdict.INCONCLUSIVE, {**properties, "numerics": None}, sizes=sizes, time_s=time_s,
                  peak_mb=peak_mb)
