"""Warp-level matrices on bits: `ldmatrix`, `stmatrix` and `mma.sync` over the fragments the manual lays out.

The manual leaves the precision of the accumulation of `mma` unspecified. Here products and sums are made in float64 and
rounded once, so results are exact to within what the hardware may differ by, not bit-exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from warpproof.core import Unsupported
from warpproof.domains import MatrixMultiply, ScalarType
from warpproof.machine.batch import WARP, Lanes, Words
from warpproof.machine.fragments import Layout, fragment

Doubles = npt.NDArray[np.float64]
_LANE: Final = np.arange(WARP)


def matrix_rows(lanes: Lanes, addresses: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.uint64]:
    """For whole warps, the address of the row each lane reads in each of `count` matrices: shape (count, lanes)."""
    table = addresses.reshape(-1, WARP)
    rows = np.stack([np.repeat(table[:, 8 * i:8 * i + 8], 4, axis=1) for i in range(count)])
    return rows.reshape(count, len(lanes))


def matrix_columns(lanes: Lanes, addresses: npt.NDArray[np.uint64],
                   count: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """For a transposed load, the addresses of the two elements each lane reads in each matrix: (count, lanes) each."""
    table = addresses.reshape(-1, WARP)
    column = np.uint64(2) * (_LANE // 4).astype(np.uint64)
    low, high = (
        np.stack([table[:, 8 * i + 2 * (_LANE % 4) + part] + column for i in range(count)]).reshape(count, len(lanes))
        for part in (0, 1)
    )
    return low, high


def operand_layouts(effect: MatrixMultiply) -> tuple[Layout, Layout, Layout]:
    """For A, B and C (as for D): by register and element, the (row, column) of every lane of a warp."""
    m, n, k = effect.shape
    if effect.layouts is None:
        return (
            a_fragment(m, k, per_register(effect.a, m * k)), b_fragment(k, n, per_register(effect.b, k * n)),
            c_fragment(m, n, per_register(effect.c, m * n)),
        )
    per = 32 // max(16, 32 if effect.a_type.kind == "tf" else effect.a_type.width)
    a, b = (word == "col" for word in effect.layouts)
    return (
        fragment("a", effect.shape, a, len(effect.a), per), fragment("b", effect.shape, b, len(effect.b), per),
        fragment("c", effect.shape, False, len(effect.c), 32 // effect.c_type.width),
    )


def multiply(effect: MatrixMultiply) -> tuple[Words, ...]:
    """D's registers for whole warps (PTX ISA 9.7.14.4 and 9.7.14.5, matrix fragments)."""
    m, n, k = effect.shape
    if effect.saturate:
        raise Unsupported("mma.satfinite", "no rule")
    a_layout, b_layout, c_layout = operand_layouts(effect)
    a = _assembled(effect.a, effect.a_type, a_layout, (m, k))
    b = _assembled(effect.b, effect.b_type, b_layout, (k, n))
    c = _assembled(effect.c, effect.c_type, c_layout, (m, n))
    with np.errstate(all="ignore"):
        d = np.einsum("wik,wkj->wij", a, b) + c
    if effect.layouts is not None:
        width = effect.d_type.width
        c_layout = fragment("c", effect.shape, False, m * n * width // (32 * WARP), 32 // width)
    return _scattered(d, effect.d_type, c_layout, len(c_layout))


def per_register(registers: Sequence[object], elements: int) -> int:
    """How many elements of a matrix of `elements` each register of a lane holds."""
    return elements // (WARP * len(registers))


def a_fragment(m: int, k: int, e: int) -> list[list[tuple[Any, Any]]]:
    """For register i and element j of `e`, the (row, column) of every lane of a warp in A."""
    group, quad = _LANE // 4, _LANE % 4
    halves = max(m // 8, 1)
    return [[(group + 8 * (i % halves), quad * e + j + 4 * e * (i // halves)) for j in range(e)]
            for i in range(m * k // (WARP * e))]


def b_fragment(k: int, n: int, e: int) -> list[list[tuple[Any, Any]]]:
    """For register i and element j of `e`, the (row, column) of every lane of a warp in B."""
    if n != 8:
        raise Unsupported(f"mma with n = {n}", "no fragment layout")
    group, quad = _LANE // 4, _LANE % 4
    return [[(quad * e + j + 4 * e * i, group) for j in range(e)] for i in range(k * n // (WARP * e))]


def c_fragment(m: int, n: int, e: int) -> list[list[tuple[Any, Any]]]:
    """For register i and element j of `e`, the (row, column) of every lane of a warp in C and D."""
    if n != 8 or e > 2:
        raise Unsupported(f"mma with n = {n}", "no fragment layout")
    group, quad = _LANE // 4, _LANE % 4
    count = m * n // (WARP * e)
    return [[(group + 8 * ((i * e + j) // 2), quad * 2 + (i * e + j) % 2) for j in range(e)] for i in range(count)]


def _assembled(registers: Sequence[Any], ty: ScalarType, index: list[list[tuple[Any, Any]]],
               shape: tuple[int, int]) -> Doubles:
    """The matrices of all warps: shape (warps, rows, columns), as exact doubles."""
    warps = len(registers[0]) // WARP
    out = np.zeros((warps, *shape))
    for register, elements in zip(registers, index, strict=True):
        for j, (row, column) in enumerate(elements):
            out[:, row, column] = _decoded(register, ty, j, len(elements)).reshape(warps, WARP)
    return out


def _decoded(register: Words, ty: ScalarType, j: int, per: int) -> Doubles:
    width = register.dtype.itemsize * 8 // per
    part = register >> register.dtype.type(j * width) if per > 1 else register
    kind = f"{ty.kind}{width}"
    with np.errstate(invalid="ignore"):  # signalling NaNs
        match kind:
            case "f32" | "tf32":
                bits = part.astype(np.uint32)
                if ty.kind == "tf":
                    bits = bits & np.uint32(0xFFFFE000)  # the low 13 bits of a tf32 operand do not take part
                return bits.view(np.float32).astype(np.float64)
            case "f16":
                return part.astype(np.uint16).view(np.float16).astype(np.float64)
            case "bf16":
                return (part.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
    raise Unsupported(f"mma operand {kind}", "no such element type")


def _scattered(d: Doubles, ty: ScalarType, index: list[list[tuple[Any, Any]]], count: int) -> tuple[Words, ...]:
    registers: list[Words] = []
    for elements in index:
        parts = [np.ascontiguousarray(d[:, row, column]).reshape(-1) for row, column in elements]
        encoded = [_encoded(part, ty) for part in parts]
        if len(encoded) == 1:
            registers.append(encoded[0])
        else:
            registers.append(encoded[0].astype(np.uint32) | encoded[1].astype(np.uint32) << np.uint32(16))
    if len(registers) != count:
        raise Unsupported("mma", "accumulator registers do not match the shape")
    return tuple(registers)


def _encoded(value: Doubles, ty: ScalarType) -> Words:
    match str(ty):
        case "f32":
            with np.errstate(all="ignore"):
                return value.astype(np.float32).view(np.uint32)
        case "f16":
            with np.errstate(all="ignore"):
                return value.astype(np.float16).view(np.uint16)
    raise Unsupported(f"mma to {ty}", "no accumulator of this type")
