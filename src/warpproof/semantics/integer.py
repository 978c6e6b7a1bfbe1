"""Integer arithmetic (PTX ISA 9.7.1): exact modulo 2^width, two's complement."""

from __future__ import annotations

from collections.abc import Callable

from warpproof.domains import Domain, FloatMode, IntOp, P, V
from warpproof.isa import ScalarType, scalar
from warpproof.semantics.binding import Mods
from warpproof.semantics.registry import rule

_INT = "u16 u32 u64 s16 s32 s64"
_SIGNED = "s16 s32 s64"
_U32 = scalar("u32")


def constant(dom: Domain[V, P], ty: ScalarType, value: int) -> V:
    """The integer `value` modulo 2^width in every lane."""
    return dom.constant(ty, value % (1 << ty.width))


def lanewise(dom: Domain[V, P], ty: ScalarType, op: Callable[..., V], *args: V) -> V:
    """`op(element type, …)` on each lane of packed operands."""
    parts = zip(*(dom.unpack(ty.width, a, ty.packed) for a in args))
    return dom.pack(ty.width, [op(ty.element, *lane) for lane in parts])


def _plain(op: IntOp) -> Callable[..., object]:
    def apply(dom: Domain[V, P], m: Mods, *args: V) -> V:
        if m.ty.packed > 1:
            return lanewise(dom, m.ty, lambda ty, *lane: dom.integer(op, ty, *lane), *args)
        return dom.integer(op, m.ty, *args)

    return apply


def _anchor(name: str) -> str:
    return f"integer-arithmetic-instructions-{name}"


rule("add.type d, a, b", manual=_anchor("add"), type=f"{_INT} u16x2 s16x2")(_plain("add"))
rule("sub.type d, a, b", manual=_anchor("sub"), type=_INT)(_plain("sub"))
rule("add.sat.s32 d, a, b", manual=_anchor("add"))(_plain("add_sat"))
rule("sub.sat.s32 d, a, b", manual=_anchor("sub"))(_plain("sub_sat"))
rule("mul.lo.type d, a, b", manual=_anchor("mul"), type=_INT)(_plain("mul_lo"))
rule("mul.hi.type d, a, b", manual=_anchor("mul"), type=_INT)(_plain("mul_hi"))
rule("mul.wide.type d:wide, a, b", manual=_anchor("mul"), type="u16 u32 s16 s32")(_plain("mul_wide"))
rule("div.type d, a, b", manual=_anchor("div"), type=_INT)(_plain("div"))
rule("rem.type d, a, b", manual=_anchor("rem"), type=_INT)(_plain("rem"))
rule("abs.type d, a", manual=_anchor("abs"), type=_SIGNED)(_plain("abs"))
rule("neg.type d, a", manual=_anchor("neg"), type=_SIGNED)(_plain("neg"))
rule("min.type d, a, b", manual=_anchor("min"), type=f"{_INT} u16x2 s16x2")(_plain("min"))
rule("max.type d, a, b", manual=_anchor("max"), type=f"{_INT} u16x2 s16x2")(_plain("max"))
rule("popc.type d:u32, a", manual=_anchor("popc"), type="b32 b64")(_plain("popc"))
rule("clz.type d:u32, a", manual=_anchor("clz"), type="b32 b64")(_plain("clz"))
rule("brev.type d, a", manual=_anchor("brev"), type="b32 b64")(_plain("brev"))
rule("bfind.type d:u32, a", manual=_anchor("bfind"), type="u32 u64 s32 s64")(_plain("bfind"))
rule("bfe.type d, a, b:u32, c:u32", manual=_anchor("bfe"), type="u32 u64 s32 s64")(_plain("bfe"))
rule("bfi.type d, a, b, c:u32, e:u32", manual=_anchor("bfi"), type="b32 b64")(_plain("bfi"))
rule("fns.b32 d, a, b:u32, c:s32", manual=_anchor("fns"))(_plain("fns"))


def _relu(op: IntOp) -> Callable[..., object]:
    def apply(dom: Domain[V, P], m: Mods, a: V, b: V) -> V:
        def lane(ty: ScalarType, x: V, y: V) -> V:
            return dom.integer("max", ty, dom.integer(op, ty, x, y), constant(dom, ty, 0))

        return lanewise(dom, m.ty, lane, a, b) if m.ty.packed > 1 else lane(m.ty, a, b)

    return apply


rule("min.relu.type d, a, b", manual=_anchor("min"), type="s16x2 s32")(_relu("min"))
rule("max.relu.type d, a, b", manual=_anchor("max"), type="s16x2 s32")(_relu("max"))


@rule("mad.mode.type d, a, b, c", manual=_anchor("mad"), mode="lo hi", type=_INT)
def mad(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """The low or high half of a*b, plus c, modulo 2^width."""
    product = dom.integer("mul_lo" if m["mode"] == "lo" else "mul_hi", m.ty, a, b)
    return dom.integer("add", m.ty, product, c)


@rule("mad.hi.sat.s32 d, a, b, c", manual=_anchor("mad"))
def mad_hi_sat(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """The high half of a*b plus c, clamped to the range of s32."""
    return dom.integer("add_sat", m.ty, dom.integer("mul_hi", m.ty, a, b), c)


@rule("mad.wide.type d:wide, a, b, c:wide", manual=_anchor("mad"), type="u16 u32 s16 s32")
def mad_wide(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """The full product a*b plus c, modulo 2^(2*width)."""
    wide = ScalarType(m.ty.kind, 2 * m.ty.width)
    return dom.integer("add", wide, dom.integer("mul_wide", m.ty, a, b), c)


def _product24(dom: Domain[V, P], m: Mods, a: V, b: V) -> V:
    zero, width = constant(dom, _U32, 0), constant(dom, _U32, 24)
    a, b = (dom.integer("bfe", m.ty, x, zero, width) for x in (a, b))
    if m["mode"] == "lo":
        return dom.integer("mul_lo", m.ty, a, b)
    product = dom.integer("mul_wide", m.ty, a, b)
    return dom.resize(32, dom.integer("shr", ScalarType(m.ty.kind, 64), product, constant(dom, _U32, 16)))


@rule("mul24.mode.type d, a, b", manual=_anchor("mul24"), mode="lo hi", type="u32 s32")
def mul24(dom: Domain[V, P], m: Mods, a: V, b: V) -> V:
    """Bits 31..0 or 47..16 of the product of the low 24 bits (sign-extended for s32)."""
    return _product24(dom, m, a, b)


@rule("mad24.mode.type d, a, b, c", manual=_anchor("mad24"), mode="lo hi", type="u32 s32")
def mad24(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """`mul24` plus c, modulo 2^32."""
    return dom.integer("add", m.ty, _product24(dom, m, a, b), c)


@rule("mad24.mode.sat.s32 d, a, b, c", manual=_anchor("mad24"), mode="hi")
def mad24_sat(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """`mul24.hi` plus c, clamped to the range of s32."""
    return dom.integer("add_sat", m.ty, _product24(dom, m, a, b), c)


@rule("sad.type d, a, b, c", manual=_anchor("sad"), type=_INT)
def sad(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """|a - b| + c modulo 2^width; the difference is that of the mathematical values."""
    distance = dom.integer("sub", m.ty, dom.integer("max", m.ty, a, b), dom.integer("min", m.ty, a, b))
    return dom.integer("add", m.ty, distance, c)


@rule("bfind.shiftamt.type d:u32, a", manual=_anchor("bfind"), type="u32 u64 s32 s64")
def bfind_shiftamt(dom: Domain[V, P], m: Mods, a: V) -> V:
    """The left shift that brings the most significant non-sign bit to the top, or 0xffffffff."""
    found = dom.integer("bfind", m.ty, a)
    none = dom.compare("eq", _U32, found, constant(dom, _U32, -1))
    shift = dom.integer("sub", _U32, constant(dom, _U32, m.ty.width - 1), found)
    return dom.select(_U32, none, found, shift)


def _limit(dom: Domain[V, P], m: Mods, a: V) -> V:
    if m["mode"] == "clamp":
        return dom.integer("min", _U32, a, constant(dom, _U32, 32))
    return dom.integer("and", _U32, a, constant(dom, _U32, 31))


@rule("szext.mode.type d, a, b:u32", manual=_anchor("szext"), mode="clamp wrap", type="u32 s32")
def szext(dom: Domain[V, P], m: Mods, a: V, b: V) -> V:
    """The low b bits of a, extended; b is clamped to 32 or taken modulo 32."""
    return dom.integer("bfe", m.ty, a, constant(dom, _U32, 0), _limit(dom, m, b))


@rule("bmsk.mode.b32 d, a:u32, b:u32", manual=_anchor("bmsk"), mode="clamp wrap")
def bmsk(dom: Domain[V, P], m: Mods, a: V, b: V) -> V:
    """b ones from bit a on; positions past bit 31 fall away."""
    ones, zero = constant(dom, m.ty, -1), constant(dom, m.ty, 0)
    return dom.integer("bfi", m.ty, ones, zero, _limit(dom, m, a), _limit(dom, m, b))


def _dot(dom: Domain[V, P], m: Mods, a: tuple[V, ...], b: tuple[V, ...], c: V, widths: tuple[int, int]) -> V:
    kinds = (m.type("atype").kind, m.type("btype").kind)
    total = c
    for x, y in zip(a, b):
        left = dom.convert(ScalarType(kinds[0], 32), ScalarType(kinds[0], widths[0]), FloatMode(), x)
        right = dom.convert(ScalarType(kinds[1], 32), ScalarType(kinds[1], widths[1]), FloatMode(), y)
        total = dom.integer("add", _U32, total, dom.integer("mul_lo", _U32, left, right))
    return total


@rule("dp4a.atype.btype d:b32, a:b32, b:b32, c:b32", manual=_anchor("dp4a"), atype="u32 s32", btype="u32 s32")
def dp4a(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """c plus the dot product of the four bytes of a and b, modulo 2^32."""
    return _dot(dom, m, dom.unpack(32, a, 4), dom.unpack(32, b, 4), c, (8, 8))


@rule(
    "dp2a.mode.atype.btype d:b32, a:b32, b:b32, c:b32", manual=_anchor("dp2a"), mode="lo hi", atype="u32 s32",
    btype="u32 s32",
)  # fmt: skip
def dp2a(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """c plus the dot product of the halves of a with the low or high two bytes of b, modulo 2^32."""
    low = dom.unpack(32, b, 4)
    return _dot(dom, m, dom.unpack(32, a, 2), low[:2] if m["mode"] == "lo" else low[2:], c, (16, 8))
