"""Halves of registers, byte permutations, bit fields and logic on symbolic values, against the emulator."""

from __future__ import annotations

import pytest
from warp_kernels import WarpKernel, load_words, store_words


def _floats(code: str, dtype: str, out: str = "f32", words: int = 1) -> None:
    per = 1 if out == "f32" else 2
    registers = [f"%r{40 + i}" for i in range(words)]
    WarpKernel(load_words(0, 2, "a") + code + store_words(registers), {"a": dtype, "o": out}).agrees(64 * words * per)


@pytest.mark.parametrize("code", [
    "shl.b32 %r40, %r0, 16; and.b32 %r41, %r0, 0xFFFF0000;",
    "mov.b32 {%h0, %h1}, %r0; mov.b16 %h2, 0; mov.b32 %r40, {%h2, %h0}; mov.b32 %r41, {%h2, %h1};",
    "mov.b32 {%h0, %h1}, %r0; cvt.u32.u16 %r5, %h0; shl.b32 %r40, %r5, 16; cvt.u32.u16 %r6, %h1; "
    "shl.b32 %r41, %r6, 16;",
    "prmt.b32 %r40, %r0, 0, 0x1044; prmt.b32 %r41, %r0, 0, 0x3244;",
    "shr.u32 %r5, %r0, 16; shl.b32 %r41, %r5, 16; and.b32 %r6, %r0, 65535; shl.b32 %r40, %r6, 16;",
    "mov.b32 {%h0, %h1}, %r0; cvt.f32.bf16 %r40, %h0; cvt.f32.bf16 %r41, %h1;",
])
def test_bf16_halves_as_f32(code: str) -> None:
    _floats(code + "mov.f32 %f0, 0f00000000; add.f32 %r40, %r40, %f0; add.f32 %r41, %r41, %f0;", "bf16", words=2)


@pytest.mark.parametrize("code", [
    "prmt.b32 %r40, %r0, %r1, 0x5410; prmt.b32 %r41, %r0, %r1, 0x7632;",
    "prmt.b32 %r40, %r0, %r1, 0x1032; prmt.b32 %r41, %r0, %r1, 0x5432;",
    "mov.b32 {%h0, %h1}, %r0; mov.b32 {%h2, %h3}, %r1; mov.b32 %r40, {%h0, %h3}; mov.b32 %r41, {%h2, %h1};",
    "fma.rn.DT %r40, %r0, %r1, %r0; add.rn.DT %r41, %r0, %r1;",
    "max.DT %r40, %r0, %r1; neg.DT %r41, %r0;",
    "and.b32 %r5, %r0, 65535; and.b32 %r6, %r1, -65536; or.b32 %r40, %r5, %r6; and.b32 %r41, %r0, 0x7FFF7FFF;",
    "shl.b32 %r5, %r0, 16; shr.u32 %r6, %r1, 16; or.b32 %r40, %r5, %r6; xor.b32 %r41, %r0, 0x80008000;",
])
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_pairs(code: str, dtype: str) -> None:
    _floats(code.replace("DT", f"{dtype}x2"), dtype, dtype, 2)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_conversions_of_pairs(dtype: str) -> None:
    code = (f"cvt.rn.{dtype}x2.f32 %r40, %r0, %r1; cvt.rn.relu.{dtype}x2.f32 %r41, %r1, %r0;")
    _floats(code, "f32", dtype, 2)


def _integers(code: str, words: int = 1) -> None:
    registers = [f"%r{40 + i}" for i in range(words)]
    kernel = WarpKernel(load_words(0, 2, "z") + code + store_words(registers), {"z": "i32", "o": "i32"},
                        n=(0, 5, 33, 64))
    kernel.agrees(64 * words)


@pytest.mark.parametrize("code", [
    "bfi.b32 %r40, %n, %t, 8, 7;", "bfi.b32 %r40, %t, %n, 0, 3;", "bfe.u32 %r40, %n, 2, 4;", "bfe.s32 %r40, %n, 1, 3;",
    "lop3.b32 %r40, %n, 7, %t, 0xC0;", "lop3.b32 %r40, %n, -8, 5, 0xEA;", "lop3.b32 %r40, %n, 15, 0, 0xC0;",
    "shl.b32 %r5, %n, 8; lop3.b32 %r40, %r5, %t, 3, 0xF8;", "lop3.b32 %r40, %n, 0, 0, 0x0F;",
    "shl.b32 %r5, %n, 8; or.b32 %r40, %r5, %t;", "shl.b32 %r5, %n, 8; xor.b32 %r40, %r5, %t;",
    "shl.b32 %r5, %n, 8; add.s32 %r6, %r5, 48; xor.b32 %r40, %r6, %t; and.b32 %r40, %r40, -8;",
    "prmt.b32 %r40, %n, %r0, 0x5410;", "prmt.b32 %r40, %n, 0, 0x4440;",
    "mov.b64 %d5, {%n, %t}; mov.b64 {%r40, %r5}, %d5;", "not.b32 %r40, %n;", "min.s32 %r40, %n, %t;",
])
def test_integers(code: str) -> None:
    _integers(code)
