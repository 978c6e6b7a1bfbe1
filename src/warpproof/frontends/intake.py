"""From a file named on the command line or in a contract to PTX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from warpproof.core import InputError
from warpproof.frontends.cuda import compile_cuda
from warpproof.frontends.source import PtxSource, read_source, select_entry
from warpproof.frontends.triton import TritonLaunch, compile_triton

_KINDS: Final = {".ptx": "ptx", ".cu": "cuda", ".cuh": "cuda", ".cpp": "cuda", ".py": "triton"}
_SPLIT: Final = re.compile(r"(.+?\.(?:ptx|cu|cuh|py))::(.+)", re.DOTALL)


def split_kernel(text: str) -> tuple[str, str | None]:
    """`file.cu::name` as (file, name); the name is None when only a file is given."""
    match = _SPLIT.fullmatch(text)
    return (match.group(1), match.group(2)) if match else (text, None)


def kernel_kind(file: Path) -> str:
    """`ptx`, `cuda` or `triton`, by the file's suffix; CUD709 for any other."""
    kind = _KINDS.get(file.suffix.lower())
    if kind is None:
        raise InputError("CUD709", f"cannot tell what {file.name!r} holds: unknown suffix {file.suffix.lower()!r}",
                         hint="kernels are .ptx, .cu or (Triton) .py files")
    return kind


def load_kernel(path: Path | str, kernel: str | None = None, sm: str = "sm_80",
                options: Sequence[str] = (), triton: TritonLaunch | None = None) -> PtxSource:
    """The PTX of the kernel `kernel` of a `.ptx`, `.cu` or Triton file, compiled for `sm`.

    A `.cu` is never run; a Triton file (`.py`) is executed in a child process, specialised for the launch `triton`.
    Raises InputError CUD7xx for a file, name or source that cannot be used.
    """
    file = Path(path)
    match kernel_kind(file):
        case "ptx":
            text = read_source(file)
            name = select_entry(text, kernel, file.name)
            return PtxSource(text, file.name, name, names={kernel or name: name})
        case "cuda":
            return compile_cuda(file, arch=sm, kernel=kernel, options=options)
        case _ if triton is None:
            raise InputError("CUD712", f"{file.name} is a Triton kernel, which is compiled for one launch",
                             hint="give a launch, or compile the kernel and pass its .ptx")
        case _:
            return compile_triton(file, triton, arch=sm, kernel=kernel)
