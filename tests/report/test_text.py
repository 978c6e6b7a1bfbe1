"""Reports as text."""

from __future__ import annotations

import base64
import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpproof.core import PROPERTIES, Assumption, Reason, Verdict
from warpproof.judge import Evidence, PropertyResult, Report, undecided
from warpproof.report import counterexample_lines, print_lines, report_lines

CEX = {
    "property": "equivalence", "summary": "y is not stored when x[0] is 2.71875",
    "sizes": {"rows": 1, "n": 128}, "grid": [1, 1, 1], "block": [256, 1, 1],
    "scalars": {"alpha": {"dtype": "f32", "bits": "0x40000000"}, "n": {"dtype": "i32", "bits": 128}},
    "inputs": {"x": {"dtype": "f32", "shape": [1, 128],
                     "data": base64.b64encode(struct.pack("<128f", *range(128))).decode()},
               "m": {"dtype": "i8", "shape": [2], "bits": ["0xff", 1]}},
    "output": "y", "index": [0, 8], "dtype": "f32", "expected": 1.0, "actual": "0x3f800001",
    "mismatched": 1, "total": 128, "greatest_absolute": {"value": 1.19e-07, "index": [0, 8]},
    "accesses": [{
        "kind": "write", "address": "y[0, 8]", "cta": [0, 0, 0], "thread": [8, 0, 0],
        "ptx": {"file": "k.ptx", "line": 57, "column": 2, "length": 15, "text": "\tst.global.f32 [%rd4], %f3;"},
        "source": {"file": "k.cu", "line": 12, "text": "    y[i] = v;"}}],
}


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def plain(report: Report) -> str:
    stream = io.StringIO()
    print_lines(report_lines(report), stream)
    return stream.getvalue()


def proved() -> Report:
    good = PropertyResult(Verdict.PROVED, evidence=(Evidence("normal-form", "c"), Evidence("solver", "d")))
    return Report("softmax.cu::softmax", Verdict.PROVED, dict.fromkeys(PROPERTIES[:4], good),
                  (Assumption("no-alias", "buffers do not overlap", "contract"),), sizes="for all rows >= 1, n >= 1",
                  time_s=0.4242, peak_mb=120)


def test_one_line_per_property() -> None:
    assert plain(proved()) == """\
softmax.cu::softmax  PROVED
  for all rows >= 1, n >= 1
  equivalence  PROVED       2 obligations: normal-form, solver
  memory       PROVED       2 obligations: normal-form, solver
  races        PROVED       2 obligations: normal-form, solver
  barriers     PROVED       2 obligations: normal-form, solver
  numerics     not asked for
  assuming
    no-alias: buffers do not overlap  [contract]
  0.42 s, 120 MB
"""


def test_reasons_and_what_would_settle_them() -> None:
    text = plain(undecided("k", Reason.TIMEOUT, "stopped after 3 s"))
    assert "races        INCONCLUSIVE timeout" in text
    assert "stopped after 3 s" in text
    assert "--timeout" in text


def test_counterexample() -> None:
    stream = io.StringIO()
    print_lines(counterexample_lines(CEX), stream)
    assert stream.getvalue() == """\
  counterexample to equivalence
    y is not stored when x[0] is 2.71875
    sizes   rows = 1, n = 128
    launch  grid (1, 1, 1), block (256, 1, 1)
    alpha = 2.0                      0x1.0000000000000p+1  0x40000000
    x: f32[1, 128] = 0, 1, 2, 3, 4, 5, 6, 7, … 120 more
    m: i8[2] = -1, 1
    at y[0, 8]
      expected  1.0                      0x1.0000000000000p+0
      actual    1.0000001192092896       0x1.0000020000000p+0  0x3f800001
      differ by 1.1920928955078125e-07 (1 ulp)
    Mismatched elements: 1 / 128 (0.8%)
    Greatest absolute difference: 1.19e-07 at index [0, 8]
    write of y[0, 8] by CTA (0, 0, 0), thread (8, 0, 0)
      k.ptx:57:2
        |  st.global.f32 [%rd4], %f3;
        |  ^^^^^^^^^^^^^^^
      k.cu:12
        |     y[i] = v;
"""


def test_colour_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    colour, none = Terminal(), Terminal()
    print_lines(report_lines(proved()), colour)
    monkeypatch.setenv("NO_COLOR", "1")
    print_lines(report_lines(proved()), none)
    assert "\x1b[" in colour.getvalue()
    assert none.getvalue() == plain(proved())


def test_text_from_the_kernel_cannot_drive_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for stream in (io.StringIO(), Terminal()):
        print_lines([(("a\x1b]0;x\x07\u202eb [bold]c[/bold]", ""),)], stream)
        assert stream.getvalue() == "a?]0;x??b [bold]c[/bold]\n"


def test_a_stream_that_cannot_show_a_character() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    print_lines([(("a … ≥ \ud800", ""),)], stream)
    stream.flush()
    assert raw.getvalue() == b"a ? ? ?\n"


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec="ascii")),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(
                        ["dtype", "bits", "shape", "data", "line", "column", "length", "text", "value", "index", "x"]),
                        inner, max_size=4), max_leaves=12)


@given(st.fixed_dictionaries({}, optional={key: JSON | st.just(value) for key, value in CEX.items()}))
def test_any_counterexample_can_be_shown(cex: dict[str, object]) -> None:
    stream = io.StringIO()
    print_lines(counterexample_lines(cex), stream)
    assert stream.getvalue().startswith("  counterexample to ")
