"""Signs of real terms: what is evidently positive, non-negative, non-zero or finite."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from warpproof.terms import MINUS_INF, Arena, Real


class Sign(IntEnum):
    """What is known, in order of strength."""

    UNKNOWN = 0
    NONNEGATIVE = 1
    POSITIVE = 2


class Signs:
    """Signs under float facts: `symbols` gives the sign of scalar parameters, and of all elements that buffers hold at
    kernel entry, by name."""

    def __init__(self, arena: Arena, symbols: Mapping[str, Sign]) -> None:
        self.arena, self.symbols = arena, symbols
        self._memo: dict[int, Sign] = {}

    def sign(self, x: Real) -> Sign:
        """The sign of a term; UNKNOWN when not evident."""
        found = self._memo.get(x.id)
        if found is None:
            found = self._memo[x.id] = self._sign(x)
        return found

    def _sign(self, x: Real) -> Sign:
        match x.op:
            case "const":
                return Sign.POSITIVE if x.data > 0 else Sign.NONNEGATIVE if x.data == 0 else Sign.UNKNOWN
            case "int":
                low = self.arena.bounds(x.data)[0]
                return Sign.UNKNOWN if low is None or low < 0 else Sign.POSITIVE if low > 0 else Sign.NONNEGATIVE
            case "symbol":
                return self.symbols.get(x.data, Sign.UNKNOWN)
            case "load":
                access = x.data[0]
                return Sign.UNKNOWN if access.version else self.symbols.get(access.buffer, Sign.UNKNOWN)
            case "ex2":
                return Sign.NONNEGATIVE if x.args[0].ext & MINUS_INF else Sign.POSITIVE
            case "log2e" | "log2e32" | "log2e_low":
                return Sign.POSITIVE
            case "abs":
                return Sign.NONNEGATIVE
            case "sqrt":
                return self.sign(x.args[0])
            case "lg2":
                above_one = x.args[0].op == "const" and x.args[0].data > 1
                return Sign.POSITIVE if above_one else Sign.UNKNOWN
            case "add":
                a, b = (self.sign(y) for y in x.args)
                return Sign.UNKNOWN if Sign.UNKNOWN in (a, b) else max(a, b)
            case "mul":
                if x.args[0] is x.args[1]:
                    return max(Sign.NONNEGATIVE, self.sign(x.args[0]))
                return min(self.sign(y) for y in x.args)
            case "div" | "min":
                return min(self.sign(y) for y in x.args)
            case "max":
                return max(self.sign(y) for y in x.args)
            case "sel":
                return min(self.sign(y) for y in x.args)
            case "gather":
                return self.sign(x.args[0])
            case "red":
                return self.sign(x.args[0])
            case "fold":
                return self._fold(x)
            case _:
                return Sign.UNKNOWN

    def _fold(self, x: Real) -> Sign:
        op, atom = x.data
        body = self.sign(x.args[0])
        if op == "mul":
            return body
        if op == "add":
            inhabited = x.pred is not None and self.arena.inhabited(x.pred, atom)
            return body if inhabited else min(body, Sign.NONNEGATIVE)
        return body if x.pred is not None and self.arena.inhabited(x.pred, atom) else Sign.UNKNOWN
