"""Files that a user names: only regular ones of bounded size are read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warpproof.cli import main
from warpproof.core import read_regular


def test_a_regular_file(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"123")
    assert read_regular(file, 3) == b"123"
    (tmp_path / "link").symlink_to(file)
    assert read_regular(tmp_path / "link", 3) == b"123"
    with pytest.raises(OSError, match="larger than 2 bytes"):
        read_regular(file, 2)


def test_anything_else_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # to open it would block
    for path in (Path("/dev/zero"), tmp_path, tmp_path / "pipe"):
        with pytest.raises(OSError, match="not a regular file"):
            read_regular(path, 10)
    for path in (tmp_path / "missing", Path("x\0"), Path("y" * 5000)):
        with pytest.raises(OSError, match=r".") as caught:
            read_regular(path, 10)
        assert caught.value.strerror


@pytest.mark.parametrize("argv", [
    ("litmus", "/dev/zero"), ("replay", "/dev/zero"), ("sandbox", "verify", "/dev/zero"),
    ("sandbox", "do", "solve", "/dev/zero"), ("prove", "/dev/zero"),
    ("prove", "--spec", "/dev/zero", "--kernel", "/dev/zero", "--launch", "/dev/zero"),
], ids=" ".join)
def test_commands_refuse_devices(argv: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "error[" in err


def test_a_folder_of_litmus_tests_may_change_meanwhile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    (tmp_path / "closed").mkdir(mode=0)
    assert main(("litmus", str(tmp_path))) == 2
    assert "no .litmus or .test file" in capsys.readouterr().err
