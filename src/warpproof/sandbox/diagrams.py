"""A second decision procedure: ordered binary decision diagrams, complete up to a bound on their nodes.

It shares nothing with the SMT solver but the term; proofs are re-checked with it (Bryant, IEEE Trans. Computers 1986).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from warpproof.sandbox.bitvectors import Arena, Node, Term

_FALSE: Final = 0
_TRUE: Final = 1
Bits = list[int]


class TooLarge(Exception):
    """The diagram needs more nodes than are allowed."""


class Diagrams:
    """Decision diagrams over the bits of words, in the order in which `order` lists the words, high bits first."""

    def __init__(self, order: Sequence[str], limit: int = 2_000_000) -> None:
        self._rank = {name: i for i, name in enumerate(order)}
        self._limit = limit
        leaf = 1 << 60
        self._nodes: list[tuple[int, int, int]] = [(leaf, 0, 0), (leaf, 1, 1)]
        self._unique: dict[tuple[int, int, int], int] = {}
        self._memo: dict[tuple[int, int, int], int] = {}

    def _node(self, level: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (level, low, high)
        found = self._unique.get(key)
        if found is None:
            if len(self._nodes) >= self._limit:
                raise TooLarge
            found = self._unique[key] = len(self._nodes)
            self._nodes.append(key)
        return found

    def choose(self, f: int, g: int, h: int) -> int:
        """The diagram of "if f then g else h"."""
        if f <= 1 or g == h:
            return g if f == _TRUE or g == h else h
        if (g, h) == (_TRUE, _FALSE):
            return f
        key = (f, g, h)
        found = self._memo.get(key)
        if found is None:
            level = min(self._nodes[n][0] for n in key)
            low = self.choose(*(self._branch(n, level, 1) for n in key))
            high = self.choose(*(self._branch(n, level, 2) for n in key))
            found = self._memo[key] = self._node(level, low, high)
        return found

    def _branch(self, n: int, level: int, side: int) -> int:
        node = self._nodes[n]
        return node[side] if node[0] == level else n

    def negation(self, f: int) -> int:
        """Not f."""
        return self.choose(f, _FALSE, _TRUE)

    def word(self, name: str, width: int) -> Bits:
        """The bits of a word, lowest first."""
        base = self._rank[name] << 8
        return [self._node(base + width - 1 - bit, _FALSE, _TRUE) for bit in range(width)]

    def build(self, arena: Arena, root: Term) -> int:
        """The diagram of a Boolean term; 0 exactly if it cannot be true. TooLarge beyond the bound."""
        values: dict[Term, Bits] = {}
        for term in arena.reachable(root):
            node = arena.nodes[term]
            values[term] = self._term(node, [values[a] for a in node.args])
        return values[root][0]

    def model(self, f: int) -> dict[int, bool] | None:
        """One assignment, by level, that makes f true; None if there is none."""
        chosen = {}
        if f == _FALSE:
            return None
        while f != _TRUE:
            level, low, high = self._nodes[f]
            chosen[level] = low == _FALSE
            f = high if low == _FALSE else low
        return chosen

    def _term(self, node: Node, args: list[Bits]) -> Bits:
        match node.op:
            case "word":
                return self.word(node.name, node.width)
            case "number":
                return [node.value >> i & 1 for i in range(node.width)]
            case "true" | "false":
                return [int(node.op == "true")]
            case "not":
                return [self.negation(args[0][0])]
            case "and" | "or":
                return [self._junction([a[0] for a in args], node.op == "and")]
            case "ite":
                return [self.choose(args[0][0], y, n) for y, n in zip(args[1], args[2], strict=True)]
            case "concat":
                return args[1] + args[0]
            case "=" | "bvult" | "bvule":
                return [self._compare(node.op, args[0], args[1])]
            case op:
                return self._arithmetic(op, args[0], args[1])

    def _junction(self, args: list[int], conjunction: bool) -> int:
        value = int(conjunction)
        for a in args:
            value = self.choose(a, value, _FALSE) if conjunction else self.choose(a, _TRUE, value)
        return value

    def _compare(self, op: str, a: Bits, b: Bits) -> int:
        value = _FALSE if op == "bvult" else _TRUE
        for x, y in zip(a, b, strict=True):  # from the lowest bit: the higher ones override
            same = self.choose(x, y, self.negation(y))
            value = self.choose(same, value, _FALSE if op == "=" else y)
        return value

    def _arithmetic(self, op: str, a: Bits, b: Bits) -> Bits:
        match op:
            case "bvand":
                return [self.choose(x, y, _FALSE) for x, y in zip(a, b, strict=True)]
            case "bvor":
                return [self.choose(x, _TRUE, y) for x, y in zip(a, b, strict=True)]
            case "bvxor":
                return [self.choose(x, self.negation(y), y) for x, y in zip(a, b, strict=True)]
            case "bvadd":
                return self._add(a, b, _FALSE)
            case "bvsub":
                return self._add(a, [self.negation(y) for y in b], _TRUE)
            case "bvmul":
                return self._multiply(a, b)
            case "bvshl" | "bvlshr":
                return self._shift(a, b, op == "bvshl")
            case "bvudiv" | "bvurem":
                return self._divide(a, b)[op == "bvurem"]
            case _:
                raise AssertionError(op)

    def _add(self, a: Bits, b: Bits, carry: int) -> Bits:
        total = []
        for x, y in zip(a, b, strict=True):
            unlike = self.choose(x, self.negation(y), y)
            total.append(self.choose(unlike, self.negation(carry), carry))
            carry = self.choose(unlike, carry, x)
        return total

    def _multiply(self, a: Bits, b: Bits) -> Bits:
        total: Bits = [_FALSE] * len(a)
        for i, bit in enumerate(b):
            shifted = [_FALSE] * i + a[: len(a) - i]
            total = self._add(total, [self.choose(bit, s, _FALSE) for s in shifted], _FALSE)
        return total

    def _shift(self, a: Bits, b: Bits, left: bool) -> Bits:
        width, value = len(a), a
        for i, bit in enumerate(b):
            by = min(1 << i, width)
            zeros: Bits = [_FALSE] * by
            moved = zeros + value[: width - by] if left else value[by:] + zeros
            value = [self.choose(bit, m, v) for m, v in zip(moved, value, strict=True)]
        return value

    def _divide(self, a: Bits, b: Bits) -> tuple[Bits, Bits]:
        width = len(a)
        rest: Bits = [_FALSE] * (width + 1)
        divisor, quotient = b + [_FALSE], [_FALSE] * width
        for i in reversed(range(width)):
            rest = [a[i]] + rest[:-1]
            fits = self._compare("bvule", divisor, rest)
            less = self._add(rest, [self.negation(d) for d in divisor], _TRUE)
            rest = [self.choose(fits, x, y) for x, y in zip(less, rest, strict=True)]
            quotient[i] = fits
        return quotient, rest[:width]


def satisfiable(arena: Arena, root: Term, order: Sequence[str], limit: int = 2_000_000) -> dict[str, int] | None:
    """Words that make the Boolean term true, None if none do. TooLarge beyond the bound on nodes."""
    diagrams = Diagrams(order, limit)
    widths = {arena.nodes[t].name: arena.nodes[t].width for t in arena.reachable(root) if arena.nodes[t].op == "word"}
    found = diagrams.model(diagrams.build(arena, root))
    if found is None:
        return None
    bit: Callable[[str, int, int], int] = lambda name, rank, i: int(found.get((rank << 8) + widths[name] - 1 - i, False))
    return {name: sum(bit(name, rank, i) << i for i in range(widths[name]))
            for rank, name in enumerate(order) if name in widths}
