"""PTX fundamental types (PTX ISA 5.2): names, widths, packing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final


@dataclass(frozen=True, slots=True)
class ScalarType:
    """A PTX fundamental type: kind `b`, `u`, `s`, `f`, `bf`, `tf`, `pred`; width in bits; lanes of a packed type."""

    kind: str
    width: int
    packed: int = 1  # 2 for f16x2, bf16x2, f32x2, u16x2 …; `width` is then the total width

    @property
    def signed(self) -> bool:
        """True for `.sN`."""
        return self.kind == "s"

    @property
    def floating(self) -> bool:
        """True for binary floating-point formats."""
        return self.kind in ("f", "bf", "tf", "e4m3", "e5m2")

    @property
    def element(self) -> ScalarType:
        """The type of one lane of a packed type; the type itself when it is not packed."""
        return ScalarType(self.kind, self.width // self.packed) if self.packed > 1 else self

    def __str__(self) -> str:
        if self.kind in ("e4m3", "e5m2"):
            return self.kind if self.packed == 1 else f"{self.kind}x{self.packed}"
        if self.packed > 1:
            return f"{self.kind}{self.width // self.packed}x{self.packed}"
        return "pred" if self.kind == "pred" else f"{self.kind}{self.width}"


_PLAIN: Final = {
    "pred": ScalarType("pred", 1),
    **{f"{kind}{width}": ScalarType(kind, width) for kind in "bus" for width in (8, 16, 32, 64)},
    "b128": ScalarType("b", 128), "b1024": ScalarType("b", 1024),
    "f16": ScalarType("f", 16), "f32": ScalarType("f", 32), "f64": ScalarType("f", 64), "bf16": ScalarType("bf", 16),
    "tf32": ScalarType("tf", 32), "e4m3": ScalarType("e4m3", 8), "e5m2": ScalarType("e5m2", 8),
    "f16x2": ScalarType("f", 32, 2), "bf16x2": ScalarType("bf", 32, 2), "f32x2": ScalarType("f", 64, 2),
    "u16x2": ScalarType("u", 32, 2), "s16x2": ScalarType("s", 32, 2), "e4m3x2": ScalarType("e4m3", 16, 2),
    "e5m2x2": ScalarType("e5m2", 16, 2), "u8x4": ScalarType("u", 32, 4), "s8x4": ScalarType("s", 32, 4),
}  # fmt: skip


@cache
def is_type(name: str) -> bool:
    """True when `name` is the suffix of a fundamental or packed type (`f32`, `bf16x2`)."""
    return name in _PLAIN


def scalar(name: str) -> ScalarType:
    """The type a suffix names; raises KeyError for a word that is no type."""
    return _PLAIN[name]
