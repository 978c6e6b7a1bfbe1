"""Cores of protocols: a few threads with their fences, barriers and strong accesses, given to the memory model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from warpproof.core import Claim, InputError, Status, Unsupported
from warpproof.machine import SymbolicMachine, SyncEvent, Trace
from warpproof.solve import Facts
from warpproof.sync import evaluate, find_repair, read_litmus
from warpproof.terms import Arena, Pred

_LIMIT_S: Final = 10.0
_REPAIR_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Core:
    """A litmus test: per thread its CTA and instructions, and the outcome that must not happen."""

    threads: tuple[tuple[int, tuple[str, ...]], ...]
    outcome: str

    def text(self) -> str:
        """In the notation of litmus files."""
        rows = max(len(body) for _, body in self.threads)
        heads = [f"P{k}@cta {cta},gpu 0" for k, (cta, _) in enumerate(self.threads)]
        lines = [" | ".join(heads) + " ;"]
        for r in range(rows):
            lines.append(" | ".join(body[r] if r < len(body) else "" for _, body in self.threads) + " ;")
        return "\n".join(["PTX core", "{ d=0; f=0; s=0; }", *lines, f"~exists ({self.outcome})"])


class Cores:
    """What protocols of one trace have in common: lanes, plain paths, and the steps that a lane surely takes."""

    def __init__(self, arena: Arena, facts: Facts, trace: Trace, machine: SymbolicMachine) -> None:
        self.arena, self.facts, self.trace, self.machine = arena, facts, trace, machine

    def lanes(self, path: Pred) -> list[int]:
        mask = self.facts.mask(path)
        return list(range(self.arena.lanes)) if mask is None else [int(t) for t in np.flatnonzero(mask)]

    def plain(self, path: Pred) -> Pred:
        return self.arena.conj(p for p in self.arena.conjuncts(path) if self.arena.mask_of(p) is None)

    def shared(self, path: Pred) -> Pred:
        """What the path of one thread says of all threads of its CTA: a condition that differs by lane says nothing."""
        return self.arena.conj(p for p in self.arena.conjuncts(path) if self.arena.mask_of(p) is None and p.uniform)

    def steps(self, events: Sequence[SyncEvent], lane: int, context: Pred) -> tuple[str, ...]:
        """The fences and barriers that this lane surely executes; `context` is what holds in this lane."""
        found = []
        for e in events:
            if e.kind in ("fence", "barrier") and not e.loops and lane in self.lanes(e.path) and (
                    self.arena.implies(context, self.plain(e.path))):
                found.append("bar.sync 0" if e.kind == "barrier" else f"fence.{e.semantics}.{e.scope}")
        return tuple(found)

    def open(self, text: str, instruction: int, hint: str) -> Claim:
        return Claim("races", text, Status.OPEN, place=self.machine.where(instruction), hint=hint)


def operation(e: SyncEvent, register: str) -> str:
    how = e.semantics if e.semantics in ("volatile", "mmio") else f"{e.semantics}.{e.scope}"
    match e.kind:
        case "ticket":
            return f"red.{how}.add f, 1" if e.how == "red" else f"atom.{how}.add {register}, f, 1"
        case "poll" | "turn":
            return f"ld.{how} {register}, f"
        case "lock":
            return f"atom.{how}.cas {register}, f, 1, 2"
        case _ if e.how == "exch":
            return f"atom.{how}.exch {register}, f, 1"
        case _ if e.how == "add":
            return f"red.{how}.add f, 1"
        case _:
            return f"st.{how} f, 1"


@lru_cache(maxsize=256)
def verdict(text: str) -> str:
    """Empty when no execution has the outcome or a race; else what is wrong and what would repair it."""
    try:
        test = read_litmus(text, "protocol core")
        result = evaluate(test, limit_s=_LIMIT_S)
        if result.answer.allowed or result.race is not None:
            return f"{_failure(result.answer.allowed)}{_repair(test)}"
    except (InputError, Unsupported) as stuck:
        return str(stuck) or "the core cannot be read as a litmus test"
    if not result.answer.conclusive or result.race_bounded:
        return "the memory model was explored up to a bound only"
    return ""


def _failure(stale: bool) -> str:
    return "an execution exists in which the old value is read" if stale else "the store and the load race"


def _repair(test: object) -> str:
    try:
        found = find_repair(test, limit_s=_REPAIR_S)  # type: ignore[arg-type]
    except (InputError, Unsupported):
        return ""
    if found is None:
        return ""
    edits = [f"put `{e.after}` before `{e.before}`" if e.inserts else f"`{e.before}` -> `{e.after}`"
             for e in found.edits]
    return f"; weakest repair of the core: {', '.join(edits)}"
