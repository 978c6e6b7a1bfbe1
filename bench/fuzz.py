"""Feeds hostile PTX, contracts, launch files, counterexamples and command lines to the parser and to `warpproof`.

    python bench/fuzz.py --minutes 10           # writes bench/results/fuzz.md
    python bench/fuzz.py --case kernel 1234     # one case again, with its files left in the folder shown

A failure is a traceback on stderr, an exit code outside 0-4 or without its reason, an answer that is not JSON when
JSON was asked for, or a case that takes too long or too much memory. Failures are kept under `bench/findings/`, one of
each sort, with the input made small.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any, Final

from hostile import KINDS, LIMITS, ROOT, Case, make
from trials import WALL_S, Result, run, run_command, run_parser

FOLDER: Final = ROOT / "bench" / "findings"
ADDRESS_SPACE: Final = 12 << 30
WEIGHTS: Final = {"parser": 60, "kernel": 25, "launch": 20, "contract": 15, "replay": 8, "arguments": 4, "litmus": 3,
                  "filter": 3}
WHOLE: Final = 0.1  # the share of cases that run as a whole command
MINIMISE_S: Final = 60.0


# ---------------------------------------------------------------------- making findings small
def minimised(case: Case, fault: str, whole: bool) -> Case:
    """The case with its target file as small as it gets in a minute, the fault the same."""
    if not case.target:
        return case
    deadline = time.monotonic() + MINIMISE_S
    data = case.files[case.target]
    for pattern in (rb"[^\n]*\n?", rb"\s+|[\w.%$]+|."):
        parts = [m for m in re.findall(pattern, data, re.DOTALL) if m]
        data = b"".join(_fewest(parts, lambda p: run(_with(case, b"".join(p)), whole).fault == fault, deadline))
    return _with(case, data)


def _fewest(parts: list[bytes], shows: Callable[[list[bytes]], bool], deadline: float) -> list[bytes]:
    size = max(1, len(parts) // 2)
    while parts and time.monotonic() < deadline:
        at, shrunk = 0, False
        while at < len(parts) and time.monotonic() < deadline:
            fewer = parts[:at] + parts[at + size :]
            if shows(fewer):
                parts, shrunk = fewer, True
            else:
                at += size
        if size == 1 and not shrunk:
            break
        size = max(1, size // 2)
    return parts


def _with(case: Case, data: bytes) -> Case:
    return replace(case, files={**case.files, case.target: data})


def keep(case: Case, seed: int, result: Result) -> Path:
    """The folder with a finding's files, command line and output."""
    name = re.sub(r"[^\w.-]+", "-", f"{case.kind}-{result.fault}")[:80]
    folder = FOLDER / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in case.files.items():
        (folder / file).write_bytes(data)
    argv = list(case.argv)
    about = {"kind": case.kind, "seed": seed, "fault": result.fault, "argv": argv, "code": result.code,
             "seconds": round(result.seconds, 2), "peak_mb": round(result.peak_mb)}
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    (folder / "output.txt").write_text(result.output[-20_000:], encoding="utf-8", errors="replace")
    return folder


# ---------------------------------------------------------------------- the loop
def work(seed: int, seconds: float, kinds: list[str], rows: Any) -> None:
    """Run random cases until the time is over, sending a row for each."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    rng, deadline, seen = Random(seed), time.monotonic() + seconds, set[str]()
    weights = [WEIGHTS[k] for k in kinds]
    while time.monotonic() < deadline:
        kind, number = rng.choices(kinds, weights)[0], rng.randrange(1 << 40)
        case = make(kind, number)
        whole = rng.random() < WHOLE
        result = run(case, whole)
        rows.put((kind, number, result.code, result.seconds, result.peak_mb, result.fault))
        if result.fault and result.fault not in seen:
            seen.add(result.fault)
            keep(case, number, result)
            small = minimised(case, result.fault, whole)
            if small != case:
                keep(small, number, run(small, whole))
    rows.put(None)


def campaign(minutes: float, jobs: int, seed: int, kinds: list[str]) -> list[tuple[Any, ...]]:
    """Rows of all workers."""
    queue: Any = multiprocessing.Queue()
    workers = [multiprocessing.Process(target=work, args=(seed + i, minutes * 60, kinds, queue)) for i in range(jobs)]
    for w in workers:
        w.start()
    rows: list[tuple[Any, ...]] = []
    left = jobs
    while left:
        row = queue.get(timeout=WALL_S + MINIMISE_S * 3)
        if row is None:
            left -= 1
            continue
        rows.append(row)
        if row[5]:
            print(f"{row[0]} {row[1]}: {row[5]}", flush=True)
    for w in workers:
        w.join()
    return rows


def summary(rows: list[tuple[Any, ...]], minutes: float, seed: int) -> str:
    """The report."""
    lines = ["# Hostile inputs", "",
             f"`python bench/fuzz.py --minutes {minutes:g} --seed {seed}`: {len(rows)} cases, "
             f"{sum(bool(r[5]) for r in rows)} failures. Limits for each case: `{' '.join(LIMITS)}`.", "",
             "A case fails by a traceback, an exit code outside 0-4, an internal error (4) that the case's own Python "
             "did not force, a missing answer, a hang, or more memory than its limit.", "",
             "| kind | cases | 0 | 1 | 2 | 3 | 4 | slowest s | peak MB | failures |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for kind in KINDS:
        of = [r for r in rows if r[0] == kind]
        if of:
            codes = Counter(r[2] for r in of)
            shown = " | ".join(str(codes[c]) if kind != "parser" else "" for c in range(5))
            most = f"{max(r[3] for r in of):.1f} | {max(r[4] for r in of):.0f}"
            lines.append(f"| {kind} | {len(of)} | {shown} | {most} | {sum(bool(r[5]) for r in of)} |")
    faults = Counter(r[5] for r in rows if r[5])
    lines += ["", "Parser cases are parsed and resolved in one process; their memory is the growth they cause.", ""]
    lines += [f"* {count} × {fault}" for fault, count in faults.most_common()]
    return "\n".join(lines).rstrip() + "\n"


def show(kind: str, seed: int) -> int:
    """One case again, its files left behind."""
    case = make(kind, seed)
    folder = Path(tempfile.mkdtemp())
    result = run_parser(case) if case.parser else run_command(case, folder)
    for name, data in case.files.items():
        (folder / name).write_bytes(data)
    print(folder, *case.argv)
    print(result.output[-4000:])
    print(replace(result, output=""))
    return bool(result.fault)


def main() -> int:
    """Fuzz for some minutes; exit code 1 when something failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", action="append", choices=list(KINDS), default=[])
    parser.add_argument("--case", nargs=2, metavar=("KIND", "SEED"))
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "fuzz.md")
    given = parser.parse_args()
    if given.case:
        return show(given.case[0], int(given.case[1]))
    rows = campaign(given.minutes, given.jobs, given.seed, given.kind or list(KINDS))
    text = summary(rows, given.minutes, given.seed)
    given.out.write_text(text, encoding="utf-8")
    print(text)
    return 1 if any(r[5] for r in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
