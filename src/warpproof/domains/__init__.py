"""The value domains an instruction's meaning can be read in: exact bits, real terms."""

from warpproof.domains.base import FloatMode, ScalarType
from warpproof.domains.bits import Bits

__all__ = ["Bits", "FloatMode", "ScalarType"]
