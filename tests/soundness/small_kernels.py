"""Small hand-written PTX kernels, each a stress for one habit of compilers, with the sizes they are run at.

All share one signature: x (f32), z (i32 in [0, 4096)), outputs y (f32) and w (i32), and the size n. %t is tid.x, %c
ctaid.x, %g the global thread index, %n the size; a kernel leaves its results in %f1 and %r1, which go to y[%g], w[%g].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

N = 4096
_HEAD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 px, .param .u64 pz, .param .u64 py, .param .u64 pw, .param .u32 pn)
{
.reg .pred %p<12>; .reg .b16 %h<10>; .reg .b32 %r<40>; .reg .b32 %t; .reg .b32 %c; .reg .b32 %g; .reg .b32 %n;
.reg .b64 %d<40>; .reg .b64 %x; .reg .b64 %z; .reg .b64 %y; .reg .b64 %w; .reg .f32 %f<30>;
.shared .align 16 .b8 smem[1024];
.local .align 16 .b8 depot[32];
ld.param.u64 %x, [px]; ld.param.u64 %z, [pz]; ld.param.u64 %y, [py]; ld.param.u64 %w, [pw]; ld.param.u32 %n, [pn];
cvta.to.global.u64 %x, %x; cvta.to.global.u64 %z, %z; cvta.to.global.u64 %y, %y; cvta.to.global.u64 %w, %w;
mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; shl.b32 %g, %c, 6; add.s32 %g, %g, %t;
"""
_TAIL = """
mul.wide.s32 %d38, %g, 4; add.s64 %d39, %y, %d38; st.global.f32 [%d39], %f1;
add.s64 %d39, %w, %d38; st.global.u32 [%d39], %r1;
"""


@dataclass(frozen=True)
class Small:
    """A kernel. `tail` False: it stores its results itself. `flagged` are sizes at which a condition must be open."""

    code: str
    sizes: tuple[int, ...] = (1, 5, 9, 64, 70)
    flagged: tuple[int, ...] = ()
    tail: bool = True
    least: int = 0
    most: int = 2048
    undefined: bool = False  # values that do not close are expected

    def ptx(self) -> str:
        return f"{_HEAD}{self.code}{_TAIL if self.tail else ''}\nDONE:\nret;\n}}\n"

    def manifest(self) -> dict[str, Any]:
        return {
            "kernel": "k", "sizes": {"n": [*self.sizes, *self.flagged]},
            "params": [
                {"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": [str(N)]},
                {"name": "z", "kind": "ptr_in", "dtype": "i32", "shape": [str(N)], "range": ["0", str(N)]},
                {"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": [str(N)]},
                {"name": "w", "kind": "ptr_out", "dtype": "i32", "shape": [str(N)]},
                {"name": "n", "kind": "scalar", "dtype": "i32"},
            ],
            "preconditions": [f"n >= {self.least}", f"n <= {self.most}"], "grid": ["2", "1", "1"],
            "block": [64, 1, 1], "dynamic_shared": "0",
        }


def ldx(into: str, index: str) -> str:
    return f"mul.wide.s32 %d1, {index}, 4; add.s64 %d2, %x, %d1; ld.global.f32 {into}, [%d2];"


def ldz(into: str, index: str) -> str:
    return f"mul.wide.s32 %d1, {index}, 4; add.s64 %d2, %z, %d1; ld.global.u32 {into}, [%d2];"


def shared(register: str, lane: str, offset: int = 0) -> str:
    """The byte address of a word of shared memory."""
    return f"mov.u32 %r38, smem; shl.b32 %r39, {lane}, 2; add.s32 {register}, %r38, %r39; add.s32 {register}, {register}, {offset};"


X = ldx("%f2", "%g")
NONE = "mov.u32 %r1, 0;"
NOF = "mov.f32 %f1, 0f00000000;"

SMALL: dict[str, Small] = {
    # ------------------------------------------------------------------ branches
    "branch on a symbol": Small(f"""{X}
        setp.gt.s32 %p1, %n, 5; @%p1 bra A; mul.f32 %f1, %f2, 0f40000000; mov.u32 %r1, %n; bra B;
        A: add.f32 %f1, %f2, 0f3F800000; add.s32 %r1, %t, 7; B:"""),
    "branch on a lane": Small(f"""{X}
        setp.lt.s32 %p1, %t, 10; @%p1 bra A; mul.f32 %f1, %f2, 0f40000000; mov.u32 %r1, 3; bra B;
        A: add.f32 %f1, %f2, 0f3F800000; sub.s32 %r1, %t, %n; B:"""),
    "branch on both": Small(f"""{X}
        setp.lt.s32 %p1, %g, %n; @%p1 bra A; mul.f32 %f1, %f2, 0f40000000; mov.u32 %r1, %g; bra B;
        A: add.f32 %f1, %f2, 0f3F800000; mov.u32 %r1, %n; B:"""),
    "one side only": Small(f"""{X} mov.f32 %f1, %f2; mov.u32 %r1, 1;
        setp.ge.s32 %p1, %g, %n; @%p1 bra B; add.f32 %f1, %f2, %f2; add.s32 %r1, %r1, %t; B:"""),
    "nested branches": Small(f"""{X} mov.f32 %f1, %f2; mov.u32 %r1, 1;
        setp.ge.s32 %p1, %g, %n; @%p1 bra B; setp.lt.s32 %p2, %t, 20; @%p2 bra C;
        setp.gt.s32 %p3, %n, 9; @%p3 bra D; neg.f32 %f1, %f1; add.s32 %r1, %r1, 4; bra B;
        D: add.f32 %f1, %f1, %f2; bra B; C: mul.f32 %f1, %f1, %f1; mov.u32 %r1, %t; B:"""),
    "a register from one side is undefined": Small(f"""{X} {NONE} mov.f32 %f1, %f2;
        setp.ge.s32 %p1, %g, %n; @%p1 bra B; add.f32 %f3, %f2, %f2; B: setp.lt.s32 %p2, %g, %n; @!%p2 bra E;
        mov.f32 %f1, %f3; E:""", undefined=True),
    "predicated instructions": Small(f"""{X} mov.u32 %r1, 5; mov.f32 %f1, 0f3F800000;
        setp.lt.s32 %p1, %g, %n; setp.gt.s32 %p2, %n, 7; @%p1 add.f32 %f1, %f1, %f2; @!%p1 mul.f32 %f1, %f2, 0f40400000;
        @%p2 add.s32 %r1, %r1, %t; @!%p2 sub.s32 %r1, %r1, %n;"""),
    "predicated load": Small(f"""{NONE} mov.f32 %f1, 0fBF800000; setp.lt.s32 %p1, %g, %n;
        mul.wide.s32 %d1, %g, 4; add.s64 %d2, %x, %d1; @%p1 ld.global.f32 %f1, [%d2];"""),
    "predicated store": Small(f"""{X} setp.lt.s32 %p1, %g, %n; mul.wide.s32 %d1, %g, 4; add.s64 %d2, %y, %d1;
        @%p1 st.global.f32 [%d2], %f2; setp.eq.s32 %p2, %t, 3; add.s64 %d2, %w, %d1; @%p2 st.global.u32 [%d2], %n;""",
                              tail=False),
    "joined predicates": Small(f"""{X} setp.lt.s32 %p1, %g, %n; @%p1 bra A; setp.gt.s32 %p2, %n, 8; bra B;
        A: setp.lt.s32 %p2, %t, 12; B: selp.f32 %f1, %f2, 0f3F800000, %p2; selp.u32 %r1, %t, %n, %p2;"""),
    "boolean operations": Small(f"""{X} setp.lt.s32 %p1, %g, %n; setp.gt.and.s32 %p2|%p3, %n, 8, %p1;
        xor.pred %p4, %p1, %p3; not.pred %p5, %p4; or.pred %p6, %p2, %p5; selp.f32 %f1, %f2, 0f40000000, %p4;
        selp.u32 %r1, 11, 22, %p6; set.lt.u32.s32 %r2, %t, %n; and.b32 %r2, %r2, 64; add.s32 %r1, %r1, %r2;"""),
    "a test of floats": Small(f"""{X} setp.gt.f32 %p1, %f2, 0f3F000000; selp.f32 %f1, %f2, 0f00000000, %p1;
        @%p1 bra A; mov.u32 %r1, 1; bra B; A: mov.u32 %r1, %n; B:"""),
    # ------------------------------------------------------------------ exits
    "guarded exits": Small(f"""{X} setp.eq.s32 %p1, %t, 5; @%p1 ret; setp.ge.s32 %p2, %g, %n; @%p2 ret;
        setp.lt.s32 %p3, %t, 2; @%p3 exit;
        mov.f32 %f1, %f2; mov.u32 %r1, 9;""", sizes=(5, 9, 64, 70)),
    "early exit by branch": Small(f"""{X} mov.u32 %r1, 1; setp.ge.s32 %p1, %g, %n; @%p1 bra DONE;
        setp.eq.s32 %p2, %t, 3; @%p2 bra DONE; add.f32 %f1, %f2, %f2;"""),
    "ret in a branch": Small(f"""{X} mov.u32 %r1, 1; setp.lt.s32 %p1, %g, %n; @%p1 bra A; ret; A:
        add.f32 %f1, %f2, %f2;"""),
    # ------------------------------------------------------------------ loops
    "rotated loop": Small(f"""{NONE} {NOF} setp.lt.s32 %p1, %n, 1; @%p1 bra E; mov.u32 %r2, 0; mov.u32 %r3, %t;
        L: {ldx('%f2', '%r3')} add.f32 %f1, %f1, %f2; add.s32 %r2, %r2, 1; add.s32 %r3, %r3, 3; setp.lt.s32 %p2, %r2, %n;
        @%p2 bra L; mov.u32 %r1, %r3; E:""", most=512),
    "loop with its test at the top": Small(f"""{NONE} {NOF} mov.u32 %r2, 0;
        L: setp.ge.s32 %p1, %r2, %n; @%p1 bra E; add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} fma.rn.f32 %f1, %f2, %f2, %f1;
        add.s32 %r2, %r2, 1; bra L; E: mov.u32 %r1, %r2;""", most=512, sizes=(0, 1, 5, 70)),
    "loop with its test in the middle": Small(f"""{NONE} {NOF} mov.u32 %r2, 0;
        L: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} add.f32 %f1, %f1, %f2; setp.ge.s32 %p1, %r2, %n; @%p1 bra E;
        add.s32 %r2, %r2, 2; add.f32 %f1, %f1, 0f3F800000; bra L; E: mov.u32 %r1, %r2;""", most=512, sizes=(0, 1, 5, 70)),
    "counting down": Small(f"""{NONE} {NOF} setp.lt.s32 %p1, %n, 1; @%p1 bra E; mov.u32 %r2, %n;
        L: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} add.f32 %f1, %f1, %f2; add.s32 %r2, %r2, -1; setp.gt.s32 %p2, %r2, 0;
        @%p2 bra L; mov.u32 %r1, %r2; E:""", most=512),
    "counting to unequal": Small(f"""{NONE} {NOF} mov.u32 %r2, 0;
        L: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} add.f32 %f1, %f1, %f2; add.s32 %r2, %r2, 1; setp.ne.s32 %p2, %r2, %n;
        @%p2 bra L; mov.u32 %r1, %r2;""", least=1, most=512),
    "counting down to unequal by four": Small(f"""{NONE} {NOF} shl.b32 %r2, %n, 2;
        L: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} add.f32 %f1, %f1, %f2; add.s32 %r2, %r2, -4; setp.ne.s32 %p2, %r2, 0;
        @%p2 bra L; mov.u32 %r1, %r2;""", least=1, most=256),
    "a step of the grid": Small(f"""{NONE} {NOF} mov.u32 %r5, %nctaid.x; mov.u32 %r6, %ntid.x; mul.lo.s32 %r7, %r5, %r6;
        mov.u32 %r2, %g; setp.ge.s32 %p1, %r2, %n; @%p1 bra E;
        L: {ldx('%f2', '%r2')} add.f32 %f1, %f1, %f2; add.s32 %r2, %r2, %r7; setp.lt.s32 %p2, %r2, %n; @%p2 bra L; E:
        mov.u32 %r1, %r2;""", sizes=(1, 64, 130, 300)),
    "a trip count of its own in each lane": Small(f"""{NONE} {NOF} mov.u32 %r2, %t; setp.ge.s32 %p1, %r2, %n; @%p1 bra E;
        L: {ldx('%f2', '%r2')} add.f32 %f1, %f1, %f2; add.s32 %r2, %r2, 64; setp.lt.s32 %p2, %r2, %n; @%p2 bra L; E:
        mov.u32 %r1, %r2;""", sizes=(1, 5, 64, 65, 200)),
    "nested loops": Small(f"""{NONE} {NOF} mov.u32 %r2, 0; setp.lt.s32 %p1, %n, 1; @%p1 bra E;
        L: mov.u32 %r4, 0; mov.f32 %f3, 0f00000000;
        M: add.s32 %r3, %r2, %r4; add.s32 %r3, %r3, %t; {ldx('%f2', '%r3')} fma.rn.f32 %f3, %f2, %f2, %f3;
        add.s32 %r4, %r4, 1; setp.le.s32 %p3, %r4, %r2; @%p3 bra M;
        add.f32 %f1, %f1, %f3; add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %n; @%p2 bra L; E:""", most=128, sizes=(1, 2, 7, 20)),
    "unrolled by four with a remainder": Small(f"""{NONE} {NOF} and.b32 %r5, %n, 3; sub.s32 %r6, %n, %r5;
        mov.u32 %r2, 0; setp.lt.s32 %p1, %n, 4; @%p1 bra R;
        L: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} add.f32 %f1, %f1, %f2; ld.global.f32 %f2, [%d2+4];
        add.f32 %f1, %f1, %f2; ld.global.f32 %f2, [%d2+8]; add.f32 %f1, %f1, %f2; ld.global.f32 %f2, [%d2+12];
        add.f32 %f1, %f1, %f2; add.s32 %r2, %r2, 4; setp.lt.s32 %p2, %r2, %r6; @%p2 bra L;
        R: setp.eq.s32 %p3, %r5, 0; @%p3 bra E;
        M: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} add.f32 %f1, %f1, %f2; add.s32 %r2, %r2, 1; add.s32 %r5, %r5, -1;
        setp.gt.s32 %p4, %r5, 0; @%p4 bra M; E: mov.u32 %r1, %r2;""", most=512, sizes=(1, 3, 4, 7, 18)),
    "a branch inside a loop": Small(f"""mov.u32 %r1, 0; {NOF} mov.u32 %r2, 0;
        L: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} setp.lt.s32 %p3, %r3, 40; @%p3 bra A; add.f32 %f1, %f1, %f2; bra B;
        A: sub.f32 %f1, %f1, %f2; B: add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %n; @%p2 bra L;""", most=512, least=1, undefined=True),
    "a running maximum from minus infinity": Small(f"""{NONE} mov.f32 %f1, 0fFF800000; mov.u32 %r2, 0;
        L: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} max.f32 %f1, %f1, %f2; add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %n;
        @%p2 bra L;""", most=512, least=1),
    "values of the last iteration": Small(f"""mov.u32 %r2, 0;
        L: add.s32 %r3, %r2, %t; {ldx('%f1', '%r3')} mul.lo.s32 %r1, %r2, 5; setp.lt.s32 %p5, %r2, 4; add.s32 %r2, %r2, 1;
        setp.lt.s32 %p2, %r2, %n; @%p2 bra L; selp.u32 %r4, 100, 200, %p5; add.s32 %r1, %r1, %r4;""", most=512, least=1),
    "a recurrence that is not linear": Small(f"""{X} mov.f32 %f1, %f2; mov.u32 %r1, %t; mov.u32 %r2, 0;
        L: mul.lo.s32 %r1, %r1, 3; add.s32 %r1, %r1, 1; fma.rn.f32 %f1, %f1, 0f3F000000, %f2; add.s32 %r2, %r2, 1;
        setp.lt.s32 %p2, %r2, %n; @%p2 bra L;""", most=512, least=1, undefined=True),
    "two registers exchanged in a loop": Small(f"""{X} mov.f32 %f1, 0f3F800000; mov.f32 %f3, %f2; mov.u32 %r1, 4;
        mov.u32 %r2, 0; mov.u32 %r4, 9; L: mov.f32 %f4, %f1; mov.f32 %f1, %f3; mov.f32 %f3, %f4; mov.u32 %r5, %r1;
        mov.u32 %r1, %r4; mov.u32 %r4, %r5; add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %n; @%p2 bra L;""", most=512, least=1,
                                                 undefined=True),
    "a predicate carried around a loop": Small(f"""{NONE} {NOF} {X} mov.u32 %r2, 0; setp.ne.s32 %p1, %r2, 0;
        L: selp.f32 %f3, %f2, 0f3F800000, %p1; add.f32 %f1, %f1, %f3; not.pred %p1, %p1; add.s32 %r2, %r2, 1;
        setp.lt.s32 %p2, %r2, %n; @%p2 bra L;""", most=512, least=1, undefined=True),
    "set in some iterations only": Small(f"""mov.u32 %r1, 0; {NOF} mov.u32 %r2, 0;
        L: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} setp.lt.s32 %p3, %r2, 3; @%p3 mov.f32 %f1, %f2; @%p3 mov.u32 %r1, %r2;
        add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %n; @%p2 bra L;""", most=512, least=1, undefined=True),
    "defined first by a predicated instruction": Small(f"""{NOF} setp.gt.s32 %p1, %n, 3; @%p1 mov.u32 %r1, 5;
        mov.u32 %r2, 0; L: add.s32 %r1, %r1, 1; add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %n; @%p2 bra L;
        @!%p1 mov.u32 %r1, 77;""", most=512, least=1, undefined=True),
    "a stage counter": Small(f"""{NOF} mov.u32 %r2, 0; {shared('%r8', '%t')} sub.s32 %r9, 63, %t; {shared('%r10', '%r9')}
        L: and.b32 %r4, %r2, 1; shl.b32 %r4, %r4, 8; add.s32 %r5, %r8, %r4; shl.b32 %r3, %r2, 6; add.s32 %r3, %r3, %t;
        {ldx('%f2', '%r3')} st.shared.f32 [%r5], %f2; bar.sync 0; add.s32 %r6, %r10, %r4; ld.shared.f32 %f3, [%r6];
        add.f32 %f1, %f1, %f3; add.s32 %r2, %r2, 1; mul.lo.s32 %r1, %r2, 3; setp.lt.s32 %p2, %r2, %n; @%p2 bra L;
        mad.lo.s32 %r1, %r2, 100, %r1;""", least=1, most=60, sizes=(1, 2, 3, 4, 7)),
    "three stages": Small(f"""{NOF} mov.u32 %r2, 0; mov.u32 %r4, 0; {shared('%r8', '%t')} sub.s32 %r9, 63, %t;
        {shared('%r10', '%r9')} L: shl.b32 %r11, %r4, 8; add.s32 %r5, %r8, %r11; shl.b32 %r3, %r2, 6; add.s32 %r3, %r3, %t;
        {ldx('%f2', '%r3')} st.shared.f32 [%r5], %f2; bar.sync 0; add.s32 %r6, %r10, %r11; ld.shared.f32 %f3, [%r6];
        add.f32 %f1, %f1, %f3; add.s32 %r2, %r2, 1; add.s32 %r4, %r4, 1; setp.eq.s32 %p3, %r4, 3; selp.u32 %r4, 0, %r4, %p3;
        setp.lt.s32 %p2, %r2, %n; @%p2 bra L; mad.lo.s32 %r1, %r2, 100, %r4;""", least=1, most=60, sizes=(1, 2, 3, 4, 7),
        undefined=True),
    "a prefetched register": Small(f"""{NOF} {NONE} mov.u32 %r2, 0; {ldx('%f5', '%t')}
        L: mov.f32 %f4, %f5; add.s32 %r2, %r2, 1; shl.b32 %r3, %r2, 6; add.s32 %r3, %r3, %t; setp.lt.s32 %p2, %r2, %n;
        mul.wide.s32 %d1, %r3, 4; add.s64 %d2, %x, %d1; @%p2 ld.global.f32 %f5, [%d2]; fma.rn.f32 %f1, %f4, %f4, %f1;
        @%p2 bra L; add.f32 %f1, %f1, %f5; mov.u32 %r1, %r3;""", least=1, most=60, sizes=(1, 2, 5)),
    "a prefetched register that starts otherwise": Small(f"""{NOF} {NONE} mov.u32 %r2, 0; mov.f32 %f5, 0f40A00000;
        mov.u32 %r5, 1000; L: mov.f32 %f4, %f5; add.s32 %r1, %r1, %r5; add.s32 %r2, %r2, 1; shl.b32 %r3, %r2, 6; add.s32 %r3, %r3, %t;
        {ldx('%f5', '%r3')} mul.lo.s32 %r5, %r2, %n; fma.rn.f32 %f1, %f4, %f4, %f1; setp.lt.s32 %p2, %r2, %n;
        @%p2 bra L; add.f32 %f1, %f1, %f5; mov.u32 %r1, %r5;""", least=1, most=60, sizes=(1, 2, 5)),
    "a tile carried in shared memory": Small(f"""{NOF} {NONE} mov.u32 %r2, 0; {shared('%r4', '%t')} sub.s32 %r5, 63, %t;
        {shared('%r6', '%r5')} {ldx('%f2', '%t')} st.shared.f32 [%r4], %f2; bar.sync 0;
        L: ld.shared.f32 %f3, [%r6]; add.f32 %f1, %f1, %f3; bar.sync 0; add.s32 %r2, %r2, 1; shl.b32 %r3, %r2, 6;
        add.s32 %r3, %r3, %t; {ldx('%f2', '%r3')} st.shared.f32 [%r4], %f2; bar.sync 0; setp.lt.s32 %p2, %r2, %n;
        @%p2 bra L; ld.shared.f32 %f3, [%r6]; mul.f32 %f3, %f3, 0f41200000; add.f32 %f1, %f1, %f3;""", least=1, most=60,
                                             sizes=(1, 2, 5), undefined=True),
    "a tile carried in shared memory by other lanes": Small(f"""{NOF} {NONE} mov.u32 %r2, 0; {shared('%r4', '%t')}
        sub.s32 %r5, 63, %t; {shared('%r6', '%r5')} {ldx('%f2', '%t')} st.shared.f32 [%r4], %f2; bar.sync 0;
        L: ld.shared.f32 %f3, [%r4]; add.f32 %f1, %f1, %f3; bar.sync 0; add.s32 %r2, %r2, 1; shl.b32 %r3, %r2, 6;
        add.s32 %r3, %r3, %t; {ldx('%f2', '%r3')} st.shared.f32 [%r6], %f2; bar.sync 0; setp.lt.s32 %p2, %r2, %n;
        @%p2 bra L; ld.shared.f32 %f3, [%r6]; mul.f32 %f3, %f3, 0f41200000; add.f32 %f1, %f1, %f3;""", least=1, most=60,
                                                            sizes=(1, 2, 5), undefined=True),
    "a counter that steps only when the loop goes on": Small(f"""{NOF} mov.u32 %r2, 0; mov.u32 %r1, 7;
        L: add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %n; @%p2 add.s32 %r1, %r1, 3; @%p2 bra L;""", least=1, most=200),
    "an online sum": Small(f"""{NONE} mov.f32 %f3, 0fFF800000; {NOF} mov.u32 %r2, 0;
        L: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')} max.f32 %f4, %f3, %f2; sub.f32 %f5, %f3, %f4; ex2.approx.f32 %f5, %f5;
        sub.f32 %f6, %f2, %f4; ex2.approx.f32 %f6, %f6; fma.rn.f32 %f1, %f1, %f5, %f6; mov.f32 %f3, %f4; add.s32 %r2, %r2, 1;
        setp.lt.s32 %p2, %r2, %n; @%p2 bra L;""", least=1, most=200, sizes=(1, 2, 5)),
    "lanes leave an unrolled loop at different times": Small(f"""mov.u32 %r1, 0; {NOF} mov.u32 %r2, %t;
        L: {ldx('%f2', '%r2')} add.f32 %f1, %f1, %f2; add.s32 %r1, %r1, 1; add.s32 %r2, %r2, 13; setp.lt.s32 %p2, %r2, 70;
        @%p2 bra L;""", sizes=(1,)),
    "a store in every iteration": Small(f"""mov.u32 %r2, 0; mov.f32 %f3, 0f3F800000;
        L: shl.b32 %r3, %r2, 7; add.s32 %r3, %r3, %g; {ldx('%f2', '%r3')} mul.wide.s32 %d3, %r3, 4; add.s64 %d4, %y, %d3;
        mul.f32 %f4, %f2, %f3; st.global.f32 [%d4], %f4; add.s64 %d4, %w, %d3; st.global.u32 [%d4], %r2;
        add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %n; @%p2 bra L;""", least=1, most=32, sizes=(1, 2, 5, 32), tail=False),
    # ------------------------------------------------------------------ shared memory and exchange
    "shared memory reversed": Small(f"""{X} {shared('%r4', '%t')} st.shared.f32 [%r4], %f2; bar.sync 0;
        sub.s32 %r5, 63, %t; {shared('%r6', '%r5')} ld.shared.f32 %f1, [%r6]; mov.u32 %r1, %r5;"""),
    "shared memory under guards": Small(f"""{X} {shared('%r4', '%t')} mov.f32 %f3, 0f40A00000; st.shared.f32 [%r4], %f3;
        setp.lt.s32 %p1, %g, %n; @%p1 st.shared.f32 [%r4], %f2; setp.lt.s32 %p2, %t, 8; @%p2 st.shared.f32 [%r4], 0f3F800000;
        bar.sync 0; xor.b32 %r5, %t, 21; {shared('%r6', '%r5')} ld.shared.f32 %f1, [%r6]; mov.u32 %r1, %r5;"""),
    "integers through shared memory": Small(f"""{NOF} {shared('%r4', '%t')} mad.lo.s32 %r7, %t, 3, %n; st.shared.u32 [%r4], %r7;
        setp.lt.s32 %p1, %t, %n; @%p1 bra A; st.shared.u32 [%r4], %t; A: bar.sync 0; sub.s32 %r5, 63, %t;
        {shared('%r6', '%r5')} ld.shared.u32 %r1, [%r6];"""),
    "different values mixed by a gather": Small(f"""{X} {shared('%r4', '%t')} st.shared.f32 [%r4], %f2;
        add.f32 %f3, %f2, %f2; st.shared.f32 [%r4+256], %f3; bar.sync 0; mul.lo.s32 %r5, %t, 2; {shared('%r6', '%r5')}
        ld.shared.f32 %f1, [%r6]; ld.shared.f32 %f4, [%r6+4]; mul.f32 %f4, %f4, 0f40400000; add.f32 %f1, %f1, %f4;
        mov.u32 %r1, 0;"""),
    "a tree in shared memory": Small(f"""{X} mov.u32 %r1, 0; {shared('%r4', '%t')} setp.ge.s32 %p1, %g, %n;
        @%p1 mov.f32 %f2, 0f00000000; st.shared.f32 [%r4], %f2; bar.sync 0; mov.u32 %r2, 32;
        L: setp.ge.s32 %p2, %t, %r2; @%p2 bra S; shl.b32 %r5, %r2, 2; add.s32 %r5, %r4, %r5; ld.shared.f32 %f3, [%r5];
        ld.shared.f32 %f4, [%r4]; add.f32 %f4, %f4, %f3; st.shared.f32 [%r4], %f4; S: bar.sync 0; shr.u32 %r2, %r2, 1;
        setp.ne.s32 %p3, %r2, 0; @%p3 bra L; mov.u32 %r6, smem; ld.shared.f32 %f1, [%r6];"""),
    "shared memory rewritten in a loop": Small(f"""{NOF} {NONE} mov.u32 %r2, 0; {shared('%r4', '%t')} sub.s32 %r5, 63, %t;
        {shared('%r6', '%r5')} L: shl.b32 %r3, %r2, 6; add.s32 %r3, %r3, %t; {ldx('%f2', '%r3')} st.shared.f32 [%r4], %f2;
        bar.sync 0; ld.shared.f32 %f3, [%r6]; add.f32 %f1, %f1, %f3; bar.sync 0; add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %n;
        @%p2 bra L; ld.shared.f32 %f3, [%r6]; mul.f32 %f3, %f3, 0f41200000; add.f32 %f1, %f1, %f3;""", least=1, most=60,
                                                sizes=(1, 2, 5)),
    "shuffles": Small(f"""{X} mov.f32 %f1, %f2; shfl.sync.bfly.b32 %f3, %f2, 16, 31, -1; add.f32 %f1, %f1, %f3;
        shfl.sync.down.b32 %f3|%p1, %f2, 5, 31, -1; @%p1 add.f32 %f1, %f1, %f3;
        shfl.sync.up.b32 %f3|%p1, %f2, 3, 0, -1; @%p1 mul.f32 %f1, %f1, %f3; mad.lo.s32 %r2, %t, 5, %n;
        shfl.sync.idx.b32 %r1, %r2, 7, 31, -1;"""),
    "shuffles in segments": Small(f"""{X} mov.u32 %r1, 0; shfl.sync.down.b32 %f3|%p1, %f2, 3, 0x1807, -1;
        selp.f32 %f1, %f3, 0f00000000, %p1; shfl.sync.up.b32 %f3|%p2, %f2, 2, 0x1800, -1; @%p2 add.f32 %f1, %f1, %f3;
        shfl.sync.bfly.b32 %f3|%p3, %f2, 9, 0x100F, -1; @%p3 add.f32 %f1, %f1, %f3;
        shfl.sync.idx.b32 %f3|%p4, %f2, 6, 0x1007, -1; @!%p4 add.f32 %f1, %f1, %f3; @%p2 add.s32 %r1, %r1, 1;
        @%p3 add.s32 %r1, %r1, 2; @%p4 add.s32 %r1, %r1, 4;"""),
    "shuffled choices": Small(f"""{X} setp.lt.s32 %p1, %g, %n; selp.f32 %f3, %f2, 0f3F800000, %p1;
        shfl.sync.bfly.b32 %f4, %f3, 3, 31, -1; setp.lt.s32 %p2, %t, %n; selp.f32 %f1, %f4, %f3, %p2;
        selp.u32 %r2, %t, %n, %p1; shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;"""),
    "votes": Small(f"""{NOF} setp.lt.s32 %p1, %t, 37; vote.sync.ballot.b32 %r1, %p1, -1; vote.sync.any.pred %p2, %p1, -1;
        vote.sync.all.pred %p3, %p1, -1; @%p2 add.s32 %r1, %r1, 1; @%p3 add.s32 %r1, %r1, 2;"""),
    "a shuffle in a loop": Small(f"""{NOF} {NONE} mov.u32 %r2, 0; L: add.s32 %r3, %r2, %t; {ldx('%f2', '%r3')}
        shfl.sync.bfly.b32 %f3, %f2, 1, 31, -1; add.f32 %f1, %f1, %f3; add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %n;
        @%p2 bra L; shfl.sync.bfly.b32 %f3, %f1, 2, 31, -1; add.f32 %f1, %f1, %f3;""", least=1, most=100),
    # ------------------------------------------------------------------ integers
    "merged indices": Small(f"""setp.gt.s32 %p1, %n, 7; @%p1 bra A; add.s32 %r2, %t, %n; bra B; A: mov.u32 %r2, %t;
        B: {ldx('%f1', '%r2')} mov.u32 %r1, %r2; setp.eq.s32 %p2, %n, 5; add.s32 %r3, %n, -5; mad.lo.s32 %r3, %r3, 3, %t;
        @%p2 mov.u32 %r3, %t; add.s32 %r1, %r1, %r3; setp.lt.s32 %p3, %g, %n; selp.u32 %r4, %g, %n, %p3;
        add.s32 %r1, %r1, %r4;"""),
    "division": Small(f"""{NOF} add.s32 %r2, %g, %n; div.u32 %r3, %r2, 3; rem.u32 %r4, %r2, 7; div.s32 %r5, %r2, %n;
        rem.s32 %r6, %r2, %n; mad.lo.s32 %r1, %r3, 3, %r4; mad.lo.s32 %r1, %r5, 1000, %r1; sub.s32 %r1, %r1, %r6;
        div.s32 %r7, %r3, 4; div.u32 %r8, %r7, %n; add.s32 %r1, %r1, %r8;""", least=1),
    "division by multiplication": Small(f"""{NOF} add.s32 %r2, %g, %n; mul.hi.u32 %r3, %r2, 0xAAAAAAAB; shr.u32 %r3, %r3, 1;
        mul.lo.s32 %r4, %r3, 3; sub.s32 %r5, %r2, %r4; mul.wide.u32 %d3, %r2, 0xCCCCCCCD; shr.u64 %d4, %d3, 34;
        cvt.u32.u64 %r6, %d4; mad.lo.s32 %r1, %r6, 100, %r5; mul.hi.s32 %r7, %r2, 0x55555556; add.s32 %r1, %r1, %r7;
        shr.u32 %r8, %r2, 31; add.s32 %r1, %r1, %r8;"""),
    "a wrong magic number": Small(f"""{NOF} add.s32 %r2, %g, %n; shl.b32 %r2, %r2, 8; mul.hi.u32 %r3, %r2, 0x55555000;
        mul.wide.u32 %d3, %r2, 0x24924000; shr.u64 %d4, %d3, 32; cvt.u32.u64 %r6, %d4; add.s32 %r1, %r3, %r6;"""),
    "shifts and masks": Small(f"""{NOF} add.s32 %r2, %g, %n; shl.b32 %r3, %r2, 5; or.b32 %r3, %r3, 9; xor.b32 %r3, %r3, 22;
        and.b32 %r4, %r2, 31; and.b32 %r5, %r2, -8; shr.u32 %r6, %r2, 3; sub.s32 %r7, %t, %n; shr.s32 %r8, %r7, 2;
        bfe.u32 %r9, %r2, 2, 4; and.b32 %r10, %r2, 0x38; not.b32 %r11, %r2; shl.b32 %r12, %n, 6; or.b32 %r12, %r12, %t;
        add.s32 %r1, %r3, %r4; mad.lo.s32 %r1, %r1, 3, %r5; mad.lo.s32 %r1, %r1, 3, %r6; mad.lo.s32 %r1, %r1, 3, %r8;
        mad.lo.s32 %r1, %r1, 3, %r9; mad.lo.s32 %r1, %r1, 3, %r10; mad.lo.s32 %r1, %r1, 3, %r11; add.s32 %r1, %r1, %r12;
        shr.u32 %r13, %r2, 40; shl.b32 %r14, %r2, 33; add.s32 %r1, %r1, %r13; add.s32 %r1, %r1, %r14;""",
                              most=300),
    "bit fields": Small(f"""{NOF} add.s32 %r2, %g, %n; bfi.b32 %r3, %r2, %t, 8, 4; bfe.s32 %r4, %r2, 1, 3; sub.s32 %r5, %t, %n;
        bfe.s32 %r6, %r5, 0, 6; bfe.u32 %r7, %r5, 28, 4; mad.lo.s32 %r1, %r3, 7, %r4; mad.lo.s32 %r1, %r1, 3, %r6;
        add.s32 %r1, %r1, %r7;"""),
    "signs": Small(f"""{NOF} sub.s32 %r2, %t, %n; abs.s32 %r3, %r2; neg.s32 %r4, %r2; min.s32 %r5, %r2, 3; max.s32 %r6, %r2, -4;
        mul.lo.s32 %r7, %r2, %r2; mad.lo.s32 %r1, %r3, 3, %r4; mad.lo.s32 %r1, %r5, 5, %r1; mad.lo.s32 %r1, %r6, 7, %r1;
        add.s32 %r1, %r1, %r7; setp.lt.s32 %p1, %r2, 0; selp.u32 %r8, 1000, 0, %p1; add.s32 %r1, %r1, %r8;
        slct.s32.s32 %r9, 5, 6, %r2; add.s32 %r1, %r1, %r9;"""),
    "min and max of unsigned": Small(f"""{NOF} add.s32 %r2, %t, %n; min.u32 %r3, %r2, 20; max.u32 %r4, %r2, %g; mad.lo.s32 %r1, %r3,
        100, %r4; min.s32 %r5, %r2, %g; add.s32 %r1, %r1, %r5;"""),
    "a sign that matters in an unsigned comparison": Small(f"""{NOF} {NONE} sub.s32 %r2, %t, %n; setp.lt.u32 %p1, %r2, 64;
        @%p1 mov.u32 %r1, 1;""", sizes=(5, 70), least=1),
    "division of a negative number": Small(f"""{NOF} sub.s32 %r2, %t, %n; div.s32 %r1, %r2, 3;""", sizes=(), flagged=(5,), least=1),
    "wrap-around of a product": Small(f"""{NOF} mul.lo.s32 %r2, %n, %n; mul.lo.s32 %r2, %r2, 1000; setp.gt.s32 %p1, %r2, 0;
        selp.u32 %r1, 1, 2, %p1;""", sizes=(1, 9), flagged=(1700,)),
    "wrap-around that cancels": Small(f"""{NOF} mul.lo.s32 %r2, %n, 0x10000000; mul.lo.s32 %r3, %r2, 16; add.s32 %r1, %r3, %t;
        add.s32 %r4, %n, 0x7FFFFFF0; sub.s32 %r4, %r4, 0x7FFFFFF0; add.s32 %r1, %r1, %r4;""", sizes=(1, 9, 70)),
    "wrap-around of an index": Small(f"""mul.lo.s32 %r2, %n, 0x00400000; shr.s32 %r3, %r2, 22; add.s32 %r3, %r3, %t;
        {ldx('%f1', '%r3')} mov.u32 %r1, %r3;""", sizes=(1, 9), flagged=(600,)),
    "sixty-four bits": Small("""mad.wide.s32 %d3, %t, 4, %x; add.s64 %d3, %d3, 400; cvt.s64.s32 %d4, %n; shl.b64 %d4, %d4, 2;
        add.s64 %d5, %d3, %d4; ld.global.f32 %f1, [%d5+-396]; cvt.u64.u32 %d6, %g; mul.lo.s64 %d7, %d6, 3000000007;
        shr.u64 %d8, %d7, 20; cvt.u32.u64 %r1, %d8; sub.s64 %d9, %d4, %d6; cvt.u32.u64 %r2, %d9; add.s32 %r1, %r1, %r2;
        min.s64 %d10, %d4, %d6; cvt.u32.u64 %r3, %d10; add.s32 %r1, %r1, %r3;"""),
    "halves of a register": Small(f"""{NOF} add.s32 %r2, %g, %n; mad.lo.s32 %r2, %r2, 70000, 5; mov.b32 {{%h1, %h2}}, %r2;
        mov.b32 %r3, {{%h1, %h2}}; mov.b64 %d3, {{%r2, %r3}}; mov.b64 {{%r4, %r5}}, %d3; add.s32 %r1, %r4, %r5;
        cvt.u32.u16 %r6, %h2; add.s32 %r1, %r1, %r6;""", most=1000),
    "sixteen bits": Small(f"""{NOF} add.s32 %r2, %t, 300; cvt.u16.u32 %h1, %r2; add.u16 %h2, %h1, 65000; mul.wide.u16 %r3, %h1, %h1;
        cvt.u32.u16 %r4, %h2; cvt.s32.s16 %r5, %h2; mad.lo.s32 %r1, %r3, 1, %r4; sub.s32 %r1, %r1, %r5;
        cvt.u8.u32 %h3, %r2; cvt.u32.u16 %r6, %h3; add.s32 %r1, %r1, %r6;"""),
    "special registers": Small(f"""{NOF} mov.u32 %r2, %laneid; shr.u32 %r3, %t, 5; mov.u32 %r4, %lanemask_lt;
        mov.u32 %r5, %ntid.x; mov.u32 %r6, %nctaid.x; mad.lo.s32 %r1, %r2, 3, %r3; add.s32 %r1, %r1, %r4;
        mad.lo.s32 %r1, %r5, 7, %r1; mad.lo.s32 %r1, %r6, 11, %r1; popc.b32 %r7, %r4; add.s32 %r1, %r1, %r7;
        mov.u32 %r8, %lanemask_ge; xor.b32 %r1, %r1, %r8;"""),
    "constants by lane": Small(f"""{NOF} mul.lo.s32 %r2, %t, 0x01010101; xor.b32 %r3, %r2, 0x55AA55AA; shr.s32 %r4, %r3, 7;
        prmt.b32 %r5, %r3, %r2, 0x3150; lop3.b32 %r6, %r3, %r4, %r5, 0x96; mul.hi.s32 %r7, %r6, %r3; clz.b32 %r8, %r6;
        shl.b32 %r9, %r3, %t; rem.s32 %r10, %r3, 17; add.s32 %r1, %r6, %r7; add.s32 %r1, %r1, %r8; add.s32 %r1, %r1, %r9;
        add.s32 %r1, %r1, %r10;""", sizes=(1,)),
    # ------------------------------------------------------------------ memory
    "loaded indices": Small(f"""{ldz('%r2', '%g')} {ldx('%f1', '%r2')} shr.u32 %r3, %r2, 4; add.s32 %r1, %r3, %n;
        setp.lt.s32 %p1, %r2, 2000; @%p1 add.s32 %r1, %r1, 5;"""),
    "vectors": Small(f"""shl.b32 %r2, %t, 2; add.s32 %r2, %r2, %n; and.b32 %r2, %r2, -4; mul.wide.s32 %d3, %r2, 4; add.s64 %d4, %x, %d3;
        ld.global.v4.f32 {{%f2, %f3, %f4, %f5}}, [%d4]; fma.rn.f32 %f1, %f2, %f3, %f4; sub.f32 %f1, %f1, %f5; {NONE}
        shl.b32 %r3, %g, 1; mul.wide.s32 %d5, %r3, 4; add.s64 %d6, %y, %d5; st.global.v2.f32 [%d6+2048], {{%f1, %f5}};
        add.s64 %d7, %w, %d5; st.global.v2.u32 [%d7], {{%r2, %n}};""", tail=False),
    "packed loads": Small("""shl.b32 %r2, %t, 1; mul.wide.s32 %d3, %r2, 4; add.s64 %d4, %x, %d3; ld.global.b64 %d5, [%d4];
        mov.b64 {%r3, %r4}, %d5; mov.b32 %f2, %r3; mov.b32 %f3, %r4; sub.f32 %f1, %f2, %f3; mov.u32 %r1, 0;"""),
    "local memory": Small(f"""{X} mov.u64 %d3, depot; st.local.f32 [%d3], %f2; st.local.u32 [%d3+4], %n; add.f32 %f3, %f2, %f2;
        setp.lt.s32 %p1, %g, %n; @%p1 st.local.f32 [%d3], %f3; ld.local.f32 %f1, [%d3]; ld.local.u32 %r1, [%d3+4];"""),
    "read back what was stored": Small(f"""{X} mul.wide.s32 %d1, %g, 4; add.s64 %d3, %y, %d1; add.f32 %f3, %f2, %f2;
        st.global.f32 [%d3], %f3; ld.global.f32 %f4, [%d3]; mul.f32 %f1, %f4, %f2; mov.u32 %r1, 0;"""),
    # ------------------------------------------------------------------ floats
    "float operations": Small(f"""{X} abs.f32 %f3, %f2; add.f32 %f3, %f3, 0f3F800000; sqrt.rn.f32 %f4, %f3; rcp.rn.f32 %f5, %f4;
        rsqrt.approx.f32 %f6, %f3; ex2.approx.f32 %f7, %f2; lg2.approx.f32 %f8, %f3; div.rn.f32 %f9, %f2, %f3;
        min.f32 %f10, %f2, 0f3F000000; max.f32 %f11, %f2, %f10; neg.f32 %f12, %f11; add.sat.f32 %f13, %f2, %f12;
        add.f32 %f1, %f4, %f5; add.f32 %f1, %f1, %f6; fma.rn.f32 %f1, %f7, %f8, %f1; add.f32 %f1, %f1, %f9;
        fma.rn.f32 %f1, %f11, %f12, %f1; add.f32 %f1, %f1, %f13; tanh.approx.f32 %f14, %f2; add.f32 %f1, %f1, %f14;
        cvt.rni.f32.f32 %f15, %f2; cvt.rzi.f32.f32 %f16, %f2; cvt.rmi.f32.f32 %f17, %f2; fma.rn.f32 %f1, %f15, %f16, %f1;
        add.f32 %f1, %f1, %f17; and.b32 %r2, %t, 0; mov.u32 %r1, %r2;""", sizes=(1, 5)),
    "numbers from integers": Small(f"""{NONE} sub.s32 %r2, %t, %n; cvt.rn.f32.s32 %f1, %r2; cvt.rn.f32.u32 %f2, %g;
        fma.rn.f32 %f1, %f1, %f2, %f1; mov.b32 %f3, 0x3FC00000; mul.f32 %f1, %f1, %f3; setp.gt.s32 %p1, %n, 4;
        selp.b32 %r3, 0x3F800000, 0x40000000, %p1; mov.b32 %f4, %r3; add.f32 %f1, %f1, %f4;"""),
    "bits of floats": Small(f"""{X} mov.b32 %r2, %f2; and.b32 %r3, %r2, 0x7FFFFFFF; mov.b32 %f3, %r3; xor.b32 %r4, %r2, 0x80000000;
        mov.b32 %f4, %r4; fma.rn.f32 %f1, %f3, %f4, %f3; {NONE}"""),
    "chosen nested": Small(f"""{X} {NONE} setp.lt.s32 %p1, %g, %n; setp.lt.s32 %p2, %t, 30; selp.f32 %f3, %f2, 0f00000000, %p1;
        selp.f32 %f4, %f3, 0f00000000, %p2; add.f32 %f5, %f2, %f4; selp.f32 %f6, %f5, %f2, %p1; selp.f32 %f7, 0f00000000, %f6, %p2;
        add.f32 %f1, %f4, %f6; add.f32 %f1, %f1, %f7; max.f32 %f8, %f2, %f7; selp.f32 %f9, %f8, %f2, %p1; add.f32 %f1, %f1, %f9;"""),
}
