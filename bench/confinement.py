"""What confinement costs: whole commands with and without it, in turns, on one small kernel of each kind.

    python bench/confinement.py                 # writes bench/results/confinement.md

The confined command is compared with `--no-sandbox`, which runs the same workers without the layers. The least of many
runs is shown, since a busy machine only ever adds, and the median of the differences of neighbouring runs.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
OUT: Final = ROOT / "bench" / "results" / "confinement.md"
COMMANDS: Final = {
    "prove, CUDA": ["prove", "examples/vector_add.py"],
    "prove, CUDA, refuted": ["prove", "examples/bias_gelu.py", "--kernel",
                             "examples/wrong/bias_gelu_int32.cu"],
    "run, CUDA": ["run", "examples/vector_add.py"],
}
MODES: Final = ("--no-sandbox", "--sandbox=filter", "--sandbox=auto")


def seconds(command: Sequence[str], mode: str) -> float:
    """Wall time of one command."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "warpproof", *command, mode], cwd=ROOT, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began


def measure(command: Sequence[str], repeat: int) -> dict[str, list[float]]:
    """Times by mode, taken in turns."""
    found: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(repeat):
        for mode in MODES:
            found[mode].append(seconds(command, mode))
    return found


def lines(repeat: int) -> Iterator[str]:
    """The report."""
    yield "# What confinement costs"
    yield ""
    yield (f"Whole commands, least of {repeat} runs each in turns ({platform.machine()}, {os.cpu_count()} cores, "
           f"Python {platform.python_version()}, Linux {platform.release().split('-')[0]}; "
           "`python bench/confinement.py`). A machine with other work, as this one was, adds noise of the same size.")
    yield ""
    yield "| command | not confined | filter only | all layers | added by all layers, median of pairs of runs |"
    yield "|---|---|---|---|---|"
    for name, command in COMMANDS.items():
        found = measure(command, repeat)
        least = [min(found[mode]) for mode in MODES]
        pairs = statistics.median(b - a for a, b in zip(found[MODES[0]], found[MODES[2]], strict=True))
        yield (f"| {name} | {least[0]:.2f} s | {least[1]:.2f} s | {least[2]:.2f} s | "
               f"{1000 * pairs:.0f} ms |")


def main() -> None:
    """Write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=15)
    text = "\n".join(lines(parser.parse_args().repeat)) + "\n"
    OUT.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
