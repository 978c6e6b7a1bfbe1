"""A program that confines itself by a shipped policy's filter and does that policy's work: `confined.py NAME`.

Everything it needs is imported before; a call that the policy does not allow kills it.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Callable

from warpproof.sandbox import compile_policy, encode, shipped_policy


def confine(name: str) -> None:
    data = encode(compile_policy(shipped_policy(name)))
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(data, len(data))
    header = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(data) // 8, ctypes.addressof(code)))
    if libc.prctl(38, 1, 0, 0, 0) or libc.syscall(317, 1, 1, header):  # no_new_privs; all threads
        os._exit(3)


def grow() -> None:
    block = bytearray(300_000)
    for _ in range(20):
        block += bytes(300_000)


def solver() -> Callable[[], str]:
    import z3

    def work() -> str:
        answers = []
        for width in (16, 32):
            solver = z3.Solver()
            solver.set("timeout", 5000)
            x, y = z3.BitVecs("x y", width)
            solver.add(x * y == 0xF1, z3.UGT(x, 2), z3.UGT(y, 2))
            answers.append(str(solver.check()))
        reals = z3.Reals("a b")
        solver = z3.Solver()
        solver.add(reals[0] * reals[0] + reals[1] * reals[1] < 0)
        return " ".join([*answers, str(solver.check())])

    return work


def prove() -> Callable[[], str]:
    import time

    import numpy as np

    from warpproof.ptx import parse

    np.ones((300, 300)) @ np.ones((300, 300))

    def work() -> str:
        text = os.read(0, 65536).decode()
        product = np.ones((700, 700)) @ np.ones((700, 700))
        total = np.ones(5_000_000).sum()
        return f"{len(parse(text).items) > 0} {product[0, 0]:.0f} {total:.0f} {time.process_time() > 0}"

    return work


def compile_() -> Callable[[], str]:
    from warpproof.core import InputError
    from warpproof.frontends import compile_cuda

    source = 'extern "C" __global__ void k(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] = sinf(x[i]); }'
    compile_cuda(source.replace("sinf", "expf"))

    def work() -> str:
        text = str(compile_cuda(source))
        try:
            compile_cuda("nonsense(")
        except InputError as error:
            return f"{'.visible .entry k' in text} {error.code}"
        return "a nonsensical source was compiled"

    return work


def main() -> None:
    name = sys.argv[1]
    work = {"solver": solver, "prove": prove, "compile": compile_}[name]()
    confine(name)
    grow()
    os.write(1, work().encode())
    if len(sys.argv) > 2:
        try:
            os.open(sys.argv[2], os.O_RDONLY)
        except PermissionError:
            os._exit(7)
    os._exit(0)


if __name__ == "__main__":
    main()
