"""`ldmatrix`, `stmatrix` and `mma.sync` on symbolic values, against the emulator."""

from __future__ import annotations

import pytest
from warp_kernels import WarpKernel, load_words, store_words


def _regs(first: int, count: int, kind: str = "%r") -> str:
    return "{" + ", ".join(f"{kind}{first + i}" for i in range(count)) + "}"


@pytest.mark.parametrize(("shape", "ab", "a", "b"), [
    ("m16n8k8", "f16", 2, 1), ("m16n8k16", "f16", 4, 2), ("m16n8k8", "bf16", 2, 1), ("m16n8k16", "bf16", 4, 2),
])
def test_products_with_f32_accumulators(shape: str, ab: str, a: int, b: int) -> None:
    code = "\n".join([
        load_words(0, a, "a"), load_words(10, b, "b"), load_words(20, 4, "c", "%f"),
        f"mma.sync.aligned.{shape}.row.col.f32.{ab}.{ab}.f32 {_regs(30, 4, '%f')}, {_regs(0, a)}, {_regs(10, b)}, "
        f"{_regs(20, 4, '%f')};",
        store_words([f"%f{30 + i}" for i in range(4)]),
    ])
    WarpKernel(code, {"a": ab, "b": ab, "c": "f32", "o": "f32"}).agrees(256)


@pytest.mark.parametrize(("shape", "a", "b"), [("m16n8k4", 2, 1), ("m16n8k8", 4, 2)])
def test_products_of_tf32(shape: str, a: int, b: int) -> None:
    """From f16 inputs, which tf32 holds exactly."""
    lines = ["mul.wide.u32 %d0, %t, 2; add.s64 %d1, %a, %d0;"]
    for i in range(a + b):
        lines += [f"ld.global.b16 %h{i}, [%d1+{128 * i}]; cvt.f32.f16 %f{i}, %h{i}; cvt.rna.tf32.f32 %r{i}, %f{i};"]
    code = "\n".join([
        *lines, load_words(20, 4, "c", "%f"),
        f"mma.sync.aligned.{shape}.row.col.f32.tf32.tf32.f32 {_regs(30, 4, '%f')}, {_regs(0, a)}, {_regs(a, b)}, "
        f"{_regs(20, 4, '%f')};",
        store_words([f"%f{30 + i}" for i in range(4)]),
    ])
    WarpKernel(code, {"a": "f16", "c": "f32", "o": "f32"}).agrees(256)


@pytest.mark.parametrize(("shape", "a", "b"), [("m16n8k8", 2, 1), ("m16n8k16", 4, 2)])
def test_products_with_f16_accumulators(shape: str, a: int, b: int) -> None:
    code = "\n".join([
        load_words(0, a, "a"), load_words(10, b, "b"), load_words(20, 2, "c"),
        f"mma.sync.aligned.{shape}.row.col.f16.f16.f16.f16 {_regs(30, 2)}, {_regs(0, a)}, {_regs(10, b)}, "
        f"{_regs(20, 2)};",
        store_words(["%r30", "%r31"]),
    ])
    WarpKernel(code, {"a": "f16", "b": "f16", "c": "f16", "o": "f16"}).agrees(256)


def _fill(dtype_bytes: int = 16) -> str:
    """Thread t copies 16 bytes of buffer a to shared byte 16 t."""
    return ("mul.wide.u32 %d0, %t, 16; add.s64 %d1, %a, %d0; ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d1]; "
            "shl.b32 %r4, %t, 4; add.s32 %r5, %s, %r4; st.shared.v4.b32 [%r5], {%r0, %r1, %r2, %r3}; bar.sync 0;")


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_matrix_loads(count: int, trans: str) -> None:
    code = "\n".join([
        _fill(), "xor.b32 %r6, %t, 5; shl.b32 %r6, %r6, 4; add.s32 %r7, %s, %r6;",
        f"ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {_regs(10, count)}, [%r7];",
        store_words([f"%r{10 + i}" for i in range(count)]),
    ])
    WarpKernel(code, {"a": "f16", "o": "f16"}).agrees(128 * count)


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("trans", ["", ".trans"])
def test_matrix_stores(count: int, trans: str) -> None:
    code = "\n".join([
        load_words(10, count, "a"), "xor.b32 %r6, %t, 5; shl.b32 %r6, %r6, 4; add.s32 %r7, %s, %r6;",
        f"stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r7], {_regs(10, count)};", "bar.sync 0;",
        f"and.b32 %r8, %l, {8 * count - 1}; and.b32 %r9, %t, 32; or.b32 %r8, %r8, %r9; xor.b32 %r8, %r8, 5;",
        "shl.b32 %r8, %r8, 4; add.s32 %r8, %s, %r8;",
        "ld.shared.b32 %r20, [%r8]; ld.shared.b32 %r21, [%r8+12];", store_words(["%r20", "%r21"]),
    ])
    WarpKernel(code, {"a": "f16", "o": "f16"}).agrees(256)


def test_a_product_of_loaded_matrices_with_bf16_rounding_of_the_result() -> None:
    code = "\n".join([
        _fill(), "add.s32 %r7, %s, %r4;",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r7];",
        "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r14, %r15}, [%r7];",
        "mov.f32 %f0, 0f00000000;",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r10, %r11, %r12, %r13}, "
        "{%r14, %r15}, {%f0, %f0, %f0, %f0};",
        "cvt.rn.bf16x2.f32 %r20, %f2, %f1; cvt.rn.bf16x2.f32 %r21, %f4, %f3;", store_words(["%r20", "%r21"]),
    ])
    WarpKernel(code, {"a": "bf16", "o": "bf16"}).agrees(256)


def test_part_of_a_warp_cannot_multiply() -> None:
    code = "\n".join([
        load_words(0, 2, "a"), load_words(10, 1, "a"), "mov.f32 %f0, 0f00000000; mov.f32 %f1, %f0;",
        "setp.lt.u32 %p1, %l, 16; @!%p1 bra DONE;",
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r0, %r1}, {%r10}, "
        "{%f0, %f0, %f0, %f0};",
        "DONE:", store_words(["%f1"]),
    ])
    assert "divergence" in WarpKernel(code, {"a": "f16", "o": "f32"}).hazards()


def test_matrix_rows_must_be_aligned_and_written() -> None:
    base = "shl.b32 %r6, %t, 4; add.s32 %r7, %s, %r6; "
    load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r7+%OFF%];" + store_words(["%r10"])
    fill = _fill()
    assert "misaligned" in WarpKernel(fill + base + load.replace("%OFF%", "8"), {"a": "f16", "o": "f16"}).hazards()
    assert "uninitialised" in WarpKernel(base + load.replace("%OFF%", "0"), {"a": "f16", "o": "f16"}).hazards()
    unordered = fill.replace("bar.sync 0;", "") + base.replace("%t", "%l") + load.replace("%OFF%", "0")
    assert "race" in WarpKernel(unordered, {"a": "f16", "o": "f16"}).hazards()
