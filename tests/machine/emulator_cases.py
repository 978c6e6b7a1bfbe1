"""Kernels and launches for the emulator's tests: compiled ones with a NumPy reference, and hand-written PTX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from warpproof.machine import Buffer, ConcreteLaunch, Outcome, Pointer, emulate
from warpproof.ptx import Kernel, load, resolve

KERNELS = Path(__file__).parent / "kernels"
Arrays = dict[str, np.ndarray]


def i32(value: int) -> bytes:
    return int(value).to_bytes(4, "little", signed=True)


def f32(value: float) -> bytes:
    return np.float32(value).tobytes()


def compiled(file: str) -> Kernel:
    return resolve(load(KERNELS / f"{file}.ptx"))


def given(name: str, data: np.ndarray) -> Buffer:
    return Buffer(name, data.nbytes, False, data)


def updated(name: str, data: np.ndarray) -> Buffer:
    return Buffer(name, data.nbytes, True, data)


def output(name: str, elements: int, width: int = 4) -> Buffer:
    return Buffer(name, elements * width, True)


def launch(grid: tuple[int, ...], block: tuple[int, ...], args: list[Any], *buffers: Buffer, shared: int = 0,
           **more: Any) -> ConcreteLaunch:
    """A launch; a string argument points to the buffer of that name."""
    raw = tuple(Pointer(a) if isinstance(a, str) else a for a in args)
    shape = (*grid, 1, 1)[:3], (*block, 1, 1)[:3]
    named = {b.name: b for b in buffers}
    return ConcreteLaunch(shape[0], shape[1], shared, raw, named, **more)  # type: ignore[arg-type]


def written(*lines: str, params: int = 1, declared: str = "", before: str = "", target: str = "sm_80") -> Kernel:
    """A kernel `k` with pointer parameters p0, p1, …, loaded into %a0, %a1, …; %t is tid.x; %r<40> and so on."""
    formal = ", ".join(f".param .u64 p{i}" for i in range(params))
    loads = "\n".join(f"ld.param.u64 %a{i}, [p{i}];" for i in range(params))
    body = "\n".join(lines)
    return resolve(load(f"""
.version 8.7
.target {target}
.address_size 64
{before}
.visible .entry k({formal})
{{
.reg .pred %p<10>; .reg .b16 %h<10>; .reg .b32 %r<40>; .reg .b32 %t; .reg .b64 %a<10>; .reg .b64 %d<40>;
.reg .f32 %f<10>; .reg .f64 %g<10>;
{declared}
{loads}
mov.u32 %t, %tid.x;
{body}
}}
"""), "k")


def store_at_thread(value: str, pointer: str = "%a0") -> str:
    """Store a 32-bit register at element tid.x."""
    return f"mul.wide.u32 %d39, %t, 4; add.s64 %d39, {pointer}, %d39; st.global.u32 [%d39], {value}; "


def run(kernel: Kernel, threads: int, *buffers: Buffer, ctas: int = 1, **options: Any) -> Outcome:
    """A launch of `ctas` CTAs of `threads` threads with the buffers as arguments in order."""
    names: list[Any] = [b.name for b in buffers]
    return emulate(kernel, launch((ctas,), (threads,), names, *buffers), **options)


@dataclass(frozen=True)
class Case:
    """A compiled kernel with a launch and what its outputs should be."""

    file: str
    launch: ConcreteLaunch
    expected: Arrays
    dtypes: dict[str, type] = field(default_factory=dict)
    tolerance: float = 1e-5

    def check(self, outcome: Outcome) -> None:
        """The run ended, found nothing, and computed the reference."""
        assert outcome.findings == ()
        assert outcome.completed
        for name, value in self.expected.items():
            got = outcome.buffers[name].array(self.dtypes.get(name, np.float32)).reshape(value.shape)
            np.testing.assert_allclose(got, value, rtol=self.tolerance, atol=self.tolerance)


def _normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def vadd(file: str = "vadd", n: int = 700) -> Case:
    a, b = _normal(n), _normal(n, 1).ravel()
    grid = (-(-n // 256),)
    return Case(file, launch(grid, (256,), ["a", "b", "c", i32(n)], given("a", a), given("b", b), output("c", n)),
                {"c": a.astype(np.float64) + b})


def saxpy(file: str = "saxpy", n: int = 1500) -> Case:
    x, y = _normal(n), _normal(n, 1).ravel()
    grid = (min(3, -(-n // 128)),)
    return Case(file, launch(grid, (128,), [f32(1.25), "x", "y", i32(n)], given("x", x), updated("y", y)),
                {"y": 1.25 * x.astype(np.float64) + y})


def transpose(file: str = "transpose-pad", height: int = 20, width: int = 37) -> Case:
    src = _normal(height, width)
    grid = (-(-width // 16), -(-height // 16))
    return Case(file, launch(grid, (16, 16), ["src", "dst", i32(height), i32(width)], given("src", src),
                             output("dst", src.size)), {"dst": src.T})


def matmul_tiled(file: str = "matmul-tiled", m: int = 18, n: int = 21, k: int = 37) -> Case:
    a, b, bias = _normal(m, k), _normal(k, n), _normal(n)
    grid = (-(-n // 16), -(-m // 16))
    args = ["A", "B", "bias", "C", i32(m), i32(n), i32(k)]
    buffers = given("A", a), given("B", b), given("bias", bias), output("C", m * n)
    return Case(file, launch(grid, (16, 16), args, *buffers),
                {"C": a.astype(np.float64) @ b + bias})


def matmul_naive(file: str = "matmul-naive", m: int = 7, n: int = 45, k: int = 13) -> Case:
    a, b = _normal(m, k), _normal(n, k)
    grid = (-(-n // 32), -(-m // 4))
    return Case(file, launch(grid, (32, 4), ["A", "B", "C", i32(m), i32(n), i32(k)], given("A", a), given("B", b),
                             output("C", m * n)), {"C": a.astype(np.float64) @ b.T})


def center(file: str = "center-tree", rows: int = 2, n: int = 300) -> Case:
    x = _normal(rows, n)
    return Case(file, launch((rows,), (256,), ["x", "y", i32(n)], given("x", x), output("y", x.size)),
                {"y": x - x.astype(np.float64).mean(axis=1, keepdims=True)})


def row_sum(file: str = "rowsum-shfl", rows: int = 3, n: int = 150, pitch: int = 160) -> Case:
    x = _normal(rows, pitch)
    return Case(file, launch((rows,), (64,), ["x", "out", i32(n), i32(pitch)], given("x", x), output("out", rows)),
                {"out": x[:, :n].astype(np.float64).sum(axis=1)})


def named(file: str = "named-barriers", rows: int = 2, tiles: int = 5) -> Case:
    x = _normal(rows, tiles, 32)
    return Case(file, launch((rows,), (64,), ["x", "y", i32(tiles)], given("x", x), output("y", x.size)),
                {"y": x.astype(np.float64) + x[:, :, ::-1]})


def dot(file: str = "dot-lastblock", n: int = 900, blocks: int = 4) -> Case:
    x, y = _normal(n), _normal(n, 1).ravel()
    counter = np.zeros(1, np.uint32)
    args = ["x", "y", "partial", "arrived", "out", i32(n)]
    return Case(file, launch((blocks,), (64,), args, given("x", x), given("y", y), output("partial", blocks),
                             updated("arrived", counter), output("out", 1)),
                {"out": np.array([x.astype(np.float64) @ y]), "arrived": counter}, {"arrived": np.uint32})


def handoff(file: str = "flag-handoff", pairs: int = 2) -> Case:
    x = _normal(pairs, 64)
    zeros = np.zeros(pairs, np.uint32)
    args = ["x", "buf", "ready", "ticket", "y"]
    return Case(file, launch((2 * pairs,), (64,), args, given("x", x), output("buf", x.size), updated("ready", zeros),
                             updated("ticket", zeros[:1]), output("y", x.size)),
                {"y": (x.astype(np.float64) ** 2)[:, ::-1]})


def spinlock(file: str = "spinlock", n: int = 120, blocks: int = 3) -> Case:
    x = _normal(n)
    lock, moments = np.zeros(1, np.uint32), np.zeros(2, np.float32)
    args = ["x", "moments", "lock", i32(n)]
    return Case(file, launch((blocks,), (32,), args, given("x", x), updated("moments", moments), updated("lock", lock)),
                {"moments": np.array([x.sum(dtype=np.float64), (x.astype(np.float64) ** 2).sum()]), "lock": lock},
                {"lock": np.uint32})


def mirror(file: str = "warp-mirror", groups: int = 9) -> Case:
    x = _normal(groups, 32)
    return Case(file, launch((min(2, (groups + 1) // 2),), (32, 2), ["x", "y", i32(groups)], given("x", x),
                             output("y", x.size)), {"y": x[:, ::-1]})


def split_k(file: str = "splitk-atomic", m: int = 11, n: int = 20, k: int = 50, splits: int = 4) -> Case:
    a, b, c = _normal(m, k), _normal(k, n), _normal(m, n)
    grid = (-(-n // 16), -(-m // 8), splits)
    return Case(file, launch(grid, (16, 8), ["A", "B", "C", i32(m), i32(n), i32(k)], given("A", a), given("B", b),
                             updated("C", c)), {"C": c + a.astype(np.float64) @ b})


def softmax(file: str = "softmax-online", rows: int = 4, n: int = 101) -> Case:
    x = _normal(rows, n)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return Case(file, launch((rows,), (32,), ["x", "y", i32(n)], given("x", x), output("y", x.size)),
                {"y": e / e.sum(axis=1, keepdims=True)})


def prefetch(file: str = "sgemm-prefetch", m: int = 32, n: int = 32, k: int = 24) -> Case:
    a, b = _normal(m, k), _normal(k, n)
    return Case(file, launch((n // 32, m // 32), (256,), ["A", "B", "C", i32(m), i32(n), i32(k)], given("A", a),
                             given("B", b), output("C", m * n)), {"C": a.astype(np.float64) @ b})


def tensor(file: str = "mma-ldmatrix", m: int = 32, n: int = 32, k: int = 32) -> Case:
    a, b = _normal(m, k, dtype=np.float16), _normal(k, n, dtype=np.float16)
    return Case(file, launch((n // 32, m // 32), (128,), ["A", "B", "C", i32(m), i32(n), i32(k)], given("A", a),
                             given("B", b), output("C", m * n)), {"C": a.astype(np.float64) @ b})


def pipelined(file: str = "triton-matmul-sm80", m: int = 48, n: int = 32, k: int = 80) -> Case:
    a, b = _normal(m, k, dtype=np.float16), _normal(k, n, dtype=np.float16)
    args = ["a", "b", "c", i32(m), i32(n), i32(k), bytes(8), bytes(8)]
    return Case(file, launch((-(-n // 32), -(-m // 32)), (64,), args, given("a", a), given("b", b), output("c", m * n),
                             shared=4096), {"c": a.astype(np.float64) @ b}, tolerance=1e-4)


GOOD: dict[str, Callable[[], Case]] = {
    "vadd": vadd, "saxpy": saxpy, "transpose-pad": transpose, "matmul-tiled": matmul_tiled,
    "matmul-naive": matmul_naive,
    "center-tree": center, "rowsum-shfl": row_sum, "named-barriers": named, "dot-lastblock": dot,
    "flag-handoff": handoff, "spinlock": spinlock, "warp-mirror": mirror, "splitk-atomic": split_k,
    "softmax-online": softmax, "sgemm-prefetch": prefetch, "mma-ldmatrix": tensor, "triton-matmul-sm80": pipelined,
}
