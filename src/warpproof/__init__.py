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
        bf16,
        bool_,
        call,
        cdiv,
        contract,
        f16,
        f32,
        f64,
        i8,
        i16,
        i32,
        i64,
        u8,
        u16,
        u32,
        u64,
    )

__all__ = [
    "In", "InOut", "Out", "Scalar", "Size", "bf16", "bool_", "call", "cdiv", "contract", "f16", "f32", "f64", "i16",
    "i32", "i64", "i8", "u16", "u32", "u64", "u8",
]


def __getattr__(name: str) -> Any:
    """Load the contract vocabulary on first use, so that `import warpproof` stays fast."""
    if name in __all__:
        import warpproof.reference as reference

        return getattr(reference, name)
    raise AttributeError(f"module 'warpproof' has no attribute {name!r}")
