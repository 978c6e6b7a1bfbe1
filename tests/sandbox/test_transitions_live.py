"""Live transitions are real: without a filter the kernel gives what the table says, each in a process of its own."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from warpproof.sandbox import name_of, transitions

PRELUDE = """
import ctypes, errno, mmap, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(number, *args):
    value = libc.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    return value if value >= 0 else -ctypes.get_errno()
"""
REAL = {
    "file-open: openat": "print(call(257, -100, b'/proc/self/status', 0, 0) >= 0)",
    "file-open: openat2": "print(call(437, -100, b'/proc/self/status', struct.pack('=QQQ', 0, 0, 0), 24) >= 0)",
    "rwx: mmap": "print(call(9, 0, 4096, 5, 0x22, -1, 0) > 0)",
    "rwx: mprotect": "a = call(9, 0, 4096, 3, 0x22, -1, 0); print(call(10, a, 4096, 7) == 0)",
    "rwx: pkey_mprotect": "a = call(9, 0, 4096, 3, 0x22, -1, 0); print(call(329, a, 4096, 7, -1) == 0)",
    "net: socket, upper half ignored": "print(call(41, 1 << 32 | 2, 1, 0) >= 0)",
    "ipc: socket": "print(call(41, 1, 1, 0) >= 0)",
    "process: fork": "p = call(57); (os._exit(0) if p == 0 else print(p > 0))",
    "process: clone": "p = call(56, 17, 0, 0, 0, 0); (os._exit(0) if p == 0 else print(p > 0))",
    "read-other: process_vm_readv": """
b = ctypes.create_string_buffer(b'secret', 6); c = ctypes.create_string_buffer(6)
p = os.fork()
if p == 0:
    libc.pause()
local, remote = (struct.pack('=QQ', ctypes.addressof(x), 6) for x in (c, b))
print(call(310, p, local, 1, remote, 1, 0) == 6 and c.raw == b'secret'); os.kill(p, 9)""",
    "write-other: write, after file-open": """
b = ctypes.create_string_buffer(b'secret', 6)
p = os.fork()
if p == 0:
    while b.raw == b'secret': pass
    os._exit(9)
f = os.open(f'/proc/{p}/mem', os.O_RDWR); os.pwrite(f, b'public', ctypes.addressof(b))
print(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) == 9)""",
    "filter-add: prctl": "print(call(157, 22, 2, 0, 0, 0) == -errno.EFAULT)",
    "filter-add: seccomp": "print(call(317, 1, 0, 0) == -errno.EFAULT)",
    "unknown flags: clone takes CLONE_NEWTIME for a signal": """
before = os.readlink('/proc/self/ns/time_for_children')
p = call(56, 0x80 | 17, 0, 0, 0, 0)
if p == 0:
    os._exit(0 if os.readlink('/proc/self/ns/time_for_children') == before else 1)
print(p > 0 and os.waitpid(p, 0x40000000)[1] == 0 or p == -errno.EINVAL)""",
}
# A memfd is run in spite of a Landlock ruleset that grants nothing: why `exec` has no `unless = "landlock"`.
MEMFD = """
handled = struct.pack('=Q', (1 << 13) - 1)
ruleset = call(444, handled, 8, 0)
if ruleset < 0:
    print('none'); sys.exit()
code = bytes.fromhex('b83c000000bf2a0000000f05')  # exit(42)
head = struct.pack('=16sHHIQQQIHHHHHH', b'\x7fELF\x02\x01\x01', 2, 62, 1, 0x400078, 64, 0, 0, 64, 56, 1, 0, 0, 0)
load = struct.pack('=IIQQQQQQ', 1, 5, 0, 0x400000, 0x400000, 120 + len(code), 120 + len(code), 4096)
f = os.memfd_create('x', 0)
os.write(f, head + load + code)
call(157, 38, 1, 0, 0, 0)
assert call(446, ruleset, 0) == 0
denied = call(257, -100, b'/etc/hostname', 0, 0)
print('denied' if denied == -errno.EACCES else 'open', flush=True)
argv = (ctypes.c_char_p * 2)(b'x', None); env = (ctypes.c_char_p * 1)(None)
print(call(322, f, b'', argv, env, 0x1000))
"""


# What right data would change or stop the machine with: the kernel carries the call out and refuses the data.
HARMFUL = {f"{name}:{fact}" for fact, names in {
    "kernel": "init_module finit_module delete_module kexec_load kexec_file_load reboot",
    "mount": "swapon swapoff", "system": "quotactl_fd acct madvise _sysctl", "identity": "lsm_set_self_attr",
    "observe": "lookup_dcookie"}.items()
    for name in names.split()}
EDGES = Path(__file__).with_name("live_edges.py")


@pytest.fixture(scope="module")
def outcomes() -> Mapping[str, str]:
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.platform != "linux":
        pytest.skip("the table is for x86-64 Linux")
    done = subprocess.run([sys.executable, str(EDGES)], capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def rights() -> bool:
    """Whether this process may do what root may."""
    with open("/proc/self/status", encoding="utf-8") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    return os.geteuid() == 0 and status.get("Seccomp") == "0" and int(status["CapEff"], 16) & 1 << 21 != 0


def test_every_transition_of_the_table_is_tried(outcomes: Mapping[str, str]) -> None:
    """Each gives what the table says, or is carried out up to data that is wrong on purpose; none is refused by root's
    lack of something."""
    known = {f"{name_of(e.number)}:{e.gains}" for e in transitions().edges}
    assert set(outcomes) == known
    lacking = {"ENOSYS"} if rights() else {"ENOSYS", "EPERM", "EACCES", "nothing"}
    assert {k: v for k, v in outcomes.items() if v not in {"gives", "reached"} | lacking} == {}
    assert not rights() or sum(v == "gives" for v in outcomes.values()) > 250
    assert not rights() or {k for k, v in outcomes.items() if v == "reached"} <= HARMFUL


def test_transitions_that_this_machine_lacks(outcomes: Mapping[str, str]) -> None:
    lacking = sorted(k for k, v in outcomes.items() if v in ("ENOSYS", "EPERM", "EACCES"))
    if lacking:
        pytest.skip(f"not in this kernel, or not for this user: {', '.join(lacking)}")


def execute(text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", PRELUDE + text], capture_output=True, text=True, check=False,
                          timeout=60)


@pytest.mark.parametrize("name", REAL)
def test_a_live_transition_is_real(name: str) -> None:
    if ctypes.sizeof(ctypes.c_void_p) != 8 or sys.platform != "linux":
        pytest.skip("the table is for x86-64 Linux")
    assert execute(REAL[name]).stdout.strip() == "True"


def test_landlock_denies_files_by_name_and_not_a_memfd() -> None:
    done = execute(MEMFD)
    if done.stdout.strip() == "none":
        pytest.skip("no Landlock here")
    assert (done.stdout.strip(), done.returncode) == ("denied", 42)
