"""Conversions (PTX ISA 9.7.9.21, 9.7.9.22): value conversion with one rounding."""

from __future__ import annotations

from typing import Final

from warpproof.domains import Domain, P, V
from warpproof.isa import ScalarType, scalar
from warpproof.semantics.binding import Mods
from warpproof.semantics.integer import constant
from warpproof.semantics.registry import rule

_INT = "u8 u16 u32 u64 s8 s16 s32 s64"
_IRND = "rni rzi rmi rpi"
_CVT = "data-movement-and-conversion-instructions-cvt"


def cvt(dom: Domain[V, P], m: Mods, a: V) -> V:
    """The value of a in the destination type, rounded once; out-of-range integers clamp, NaN as the manual tables."""
    return dom.convert(m.type("dtype"), m.type("atype"), m.mode, a)


_FORMS: Final = (
    ("cvt{.sat}.dtype.atype", _INT, _INT),
    ("cvt.rnd{.ftz}{.sat}.dtype.atype", "f32", _INT),  # int to float
    ("cvt.rnd{.sat}.dtype.atype", "f16 f64", _INT),
    ("cvt.rnd.dtype.atype", "bf16", _INT),
    ("cvt.irnd{.ftz}{.sat}.dtype.atype", _INT, "f32"),  # float to int
    ("cvt.irnd{.sat}.dtype.atype", _INT, "f16 bf16 f64"),
    ("cvt{.ftz}{.sat}.dtype.atype", "f32", "f16 bf16 f32"),  # exact float to float
    ("cvt{.ftz}{.sat}.dtype.atype", "f64", "f32"),
    ("cvt{.sat}.dtype.atype", "f64", "f16 bf16 f64"),
    ("cvt{.sat}.dtype.atype", "f16", "f16"),
    ("cvt.dtype.atype", "bf16", "bf16"),
    ("cvt.irnd{.ftz}{.sat}.dtype.atype", "f32", "f32"),  # to an integral value
    ("cvt.irnd{.sat}.dtype.atype", "f64", "f64"),
    ("cvt.irnd{.sat}.dtype.atype", "f16", "f16"),
    ("cvt.irnd.dtype.atype", "bf16", "bf16"),
    ("cvt.rnd{.ftz}{.sat}.dtype.atype", "f32", "f64"),  # narrowing
    ("cvt.rnd{.ftz}{.sat}.dtype.atype", "f16", "f32"),
    ("cvt.rnd{.sat}.dtype.atype", "f16", "f64 bf16"),
    ("cvt.rnd.dtype.atype", "bf16", "f64 f32 f16"),
)  # fmt: skip
for _form, _dtypes, _atypes in _FORMS:
    rule(f"{_form} d:dtype, a:atype", manual=_CVT, dtype=_dtypes, atype=_atypes, irnd=_IRND)(cvt)
rule(
    "cvt.rnd{.relu}{.satfinite}.dtype.atype d:dtype, a:atype", manual=_CVT, rnd="rn rz", dtype="f16 bf16", atype="f32"
)(cvt)
rule(
    "cvt.rnd{.satfinite}{.relu}.dtype.atype d:dtype, a:atype", manual=_CVT, rnd="rn rz rna", dtype="tf32", atype="f32"
)(cvt)


@rule(
    "cvt.rnd{.relu}{.satfinite}.dtype.f32 d:dtype, a:f32, b:f32", manual=_CVT, rnd="rn rz", dtype="f16x2 bf16x2"
)
@rule("cvt.rnd.satfinite{.relu}.dtype.f32 d:dtype, a:f32, b:f32", manual=_CVT, rnd="rn", dtype="e4m3x2 e5m2x2")
def cvt_two(dom: Domain[V, P], m: Mods, a: V, b: V) -> V:
    """a converted in the upper half, b in the lower."""
    ty = m.type("dtype")
    low, high = (dom.convert(ty.element, scalar("f32"), m.mode, x) for x in (b, a))
    return dom.pack(ty.width, (low, high))


@rule(
    "cvt.rnd.satfinite{.relu}.dtype.atype d:dtype, a:atype", manual=_CVT, rnd="rn", dtype="e4m3x2 e5m2x2",
    atype="f16x2 bf16x2",
)  # fmt: skip
@rule("cvt.rnd{.relu}.dtype.atype d:dtype, a:atype", manual=_CVT, rnd="rn", dtype="f16x2", atype="e4m3x2 e5m2x2")
def cvt_packed(dom: Domain[V, P], m: Mods, a: V) -> V:
    """Each half converted in its place."""
    to, source = m.type("dtype"), m.type("atype")
    parts = [dom.convert(to.element, source.element, m.mode, x) for x in dom.unpack(source.width, a, 2)]
    return dom.pack(to.width, parts)


_NARROW: Final = {f"{kind}{width}": (kind, width) for kind in "us" for width in (2, 4, 8, 16)}
_PACK = "data-movement-and-conversion-instructions-cvt-pack"
_S32: Final = scalar("s32")


def _clamped(dom: Domain[V, P], kind: str, width: int, a: V) -> V:
    low, high = (0, (1 << width) - 1) if kind == "u" else (-(1 << width - 1), (1 << width - 1) - 1)
    return dom.integer("min", _S32, dom.integer("max", _S32, a, constant(dom, _S32, low)), constant(dom, _S32, high))


@rule("cvt.pack.sat.ctype.s32 d:u32, a, b", manual=_PACK, ctype="u16 s16")
@rule("cvt.pack.sat.ctype.s32.b32 d:u32, a:s32, b:s32, c:b32", manual=_PACK, ctype="u2 s2 u4 s4 u8 s8")
def cvt_pack(dom: Domain[V, P], m: Mods, a: V, b: V, c: V | None = None) -> V:
    """b clamped in the low bits, a clamped above it, then the low bits of c."""
    kind, width = _NARROW[m["ctype"]]
    b32, u32 = ScalarType("b", 32), scalar("u32")
    low, high = (_clamped(dom, kind, width, x) for x in (b, a))
    size = constant(dom, u32, width)
    rest = constant(dom, b32, 0) if c is None else dom.integer("shl", b32, c, constant(dom, u32, 2 * width))
    upper = dom.integer("bfi", b32, high, rest, size, size)
    return dom.integer("bfi", b32, low, upper, constant(dom, u32, 0), size)
