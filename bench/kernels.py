"""The figures of every kernel of the production suite and of the examples: symbolic steps, terms, obligations by kind,
time by stage, peak memory.

    python bench/kernels.py                     # writes bench/results/kernels.md
    python bench/kernels.py --only softmax

Each proof runs in a fresh process, so that peak memory is its own. Times are processor time, so that a busy machine
gives the same figures; they leave out starting Python and compiling. The verdict is that of the symbolic proof alone.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from warpproof import api
from warpproof.core import Unsupported, worst
from warpproof.equivalence import Pipeline
from warpproof.frontends import Job
from warpproof.judge import judge
from warpproof.proving import scope_of

ROOT: Final = Path(__file__).parents[1]
KINDS: Final = ("equivalence", "memory", "races", "barriers", "conditions")
LIMIT_S: Final = 90.0


class Stopwatch:
    """Processor time of this process and its children since the last reading."""

    def __init__(self) -> None:
        self._last = self._now()

    @staticmethod
    def _now() -> float:
        usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in usage)

    def lap(self) -> float:
        """Seconds since the last call."""
        before, self._last = self._last, self._now()
        return self._last - before


def measure(contract: Path) -> dict[str, Any]:
    """The figures of one proof, made in this process."""
    problem = api.load(Job(contract=str(contract)))
    watch = Stopwatch()
    pipeline = Pipeline(problem.kernels, problem.launch, problem.reference, time.monotonic() + LIMIT_S)
    row: dict[str, Any] = {"scope": scope_of(problem.launch), "why": ""}
    try:
        outcome = pipeline.attempt()
    except Unsupported as stuck:
        return {**row, "verdict": "INCONCLUSIVE", "why": str(stuck), "seconds": watch.lap(), "stages": {}, "kinds": {},
                "steps": 0, "terms": 0, "peak_mb": _peak_mb()}
    seconds, figures = watch.lap(), dict(outcome.figures)
    steps, terms = (int(figures.pop(name, 0)) for name in ("steps", "terms"))
    properties = [p for p in judge(outcome.claims, "").values() if p is not None]
    share = seconds / max(sum(figures.values()), 1e-9)
    return {**row, "verdict": worst(p.verdict for p in properties).value,
            "why": next((p.detail for p in properties if p.verdict.value != "PROVED"), ""),
            "steps": steps, "terms": terms, "kinds": Counter(c.property for c in outcome.claims), "seconds": seconds,
            "stages": {s: w * min(share, 1.0) for s, w in figures.items()}, "peak_mb": _peak_mb()}


def _peak_mb() -> float:
    return max(resource.getrusage(w).ru_maxrss for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024


def in_child(contract: Path) -> dict[str, Any]:
    """The figures of one proof, made in a fresh process."""
    command = [sys.executable, __file__, "--one", str(contract)]
    blank = {"scope": "", "steps": 0, "terms": 0, "kinds": {}, "seconds": 0.0, "stages": {}, "peak_mb": 0.0}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=1.2 * LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return {**blank, "verdict": "INCONCLUSIVE", "why": f"stopped after {1.2 * LIMIT_S:.0f} s"}
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no output"]
        return {**blank, "verdict": f"exit {done.returncode}", "why": lines[-1]}
    return dict(json.loads(done.stdout))


def contracts() -> dict[str, Path]:
    """Every contract by name: the production suite, then the examples."""
    suite = sorted((ROOT / "tests" / "kernels" / "production").glob("*/contract.py"))
    examples = sorted((ROOT / "examples").glob("*.py"))
    return {**{p.parent.name: p for p in suite}, **{f"{p.stem} (example)": p for p in examples}}


def table(rows: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """The report's lines."""
    proved = [r for r in rows.values() if r["verdict"] == "PROVED"]
    yield "# Kernel proofs in figures"
    yield ""
    yield f"{len(proved)} of {len(rows)} kernels are proved for all sizes in their scope."
    yield ""
    yield (f"Made by `python bench/kernels.py` ({platform.machine()}, Python {platform.python_version()}). Times are "
           "processor seconds of one proof in a fresh process, after start-up and compilation. Steps are symbolic "
           "instructions executed, loop bodies several times; terms are hash-consed vectors over the threads of a "
           "block. Claims are what the judge asks for, by what they are about.")
    yield ""
    stages = list(dict.fromkeys(s for r in rows.values() for s in r["stages"]))
    yield ("| kernel | verdict | steps | terms | " + " | ".join(f"{k} claims" for k in KINDS) + " | "
           + " | ".join(f"{s.removesuffix('_s')}, s" for s in stages) + " | all, s | peak MB |")
    yield "|---|---" + "|---:" * (2 + len(KINDS) + len(stages) + 2) + "|"
    for name, r in rows.items():
        counts = " | ".join(str(r["kinds"].get(k, 0)) for k in KINDS)
        times = " | ".join(f"{r['stages'].get(s, 0.0):.2f}" for s in stages)
        yield (f"| {name} | {r['verdict']} | {r['steps']:,} | {r['terms']:,} | {counts} | {times} | "
               f"{r['seconds']:.2f} | {r['peak_mb']:.0f} |")
    yield ""
    yield f"All proofs together: {sum(r['seconds'] for r in proved):.1f} s for those proved."
    yield ""
    yield "Not proved:"
    yield ""
    for name, r in rows.items():
        if r["verdict"] != "PROVED":
            yield f"* {name}: {r['why']}"
    yield ""
    yield "Scopes:"
    yield ""
    for name, r in rows.items():
        yield f"* {name}: {r['scope']}"


def main() -> int:
    """Measure all kernels and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", metavar="CONTRACT", help=argparse.SUPPRESS)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "kernels.md")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(Path(given.one))))
        return 0
    rows: dict[str, dict[str, Any]] = {}
    for name, contract in contracts().items():
        if given.only and not any(o in name for o in given.only):
            continue
        rows[name] = in_child(contract)
        print(name, rows[name]["verdict"], f"{rows[name]['seconds']:.2f} s", flush=True)
    if not given.only:
        given.out.write_text("\n".join(table(rows)) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
