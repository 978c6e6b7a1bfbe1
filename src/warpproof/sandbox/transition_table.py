"""The table of kernel transitions: which calls give a confined process which capability."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from warpproof.core import InputError
from warpproof.sandbox.policy import Test, parse_test
from warpproof.sandbox.syscalls import number_of, table


@dataclass(frozen=True, slots=True)
class Edge:
    """Whoever holds `needs` (if any) and makes the call with arguments that pass all tests holds `gains`."""

    number: int
    gains: str
    when: tuple[Test, ...] = ()
    needs: str = ""
    unless: str = ""
    why: str = ""

    @property
    def conditional(self) -> bool:
        """Whether the call does not give the fact by itself."""
        return bool(self.when or self.needs or self.unless)


@dataclass(frozen=True, slots=True)
class Transitions:
    """`facts` worst first with their meaning, `layers` with theirs, all edges, and every other call's class."""

    facts: Mapping[str, str]
    layers: Mapping[str, str]
    edges: tuple[Edge, ...]
    harmless: Mapping[int, str]
    absent: frozenset[int]
    digest: str

    def class_of(self, number: int) -> str:
        """How the call is classified; "" for one that is not."""
        if number in self.absent:
            return "absent"
        gains = list(dict.fromkeys(e.gains for e in self.edges if e.number == number))
        return ", ".join([*gains, *([self.harmless[number]] if number in self.harmless else [])])


@cache
def transitions() -> Transitions:
    """The shipped table, checked: every call of `syscalls.txt` is classified."""
    text = files("warpproof.sandbox").joinpath("transitions.toml").read_text("utf-8")
    return read_transitions(text)


def read_transitions(text: str) -> Transitions:
    """The table a text writes; BOX610 if it is inconsistent or leaves a call out."""
    data: dict[str, Any] = tomllib.loads(text)
    edges = tuple(edge for entry in data["edge"] for edge in _edges(entry))
    harmless = {number_of(name): group for group, names in data["harmless"].items() for name in names.split()}
    absent = frozenset(number_of(name) for name in data["absent"]["calls"].split())
    made = Transitions(data["facts"], data["layers"], edges, harmless, absent,
                       hashlib.sha256(text.encode()).hexdigest())
    faults = _faults(made, sum(len(names.split()) for names in data["harmless"].values()))
    if faults:
        raise InputError("BOX610", "the table of kernel transitions is inconsistent: " + "; ".join(faults[:5]))
    return made


def _edges(entry: Mapping[str, Any]) -> Sequence[Edge]:
    unknown = set(entry) - {"calls", "gains", "when", "needs", "unless", "why"}
    if unknown:
        raise InputError("BOX610", f"unknown field {sorted(unknown)[0]!r} in the table of kernel transitions")
    tests = tuple(parse_test(t) for t in entry.get("when", ()))
    needs, unless, why = (str(entry.get(key, "")) for key in ("needs", "unless", "why"))
    return [Edge(number_of(name), gained, tests, needs, unless, why)
            for name in entry["calls"].split() for gained in entry["gains"].split()]


def _faults(made: Transitions, listed: int) -> list[str]:
    found = [f"{e.gains} is no fact" for e in made.edges if e.gains not in made.facts]
    found += [f"{e.needs} is no fact" for e in made.edges if e.needs and e.needs not in made.facts]
    found += [f"{e.unless} is no layer" for e in made.edges if e.unless and e.unless not in made.layers]
    if listed != len(made.harmless):
        found.append("a call is in two harmless groups")
    by_number: dict[int, list[Edge]] = {}
    for edge in made.edges:
        by_number.setdefault(edge.number, []).append(edge)
    for call in table().values():
        edges = by_number.get(call.number, [])
        inert, absent = call.number in made.harmless, call.number in made.absent
        if not edges and not inert and not absent:
            found.append(f"{call.name} is not classified")
        if absent and (edges or inert):
            found.append(f"{call.name} is absent and something else")
        if edges and all(e.when or e.needs for e in edges) and not inert:
            found.append(f"{call.name} has only conditional edges and no class otherwise")
        if inert and any(not e.conditional for e in edges):
            found.append(f"{call.name} is harmless and has an unconditional edge")
    return found
