"""The BPF model against the running kernel: random filters, their results read as error numbers of a probed call.

    python bench/seccomp_kernel.py --count 2000     # writes bench/results/seccomp_kernel.md

A program's final accumulator, folded to 12 bits, is returned as the error number of a call that no kernel has; a result
that differs from the interpreter's, or a process killed where it should live, is a fault of the model. Unprivileged.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import time
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "sandbox"))

from random_filters import PROBED, call, careless, observable  # noqa: E402

from warpproof.sandbox import Call, Kernel, Program, describe, disassemble, fault, run  # noqa: E402

CALLS: Final = 27


def compare(kernel: Kernel, program: Program, calls: list[Call]) -> tuple[int, int, list[str]]:
    """Comparisons made, children killed as predicted, and disagreements."""
    done = killed = 0
    faults = []
    rest = calls
    while rest:
        seen = kernel.observe([program], rest)
        used = 0
        for one, what in zip(rest, seen, strict=True):
            used += 1
            value = run(program, one)
            if what is None or not what.agrees(value):
                faults.append(f"{one}: kernel {what}, model {describe(value)}\n{disassemble(program)}")
            done += 1
            if what is not None and what.kind == "killed":
                killed += 1
                break
        rest = rest[used:]
    return done, killed, faults


def main() -> None:
    """Compare, print, and write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng, started = random.Random(arguments.seed), time.monotonic()
    done = killed = 0
    faults: list[str] = []
    refused = [0, 0]
    with Kernel() as kernel:
        for _ in range(arguments.count):
            program = observable(rng)
            a, b, new = compare(kernel, program, [call(rng, PROBED) for _ in range(CALLS)])
            done, killed, faults = done + a, killed + b, faults + new
        for _ in range(arguments.count):
            program = careless(rng)
            refusal, found = kernel.refusal(program), fault(program)
            refused[found is not None] += 1
            if (refusal != 0) != (found is not None):
                faults.append(f"kernel errno {refusal}, checker {found}: {program}")
    lines = [f"# The BPF model against Linux {platform.release().split('-')[0]}", "",
             f"{arguments.count} random filters, {done} results compared, {killed} of them kills as predicted; "
             f"validity of {arguments.count} careless programs compared ({refused[0]} loaded, {refused[1]} refused). "
             f"Disagreements: {len(faults)}. {time.monotonic() - started:.0f} s, seed {arguments.seed}."]
    text = "\n".join([*lines, "", *faults[:5]])
    print(text)
    (ROOT / "bench" / "results" / "seccomp_kernel.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
