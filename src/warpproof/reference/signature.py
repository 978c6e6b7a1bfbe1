"""Whether what a launch passes is what the kernel takes."""

from __future__ import annotations

from typing import Final

from warpproof.core import InputError, element_width
from warpproof.ptx import Kernel
from warpproof.reference.manifest import Launch, Param

_HINT: Final = "list the parameters in the kernel's order, with their types"


def check_signature(kernel: Kernel, launch: Launch) -> None:
    """Raise InputError CLI629 unless number, sizes and kinds of the arguments are those that the PTX declares.

    The kind is compared where both sides tell: `.f32` and `.f64` hold no integer, `.u32`, `.s32`, `.u64`, `.s64` no
    float; `.b32`, arrays and 16-bit types (which hold halves) say nothing.
    """
    formals = [p for p in kernel.params if p.space == "param"]
    if len(formals) != len(launch.arguments):
        names = ", ".join(p.name for p in launch.arguments)
        raise InputError("CLI629", f"{kernel.name} has {len(formals)} parameters, the launch passes "
                                   f"{len(launch.arguments)}: {names}", hint=_HINT)
    for k, (formal, given) in enumerate(zip(formals, launch.arguments, strict=True), 1):
        size = 8 if _points(given) else element_width(given.dtype) // 8
        if formal.size != size or _kind(formal.type) not in ("", _given_kind(given)):
            raise InputError("CLI629", f"parameter {k} of {kernel.name} is a .{formal.type} of {formal.size} bytes, "
                                       f"the launch passes {given.name!r}: {_described(given)}", hint=_HINT)


def _points(given: Param) -> bool:
    return given.kind.startswith("ptr")


def _described(given: Param) -> str:
    return "a pointer, 8 bytes" if _points(given) else f"{given.dtype}, {element_width(given.dtype) // 8} bytes"


def _given_kind(given: Param) -> str:
    return "integer" if _points(given) or given.is_integer else "float"


def _kind(ptx_type: str) -> str:
    return "float" if ptx_type in ("f32", "f64") else "integer" if ptx_type in ("u32", "s32", "u64", "s64") else ""
