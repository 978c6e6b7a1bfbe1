"""Software pipelines: a matrix product that fills a ring of tiles by cp.async, some stages ahead and only where there
are tiles left; proved for all sizes, and each wrong twin refuted by a replayed run. The reference is NumPy in float64.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from warpproof.core import Verdict
from warpproof.proving import Task, prove
from warpproof.ptx import parse, resolve
from warpproof.reference import load_launch

pytest.importorskip("cuda.bindings.nvrtc")

SOURCE = (Path(__file__).parents[1] / "kernels" / "rings" / "sgemm.cu").read_text("utf-8")
TILE, DEPTH = 16, 4
TWINS = {
    "waits for too few groups": ('"n"(STAGES - 2)', '"n"(STAGES - 1)'),
    "no barrier between reading a stage and filling it": ("__syncthreads();", ""),
    "fills another stage than the one it reads": ("fetch(next % STAGES, next)", "fetch((next + 1) % STAGES, next)"),
    "the prologue leaves out the last tile": ("if (s < tiles) fetch", "if (s + 1 < tiles) fetch"),
    "fetches a tile too late": ("if (next < tiles) fetch", "if (next + 1 < tiles) fetch"),
    "adds the columns of the wrong stage": ("b[now][k][4 * tx + j]", "b[(tile + 1) % STAGES][k][4 * tx + j]"),
}


def report(source: str, stages: int) -> Any:
    """The report on the kernel with a ring of so many stages."""
    from warpproof.frontends import compile_cuda

    options = [f"-DTILE={TILE}", f"-DDEPTH={DEPTH}", f"-DSTAGES={stages}"]
    text = compile_cuda(source, options=options).text
    sizes = {"M": [5, 70], "N": [7, 66], "K": [19, 33]}
    matrices = (("A", "in", "M", "K"), ("B", "in", "K", "N"), ("C", "out", "M", "N"))
    arrays = [{"name": n, "kind": f"ptr_{kind}", "dtype": "f32", "shape": shape} for n, kind, *shape in matrices]
    launch = load_launch({
        "kernel": "sgemm", "params": [*arrays, *({"name": n, "kind": "scalar", "dtype": "i32"} for n in sizes)],
        "sizes": sizes, "preconditions": [f"1 <= {n} <= 2**14" for n in sizes],
        "grid": [f"(N + {TILE - 1}) // {TILE}", f"(M + {TILE - 1}) // {TILE}", "1"],
        "block": [TILE * TILE // 16, 1, 1], "dynamic_shared": "0",
    })

    def reference(A: Any, B: Any, C: Any, M: Any, N: Any, K: Any) -> dict[str, Any]:
        return {"C": np.matmul(A, B)}

    kernel = resolve(parse(text, "sgemm.ptx"), "sgemm")
    return prove(Task(kernel, launch, reference, text, "sgemm.ptx", {}, 120.0), lambda stage: None)


@pytest.mark.parametrize("stages", [2, 3, 5])
def test_a_ring_is_proved_for_all_sizes(stages: int) -> None:
    found = report(SOURCE, stages)
    assert found.verdict is Verdict.PROVED, found.properties


@pytest.mark.parametrize("twin", TWINS)
def test_a_wrong_ring_is_refuted(twin: str) -> None:
    right, wrong = TWINS[twin]
    assert SOURCE.count(right) == 1
    found = report(SOURCE.replace(right, wrong), 3)
    assert found.verdict is Verdict.REFUTED, found.properties
    assert found.counterexample
