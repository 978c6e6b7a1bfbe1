"""Extents that are sums, such as the rows H - KH + 1 of a convolution's output, as unknowns of their own.

Index arithmetic divides by such extents and by their products. Multiplied out these are long sums in which nothing
shows the factors; so H becomes E + KH - 1 with E for the extent, where that makes the launch's products shorter. The
change is one to one on the integers: what holds for all admitted E, KH … holds for all admitted H, KH ….
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from warpproof.algebra import linear_text
from warpproof.reference.multiples import size_of, substituted
from warpproof.terms import Poly

if TYPE_CHECKING:
    from warpproof.reference.symbolic import SymbolicLaunch

_MOST: Final = 4


def with_extents(launch: SymbolicLaunch) -> SymbolicLaunch:
    """The launch with sizes expressed by the extents of outputs; unchanged where this makes nothing shorter."""
    if launch.float_preds or launch.element_facts:
        return launch
    for _ in range(_MOST):
        best = min(_changes(launch), key=_length, default=launch)
        if _length(best) >= _length(launch):
            return launch
        launch = best
    return launch


def _length(launch: SymbolicLaunch) -> int:
    """The number of terms in the outputs' numbers of elements and in what the grid is computed from."""
    counts = [b.count for b in launch.buffers.values() if b.kind != "ptr_in"]
    atoms = launch.arena.atoms
    inside = [q for g in launch.grid for a in g.atoms() for q in atoms[a].args]
    return sum(len(p.terms) for p in (*counts, *launch.grid, *inside))


def _changes(launch: SymbolicLaunch) -> Iterator[SymbolicLaunch]:
    """The launch with a size expressed by one of the outputs' extents, in which it has the factor 1.

    The rest of the size must not be negative: sums of what is not negative stay so in products.
    """
    outputs = [b for b in launch.buffers.values() if b.kind != "ptr_in" and b.contiguous and len(b.shape) > 1]
    extents = {e for b in outputs for e in b.shape}
    for extent in sorted(extents, key=lambda e: e.key):
        if len(extent.terms) < 2 or any(len(m) > 1 or size_of(launch.arena, Poly({m: 1})) is None
                                        for m in extent.terms if m):
            continue
        for m, c in extent.terms.items():
            least = launch.arena.bounds(Poly({m: 1}) - extent)[0] if m and c == 1 else None
            if least is not None and least >= 0:
                yield _changed(launch, m[0], extent)


def _changed(launch: SymbolicLaunch, size: int, extent: Poly) -> SymbolicLaunch:
    arena = launch.arena
    low, high = arena.bounds(extent)
    for f in launch.facts:
        least = f.data + extent if f.op == "le" else None
        k = None if least is None else least.as_int()
        if k is not None:  # k - extent ≤ 0
            low = k if low is None else max(low, k)
    unknown = arena.symbol("size", f"({linear_text(arena, extent)})", low, high)
    return substituted(launch, size, unknown - extent + Poly({(size,): 1}))
