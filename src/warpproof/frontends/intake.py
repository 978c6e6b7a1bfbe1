"""From a file named on the command line or in a contract to PTX."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

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


@dataclass(frozen=True, slots=True)
class Request:
    """The kernel that a job asks for: a file, which kernel of it, and what it is compiled for."""

    path: str
    kernel: str | None
    sm: str
    options: tuple[str, ...]
    triton: TritonLaunch

    def load(self) -> PtxSource:
        """Its PTX, compiled in this process (Triton: in a child that is not confined)."""
        return load_kernel(Path(self.path), self.kernel, self.sm, self.options, self.triton)

    def as_dict(self) -> dict[str, Any]:
        """As JSON values; CUD711 if a constexpr is none."""
        given = self.triton
        made = {"path": self.path, "kernel": self.kernel, "sm": self.sm, "options": list(self.options),
                "triton": {"arguments": list(given.arguments), "constexprs": dict(given.constexprs),
                           "divisible_by_16": list(given.divisible_by_16), "options": dict(given.options or {})}}
        try:
            json.dumps(made, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError("CUD711", f"a constexpr of {Path(self.path).name} is no plain value: {error}") from None
        return made

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Request:
        """What `as_dict` wrote."""
        given = data["triton"]
        arguments = tuple((str(n), str(t), bool(p)) for n, t, p in given["arguments"])
        triton = TritonLaunch(arguments, given["constexprs"], tuple(given["divisible_by_16"]), given["options"])
        return cls(data["path"], data["kernel"], data["sm"], tuple(data["options"]), triton)
