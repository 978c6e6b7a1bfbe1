"""What a verdict rests on beyond the proof: named assumptions, with the places that used them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Assumption:
    """One assumption: a stable name, the sentence it stands for, and where it comes from."""

    name: str
    text: str
    source: str


@dataclass(slots=True)
class Ledger:
    """The assumptions a run has used, in order of first use, each with the places that triggered it."""

    used: dict[str, tuple[Assumption, list[str]]] = field(default_factory=dict)

    def use(self, name: str, text: str, source: str, where: str = "") -> None:
        """Record that the run relies on the assumption `name`."""
        _, places = self.used.setdefault(name, (Assumption(name, text, source), []))
        if where and where not in places and len(places) < 8:
            places.append(where)

    def items(self) -> list[tuple[Assumption, tuple[str, ...]]]:
        """Every assumption with its places."""
        return [(a, tuple(p)) for a, p in self.used.values()]
