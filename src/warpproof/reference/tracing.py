"""Run a reference on symbolic arrays.

The reference is executed, not parsed: a copy of the function, with `np`, `math`, `range` and friends bound to tracing
versions, is called with one symbolic array per buffer and one symbol per size. Only its `for` statements are rewritten,
to note what they carry. The candidate kernel is never involved.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import textwrap
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType
from typing import Any, Final

from warpproof.core import InputError, Span, Unsupported
from warpproof.reference.arrays import BOOL, FLOAT, Array, DType, Reader, Tracer
from warpproof.reference.elements import Index
from warpproof.reference.facts import Facts
from warpproof.reference.loading import SOURCE
from warpproof.reference.loops import walk
from warpproof.reference.manifest import Launch
from warpproof.reference.namespace import traced_builtins, traced_value
from warpproof.reference.purity import check_code, check_value, state
from warpproof.reference.rewriting import Rewriter
from warpproof.reference.roundings import Roundings
from warpproof.reference.symbolic import SymbolicBuffer, SymbolicLaunch, symbolic_launch
from warpproof.reference.wording import describe
from warpproof.terms import Arena, Poly, Pred, Real

_NUMPY: Final = {"bool": BOOL}
_FOREIGN: Final = frozenset({"numpy", "warpproof", "builtins", "math"})


@dataclass(frozen=True, slots=True)
class SymbolicArray:
    """One output of the reference: its shape and the real value at any index."""

    name: str
    dtype: str
    shape: tuple[Poly, ...]
    tracer: Tracer = field(repr=False, compare=False)
    reader: Reader = field(repr=False, compare=False)
    _traced: list[tuple[Index, Real]] = field(default_factory=list, repr=False, compare=False)

    def index_symbols(self, name: str = "o") -> Index:
        """Fresh index symbols that range over the shape."""
        return self.tracer.fresh_index(self.shape, name)

    def at(self, indices: Iterable[Poly]) -> Real:
        """The value at a multi-index inside the shape; integers and booleans as reals.

        Integers of the reference wrap unless they are shown to fit. Where that is not shown of these indices, it may be
        of symbols that range over the shape, for which the indices are put in then.
        """
        index, elements = tuple(indices), self.tracer.elements
        before = elements.residues
        try:
            value = self._at(index, self._reachable)
        except Unsupported:
            return self._put(index)
        return value if elements.residues == before else self._put(index)

    def _put(self, index: Index) -> Real:
        if not self._traced:
            symbols = self.index_symbols()
            self._traced.append((symbols, self._at(symbols, self._reachable)))
        symbols, value = self._traced[0]
        put = {a: p for s, p in zip(symbols, index) for a in s.atoms()}
        return self.tracer.arena.substitute(value, put)

    def checked(self) -> Real:
        """The value at a generic multi-index; InputError REF242 if an element may be one that was never written."""
        return self._at(self.index_symbols(), lambda x: self._written(x, ()))

    def _at(self, index: Index, finish: Callable[[Real], Real]) -> Real:
        if len(index) != len(self.shape):
            raise ValueError(f"{self.name} has {len(self.shape)} axes, not {len(index)}")
        try:
            value = finish(self.tracer.elements.real(self.reader(index)))
        except RecursionError as e:
            raise Unsupported(f"output {self.name!r}", "its terms are nested too deeply") from e
        own = frozenset(a for p in index for a in self.tracer.arena.poly_free(p))
        if not value.free <= own:
            raise Unsupported(f"output {self.name!r}", "its value depends on the index of a loop that has ended")
        return value

    def _reachable(self, x: Real) -> Real:
        """x without choices of unwritten elements: `checked` has shown that no index in the shape meets one."""
        if x.op != "sel" or x.pred is None or not x.poisoned:
            return x
        if "poison" in (x.args[0].op, x.args[1].op):
            return self._reachable(x.args[1] if x.args[0].op == "poison" else x.args[0])
        return self.tracer.arena.sel(x.pred, *(self._reachable(y) for y in x.args))

    def _written(self, x: Real, context: tuple[Pred, ...]) -> Real:
        """x without choices of unwritten elements that the shape excludes."""
        if x.op == "poison":
            raise InputError("REF242", f"output {self.name!r} may hold {x.data}")
        if x.op != "sel" or x.pred is None or not any(y.op == "poison" for y in walk(x)):
            return x
        a, facts = self.tracer.arena, self.tracer.facts
        no = a.negate(x.pred)
        if facts.holds_given(x.pred, context):
            return self._written(x.args[0], context)
        if facts.holds_given(no, context):
            return self._written(x.args[1], context)
        return a.sel(x.pred, self._written(x.args[0], (*context, x.pred)), self._written(x.args[1], (*context, no)))


def trace(reference: Callable[..., Any], launch: Launch | SymbolicLaunch, arena: Arena,
          held: Roundings | None = None) -> dict[str, SymbolicArray]:
    """The compared outputs of the reference as functions of the inputs, for all admitted sizes.

    `held` says which of its constants are rounded as in the kernel.

    Raises InputError REF24x for a reference that fails, or that needs a precondition that is missing, and Unsupported
    for constructs without a rule; both name the line of the reference.
    """
    made = launch if isinstance(launch, SymbolicLaunch) else symbolic_launch(launch, arena)
    limits = {b.name: _limits(b) for b in made.buffers.values() if b.integral}
    tracer = Tracer(arena, Facts(arena, (*made.facts, *made.float_preds), limits))
    tracer.elements.roundings = held or tracer.elements.roundings
    inputs = _inputs(tracer, made)
    arguments = bind(reference, made.launch, inputs)
    with _located(reference):
        copier = _Copier(tracer)
        copy = copier.function(reference)
        before = copier.state()
        returned = copy(**arguments)
        if copier.state() != before:
            raise Unsupported("the reference", "it changes something that outlives the call, so that calls may differ")
        return _outputs(tracer, made, returned)


def _limits(b: SymbolicBuffer) -> tuple[Poly | None, Poly | None]:
    return b.range if b.range is not None else (None, None)


def element_type(dtype: str) -> DType:
    """The NumPy type of a buffer's elements, every float as float64."""
    import numpy as np

    if dtype in ("f16", "bf16", "f32", "f64"):
        return FLOAT
    if dtype == "bool":
        return BOOL
    return np.dtype({"i": "int", "u": "uint"}[dtype[0]] + dtype[1:])


def _inputs(t: Tracer, made: SymbolicLaunch) -> dict[str, Any]:
    """The arguments by name: buffers as arrays, sizes and scalars as weak scalars."""
    out: dict[str, Any] = {name: t.integer(p) for name, p in made.sizes.items()}
    for name, node in made.scalars.items():
        out[name] = t.scalar(node, FLOAT, weak=True)
    for b in made.buffers.values():
        out[b.name] = _buffer_array(t, b)
    return out


def _buffer_array(t: Tracer, b: SymbolicBuffer) -> Array:
    if b.kind == "ptr_out":
        def refuse(i: Index) -> Real:
            raise InputError("REF243", f"the reference reads {b.name!r}, which is an output",
                             hint="make it InOut (ptr_inout) if its value at entry matters")
        return Array(t, b.shape, element_type(b.dtype), refuse, readonly=f"the output {b.name!r}")

    def element(i: Index) -> Real | Poly | Pred:
        e = b.element(t.arena, i)
        if b.init_zero:
            return t.arena.zero if isinstance(e, Real) else t.arena.false if b.dtype == "bool" else Poly({})
        return t.arena.ne(e) if b.dtype == "bool" and isinstance(e, Poly) else e

    return Array(t, b.shape, element_type(b.dtype), element, readonly=f"the input {b.name!r}")


def bind(reference: Callable[..., Any], launch: Launch, values: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of the reference; InputError REF244 for a parameter that the launch does not have."""
    try:
        parameters = inspect.signature(reference).parameters.values()
    except (TypeError, ValueError) as e:
        raise InputError("REF244", f"the reference has no signature: {e}") from None
    out: dict[str, Any] = {}
    for p in parameters:
        if p.kind is p.VAR_KEYWORD:
            outputs = {q.name for q in launch.params if q.kind == "ptr_out"}
            return {**{k: v for k, v in values.items() if k not in outputs}, **out}
        if p.kind in (p.POSITIONAL_ONLY, p.VAR_POSITIONAL):
            raise InputError("REF244", f"the reference's parameter {p.name!r} must be passable by name")
        if p.name in values:
            out[p.name] = values[p.name]
        elif p.default is p.empty:
            raise InputError("REF244", f"the reference has a parameter {p.name!r}, which is no input, scalar or size",
                             hint="names must agree with the launch: " + ", ".join(sorted(values)))
    return out


def _outputs(t: Tracer, made: SymbolicLaunch, returned: Any) -> dict[str, SymbolicArray]:
    expected = {p.name: made.buffers[p.name] for p in made.launch.outputs}
    check_names(returned, expected)
    out: dict[str, SymbolicArray] = {}
    for name, b in expected.items():
        a = t.lift(returned[name])
        same = len(a.dims) == len(b.shape) and all(t.facts.same(p, q) for p, q in zip(a.dims, b.shape))
        if not same:
            have, want = (", ".join(describe(t.arena, d) for d in s) for s in (a.dims, b.shape))
            raise InputError("REF242", f"output {name!r} has the shape ({have}), the launch says ({want})",
                             hint="shapes must be equal for all admitted sizes; reshape in the reference")
        if b.integral and a.dtype.kind == "f":
            raise InputError("REF242", f"output {name!r} is of type {b.dtype}, but the reference returns reals",
                             hint="convert to the integer type in the reference")
        array = SymbolicArray(name, b.dtype, b.shape, t, a.reader())
        array.checked()
        out[name] = array
    return out


def check_names(returned: Any, expected: Iterable[str]) -> None:
    """Raise InputError REF242 unless the reference returned a dict with exactly the compared outputs."""
    wanted = set(expected)
    if not isinstance(returned, Mapping):
        raise InputError("REF242", f"the reference returned {type(returned).__name__}, not a dict of outputs",
                         hint="return {" + ", ".join(f'"{n}": …' for n in sorted(wanted)) + "}")
    missing, extra = sorted(wanted - set(returned)), sorted(str(k) for k in set(returned) - wanted)
    if missing:
        other = f", but {', '.join(map(repr, extra))}" if extra else ""
        raise InputError("REF242", f"the reference does not return the output {missing[0]!r}{other}",
                         hint="return it, or mark the buffer as scratch")
    if extra:
        raise InputError("REF242", f"the reference returns {extra[0]!r}, which is no compared output",
                         hint="outputs are ptr_out, and ptr_inout that is not scratch")


def depends_on_inputs(arrays: Mapping[str, SymbolicArray]) -> bool:
    """True when the value of at least one output mentions an input element or a float scalar."""
    for a in arrays.values():
        nodes = list(walk(a.at(a.index_symbols())))
        if any(y.op in ("load", "symbol") for y in nodes):
            return True
        atoms = {x for y in nodes for p in _polys(y) for x in p.atoms()}
        if _mentions_element(a.tracer.arena, atoms):
            return True
    return False


def _polys(y: Real) -> list[Poly]:
    out = [y.data] if y.op == "int" else []
    preds = [y.pred] if y.pred is not None else []
    while preds:
        p = preds.pop()
        out += [p.data] if p.op in ("le", "eq", "ne") else []
        preds.extend(p.args)
    return out


def _mentions_element(arena: Arena, atoms: set[int]) -> bool:
    seen: set[int] = set()
    stack = list(atoms)
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        atom = arena.atoms[i]
        if atom.kind == "elem":
            return True
        stack.extend(x for p in atom.args for x in p.atoms())
        if atom.pred is not None:
            stack.extend(x for p in [atom.pred] if isinstance(p.data, Poly) for x in p.data.atoms())
    return False


class _Copier:
    """Copies of functions whose globals are tracing versions; one set of globals per module."""

    def __init__(self, tracer: Tracer) -> None:
        self.t = tracer
        self._globals: dict[int, dict[str, Any]] = {}
        self._functions: dict[int, FunctionType] = {}
        self._outside: list[Any] = []  # values from outside the functions
        self._builtins = traced_builtins(tracer)

    def function(self, f: Callable[..., Any]) -> FunctionType:
        """The tracing copy of a Python function."""
        f = inspect.unwrap(f)
        if not isinstance(f, FunctionType):
            raise InputError("REF244", "the reference must be a Python function")
        made = self._functions.get(id(f))
        if made is None:
            check_code(f.__code__)
            namespace = self._globals.setdefault(id(f.__globals__), {"__builtins__": self._builtins})
            closure = tuple(CellType() for _ in f.__closure__ or ())
            made = FunctionType(_rewritten(f), namespace, f.__name__, None, closure or None)
            made.__defaults__ = tuple(self._value(v) for v in f.__defaults__ or ()) or None
            made.__kwdefaults__ = {k: self._value(v) for k, v in (f.__kwdefaults__ or {}).items()} or None
            self._functions[id(f)] = made
            for name in _names(f.__code__):
                if name in f.__globals__ and name not in namespace:
                    namespace[name] = None  # a function may refer to itself
                    check_value(name, f.__globals__[name])
                    namespace[name] = self._value(f.__globals__[name])
            for cell, old in zip(closure, f.__closure__ or ()):
                try:
                    cell.cell_contents = self._value(old.cell_contents)
                except ValueError:
                    continue  # an empty cell stays empty
        return made

    def state(self) -> list[Any]:
        """What everything outside the functions holds, to be compared after a call."""
        return state((*self._outside, *(vars(f) for f in self._functions.values())))

    def _value(self, value: Any) -> Any:
        self._outside.append(value)
        if isinstance(value, FunctionType) and value.__module__.partition(".")[0] not in _FOREIGN:
            return self.function(value)
        return traced_value(self.t, value)


def _names(code: CodeType) -> set[str]:
    """The global and attribute names that code uses, nested functions included."""
    return set(code.co_names).union(*(_names(k) for k in code.co_consts if isinstance(k, CodeType)))


def _rewritten(f: FunctionType) -> CodeType:
    """The code of f with its loops noted; the code itself when the source is not at hand."""
    try:
        lines, first = inspect.getsourcelines(f)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return _without_handlers(f)
    node = tree.body[0] if tree.body else None
    if not isinstance(node, ast.FunctionDef) or node.name != f.__name__:
        return _without_handlers(f)
    for n in ast.walk(node):
        if isinstance(n, ast.Try | ast.TryStar):
            raise Unsupported("try in a reference", "a handler could hide that a step has no rule",
                              Span(first - 1 + n.lineno, n.col_offset + 1, 3, f.__code__.co_filename))
        if isinstance(n, ast.Global | ast.Nonlocal):
            raise Unsupported("global or nonlocal in a reference", "assignments to outer variables are not followed",
                              Span(first - 1 + n.lineno, n.col_offset + 1, 6, f.__code__.co_filename))
    ast.increment_lineno(tree, first - 1)
    node.decorator_list, node.returns = [], None
    node.args.defaults, node.args.kw_defaults = [], [None] * len(node.args.kwonlyargs)
    for a in [*node.args.args, *node.args.kwonlyargs, node.args.kwarg, node.args.vararg]:
        if a is not None:
            a.annotation = None
    loaded = f.__globals__.get(SOURCE)
    if loaded is not None and loaded != "".join(linecache.getlines(f.__code__.co_filename)):
        raise Unsupported(f"function {f.__name__}", "its source is not what runs: the file has changed since")
    node = Rewriter().visit(node)
    free = f.__code__.co_freevars
    outer = ast.parse(f"def __outer__({', '.join(free)}):\n    pass\n    return {f.__name__}")
    definition = outer.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.body[0] = node
    code = compile(ast.fix_missing_locations(outer), f.__code__.co_filename, "exec")
    return _inner_code(code, f)


def _without_handlers(f: FunctionType) -> CodeType:
    """The code of f, whose source is not at hand, if nothing in it can catch an exception."""
    stack = [f.__code__]
    while stack:
        c = stack.pop()
        if c.co_exceptiontable and not c.co_name.startswith("<"):  # lambdas and comprehensions hold no statement
            raise Unsupported(f"function {f.__name__}", "its source is not at hand and it may catch exceptions")
        stack.extend(k for k in c.co_consts if isinstance(k, CodeType))
    return f.__code__


def _inner_code(code: CodeType, f: FunctionType) -> CodeType:
    """The code object of f inside its compiled wrapper, its free variables in f's order."""
    stack = [code]
    while stack:
        c = stack.pop()
        if c.co_name == f.__name__ and c.co_freevars == f.__code__.co_freevars and c is not code:
            return c
        stack.extend(k for k in c.co_consts if isinstance(k, CodeType))
    return f.__code__


@contextlib.contextmanager
def _located(reference: Callable[..., Any]) -> Iterator[None]:
    """Gives errors of the reference the line they arose at; what Python raises in it becomes InputError REF240."""
    code = getattr(inspect.unwrap(reference), "__code__", None)
    file = code.co_filename if code is not None else ""
    try:
        yield
    except InputError as e:
        begin = Span(code.co_firstlineno, 1, 1, file) if code is not None else None
        e.span, e.source = e.span or _span(e, file)[0] or begin, e.source or "".join(linecache.getlines(file))
        raise
    except Unsupported as e:
        e.span = e.span or _span(e, file)[0]
        raise
    except RecursionError as e:
        raise Unsupported("the reference", "its terms are nested too deeply", _span(e, file)[0]) from e
    except Exception as e:
        span, own = _span(e, file)
        if span is None or not (own or isinstance(e, TypeError | ValueError | IndexError | OverflowError)):
            raise
        raise InputError("REF240", f"the reference raised {type(e).__name__}: {e}", span,
                         source="".join(linecache.getlines(file))) from e


def _span(e: BaseException, file: str) -> tuple[Span | None, bool]:
    """The innermost line of the reference's file that the error passed, and whether it arose there."""
    frames = traceback.extract_tb(e.__traceback__)
    own = [f for f in frames if f.filename == file]
    if not own:
        return None, False
    last = own[-1]
    return Span(last.lineno or 1, (last.colno or 0) + 1, 1, file), frames[-1] is last
