"""Source in, PTX text out. Compilers read a candidate's code; only Triton's has to be executed."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from warpproof.frontends.cuda import compile_cuda, library_headers, nvrtc_version
    from warpproof.frontends.headers import Headers, included, wanted_headers
    from warpproof.frontends.intake import Request, kernel_kind, load_kernel, split_kernel
    from warpproof.frontends.jobs import Job, Question, read_job
    from warpproof.frontends.source import PtxSource, entry_names, read_source, select_entry
    from warpproof.frontends.triton import TritonLaunch, compile_triton, triton_job, triton_source
    from warpproof.frontends.triton_child import build, load

_HOMES: Final = {
    "cuda": "compile_cuda library_headers nvrtc_version",
    "headers": "Headers included wanted_headers",
    "intake": "Request kernel_kind load_kernel split_kernel",
    "jobs": "Job Question read_job",
    "source": "PtxSource entry_names read_source select_entry",
    "triton": "TritonLaunch compile_triton triton_job triton_source",
    "triton_child": "build load",
}
__all__ = [
    "Headers", "Job", "PtxSource", "Question", "Request", "TritonLaunch", "build", "compile_cuda", "compile_triton",
    "entry_names", "included", "kernel_kind", "library_headers", "load", "load_kernel", "nvrtc_version", "read_job",
    "read_source", "select_entry", "split_kernel", "triton_job", "triton_source", "wanted_headers",
]


def __getattr__(name: str) -> Any:
    """Load a name's module on first use: a compiler's process needs no reference, a reference no compiler."""
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(import_module(f"warpproof.frontends.{module}"), name)
    raise AttributeError(f"module 'warpproof.frontends' has no attribute {name!r}")
