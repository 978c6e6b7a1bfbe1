"""Everything that can be said about given filters: the obligations, what they let through, each witness tried live."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from warpproof.core import InputError, Unsupported
from warpproof.sandbox import actions
from warpproof.sandbox.closure import Closure, Crossing, close
from warpproof.sandbox.decisions import Disagreement
from warpproof.sandbox.instructions import Program
from warpproof.sandbox.interpreter import Call, run
from warpproof.sandbox.live import Kernel
from warpproof.sandbox.obligations import (
    Obligation,
    closed_alike,
    covers_abis,
    equals_policy,
    escapes,
    ignores_pointer,
    loaded,
    needed,
    no_pointees,
    stacks,
)
from warpproof.sandbox.policy import Policy
from warpproof.sandbox.syscalls import I386, NATIVE
from warpproof.sandbox.transition_table import transitions
from warpproof.sandbox.validity import check


@dataclass(frozen=True, slots=True)
class Passage:
    """A capability that the filters let a process reach, and the transitions that give it."""

    fact: str
    meaning: str
    permitted: bool
    ways: tuple[Crossing, ...]


@dataclass(frozen=True, slots=True)
class Inspection:
    """The outcome for filters (oldest first): obligations, passages worst first, witnesses the kernel confirmed."""

    instructions: int
    obligations: tuple[Obligation, ...]
    passages: tuple[Passage, ...]
    closure: Closure
    confirmed: int
    notes: tuple[str, ...]

    @property
    def exit_code(self) -> int:
        """0 all proved, 1 something refuted, 3 something unknown and nothing refuted."""
        statuses = {o.status for o in self.obligations}
        return 1 if "refuted" in statuses else 3 if "unknown" in statuses else 0


def inspect(filters: Sequence[Program], policy: Policy | None = None, layers: Collection[str] = (),
            permitted: Collection[str] = (), kernel: Kernel | None = None, installed: bool = False) -> Inspection:
    """The inspection; with a policy also P1, P6 and P8, with a kernel P9 (unless `installed`) and live replays.

    Disagreement if the kernel or an evaluation contradicts an answer; InputError for filters the kernel refuses.
    """
    for program in filters:
        check(program)
    if policy is not None:
        layers, permitted = (*policy.assume, *layers), (*policy.permit, *permitted)
    for name in permitted:
        if name not in transitions().facts:
            raise InputError("BOX611", f"no capability {name!r}", hint=f"one of {', '.join(transitions().facts)}")
    closure = close(filters, layers)
    allowed = tuple(permitted)
    found = [Obligation("P0", "proved")]
    if policy is not None and len(filters) == 1:
        found.append(equals_policy(filters[0], policy))
    found += [covers_abis(filters), ignores_pointer(filters), stacks(filters), closed_alike(closure, allowed)]
    if policy is not None:
        found.append(no_pointees(policy))
    found.append(escapes(filters, closure, allowed))
    if policy is not None and policy.needs and len(filters) == 1:
        found.append(needed(policy, filters[0]))
    notes = list(policy.notes) if policy else []
    if kernel is not None and not installed and len(filters) == 1:
        found.append(loaded(filters[0], kernel))
        if found[-1].status == "unknown":  # a matter of this machine's rights, not of the filter
            notes.append(f"P9 was not checked: {found.pop().detail}")
    facts = transitions().facts
    passages = tuple(Passage(f, facts[f], f in allowed, closure.ways(f)) for f in closure.reachable)
    calls = [w.witness for p in passages for w in p.ways if w.witness] + [o.witness for o in found if o.witness]
    confirmed = 0
    if kernel is not None and calls:
        confirmed, why = replay(kernel, filters, calls)
        notes += why
    obligations = tuple(_with_abi(found, allowed))
    return Inspection(sum(map(len, filters)), obligations, passages, closure, confirmed, tuple(notes))


def _with_abi(found: Sequence[Obligation], permitted: Sequence[str]) -> list[Obligation]:
    """P2 is about the facts `abi` and `unknown`: what is permitted of them refutes nothing."""
    if {"abi", "unknown"} <= set(permitted):
        return [replace(o, status="proved", detail="permitted") if o.id == "P2" else o for o in found]
    return list(found)


def replay(kernel: Kernel, filters: Sequence[Program], calls: Sequence[Call]) -> tuple[int, list[str]]:
    """How many of the calls the kernel was shown and treated as the interpreter says, and why others were not shown."""
    known = all(run(p, c) & actions.ACTION_MASK in actions.NAMES for p in filters for c in calls)
    usable = [c for c in dict.fromkeys(calls) if c.arch in (NATIVE, I386) and not _wide_foreign(c)]
    if not known:
        return 0, ["witnesses were not tried: the filter returns actions that the kernel does not know"]
    notes = [] if len(usable) == len(set(calls)) else ["some witnesses cannot be made on this machine"]
    shown = 0
    try:
        rest = usable
        while rest:
            seen = kernel.observe(filters, rest)
            done = next((i for i, s in enumerate(seen) if s is not None and s.kind == "killed"), len(seen) - 1) + 1
            for call, what in zip(rest[:done], seen[:done], strict=True):
                value = actions.combine([run(p, call) for p in reversed(filters)])
                if what is None or not what.agrees(value):
                    raise Disagreement(f"the kernel does {what} on {call}, the filter says {actions.describe(value)}")
                shown += 1
            rest = rest[done:]
    except Unsupported as error:
        notes.append(f"witnesses were not tried: {error.why}")
    return shown, notes


def _wide_foreign(call: Call) -> bool:
    """i386 calls have 32-bit arguments."""
    return call.arch == I386 and any(a >> 32 for a in call.args)
