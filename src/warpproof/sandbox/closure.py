"""What a process confined by filters can reach: the least set of capabilities closed under the live transitions.

A transition is live if some arguments that fulfil its condition pass the filters, decided for all arguments from the
filters' bytes. The set is the certificate: an inductive invariant, with every transition out of it blocked.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from warpproof.core import InputError
from warpproof.sandbox.bitvectors import Term
from warpproof.sandbox.decisions import Decision, Symbolic
from warpproof.sandbox.diagrams import TooLarge
from warpproof.sandbox.instructions import Program, decode, encode
from warpproof.sandbox.interpreter import Call
from warpproof.sandbox.syscalls import I386, NATIVE, X32_BIT, name_of, unassigned
from warpproof.sandbox.transition_table import Edge, Transitions, transitions
from warpproof.sandbox.validity import check

Gate = Literal["blocked", "live", "unknown", "assumed"]
# Transitions that are not one call's: their conditions on number and architecture are in `outside`.
OUTSIDE: Final = (("foreign", "abi"), ("x32", "abi"), ("new", "unknown"))


@dataclass(frozen=True, slots=True)
class Crossing:
    """A transition with what the filters make of it; a witness where it is live."""

    name: str
    gains: str
    needs: str
    gate: Gate
    witness: Call | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Closure:
    """The facts that can be reached, worst first, and every transition. Unknown transitions count as live."""

    reachable: tuple[str, ...]
    crossings: tuple[Crossing, ...]
    layers: tuple[str, ...]
    initial: tuple[str, ...]

    def ways(self, fact: str) -> tuple[Crossing, ...]:
        """The open transitions that give the fact, their own needs reachable."""
        return tuple(c for c in self.crossings if c.gains == fact and c.gate in ("live", "unknown")
                     and (not c.needs or c.needs in self.reachable))

    def gaps(self, fact: str) -> tuple[Crossing, ...]:
        """The transitions to a reachable fact that are blocked to no avail, since another gives it."""
        return tuple(c for c in self.crossings if c.gains == fact and c.gate == "blocked") if self.ways(fact) else ()


def close(filters: Sequence[Program], layers: Iterable[str] = (), initial: Iterable[str] = (),
          table: Transitions | None = None) -> Closure:
    """The closure for the filters (oldest first) under the layers that are assumed to be in force."""
    table = table or transitions()
    assumed, start = tuple(sorted(set(layers))), tuple(sorted(set(initial)))
    for given, known in ((assumed, table.layers), (start, table.facts)):
        for name in given:
            if name not in known:
                raise InputError("BOX611", f"{name!r} is not known here", hint=f"one of {', '.join(known)}")
    crossings = [*_outside(filters), *_inside(filters, assumed, table)]
    reached = set(start)
    while new := {c.gains for c in crossings if c.gate in ("live", "unknown")
                  and (not c.needs or c.needs in reached)} - reached:
        reached |= new
    return Closure(tuple(f for f in table.facts if f in reached), tuple(crossings), assumed, start)


def outside(symbolic: Symbolic, kind: str) -> Term:
    """The calls that the table does not cover: of other architectures, of x32, of numbers it does not know."""
    arena, (number, arch) = symbolic.arena, symbolic.words[:2]
    native = arena.compare("=", arch, arena.number(NATIVE))
    wide = arena.compare("bvule", arena.number(X32_BIT), number)
    match kind:
        case "foreign":
            return arena.negation(native)
        case "x32":
            return arena.both([native, wide])
        case _:
            ranges = (arena.both([arena.compare("bvule", arena.number(first), number),
                                  arena.compare("bvule", number, arena.number(last))]) for first, last in unassigned())
            return arena.both([native, arena.either(ranges)])


def _outside(filters: Sequence[Program]) -> list[Crossing]:
    symbolic = Symbolic.fresh()
    open_ = symbolic.passes(filters)
    found = []
    i386 = symbolic.arena.compare("=", symbolic.words[1], symbolic.arena.number(I386))
    for kind, fact in OUTSIDE:
        question = symbolic.arena.both([outside(symbolic, kind), open_])
        decision = Decision("impossible")
        if kind == "foreign":  # preferred, since it can be tried
            decision = symbolic.decide(symbolic.arena.both([question, i386]))
        if decision.kind != "possible":
            decision = symbolic.decide(question)
        found.append(Crossing(kind, fact, "", _gate(decision), decision.witness))
    return found


def _inside(filters: Sequence[Program], layers: Sequence[str], table: Transitions) -> Iterable[Crossing]:
    symbolic = Symbolic.fresh()
    arena, opened = symbolic.arena, dict[int, Term]()
    answers: dict[Term, Decision] = {}
    for edge in table.edges:
        if edge.unless in layers:
            yield _crossing(edge, "assumed", None)
            continue
        at = symbolic.at(edge.number, NATIVE)
        if edge.number not in opened:
            opened[edge.number] = at.passes(filters)
        question = arena.both([opened[edge.number], *(t.term(arena, at.words) for t in edge.when)])
        if question not in answers:
            answers[question] = symbolic.decide(question)
        decision = answers[question]
        witness = decision.witness and Call(edge.number, NATIVE, decision.witness.args, decision.witness.ip)
        yield _crossing(edge, _gate(decision), witness)


def _crossing(edge: Edge, gate: Gate, witness: Call | None) -> Crossing:
    return Crossing(name_of(edge.number), edge.gains, edge.needs, gate, witness, edge.why)


def _gate(decision: Decision) -> Gate:
    return {"impossible": "blocked", "possible": "live", "unknown": "unknown"}[decision.kind]  # type: ignore[return-value]


def certificate(filters: Sequence[Program], closure: Closure, table: Transitions | None = None) -> dict[str, Any]:
    """The closure as data that `check_certificate` re-checks from the filters' bytes."""
    table = table or transitions()
    code = [encode(p) for p in filters]
    return {"schema": 1, "filters": [c.hex() for c in code], "sha256": hashlib.sha256(b"".join(code)).hexdigest(),
            "table": table.digest, "layers": list(closure.layers), "initial": list(closure.initial),
            "invariant": list(closure.reachable)}


def check_certificate(data: Mapping[str, Any], table: Transitions | None = None,
                      symbolic: Symbolic | None = None) -> list[str]:
    """Why the certificate does not hold; empty if it does. `symbolic` may hold terms and diagrams of the same filters.

    Independent of how the closure was found: the invariant holds the initial facts, and each transition of the table
    that would leave it is blocked, by decision diagrams over the filters' bytes, without the SMT solver.
    """
    table = table or transitions()
    filters = [check(decode(bytes.fromhex(text))) for text in data["filters"]]
    invariant, layers = set(data["invariant"]), set(data["layers"])
    faults = [f"the initial fact {f} is not in the invariant" for f in data["initial"] if f not in invariant]
    if hashlib.sha256(b"".join(encode(p) for p in filters)).hexdigest() != data["sha256"]:
        faults.append("the filters are not those of the digest")
    if data["table"] != table.digest:
        faults.append("the certificate is for another table of transitions")
    faults += [f"unknown layer {name}" for name in sorted(layers - set(table.layers))]
    symbolic = symbolic or Symbolic.fresh()
    diagrams = symbolic.diagrams
    try:
        open_ = diagrams.build(symbolic.passes(filters))
        for name, gains, condition in _leaving(symbolic, invariant, layers, table):
            if diagrams.choose(open_, diagrams.build(condition), 0):
                faults.append(f"{name} gives {gains}, which is not in the invariant")
    except TooLarge:
        faults.append("the decision diagram is too large to check")
    return faults


def _leaving(symbolic: Symbolic, invariant: set[str], layers: set[str],
             table: Transitions) -> Iterable[tuple[str, str, Term]]:
    """The transitions from facts of the invariant to facts that are not in it, with their conditions."""
    arena = symbolic.arena
    for kind, fact in OUTSIDE:
        if fact not in invariant:
            yield kind, fact, outside(symbolic, kind)
    for edge in table.edges:
        if edge.gains in invariant or edge.unless in layers or (edge.needs and edge.needs not in invariant):
            continue
        fixed = ((0, edge.number), (1, NATIVE))
        parts = [arena.compare("=", symbolic.words[at], arena.number(value)) for at, value in fixed]
        parts += [t.term(arena, symbolic.words) for t in edge.when]
        yield name_of(edge.number), edge.gains, arena.both(parts)


def blocked_script(data: Mapping[str, Any], table: Transitions | None = None) -> str:
    """SMT-LIB for any solver: one `check-sat` for each transition out of the invariant; all must answer unsat."""
    table = table or transitions()
    filters = [check(decode(bytes.fromhex(text))) for text in data["filters"]]
    symbolic = Symbolic.fresh()
    arena = symbolic.arena
    open_ = symbolic.passes(filters)
    leaving = list(_leaving(symbolic, set(data["invariant"]), set(data["layers"]), table))
    lines = ["(set-logic QF_BV)", *arena.definitions((open_, *(c for _, _, c in leaving)))]
    for name, gains, condition in leaving:
        lines += [f"(push 1) ; {name}: {gains}", f"(assert {arena.reference(open_)})",
                  f"(assert {arena.reference(condition)})", "(check-sat)", "(pop 1)"]
    return "\n".join([*lines, ""])
