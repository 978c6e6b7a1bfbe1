"""Expressions of launch files and preconditions: Python-syntax arithmetic, parsed by `ast` and never evaluated as code.

Admitted: integer, float and boolean constants, names, `+ - * // % **`, unary `-` and `not`, `min`, `max`, comparisons
(chained too), `and`, `or`, subscripts of buffers, and `sum(… for j in range(…))`. One fold over the tree serves every
meaning; an `Algebra` says what the operations do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, Protocol

from warpproof.core import InputError

MAX_TEXT: Final = 2000
MAX_NODES: Final = 400
MAX_BITS: Final = 256
_BINARY: Final[dict[type[ast.operator], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.Div: "/",
}
_COMPARE: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}


class Algebra(Protocol):
    """What the operations of an expression mean."""

    def constant(self, value: int | Fraction) -> Any:
        """A literal."""
        ...

    def name(self, name: str) -> Any:
        """The value of a name that no `for` of the expression binds."""
        ...

    def binary(self, op: str, a: Any, b: Any) -> Any:
        """`a op b` for an arithmetic operator."""
        ...

    def compare(self, op: str, a: Any, b: Any) -> Any:
        """`a op b` for a comparison."""
        ...

    def logical(self, op: str, parts: Sequence[Any]) -> Any:
        """`and` / `or` of truth values; `not` of exactly one."""
        ...

    def extremum(self, kind: str, parts: Sequence[Any]) -> Any:
        """`min` / `max`."""
        ...

    def subscript(self, buffer: str, index: Sequence[Any]) -> Any:
        """An element of a buffer."""
        ...

    def total(self, lo: Any, hi: Any, body: Callable[[Any], Any]) -> Any:
        """The sum of `body(j)` for lo <= j < hi."""
        ...


@dataclass(frozen=True, slots=True)
class Expression:
    """A parsed expression. `names` are all free names, `buffers` those that occur with a subscript."""

    text: str
    tree: ast.expr = field(compare=False, repr=False)
    names: frozenset[str] = field(compare=False)
    buffers: frozenset[str] = field(compare=False)
    where: str = field(default="", compare=False)

    def fault(self, code: str, message: str, hint: str = "") -> InputError:
        """An error about this expression."""
        return InputError(code, f"{self.where}: {message} in {self.text!r}" if self.where else message, hint=hint)

    def interpret(self, algebra: Algebra) -> Any:
        """The value of the expression in an algebra."""
        return _Interpreter(self, algebra).value(self.tree, {})

    def conjuncts(self) -> tuple[Expression, ...]:
        """The expression split at `and` and at chained comparisons."""
        return tuple(_of_tree(t, self.where) for t in _split(self.tree))

    def comparison(self) -> tuple[Expression, str, Expression] | None:
        """(left, operator, right) of a single comparison, else None."""
        match self.tree:
            case ast.Compare(left=a, ops=[op], comparators=[b]):
                return _of_tree(a, self.where), _COMPARE[type(op)], _of_tree(b, self.where)
            case _:
                return None

    def whole_buffer(self) -> str | None:
        """The buffer of `x[i][j]` when the indices are distinct bare names, so that it means every element."""
        if not isinstance(self.tree, ast.Subscript):
            return None
        root, index = _root(self.tree)
        names = [i.id for i in index if isinstance(i, ast.Name)]
        return root.id if len(names) == len(index) == len(set(names)) else None


def parse_expression(text: object, where: str) -> Expression:
    """The expression written as a string, or an integer standing for itself; InputError REF205 for anything else."""
    if isinstance(text, bool) or not isinstance(text, str | int):
        raise InputError("REF205", f"{where}: expected an expression, found {type(text).__name__}",
                         hint='write it as a string, for example "(n + 255) // 256"')
    if isinstance(text, int):
        if text.bit_length() > MAX_BITS:
            raise InputError("REF207", f"{where}: an integer of more than {MAX_BITS} bits")
        text = str(text)
    if len(text) > MAX_TEXT:
        raise InputError("REF207", f"{where}: an expression of {len(text)} characters; {MAX_TEXT} are allowed")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        raise InputError("REF205", f"{where}: cannot read {text!r}: {getattr(e, 'msg', None) or e}",
                         hint="expressions are Python arithmetic over sizes and scalars") from None
    _check(tree, text, where)
    return _of_tree(tree, where)


def _of_tree(tree: ast.expr, where: str) -> Expression:
    bound = {g.target.id for n in ast.walk(tree) if isinstance(n, ast.GeneratorExp) for g in n.generators
             if isinstance(g.target, ast.Name)}
    called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called} - bound
    buffers = {root.id for n in ast.walk(tree) if isinstance(n, ast.Subscript) for root in [_root(n)[0]]}
    return Expression(ast.unparse(tree), tree, frozenset(names), frozenset(buffers), where)


def _split(tree: ast.expr) -> list[ast.expr]:
    if isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And):
        return [p for v in tree.values for p in _split(v)]
    if isinstance(tree, ast.Compare) and len(tree.ops) > 1:
        operands = [tree.left, *tree.comparators]
        return [ast.Compare(a, [op], [b]) for a, op, b in zip(operands, tree.ops, operands[1:])]
    return [tree]


def _check(tree: ast.expr, text: str, where: str) -> None:
    """Raise unless every node is admitted and the expression is of bounded size."""
    nodes = list(ast.walk(tree))
    if len(nodes) > MAX_NODES:
        raise InputError("REF207", f"{where}: an expression of {len(nodes)} parts; {MAX_NODES} are allowed")
    bound: set[str] = set()
    for n in nodes:
        if not _admitted(n):
            what = ast.unparse(n) if isinstance(n, ast.expr) else type(n).__name__
            raise InputError("REF205", f"{where}: {what[:80]!r} is not allowed in {text[:200]!r}",
                             hint="allowed are + - * // % **, min, max, comparisons, and/or/not, buffer elements "
                                  "and sum(... for j in range(...))")
        if isinstance(n, ast.GeneratorExp):
            target = n.generators[0].target
            assert isinstance(target, ast.Name)
            if target.id in bound:
                raise InputError("REF205", f"{where}: {target.id!r} is bound twice in {text[:200]!r}")
            bound.add(target.id)
    _check_depth(tree, where)


def _check_depth(tree: ast.expr, where: str) -> None:
    depth, level = 0, list(ast.iter_child_nodes(tree))
    while level:
        depth += 1
        level = [c for n in level for c in ast.iter_child_nodes(n)]
    if depth > 100:
        raise InputError("REF207", f"{where}: an expression nested {depth} deep; 100 are allowed")


def _admitted(n: ast.AST) -> bool:
    match n:
        case ast.Constant(value=v):
            return isinstance(v, bool) or (isinstance(v, int) and v.bit_length() <= MAX_BITS) or (
                isinstance(v, float) and v == v and abs(v) != float("inf"))
        case ast.BinOp(op=op):
            return type(op) in _BINARY
        case ast.UnaryOp(op=ast.USub() | ast.UAdd() | ast.Not()) | ast.BoolOp() | ast.Tuple() | ast.Name():
            return True
        case ast.Compare(ops=ops):
            return all(type(op) in _COMPARE for op in ops)
        case ast.Call(func=ast.Name(id="min" | "max"), args=args, keywords=[]):
            return len(args) >= 1 and not any(isinstance(a, ast.GeneratorExp) for a in args)
        case ast.Call(func=ast.Name(id="sum"), args=[ast.GeneratorExp()], keywords=[]):
            return True
        case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]):
            return 1 <= len(args) <= 2
        case ast.GeneratorExp(generators=[ast.comprehension(target=ast.Name(), ifs=[], is_async=0, iter=it)]):
            return isinstance(it, ast.Call) and isinstance(it.func, ast.Name) and it.func.id == "range"
        case ast.Subscript():
            return _root(n) is not None and isinstance(_root(n)[0], ast.Name)
        case ast.comprehension() | ast.expr_context() | ast.operator() | ast.unaryop() | ast.boolop() | ast.cmpop():
            return True
        case _:
            return False


def _root(n: ast.Subscript) -> tuple[ast.Name, list[ast.expr]]:
    """The buffer and the index expressions of `a[i][j]` or `a[i, j]`."""
    index: list[ast.expr] = []
    node: ast.expr = n
    while isinstance(node, ast.Subscript):
        part = node.slice
        index = (list(part.elts) if isinstance(part, ast.Tuple) else [part]) + index
        node = node.value
    return node, index  # type: ignore[return-value]


class _Interpreter:
    def __init__(self, expression: Expression, algebra: Algebra) -> None:
        self.expression, self.algebra = expression, algebra

    def value(self, n: ast.expr, bound: Mapping[str, Any]) -> Any:
        """The value of a subtree."""
        a = self.algebra
        match n:
            case ast.Constant(value=bool() | int() | float() as v):
                return a.constant(Fraction(v) if isinstance(v, float) else int(v))
            case ast.Name(id=name):
                return bound[name] if name in bound else a.name(name)
            case ast.BinOp(left=x, op=op, right=y):
                return a.binary(_BINARY[type(op)], self.value(x, bound), self.value(y, bound))
            case ast.UnaryOp(op=ast.Not(), operand=x):
                return a.logical("not", [self.value(x, bound)])
            case ast.UnaryOp(op=op, operand=x):
                v = self.value(x, bound)
                return a.binary("-", a.constant(0), v) if isinstance(op, ast.USub) else v
            case ast.BoolOp(op=op, values=parts):
                return a.logical("and" if isinstance(op, ast.And) else "or", [self.value(p, bound) for p in parts])
            case ast.Compare(left=left, ops=ops, comparators=rest):
                values = [self.value(p, bound) for p in [left, *rest]]
                found = [a.compare(_COMPARE[type(op)], x, y) for op, x, y in zip(ops, values, values[1:])]
                return found[0] if len(found) == 1 else a.logical("and", found)
            case ast.Subscript():
                root, index = _root(n)
                return a.subscript(root.id, [self.value(i, bound) for i in index])
            case ast.Call(func=ast.Name(id="sum"), args=[ast.GeneratorExp() as g]):
                return self._total(g, bound)
            case ast.Call(func=ast.Name(id="min" | "max" as kind), args=args):
                return a.extremum(kind, [self.value(p, bound) for p in args])
            case _:
                raise self.expression.fault("REF205", f"{ast.unparse(n)!r} is not a value")

    def _total(self, g: ast.GeneratorExp, bound: Mapping[str, Any]) -> Any:
        part = g.generators[0]
        assert isinstance(part.iter, ast.Call)
        assert isinstance(part.target, ast.Name)
        limits = [self.value(p, bound) for p in part.iter.args]
        lo, hi = (self.algebra.constant(0), limits[0]) if len(limits) == 1 else limits
        name = part.target.id
        return self.algebra.total(lo, hi, lambda j: self.value(g.elt, {**bound, name: j}))
