"""Predicates and integer polynomials as SMT-LIB text, and entailment and sampling questions over them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from warpproof.algebra import (
    DERIVED,
    Formula,
    LaneFields,
    Undefined,
    conjunction,
    definition,
    distinct_lanes,
    formula,
    lane_classes,
    lane_fields,
    negation,
    pred_polys,
    satisfies,
    split_lanes,
    support,
    vectors,
)
from warpproof.core import Unsupported
from warpproof.solve.smt import SmtAnswer, ask
from warpproof.terms import Arena, BoolVector, Poly, Pred


@dataclass(frozen=True, slots=True)
class Sample:
    """A concrete case: the values of the atoms that are not derived, by id, and a lane."""

    values: Mapping[int, int]
    lane: int


def _integer(k: int) -> str:
    return str(k) if k >= 0 else f"(- {-k})"


def symbol_of(ident: int) -> str:
    """The SMT-LIB constant of an atom (`a7`) or of a lane field (`f0`)."""
    return f"a{ident}" if ident >= 0 else f"f{-1 - ident}"


def poly_text(p: Poly) -> str:
    """A lane-uniform polynomial as an integer term."""
    parts = []
    for m, c in sorted(p.terms.items()):
        if not isinstance(c, int):
            raise Unsupported("SMT-LIB", "a coefficient differs between lanes")
        factors = [_integer(c)] * (c != 1 or not m) + [symbol_of(a) for a in m]
        parts.append(factors[0] if len(factors) == 1 else f"(* {' '.join(factors)})")
    return "0" if not parts else parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"


def formula_text(f: Formula) -> str:
    """A formula without unknown parts as a Boolean term."""
    match f.op:
        case "le":
            return f"(<= {poly_text(f.poly)} 0)"
        case "eq":
            return f"(= {poly_text(f.poly)} 0)"
        case "and" | "or":
            return f"({f.op} {' '.join(formula_text(a) for a in f.args)})"
        case "true" | "false":
            return f.op
        case _:
            raise Unsupported("SMT-LIB", "a predicate without an integer meaning")


def weaken(f: Formula) -> Formula:
    """The formula with unknown parts read as true."""
    match f.op:
        case "unknown":
            return Formula("true")
        case "and":
            return conjunction(weaken(a) for a in f.args)
        case "or":
            return f if f.exact() else Formula("true")
        case _:
            return f


def script(arena: Arena, formulas: Sequence[Formula], fields: LaneFields) -> str:
    """Declarations, ranges, definitions of derived atoms and the formulas, for the lanes of `fields`.

    What has no integer meaning, or differs by lane in another way than the fields, is left out: less is asserted.
    """
    polys = [q for f in formulas for q in f.polys()]
    all_formulas = list(formulas)
    done: set[int] = set()
    while new := [a for a in support(arena, polys) if a >= 0 and a not in done and arena.atoms[a].kind in DERIVED]:
        for a in new:
            done.add(a)
            d = weaken(definition(arena, arena.atoms[a], fields.lanes))
            all_formulas.append(d)
            polys.extend(d.polys())
    atoms = sorted({a for q in polys for a in q.atoms()})
    lines = [f"(declare-const {symbol_of(a)} Int)" for a in (*atoms, *fields.ids())]
    for a in atoms:
        lo, hi = arena.ranges.get(a, (None, None))
        x = symbol_of(a)
        lines += [f"(assert (<= {_integer(lo)} {x}))"] if lo is not None else []
        lines += [f"(assert (<= {x} {_integer(hi)}))"] if hi is not None else []
    for f, r in zip(fields.ids(), fields.radices):
        lines.append(f"(assert (<= 0 {symbol_of(f)} {r - 1}))")
    lines.append(f"(assert (<= {poly_text(fields.position())} {len(fields.lanes) - 1}))")
    for g in all_formulas:
        lines.append(f"(assert {formula_text(weaken(g.map(fields.uniform)))})")
    return "\n".join(lines)


def _views(
    arena: Arena, preds: Sequence[Pred], goals: Sequence[Pred], mask: BoolVector | None
) -> list[LaneFields]:
    """Lane fields that together speak of every lane of the mask on which the masks in `preds` hold."""
    lanes = np.arange(arena.lanes) if mask is None else np.flatnonzero(mask)
    out: list[LaneFields] = []
    classes = lane_classes(arena, preds, support(arena, (), (*preds, *goals)), lanes)
    for part in (sub for c in classes for sub in split_lanes(arena, goals, (), c)):
        every = [q for f in (formula(arena, p, part) for p in (*preds, *goals)) for q in f.polys()]
        atoms = [arena.atoms[a] for a in support(arena, every) if a >= 0]
        every += [q for atom in atoms for q in (*atom.args, *(pred_polys(atom.pred) if atom.pred is not None else ()))]
        found = vectors(every)
        fields = lane_fields(found, part)
        if fields is not None:
            out.append(fields)
            continue
        out.extend(LaneFields(part[part == lane], ()) for lane in distinct_lanes(found, part))
    return out


def entails(
    arena: Arena, hypotheses: Sequence[Pred], goal: Pred, *, mask: BoolVector | None = None, timeout_s: float = 10.0,
    rlimit: int = 0,
) -> SmtAnswer:
    """unsat: the hypotheses imply the goal in every lane; sat: a model of hypotheses without the goal; else unknown.

    Hypotheses without an integer meaning are dropped, so a `sat` may be spurious; an `unsat` is not.
    """
    views = _views(arena, hypotheses, (goal,), mask)
    if len(views) > 64:
        return SmtAnswer("unknown", detail="too many lane patterns")
    for view in views:
        refused = negation(formula(arena, goal, view.lanes))
        if not refused.exact():
            return SmtAnswer("unknown", detail="the goal has no integer meaning")
        given = [weaken(formula(arena, h, view.lanes)) for h in hypotheses]
        found = ask(script(arena, [*given, refused], view), timeout_s=timeout_s, rlimit=rlimit)
        if found.status != "unsat":
            return found
    return SmtAnswer("unsat")


def refute_le(
    arena: Arena, p: Poly, hypotheses: Sequence[Pred] = (), *, mask: BoolVector | None = None, timeout_s: float = 5.0,
) -> Sample | None:
    """A case, with values as small as the search finds, where the hypotheses hold and p ≥ 1.

    The case is evaluated exactly before it is returned; hypotheses without an integer meaning are not checked.
    """
    return sample(arena, [*hypotheses, arena.negate(arena.le(p))], mask=mask, timeout_s=timeout_s)


def sample(
    arena: Arena, preds: Sequence[Pred], *, mask: BoolVector | None = None, timeout_s: float = 5.0,
) -> Sample | None:
    """A case that satisfies the predicates (those with an integer meaning), trying small values first; else None.

    `timeout_s` is for one question to the solver; all of them together end after three times as long.
    """
    began = time.monotonic()
    views = _views(arena, preds, (), mask)[:16]
    base = [a for a in support(arena, (), preds) if arena.atoms[a].kind not in DERIVED]
    for bound in (8, 64, 1024, 1 << 20, None):
        for view in views:
            if time.monotonic() - began > 3 * timeout_s:
                return None
            given = [weaken(formula(arena, h, view.lanes)) for h in preds]
            text = script(arena, given, view)
            if bound is not None:
                text += "".join(
                    f"\n(assert (<= (- {bound}) {symbol_of(a)} {bound}))" for a in base if f"-const a{a} " in text
                )
            found = ask(text, timeout_s=timeout_s)
            if found.status == "sat":
                case = _case(arena, preds, base, found, view)
                if case is not None:
                    return case
    return None


def _case(
    arena: Arena, preds: Sequence[Pred], base: Sequence[int], found: SmtAnswer, view: LaneFields
) -> Sample | None:
    position = sum(found.model.get(symbol_of(f), 0) * s for f, s in zip(view.ids(), view.strides))
    lane = int(view.lanes[position]) if position < len(view.lanes) else -1
    values = {a: found.model.get(symbol_of(a), _default(arena, a)) for a in base}
    try:
        if lane >= 0 and all(satisfies(arena, q, values, lane) is not False for q in preds):
            return Sample(values, lane)
    except Undefined:
        return None
    return None


def _default(arena: Arena, atom: int) -> int:
    lo, hi = arena.ranges.get(atom, (None, None))
    return lo if lo is not None else min(hi, 0) if hi is not None else 0
