"""Comparison and selection (PTX ISA 9.7.6 and 9.7.7)."""

from __future__ import annotations

from typing import Final, Literal, cast

from warpproof.domains import Comparison, Domain, P, V
from warpproof.isa import ScalarType, scalar
from warpproof.semantics.binding import Mods
from warpproof.semantics.integer import constant
from warpproof.semantics.registry import rule

_ORDER = "eq ne lt le gt ge"
_UNSIGNED = f"{_ORDER} lo ls hi hs"
_FLOAT = f"{_ORDER} equ neu ltu leu gtu geu num nan"
_SELECTABLE = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64"
_SETP = "comparison-and-selection-instructions-setp"
_SET = "comparison-and-selection-instructions-set"
_ALIAS: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_ONE: Final = {("f", 32): 0x3F800000, ("f", 16): 0x3C00, ("bf", 16): 0x3F80}


def _compare(dom: Domain[V, P], m: Mods, ty: ScalarType, a: V, b: V) -> P:
    op = cast("Comparison", _ALIAS.get(m["cmp"], m["cmp"]))
    return dom.compare(op, ty, a, b, ftz="ftz" in m)


def _combine(dom: Domain[V, P], m: Mods, t: P, c: P | None) -> P:
    return t if c is None else dom.predicate(cast("Literal['and', 'or', 'xor']", m["bool"]), t, c)


_TYPED: Final = (("", "eq ne", "b16 b32 b64"), ("", _ORDER, "s16 s32 s64"), ("", _UNSIGNED, "u16 u32 u64"),
                 ("{.ftz}", _FLOAT, "f32"), ("", _FLOAT, "f64"))  # fmt: skip


def setp(dom: Domain[V, P], m: Mods, a: V, b: V, c: P | None = None) -> tuple[P, P]:
    """The comparison and its negation, each combined with c."""
    t = _compare(dom, m, m.ty, a, b)
    return _combine(dom, m, t, c), _combine(dom, m, dom.predicate("not", t), c)


for _ftz, _cmp, _types in _TYPED:
    rule(f"setp.cmp{_ftz}.type p[|q], a, b", manual=_SETP, cmp=_cmp, type=_types)(setp)
    rule(f"setp.cmp.bool{_ftz}.type p[|q], a, b, c:pred", manual=_SETP, cmp=_cmp, type=_types)(setp)


_SETP_HALF = "half-precision-comparison-instructions-setp"


@rule("setp.cmp{.ftz}.type p, a, b", "setp.cmp.bool{.ftz}.type p, a, b, c:pred", manual=_SETP_HALF, cmp=_FLOAT,
      type="f16")
@rule("setp.cmp.type p, a, b", "setp.cmp.bool.type p, a, b, c:pred", manual=_SETP_HALF, cmp=_FLOAT,
      type="bf16")  # fmt: skip
def setp_half(dom: Domain[V, P], m: Mods, a: V, b: V, c: P | None = None) -> P:
    """The comparison combined with c."""
    return _combine(dom, m, _compare(dom, m, m.ty, a, b), c)


@rule("setp.cmp{.ftz}.type p|q, a, b", "setp.cmp.bool{.ftz}.type p|q, a, b, c:pred", manual=_SETP_HALF, cmp=_FLOAT,
      type="f16x2")
@rule("setp.cmp.type p|q, a, b", "setp.cmp.bool.type p|q, a, b, c:pred", manual=_SETP_HALF, cmp=_FLOAT,
      type="bf16x2")  # fmt: skip
def setp_packed(dom: Domain[V, P], m: Mods, a: V, b: V, c: P | None = None) -> tuple[P, P]:
    """The comparisons of the low and of the high halves, each combined with c."""
    low, high = (
        _combine(dom, m, _compare(dom, m, m.ty.element, x, y), c)
        for x, y in zip(dom.unpack(32, a, 2), dom.unpack(32, b, 2))
    )
    return low, high


def set_(dom: Domain[V, P], m: Mods, a: V, b: V, c: P | None = None) -> V:
    """All ones (1.0 for float destinations) where the comparison combined with c holds, else zero."""
    source, result = m.type("stype"), m.type("dtype")
    if source.packed > 1:
        lane = result.element if result.packed > 1 else ScalarType("b", 16)
        parts = [
            _flag(dom, lane, _combine(dom, m, _compare(dom, m, source.element, x, y), c))
            for x, y in zip(dom.unpack(32, a, 2), dom.unpack(32, b, 2))
        ]
        return dom.pack(32, parts)
    return _flag(dom, result, _combine(dom, m, _compare(dom, m, source, a, b), c))


def _flag(dom: Domain[V, P], ty: ScalarType, p: P) -> V:
    true = _ONE.get((ty.kind, ty.width), -1)
    return dom.select(ty, p, constant(dom, ty, true), constant(dom, ty, 0))


_SET_FORMS: Final = (
    *((ftz, cmp, "u32 s32 f32 f16 bf16", types) for ftz, cmp, types in _TYPED),
    ("{.ftz}", _FLOAT, "u16 s16 u32 s32 f16", "f16"), ("", _FLOAT, "u16 s16 u32 s32 bf16", "bf16"),
    ("{.ftz}", _FLOAT, "f16x2 u32 s32", "f16x2"), ("", _FLOAT, "bf16x2 u32 s32", "bf16x2"),
)  # fmt: skip
for _ftz, _cmp, _dtypes, _stypes in _SET_FORMS:
    rule(
        f"set.cmp{_ftz}.dtype.stype d:dtype, a:stype, b:stype",
        f"set.cmp.bool{_ftz}.dtype.stype d:dtype, a:stype, b:stype, c:pred",
        manual=_SET, cmp=_cmp, dtype=_dtypes, stype=_stypes,
    )(set_)  # fmt: skip


@rule("selp.type d, a, b, c:pred", manual="comparison-and-selection-instructions-selp", type=_SELECTABLE)
def selp(dom: Domain[V, P], m: Mods, a: V, b: V, c: P) -> V:
    """a where c holds, else b, bits unchanged."""
    return dom.select(m.ty, c, a, b)


_SLCT = "comparison-and-selection-instructions-slct"


@rule("slct.dtype.s32 d:dtype, a:dtype, b:dtype, c:s32", manual=_SLCT, dtype=_SELECTABLE)
@rule("slct{.ftz}.dtype.ctype d:dtype, a:dtype, b:dtype, c:f32", manual=_SLCT, dtype=_SELECTABLE, ctype="f32")
def slct(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """a where c >= 0 (so also for -0.0), else b; b where c is NaN."""
    test = scalar("f32" if "ctype" in m else "s32")
    positive = dom.compare("ge", test, c, constant(dom, test, 0), ftz="ftz" in m)
    return dom.select(m.type("dtype"), positive, a, b)

