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
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, Final, NoReturn

from hostile import KINDS, LIMITS, ROOT, Case, make

from warpproof.core import InputError, Unsupported
from warpproof.ptx import parse, resolve

FOLDER: Final = ROOT / "bench" / "findings"
WALL_S: Final = float(LIMITS[1]) + 12.0
PARSE_S: Final = 5.0
MEMORY_MB: Final = float(LIMITS[3]) * 1024 + 300
ADDRESS_SPACE: Final = 12 << 30
WEIGHTS: Final = {"parser": 60, "kernel": 5, "launch": 4, "contract": 4, "replay": 2, "arguments": 4}
MINIMISE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Result:
    """What a case did: `code` as of a shell (-1 for a parser case), and `fault`, empty when all is well."""

    code: int
    seconds: float
    peak_mb: float
    fault: str
    output: str


class Late(Exception):
    """The time of a parser case is over."""


def _late(number: int, frame: FrameType | None) -> NoReturn:
    raise Late


def run_parser(case: Case) -> Result:
    """Parse and resolve in this process."""
    text = case.files["kernel.ptx"].decode("utf-8", "replace")
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    signal.signal(signal.SIGALRM, _late)
    signal.setitimer(signal.ITIMER_REAL, PARSE_S)
    fault = output = ""
    try:
        module = parse(text, "kernel.ptx")
        for entry in module.entries()[:3]:
            resolve(module, entry.name)
    except InputError as error:
        output = error.render()
    except Unsupported as error:
        output = str(error)
    except Late:
        fault = "hang in the parser"
    except Exception as error:  # noqa: BLE001 - what should not come out is what this looks for
        fault = f"{type(error).__name__} from {_innermost(error)}"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    if not fault and peak > MEMORY_MB:
        fault = "memory of the parser"
    return Result(-1, time.monotonic() - began, peak, fault, output)


def _innermost(error: BaseException) -> str:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return f"{Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}" if frame else "nowhere"


def run_command(case: Case, folder: Path | None = None) -> Result:
    """Run `warpproof` on the case's files, in a folder of its own."""
    with tempfile.TemporaryDirectory() as made:
        where = folder or Path(made)
        for name, data in case.files.items():
            (where / name).write_bytes(data)
        (where / "folder.py").mkdir(exist_ok=True)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            command = [sys.executable, "-m", "warpproof", *case.argv]
            began = time.monotonic()
            child = subprocess.Popen(command, cwd=where, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                     start_new_session=True)
            code, peak = _wait(child, began + WALL_S)
            seconds = time.monotonic() - began
            texts = [_read(f) for f in (out, err)]
    return Result(code, seconds, peak, fault_of(case, code, peak, *texts), "\n".join(texts))


def _wait(child: subprocess.Popen[bytes], deadline: float) -> tuple[int, float]:
    """The exit code as of a shell (-999 when it had to be killed) and the peak memory of it and what it waited for."""
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return child.returncode, usage.ru_maxrss / 1024
        if time.monotonic() > deadline:
            os.killpg(child.pid, signal.SIGKILL)
            _, _, usage = os.wait4(child.pid, 0)
            child.returncode = -999
            return -999, usage.ru_maxrss / 1024
        time.sleep(0.005)


def _read(file: Any) -> str:
    file.seek(0)
    return bytes(file.read(1 << 22)).decode("utf-8", "replace")


def fault_of(case: Case, code: int, peak: float, out: str, err: str) -> str:
    """What is wrong with an answer; empty when nothing is."""
    if code == -999:
        return "hang"
    if "Traceback (most recent call last)" in err and case.kind != "contract":
        return "traceback: " + _last_frame(err)
    if "Traceback (most recent call last)" in err and "/warpproof/" in err:
        return "traceback: " + _last_frame(err)
    if code not in (0, 1, 2, 3, 4):
        return f"exit code {code}"
    if code == 4 and not case.dies:
        found = re.search(r"internal error: (.*)|the prover ([^\"]*)", out + err)
        return "internal: " + (re.sub(r"'.*'|\d{3,}", "…", found[0])[:160] if found else "without a reason")
    if code == 2 and "error[" not in err and "usage" not in err:
        return "exit code 2 without an error"
    if peak > MEMORY_MB:
        return "memory"
    asked = " ".join(case.argv).find("--format json") >= 0 and case.kind != "arguments"
    if asked:
        try:
            json.loads(out)
        except ValueError:
            return "no JSON"
    return ""


def _last_frame(err: str) -> str:
    frames = re.findall(r'File "[^"]*?([\w.]+)", line (\d+)', err)
    name = re.findall(r"^(\w[\w.]*(?:Error|Exception|Warning|Interrupt|Exit)?)\b", err.strip().splitlines()[-1])
    place = ":".join(frames[-1]) if frames else "nowhere"
    return f"{name[0] if name else '?'} at {place}"


def run(case: Case) -> Result:
    """The result of a case of either sort."""
    return run_parser(case) if case.parser else run_command(case)


# ---------------------------------------------------------------------- making findings small
def minimised(case: Case, fault: str) -> Case:
    """The case with its target file as small as it gets in a minute, the fault the same."""
    if not case.target:
        return case
    deadline = time.monotonic() + MINIMISE_S
    data = case.files[case.target]
    for pattern in (rb"[^\n]*\n?", rb"\s+|[\w.%$]+|."):
        parts = [m for m in re.findall(pattern, data, re.DOTALL) if m]
        data = b"".join(_fewest(parts, lambda p: _shows(case, b"".join(p), fault), deadline))
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


def _shows(case: Case, data: bytes, fault: str) -> bool:
    return run(_with(case, data)).fault == fault


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
        result = run(case)
        rows.put((kind, number, result.code, result.seconds, result.peak_mb, result.fault))
        if result.fault and result.fault not in seen:
            seen.add(result.fault)
            keep(case, number, result)
            small = minimised(case, result.fault)
            if small != case:
                keep(small, number, run(small))
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
