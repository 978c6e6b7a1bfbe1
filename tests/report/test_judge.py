"""From claims to verdicts."""

from __future__ import annotations

import pytest

from warpproof.core import Claim, Reason, Status, Verdict
from warpproof.judge import REQUIRED, judge


def claims(**changed: Status) -> list[Claim]:
    return [Claim(name, f"{name} claim", changed.get(name, Status.SHOWN), "solver") for name in REQUIRED]


def verdicts(given: list[Claim], refuted: dict[str, str] | None = None) -> dict[str, Verdict]:
    return {name: r.verdict for name, r in judge(given, "for all n", refuted).items() if r is not None}


def test_all_shown_is_proved() -> None:
    found = judge(claims(), "for all n")
    assert {r.verdict for r in found.values() if r} == {Verdict.PROVED}
    assert found["numerics"] is None
    assert all(found[name].evidence for name in REQUIRED)


def test_nothing_shown_is_not_proved() -> None:
    assert set(verdicts([]).values()) == {Verdict.INCONCLUSIVE}
    for name in REQUIRED:
        assert verdicts([c for c in claims() if c.property != name])[name] is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("status", [Status.OPEN, Status.BROKEN])
@pytest.mark.parametrize(("name", "held"), [
    ("barriers", {"barriers", "races", "memory", "equivalence"}), ("races", {"races", "memory", "equivalence"}),
    ("memory", {"memory", "equivalence"}), ("equivalence", {"equivalence"}),
])
def test_what_rests_on_an_open_property_is_not_proved(name: str, held: set[str], status: Status) -> None:
    found = judge(claims(**{name: status}), "for all n")
    assert {n for n, r in found.items() if r and r.verdict is Verdict.INCONCLUSIVE} == held
    assert {found[n].reason for n in held - {name}} <= {Reason.GATED}
    refuted = verdicts(claims(), {name: "a run shows it"})
    assert refuted[name] is Verdict.REFUTED
    assert {n for n, v in refuted.items() if v is not Verdict.PROVED} == held


def test_an_open_condition_of_the_run_holds_everything_back() -> None:
    open_condition = Claim("conditions", "no integer wraps", Status.OPEN)
    assert set(verdicts([*claims(), open_condition]).values()) == {Verdict.INCONCLUSIVE}
