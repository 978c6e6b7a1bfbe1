"""The obligations P0 to P9 of a filter and its policy: proved, refuted with a call, or unknown with the reason.

Unknown is never a pass. Each solver proof of P1 to P4 is confirmed by decision diagrams, unless they grow too large.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final, Literal

from warpproof.core import Unsupported
from warpproof.sandbox import actions
from warpproof.sandbox.bitvectors import Arena, Term
from warpproof.sandbox.closure import Closure, certificate, check_certificate, close, outside
from warpproof.sandbox.decisions import Decision, Disagreement, Symbolic, effective, passes
from warpproof.sandbox.instructions import Program
from warpproof.sandbox.interpreter import Call, run
from warpproof.sandbox.live import Kernel
from warpproof.sandbox.policy import Policy
from warpproof.sandbox.symbolic import result
from warpproof.sandbox.syscalls import by_number, name_of
from warpproof.sandbox.validity import fault

Status = Literal["proved", "refuted", "unknown"]
STATEMENTS: Final = {
    "P0": "the kernel loads the filter",
    "P1": "filter and policy agree on every system call: number, architecture, instruction pointer, arguments",
    "P2": "no call of another architecture, of x32 or of an unknown number is let through",
    "P3": "the decision does not depend on the instruction pointer",
    "P4": "only actions the kernel knows; among those, adding a filter never lets more through",
    "P5": "no resource is closed on one way and open on another",
    "P6": "no rule rests on what a pointer points to",
    "P7": "no capability is reachable that is not permitted",
    "P8": "every recorded need is met, and every rule is needed",
    "P9": "what the kernel holds after loading is what was proved",
}


@dataclass(frozen=True, slots=True)
class Obligation:
    """One obligation's outcome; a witness call where it is refuted by one; how it was decided."""

    id: str
    status: Status
    detail: str = ""
    witness: Call | None = None
    seconds: float = 0.0

    @property
    def statement(self) -> str:
        """What is claimed."""
        return STATEMENTS[self.id]


def prove(policy: Policy, program: Program, layers: Iterable[str] = (), permitted: Iterable[str] = (),
          kernel: Kernel | None = None) -> tuple[Obligation, ...]:
    """All obligations of a filter for its policy; P9 only with a kernel to ask."""
    found = [_timed(loads, program)]
    if found[0].status == "refuted":
        return tuple(found)
    layers, permitted = (*policy.assume, *layers), (*policy.permit, *permitted)
    shared = Symbolic.fresh()  # terms and diagrams of one filter, met again by each question
    steps: list[Callable[[], Obligation]] = [
        lambda: equals_policy(program, policy, shared), lambda: covers_abis([program], shared),
        lambda: ignores_pointer([program], shared), lambda: stacks([program], shared),
    ]
    found += [_timed(step) for step in steps]
    started = time.perf_counter()
    closure = close([program], layers)
    found += [_timed(closed_alike, closure, permitted), _timed(no_pointees, policy)]
    found.append(replace(escapes([program], closure, permitted, shared), seconds=time.perf_counter() - started))
    found.append(_timed(needed, policy, program))
    if kernel is not None:
        found.append(_timed(loaded, program, kernel))
    return tuple(found)


def _timed(step: Callable[..., Obligation], *args: object) -> Obligation:
    started = time.perf_counter()
    made = step(*args)
    return replace(made, seconds=time.perf_counter() - started)


def loads(program: Program) -> Obligation:
    """P0."""
    found = fault(program)
    return Obligation("P0", "refuted", f"instruction {found[0]}: {found[1]}") if found else Obligation("P0", "proved")


def equals_policy(program: Program, policy: Policy, symbolic: Symbolic | None = None) -> Obligation:
    """P1. A witness is evaluated by the interpreter and by the policy, which must differ on it."""
    symbolic = symbolic or Symbolic.fresh()
    arena = symbolic.arena
    want = effective(arena, policy.term(arena, symbolic.words))
    question = arena.negation(arena.compare("=", symbolic.value([program]), want))
    made = _impossible("P1", symbolic, question)
    if made.witness is not None:
        got, want_ = actions.effective(run(program, made.witness)), actions.effective(policy.decide(made.witness))
        if got == want_:
            raise Disagreement(f"filter and policy agree on the witness {made.witness}")
        detail = f"the filter gives {actions.describe(got)}, the policy {actions.describe(want_)}"
        return replace(made, detail=detail)
    return made


def same_filter(first: Sequence[Program], second: Sequence[Program]) -> Obligation:
    """P1 for two filters instead of a filter and a policy."""
    symbolic = Symbolic.fresh()
    arena = symbolic.arena
    differ = arena.negation(arena.compare("=", symbolic.value(first), symbolic.value(second)))
    made = _impossible("P1", symbolic, differ)
    if made.witness is None:
        return made
    one, other = (actions.combine([run(p, made.witness) for p in reversed(fs)]) for fs in (first, second))
    if one == other:
        raise Disagreement(f"the filters agree on the witness {made.witness}")
    return replace(made, detail=f"{actions.describe(one)} against {actions.describe(other)}")


def covers_abis(filters: Sequence[Program], symbolic: Symbolic | None = None) -> Obligation:
    """P2."""
    symbolic = symbolic or Symbolic.fresh()
    arena, open_ = symbolic.arena, symbolic.passes(filters)
    cases = [("a call of another architecture", "foreign"), ("an x32 call", "x32"), ("an unknown number", "new")]
    used = []
    for what, kind in cases:
        made = _impossible("P2", symbolic, arena.both([outside(symbolic, kind), open_]))
        if made.status != "proved":
            return replace(made, detail=f"{what} is let through" if made.witness else made.detail)
        used.append(made.detail)
    return Obligation("P2", "proved", used[0])


def ignores_pointer(filters: Sequence[Program], symbolic: Symbolic | None = None) -> Obligation:
    """P3: two calls that differ only in their instruction pointers get the same."""
    symbolic = symbolic or Symbolic.fresh()
    arena = symbolic.arena
    differ = arena.negation(arena.compare("=", symbolic.value(filters), symbolic.elsewhere().value(filters)))
    return _impossible("P3", symbolic, differ)


def stacks(filters: Sequence[Program], symbolic: Symbolic | None = None) -> Obligation:
    """P4. Both halves matter: beside a filter that returns an unknown action, which alone kills, TRACE would win."""
    lemma = _stacking()
    if lemma.status != "proved":
        return lemma
    symbolic = symbolic or Symbolic.fresh()
    arena = symbolic.arena
    known = [_known(arena, result(arena, program, symbolic.words)) for program in filters]
    made = _impossible("P4", symbolic, arena.negation(arena.both(known)))
    return replace(made, detail="returns an action that the kernel does not know") if made.witness else made


@cache
def _stacking() -> Obligation:
    """Over all values with known actions of two filters: the kernel's choice passes only if both do."""
    symbolic = Symbolic.fresh()
    arena, (first, second) = symbolic.arena, symbolic.words[:2]
    both = arena.both([passes(arena, first), passes(arena, second)])
    widened = arena.both([passes(arena, _stack(arena, [first, second])), arena.negation(both)])
    decision = symbolic.decide(arena.both([_known(arena, first), _known(arena, second), widened]))
    for one in actions.NAMES:  # the choice looks at actions only: 64 pairs are all there are
        for other in actions.NAMES:
            if actions.passes(actions.combine([other, one])) != (actions.passes(one) and actions.passes(other)):
                raise Disagreement(f"{actions.describe(one)} and {actions.describe(other)} do not combine as proved")
    status: Status = "proved" if decision.kind == "impossible" else "unknown"
    return Obligation("P4", status, decision.detail)


def _known(arena: Arena, value: Term) -> Term:
    return arena.either(arena.compare("=", _action(arena, value), arena.number(a)) for a in actions.NAMES)


def _action(arena: Arena, value: Term) -> Term:
    return arena.binary("bvand", value, arena.number(actions.ACTION_MASK))


def _stack(arena: Arena, values: Sequence[Term]) -> Term:
    flip, chosen = arena.number(1 << 31), arena.number(actions.ALLOW)
    for value in reversed(values):
        keys = [arena.binary("bvxor", _action(arena, v), flip) for v in (value, chosen)]
        chosen = arena.choose(arena.compare("bvult", *keys), value, chosen)
    return effective(arena, chosen)


def closed_alike(closure: Closure, permitted: Sequence[str] = ()) -> Obligation:
    """P5: of each capability that is not permitted, all ways are blocked, or none."""
    for fact in closure.reachable:
        gaps = [] if fact in permitted else closure.gaps(fact)
        if gaps:
            ways, names = closure.ways(fact), ", ".join(list(dict.fromkeys(g.name for g in gaps))[:5])
            way = next((w for w in ways if w.gate == "live"), None)
            if way is None:
                return Obligation("P5", "unknown", f"not decided whether {fact} can be reached")
            return Obligation("P5", "refuted", f"{fact}: {way.name} gives what {names} would", way.witness)
    return Obligation("P5", "proved")


def no_pointees(policy: Policy) -> Obligation:
    """P6: no test compares a pointer with anything but 0, and no supervisor decides about a call with pointers."""
    for rule in policy.rules:
        for number in rule.calls:
            pointers = by_number()[number].pointers if number in by_number() else tuple(range(6))
            for test in rule.when:
                if test.argument in pointers and not (test.op in ("==", "!=") and test.value == 0):
                    return Obligation("P6", "refuted", f"{name_of(number)}: {test} compares a pointer; what it points "
                                                       "to can change after the check")
            if pointers and rule.action & actions.ACTION_MASK in (actions.USER_NOTIF, actions.TRACE):
                return Obligation("P6", "refuted", f"{name_of(number)}: a supervisor sees memory that can change after "
                                                   "it decided")
    return Obligation("P6", "proved")


def escapes(filters: Sequence[Program], closure: Closure, permitted: Sequence[str] = (),
            symbolic: Symbolic | None = None) -> Obligation:
    """P7, with the certificate re-checked by decision diagrams."""
    bad = [f for f in closure.reachable if f not in permitted]
    if bad:
        way = next((w for f in bad for w in closure.ways(f) if w.gate == "live" and not w.needs), None)
        if way is None:
            return Obligation("P7", "unknown", f"not decided whether {bad[0]} can be reached")
        return Obligation("P7", "refuted", f"reachable: {', '.join(bad)}", way.witness)
    faults = check_certificate(certificate(filters, closure), symbolic=symbolic)
    if faults and "too large" in faults[0]:
        return Obligation("P7", "unknown", faults[0])
    if faults:
        raise Disagreement(f"the certificate does not hold: {faults[0]}")
    blocked = sum(c.gate == "blocked" for c in closure.crossings)
    return Obligation("P7", "proved", f"{blocked} transitions blocked; certificate re-checked")


def needed(policy: Policy, program: Program) -> Obligation:
    """P8: each need gets its action; without any one call of any one rule some need does not."""
    for need in policy.needs:
        got = actions.effective(run(program, need.call))
        if got != actions.effective(need.gets):
            detail = f"{name_of(need.call.nr)} is needed and gets {actions.describe(got)}"
            return Obligation("P8", "refuted", detail, need.call)
    for at, rule in enumerate(policy.rules):
        for number in rule.calls:
            rest = tuple(n for n in rule.calls if n != number)
            rules = (*policy.rules[:at], replace(rule, calls=rest), *policy.rules[at + 1:])
            less = replace(policy, rules=rules)
            if all(less.decide(n.call) == policy.decide(n.call) for n in policy.needs):
                return Obligation("P8", "refuted", f"no recorded need of {name_of(number)} in the rule {rule.why!r}")
    return Obligation("P8", "proved", f"{len(policy.needs)} needs")


def loaded(program: Program, kernel: Kernel) -> Obligation:
    """P9: installed in a process of its own and read back by PTRACE_SECCOMP_GET_FILTER."""
    try:
        state = kernel.read_back([program])
    except Unsupported as error:
        return Obligation("P9", "unknown", str(error))
    if state.filters != (program,):
        return Obligation("P9", "refuted", f"the kernel holds {len(state.filters)} filters, or other bytes")
    if not state.no_new_privs or state.mode != "2":
        return Obligation("P9", "refuted", f"no_new_privs {state.no_new_privs}, seccomp mode {state.mode}")
    return Obligation("P9", "proved", "read back byte for byte")


def _impossible(which: str, symbolic: Symbolic, question: Term) -> Obligation:
    decision = symbolic.decide(question)
    if decision.kind == "unknown":
        return Obligation(which, "unknown", decision.detail)
    if decision.kind == "possible":
        return Obligation(which, "refuted", "", decision.witness)
    return Obligation(which, "proved", _confirmed(symbolic, question, decision))


def _confirmed(symbolic: Symbolic, question: Term, decision: Decision) -> str:
    again = symbolic.confirm(question)
    if again.kind == "possible":
        raise Disagreement(f"{decision.detail} finds no such call, the diagram finds {again.witness}")
    return f"{decision.detail}, confirmed by diagram" if again.kind == "impossible" else f"{decision.detail} only"
