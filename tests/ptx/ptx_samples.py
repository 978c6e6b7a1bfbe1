"""Hand-written PTX for what the corpus does not show."""

HEADER = ".version 9.0\n.target sm_100a\n.address_size 64\n"
REGISTERS = ".reg .pred %p<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;"


def module(text: str) -> str:
    """A module of the given items."""
    return HEADER + text


def kernel(text: str) -> str:
    """A kernel `k` with one pointer parameter and the given body."""
    return f".visible .entry k(.param .u64 p)\n{{ {REGISTERS}\n{text}\n}}\n"


def body(text: str) -> str:
    """A module with one kernel of the given body."""
    return module(kernel(text))


CALLEE = ".func (.reg .b32 r) f (.reg .b32 a, .reg .b32 b) { add.u32 r, a, b; ret; }\n"

FEATURES: dict[str, str] = {
    "no address size": ".version 3.0\n.target sm_20, texmode_independent\n.entry k { ret; }",
    "second target": module(".target sm_100a, debug\n" + kernel("ret;")),
    "linkage": module(".visible .global .u32 a; .weak .global .align 8 .b8 b[8]; .extern .global .b32 c;"
                      ".common .global .u32 d; .extern .shared .align 128 .b8 dyn[];"),
    "attributes": module(".global .attribute(.managed) .align 8 .u64 x; .global .attribute(.unified(19, 95)) .f32 f;"
                         ".func .attribute(.unified(171, 205)) bar() { ret; }"),
    "several variables": module(".global .u32 a, b; .global .u32 c = 4, d[2] = {1, 2}; .global .u32 v<4>;"),
    "initialisers": module(
        ".global .s32 n = 10; .const .f32 vals[8] = {0.33, 0.25, .125}; .global .f32 blur[][3] = "
        "{{.05,.1,.05},{.1,.4,.1},{.05,.1,.05}}; .global .u32 foo[] = {2, 3, 5}; .global .u64 p1 = foo;"
        ".global .u64 parr[] = {generic(foo), generic(foo)+4, foo+8, 0}; .global .u8 by[3] = {0xff(foo), "
        "0xff00(generic(foo)+4), 0xFF(1000 + 546)}; .global .u32 e = (1+2)*3; .global .b32 h = 0f3F800000;"
        ".global .v4 .f32 v = {1.0,2.0,3.0,4.0}; .global .v2 .f32 w[2] = {{1.0,2.0},{3.0,4.0}};"),
    "samplers": module(".global .texref t; .global .samplerref s = { addr_mode_0 = clamp_to_border, "
                       "filter_mode = nearest };"),
    "parameters": module(".entry k(.param .u32 a, .param .u64 .ptr.global.align 16 b, .param .u64 .ptr c,"
                         ".param .u64 .ptr .const d, .param .align 8 .b8 s[64], .param .u64 .ptr .align 4 e) { ret; }"),
    "no lists": module(".func f; .func g(); .entry k { ret; } .func h { ret; } .func (.reg .b32 r) i { ret; }"),
    "function parameters": module(CALLEE + ".extern .func (.param .b32 r) va (.param .b32 x, .param .align 8 .b8 z[]);"
                                  ".func (.param .align 4 .b8 out[12]) big (.param .align 4 .b8 in[12]);"),
    "directives": module('.pragma "nounroll"; .entry k() .pragma "nounroll"; .maxntid 32, 4 .reqnctapercluster 2 '
                         ".minnctapersm 1 .maxnreg 64 { ret; } .entry l .explicitcluster .maxclusterrank 8 { ret; }"
                         ".func nr .noreturn { trap; } .func ab() .abi_preserve 8 .abi_preserve_control 14 { ret; }"
                         ".entry m .reqntid 16, 8, 4 .blocksareclusters { ret; }"),
    "alias": module(".func f(); .visible .func g() { ret; } .alias f, g;"),
    "files": module('.file 1 "a.cu", 123, 45\n.file 2 "b , c.cu"\n' + kernel(
        ".loc 1 3 4 mov.u32 %r1, 5; .loc 1 9 3, function_name L+8, inlined_at 1 3 4 ret;")),
    "section": module(kernel("ret;") + ".section .debug_str { L: .b8 1,2,3 .b32 L+4 .b64 L-M .b16 -5, 7 M: .b64 -1 "
                      ".b32 .debug_loc+0x4 .b32 .debug_abbrev } .section .debug_macinfo { }"),
    "scopes": body("{ .reg .b32 %r1; { .shared .align 4 .u32 a; { mov.u32 %r1, a; } } } L: { bra L; } { } ret;"),
    "several statements a line": body("mov.u32 %r1, 5; mov.u32 %r2, 6; L: M: ret; N:"),
    "guards": body("@%p1 ret; @!%p2 trap; @%p1 bra.uni L; L: exit;"),
    "vectors": body(".reg .v4 .f32 v; ld.global.v4.f32 v, [%rd1]; add.f32 %f1, v.x, v.a; mov.b64 {%r1, _}, %rd1;"
                    "mov.b64 %rd1, {%r1, %r2}; ld.global.v8.f32 {%f1, _, %f2, %f3, %f4, %f5, %f6, %f7}, [%rd1];"),
    "pairs and sinks": body("setp.eq.and.u32 %p1|%p2, %r1, %r2, !%p3; setp.eq.u32 %p1|_, %r1, %r2;"
                            "shfl.sync.bfly.b32 %r1|%p1, %r2, 1, 31, 0xffffffff; elect.sync _|%p1, -1;"
                            "mbarrier.arrive.shared.b64 _, [%r1];"),
    "addresses": body("ld.global.u32 %r1, [%rd1]; ld.global.u32 %r1, [%rd1+4*2-1]; ld.global.u32 %r1, [%rd1+-4];"
                      "ld.global.u32 %r1, [64]; ld.param.u64 %rd1, [p+0]; ld.global.u32 %r1, [%rd1].unified;"),
    "tensor addresses": body(
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r1], "
        "[%rd1, {%r1, %r2}], [%r3], %rd2; cp.async.bulk.tensor.3d.shared::cluster.global.im2col."
        "mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2, %r3}], [%r4], {%r5};"
        "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}|%p1, [tex_a, smp, {%f1, %f2}];"),
    "array elements": module(".global .u32 a[4]; " + kernel("ld.global.u32 %r1, a[1]; mov.u64 %rd1, a[2-1]; "
                                                             "mov.u64 %rd1, a+4;")),
    "expressions": body("mov.u32 %r1, (1+2)*3<<2|1; mov.u32 %r1, 1>2?3:4; mov.u32 %r1, (.s64)-1; mov.u32 %r1, ~0 & 7;"
                        "mov.u32 %r1, WARP_SZ*2; mov.u32 %r1, WARP_SZ; mov.u32 %r1, 7 % 4; mov.u32 %r1, !1 || 2 && 3;"
                        "mov.u32 %r1, - - 5; mov.u32 %r1, 1 == 2 != 0; mov.u32 %r1, 1 ^ 3 >> 1;"),
    "numbers": body("mov.u32 %r1, 0xffffffffU; mov.u32 %r2, 017; mov.u32 %r3, 0B101; mov.u32 %r4, -1;"
                    "mov.f32 %f1, 0F3f800000; mov.f32 %f1, -1.5e-3; mov.f64 %rd1, 0d3FF0000000000000; "
                    "mov.f32 %f1, 1.0/3.0;"
                    "mov.f64 %rd1, 0D7FF8000000000123;"),
    "video": body("vadd.s32.u32.s32.sat %r1, %r2.b0, %r3.h1; vmad.s32.s32.s32.sat %r1, -%r2.h0, %r3.h0, %r4;"),
    "calls": module(CALLEE + kernel(
        "call f, (%r1, 4); call.uni (%r1), f, (%r2, %r3); call g; call (_), %rd1, (), proto; "
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[12]) .noreturn; "
        "plain: .callprototype _; targets: .calltargets f; call (%r1), %rd1, (%r2, %r3), targets;")),
    "branch tables": body("ts: .branchtargets L1, L2; brx.idx %r1, ts; L1: ret; L2: ret;"),
    "statement pragmas": body('.pragma "nounroll", "used_bytes_mask 0xfff"; ret;'),
    "strings": body('wgmma.fence.sync.aligned; pmevent 7; ret;'),
    "hidden parameter": module(".entry k(.hidden .param .align 64 .b8 d[128]) .language 7 { ret; }"),
    "odd names": body(".reg .b32 _a, $b, %_c; mov.u32 _a, $b; $L__BB0_1: bra $L__BB0_1;"),
    "texture space": module(".tex .u32 tex_a; .global .surfref s;"),
}
