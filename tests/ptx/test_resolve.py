from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from ptx_samples import CALLEE, body, kernel, module

from warpproof.core import InputError, Unsupported
from warpproof.ptx import (
    Address,
    Guard,
    Immediate,
    Instruction,
    Kernel,
    Pointer,
    Register,
    RegisterType,
    Symbol,
    Vector,
    load,
    parse,
    print_instruction,
    resolve,
)


def resolved(text: str, name: str | None = None) -> Kernel:
    return resolve(parse(text, "k.ptx"), name)


def listing(made: Kernel) -> list[str]:
    return [print_instruction(i) for i in made.code]


def error_of(text: str, name: str | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        resolved(text, name)
    assert "k.ptx:" in caught.value.render()
    return caught.value


def test_every_corpus_kernel_resolves(corpus: dict[str, str]) -> None:
    kernels = 0
    for name, text in corpus.items():
        read = parse(text, name)
        for function in read.entries():
            made = resolve(read, function.name)
            kernels += 1
            assert made.code, name
            assert all(0 <= at <= len(made.code) for at in made.labels.values())
            assert all(i.guard is None or made.registers[i.guard.register].kind == "pred" for i in made.code)
            assert sum(v.size for v in made.variables.values() if v.space == "shared") <= made.shared_size
    assert kernels == 522


def test_the_entry_is_chosen() -> None:
    text = module(".entry a { ret; } .func f() { ret; } .entry b { trap; }")
    assert resolved(text, "b").name == "b"
    assert resolved(text, "b").entry
    error = error_of(text)
    assert (error.code, "a, b" in error.message) == ("PTX020", True)
    assert error_of(text, "c").code == "PTX020"
    assert "matmul" in error_of(module(".entry matmul { ret; }"), "matmull").hint
    assert error_of(module(".func f() { ret; }")).code == "PTX020"
    assert resolved(module(".extern .entry a(); .entry b { ret; }")).name == "b"


def test_parameters_are_laid_out_in_order() -> None:
    made = resolved(module(".entry k(.param .u8 a, .param .u64 .ptr .global .align 16 b, .param .align 64 .b8 c[65],"
                           ".param .u16 d) { ret; }"))
    assert [(p.name, p.offset, p.size, p.align) for p in made.params] == [
        ("a", 0, 1, 1), ("b", 8, 8, 8), ("c", 64, 65, 64), ("d", 130, 2, 2)]
    assert made.params[1].pointer == Pointer("global", 16)
    assert made.params[2].count == 65


def test_shadowed_registers_get_their_own_names() -> None:
    made = resolved(body("mov.u32 %r1, 1; { mov.u32 %r1, 2; .reg .b16 %r1; mov.u16 %r1, 3; } mov.u32 %r1, 4;"
                         "{ .reg .b64 %r1; mov.u64 %r1, 5; }"))
    assert listing(made) == ["mov.u32 %r1, 1;", "mov.u32 %r1, 2;", "mov.u16 %r1@1, 3;", "mov.u32 %r1, 4;",
                             "mov.u64 %r1@2, 5;"]
    assert {n: t.width for n, t in made.registers.items()} == {"%r1": 32, "%r1@1": 16, "%r1@2": 64}


def test_many_sibling_scopes_stay_apart() -> None:
    made = resolved(body("".join(f"{{ .reg .b{8 << i % 4} t; mov.b16 t, {i}; }}" for i in range(200))))
    names = [i.operands[0] for i in made.code]
    assert len(set(names)) == 200
    assert [made.registers[n.name].width for n in names if isinstance(n, Register)] == [8 << i % 4 for i in range(200)]


def test_ranges_with_the_same_stem_do_not_mix() -> None:
    made = resolved(body(".reg .b16 %q<3>; .reg .b64 %q1<4>; .reg .b32 %q3; mov.b16 %q2, 0; mov.b64 %q13, 0; "
                         "mov.b32 %q3, 0;"))
    assert {n: t.width for n, t in made.registers.items()} == {"%q2": 16, "%q13": 64, "%q3": 32}


def test_vector_registers_become_components() -> None:
    made = resolved(body(".reg .v4 .f32 v; ld.global.v4.f32 v, [%rd1]; mov.f32 %f1, v.y; mov.f32 %f1, v.b;"))
    assert made.code[0].operands[0] == Vector(tuple(Register(f"v.{c}") for c in "xyzw"))
    assert [i.operands[1] for i in made.code[1:]] == [Register("v.y"), Register("v.z")]
    assert made.registers["v.w"] == RegisterType("f", 32)


def test_register_types() -> None:
    made = resolved(body(".reg .f16x2 h; .reg .bf16 b; .reg .b128 q; .reg .pred c; mov.b32 h, 0; mov.b16 b, 0; "
                         "mov.b128 q, q;"
                         "@c ret;"))
    assert made.registers == {"h": RegisterType("f", 32, 2), "b": RegisterType("bf", 16), "q": RegisterType("b", 128),
                              "c": RegisterType("pred", 1)}
    assert made.code[-1].guard == Guard("c", False)


def test_labels_are_scoped() -> None:
    made = resolved(body("L: { bra L; } { L: bra L; } bra M; M:"))
    assert listing(made) == ["bra L;", "bra L@1;", "bra M;"]
    assert made.labels == {"L": 0, "L@1": 1, "M": 3}


def test_branch_tables_hold_resolved_labels() -> None:
    made = resolved(body("A: { A: ts: .branchtargets A, B; brx.idx %r1, ts; } B: ret;"))
    assert made.tables["ts"].targets == ("A@1", "B")
    assert made.code[0].operands == (Register("%r1"), Symbol("ts"))


def test_shared_memory_is_laid_out() -> None:
    made = resolved(module(
        ".shared .align 4 .b8 a[5]; .extern .shared .align 16 .b8 dyn[]; .extern .shared .align 64 .b8 dyn2[];"
        ".shared .align 8 .b8 b[8]; .shared .b8 unused[8];" + kernel(
            ".shared .align 16 .b8 c[16]; .shared .b8 d; mov.u32 %r1, a; mov.u32 %r1, b; mov.u32 %r1, c; "
            "mov.u32 %r1, d;"
            "mov.u32 %r1, dyn; mov.u32 %r1, dyn2;")))
    layout = made.shared_layout
    assert "unused" not in layout
    assert made.dynamic_shared == ("dyn", "dyn2")
    assert layout["dyn"] == layout["dyn2"] == -(-made.shared_size // 64) * 64
    static = sorted((layout[n], layout[n] + made.variables[n].size) for n in "abcd")
    assert all(end <= start for (_, end), (start, _) in pairwise(static))
    assert all(layout[n] % made.variables[n].align == 0 for n in layout)
    assert made.shared_size == static[-1][1]


def test_block_variables_of_one_name_are_two() -> None:
    made = resolved(body("{ .shared .u32 a; st.shared.u32 [a], 5; } { .shared .u32 a; ld.shared.u32 %r1, [a]; }"))
    assert made.shared_layout == {"a": 0, "a@1": 4}
    assert made.code[1].operands[1] == Address(Symbol("a@1"))


def test_spaces_have_their_layouts() -> None:
    made = resolved(module(".global .u8 g; .global .u64 h = 7; .const .u32 c[2] = {1, 2};" + kernel(
        ".local .align 16 .b8 stack[40]; mov.u64 %rd1, g; mov.u64 %rd1, h; ld.const.u32 %r1, [c+4]; "
        "mov.u64 %rd1, stack;")))
    assert made.global_layout == {"g": 0, "h": 8}
    assert (made.const_layout, made.local_layout) == ({"c": 0}, {"stack": 0})
    assert made.variables["h"].initial == (7).to_bytes(8, "little")


def test_array_elements_become_byte_addresses() -> None:
    made = resolved(module(".global .u32 a[4]; .global .u16 v<3>;" + kernel(
        "ld.global.u32 %r1, a[1]; mov.u64 %rd1, a[3]; mov.u64 %rd1, a+3; ld.global.u16 %r1, [v2];")))
    assert made.code[0].operands[1] == Address(Symbol("a"), 4)
    assert [i.operands[1] for i in made.code[1:3]] == [Symbol("a", 12), Symbol("a", 3)]
    assert made.global_layout == {"a": 0, "v2": 16}


def test_calls_lead_to_callees_and_externs() -> None:
    made = resolved(module(
        ".extern .func (.param .b32 r) tanh (.param .b32 x); .shared .u32 s;"
        ".func (.param .b32 r) f (.param .b32 x) { .reg .b32 %t; .shared .u32 own; ld.param.b32 %t, [x]; "
        "st.shared.u32 [own], %t;"
        "st.param.b32 [r], %t; ret; }" + CALLEE.replace(" f ", " g ") + kernel(
            "st.shared.u32 [s], %r1; { .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %r1; call.uni (r0), f, (p0);"
            "ld.param.b32 %r1, [r0]; } { .param .b32 p0; .param .b32 r0; call (r0), tanh, (p0); "
            "} call (%r1), g, (%r2, 4);")))
    assert set(made.callees) == {"f", "g"}
    assert set(made.externs) == {"tanh"}
    assert {n for n, v in made.variables.items() if v.space == "param"} == {"p0", "r0", "p0@1", "r0@1"}
    callee = made.callees["f"]
    assert (callee.entry, callee.params[0].name, callee.returns[0].name) == (False, "x", "r")
    assert callee.shared_layout == made.shared_layout
    assert set(made.shared_layout) == {"s", "own"}
    formals = made.callees["g"].params
    assert [(p.name, p.space) for p in formals] == [("a", "reg"), ("b", "reg")]
    assert made.callees["g"].registers["a"] == RegisterType("b", 32)


def test_aliases_and_call_tables_reach_their_functions() -> None:
    made = resolved(module(CALLEE + ".func (.reg .b32 r) h (.reg .b32 a, .reg .b32 b); .alias h, f;" + kernel(
        "ct: .calltargets f; call (%r1), h, (%r1, %r2); call (%r1), %rd1, (%r1, %r2), ct;")))
    assert set(made.callees) == {"f", "h"}
    assert made.tables["ct"].targets == ("f",)


def test_recursion_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="recursive"):
        resolved(module(".func g(); .func f() { call g; ret; } .func g() { call f; ret; }" + kernel("call f; ret;")))


def test_a_function_called_twice_is_not_recursion() -> None:
    made = resolved(module(".func f() { ret; } .func g() { call f; ret; }" + kernel("call f; call g; call f; ret;")))
    assert made.callees["g"].callees["f"] is made.callees["f"]


def test_long_call_chains() -> None:
    text = ".func f0() { ret; }" + "".join(f".func f{i}() {{ call f{i - 1}; ret; }}" for i in range(1, 3000))
    assert set(resolved(module(text + kernel("call f2999;"))).callees) == {"f2999"}


def test_unknown_initial_bytes_are_unsupported_where_used() -> None:
    text = ".global .u32 b; .global .u64 a = b;"
    assert resolved(module(text + kernel("mov.u64 %rd1, b;"))).global_layout == {"b": 0}
    with pytest.raises(Unsupported, match="addresses"):
        resolved(module(text + kernel("mov.u64 %rd1, a;")))


def test_directives_become_numbers() -> None:
    made = resolved(module('.entry k() .maxntid 32*4, 2 .pragma "a", "b"; .reqnctapercluster 2 .minnctapersm 3 '
                           '.explicitcluster { .pragma "nounroll"; ret; }'))
    assert made.directives == {"maxntid": (128, 2, 1), "reqnctapercluster": (2, 1, 1), "minnctapersm": (3,),
                               "explicitcluster": ()}
    assert made.pragmas == ("a", "b", "nounroll")


def test_lines_come_from_loc() -> None:
    made = resolved(module('.file 1 "a.cu" .file 7 "b.cuh"' + kernel(
        "mov.u32 %r1, 0; .loc 1 12 4 mov.u32 %r1, 1; "
        "{ .loc 7 3 0, function_name L+8, inlined_at 1 12 4 mov.u32 %r1, 2; }"
        "mov.u32 %r1, 3; .loc 9 1 0 ret;")))
    assert [i.source for i in made.code] == [None, ("a.cu", 12), ("b.cuh", 3), ("b.cuh", 3), ("9", 1)]


def test_special_registers_need_no_declaration() -> None:
    made = resolved(body("mov.u32 %r1, %tid.x; mov.u32 %r1, %envreg31; mov.u64 %rd1, %globaltimer; mov.u32 %r1, %pm7;"))
    assert set(made.registers) == {"%r1", "%rd1"}


ERRORS = [
    ("mov.u32 %r1, %zz;", "PTX021", "%zz"), ("mov.u32 %r9, 5;", "PTX021", "%r9"), ("@%q bra L; L:", "PTX021", "%q"),
    ("mov.u32 %z, 5; .reg .b32 %z;", "PTX021", "%z"), ("mov.u32 %r01, 5;", "PTX021", "%r01"),
    ("mov.u32 %r1, nowhere;", "PTX022", "nowhere"), ("bra L;", "PTX022", "L"), ("bra L; { L: ret; }", "PTX022", "L"),
    ("call g, (%r1);", "PTX022", "g"), ("ts: .branchtargets L;", "PTX022", "L"),
    ("ct: .calltargets k2;", "PTX022", "k2"),
    ("brx.idx %r1, ts;", "PTX022", "ts"), (".reg .b32 %r1;", "PTX023", "%r1"), (".reg .b32 %r<2>;", "PTX023", "%r"),
    (".reg .b32 a, a;", "PTX023", "a"), (".reg .b32 %q1; .reg .b32 %q<2>;", "PTX023", "%q"),
    ("L: L: ret;", "PTX023", "L"),
    (".reg .b32 %q<20>; .reg .b32 %q1<2>;", "PTX023", "%q1"), (".reg .b32 %q1<2>; .reg .b32 %q<20>;", "PTX023", "%q"),
    (".reg .b32 p;", "PTX023", "p"), (".shared .u32 a; .shared .u32 a;", "PTX023", "a"),
    (".reg .b32 %q<1000001>;", "PTX024", "%q"), (".shared .u32 v<70000>;", "PTX024", "v"),
    ("@%r1 ret;", "PTX025", "%r1"), ("@%tid.x ret;", "PTX025", "%tid.x"), ("mov.u32 %r1, %r2+4;", "PTX025", "%r2"),
    ("mov.u32 %r1, %r2.x;", "PTX025", "%r2.x"), (".reg .v2 .b32 v; mov.u32 %r1, v.z;", "PTX025", "v.z"),
    (".reg .v2 .b32 v; ld.global.u32 %r1, [v];", "PTX025", "v"), ("mov.u32 %r1, %r2.b0.x;", "PTX025", "%r2.b0.x"),
]


@pytest.mark.parametrize(("text", "code", "name"), ERRORS, ids=[e[0] for e in ERRORS])
def test_errors_point_at_the_name(text: str, code: str, name: str) -> None:
    source = body("// comment\n  " + text)
    error = error_of(source)
    assert error.code == code
    assert error.span is not None
    line = source.splitlines()[error.span.line - 1]
    assert line[error.span.column - 1 :].startswith(name), error.render()
    assert error.span.length == len(name)


def test_errors_name_what_was_meant() -> None:
    assert "counter" in error_of(body(".shared .u32 counter; mov.u32 %r1, countr;")).hint


def test_module_names_are_declared_once() -> None:
    for text in (".global .u32 a; .global .u32 a;", ".func f() { ret; } .func f() { ret; }", ".global .u32 k;"):
        assert error_of(module(text + kernel("ret;"))).code == "PTX023"
    assert error_of(module(kernel("ret;") + kernel("ret;")), "k").code == "PTX023"
    fine = ".extern .global .u32 a; .visible .global .u32 a; .func f(); .func f(); .func f() { ret; }"
    made = resolved(module(fine + kernel("mov.u64 %rd1, a; call f;")))
    assert not made.variables["a"].extern
    assert set(made.callees) == {"f"}


def test_names_of_functions_hide_names_of_the_module() -> None:
    made = resolved(module(".global .u32 a; .global .u32 p;" + kernel(".reg .b32 a; mov.u32 a, 4; "
                                                            "ld.param.u64 %rd1, [p];")))
    assert made.code[0].operands == (Register("a"), Immediate(4))
    assert made.variables == {}


def test_files_and_texts_load(tmp_path: Path) -> None:
    text = body("ret;")
    path = tmp_path / "k.ptx"
    path.write_bytes(text.encode() + b"\0")
    assert resolve(load(path)).name == "k"
    assert load(str(path)).file == str(path)
    assert load(text).file == ""
    for bad in (tmp_path / "none.ptx", tmp_path, "a\0b.ptx"):
        with pytest.raises(InputError) as caught:
            load(bad)
        assert caught.value.code == "PTX001"


def test_binary_files_are_not_ptx(tmp_path: Path) -> None:
    path = tmp_path / "k.cubin"
    path.write_bytes(bytes(range(256)) * 16)
    with pytest.raises(InputError):
        load(path)


def test_instructions_keep_their_spans() -> None:
    text = body("mov.u32 %r1, 5;\n  add.u32 %r1, %r1, 1;")
    made = resolved(text)
    for instruction in made.code:
        line = text.splitlines()[instruction.span.line - 1]
        start = instruction.span.column - 1
        shown = replace(instruction, source=None)
        assert isinstance(shown, Instruction)
        assert line[start : start + instruction.span.length] == print_instruction(shown)
