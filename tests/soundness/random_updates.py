"""Random kernels in CUDA C++ that add to shared memory atomically, between barriers that are not all there."""

from __future__ import annotations

import random
from typing import Any

N = 4096
LOOPS = ("", "for (int i = 0; i < n; ++i)", "for (int i = t; i < n; i += 64)", "for (int i = 0; i < 3; ++i)",
         "for (int i = t; i < 100; i += 64)", "for (int i = n; i > 0; i -= 2)", "for (int i = t & 3; i < n; ++i)")
CONDITIONS = ("", "", "", "if (t % 3 == 0)", "if (t < 20)", "if (i + t < n)", "if (z[i] < 2000)", "if (x[i] > 0.0f)",
              "if (n > 5)", "if (t == 7)")
CELLS = ("0", "t & 31", "t >> 1", "t >> 2", "(t + i) & 31", "z[i] & 31", "(5 * t) & 31", "z[t] & 7", "t % 24", "n & 15")
FLOATS = ("x[i]", "1.0f", "x[t]", "-x[i]", "sum", "x[i] * x[t]", "__shfl_xor_sync(0xffffffffu, x[t], 3)")
INTEGERS = ("z[i]", "1", "t", "-z[t]", "i", "z[i] * t")


def random_updates(seed: int) -> str:
    """The source of a kernel k(x, z, y, n) of 64 threads that leaves 64 numbers in y."""
    rng = random.Random(seed)
    floating = rng.random() < 0.65
    kind, start = ("float", "x[t]") if floating else ("int", "z[t]")
    barrier = "__syncthreads();"

    def met() -> str:
        return barrier if rng.random() < 0.93 else rng.choice(("", "__syncwarp();"))

    def update() -> str:
        loop, condition = rng.choice(LOOPS), rng.choice(CONDITIONS)
        value = rng.choice(FLOATS if floating else INTEGERS)
        add = f"{condition} atomicAdd(&s[{rng.choice(CELLS)}], {value});"
        if not loop:
            return f"{{ const int i = t; float sum = x[5]; {add} }}"
        unroll = "\n#pragma unroll 1\n" if rng.random() < 0.7 else ""
        steps = [add, "sum += x[i];"] if value == "sum" else [add]
        rng.shuffle(steps)
        if rng.random() < 0.1:
            steps.append("__syncthreads();")
        return f"{{ float sum = x[t]; {unroll} {loop} {{ {' '.join(steps)} }} }}"

    body = [f"if (t < 32) s[t] = {rng.choice(('0', start, '1'))};", met()]
    for _ in range(rng.choice((1, 1, 2))):
        body += [update() for _ in range(rng.choice((1, 1, 2)))]
        body += [met(), f"out += s[{rng.choice(('t & 31', '(t + 3) & 31', '0', 'n & 7', 't / 2'))}];", met()]
    return (f'extern "C" __global__ void k(const float* x, const int* z, {kind}* y, int n) {{ '
            f"const int t = threadIdx.x; __shared__ {kind} s[32]; {kind} out = 0; {' '.join(body)} y[t] = out; }}")


def manifest(source: str) -> dict[str, Any]:
    """Its launch."""
    return {
        "kernel": "k", "sizes": {"n": [1, 5, 70]},
        "params": [
            {"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": [str(N)]},
            {"name": "z", "kind": "ptr_in", "dtype": "i32", "shape": [str(N)], "range": ["0", str(N)]},
            {"name": "y", "kind": "ptr_out", "dtype": "f32" if "float* y" in source else "i32", "shape": ["64"]},
            {"name": "n", "kind": "scalar", "dtype": "i32"},
        ],
        "preconditions": ["n >= 1", "n <= 2048"], "grid": ["1", "1", "1"], "block": [64, 1, 1], "dynamic_shared": "0",
    }
