"""Times every example proof, with small sample sizes and with samples in the millions: sizes are symbols, so the time
must not depend on them.

    python bench/examples.py                    # writes bench/results/examples.md
    python bench/examples.py --only softmax

Each proof runs in a fresh process, so that wall time and peak memory are its own; the times leave out starting Python
and compiling. The larger samples are the contract's own, doubled while its preconditions admit that, up to `LARGE`.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from warpproof import api
from warpproof.proving import Task, prove
from warpproof.reference import Launch

ROOT: Final = Path(__file__).parents[1]
LARGE: Final = 1 << 24
SAMPLES: Final = ("small", "large")


def grown(launch: Launch) -> dict[str, tuple[int, ...]]:
    """One sample: the contract's first, each size doubled while the preconditions hold and it stays within `LARGE`."""
    sizes = launch.example(0)
    for name in sizes:
        while sizes[name] * 2 <= LARGE and launch.check_preconditions({**sizes, name: sizes[name] * 2}):
            sizes[name] *= 2
    return {name: (value,) for name, value in sizes.items()}


def measure(contract: Path, samples: str) -> dict[str, Any]:
    """The figures of one proof, made in this process."""
    problem = api.load(api.Job(contract=str(contract)))
    launch = problem.launch
    if samples == "large" and launch.sizes:
        launch = replace(launch, sizes=grown(launch))
    source = problem.source
    task = Task(problem.kernel, launch, problem.reference, source.text, source.file, source.sources, 90.0,
                later=problem.kernels[1:])
    began = time.monotonic()
    report = prove(task, lambda stage: None)
    wall = time.monotonic() - began
    shown = {name: values[0] for name, values in launch.sizes.items()}
    return {"verdict": report.verdict.value, "seconds": wall, "sizes": shown, "scope": report.sizes,
            "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def in_child(contract: Path, samples: str) -> dict[str, Any]:
    """The figures of one proof, made in a fresh process."""
    command = [sys.executable, __file__, "--one", str(contract), samples]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        return {"verdict": f"exit {done.returncode}", "seconds": 0.0, "sizes": {}, "scope": "", "peak_mb": 0.0}
    return dict(json.loads(done.stdout))


def best(contract: Path, samples: str, repeat: int) -> dict[str, Any]:
    """The fastest of some runs."""
    return min((in_child(contract, samples) for _ in range(repeat)), key=lambda row: float(row["seconds"]))


def table(rows: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Iterator[str]:
    """The report's lines."""
    yield "# Example proofs"
    yield ""
    yield ("Wall time and peak memory of each proof in a fresh process, after start-up and compilation "
           f"({platform.machine()}, Python {platform.python_version()}; `python bench/examples.py`). Each proof is for "
           "all sizes in its scope. The second run has the contract's samples replaced by large ones: the time stays, "
           "because sizes are symbols.")
    yield ""
    yield "| example | verdict | s | peak MB | large samples | verdict | s | peak MB | ratio |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, row in rows.items():
        small, large = (row[s] for s in SAMPLES)
        sizes = ", ".join(f"{n} = {v:,}" for n, v in large["sizes"].items())
        ratio = large["seconds"] / small["seconds"] if small["seconds"] else 0.0
        yield (f"| {name} | {small['verdict']} | {small['seconds']:.2f} | {small['peak_mb']:.0f} | {sizes} | "
               f"{large['verdict']} | {large['seconds']:.2f} | {large['peak_mb']:.0f} | {ratio:.2f} |")
    yield ""
    totals = [sum(row[s]["seconds"] for row in rows.values()) for s in SAMPLES]
    yield f"All: {totals[0]:.1f} s with small samples, {totals[1]:.1f} s with large ones."
    yield ""
    yield "Scopes:"
    yield ""
    for name, row in rows.items():
        yield f"* {name}: {row['small']['scope']}"


def main() -> int:
    """Measure all examples; exit code 1 when one is not proved with either kind of samples."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=2, metavar=("CONTRACT", "SAMPLES"), help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--repeat", type=int, default=2, help="the fastest of so many runs counts")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "examples.md")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(Path(given.one[0]), given.one[1])))
        return 0
    contracts = [p for p in sorted((ROOT / "examples").glob("*.py")) if not given.only or p.stem in given.only]
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    for contract in contracts:
        rows[contract.stem] = {samples: best(contract, samples, given.repeat) for samples in SAMPLES}
        shown = (f"{r['verdict']} {r['seconds']:.2f} s" for r in rows[contract.stem].values())
        print(contract.stem, *shown, flush=True)
    if not given.only:
        given.out.write_text("\n".join(table(rows)) + "\n", encoding="utf-8")
    return 0 if all(r["verdict"] == "PROVED" for row in rows.values() for r in row.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
