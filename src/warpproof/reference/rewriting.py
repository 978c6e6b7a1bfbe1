"""Rewrites the statements of a reference that Python would run on symbols: loops, branches, comprehensions.

A `for` is wrapped so that a `Loop` sees the variables that its body reassigns; an `if` so that a `Branch` can run both
sides; `a if c else b`, `and`, `or`, `not` and chained comparisons become calls. On ordinary values all of them do what
they did before.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Final

LOOP: Final = "__warpproof_loop__"
BRANCH: Final = "__warpproof_branch__"
CONDITIONAL: Final = "__warpproof_conditional__"
SHORTCUT: Final = "__warpproof_shortcut__"
NEGATION: Final = "__warpproof_not__"
CHAIN: Final = "__warpproof_chain__"
COMPREHENSION: Final = "__warpproof_comprehension__"
_RETURNED: Final = "__returned__"
_COMPARISONS: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
_SCOPED: Final = (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await)


class Rewriter(ast.NodeTransformer):
    """The rewrite of one function's body."""

    def __init__(self) -> None:
        self.count = 0

    # ------------------------------------------------------------------ statements
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """A function: `if c: return a` before its end becomes a choice of the returned value."""
        for n in ast.walk(node):
            if isinstance(n, ast.For):
                n.body = _continuing(n.body)
        node.body = _returning(node.body)
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> list[ast.stmt]:
        """`for` with its bookkeeping; a concrete loop runs as before."""
        self.count += 1
        loop = f"__loop_{self.count}__"
        targets = _names(node.target)
        names = sorted(_assigned(node.body) | set(targets or ()))
        simple = targets is not None and not node.orelse and not _leaves(node.body)
        names = [n for n in names if n not in (targets or ())] if targets is not None else names
        body = self._block(node.body)
        target = targets[0] if targets else ""
        enter = _parse(f"{loop} = {LOOP}(None, locals(), globals(), {names!r}, {simple}, {target!r})")
        assert isinstance(enter, ast.Assign)
        assert isinstance(enter.value, ast.Call)
        enter.value.args[0] = self.visit(node.iter)
        before = [_parse(f"if {n!r} in {loop}.carried: {n} = {loop}.carried[{n!r}]") for n in names]
        after = [_parse(f"{loop}.leave(locals())")]
        held = [*names, *(targets or ())]
        results = [_parse(f"if {n!r} in {loop}.results: {n} = {loop}.results[{n!r}]") for n in held]
        replaced = ast.For(node.target, ast.Name(loop, ast.Load()), [*before, *body, *after], node.orelse, None)
        for part in (enter, *before, *after, *results):
            _place(part, node, keep=enter.value.args[0])
        ast.copy_location(replaced, node)
        ast.copy_location(replaced.iter, node.iter)
        return [enter, replaced, *results]

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """`if` with its bookkeeping, unless a side leaves the loop or the function."""
        if _leaves([node]):
            return self.generic_visit(node)
        self.count += 1
        branch, side = f"__branch_{self.count}__", f"__side_{self.count}__"
        names = sorted(_assigned([*node.body, *node.orelse]))
        enter = _parse(f"{branch} = {BRANCH}(None, locals(), globals(), {names!r})")
        assert isinstance(enter, ast.Assign)
        assert isinstance(enter.value, ast.Call)
        enter.value.args[0] = self.visit(node.test)
        before = [_parse(f"if {n!r} in {branch}.entry: {n} = {branch}.restore({n!r})") for n in names]
        choice = ast.If(ast.Name(side, ast.Load()), self._block(node.body), self._block(node.orelse))
        after = [_parse(f"{branch}.leave(locals())")]
        results = [_parse(f"if {n!r} in {branch}.results: {n} = {branch}.results[{n!r}]") for n in names]
        run = ast.For(ast.Name(side, ast.Store()), ast.Name(branch, ast.Load()), [*before, choice, *after], [], None)
        for part in (enter, *before, *after, *results):
            _place(part, node, keep=enter.value.args[0])
        for new in (run, run.target, run.iter, choice, choice.test):
            ast.copy_location(new, node)
        return [enter, run, *results]

    def _block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in body:
            new = self.visit(s)
            out.extend(new if isinstance(new, list) else [new])
        return out

    # ------------------------------------------------------------------ expressions
    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """`a if c else b`."""
        if _scoped(node):
            return self.generic_visit(node)
        parts = [self.visit(node.test), _later(self.visit(node.body)), _later(self.visit(node.orelse))]
        return _call(CONDITIONAL, [_reach(), *parts], node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`a and b`, `a or b`."""
        if _scoped(node):
            return self.generic_visit(node)
        parts = ast.List([_later(self.visit(v)) for v in node.values], ast.Load())
        name = "and" if isinstance(node.op, ast.And) else "or"
        return _call(SHORTCUT, [_reach(), ast.Constant(name), parts], node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not a`."""
        if not isinstance(node.op, ast.Not):
            return self.generic_visit(node)
        return _call(NEGATION, [self.visit(node.operand)], node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """`a < b < c`; a single comparison stays."""
        if len(node.ops) < 2 or not all(isinstance(op, _COMPARISONS) for op in node.ops):
            return self.generic_visit(node)
        ops = ast.List([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        values = ast.List([self.visit(v) for v in (node.left, *node.comparators)], ast.Load())
        return _call(CHAIN, [ops, values], node)

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        """`[… for x in xs]`."""
        return self._comprehension(node, "list")

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        """`(… for x in xs)`."""
        return self._comprehension(node, "generator")

    def _comprehension(self, node: ast.ListComp | ast.GeneratorExp, kind: str) -> ast.AST:
        (first, *rest) = node.generators
        targets = _names(first.target)
        if rest or _scoped(node) or targets is None or first.is_async:
            return self.generic_visit(node)
        item = _of(first.target, self.visit(node.elt))
        filters = ast.List([_of(first.target, self.visit(c)) for c in first.ifs], ast.Load())
        return _call(COMPREHENSION, [_reach(), ast.Constant(kind), self.visit(first.iter), item, filters], node)


# ---------------------------------------------------------------------- early exits
def _continuing(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a loop with `if c: continue` followed by more turned into `if c: pass` / `else: more`."""
    for k, s in enumerate(body):
        if isinstance(s, ast.If) and not s.orelse and s.body and isinstance(s.body[-1], ast.Continue):
            skipped = s.body[:-1] or [ast.copy_location(ast.Pass(), s)]
            return [*body[:k], ast.copy_location(ast.If(s.test, skipped, _continuing(body[k + 1 :])), s)]
    return body


def _returning(body: list[ast.stmt]) -> list[ast.stmt]:
    """The body of a function that ends in a choice of the returned value, where its last `if`s return on both sides."""
    for k, s in enumerate(body):
        if isinstance(s, ast.If) and _ends(s.body):
            yes, no = s.body, (s.orelse if _ends(s.orelse) else [*s.orelse, *body[k + 1 :]])
            if not _ends(no) or (s.orelse and _ends(s.orelse) and body[k + 1 :]):
                return body
            both = [_noting(_returning(list(side))) for side in (yes, no)]
            if any(_leaves(side) for side in both):
                return body
            final = _parse(f"return {_RETURNED}")
            _place(final, s, keep=ast.Constant(None))
            return [*body[:k], ast.copy_location(ast.If(s.test, *both), s), final]
    return body


def _ends(body: Sequence[ast.stmt]) -> bool:
    """True when the statements end with `return value`, or with an `if` that does on both sides."""
    if not body:
        return False
    last = body[-1]
    if isinstance(last, ast.If):
        return _ends(last.body) and _ends(last.orelse)
    return isinstance(last, ast.Return) and last.value is not None


def _noting(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements with their last `return value` made an assignment."""
    last = body[-1]
    if not isinstance(last, ast.Return) or last.value is None:
        return body
    target = ast.copy_location(ast.Name(_RETURNED, ast.Store()), last)
    return [*body[:-1], ast.copy_location(ast.Assign([target], last.value), last)]


# ---------------------------------------------------------------------- pieces of syntax
def _parse(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def _place(s: ast.stmt, at: ast.stmt, keep: ast.expr) -> None:
    """Give the nodes of a new statement another one's position, except those of the user's expression."""
    own = {id(n) for n in ast.walk(keep)}
    for n in ast.walk(s):
        if id(n) not in own and isinstance(n, ast.stmt | ast.expr):
            ast.copy_location(n, at)


def _call(name: str, args: list[ast.expr], at: ast.expr) -> ast.Call:
    made = ast.Call(ast.Name(name, ast.Load()), args, [])
    for n in ast.walk(made):
        if isinstance(n, ast.expr | ast.arg) and not hasattr(n, "lineno"):
            ast.copy_location(n, at)
    return made


def _reach() -> ast.expr:
    """The variables in reach of an expression."""
    return ast.parse("(locals(), globals())", mode="eval").body


def _later(value: ast.expr) -> ast.Lambda:
    return ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)


def _of(target: ast.expr, value: ast.expr) -> ast.expr:
    """The function of an item, which a target takes apart."""
    if isinstance(target, ast.Name):
        arguments = ast.arguments([], [ast.arg(target.id)], None, [], [], None, [])
        return ast.Lambda(arguments, value)
    names = _names(target) or []
    inner = ast.Lambda(ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, []), value)
    item = ast.Starred(ast.Name("__item__", ast.Load()), ast.Load())
    return ast.Lambda(ast.arguments([], [ast.arg("__item__")], None, [], [], None, []), ast.Call(inner, [item], []))


def _names(target: ast.expr) -> list[str] | None:
    """The names that a flat target binds, None for any other target."""
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, ast.Tuple) and all(isinstance(n, ast.Name) for n in target.elts):
        return [n.id for n in target.elts if isinstance(n, ast.Name)]
    return None


def _scoped(node: ast.AST) -> bool:
    return any(isinstance(n, _SCOPED) for n in ast.walk(node))


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """Names that the statements rebind, or whose elements they assign."""
    out: set[str] = set()
    for s in body:
        for n in ast.walk(s):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store | ast.Del):
                out.add(n.id)
            elif isinstance(n, ast.FunctionDef):
                out.add(n.name)
            elif isinstance(n, ast.Subscript | ast.Attribute) and isinstance(n.ctx, ast.Store):
                base: ast.expr = n
                while isinstance(base, ast.Subscript | ast.Attribute):
                    base = base.value
                if isinstance(base, ast.Name):
                    out.add(base.id)
    return out


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """True when a statement may leave the block, or reaches variables of other scopes."""
    stack: list[tuple[ast.AST, bool]] = [(s, False) for s in body]
    while stack:
        n, in_loop = stack.pop()
        if isinstance(n, ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Global | ast.Nonlocal):
            return True
        if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store):
            return True
        if isinstance(n, ast.NamedExpr | ast.Try | ast.With | ast.Delete):
            return True
        if isinstance(n, ast.Break | ast.Continue) and not in_loop:
            return True
        if not isinstance(n, ast.FunctionDef | ast.Lambda):
            inner = in_loop or isinstance(n, ast.For | ast.While)
            stack.extend((c, inner) for c in ast.iter_child_nodes(n))
    return False
