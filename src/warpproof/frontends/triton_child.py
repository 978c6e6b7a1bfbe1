"""Triton kernels from their Python text to PTX, in the process that calls this: it executes the text.

As a program it is a child of `compile_triton`: a job in JSON on standard input, the PTX in JSON on standard output,
limits on itself before it runs anything. Whatever the text prints goes to standard error.
"""

from __future__ import annotations

import json
import linecache
import os
import resource
import sys
import types
from typing import Any, Final

_LIMITS: Final = {
    resource.RLIMIT_CPU: 100, resource.RLIMIT_AS: 8 << 30, resource.RLIMIT_FSIZE: 256 << 20, resource.RLIMIT_CORE: 0,
}
_WARM: Final = """\
import triton
import triton.language as tl
@triton.jit
def warm(x, y, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    a = tl.load(x + i, mask=i < n)
    for k in range(0, n):
        a += tl.dot(a, a) if B < 0 else tl.exp(a)
    tl.store(y + i, a / tl.sum(a), mask=i < n)
"""
_WARM_JOB: Final = {"text": _WARM, "file": "warm.py", "kernel": None, "constexprs": {"B": 64}, "divisible": ["x"],
                    "signature": {"x": "*fp32", "y": "*fp32", "n": "i32"}, "arch": 80, "options": {}}


class _Memory:
    """Stands for Triton's cache of files: what is put there is handed on, and nothing is ever found."""

    def __init__(self, key: str, *_: Any, **__: Any) -> None:
        self.key = key

    def put(self, data: Any, filename: str, binary: bool = True) -> Any:
        """What would be the file's path is its content."""
        return data

    def get_file(self, filename: str) -> None:
        """No such file."""

    def get_group(self, filename: str) -> None:
        """No such group."""

    def put_group(self, filename: str, group: Any) -> None:
        """Not kept."""


def load(warm: bool) -> None:
    """Import Triton and keep it from files: no cache, no ptxas. With `warm`, compile once, so that all is loaded."""
    import triton
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler import compiler

    CUDABackend.make_cubin = lambda *args, **kwargs: b""  # PTX is the end: ptxas is not needed
    triton.knobs.cache.manager_class = _Memory
    compiler.CompiledKernel = lambda source, group, key: group
    compiler.get_cache_key = lambda source, *args, **kwargs: source.hash()
    if warm:
        build(_WARM_JOB)


def build(job: dict[str, Any]) -> dict[str, str]:
    """Execute the job's text and compile the one jitted function that is meant."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    name, function = _function(job)
    at = {n: i for i, n in enumerate(function.arg_names)}
    unknown = [n for n in (*job["signature"], *job["constexprs"]) if n not in at]
    if unknown:
        raise ValueError(f"{name} has no parameter {unknown[0]!r}; it has {', '.join(at)}")
    missing = [n for n in at if n not in job["signature"] and n not in job["constexprs"]]
    if missing:
        raise ValueError(f"the launch gives no value for {missing[0]!r}")
    source = ASTSource(
        fn=function, signature={n: job["signature"].get(n, "constexpr") for n in at},
        constexprs={(at[n],): v for n, v in job["constexprs"].items()},
        attrs={(at[n],): [["tt.divisibility", 16]] for n in job["divisible"]},
    )
    made = triton.compile(source, target=GPUTarget("cuda", job["arch"], 32), options=job["options"])
    (ptx,) = (text for file, text in made.items() if file.endswith(".ptx"))
    return {"ptx": ptx, "version": triton.__version__, "kernel": name}


def _function(job: dict[str, Any]) -> tuple[str, Any]:
    """The one jitted function that is meant."""
    from triton.runtime.jit import JITFunction

    jitted = {n: f for n, f in vars(_module(job)).items() if isinstance(f, JITFunction)}
    if job["kernel"] is not None:
        if job["kernel"] not in jitted:
            found = ", ".join(jitted) or "none"
            raise ValueError(f"there is no @triton.jit function {job['kernel']!r}; there is {found}")
        return job["kernel"], jitted[job["kernel"]]
    if len(jitted) != 1:
        raise ValueError(f"the file has {len(jitted)} @triton.jit functions; name one")
    return next(iter(jitted.items()))


def _module(job: dict[str, Any]) -> types.ModuleType:
    """The text as a module. Triton reads a function's source: Python finds it in its cache of lines, not in a file."""
    text, file = job["text"], job["file"]
    module = types.ModuleType("kernel")
    module.__file__ = file
    vars(module)["__loader__"] = object()  # its mere presence says that no file is needed
    sys.modules["kernel"] = module
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    exec(compile(text, file, "exec", dont_inherit=True), vars(module))
    return module


def main() -> None:
    """Compile the job and write one line of JSON."""
    for what, limit in _LIMITS.items():
        hard = resource.getrlimit(what)[1]
        least = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(what, (least, least))
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    job = json.loads(sys.stdin.read())
    try:
        sys.path.insert(0, job["folder"])
        load(warm=False)
        result = build(job)
    except Exception as error:  # the file's and the compiler's exceptions are of any kind
        result = {"error": f"{type(error).__name__}: {error}"}
    answer.write(json.dumps(result) + "\n")
    answer.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
