"""The Triton front end: kernels compiled in a child process, and clear errors."""

from __future__ import annotations

import importlib.util
import textwrap
from pathlib import Path

import pytest

from warpproof.core import InputError
from warpproof.frontends import PtxSource, TritonLaunch, compile_triton, load_kernel
from warpproof.ptx import parse, resolve

FILE = Path(__file__).parent / "triton_sources" / "scaled_sum.py"
LAUNCH = TritonLaunch(
    (("x", "f32", True), ("y", "f32", True), ("out", "f32", True), ("n", "i32", False), ("alpha", "f32", False)),
    {"BLOCK": 256}, ("x", "y", "out"), {"num_warps": 2},
)
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


def _code(error: pytest.ExceptionInfo[InputError]) -> str:
    return error.value.code


@pytest.mark.skipif(importlib.util.find_spec("triton") is not None, reason="Triton is installed")
def test_without_triton_the_error_says_what_to_install() -> None:
    with pytest.raises(InputError) as error:
        compile_triton(FILE, LAUNCH)
    assert _code(error) == "CUD710"
    assert "warpproof[triton]" in str(error.value.hint)


def test_a_triton_kernel_needs_a_launch() -> None:
    with pytest.raises(InputError) as error:
        load_kernel(FILE)
    assert _code(error) == "CUD712"


@needs_triton
def test_a_kernel_becomes_ptx_for_the_target() -> None:
    source = load_kernel(FILE, "scaled_sum", "sm_90", (), LAUNCH)
    assert isinstance(source, PtxSource)
    assert source.kernel == "scaled_sum"
    assert source.origin.startswith("triton ")
    assert ".target sm_90" in source.text
    assert ".reqntid 64" in source.text
    kernel = resolve(parse(source.text, source.file), source.kernel)
    assert len(kernel.params) == 7  # and Triton's two scratch pointers
    assert compile_triton(FILE, LAUNCH, arch="sm_90").text == source.text


@needs_triton
@pytest.mark.parametrize(("code", "launch", "says"), [
    ("def f(:", LAUNCH, "SyntaxError"),
    ("x = 1", LAUNCH, "no @triton.jit function"),
    ("raise RuntimeError('at import')", LAUNCH, "at import"),
    ("import os; os._exit(3)", LAUNCH, "exit status 3"),
    (None, TritonLaunch(LAUNCH.arguments, {}), "no value for 'BLOCK'"),
    (None, TritonLaunch((*LAUNCH.arguments, ("z", "f32", True)), {"BLOCK": 256}), "no parameter 'z'"),
    (None, TritonLaunch(LAUNCH.arguments, {"BLOCK": 100}), "power of 2"),
    (None, TritonLaunch(LAUNCH.arguments, {"BLOCK": object()}), "no plain value"),
])
def test_what_does_not_compile_is_an_input_error(code: str | None, launch: TritonLaunch, says: str,
                                                 tmp_path: Path) -> None:
    file = FILE if code is None else tmp_path / "kernel.py"
    if code is not None:
        file.write_text(textwrap.dedent(code), "utf-8")
    with pytest.raises(InputError, match=says) as error:
        compile_triton(file, launch, kernel="scaled_sum")
    assert _code(error) == "CUD711"
