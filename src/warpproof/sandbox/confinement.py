"""Confining this process for good. Every layer is put in force and checked; the first that is missing is named.

Order matters: namespaces before threads and with a fork, descriptors closed before limits, Landlock's own descriptor
before the limit on descriptors, no_new_privs before Landlock and the filter, the filter last.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import struct
from typing import Final

from warpproof.sandbox.instructions import Program, encode

LAYERS: Final = ("namespaces", "descriptors", "landlock", "limits", "no-new-privileges", "filter", "read-back")
_NAMESPACES: Final = 0x10000000 | 0x40000000 | 0x08000000 | 0x04000000 | 0x20000000  # user, network, IPC, UTS, PID
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_GET_NO_NEW_PRIVS = 1, 38, 39
_SECCOMP, _SET_MODE_FILTER, _TSYNC = 317, 1, 1
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT, _LANDLOCK_VERSION = 444, 446, 1
_LANDLOCK_ABI: Final = 3  # from here on, truncation is covered too
_CLOSE_RANGE: Final = 436
_STANDARD: Final = (0, 1, 2)


class Unconfined(Exception):
    """A layer could not be put in force: nothing untrusted may run in this process."""

    def __init__(self, layer: str, why: str) -> None:
        super().__init__(f"{layer}: {why}")
        self.layer, self.why = layer, why


_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def isolate() -> int:
    """Enter new user, network, IPC, UTS and PID namespaces. Returns twice, as fork does: 0 in the process inside, which
    dies with its parent; outside the inner process's number. Unconfined if refused. Call before any thread starts."""
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_NAMESPACES):
        raise Unconfined("namespaces", f"unshare: {os.strerror(ctypes.get_errno())}")
    try:
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                file.write(text)
    except OSError as error:
        raise Unconfined("namespaces", f"mapping of users: {error.strerror}") from None
    pid = os.fork()
    if pid == 0:
        _prctl("namespaces", _PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getpid() != 1:
            raise Unconfined("namespaces", "the process is not the first of its PID namespace")
    return pid


def confine(program: Program, memory_bytes: int, cpu_seconds: int) -> None:
    """All layers but namespaces and the read-back, for all threads of this process, for good. Standard input, output
    and error stay open and have to be pipes or regular files. Unconfined names the layer that is missing."""
    _close_descriptors()
    _prctl("no-new-privileges", _PR_SET_NO_NEW_PRIVS, 1)
    if _libc.prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1:
        raise Unconfined("no-new-privileges", "the bit is not set")
    _landlock()
    _limits(memory_bytes, cpu_seconds)
    code = encode(program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(program), ctypes.addressof(buffer)))
    failed = _libc.syscall(_SECCOMP, _SET_MODE_FILTER, _TSYNC, header)
    if failed:
        why = os.strerror(ctypes.get_errno()) if failed < 0 else f"thread {failed} has other filters"
        raise Unconfined("filter", why)


def _prctl(layer: str, option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        raise Unconfined(layer, f"prctl {option}: {os.strerror(ctypes.get_errno())}")


def _close_descriptors() -> None:
    if _libc.syscall(_CLOSE_RANGE, max(_STANDARD) + 1, 0xFFFFFFFF, 0):
        raise Unconfined("descriptors", f"close_range: {os.strerror(ctypes.get_errno())}")
    for number in _STANDARD:
        try:
            mode = os.fstat(number).st_mode
        except OSError as error:
            raise Unconfined("descriptors", f"descriptor {number}: {error.strerror}") from None
        if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
            raise Unconfined("descriptors", f"descriptor {number} is neither a pipe nor a regular file")


def _landlock() -> None:
    """A ruleset that handles every right this kernel knows and grants none."""
    abi = _libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION)
    if abi < _LANDLOCK_ABI:
        raise Unconfined("landlock", f"ABI {_LANDLOCK_ABI} is needed, the kernel has {max(abi, 0)}")
    files = (1 << 16) - 1 if abi >= 5 else (1 << 15) - 1
    fields = [files, 3, 3][: 3 if abi >= 6 else 2 if abi >= 4 else 1]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _libc.syscall(_LANDLOCK_CREATE, attributes, len(attributes), 0)
    if ruleset < 0:
        raise Unconfined("landlock", f"ruleset: {os.strerror(ctypes.get_errno())}")
    if _libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0):
        raise Unconfined("landlock", f"restriction: {os.strerror(ctypes.get_errno())}")
    os.close(ruleset)
    try:
        os.close(os.open("/", os.O_RDONLY))
    except PermissionError:
        return
    except OSError as error:
        raise Unconfined("landlock", f"opening / gave {error.strerror}") from None
    raise Unconfined("landlock", "the root folder can still be opened")


def _limits(memory_bytes: int, cpu_seconds: int) -> None:
    wanted = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 1 << 26), (resource.RLIMIT_AS, memory_bytes),
              (resource.RLIMIT_CPU, cpu_seconds), (resource.RLIMIT_NOFILE, len(_STANDARD)))
    for kind, value in wanted:
        try:
            _, hard = resource.getrlimit(kind)
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (bound, bound))
        except (OSError, ValueError) as error:
            raise Unconfined("limits", f"limit {kind}: {error}") from None
        if resource.getrlimit(kind) != (bound, bound):
            raise Unconfined("limits", f"limit {kind} is not in force")
