"""What worker processes do. `begin` runs before the confinement, on what the user trusts: it loads all that is needed
and gives the function that does the work afterwards, on what nobody trusts."""

from __future__ import annotations

import os
import runpy
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from warpproof.cli.worker import STACK_BYTES, Channel
from warpproof.core import InputError

Do = Callable[[Any], Any]
Begin = Callable[[Any, Channel], Do]
_WARM_CUDA: Final = 'extern "C" __global__ void warm(float* x) { x[threadIdx.x] = expf(x[0]); }'
_WARM_PTX: Final = ".version 8.0\n.target sm_80\n.address_size 64\n"
_WARM_SMT: Final = "(declare-const x Int)(declare-const y (_ BitVec 8))(assert (and (> x 3) (= (bvmul y y) #x09)))"


@dataclass(frozen=True, slots=True)
class Work:
    """How it begins, the stack of the thread that does it, and whether that sees no environment."""

    begin: Begin
    stack_bytes: int = 64 << 20
    forgets: bool = True  # the environment


def _judge(job: Mapping[str, Any], channel: Channel) -> Do:
    """`prove`, `run` or `replay`: the user's own files are executed here; the kernel comes later, as PTX."""
    from warpproof.cli import asking, preload, tasks

    def stage(text: str) -> None:
        channel.say({"stage": text})

    finish = tasks.begin(job, stage, lambda request: channel.say({"kernel": request.as_dict()}))
    preload.load()
    asking.answer_through(channel)
    return lambda given: finish(preload.source_of(given), stage)


def _verify(job: Mapping[str, Any], channel: Channel) -> Do:
    """`sandbox verify`: filters, policies and profiles, as bytes."""
    from warpproof.cli import asking, verifying
    from warpproof.sandbox import Kernel

    def probe(question: dict[str, Any]) -> Any:
        channel.say({"probe": question})
        return channel.hear()

    asking.answer_through(channel)
    verifying.load()
    return lambda given: verifying.verified(given, Kernel(probe) if job["live"] else None)


def _litmus(_: Mapping[str, Any], __: Channel) -> Do:
    """Litmus tests: the text of one file first, then which of its tests to evaluate."""
    from warpproof.cli.evaluating import Tests

    return Tests().answer


def _command(_: Mapping[str, Any], __: Channel) -> Do:
    """`sandbox run`: becomes the command. What Python ignores, another program is to see as usual."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)

    def work(given: Mapping[str, Any]) -> None:
        try:
            os.execve(given["path"], given["arguments"], given["environment"])
        except OSError as error:
            raise InputError("BOX616", f"cannot start {given['path']}: {error.strerror}") from None

    return work


def _cuda(job: Mapping[str, Any], _: Channel) -> Do:
    """CUDA C++ to PTX. The bundled headers that are wanted are read here; the source's own come with it."""
    from warpproof.frontends import compile_cuda, library_headers

    bundled = library_headers(job["headers"], job["taken"])
    compile_cuda(_WARM_CUDA)

    def work(given: Mapping[str, Any]) -> dict[str, Any]:
        made = compile_cuda(given["text"], arch=given["arch"], kernel=given["kernel"], options=given["options"],
                            name=given["file"], headers={**bundled, **given["headers"]})
        version = made.origin.removeprefix("nvrtc ")
        return {"text": made.text, "kernel": made.kernel, "version": version, "log": made.log}

    return work


def _triton(_: Mapping[str, Any], __: Channel) -> Do:
    """Triton to PTX: executes a Python text. NVIDIA's library of functions is read from standard input, by Triton."""
    from warpproof.frontends import build, load

    load(warm=True)
    import triton.backends.nvidia

    library = Path(triton.backends.nvidia.__file__).with_name("lib") / "libdevice.10.bc"
    file = os.open(library, os.O_RDONLY)
    os.dup2(file, 0)

    def work(given: Mapping[str, Any]) -> dict[str, str]:
        options = {**given["options"], "extern_libs": {"libdevice": "-"}}
        try:
            made = build({**given, "options": options})
            return {"text": made["ptx"], "kernel": made["kernel"], "version": made["version"], "log": ""}
        except BaseException as error:  # the text may raise anything
            hint = ""
            if isinstance(error, ModuleNotFoundError):
                hint = "a confined kernel file sees Triton and what is loaded with it; put all that it needs into it"
            raise InputError("CUD711", f"Triton cannot compile {given['file']}: {type(error).__name__}: "
                                       f"{str(error)[:800]}", hint=hint) from None

    return work


def _print(_: Mapping[str, Any], __: Channel) -> Do:
    from warpproof.ptx import parse, print_module

    print_module(parse(_WARM_PTX))
    return lambda given: print_module(parse(given["text"]))


def _ask(_: Mapping[str, Any], __: Channel) -> Do:
    """SMT-LIB questions, by z3."""
    import z3

    package = find_spec("warpproof.solve")
    assert package is not None
    assert package.origin is not None
    answer = runpy.run_path(str(Path(package.origin).with_name("worker.py")))["answer"]
    _warm(z3)
    return lambda question: answer(z3, question)


def _warm(z3: Any) -> None:
    """Without a time limit, which would start a thread."""
    solver = z3.Solver()
    solver.from_string(_WARM_SMT)
    solver.check()


def _solve(_: Mapping[str, Any], __: Channel) -> Do:
    """One SMT-LIB script as people write it."""
    import z3

    _warm(z3)

    def work(given: Mapping[str, Any]) -> str:
        solver = z3.Solver()
        try:
            solver.from_string(given["text"])
        except z3.Z3Exception as error:
            raise InputError("BOX614", f"not SMT-LIB: {error}") from None
        return str(solver.check()) + "\n"

    return work


WORKS: Final[Mapping[str, Work]] = {
    "judge": Work(_judge, STACK_BYTES, forgets=False), "cuda": Work(_cuda), "triton": Work(_triton),
    "print": Work(_print), "ask": Work(_ask), "solve": Work(_solve), "verify": Work(_verify, STACK_BYTES),
    "litmus": Work(_litmus, STACK_BYTES), "command": Work(_command),
}
