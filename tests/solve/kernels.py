"""Index maps as compilers write them: right ones, and wrong ones made by one change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from warpproof.solve import Box, Piece, Problem
from warpproof.terms import Arena, Poly, const

TOP = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Case:
    """A problem, its pieces, sizes to enumerate by atom id, and what each question answers."""

    problem: Problem
    pieces: tuple[Piece, ...]
    sizes: Mapping[int, tuple[int, ...]]
    expected: Mapping[str, bool | None] = field(default_factory=dict)
    reach: int = 24  # loop counters and block indices are enumerated below this


def vec(v: object) -> Poly:
    return const(np.asarray(v, dtype=np.int64))


def idof(p: Poly) -> int:
    (a,) = p.atoms()
    return a


def size(a: Arena, name: str) -> Poly:
    return a.symbol("size", name, 1, TOP)


def block(a: Arena, name: str) -> Poly:
    return a.symbol("block", name, 0, TOP)


def loop(a: Arena, name: str) -> Poly:
    return a.symbol("loop", name, 0)


def ceil_grid(a: Arena, b: Poly, n: Poly, tile: int) -> object:
    return a.le(b - a.floor_div(n + (tile - 1), const(tile)) + 1)


ALL = {"exactly_once": True, "covers": True, "within": True, "disjoint": True, "single_thread": True, "injective": True}


def unrolled(threads: int, threshold: int = 3, copies: int = 4, step: int = 4) -> Case:
    """nvcc: `for (i = t; i < n; i += threads)` unrolled by 4 behind a remainder loop."""
    a = Arena(threads)
    n, t, i, k = size(a, "n"), vec(np.arange(threads)), loop(a, "i"), loop(a, "k")
    rem = a.mod(a.floor_div(n - 1 - t, const(threads)) + 1, const(4))
    live = a.le(t - n + 1)
    pieces = [Piece((live, a.ne(rem), a.domain(idof(i), i + 2 - rem)), (idof(i),), (), (t + i * threads,))]
    base = t + rem * threads
    more = a.domain(idof(k), base + k * (step * threads) + step * threads - n + 1)
    enough = a.le(threshold * threads - (n - 1 - t))
    pieces += [
        Piece((live, enough, more), (idof(k),), (), (base + k * (step * threads) + u * threads,)) for u in range(copies)
    ]
    good = (threshold, copies, step) == (3, 4, 4)
    expected = ALL if good else {"exactly_once": False, "covers": False}
    spans = tuple(range(1, 8 * threads, max(1, threads // 3))) if threads < 32 else (1, threads + 3)
    return Case(Problem(a, (), Box((n,))), tuple(pieces), {idof(n): spans}, expected)


def tile(threads: int, width: int, slack: int = 1, flat: bool = False) -> Case:
    """A 2-D tile store with ragged guards."""
    a = Arena(threads)
    m, n, bx, by, t = size(a, "M"), size(a, "N"), block(a, "bx"), block(a, "by"), np.arange(threads)
    height = threads // width
    row, col = by * height + vec(t // width), bx * width + vec(t % width)
    facts = (ceil_grid(a, bx, n, width), ceil_grid(a, by, m, height))
    guards = (a.le(row - m + slack), a.le(col - n + 1))
    index, box = ((row * n + col,), (m * n,)) if flat else ((row, col), (m, n))
    good = slack == 1
    expected = ALL if good else {"covers": slack < 1, "within": slack > 1, "single_thread": True}
    if flat and slack < 1:  # a row too many: the guard still bounds what delinearisation needs
        expected = {"within": False, "single_thread": True}
    sizes = {idof(m): (1, 3, height, height + 2), idof(n): (1, width, width + 1)}
    pieces = (Piece(guards, (), (idof(bx), idof(by)), index),)
    return Case(Problem(a, facts, Box(box)), pieces, sizes, expected)  # type: ignore[arg-type]


def grid_stride(threads: int, slack: int = 1) -> Case:
    """`for (i = bx·T + t; i < n; i += gridDim·T)` for any grid."""
    a = Arena(threads)
    n, gx, bx, i = size(a, "n"), a.symbol("grid", "gx", 1, TOP), block(a, "bx"), loop(a, "i")
    t = vec(np.arange(threads))
    at = bx * threads + t + gx * i * threads
    guards = (a.le(bx * threads + t - n + slack), a.domain(idof(i), at + gx * threads - n + slack))
    expected = ALL if slack == 1 else {"within": slack > 1, "covers": slack < 1, "single_thread": True}
    pieces = (Piece(guards, (idof(i),), (idof(bx),), (at,)),)
    sizes = {idof(n): (1, threads, 2 * threads + 1, 5 * threads - 1), idof(gx): (1, 2, 3)}
    return Case(Problem(a, (a.le(bx - gx + 1),), Box((n,))), pieces, sizes, expected)


def float4(threads: int, tail: int = 3) -> Case:
    """Vector copies of 4 elements and a scalar tail by block 0, lane 0."""
    a = Arena(threads)
    n, bx, t = size(a, "n"), block(a, "bx"), vec(np.arange(threads))
    t4, n4 = bx * threads + t, a.floor_div(n, const(4))
    pieces = [Piece((a.le(t4 - n4 + 1),), (), (idof(bx),), (t4 * 4 + u,)) for u in range(4)]
    first = a.lane_mask(np.arange(threads) == 0)
    pieces += [
        Piece((first, a.eq(bx), a.le(n4 * 4 + u - n + 1)), (), (idof(bx),), (n4 * 4 + u,)) for u in range(tail)
    ]
    facts = (ceil_grid(a, bx, n, 4 * threads),)
    expected = ALL if tail == 3 else {"covers": False, "within": True, "disjoint": True}
    sizes = {idof(n): tuple(range(1, 9 * threads, 3))}
    return Case(Problem(a, facts, Box((n,))), tuple(pieces), sizes, expected)  # type: ignore[arg-type]


def k_tiles(depth: int, skip: int = -1, double: bool = False) -> Case:
    """A reduction in K tiles with unrolled copies guarded by k < K (one lane's view)."""
    a = Arena(4)
    k, i = size(a, "K"), loop(a, "i")
    pieces = [
        Piece((a.le(i * depth + u - k + 1), a.domain(idof(i), i * depth + depth - k + 1)), (idof(i),), (),
              (i * depth + u,), np.asarray([1, 0, 0, 0]))
        for u in range(depth) if u != skip
    ]
    if double:
        pieces.append(pieces[0])
    expected = ALL if skip < 0 and not double else {"exactly_once": False, "covers": skip < 0, "within": True}
    return Case(Problem(a, (), Box((k,))), tuple(pieces), {idof(k): tuple(range(1, 3 * depth))}, expected)


def fragments(columns: int = 4) -> Case:
    """mma.m16n8 accumulators of 4 warps on a 64 × 64 tile: 16 stored values per lane."""
    a = Arena(128)
    m, n, bx, by, t = size(a, "M"), size(a, "N"), block(a, "bx"), block(a, "by"), np.arange(128)
    w, l = t // 32, t % 32
    pieces = []
    for mi in range(2):
        for ni in range(columns):
            for h in range(2):
                for c in range(2):
                    row = by * 64 + vec(w // 2 * 32 + mi * 16 + l // 4 + 8 * h)
                    col = bx * 64 + vec(w % 2 * 32 + ni * 8 + l % 4 * 2 + c)
                    guards = (a.le(row - m + 1), a.le(col - n + 1))
                    pieces.append(Piece(guards, (), (idof(bx), idof(by)), (row, col)))
    facts = (ceil_grid(a, bx, n, 64), ceil_grid(a, by, m, 64))
    expected = ALL if columns == 4 else {"exactly_once": False, "covers": False, "within": True}
    sizes = {idof(m): (3, 65), idof(n): (70,)}
    return Case(Problem(a, facts, Box((m, n))), tuple(pieces), sizes, expected)  # type: ignore[arg-type]


def rows(threads: int, guarded: bool = True) -> Case:
    """A block per row, a strided loop over the row, one flat index."""
    a = Arena(threads)
    r, n, bx, i = size(a, "rows"), size(a, "n"), block(a, "bx"), loop(a, "i")
    col = vec(np.arange(threads)) + i * threads
    guards = (a.domain(idof(i), col + threads - n + 1),)
    if guarded:
        guards = (a.le(vec(np.arange(threads)) - n + 1), *guards)
    pieces = (Piece(guards, (idof(i),), (idof(bx),), (bx * n + col,)),)
    expected = ALL if guarded else {"exactly_once": None, "within": None, "single_thread": None}
    sizes = {idof(r): (1, 3), idof(n): (1, threads - 1, threads + 2)}
    return Case(Problem(a, (a.le(bx - r + 1),), Box((r * n,))), pieces, sizes, expected)


def batched(threads: int) -> Case:
    """A 3-D index flattened twice: (b·H + h)·W + w with blocks for b and h."""
    a = Arena(threads)
    big, h, w = size(a, "B"), size(a, "H"), size(a, "W")
    bz, by, i = block(a, "bz"), block(a, "by"), loop(a, "i")
    col = vec(np.arange(threads)) + i * threads
    guards = (a.le(vec(np.arange(threads)) - w + 1), a.domain(idof(i), col + threads - w + 1))
    pieces = (Piece(guards, (idof(i),), (idof(bz), idof(by)), ((bz * h + by) * w + col,)),)
    facts = (a.le(bz - big + 1), a.le(by - h + 1))
    sizes = {idof(big): (1, 2), idof(h): (1, 3), idof(w): (1, threads + 1)}
    return Case(Problem(a, facts, Box((big * h * w,))), pieces, sizes, ALL, reach=5)


def shared_cell(threads: int) -> Case:
    """Every lane writes element t / 2: two threads per element."""
    a = Arena(threads)
    n, t = size(a, "n"), np.arange(threads)
    pieces = (Piece((a.le(vec(t // 2) - n + 1),), (), (), (vec(t // 2),)),)
    expected = {"within": True, "single_thread": False, "injective": False, "exactly_once": False, "disjoint": True}
    return Case(Problem(a, (), Box((n,))), pieces, {idof(n): (1, 2, 3)}, expected)


def swizzled(threads: int) -> Case:
    """Lanes permuted by xor: affine in the bits of the lane number only."""
    a = Arena(threads)
    n, bx, t = size(a, "n"), block(a, "bx"), np.arange(threads)
    at = bx * threads + vec(t ^ (t >> 2 & 1) ^ 3)
    pieces = (Piece((a.le(at - n + 1),), (), (idof(bx),), (at,)),)
    facts = (ceil_grid(a, bx, n, threads),)
    return Case(Problem(a, facts, Box((n,))), pieces, {idof(n): (1, 5, threads + 3)}, ALL)  # type: ignore[arg-type]


def masked_halves(threads: int, overlap: bool = False) -> Case:
    """The lower lanes store the front, the upper lanes the back, with different guards."""
    a = Arena(threads)
    half, t = threads // 2, np.arange(threads)
    n = a.symbol("size", "n", threads, TOP)
    low, high = a.lane_mask(t < half), a.lane_mask(t >= half)
    pieces = (
        Piece((low,), (), (), (vec(t),)),
        Piece((high,), (), (), (vec(t - (1 if overlap else 0)),)),
    )
    extent = const(threads)
    expected = {"exactly_once": not overlap, "covers": not overlap, "within": True, "disjoint": not overlap,
                "single_thread": not overlap}
    return Case(Problem(a, (), Box((extent,))), pieces, {idof(n): (threads,)}, expected)


CASES: dict[str, Callable[[], Case]] = {
    "unrolled by 4, 256 threads": lambda: unrolled(256),
    "unrolled by 4, 96 threads": lambda: unrolled(96),
    "unrolled by 4, 6 threads": lambda: unrolled(6),
    "unrolled, late main loop": lambda: unrolled(6, threshold=4),
    "unrolled, missing copy": lambda: unrolled(6, copies=3),
    "unrolled, longer step": lambda: unrolled(4, step=5),
    "tile 16 × 16": lambda: tile(256, 16),
    "tile 4 × 24": lambda: tile(96, 24),
    "tile 2 × 4": lambda: tile(8, 4),
    "tile, row guard one short": lambda: tile(8, 4, slack=2),
    "tile, row guard one too many": lambda: tile(8, 4, slack=0),
    "tile, flat index": lambda: tile(8, 4, flat=True),
    "tile, flat index, one short": lambda: tile(8, 4, slack=2, flat=True),
    "tile, flat index, one too many": lambda: tile(8, 4, slack=0, flat=True),
    "grid stride, 256 threads": lambda: grid_stride(256),
    "grid stride, 4 threads": lambda: grid_stride(4),
    "grid stride, one too many": lambda: grid_stride(4, slack=0),
    "grid stride, one short": lambda: grid_stride(4, slack=2),
    "float4, 128 threads": lambda: float4(128),
    "float4, 3 threads": lambda: float4(3),
    "float4, no tail": lambda: float4(3, tail=0),
    "float4, short tail": lambda: float4(3, tail=2),
    "K tiles of 16": lambda: k_tiles(16),
    "K tiles, one copy missing": lambda: k_tiles(16, skip=5),
    "K tiles, one copy twice": lambda: k_tiles(4, double=True),
    "mma fragments": fragments,
    "mma fragments, a column short": lambda: fragments(3),
    "rows": lambda: rows(4),
    "rows, 256 threads": lambda: rows(256),
    "rows, no entry guard": lambda: rows(4, guarded=False),
    "batched rows": lambda: batched(4),
    "two threads per element": lambda: shared_cell(8),
    "swizzled lanes": lambda: swizzled(16),
    "masked halves": lambda: masked_halves(8),
    "masked halves, overlapping": lambda: masked_halves(8, overlap=True),
}
