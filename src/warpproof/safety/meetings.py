"""Warps that meet at named barriers in loops: the findings of the first run as claims, and that the second is the same.

Loads from shared memory were answered in the second run by the stores that the first one found. As these stores, and
everything that orders them, are shown to be the same in both runs, the answers are right for the run that is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from warpproof.core import Claim, Status, Unsupported
from warpproof.domains import Float, Reals, Value
from warpproof.machine import Meeting, SymbolicMachine, Trace, moved
from warpproof.solve import Facts, Finding, Problem, Rendezvous
from warpproof.terms import TermMap


def rehearsed(facts: Facts, before: SymbolicMachine, machine: SymbolicMachine) -> tuple[Finding, ...]:
    """What a run of `before` shows of meetings in loops, if there are any; `machine` is given the sources of loads."""
    try:
        trace = before.run()
        return _found(facts, trace, before, machine) if trace.meetings else ()
    except Unsupported:
        machine.current = before.current
        raise


def _found(facts: Facts, trace: Trace, before: SymbolicMachine, machine: SymbolicMachine) -> tuple[Finding, ...]:
    found = Rendezvous(Problem(machine.arena, facts.launch), trace.meetings, before.streams.sides)
    findings = tuple(found.findings(_valid(trace.meetings, machine)))
    machine.streams.survey = tuple(trace.meetings)
    machine.streams.sources = found.sources if all(f.shown for f in findings) else {}
    return findings


def meeting_claims(findings: Sequence[Finding], trace: Trace, machine: SymbolicMachine) -> list[Claim]:
    """The findings, and that the run that is judged passes the same meetings."""
    place = machine.where(trace.meetings[0].instruction) if trace.meetings else ""
    claims = [Claim(f.property, f.text, Status.SHOWN if f.shown else Status.OPEN, "integer-sets" if f.shown else "",
                    place, hint=f.hint) for f in findings]
    text = "what warps pass on at named barriers does not depend on what they were passed"
    same = _same(machine.dom, machine.streams.survey, trace.meetings)
    claims.append(Claim("races", text, Status.SHOWN if same else Status.OPEN, "two runs" if same else "",
                        hint="" if same else "the second run stores other values, or meets elsewhere"))
    return claims


def _valid(meetings: Sequence[Meeting], machine: SymbolicMachine) -> Any:
    """The cells, of the size of these accesses, that lie in shared variables."""
    size = next((e.size for e in meetings if e.kind in ("put", "get")), machine.shared.unit)
    inside = machine.spacing.inside(1)
    whole = inside[: len(inside) // size * size].reshape(-1, size)
    return np.asarray(whole.all(axis=1))


def _same(dom: Reals, first: Sequence[Meeting], second: Sequence[Meeting]) -> bool:
    """Both runs have the same meetings, but for the names of their loops."""
    if len(first) != len(second):
        return False
    loops: dict[int, int] = {}
    for a, b in zip(first, second):
        if len(a.loops) != len(b.loops) or any(loops.setdefault(i, j) != j for i, j in zip(a.loops, b.loops)):
            return False
    arena = dom.arena
    mapping = arena.substitution({i: arena.variable(arena.atoms[j]) for i, j in loops.items()})
    return all(_alike(dom, mapping, a, b) for a, b in zip(first, second))


def _alike(dom: Reals, mapping: TermMap, a: Meeting, b: Meeting) -> bool:
    if (a.kind, a.side, a.size, a.instruction) != (b.kind, b.side, b.size, b.instruction):
        return False
    if mapping.poly(a.place) != b.place or mapping.pred(a.path) is not b.path:
        return False
    return a.kind != "put" or _equal(dom, mapping, a.value, b.value)


def _equal(dom: Reals, mapping: TermMap, x: Value | None, y: Value | None) -> bool:
    if isinstance(x, Float) and isinstance(y, Float):
        return (x.kind, x.width) == (y.kind, y.width) and mapping.real(x.node) is y.node
    return x is not None and moved(dom, mapping, x) == y
