"""The references of the acceptance groups `first` and `sizes`, traced for all sizes and compared at small ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from agreement import assert_agrees

from warpproof.reference import depends_on_inputs, load_launch, load_spec

CASES = sorted(p.parent for p in (Path(__file__).parent / "cases").glob("*/case.json"))
SMALL = {
    "bmm-strided": [{"batch": 2, "M": 3, "N": 2, "K": 3, "lda": 4, "ldb": 5}],
    "conv2d-flat": [
        {"B": 1, "Ci": 2, "Co": 2, "H": 4, "W": 3, "R": 3, "S": 2, "ph": 1, "pw": 1},
        {"B": 2, "Ci": 1, "Co": 1, "H": 3, "W": 4, "R": 1, "S": 1, "ph": 0, "pw": 0},
    ],
    "cross-entropy": [{"rows": 3, "classes": 4}, {"rows": 1, "classes": 1}],
    "embedding": [{"tokens": 5, "vocab": 3, "dim": 2}],
    "flash-causal": [{"heads": 1, "S": 5}, {"heads": 2, "S": 1}],
    "int4-dequant": [{"rows": 2, "cols": 16, "group": 8, "words": 4}, {"rows": 1, "cols": 32, "group": 16, "words": 4}],
    "maxpool": [
        {"planes": 2, "H": 5, "W": 6, "OH": 2, "OW": 2, "k": 3, "s": 2, "p": 0},
        {"planes": 1, "H": 3, "W": 4, "OH": 3, "OW": 4, "k": 3, "s": 1, "p": 1},
    ],
    "splitk-atomic": [{"M": 3, "N": 2, "K": 4, "splits": 2}],
    "rowsum-shfl": [{"rows": 3, "n": 4, "pitch": 6}, {"rows": 1, "n": 2, "pitch": 2}],
}


def samples(case: Path) -> list[dict[str, int]]:
    if case.name in SMALL:
        return SMALL[case.name]
    names = json.loads((case / "case.json").read_text())["sizes"]
    step = 32 if case.name == "sgemm-prefetch" else 1
    return (
        [{n: min(k + 2, 6) for k, n in enumerate(names)}, dict.fromkeys(names, 1)]
        if step == 1
        else [{"M": 32, "N": 32, "K": 8}]
    )


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_reference_agrees_with_numpy(case: Path) -> None:
    launch = load_launch(case / "case.json")
    reference = load_spec(case / "reference.py")

    def inputs(values: dict[str, object]) -> dict[str, object]:
        return {
            **values,
            **({"eps": 0.125} if "eps" in values else {}),
            **({"pad": np.int64(1)} if "pad" in values else {}),
        }

    picked = samples(case)
    for sizes in picked:
        assert launch.check_preconditions(sizes)
    traced = assert_agrees(reference, launch, picked, inputs=inputs)
    assert depends_on_inputs(traced)
