"""Bit-vector and Boolean terms: shared, folded while built; evaluated, or written as SMT-LIB.

Booleans have width 0. A term is an index into its arena.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

Term = int
_BINARY: Final[Mapping[str, Callable[[int, int], int]]] = {
    "bvadd": lambda a, b: a + b, "bvsub": lambda a, b: a - b, "bvmul": lambda a, b: a * b,
    "bvand": lambda a, b: a & b, "bvor": lambda a, b: a | b, "bvxor": lambda a, b: a ^ b,
}
_COMPARE: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "=": lambda a, b: a == b, "bvult": lambda a, b: a < b, "bvule": lambda a, b: a <= b,
}


@dataclass(frozen=True, slots=True)
class Node:
    """One operation: SMT-LIB name, width (0: Boolean), operands, and the value or name of a leaf."""

    op: str
    width: int
    args: tuple[Term, ...] = ()
    value: int = 0
    name: str = ""


class Arena:
    """Terms over named words; equal terms have equal indices."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._index: dict[Node, Term] = {}
        self.false, self.true = self._make(Node("false", 0)), self._make(Node("true", 0))

    def _make(self, node: Node) -> Term:
        found = self._index.get(node)
        if found is None:
            found = self._index[node] = len(self.nodes)
            self.nodes.append(node)
        return found

    def word(self, name: str, width: int = 32) -> Term:
        """An unknown of that width."""
        return self._make(Node("word", width, name=name))

    def number(self, value: int, width: int = 32) -> Term:
        """A constant, taken modulo 2^width."""
        return self._make(Node("number", width, value=value & ((1 << width) - 1)))

    def width(self, term: Term) -> int:
        """The term's width; 0 for a Boolean."""
        return self.nodes[term].width

    def constant(self, term: Term) -> int | None:
        """The value of a constant term, None for any other."""
        node = self.nodes[term]
        if node.op in ("true", "false"):
            return int(node.op == "true")
        return node.value if node.op == "number" else None

    def binary(self, op: str, a: Term, b: Term) -> Term:
        """`bvadd`, `bvsub`, `bvmul`, `bvand`, `bvor`, `bvxor`, `bvudiv`, `bvurem`, `bvshl` or `bvlshr`."""
        width, x, y = self.width(a), self.constant(a), self.constant(b)
        assert width == self.width(b) > 0
        if x is not None and y is not None:
            return self.number(_apply(op, x, y, width), width)
        if y == 0 and op in ("bvadd", "bvsub", "bvor", "bvxor", "bvshl", "bvlshr"):
            return a
        if op == "bvand" and (0 in (x, y) or y == (1 << width) - 1):
            return a if y else self.number(0, width)
        return self._make(Node(op, width, (a, b)))

    def negate(self, a: Term) -> Term:
        """0 - a."""
        return self.binary("bvsub", self.number(0, self.width(a)), a)

    def join(self, high: Term, low: Term) -> Term:
        """The concatenation."""
        x, y, width = self.constant(high), self.constant(low), self.width(low)
        if x is not None and y is not None:
            return self.number(x << width | y, self.width(high) + width)
        return self._make(Node("concat", self.width(high) + width, (high, low)))

    def compare(self, op: str, a: Term, b: Term) -> Term:
        """`=`, `bvult` or `bvule` as a Boolean."""
        x, y = self.constant(a), self.constant(b)
        assert self.width(a) == self.width(b) > 0
        if x is not None and y is not None:
            return self.true if _COMPARE[op](x, y) else self.false
        if a == b:
            return self.false if op == "bvult" else self.true
        if op == "=" and a > b:
            a, b = b, a
        return self._make(Node(op, 0, (a, b)))

    def negation(self, a: Term) -> Term:
        """Not a."""
        if a in (self.true, self.false):
            return self.true if a == self.false else self.false
        node = self.nodes[a]
        return node.args[0] if node.op == "not" else self._make(Node("not", 0, (a,)))

    def both(self, terms: Iterable[Term]) -> Term:
        """The conjunction."""
        return self._junction("and", terms, self.true, self.false)

    def either(self, terms: Iterable[Term]) -> Term:
        """The disjunction."""
        return self._junction("or", terms, self.false, self.true)

    def _junction(self, op: str, terms: Iterable[Term], neutral: Term, absorbing: Term) -> Term:
        kept = tuple(dict.fromkeys(t for t in terms if t != neutral))
        if absorbing in kept or any(self.negation(t) in kept for t in kept):
            return absorbing
        if len(kept) < 2:
            return kept[0] if kept else neutral
        return self._make(Node(op, 0, kept))

    def choose(self, condition: Term, yes: Term, no: Term) -> Term:
        """`yes` where the condition holds, else `no`; of bit-vectors."""
        if yes == no or condition == self.true:
            return yes
        if condition == self.false:
            return no
        return self._make(Node("ite", self.width(yes), (condition, yes, no)))

    def reachable(self, root: Term, known: Container[Term] = ()) -> list[Term]:
        """The terms that `root` is made of, operands first, without going into those known."""
        if root in known:
            return []
        seen, stack = {root}, [root]
        while stack:
            for arg in self.nodes[stack.pop()].args:
                if arg not in seen and arg not in known:
                    seen.add(arg)
                    stack.append(arg)
        return sorted(seen)  # operands have smaller indices than what is made of them

    def evaluate(self, root: Term, words: Mapping[str, int]) -> int:
        """The value under an assignment; words that are not named are 0."""
        values: dict[Term, int] = {}
        for term in self.reachable(root):
            values[term] = self._value(self.nodes[term], values, words)
        return values[root]

    def _value(self, node: Node, values: Mapping[Term, int], words: Mapping[str, int]) -> int:
        args = [values[a] for a in node.args]
        match node.op:
            case "word":
                return words.get(node.name, 0)
            case "number" | "true" | "false":
                return node.value if node.op == "number" else int(node.op == "true")
            case "not":
                return 1 - args[0]
            case "and" | "or":
                return int(all(args) if node.op == "and" else any(args))
            case "ite":
                return args[1] if args[0] else args[2]
            case "concat":
                return args[0] << self.nodes[node.args[1]].width | args[1]
            case "=" | "bvult" | "bvule":
                return int(_COMPARE[node.op](args[0], args[1]))
            case op:
                return _apply(op, args[0], args[1], node.width)

    def script(self, root: Term) -> str:
        """SMT-LIB declarations and one assertion: satisfiable exactly if the Boolean `root` can be true."""
        return "\n".join([*self.definitions((root,)), f"(assert {self.reference(root)})", ""])

    def definitions(self, roots: Iterable[Term]) -> list[str]:
        """SMT-LIB lines that declare and define all that the terms are made of."""
        lines = []
        for term in sorted({t for root in roots for t in self.reachable(root)}):
            node = self.nodes[term]
            sort = f"(_ BitVec {node.width})" if node.width else "Bool"
            if node.op == "word":
                lines.append(f"(declare-const {node.name} {sort})")
            elif node.args:
                meaning = f"({node.op} {' '.join(self.reference(a) for a in node.args)})"
                lines.append(f"(define-fun t{term} () {sort} {meaning})")
        return lines

    def reference(self, term: Term) -> str:
        """How SMT-LIB text refers to the term after its definition."""
        node = self.nodes[term]
        match node.op:
            case "word":
                return node.name
            case "number":
                return f"(_ bv{node.value} {node.width})"
            case "true" | "false":
                return node.op
            case _:
                return f"t{term}"


def _apply(op: str, a: int, b: int, width: int) -> int:
    """SMT-LIB's meaning: division by 0 gives all ones, remainder by 0 the dividend, large shifts 0."""
    everything = (1 << width) - 1
    match op:
        case "bvudiv":
            return a // b if b else everything
        case "bvurem":
            return a % b if b else a
        case "bvshl":
            return a << b & everything if b < width else 0
        case "bvlshr":
            return a >> b if b < width else 0
        case _:
            return _BINARY[op](a, b) & everything
