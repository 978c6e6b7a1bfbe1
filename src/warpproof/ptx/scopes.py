"""Declared names: nested scopes, register ranges (PTX ISA 9.x, section 5.4.6), unique names for what is shadowed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from warpproof.ptx.kernel import RegisterType
from warpproof.ptx.syntax import Register, Symbol, Vector

MAX_RANGE: Final = 1_000_000
COMPONENTS: Final[dict[str, str]] = {"x": "x", "y": "y", "z": "z", "w": "w", "r": "x", "g": "y", "b": "z", "a": "w"}
_SPECIAL: Final = re.compile(
    r"%(?:n?tid|n?ctaid|n?clusterid|cluster_n?ctaid)(?:\.[xyzw])?|%(?:laneid|n?warpid|n?smid|gridid|is_explicit_cluster"
    r"|cluster_n?ctarank|lanemask_(?:eq|le|lt|ge|gt)|clock(?:_hi|64)?|pm[0-7](?:_64)?|envreg(?:[12]?\d|3[01])"
    r"|globaltimer(?:_lo|_hi)?|reserved_smem_offset_(?:begin|end|cap|[01])|(?:total|aggr|dynamic)_smem_size"
    r"|current_graph_exec)", re.ASCII)
_TYPE: Final = re.compile(r"([a-z]+?|e\dm\d)(\d+)?(?:x(\d))?", re.ASCII)
_DIGITS: Final = 7  # of the largest index


def is_special(name: str) -> bool:
    """Whether the name is a special register (chapter 10)."""
    return _SPECIAL.fullmatch(name) is not None


def register_type(text: str) -> RegisterType:
    """The register type of a type name: `b32`, `f16x2`, `pred`."""
    match = _TYPE.fullmatch(text)
    if match is None or match[2] is None:
        return RegisterType(text, 1 if text == "pred" else 64)
    lanes = int(match[3] or 1)
    return RegisterType(match[1], int(match[2]) * lanes, lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Registers:
    """One declared register name, or range of names; identity tells declarations apart."""

    type: RegisterType
    vector: int
    count: int | None


@dataclass(slots=True)
class Scope:
    """The names declared so far in one block, and the blocks around it."""

    parent: Scope | None
    things: dict[str, object] = field(default_factory=dict)  # single names
    ranges: dict[str, Registers] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)  # name to unique name
    lowest: dict[str, int] = field(default_factory=dict)  # prefix to the smallest index taken by a single name
    cache: dict[str, Register | Symbol | Vector] = field(default_factory=dict)  # what names mean in operands

    def declare(self, name: str, thing: object) -> bool:
        """Add a name; False if the scope has it already."""
        if self.own(name) is not None:
            return False
        self.things[name] = thing
        self._reserve(name)
        self.cache.clear()
        return True

    def declare_range(self, prefix: str, registers: Registers) -> bool:
        """Add `prefix0` … ; False if the scope has one of them already."""
        count = registers.count or 0
        if prefix in self.ranges or self.lowest.get(prefix, count) < count or self.own(prefix + "0") is not None:
            return False
        self.ranges[prefix] = registers
        self._reserve(prefix + "0")
        self.cache.clear()
        return True

    def _reserve(self, name: str) -> None:
        for prefix, index in _splits(name):
            self.lowest[prefix] = min(index, self.lowest.get(prefix, index))

    def own(self, name: str) -> object | None:
        """What the name means in this scope itself."""
        found = self.things.get(name)
        if found is None and self.ranges:
            for prefix, index in _splits(name):
                registers = self.ranges.get(prefix)
                if registers is not None and index < (registers.count or 0):
                    return registers
        return found

    def find(self, name: str) -> object | None:
        """What the name means here: the innermost declaration that precedes."""
        scope: Scope | None = self
        while scope is not None:
            found = scope.own(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def find_label(self, name: str) -> str | None:
        """The unique name of the label that is visible here."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None

    def known(self) -> list[str]:
        """Some visible names, for hints."""
        out: list[str] = []
        scope: Scope | None = self
        while scope is not None and len(out) < 1000:
            out += [*scope.things, *scope.labels, *(f"{p}0" for p in scope.ranges)]
            scope = scope.parent
        return out[:1000]


def _splits(name: str) -> Iterator[tuple[str, int]]:
    """Every reading of the name as prefix and index: `r12` as (`r`, 12) and (`r1`, 2)."""
    for size in range(1, min(_DIGITS, len(name) - 1) + 1):
        digit = name[-size]
        if not "0" <= digit <= "9":
            return
        if digit != "0" or size == 1:
            yield name[:-size], int(name[-size:])


@dataclass(slots=True)
class Names:
    """Unique names: each (declaration, name) keeps the one it got first; `copies` counts variables from `name<n>`."""

    taken: set[str] = field(default_factory=set)
    given: dict[tuple[Registers, str], str] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    copies: int = 0

    def fresh(self, name: str) -> str:
        """`name`, or `name@1`, `name@2`, … when it is taken."""
        unique = name
        while unique in self.taken:
            self.versions[name] = self.versions.get(name, 0) + 1
            unique = f"{name}@{self.versions[name]}"
        self.taken.add(unique)
        return unique

    def of(self, declaration: Registers, name: str) -> str:
        """The unique name of `name` as declared by `declaration`."""
        key = (declaration, name)
        unique = self.given.get(key)
        if unique is None:
            unique = self.given[key] = self.fresh(name)
        return unique
