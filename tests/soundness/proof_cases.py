"""The verdict of the symbolic proof alone, without sample runs, on kernels written in a few lines of PTX."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from warpproof.core import Claim, Unsupported, worst
from warpproof.equivalence import Proof
from warpproof.judge import judge
from warpproof.ptx import load, resolve
from warpproof.reference import load_launch, trace

Reference = Callable[..., Any]
Param = tuple[str, str, str, Sequence[str]]
_HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"


def vector(name: str, kind: str = "ptr_in", size: str = "n", dtype: str = "f32") -> Param:
    """A one-dimensional buffer."""
    return name, kind, dtype, [size]


@dataclass(frozen=True)
class Small:
    """A kernel and its launch. Pointers are in %a_name, integer scalars in %i_name; %t, %c, %g as usual."""

    body: str
    params: tuple[Param, ...]
    sizes: tuple[str, ...] = ("n",)
    preconditions: tuple[str, ...] = ("n >= 1", "n <= 1000000")
    grid: tuple[str, ...] = ("(n + 63) // 64",)
    block: int = 64
    extra: dict[str, Any] = field(default_factory=dict)

    def ptx(self) -> str:
        scalars = list(self.sizes)
        formal = [f".param .u64 p_{p[0]}" for p in self.params] + [f".param .u32 p_{n}" for n in scalars]
        loads = [f"ld.param.u64 %a_{p[0]}, [p_{p[0]}]; cvta.to.global.u64 %a_{p[0]}, %a_{p[0]};" for p in self.params]
        loads += [f"ld.param.u32 %i_{n}, [p_{n}];" for n in scalars]
        declared = [f".reg .b64 %a_{p[0]};" for p in self.params] + [f".reg .b32 %i_{n};" for n in scalars]
        shift = self.block.bit_length() - 1
        return "\n".join([
            _HEAD, f".visible .entry k({', '.join(formal)})", "{",
            ".reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<60>; .reg .b32 %t; .reg .b32 %c; .reg .b32 %g;",
            ".reg .b64 %d<60>; .reg .f32 %f<60>; .shared .align 16 .b8 smem[4096];", *declared, *loads,
            f"mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; shl.b32 %g, %c, {shift}; add.s32 %g, %g, %t;", self.body,
            "DONE:", "ret;", "}",
        ])

    def manifest(self) -> dict[str, Any]:
        params: list[dict[str, Any]] = [
            {"name": n, "kind": k, "dtype": d, "shape": list(s)} for n, k, d, s in self.params
        ]
        for p in params:
            p.update(self.extra.get(p["name"], {}))
        params += [{"name": n, "kind": "scalar", "dtype": "i32"} for n in self.sizes]
        return {"kernel": "k", "params": params, "sizes": {n: [100] for n in self.sizes},
                "preconditions": list(self.preconditions), "grid": list((*self.grid, "1", "1")[:3]),
                "block": [self.block, 1, 1], "dynamic_shared": "0", "launch": self.extra.get("launch", {})}


def element(into: str, pointer: str, index: str, op: str = "ld.global.f32", scratch: int = 50) -> str:
    """Load (or, with a store, write) element `index` of a buffer of 4-byte elements."""
    at = f"mul.wide.s32 %d{scratch}, {index}, 4; add.s64 %d{scratch + 1}, %a_{pointer}, %d{scratch};"
    if op.startswith("st"):
        return f"{at} {op} [%d{scratch + 1}], {into};"
    return f"{at} {op} {into}, [%d{scratch + 1}];"


def put(value: str, pointer: str, index: str) -> str:
    """Store a float."""
    return element(value, pointer, index, "st.global.f32", 52)


def word(register: str, lane: str) -> str:
    """The address of a word of shared memory."""
    return f"mov.u32 %r58, smem; shl.b32 %r59, {lane}, 2; add.s32 {register}, %r58, %r59;"


INSIDE = "setp.ge.s32 %p19, %g, %i_n; @%p19 bra DONE;"


def claims_of(kernel: Small, reference: Reference) -> list[Claim]:
    """The claims of one proof attempt; Unsupported for what cannot be attempted."""
    launch = load_launch(kernel.manifest())
    proof = Proof(resolve(load(kernel.ptx()), "k"), launch, time.monotonic() + 60.0)
    return proof.attempt(trace(reference, proof.symbolic, proof.arena)).claims


def verdicts(kernel: Small, reference: Reference) -> dict[str, str]:
    """The verdict on each property."""
    try:
        found = judge(claims_of(kernel, reference), "")
    except Unsupported as stuck:
        return {"overall": f"UNSUPPORTED {stuck}"}
    out = {name: p.verdict.value for name, p in found.items() if p is not None}
    out["overall"] = worst(p.verdict for p in found.values() if p is not None).value
    return out


def proved(kernel: Small, reference: Reference) -> bool:
    """True when everything is PROVED."""
    return verdicts(kernel, reference)["overall"] == "PROVED"
