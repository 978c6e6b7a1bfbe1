"""No way to PROVED past a claim that was not shown, whatever the other claims are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from warpproof.core import Claim, Status, Verdict
from warpproof.judge import REQUIRED, judge

claims = st.builds(Claim, st.sampled_from([*REQUIRED, "conditions", "alignment", ""]), st.just("text"),
                   st.sampled_from([Status.SHOWN, Status.SHOWN, Status.SHOWN, Status.OPEN, Status.BROKEN]))


@settings(max_examples=400, deadline=None)
@given(st.lists(claims, max_size=9), st.dictionaries(st.sampled_from(REQUIRED), st.just("a run shows it"), max_size=1))
def test_proved_means_that_everything_it_needs_was_shown(given_claims: list[Claim], refuted: dict[str, str]) -> None:
    found = judge(given_claims, "for all n", refuted)
    for name in REQUIRED:
        result = found[name]
        assert result is not None
        assert (result.verdict is Verdict.REFUTED) == (name in refuted)
        if result.verdict is not Verdict.PROVED:
            continue
        own = [c for c in given_claims if c.property == name]
        assert own
        assert all(c.status is Status.SHOWN for c in own)
        assert all(c.status is Status.SHOWN for c in given_claims if c.property not in REQUIRED)
        if name == "equivalence":
            assert {n for n, r in found.items() if r is not None and r.verdict is Verdict.PROVED} == set(REQUIRED)
