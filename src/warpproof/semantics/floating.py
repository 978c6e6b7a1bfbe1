"""Floating-point arithmetic (PTX ISA 9.7.3 to 9.7.5): one rounding per operation; `.ftz` and `.sat` are in the mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from warpproof.domains import Domain, FloatMode, FloatOp, P, V
from warpproof.isa import scalar
from warpproof.semantics.binding import Mods
from warpproof.semantics.registry import rule

_F16 = "f16 f16x2"
_BF16 = "bf16 bf16x2"
_HALF = f"{_F16} {_BF16}"


def _anchor(name: str) -> str:
    return f"floating-point-instructions-{name}"


def _half(name: str) -> str:
    return f"half-precision-floating-point-instructions-{name}"


def _plain(op: FloatOp) -> Callable[..., object]:
    def apply(dom: Domain[V, P], m: Mods, *args: V) -> V:
        return dom.floating(op, m.ty, m.mode, *args)

    return apply


_BINARY: Final[tuple[FloatOp, ...]] = ("add", "sub", "mul")
for _op in _BINARY:
    rule(f"{_op}{{.rnd}}{{.ftz}}{{.sat}}.f32 d, a, b", manual=_anchor(_op))(_plain(_op))
    rule(f"{_op}{{.rnd}}{{.ftz}}.f32x2 d, a, b", f"{_op}{{.rnd}}.f64 d, a, b", manual=_anchor(_op))(_plain(_op))
    rule(f"{_op}{{.rnd}}{{.ftz}}{{.sat}}.type d, a, b", manual=_half(_op), rnd="rn", type=_F16)(_plain(_op))
    rule(f"{_op}{{.rnd}}.type d, a, b", manual=_half(_op), rnd="rn", type=_BF16)(_plain(_op))

rule("fma.rnd{.ftz}{.sat}.f32 d, a, b, c", manual=_anchor("fma"))(_plain("fma"))
rule("fma.rnd{.ftz}.f32x2 d, a, b, c", "fma.rnd.f64 d, a, b, c", manual=_anchor("fma"))(_plain("fma"))
rule("fma.rnd{.ftz}{.sat}.type d, a, b, c", manual=_half("fma"), rnd="rn", type=_F16)(_plain("fma"))
rule("fma.rnd{.ftz}.relu.type d, a, b, c", manual=_half("fma"), rnd="rn", type=_F16)(_plain("fma"))
rule("fma.rnd{.relu}.type d, a, b, c", manual=_half("fma"), rnd="rn", type=_BF16)(_plain("fma"))
rule("mad.rnd{.ftz}{.sat}.f32 d, a, b, c", "mad.rnd.f64 d, a, b, c", manual=_anchor("mad"))(_plain("fma"))

rule("div.approx{.ftz}.f32 d, a, b", "div.full{.ftz}.f32 d, a, b", manual=_anchor("div"))(_plain("div"))
rule("div.rnd{.ftz}.f32 d, a, b", "div.rnd.f64 d, a, b", manual=_anchor("div"))(_plain("div"))
rule("rcp.approx{.ftz}.f32 d, a", "rcp.rnd{.ftz}.f32 d, a", "rcp.rnd.f64 d, a", manual=_anchor("rcp"))(_plain("rcp"))
rule("sqrt.approx{.ftz}.f32 d, a", "sqrt.rnd{.ftz}.f32 d, a", manual=_anchor("sqrt"))(_plain("sqrt"))
rule("sqrt.rnd.f64 d, a", manual=_anchor("sqrt"))(_plain("sqrt"))
rule("rsqrt.approx{.ftz}.f32 d, a", "rsqrt.approx.f64 d, a", manual=_anchor("rsqrt"))(_plain("rsqrt"))
rule("sin.approx{.ftz}.f32 d, a", manual=_anchor("sin"))(_plain("sin"))
rule("cos.approx{.ftz}.f32 d, a", manual=_anchor("cos"))(_plain("cos"))
rule("lg2.approx{.ftz}.f32 d, a", manual=_anchor("lg2"))(_plain("lg2"))
rule("ex2.approx{.ftz}.f32 d, a", manual=_anchor("ex2"))(_plain("ex2"))
rule("ex2.approx.type d, a", manual=_half("ex2"), type=_F16)(_plain("ex2"))
rule("ex2.approx.ftz.type d, a", manual=_half("ex2"), type=_BF16)(_plain("ex2"))
rule("tanh.approx.f32 d, a", manual=_anchor("tanh"))(_plain("tanh"))
rule("tanh.approx.type d, a", manual=_half("tanh"), type=_HALF)(_plain("tanh"))

_UNARY: Final[tuple[FloatOp, ...]] = ("neg", "abs")
for _op in _UNARY:
    rule(f"{_op}{{.ftz}}.f32 d, a", f"{_op}.f64 d, a", manual=_anchor(_op))(_plain(_op))
    rule(f"{_op}{{.ftz}}.type d, a", manual=_half(_op), type=_F16)(_plain(_op))
    rule(f"{_op}.type d, a", manual=_half(_op), type=_BF16)(_plain(_op))

_EXTREMA: Final[tuple[FloatOp, ...]] = ("min", "max")
for _op in _EXTREMA:
    rule(f"{_op}{{.ftz}}{{.NaN}}{{.xorsign.abs}}.f32 d, a, b", f"{_op}.f64 d, a, b", manual=_anchor(_op))(_plain(_op))
    rule(f"{_op}{{.ftz}}{{.NaN}}{{.xorsign.abs}}.type d, a, b", manual=_half(_op), type=_F16)(_plain(_op))
    rule(f"{_op}{{.NaN}}{{.xorsign.abs}}.type d, a, b", manual=_half(_op), type=_BF16)(_plain(_op))


def _extremum3(op: FloatOp) -> Callable[..., object]:
    def apply(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
        if "abs" in m:
            a, b, c = (dom.floating("abs", m.ty, FloatMode(), x) for x in (a, b, c))
        return dom.floating(op, m.ty, m.mode, dom.floating(op, m.ty, m.mode, a, b), c)

    return apply


for _op in _EXTREMA:
    rule(f"{_op}{{.ftz}}{{.NaN}}{{.abs}}.f32 d, a, b, c", manual=_anchor(_op))(_extremum3(_op))


@rule("copysign.type d, a, b", manual=_anchor("copysign"), type="f32 f64")
def copysign(dom: Domain[V, P], m: Mods, a: V, b: V) -> V:
    """The magnitude of b with the sign of a."""
    return dom.floating("copysign", m.ty, FloatMode(), a, b)


_PROPERTIES = "finite infinite number notanumber normal subnormal"


@rule("testp.op.type p, a", manual=_anchor("testp"), type="f32 f64", op=_PROPERTIES)
def testp(dom: Domain[V, P], m: Mods, a: V) -> P:
    """True where a has the property; zeros count as normal."""
    return dom.test(m["op"], m.ty, a)


def _mixed(op: FloatOp, wide: int) -> Callable[..., object]:
    def apply(dom: Domain[V, P], m: Mods, *args: V) -> V:
        f32 = scalar("f32")
        up = [dom.convert(f32, m.type("atype"), FloatMode(), a) for a in args[:wide]]
        return dom.floating(op, f32, m.mode, *up, *args[wide:])

    return apply


_MIXED = "mixed-precision-floating-point-instructions-"
_MIXED_FORMS: Final[tuple[FloatOp, ...]] = ("add", "sub")
for _op in _MIXED_FORMS:
    _form = f"{_op}{{.rnd}}{{.sat}}.type.atype d, a:atype, c"
    rule(_form, manual=_MIXED + _op, type="f32", atype="f16 bf16")(_mixed(_op, 1))
_form = "fma.rnd{.sat}.type.atype d, a:atype, b:atype, c"
rule(_form, manual=_MIXED + "fma", type="f32", atype="f16 bf16")(_mixed("fma", 2))
