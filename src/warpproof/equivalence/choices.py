"""Truth values and chosen integers as choices between reals, so that both sides of a comparison write them alike."""

from __future__ import annotations

from warpproof.algebra import limits
from warpproof.terms import Arena, Poly, Pred, Real, TermMap

_DEPTH = 6


def as_choice(arena: Arena, x: Real) -> Real:
    """x with integers that are chosen by a condition (`p ? 1 : 0` in a register) written as choices."""
    mapping = TermMap(arena, lambda i: None, lambda y: _chosen(arena, y.data, _DEPTH) if y.op == "int" else None,
                      lambda p: None)
    return mapping.real(x)


def _chosen(arena: Arena, p: Poly, depth: int) -> Real | None:
    """The choice that an integer is, None when no atom of it is chosen."""
    atom = next((a for a in sorted(p.atoms()) if arena.atoms[a].kind == "phi"), None)
    found = arena.atoms[atom].pred if atom is not None else None
    if atom is None or found is None or not depth:
        return None
    sides = (arena.substitute_poly(p, {atom: q}) for q in arena.atoms[atom].args)
    a, b = (_chosen(arena, q, depth - 1) or arena.of_int(q) for q in sides)
    return arena.sel(found, a, b)


def as_extremum(arena: Arena, op: str, x: Real) -> Real:
    """`0 < F ? 1 : 0` for an extremum F of truth values as max(0, F), or min(1, F): an empty one is −∞, or ∞."""
    truth = x.op == "sel" and x.pred is not None and x.args == (arena.one, arena.zero)
    if not truth or op not in ("max", "min"):
        return x
    fold = _positive(arena, x.pred)
    if fold is None or fold.op != "fold" or fold.data[0] != op or limits(arena, fold.args[0]) != (0, 1):
        return x
    return arena.combine(op, arena.zero if op == "max" else arena.one, fold)


def _positive(arena: Arena, p: Pred | None) -> Real | None:
    """F when the condition is 0 < F."""
    return p.reals[1] if p is not None and p.op == "fcmp" and p.data == "lt" and p.reals[0] is arena.zero else None
