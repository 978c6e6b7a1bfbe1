"""Random structured PTX kernels in the signature of `small_kernels`: arithmetic, choices, branches, loops, exchange."""

from __future__ import annotations

import random

from small_kernels import Small

INTS, FLOATS, PREDS = 8, 6, 4


class Writer:
    """Writes one kernel; registers %r10.. hold integers, %f10.. floats, %p1.. predicates, all defined at the start."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.lines: list[str] = []
        self.labels = 0
        self.loops = 0

    def text(self) -> str:
        self.lines += [f"mov.u32 %r{10 + k}, {('%t', '%g', '%n', str(k * 3))[k % 4]};" for k in range(INTS)]
        self.lines += ["mul.wide.s32 %d1, %g, 4; add.s64 %d2, %x, %d1; ld.global.f32 %f10, [%d2];"]
        self.lines += [f"mov.f32 %f{10 + k}, 0f3F{k}00000;" for k in range(1, FLOATS)]
        self.lines += [f"setp.lt.s32 %p{1 + k}, {('%t', '%g')[k % 2]}, {('%n', '17', '33', '%n')[k]};" for k in range(PREDS)]
        self.block(2, 14)
        self.lines += ["mov.u32 %r1, %r10; mov.f32 %f1, %f10;"]
        self.lines += [f"mad.lo.s32 %r1, %r1, 3, %r{10 + k}; fma.rn.f32 %f1, %f{10 + k % FLOATS}, 0f3E800000, %f1;"
                       for k in range(1, INTS)]
        self.lines += [f"selp.u32 %r2, {1 << k}, 0, %p{1 + k}; add.s32 %r1, %r1, %r2;" for k in range(PREDS)]
        return "\n".join(self.lines)

    # ------------------------------------------------------------------ operands
    def r(self) -> str:
        return f"%r{10 + self.rng.randrange(INTS)}"

    def f(self) -> str:
        return f"%f{10 + self.rng.randrange(FLOATS)}"

    def p(self) -> str:
        return f"%p{1 + self.rng.randrange(PREDS)}"

    def ri(self) -> str:
        return self.rng.choice([self.r(), self.r(), str(self.rng.choice([0, 1, 2, 3, 5, 8, 31, -1, -4, 64]))])

    def label(self) -> str:
        self.labels += 1
        return f"B{self.labels}"

    # ------------------------------------------------------------------ statements
    def block(self, depth: int, size: int) -> None:
        for _ in range(self.rng.randrange(2, size)):
            kind = self.rng.random()
            if depth and kind < 0.14:
                self.branch(depth, size)
            elif depth and kind < 0.22 and self.loops < 2:
                self.loop(depth, size)
            else:
                self.simple()

    def branch(self, depth: int, size: int) -> None:
        other, end = self.label(), self.label()
        self.lines.append(f"@{self.rng.choice(['', '!'])}{self.p()} bra {other};")
        self.block(depth - 1, size // 2)
        if self.rng.random() < 0.6:
            self.lines.append(f"bra {end}; {other}:")
            self.block(depth - 1, size // 2)
            self.lines.append(f"{end}:")
        else:
            self.lines.append(f"{other}:")

    def loop(self, depth: int, size: int) -> None:
        self.loops += 1
        k = 20 + self.loops
        head, end = self.label(), self.label()
        trips = self.rng.choice(["%n", "3", "%n", "5"])
        self.lines.append(f"mov.u32 %r{k}, 0;")
        if self.rng.random() < 0.5:
            self.lines.append(f"{head}: setp.ge.s32 %p9, %r{k}, {trips}; @%p9 bra {end};")
            self.block(depth - 1, size // 2)
            self.lines.append(f"add.s32 %r{k}, %r{k}, {self.rng.choice([1, 2])}; bra {head}; {end}:")
        else:
            self.lines.append(f"{head}:")
            self.block(depth - 1, size // 2)
            self.lines.append(f"add.s32 %r{k}, %r{k}, 1; setp.lt.s32 %p9, %r{k}, {trips}; @%p9 bra {head};")
        if self.rng.random() < 0.7:
            self.lines.append(f"mov.u32 {self.r()}, %r{k};")

    def simple(self) -> None:
        rng = self.rng
        guard = f"@{rng.choice(['', '!'])}{self.p()} " if rng.random() < 0.2 else ""
        i, j, d = self.r(), self.ri(), self.r()
        a, b, e = self.f(), self.f(), self.f()
        options = [
            lambda: f"add.s32 {d}, {i}, {j};", lambda: f"sub.s32 {d}, {i}, {j};", lambda: f"and.b32 {d}, {i}, {rng.choice([7, 63, 255])};",
            lambda: f"mad.lo.s32 {d}, {i}, {rng.choice([2, 3, -1, 4])}, {j};", lambda: f"shl.b32 {d}, {i}, {rng.choice([1, 2])};",
            lambda: f"shr.s32 {d}, {i}, {rng.choice([1, 2])};", lambda: f"min.s32 {d}, {i}, {j};", lambda: f"max.s32 {d}, {i}, {j};",
            lambda: f"abs.s32 {d}, {i};", lambda: f"bfe.u32 {d}, {i}, 1, 4;", lambda: f"not.b32 {d}, {i};", lambda: f"neg.s32 {d}, {i};",
            lambda: f"and.b32 %r3, {i}, 255; div.u32 %r3, %r3, {rng.choice([3, 5, 7])}; mov.u32 {d}, %r3;",
            lambda: f"and.b32 %r3, {i}, 255; rem.u32 %r3, %r3, {rng.choice([3, 8, 7])}; mov.u32 {d}, %r3;",
            lambda: f"selp.u32 {d}, {i}, {j}, {self.p()};", lambda: f"selp.f32 {e}, {a}, {b}, {self.p()};",
            lambda: f"add.f32 {e}, {a}, {b};", lambda: f"sub.f32 {e}, {a}, {b};", lambda: f"mul.f32 {e}, {a}, 0f3F000000;",
            lambda: f"max.f32 {e}, {a}, {b};", lambda: f"min.f32 {e}, {a}, {b};", lambda: f"neg.f32 {e}, {a};",
            lambda: f"fma.rn.f32 {e}, {a}, 0f3E800000, {b};", lambda: f"mov.f32 {e}, {a};", lambda: f"mov.u32 {d}, {i};",
            lambda: f"setp.{rng.choice(['lt', 'le', 'gt', 'ge', 'eq', 'ne'])}.s32 {self.p()}, {i}, {j};",
            lambda: f"setp.lt.f32 {self.p()}, {a}, {b};", lambda: f"not.pred {self.p()}, {self.p()};",
            lambda: f"{rng.choice(['and', 'or', 'xor'])}.pred {self.p()}, {self.p()}, {self.p()};",
        ]
        load = (f"and.b32 %r3, {i}, 1023; mul.wide.s32 %d1, %r3, 4; add.s64 %d2, %x, %d1; ld.global.f32 {a}, [%d2];")
        whole = [
            lambda: load, lambda: load.replace("%x", "%z").replace("ld.global.f32 " + a, "ld.global.u32 " + d),
            lambda: f"shfl.sync.{rng.choice(['bfly', 'down', 'up', 'idx'])}.b32 {e}, {a}, {rng.choice([1, 4, 9])}, {rng.choice([31, 31, 0, 7])}, -1;",
            lambda: f"shfl.sync.bfly.b32 {d}, {i}, {rng.choice([1, 4])}, 31, -1;",
        ]
        if rng.random() < 0.12:
            self.lines.append(rng.choice(whole)())
        else:
            text = rng.choice(options)()
            self.lines.append(" ".join(guard + part + ";" for part in text.split(";") if part.strip()))


def random_kernel(seed: int) -> Small:
    """The kernel of a seed."""
    return Small(Writer(seed).text(), sizes=(4, 70), least=1, most=200, undefined=True)
