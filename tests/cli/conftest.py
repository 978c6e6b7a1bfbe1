"""A small case that is proved, as files."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PTX = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry twice(.param .u64 p_x, .param .u64 p_y, .param .u32 p_n)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<3>;
    .reg .b64 %rd<8>;
    ld.param.u64 %rd1, [p_x];
    ld.param.u64 %rd2, [p_y];
    ld.param.u32 %r1, [p_n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r2, 64, %r3;
    setp.ge.s32 %p1, %r4, %r1;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd1;
    cvta.to.global.u64 %rd4, %rd2;
    mul.wide.s32 %rd5, %r4, 4;
    add.s64 %rd6, %rd3, %rd5;
    add.s64 %rd7, %rd4, %rd5;
    ld.global.f32 %f1, [%rd6];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd7], %f2;
DONE:
    ret;
}
"""
SPEC = "import numpy as np\n\n\ndef reference(x, n):\n    return {'y': 2.0 * np.asarray(x, np.float64)}\n"
LAUNCH: dict[str, Any] = {
    "kernel": "twice",
    "params": [{"name": "x", "kind": "ptr_in", "dtype": "f32", "shape": ["n"]},
               {"name": "y", "kind": "ptr_out", "dtype": "f32", "shape": ["n"]},
               {"name": "n", "kind": "scalar", "dtype": "i32"}],
    "sizes": {"n": [5, 100]}, "preconditions": ["n >= 1", "n <= 2**30"],
    "grid": ["(n + 63) // 64", "1", "1"], "block": [64, 1, 1], "dynamic_shared": "0",
}


class Case:
    """The files of the case; each part may be replaced before it is written."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ptx, self.spec, self.launch = folder, PTX, SPEC, copy.deepcopy(LAUNCH)
        self.launch_text: str | bytes | None = None

    def arguments(self) -> list[str]:
        """The files written, as command-line arguments."""
        (self.folder / "k.ptx").write_text(self.ptx)
        (self.folder / "s.py").write_text(self.spec)
        text = self.launch_text if self.launch_text is not None else json.dumps(self.launch)
        (self.folder / "l.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        return ["--spec", str(self.folder / "s.py"), "--kernel", str(self.folder / "k.ptx"),
                "--launch", str(self.folder / "l.json")]

    def job(self, task: str = "prove") -> dict[str, Any]:
        """The files written, as a worker's job."""
        flags = self.arguments()
        return {"task": task, "timeout_s": 30.0, **{flags[i][2:]: flags[i + 1] for i in range(0, 6, 2)}}


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return Case(tmp_path)


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A counterexample of a wrong kernel, as `prove --save` writes it."""
    from warpproof.cli import main

    case = Case(tmp_path_factory.mktemp("saved"))
    case.ptx = case.ptx.replace("add.f32 %f2, %f1, %f1;", "mul.f32 %f2, %f1, %f1;")
    file = case.folder / "cex.json"
    assert main(["prove", *case.arguments(), "--save", str(file)]) == 1
    return file


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command here; gives its exit code, stdout and stderr."""

    def run(*argv: str) -> tuple[int, str, str]:
        from warpproof.cli import main

        code = main(argv)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
