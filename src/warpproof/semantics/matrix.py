"""Warp-level matrix instructions (PTX ISA 9.7.14): `ldmatrix`, `stmatrix`, dense `mma.sync`."""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Any, Final

from warpproof.domains import Domain, MatrixLoad, MatrixMultiply, MatrixStore, P, V
from warpproof.semantics.binding import Mods
from warpproof.semantics.registry import missing, rule

_LDMATRIX = "warp-level-matrix-load-instruction-ldmatrix"
_STMATRIX = "warp-level-matrix-instructions-stmatrix"
_MMA = "multiply-and-accumulate-instruction-mma"


def ldmatrix(dom: Domain[V, P], m: Mods, address: V) -> Generator[MatrixLoad, Any, tuple[V, ...]]:
    """8x8 matrices of 16-bit elements, spread over the warp as the operands of `mma`."""
    answer: tuple[V, ...] = yield MatrixLoad(int(m["num"][1:]), "trans" in m, address)
    return answer


def stmatrix(dom: Domain[V, P], m: Mods, address: V, values: tuple[V, ...]) -> Generator[MatrixStore, Any, None]:
    """Store 8x8 matrices of 16-bit elements from their spread over the warp."""
    yield MatrixStore(int(m["num"][1:]), "trans" in m, address, values)


for _n in (1, 2, 4):
    _tail = "matrix.sync.aligned.m8n8.num{.trans}{.shared}.b16"
    rule(f"ld{_tail} d*{_n}:b32, [a]", manual=_LDMATRIX, num=f"x{_n}")(ldmatrix)
    rule(f"st{_tail} [a], b*{_n}:b32", manual=_STMATRIX, num=f"x{_n}")(stmatrix)


def mma(dom: Domain[V, P], m: Mods, a: tuple[V, ...], b: tuple[V, ...], c: tuple[V, ...]) -> Generator[
    MatrixMultiply, Any, tuple[V, ...]
]:
    """The warp's fragments of A*B + C."""
    rows, columns, depth = (int(n) for n in re.findall(r"\d+", m["shape"]))
    answer: tuple[V, ...] = yield MatrixMultiply(
        (rows, columns, depth), m.type("dtype"), m.type("atype"), m.type("btype"), m.type("ctype"), a, b, c,
        "satfinite" in m,
    )  # fmt: skip
    return answer


# shape, A and B type, C and D type, registers of A, B, C and D (manual, matrix fragments of mma.m16n8k*)
_DENSE: Final = (
    ("m16n8k8", "f16", "f32", 2, 1, 4), ("m16n8k8", "f16", "f16", 2, 1, 2), ("m16n8k8", "bf16", "f32", 2, 1, 4),
    ("m16n8k16", "f16", "f32", 4, 2, 4), ("m16n8k16", "f16", "f16", 4, 2, 2), ("m16n8k16", "bf16", "f32", 4, 2, 4),
    ("m16n8k4", "tf32", "f32", 2, 1, 4), ("m16n8k8", "tf32", "f32", 4, 2, 4),
)  # fmt: skip
for _shape, _ab, _cd, _a, _b, _c in _DENSE:
    _reg = "f32" if _cd == "f32" else "b32"
    rule(
        f"mma.sync.aligned.shape.row.col.dtype.atype.btype.ctype d*{_c}:{_reg}, a*{_a}:b32, b*{_b}:b32, c*{_c}:{_reg}",
        manual=_MMA, shape=_shape, dtype=_cd, atype=_ab, btype=_ab, ctype=_cd,
    )(mma)  # fmt: skip

missing("ldmatrix.*", manual=_LDMATRIX, family="matrix", why="only m8n8 matrices of b16 have a rule")
missing("stmatrix.*", manual=_STMATRIX, family="matrix", why="only m8n8 matrices of b16 have a rule")
missing("mma.*", manual=_MMA, family="matrix", why="only dense f16, bf16 and tf32 shapes m16n8k* have a rule")
missing("movmatrix.*", manual="warp-level-matrix-instructions-movmatrix", family="matrix", why="no rule yet")
missing("wmma.*", manual="warp-level-matrix-instructions-for-wmma", family="matrix",
        why="the layout of wmma fragments is unspecified")
missing("wgmma.*", manual="asynchronous-warpgroup-level-matrix-instructions", family="matrix",
        why="warpgroup matrix instructions are not modelled")
missing("tcgen05.*", manual="tcgen05-instructions", family="matrix", why="tensor memory is not modelled")  # fmt: skip
