"""Random use of shared memory by one block: stores, loads, barriers, predicates, branches and a loop.

Where the proof finds neither races nor barrier faults nor bad accesses, the emulator must find none at any size, on any
schedule.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from attempt import HEAD, REGISTERS, SECONDS, buffer, function, scalar

from warpproof.core import Status, Unsupported
from warpproof.equivalence import Proof
from warpproof.machine import SCHEDULES, Buffer, ConcreteLaunch, Pointer, emulate
from warpproof.ptx import parse, resolve
from warpproof.reference import load_launch, trace

THREADS = 64
SIZES = (1, 2, 3, 4, 5, 201)
_MANIFEST = {
    "kernel": "k", "params": [buffer("x", "ptr_in", "f32", "64"), buffer("y", "ptr_out", "f32", "64"), scalar("n")],
    "sizes": {"n": [3]}, "preconditions": ["n >= 1", "n <= 1000"], "grid": ["1"], "block": [THREADS],
    "dynamic_shared": "0"}
_PROLOGUE = """
    ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py]; ld.param.u32 %r1, [pn]; mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; ld.global.f32 %f1, [%rd4];
    mov.u32 %r6, s; shl.b32 %r7, %r3, 2; add.s32 %r5, %r7, %r6; mov.u32 %r9, 0;
    st.shared.f32 [%r5], %f1; st.shared.f32 [%r5+256], %f1;
"""


class Writer:
    """Writes one kernel; %r9 counts the loop."""

    def __init__(self, seed: int) -> None:
        self.rng, self.lines, self.labels, self.loops = random.Random(seed), [_PROLOGUE], 0, 0
        if self.rng.random() < 0.8:
            self.lines.append("bar.sync 0;")
        self.block(self.rng.randint(2, 6), 2)
        self.lines.append("st.global.f32 [%rd5], %f1;")

    def condition(self) -> str:
        """A fresh predicate: on the size, the iteration, the thread, or a value that all threads read."""
        rng = self.rng
        self.labels += 1
        p = f"%p{self.labels % 28 + 2}"
        self.lines.append(rng.choice((
            f"setp.{rng.choice(('lt', 'ge', 'eq'))}.s32 {p}, %r1, {rng.choice((1, 2, 3, 5, 200))};",
            f"and.b32 %r11, %r9, {rng.choice((1, 3))}; setp.{rng.choice(('eq', 'ne'))}.s32 {p}, %r11, 1;",
            f"setp.{rng.choice(('lt', 'eq'))}.s32 {p}, %r9, {rng.choice((1, 2, 3))};",
            f"setp.{rng.choice(('lt', 'ge'))}.u32 {p}, %r3, {rng.choice((16, 32, 33, 1, 64))};",
            f"ld.global.f32 %f9, [%rd1]; setp.gt.f32 {p}, %f9, 0f00000000;",
        )))
        return p

    def guard(self, chance: float) -> str:
        """A guard, sometimes."""
        return f"@{self.rng.choice(('', '!'))}{self.condition()} " if self.rng.random() < chance else ""

    def address(self) -> str:
        """A place in the shared array: the thread's own, another thread's, or one for all."""
        rng, offset = self.rng, self.rng.choice((0, 0, 0, 256))
        match rng.randrange(6):
            case 0:
                made = f"xor.b32 %r10, %r3, {rng.choice((1, 16, 32))};"
            case 1:
                made = "add.s32 %r10, %r3, 1; and.b32 %r10, %r10, 63;"
            case 2:
                made = "and.b32 %r10, %r3, 32;"
            case 3:
                return f"[s+{offset}]"
            case _:
                return f"[%r5+{offset}]"
        self.lines.append(f"{made} shl.b32 %r10, %r10, 2; add.s32 %r10, %r10, %r6;")
        return f"[%r10+{offset}]"

    def block(self, size: int, depth: int) -> None:
        """Some statements."""
        for _ in range(size):
            kind = self.rng.random()
            if kind < 0.36:
                barrier = "bar.sync 0;" if kind < 0.3 else "bar.warp.sync -1;"
                self.lines.append(self.guard(0.4) + barrier)
            elif kind < 0.46 and depth:
                self.branch(depth)
            elif kind < 0.56 and depth and not self.loops:
                self.loop(depth)
            else:
                self.access()

    def access(self) -> None:
        """A store or a load of shared memory."""
        guard, place = self.guard(0.25), self.address()
        if self.rng.random() < 0.5:
            self.lines.append(f"{guard}st.shared.f32 {place}, %f1;")
        else:
            self.lines.append(f"mov.f32 %f2, 0f00000000; {guard}ld.shared.f32 %f2, {place}; add.f32 %f1, %f1, %f2;")

    def branch(self, depth: int) -> None:
        """A branch with one or two sides."""
        guard, k = self.guard(1.0), self.labels
        self.lines.append(f"{guard}bra X{k};")
        self.block(self.rng.randint(1, 3), depth - 1)
        if self.rng.random() < 0.4:
            self.lines.append(f"bra Y{k};\nX{k}:")
            self.block(self.rng.randint(1, 2), depth - 1)
            self.lines.append(f"Y{k}:")
        else:
            self.lines.append(f"X{k}:")

    def loop(self, depth: int) -> None:
        """The loop."""
        self.loops = 1
        self.lines.append("mov.u32 %r9, 0;\nL:")
        self.block(self.rng.randint(2, 5), depth - 1)
        trips = self.rng.choice(("%r1", "%r1", "3"))
        self.lines.append(f"add.s32 %r9, %r9, 1; setp.lt.s32 %p1, %r9, {trips}; @%p1 bra L;")


@dataclass(frozen=True)
class Sample:
    """A kernel's text."""

    text: str

    def safe(self) -> bool:
        """The proof shows every claim but those about values."""
        proof = Proof(self._kernel(), load_launch(_MANIFEST), time.monotonic() + SECONDS)
        try:
            claims = proof.attempt(trace(function("x, n", "y=x * 1.0"), proof.symbolic, proof.arena)).claims
        except (Unsupported, RecursionError):
            return False
        return all(c.status is Status.SHOWN for c in claims if c.property != "equivalence")

    def fault(self) -> str:
        """What the emulator finds; empty when that is nothing."""
        for n in SIZES:
            for sign in (1, -1):
                for schedule in SCHEDULES:
                    outcome = emulate(self._kernel(), _launch(n, sign), schedule=schedule, seed=n)
                    kinds = outcome.kinds() - {"race-same-value"}
                    if kinds or not outcome.completed:
                        return f"n={n} {schedule}: {sorted(kinds)}"
        return ""

    def _kernel(self) -> Any:
        return resolve(parse(self.text, "random.ptx"), "k")


def _launch(n: int, sign: int) -> ConcreteLaunch:
    data = np.full(THREADS, sign, np.float32)
    arguments = (Pointer("x"), Pointer("y"), np.array(n, np.int32).tobytes())
    buffers = {"x": Buffer("x", 4 * THREADS, False, data), "y": Buffer("y", 4 * THREADS)}
    return ConcreteLaunch((1, 1, 1), (THREADS, 1, 1), 0, arguments, buffers)


def sample(seed: int) -> Sample:
    """The kernel of a seed."""
    lines = "\n".join(Writer(seed).lines)
    return Sample(f"{HEAD}.visible .entry k(.param .u64 px, .param .u64 py, .param .u32 pn) {{ {REGISTERS}\n"
                  f".shared .align 4 .b8 s[512];\n{lines}\nDONE: ret; }}")
