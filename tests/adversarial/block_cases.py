"""Attacks on reductions in one block, on shared memory, barriers, shuffles and asynchronous copies."""

from __future__ import annotations

from attempt import Case, Family, buffer, scalar

# ---------------------------------------------------------------------- a warp sums a vector
SUM = Family(
    (("u64", "px"), ("u64", "py"), ("u32", "pn")),
    {"params": [buffer("x", "ptr_in", "f32", "n"), buffer("y", "ptr_out", "f32", "1"), scalar("n")], "sizes": {"n": [7]},
     "preconditions": ["n >= 1", "n <= 2**20"], "grid": ["1"], "block": [32]},
    """
    ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py]; ld.param.u32 %r1, [pn]; mov.u32 %r3, %tid.x;
    mov.u32 %r6, s; shl.b32 %r5, %r3, 2; add.s32 %r5, %r5, %r6; mov.f32 %f1, 0f00000000; mov.f32 %f0, 0f00000000;
    """,
    "x, n", "y=x.sum(keepdims=True)", memory=".shared .align 4 .b8 s[256];",
)
_LOOP = """
    mov.u32 %r4, %r3; setp.ge.s32 %p1, %r4, %r1; @%p1 bra E; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3;
A:  ld.global.f32 %f2, [%rd4]; add.f32 %f1, %f1, %f2; add.s64 %rd4, %rd4, 128; add.s32 %r4, %r4, 32;
    setp.lt.s32 %p1, %r4, %r1; @%p1 bra A;
E:
"""
_STORE = "setp.ne.s32 %p4, %r3, 0; @%p4 bra DONE; st.global.f32 [%rd2], %f1;"
_STEPS = (16, 8, 4, 2, 1)


def _exchange(mode: str, k: int, clamp: int = 31, mask: int = -1) -> str:
    return (f"mov.b32 %r10, %f1; shfl.sync.{mode}.b32 %r11, %r10, {k}, {clamp}, {mask}; mov.b32 %f3, %r11; "
            "add.f32 %f1, %f1, %f3;\n")


def _butterfly(*steps: int) -> str:
    return "".join(_exchange("bfly", k) for k in steps)


def _down(*steps: int) -> str:
    return "".join(_exchange("down", k) for k in steps)


def _step(k: int, barrier: str) -> str:
    return (f"setp.ge.u32 %p6, %r3, {k}; @%p6 bra T{k}; ld.shared.f32 %f4, [%r5]; ld.shared.f32 %f5, [%r5+{4 * k}]; "
            f"add.f32 %f4, %f4, %f5; st.shared.f32 [%r5], %f4;\nT{k}: {barrier}\n")


def _tree(barrier: str = "bar.sync 0;", last: str | None = None) -> str:
    return "".join(_step(k, barrier if k > 1 or last is None else last) for k in _STEPS)


_FILL = _LOOP + "st.shared.f32 [%r5], %f1; bar.sync 0;\n"
_ALL_READ = "ld.shared.f32 %f1, [s];" + _STORE
_ONE_READS = "setp.ne.s32 %p4, %r3, 0; @%p4 bra DONE; ld.shared.f32 %f1, [s]; st.global.f32 [%rd2], %f1;"

SHUFFLES = [
    Case("butterfly", True, _LOOP + _butterfly(*_STEPS) + _STORE),
    Case("butterfly over another basis", True, _LOOP + _butterfly(17, 24, 4, 2, 1) + _STORE),
    Case("butterfly with a step missing", False, _LOOP + _butterfly(16, 8, 4, 2) + _STORE),
    Case("butterfly with a step twice", False, _LOOP + _butterfly(16, 8, 4, 2, 2) + _STORE),
    Case("butterfly with a dependent step", False, _LOOP + _butterfly(16, 8, 24, 2, 1) + _STORE),
    Case("downwards", True, _LOOP + _down(*_STEPS) + _STORE),
    Case("downwards, lane 1 stores", False, _LOOP + _down(*_STEPS) + _STORE.replace("%r3, 0", "%r3, 1")),
    Case("downwards, narrow clamp", False, _LOOP + _exchange("down", 16, 15) + _down(8, 4, 2, 1) + _STORE),
    Case("downwards, narrow segment", False, _LOOP + _exchange("down", 16, 0x100F) + _down(8, 4, 2, 1) + _STORE),
    Case("member mask of one lane", False, _LOOP + _exchange("bfly", 16, 31, 1) + _butterfly(8, 4, 2, 1) + _STORE),
    Case("member mask without lane 31", False, _LOOP + _exchange("bfly", 16, 31, 0x7FFFFFFF) + _butterfly(8, 4, 2, 1) + _STORE),
    Case("shuffle by half of the warp", False,
         _LOOP + "setp.ge.s32 %p5, %r3, 16; @%p5 bra F;\n" + _butterfly(16) + "F:" + _butterfly(8, 4, 2, 1) + _STORE),
    Case("shuffle in a loop that lanes leave", False,
         _LOOP.replace("add.f32 %f1, %f1, %f2;", "mov.b32 %r10, %f2; shfl.sync.bfly.b32 %r11, %r10, 1, 31, -1; "
                       "mov.b32 %f2, %r11; add.f32 %f1, %f1, %f2;") + _butterfly(*_STEPS) + _STORE),
]
LOOPS = [
    Case("counter twice as fast", False, _LOOP.replace("%r4, 32", "%r4, 64") + _butterfly(*_STEPS) + _STORE),
    Case("pointer twice as fast", False, _LOOP.replace("%rd4, 128", "%rd4, 256") + _butterfly(*_STEPS) + _STORE),
    Case("bound included", False, _LOOP.replace("lt.s32", "le.s32") + _butterfly(*_STEPS) + _STORE),
    Case("unequal bound that lanes miss", False, _LOOP.replace("lt.s32", "ne.s32") + _butterfly(*_STEPS) + _STORE),
    Case("body before the test", False, _LOOP.replace("@%p1 bra E;", "") + _butterfly(*_STEPS) + _STORE),
    Case("initial value not zero", False, "mov.f32 %f1, 0f3F800000;" + _LOOP + _butterfly(*_STEPS) + _STORE),
    Case("last tile left out", False, "sub.s32 %r1, %r1, 31;" + _LOOP + _butterfly(*_STEPS) + _STORE),
    Case("accumulator not initialised", False, _LOOP.replace("%f1, %f1, %f2", "%f9, %f9, %f2") + "mov.f32 %f1, %f9;"
         + _butterfly(*_STEPS) + _STORE),
]
TREES = [
    Case("tree", True, _FILL + _tree() + _ALL_READ),
    Case("tree with warp barriers", True, _FILL + _tree("bar.warp.sync -1;") + _ALL_READ),
    Case("tree on another barrier", True, _FILL + _tree("bar.sync 3;") + _ALL_READ),
    Case("tree whose last value only thread 0 reads", True, _FILL + _tree(last="") + _ONE_READS),
    Case("tree whose last value all read at once", False, _FILL + _tree(last="") + _ALL_READ),
    Case("tree that relies on lock-step", False, _FILL + _tree("") + _ALL_READ),
    Case("tree with fences only", False, _FILL + _tree("membar.cta;") + _ALL_READ),
    Case("tree without a barrier after the fill", False, _FILL.replace("bar.sync 0;", "") + _tree() + _ALL_READ),
    Case("tree with warp barriers of 31 lanes", False, _FILL + _tree("bar.warp.sync 0x7fffffff;") + _ALL_READ),
    Case("tree with the barrier inside the branch", False,
         _FILL + "".join(_step(k, "").replace(f"T{k}:", f"bar.sync 0;\nT{k}:") for k in _STEPS) + _ALL_READ),
    Case("tree with two half barriers", False, _FILL + _tree(
        "setp.lt.u32 %p7, %r3, 16; @%p7 bar.sync 1; @!%p7 bar.sync 2;") + _ALL_READ),
    Case("tree on a barrier that does not exist", False, _FILL + _tree("bar.sync 17;") + _ALL_READ),
    Case("tree with arrivals only", False, _FILL + _tree("bar.arrive 0, 32;") + _ALL_READ),
    Case("tree that adds its neighbour", False, _FILL + _tree().replace("[%r5+64]", "[%r5+60]") + _ALL_READ),
    Case("tree on a half-filled array", False,
         _LOOP + "setp.ge.u32 %p6, %r3, 16; @%p6 bra U; st.shared.f32 [%r5], %f1;\nU: bar.sync 0;\n" + _tree() + _ALL_READ),
    Case("tree in an array three bytes short", False, _FILL + _tree() + _ALL_READ, memory=".shared .align 4 .b8 s[125];"),
    Case("tree in an array that just fits", True, _FILL + _tree() + _ALL_READ, memory=".shared .align 4 .b8 s[128];"),
    Case("misaligned shared array", False, _FILL + _tree() + _ALL_READ,
         memory=".shared .align 1 .b8 c[2]; .shared .align 2 .b8 s[256];"),
]

# ---------------------------------------------------------------------- rows of 32 go through shared memory
ROWS = Family(
    (("u64", "px"), ("u64", "py"), ("u32", "pn")),
    {"params": [buffer("x", "ptr_in", "f32", "n", "32"), buffer("y", "ptr_out", "f32", "n", "32"), scalar("n")],
     "sizes": {"n": [3]}, "preconditions": ["n >= 1", "n <= 1000"], "grid": ["1"], "block": [32]},
    """
    ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py]; ld.param.u32 %r1, [pn]; mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; mov.u32 %r6, s; shl.b32 %r7, %r3, 2;
    add.s32 %r5, %r7, %r6; xor.b32 %r8, %r7, 124; add.s32 %r8, %r8, %r6; mov.u32 %r9, 0;
    """,
    "x, n", "y=x[:, ::-1] * 1.0", memory=".shared .align 16 .b8 s[1024];",
)
_SAME = "y=x * 1.0"
_REVERSED = " ld.shared.f32 %f1, [%r8]; st.global.f32 [%rd5], %f1; "
_OWN = " ld.shared.f32 %f1, [%r5]; st.global.f32 [%rd5], %f1; "
_COPY = " cp.async.ca.shared.global [%r5], [%rd4], 4; "
_WAIT = " cp.async.commit_group; cp.async.wait_group 0; "
_BARRIER = " bar.sync 0; "
_THROUGH = " ld.global.f32 %f2, [%rd4]; st.shared.f32 [%r5], %f2; "


def _rows(body: str, before: str = "") -> str:
    return (f"{before}\nA: {body} add.s64 %rd4, %rd4, 128; add.s64 %rd5, %rd5, 128; add.s32 %r9, %r9, 1; "
            "setp.lt.s32 %p1, %r9, %r1; @%p1 bra A;")


_AHEAD = "add.s32 %r10, %r9, 1; setp.lt.s32 %p2, %r10, %r1; st.global.f32 [%rd5], %f5; @%p2 ld.global.f32 %f5, [%rd4+128];"
_FIRST = "ld.global.f32 %f5, [%rd4];"
_STATE = "mul.lo.s32 %r20, %r20, 3; and.b32 %r20, %r20, 255;"

TILES = [
    Case("tile", True, _rows(_THROUGH + _BARRIER + _REVERSED + _BARRIER)),
    Case("tile without the second barrier", False, _rows(_THROUGH + _BARRIER + _REVERSED)),
    Case("tile without the first barrier", False, _rows(_THROUGH + _REVERSED + _BARRIER)),
    Case("tile of the row before", False, _rows(_REVERSED + _BARRIER + _THROUGH + _BARRIER, _THROUGH + _BARRIER)),
    Case("tile written by half of the threads", False,
         _rows("setp.ge.u32 %p3, %r3, 16; @%p3 bra H;" + _THROUGH + "\nH:" + _BARRIER + _REVERSED + _BARRIER)),
    Case("barrier at some sizes", False,
         _rows(f"setp.lt.s32 %p3, %r1, 500; {_THROUGH} @%p3 bar.sync 0; {_REVERSED} {_BARRIER}")),
    Case("barrier at all sizes admitted", True,
         _rows(f"setp.lt.s32 %p3, %r1, 5000; {_THROUGH} @%p3 bar.sync 0; {_REVERSED} {_BARRIER}")),
    Case("barrier branched around at some sizes", False,
         _rows(f"setp.lt.s32 %p3, %r1, 500; {_THROUGH} @!%p3 bra Z; bar.sync 0;\nZ: {_REVERSED} {_BARRIER}")),
    Case("barrier in every other iteration", False, _rows(
        f"and.b32 %r20, %r9, 1; setp.eq.s32 %p3, %r20, 0; {_THROUGH} @%p3 bar.sync 0; {_REVERSED} {_BARRIER}")),
    Case("barrier by a value all threads read", False, _rows(
        f"ld.global.f32 %f9, [%rd1]; setp.gt.f32 %p3, %f9, 0f00000000; {_THROUGH} @%p3 bar.sync 0; {_REVERSED} {_BARRIER}")),
    Case("warp barrier at some sizes", False,
         _rows(f"setp.lt.s32 %p3, %r1, 500; {_THROUGH} @%p3 bar.warp.sync -1; {_REVERSED} {_BARRIER}")),
    Case("row stored at some sizes", False, _rows(
        "setp.lt.s32 %p3, %r1, 500; ld.global.f32 %f2, [%rd4]; st.shared.f32 [%r5], 0f00000000; "
        f"@%p3 st.shared.f32 [%r5], %f2; {_BARRIER} {_REVERSED} {_BARRIER}")),
    Case("one value stored by all", True, _rows(
        "ld.global.f32 %f2, [%rd4]; st.shared.f32 [s], 0f3F800000; bar.sync 0; ld.shared.f32 %f3, [s]; "
        "mul.f32 %f1, %f2, %f3; st.global.f32 [%rd5], %f1; bar.sync 0;"), _SAME),
    Case("one value stored by all and read at once", False, _rows(
        "ld.global.f32 %f2, [%rd4]; st.shared.f32 [s], 0f3F800000; ld.shared.f32 %f3, [s]; mul.f32 %f1, %f2, %f3; "
        "st.global.f32 [%rd5], %f1; bar.sync 0;"), _SAME),
    Case("different values stored by all", False, _rows(
        "ld.global.f32 %f2, [%rd4]; st.shared.f32 [s], %f2; bar.sync 0; ld.shared.f32 %f3, [s]; "
        "st.global.f32 [%rd5], %f3; bar.sync 0;"), "y=x[:, 31:] * np.ones((1, 32))"),
    Case("two tiles in turn, the wrong one read", False, _rows(
        "and.b32 %r20, %r9, 1; shl.b32 %r20, %r20, 7; add.s32 %r21, %r5, %r20; ld.global.f32 %f2, [%rd4]; "
        f"st.shared.f32 [%r21], %f2; bar.sync 0; {_REVERSED}")),
    Case("difference of loop-carried integers of two lanes", False, "mov.u32 %r20, %r3;" + _rows(
        _STATE + "shfl.sync.bfly.b32 %r21, %r20, 1, 31, -1; sub.s32 %r22, %r20, %r21; cvt.rn.f32.s32 %f3, %r22; "
        "ld.global.f32 %f2, [%rd4]; fma.rn.f32 %f2, %f3, %f2, %f2; st.global.f32 [%rd5], %f2;"), _SAME),
    Case("barrier under a loop-carried integer", False, "mov.u32 %r20, %r3;" + _rows(
        _STATE + "setp.eq.s32 %p3, %r20, 9; @%p3 bra B; bar.sync 0;\nB: ld.global.f32 %f2, [%rd4]; "
        "st.global.f32 [%rd5], %f2;"), _SAME),
    Case("value carried in a register", True, _rows(_AHEAD, _FIRST), _SAME),
    Case("value carried, no first load", False, _rows(_AHEAD), _SAME),
    Case("value carried, first value zero", False, _rows(_AHEAD, "mov.f32 %f5, 0f00000000;"), _SAME),
    Case("value carried, loaded too early", False, _rows(
        "add.s32 %r10, %r9, 1; setp.lt.s32 %p2, %r10, %r1; @%p2 ld.global.f32 %f5, [%rd4+128]; st.global.f32 [%rd5], %f5;",
        _FIRST), _SAME),
    Case("value carried, loaded past the end", False, _rows(_AHEAD.replace("@%p2 ld", "ld"), _FIRST), _SAME),
]
COPIES = [
    Case("asynchronous copy", True, _rows(_COPY + _WAIT + _BARRIER + _REVERSED + _BARRIER)),
    Case("own copy needs no barrier", True, _rows(_COPY + _WAIT + _OWN), _SAME),
    Case("copy never waited for", False, _rows(_COPY + _BARRIER + _REVERSED + _BARRIER)),
    Case("own copy never waited for", False, _rows(_COPY + _OWN), _SAME),
    Case("copy committed only", False, _rows(_COPY + "cp.async.commit_group;" + _BARRIER + _REVERSED + _BARRIER)),
    Case("one group too many may be pending", False,
         _rows(_COPY + "cp.async.commit_group; cp.async.wait_group 1;" + _BARRIER + _REVERSED + _BARRIER)),
    Case("waited before the commit", False,
         _rows(_COPY + "cp.async.wait_group 0; cp.async.commit_group;" + _BARRIER + _REVERSED + _BARRIER)),
    Case("copy without a barrier", False, _rows(_COPY + _WAIT + _REVERSED + _BARRIER)),
    Case("barrier before the wait", False, _rows(_COPY + _BARRIER + _WAIT + _REVERSED + _BARRIER)),
    Case("copy into a tile that is still read", False, _rows(_COPY + _WAIT + _BARRIER + _REVERSED)),
    Case("copy overwritten while it runs", False,
         _rows(_COPY + "st.shared.f32 [%r5], 0f3F800000;" + _WAIT + _BARRIER + _REVERSED + _BARRIER), "y=x * 0 + 1.0"),
    Case("two copies into one cell", False, _rows(
        "cp.async.ca.shared.global [%r5], [%rd1], 4;" + _COPY + _WAIT + _BARRIER + _REVERSED + _BARRIER)),
    Case("half of the threads wait", False, _rows(
        _COPY + "cp.async.commit_group; setp.lt.u32 %p3, %r3, 16; @%p3 cp.async.wait_group 0;" + _BARRIER + _REVERSED + _BARRIER)),
    Case("waited for at some sizes", False, _rows(
        _COPY + "cp.async.commit_group; setp.lt.s32 %p3, %r1, 500; @%p3 cp.async.wait_group 0;" + _BARRIER + _REVERSED + _BARRIER)),
    Case("half an element copied", False,
         _rows("cp.async.ca.shared.global [%r5], [%rd4], 4, 2;" + _WAIT + _BARRIER + _REVERSED + _BARRIER)),
]
