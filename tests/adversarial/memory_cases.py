"""Attacks through memory: aliases, read after write, in-place kernels, element types, local memory, empty ranges."""

from __future__ import annotations

from attempt import Case, Family, buffer, scalar

# ---------------------------------------------------------------------- one thread, a scratch buffer, two indices
SCRATCH = Family(
    (("u64", "px"), ("u64", "ps"), ("u64", "py"), ("u32", "pn"), ("u32", "pm"), ("u32", "pk")),
    {"params": [buffer("x", "ptr_in", "f32", "n"), buffer("s", "ptr_inout", "f32", "n", scratch=True),
                buffer("y", "ptr_out", "f32", "1"), scalar("n"), scalar("m"), scalar("k")],
     "sizes": {"n": [5], "m": [1], "k": [2]},
     "preconditions": ["n >= 1", "n <= 1000", "m >= 0", "m < n", "k >= 0", "k < n"], "grid": ["1"], "block": [1]},
    """
    ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [ps]; ld.param.u64 %rd3, [py]; ld.param.u32 %r1, [pn];
    ld.param.u32 %r2, [pm]; ld.param.u32 %r3, [pk]; mul.wide.s32 %rd4, %r2, 4; add.s64 %rd4, %rd4, %rd2;
    mul.wide.s32 %rd5, %r3, 4; add.s64 %rd5, %rd5, %rd2; ld.global.f32 %f1, [%rd1];
    """,
    "x, s, n, m, k", "y=x[0:1]",
)
_APART = ("n >= 1", "n <= 1000", "m >= 0", "m < n", "k > m", "k < n")
_COUNT = "add.s64 %rd6, %rd6, 4; add.s32 %r4, %r4, 1; setp.lt.s32 %p1, %r4, %r1;"
ALIASES = [
    Case("scratch element read back", True, "st.global.f32 [%rd4], %f1; ld.global.f32 %f2, [%rd4]; st.global.f32 [%rd3], %f2;"),
    Case("read back through the non-coherent cache", False,
         "st.global.f32 [%rd4], %f1; ld.global.nc.f32 %f2, [%rd4]; st.global.f32 [%rd3], %f2;"),
    Case("read back after a store that may alias", False, """st.global.f32 [%rd4], %f1; st.global.f32 [%rd5], 0f00000000;
         ld.global.f32 %f2, [%rd4]; st.global.f32 [%rd3], %f2;"""),
    Case("entry value after a store that may alias", False,
         "st.global.f32 [%rd4], %f1; ld.global.f32 %f2, [%rd5]; st.global.f32 [%rd3], %f2;", "y=s[k:k + 1]"),
    Case("entry value after a store elsewhere", True,
         "st.global.f32 [%rd4], %f1; ld.global.f32 %f2, [%rd5]; st.global.f32 [%rd3], %f2;", "y=s[k:k + 1]", pre=_APART),
    Case("one loop fills what another reads", False, f"""
         mov.u32 %r4, 0; mov.u64 %rd6, %rd2;
      A: st.global.f32 [%rd6], %f1; {_COUNT} @%p1 bra A;
         mov.u32 %r4, 0; mov.u64 %rd6, %rd2; mov.f32 %f2, 0f00000000;
      B: ld.global.f32 %f3, [%rd6]; add.f32 %f2, %f2, %f3; {_COUNT} @%p1 bra B;
         st.global.f32 [%rd3], %f2;""", "y=s.sum(keepdims=True)"),
    Case("carried around a loop in memory", False, f"""
         mov.u32 %r4, 0; mov.u64 %rd6, %rd1; mov.f32 %f2, 0f00000000;
      A: ld.global.f32 %f3, [%rd2]; add.f32 %f2, %f2, %f3; ld.global.f32 %f4, [%rd6]; st.global.f32 [%rd2], %f4;
         {_COUNT} @%p1 bra A; st.global.f32 [%rd3], %f2;""", "y=s[0:1] * n"),
    Case("stored in a loop, then read", False, f"""
         mov.u32 %r4, 0; mov.u64 %rd6, %rd2;
      A: st.global.f32 [%rd6], %f1; {_COUNT} @%p1 bra A; ld.global.f32 %f2, [%rd4]; st.global.f32 [%rd3], %f2;""",
         "y=s[m:m + 1]"),
]

# ---------------------------------------------------------------------- y = 2y in place
IN_PLACE = Family(
    (("u64", "py"), ("u32", "pn")),
    {"params": [buffer("y", "ptr_inout", "f32", "n"), scalar("n")], "sizes": {"n": [7]},
     "preconditions": ["n >= 1", "n <= 2**20"], "grid": ["(n + 63) // 64"], "block": [64]},
    """
    ld.param.u64 %rd2, [py]; ld.param.u32 %r1, [pn]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r2, 64, %r3; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd5, %rd2, %rd3; setp.ge.s32 %p1, %r4, %r1;
    @%p1 bra DONE;
    """,
    "y, n", "y=y * 2.0",
)
_DOUBLE = "ld.global.f32 %f1, [%rd5]; add.f32 %f1, %f1, %f1; st.global.f32 [%rd5], %f1;"
_SHIFT = "mov.f32 %f1, 0f00000000; setp.eq.s32 %p2, %r4, 0; @!%p2 ld.global.f32 %f1, [%rd5-4];"
_SHIFTED = "y=np.concatenate([np.zeros(1), y[:-1]])"
NEIGHBOURS = [
    Case("in place", True, _DOUBLE),
    Case("in place, twice", False, _DOUBLE + _DOUBLE),
    Case("in place, through the non-coherent cache", False, _DOUBLE.replace("ld.global", "ld.global.nc")),
    Case("in place, one element left out", False, "setp.eq.s32 %p2, %r4, 12345; @%p2 bra DONE;" + _DOUBLE),
    Case("in place, from the neighbour", False, _SHIFT + "st.global.f32 [%rd5], %f1;", _SHIFTED),
    Case("in place, from the neighbour behind a barrier", False, _SHIFT + "bar.sync 0; st.global.f32 [%rd5], %f1;", _SHIFTED,
         pre=("n >= 64", "n <= 2**20", "n % 64 == 0")),
    Case("in place, element 0 read afterwards", False, _DOUBLE + "ld.global.f32 %f2, [%rd2];"),
    Case("in place, every block does all", False, _DOUBLE, launch={"grid": ["(n + 63) // 64", "2"]}),
]

# ---------------------------------------------------------------------- two half formats
HALVES = Family(
    (("u64", "px"), ("u64", "pz"), ("u64", "py")),
    {"params": [buffer("x", "ptr_in", "f16", "32"), buffer("z", "ptr_in", "bf16", "32"), buffer("y", "ptr_out", "f32", "32")],
     "sizes": {}, "grid": ["1"], "block": [32]},
    """
    ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [pz]; ld.param.u64 %rd6, [py]; mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd3, %r3, 2; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; mul.wide.u32 %rd7, %r3, 4;
    add.s64 %rd8, %rd6, %rd7; ld.global.b16 %h1, [%rd4]; ld.global.b16 %h2, [%rd5]; mov.u32 %r6, s; shl.b32 %r5, %r3, 1;
    add.s32 %r5, %r5, %r6; setp.lt.u32 %p1, %r3, 16;
    """,
    "x, z", "y=x * 1.0", memory=".shared .align 4 .b8 s[64]; .local .align 16 .b8 frame[16];",
)
_MIXED = "y=np.concatenate([x[:16], z[16:]])"
FORMATS = [
    Case("f16", True, "cvt.f32.f16 %f1, %h1; st.global.f32 [%rd8], %f1;"),
    Case("f16 read as bf16", False, "cvt.f32.bf16 %f1, %h1; st.global.f32 [%rd8], %f1;"),
    Case("bf16 read as f16", False, "cvt.f32.f16 %f1, %h2; st.global.f32 [%rd8], %f1;", "y=z * 1.0"),
    Case("f16 read as an integer", False, "cvt.rn.f32.u16 %f1, %h1; st.global.f32 [%rd8], %f1;"),
    Case("both formats in one shared array", False, """@%p1 st.shared.b16 [%r5], %h1; @!%p1 st.shared.b16 [%r5], %h2;
         bar.sync 0; ld.shared.b16 %h3, [%r5]; cvt.f32.f16 %f1, %h3; st.global.f32 [%rd8], %f1;""", _MIXED),
    Case("both formats in one register", False,
         "selp.b16 %h3, %h1, %h2, %p1; cvt.f32.f16 %f1, %h3; st.global.f32 [%rd8], %f1;", _MIXED),
    Case("each format as it is", True, """cvt.f32.f16 %f1, %h1; cvt.f32.bf16 %f2, %h2; selp.f32 %f1, %f1, %f2, %p1;
         st.global.f32 [%rd8], %f1;""", _MIXED),
    Case("f16 as the upper half of an f32", False, """mov.b16 %h5, 0; mov.b32 %r9, {%h5, %h1}; mov.b32 %f1, %r9;
         st.global.f32 [%rd8], %f1;"""),
    Case("bf16 as the upper half of an f32", True, """mov.b16 %h5, 0; mov.b32 %r9, {%h5, %h2}; mov.b32 %f1, %r9;
         st.global.f32 [%rd8], %f1;""", "y=z * 1.0"),
    Case("halves of a pair exchanged", False, """mov.b32 %r9, {%h1, %h2}; mov.b32 {%h3, %h4}, %r9; cvt.f32.f16 %f1, %h4;
         st.global.f32 [%rd8], %f1;"""),
    Case("pairs added", True, """mov.b32 %r9, {%h1, %h1}; add.f16x2 %r10, %r9, %r9; mov.b32 {%h3, %h4}, %r10;
         cvt.f32.f16 %f1, %h4; st.global.f32 [%rd8], %f1;""", "y=x * 2.0"),
    Case("local memory", True, """mov.u64 %rd9, frame; cvt.f32.f16 %f1, %h1; st.local.f32 [%rd9+12], %f1;
         ld.local.f32 %f2, [%rd9+12]; st.global.f32 [%rd8], %f2;"""),
    Case("local memory past its end", False, """mov.u64 %rd9, frame; cvt.f32.f16 %f1, %h1; st.local.f32 [%rd9+16], %f1;
         ld.local.f32 %f2, [%rd9+16]; st.global.f32 [%rd8], %f2;"""),
    Case("local memory before its start", False, """mov.u64 %rd9, frame; cvt.f32.f16 %f1, %h1; st.local.f32 [%rd9-4], %f1;
         ld.local.f32 %f2, [%rd9-4]; st.global.f32 [%rd8], %f2;"""),
    Case("local memory partly overwritten", False, """mov.u64 %rd9, frame; cvt.f32.f16 %f1, %h1; st.local.f32 [%rd9], %f1;
         st.local.u8 [%rd9+1], 7; ld.local.f32 %f2, [%rd9]; st.global.f32 [%rd8], %f2;"""),
    Case("misaligned local vector", False, """mov.u64 %rd9, frame; cvt.f32.f16 %f1, %h1;
         st.local.v2.f32 [%rd9+4], {%f1, %f1}; ld.local.f32 %f2, [%rd9+4]; st.global.f32 [%rd8], %f2;"""),
]

# ---------------------------------------------------------------------- gathers
GATHER = Family(
    (("u64", "px"), ("u64", "pi"), ("u64", "py"), ("u32", "pn"), ("u32", "pv")),
    {"params": [buffer("x", "ptr_in", "f32", "V"), buffer("ix", "ptr_in", "i32", "n", range=["0", "V"]),
                buffer("y", "ptr_out", "f32", "n"), scalar("n"), scalar("V")],
     "sizes": {"n": [7], "V": [5]}, "preconditions": ["n >= 1", "n <= 2**20", "V >= 1", "V <= 2**20"],
     "grid": ["(n + 63) // 64"], "block": [64]},
    """
    ld.param.u64 %rd1, [px]; ld.param.u64 %rd10, [pi]; ld.param.u64 %rd2, [py]; ld.param.u32 %r1, [pn];
    ld.param.u32 %r30, [pv]; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r2, 64, %r3;
    setp.ge.s32 %p1, %r4, %r1; @%p1 bra DONE; mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd10, %rd3;
    add.s64 %rd6, %rd2, %rd3; ld.global.s32 %r5, [%rd4]; mul.wide.s32 %rd5, %r5, 4; add.s64 %rd5, %rd1, %rd5;
    """,
    "x, ix, n, V", "y=x[ix]",
)
_TAKE = "ld.global.f32 %f1, [%rd5]; st.global.f32 [%rd6], %f1;"
_BY_INDEX = [GATHER.launch["params"][0], GATHER.launch["params"][1], buffer("y", "ptr_out", "f32", "V"),
             *GATHER.launch["params"][3:]]
GATHERS = [
    Case("gather", True, _TAKE),
    Case("gather from the next row", False, _TAKE.replace("[%rd5]", "[%rd5+4]")),
    Case("gather, one index singled out", False,
         "ld.global.f32 %f1, [%rd5]; setp.eq.s32 %p3, %r5, 777777; @%p3 mov.f32 %f1, 0f00000000; st.global.f32 [%rd6], %f1;"),
    Case("gather, impossible indices left out", True, "setp.lt.s32 %p3, %r5, 0; @%p3 bra DONE;" + _TAKE),
    Case("scatter", False, "mul.wide.s32 %rd7, %r5, 4; add.s64 %rd7, %rd2, %rd7; st.global.f32 [%rd7], 0f3F800000;",
         "y=x * 0 + 1.0", launch={"params": _BY_INDEX}),
    Case("barrier under an index of each lane", False, "setp.eq.s32 %p3, %r5, 3; @%p3 bra X; bar.sync 0;\nX:" + _TAKE,
         pre=("n >= 64", "n <= 2**20", "n % 64 == 0", "V >= 1", "V <= 2**20")),
]

# ---------------------------------------------------------------------- nothing to do for some sizes
EMPTY = Family(
    (("u64", "px"), ("u64", "py"), ("u32", "pn")),
    {"params": [buffer("x", "ptr_in", "f32", "4"), buffer("y", "ptr_out", "f32", "4"), scalar("n")], "sizes": {"n": [3]},
     "preconditions": ["n >= 0", "n <= 1000"], "grid": ["n"], "block": [4]},
    """
    ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py]; mov.u32 %r3, %tid.x; mov.u32 %r4, %ctaid.x; setp.ne.s32 %p1, %r4, 0;
    @%p1 bra DONE; mul.wide.s32 %rd3, %r3, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; ld.global.f32 %f1, [%rd4];
    """,
    "x, n", "y=x * 1.0",
)
GRIDS = [
    Case("grid that may be empty", False, "st.global.f32 [%rd5], %f1;"),
    Case("grid that is never empty", True, "st.global.f32 [%rd5], %f1;", pre=("n >= 1", "n <= 1000")),
    Case("preconditions that contradict each other", False, "st.global.f32 [%rd5+4], %f1;",
         pre=("n >= 1", "n % 2 == 0", "n % 2 == 1")),
]

# ---------------------------------------------------------------------- a loaded index that need not exist
VACUOUS = Family(
    (("u64", "px"), ("u64", "py"), ("u64", "pw"), ("u32", "pn"), ("u32", "pv")),
    {"params": [buffer("ix", "ptr_in", "i32", "n", range=["0", "V"]), buffer("y", "ptr_out", "f32", "n"),
                buffer("w", "ptr_out", "f32", "V"), scalar("n"), scalar("V")],
     "sizes": {"n": [1], "V": [1]}, "preconditions": ["n >= 0", "n <= 1", "V >= 0", "V <= 1"], "grid": ["1"], "block": [1]},
    """
    ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py]; ld.param.u64 %rd3, [pw]; ld.param.u32 %r1, [pn];
    setp.lt.s32 %p1, %r1, 1; @%p1 bra E; ld.global.u32 %r2, [%rd1]; cvt.rn.f32.s32 %f1, %r2; st.global.f32 [%rd2], %f1;
    E:
    """,
    "ix, n, V", "y=ix * 1.0, w=np.ones(V)",
)
RANGES = [
    Case("a range that is empty for some sizes", False, "st.global.f32 [%rd3], 0f3F800000;"),
    Case("a range that is never empty", True, "st.global.f32 [%rd3], 0f3F800000;",
         pre=("n >= 0", "n <= 1", "V >= 1", "V <= 1")),
]
