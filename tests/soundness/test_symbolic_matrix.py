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


_ORDERS = ("row", "col")


def _wmma(shape: str, ab: str, ra: int, rb: int, orders: tuple[str, str, str, str], kinds: tuple[str, str]) -> str:
    """Both warps load A, B and C from their part of the buffers, multiply, and store D with a stride of 32."""
    ct, dt = kinds
    count = {"f32": 8, "f16": 4}
    kind = {"f32": "%f", "f16": "%r"}
    typed = f".{ab}.{ab}" if ab != "f16" else ""
    size = {"f32": 4, "f16": 2}
    a, b, c, d = orders
    return "\n".join([
        "shr.u32 %r58, %t, 5; mov.b32 %r59, 32;",
        "mul.wide.u32 %d0, %r58, 64; add.s64 %d1, %a, %d0; add.s64 %d2, %b, %d0;",
        f"mul.wide.u32 %d3, %r58, {1024 * size[dt]}; add.s64 %d4, %c, %d0; add.s64 %d5, %o, %d3;",
        f"wmma.load.a.sync.aligned.{a}.{shape}.global.{ab} {_regs(0, ra)}, [%d1], %r59;",
        f"wmma.load.b.sync.aligned.{b}.{shape}.global.{ab} {_regs(10, rb)}, [%d2], %r59;",
        f"wmma.load.c.sync.aligned.{c}.{shape}.global.{ct} {_regs(20, count[ct], kind[ct])}, [%d4], %r59;",
        f"wmma.mma.sync.aligned.{a}.{b}.{shape}.{dt}{typed}.{ct} {_regs(30, count[dt], kind[dt])}, {_regs(0, ra)}, "
        f"{_regs(10, rb)}, {_regs(20, count[ct], kind[ct])};",
        f"wmma.store.d.sync.aligned.{d}.{shape}.global.{dt} [%d5], {_regs(30, count[dt], kind[dt])}, %r59;",
    ])


@pytest.mark.parametrize(("shape", "ab", "ra", "rb", "orders", "kinds"), [
    ("m16n16k16", "bf16", 4, 4, ("row", "row", "row", "row"), ("f32", "f32")),
    ("m8n32k16", "bf16", 2, 8, ("row", "col", "col", "row"), ("f32", "f32")),
    ("m32n8k16", "bf16", 8, 2, ("col", "row", "row", "col"), ("f32", "f32")),
    ("m16n16k16", "f16", 8, 8, ("col", "col", "row", "col"), ("f32", "f32")),
    ("m8n32k16", "f16", 8, 8, ("row", "row", "col", "row"), ("f16", "f16")),
    ("m32n8k16", "f16", 8, 8, ("row", "col", "row", "row"), ("f16", "f32")),
])
def test_wmma_products(shape: str, ab: str, ra: int, rb: int, orders: tuple[str, str, str, str],
                       kinds: tuple[str, str]) -> None:
    rows, columns, _ = (int(n) for n in shape.replace("n", " ").replace("k", " ").removeprefix("m").split())
    kernel = WarpKernel(_wmma(shape, ab, ra, rb, orders, kinds), {"a": ab, "b": ab, "c": kinds[0], "o": kinds[1]})
    run = kernel.agrees(2 * rows * columns, shape=2048)
    assert any(a.name == "wmma-layout" for a, _ in run.machine.ledger.items())


def test_wmma_agrees_with_a_product_of_arrays() -> None:
    """The emulator's fragments are our own choice of layout: the product must still be the product."""
    import numpy as np

    from warpproof.counterexample.concrete import as_numbers, concrete_launch, sample_call
    from warpproof.machine import emulate

    kernel = WarpKernel(_wmma("m8n32k16", "bf16", 2, 8, ("row", "col", "row", "col"), ("f32", "f32")),
                        {"a": "bf16", "b": "bf16", "c": "f32", "o": "f32"})
    kernel.stores = 2048
    run = kernel.run()
    call = sample_call(run.launch, {"n": 5}, 0)
    outcome = emulate(run.kernel, concrete_launch(call))
    a, b, c = (as_numbers(call.values[name], dtype) for name, dtype in (("a", "bf16"), ("b", "bf16"), ("c", "f32")))
    k = np.arange(16)
    for warp in range(2):
        left = np.stack([a[32 * warp + 32 * i + k] for i in range(8)])
        right = np.stack([b[32 * warp + 32 * j + k] for j in range(32)], axis=1)
        start = np.stack([c[16 * warp + 32 * i + np.arange(32)] for i in range(8)])
        got = outcome.buffers["o"].array(np.float32)[1024 * warp:][:1024].reshape(32, 32)[:, :8].T
        np.testing.assert_allclose(got, left @ right + start, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("load", "kind"), [
    ("add.s64 %d1, %a, 16; wmma.load.b.sync.aligned.row.m8n32k16.global.bf16 {REGS}, [%d1];", "alignment"),
    ("wmma.load.b.sync.aligned.row.m8n32k16.global.bf16 {REGS}, [%a], %n;", "alignment"),
    ("mul.wide.u32 %d0, %t, 64; add.s64 %d1, %a, %d0; wmma.load.b.sync.aligned.row.m8n32k16.global.bf16 {REGS}, [%d1];",
     "divergence"),
    ("setp.lt.u32 %p1, %l, 8; @!%p1 bra SKIP; wmma.load.b.sync.aligned.row.m8n32k16.global.bf16 {REGS}, [%a]; SKIP:",
     "divergence"),
])
def test_wmma_needs_aligned_rows_and_one_address_in_a_warp(load: str, kind: str) -> None:
    code = "mov.b32 %r0, 0;" + load.replace("{REGS}", _regs(0, 8)) + store_words(["%r0"])
    trace = WarpKernel(code, {"a": "bf16", "o": "bf16"}).run().trace
    assert kind in {h.kind for h in trace.hazards} | {o.kind for o in trace.obligations}
