"""A second decision procedure: ordered binary decision diagrams, complete up to a bound on their nodes.

It shares nothing with the SMT solver but the term; proofs are re-checked with it (Bryant, IEEE Trans. Computers 1986).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from warpproof.sandbox.bitvectors import Arena, Node, Term

_FALSE: Final = 0
_TRUE: Final = 1
Bits = list[int]


class TooLarge(Exception):
    """The diagram needs more nodes than are allowed."""


class Diagrams:
    """Diagrams of an arena's terms over the bits of words, in the order of `order`, high bits first."""

    def __init__(self, arena: Arena, order: Sequence[str], limit: int = 2_000_000) -> None:
        self._arena, self._order = arena, tuple(order)
        self._rank = {name: i for i, name in enumerate(order)}
        self._limit = limit
        leaf = 1 << 60
        self._nodes: list[tuple[int, int, int]] = [(leaf, 0, 0), (leaf, 1, 1)]
        self._unique: dict[tuple[int, int, int], int] = {}
        self._memo: dict[tuple[int, int, int], int] = {}
        self._built: dict[Term, Bits] = {}
        self._widths: dict[str, int] = {}

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
        if g == _TRUE and h == _FALSE:
            return f
        key = (f, g, h)
        found = self._memo.get(key)
        if found is not None:
            return found
        nodes = self._nodes
        (a, f0, f1), (b, g0, g1), (c, h0, h1) = nodes[f], nodes[g], nodes[h]
        level = a if a < b else b
        level = level if level < c else c
        if a != level:
            f0 = f1 = f
        if b != level:
            g0 = g1 = g
        if c != level:
            h0 = h1 = h
        made = self._node(level, self.choose(f0, g0, h0), self.choose(f1, g1, h1))
        self._memo[key] = made
        return made

    def negation(self, f: int) -> int:
        """Not f."""
        return self.choose(f, _FALSE, _TRUE)

    def word(self, name: str, width: int) -> Bits:
        """The bits of a word, lowest first."""
        base, self._widths[name] = self._rank[name] << 8, width
        return [self._node(base + width - 1 - bit, _FALSE, _TRUE) for bit in range(width)]

    def build(self, root: Term) -> int:
        """The diagram of a Boolean term; 0 exactly if it cannot be true. TooLarge beyond the bound."""
        built = self._built
        for term in self._arena.reachable(root, built):
            node = self._arena.nodes[term]
            built[term] = self._term(node, [built[a] for a in node.args])
        return built[root][0]

    def model(self, f: int) -> dict[str, int] | None:
        """Values of words that make f true, the others 0; None if there are none."""
        if f == _FALSE:
            return None
        values = dict.fromkeys(self._order, 0)
        while f != _TRUE:
            level, low, high = self._nodes[f]
            if low == _FALSE:
                name = self._order[level >> 8]
                values[name] |= 1 << (self._widths[name] - 1 - (level & 0xFF))
            f = high if low == _FALSE else low
        return values

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
            if y <= 1:  # a constant, as most are
                value = self._above(op, x, y, value)
                continue
            same = self.choose(x, y, self.negation(y))
            value = self.choose(same, value, _FALSE if op == "=" else y)
        return value

    def _above(self, op: str, x: int, y: int, value: int) -> int:
        if op == "=":
            return self.choose(x, value, _FALSE) if y else self.choose(x, _FALSE, value)
        return self.choose(x, value, _TRUE) if y else self.choose(x, _FALSE, value)

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
