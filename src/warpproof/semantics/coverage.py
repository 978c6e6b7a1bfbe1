"""Which instruction forms have a rule, and how much of a body of PTX they make up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from warpproof.semantics.binding import candidates, reason_without_rule
from warpproof.semantics.registry import Row, table


@dataclass(frozen=True, slots=True)
class Coverage:
    """One form of the table: whether it has a meaning (`why` is empty) and how often it was seen."""

    form: str
    family: str
    manual: str
    why: str
    count: int


def coverage(opcode_counts: Mapping[str, int]) -> tuple[Coverage, ...]:
    """A row per form in table order, then one per opcode that is no known form; counts add up to the input's.

    Rows of one text are joined. An opcode counts for the first form whose modifiers it makes.
    """
    counts: dict[tuple[str, str, str, str], int] = {}
    for row in table():
        counts.setdefault(_key(row, row.why), 0)
    for opcode, count in opcode_counts.items():
        found = next(candidates(opcode), None)
        key = (opcode, "unknown", "", "no form of the table") if found is None else _key(
            found[0], reason_without_rule(*found))  # fmt: skip
        counts[key] = counts.get(key, 0) + count
    return tuple(Coverage(*key, count) for key, count in counts.items())


def _key(row: Row, why: str) -> tuple[str, str, str, str]:
    return row.form.text + (".*" if row.any_suffix else ""), row.family, row.manual, why


def covered_share(rows: Iterable[Coverage]) -> float:
    """The share of counted instructions whose form has a meaning (1.0 when nothing was counted)."""
    listed = list(rows)
    total = sum(row.count for row in listed)
    return sum(row.count for row in listed if not row.why) / total if total else 1.0
