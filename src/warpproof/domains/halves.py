"""Bit operations on registers that hold floats in their 16-bit halves: moves of halves, signs, three-input logic.

Everything here is exact on the bits; what is not is left to `Unsupported`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from warpproof.core import Unsupported
from warpproof.domains.base import IntOp, ScalarType
from warpproof.domains.values import Float, Int, Pack, Value
from warpproof.terms import Poly, const

if TYPE_CHECKING:
    from warpproof.domains.reals import Reals

_PIECE: Final = 16
_ONES: Final = 0xFFFF
_SIGN: Final = 0x8000
_B16: Final = ScalarType("b", _PIECE)
_TRIES: Final = 12
_BITWISE: Final[tuple[IntOp, ...]] = ("and", "or", "xor")
Expression = str | tuple["IntOp", "Expression", "Expression"] | tuple["IntOp", "Expression"]


def apply(dom: Reals, op: IntOp, ty: ScalarType, args: tuple[Value, ...], control: int) -> Value | None:
    """The result of an operation that moves or combines halves; None when `op` or its operands are of another kind."""
    if all(isinstance(a, Int) and a.poly.is_constant() for a in args):
        return None
    if op == "lop3":
        return _three_input(dom, ty, args, control)
    if ty.width % _PIECE or ty.width == _PIECE:
        return None
    if op == "prmt":
        return _permuted(dom, args, control)
    if not any(isinstance(a, Pack) for a in args):
        return None
    match op:
        case "and" | "or" | "xor":
            pieces = [_combined(dom, op, x, y) for x, y in zip(*(_pieces(dom, a) for a in args), strict=True)]
        case "shl" | "shr" if not (op == "shr" and ty.signed):
            amount = args[1].poly.as_int() if isinstance(args[1], Int) else None
            if amount is None or amount % _PIECE:
                raise Unsupported(f"{op}.{ty}", "a shift that splits the parts of a packed value")
            pieces = _shifted(list(_pieces(dom, args[0])), amount // _PIECE * (1 if op == "shl" else -1))
        case _:
            return None
    return dom.pack(ty.width, pieces)


def widened(width: int, value: Float | Pack) -> Value:
    """A float or packed value zero-extended to `width` bits."""
    piece = value.width // len(value.parts) if isinstance(value, Pack) else value.width
    if width % piece or width < value.width:
        raise Unsupported("register width", f"a {value.width}-bit float or packed value used as {width} bits")
    parts = value.parts if isinstance(value, Pack) else (value,)
    return Pack(width, (*parts, *(Int(piece, const(0)) for _ in range(width // piece - len(parts)))))


def _pieces(dom: Reals, value: Value) -> tuple[Value, ...]:
    """The 16-bit pieces, low first; symbolic integers are reduced to their piece."""
    split = dom.unpack(value.width, value, value.width // _PIECE)
    return tuple(
        Int(_PIECE, dom.arena.mod(p.poly, const(1 << _PIECE))) if isinstance(p, Int) and not p.poly.is_constant() else p
        for p in split
    )


def _combined(dom: Reals, op: IntOp, x: Value, y: Value) -> Value:
    """One piece of a bitwise operation."""
    if isinstance(x, Int):
        x, y = y, x
    if isinstance(x, Int):
        return dom.integers.apply(op, _B16, (x, y), 0)
    k = y.poly.as_int() if isinstance(y, Int) else None
    if k is not None:
        k &= _ONES
        if op == "and" and k == 0:
            return Int(_PIECE, const(0))
        if (op, k) in (("and", _ONES), ("or", 0), ("xor", 0)):
            return x
        if isinstance(x, Float) and op == "and" and k == _SIGN - 1:
            return Float(x.kind, x.width, dom.arena.unary("abs", x.node))
        if isinstance(x, Float) and op == "xor" and k == _SIGN:
            return Float(x.kind, x.width, dom.arena.neg(x.node))
    raise Unsupported(f"{op}.b{_PIECE}", "bit manipulation of a float value")


def _shifted(pieces: list[Value], up: int) -> list[Value]:
    zeros: list[Value] = [Int(_PIECE, const(0))] * min(abs(up), len(pieces))
    return [*zeros, *pieces][: len(pieces)] if up >= 0 else [*pieces, *zeros][len(zeros) :]


def _permuted(dom: Reals, args: tuple[Value, ...], mode: int) -> Value:
    """`prmt` whose selector picks whole halves, or bytes of constants."""
    selector = args[2].poly.as_int() if isinstance(args[2], Int) else None
    if mode or selector is None:
        raise Unsupported("prmt", "a symbolic selector or a special mode on symbolic bytes")
    source = (*_pieces(dom, args[0]), *_pieces(dom, args[1]))
    nibbles = [selector >> 4 * i & 15 for i in range(4)]
    return dom.pack(32, [_picked(dom, source, low, high) for low, high in (nibbles[:2], nibbles[2:])])


def _picked(dom: Reals, source: tuple[Value, ...], low: int, high: int) -> Value:
    if low % 2 == 0 and high == low + 1 and high < 8:
        return source[low // 2]
    word = _byte(dom, source, low) + _byte(dom, source, high) * 256
    k = word.as_int()
    return Int(_PIECE, word if k is None else const((k ^ _SIGN) - _SIGN))


def _byte(dom: Reals, source: tuple[Value, ...], nibble: int) -> Poly:
    """The byte a selector nibble names, of a number; with its top bit set, that byte's sign in all bits."""
    piece = source[(nibble & 7) // 2]
    if not isinstance(piece, Int):
        raise Unsupported("prmt", "bytes of a float are rearranged")
    byte = dom.arena.mod(dom.arena.floor_div(piece.poly, const(1 << 8 * (nibble % 2))), const(256))
    if nibble & 8:
        k = byte.as_int()
        if k is None:
            raise Unsupported("prmt", "the sign of a symbolic byte")
        return const(255 if k & 128 else 0)
    return byte


# ------------------------------------------------------------------ three-input logic
def _three_input(dom: Reals, ty: ScalarType, args: tuple[Value, ...], table: int) -> Value:
    """`lop3` as two-input operations, the first of its shortest readings that has a meaning."""
    named = dict(zip("abc", args, strict=True))
    why = Unsupported(f"lop3.{ty}", "no reading in two-input operations")
    for expression in _readings()[table]:
        try:
            return _evaluated(dom, ty, expression, named)
        except Unsupported as stuck:
            why = stuck
    raise why


def _evaluated(dom: Reals, ty: ScalarType, e: Expression, named: dict[str, Value]) -> Value:
    if isinstance(e, str):
        return named[e] if e in named else dom.constant(ty, -1 if e == "ones" else 0)
    return dom.integer(e[0], ty, *(_evaluated(dom, ty, part, named) for part in e[1:]))


@cache
def _readings() -> dict[int, tuple[Expression, ...]]:
    """For every table, expressions over and, or, xor, not that compute it, short ones first."""
    leaves: list[tuple[int, Expression]] = [(0xF0, "a"), (0xCC, "b"), (0xAA, "c"), (0, "zero"), (255, "ones")]
    first = leaves[:3] + [(255 - t, ("not", e)) for t, e in leaves[:3]]
    second = _joined(first, first)
    second += [(255 - t, ("not", e)) for t, e in second]
    found: dict[int, list[Expression]] = {t: [] for t in range(256)}
    for table, e in [*leaves, *first, *second, *_joined(second, first)]:
        if len(found[table]) < _TRIES and e not in found[table]:
            found[table].append(e)
    for table, e in _joined(second, second):
        if not found[table]:
            found[table].append(e)
    return {t: tuple(es) for t, es in found.items()}


def _joined(xs: list[tuple[int, Expression]], ys: list[tuple[int, Expression]]) -> list[tuple[int, Expression]]:
    out: list[tuple[int, Expression]] = []
    for s, x in xs:
        for t, y in ys:
            out += [(s & t, ("and", x, y)), (s | t, ("or", x, y)), (s ^ t, ("xor", x, y))]
    return out
