"""Families without rules, each with the reason."""

from __future__ import annotations

from typing import Final

from warpproof.semantics.registry import missing

_WHY: Final = {
    "texture and surface memory is not modelled": (
        "tex", "tld4", "txq", "istypep", "suld", "sust", "sured", "suq"),
    "video instructions have no rule": (
        "vadd", "vsub", "vabsdiff", "vmin", "vmax", "vshl", "vshr", "vmad", "vset", "vadd2", "vsub2", "vavrg2",
        "vabsdiff2", "vmin2", "vmax2", "vset2", "vadd4", "vsub4", "vavrg4", "vabsdiff4", "vmin4", "vmax4", "vset4"),
    "the run-time stack is not modelled": ("alloca", "stacksave", "stackrestore"),
    "thread-block clusters are not modelled": ("mapa", "getctarank"),
    "discarded bytes have an indeterminate value": ("discard",),
}  # fmt: skip
for _reason, _names in _WHY.items():
    for _name in _names:
        missing(f"{_name}.*", manual="instruction-set", why=_reason)

missing("rcp.approx.ftz.f64 d, a", "rsqrt.approx.ftz.f64 d, a", manual="floating-point-instructions-rcp-approx-ftz-f64",
        why="a gross approximation on the upper word only")
missing("fma.rnd{.ftz}.oob{.relu}.type d, a, b, c", manual="half-precision-floating-point-instructions-fma", rnd="rn",
        type="f16 f16x2 bf16 bf16x2", why="out-of-bounds NaN values are not modelled")
_CVT = "data-movement-and-conversion-instructions-cvt"
_SMALL = "e2m1x2 e2m3x2 e3m2x2 ue8m0x2 s2f6x2 e2m1x4 e2m3x4 e3m2x4 e4m3x4 e5m2x4"
missing("cvt.rnd{.satfinite}{.relu}{.scale}.small.other d, a", manual=_CVT, rnd="rn rz rp rs", small=_SMALL,
        scale="scaled::n2::ue8m0", other="f32 f16x2 bf16x2", why="no rule for 4-, 6-bit, scale and stochastic formats")
missing("cvt.rs{.relu}{.satfinite}.dtype.f32 d, a", manual=_CVT, dtype="f16x2 bf16x2",
        why="no rule for stochastic rounding")
missing("prefetch.*", manual="data-movement-and-conversion-instructions", why="no rule for this form")  # fmt: skip
