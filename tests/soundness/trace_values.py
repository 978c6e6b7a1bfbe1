"""An evaluator of symbolic traces at concrete sizes, independent of the engine's own evaluation and simplification.

A term is evaluated at *points*: a lane of the CTA together with values of the loop and bound variables. Folds are
enumerated value by value from their domain predicates, gathers and reductions move points to other lanes. Integers are
exact, reals are float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpproof.domains import Choice, Float, Int, Pack, Undef, Value
from warpproof.machine import Access, Obligation, Trace
from warpproof.terms import Arena, Poly, Pred, Real

LN2 = float(np.log(2.0))
STRIDE = 32


class Leftover(Exception):
    """A trace still speaks of a loop-carried unknown, or of something that has no value."""


@dataclass(frozen=True, eq=False)
class Points:
    """`lane[k]` and the value of each variable at point k."""

    lane: np.ndarray
    env: Mapping[int, np.ndarray]

    def __len__(self) -> int:
        return len(self.lane)

    def at(self, keep: np.ndarray) -> Points:
        return Points(self.lane[keep], {a: v[keep] for a, v in self.env.items()})

    def moved(self, lane: np.ndarray) -> Points:
        return Points(lane, self.env)

    def with_variable(self, atom: int, value: np.ndarray) -> Points:
        return Points(self.lane, {**self.env, atom: value})


class TraceValues:
    """Values of one arena's terms. `atoms` gives sizes and block indices, `arrays` the inputs, `scalars` the floats.

    `limit` bounds every enumeration: no loop or fold may have a value in its domain from `limit` on. Loop-carried and
    undefined values are arbitrary, others for another `unknown` (undefined reals are NaN for `unknown` 0).
    """

    def __init__(self, arena: Arena, atoms: Mapping[int, int], arrays: Mapping[str, np.ndarray],
                 scalars: Mapping[str, float], limit: int, unknown: int = 0) -> None:
        self.unknown = unknown
        self.arena, self.given, self.arrays, self.scalars, self.limit = arena, atoms, arrays, scalars, limit
        self._memo: dict[tuple[int, int], tuple[Points, np.ndarray]] = {}

    # ------------------------------------------------------------------ integers
    def poly(self, p: Poly, at: Points) -> np.ndarray:
        factors = {a: self.atom(a, at) for a in p.atoms()}
        sizes = {a: _magnitude(v) for a, v in factors.items()}
        largest = 0
        for m, c in p.terms.items():
            term_size = abs(c) if isinstance(c, int) else int(np.abs(c).max())
            for a in m:
                term_size *= sizes[a]
            largest += term_size
        kind: Any = np.int64 if largest < 1 << 62 else object
        total = np.zeros(len(at), dtype=kind)
        for m, c in p.terms.items():
            term = np.full(len(at), c, dtype=kind) if isinstance(c, int) else c[at.lane].astype(kind)
            for a in m:
                term = term * factors[a].astype(kind)
            total = total + term
        return total.astype(np.int64) if kind is object and _magnitude(total) < 1 << 62 else total

    def atom(self, ident: int, at: Points) -> np.ndarray:
        if ident in at.env:
            return at.env[ident]
        if ident in self.given:
            return np.full(len(at), self.given[ident], dtype=np.int64)
        atom = self.arena.atoms[ident]
        args = [self.poly(q, at) for q in atom.args] if atom.kind not in ("elem", "sum") else []
        match atom.kind:
            case "div":
                safe = np.where(args[1] == 0, 1, args[1])
                return args[0] // safe
            case "min":
                return np.minimum.reduce([a.astype(object) for a in args]).astype(np.int64)
            case "max":
                return np.maximum.reduce([a.astype(object) for a in args]).astype(np.int64)
            case "or":
                return args[0] | args[1]
            case "phi":
                return np.where(self.pred(atom.pred, at), args[0], args[1])
            case "sum":
                total = np.zeros(len(at), np.int64)
                for source, here in self._domain(atom.tag, atom.pred, at):
                    np.add.at(total, source, self.poly(atom.args[0], here))
                return total
            case "elem":
                array = self.arrays[atom.name].reshape(-1)
                k = self.poly(atom.args[0], at)
                return array[np.clip(k, 0, len(array) - 1).astype(np.int64)].astype(np.int64)
            case "undef" | "state":  # anything, in every lane
                return self.unknown * ((at.lane * 7919 + ident * 104729 + self.unknown * 1299709) % 100003 - 50001)
            case _:
                raise Leftover(f"{atom.kind} {atom.name}")

    # ------------------------------------------------------------------ predicates
    def pred(self, p: Pred, at: Points) -> np.ndarray:
        match p.op:
            case "true" | "false":
                return np.full(len(at), p.op == "true")
            case "le":
                return np.asarray(self.poly(p.data, at) <= 0, bool)
            case "eq":
                return np.asarray(self.poly(p.data, at) == 0, bool)
            case "ne":
                return np.asarray(self.poly(p.data, at) != 0, bool)
            case "lanes":
                return np.frombuffer(p.data, dtype=bool)[at.lane]
            case "and":
                out = np.ones(len(at), bool)
                for q in p.args:
                    out &= self.pred(q, at)
                return out
            case "or":
                out = np.zeros(len(at), bool)
                for q in p.args:
                    out |= self.pred(q, at)
                return out
            case "not":
                return ~self.pred(p.args[0], at)
            case "fcmp":
                a, b = (self.real(r, at) for r in p.reals)
                with np.errstate(invalid="ignore"):
                    return {"lt": a < b, "le": a <= b, "eq": a == b, "ne": a != b}[p.data]
            case "dom":
                atom, q = p.data
                i = self.atom(atom, at)
                before = self.poly(q, at.with_variable(atom, i - 1))
                return np.asarray((i >= 0) & ((i == 0) | (before <= 0)), bool)
            case _:
                raise Leftover(f"predicate {p.op}")

    # ------------------------------------------------------------------ reals
    def real(self, x: Real, at: Points) -> np.ndarray:
        if not len(at):
            return np.zeros(0)
        key = (x.id, id(at))
        found = self._memo.get(key)
        if found is not None and found[0] is at:
            return found[1]
        with np.errstate(all="ignore"):
            value = np.asarray(self._real(x, at), np.float64)
        if len(self._memo) > 200_000:
            self._memo.clear()
        self._memo[key] = (at, value)
        return value

    def _real(self, x: Real, at: Points) -> np.ndarray:
        match x.op:
            case "const":
                return np.full(len(at), float(x.data))
            case "inf":
                return np.full(len(at), np.inf * x.data)
            case "log2e" | "log2e32":
                return np.full(len(at), 1 / LN2)
            case "log2e_low":
                return np.full(len(at), float(np.uint32(0x32A57060).view(np.float32)))
            case "ln2":
                return np.full(len(at), LN2)
            case "poison" | "state":  # undefined, or a recurrence that did not close: nothing is said about the value
                return np.full(len(at), np.nan if not self.unknown else self.unknown * 1e6)
            case "symbol":
                return np.full(len(at), self.scalars[x.data])
            case "int":
                return self.poly(x.data, at).astype(np.float64)
            case "load":
                return self._load(x, at)
            case "sel":
                return np.where(self.pred(x.pred, at), self.real(x.args[0], at), self.real(x.args[1], at))
            case "gather":
                lanes = np.frombuffer(x.data, np.int64)[at.lane]
                return self._elsewhere(x.args[0], at.moved(lanes))
            case "red":
                return self._reduction(x, at)
            case "fold":
                return self._fold(x, at)
            case _:
                return _function(x.op, [self.real(y, at) for y in x.args])

    def _load(self, x: Real, at: Points) -> np.ndarray:
        access, index = x.data
        array = self.arrays[access.buffer].reshape(-1)
        k = self.poly(index, at)
        inside = np.asarray((k >= 0) & (k < len(array)), bool)
        return np.where(inside, array[np.where(inside, k, 0).astype(np.int64)].astype(np.float64), np.nan)

    def _elsewhere(self, x: Real, at: Points) -> np.ndarray:
        """x at points many of which may be equal."""
        names = sorted(at.env)
        rows = np.stack([at.lane, *(np.asarray(at.env[a], np.int64) for a in names)], axis=1)
        unique, back = np.unique(rows, axis=0, return_inverse=True)
        fewer = Points(unique[:, 0], {a: unique[:, k + 1] for k, a in enumerate(names)})
        return self.real(x, fewer)[back.reshape(-1)]

    def _reduction(self, x: Real, at: Points) -> np.ndarray:
        op, raw, width = x.data
        table = np.frombuffer(raw, np.int64).reshape(-1, width)[at.lane]
        flat = Points(table.reshape(-1), {a: np.repeat(v, width) for a, v in at.env.items()})
        return _accumulate(op, self._elsewhere(x.args[0], flat).reshape(len(at), width))

    def _fold(self, x: Real, at: Points) -> np.ndarray:
        op, atom = x.data
        out = np.full(len(at), {"add": 0.0, "mul": 1.0, "max": -np.inf, "min": np.inf}[op])
        for source, here in self._domain(atom, x.pred, at):
            join = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[op]
            join.at(out, source, self.real(x.args[0], here))
        return out

    def _domain(self, atom: int, domain: Pred, at: Points) -> Iterator[tuple[np.ndarray, Points]]:
        """The points with the variable in the domain, and which of `at` each comes from. Every value is tried."""
        for first in range(-2, self.limit + 1, STRIDE):
            values = np.arange(first, first + STRIDE)
            source = np.repeat(np.arange(len(at)), STRIDE)
            here = at.at(source).with_variable(atom, np.tile(values, len(at)))
            inside = np.flatnonzero(self.pred(domain, here))
            if not len(inside):
                continue
            found = here.at(inside)
            if (first == -2 and (found.env[atom] == -2).any()) or first + STRIDE > self.limit:
                raise Leftover("a domain without end")
            yield source[inside], found

    # ------------------------------------------------------------------ trace
    def points(self, path: Pred, loops: tuple[int, ...]) -> Points:
        """All lanes and iterations at which a path holds."""
        at = Points(np.arange(self.arena.lanes), {})
        rest = list(self.arena.conjuncts(path))
        free = set(loops)
        for k, atom in enumerate((None, *loops)):
            known = set(loops[:k])
            now = [p for p in rest if not (p.free & free) - known]
            rest = [p for p in rest if p not in now]
            where = self.arena.conj(now)
            if atom is None:
                at = at.at(np.flatnonzero(self.pred(where, at)))
                continue
            found = [part for _, part in self._domain(atom, where, at)]
            if not found:
                return Points(np.zeros(0, np.int64), {a: np.zeros(0, np.int64) for a in loops})
            at = Points(np.concatenate([f.lane for f in found]),
                        {a: np.concatenate([f.env[a] for f in found]) for a in loops[:k]})
        return at

    def elements(self, access: Access) -> tuple[np.ndarray, Points]:
        """The element indices of an access, with the points it happens at."""
        if any(self.arena.atoms[i].kind == "state" for i in access.path.free):
            raise Leftover("an access under a condition that did not close")
        at = self.points(access.path, access.loops)
        return self.poly(access.index, at), at

    def stored(self, value: Value, at: Points, kind: str) -> np.ndarray:
        """What a store writes: numbers for float buffers (NaN where undefined), integers modulo 2^width otherwise."""
        match value:
            case Float(_, _, node):
                return self.real(node, at)
            case Undef():
                return np.full(len(at), np.nan)
            case Choice(_, pred, first, second):
                return np.where(self.pred(pred, at), self.stored(first, at, kind), self.stored(second, at, kind))
            case Int(width, poly):
                bits = np.array([int(v) % (1 << width) for v in self.poly(poly, at)], dtype=np.uint64)
                return _floats(bits, width) if kind == "f" else bits.astype(np.float64)
            case Pack(width, parts):
                return self.stored(parts[0], at, kind) if len(parts) == 1 else np.full(len(at), np.nan)
        raise Leftover(f"value {value}")

    def violated(self, trace: Trace) -> list[Obligation]:
        """The conditions of the run that do not hold at these sizes."""
        return [o for o in trace.obligations if not self._holds(o)]

    def _holds(self, o: Obligation) -> bool:
        at = self.points(o.path, o.loops)
        if not len(at):
            return True
        if o.claim is not None:
            return bool(self.pred(o.claim, at).all())
        assert o.node is not None
        if o.node.op == "pair":
            a, b = (self.real(y, at) for y in o.node.args)
            return not (np.isinf(a) & np.isinf(b) & (a != b)).any()
        v = self.real(o.node, at)
        with np.errstate(invalid="ignore"):
            kept = {"finite": np.isfinite(v), "below infinity": ~(v == np.inf), "nonzero": v != 0, "positive": v > 0,
                    "nonnegative": v >= 0}
        return bool(kept[o.kind].all())


def _magnitude(v: np.ndarray) -> int:
    return max(abs(int(v.max())), abs(int(v.min()))) if len(v) else 0


def _floats(bits: np.ndarray, width: int) -> np.ndarray:
    return bits.astype(f"u{width // 8}").view(f"f{width // 8}").astype(np.float64)


def _accumulate(op: str, rows: np.ndarray) -> np.ndarray:
    return {"add": np.sum, "mul": np.prod, "max": np.max, "min": np.min}[op](rows, axis=1)


def _function(op: str, args: list[np.ndarray]) -> np.ndarray:
    match op:
        case "add":
            return sum(args[1:], args[0])
        case "mul":
            return args[0] * args[1]
        case "div":
            return args[0] / args[1]
        case "max":
            return np.maximum(*args)
        case "min":
            return np.minimum(*args)
        case "ex2":
            return np.exp2(args[0])
        case "lg2":
            return np.log2(args[0])
        case "sqrt" | "sin" | "cos" | "tanh" | "abs" | "floor" | "rint" | "trunc":
            return getattr(np, op)(args[0])
        case _:
            raise Leftover(f"function {op}")
