"""Attacks on an elementwise kernel: one thread per element, `y[i] = x[i]` unless a case says otherwise."""

from __future__ import annotations

from attempt import Case, Family, buffer, scalar

GRID = ["(n + 255) // 256"]
ELEMENTWISE = Family(
    (("u64", "px"), ("u64", "py"), ("u32", "pn")),
    {"params": [buffer("x", "ptr_in", "f32", "n"), buffer("y", "ptr_out", "f32", "n"), scalar("n")],
     "sizes": {"n": [7]}, "preconditions": ["n >= 1", "n <= 2**30"], "grid": GRID, "block": [256]},
    """
    ld.param.u64 %rd1, [px]; ld.param.u64 %rd2, [py]; ld.param.u32 %r1, [pn];
    mov.u32 %r2, %ctaid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r2, 256, %r3;
    setp.ge.s32 %p1, %r4, %r1;
    mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; mov.f32 %f0, 0f00000000;
    """,
    "x, n", "y=x * 1.0",
)
IN = "@%p1 bra DONE; ld.global.f32 %f1, [%rd4];\n"
OUT = " st.global.f32 [%rd5], %f1;"
FULL = ("n >= 256", "n <= 2**20", "n % 256 == 0")
BUFFERS = ELEMENTWISE.launch["params"]


def at(register: str) -> str:
    """Addresses of element `register` of x and y, and the copy."""
    return f"""@%p1 bra DONE; mul.wide.s32 %rd3, {register}, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
               ld.global.f32 %f1, [%rd4]; st.global.f32 [%rd5], %f1;"""


VALUES = [
    Case("copy", True, IN + OUT),
    Case("constant output", False, IN + "st.global.f32 [%rd5], %f0;"),
    Case("input value singled out", False, IN + "setp.eq.f32 %p2, %f1, 0f402E0000; selp.f32 %f1, %f0, %f1, %p2;" + OUT),
    Case("subnormal singled out", False, IN + "setp.eq.f32 %p2, %f1, 0f00000001; selp.f32 %f1, %f0, %f1, %p2;" + OUT),
    Case("bit pattern singled out", False,
         IN + "mov.b32 %r9, %f1; setp.eq.s32 %p2, %r9, 0x12345678; selp.f32 %f1, %f0, %f1, %p2;" + OUT),
    Case("one size singled out", False, IN + "setp.eq.s32 %p2, %r1, 1000003; selp.f32 %f1, %f0, %f1, %p2;" + OUT),
    Case("one size not stored", False, IN + "setp.ne.s32 %p2, %r1, 1000003; @%p2 st.global.f32 [%rd5], %f1;"),
    Case("right for small sizes only", False, IN + "setp.gt.s32 %p2, %r1, 65536; selp.f32 %f1, %f0, %f1, %p2;" + OUT),
    Case("right for the sizes admitted", True, IN + "setp.gt.s32 %p2, %r1, 65536; selp.f32 %f1, %f0, %f1, %p2;" + OUT,
         pre=("n >= 1", "n <= 65536")),
    Case("one element singled out", False, IN + "setp.eq.s32 %p2, %r4, 4242; selp.f32 %f1, %f0, %f1, %p2;" + OUT),
    Case("only block 0", False, IN + "setp.ne.s32 %p2, %r2, 0; selp.f32 %f1, %f0, %f1, %p2;" + OUT),
    Case("constant off by one ulp", False, IN + "mul.f32 %f1, %f1, 0f3F800001;" + OUT),
    Case("log2 e off by one ulp", False, IN + "mul.f32 %f1, %f1, 0f3FB8AA3C; ex2.approx.f32 %f1, %f1;" + OUT, "y=np.exp(x)"),
    Case("log2 e", True, IN + "mul.f32 %f1, %f1, 0f3FB8AA3B; ex2.approx.f32 %f1, %f1;" + OUT, "y=np.exp(x)"),
    Case("log2 e in two parts", True,
         IN + "mul.f32 %f2, %f1, 0f3FB8AA3B; fma.rn.f32 %f2, %f1, 0f32A57060, %f2; ex2.approx.f32 %f1, %f2;" + OUT, "y=np.exp(x)"),
    Case("low part of log2 e alone", False,
         IN + "mul.f32 %f2, %f1, 0f32A57060; mul.f32 %f2, %f2, 0f4C000000; ex2.approx.f32 %f1, %f2;" + OUT, "y=np.ones(n)"),
    Case("low part of log2 e with another factor", False, IN + """mul.f32 %f2, %f1, 0f32A57060; mul.f32 %f2, %f2, 0f4C000000;
         fma.rn.f32 %f2, %f1, 0f3FB8AA3B, %f2; ex2.approx.f32 %f1, %f2;""" + OUT, "y=np.exp(x)"),
    Case("log2 e outside an exponent", False, IN + "mul.f32 %f1, %f1, 0f3FB8AA3B;" + OUT, "y=x * np.log2(np.e)"),
    Case("absolute value", False, IN + "abs.f32 %f1, %f1;" + OUT),
    Case("root of the square", False, IN + "mul.f32 %f1, %f1, %f1; sqrt.rn.f32 %f1, %f1;" + OUT),
    Case("clamped", False, IN + "add.sat.f32 %f1, %f1, %f0;" + OUT),
    Case("rounded to integers", False, IN + "cvt.rni.f32.f32 %f1, %f1;" + OUT),
    Case("reference ignores the input", False, IN + OUT, "y=np.ones(n)"),
    Case("output of ones", True, "@%p1 bra DONE; mov.f32 %f1, 0f3F800000;" + OUT, "y=np.ones(n)"),
    Case("float bits as an integer", False, IN + "mov.b32 %r9, %f1; cvt.rn.f32.s32 %f1, %r9;" + OUT),
]
_VANISHES = "setp.gt.s32 %p2, %r1, 100; selp.f32 %f2, 0fFF800000, %f1, %p2; ex2.approx.f32 %f3, %f2; "
NOT_A_NUMBER = [
    Case("infinity times zero", False, IN + "mov.f32 %f2, 0f7F800000; fma.rn.f32 %f1, %f2, %f0, %f1;" + OUT),
    Case("infinity minus infinity", False,
         IN + "mov.f32 %f2, 0f7F800000; sub.f32 %f3, %f2, %f2; add.f32 %f1, %f1, %f3;" + OUT),
    Case("minus infinity in a maximum", True, IN + "max.f32 %f1, %f1, 0fFF800000;" + OUT),
    Case("NaN in a maximum", False, IN + "max.NaN.f32 %f1, %f1, 0f7FC00000;" + OUT),
    Case("NaN times zero", False, IN + "mov.f32 %f2, 0f7FC00000; fma.rn.f32 %f1, %f2, %f0, %f1;" + OUT),
    Case("x / x", False, IN + "div.rn.f32 %f2, %f1, %f1; mul.f32 %f1, %f2, %f1;" + OUT),
    Case("0 / 0 where the reference chooses", False, IN + "div.rn.f32 %f2, %f1, %f1; mul.f32 %f1, %f2, %f1;" + OUT,
         "y=np.where(x == 0, x, x / x * x)"),
    Case("0 / 0 avoided as in the reference", True,
         IN + "setp.eq.f32 %p2, %f1, %f0; @%p2 bra S; div.rn.f32 %f2, %f0, %f1; add.f32 %f1, %f1, %f2;\nS:" + OUT,
         "y=np.where(x == 0, x, x + 0 / x)"),
    Case("1 / x as in the reference", True, IN + "rcp.rn.f32 %f1, %f1;" + OUT, "y=1 / x"),
    Case("quotient masked by a product", False,
         IN + """rcp.rn.f32 %f2, %f1; setp.gt.f32 %p2, %f1, %f0; selp.f32 %f3, 0f3F800000, %f0, %p2;
              mul.f32 %f1, %f2, %f3;""" + OUT, "y=np.where(x > 0, 1 / x, 0)"),
    Case("square root of a negative", False, IN + "sqrt.rn.f32 %f2, %f1; mul.f32 %f1, %f2, %f2;" + OUT),
    Case("square root of a square plus one", True,
         IN + "fma.rn.f32 %f2, %f1, %f1, 0f3F800000; sqrt.rn.f32 %f1, %f2;" + OUT, "y=np.sqrt(x * x + 1)"),
    Case("quotient by 2 to minus infinity", False, IN + _VANISHES + "rcp.rn.f32 %f4, %f3; fma.rn.f32 %f1, %f4, %f0, %f1;" + OUT),
    Case("logarithm of 2 to minus infinity", False,
         IN + _VANISHES + "lg2.approx.f32 %f4, %f3; fma.rn.f32 %f1, %f4, %f0, %f1;" + OUT),
    Case("quotient by 2 to something finite", True,
         IN + "ex2.approx.f32 %f3, %f1; rcp.rn.f32 %f4, %f3; fma.rn.f32 %f1, %f4, %f0, %f1;" + OUT),
    Case("logarithm of a negative", False, IN + "lg2.approx.f32 %f2, %f1; ex2.approx.f32 %f1, %f2;" + OUT),
]
PARTIAL = [
    Case("root of the square of a root", False, IN + OUT, "y=np.sqrt(x)**2"),
    Case("logarithm times zero", False, IN + OUT, "y=x + 0*np.log(x)"),
    Case("logarithm minus itself", False, IN + OUT, "y=x + np.log(x) - np.log(x)"),
    Case("quotient by itself", False, IN + "mov.f32 %f1, 0f3F800000;" + OUT, "y=x/x"),
    Case("reciprocal of the reciprocal", False, IN + OUT, "y=1/(1/x)"),
    Case("divided by a size that may be 1 less 1", False, IN + OUT, "y=x/(n-1)*(n-1)"),
    Case("divided by a size", True, IN + OUT, "y=x/n*n"),
    Case("quotient where it is defined", True, IN + "mov.f32 %f1, 0f3F800000;" + OUT, "y=np.where(x == 0, 1, x/x)"),
    Case("root of what is not negative", True, IN + OUT, "y=x + 0*np.sqrt(x*x)"),
    Case("the same quotient", True, IN + "rcp.rn.f32 %f1, %f1;" + OUT, "y=1/x"),
    Case("the same root", True, IN + "max.f32 %f1, %f1, %f0; sqrt.rn.f32 %f1, %f1;" + OUT, "y=np.sqrt(np.maximum(x, 0))"),
]
UNDEFINED = [
    Case("uninitialised float times zero", False, IN + "fma.rn.f32 %f1, %f2, %f0, %f1;" + OUT),
    Case("uninitialised float minus itself", False, IN + "sub.f32 %f3, %f2, %f2; add.f32 %f1, %f1, %f3;" + OUT),
    Case("uninitialised integer", False, IN + "cvt.rn.f32.s32 %f2, %r9; add.f32 %f1, %f1, %f2;" + OUT),
    Case("uninitialised bits masked away", True,
         IN + "and.b32 %r9, %r9, 0; cvt.rn.f32.s32 %f2, %r9; add.f32 %f1, %f1, %f2;" + OUT),
    Case("difference of an uninitialised integer in two lanes", False,
         IN + """add.s32 %r9, %r8, 0; shfl.sync.bfly.b32 %r10, %r9, 1, 31, -1; sub.s32 %r11, %r9, %r10;
              cvt.rn.f32.s32 %f2, %r11; add.f32 %f1, %f1, %f2;""" + OUT, pre=FULL),
    Case("barrier under an uninitialised condition", False,
         IN + "add.s32 %r9, %r8, 0; setp.gt.s32 %p3, %r9, 5; @%p3 bra A; bar.sync 0;\nA:" + OUT, pre=FULL),
    Case("predicate defined on one path", False,
         IN + "setp.lt.s32 %p2, %r4, 8; @%p2 bra A; setp.gt.f32 %p3, %f1, %f0;\nA: selp.f32 %f1, %f1, %f1, %p3;" + OUT),
    Case("register defined on one path", False,
         IN + "setp.lt.s32 %p2, %r4, 8; @%p2 bra A; mov.f32 %f2, %f1;\nA: st.global.f32 [%rd5], %f2;"),
    Case("output read before it is written", False,
         IN + "ld.global.f32 %f2, [%rd5]; fma.rn.f32 %f1, %f2, %f0, %f1;" + OUT),
    Case("thread number of the hardware's warp", False,
         IN + """mov.u32 %r8, %warpid; shl.b32 %r8, %r8, 5; mov.u32 %r9, %laneid; add.s32 %r8, %r8, %r9;
              sub.s32 %r9, %r8, %r3; cvt.rn.f32.s32 %f2, %r9; add.f32 %f1, %f1, %f2;""" + OUT),
    Case("thread number of the lane", True,
         IN + """mov.u32 %r8, %laneid; and.b32 %r9, %r3, 31; sub.s32 %r9, %r8, %r9; cvt.rn.f32.s32 %f2, %r9;
              add.f32 %f1, %f1, %f2;""" + OUT),
]
INDICES = [
    Case("guard one too far", False, "setp.gt.s32 %p1, %r4, %r1; " + IN + OUT),
    Case("no guard", False, IN.replace("@%p1 bra DONE;", "") + OUT),
    Case("no guard, whole blocks", True, IN.replace("@%p1 bra DONE;", "") + OUT, pre=FULL),
    Case("no guard, half blocks", False, IN.replace("@%p1 bra DONE;", "") + OUT, pre=("n >= 1", "n <= 2**20", "n % 128 == 0")),
    Case("grid rounds down", False, IN + OUT, launch={"grid": ["n // 256"]}),
    Case("grid one element short", False, IN + OUT, launch={"grid": ["(n + 254) // 256"]}),
    Case("grid larger than needed", True, IN + OUT, launch={"grid": ["n // 256 + 5"]}),
    Case("second grid dimension writes again", False, IN + OUT, launch={"grid": [*GRID, "2"]}),
    Case("n copies of the grid", False, IN + OUT, launch={"grid": [*GRID, "1", "n"]}, pre=("n >= 1", "n <= 60000")),
    Case("second block dimension writes again", False, IN + OUT, launch={"block": [256, 2]}),
    Case("the neighbour's element", False, at("%r4").replace("[%rd4]", "[%rd4+4]")),
    Case("output a whole row further", False, IN + "st.global.f32 [%rd5+1073741824], %f1;"),
    Case("odd elements only", False, "shr.u32 %r5, %r4, 1; shl.b32 %r6, %r5, 1;" + at("%r6")),
    Case("pairs exchanged past the end", False, "xor.b32 %r6, %r4, 1;" + at("%r6")),
    Case("pairs exchanged", True, "xor.b32 %r6, %r4, 1;" + at("%r6"), pre=("n >= 2", "n <= 2**20", "n % 2 == 0")),
    Case("counted from the end", True, "sub.s32 %r6, %r1, %r4; add.s32 %r6, %r6, -1;" + at("%r6")),
    Case("counted from one past the end", False, "sub.s32 %r6, %r1, %r4;" + at("%r6")),
    Case("index folded onto itself", False, "and.b32 %r6, %r4, 1023;" + at("%r6")),
    Case("last element never", False,
         "add.s32 %r5, %r1, -2; min.s32 %r6, %r4, %r5; max.s32 %r6, %r6, 0;" + at("%r6")),
    Case("byte offset in 32 bits", False, """shl.b32 %r6, %r4, 2; cvt.s64.s32 %rd3, %r6; add.s64 %rd4, %rd1, %rd3;
         add.s64 %rd5, %rd2, %rd3;""" + IN + OUT),
    Case("byte offset in 32 bits, fits", True, """shl.b32 %r6, %r4, 2; cvt.s64.s32 %rd3, %r6; add.s64 %rd4, %rd1, %rd3;
         add.s64 %rd5, %rd2, %rd3;""" + IN + OUT, pre=("n >= 1", "n <= 2**28")),
    Case("guard by a difference that is not zero", False, "sub.s32 %r5, %r1, %r4; setp.eq.s32 %p1, %r5, 0;" + IN + OUT),
    Case("guard by a difference that underflows", True,
         "sub.s32 %r5, %r1, %r4; add.s32 %r5, %r5, -1; setp.ge.u32 %p1, %r5, %r1;" + IN + OUT, launch={"grid": ["n // 256 + 2"]}),
    Case("unsigned guard", True, "setp.ge.u32 %p1, %r4, %r1;" + IN + OUT),
    Case("buffers exchanged by arithmetic", True,
         IN + "sub.s64 %rd9, %rd5, %rd4; add.s64 %rd9, %rd4, %rd9; st.global.f32 [%rd9], %f1;"),
    Case("output written to the input", False, IN + "sub.s64 %rd9, %rd5, %rd4; sub.s64 %rd9, %rd5, %rd9; st.global.f32 [%rd9], %f1;"),
    Case("pair access where n may be odd", False, """
         shl.b32 %r6, %r4, 1; setp.ge.s32 %p1, %r6, %r1; @%p1 bra DONE; mul.wide.s32 %rd3, %r6, 4; add.s64 %rd4, %rd1, %rd3;
         add.s64 %rd5, %rd2, %rd3; ld.global.v2.f32 {%f1, %f2}, [%rd4]; st.global.v2.f32 [%rd5], {%f1, %f2};"""),
    Case("pair access", True, """
         shl.b32 %r6, %r4, 1; setp.ge.s32 %p1, %r6, %r1; @%p1 bra DONE; mul.wide.s32 %rd3, %r6, 4; add.s64 %rd4, %rd1, %rd3;
         add.s64 %rd5, %rd2, %rd3; ld.global.v2.f32 {%f1, %f2}, [%rd4]; st.global.v2.f32 [%rd5], {%f1, %f2};""",
         pre=("n >= 2", "n <= 2**20", "n % 2 == 0")),
    Case("misaligned pair", False, """
         shl.b32 %r6, %r4, 1; add.s32 %r7, %r6, 2; setp.ge.s32 %p1, %r7, %r1; @%p1 bra DONE; mul.wide.s32 %rd3, %r6, 4;
         add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3; ld.global.v2.f32 {%f1, %f2}, [%rd4+4];
         st.global.v2.f32 [%rd5+4], {%f1, %f2};""", pre=("n >= 2", "n <= 2**20")),
]
LAUNCHES = [
    Case("more threads than .maxntid", False, IN + OUT, directives=".maxntid 128"),
    Case("as many threads as .maxntid", True, IN + OUT, directives=".maxntid 256"),
    Case("another block than .reqntid", False, IN + OUT, directives=".reqntid 128"),
    Case("block too large for a device", False, IN + OUT, launch={"block": [2048]}),
    Case("more shared memory than a device has", False, IN + OUT, memory=".shared .align 4 .b8 big[300000];"),
    Case("a grid that is never launched", False, IN + OUT, launch={"grid": ["n - 10"]}, pre=("n >= 1", "n <= 5")),
    Case("a size of 8 bytes for a parameter of 4", False, IN + OUT,
         launch={"params": [*BUFFERS[:2], scalar("n", "i64")]}),
]
_LATE = "mov.u32 %r9, 0; "
_ADD = "cvt.rn.f32.s32 %f2, %r9; ld.global.f32 %f1, [%rd4]; add.f32 %f1, %f1, %f2; st.global.f32 [%rd5], %f1;"
_SMALLER = "y=x + np.minimum(np.arange(n) // 256, np.arange(n) % 256)"
FALLS_SHORT = [
    Case("predicated minimum", True, _LATE + "@%p1 bra DONE; min.s32 %r9, %r2, %r3;" + _ADD, _SMALLER),
    Case("predicated minimum, false for small sizes", False,
         _LATE + "@%p1 bra DONE; setp.ge.s32 %p2, %r1, 1000; @%p2 min.s32 %r9, %r2, %r3;" + _ADD, _SMALLER),
]
STORES = [
    Case("wrong, then right", False, IN + "st.global.f32 [%rd5], %f0;" + OUT),
    Case("right, then wrong", False, IN + OUT + "st.global.f32 [%rd5], %f0;"),
    Case("right twice", True, IN + OUT + OUT),
    Case("thread 0 writes everything again", False, IN + OUT + """
         setp.ne.s32 %p2, %r4, 0; @%p2 bra DONE; st.global.f32 [%rd2], %f1; st.global.f32 [%rd2+4], %f1;""", pre=("n >= 2", "n <= 2**20")),
    Case("trap on some sizes", False, IN + OUT + "setp.eq.s32 %p2, %r1, 77; @%p2 trap;"),
    Case("endless loop in the other threads", False, "@!%p1 bra B;\nA: bra A;\nB:" + IN + OUT),
]
