"""Reading files that may hold anything."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpproof.core import InputError
from warpproof.frontends import entry_names, load_kernel, read_source, select_entry, split_kernel

PTX = """\
// .entry comment
.version 8.0
.target sm_80
/* .entry block */
.visible .entry first(.param .u64 p) { ret; }
.entry _Z6secondPf() { ret; }
.weak .entry $odd_() { ret; }
.func helper() { ret; }
"""


def test_entries_in_order_without_comments() -> None:
    assert entry_names(PTX) == ("first", "_Z6secondPf", "$odd_")


def test_selection() -> None:
    assert select_entry(PTX, "first", "a.ptx") == "first"
    assert select_entry(PTX, "second", "a.ptx") == "_Z6secondPf"
    for name, code in ((None, "CUD705"), ("third", "CUD704"), ("", "CUD704")):
        with pytest.raises(InputError) as caught:
            select_entry(PTX, name, "a.ptx")
        assert caught.value.code == code
        assert "first" in caught.value.message


@pytest.mark.parametrize(("text", "expected"), [
    ("k.cu", ("k.cu", None)), ("k.cu::f", ("k.cu", "f")), ("a/b.ptx::ns::f<1>", ("a/b.ptx", "ns::f<1>")),
    ("k.cu::", ("k.cu::", None)), ("::f", ("::f", None)), ("x.txt::f", ("x.txt::f", None)),
])
def test_split_kernel(text: str, expected: tuple[str, str | None]) -> None:
    assert split_kernel(text) == expected


def test_ptx_files(tmp_path: Path) -> None:
    file = tmp_path / "a.PTX"
    file.write_bytes(b"\xef\xbb\xbf" + PTX.encode() + b"\0")
    source = load_kernel(file, "second")
    assert source.kernel == "_Z6secondPf"
    assert source.text == PTX


def code_of(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        load_kernel(path)
    assert caught.value.render()
    return caught.value.code


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    fifo, folder, binary = tmp_path / "f.ptx", tmp_path / "d.cu", tmp_path / "b.ptx"
    os.mkfifo(fifo)
    folder.mkdir()
    binary.write_bytes(b"\x7fELF\0\0\1\0more")
    latin = tmp_path / "l.cu"
    latin.write_bytes(b"// caf\xe9\n")
    empty = tmp_path / "e.ptx"
    empty.write_bytes(b"")
    loop = tmp_path / "s.cu"
    loop.symlink_to(loop)
    assert code_of(fifo) == "CUD706"
    assert code_of(folder) == "CUD706"
    assert code_of(binary) == "CUD706"
    assert code_of(latin) == "CUD706"
    assert code_of(loop) == "CUD706"
    assert code_of(empty) == "CUD704"
    assert code_of(Path("/dev/zero")) == "CUD709"
    assert code_of(tmp_path / "missing.ptx") == "CUD706"
    assert code_of(tmp_path / ("n" * 5000 + ".cu")) == "CUD706"
    assert code_of(tmp_path / "nul\0.cu") == "CUD706"
    assert code_of(tmp_path / "k.cubin") == "CUD709"
    with pytest.raises(InputError, match="larger"):
        read_source(latin, limit=3)


def test_python_sources_are_not_run_without_a_launch(tmp_path: Path) -> None:
    file = tmp_path / "k.py"
    file.write_text("raise SystemExit('executed')")
    with pytest.raises(InputError, match="compiled for one launch"):
        load_kernel(file)


ASCII = st.characters(codec="ascii")


@given(st.text(ASCII, max_size=200), st.text(ASCII, max_size=20) | st.none())
def test_selection_never_fails_otherwise(text: str, name: str | None) -> None:
    with contextlib.suppress(InputError):
        assert select_entry(text, name, "x") in entry_names(text)


@given(st.from_regex(r"_ZN?(\d{1,30}[a-z_]*){0,4}E?v?", fullmatch=True, alphabet=ASCII))
def test_odd_mangled_names(name: str) -> None:
    assert select_entry(f".entry {name}()", name, "x") == name
