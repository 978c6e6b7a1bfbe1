"""Random integer code with predicated instructions and branches: its value by the symbolic run and by the emulator."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
from attempt import HEAD, REGISTERS, buffer, scalar

from warpproof.algebra import Undefined, evaluate, satisfies
from warpproof.core import Ledger, Unsupported
from warpproof.equivalence import Proof
from warpproof.machine import Buffer, ConcreteLaunch, Pointer, Setup, SymbolicMachine, Trace, emulate
from warpproof.ptx import Kernel, parse, resolve
from warpproof.reference import load_launch

THREADS, BLOCKS = 64, 1000
_TWO = ("add.s32", "sub.s32", "mul.lo.s32", "and.b32", "or.b32", "xor.b32", "min.s32", "max.s32", "min.u32", "max.u32",
        "mul.hi.s32", "mul.hi.u32")
_CONSTANTS = (0, 1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 255, 1023, -1, -2, -4, -32, 0x7FFFFFFF, 65536)
_RANGES = ((0, 10), (1, 1000), (0, 1 << 20), (1, (1 << 31) - 1), (-50, 50), (-(1 << 31), (1 << 31) - 1))
_COMPARE = ("lt", "le", "gt", "ge", "eq", "ne")


class Writer:
    """Writes code over %r20 … %r25; %r1 is the size, %r2 the thread, %r3 the block."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.lines, self.labels = rng, [], 0
        self.registers = [f"%r{k}" for k in range(20, 26)]
        first = ("%r2", "%r1", "%r3", "0", "7", "%r2")
        self.lines += [f"mov.u32 {r}, {v};" for r, v in zip(self.registers, first, strict=True)]

    def source(self) -> str:
        """A register or a constant."""
        if self.rng.random() < 0.3:
            return str(self.rng.choice(_CONSTANTS))
        return self.rng.choice([*self.registers, "%r1", "%r2", "%r3"])

    def predicate(self) -> str:
        """A fresh predicate, set by a comparison."""
        self.labels += 1
        p = f"%p{self.labels % 30 + 1}"
        form = f"setp.{self.rng.choice(_COMPARE)}.{self.rng.choice(('s32', 'u32'))}"
        self.lines.append(f"{form} {p}, {self.source()}, {self.source()};")
        return p

    def block(self, size: int, depth: int) -> None:
        """Some statements."""
        for _ in range(size):
            if depth and self.rng.random() < 0.25:
                self.branch(depth)
            else:
                guard = f"@{self.predicate()} " if self.rng.random() < 0.25 else ""
                self.lines.append(guard + self.operation())

    def branch(self, depth: int) -> None:
        """A branch with one or two sides."""
        p, k = self.predicate(), self.labels
        self.lines.append(f"@{self.rng.choice(('', '!'))}{p} bra X{k};")
        self.block(self.rng.randint(1, 2), depth - 1)
        if self.rng.random() < 0.5:
            self.lines.append(f"bra Y{k};\nX{k}:")
            self.block(self.rng.randint(1, 2), depth - 1)
            self.lines.append(f"Y{k}:")
        else:
            self.lines.append(f"X{k}:")

    def operation(self) -> str:
        """One instruction."""
        rng, d, a, b = self.rng, self.rng.choice(self.registers), self.source(), self.source()
        match rng.randrange(9):
            case 0:
                op = rng.choice(("shl.b32", "shr.u32", "shr.s32"))
                return f"{op} {d}, {a}, {rng.choice((0, 1, 2, 5, 8, 31, 40))};"
            case 1:
                op = rng.choice(("div.s32", "div.u32", "rem.s32", "rem.u32"))
                return f"{op} {d}, {a}, {rng.choice((1, 2, 3, 7, 8, 32, 100))};"
            case 2:
                return f"mad.lo.s32 {d}, {a}, {b}, {self.source()};"
            case 3:
                op = rng.choice(("bfe.u32", "bfe.s32"))
                return f"{op} {d}, {a}, {rng.choice((0, 1, 4, 8))}, {rng.choice((1, 2, 4, 8))};"
            case 4:
                return f"{rng.choice(('not.b32', 'neg.s32', 'abs.s32'))} {d}, {a};"
            case _:
                return f"{rng.choice(_TWO)} {d}, {a}, {b};"


def run(seed: int) -> Iterator[tuple[str, int, int]]:
    """(place, value by the symbolic run, value by the emulator) wherever the run's own conditions hold."""
    rng = random.Random(seed)
    writer = Writer(rng)
    writer.block(rng.choice((3, 5, 8)), rng.choice((0, 2)))
    low, high = rng.choice(_RANGES)
    text = (f"{HEAD}.visible .entry k(.param .u64 px, .param .u32 pn) {{ {REGISTERS}\nld.param.u64 %rd1, [px]; "
            "ld.param.u32 %r1, [pn]; mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mul.wide.u32 %rd2, %r2, 4; "
            "add.s64 %rd3, %rd1, %rd2;\n" + "\n".join(writer.lines)
            + f"\nst.global.b32 [%rd3], {rng.choice(writer.registers)}; ret; }}")
    kernel = resolve(parse(text, "random.ptx"), "k")
    proof = Proof(kernel, load_launch({
        "kernel": "k", "params": [buffer("x", "ptr_out", "u32", str(THREADS)), scalar("n")], "sizes": {"n": [low]},
        "preconditions": [f"n >= {low}", f"n <= {high}"], "grid": [str(BLOCKS)], "block": [THREADS],
        "dynamic_shared": "0"}), float("inf"))
    setup = Setup(proof.symbolic.grid, proof.symbolic.block, proof._arguments(), proof.buffers, 0, proof.facts.base)
    machine = SymbolicMachine(kernel, proof.arena, setup, Ledger(), proof.facts)
    try:
        trace = machine.run()
        (store,) = [a for a in trace.accesses if a.kind == "store"]
        poly = machine.dom.integers.poly(store.value)  # type: ignore[arg-type]
    except Unsupported:
        return
    for _ in range(6):
        n = rng.choice((low, high, rng.randint(low, high)))
        block = rng.choice((0, 1, BLOCKS - 1, rng.randrange(BLOCKS)))
        got = _emulated(kernel, n, block)
        values = {next(iter(p.terms))[0]: v for p, v in ((proof.symbolic.sizes["n"], n), (proof.blocks[0], block))}
        values |= {next(iter(p.terms))[0]: 0 for p in proof.blocks[1:]}
        for lane in (0, 1, 31, 32, THREADS - 1):
            try:
                if _sound(proof, trace, values, lane):
                    value = evaluate(proof.arena, poly, values, lane) % 2**32
                    yield f"n={n} block={block} lane={lane}\n{text}", value, int(got[lane])
            except Undefined:
                continue


def _emulated(kernel: Kernel, n: int, block: int) -> Any:
    launch = ConcreteLaunch((BLOCKS, 1, 1), (THREADS, 1, 1), 0, (Pointer("x"), np.array(n, np.int32).tobytes()),
                            {"x": Buffer("x", 4 * THREADS)})
    outcome = emulate(kernel, launch, ctas=[(block, 0, 0)], races=False)
    return np.frombuffer(outcome.buffers["x"].content().tobytes(), np.uint32)


def _sound(proof: Proof, trace: Trace, values: dict[int, int], lane: int) -> bool:
    """The conditions that the run relied on hold at these values."""
    return all(
        not satisfies(proof.arena, o.path, values, lane) or satisfies(proof.arena, o.claim, values, lane)
        for o in trace.obligations if o.claim is not None
    )
