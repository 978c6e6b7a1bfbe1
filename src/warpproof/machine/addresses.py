"""The address spaces of a run: state-space and generic addresses of every lane, resolved to bytes of a region.

A generic address below the windows is a global address; each window maps one other state space (PTX ISA 6.4.1, cvta).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpproof.core import Unsupported
from warpproof.machine.batch import Lanes, Mask
from warpproof.machine.storage import Offsets, Region

Addresses = npt.NDArray[np.uint64]

WINDOW: Final[Mapping[str, int]] = {
    "function": 0x7B00_0000_0000, "const": 0x7C00_0000_0000, "param": 0x7D00_0000_0000, "local": 0x7E00_0000_0000,
    "shared": 0x7F00_0000_0000,
}
WINDOW_SIZE: Final = 1 << 32
FRAME: Final = 1 << 20
"""Where the parameters of device functions start in the .param space; below are the kernel's."""

_LOWEST: Final = np.uint64(min(WINDOW.values()))
_U32: Final = np.uint64(0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Area:
    """A region as seen from a state space: each owner (a CTA, a lane, everybody) has `size` bytes, `stride` apart."""

    region: Region
    size: int
    stride: int
    owner: npt.NDArray[np.int64] | None  # by lane; None when everybody shares the one copy


@dataclass(frozen=True, slots=True)
class Piece:
    """The lanes of an access (by position, None for all) that go to one region, with their byte offsets in it."""

    space: str
    region: Region
    positions: Lanes | None
    offsets: Offsets


class GlobalSpace:
    """The allocations of global memory, by address."""

    __slots__ = ("_bases", "_regions", "_sizes")

    def __init__(self, placed: Mapping[int, Region]) -> None:
        ordered = sorted(placed.items())
        self._bases: Addresses = np.array([base for base, _ in ordered], np.uint64)
        self._sizes = np.array([region.size for _, region in ordered], np.int64)
        self._regions = [region for _, region in ordered]

    def resolve(self, addresses: Addresses, size: int) -> tuple[list[Piece], Mask | None]:
        """The pieces of an access of `size` bytes at each address, and the lanes that touch a byte outside."""
        if not len(self._bases) or not len(addresses):
            return [], np.ones(len(addresses), np.bool_)
        k = max(int(np.searchsorted(self._bases, addresses[0], side="right")) - 1, 0)
        offsets = (addresses - self._bases[k]).view(np.int64)
        if ((offsets >= 0) & (offsets <= self._sizes[k] - size)).all():
            return [Piece("global", self._regions[k], None, offsets)], None
        which = np.searchsorted(self._bases, addresses, side="right") - 1
        which[which < 0] = 0
        offsets = (addresses - self._bases[which]).view(np.int64)
        inside = (offsets >= 0) & (offsets <= self._sizes[which] - size)
        pieces = []
        for k in np.unique(which[inside]):
            positions = np.flatnonzero(inside & (which == k))
            pieces.append(Piece("global", self._regions[k], positions, offsets[positions]))
        return pieces, None if inside.all() else ~inside

    def nearest(self, address: int) -> tuple[str, int] | None:
        """The closest region's name and the signed offset of `address` from its start."""
        best: tuple[int, str, int] | None = None
        for base, region in zip(self._bases, self._regions, strict=True):
            offset = address - int(base)
            distance = max(-offset, offset - region.size + 1, 0)
            if best is None or distance < best[0]:
                best = (distance, region.name, offset)
        return None if best is None else best[1:]


class AddressSpaces:
    """Every state space of a batch. `areas` holds shared, local, const, param (the kernel's) and frame (functions')."""

    __slots__ = ("_areas", "_globals")

    def __init__(self, global_space: GlobalSpace, areas: Mapping[str, Area]) -> None:
        self._globals, self._areas = global_space, areas

    def region(self, name: str) -> Region:
        """The region behind an area."""
        return self._areas[name].region

    def resolve(self, space: str, addresses: Addresses, lanes: Lanes, size: int) -> tuple[list[Piece], Mask | None]:
        """The pieces of an access of `size` bytes by each lane, and the lanes out of bounds (None: no lane is)."""
        kind = space.partition("::")[0]
        if kind == "global":
            return self._globals.resolve(addresses, size)
        if kind == "generic":
            return self._generic(addresses, lanes, size)
        if kind == "shared":
            addresses = addresses & _U32  # addresses are truncated to the width of the state space
        if kind == "param":
            return self._split(addresses, lanes, size, [("param", 0), ("frame", FRAME)])
        return self._windowed(kind, addresses, lanes, size)

    def in_window(self, space: str, addresses: Addresses) -> Mask:
        """Which generic addresses lie in the window of `space` (isspacep)."""
        kind = space.partition("::")[0]
        if kind == "global":
            return addresses < _LOWEST
        if kind not in WINDOW:
            raise Unsupported(f"isspacep.{space}", "no such window")
        base = np.uint64(WINDOW[kind])
        return (addresses >= base) & (addresses - base < np.uint64(WINDOW_SIZE))

    def convert(self, space: str, to: bool, addresses: Addresses) -> Addresses:
        """The generic address of a state-space address, or with `to` the reverse (cvta)."""
        kind = space.partition("::")[0]
        if kind == "global":
            return addresses
        if kind not in WINDOW:
            raise Unsupported(f"cvta.{space}", "no such window")
        base = np.uint64(WINDOW[kind])
        return addresses - base if to else addresses + base

    def describe(self, space: str, address: int) -> tuple[str | None, int | None]:
        """The name of the (nearest) region an address means and the offset from its start."""
        if address >= int(_LOWEST):
            name = max((base, kind) for kind, base in WINDOW.items() if base <= address)[1]
            return name, address - WINDOW[name]
        if space in ("global", "generic"):
            return self._globals.nearest(address) or (None, None)
        return space.partition("::")[0], address

    def _generic(self, addresses: Addresses, lanes: Lanes, size: int) -> tuple[list[Piece], Mask | None]:
        if (addresses < _LOWEST).all():
            return self._globals.resolve(addresses, size)
        cuts = sorted((base, kind) for kind, base in WINDOW.items())
        return self._split(addresses, lanes, size, [("global", 0), *((kind, base) for base, kind in cuts)])

    def _split(self, addresses: Addresses, lanes: Lanes, size: int,
               cuts: list[tuple[str, int]]) -> tuple[list[Piece], Mask | None]:
        which = np.searchsorted(np.array([cut for _, cut in cuts], np.uint64), addresses, side="right") - 1
        outside: Mask = np.zeros(len(addresses), np.bool_)
        pieces: list[Piece] = []
        for k in np.unique(which):
            kind, base = cuts[k]
            positions = np.flatnonzero(which == k)
            local = addresses[positions] - np.uint64(base)
            if kind == "global":
                found, bad = self._globals.resolve(local, size)
            elif kind == "param" and base:
                found, bad = self.resolve("param", local, lanes[positions], size)
            else:
                found, bad = self._windowed(kind, local, lanes[positions], size)
            pieces += [_narrowed(piece, positions) for piece in found]
            if bad is not None:
                outside[positions[bad]] = True
        return pieces, outside if outside.any() else None

    def _windowed(self, kind: str, addresses: Addresses, lanes: Lanes, size: int) -> tuple[list[Piece], Mask | None]:
        area = self._areas.get(kind)
        if area is None:
            return [], np.ones(len(addresses), np.bool_)
        offsets = addresses.view(np.int64)
        inside = (offsets >= 0) & (offsets <= area.size - size)
        if inside.all():
            return [Piece(kind, area.region, None, _owned(area, offsets, lanes))], None
        positions = np.flatnonzero(inside)
        pieces = [Piece(kind, area.region, positions, _owned(area, offsets[positions], lanes[positions]))]
        return pieces if len(positions) else [], ~inside


def _owned(area: Area, offsets: Offsets, lanes: Lanes) -> Offsets:
    return offsets if area.owner is None else offsets + area.owner[lanes] * area.stride


def _narrowed(piece: Piece, positions: Lanes) -> Piece:
    inner = positions if piece.positions is None else positions[piece.positions]
    return Piece(piece.space, piece.region, inner, piece.offsets)


def address_array(value: Any) -> Addresses:
    """A domain value as 64-bit addresses."""
    return np.asarray(value, np.uint64)
