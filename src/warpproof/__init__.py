"""Prove GPU kernels correct for every input, every admitted size and every schedule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from warpproof.reference import (
        In,
        InOut,
        Out,
        Scalar,
        Size,
        contract,
        f16,
        f32,
        f64,
        i32,
        i64,
        u8,
        u32,
    )

__all__ = [
    "In", "InOut", "Out", "Scalar", "Size", "contract", "f16", "f32", "f64", "i32", "i64", "u8", "u32",
]


def __getattr__(name: str) -> Any:
    """Load the contract vocabulary on first use, so that `import warpproof` stays fast."""
    if name in __all__:
        import warpproof.reference as reference

        return getattr(reference, name)
    raise AttributeError(f"module 'warpproof' has no attribute {name!r}")
