"""References in the style of everyday kernels, traced for all sizes and compared with NumPy at small ones."""

from __future__ import annotations

from typing import Any

import pytest
from agreement import assert_agrees
from kernel_references import CASES, Case

from warpproof.reference import depends_on_inputs

EDGES = (0, 1, 2, 3)


def samples(case: Case) -> list[dict[str, int]]:
    """The sizes of the case, and those among all-0, all-1, … that meet its preconditions."""
    names = list(case.samples[0])
    edges = [dict.fromkeys(names, k) for k in EDGES] if len(names) < 6 else [dict.fromkeys(names, 1)]
    return [*map(dict, case.samples), *(e for e in edges if case.launch.check_preconditions(e))]


@pytest.mark.parametrize("name", sorted(CASES))
def test_traced_reference_agrees_with_numpy(name: str) -> None:
    case = CASES[name]

    def inputs(values: dict[str, Any]) -> dict[str, Any]:
        return {**values, **case.scalars}

    traced = assert_agrees(case.reference, case.launch, samples(case), inputs=inputs)
    assert depends_on_inputs(traced)
