"""Child process: shows filters to the running kernel and says what it does, one JSON object a line.

Run by path, without the package: `python prober.py`. Each question is answered by a process of its own, which installs
the filters and makes the calls from machine code, so that no call of the interpreter's meets a filter. A guard filter,
added first, answers every call but the installation and the exit with an error of its own. So nothing that is probed is
carried out: where the filters in question would let a call pass, the guard's answer wins; where they give an error or
kill, theirs does (the strictest action wins, of two errors the one of the filter added last).
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any

NATIVE = 0xC000003E
SECCOMP, EXIT_GROUP, EXIT_STATUS = 317, 231, 0x5A
UNTOUCHED = -(1 << 62)
RECORD = struct.Struct("<7Qqq")  # number, six arguments, result, through int 0x80?
INSTRUCTION = struct.Struct("=HBBI")
ERRNO, ALLOW = 0x00050000, 0x7FFF0000
PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG = 38, 1
PTRACE_DETACH, PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_SECCOMP_GET_FILTER = 17, 0x4206, 0x4207, 0x420C
WAIT_ALL = 0x40000000  # __WALL
# For each 72-byte record at rdi, rsi of them: load the registers, `syscall` or `int 0x80`, store the result.
CALLER = bytes.fromhex(
    "5355415441554989fc4989f54d85ed745c498b042449837c2440007522498b7c2408498b742410498b5424184d8b5424204d8b4424284d8b4c24"
    "300f05eb20418b5c2408418b4c2410418b542418418b742420418b7c2428418b6c2430cd8049894424384983c44849ffcdeb9f415d415c5d5bc3")
SPIN = bytes.fromhex("f390ebfc")  # pause; jump back

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class Filter:
    """A filter's bytes with the `sock_fprog` that describes them, at fixed addresses."""

    def __init__(self, data: bytes) -> None:
        self.code = ctypes.create_string_buffer(data, len(data))
        self.header = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(data) // 8, ctypes.addressof(self.code)))

    def installation(self) -> tuple[int, ...]:
        """The call that installs it: seccomp(SECCOMP_SET_MODE_FILTER, 0, header)."""
        return (SECCOMP, 1, 0, ctypes.addressof(self.header), 0, 0, 0)


def guard(filters: list[Filter], number: int) -> Filter:
    """That error number for all calls but the installation of these filters and the exit with EXIT_STATUS."""
    held_back = ERRNO | number & 0xFFF  # never another action
    code = [(0x20, 0, 0, 4), (0x15, 1, 0, NATIVE), (0x06, 0, 0, held_back)]
    installs = [(SECCOMP, 32, ctypes.addressof(f.header) & 0xFFFFFFFF) for f in filters]
    for call, word, value in [(EXIT_GROUP, 16, EXIT_STATUS), *installs]:
        code += [(0x20, 0, 0, 0), (0x15, 0, 3, call), (0x20, 0, 0, word), (0x15, 0, 1, value), (0x06, 0, 0, ALLOW)]
    code.append((0x06, 0, 0, held_back))
    return Filter(b"".join(INSTRUCTION.pack(*i) for i in code))


def machine_code(code: bytes) -> Callable[..., Any]:
    """A C function with that body."""
    area = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(code)
    keep.append(area)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(address)


def prepare(calls: list[tuple[tuple[int, ...], int]]) -> mmap.mmap:
    """The records of the calls, in memory that a child shares."""
    area = mmap.mmap(-1, max(mmap.PAGESIZE, RECORD.size * len(calls)))
    for (number, *args), foreign in calls:
        words = [v & (2**64 - 1) for v in (number, *args)]
        area.write(RECORD.pack(*words, UNTOUCHED, foreign))
    return area


def in_child(area: mmap.mmap, count: int, spin: bool) -> int:
    """The process that makes the calls; with `spin` it then waits for ever without a system call."""
    calls, wait, parent = machine_code(CALLER), machine_code(SPIN), os.getpid()
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    pid = os.fork()
    if pid == 0:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
        calls(address, count)
        if spin:
            wait(0, 0)
        os._exit(1)
    return pid


def results(area: mmap.mmap, count: int) -> list[int | None]:
    """The result of each call; None if it was not made or did not return."""
    values = (RECORD.unpack_from(area, i * RECORD.size)[7] for i in range(count))
    return [None if v == UNTOUCHED else v for v in values]


def probe(question: dict[str, Any]) -> dict[str, Any]:
    """Install filters (oldest first), make calls; the results, and the signal that ended the process."""
    filters = [Filter(bytes.fromhex(text)) for text in question["filters"]]
    outer = guard(filters, int(question["guard"]))
    installs = [(f.installation(), 0) for f in (outer, *filters)]
    probes = [(tuple(c["call"]), int(c["foreign"])) for c in question["calls"]]
    calls = [*installs, *probes, ((EXIT_GROUP, EXIT_STATUS, 0, 0, 0, 0, 0), 0)]
    area = prepare(calls)
    _, status = os.waitpid(in_child(area, len(calls), spin=False), 0)
    values = results(area, len(calls))
    ended = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {"guarded": values[0] == 0, "installed": values[1:len(installs)],
            "results": values[len(installs):-1], "signal": ended}


def read_back(question: dict[str, Any]) -> dict[str, Any]:
    """Install filters (oldest first) in a process, read what the kernel then holds, end the process."""
    filters = [Filter(bytes.fromhex(text)) for text in question["filters"]]
    calls = [(f.installation(), 0) for f in filters]
    area = prepare(calls)
    pid = in_child(area, len(calls), spin=True)
    try:
        while results(area, len(calls))[-1] is None:
            done, _ = os.waitpid(pid, os.WNOHANG)
            if done:
                pid = 0
                break
        answer = loaded(pid) if pid else {"error": "the process ended when it installed the filters"}
    finally:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    return {**answer, "installed": results(area, len(calls))}


def loaded(tid: int) -> dict[str, Any]:
    """The filters of a thread as the kernel gives them back, most recently added first, and its status lines."""
    if libc.ptrace(PTRACE_SEIZE, tid, None, None):
        return {"error": f"ptrace: {os.strerror(ctypes.get_errno())}"}
    try:
        if libc.ptrace(PTRACE_INTERRUPT, tid, None, None):
            return {"error": f"ptrace: {os.strerror(ctypes.get_errno())}"}
        os.waitpid(tid, WAIT_ALL)
        found: list[str] = []
        while True:
            count = libc.ptrace(PTRACE_SECCOMP_GET_FILTER, tid, len(found), None)
            if count < 0:
                break
            buffer = ctypes.create_string_buffer(count * 8)
            if libc.ptrace(PTRACE_SECCOMP_GET_FILTER, tid, len(found), buffer) != count:
                break
            found.append(buffer.raw.hex())
        number = ctypes.get_errno()
        with open(f"/proc/{tid}/status", encoding="utf-8") as file:
            lines = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
        status = {k: lines.get(k, "").strip() for k in ("Name", "NoNewPrivs", "Seccomp", "Seccomp_filters")}
        if number not in (errno.ENOENT, errno.EINVAL) or (number == errno.EINVAL and status["Seccomp"] == "2"):
            return {"error": f"PTRACE_SECCOMP_GET_FILTER: {os.strerror(number)}", "status": status}
        return {"filters": found, "status": status}
    finally:
        libc.ptrace(PTRACE_DETACH, tid, None, None)


def running(question: dict[str, Any]) -> dict[str, Any]:
    """The filters of each thread of a running process."""
    try:
        tids = sorted(int(t) for t in os.listdir(f"/proc/{int(question['pid'])}/task"))
        return {"threads": {str(tid): loaded(tid) for tid in tids}}
    except OSError as error:
        return {"error": str(error.strerror)}


def main() -> None:
    """Answer questions until standard input closes."""
    tasks = {"probe": probe, "read_back": read_back, "running": running}
    for line in sys.stdin:
        question = json.loads(line)
        sys.stdout.write(json.dumps(tasks[question["task"]](question)) + "\n")
        sys.stdout.flush()
        keep.clear()


keep: list[mmap.mmap] = []

if __name__ == "__main__":
    main()
