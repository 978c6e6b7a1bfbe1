"""Entailment between predicates, in every lane: positivity certificates, then Presburger arithmetic, then SMT."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from warpproof.algebra import (
    TRUE,
    Certificate,
    Formula,
    LaneFields,
    affine_parts,
    conjunction,
    definition,
    formula,
    lane_classes,
    prove_le,
    split_lanes,
    support,
    vectors,
)
from warpproof.core import Unsupported
from warpproof.solve.linearise import lifted_atoms
from warpproof.solve.pieces import (
    FIRST_LOCAL,
    definitions_of,
    lane_bounds,
    polys_of,
    ranges,
    rename_atoms,
    weaken,
)
from warpproof.solve.presburger import Names, OutOfBudget, Session, readable, set_text
from warpproof.solve.relations import Answer, Problem, combine
from warpproof.solve.smtlib import entails
from warpproof.terms import Arena, BoolVector, IntVector, Poly, Pred


def implies(
    problem: Problem, hypotheses: Sequence[Pred], predicate: Pred, *, mask: BoolVector | None = None,
    smt_s: float = 0.0,
) -> Answer:
    """The facts and hypotheses imply the predicate in every lane of the mask, for all values of the atoms.

    Hypotheses without an integer meaning are dropped. With `smt_s` > 0 z3 is asked, for that long, when neither a
    certificate nor isl decides.
    """
    arena = problem.arena
    given = (*problem.facts, *hypotheses)
    proofs = _certificates(arena, given, predicate, mask)
    if proofs is not None:
        return Answer(True, {"certificates": proofs})
    found = _by_sets(problem, given, predicate, mask)
    if found.holds is None and smt_s > 0:
        reply = entails(arena, given, predicate, mask=mask, timeout_s=smt_s)
        if reply.status == "unsat":
            return Answer(True, {"solver": "z3 (SMT-LIB)"})
    return found


def _certificates(
    arena: Arena, given: Sequence[Pred], goal: Pred, mask: BoolVector | None
) -> tuple[Certificate, ...] | None:
    """Positivity certificates that together prove the goal: of an `or`, one part when all others are false."""
    match goal.op:
        case "le":
            found = prove_le(arena, goal.data, given, mask=mask)
            return None if found is None else (found,)
        case "eq":
            return _all_of(_certificates(arena, given, arena.le(p), mask) for p in (goal.data, -goal.data))
        case "ne":
            below = prove_le(arena, goal.data + 1, (*given, arena.le(goal.data)), mask=mask)
            return None if below is None else (below,)
        case "and":
            return _all_of(_certificates(arena, given, q, mask) for q in goal.args)
        case "or":
            for q in goal.args:
                rest = [arena.negate(r) for r in goal.args if r is not q]
                if q.op != "lanes" and (some := _certificates(arena, (*given, *rest), q, mask)) is not None:
                    return some
            return None
        case "true":
            return ()
        case _:
            return None


def _all_of(parts: Iterable[tuple[Certificate, ...] | None]) -> tuple[Certificate, ...] | None:
    out: tuple[Certificate, ...] = ()
    for p in parts:
        if p is None:
            return None
        out += p
    return out


def _by_sets(problem: Problem, given: Sequence[Pred], goal: Pred, mask: BoolVector | None) -> Answer:
    arena = problem.arena
    lanes = np.arange(arena.lanes) if mask is None else np.flatnonzero(mask)
    atoms = support(arena, (), (*given, goal))
    answers: list[Answer] = []
    try:
        for part in lane_classes(arena, given, atoms, lanes):
            for sub in split_lanes(arena, (goal,), (), part):
                answers += [_on_lanes(problem, given, goal, f) for f in _fields(arena, (*given, goal), sub)]
    except Unsupported as e:
        return Answer(None, {"why": str(e)})
    except OutOfBudget:
        return Answer(None, {"why": "isl used up its budget"})
    return combine(answers)


def _fields(arena: Arena, preds: Sequence[Pred], lanes: IntVector) -> list[LaneFields]:
    formulas = [formula(arena, p, lanes) for p in preds]
    definitions, _ = definitions_of(arena, polys_of(formulas), lanes)
    return affine_parts(vectors(polys_of((*formulas, *definitions.values()))), lanes)


def _on_lanes(problem: Problem, given: Sequence[Pred], goal: Pred, fields: LaneFields) -> Answer:
    """The set of lanes and parameters that satisfy the hypotheses, less those that satisfy the goal, is empty."""
    arena = problem.arena
    names = Names(arena, frozenset())
    known, wanted = ([formula(arena, p, fields.lanes) for p in preds] for preds in (given, (goal,)))
    lifted = lifted_atoms(arena, polys_of((*known, *wanted)), frozenset())
    known += [definition(arena, arena.atoms[a], fields.lanes) for a in sorted(lifted)]
    sides = [_side(arena, side, fields, names, lifted) for side in (known, wanted)]
    if not sides[1][2]:
        return Answer(None, {"why": "the goal has no exact integer meaning"})
    dims = [names.name(f) for f in fields.ids()]
    facts = names.product_facts(TRUE)
    session = Session(sorted(names.parameters), problem.operations, problem.seconds)
    texts = [
        set_text(dims, exists, [text, names.formula(lane_bounds(fields)), *facts]) for exists, text, _ in sides
    ]
    bad = session.guard(session.read_set(texts[0]).subtract, session.read_set(texts[1]))
    if session.guard(bad.is_empty):
        return Answer(True, {"sets": tuple(texts)})
    point = readable(arena, session.sample(bad))
    sure = sides[0][2] and not names.products
    return Answer(False if sure else None, {"sets": tuple(texts), "candidate": point}, point)


def _side(
    arena: Arena, formulas: list[Formula], fields: LaneFields, names: Names, lifted: frozenset[int]
) -> tuple[list[str], str, bool]:
    """(existentials, constraint, exact) of a conjunction with the definitions and ranges it needs.

    Of `lifted` atoms, which occur in products and are parameters, the definitions are given with the hypotheses.
    """
    definitions, exact = definitions_of(arena, polys_of(formulas), fields.lanes, lifted)
    rename = {a: FIRST_LOCAL - k for k, a in enumerate(definitions)}
    every = conjunction((*formulas, *definitions.values()))
    plain = sorted({a for p in every.polys() for a in p.atoms()} - set(rename))

    def rewrite(p: Poly) -> Poly | None:
        q = fields.uniform(p)
        if q is None:
            return None
        q = rename_atoms(q, rename)
        return None if any(len(m) > 1 and min(m) < 0 for m in q.terms) else q

    whole = conjunction((every, ranges(arena, plain))).map(rewrite)
    exists = [names.name(a) for a in rename.values()]
    return exists, names.formula(weaken(whole)), exact and whole.exact()
