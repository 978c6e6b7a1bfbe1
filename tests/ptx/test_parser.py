import time

import pytest
from ptx_samples import HEADER, body, kernel, module

from warpproof.core import InputError
from warpproof.ptx import (
    Address,
    AddressValue,
    Directive,
    FloatImmediate,
    Function,
    Group,
    Immediate,
    Instruction,
    LabelTable,
    Minus,
    Negated,
    Operand,
    Pair,
    Pointer,
    Register,
    Sink,
    Symbol,
    Text,
    Variable,
    Vector,
    parse,
)


def instruction(text: str) -> Instruction:
    """The only instruction of a kernel body."""
    function = parse(body(text)).entries()[0]
    assert function.body is not None
    found = [s for s in function.body.statements if isinstance(s, Instruction)]
    assert len(found) == 1
    return found[0]


def operand(text: str) -> Operand:
    return instruction(f"mov.b64 %rd1, {text};").operands[1]


def variable(text: str) -> Variable:
    item = parse(module(text)).items[0]
    assert isinstance(item, Variable)
    return item


def error_of(text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        parse(text, "bad.ptx")
    assert caught.value.span is not None
    assert caught.value.span.file == "bad.ptx"
    assert "bad.ptx:" in caught.value.render()
    return caught.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("00", 0), ("0", 0), ("017", 15), ("0b101", 5), ("0xFFFFFFFFU", 4294967295), ("-1", -1), ("+5", 5), ("- -5", 5),
        ("-1U", 2**64 - 1), ("18446744073709551615", 2**64 - 1), ("0x8000000000000000", 2**63),
        ("-0xfabc123400000000", 2**64 - 0xFABC123400000000), ("~0", 2**64 - 1), ("!5", 0), ("!0", 1), ("WARP_SZ", 32),
        ("WARP_SZ-1", 31), ("(1+2)*3<<2|1", 37), ("1+2*3", 7), ("7-2-1", 4), ("100/7/2", 7), ("-7/2", -3),
        ("-7 % 4", 1), ("7 % 4", 3), ("1<<63", -(2**63)), ("-8>>1", -4),
        ("0xFFFFFFFFFFFFFFF8 >> 1", 0x7FFFFFFFFFFFFFFC),
        ("-1 < 1U", 0), ("-1 < 1", 1), ("1 == 2 != 1", 1), ("6 & 3 ^ 1 | 8", 11), ("2 && 0 || 3", 1), ("1>2?3:4", 4),
        ("1?2:0?3:4", 2), ("(.u64)-1", 2**64 - 1), ("(.s64)0xFFFFFFFFFFFFFFFF", -1),
        ("9223372036854775807+1", -(2**63)),
        ("1.5 < 2.0", 1), ("1 ? 2 : 3U", 2), ("1.0 < 2.0 ? 7 : 8", 7),
    ],
)
def test_integer_expressions(text: str, value: int) -> None:
    assert operand(text) == Immediate(value)


@pytest.mark.parametrize(
    ("text", "bits", "width"),
    [
        ("0f3F800000", 0x3F800000, 32), ("0F7fc00001", 0x7FC00001, 32), ("0d3FF0000000000000", 0x3FF0000000000000, 64),
        ("0d7FF4000000000001", 0x7FF4000000000001, 64), ("1.0", 0x3FF0000000000000, 64),
        ("-1.5", 0xBFF8000000000000, 64),
        ("1e0", 0x3FF0000000000000, 64), (".5", 0x3FE0000000000000, 64), ("2.", 0x4000000000000000, 64),
        ("1.0/3.0", 0x3FD5555555555555, 64), ("-0.0", 0x8000000000000000, 64), ("1.0/0.0", 0x7FF0000000000000, 64),
        ("1.0 - 0.5*2.0", 0, 64), ("1 ? 1.0 : 2.0", 0x3FF0000000000000, 64),
    ],
)
def test_floats(text: str, bits: int, width: int) -> None:
    assert operand(text) == FloatImmediate(bits, width)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r1", Register("%r1")), ("%tid.x", Register("%tid.x")), ("p", Symbol("p")), ("_", Sink()),
        ("!%p1", Negated(Register("%p1"))), ("-%r1", Minus(Register("%r1"))), ("sym+8", Symbol("sym", 8)),
        ("sym-4", Symbol("sym", -4)), ("a[3]", Symbol("a", 0, 3)), ('"text"', Text("text")),
        ("{%r1, _}", Vector((Register("%r1"), Sink()))), ("{}", Vector(())),
        ("[%rd1]", Address(Register("%rd1"))), ("[%rd1+-8]", Address(Register("%rd1"), -8)),
        ("[%rd1 + 4*2 - 1]", Address(Register("%rd1"), 7)), ("[sym+0x10]", Address(Symbol("sym"), 16)),
        ("[16]", Address(Immediate(16))), ("[8+8]", Address(Immediate(16))),
        ("[%rd1+0xFFFFFFFFFFFFFFFF]", Address(Register("%rd1"), -1)),
        ("[%rd1].unified", Address(Register("%rd1"), unified=True)),
        ("[tm, {%r1, %r2}]", Address(Symbol("tm"), 0, (Vector((Register("%r1"), Register("%r2"))),))),
        ("[t, s, {%f1}]", Address(Symbol("t"), 0, (Symbol("s"), Vector((Register("%f1"),))))),
        ("%r1|%p1", Pair(Register("%r1"), Register("%p1"))), ("_|%p1", Pair(Sink(), Register("%p1"))),
        ("{%r1, %r2}|p", Pair(Vector((Register("%r1"), Register("%r2"))), Symbol("p"))),
    ],
)
def test_operands(text: str, expected: Operand) -> None:
    assert operand(text) == expected


def test_an_instruction_has_its_parts() -> None:
    made = instruction("\n  @!%p1 ld.global.L1::no_allocate.v2.f32 {%f1, %f2}, [%rd1];")
    assert made.name == "ld"
    assert made.modifiers == ("global", "L1::no_allocate", "v2", "f32")
    assert made.guard is not None
    assert (made.guard.register, made.guard.negated) == ("%p1", True)
    assert (made.span.line, made.span.column) == (7, 3)
    assert made.span.length == len("@!%p1 ld.global.L1::no_allocate.v2.f32 {%f1, %f2}, [%rd1];")


def test_a_call_has_groups() -> None:
    made = instruction("call.uni (%r1), f, (%r2, 4), proto;")
    assert made.operands == (
        Group((Register("%r1"),)), Symbol("f"), Group((Register("%r2"), Immediate(4))), Symbol("proto"))


def test_a_prototype_keeps_its_signature() -> None:
    function = parse(body("pr: .callprototype (.param .b32 _) _ (.param .b32 _) .noreturn; ret;")).entries()[0]
    assert function.body is not None
    table = next(s for s in function.body.statements if isinstance(s, LabelTable))
    assert table.kind == "callprototype"
    assert table.signature is not None
    assert table.signature.returns is not None
    assert [d.name for d in table.signature.directives] == ["noreturn"]


def test_the_head_of_a_module() -> None:
    made = parse(".version 8.8 .target sm_90a, debug .address_size 64 .entry k() .maxntid 32, 4 { ret; }")
    assert (made.version, made.target, made.address_size) == ("8.8", ("sm_90a", "debug"), 64)
    function = made.items[0]
    assert isinstance(function, Function)
    assert function.entry
    assert function.directives == (Directive("maxntid", ("32", ",", "4"), function.directives[0].span),)


@pytest.mark.parametrize(
    ("text", "size", "align", "count"),
    [
        (".global .u32 a;", 4, 4, None), (".global .align 16 .b8 a[5];", 5, 16, 5),
        (".shared .v4 .f32 a[2];", 32, 16, 2),
        (".extern .shared .b8 a[];", 0, 1, 0), (".global .u16 a[3][4];", 24, 2, 12),
        (".global .u32 a[] = {1,2,3};", 12, 4, 3),
        (".global .f64 a[][2] = {{1.0,2.0},{3.0,4.0}};", 32, 8, 4), (".global .b128 a;", 16, 16, None),
    ],
)
def test_sizes(text: str, size: int, align: int, count: int | None) -> None:
    made = variable(text)
    assert (made.size, made.align, made.count) == (size, align, count)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        (".global .u32 a = 10;", "0a000000"), (".const .b8 a[4] = {1, -1, 0x1ff};", "01ffff00"),
        (".global .f32 a[2] = {1.0, 0f40000000};", "0000803f00000040"), (".global .f64 a = 1.5;", "000000000000f83f"),
        (".global .b32 a = 1.5;", "0000c03f"), (".global .f32 a = 1e300;", "0000807f"),
        (".global .f32 a = 0.1;", "cdcccc3d"), (".global .u16 a[2][2] = {{1,2},{3,4}};", "0100020003000400"),
        (".global .u16 a[2][2] = {{1,2},{3}};", "0100020003000000"), (".global .v2 .u16 a[1] = {{1,2}};", "01000200"),
        (".global .u8 a[2] = {0xff00(0x1234), 0xff(1000 + 546)};", "120a"),
        (".global .u64 a = -1;", "ffffffffffffffff"), (".global .u32 a[3] = {};", "00" * 12),
    ],
)
def test_initial_bytes(text: str, data: str) -> None:
    assert variable(text).initial == bytes.fromhex(data)


@pytest.mark.parametrize(
    "text",
    [".global .u64 a = b;", ".global .u64 a[2] = {generic(b)+8, 0};", ".global .u8 a = 0xff(generic(b));",
     ".global .u16 a[2][2] = {{1},{3,4}};", ".global .samplerref s = { filter_mode = nearest };"],
)
def test_unknown_initial_bytes_are_never_guessed(text: str) -> None:
    made = variable(text)
    assert made.initial is None
    assert made.opaque


def test_addresses_in_initialisers() -> None:
    assert variable(".global .u64 a = generic(b)+8;").value == AddressValue("b", 8, True, None)
    assert variable(".global .u8 a = 0xff00(b+4);").value == AddressValue("b", 4, False, 0xFF00)


def test_pointer_parameters() -> None:
    made = parse(module(".entry k(.param.u64.ptr.global.align 16 a, .param .u64 .ptr b, .param .u64 c) { ret; }"))
    params = made.entries()[0].params
    assert [p.pointer for p in params if isinstance(p, Variable)] == [Pointer("global", 16), Pointer("", None), None]


BODY = HEADER + ".entry k { "
ERRORS = [
    ("", "PTX009", 1, 1), ("int main() {}", "PTX009", 1, 1), (".version 8", "PTX009", 1, 10),
    (".version", "PTX009", 1, 9), (".version 8.8\n.entry k {}", "PTX009", 2, 1),
    (".version 8.8 .target sm_80 .address_size 48", "PTX009", 1, 42), (HEADER + "ret;", "PTX005", 4, 1),
    (HEADER + "}", "PTX005", 4, 1), (HEADER + ".visibel .entry k {}", "PTX008", 4, 1),
    (HEADER + ".visible 5", "PTX005", 4, 10), (HEADER + ".entry k( { }", "PTX005", 4, 11),
    (HEADER + ".entry k(.param .u32 a,) { }", "PTX005", 4, 24), (HEADER + ".entry 5 { }", "PTX005", 4, 8),
    (BODY + "ret;", "PTX005", 4, 10), (BODY + "ret }", "PTX006", 4, 12),
    (HEADER + ".entry k {\n mov.u32 %r1, 5\n ret;\n}", "PTX006", 5, 15), (BODY + "; }", "PTX005", 4, 12),
    (BODY + "mov.u32 %r1,; }", "PTX005", 4, 24), (BODY + "@ bra L; }", "PTX005", 4, 18),
    (BODY + "@!5 bra L; }", "PTX005", 4, 14), (BODY + "@%p1 ; }", "PTX005", 4, 17),
    (BODY + "mov.u32 %r1, [%r2; }", "PTX005", 4, 29), (BODY + "mov.u32 %r1, {%r2; }", "PTX005", 4, 29),
    (BODY + "mov.u32 %r1, 09; }", "PTX004", 4, 25), (BODY + "mov.u32 %r1, 5x; }", "PTX004", 4, 25),
    (BODY + "mov.u32 %r1, 0f3F8; }", "PTX004", 4, 25),
    (BODY + "mov.u32 %r1, 18446744073709551616; }", "PTX004", 4, 25),
    (BODY + "mov.u32 %r1, " + "9" * 5000 + "; }", "PTX004", 4, 25), (BODY + "mov.f32 %f1, 1e999; }", "PTX004", 4, 25),
    (BODY + "mov.f32 %f1, -0f3F800000; }", "PTX010", 4, 25), (BODY + "mov.u32 %r1, 5/0; }", "PTX010", 4, 26),
    (BODY + "mov.u32 %r1, 1.0/3; }", "PTX010", 4, 28), (BODY + "mov.u32 %r1, 1<<64; }", "PTX010", 4, 26),
    (BODY + "mov.u32 %r1, ~1.0; }", "PTX010", 4, 25), (BODY + "mov.u32 %r1, (1; }", "PTX005", 4, 27),
    (BODY + "mov.u32 %r1, 1?2; }", "PTX005", 4, 28), (BODY + "ld.global.u32 %r1, [1.5]; }", "PTX004", 4, 32),
    (BODY + "ld.global.u32 %r1, [a+1.5]; }", "PTX004", 4, 34), (BODY + ".reg .b33 %r; }", "PTX005", 4, 17),
    (BODY + ".reg %r; }", "PTX005", 4, 17), (BODY + ".reg .b32 %r<0>; }", "PTX012", 4, 25),
    (BODY + ".reg .b32 %r<x>; }", "PTX012", 4, 25), (BODY + ".rge .b32 %r; }", "PTX008", 4, 12),
    (BODY + ".entry }", "PTX005", 4, 12), (HEADER + ".global .align 3 .u32 a;", "PTX012", 4, 16),
    (HEADER + ".global .u32 a[-1];", "PTX012", 4, 16), (HEADER + ".global .u32 a[2][];", "PTX012", 4, 19),
    (HEADER + ".global .u32 a[99999999999999];", "PTX012", 4, 14), (HEADER + ".shared .u32 a = 5;", "PTX011", 4, 14),
    (HEADER + ".extern .global .u32 a = 5;", "PTX011", 4, 22),
    (HEADER + ".global .u32 a[2] = {1,2,3};", "PTX011", 4, 14),
    (HEADER + ".global .u32 a[2][2] = {1,2};", "PTX011", 4, 14), (HEADER + ".global .u32 a = {1};", "PTX011", 4, 14),
    (HEADER + ".global .u32 a[1] = 1;", "PTX011", 4, 14), (HEADER + ".global .u32 a = 1.5;", "PTX011", 4, 14),
    (HEADER + ".global .f32 a = 1;", "PTX011", 4, 14), (HEADER + ".global .f64 a = 0f3F800000;", "PTX011", 4, 14),
    (HEADER + ".global .u8 a = 0x1ff(b);", "PTX011", 4, 17),
    (HEADER + ".global .u8 a[9999999999] = {1};", "PTX011", 4, 13),
    (HEADER + ".global .u32 a[2] = {1,2", "PTX005", 4, 25), (HEADER + '.pragma nounroll;', "PTX005", 4, 9),
    (HEADER + '.file "a"', "PTX005", 4, 7), (HEADER + ".alias f;", "PTX005", 4, 9),
    (HEADER + ".section .debug_str { 5 }", "PTX005", 4, 23), (HEADER + ".section .debug_str { .b8 }", "PTX005", 4, 27),
    (BODY + ".loc 1 2; }", "PTX005", 4, 20), (HEADER + ".entry k .maxntid { }", "PTX005", 4, 19),
    (HEADER + ".entry k .maxntd 5 { }", "PTX008", 4, 10), (HEADER + ".entry k .shared { }", "PTX005", 4, 10),
    (BODY + "x: .branchtargets ; }", "PTX005", 4, 30),
    (HEADER + ".global .attribute(.magic) .u32 x;", "PTX005", 4, 20),
    (HEADER + ".entry k " + "{" * 65 + "}" * 65, "PTX007", 4, 74),
    (BODY + "mov.u32 %r1, " + "(" * 70 + "1; }", "PTX007", 4, 90),
    (BODY + "mov.u32 %r1, " + "-" * 70 + "1; }", "PTX007", 4, 90),
    (BODY + "mov.u32 %r1, " + "{" * 70 + "; }", "PTX007", 4, 90),
    (HEADER + ".global .u8 a = " + "{" * 70 + ";", "PTX007", 4, 81),
    (BODY + "mov.u32 %r1, " + "1?" * 70 + "1; }", "PTX007", 4, 155),
]


@pytest.mark.parametrize(("text", "code", "line", "column"), ERRORS, ids=[e[0][-40:] for e in ERRORS])
def test_errors_have_a_code_and_a_place(text: str, code: str, line: int, column: int) -> None:
    error = error_of(text)
    assert error.span is not None
    assert (error.code, error.span.line, error.span.column) == (code, line, column), error.render()


def test_errors_have_hints() -> None:
    assert ".visible" in error_of(HEADER + ".visibel .entry k {}").hint
    assert ".maxntid" in error_of(HEADER + ".entry k .maxntd 5 { }").hint
    assert "';'" in error_of(HEADER + ".entry k { ret }").hint
    assert ".b32" in error_of(HEADER + ".entry k { .reg .b33 %r; }").hint


@pytest.mark.parametrize(
    "text",
    [
        kernel("mov.u32 %r1, " + "1+" * 50_000 + "1;"), kernel("mov.u32 %r1, {" + "%r1," * 50_000 + "%r1};"),
        kernel("{}" * 50_000), kernel("L:" * 1), kernel("ret;" * 50_000), ".global .u8 a[] = {" + "1," * 50_000 + "1};",
        kernel("ld.global.u32 %r1, [%rd1" + "+1" * 50_000 + "];"), ".entry k(" + ".param .u32 a," * 20_000 + ") {}",
        ".section .debug_str {" + ".b8 1\n" * 50_000 + "}", kernel("mov.u32 %r1, " + "1?2:" * 40 + "3;"),
        kernel("x" * 500_000 + ";"), kernel("mov.u32 %r1, " + "9" * 500_000 + ";"), kernel("@" * 50_000),
        ".global .u32 a" + "[2]" * 50_000 + ";", ".global .u32 a" + ",a" * 50_000 + ";", kernel("a:" * 50_000),
    ],
    ids=range(16),
)
def test_parse_time_is_linear(text: str) -> None:
    start = time.process_time()
    try:
        parse(module(text))
    except InputError as error:
        error.render()
    assert time.process_time() - start < 3.0
