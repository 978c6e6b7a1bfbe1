"""Filters of this project and of others: what is proved of them, what they let a process reach, and how long it takes.

    python bench/filters.py "Docker's default"=default.json "gVisor's Sentry"=PID    # writes bench/results/filters.md

Each argument is a title with a profile, a filter file or the number of a running process. `--runsc PROGRAM` starts a
container by gVisor's runsc and takes the filters of its Sentry and its Gofer. The shipped policies are always measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from warpproof.sandbox import NAMES, compile_policy, prove, shipped_policy

ROOT: Final = Path(__file__).parents[1]
OUT: Final = ROOT / "bench" / "results" / "filters.md"
CONFIGURATION: Final[dict[str, Any]] = {
    "ociVersion": "1.0.0", "root": {"path": "/", "readonly": True}, "hostname": "x",
    "process": {"user": {"uid": 0, "gid": 0}, "args": ["/bin/sleep", "60"], "env": ["PATH=/bin:/usr/bin"], "cwd": "/"},
    "linux": {"namespaces": [{"type": t} for t in ("pid", "mount", "ipc", "uts", "network")]}}


def started(program: str, folder: Path) -> tuple[subprocess.Popen[bytes], dict[str, int]]:
    """A container that sleeps, and its processes by name; as root."""
    (folder / "config.json").write_text(json.dumps(CONFIGURATION), "utf-8")
    process = subprocess.Popen([program, f"--root={folder}/state", "--platform=ptrace", "--network=none",
                                "--ignore-cgroups", "run", f"x{os.getpid()}"], cwd=folder, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    found: dict[str, int] = {}
    for _ in range(100):
        time.sleep(0.2)
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                line = (entry / "cmdline").read_bytes().decode("utf-8", "replace")
            except OSError:
                continue
            for name in ("sandbox", "gofer"):
                if line.startswith(f"runsc-{name}") and f"{folder}/state" in line:
                    found[name] = int(entry.name)
        if len(found) == 2:
            time.sleep(2.0)  # until the filters are on
            break
    return process, found


def verified(*arguments: str) -> tuple[dict[str, Any], float]:
    """What `sandbox verify` says, and the seconds it took."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "warpproof", "sandbox", "verify", *arguments, "--format", "json"],
                          capture_output=True, text=True, check=False)
    return json.loads(done.stdout), time.perf_counter() - began


def settled(pid: int) -> tuple[dict[str, Any], float]:
    """The same for a process that is just starting: once all its threads hold the same filters."""
    for _ in range(20):
        said, seconds = verified("--pid", str(pid))
        if said.get("instructions"):
            return said, seconds
        time.sleep(1.0)
    raise SystemExit(f"process {pid}: {said}")


def line(title: str, said: dict[str, Any], seconds: float) -> str:
    """One line of the table."""
    status = {o["id"]: o["status"] for o in said["obligations"]}
    proved = " ".join(k for k, v in status.items() if v == "proved")
    other = " ".join(f"{k} {v}" for k, v in status.items() if v != "proved") or "–"
    facts = ", ".join(p["fact"] + (" (permitted)" if p["permitted"] else "") for p in said["reachable"]) or "nothing"
    return (f"| {title} | {said['instructions']} | {proved} | {other} | {facts} | {said['confirmed_live']} | "
            f"{seconds:.1f} s |")


def spent() -> float:
    """Seconds of processor time of this process and of the solver, its child."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()
    used = (int(Path(f"/proc/{pid}/schedstat").read_text("ascii").split()[0]) for pid in children)
    return time.process_time() + sum(used) / 1e9


def shipped() -> Iterator[str]:
    """Seconds for P0 to P8 of each shipped policy in one process, the solver running: the least of five."""
    yield "| policy | instructions, linear / tree | P0–P8, least of five, linear / tree | processor time of it |"
    yield "|---|---|---|---|"
    for name in NAMES:
        policy, sizes, times, used = shipped_policy(name), [], [], []
        for layout in ("linear", "tree"):
            program = compile_policy(policy, layout)  # type: ignore[arg-type]
            found, least, work = prove(policy, program), 1e9, 1e9
            for _ in range(5):
                began, before = time.perf_counter(), spent()
                found = prove(policy, program)
                least, work = min(least, time.perf_counter() - began), min(work, spent() - before)
            times.append(least)
            used.append(work)
            sizes.append(len(program))
            assert {o.status for o in found} == {"proved"}
        yield (f"| {name} | {sizes[0]} / {sizes[1]} | {times[0]:.2f} s / {times[1]:.2f} s | "
               f"{used[0]:.2f} s / {used[1]:.2f} s |")


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filters", nargs="*", metavar="TITLE=FILE|PID")
    parser.add_argument("--runsc", metavar="PROGRAM")
    arguments = parser.parse_args()
    lines = [f"# Filters, proved and let through (Linux {platform.release().split('-')[0]}, `python bench/filters.py`)",
             "", *shipped(), "",
             "Wall time, with other work on the machine; where there is none it is little more than the processor time "
             "of both processes. The tree is the layout that is used.", "",
             "Whole commands, with witnesses tried on the kernel; what a fact means: `warpproof sandbox explain FACT`.",
             "",
             "| filter | instructions | proved | not proved | lets a process reach, worst first | tried live | time |",
             "|---|---|---|---|---|---|---|"]
    for text in arguments.filters:
        title, _, subject = text.partition("=")
        option = ["--pid", subject] if subject.isdecimal() else ["--profile", subject]
        lines.append(line(title, *verified(*option)))
    if arguments.runsc:
        version = subprocess.run([arguments.runsc, "--version"], capture_output=True, text=True, check=True)
        with tempfile.TemporaryDirectory() as folder:
            process, found = started(arguments.runsc, Path(folder))
            try:
                for name, pid in sorted(found.items(), reverse=True):
                    title = f"gVisor's {'Sentry' if name == 'sandbox' else 'Gofer'}, {version.stdout.splitlines()[0]}"
                    lines.append(line(title, *settled(pid)))
            finally:
                for pid in found.values():
                    os.kill(pid, 9)
                process.kill()
                process.wait()
    text = "\n".join(lines) + "\n"
    OUT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
