"""Source in, PTX text out. Compilers read a candidate's code; only Triton's has to be executed, in a child process."""

from warpproof.frontends.cuda import compile_cuda, nvrtc_version
from warpproof.frontends.intake import load_kernel, split_kernel
from warpproof.frontends.source import PtxSource, entry_names, read_source, select_entry
from warpproof.frontends.triton import TritonLaunch, compile_triton

__all__ = [
    "PtxSource", "TritonLaunch", "compile_cuda", "compile_triton", "entry_names", "load_kernel", "nvrtc_version",
    "read_source", "select_entry", "split_kernel",
]
