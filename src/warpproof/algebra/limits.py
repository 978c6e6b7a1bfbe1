"""Bounds on integer-valued real terms: sums and extrema of integers of known range."""

from __future__ import annotations

from warpproof.terms import Arena, Pred, Real


def limits(arena: Arena, x: Real) -> tuple[int | None, int | None]:
    """Bounds on an integer-valued term; None where none is evident."""
    match x.op:
        case "int":
            return arena.bounds(x.data)
        case "const" if x.data.denominator == 1:
            return int(x.data), int(x.data)
        case "add":
            return _sum([limits(arena, y) for y in x.args])
        case "sel" | "max" | "min":
            each = [limits(arena, y) for y in x.args]
            return _least([e[0] for e in each]), _greatest([e[1] for e in each])
        case "fold" if x.data[0] in ("max", "min") and x.pred is not None and arena.inhabited(x.pred, x.data[1]):
            return limits(arena, x.args[0])
        case "fold" if x.data[0] == "add" and x.pred is not None:
            count, (low, high) = _count(arena, x.pred, x.data[1]), limits(arena, x.args[0])
            if count is None or low is None or high is None:
                return None, None
            return min(low, 0) * count, max(high, 0) * count
        case _:
            return None, None


def _count(arena: Arena, domain: Pred, atom: int) -> int | None:
    """The most values that a bound variable takes."""
    parts = [p.data for p in arena.conjuncts(domain) if p.op == "le"]
    lows = [p for p in parts if p.split(atom)[0].as_int() == -1]
    highs = [p for p in parts if p.split(atom)[0].as_int() == 1]
    tops = [arena.bounds(1 - (lo.split(atom)[1] + hi.split(atom)[1]))[1] for lo in lows for hi in highs]
    known = [t for t in tops if t is not None]
    return max(min(known), 0) if known else None


def _sum(each: list[tuple[int | None, int | None]]) -> tuple[int | None, int | None]:
    low, high = [e[0] for e in each], [e[1] for e in each]
    return (None if None in low else sum(v for v in low if v is not None),
            None if None in high else sum(v for v in high if v is not None))


def _least(values: list[int | None]) -> int | None:
    return None if None in values else min(v for v in values if v is not None)


def _greatest(values: list[int | None]) -> int | None:
    return None if None in values else max(v for v in values if v is not None)
