import time

import pytest

from warpproof.core import InputError
from warpproof.ptx import lex, tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mov.u32 %r1, %tid.x;", ["mov.u32", "%r1", ",", "%tid.x", ";"]),
        ("ld.global.L1::evict_last.v4.f32 {a,_}, [%rd1+-8];",
         ["ld.global.L1::evict_last.v4.f32", "{", "a", ",", "_", "}", ",", "[", "%rd1", "+", "-", "8", "]", ";"]),
        ("cp.async.bulk.tensor.2d.shared::cta.global x", ["cp.async.bulk.tensor.2d.shared::cta.global", "x"]),
        (".param.u64.ptr.global.align 16 p", [".param", ".u64", ".ptr", ".global", ".align", "16", "p"]),
        ("@!%p1 bra $L__BB0_1;", ["@", "!", "%p1", "bra", "$L__BB0_1", ";"]),
        ("a|b || c<<2 5%3 5 % 3", ["a", "|", "b", "||", "c", "<<", "2", "5", "%3", "5", "%", "3"]),
        ("0xFFU 0b101 017 0f3F800000 0D0000000000000001 1.5e-3 .05 2. 0xE+4",
         ["0xFFU", "0b101", "017", "0f3F800000", "0D0000000000000001", "1.5e-3", ".05", "2.", "0xE", "+", "4"]),
        ('"a // \\" /* b" // c\n/* d\n"*/ e', ['"a // \\" /* b"', "e"]),
        ("x /* a */ /**/ // b\n y //", ["x", "y"]),
        (".reg .b32 %r<9>;", [".reg", ".b32", "%r", "<", "9", ">", ";"]),
        ("L:M: ret;ret;", ["L", ":", "M", ":", "ret", ";", "ret", ";"]),
        ("ret;\0\0", ["ret", ";"]),
        ("\ufeffret", ["ret"]),
        ("", []),
        (" \n\t// nothing", []),
    ],
)
def test_words(text: str, words: list[str]) -> None:
    assert list(tokens(text)) == words


def test_words_come_with_their_places() -> None:
    lexed = lex("a\n  bb /* x\n*/ ccc", "k.ptx")
    assert [str(lexed.span(i)) for i in range(3)] == ["k.ptx:1:1", "k.ptx:2:3", "k.ptx:3:4"]
    assert [lexed.span(i).length for i in range(3)] == [1, 2, 3]
    assert lexed.span(1, 2).length == len("bb /* x")


@pytest.mark.parametrize(
    ("text", "code", "line", "column"),
    [
        ("ret;\n  /* never closed", "PTX002", 2, 3),
        ('.file 1 "open\n', "PTX002", 1, 9),
        ('"escaped \\"\n', "PTX002", 1, 1),
        ("ret; é", "PTX003", 1, 6),
        ("\n#line 4", "PTX003", 2, 1),
        ("a\0b", "PTX003", 1, 2),
        ("a \\ b", "PTX003", 1, 3),
        ("%reg1. %reg2", "PTX003", 1, 6),
        ("a ` b /* never", "PTX003", 1, 3),
    ],
)
def test_text_that_is_not_ptx(text: str, code: str, line: int, column: int) -> None:
    with pytest.raises(InputError) as caught:
        lex(text, "bad.ptx")
    error = caught.value
    assert error.code == code
    assert error.span is not None
    assert (error.span.line, error.span.column, error.span.file) == (line, column, "bad.ptx")
    assert error.hint
    assert f"error[{code}]" in error.render()


def test_a_text_that_is_too_large() -> None:
    with pytest.raises(InputError, match="characters"):
        lex(" " * ((64 << 20) + 1))


@pytest.mark.parametrize(
    "text",
    ["/*" * 300_000, "/*/" * 300_000, '"' * 300_000, "//" * 300_000, " " * 1_000_000, "/**/" * 200_000, "a" * 1_000_000,
     "a." * 300_000, ".a" * 300_000, "a::" * 200_000, "1e" * 300_000, '"\\' * 300_000, "%" * 300_000, "." * 300_000],
    ids=lambda t: repr(t[:4]),
)
def test_time_is_linear(text: str) -> None:
    start = time.process_time()
    try:
        lex(text)
    except InputError as error:
        error.render()
    assert time.process_time() - start < 2.0


def test_lexing_is_fast(corpus: dict[str, str]) -> None:
    text = "\n".join(corpus.values())
    start = time.process_time()
    lex(text)
    assert text.count("\n") / (time.process_time() - start) > 60_000
