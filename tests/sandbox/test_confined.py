"""The work that each shipped policy is for, done under its filter; and what is not its work, which kills."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from warpproof.core import WarpproofError
from warpproof.frontends import nvrtc_version
from warpproof.sandbox import Kernel, compile_policy, shipped_policy

PROGRAM = Path(__file__).with_name("confined.py")
PTX = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }\n"


def confined(name: str, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, str(PROGRAM), name, *more], input=PTX, capture_output=True, text=True,
                          check=False, timeout=60)


def test_a_solver_works(kernel: Kernel) -> None:
    done = confined("solver")
    assert (done.returncode, done.stdout) == (0, "sat sat unsat"), done.stderr


def test_parsing_works(kernel: Kernel) -> None:
    done = confined("prove")
    assert (done.returncode, done.stdout) == (0, "True 700 5000000 True"), done.stderr


def test_the_cuda_compiler_works(kernel: Kernel) -> None:
    try:
        nvrtc_version()
    except WarpproofError as error:
        pytest.skip(error.message)
    done = confined("compile")
    assert (done.returncode, done.stdout) == (0, "True CUD701"), done.stderr


@pytest.mark.parametrize("name", ["solver", "prove"])
def test_what_is_not_the_work(name: str, kernel: Kernel) -> None:
    """Opening a file by name kills, or is refused where the policy says so."""
    done = confined(name, "/etc/hostname")
    assert done.returncode == (7 if name == "solver" else -signal.SIGSYS)


def test_the_filter_of_a_running_process(reader: Kernel) -> None:
    """A process confined by the policy, read from outside: the bytes are those that were proved."""
    program = "import sys; sys.path.insert(0, sys.argv[1]); import confined, os; confined.confine('prove'); " \
              "os.write(1, b'ready'); os.read(0, 1); os._exit(0)"
    with subprocess.Popen([sys.executable, "-c", program, str(PROGRAM.parent)], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.read(5) == b"ready"
            threads = reader.running(process.pid)
            assert {t.filters for t in threads.values()} == {(compile_policy(shipped_policy("prove")),)}
            assert all(t.no_new_privs and t.mode == "2" for t in threads.values())
            assert os.waitpid(process.pid, os.WNOHANG) == (0, 0)
            process.stdin.write(b"x")
            process.stdin.flush()
            assert process.wait(10) == 0
        finally:
            process.kill()
