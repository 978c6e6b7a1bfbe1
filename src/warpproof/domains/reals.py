"""The real-valued domain: integers exact as polynomials, floats as real terms, side conditions as obligations.

Rounding is ignored here (the numerics analysis accounts for it); `.approx` functions mean the exact function. Every
reading that holds only under a condition (signed range, finite operand, non-zero divisor) is demanded from the
`PathContext`, which discharges or records it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final, Literal, Protocol

from warpproof.algebra import Scaling
from warpproof.core import Unsupported
from warpproof.domains import halves
from warpproof.domains.base import Comparison, FloatMode, FloatOp, IntOp, ScalarType
from warpproof.domains.formats import LN2_F32, LOG2E_F32, LOG2E_LOW_F32, exact_value, power_of_two_times
from warpproof.domains.integers import Integers
from warpproof.domains.pairs import Pairs
from warpproof.domains.parts import merged_parts
from warpproof.domains.values import Choice, Float, Int, Pack, Part, Undef, Value
from warpproof.terms import MINUS_INF, PLUS_INF, Arena, Poly, Pred, Real, const

_UNARY: Final = {"sqrt": "sqrt", "sin": "sin", "cos": "cos", "tanh": "tanh", "lg2": "lg2"}
_LOG2E_NAMES: Final = {LOG2E_F32: "log2e32", LOG2E_LOW_F32: "log2e_low"}
_MAGIC: Final = 12582913  # 0f4B400001
_BIASED: Final = 12583039  # minus 0fCB40007F


class PathContext(Protocol):
    """What the domain asks of the machine on the current path."""

    def require(self, kind: str, claim: Pred) -> None:
        """Demand a predicate in every active lane."""
        ...

    def require_real(self, kind: str, node: Real) -> None:
        """Demand `finite`, `nonzero`, `nonnegative` or `positive` of a real in every active lane."""
        ...

    def holds(self, claim: Pred) -> bool:
        """True when the claim follows from the path (a quick, sound check)."""
        ...

    def assume(self, name: str, text: str, source: str) -> None:
        """Record an assumption in the ledger."""
        ...


class Reals:
    """Domain over `Value` and `Pred`; see `domains.base.Domain` for the meaning of each primitive."""

    def __init__(self, arena: Arena, context: PathContext) -> None:
        self.arena, self.context, self.lanes = arena, context, arena.lanes
        self.integers = Integers(arena, context)
        self.scaling = Scaling(arena)
        self.pairs = Pairs(arena, self.scaling.normal, context.holds)

    # ------------------------------------------------------------------ views
    def constant(self, ty: ScalarType, bits: int) -> Value:
        """The bit pattern in every lane."""
        return self.integers.constant(ty.width, bits)

    def real(self, value: Value, ty: ScalarType) -> Real:
        """The real value of the bits read in format `ty`."""
        match value:
            case Float(kind, width, node):
                if width != ty.width or (kind != ty.kind and {kind, ty.kind} != {"f", "tf"}):
                    raise Unsupported(f"{kind}{width} read as {ty}", "a float's bits are reinterpreted")
                return node
            case Int(width, poly):
                return self._real_of_bits(poly, ty)
            case Undef(_, why):
                return self.arena.poison(why)
            case Choice(_, pred, a, b):
                return self.arena.sel(pred, self.real(a, ty), self.real(b, ty))
            case Part():
                raise Unsupported(f"part of a float read as {ty}", "a float's bits are split")
            case Pack(_, parts):
                if len(parts) == 1:
                    return self.real(parts[0], ty)
                low, high = parts[0], parts[-1]
                cleared = isinstance(low, Int) and low.poly.as_int() == 0
                if ty == ScalarType("f", 32) and cleared and isinstance(high, Float) and high.kind == "bf":
                    return high.node  # a bf16 is the upper half of the f32 with the same value
                raise Unsupported(f"packed value read as {ty}", "a float assembled from parts")

    def _real_of_bits(self, poly: Poly, ty: ScalarType) -> Real:
        chosen = self._chosen_bits(poly, ty)
        if chosen is not None:
            return chosen
        if not poly.is_constant():
            raise Unsupported(f"integer bits read as {ty}", "the bit pattern of a float depends on a symbol")
        vector = poly.lanes(self.lanes)
        distinct = sorted({int(v) for v in vector})
        if len(distinct) > 8:
            raise Unsupported(f"integer bits read as {ty}", "more than eight lane-dependent float constants")
        nodes = [self._bits_node(v & ((1 << ty.width) - 1), ty) for v in distinct]
        out = nodes[-1]
        for v, node in zip(distinct[:-1], nodes[:-1], strict=True):
            out = self.arena.sel(self.arena.lane_mask(vector == v), node, out)
        return out

    def _chosen_bits(self, poly: Poly, ty: ScalarType) -> Real | None:
        """A choice between constants, read as a choice between floats."""
        symbolic = poly.symbolic()
        if len(symbolic.terms) != 1:
            return None
        ((m, c),) = symbolic.terms.items()
        atom = self.arena.atoms[m[0]]
        if len(m) != 1 or atom.kind != "phi" or atom.pred is None or not isinstance(c, int):
            return None
        a, b = (self._real_of_bits(q * c + const(poly.constant), ty) for q in atom.args)
        return self.arena.sel(atom.pred, a, b)

    def _bits_node(self, bits: int, ty: ScalarType) -> Real:
        v = exact_value(ty.kind, ty.width, bits)
        if isinstance(v, Fraction):
            if ty == ScalarType("f", 32) and v in _LOG2E_NAMES:
                return self.arena.real(_LOG2E_NAMES[v])
            return self.arena.rational(v)
        if v == "nan":
            return self.arena.poison("a NaN constant")
        return self.arena.plus_inf if v == "inf" else self.arena.minus_inf

    def float_value(self, ty: ScalarType, node: Real) -> Value:
        """The bits of a float register holding `node`."""
        return Float(ty.kind, ty.width, node)

    # ------------------------------------------------------------------ integers
    def integer(self, op: IntOp, ty: ScalarType, *args: Value, control: int = 0) -> Value:
        """An exact integer operation; bit tricks on floats are recognised where they are exact."""
        moved = halves.apply(self, op, ty, args, control)
        if moved is not None:
            return moved
        if op in ("and", "xor", "or") and any(isinstance(a, Float) for a in args):
            return self._sign_trick(op, ty, args)
        if op == "shl":
            power = self._power_from_bits(ty, args)
            if power is not None:
                return power
        if op in ("add", "min", "max") and ty.packed > 1:
            raise Unsupported(f"{op}.{ty}", "packed integer arithmetic on symbols")
        return self.integers.apply(op, ty, args, control)

    def _sign_trick(self, op: str, ty: ScalarType, args: tuple[Value, ...]) -> Value:
        a, b = args if isinstance(args[0], Float) else (args[1], args[0])
        k = b.poly.as_int() if isinstance(b, Int) else None
        top = 1 << (ty.width - 1)
        if isinstance(a, Float) and k is not None:
            k &= (1 << ty.width) - 1
            if op == "and" and k == top - 1:
                return Float(a.kind, a.width, self.arena.unary("abs", a.node))
            if op == "xor" and k == top:
                return Float(a.kind, a.width, self.arena.neg(a.node))
            if (op, k) in (("or", 0), ("xor", 0), ("and", 2 * top - 1)):
                return a
        raise Unsupported(f"{op}.{ty}", "bit manipulation of a float value")

    # ------------------------------------------------------------------ floats
    def floating(self, op: FloatOp, ty: ScalarType, mode: FloatMode, *args: Value) -> Value:
        """The exact real operation; packed types part by part."""
        if ty.packed > 1:
            part = ScalarType(ty.kind, ty.width // ty.packed)
            split = [self.unpack(ty.width, a, ty.packed) for a in args]
            return self.pack(ty.width, [self.floating(op, part, mode, *xs) for xs in zip(*split, strict=True)])
        if mode.xorsign:
            raise Unsupported(f"{op}.xorsign.abs.{ty}", "the sign of a float apart from its value")
        xs = [self.real(a, ty) for a in args]
        node = self._exponent_step(op, mode, xs) or self._operation(op, xs)
        if mode.sat:
            node = self.arena.minimum(self.arena.maximum(node, self.arena.zero), self.arena.one)
        if mode.relu:
            node = self.arena.maximum(node, self.arena.zero)
        return Float(ty.kind, ty.width, node)

    def _operation(self, op: str, xs: list[Real]) -> Real:
        a = self.arena
        self._demand_defined(op, xs)
        match op:
            case "add":
                return self.scaling.add(*xs)
            case "sub":
                return a.sub(*xs)
            case "mul":
                return self._product(*xs)
            case "fma":
                product = self._product(xs[0], xs[1])
                self._demand_defined("add", [product, xs[2]])
                return self.scaling.add(product, xs[2])
            case "max":
                return a.maximum(*xs)
            case "min":
                return a.minimum(*xs)
            case "neg":
                return a.neg(xs[0])
            case "abs":
                return a.unary("abs", xs[0])
            case "ex2":
                return a.unary("ex2", self._ideal_exponent(xs[0]))
            case _:
                return self._partial_operation(op, xs)

    def _demand_defined(self, op: str, xs: list[Real]) -> None:
        """∞−∞, 0·∞ and functions of infinities have no value here, except 2^−∞ = 0."""
        match op:
            case "min" | "max" | "neg" | "abs":
                return
            case "add" | "sub":
                x, y = xs[0], xs[1] if op == "add" else self.arena.neg(xs[1])
                if (x.ext & MINUS_INF and y.ext & PLUS_INF) or (x.ext & PLUS_INF and y.ext & MINUS_INF):
                    self.context.require_real("no opposite infinities", self.arena.real("pair", (x, y)))
            case "mul" | "fma":
                x, y = xs[0], xs[1]
                for k, z in ((x, y), (y, x)):
                    if z.ext and not (k.op.startswith("log2e") or (k.op == "const" and k.data != 0)):
                        self.context.require_real("finite", z)
            case "ex2":
                if xs[0].ext & PLUS_INF:
                    self.context.require_real("below infinity", xs[0])
            case _:
                for x in xs:
                    if x.ext:
                        self.context.require_real("finite", x)

    def _product(self, x: Real, y: Real) -> Real:
        """x·y; ln 2 is read for its f32 constant when it scales a logarithm to base 2."""
        for k, z in ((x, y), (y, x)):
            if k.op == "const" and z.op == "lg2" and k.data == LN2_F32:
                self.context.assume(
                    "ln2", "the f32 constant 0f3F317218 times a base-2 logarithm stands for ln 2; the difference is "
                    "charged to numerics", "CUDA math functions expand log(x) to lg2(x)*ln 2",
                )
                return self.arena.mul(self.arena.real("ln2"), z)
        return self.scaling.mul(x, y)

    def _partial_operation(self, op: str, xs: list[Real]) -> Real:
        """Operations with a domain condition."""
        a = self.arena
        match op:
            case "div":
                self.context.require_real("nonzero", xs[1])
                return a.div(xs[0], xs[1])
            case "rcp":
                self.context.require_real("nonzero", xs[0])
                return a.div(a.one, xs[0])
            case "sqrt":
                self.context.require_real("nonnegative", xs[0])
                return a.unary("sqrt", xs[0])
            case "rsqrt":
                self.context.require_real("positive", xs[0])
                return a.div(a.one, a.unary("sqrt", xs[0]))
            case "lg2":
                self.context.require_real("positive", xs[0])
                return a.unary("lg2", xs[0])
            case "sin" | "cos":
                return a.unary(op, xs[0])
            case "tanh":
                e = a.unary("ex2", a.mul(a.rational(2), a.mul(xs[0], a.log2e)))
                return a.sub(a.one, a.div(a.rational(2), a.add(e, a.one)))
            case _:
                raise Unsupported(op, "no meaning over the reals")

    def _ideal_exponent(self, x: Real) -> Real:
        """x with the f32 constants for log2 e, as factors in a sum of products, read as log2 e itself.

        expf adds a second constant, which stands for log2 e less the first. Where it occurs, the first is exact, so
        that only both together, with one factor, are log2 e.
        """
        return self._idealised(x, self._has_low_part(x))

    def _has_low_part(self, x: Real) -> bool:
        if x.op in ("add", "mul", "sel"):
            return any(self._has_low_part(y) for y in x.args)
        return x.op == "log2e_low" or (x.op == "const" and power_of_two_times(x.data, LOG2E_LOW_F32))

    def _idealised(self, x: Real, both: bool) -> Real:
        a = self.arena
        low = a.sub(a.log2e, a.rational(Fraction(LOG2E_F32)))
        match x.op:
            case "add" | "mul":
                return a.combine(x.op, self._idealised(x.args[0], both), self._idealised(x.args[1], both))
            case "sel" if x.pred is not None:
                return a.sel(x.pred, self._idealised(x.args[0], both), self._idealised(x.args[1], both))
            case "const":
                for value, ideal in ((LOG2E_LOW_F32, low),) if both else ((LOG2E_F32, a.log2e),):
                    if power_of_two_times(x.data, value):
                        self._assume_log2e()
                        return a.mul(a.rational(Fraction(x.data) / Fraction(value)), ideal)
                return x
            case "log2e32":
                self._assume_log2e()
                return a.rational(Fraction(LOG2E_F32)) if both else a.log2e
            case "log2e_low":
                return low
            case _:
                return x

    def _assume_log2e(self) -> None:
        self.context.assume(
            "log2e",
            "the f32 constants 0f3FB8AA3B and 0f32A57060 inside an ex2 argument stand for log2 e and its low part; the "
            "difference is charged to numerics",
            "CUDA math functions expand exp(x) to ex2(x*log2 e)",
        )

    # ------------------------------------------------------------------ exponent by integer bits
    def _exponent_step(self, op: str, mode: FloatMode, xs: list[Real]) -> Real | None:
        """The first step of expf: fma.rm(s, 252, 12582913) for s in [0, 1] is 12582911 + 128 + N for an integer N.

        One unit in the last place is 1 there, so rounding down gives an integer; N lies in [−126, 126].
        """
        if op != "fma" or mode.rounding != "rm" or len(xs) != 3:
            return None
        clamped = xs[0].op == "min" and self.arena.one in xs[0].args and any(
            y.op == "max" and self.arena.zero in y.args for y in xs[0].args)
        if not clamped or xs[1].op != "const" or xs[1].data != 252 or xs[2].op != "const" or xs[2].data != _MAGIC:
            return None
        return self.arena.add(self.arena.rational(_BIASED), self.arena.real("expstep", (xs[0],)))

    def _power_from_bits(self, ty: ScalarType, args: tuple[Value, ...]) -> Value | None:
        """The last step of expf: the bits of 12583039 + N shifted left by 23 are those of 2^N."""
        value, amount = args
        if not isinstance(value, Float) or ty.width != 32 or self.integers.poly(amount).as_int() != 23:
            return None
        node = value.node
        parts = node.args if node.op == "add" else ()
        step = next((y for y in parts if y.op == "expstep"), None)
        if step is None or not any(y.op == "const" and y.data == _BIASED for y in parts):
            return None
        return Float("f", 32, self.arena.unary("ex2", step))

    # ------------------------------------------------------------------ predicates
    def compare(self, op: Comparison, ty: ScalarType, a: Value, b: Value, ftz: bool = False) -> Pred:
        """A comparison; over the reals ordered and unordered forms agree (NaN is excluded by obligations)."""
        if not ty.floating:
            return self.integers.compare(op, ty, a, b)
        if ty.packed > 1:
            raise Unsupported(f"comparison of {ty}", "packed comparisons")
        x, y = self.real(a, ty), self.real(b, ty)
        A = self.arena
        if x.poisoned or y.poisoned:
            return A.unknown_pred()
        match op:
            case "num":
                return A.true
            case "nan":
                return A.false
            case "eq" | "equ":
                return A.fcmp("eq", x, y)
            case "ne" | "neu":
                return A.fcmp("ne", x, y)
            case "lt" | "ltu":
                return A.fcmp("lt", x, y)
            case "le" | "leu":
                return A.fcmp("le", x, y)
            case "gt" | "gtu":
                return A.fcmp("lt", y, x)
            case _:
                return A.fcmp("le", y, x)

    def test(self, property: str, ty: ScalarType, a: Value) -> Pred:
        """`testp` has no meaning over the reals."""
        raise Unsupported(f"testp.{property}.{ty}", "classification of float bits over the reals")

    def truth(self, value: bool) -> Pred:
        """The constant predicate."""
        return self.arena.truth(value)

    def predicate(self, op: Literal["and", "or", "xor", "not"], *args: Pred) -> Pred:
        """Boolean operations."""
        A = self.arena
        match op:
            case "and":
                return A.conj(args)
            case "or":
                return A.disj(args)
            case "not":
                return A.negate(args[0])
            case "xor":
                p, q = args
                return A.disj((A.conj((p, A.negate(q))), A.conj((A.negate(p), q))))

    def select(self, ty: ScalarType, p: Pred, a: Value, b: Value) -> Value:
        """p ? a : b."""
        if ty.floating and ty.packed == 1 and not (isinstance(a, Pack) or isinstance(b, Pack)):
            return Float(ty.kind, ty.width, self.arena.sel(p, self.real(a, ty), self.real(b, ty)))
        return self.merge(p, a, b)

    def merge(self, p: Pred, a: Value, b: Value) -> Value:
        """The register that holds `a` where p, else `b`."""
        if p.op == "true":
            return a
        if p.op == "false":
            return b
        if a == b and getattr(a, "known", "") == getattr(b, "known", ""):
            return a
        if isinstance(a, Int) and isinstance(b, Int):
            return Int(a.width, self.pairs.settled(self.integers.merge(p, a.poly, b.poly)))
        if isinstance(a, Part) or isinstance(b, Part):
            return merged_parts(self, p, a, b)
        if isinstance(a, Pack) or isinstance(b, Pack):
            n = len(a.parts) if isinstance(a, Pack) else len(b.parts)  # type: ignore[union-attr]
            pairs = zip(self.unpack(a.width, a, n), self.unpack(a.width, b, n), strict=True)
            return Pack(a.width, tuple(self.merge(p, x, y) for x, y in pairs))
        if isinstance(a, Float) or isinstance(b, Float):
            f = a if isinstance(a, Float) else b
            ty = ScalarType(f.kind, f.width)  # type: ignore[union-attr]
            try:
                return Float(ty.kind, ty.width, self.integers.chosen(p, self.real(a, ty), self.real(b, ty)))
            except Unsupported:
                return Choice(a.width, p, a, b)
        return Choice(a.width, p, a, b)

    # ------------------------------------------------------------------ conversions
    def convert(self, dst: ScalarType, src: ScalarType, mode: FloatMode, a: Value) -> Value:
        """Between float formats the identity; integers exactly; float to integer has no rule here."""
        if dst.packed > 1 or src.packed > 1:
            n = max(dst.packed, src.packed)
            parts = self.unpack(src.width, a, n)
            d, s = ScalarType(dst.kind, dst.width // n), ScalarType(src.kind, src.width // n)
            return self.pack(dst.width, [self.convert(d, s, mode, x) for x in parts])
        if not dst.floating and not src.floating:
            if isinstance(a, Float | Pack) and not mode.sat and not (src.signed and dst.width > src.width):
                return self.resize(dst.width, a)
            return self.integers.convert(dst, src, a, mode.sat)
        if dst.floating and not src.floating:
            return Float(dst.kind, dst.width, self.arena.of_int(self.integers.view(a, src)))
        if not dst.floating:
            raise Unsupported(f"cvt.{dst}.{src}", "a float converted to an integer")
        node = self.real(a, src)
        if mode.rounding in ("rni", "rzi", "rmi", "rpi"):
            node = self._integral(mode.rounding, node)
        if mode.sat:
            node = self.arena.minimum(self.arena.maximum(node, self.arena.zero), self.arena.one)
        if mode.relu:
            node = self.arena.maximum(node, self.arena.zero)
        return Float(dst.kind, dst.width, node)

    def _integral(self, rounding: str, node: Real) -> Real:
        a = self.arena
        if node.ext:
            self.context.require_real("finite", node)
        if rounding == "rmi":
            return a.unary("floor", node)
        if rounding == "rpi":
            return a.neg(a.unary("floor", a.neg(node)))
        return a.unary("rint" if rounding == "rni" else "trunc", node)

    # ------------------------------------------------------------------ bits
    def pack(self, width: int, parts: Sequence[Value]) -> Value:
        """Concatenate; integer parts become one integer when that is exact. Signed bytes and halves stay apart."""
        if all(isinstance(p, Int) and not self.integers.signed_piece(p) for p in parts):
            return self.integers.concatenate(width, tuple(parts))
        return Pack(width, tuple(parts))

    def unpack(self, width: int, value: Value, parts: int) -> tuple[Value, ...]:
        """Split into equal pieces, low bits first."""
        piece = width // parts
        match value:
            case Pack(_, have):
                if len(have) == parts:
                    return have
                if len(have) % parts == 0:
                    k = len(have) // parts
                    return tuple(self.pack(piece, have[i * k : (i + 1) * k]) for i in range(parts))
                if parts % len(have) == 0:
                    k = parts // len(have)
                    return tuple(q for p in have for q in self.unpack(width // len(have), p, k))
                raise Unsupported("mov", "a packed value is split across its parts")
            case Int():
                return self.integers.split(value, parts)
            case Undef(_, why):
                return tuple(Undef(piece, why) for _ in range(parts))
            case Choice(_, pred, a, b):
                pairs = zip(self.unpack(width, a, parts), self.unpack(width, b, parts), strict=True)
                return tuple(self.merge(pred, x, y) for x, y in pairs)
            case Float() | Part():
                if parts == 1:
                    return (value,)
                raise Unsupported("mov", "a float's bits are split")

    def resize(self, width: int, value: Value) -> Value:
        """Truncate or zero-extend the raw bits."""
        if value.width == width:
            return value
        match value:
            case Int():
                return self.integers.resize(value, width)
            case Undef(_, why):
                return Undef(width, why)
            case Choice(_, pred, a, b):
                return self.merge(pred, self.resize(width, a), self.resize(width, b))
            case Pack(have, parts) if width < have and width % (have // len(parts)) == 0:
                return self.pack(width, parts[: width // (have // len(parts))])
            case Part():
                raise Unsupported(f"part of a float resized to {width} bits", "a float's bits are split")
            case _:
                return halves.widened(width, value)
