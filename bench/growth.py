"""How the time of a proof grows: with sizes and CTAs (symbols, so not at all), tile size, unrolling and stages.

    pip install -e '.[bench]'
    python bench/growth.py            # writes bench/results/growth.md and growth.svg

One kernel, tests/kernels/rings/sgemm.cu, compiled anew for each point. Processor time of the proof in a fresh process,
compilation left out; the best of `--repeat` runs.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "tests" / "kernels" / "rings" / "sgemm.cu"
RESULTS: Final = ROOT / "bench" / "results"
BASE: Final = {"tile": 16, "depth": 4, "stages": 2, "cells": 2**14, "inner": 2**14}
SWEEPS: Final[Mapping[str, tuple[str, Sequence[int]]]] = {
    "CTAs, at most": ("cells", [2**k for k in (5, 8, 11, 14)]),
    "size K, at most": ("inner", [2**k for k in (4, 10, 16, 22, 28)]),
    "tile side": ("tile", (8, 16, 32, 48, 64)),
    "unroll factor": ("depth", (2, 4, 8, 16, 24)),
    "stages": ("stages", (2, 3, 4, 5, 6)),
}


def shown(name: str, value: int, tile: int) -> int:
    """The coordinate of a point: for `cells`, M and N at most so large, the number of CTAs."""
    return (value // tile) ** 2 if name == "cells" else value


def measure(point: Mapping[str, int]) -> dict[str, Any]:
    """Verdict and figures of one proof, made in this process."""
    import resource

    from warpproof.frontends import compile_cuda
    from warpproof.proving import Task, prove
    from warpproof.ptx import parse, resolve
    from warpproof.reference import load_launch

    tile = point["tile"]
    options = [f"-DTILE={tile}", f"-DDEPTH={point['depth']}", f"-DSTAGES={point['stages']}"]
    text = compile_cuda(SOURCE, options=options).text
    sizes = {"M": [5, 70], "N": [7, 66], "K": [19, 33]}
    limits = {"M": point["cells"], "N": point["cells"], "K": point["inner"]}
    matrices = (("A", "in", "M", "K"), ("B", "in", "K", "N"), ("C", "out", "M", "N"))
    arrays = [{"name": n, "kind": f"ptr_{kind}", "dtype": "f32", "shape": shape} for n, kind, *shape in matrices]
    launch = load_launch({
        "kernel": "sgemm", "params": [*arrays, *({"name": n, "kind": "scalar", "dtype": "i32"} for n in sizes)],
        "sizes": {n: [min(v, limits[n]) for v in values] for n, values in sizes.items()},
        "preconditions": [f"1 <= {n} <= {limit}" for n, limit in limits.items()],
        "grid": [f"(N + {tile - 1}) // {tile}", f"(M + {tile - 1}) // {tile}", "1"],
        "block": [(tile // 4) ** 2, 1, 1], "dynamic_shared": "0",
    })

    def reference(A: Any, B: Any, C: Any, M: Any, N: Any, K: Any) -> dict[str, Any]:
        return {"C": A @ B}

    kernel = resolve(parse(text, "sgemm.ptx"), "sgemm")
    began = time.process_time()
    report = prove(Task(kernel, launch, reference, text, "sgemm.ptx", {}, 600.0), lambda stage: None)
    return {"verdict": report.verdict.value, "seconds": time.process_time() - began, "instructions": len(kernel.code),
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def in_child(point: Mapping[str, int], repeat: int) -> dict[str, Any]:
    """The fastest of some runs, each in a fresh process."""
    rows = []
    for _ in range(repeat):
        command = [sys.executable, __file__, "--point", json.dumps(point)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        rows.append(json.loads(done.stdout) if done.returncode == 0 else {
            "verdict": f"exit {done.returncode}", "seconds": 0.0, "instructions": 0, "peak_mb": 0.0})
    return min(rows, key=lambda row: float(row["seconds"]))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The figures as Markdown."""
    out = ["# Growth", "", "Processor seconds of one proof each (`python bench/growth.py`); all else as in "
           f"tile {BASE['tile']}, {BASE['depth']} steps unrolled, {BASE['stages']} stages, sizes up to 2^14.", "",
           "![growth](growth.svg)", "", "| varied | value | verdict | seconds | PTX instructions | peak MB |",
           "|---|---|---|---|---|---|"]
    out += [f"| {r['varied']} | {r['value']} | {r['verdict']} | {r['seconds']:.1f} | {r['instructions']} | "
            f"{r['peak_mb']:.0f} |" for r in rows]
    return "\n".join(out) + "\n"


def plot(rows: Sequence[Mapping[str, Any]], file: Path) -> None:
    """One panel for each sweep; sizes on a logarithmic axis."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(SWEEPS), figsize=(3 * len(SWEEPS), 2.8), sharey=True, layout="constrained")
    for panel, (varied, (name, _)) in zip(panels, SWEEPS.items(), strict=True):
        points = [(r["value"], r["seconds"]) for r in rows if r["varied"] == varied and r["verdict"] == "PROVED"]
        panel.plot(*zip(*points, strict=True), marker="o")
        panel.set_xlabel(varied)
        panel.set_ylim(bottom=0)
        if name in ("cells", "inner"):
            panel.set_xscale("log")
        else:
            panel.set_xlim(left=0)
        panel.grid(visible=True, alpha=0.3)
    panels[0].set_ylabel("processor seconds")
    figure.savefig(file, metadata={"Date": None})


def main() -> int:
    """Measure every point and write table and plot; 1 when a proof fails."""
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--repeat", type=int, default=1)
    ap.add_argument("--point", help=argparse.SUPPRESS)
    a = ap.parse_args()
    if a.point:
        print(json.dumps(measure(json.loads(a.point))))
        return 0
    rows: list[dict[str, Any]] = []
    for varied, (name, values) in SWEEPS.items():
        for value in values:
            point = {**BASE, name: value}
            row = {"varied": varied, "value": shown(name, value, point["tile"]), **in_child(point, a.repeat)}
            print(f"{varied} {row['value']}: {row['verdict']} {row['seconds']:.1f} s", file=sys.stderr)
            rows.append(row)
    RESULTS.mkdir(parents=True, exist_ok=True)
    (RESULTS / "growth.md").write_text(table(rows), "utf-8")
    plot(rows, RESULTS / "growth.svg")
    return int(any(row["verdict"] != "PROVED" for row in rows))


if __name__ == "__main__":
    sys.exit(main())
