"""The opcode table: one row per instruction form, each with its rule or the reason why it has none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from inspect import isgeneratorfunction
from typing import Any, Final, TypeVar

from warpproof.isa import Form, parse_form

Function = TypeVar("Function", bound=Callable[..., Any])

FAMILIES: Final = (
    "integer", "extended", "logic", "comparison", "floating", "conversion", "movement", "memory", "atomics",
    "synchronisation", "warp", "matrix", "asynchronous", "control", "missing",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One form. Exactly one of `rule`, `control` and `why` (no rule, and the reason) is set."""

    form: Form
    manual: str  # anchor of the section in the PTX ISA manual
    family: str
    rule: Callable[..., Any] | None = None
    effects: bool = False
    control: str = ""
    why: str = ""
    any_suffix: bool = False  # the row stands for every form of its opcode prefix


@dataclass(slots=True)
class Table:
    """Every row, by base opcode, in the order of registration."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    vocabulary: set[str] = field(default_factory=set)

    def add(self, row: Row) -> None:
        """Register a row."""
        self.rows.setdefault(row.form.base, []).append(row)
        self.vocabulary |= row.form.vocabulary

    def __iter__(self) -> Iterator[Row]:
        return (row for rows in self.rows.values() for row in rows)


_TABLE: Final = Table()
_LOADED: Final[set[str]] = set()


def rule(*forms: str, manual: str, **classes: str) -> Callable[[Function], Function]:
    """Register the decorated function as the meaning of `forms`; `classes` are their modifier classes.

    The function takes the domain, the chosen modifiers and the source operands. A plain function computes; a generator
    yields effects and receives their answers.
    """

    def register(function: Function) -> Function:
        family = function.__module__.rpartition(".")[2]
        for text in forms:
            _TABLE.add(Row(parse_form(text, classes), manual, family, function, isgeneratorfunction(function)))
        return function

    return register


def control(kind: str, *forms: str, manual: str, family: str = "control", **classes: str) -> None:
    """Register forms that the machine itself carries out, as control `kind`."""
    for text in forms:
        _TABLE.add(Row(parse_form(text, classes), manual, family, control=kind))


def missing(*forms: str, manual: str, why: str, family: str = "missing", **classes: str) -> None:
    """Register forms without a rule; a form ending in `.*` stands for every instruction that starts so."""
    for text in forms:
        stem = text.removesuffix(".*")
        _TABLE.add(Row(parse_form(stem, classes), manual, family, why=why, any_suffix=stem != text))


def table() -> Table:
    """The whole opcode table (the rule modules are imported on the first call)."""
    if not _LOADED:
        for family in FAMILIES:
            import_module(f"warpproof.semantics.{family}")
        _LOADED.add("all")
    return _TABLE
