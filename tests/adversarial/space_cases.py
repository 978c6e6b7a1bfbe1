"""Attacks through state spaces, names and registers: one memory's address used in another, variables named like buffers,
registers that only some lanes ever set.
"""

from __future__ import annotations

from attempt import Case, Family, buffer

_IO = [buffer("x", "ptr_in", "f32", "32"), buffer("y", "ptr_out", "f32", "32")]
_LAUNCH = {"params": _IO, "sizes": {}, "grid": ["1"], "block": [32]}
_MEMORY = ".shared .align 16 .b8 s[128]; .local .align 16 .b8 frame[16];"

# ---------------------------------------------------------------------- y = x in one warp
WARP = Family(
    (("u64", "px"), ("u64", "py")), _LAUNCH,
    """
    ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py]; mov.u32 %r3, %tid.x; mul.wide.u32 %rd3, %r3, 4;
    add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; mov.f32 %f0, 0f00000000; shl.b32 %r5, %r3, 2; mov.u32 %r6, s; add.s32 %r5, %r5, %r6;
    setp.lt.u32 %p1, %r3, 16; ld.global.f32 %f1, [%rd4]; mov.u64 %rd9, frame; cvta.local.u64 %rd10, %rd9;
    cvt.u64.u32 %rd12, %r5; cvta.shared.u64 %rd12, %rd12;
    """,
    "x", "y=x * 1.0", memory=_MEMORY,
)
_OUT = " st.global.f32 [%rd5], %f2;"
_TWICE = """mov.u32 %r10, 0; selp.u32 %r11, 2, 1, %p1;
    L: setp.eq.u32 %p2, %r10, 1; @!%p2 bra S; {set}
    S: add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, %r11; @%p3 bra L; """
_SPACES = [
    Case("local memory by its generic address", True, "st.f32 [%rd10], %f1; ld.local.f32 %f2, [%rd9];" + _OUT),
    Case("shared memory by its generic address", True, "st.f32 [%rd12], %f1; ld.shared.f32 %f2, [%r5];" + _OUT),
    Case("local memory through a global pointer", False, "st.local.f32 [%rd9], %f1; ld.local.f32 %f2, [%rd1];" + _OUT),
    Case("local memory through its generic address", False,
         "st.local.f32 [%rd9], %f1; ld.local.f32 %f2, [%rd10];" + _OUT),
    Case("shared memory read through a global pointer", False,
         "st.shared.f32 [%r5], %f1; ld.shared.f32 %f2, [%rd4];" + _OUT),
    Case("shared memory written through a global pointer", False,
         "st.shared.f32 [%rd4], %f1; ld.shared.f32 %f2, [%r5];" + _OUT),
    Case("some lanes store to local memory, others elsewhere", False, """st.local.f32 [%rd9], %f0;
         selp.b64 %rd11, %rd10, %rd12, %p1; st.f32 [%rd11], %f1; ld.local.f32 %f2, [%rd9];""" + _OUT),
]
_REGISTERS = [
    Case("register set in every iteration", True, _TWICE.format(set="") + "mov.f32 %f2, %f1;" + _OUT),
    Case("register set after lanes have left the loop", False, _TWICE.format(set="mov.f32 %f2, %f1;") + _OUT),
    Case("integer set after lanes have left the loop", False,
         _TWICE.format(set="mov.b32 %r12, %f1;") + "st.global.b32 [%rd5], %r12;"),
    Case("predicate set after lanes have left the loop", False,
         _TWICE.format(set="setp.eq.u32 %p5, %r10, 1;") + "selp.f32 %f2, %f1, %f0, %p5;" + _OUT),
]
_TWO = ".shared .align 4 .b8 s[128]; .shared .align 4 .b8 t[128]; .local .align 16 .b8 frame[16]; .local .align 16 .b8 g[16];"
_LAYOUT = [
    Case("two shared arrays", True, """mov.u32 %r7, t; shl.b32 %r8, %r3, 2; add.s32 %r8, %r8, %r7; st.shared.f32 [%r8], %f1;
         ld.shared.f32 %f2, [%r8];""" + _OUT, memory=_TWO),
    Case("one shared array reached from the other", False, """mov.u32 %r7, t; shl.b32 %r8, %r3, 2; add.s32 %r8, %r8, %r7;
         st.shared.f32 [%r5+128], %f1; ld.shared.f32 %f2, [%r8];""" + _OUT, memory=_TWO),
    Case("the distance of shared arrays", False, """mov.u32 %r7, t; sub.s32 %r7, %r7, %r6; setp.eq.s32 %p2, %r7, 128;
         selp.f32 %f2, %f1, %f0, %p2;""" + _OUT, memory=_TWO),
    Case("the place of a shared array", False,
         "setp.eq.s32 %p2, %r6, 0; selp.f32 %f2, %f1, %f0, %p2;" + _OUT),
    Case("shared memory by number", False,
         "shl.b32 %r8, %r3, 2; st.shared.f32 [%r8], %f1; ld.shared.f32 %f2, [%r8];" + _OUT),
    Case("one local array reached from the other", False, """mov.u64 %rd13, g; st.local.f32 [%rd9+16], %f1;
         ld.local.f32 %f2, [%rd13];""" + _OUT, memory=_TWO),
]
SPACES = [*_SPACES, *_REGISTERS, *_LAYOUT]

# ---------------------------------------------------------------------- parameters named like the launch's buffers
NAMES = Family(
    (("u64", "x"), ("u64", "y")), _LAUNCH,
    """
    mov.u32 %r3, %tid.x; mul.wide.u32 %rd3, %r3, 4; ld.param.u64 %rd2, [y]; add.s64 %rd5, %rd2, %rd3;
    ld.param.u64 %rd1, [x];
    """,
    "x", "y=x * 1.0",
)
_COPY = " add.s64 %rd4, %rd1, %rd3; ld.global.f32 %f2, [%rd4];" + _OUT
NAMED = [
    Case("the pointer in a parameter", True, _COPY),
    Case("the address of a parameter", False, "mov.u64 %rd1, x;" + _COPY),
]

# ---------------------------------------------------------------------- a buffer named like the shared window
WINDOW = Family(
    (("u64", "px"), ("u64", "py")), {**_LAUNCH, "params": [buffer("window", "ptr_in", "f32", "32"), _IO[1]]},
    """
    mov.u32 %r3, %tid.x; mul.wide.u32 %rd3, %r3, 4; ld.param.u64 %rd2, [py]; add.s64 %rd5, %rd2, %rd3;
    ld.param.u64 %rd1, [px];
    """,
    "window", "y=window * 1.0", memory=_MEMORY,
)
WINDOWS = [
    Case("a buffer named window", True, _COPY),
    Case("the window of shared memory", False, "mov.u64 %rd1, s; cvta.shared.u64 %rd1, %rd1;" + _COPY),
]
