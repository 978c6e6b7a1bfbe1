"""Python loops over symbolic ranges, read as recurrences.

The body runs twice: once from the entry values, to see the types and shapes the variables take, and once with every
reassigned variable replaced by an unknown. If the new value is the unknown combined once, by +, ·, max or min, with a
term free of unknowns, the loop is a fold; a store at the loop index is a scatter. Anything else is `Unsupported`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from warpproof.core import InputError, Unsupported
from warpproof.reference.arrays import FLOAT, Array, Tracer
from warpproof.reference.broadcasting import broadcast_dims, pick
from warpproof.reference.creation import range_length
from warpproof.reference.elements import Element, Index
from warpproof.reference.reductions import fold_over
from warpproof.terms import Poly, Pred, Real, const

_MARK: Final = "$carried"
_OPS: Final = ("add", "max", "min", "mul")
ENTER: Final = "__warpproof_loop__"


class SymbolicRange:
    """`range` with a symbolic bound: only a `for` statement can run over it."""

    def __init__(self, t: Tracer, start: Poly, stop: Poly, step: Poly) -> None:
        self.t, self.start, self.step = t, start, step
        self.count = range_length(t, start, stop, step)

    def __iter__(self) -> Iterator[Any]:
        raise Unsupported("a range over a symbolic size", "only a for statement can run over it",
                          hint="write a for loop, or use an array operation")

    def __len__(self) -> int:
        raise Unsupported("len of a symbolic range", "its length is symbolic")


class AfterLoop:
    """The value of a variable after a symbolic loop that does not carry it; any use is an error."""

    def __init__(self, name: str) -> None:
        self.name = name

    def _refuse(self, *args: Any, **kwargs: Any) -> Any:
        raise Unsupported(f"variable {self.name!r} after a loop over a symbolic range",
                          "it holds the value of the last iteration")

    __bool__ = __iter__ = __getitem__ = __setitem__ = __call__ = __len__ = __index__ = __float__ = __int__ = _refuse
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __neg__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __rmatmul__ = __pow__ = __mod__ = __floordiv__ = _refuse

    def __getattr__(self, name: str) -> Any:
        self._refuse()


class Loop:
    """One `for` statement: the iterable, and for a symbolic range the variables it carries."""

    def __init__(
        self, t: Tracer, iterable: Any, entry: Mapping[str, Any], outer: Mapping[str, Any], names: Sequence[str],
        simple: bool, target: str,
    ) -> None:
        self.t, self.iterable, self.names, self.simple, self.target = t, iterable, names, simple, target
        self.symbolic = isinstance(iterable, SymbolicRange)
        self.carried: dict[str, Any] = {}
        self.results: dict[str, Any] = {}
        self._entry = dict(entry) if self.symbolic else {}
        self._outer = outer
        self._containers = self._watch()
        self._after: dict[str, Any] = {}
        self._id = -1

    def __iter__(self) -> Iterator[Any]:
        if not self.symbolic:
            yield from self.iterable
            return
        if not self.simple:
            raise Unsupported("a loop over a symbolic range", "break, continue, return, else or a tuple target in it")
        t, r = self.t, self.iterable
        outer, t.loop = t.loop, len(t.arena.atoms) + 1
        self._variable = t.index_symbol(const(0), r.count, self.target)
        (self._id,) = self._variable.atoms()
        value = t.integer(r.start + self._variable * r.step)
        self._arrays = {n: t.lift(v) for n, v in self._entry.items() if n in self.names and _is_number(v)}
        self.carried = {n: self._copy(a, self._entry[n]) for n, a in self._arrays.items()}
        yield value
        first = dict(self._after)
        self._unknowns = {n: self._unknown(n, first.get(n)) for n in self._arrays}
        reads = {n: a.root().reads for n, a in self._arrays.items()}
        self.carried = dict(self._unknowns)
        yield value
        t.loop = outer
        self._finish(reads)

    def leave(self, after: Mapping[str, Any]) -> None:
        """Note the values at the end of the body."""
        if self.symbolic:
            self._after = {n: after[n] for n in self.names if n in after}
            if self._watch() != self._containers:
                raise Unsupported("a loop over a symbolic range", "the body changes a list, dict or set",
                                  hint="preallocate an array and assign to it")

    def _watch(self) -> list[dict[str, Any]]:
        """What the containers in reach hold; a body that changes one is not a recurrence over arrays."""
        own = {n: v for n, v in self._outer.items() if not n.startswith("__")}
        return [_snapshot(self._entry), _snapshot(own)] if self.symbolic else []

    # ------------------------------------------------------------------ the three states of a variable
    def _copy(self, a: Array, original: Any) -> Any:
        if not isinstance(original, Array):
            return original
        read = a.reader()
        return Array(self.t, a.dims, a.dtype, read, weak=a.weak, readonly=a.root().readonly)

    def _unknown(self, name: str, after: Any) -> Any:
        """An array of unknowns in the type and shape the variable has after one iteration."""
        if not _is_number(after):
            return AfterLoop(name)
        a = self.t.lift(after)
        if a.dtype.kind != "f":
            return self._entry[name] if self._same(self._arrays[name], a) else AfterLoop(name)
        readonly = self._arrays[name].root().readonly if isinstance(self._entry[name], Array) else ""
        mark = functools.partial(self._mark, name)
        return Array(self.t, a.dims, FLOAT, mark, weak=a.weak and not a.dims, readonly=readonly)

    def _same(self, a: Array, b: Array) -> bool:
        if a.dtype != b.dtype or len(a.dims) != len(b.dims):
            return False
        i = self.t.fresh_index(a.dims)
        return a.reader()(i) == b.reader()(i)

    def _mark(self, name: str, i: Index) -> Real:
        return self.t.arena.real("symbol", data=(_MARK, self._id, name, tuple(p.key for p in i)))

    # ------------------------------------------------------------------ closing the recurrences
    def _finish(self, reads: Mapping[str, int]) -> None:
        self.carried = {}
        mutated: list[Array] = []
        for name in self.names:
            if name not in self._arrays:
                self.results[name] = AfterLoop(name)
                continue
            unknown, after, start = self._unknowns[name], self._after.get(name), self._arrays[name]
            if not isinstance(unknown, Array):
                changed = isinstance(unknown, AfterLoop) or after is not self._entry[name]
                self.results[name] = AfterLoop(name) if changed else self._entry[name]
                continue
            if not _is_number(after):
                self.results[name] = AfterLoop(name)
                continue
            in_place = unknown.version and isinstance(self._entry[name], Array)
            if in_place:
                self._check_alias(name, start, reads[name], mutated)
            closed = self._close(name, start, unknown, self.t.lift(after))
            if in_place:
                if after is not unknown:
                    raise Unsupported(f"variable {name!r}", "updated in place and reassigned in one loop")
                start.write(lambda i: (self.t.arena.true, i), closed.reader())
                self.results[name] = self._entry[name]
            else:
                self.results[name] = closed

    def _check_alias(self, name: str, start: Array, reads: int, mutated: list[Array]) -> None:
        root = start.root()
        if root.reads != reads or any(root is m for m in mutated):
            raise Unsupported(f"variable {name!r}", "updated in place while it is read under another name in the loop")
        mutated.append(root)

    def _close(self, name: str, start: Array, unknown: Array, after: Array) -> Array:
        t = self.t
        if after.dtype.kind != "f" or len(after.dims) != len(unknown.dims) or not all(
            t.facts.same(p, q) for p, q in zip(after.dims, unknown.dims)
        ):
            raise Unsupported(f"variable {name!r} in a loop over a symbolic range", "its type or shape keeps changing")
        grown = len(start.dims) != len(after.dims) or not all(
            t.facts.same(p, q) for p, q in zip(start.dims, after.dims))
        if grown:
            broadcast_dims(t, [after.dims, start.dims], onto_first=True)
            if not t.facts.nonnegative(self.iterable.count - 1):
                raise InputError("REF241", f"the shape of {name!r} depends on whether the loop runs at all",
                                 hint="add the precondition that the range is not empty")
        first, new = start.converted(FLOAT), after.reader()

        def before(i: Index) -> Real:
            return t.elements.real(first(pick(t, start.dims, i)))

        def value(i: Index) -> Element:
            return self._closed(name, i, before, t.elements.real(new(i)))

        value(t.fresh_index(after.dims))
        if not after.dims:
            return t.scalar(value(()), FLOAT, after.weak)
        return t.array(after.dims, FLOAT, value)

    def _closed(self, name: str, i: Index, before: Callable[[Index], Real], new: Real) -> Real:
        """The value after the loop at one index, from the value before and the value after one iteration."""
        mark, els, start = self._mark(name, i), self.t.elements, before(i)
        if new is mark:
            return start
        if new.op == "sel" and new.pred is not None and self._fixed(new.pred):
            yes = self._closed(name, self._pinned(i, new.pred), before, new.args[0])
            return self.t.arena.sel(new.pred, yes, self._closed(name, i, before, new.args[1]))
        for op in _OPS:
            rest = self.t.arena.flatten(new, op)
            if rest.count(mark) == 1 and new.op == op:
                rest.remove(mark)
                g = rest[0]
                for x in rest[1:]:
                    g = self.t.arena.combine(op, g, x)
                if not mentions_mark(g, self._id):
                    total = fold_over(self.t, op, const(0), self.iterable.count, functools.partial(self._at, g))
                    match op:
                        case "add":
                            return els.add(start, total)
                        case "mul":
                            return els.mul(start, total)
                        case _:
                            return els.extremum(op, start, total)
        return self._scatter(name, start, new, mark)

    def _fixed(self, p: Pred) -> bool:
        """True when a guard is the same in every iteration."""
        A = self.t.arena
        return self._id not in p.free and not mentions_mark(A.real("sel", (A.one, A.zero), pred=p), self._id)

    def _pinned(self, i: Index, guard: Pred) -> Index:
        """The index with components that the guard equates with a term replaced by it."""
        out = list(i)
        for g in self.t.arena.conjuncts(guard):
            for n, p in enumerate(out):
                atom = next(iter(p.atoms()), None)
                if g.op == "eq" and atom is not None and p == Poly({(atom,): 1}):
                    slope, rest = g.data.split(atom)
                    k = slope.as_int()
                    if k in (1, -1) and not self._depends(rest, atom):
                        out[n] = -rest * k
        return tuple(out)

    def _scatter(self, name: str, start: Real, new: Real, mark: Real) -> Real:
        """sel(… r = e …, a, unknown): the store of iteration e."""
        A = self.t.arena
        if new.op == "sel" and new.args[1] is mark and new.pred is not None and not mentions_mark(
            A.real("sel", (new.args[0], A.zero), pred=new.pred), self._id
        ):
            r = self._id
            for g in A.conjuncts(new.pred):
                if g.op == "eq":
                    slope, rest = g.data.split(r)
                    k = slope.as_int()
                    if k in (1, -1) and not self._depends(rest, r):
                        return self._stored(new, start, -rest * k)
        raise Unsupported(
            f"variable {name!r} in a loop over a symbolic range",
            "its new value is not the old one combined once with a term that is free of it",
            hint="accumulate with +, *, np.maximum or np.minimum, or store at the loop index",
        )

    def _stored(self, new: Real, start: Real, at: Poly) -> Real:
        A = self.t.arena
        r = self._id
        assert new.pred is not None
        here = A.conj((A.substitute_pred(new.pred, {r: at}), A.le(-at), A.lt(at, self.iterable.count)))
        return A.sel(self.t.facts.simplify(here), A.substitute(new.args[0], {r: at}), start)

    def _depends(self, p: Poly, atom: int) -> bool:
        return atom in self.t.arena.poly_free(p)

    def _at(self, g: Real, v: Poly) -> Real:
        r = self._id
        return self.t.arena.substitute(g, {r: v})


def _is_number(v: Any) -> bool:
    return isinstance(v, Array | int | float) and not isinstance(v, bool)


def _snapshot(env: Mapping[str, Any]) -> dict[str, Any]:
    """The identities held by the containers among the variables."""
    out: dict[str, Any] = {}
    for n, v in env.items():
        if isinstance(v, list | tuple | set | frozenset):
            out[n] = [id(x) for x in v] + [[id(y) for y in x] for x in v if isinstance(x, list | tuple)]
        elif isinstance(v, dict):
            out[n] = [(id(k), id(x)) for k, x in v.items()]
    return out


def mentions_mark(x: Real, loop: int | None = None) -> bool:
    """True when an unknown of the loop (of any loop) occurs in the term."""
    marks = (y.data for y in walk(x) if y.op == "symbol" and isinstance(y.data, tuple))
    return any(loop is None or m[1] == loop for m in marks)


def walk(x: Real) -> Iterator[Real]:
    """Every node of a term once, comparisons of guards included."""
    seen: set[int] = set()
    done: set[int] = set()
    stack: list[Real] = [x]
    preds: list[Pred] = []
    while stack or preds:
        if preds:
            p = preds.pop()
            if p.id not in done:
                done.add(p.id)
                stack.extend(p.reals)
                preds.extend(p.args)
            continue
        y = stack.pop()
        if y.id in seen:
            continue
        seen.add(y.id)
        yield y
        stack.extend(y.args)
        if y.pred is not None:
            preds.append(y.pred)


# ---------------------------------------------------------------------- source rewriting
class LoopRewriter(ast.NodeTransformer):
    """Wraps every `for` so that a `Loop` sees the variables that its body reassigns."""

    def __init__(self) -> None:
        self.count = 0

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        """`for` with its bookkeeping; a concrete loop runs as before."""
        self.count += 1
        loop = f"__loop_{self.count}__"
        names = sorted(_assigned(node.body))
        simple = isinstance(node.target, ast.Name) and not node.orelse and not _leaves(node.body)
        target = node.target.id if isinstance(node.target, ast.Name) else ""
        body: list[ast.stmt] = []
        for s in node.body:
            new = self.visit(s)
            body.extend(new if isinstance(new, list) else [new])
        enter = _parse(f"{loop} = {ENTER}(None, locals(), globals(), {names!r}, {simple}, {target!r})")
        assert isinstance(enter, ast.Assign)
        assert isinstance(enter.value, ast.Call)
        enter.value.args[0] = self.visit(node.iter)
        before = [_parse(f"if {n!r} in {loop}.carried: {n} = {loop}.carried[{n!r}]") for n in names]
        after = [_parse(f"{loop}.leave(locals())")]
        results = [_parse(f"if {n!r} in {loop}.results: {n} = {loop}.results[{n!r}]") for n in [*names, target] if n]
        replaced = ast.For(node.target, ast.Name(loop, ast.Load()), [*before, *body, *after], node.orelse, None)
        bookkeeping: list[ast.stmt] = [enter, *before, *after, *results]
        for part in bookkeeping:
            _place(part, node, keep=enter.value.args[0])
        ast.copy_location(replaced, node)
        ast.copy_location(replaced.iter, node.iter)
        return [enter, replaced, *results]


def _parse(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _place(s: ast.stmt, at: ast.stmt, keep: ast.expr) -> None:
    """Give the nodes of a new statement the loop's position, except those of the user's iterable."""
    own = {id(n) for n in ast.walk(keep)}
    for n in ast.walk(s):
        if id(n) not in own and isinstance(n, ast.stmt | ast.expr):
            ast.copy_location(n, at)


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """Names that the statements rebind, or whose elements they assign."""
    out: set[str] = set()
    for s in body:
        for n in ast.walk(s):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store | ast.Del):
                out.add(n.id)
            elif isinstance(n, ast.Subscript | ast.Attribute) and isinstance(n.ctx, ast.Store):
                base: ast.expr = n
                while isinstance(base, ast.Subscript | ast.Attribute):
                    base = base.value
                if isinstance(base, ast.Name):
                    out.add(base.id)
    return out


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """True when a statement may leave the loop, or reaches variables of other scopes."""
    for s in body:
        for n in ast.walk(s):
            if isinstance(n, ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Global | ast.Nonlocal):
                return True
            if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store):
                return True
            if isinstance(n, ast.Break | ast.Continue | ast.NamedExpr | ast.Try | ast.With):
                return True
    return False
