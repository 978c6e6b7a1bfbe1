"""Whatever the text, only InputError comes out (Unsupported from resolve), and soon."""

import re
import time

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ptx_corpus import read_corpus
from ptx_samples import FEATURES

from warpproof.core import InputError, Unsupported
from warpproof.ptx import Module, parse, print_module, resolve, tokens

CHUNK = 3000  # characters of a corpus file that take part
HEADS = re.compile(r"\.version[^{]*\{", re.DOTALL)


def samples() -> list[str]:
    """Short texts: the features, and pieces of corpus files with their heads."""
    found = list(FEATURES.values())
    for text in read_corpus().values():
        found.append(text[:CHUNK])
        found.append(text[: text.find("{") + 1][-CHUNK:] + text[len(text) // 2 :][:CHUNK] + "}")
    return found


SAMPLES = samples()
WORDS = ["{", "}", "(", ")", "[", "]", ";", ",", ":", "|", "@", "!", "_", "<", ">", "=", "%", "-", "+", ".reg",
    ".b32", ".param",
         ".entry", ".func", ".visible", ".align", "0", "4294967295", "0f3F800000", "%r1", "%r<9>", "L", "bra",
         "ret", "call",
         ".branchtargets", ".callprototype", '"', "/*", "*/", "//", "\n", "\0", "é", ".loc 1 2 3", ".section",
         "999999999999",
         ".v4", "generic(", "0xff(", "?", "1.5e", "::", "..", "#"]


def outcome(text: str) -> Module | InputError:
    try:
        return parse(text, "fuzz.ptx")
    except InputError as error:
        return error


def refusal(module: Module, name: str) -> InputError | Unsupported | None:
    try:
        resolve(module, name)
    except (InputError, Unsupported) as error:
        return error
    return None


def check(error: InputError) -> None:
    assert error.code.startswith("PTX0")
    assert error.render()
    assert error.span is None or min(error.span.line, error.span.column, error.span.length) >= 1


def survives(text: str) -> None:
    start = time.process_time()
    found = outcome(text)
    if isinstance(found, InputError):
        check(found)
    else:
        printed = print_module(found)
        assert tokens(print_module(parse(printed))) == tokens(printed)
        for function in found.entries()[:3]:
            error = refusal(found, function.name)
            if isinstance(error, InputError):
                check(error)
    assert time.process_time() - start < 2.0


SETTINGS = settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@SETTINGS
@given(st.data())
def test_texts_with_words_put_in_or_taken_out(data: st.DataObject) -> None:
    words = re.findall(r"\s+|[\w.%$]+|.", data.draw(st.sampled_from(SAMPLES)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at : at + data.draw(st.integers(0, 2))] = data.draw(st.lists(st.sampled_from(WORDS), max_size=2))
        if not words:
            return
    survives("".join(words))


@SETTINGS
@given(st.data())
def test_texts_cut_and_joined(data: st.DataObject) -> None:
    first, second = data.draw(st.sampled_from(SAMPLES)), data.draw(st.sampled_from(SAMPLES))
    survives(first[: data.draw(st.integers(0, len(first)))] + second[data.draw(st.integers(0, len(second))) :])


@SETTINGS
@given(st.data())
def test_texts_with_characters_changed(data: st.DataObject) -> None:
    text = list(data.draw(st.sampled_from(SAMPLES)))
    for _ in range(data.draw(st.integers(1, 5))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.characters(max_codepoint=300))
    survives("".join(text))


@SETTINGS
@given(st.lists(st.sampled_from([*WORDS, " "]), max_size=60))
def test_word_salad(words: list[str]) -> None:
    survives(".version 9.0 .target sm_100a .address_size 64 .entry k { " + " ".join(words))


@SETTINGS
@given(st.binary(max_size=400))
def test_bytes(data: bytes) -> None:
    survives(data.decode("latin-1"))
