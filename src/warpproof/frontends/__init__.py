"""Source in, PTX text out. Nothing here runs a candidate's code; compilers read it."""

from warpproof.frontends.cuda import compile_cuda, nvrtc_version
from warpproof.frontends.intake import load_kernel, split_kernel
from warpproof.frontends.source import PtxSource, entry_names, read_source, select_entry

__all__ = [
    "PtxSource", "compile_cuda", "entry_names", "load_kernel", "nvrtc_version", "read_source", "select_entry",
    "split_kernel",
]
