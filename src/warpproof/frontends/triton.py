"""Triton kernels to PTX, without a GPU: the kernel's file is *executed*.

A Triton kernel is a Python function that only Python can build, so compiling it runs the author's code. The command
line does so in a confined process. `compile_triton` does it in a child with a fresh working directory and limits on
time, memory and files, which is no sandbox. What is proved afterwards is the PTX that came out.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from warpproof.core import InputError
from warpproof.frontends.source import PtxSource, read_source, select_entry

INSTALL_HINT: Final = "pip install 'warpproof[triton]'  (no GPU needed), or compile the kernel and pass its .ptx"
_SECONDS: Final = 120
_TYPES: Final = {"bool": "i1", "f16": "fp16", "bf16": "bf16", "f32": "fp32", "f64": "fp64"}
_KEPT: Final = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


@dataclass(frozen=True, slots=True)
class TritonLaunch:
    """What a Triton kernel is specialised for: (name, dtype, is a pointer) of each run-time argument, the `constexpr`
    values, the arguments divisible by 16, and compiler options such as `num_warps`."""

    arguments: tuple[tuple[str, str, bool], ...]
    constexprs: Mapping[str, Any]
    divisible_by_16: tuple[str, ...] = ()
    options: Mapping[str, int] | None = None


def triton_job(text: str, file: str, launch: TritonLaunch, arch: str, kernel: str | None) -> dict[str, Any]:
    """What `build` takes: one `@triton.jit` function of a text, specialised for a launch.

    Raises InputError CUD710 without Triton, CUD703 for an unknown target, CUD711 for a constexpr that is no value.
    """
    found = importlib.util.find_spec("triton")
    if found is None or found.origin is None:  # a folder of that name is no package
        raise InputError("CUD710", f"{file} is a Triton kernel, and Triton is not installed", hint=INSTALL_HINT)
    digits = arch.removeprefix("sm_").rstrip("af")
    if not digits.isdecimal():
        raise InputError("CUD703", f"{arch!r} is no target", hint="a target is sm_80, sm_90a, …")
    signature = {name: ("*" if pointer else "") + _TYPES.get(dtype, dtype) for name, dtype, pointer in launch.arguments}
    job = {
        "text": text, "file": file, "kernel": kernel, "signature": signature, "constexprs": dict(launch.constexprs),
        "divisible": list(launch.divisible_by_16), "arch": int(digits), "options": dict(launch.options or {}),
    }
    try:
        json.dumps(job)
    except (TypeError, ValueError) as error:
        raise InputError("CUD711", f"a constexpr of {file} is no plain value: {error}") from None
    return job


def triton_source(answer: Mapping[str, Any], text: str, file: str, arch: str) -> PtxSource:
    """What `build` gave, as the PTX of the kernel in a file with this text."""
    entry = select_entry(str(answer["ptx"]), None, file)
    return PtxSource(str(answer["ptx"]), str(Path(file).with_suffix(".ptx")), entry, arch,
                     f"triton {answer['version']}", {str(answer["kernel"]): entry}, {file: text})


def compile_triton(source: Path, launch: TritonLaunch, *, arch: str = "sm_80", kernel: str | None = None) -> PtxSource:
    """The PTX of one `@triton.jit` function of a Python file, specialised for a launch.

    Executes the file in a child process. Raises InputError CUD711 with Triton's own message, and as `triton_job` says.
    """
    text = read_source(source)
    job = triton_job(text, source.name, launch, arch, kernel)
    answer = _compiled(json.dumps({**job, "folder": str(source.resolve().parent)}), source.name)
    return triton_source(answer, text, source.name, arch)


def _compiled(body: str, name: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="warpproof-triton-") as folder:
        environment = {k: os.environ[k] for k in _KEPT if k in os.environ} | {
            "HOME": folder, "TMPDIR": folder, "TRITON_CACHE_DIR": folder, "TRITON_DISABLE_LINE_INFO": "1",
            "TRITON_DEFAULT_FP_FUSION": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(sys.path),
        }
        command = [sys.executable, "-P", "-m", "warpproof.frontends.triton_child"]
        try:
            done = subprocess.run(command, input=body.encode(), capture_output=True, cwd=folder, env=environment,
                                  timeout=_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise InputError("CUD711", f"compiling {name} took more than {_SECONDS} s") from None
    try:
        answer = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    except ValueError:
        answer = {}
    if isinstance(answer, dict) and all(isinstance(answer.get(k), str) for k in ("ptx", "version", "kernel")):
        return answer
    said = answer.get("error") if isinstance(answer, dict) else None
    last = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"exit status {done.returncode}"]
    raise InputError("CUD711", f"Triton cannot compile {name}: {str(said or last[0])[:800]}")
