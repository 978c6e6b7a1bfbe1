"""The confined side of `warpproof sandbox run`: `python -m warpproof.cli.boxed WORK BYTES SECONDS`.

Says on standard output, one JSON object a line: the number of the process inside, that it is confined, the answer. The
job is read only after the outside has checked the confinement and sent it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from warpproof.core import InputError
from warpproof.sandbox import Unconfined, compile_policy, confine, isolate, shipped_policy

Work = Callable[[str], str]


def main() -> NoReturn:
    """Isolate, load what the work needs, confine, answer, leave without any clean-up."""
    work, memory, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    try:
        inner = isolate()
        if inner:
            say({"pid": inner})
            _, status = os.waitpid(inner, 0)
            say({"status": os.waitstatus_to_exitcode(status)})
            os._exit(0)
        policy, load = WORKS[work]
        do = load()
        program = compile_policy(shipped_policy(policy))
        confine(program, memory, seconds)
    except Unconfined as missing:
        say({"missing": missing.layer, "why": missing.why})
        os._exit(1)
    except InputError as error:
        say({"error": error.render()})
        os._exit(1)
    say({"confined": policy})
    try:
        say({"answer": do(_read())})
    except InputError as error:
        say({"error": error.render()})
    os._exit(0)


def say(message: dict[str, Any]) -> None:
    """One line of standard output, at once."""
    data = json.dumps(message).encode() + b"\n"
    while data:
        data = data[os.write(1, data):]


def _read() -> str:
    parts = []
    while part := os.read(0, 1 << 16):
        parts.append(part)
    try:
        return b"".join(parts).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("BOX600", "the input is not UTF-8 text") from None


def _compile() -> Work:
    from warpproof.frontends import compile_cuda

    compile_cuda('extern "C" __global__ void warm(float* x) { x[threadIdx.x] = expf(x[0]); }')
    return lambda text: compile_cuda(text).text


def _print() -> Work:
    from warpproof.ptx import parse, print_module

    print_module(parse(".version 8.0\n.target sm_80\n.address_size 64\n"))
    return lambda text: print_module(parse(text))


def _solve() -> Work:
    import z3

    def work(text: str) -> str:
        solver = z3.Solver()
        try:
            solver.from_string(text)
        except z3.Z3Exception as error:
            raise InputError("BOX614", f"not SMT-LIB: {error}") from None
        return str(solver.check()) + "\n"

    return work


WORKS: dict[str, tuple[str, Callable[[], Work]]] = {
    "compile": ("compile", _compile), "print": ("prove", _print), "solve": ("solver", _solve),
}

if __name__ == "__main__":
    main()
