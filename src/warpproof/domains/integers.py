"""Exact integers of the real-valued domain: w-bit registers as polynomials modulo 2^w.

Ring operations need no condition. A reading as a signed or unsigned number does: `view` demands it from the context,
unless the polynomial's range already gives it. Bit-level operations on constants are answered by the bits domain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains.base import Comparison, IntOp, ScalarType
from warpproof.domains.values import Choice, Float, Int, Pack, Part, Undef, Value
from warpproof.terms import Arena, Coef, IntVector, Poly, Pred, Real, coefficient, const

if TYPE_CHECKING:
    from warpproof.domains.reals import PathContext

_LANE_LIMIT = 1 << 60
_RING = frozenset({"add", "sub", "mul_lo", "neg"})


class Integers:
    """The integer part of `Reals`."""

    def __init__(self, arena: Arena, context: PathContext) -> None:
        self.arena, self.context, self.lanes = arena, context, arena.lanes

    # ------------------------------------------------------------------ readings
    def constant(self, width: int, bits: int) -> Int:
        """The pattern as the signed representative."""
        return Int(width, const(_signed(bits, width)))

    def poly(self, v: Value) -> Poly:
        """A polynomial congruent to the bits modulo 2^width."""
        match v:
            case Int(_, p):
                return p
            case Undef(width, why):
                return self.arena.variable(self.arena.fresh("undef", f"undefined {width}-bit register ({why})"))
            case Choice(_, pred, a, b):
                return self.merge(pred, self.poly(a), self.poly(b))
            case Pack(_, parts):
                out, shift = Poly({}), 0
                for i, part in enumerate(parts):
                    q = self.poly(part) if i == len(parts) - 1 else self.view(part, ScalarType("u", part.width))
                    out, shift = out + q * (1 << shift), shift + part.width
                return out
            case Part():
                raise Unsupported("part of a float read as an integer", "the bits of a float value")
            case Float():
                raise Unsupported(f"{v.kind}{v.width} read as an integer", "the bits of a float value")

    def view(self, v: Value, ty: ScalarType) -> Poly:
        """The number the bits stand for in `ty`; a demand on the context where it is not evident."""
        p = self.poly(v)
        if isinstance(v, Int) and v.known == ("s" if ty.signed else "u") and v.width == ty.width:
            return p
        lo, hi = (-(1 << (ty.width - 1)), (1 << (ty.width - 1)) - 1) if ty.signed else (0, (1 << ty.width) - 1)
        if p.is_constant():
            k = p.constant
            if isinstance(k, int):
                return const((k - lo) % (1 << ty.width) + lo)
            if ty.width < 64:
                return const((k - lo) % (1 << ty.width) + lo)
            if not ty.signed and int(k.min()) < 0:
                raise Unsupported(f"{ty} constant", "lane-dependent 64-bit constants above 2^63")
            return p
        a, b = self.arena.bounds(p)
        if a is not None and b is not None:
            if lo <= a and b <= hi:
                return p
            turn = (a - lo) // (1 << ty.width)
            if turn and lo <= a - turn * (1 << ty.width) and b - turn * (1 << ty.width) <= hi:
                return p - turn * (1 << ty.width)
        self.context.require("no-wrap", self._between(p, lo, hi))
        return p

    def _between(self, p: Poly, lo: int, hi: int) -> Pred:
        """lo ≤ p ≤ hi, or more: lane vectors cannot hold 64-bit limits, so what varies by lane must stay below."""
        if not p.uniform():
            lo, hi = max(lo, -_LANE_LIMIT), min(hi, _LANE_LIMIT)
        return self.arena.conj((self.arena.le(p - hi), self.arena.le(lo - p)))

    def _wrap(self, p: Poly, width: int) -> Poly:
        """Coefficients reduced modulo 2^width to signed representatives where they left that range."""
        half = 1 << (width - 1)
        if all(isinstance(c, int) and -half <= c < half for c in p.terms.values()):
            return p
        out: dict[tuple[int, ...], Coef] = {}
        for m, c in p.terms.items():
            if isinstance(c, int):
                out[m] = _signed(c, width)
            elif width < 62 and (int(c.min()) < -half or int(c.max()) >= half):
                out[m] = coefficient((c + half) % (1 << width) - half)
            else:
                out[m] = c
        return Poly(out)

    # ------------------------------------------------------------------ operations
    def apply(self, op: IntOp, ty: ScalarType, args: tuple[Value, ...], control: int) -> Value:
        """An integer operation of the Domain protocol."""
        w = ty.width
        if op in _RING:
            ps = [self.poly(a) for a in args]
            match op:
                case "add":
                    r = ps[0] + ps[1]
                case "sub":
                    r = ps[0] - ps[1]
                case "neg":
                    r = -ps[0]
                case _:
                    r = self._multiply(ps[0], ps[1], w)
            return Int(w, self._wrap(r, w))
        if op == "mul_wide":
            product = self.view(args[0], ty) * self.view(args[1], ty)
            return Int(2 * w, product, "s" if ty.signed else "u")
        if all(isinstance(a, Int) and a.poly.is_constant() for a in args):
            return self._exact(op, ty, args, control)
        match op:
            case "not":
                return Int(w, -1 - self.poly(args[0]))
            case "and" | "or" | "xor":
                return Int(w, self._bitwise(op, args[0], args[1], w))
            case "shl":
                return self._shift_left(args[0], args[1], w)
            case "shr":
                return self._shift_right(args[0], args[1], ty)
            case "min" | "max":
                return Int(w, self.arena.extremum(op, (self.view(args[0], ty), self.view(args[1], ty))))
            case "abs":
                p = self.view(args[0], ty)
                return Int(w, self.arena.extremum("max", (p, -p)))
            case "div" | "rem":
                return Int(w, self._divide(op, args[0], args[1], ty))
            case "mul_hi":
                return Int(w, self._multiply_high(args[0], args[1], ty))
            case "bfe":
                return Int(w, self._extract(args, ty))
            case "bfi":
                return Int(w, self._wrap(self._insert(args, w), w))
            case _:
                raise Unsupported(f"{op}.{ty}", "no rule for symbolic operands")

    def _multiply(self, p: Poly, q: Poly, width: int) -> Poly:
        """p·q modulo 2^width; constants are multiplied exactly even where they leave 62 bits."""
        if p.is_constant() and q.is_constant() and not (isinstance(p.constant, int) and isinstance(q.constant, int)):
            a, b = p.lanes(self.lanes), q.lanes(self.lanes)
            exact = [_signed(int(x) * int(y), width) for x, y in zip(a, b, strict=True)]
            return const(np.asarray(exact, dtype=np.int64)) if width <= 64 else p * q
        return p * q

    def _exact(self, op: IntOp, ty: ScalarType, args: tuple[Value, ...], control: int) -> Value:
        """Constants in every lane: the bits domain answers."""
        from warpproof.domains.bits import Bits

        bits = Bits(self.lanes)
        vectors = [_to_bits(a.poly.lanes(self.lanes), a.width) for a in args if isinstance(a, Int)]
        out = bits.integer(op, ty, *vectors, control=control)
        width = out.dtype.itemsize * 8
        signed = out.astype(f"u{out.dtype.itemsize}").view(f"i{out.dtype.itemsize}").astype(np.int64)
        return Int(width, const(signed))

    def _bitwise(self, op: str, x: Value, y: Value, width: int) -> Poly:
        p, q = self.poly(x), self.poly(y)
        if p.is_constant():
            p, q = q, p
        if q.is_constant():
            out = self._bitwise_constant(op, p, q, width)
            if out is not None:
                return out
        if op == "or" and (self._disjoint(p, q) or self._disjoint(q, p)):
            return p + q
        if op == "or":
            signed = ScalarType("s", width)
            return self.arena.bit_or(self.view(x, signed), self.view(y, signed))
        raise Unsupported(f"{op}.b{width}", "bit operation on symbolic operands that no rule covers")

    def _bitwise_constant(self, op: str, p: Poly, q: Poly, width: int) -> Poly | None:
        k = q.as_int()
        if k is not None:
            k = _signed(k, width)
            if op == "and" and k >= 0 and k & (k + 1) == 0:
                return self.arena.mod(p, const(k + 1))
            if op == "and" and k < 0 and (-k) & (-k - 1) == 0:
                return self.arena.floor_div(p, const(-k)) * -k
            if op == "xor" and k == -1:
                return -1 - p
            if op in ("or", "xor") and k == 0:
                return p
        content = p.content()
        step = content & -content
        c = q.lanes(self.lanes)
        if step and (c >= 0).all() and (c < step).all():
            low = p.lanes(self.lanes) % step
            mixed = {"and": low & c, "or": low | c, "xor": low ^ c}[op]
            return const(mixed) if op == "and" else p + const(mixed - low)
        if op == "and" and k is not None and k > 0:
            shift = k & -k
            if (k // shift) & (k // shift + 1) == 0:
                return self.arena.mod(self.arena.floor_div(p, const(shift)), const(k // shift + 1)) * shift
        return None

    def _disjoint(self, p: Poly, q: Poly) -> bool:
        """p is a multiple of some 2^m and 0 ≤ q < 2^m."""
        content = p.content(constant=True)
        step = content & -content
        lo, hi = self.arena.bounds(q)
        return bool(step) and lo is not None and lo >= 0 and hi is not None and hi < step

    def _amount(self, v: Value) -> IntVector:
        p = self.poly(v)
        if not p.is_constant():
            raise Unsupported("shift", "a symbolic shift amount")
        return np.asarray(p.lanes(self.lanes))

    def _shift_left(self, x: Value, amount: Value, width: int) -> Value:
        s = self._amount(amount) & 0xFFFFFFFF
        factor = np.where(s < width, 1 << np.minimum(s, 62), 0)
        if (np.minimum(s, width) > 61).any() and not (s >= width).all():
            k = {int(v) for v in s}
            if len(k) > 1:
                raise Unsupported("shl", "a lane-dependent shift beyond 61 bits")
            return Int(width, self._wrap(self.poly(x) * (1 << k.pop()), width))
        return Int(width, self._wrap(self.poly(x) * const(factor), width))

    def _shift_right(self, x: Value, amount: Value, ty: ScalarType) -> Value:
        s = {int(v) & 0xFFFFFFFF for v in self._amount(amount)}
        if len(s) > 1:
            raise Unsupported(f"shr.{ty}", "a lane-dependent shift of a symbolic value")
        k = min(s.pop(), ty.width - 1 if ty.signed else ty.width)
        p = self.view(x, ty)
        if k and self._within(p, 1 << k):
            return Int(ty.width, const(0))
        if isinstance(x, Int) and x.known == "u" and not ty.signed:
            return Int(ty.width, self.arena.magic_shift(p, k, ty.width), "u")
        return Int(ty.width, self.arena.floor_div(p, const(1 << k)))

    def _within(self, p: Poly, limit: int) -> bool:
        """0 ≤ p < limit on this path."""
        lo, hi = self.arena.bounds(p)
        if hi is None or hi >= limit or lo is None or lo < 0:
            claim = self.arena.conj((self.arena.le(-p), self.arena.le(p - (limit - 1))))
            return (hi is None or hi > -limit) and self.context.holds(claim)
        return True

    def _divide(self, op: str, x: Value, y: Value, ty: ScalarType) -> Poly:
        """Truncating division of a non-negative dividend by a positive divisor is floor division."""
        a, b = self.view(x, ty), self.view(y, ty)
        A = self.arena
        k = b.as_int()
        sign = 1
        if ty.signed:
            top = A.bounds(a)[1]
            if top is not None and top <= 0 and top == 0:
                a, sign = -a, -1
            self.context.require("signed division of a non-negative dividend", A.le(-a))
        self.context.require("division by a positive divisor", A.le(1 - b) if k is None else A.truth(k > 0))
        if k is not None and k <= 0:
            raise Unsupported(f"{op}.{ty}", "division by a constant that is not positive")
        q = A.floor_div(a, b)
        return (q if op == "div" else a - b * q) * sign

    def _multiply_high(self, x: Value, y: Value, ty: ScalarType) -> Poly:
        a, b = self.view(x, ty), self.view(y, ty)
        if a.is_constant():
            a, b = b, a
        k = b.as_int()
        if not ty.signed and k is not None:
            return self.arena.unsigned_high(a, k, ty.width)
        return self.arena.floor_div(a * b, const(1 << ty.width))

    def _extract(self, args: tuple[Value, ...], ty: ScalarType) -> Poly:
        pos, length = (self.poly(a).as_int() for a in args[1:])
        if pos is None or length is None or not (pos >= 0 and length > 0 and pos + length <= ty.width):
            raise Unsupported(f"bfe.{ty}", "a field that is symbolic or leaves the register")
        field = self.arena.mod(self.arena.floor_div(self.poly(args[0]), const(1 << pos)), const(1 << length))
        if not ty.signed:
            return field
        half = 1 << (length - 1)
        return self.arena.mod(field + half, const(1 << length)) - half

    def _insert(self, args: tuple[Value, ...], width: int) -> Poly:
        """The low `length` bits of the first operand put at `pos` of the second."""
        pos, length = (self.poly(a).as_int() for a in args[2:])
        if pos is None or length is None or not (pos >= 0 and length > 0 and pos + length <= width):
            raise Unsupported(f"bfi.b{width}", "a field that is symbolic or leaves the register")
        a, b = self.poly(args[0]), self.poly(args[1])
        low = self.arena.mod(b, const(1 << pos))
        if pos + length == width:
            return low + a * (1 << pos)
        high = self.arena.floor_div(b, const(1 << (pos + length))) * (1 << (pos + length))
        return low + self.arena.mod(a, const(1 << length)) * (1 << pos) + high

    # ------------------------------------------------------------------ comparisons
    def compare(self, op: Comparison, ty: ScalarType, x: Value, y: Value) -> Pred:
        """An integer comparison in `ty`."""
        A = self.arena
        if op in ("eq", "ne"):
            d = self.poly(x) - self.poly(y)
            if d.is_constant():
                d = const(np.asarray([_signed(int(v), ty.width) for v in d.lanes(self.lanes)], dtype=np.int64))
            else:
                top = 1 << ty.width
                lo, hi = A.bounds(d)
                if lo is None or hi is None or lo <= -top or hi >= top:
                    self.context.require("no-wrap", self._between(d, 1 - top, top - 1))
            return A.eq(d) if op == "eq" else A.ne(d)
        ty = ScalarType("u", ty.width) if ty.kind == "b" else ty
        if not ty.signed:
            found = self._unsigned(op, ty, x, y)
            if found is not None:
                return found
        p, q = self.view(x, ty), self.view(y, ty)
        match op:
            case "lt":
                return A.lt(p, q)
            case "le":
                return A.le(p - q)
            case "gt":
                return A.lt(q, p)
            case "ge":
                return A.le(q - p)
            case _:
                raise Unsupported(f"setp.{op}.{ty}", "not an integer comparison")

    def _unsigned(self, op: str, ty: ScalarType, x: Value, y: Value) -> Pred | None:
        """The range test (unsigned)i < (unsigned)n for an i that may be negative: 0 ≤ i and i < n."""
        A, half = self.arena, 1 << (ty.width - 1)
        p, q = self.poly(x), self.poly(y)
        if op not in ("lt", "le", "gt", "ge") or not self._counts(q, half) or self._counts(p, half):
            return None
        if p.is_constant() or self.context.holds(self._between(p, 0, 2 * half - 1)):
            return None
        signed = self.view(x, ScalarType("s", ty.width))
        inside = A.conj((A.le(-signed), A.lt(signed, q) if op in ("lt", "ge") else A.le(signed - q)))
        return inside if op in ("lt", "le") else A.negate(inside)

    def _counts(self, p: Poly, limit: int) -> bool:
        lo, hi = self.arena.bounds(p)
        return lo is not None and lo >= 0 and hi is not None and hi < limit

    def merge(self, p: Pred, a: Poly, b: Poly) -> Poly:
        """p ? a : b; where an equality makes both agree, the more general one."""
        if p.op in ("true", "false"):
            return a if p.op == "true" else b
        a, b = self._decided(a, p), self._decided(b, self.arena.negate(p))
        if a == b:
            return a
        mask = self.arena.mask_of(p)
        if mask is not None:
            keys = a.terms.keys() | b.terms.keys()
            picked = {m: coefficient(np.where(mask, a.terms.get(m, 0), b.terms.get(m, 0))) for m in keys}
            return Poly({m: c for m, c in picked.items() if not (isinstance(c, int) and c == 0)})
        if p.op in ("eq", "ne") and isinstance(p.data, Poly) and _multiple(a - b, p.data):
            return b if p.op == "eq" else a
        agreed = self._agreed(p, a, b)
        if agreed is not None:
            return agreed
        common = Poly({m: c for m, c in a.terms.items() if m in b.terms and Poly({m: c}) == Poly({m: b.terms[m]})})
        return common + self.arena.derived("phi", (a - common, b - common), p)

    def _decided(self, q: Poly, given: Pred) -> Poly:
        """q with the choices it is a sum of decided where `given` decides them."""
        arena = self.arena
        for ident in q.atoms():
            atom = arena.atoms[ident]
            if atom.kind != "phi" or atom.pred is None:
                continue
            if arena.implies(given, atom.pred):
                q = arena.substitute_poly(q, {ident: atom.args[0]})
            elif arena.implies(given, arena.negate(atom.pred)):
                q = arena.substitute_poly(q, {ident: atom.args[1]})
        return q

    def _agreed(self, p: Pred, a: Poly, b: Poly) -> Poly | None:
        """One side where the condition makes both agree on the other (⌊n/4⌋ is 0 where n < 4)."""
        difference = a - b
        kinds = {self.arena.atoms[i].kind for i in difference.atoms()}
        if not kinds & {"div", "min", "max", "trip"} or p.op not in ("le", "eq", "ne", "and", "or"):
            return None
        same = self.arena.eq(difference)
        if self.context.holds(self.arena.disj((p, same))):
            return a
        return b if self.context.holds(self.arena.disj((self.arena.negate(p), same))) else None

    def chosen(self, p: Pred, x: Real, y: Real) -> Real:
        """p ? x : y on reals. Between whole numbers kept in floats (counters after a loop that may be skipped) it is
        one polynomial where that needs no choice."""
        a, b = self.arena.whole(x), self.arena.whole(y)
        if a is None or b is None or x is y or x.op == y.op == "const":
            return self.arena.sel(p, x, y)
        merged = self.merge(p, a, b)
        new = merged.atoms() - a.atoms() - b.atoms()
        simple = all(self.arena.atoms[i].kind != "phi" for i in new)
        return self.arena.of_int(merged) if simple else self.arena.sel(p, x, y)

    # ------------------------------------------------------------------ widths
    def convert(self, dst: ScalarType, src: ScalarType, v: Value, sat: bool) -> Value:
        """Truncate, or extend by the source's sign; saturation only where it has no effect."""
        if sat:
            p = self.view(v, src)
            lo, hi = (-(1 << (dst.width - 1)), (1 << (dst.width - 1)) - 1) if dst.signed else (0, (1 << dst.width) - 1)
            return Int(dst.width, self.arena.extremum("min", (self.arena.extremum("max", (p, const(lo))), const(hi))))
        if dst.width > src.width:
            return Int(dst.width, self.view(v, src))
        return self.resize(Int(src.width, self.poly(v)), dst.width)

    def resize(self, v: Int, width: int) -> Int:
        """Truncate, or zero-extend."""
        if width < v.width:
            return Int(width, self._wrap(v.poly, width))
        return Int(width, self.view(v, ScalarType("u", v.width)))

    def concatenate(self, width: int, parts: tuple[Value, ...]) -> Value:
        """Parts as one integer; a pair that came from one integer's halves gives that integer back."""
        joined = self._rejoin(width, parts)
        if joined is not None:
            return joined
        out, shift = Poly({}), 0
        for part in parts:
            out, shift = out + self.view(part, ScalarType("u", part.width)) * (1 << shift), shift + part.width
        return Int(width, self._wrap(out, width))

    def signed_piece(self, p: Int) -> bool:
        """A byte or half that may be negative: read without a sign it would be another number."""
        low = self.arena.bounds(p.poly)[0] if p.width < 32 and not p.poly.is_constant() else None
        return low is not None and low < 0

    def _rejoin(self, width: int, parts: tuple[Value, ...]) -> Value | None:
        lo, hi = parts[0], parts[-1]
        if len(parts) == 2 and isinstance(lo, Int) and isinstance(hi, Int):
            whole = self.arena.floor_div(lo.poly, const(1 << lo.width))
            if not lo.poly.is_constant() and hi.poly == whole:
                return Int(width, lo.poly)
        return None

    def split(self, v: Int, parts: int) -> tuple[Value, ...]:
        """Equal pieces, low bits first; the low piece keeps the polynomial, which `_rejoin` recognises."""
        piece = v.width // parts
        if v.poly.is_constant():
            bits = [int(x) & ((1 << v.width) - 1) for x in v.poly.lanes(self.lanes)]
            vectors = [[_signed(b >> (piece * i), piece) for b in bits] for i in range(parts)]
            return tuple(Int(piece, const(np.asarray(x, dtype=np.int64))) for x in vectors)
        return tuple(
            Int(piece, self.arena.floor_div(v.poly, const(1 << (piece * i))) if i else v.poly) for i in range(parts)
        )


def _signed(v: int, width: int) -> int:
    half = 1 << (width - 1)
    return (v + half) % (1 << width) - half


def _to_bits(v: IntVector, width: int) -> np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]:
    return np.asarray(v, dtype=np.int64).view(np.uint64).astype(f"u{max(1, width // 8)}")


def _multiple(d: Poly, e: Poly) -> bool:
    """True when d = q·e for an integer polynomial q (division by the leading term of e)."""
    if not e.terms or not d.uniform() or not e.uniform():
        return False
    lead = max(e.terms, key=_order)
    rest = d
    for _ in range(16):
        if not rest.terms:
            return True
        top = max(rest.terms, key=_order)
        left, k, c = list(top), rest.terms[top], e.terms[lead]
        for atom in lead:
            if atom not in left:
                return False
            left.remove(atom)
        if not isinstance(k, int) or not isinstance(c, int) or k % c:
            return False
        rest = rest - e * Poly({tuple(left): k // c})
    return False


def _order(m: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    return len(m), m
