"""Random single mutants of proved kernels: is every PROVED mutant really equal, and every REFUTED one really wrong?

    python bench/mutants.py --count 1000        # resumes from bench/results/mutants.jsonl, then writes mutants.md
    python bench/mutants.py --show 17           # one mutant again, with its report
    python bench/mutants.py --again PROVED      # re-prove the mutants that had this verdict

Each mutant is proved in a child process with a time limit, then judged without the prover: the bit-exact emulator runs
it on many sizes, inputs and schedules and compares with NumPy. A proof the emulator contradicts is a soundness bug; so
is a refutation whose run does not show what it claims. See bench/README.md.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

import numpy as np
from judgement import Judgement, judge, replay
from mutation import Mutant, mutate

from warpproof import api
from warpproof.core import InputError
from warpproof.proving import Disagreement, Task, prove
from warpproof.ptx import load as load_ptx
from warpproof.ptx import parse, resolve
from warpproof.reference import Launch, load_launch, load_spec

ROOT: Final = Path(__file__).parents[1]
RESULTS: Final = ROOT / "bench" / "results"
KERNELS: Final = ROOT / "tests" / "kernels" / "acceptance"
GRACE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Subject:
    """A proved kernel to make mutants of."""

    name: str
    launch: Launch
    reference: Callable[..., Mapping[str, Any]]
    text: str
    kernel: str


def subjects() -> list[Subject]:
    """The examples with one launch, and the kernels of the test-suite that come as PTX."""
    out = []
    for file in sorted((ROOT / "examples").glob("*.py")):
        p = api.load(api.Job(contract=str(file)))
        if p.launch.steps:
            continue  # several launches
        out.append(Subject(file.stem, p.launch, p.reference, p.source.text, p.source.kernel))
    for folder in sorted(p.parent for p in KERNELS.glob("*/case.json")):
        launch = load_launch(folder / "case.json")
        text = (folder / "kernel.ptx").read_text("utf-8")
        name = launch.kernel or resolve(load_ptx(str(folder / "kernel.ptx"))).name
        out.append(Subject(folder.name, launch, load_spec(folder / "reference.py"), text, name))
    return out


def attempt(subject: Subject, mutant: Mutant, seconds: float) -> dict[str, Any]:
    """Verdict and independent judgement of one mutant."""
    row: dict[str, Any] = {"verdict": "INVALID", "judged": "", "what": ""}
    began = time.monotonic()
    try:
        kernel = resolve(parse(mutant.text, "mutant.ptx"), subject.kernel)
        task = Task(kernel, subject.launch, subject.reference, mutant.text, "mutant.ptx", {}, seconds)
        report = prove(task, lambda stage: None)
    except InputError as error:
        return {**row, "what": f"{error.code} {error.message}"}
    except Disagreement as error:
        return {**row, "verdict": "DISAGREEMENT", "judged": "differs", "what": str(error)}
    row["prove_s"] = round(time.monotonic() - began, 2)
    row["verdict"] = report.verdict.value
    row["properties"] = {n: p.verdict.value for n, p in report.properties.items() if p}
    row["detail"] = "; ".join(f"{n}: {p.detail[:200]}" for n, p in report.properties.items() if p and p.detail)[:600]
    found: Judgement
    if report.counterexample is not None:
        found = replay(kernel, subject.launch, subject.reference, report.counterexample)
        row["summary"] = str(report.counterexample.get("summary"))
    else:
        budget = 8.0 if report.verdict.value == "PROVED" else 2.0
        found = judge(kernel, subject.launch, subject.reference, time.monotonic() + budget)
    return {**row, "judged": found.status, "what": found.what, "runs": found.runs}


def _child(pipe: Connection, subject: Subject, mutant: Mutant, seconds: float) -> None:
    try:
        pipe.send(attempt(subject, mutant, seconds))
    except Exception as error:  # noqa: BLE001 - a crash of the prover is a result here
        pipe.send({"verdict": "CRASH", "judged": "", "what": f"{type(error).__name__}: {error}",
                   "trace": traceback.format_exc(limit=-6).replace(f"{ROOT}/", "")})


def isolated(subject: Subject, mutant: Mutant, seconds: float) -> dict[str, Any]:
    """`attempt` in a child that is killed when it does not end."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(sender, subject, mutant, seconds))
    child.start()
    sender.close()
    row: dict[str, Any] = {"verdict": "KILLED", "judged": "", "what": f"no answer in {seconds + GRACE_S} s"}
    try:
        if receiver.poll(seconds + GRACE_S):
            row = receiver.recv()
    except EOFError:
        row = {"verdict": "CRASH", "judged": "", "what": "the child died"}
    child.kill()
    child.join()
    return row


def make(pool: Mapping[str, Subject], seed: int, index: int, name: str | None) -> tuple[Subject, Mutant]:
    """Mutant number `index` of the named subject; without a name the subjects take turns."""
    subject = pool[name or sorted(pool)[index % len(pool)]]
    rng = np.random.default_rng([seed, index])
    return subject, mutate(parse(subject.text, "original.ptx"), subject.kernel, rng)


def table(rows: list[dict[str, Any]]) -> str:
    """The counts as Markdown: verdicts by what the emulator says, by operator, and every suspicious row."""
    verdicts = [v for v in ("PROVED", "REFUTED", "INCONCLUSIVE", "DISAGREEMENT", "CRASH", "KILLED", "INVALID")
                if any(r["verdict"] == v for r in rows)]
    out = [f"# {len(rows)} single mutants", "",
           "Columns: what the emulator saw, on its own search or on replaying the counterexample.", "",
           "| verdict | differs | agrees | not judged | all |", "|---|---|---|---|---|"]
    for v in verdicts:
        c = Counter(r["judged"] for r in rows if r["verdict"] == v)
        out.append(f"| {v} | {c['differs']} | {c['agrees']} | {c[''] + c['unknown']} | {sum(c.values())} |")
    out += ["", "| operator | " + " | ".join(verdicts) + " |", "|---" * (len(verdicts) + 1) + "|"]
    for kind in sorted({r["kind"] for r in rows}):
        c = Counter(r["verdict"] for r in rows if r["kind"] == kind)
        out.append(f"| {kind} | " + " | ".join(str(c[v]) for v in verdicts) + " |")
    out += ["", "| kernel | " + " | ".join(verdicts) + " |", "|---" * (len(verdicts) + 1) + "|"]
    for name in sorted({r["subject"] for r in rows}):
        c = Counter(r["verdict"] for r in rows if r["subject"] == name)
        out.append(f"| {name} | " + " | ".join(str(c[v]) for v in verdicts) + " |")
    bad = [r for r in rows if suspicious(r)]
    out += ["", f"Suspicious: {len(bad)}", ""]
    out += [f"- {r['index']} {r['subject']} line {r['line']}: `{r['before']}` → `{r['after']}`: {r['verdict']}, "
            f"{r['judged']} {r['what']}" for r in bad]
    return "\n".join(out) + "\n"


def suspicious(row: Mapping[str, Any]) -> bool:
    """True for a row that points to a fault of the prover."""
    return row["verdict"] in ("DISAGREEMENT", "CRASH") or (
        (row["verdict"], row["judged"]) in (("PROVED", "differs"), ("REFUTED", "agrees"), ("REFUTED", "unknown")))


def main() -> int:
    """Make, prove and judge mutants; 1 when a row is suspicious."""
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--count", type=int, default=100)
    ap.add_argument("--seed", type=int, default=0)
    ap.add_argument("--seconds", type=float, default=8.0, help="time limit of each proof")
    ap.add_argument("--out", type=Path, default=RESULTS / "mutants.jsonl")
    ap.add_argument("--show", type=int, help="prove this mutant once more and print everything")
    ap.add_argument("--again", help="prove all mutants with this verdict once more, print changes")
    a = ap.parse_args()
    known = [json.loads(line) for line in a.out.read_text("utf-8").splitlines()] if a.out.exists() else []
    rows = {r["index"]: r for r in known if r["seed"] == a.seed}
    if a.show is not None:
        chosen = [a.show]
    elif a.again is not None:
        chosen = [i for i in sorted(rows) if rows[i]["verdict"] == a.again]
    else:
        chosen = [i for i in range(a.count) if i not in rows]
    pool = {s.name: s for s in subjects()} if chosen else {}
    a.out.parent.mkdir(parents=True, exist_ok=True)
    for index in chosen:
        subject, mutant = make(pool, a.seed, index, rows[index]["subject"] if index in rows else None)
        row = {"seed": a.seed, "index": index, "subject": subject.name, "kind": mutant.kind, "line": mutant.line,
               "before": mutant.before, "after": mutant.after, **isolated(subject, mutant, a.seconds)}
        old = rows.get(index, row)
        flag = "!!" if suspicious(row) else "  "
        if a.show is not None:
            print(mutant.text, json.dumps(row, indent=1), sep="\n")
        elif row is old or old["verdict"] != row["verdict"]:
            print(f"{flag} {index} {subject.name} {mutant.kind} {mutant.line}: {mutant.before} -> {mutant.after}: "
                  f"{row['verdict']} {row['judged']} {row['what'][:120]}", flush=True)
        if a.show is None:
            rows[index] = row
            with a.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    ordered = [rows[i] for i in sorted(rows)]
    a.out.with_suffix(".md").write_text(table(ordered), "utf-8")
    return int(any(suspicious(r) for r in ordered))


if __name__ == "__main__":
    sys.exit(main())
