"""Hand-written kernels of one or more warps on inputs of given types, with their manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trace_runs import Comparison, Symbolic, compare, symbolic

COUNT = 2048


class WarpKernel:
    """A kernel `k` of `threads` threads: %t is tid.x, %l the lane, pointers %<buffer>; `buffers` maps names to dtypes,
    those that start with `o` are written. Every buffer has `COUNT` elements."""

    def __init__(self, code: str, buffers: Mapping[str, str], threads: int = 64, n: tuple[int, ...] = (5,)) -> None:
        self.code, self.buffers, self.threads, self.n = code, dict(buffers), threads, n
        self.stores = COUNT

    def ptx(self) -> str:
        formal = "".join(f".param .u64 p{name}, " for name in self.buffers)
        loads = "\n".join(
            f".reg .b64 %{name}; ld.param.u64 %{name}, [p{name}]; cvta.to.global.u64 %{name}, %{name};"
            for name in self.buffers
        )
        return f"""
.version 8.6
.target sm_100
.address_size 64
.visible .entry k({formal}.param .u32 pn)
{{
.reg .pred %p<12>; .reg .b16 %h<40>; .reg .b32 %r<60>; .reg .b32 %t; .reg .b32 %l; .reg .b32 %n; .reg .b32 %s;
.reg .b64 %d<40>; .reg .f32 %f<60>;
.shared .align 16 .b8 smem[8192];
{loads}
ld.param.u32 %n, [pn]; mov.u32 %t, %tid.x; and.b32 %l, %t, 31; mov.u32 %s, smem;
{self.code}
ret;
}}
"""

    def manifest(self) -> dict[str, Any]:
        params = [
            {"name": name, "kind": "ptr_out" if name.startswith("o") else "ptr_in", "dtype": dtype,
             "shape": [str(self.stores if name.startswith("o") else COUNT)], **({"range": ["0", "100"]} if dtype[0] in "iu" and name[0] != "o" else {})}
            for name, dtype in self.buffers.items()
        ]
        return {
            "kernel": "k", "sizes": {"n": list(self.n)}, "params": [*params, {"name": "n", "kind": "scalar", "dtype": "i32"}],
            "preconditions": ["n >= 0", "n <= 64"], "grid": ["1", "1", "1"], "block": [self.threads, 1, 1],
            "dynamic_shared": "0",
        }

    def run(self) -> Symbolic:
        return symbolic(self.ptx(), self.manifest())

    def agrees(self, stores: int, shape: int | None = None) -> Symbolic:
        """Run it symbolically and compare with the emulator; it stores `stores` elements of outputs with `shape`, by
        default just these."""
        self.stores = shape or stores
        run = self.run()
        for n in self.n:
            found: Comparison = compare(run, {"n": n})
            assert not found.violated
            assert not found.wrong
            assert not found.unflagged
            assert not found.undefined
            assert found.stores == stores
        return run

    def hazards(self) -> set[str]:
        """The kinds of hazards of the symbolic run."""
        return {h.kind for h in self.run().trace.hazards}


def load_words(first: int, count: int, buffer: str, register: str = "%r") -> str:
    """Registers first, … receive the b32 words t, t + threads, … of a buffer."""
    lines = [f"mul.wide.u32 %d0, %t, 4; add.s64 %d1, %{buffer}, %d0;"]
    lines += [f"ld.global.b32 {register}{first + i}, [%d1+{256 * i}];" for i in range(count)]
    return "\n".join(lines)


def store_words(registers: list[str], buffer: str = "o") -> str:
    """Each register is stored as b32 word t + 64 i."""
    lines = [f"mul.wide.u32 %d2, %t, 4; add.s64 %d3, %{buffer}, %d2;"]
    lines += [f"st.global.b32 [%d3+{256 * i}], {r};" for i, r in enumerate(registers)]
    return "\n".join(lines)
