"""A launch at all admitted sizes at once: size symbols, facts, and buffers with symbolic shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from warpproof.algebra import Undefined, evaluate
from warpproof.core import InputError, Unsupported, element_width
from warpproof.reference.concrete import index_extents, integer
from warpproof.reference.expressions import Expression
from warpproof.reference.extents import with_extents
from warpproof.reference.limits import FLIP, plain_limit
from warpproof.reference.manifest import Launch, Param, dtype_range
from warpproof.reference.meaning import SymbolicAlgebra
from warpproof.reference.multiples import with_multiples
from warpproof.terms import Access, Arena, Poly, Pred, Range, Real, const


@dataclass(frozen=True, slots=True)
class FloatFact:
    """A precondition on one float scalar, or on all elements of a float buffer without gaps: `name op value`.

    `op` is one of < <= > >= == !=.
    """

    name: str
    op: str
    value: Fraction


@dataclass(frozen=True, slots=True)
class ElementFact:
    """A precondition on elements: `pred` holds for all values of `indices` where `domain` holds."""

    text: str
    indices: tuple[int, ...]
    domain: Pred
    pred: Pred
    buffers: frozenset[str]


@dataclass(frozen=True, slots=True)
class SymbolicBuffer:
    """A buffer at kernel entry. Shapes and strides are in elements, `element_size` in bytes.

    `range` is (first, one past the last) of integer data, from the `range` field or a precondition such as
    `0 <= target[i] < V`; None when only the element type bounds it.
    """

    name: str
    kind: str
    dtype: str
    element_size: int
    shape: tuple[Poly, ...]
    strides: tuple[Poly, ...]
    contiguous: bool
    range: tuple[Poly | None, Poly | None] | None = None
    init_zero: bool = False
    scratch: bool = False

    @property
    def integral(self) -> bool:
        """True for integer and boolean element types."""
        return self.dtype not in ("f16", "bf16", "f32", "f64")

    @property
    def count(self) -> Poly:
        """The number of elements from the first to the last, gaps of strides included (no axis may be empty)."""
        if self.contiguous:
            return _product(self.shape)
        out = const(1)
        for dim, step in zip(self.shape, self.strides):
            out = out + (dim - 1) * step
        return out

    def linear(self, index: Sequence[Poly]) -> Poly:
        """The element offset of a multi-index."""
        out = const(0)
        for i, step in zip(index, self.strides, strict=True):
            out = out + i * step
        return out

    def mapped(self, put: Callable[[Poly], Poly]) -> SymbolicBuffer:
        """The buffer with every polynomial rewritten."""
        ends = None if self.range is None else (
            None if self.range[0] is None else put(self.range[0]), None if self.range[1] is None else put(self.range[1])
        )
        return replace(
            self, shape=tuple(map(put, self.shape)), strides=tuple(map(put, self.strides)), range=ends,
        )

    def element(self, arena: Arena, index: Sequence[Poly], version: int = 0) -> Real | Poly:
        """The element at a multi-index: a real for float types, an integer polynomial otherwise."""
        return self.element_at(arena, self.linear(index), version)

    def element_at(self, arena: Arena, offset: Poly, version: int = 0) -> Real | Poly:
        """The element at a linear offset."""
        if self.integral:
            return arena.derived("elem", (offset,), tag=version, name=self.name)
        return arena.load(Access(self.name, version), offset)


@dataclass(frozen=True, slots=True)
class SymbolicLaunch:
    """A launch for all sizes. `facts` hold besides the ranges of the size symbols; see `Launch` for the rest."""

    launch: Launch
    arena: Arena
    sizes: Mapping[str, Poly]
    scalars: Mapping[str, Real]
    facts: tuple[Pred, ...]
    float_facts: tuple[FloatFact, ...]
    float_preds: tuple[Pred, ...]
    element_facts: tuple[ElementFact, ...]
    grid: tuple[Poly, Poly, Poly]
    block: tuple[int, int, int]
    dynamic_shared: Poly
    buffers: Mapping[str, SymbolicBuffer]

    def assignment(self, sizes: Mapping[str, int]) -> dict[int, int]:
        """The value of each unknown that stands for a size, or for a size divided by what divides it."""
        values: dict[int, int] = {}
        given = [(sizes[n], p) for n, p in self.sizes.items() if n in sizes]
        for _ in given:
            for value, p in given:
                values |= self._solved(p, value, values)
        return values

    def _solved(self, p: Poly, value: int, values: Mapping[int, int]) -> dict[int, int]:
        """The one unknown of p without a value, where p = value settles it."""
        unknown = [a for a in p.atoms() if a not in values and not self.arena.atoms[a].args]
        slope, rest = p.split(unknown[0]) if len(unknown) == 1 else (const(0), p)
        try:
            k, c = (evaluate(self.arena, q, values, 0) for q in (slope, rest))
        except Undefined:
            return {}
        return {unknown[0]: (value - c) // k} if k and not (value - c) % k else {}

    def completed(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """Sizes with those that others define (`stride == n`) set accordingly; unchanged where one is unknown."""
        values = {a.id: sizes[a.name] for a in self.arena.atoms if a.kind == "size" and a.name in sizes}
        try:
            return {**sizes, **{n: evaluate(self.arena, p, values, 0) for n, p in self.sizes.items()}}
        except Undefined:
            return dict(sizes)

    def value(self, e: Expression) -> Poly:
        """An integer expression in the sizes."""
        found = e.interpret(SymbolicAlgebra(self.arena, {**self.sizes, **self.scalars}))
        if not isinstance(found, Poly):
            raise e.fault("REF205", "expected an integer")
        return found


def _product(parts: Sequence[Poly]) -> Poly:
    out = const(1)
    for p in parts:
        out = out * p
    return out


def symbolic_launch(launch: Launch, arena: Arena) -> SymbolicLaunch:
    """The launch over size symbols of `arena`; InputError REF2xx, Unsupported for a block that depends on a size."""
    builder = _Builder(launch, arena)
    builder.read_ranges()
    return with_extents(with_multiples(builder.finish()))


@dataclass(slots=True)
class _Builder:
    launch: Launch
    arena: Arena
    values: dict[str, Poly | Real] = field(default_factory=dict)
    rest: list[Expression] = field(default_factory=list)
    facts: list[Pred] = field(default_factory=list)
    float_facts: list[FloatFact] = field(default_factory=list)
    float_preds: list[Pred] = field(default_factory=list)
    limits: dict[str, tuple[Poly | None, Poly | None]] = field(default_factory=dict)

    def read_ranges(self) -> None:
        """Make the size symbols, with every range that one precondition alone gives."""
        ranges: dict[str, Range] = {}
        for name in self.launch.integers:
            scalar = next((p for p in self.launch.params if p.name == name), None)
            ranges[name] = dtype_range(scalar.dtype) if scalar is not None else (None, None)
        for p in self.launch.buffers:
            for e in p.shape or ():
                if e.text in ranges:
                    ranges[e.text] = _meet(ranges[e.text], (0, None))
        for pre in self.launch.preconditions:
            for c in pre.conjuncts():
                simple = _simple_range(c, ranges)
                if simple is None:
                    self.rest.append(c)
                else:
                    ranges[simple[0]] = _meet(ranges[simple[0]], simple[1])
        for name, (lo, hi) in ranges.items():
            if lo is not None and hi is not None and lo > hi:
                raise InputError("REF209", f"no value of {name!r} satisfies its preconditions: {lo} <= {name} <= {hi}")
            fixed = lo is not None and lo == hi
            self.values[name] = const(lo or 0) if fixed else self.arena.symbol("size", name, lo, hi)
        self._eliminate(ranges)
        for p in self.launch.params:
            if p.kind == "scalar" and not p.is_integer:
                self.values[p.name] = self.arena.scalar(p.name)

    def _eliminate(self, ranges: Mapping[str, Range]) -> None:
        """Sizes that a precondition such as `stride == n` defines by others become that expression, in range."""
        self.rest = [c for c in self.rest if not self._defines(c, ranges)]

    def _defines(self, c: Expression, ranges: Mapping[str, Range]) -> bool:
        match c.comparison():
            case (a, "==", b):
                sides = ((a, b), (b, a))
            case _:
                return False
        for name, by in sides:
            if name.text not in ranges or by.buffers or not by.names <= set(ranges):
                continue
            symbol, value = self.values[name.text], self._poly(by)
            if not isinstance(symbol, Poly) or symbol.is_constant():
                continue
            if symbol.key != self.arena.symbol("size", name.text, None, None).key:
                continue  # defined by another precondition
            (atom,) = symbol.atoms()
            if self._mentions(value, atom) or self._divides_by_unknown(value):
                continue
            for n, v in self.values.items():
                if isinstance(v, Poly):
                    self.values[n] = self.arena.substitute_poly(v, {atom: value})
            self.facts = [self.arena.substitute_pred(f, {atom: value}) for f in self.facts]
            lo, hi = ranges[name.text]
            self.facts += [self.arena.le(const(lo) - value)] if lo is not None else []
            self.facts += [self.arena.le(value - hi)] if hi is not None else []
            return True
        return False

    def _divides_by_unknown(self, p: Poly) -> bool:
        """The size is then better a symbol of its own: products with it stay products of unknowns."""
        return any((q := self.arena.atoms[a]).kind == "div" and q.args[1].as_int() is None for a in p.atoms())

    def _mentions(self, p: Poly, atom: int) -> bool:
        return any(a == atom or any(self._mentions(q, atom) for q in self.arena.atoms[a].args) for a in p.atoms())

    def finish(self) -> SymbolicLaunch:
        """The launch, its preconditions sorted by what they speak of."""
        buffers = {p.name for p in self.launch.buffers}
        scalars = {k: v for k, v in self.values.items() if isinstance(v, Real)}
        for c in self.rest:
            if c.buffers & buffers:
                self._element_limit(c, buffers)
            elif c.names & set(scalars):
                self._float_fact(c)
            else:
                self._fact(c)
        made = {p.name: self._buffer(p) for p in self.launch.buffers}
        for p in self.launch.params:
            if p.kind == "scalar" and p.range is not None:
                lo, hi, v = self._poly(p.range[0]), self._poly(p.range[1]), self.values[p.name]
                assert isinstance(v, Poly)
                self.facts += [f for f in (self.arena.le(lo - v), self.arena.lt(v, hi)) if f.op != "true"]
                self._restrict(v, lo, hi)
        for b in made.values():
            self.facts += [f for f in (self.arena.le(-d) for d in b.shape) if f.op != "true"]
        elements = tuple(self._element_fact(c, made) for c in self.rest if c.buffers & buffers)
        if any(f.op == "false" for f in self.facts):
            raise InputError("REF209", "the preconditions contradict each other")
        x, y, z = (self._poly(e) for e in self.launch.grid)
        return SymbolicLaunch(
            self.launch, self.arena, {k: v for k, v in self.values.items() if isinstance(v, Poly)}, scalars,
            tuple(dict.fromkeys(self.facts)), tuple(self.float_facts), tuple(self.float_preds), elements, (x, y, z),
            self._block(), self._poly(self.launch.dynamic_shared), made,
        )

    def _algebra(self, buffers: Mapping[str, SymbolicBuffer] | None = None) -> SymbolicAlgebra:
        return SymbolicAlgebra(self.arena, self.values, buffers)

    def _poly(self, e: Expression) -> Poly:
        value = e.interpret(self._algebra())
        if not isinstance(value, Poly):
            raise e.fault("REF205", "expected an integer")
        return value

    def _fact(self, c: Expression) -> None:
        algebra = self._algebra()
        fact = algebra.truth(c.interpret(algebra))
        if fact.op == "false":
            raise c.fault("REF209", "no admitted size satisfies the precondition")
        if fact.op != "true":
            self.facts.append(fact)

    def _float_fact(self, c: Expression) -> None:
        algebra = self._algebra()
        fact = algebra.truth(c.interpret(algebra))
        if fact.op == "fcmp":
            a, b = fact.reals
            op = {"lt": "<", "le": "<=", "eq": "==", "ne": "!="}[str(fact.data)]
            if a.op == "symbol" and b.op == "const":
                self.float_facts.append(FloatFact(a.data, op, b.data))
            elif b.op == "symbol" and a.op == "const":
                self.float_facts.append(FloatFact(b.data, FLIP[op], a.data))
        if fact.op == "false":
            raise c.fault("REF209", "no admitted scalar satisfies the precondition")
        self.float_preds.extend(self.arena.conjuncts(fact))

    def _element_limit(self, c: Expression, buffers: set[str]) -> None:
        """Note `lo <= x[i]`, `x[i] < hi` with plain distinct indices as the range of the whole buffer."""
        found = plain_limit(c, frozenset(self.values))
        if found is None:
            return
        name, op, bound = found
        if not self.launch.param(name).is_integer:
            self._float_limit(name, op, bound)
            return
        if bound.names & buffers or bound.names - set(self.launch.integers):
            return
        value = self._poly(bound)
        lo, hi = self.limits.get(name, (None, None))
        if op in (">=", ">", "=="):
            first = value + 1 if op == ">" else value
            lo = first if lo is None else self.arena.extremum("max", (lo, first))
        if op in ("<", "<=", "=="):
            end = value if op == "<" else value + 1
            hi = end if hi is None else self.arena.extremum("min", (hi, end))
        self.limits[name] = (lo, hi)

    def _float_limit(self, name: str, op: str, bound: Expression) -> None:
        if bound.names or self.launch.param(name).strides is not None:
            return
        value = bound.interpret(self._algebra())
        if isinstance(value, Poly):
            value = self.arena.of_int(value)
        if isinstance(value, Real) and value.op == "const":
            self.float_facts.append(FloatFact(name, op, value.data))

    def _buffer(self, p: Param) -> SymbolicBuffer:
        assert p.shape is not None
        shape = tuple(self._poly(e) for e in p.shape)
        if p.strides is not None:
            strides = tuple(self._poly(e) for e in p.strides)
        else:
            strides = tuple(_product(shape[k + 1 :]) for k in range(len(shape)))
        limits = self.limits.get(p.name)
        if p.range is not None:
            lo, hi = self._poly(p.range[0]), self._poly(p.range[1])
            if limits is not None:
                lo = lo if limits[0] is None else self.arena.extremum("max", (lo, limits[0]))
                hi = hi if limits[1] is None else self.arena.extremum("min", (hi, limits[1]))
            limits = (lo, hi)
        if p.is_integer:
            low, high = dtype_range(p.dtype)
            if limits is not None and limits[0] is not None:
                low = max(low, _or(self.arena.bounds(limits[0])[0], low))
            if limits is not None and limits[1] is not None:
                high = min(high, _or(self.arena.bounds(limits[1])[1], high + 1) - 1)
            self.arena.elements[(p.name, 0)] = (low, high)
        contiguous = p.strides is None
        return SymbolicBuffer(p.name, p.kind, p.dtype, -(-element_width(p.dtype) // 8), shape, strides, contiguous,
                              limits, p.init_zero, p.scratch)

    def _restrict(self, v: Poly, lo: Poly, hi: Poly) -> None:
        if v.is_constant():
            return
        (atom,) = v.atoms()
        top = self.arena.bounds(hi)[1]
        self.arena.restrict(atom, self.arena.bounds(lo)[0], None if top is None else top - 1)

    def _element_fact(self, c: Expression, buffers: Mapping[str, SymbolicBuffer]) -> ElementFact:
        known = {**self.values, **dict.fromkeys(buffers)}
        extents = index_extents(c, {n: b.shape for n, b in buffers.items()}, known)
        A = self.arena
        atoms = {n: A.fresh("index", n) for n in extents}
        values = {**self.values, **{n: A.variable(a) for n, a in atoms.items()}}
        algebra = _Bounded(A, values, buffers)
        pred = algebra.truth(c.interpret(algebra))
        inside = [p for n, a in atoms.items() for p in (A.le(-A.variable(a)), A.lt(A.variable(a), extents[n]))]
        return ElementFact(c.text, tuple(a.id for a in atoms.values()), A.conj((*inside, *algebra.inside)), pred,
                           c.buffers)

    def _block(self) -> tuple[int, int, int]:
        out = []
        for e in self.launch.block:
            extent = self._poly(e).as_int()
            if extent is None:
                raise Unsupported(f"block {e.text!r}", "the block size depends on a size symbol",
                                  hint="give the block as integers, or the size a value in check_sizes")
            out.append(extent)
        if min(out) < 1:
            raise InputError("REF211", f"block {out} must be at least 1 in each dimension")
        return out[0], out[1], out[2]


class _Bounded(SymbolicAlgebra):
    """The algebra that also collects where every subscript is in bounds."""

    def __init__(self, arena: Arena, values: Mapping[str, Any], buffers: Mapping[str, SymbolicBuffer]) -> None:
        super().__init__(arena, values, buffers)
        self.inside: list[Pred] = []
        self.depth = 0

    def subscript(self, buffer: str, index: Sequence[Any]) -> Poly | Real:
        """The element; its bounds are noted outside sums."""
        out = super().subscript(buffer, index)
        if not self.depth:
            for i, dim in zip(index, self.buffers[buffer].shape):
                self.inside += [self.arena.le(-i), self.arena.lt(i, dim)]
        return out

    def total(self, lo: Any, hi: Any, body: Callable[[Any], Any]) -> Real:
        """A sum; its own subscripts must be in bounds by its range."""
        self.depth += 1
        out = super().total(lo, hi, body)
        self.depth -= 1
        return out


def _or(v: int | None, default: int) -> int:
    return default if v is None else v


def _meet(a: Range, b: Range) -> Range:
    (al, ah), (bl, bh) = a, b
    return (al if bl is None else bl if al is None else max(al, bl),
            ah if bh is None else bh if ah is None else min(ah, bh))


def _simple_range(c: Expression, names: Mapping[str, Range]) -> tuple[str, Range] | None:
    """(name, range) of a comparison of one size with a constant."""
    match c.comparison():
        case (a, op, b) if a.text in names and not b.names:
            name, bound = a.text, b
        case (a, op, b) if b.text in names and not a.names:
            name, op, bound = b.text, FLIP[op], a
        case _:
            return None
    try:
        k = integer(bound, {})
    except InputError:
        return None
    limit: dict[str, Range] = {"<": (None, k - 1), "<=": (None, k), ">": (k + 1, None), ">=": (k, None), "==": (k, k)}
    return (name, limit[op]) if op in limit else None
