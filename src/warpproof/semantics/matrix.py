"""Warp-level matrix instructions (PTX ISA 9.7.14): `ldmatrix`, `stmatrix`, dense `mma.sync`."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Any, Final

from warpproof.domains import Domain, FragmentLoad, FragmentStore, MatrixLoad, MatrixMultiply, MatrixStore, P, V
from warpproof.isa import scalar
from warpproof.semantics.binding import Mods
from warpproof.semantics.movement import state_space
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

_WMMA: Final = "warp-level-matrix-instructions-for-wmma"
_SPACES: Final = "global shared shared::cta"
_LAYOUTS: Final = "row col"


def _dimensions(m: Mods) -> tuple[int, int, int]:
    rows, columns, depth = (int(n) for n in re.findall(r"\d+", m["shape"]))
    return rows, columns, depth


def _fragment_load(registers: int) -> Callable[..., Any]:
    def load(dom: Domain[V, P], m: Mods, address: V, stride: V | None = None) -> Generator[
        FragmentLoad, Any, tuple[V, ...]
    ]:
        answer: tuple[V, ...] = yield FragmentLoad(
            m["operand"], _dimensions(m), m["layout"] == "col", state_space(m["ss"]), m.ty, registers, address, stride
        )
        return answer

    return load


def wmma_store(dom: Domain[V, P], m: Mods, address: V, values: tuple[V, ...], stride: V | None = None) -> Generator[
    FragmentStore, Any, None
]:
    """The accumulator fragments of the warp go to memory as a matrix."""
    yield FragmentStore(_dimensions(m), m["layout"] == "col", state_space(m["ss"]), m.ty, address, stride, values)


def wmma_mma(dom: Domain[V, P], m: Mods, a: tuple[V, ...], b: tuple[V, ...], c: tuple[V, ...]) -> Generator[
    MatrixMultiply, Any, tuple[V, ...]
]:
    """A*B + C on fragments; A and B were loaded with the layouts named here."""
    ab = m.type("atype") if "atype" in m else scalar("f16")
    layouts = (m["alayout"], m["blayout"])
    answer: tuple[V, ...] = yield MatrixMultiply(
        _dimensions(m), m.type("dtype"), ab, ab, m.type("ctype"), a, b, c, "satfinite" in m, layouts
    )
    return answer


# shape, element of A and B, registers of A and B (manual, matrix fragments for wmma)
_WMMA_SHAPES: Final = (
    *((f"m{s}k16", "f16", 8, 8) for s in ("16n16", "8n32", "32n8")), ("m16n16k16", "bf16", 4, 4),
    ("m8n32k16", "bf16", 2, 8), ("m32n8k16", "bf16", 8, 2), ("m16n16k8", "tf32", 4, 4),
)  # fmt: skip
_ACCUMULATORS: Final = {"f16": 4, "f32": 8}


def _register_wmma() -> None:
    head = "sync.aligned.layout.shape{.ss}.type"
    for shape, ab, ra, rb in _WMMA_SHAPES:
        for operand, registers in (("a", ra), ("b", rb)):
            rule(f"wmma.load.operand.{head} d*{registers}:b32, [a]{{, stride:u32}}", manual=_WMMA, operand=operand,
                 layout=_LAYOUTS, shape=shape, ss=_SPACES, type=ab)(_fragment_load(registers))
        accumulators = ("f16", "f32") if ab == "f16" else ("f32",)
        for ct in accumulators:
            for dt in accumulators:
                kinds = {"atype": ab, "btype": ab} if ab != "f16" else {}
                middle = "dtype.atype.btype.ctype" if kinds else "dtype.ctype"
                nd, nc = _ACCUMULATORS[dt], _ACCUMULATORS[ct]
                rule(f"wmma.mma.sync.aligned.alayout.blayout.shape.{middle} d*{nd}:{_held(dt)}, a*{ra}:b32, "
                     f"b*{rb}:b32, c*{nc}:{_held(ct)}", manual=_WMMA, alayout=_LAYOUTS, blayout=_LAYOUTS, shape=shape,
                     dtype=dt, ctype=ct, **kinds)(wmma_mma)
    for ct, count in _ACCUMULATORS.items():
        shapes = " ".join(dict.fromkeys(s for s, ab, _, _ in _WMMA_SHAPES if ct == "f32" or ab == "f16"))
        rule(f"wmma.load.operand.{head} d*{count}:{_held(ct)}, [a]{{, stride:u32}}", manual=_WMMA, operand="c",
             layout=_LAYOUTS, shape=shapes, ss=_SPACES, type=ct)(_fragment_load(count))
        rule(f"wmma.store.d.{head} [a], b*{count}:{_held(ct)}{{, stride:u32}}", manual=_WMMA, layout=_LAYOUTS,
             shape=shapes, ss=_SPACES, type=ct)(wmma_store)


def _held(ty: str) -> str:
    return "f32" if ty == "f32" else "b32"


_register_wmma()

missing("ldmatrix.*", manual=_LDMATRIX, family="matrix", why="only m8n8 matrices of b16 have a rule")
missing("stmatrix.*", manual=_STMATRIX, family="matrix", why="only m8n8 matrices of b16 have a rule")
missing("mma.*", manual=_MMA, family="matrix", why="only dense f16, bf16 and tf32 shapes m16n8k* have a rule")
missing("movmatrix.*", manual="warp-level-matrix-instructions-movmatrix", family="matrix", why="no rule yet")
missing("wmma.*", manual=_WMMA, family="matrix", why="only f16, bf16 and tf32 products have a rule")
missing("wgmma.*", manual="asynchronous-warpgroup-level-matrix-instructions", family="matrix",
        why="warpgroup matrix instructions are not modelled")
missing("tcgen05.*", manual="tcgen05-instructions", family="matrix", why="tensor memory is not modelled")  # fmt: skip
