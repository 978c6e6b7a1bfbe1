"""Values as the next iteration of a loop sees them: simplified by the condition that there is a next iteration."""

from __future__ import annotations

from typing import Any

from warpproof.core import Unsupported
from warpproof.domains import Choice, Float, Int, Pack, Part, Reals, Undef
from warpproof.terms import Arena, Poly, Pred, Real, TermMap


class Upcoming:
    """Simplification under `go`. Inside cross-lane terms only a condition equal in all lanes may be used."""

    def __init__(self, dom: Reals, go: Pred) -> None:
        self.dom, self.arena, self.go = dom, dom.arena, go
        self._map = TermMap(self.arena, lambda i: None, self._leaf, self._decided)

    def _leaf(self, x: Real) -> Real | None:
        return x if x.op in ("gather", "red") and not self.go.uniform else None

    def _decided(self, p: Pred) -> Pred | None:
        if p.op == "and":
            return None
        if self.arena.implies(self.go, p):
            return self.arena.true
        if self.arena.implies(self.go, self.arena.negate(p)):
            return self.arena.false
        return None

    def poly(self, p: Poly) -> Poly:
        """An integer."""
        return self._map.poly(p)

    def real(self, x: Real) -> Real:
        """A term."""
        return x if self.go.op == "true" else self._map.real(x)

    def value(self, v: Any) -> Any:
        """A register value or predicate."""
        if self.go.op == "true":
            return v
        match v:
            case Pred():
                return self._map.pred(v)
            case Float(kind, width, node):
                return Float(kind, width, self._map.real(node))
            case Int(width, poly, known):
                return Int(width, self._map.poly(poly), known)
            case Pack(width, parts):
                return Pack(width, tuple(self.value(p) for p in parts))
            case Choice(_, pred, a, b):
                return self.dom.merge(self._map.pred(pred), self.value(a), self.value(b))
            case Part(width, whole, place):
                return Part(width, self.value(whole), place)
            case Undef():
                return v
        return v


def free_atoms(arena: Arena, v: Any) -> frozenset[int]:
    """Loop, state and index atoms that a register value or predicate depends on, inside quotients and choices too."""
    match v:
        case Float(_, _, node):
            return node.free
        case Pred():
            return v.free
        case Pack(_, parts):
            return frozenset(a for p in parts for a in free_atoms(arena, p))
        case Part(_, whole, _):
            return free_atoms(arena, whole)
        case Int(_, poly):
            return arena.poly_free(poly)
        case Choice(_, pred, a, b):
            return pred.free | free_atoms(arena, a) | free_atoms(arena, b)
        case Undef() | None:
            return frozenset()
        case _:
            raise Unsupported("value", f"what a {type(v).__name__} depends on")


def moved(dom: Reals, mapping: TermMap, v: Any) -> Any:
    """The image of a register value or predicate."""
    match v:
        case Pred():
            return mapping.pred(v)
        case Float(kind, width, node):
            return Float(kind, width, mapping.real(node))
        case Int(width, poly):
            return Int(width, mapping.poly(poly))
        case Pack(width, parts):
            return Pack(width, tuple(moved(dom, mapping, p) for p in parts))
        case Choice(_, pred, a, b):
            return dom.merge(mapping.pred(pred), moved(dom, mapping, a), moved(dom, mapping, b))
        case Part(width, whole, place):
            return Part(width, moved(dom, mapping, whole), place)
    return v
