"""Random kernels of nested loops that carry floats, integers and cells of shared memory from iteration to iteration.

They have the signature of `small_kernels`. Loops may run zero times, over each other's counters or unequally by lane;
each thread refills cells of its own, and all threads exchange cells behind barriers and at addresses that a size moves.
"""

from __future__ import annotations

import random

from small_kernels import Small

FLOATS = [f"%f{k}" for k in range(10, 15)]
INTS = ["%r10", "%r11", "%r12"]
SLOTS = 3


class Writer:
    """Writes one kernel; `open` are the loops under way by number, `apart` the conditions that differ by lane."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.labels = self.loops = self.apart = 0
        self.open: list[int] = []
        self.stored = False

    def text(self) -> str:
        self.say("mov.u32 %r10, 0; mov.u32 %r11, 1; mov.u32 %r12, %n; mov.f32 %f10, 0f00000000; mov.f32 %f11, %f10;")
        for k, f in enumerate(FLOATS[2:]):
            self.load(f, "%g", k)
            self.cell(k)
            self.say(f"st.shared.f32 [%r8], {f};")
        for _ in range(self.rng.choice([1, 1, 2])):
            self.loop(1)
        self.say("bar.sync 0; mov.u32 %r1, %r10; mov.f32 %f1, %f10;")
        for f in FLOATS[1:]:
            self.say(f"fma.rn.f32 %f1, %f1, 0f3F000000, {f};")
        for slot in range(SLOTS):
            self.cell(slot, self.rng.choice([0, 1, 63]))
            self.say("ld.shared.f32 %f9, [%r8]; fma.rn.f32 %f1, %f1, 0f3F000000, %f9;")
        self.say(*(f"mad.lo.s32 %r1, %r1, 3, {r};" for r in INTS[1:]))
        return "\n".join(self.lines)

    # ------------------------------------------------------------------ pieces
    def say(self, *lines: str) -> None:
        self.lines += lines

    def label(self) -> str:
        self.labels += 1
        return f"B{self.labels}"

    def f(self) -> str:
        return self.rng.choice(FLOATS)

    def i(self) -> str:
        return self.rng.choice(INTS)

    def counter(self) -> str:
        return f"%r{20 + self.open[-1]}"

    def cell(self, slot: int, far: int = 0) -> None:
        """%r8 is the address of the cell of thread t ^ far."""
        self.say(f"xor.b32 %r5, %t, {far}; mov.u32 %r6, smem; shl.b32 %r7, %r5, 2; add.s32 %r8, %r6, %r7; "
                 f"add.s32 %r8, %r8, {256 * slot};")

    def load(self, f: str, index: str, more: int) -> None:
        self.say(f"add.s32 %r3, {index}, {more}; mul.wide.s32 %d1, %r3, 4; add.s64 %d2, %x, %d1;",
                 f"ld.global.f32 {f}, [%d2];")

    # ------------------------------------------------------------------ loops and branches
    def loop(self, depth: int) -> None:
        rng, (head, end) = self.rng, (self.label(), self.label())
        self.loops += 1
        number, i = self.loops, f"%r{20 + self.loops}"
        bound = rng.choice(["%n", "%n", "3", f"%r{30 + number}", *(f"%r{20 + k}" for k in self.open)])
        unequal = depth == 0 and rng.random() < 0.15
        if unequal:
            bound = f"%r{30 + number}"
        by = "and.b32 %r9, %t, 1;" if unequal else f"mov.u32 %r9, {rng.choice([1, 2])};"
        self.say(f"{by} sub.s32 %r{30 + number}, %n, %r9; mov.u32 {i}, {rng.choice([0, 0, 1])};")
        self.open.append(number)
        self.apart += unequal
        leave = f"setp.ge.s32 %p9, {i}, {bound}; @%p9 bra {end};"
        shape = rng.choice(["while", "guarded", "guarded", "do"])
        self.say(f"{head}: {leave}" if shape == "while" else f"{leave} {head}:" if shape == "guarded" else f"{head}:")
        for _ in range(rng.randrange(2, 7)):
            self.statement(depth)
        again = f"bra {head};" if shape == "while" else f"setp.lt.s32 %p9, {i}, {bound}; @%p9 bra {head};"
        self.say(f"add.s32 {i}, {i}, 1; {again} {end}:")
        self.apart -= unequal
        self.open.pop()

    def branch(self) -> None:
        rng, (other, end) = self.rng, (self.label(), self.label())
        test, lanes = rng.choice([
            (f"setp.gt.s32 %p1, {self.counter()}, {rng.choice([0, 1])};", 0), ("setp.lt.s32 %p1, %n, 2;", 0),
            (f"setp.lt.s32 %p1, %t, {rng.choice(['10', '%n'])};", 1), (f"setp.lt.f32 %p1, {self.f()}, {self.f()};", 1),
            (f"setp.gt.s32 %p1, {self.i()}, 1;", 1),
        ])
        self.say(f"{test} @%p1 bra {other};")
        self.apart += lanes
        self.simple()
        self.say(f"bra {end}; {other}:")
        if rng.random() < 0.5:
            self.simple()
        self.say(f"{end}:")
        self.apart -= lanes

    def statement(self, depth: int) -> None:
        kind = self.rng.random()
        if depth and kind < 0.15 and self.loops < 3:
            self.loop(depth - 1)
        elif kind < 0.25:
            self.branch()
        elif kind < 0.33 and not self.stored and len(self.open) == 1 and not self.apart:
            self.stored = True
            self.say(f"mad.lo.s32 %r4, {self.counter()}, 128, %g; add.s32 %r4, %r4, 128; mul.wide.s32 %d3, %r4, 4; "
                     f"add.s64 %d4, %y, %d3; st.global.f32 [%d4], {self.f()};")
        elif kind < 0.45 and not self.apart:
            self.exchange()
        else:
            self.simple()

    def exchange(self) -> None:
        """What another thread has in its cell, or the cell that the size moves to."""
        rng = self.rng
        self.cell(rng.randrange(SLOTS), rng.choice([1, 3, 63]))
        if rng.random() < 0.4:
            self.say("add.s32 %r5, %t, %n; and.b32 %r5, %r5, 63; shl.b32 %r7, %r5, 2; add.s32 %r8, %r6, %r7;")
        self.say(f"bar.sync 0; ld.shared.f32 {self.f()}, [%r8]; bar.sync 0;")

    def simple(self) -> None:
        rng, a, b, c, r, s = self.rng, self.f(), self.f(), self.f(), self.i(), self.i()
        match rng.randrange(12):
            case 0 | 1:
                self.say(f"add.f32 {a}, {a}, {b};")
            case 2:
                self.say(f"mad.lo.s32 %r2, {self.counter()}, 64, %t;")
                self.load(a, "%r2", rng.choice([0, 1, 64]))
            case 3:
                self.cell(rng.randrange(SLOTS))
                self.say(f"ld.shared.f32 {a}, [%r8];")
            case 4 | 5:
                self.cell(rng.randrange(SLOTS))
                self.say(f"st.shared.f32 [%r8], {a};")
            case 6:
                self.say(f"mov.f32 {a}, {b}; max.f32 {c}, {c}, {b};")
            case 7:
                self.say(f"setp.gt.f32 %p2, {a}, {rng.choice(['0f00000000', b])};",
                         f"selp.u32 {r}, {rng.choice([1, '%n'])}, 0, %p2;")
            case 8:
                self.say(f"setp.gt.s32 %p3, {r}, {rng.choice([0, 1])}; selp.f32 {a}, {b}, {c}, %p3;")
            case 9:
                self.say(f"add.s32 {r}, {r}, {rng.choice([1, 2])};")
            case 10:
                self.say(f"mov.u32 {r}, {rng.choice([self.counter(), s, '%n'])};")
            case _:
                self.say(f"fma.rn.f32 {a}, {b}, {c}, {a};")


def random_loops(seed: int) -> Small:
    """The kernel of a seed."""
    return Small(Writer(seed).text(), sizes=(0, 1, 2, 5), least=0, most=12, undefined=True)
