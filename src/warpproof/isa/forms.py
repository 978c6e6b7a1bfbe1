"""Instruction forms in the PTX manual's own notation, parsed and matched against written opcodes.

`setp.cmp{.bool}{.ftz}.f32 p[|q], a, b` reads as in the manual: braces are optional, a word such as `.cmp` is a class
whose members are given beside the form or in `CLASSES`, any other word stands for itself. Operands take suffixes that
the manual leaves to its prose: `b:u32` (a type other than the form's), `d:wide` (twice the form's width), `a*` (a
vector of as many elements as written), `a*4` (of four), `{, c}` (optional), `[a]` (an address), `p|q` (a destination
pair), `p[|q]` (a pair or its first part). An operand named like an optional modifier is written if and only if that is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from warpproof.isa.types import ScalarType, is_type, scalar

CLASSES: Final[Mapping[str, str]] = {
    "rnd": "rn rz rm rp",
    "cmp": "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan",
    "bool": "and or xor",
    "scope": "cta cluster gpu sys",
    "vec": "v2 v4 v8",
    "hint": "L2::cache_hint",
    "prefetch_size": "L2::64B L2::128B L2::256B",
    "evict1": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
    "evict2": "L2::evict_normal L2::evict_first L2::evict_last",
    "shared": "shared shared::cta",
}


@dataclass(frozen=True, slots=True)
class Modifier:
    """One dotted part of a form: its class (or itself), what may be written there, and the optional group it is in."""

    name: str
    choices: tuple[str, ...]
    group: int = 0  # 0 = mandatory; parts of one optional group stand or fall together


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand position of a form. `vector` is -1 for `*`, the count for `*n`, 0 for a scalar."""

    name: str
    type: str = ""  # "", "wide", a class of the form, or a type name
    address: bool = False
    optional: bool = False
    vector: int = 0
    pair: str = ""  # "", "may", "must"

    @property
    def destination(self) -> bool:
        """True for the operand the instruction writes: by convention the one named `d` or `p`."""
        return self.name in ("d", "p") and not self.address


@dataclass(frozen=True, slots=True)
class Form:
    """One instruction form: base opcode, modifiers in the manual's order, operands in order."""

    text: str
    base: str
    modifiers: tuple[Modifier, ...]
    operands: tuple[Operand, ...]
    vocabulary: frozenset[str] = field(compare=False)

    def match(self, written: tuple[str, ...]) -> dict[str, str] | None:
        """The chosen modifiers (class or literal → word as written), or None when the words do not make this form.

        Like ptxas, the words may come in any order, except that type words keep the form's order.
        """
        chosen: dict[str, str] = {}
        types = 0  # parts before this one are closed to type words
        for word in written:
            typed = is_type(word)
            for at in range(types if typed else 0, len(self.modifiers)):
                part = self.modifiers[at]
                if part.name not in chosen and word in part.choices:
                    chosen[part.name] = word
                    types = at + 1 if typed else types
                    break
            else:
                return None
        groups: dict[int, set[bool]] = {}
        for part in self.modifiers:
            groups.setdefault(part.group, set()).add(part.name in chosen)
        if groups.pop(0, {True}) != {True} or any(len(seen) > 1 for seen in groups.values()):
            return None
        return chosen

    def written_operands(self, chosen: Mapping[str, str]) -> tuple[Operand, ...]:
        """The operand positions under the chosen modifiers: those named like a modifier are mandatory or absent."""
        tied = {part.name for part in self.modifiers if part.group}
        return tuple(
            replace(o, optional=False) if o.name in tied else o
            for o in self.operands if o.name not in tied or o.name in chosen
        )  # fmt: skip

    def default_type(self, chosen: Mapping[str, str]) -> ScalarType | None:
        """The type of operands without one of their own: class `type`, else the last type word of the form."""
        names = [chosen["type"]] if "type" in chosen else [w for w in chosen.values() if is_type(w)]
        return scalar(names[-1]) if names else None


_PART: Final = re.compile(r"\.([A-Za-z0-9_:]+)")
_OPERAND: Final = re.compile(
    r"(?P<opt>\{,\s*)?(?P<addr>\[)?(?P<name>[a-z_]\w*)(?P<may>\[\|\w+\])?(?P<must>\|\w+)?(?:\])?"
    r"(?P<vec>\*\d*)?(?::(?P<type>\w+))?\s*\}?\s*,?\s*"
)


def parse_form(text: str, classes: Mapping[str, str] | None = None) -> Form:
    """The form written as `text`, with `classes` (name → members) added to the common ones."""
    table = {**CLASSES, **(classes or {})}
    opcode, _, rest = text.partition(" ")
    base = re.match(r"\w+", opcode)
    if base is None:
        raise ValueError(f"form without opcode: {text}")
    parts: list[Modifier] = []
    group = 0
    for piece in re.findall(r"\{[^}]*\}|[^{}]+", opcode[base.end() :]):
        group += piece.startswith("{")
        for name in _PART.findall(piece):
            choices = tuple(table.get(name, name).split())
            parts.append(Modifier(name, choices, group if piece.startswith("{") else 0))
    return Form(
        text, base.group(), tuple(parts), _operands(text, rest.strip()),
        frozenset(w for part in parts for w in part.choices),
    )  # fmt: skip


def _operands(text: str, rest: str) -> tuple[Operand, ...]:
    out: list[Operand] = []
    at = 0
    while at < len(rest):
        found = _OPERAND.match(rest, at)
        if found is None or found.end() == at:
            raise ValueError(f"operand notation of {text!r} at {rest[at:]!r}")
        at = found.end()
        star = found["vec"]
        vector = 0 if not star else -1 if star == "*" else int(star[1:])
        pair = "may" if found["may"] else "must" if found["must"] else ""
        out.append(Operand(found["name"], found["type"] or "", bool(found["addr"]), bool(found["opt"]), vector, pair))
    return tuple(out)
