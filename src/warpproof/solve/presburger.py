"""Parametric integer sets in isl, from text, under a deterministic limit on operations and a wall-time guard."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import islpy as isl

from warpproof.algebra import Formula
from warpproof.core import Unsupported, check_time
from warpproof.solve.linearise import FIRST_OUTPUT
from warpproof.terms import Arena, Monomial, Poly

DEFAULT_OPERATIONS: Final = 1_500_000
_MEMO_LIMIT: Final = 4096
_PREFERRED: Final = (8, 64, 1024, None)


class OutOfBudget(Exception):
    """isl has used up its operations or the time is over; no statement is made."""


@dataclass(slots=True)
class Names:
    """How unknowns are written, and the parameters that occur; `products` are the relaxed products of parameters."""

    arena: Arena
    dims: frozenset[int]
    parameters: set[str] = field(default_factory=set)
    products: dict[str, Monomial] = field(default_factory=dict)

    def name(self, ident: int) -> str:
        """The isl name of an unknown."""
        if ident <= FIRST_OUTPUT:
            return f"j{FIRST_OUTPUT - ident}"
        if ident < 0:
            return f"v{-ident}"
        if ident in self.dims:
            return f"d{ident}"
        self.parameters.add(f"p{ident}")
        return f"p{ident}"

    def monomial(self, m: Monomial) -> str:
        """The name of a monomial of degree ≥ 1; a product of parameters is a parameter of its own."""
        if len(m) == 1:
            return self.name(m[0])
        if any(a < 0 or a in self.dims for a in m):
            raise Unsupported("integer sets", "a product of dimensions")
        text = "m_" + "_".join(map(str, m))
        self.products[text] = m
        self.parameters.add(text)
        return text

    def poly(self, p: Poly) -> str:
        """An affine expression."""
        parts = [f"{c}*{self.monomial(m)}" if m else str(c) for m, c in sorted(p.terms.items())]
        return " + ".join(parts).replace("+ -", "- ") or "0"

    def formula(self, f: Formula) -> str:
        """A formula without unknown parts."""
        match f.op:
            case "le":
                return f"{self.poly(f.poly)} <= 0"
            case "eq":
                return f"{self.poly(f.poly)} = 0"
            case "and" | "or":
                return "(" + f" {f.op} ".join(self.formula(a) for a in f.args) + ")"
            case "true":
                return "0 = 0"
            case "false":
                return "1 = 0"
            case _:
                raise Unsupported("integer sets", "a predicate without an integer meaning")

    def product_facts(self, context: Formula) -> list[str]:
        """Linear consequences of what is known about the factors of the relaxed products."""
        low = self._lows(context)
        out: list[str] = []
        for text, m in sorted(self.products.items()):
            if not all(low.get(a, -1) >= 0 for a in m):
                continue
            out.append(f"{math.prod(low[a] for a in m)} <= {text}")
            for k, a in enumerate(m):
                rest = m[:k] + m[k + 1 :]
                if len(rest) == 1 or "m_" + "_".join(map(str, rest)) in self.products:
                    out.append(f"{text} >= {low[a]}*{self.monomial(rest)}")
        return out

    def _lows(self, context: Formula) -> dict[int, int]:
        """Lower bounds of parameters: their ranges, and comparisons on one of them in the context."""
        factors = {a for m in self.products.values() for a in m}
        out = {a: r[0] for a in sorted(factors) if (r := self.arena.ranges.get(a)) and r[0] is not None}
        for g in context.args if context.op == "and" else (context,):
            unknowns = [m for m in g.poly.terms if m]
            if g.op == "le" and len(unknowns) == 1 and len(unknowns[0]) == 1 and g.poly.terms[unknowns[0]] == -1:
                a = unknowns[0][0]
                out[a] = max(out.get(a, int(g.poly.constant)), int(g.poly.constant))
        return out


def set_text(dims: Sequence[str], exists: Sequence[str], constraints: Iterable[str]) -> str:
    """`{ [dims] : exists … : constraints }` without the parameters."""
    inner = " and ".join(constraints) or "0 = 0"
    quantifier = f"exists {', '.join(exists)} : " if exists else ""
    return f"{{ [{', '.join(dims)}] : {quantifier}({inner}) }}"


def map_text(source: Sequence[str], target: Sequence[str], exists: Sequence[str], constraints: Iterable[str]) -> str:
    """`{ [source] -> [target] : exists … : constraints }` without the parameters."""
    inner = " and ".join(constraints) or "0 = 0"
    quantifier = f"exists {', '.join(exists)} : " if exists else ""
    return f"{{ [{', '.join(source)}] -> [{', '.join(target)}] : {quantifier}({inner}) }}"


class Session:
    """One isl context: reads texts over fixed parameters, counts operations, stops after that much processor time."""

    def __init__(self, parameters: Sequence[str], operations: int, seconds: float) -> None:
        self._context = isl.Context()
        self._context.set_max_operations(operations)
        self._deadline = time.process_time() + seconds
        self._prefix = f"[{', '.join(parameters)}] -> "

    def guard(self, call: Callable[..., Any], *args: Any) -> Any:
        """The result of an isl call; raises `OutOfBudget` or `Unsupported`."""
        check_time()
        if time.process_time() > self._deadline:
            raise OutOfBudget
        try:
            return call(*args)
        except isl.Error as e:
            if "maximal number of operations" in str(e) or self._exhausted():
                raise OutOfBudget from None
            raise Unsupported("integer sets", f"isl: {e}") from None

    def _exhausted(self) -> bool:
        """True when even a trivial question fails: isl reports a syntax error when its operations run out in a text."""
        try:
            isl.Set.read_from_str(self._context, "[n] -> { [i] : exists a : i = 2 a and 0 <= i < n }").is_empty()
        except isl.Error:
            return True
        return False

    def read_set(self, text: str) -> Any:
        """The set of this text."""
        return self.guard(isl.Set.read_from_str, self._context, self._prefix + text)

    def read_map(self, text: str) -> Any:
        """The map of this text."""
        return self.guard(isl.Map.read_from_str, self._context, self._prefix + text)

    def sample(self, s: Any, *, prefer_small: bool = True) -> dict[str, int]:
        """A point of a non-empty set, with small parameters if there is one; dimension k is named `j<k>`."""
        for limit in _PREFERRED if prefer_small else (None,):
            t = s
            if limit is not None:
                for k in range(self.guard(t.dim, isl.dim_type.param)):
                    t = self.guard(t.upper_bound_val, isl.dim_type.param, k, isl.Val.int_from_si(t.get_ctx(), limit))
            if not self.guard(t.is_empty):
                point = self.guard(t.sample_point)
                out: dict[str, int] = {}
                for kind, prefix in ((isl.dim_type.param, ""), (isl.dim_type.set, "j")):
                    for k in range(s.dim(kind)):
                        name = s.get_dim_name(kind, k) if kind == isl.dim_type.param else f"{prefix}{k}"
                        out[str(name)] = int(point.get_coordinate_val(kind, k).to_python())
                return out
        return {}


class Memo:
    """The last answers by question text."""

    def __init__(self) -> None:
        self._table: OrderedDict[object, Any] = OrderedDict()

    def get(self, key: object) -> Any:
        """The stored answer, or None."""
        found = self._table.get(key)
        if found is not None:
            self._table.move_to_end(key)
        return found

    def put(self, key: object, value: Any) -> None:
        """Store an answer, forgetting the oldest when full."""
        self._table[key] = value
        if len(self._table) > _MEMO_LIMIT:
            self._table.popitem(last=False)


def readable(arena: Arena, point: Mapping[str, int]) -> dict[str, int]:
    """A sample point with the atoms' own names."""
    return {arena.atoms[int(k[1:])].name if k[0] == "p" and k[1:].isdigit() else k: v for k, v in point.items()}
