"""`warpproof doctor`: versions of what is installed, and what is missing for which input."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
from typing import Final, TextIO

from warpproof import __version__
from warpproof.cli.supervise import default_memory
from warpproof.core import WarpproofError

_NEEDED: Final = ("numpy", "z3-solver", "islpy", "python-flint", "rich")
_OPTIONAL: Final = (
    ("cuda-bindings", "CUDA C++ sources", "pip install 'warpproof[cuda]'"),
    ("nvidia-cuda-nvrtc", "CUDA C++ sources", "pip install 'warpproof[cuda]'"),
)


def doctor(stream: TextIO) -> int:
    """Print the list; 0 if everything that is always needed is there, else 2."""
    stream.write(f"warpproof {__version__}, Python {platform.python_version()}, {platform.platform()}\n")
    missing = False
    for name in _NEEDED:
        version = _version(name)
        missing |= version is None
        stream.write(f"  {name:<20} {version or 'MISSING: pip install ' + name}\n")
    for name, purpose, hint in _OPTIONAL:
        stream.write(f"  {name:<20} {_version(name) or f'not installed; for {purpose}: {hint}'}\n")
    stream.write(f"  {'NVRTC':<20} {_nvrtc()}\n")
    for tool in ("ptxas", "nvdisasm"):
        stream.write(f"  {tool:<20} {shutil.which(tool) or 'not found (not needed)'}\n")
    from warpproof.cli.sandbox import workers_here

    stream.write(f"  {'sandbox':<20} {workers_here().removeprefix('sandbox: ')}\n")
    stream.write(f"  {'memory limit':<20} {default_memory() / 2**30:.1f} GiB (change with --memory)\n")
    return 2 if missing else 0


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _nvrtc() -> str:
    from warpproof.frontends import compile_cuda, nvrtc_version

    try:
        version = nvrtc_version()
        compile_cuda('extern "C" __global__ void k() {}')
    except WarpproofError as error:
        return f"not usable: {error.message.splitlines()[0]}"
    return f"{version}, compiles"
