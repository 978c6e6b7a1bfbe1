"""PTX text with the kernel that is meant, and the reading of untrusted source files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from warpproof.core import InputError, read_regular

MAX_SOURCE_BYTES: Final = 64 << 20
_COMMENT: Final = re.compile(r"//[^\n]*|/\*.*?\*/|\"[^\"\n]*\"", re.DOTALL)
_ENTRY: Final = re.compile(r"\.entry\s+([A-Za-z_$%][A-Za-z0-9_$]*)")
_MANGLED: Final = re.compile(r"_Z(N?)((?:\d+[A-Za-z_].*)?)")


@dataclass(frozen=True, slots=True)
class PtxSource:
    """One PTX text and the `.entry` in it that is meant.

    `file` names the text in messages; `sources` holds the text of the source files by the name that `.file` gives
    them; `names` maps a kernel as asked for to its name in the PTX; `log` is what the compiler said.
    """

    text: str
    file: str
    kernel: str
    arch: str = ""
    origin: str = "ptx"
    names: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    log: str = ""


def read_source(path: Path, limit: int = MAX_SOURCE_BYTES) -> str:
    """The text of a regular file of at most `limit` bytes; anything else is an InputError (CUD706)."""
    try:
        data = read_regular(path, limit)
    except OSError as error:
        raise InputError("CUD706", f"cannot read {str(path)!r}: {error.strerror}") from None
    data = data.rstrip(b"\0")  # several compilers end their PTX with a NUL
    if b"\0" in data:
        raise InputError("CUD706", f"{str(path)!r} is a binary file",
                         hint="pass PTX text (.ptx) or CUDA C++ (.cu); cubins and fatbins are not read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError("CUD706", f"{str(path)!r} is not UTF-8 text (byte {error.start})") from None


def entry_names(ptx: str) -> tuple[str, ...]:
    """The names of the `.entry` functions of a PTX text, in order, comments and strings left out."""
    return tuple(dict.fromkeys(_ENTRY.findall(_COMMENT.sub(" ", ptx))))


def unmangled(name: str) -> str:
    """The plain or `ns::`-qualified identifier in an Itanium-mangled function name; `name` itself if it has none."""
    match = _MANGLED.fullmatch(name)
    if match is None:
        return name
    nested, rest = match.group(1), match.group(2)
    parts: list[str] = []
    while (digits := re.match(r"\d+", rest)) is not None and (nested or not parts):
        length = int(digits.group()[:4])
        start = digits.end()
        parts.append(rest[start : start + length])
        rest = rest[start + length :]
    return "::".join("(anonymous namespace)" if p.startswith("_GLOBAL__N") else p for p in parts) or name


def select_entry(ptx: str, kernel: str | None, file: str) -> str:
    """The one `.entry` that `kernel` names, exactly or by its C++ identifier; the only one if `kernel` is None.

    Raises InputError CUD704 if there is none and CUD705 if there are several.
    """
    names = entry_names(ptx)
    if not names:
        raise InputError("CUD704", f"{file} holds no kernel (no `.entry`)")
    if kernel is None:
        if len(names) == 1:
            return names[0]
        raise InputError("CUD705", f"{file} holds {len(names)} kernels: {_listing(names)}",
                         hint="name one with --kernel-name, or as file::kernel")
    if kernel in names:
        return kernel
    found = [n for n in names if kernel in (unmangled(n), unmangled(n).rsplit("::", 1)[-1])]
    if len(found) == 1:
        return found[0]
    if found:
        raise InputError("CUD705", f"{kernel!r} names {len(found)} kernels of {file}: {_listing(tuple(found))}",
                         hint="use one of these mangled names")
    raise InputError("CUD704", f"{file} holds no kernel {kernel!r}; it holds {_listing(names)}")


def _listing(names: tuple[str, ...]) -> str:
    shown = ", ".join(n if unmangled(n) == n else f"{n} ({unmangled(n)})" for n in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")
