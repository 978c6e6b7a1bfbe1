"""From a file named on the command line or in a contract to PTX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from warpproof.core import InputError, Unsupported
from warpproof.frontends.cuda import compile_cuda
from warpproof.frontends.source import PtxSource, read_source, select_entry

_SPLIT: Final = re.compile(r"(.+?\.(?:ptx|cu|cuh|py))::(.+)", re.DOTALL)


def split_kernel(text: str) -> tuple[str, str | None]:
    """`file.cu::name` as (file, name); the name is None when only a file is given."""
    match = _SPLIT.fullmatch(text)
    return (match.group(1), match.group(2)) if match else (text, None)


def load_kernel(path: Path | str, kernel: str | None = None, sm: str = "sm_80",
                options: Sequence[str] = ()) -> PtxSource:
    """The PTX of the kernel `kernel` of a `.ptx` or `.cu` file; a `.cu` is compiled for `sm`, never run.

    Raises InputError CUD7xx for a file, name or source that cannot be used, Unsupported for a front end that is
    not there.
    """
    file = Path(path)
    match file.suffix.lower():
        case ".ptx":
            text = read_source(file)
            name = select_entry(text, kernel, file.name)
            return PtxSource(text, file.name, name, names={kernel or name: name})
        case ".cu" | ".cuh" | ".cpp":
            return compile_cuda(file, arch=sm, kernel=kernel, options=options)
        case ".py":
            read_source(file)
            raise Unsupported("Python kernel source", "this front end is not available yet",
                              hint="compile the kernel yourself and pass its .ptx")
        case suffix:
            raise InputError("CUD709", f"cannot tell what {file.name!r} holds: unknown suffix {suffix!r}",
                             hint="kernels are .ptx or .cu files")
