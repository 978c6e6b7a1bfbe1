"""Headers for NVRTC, as texts by the name they are included by: those beside the source, those bundled in the library,
and shims for host headers that a device-only compiler lacks.

The compiler is given texts, never folders: what a source includes is looked for here, in the folders that the user
named and nowhere else, so that a source cannot have other files read.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from warpproof.core import InputError, read_regular

PRELUDE_NAME: Final = "warpproof_prelude.h"
# nvcc gets these from the host's <math.h>; NVRTC has no host headers.
PRELUDE: Final = """\
#ifndef INFINITY
#define INFINITY (__builtin_bit_cast(float, 0x7f800000))
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#endif
#ifndef NAN
#define NAN (__builtin_bit_cast(float, 0x7fffffff))
#endif
"""
_INTEGERS: Final = """\
#pragma once
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned int uint32_t;
typedef unsigned long long uint64_t; typedef long long intptr_t; typedef unsigned long long uintptr_t;
"""
_FLOATS: Final = """\
#pragma once
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define FLT_MANT_DIG 24
#define DBL_MAX 1.7976931348623158e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_MANT_DIG 53
"""
_LIMITS: Final = """\
#pragma once
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-2147483647 - 1)
#define UINT_MAX 4294967295U
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-9223372036854775807LL - 1)
#define ULLONG_MAX 18446744073709551615ULL
"""
_EMPTY: Final = (
    "cuda_runtime.h", "cuda_runtime_api.h", "cuda.h", "device_launch_parameters.h", "math.h", "cmath", "stdio.h",
    "cstdio", "iostream", "stdlib.h", "cstdlib", "string.h", "cstring", "stddef.h", "cstddef", "assert.h", "cassert",
)
_STD: Final = ("type_traits", "utility", "limits", "array", "tuple", "algorithm", "functional", "numeric")
SHIMS: Final[dict[str, str]] = {
    **dict.fromkeys(_EMPTY, "#pragma once\n"),
    **dict.fromkeys(("stdint.h", "cstdint"), _INTEGERS),
    **dict.fromkeys(("float.h", "cfloat"), _FLOATS),
    **dict.fromkeys(("limits.h", "climits"), _LIMITS),
    **{name: f"#pragma once\n#include <cuda/std/{name}>\nnamespace std {{ using namespace cuda::std; }}\n"
       for name in _STD},
}
_SUFFIXES: Final = (".h", ".hh", ".hpp", ".hxx", ".cuh", ".cu", ".inl", ".inc", ".ipp", ".def")
_MAX_HEADERS: Final = 4096
_MAX_BYTES: Final = 64 << 20
_INCLUDE: Final = re.compile(
    r"""^[ \t]*\#[ \t]*(?:include|define[ \t]+\w{1,200})[ \t]*([<"])([^>"\n]{1,300})[>"]  # also of `#define H <x.h>`
      | (?:include|INCLUDE)\w{0,40}[ \t]*\([ \t]*([<"])([^>"\n]{1,300})[>"]             # __has_include and its wrappers
    """, re.MULTILINE | re.VERBOSE)
_FOLDER: Final = re.compile(r"(?:-I|--include-path=)(.+)", re.DOTALL)
_BEFORE: Final = re.compile(r"--?(?:pre-)?include=(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Headers:
    """Texts by the name they are included by, and the names that were not found."""

    texts: Mapping[str, str]
    missing: frozenset[str]


def included(source: str, folder: Path | None, options: Sequence[str]) -> Headers:
    """The headers that a source may include, and those may include, of its own folder and the options' -I folders.

    Only files within these folders that have a header's suffix are read. CUD713 if one name stands for two of them.
    """
    given = [Path(m[1]) for m in map(_FOLDER.fullmatch, options) if m]
    names = [m[1] for m in map(_BEFORE.fullmatch, options) if m]
    folders = [p.resolve() for p in (*((folder,) if folder else ()), *given)]
    search = _Search(folders, _SUFFIXES)
    search.follow(source, folders[0] if folder else None)
    search.names(names)
    return Headers(search.texts, frozenset(search.missing))


def wanted_headers(headers: Headers) -> list[str]:
    """Which of the compiler's bundled headers the source may include, in order."""
    shims = {n for n in headers.missing if n in SHIMS}
    own = {n for shim in shims for _, n in _names(SHIMS[shim])}
    return sorted((headers.missing - set(SHIMS)) | own)


def bundled_headers(names: Iterable[str], root: Path, taken: Collection[str] = ()) -> dict[str, str]:
    """The bundled headers of these names, and all that they include. CUD713 if `taken` has a name that one needs."""
    search = _Search([root, root / "cccl"], None)
    search.names(names)
    for name in sorted(set(search.texts) & set(taken)):
        raise _two(name)
    return search.texts


class _Search:
    """Includes, followed to their end. With `suffixes` None the folders are trusted to hold nothing but headers."""

    def __init__(self, folders: Sequence[Path], suffixes: tuple[str, ...] | None) -> None:
        self._folders, self._suffixes = folders, suffixes
        self._read: dict[Path, str] = {}
        self._places: dict[str, Path] = {}
        self._bytes = 0
        self.texts: dict[str, str] = {}
        self.missing: set[str] = set()

    def names(self, names: Iterable[str]) -> None:
        """Look for these, as the source itself would."""
        for name in names:
            found = self._open(name, None)
            if found is not None:
                self.follow(self.texts[name], found.parent)

    def follow(self, text: str, folder: Path | None) -> None:
        """Look for everything that a text in this folder includes."""
        pending = [(text, folder)]
        while pending:
            body, place = pending.pop()
            for quoted, name in _names(body):
                found = self._open(name, place if quoted else None)
                if found is not None:
                    pending.append((self.texts[name], found.parent))

    def _open(self, name: str, folder: Path | None) -> Path | None:
        """The file that a name stands for, if its text was not read before; now it is."""
        if len(self.texts) + len(self.missing) >= _MAX_HEADERS:
            raise InputError("CUD713", f"more than {_MAX_HEADERS} headers are included")
        if name in SHIMS and self._suffixes is not None:
            self.missing.add(name)
            return None
        for place in (*((folder,) if folder else ()), *self._folders):
            path = self._inside(place / name)
            if path is None:
                continue
            if self._places.setdefault(name, path) != path:
                raise _two(name)
            if name in self.texts:
                return None
            known = path in self._read
            self.texts[name] = self._read[path] if known else self._text(path)
            return None if known else path
        self.missing.add(name)
        return None

    def _inside(self, path: Path) -> Path | None:
        """The real file, if it is a header within one of the folders."""
        try:
            real = path.resolve()
            inside = any(real.is_relative_to(folder) for folder in self._folders)
            fits = self._suffixes is None or real.suffix.lower() in self._suffixes
            return real if inside and fits and real.is_file() else None
        except (OSError, ValueError, RuntimeError):  # a name too long, with a NUL, or a loop of links
            return None

    def _text(self, path: Path) -> str:
        try:
            data = read_regular(path, _MAX_BYTES - self._bytes)
        except OSError as error:
            raise InputError("CUD706", f"cannot read the header {path.name!r}: {error.strerror}") from None
        self._bytes += len(data)
        self._read[path] = data.decode("utf-8", "surrogateescape")
        return self._read[path]


def _names(text: str) -> list[tuple[bool, str]]:
    """What a text may include, and whether it is in quotes: only then the text's own folder is searched."""
    return list(dict.fromkeys(((a or c) == '"', b or d) for a, b, c, d in _INCLUDE.findall(text)))


def _two(name: str) -> InputError:
    return InputError("CUD713", f"two headers are included by the name {name!r}",
                      hint="the compiler gets headers by name: rename one, or include it by a longer path")


def bundled_directory(version: str, install: Callable[[str], str]) -> Path:
    """A folder with the headers of NVRTC `version`, installed on first use by `install(folder)`.

    `install` returns an error text, empty when it went well. The folder is under $XDG_CACHE_HOME, or temporary
    if that cannot be written; it appears by one rename, so concurrent runs never see half of it.
    """
    try:
        return _installed(_cache_root() / f"nvrtc-{version}", install)
    except OSError:
        return _installed(Path(tempfile.gettempdir()) / f"warpproof-{os.getuid()}" / f"nvrtc-{version}", install)


def _cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "warpproof"


def _installed(target: Path, install: Callable[[str], str]) -> Path:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if target.parent.stat().st_uid != os.getuid():
        raise InputError("CUD708", f"{str(target.parent)!r} belongs to another user; its headers are not trusted",
                         hint="set XDG_CACHE_HOME to a folder of your own")
    if target.is_dir():
        return target
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="install-") as scratch:
        fresh = Path(scratch) / "include"
        fresh.mkdir()
        if problem := install(str(fresh)):
            raise InputError("CUD708", f"NVRTC could not install its headers: {problem}",
                             hint="pip install -U nvidia-cuda-nvrtc cuda-bindings")
        try:
            fresh.rename(target)
        except OSError:
            if not target.is_dir():  # else another run was first
                raise
    return target
