"""Fault injection: every barrier, fence, wait, scope, semantics and mask of the proved kernels, weakened one at a time.

    python bench/faults.py                # all kernels; writes bench/results/faults.md
    python bench/faults.py --only flag    # kernels whose name contains this; prints the table, writes nothing

A weakened kernel must be REFUTED, or PROVED: then what was weakened is redundant, and the proof is the reason.
INCONCLUSIVE rows are what neither search nor proof settles. See bench/README.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "soundness"))

import test_barrier_rings as rings  # noqa: E402
import test_cta_locks as ctas  # noqa: E402
import test_grid_barriers as grids  # noqa: E402
import test_protocols as protocols  # noqa: E402
import test_turnstiles as turns  # noqa: E402
from mutants import subjects  # noqa: E402
from proof_cases import Small  # noqa: E402
from test_public_bugs import BUGS  # noqa: E402

from warpproof.core import InputError, Verdict  # noqa: E402
from warpproof.proving import Disagreement, Task, prove  # noqa: E402
from warpproof.ptx import Instruction, Kernel, parse, resolve  # noqa: E402
from warpproof.reference import Launch, load_launch  # noqa: E402

Reference = Callable[..., Mapping[str, Any]]
RESULTS: Final = ROOT / "bench" / "results" / "faults.md"
_WEAKER: Final = {
    "acquire": "relaxed", "release": "relaxed", "acq_rel": "relaxed", "gpu": "cta", "sys": "cta", "gl": "cta",
}


@dataclass(frozen=True, slots=True)
class Target:
    """A proved kernel."""

    name: str
    launch: Launch
    reference: Reference
    text: str
    kernel: str


@dataclass(frozen=True, slots=True)
class Fault:
    """One weakened instruction: where, what was done to it, and the kernel's text afterwards."""

    line: int
    what: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    kernel: str
    line: int
    what: str
    verdict: str
    why: str


def targets() -> Iterator[Target]:
    """The examples, the kernels of the test-suite, and its protocol kernels."""
    for s in (s for s in subjects() if len(s.launch.stages()) == 1):
        yield Target(s.name, s.launch, s.reference, s.text, s.kernel)
    yield _small("flag-handover", protocols.pairs(*protocols.GOOD), protocols.reversed_squares)
    relaxed = protocols.changed("st.release.gpu.global", "fence.acq_rel.gpu; st.relaxed.gpu.global")
    yield _small("flag-handover-fence", protocols.pairs(*relaxed), protocols.reversed_squares)
    p = protocols
    yield _small("last-block", p.last(p.PART, p.FENCE, p.COUNT, p.FENCE, p.SUM, p.RESET), p.total)
    yield _small("spin-lock", p.locked(p.MINE, p.TAKE, p.FENCE, p.ADD, p.FENCE, p.FREE), p.moments)
    take, free = p.TAKE.replace("atom", "atom.acquire.gpu"), p.FREE.replace("atom", "atom.release.gpu")
    strong = p.locked(p.MINE, take, p.ADD, free)
    yield _small("spin-lock-acquire", strong, p.moments)
    yield _small("cta-lock", ctas.locked(*ctas.GOOD_LOCK), ctas.column_sums)
    yield _small("ring", rings.Ring().kernel(), rings.products)
    yield _small("ring-early", rings.Ring(early=True).kernel(), rings.products)
    yield _small("grid-barrier", grids.grid(*grids.GOOD), grids.mirrored)
    yield _small("turnstile", turns.split(*turns.GOOD), turns.squares)
    for name in ("kokkos#1520", "ninfer#49", "deepep#657 with", "tilelang#2613", "apex#1798", "deepep#136"):
        found = next(b for b in BUGS if b.startswith(name))
        yield _small(found, BUGS[found].fixed, BUGS[found].reference)


def _small(name: str, kernel: Small, reference: Reference) -> Target:
    return Target(name, load_launch(kernel.manifest()), reference, kernel.ptx(), "k")


# ---------------------------------------------------------------------- faults
def faults(text: str, kernel: Kernel) -> Iterator[Fault]:
    """Every way to weaken one instruction of the kernel."""
    for ins in kernel.code:
        for what, new in _weaker(ins):
            yield Fault(ins.span.line, f"`{ins.opcode}` {what}", _edited(text, ins, new))


def _weaker(ins: Instruction) -> Iterator[tuple[str, str | None]]:
    words = ins.modifiers
    if ins.name in ("bar", "barrier") and {"sync", "arrive"} & set(words):
        yield "removed", None
        if "warp" in words:
            yield "with half of its mask", "bar.warp.sync 65535"
    elif ins.name in ("membar", "fence") or ins.opcode in ("cp.async.wait_all", "cp.async.commit_group"):
        yield "removed", None
    elif ins.opcode == "cp.async.wait_group":
        count = getattr(ins.operands[0], "value", 0)
        yield "removed", None
        yield f"waiting for one group less ({count + 1})", f"cp.async.wait_group {count + 1}"
    if ins.name in ("membar", "fence", "ld", "st", "atom", "red"):
        for k, word in enumerate(words):
            if word in _WEAKER and not (ins.name == "fence" and word == "acq_rel"):
                other = [*words[:k], _WEAKER[word], *words[k + 1 :]]
                yield f"with .{_WEAKER[word]} for .{word}", ".".join([ins.name, *other])
        if ins.name in ("ld", "st") and {"acquire", "release", "relaxed", "volatile"} & set(words):
            dropped = {"acquire", "release", "relaxed", "volatile", "cta", "gpu", "sys"}
            yield "made weak", ".".join([ins.name, *(w for w in words if w not in dropped)])
        if ins.name == "atom" and not {"gpu", "sys", "cta"} & set(words):
            yield "at CTA scope", ".".join(["atom", "cta", *words])


def _edited(text: str, ins: Instruction, new: str | None) -> str:
    """The text with the instruction taken out, or (part of) it replaced."""
    lines = text.split("\n")
    row = lines[ins.span.line - 1]
    at = row.index(ins.opcode, ins.span.column - 1)
    end = row.index(";", at)
    if new is None:
        guard = row.rfind("@", 0, at)
        start = guard if guard >= 0 and ";" not in row[guard:at] and ":" not in row[guard:at] else at
        row = row[:start] + row[end + 1 :]
    elif " " in new:
        row = row[:at] + new + row[end:]
    else:
        row = row[:at] + new + row[at + len(ins.opcode) :]
    lines[ins.span.line - 1] = row
    return "\n".join(lines)


# ---------------------------------------------------------------------- verdicts
def attempt(target: Target, fault: Fault, seconds: float) -> Row:
    """The verdict on a weakened kernel."""
    try:
        kernel = resolve(parse(fault.text, "weakened.ptx"), target.kernel)
        task = Task(kernel, target.launch, target.reference, fault.text, "weakened.ptx", {}, seconds)
        report = prove(task, lambda stage: None)
    except InputError as error:
        return Row(target.name, fault.line, fault.what, "INVALID", error.message)
    except Disagreement as error:
        return Row(target.name, fault.line, fault.what, "DISAGREEMENT", str(error))
    why = "re-proved: redundant here"
    if report.verdict is not Verdict.PROVED:
        guilty = [(n, p) for n, p in report.properties.items() if p is not None and p.verdict is report.verdict]
        own = next(((n, p) for n, p in guilty if "rests on" not in p.detail), guilty[0])
        why = f"{own[0]}: {own[1].detail.splitlines()[0] if own[1].detail else ''}"
    return Row(target.name, fault.line, fault.what, report.verdict.value, why)


def table(rows: list[Row], seconds: float) -> str:
    """The results page."""
    count = Counter(r.verdict for r in rows)
    counts = ", ".join(f"{n} {v}" for v, n in sorted(count.items()))
    summary = f"{len(rows)} weakened kernels ({counts}), {seconds:.0f} s. See ../README.md."
    lines = ["# Fault injection", "", summary, "", "| kernel | PTX line | what was weakened | verdict | why |",
             "|---|---|---|---|---|"]
    for r in rows:
        why = r.why.replace("|", "\\|")
        lines.append(f"| {r.kernel} | {r.line} | {r.what} | {r.verdict} | {why[:160]} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Weaken everything; 1 if some kernel was proved on paper only (a disagreement)."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--seconds", type=float, default=20.0, help="for each weakened kernel")
    arguments = parser.parse_args()
    began, rows = time.monotonic(), []
    for target in targets():
        if arguments.only not in target.name:
            continue
        kernel = resolve(parse(target.text, "kernel.ptx"), target.kernel)
        for fault in faults(target.text, kernel):
            rows.append(attempt(target, fault, arguments.seconds))
            sys.stderr.write(f"{rows[-1]}\n")
    page = table(rows, time.monotonic() - began)
    if arguments.only:
        sys.stdout.write(page)
    else:
        RESULTS.write_text(page, encoding="utf-8")
    return int(any(r.verdict == "DISAGREEMENT" for r in rows))


if __name__ == "__main__":
    sys.exit(main())
