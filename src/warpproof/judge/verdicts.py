"""Verdicts from claims. This module alone makes PROVED, and only from claims that were all shown.

A property is PROVED when it has claims and all are shown, and every condition of the run is shown as well, and so are
the properties it rests on. A broken claim is not a refutation: only a replayed run refutes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from warpproof.core import Claim, Reason, Status, Verdict
from warpproof.judge.result import REQUIRED, Evidence, PropertyResult

# In the order of decision. The trace is one schedule: barriers order accesses only if all threads reach them; what is
# read (addresses, initialisation) is the trace's only without races; outputs are right only if all of this holds.
_RESTS_ON: Final[dict[str, tuple[str, ...]]] = {
    "barriers": (), "races": ("barriers",), "memory": ("barriers", "races"),
    "equivalence": ("barriers", "races", "memory"),
}


def judge(
    claims: Sequence[Claim], scope: str, refuted: Mapping[str, str] | None = None,
    causes: Mapping[str, Reason] | None = None,
) -> dict[str, PropertyResult | None]:
    """The verdict on every property. `refuted` maps properties that a replayed run contradicts to what it showed,
    `causes` some of them to a reason."""
    refuted = refuted or {}
    conditions = [c for c in claims if c.property not in REQUIRED]  # what is not about one property concerns all
    out: dict[str, PropertyResult | None] = {}
    for name in _RESTS_ON:
        own = [c for c in claims if c.property == name]
        if name in refuted:
            out[name] = PropertyResult(Verdict.REFUTED, (causes or {}).get(name), refuted[name], "", _evidence(own))
        else:
            out[name] = _decide(name, own, conditions, out, scope)
    return {**{name: out[name] for name in REQUIRED}, "numerics": None}


def restrict(
    general: Mapping[str, PropertyResult | None], cases: Sequence[Mapping[str, PropertyResult | None]], scope: str,
) -> dict[str, PropertyResult | None]:
    """Verdicts for all sizes, completed by verdicts for the sizes of every case, which get the narrower scope.

    What is open in one case stays INCONCLUSIVE.
    """
    out: dict[str, PropertyResult | None] = dict(general)
    for name in REQUIRED:
        found = general[name]
        results = [case[name] for case in cases]
        if found is None or found.verdict is not Verdict.INCONCLUSIVE or not results:
            continue
        shown = [r for r in results if r is not None and r.verdict is Verdict.PROVED]
        if len(shown) == len(results):
            out[name] = PropertyResult(Verdict.PROVED, None, f"not for all sizes: {found.detail}", scope,
                                       tuple(e for r in shown for e in r.evidence))
        else:
            open_ = next(r for r in results if r not in shown)
            why = open_.detail if open_ is not None else ""
            out[name] = replace(found, detail=f"{found.detail}\n{scope}: {why}")
    return out


def _decide(
    name: str, own: Sequence[Claim], conditions: Sequence[Claim], others: Mapping[str, PropertyResult | None],
    scope: str,
) -> PropertyResult:
    pending = [c for c in (*own, *conditions) if c.status is not Status.SHOWN]
    if pending or not own:
        worst = next((c for c in own if c.status is not Status.SHOWN), pending[0] if pending else None)
        if worst is None:
            return PropertyResult(Verdict.INCONCLUSIVE, Reason.UNPROVED, "nothing was established", scope)
        return PropertyResult(Verdict.INCONCLUSIVE, worst.reason, _detail(worst, len(pending)), scope, _evidence(own))
    held = [n for n in _RESTS_ON[name] if (r := others.get(n)) is None or r.verdict is not Verdict.PROVED]
    if held:
        detail = f"nothing against it, but it rests on {', '.join(held)}"
        return PropertyResult(Verdict.INCONCLUSIVE, Reason.GATED, detail, scope, _evidence(own))
    return PropertyResult(Verdict.PROVED, None, "", scope, _evidence((*own, *conditions)))


def _detail(c: Claim, pending: int) -> str:
    more = f" (and {pending - 1} more)" if pending > 1 else ""
    at = f" at {c.place}" if c.place else ""
    why = f": {c.hint}" if c.hint else ""
    return f"not shown: {c.text}{at}{why}{more}"


def _evidence(claims: Sequence[Claim]) -> tuple[Evidence, ...]:
    return tuple(Evidence(c.kind or "none", c.text, {"place": c.place, **c.data}) for c in claims
                 if c.status is Status.SHOWN)
