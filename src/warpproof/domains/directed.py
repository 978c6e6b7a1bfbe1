"""Bits with every nearest rounding directed the other way: how far rounding can move a result (CESTAC, Vignes 1974)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from warpproof.domains.base import FloatMode, FloatOp, ScalarType
from warpproof.domains.bits import Bits
from warpproof.domains.wordops import Words

DIRECTIONS: Final = ("rp", "rm", "rz")


class DirectedBits(Bits):
    """The bits domain in which operations that round to nearest round in `direction` instead. Not PTX semantics."""

    def __init__(self, lanes: int, direction: str) -> None:
        super().__init__(lanes)
        self.direction = direction

    def floating(self, op: FloatOp, ty: ScalarType, mode: FloatMode, *args: Words) -> Words:
        """As in `Bits`, with the rounding replaced."""
        return super().floating(op, ty, self._directed(mode), *args)

    def convert(self, dst: ScalarType, src: ScalarType, mode: FloatMode, a: Words) -> Words:
        """As in `Bits`, with the rounding of conversions to a float replaced."""
        return super().convert(dst, src, self._directed(mode) if dst.floating else mode, a)

    def _directed(self, mode: FloatMode) -> FloatMode:
        return replace(mode, rounding=self.direction) if mode.rounding in ("rn", "rna") else mode
