"""The command that prints the coverage page."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpproof.report.coverage import main

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {
  .reg .b32 %r<4>;
  .reg .pred %p;
  { lop3.and.b32 %r1|%p, %r2, %r3, %r1, 0x80, %p; }
  tex.1d.v4.s32.s32 {%r1, %r2, %r3, %r1}, [t, {%r1}];
  ret;
}
"""


def test_page_of_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.ptx").write_text(KERNEL)
    assert main([str(tmp_path)]) == 0
    page = capsys.readouterr().out
    assert "Of 3 instructions in 1 files, 66.67 % have a rule." in page
    assert "| 1 | `lop3.bool.b32 d\\|p, a, b, c, lut:imm, q:pred` |" in page
    assert "| 1 | texture and surface memory is not modelled: `tex.*`" in page
    assert "## Control (1 instructions)" in page


def test_an_empty_corpus_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert "no PTX files" in capsys.readouterr().err
