"""Random kernels that store ones: index maps built from arithmetic, bit operations and choices, under various guards.

Right means that for every admitted size each element is stored, by one thread, and nothing else is; sizes go up to 130
only, so that running all of them decides it.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
from attempt import HEAD, REGISTERS, buffer, function, scalar, verdict

from warpproof.machine import Buffer, ConcreteLaunch, Pointer, emulate
from warpproof.ptx import parse, resolve

LOWEST, HIGHEST, THREADS = 1, 130, 32
_GRIDS = (*["(n + 31) // 32"] * 4, "n // 32 + 1", "(n + 63) // 64", "1", "n")


class Writer:
    """Writes integer code; %r1 is n, %r126 is n − 1, %r4 the number of the thread in the grid."""

    def __init__(self, rng: random.Random, first: int) -> None:
        self.rng, self.lines, self.count = rng, [], first

    def index(self, depth: int) -> str:
        """The register that holds a random index."""
        rng = self.rng
        if depth == 0 or rng.random() < 0.15:
            return "%r4"
        a, c = self.index(depth - 1), rng.choice((1, 2, 3, 4, 7, 8, 16, 31, 32))
        self.count += 1
        d = f"%r{self.count}"
        match rng.randrange(10):
            case 0:
                self.lines.append(f"sub.s32 {d}, %r126, {a};")
            case 1:
                self.lines.append(f"xor.b32 {d}, {a}, {rng.choice((1, 2, 3, 31, 16))};")
            case 2:
                self.lines.append(f"and.b32 {d}, {a}, {rng.choice((31, 63, 127, 255))};")
            case 3:
                self.lines.append(f"add.s32 {d}, {a}, {rng.choice((0, 1, -1, c))};")
            case 4:
                self.lines.append(f"rem.s32 {d}, {a}, {rng.choice(('%r1', c))};")
            case 5:
                self.lines.append(f"div.s32 {d}, {a}, {c};")
            case 6:
                self.lines.append(f"mul.lo.s32 {d}, {a}, {rng.choice((1, 2, 3, -1))};")
            case 7:
                op, bound = rng.choice((("min", "%r126"), ("max", "0"), ("max", "1")))
                self.lines.append(f"{op}.s32 {d}, {a}, {bound};")
            case 8:  # the order within groups of c reversed
                self.lines.append(f"div.s32 {d}, {a}, {c}; mul.lo.s32 {d}, {d}, {c}; sub.s32 %r127, {a}, {d}; "
                                  f"add.s32 {d}, {d}, {c - 1}; sub.s32 {d}, {d}, %r127;")
            case _:
                p, bound = f"%p{self.count % 28 + 2}", rng.choice(("0", "1", "5", "31", "%r1", "%r126"))
                self.lines.append(f"setp.{rng.choice(('lt', 'ge', 'eq'))}.s32 {p}, {a}, {bound}; "
                                  f"selp.b32 {d}, {self.index(depth - 1)}, {a}, {p};")
        return d


@dataclass(frozen=True)
class Sample:
    """A kernel, its launch, and the grid and divisor of n in it."""

    text: str
    manifest: dict[str, Any]
    grid: str
    divisor: int

    def verdict(self) -> str:
        """What the proof says."""
        return verdict(self.text, self.manifest, function("n", "y=np.ones(n)"))

    def fault(self) -> str:
        """What is wrong at the first size where something is; empty when nothing is."""
        kernel = resolve(parse(self.text, "random.ptx"), "k")
        for n in range(LOWEST, HIGHEST + 1):
            if n % self.divisor:
                continue
            blocks = eval(self.grid, {"n": n})
            if blocks < 1:
                return f"n={n}: an empty grid"
            arguments = (Pointer("y"), np.array(n, np.int32).tobytes())
            launch = ConcreteLaunch((blocks, 1, 1), (THREADS, 1, 1), 0, arguments, {"y": Buffer("y", 4 * n)})
            outcome = emulate(kernel, launch)
            stored = np.frombuffer(outcome.buffers["y"].content().tobytes(), np.float32)
            if outcome.findings or (stored != 1).any():
                return f"n={n}: {sorted(outcome.kinds())}, {int((stored != 1).sum())} elements not stored"
        return ""


def sample(seed: int) -> Sample:
    """The kernel of a seed."""
    rng = random.Random(seed)
    writer = Writer(rng, 20)
    r = writer.index(rng.choice((1, 2, 3)))
    guarded = rng.choice(("%r4", "%r4", "%r4", r))
    guard = f"setp.ge.{rng.choice(('s32', 's32', 'u32'))} %p1, {guarded}, %r1; @%p1 bra DONE;"
    lines = [guard, *writer.lines] if guarded == "%r4" else [*writer.lines, guard]
    lines.append(_store(r))
    if rng.random() < 0.3:
        second = Writer(rng, 70)
        again = second.index(rng.choice((1, 2)))
        lines += [*second.lines, _store(again)]
    text = (f"{HEAD}.visible .entry k(.param .u64 py, .param .u32 pn) {{ {REGISTERS}\nld.param.u64 %rd2, [py]; "
            "ld.param.u32 %r1, [pn]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r2, 32, %r3; "
            "add.s32 %r126, %r1, -1;\n" + "\n".join(lines) + "\nDONE: ret; }")
    grid, divisor = rng.choice(_GRIDS), rng.choice((1, 1, 1, 1, 2, 4, 8, 32))
    return Sample(text, {
        "kernel": "k", "sizes": {"n": [32]}, "grid": [grid],
        "params": [buffer("y", "ptr_out", "f32", "n"), scalar("n")],
        "preconditions": [f"n >= {LOWEST}", f"n <= {HIGHEST}", f"n % {divisor} == 0"], "block": [THREADS],
        "dynamic_shared": "0"}, grid, divisor)


def _store(register: str) -> str:
    return f"mul.wide.s32 %rd3, {register}, 4; add.s64 %rd5, %rd2, %rd3; st.global.f32 [%rd5], 0f3F800000;"
