"""Concrete values of integer polynomials and predicates: the oracle for counterexamples and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from warpproof.terms import Arena, Poly, Pred

_MAX_TRIPS: Final = 1 << 16


class Undefined(Exception):
    """A value is not determined: an atom without a value, a quotient by a number ≤ 0, a loop that does not end."""


def evaluate(arena: Arena, p: Poly, values: Mapping[int, int], lane: int) -> int:
    """The value of a polynomial in one lane, given the atoms that are not derived (`values` by atom id)."""
    total = 0
    for m, c in p.terms.items():
        term = c if isinstance(c, int) else int(c[lane])
        for a in m:
            if not term:
                break
            term *= _atom(arena, a, values, lane)
        total += term
    return total


def _atom(arena: Arena, ident: int, values: Mapping[int, int], lane: int) -> int:
    if ident in values:
        return values[ident]
    atom = arena.atoms[ident]
    match atom.kind:
        case "div":
            b = evaluate(arena, atom.args[1], values, lane)
            if b <= 0:
                raise Undefined(f"quotient by {b}")
            return evaluate(arena, atom.args[0], values, lane) // b
        case "min":
            return min(evaluate(arena, a, values, lane) for a in atom.args)
        case "max":
            return max(evaluate(arena, a, values, lane) for a in atom.args)
        case "phi" if atom.pred is not None:
            chosen = satisfies(arena, atom.pred, values, lane)
            if chosen is None:
                raise Undefined(f"the choice of {atom.name or 'phi'}")
            return evaluate(arena, atom.args[0 if chosen else 1], values, lane)
        case "trip":
            for n in range(1, _MAX_TRIPS):
                if evaluate(arena, atom.args[0], {**values, atom.tag: n - 1}, lane) > 0:
                    return n
            raise Undefined("a loop of many iterations")
        case _:
            raise Undefined(f"{atom.kind} {atom.name}")


def satisfies(arena: Arena, p: Pred, values: Mapping[int, int], lane: int) -> bool | None:
    """The truth value of a predicate in one lane, None when it has no integer meaning."""
    match p.op:
        case "true":
            return True
        case "false":
            return False
        case "le":
            return evaluate(arena, p.data, values, lane) <= 0
        case "eq":
            return evaluate(arena, p.data, values, lane) == 0
        case "ne":
            return evaluate(arena, p.data, values, lane) != 0
        case "lanes":
            return bool(p.data[lane])
        case "not":
            inner = satisfies(arena, p.args[0], values, lane)
            return None if inner is None else not inner
        case "and" | "or":
            found = [satisfies(arena, q, values, lane) for q in p.args]
            decisive = p.op == "or"
            return decisive if decisive in found else None if None in found else not decisive
        case "dom":
            i = _atom(arena, p.data[0], values, lane)
            if i <= 0:
                return i == 0
            return evaluate(arena, p.data[1], {**values, p.data[0]: i - 1}, lane) <= 0
        case _:
            return None
