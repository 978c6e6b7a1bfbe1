"""Executes a Triton kernel's file: a job in JSON on standard input, the PTX in JSON on standard output.

It limits itself before it runs anything. Whatever the file prints goes to standard error.
"""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import sys
from typing import Any, Final

_LIMITS: Final = {
    resource.RLIMIT_CPU: 100, resource.RLIMIT_AS: 8 << 30, resource.RLIMIT_FSIZE: 256 << 20, resource.RLIMIT_CORE: 0,
}


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
        result = _compile(job)
    except Exception as error:  # the file's and the compiler's exceptions are of any kind
        result = {"error": f"{type(error).__name__}: {error}"}
    answer.write(json.dumps(result) + "\n")
    answer.flush()
    os._exit(0)


def _compile(job: dict[str, Any]) -> dict[str, str]:
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.compiler import ASTSource

    CUDABackend.make_cubin = lambda *args, **kwargs: b""  # PTX is the end: ptxas is not needed
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
    compiled = triton.compile(source, target=GPUTarget("cuda", job["arch"], 32), options=job["options"])
    return {"ptx": compiled.asm["ptx"], "version": triton.__version__, "kernel": name}


def _function(job: dict[str, Any]) -> tuple[str, Any]:
    """The one jitted function that is meant."""
    from triton.runtime.jit import JITFunction

    sys.path.insert(0, os.path.dirname(job["file"]))
    spec = importlib.util.spec_from_file_location("kernel", job["file"])
    if spec is None or spec.loader is None:
        raise ValueError("the file is no Python module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    jitted = {n: f for n, f in vars(module).items() if isinstance(f, JITFunction)}
    if job["kernel"] is not None:
        if job["kernel"] not in jitted:
            found = ", ".join(jitted) or "none"
            raise ValueError(f"there is no @triton.jit function {job['kernel']!r}; there is {found}")
        return job["kernel"], jitted[job["kernel"]]
    if len(jitted) != 1:
        raise ValueError(f"the file has {len(jitted)} @triton.jit functions; name one")
    return next(iter(jitted.items()))


if __name__ == "__main__":
    main()
