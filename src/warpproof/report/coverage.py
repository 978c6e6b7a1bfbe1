"""The page that says which PTX instruction forms have a meaning here: `python -m warpproof.report.coverage PATH…`.

Counts the instructions of the PTX files under the paths (directories, `.ptx` files, tar archives of them).
"""

from __future__ import annotations

import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from warpproof import ptx
from warpproof.ptx import syntax
from warpproof.semantics import Coverage, coverage, covered_share

_INTRO = """# Instruction coverage

Made by `python -m warpproof.report.coverage tests/corpus`. Forms are written as in the PTX ISA manual; suffixes after
an operand (`:u32`, `:wide`, `*`) say what the manual leaves to its prose. An instruction of a form without a rule makes
a run INCONCLUSIVE, never a pass. A form with a rule can still meet operands that an analysis does not support.
"""


def texts(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """(name, text) of every PTX file under the paths."""
    for path in paths:
        if path.is_dir():
            yield from texts(sorted(p for p in path.rglob("*") if p.suffix == ".ptx" or ".tar" in p.suffixes))
        elif ".tar" in path.suffixes:
            with tarfile.open(path) as archive:
                for member in archive:
                    data = archive.extractfile(member)
                    if data is not None and member.name.endswith(".ptx"):
                        yield f"{path.name}/{member.name}", data.read().decode("latin-1")
        else:
            yield str(path), path.read_text("latin-1")


def count_opcodes(sources: Iterable[tuple[str, str]]) -> tuple[Counter[str], int]:
    """How often each opcode is written, and in how many files."""
    counts: Counter[str] = Counter()
    files = 0
    for name, text in sources:
        files += 1
        for item in ptx.parse(text, name).items:
            if isinstance(item, syntax.Function) and item.body is not None:
                counts.update(instruction.opcode for instruction in _instructions(item.body.statements))
    return counts, files


def _instructions(statements: Iterable[syntax.Statement]) -> Iterator[syntax.Instruction]:
    for statement in statements:
        match statement:
            case syntax.Instruction():
                yield statement
            case syntax.Block(inner):
                yield from _instructions(inner)
            case _:
                pass


def render(rows: Sequence[Coverage], files: int) -> str:
    """The page in Markdown."""
    total = sum(row.count for row in rows)
    ruled = [row for row in rows if not row.why]
    lines = [
        _INTRO,
        f"{len(ruled)} forms have a rule, {len(rows) - len(ruled)} have none.",
        f"Of {total} instructions in {files} files, {100 * covered_share(rows):.2f} % have a rule.",
        *_table("Without a rule", "reason: forms", _by_reason(row for row in rows if row.why)),
    ]
    for family in dict.fromkeys(row.family for row in ruled):
        mine = [row for row in ruled if row.family == family]
        title = f"{family.capitalize()} ({sum(row.count for row in mine)} instructions)"
        lines += _table(title, "form", [(row.count, f"`{_cell(row.form)}`") for row in mine])
    return "\n".join(lines) + "\n"


def _by_reason(rows: Iterable[Coverage]) -> list[tuple[int, str]]:
    groups: dict[str, list[Coverage]] = {}
    for row in rows:
        groups.setdefault(row.why, []).append(row)
    out = []
    for why, group in groups.items():
        forms = " · ".join(dict.fromkeys(f"`{_cell(row.form)}`" for row in group))
        out.append((sum(row.count for row in group), f"{why}: {forms}"))
    return sorted(out, key=lambda entry: -entry[0])


def _table(title: str, heading: str, entries: Iterable[tuple[int, str]]) -> list[str]:
    rows = [f"| {count} | {text} |" for count, text in entries]
    return ["", f"## {title}", "", f"| instructions | {heading} |", "|---:|---|", *rows]


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main(arguments: Sequence[str]) -> int:
    """Print the page for the paths."""
    counts, files = count_opcodes(texts(Path(a) for a in arguments))
    if not files:
        print("no PTX files under the given paths", file=sys.stderr)
        return 2
    print(render(coverage(counts), files), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
