"""Expressions of launch files and preconditions over size symbols: polynomials, predicates and real nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from warpproof.core import InputError, Unsupported
from warpproof.terms import Arena, Poly, Pred, Real, const

if TYPE_CHECKING:
    from warpproof.reference.symbolic import SymbolicBuffer


class SymbolicAlgebra:
    """Expressions as polynomials, predicates and real nodes. `divisors` collects polynomials that must be positive."""

    def __init__(
        self, arena: Arena, values: Mapping[str, Poly | Real], buffers: Mapping[str, SymbolicBuffer] | None = None,
    ) -> None:
        self.arena, self.values, self.buffers = arena, values, buffers or {}

    def constant(self, value: int | Fraction) -> Poly | Real:
        """A literal."""
        return const(value) if isinstance(value, int) else self.arena.rational(value)

    def name(self, name: str) -> Poly | Real:
        """The symbol of a size, scalar or index."""
        if name not in self.values:
            raise InputError("REF206", f"unknown name {name!r}", hint="list its sample values under sizes")
        return self.values[name]

    def real(self, v: Poly | Real | Pred) -> Real:
        """A number as a real."""
        if isinstance(v, Poly):
            return self.arena.of_int(v)
        if isinstance(v, Real):
            return v
        return self.arena.sel(v, self.arena.one, self.arena.zero)

    def binary(self, op: str, a: Any, b: Any) -> Poly | Real:
        """`a op b`; integers stay exact."""
        if isinstance(a, Pred) or isinstance(b, Pred):
            raise InputError("REF205", f"a comparison is used as an operand of {op}")
        if op == "**":
            return self._power(a, b)
        if isinstance(a, Poly) and isinstance(b, Poly) and op != "/":
            return self._integer(op, a, b)
        x, y, A = self.real(a), self.real(b), self.arena
        match op:
            case "+":
                return A.add(x, y)
            case "-":
                return A.sub(x, y)
            case "*":
                return A.mul(x, y)
            case "/":
                return A.div(x, y)
            case _:
                raise Unsupported(f"float {op} in a launch expression", "no rule over the reals")

    def _integer(self, op: str, a: Poly, b: Poly) -> Poly:
        match op:
            case "+":
                return a + b
            case "-":
                return a - b
            case "*":
                return a * b
        lo = self.arena.bounds(b)[0]
        if lo is None or lo < 1:
            raise InputError("REF241", f"the right operand of {op} may be zero or negative for admitted sizes",
                             hint="add a precondition such as \"d >= 1\" for every size that is divided by")
        return self.arena.floor_div(a, b) if op == "//" else self.arena.mod(a, b)

    def _power(self, a: Any, b: Any) -> Poly | Real:
        k = b.as_int() if isinstance(b, Poly) else None
        base = a.as_int() if isinstance(a, Poly) else None
        if k is None or k < 0 or k > 512 or (k > 16 and (base is None or abs(base).bit_length() * k > 512)):
            raise InputError("REF207", "exponents must be integer constants: up to 16, or up to 512 bits of result")
        out: Poly | Real = const(1)
        for _ in range(k):
            out = self.binary("*", out, a)
        return out

    def compare(self, op: str, a: Any, b: Any) -> Pred:
        """A comparison of integers or reals."""
        A = self.arena
        if isinstance(a, Pred) or isinstance(b, Pred):
            raise InputError("REF205", f"a comparison is used as an operand of {op}")
        if isinstance(a, Poly) and isinstance(b, Poly):
            match op:
                case "<":
                    return A.lt(a, b)
                case "<=":
                    return A.le(a - b)
                case ">":
                    return A.lt(b, a)
                case ">=":
                    return A.le(b - a)
                case "==":
                    return A.eq(a - b)
                case _:
                    return A.ne(a - b)
        x, y = self.real(a), self.real(b)
        match op:
            case "<" | "<=":
                return A.fcmp("lt" if op == "<" else "le", x, y)
            case ">" | ">=":
                return A.fcmp("lt" if op == ">" else "le", y, x)
            case _:
                return A.fcmp("eq" if op == "==" else "ne", x, y)

    def logical(self, op: str, parts: Sequence[Any]) -> Pred:
        """`and`, `or`, `not`."""
        ps = [self.truth(p) for p in parts]
        if op == "not":
            return self.arena.negate(ps[0])
        return self.arena.conj(ps) if op == "and" else self.arena.disj(ps)

    def truth(self, v: Any) -> Pred:
        """A value as a condition: non-zero is true."""
        if isinstance(v, Pred):
            return v
        return self.arena.ne(v) if isinstance(v, Poly) else self.arena.fcmp("ne", self.real(v), self.arena.zero)

    def extremum(self, kind: str, parts: Sequence[Any]) -> Poly | Real:
        """`min` or `max`."""
        if all(isinstance(p, Poly) for p in parts):
            return self.arena.extremum(kind, parts)
        out = self.real(parts[0])
        for p in parts[1:]:
            out = self.arena.combine(kind, out, self.real(p))
        return out

    def subscript(self, buffer: str, index: Sequence[Any]) -> Poly | Real:
        """An element of a buffer at kernel entry."""
        found = self.buffers.get(buffer)
        if found is None or len(found.shape) != len(index) or any(not isinstance(i, Poly) for i in index):
            raise InputError("REF206", f"{buffer!r} is no buffer of rank {len(index)} with integer indices")
        return found.element(self.arena, index)

    def total(self, lo: Any, hi: Any, body: Callable[[Any], Any]) -> Real:
        """A sum as a fold."""
        if not isinstance(lo, Poly) or not isinstance(hi, Poly):
            raise InputError("REF205", "the range of a sum must be an integer range")
        A = self.arena
        v = A.fresh("index", "s")
        j = A.variable(v)
        domain = A.conj((A.le(lo - j), A.lt(j, hi)))
        return A.fold("add", v.id, domain, self.real(body(j)))
