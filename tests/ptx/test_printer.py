import pytest
from ptx_samples import FEATURES, body

from warpproof.ptx import Module, parse, print_instruction, print_module, tokens

GROUPS = ["clang", "cutedsl", "cutile", "inductor", "numba", "nvcc", "nvrtc", "pallas", "tilelang", "triton",
    "warp", "xla"]


def difference(text: str, module: Module) -> str:
    """The first place where the printed module has other tokens; empty when it has the same."""
    read, printed = tokens(text), tokens(print_module(module))
    for at, (a, b) in enumerate(zip(read, printed)):
        if a != b:
            return f"{read[max(0, at - 6) : at + 6]} became {printed[max(0, at - 6) : at + 6]}"
    return "" if len(read) == len(printed) else f"{len(read)} tokens became {len(printed)}"


def test_the_corpus_is_complete(corpus: dict[str, str]) -> None:
    assert len(corpus) == 214
    assert sorted({name.split("/")[0] for name in corpus}) == GROUPS


@pytest.mark.parametrize("group", GROUPS)
def test_corpus_prints_to_its_own_tokens(corpus: dict[str, str], group: str) -> None:
    for name, text in corpus.items():
        if name.startswith(group + "/"):
            assert difference(text, parse(text, name)) == "", name


@pytest.mark.parametrize("text", FEATURES.values(), ids=FEATURES.keys())
def test_features_print_to_their_own_tokens(text: str) -> None:
    module = parse(text)
    assert difference(text, module) == ""
    again = parse(print_module(module))
    assert print_module(again) == print_module(module)


def test_spaced_opcodes_print_joined() -> None:
    module = parse(body("mov .u32 %r1, 5; st .global .u32 [%rd1], %r1;"))
    assert "mov.u32 %r1, 5;" in print_module(module)


def test_an_instruction_prints_on_its_own() -> None:
    module = parse(body("@!%p1 st.global.v2.u32 [%rd1+-8], {%r1, _};"))
    function = module.entries()[0]
    assert function.body is not None
    assert print_instruction(function.body.statements[-1]) == "@!%p1 st.global.v2.u32 [%rd1+-8], {%r1, _};"
