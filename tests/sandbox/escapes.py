"""A program that tries to get out: `escapes.py POLICY MODE UID [ATTEMPT …]`. Each attempt has a confined process.

Prints one JSON object: for each attempt "killed", "refused", or "ESCAPED" with what it got. Only attempts that do no
harm when they succeed are made: signals are number 0, targets are this program's own.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import resource
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Mapping
from typing import Any

from warpproof.sandbox import Confinement, compile_policy, encode, number_of, shipped_policy

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
MEMORY = 2 << 30
FILE_BYTES = 1 << 26
SECRET = b"the parent's secret"
PARENT = os.getpid()
PAGE = 4096
FD = 64  # inherited: a file opened for reading
# mov rax,rdi; mov rbx,rsi; mov rcx,rdx; xor edx,edx; int 0x80; ret
INT80 = bytes.fromhex("53 48 89 f8 48 89 f3 48 89 d1 31 d2 cd 80 5b c3")
X32 = 0x40000000


class Refused(Exception):
    """The kernel said no."""


def call(name: str | int, *args: Any) -> int:
    """A system call; Refused with its error."""
    number = number_of(name) if isinstance(name, str) else name
    made: int = libc.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if made == -1:
        raise Refused(os.strerror(ctypes.get_errno()))
    return made


def machine_code() -> Callable[[int, int, int], int]:
    """`int 0x80` as a function; the memory is made executable before the confinement."""
    area = mmap.mmap(-1, PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(INT80)
    keep.append(area)
    address = ctypes.addressof(ctypes.c_char.from_buffer(area))
    return ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long, ctypes.c_long, ctypes.c_long)(address)


keep: list[Any] = []
old_call = machine_code()
text = ctypes.create_string_buffer(SECRET)
buffer = ctypes.create_string_buffer(PAGE)
passwd = ctypes.create_string_buffer(b"/etc/passwd")
true = ctypes.create_string_buffer(b"/bin/true")
file = ctypes.create_string_buffer(b"/dev/shm/warpproof-escape")
low = ctypes.c_char_p(b"/etc/passwd")


def vector(address: Any, length: int) -> Any:
    return ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(address), length))


def old(number: int, first: int = 0, second: int = 0) -> int:
    made = old_call(number, first, second)
    if made < 0:
        raise Refused(os.strerror(-made))
    return made


def inherited() -> Any:
    """Any descriptor beyond those of the work that still reads, or names a file."""
    for number in (*range(5, 80), 251, 1023):
        try:
            if os.read(number, 5):
                return number
        except OSError:
            continue
    raise Refused("none")


def grow() -> Any:
    """More memory than the limit."""
    kept = []
    while len(kept) < 2 * MEMORY >> 24:
        kept.append(b"x" * (1 << 24))
    return len(kept)


def fill() -> Any:
    """More on disk than the limit."""
    for _ in range(2 * FILE_BYTES >> 20):
        os.write(1, b"x" * (1 << 20))
    return "written"


def executable(protection: int, flags: int = 0x22) -> Any:
    return call("mmap", 0, PAGE, protection, flags, -1, 0)


def made_executable() -> Any:
    area = call("mmap", 0, PAGE, 3, 0x22, -1, 0)
    return call("mprotect", area, PAGE, 5) + 1


def memfd_run() -> Any:
    number = call("memfd_create", b"x", 0)
    return call("execveat", number, b"", 0, 0, 0x1000)


def connect() -> Any:
    with socket.socket() as s:
        return s.fileno() + 1


def add_filter() -> Any:
    code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000))
    program = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", 1, ctypes.addressof(code)))
    return call("seccomp", 1, 0, program) + 1


ATTEMPTS: Mapping[str, Callable[[], Any]] = {
    "open": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "open, the old call": lambda: call("open", passwd, 0),
    "openat2": lambda: call("openat2", -100, passwd, ctypes.create_string_buffer(24), 24),
    "creat": lambda: call("creat", file, 0o600),
    "open_by_handle_at": lambda: call("open_by_handle_at", -100, buffer, 0),
    "open_tree": lambda: call("open_tree", -100, passwd, 0),
    "list a folder": lambda: os.listdir("/etc"),
    "stat": lambda: os.stat("/etc/passwd"),
    "own memory in proc": lambda: os.open("/proc/self/mem", os.O_RDWR),
    "environment in proc": lambda: os.open(f"/proc/{PARENT}/environ", os.O_RDONLY),
    "root in proc": lambda: os.open("/".join(("/proc/self", "root", "etc", "passwd")), os.O_RDONLY),
    "descriptors in proc": lambda: os.listdir("/proc/self/fd"),
    "program in proc": lambda: os.readlink("/proc/self/exe"),
    "pipe reopened in proc": lambda: os.open("/proc/self/fd/1", os.O_RDWR),
    "exec": lambda: call("execve", true, 0, 0),
    "execveat of a memfd": memfd_run,
    "memfd": lambda: call("memfd_create", b"x", 0),
    "memfd_secret": lambda: call("memfd_secret", 0),
    "ptrace the parent": lambda: call("ptrace", 0x4206, PARENT, 0, 0) + 1,
    "ptrace by the parent": lambda: call("ptrace", 0, 0, 0, 0) + 1,
    "read the parent's memory": lambda: call("process_vm_readv", PARENT, vector(buffer, 16), 1, vector(text, 16), 1, 0),
    "write the parent's memory": lambda: call("process_vm_writev", PARENT, vector(text, 16), 1, vector(text, 16), 1, 0),
    "pidfd": lambda: call("pidfd_open", PARENT, 0),
    "pidfd_getfd": lambda: call("pidfd_getfd", 0, 0, 0),
    "kcmp": lambda: call("kcmp", PARENT, PARENT, 0, 0, 0) + 1,
    "io_uring": lambda: call("io_uring_setup", 4, ctypes.create_string_buffer(120)),
    "io_setup": lambda: call("io_setup", 4, ctypes.create_string_buffer(8)) + 1,
    "userfaultfd": lambda: call("userfaultfd", 1),
    "bpf": lambda: call("bpf", 0, ctypes.create_string_buffer(128), 128) + 1,
    "perf": lambda: call("perf_event_open", ctypes.create_string_buffer(128), 0, -1, -1, 0) + 1,
    "int 0x80, getpid": lambda: old(20),
    "int 0x80, open": lambda: old(5, 0, 0),
    "int 0x80, exit by another name": lambda: old(24) + 1,
    "x32, getpid": lambda: call(X32 | 39),
    "x32, open": lambda: call(X32 | 2, passwd, 0),
    "an unknown number": lambda: call(5000),
    "a negative number": lambda: call(-1),
    "an inherited descriptor": inherited,
    "a copy of one": lambda: os.dup(FD),
    "the parent's terminal": lambda: call("ioctl", 0, 0x5412, b"x") + 1,
    "signal the parent": lambda: os.kill(PARENT, 0) or "sent",
    "signal everybody": lambda: os.kill(-1, 0) or "sent",
    "signal a thread of the parent": lambda: call("tgkill", PARENT, PARENT, 0) + 1,
    "tkill": lambda: call("tkill", PARENT, 0) + 1,
    "rt_sigqueueinfo": lambda: call("rt_sigqueueinfo", PARENT, 0, ctypes.create_string_buffer(128)) + 1,
    "pidfd_send_signal": lambda: call("pidfd_send_signal", 0, 0, 0, 0) + 1,
    "fork": lambda: os.fork() + 1,
    "vfork": lambda: call("vfork") + 1,
    "clone": lambda: call("clone", signal.SIGCHLD, 0, 0, 0, 0) + 1,
    "clone, a new user namespace": lambda: call("clone", 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0) + 1,
    "clone3": lambda: call("clone3", ctypes.create_string_buffer(88), 88) + 1,
    "unshare": lambda: call("unshare", 0x10000000) + 1,
    "setns": lambda: call("setns", 0, 0) + 1,
    "mount": lambda: call("mount", b"x", b"/mnt", b"tmpfs", 0, 0) + 1,
    "chroot": lambda: call("chroot", b"/") + 1,
    "chdir": lambda: call("chdir", b"/etc") + 1,
    "setuid": lambda: call("setuid", 0) + 1,
    "setgroups": lambda: call("setgroups", 0, 0) + 1,
    "capset": lambda: call("capset", buffer, buffer) + 1,
    "keyctl": lambda: call("keyctl", 0, -3, 1),
    "another filter": add_filter,
    "another filter by prctl": lambda: call("prctl", 22, 2, buffer, 0, 0) + 1,
    "dumpable": lambda: call("prctl", 4, 1, 0, 0, 0) + 1,
    "the parent's death signal": lambda: call("prctl", 1, 0, 0, 0, 0) + 1,
    "raise a limit": lambda: call("prlimit64", 0, resource.RLIMIT_NOFILE, struct.pack("QQ", 64, 64), 0) + 1,
    "the parent's limits": lambda: call("prlimit64", PARENT, resource.RLIMIT_CPU, 0, buffer) + 1,
    "writable and executable memory": lambda: executable(7),
    "executable memory": lambda: executable(5),
    "a file as a program": lambda: executable(5, 2),
    "memory made executable": made_executable,
    "pkey_mprotect": lambda: call("pkey_mprotect", 0, PAGE, 5, -1) + 1,
    "personality": lambda: call("personality", 0x0400000) + 1,
    "shared memory": lambda: call("shmget", 0, PAGE, 0o1600) + 1,
    "message queue": lambda: call("msgget", 0, 0o1600) + 1,
    "POSIX message queue": lambda: call("mq_open", b"x", 0o102, 0o600, 0) + 1,
    "network": connect,
    "local socket": lambda: call("socket", 1, 1, 0) + 1,
    "netlink": lambda: call("socket", 16, 3, 0) + 1,
    "vsock": lambda: call("socket", 40, 1, 0) + 1,
    "packets": lambda: call("socket", 17, 3, 0) + 1,
    "socketpair": lambda: call("socketpair", 1, 1, 0, buffer) + 1,
    "make a folder": lambda: os.mkdir("/dev/shm/warpproof-escape") or "made",
    "make a link": lambda: os.symlink("x", "/dev/shm/warpproof-escape") or "made",
    "remove": lambda: call("unlink", file) + 1,
    "rename": lambda: call("rename", file, file) + 1,
    "change a mode": lambda: call("fchmod", 1, 0o777) + 1,
    "truncate": lambda: call("truncate", file, 0) + 1,
    "grow a file": lambda: call("ftruncate", 1, 1 << 40) + 1,
    "allocate a file": lambda: call("fallocate", 1, 0, 0, 1 << 40) + 1,
    "host name": lambda: call("sethostname", b"x", 1) + 1,
    "kernel log": lambda: call("syslog", 3, buffer, 1) + 1,
    "clock": lambda: call("settimeofday", 0, 0) + 1,
    "scheduling": lambda: call("sched_setaffinity", 0, 8, buffer) + 1,
    "memory bomb": grow,
    "disk bomb": fill,
}


def confined(code: bytes, mode: str, uid: int, attempt: Callable[[], Any], out: int) -> None:
    """In a process of its own: give up everything, then try. Exit status 0 is an escape, 7 a refusal."""
    try:
        incoming, end = os.pipe()
        os.close(end)
        os.dup2(incoming, 0)
        for number in (1, 2):
            os.dup2(out, number)
        for number in (3, 4):
            os.dup2(incoming, number)
        os.dup2(os.open("/etc/passwd", os.O_RDONLY), FD)
        if uid and os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        made = Confinement(mode)
        inner = made.isolate()
        if inner:
            _, status = os.waitpid(inner, 0)
            ended = os.waitstatus_to_exitcode(status)
            os._exit(ended if ended >= 0 else 100 - ended)
        made.confine(MEMORY, 30, 5)
        made.filter(code)
    except BaseException as error:  # noqa: BLE001 - a child must not run on as its parent
        os.write(2, repr(error).encode())
        os._exit(9)
    try:
        got = attempt()
    except (Refused, OSError, MemoryError):
        os._exit(7)
    except BaseException:  # noqa: BLE001
        os._exit(8)
    os._exit(0 if got else 7)


def outcome(code: bytes, mode: str, uid: int, attempt: Callable[[], Any]) -> str:
    with tempfile.TemporaryFile("w+b") as out:
        pid = os.fork()
        if pid == 0:
            confined(code, mode, uid, attempt, out.fileno())
        _, status, usage = os.wait4(pid, 0)
        ended = os.waitstatus_to_exitcode(status)
        ended = 100 - ended if ended < 0 else ended
        if os.fstat(out.fileno()).st_size > FILE_BYTES or usage.ru_maxrss > MEMORY >> 10:
            return "ESCAPED: beyond the limits"
        if ended == 0:
            return "ESCAPED"
        if ended == 7:
            return "refused"
        if ended > 100:
            return f"killed by {signal.Signals(ended - 100).name}"
        out.seek(0)
        return f"BROKEN: {ended} {out.read(500)!r}"


def main() -> None:
    policy, mode, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
    code = encode(compile_policy(shipped_policy(policy)))
    names = sys.argv[4:] or ATTEMPTS
    found = {name: outcome(code, mode, uid, ATTEMPTS[name]) for name in names}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
