"""Headers for NVRTC: those bundled in the library, and shims for host headers a device-only compiler lacks."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from warpproof.core import InputError

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
_INCLUDE: Final = re.compile(r"^\s*#\s*include\s*(?:[<\"]([^>\"\n]*)[>\"])?", re.MULTILINE)


def needs_bundled(source: str) -> bool:
    """True if the source may include a header that only NVRTC's bundled set has."""
    return any(name not in SHIMS or name in _STD for name in _INCLUDE.findall(source))


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
