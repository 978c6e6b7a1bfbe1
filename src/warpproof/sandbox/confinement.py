"""Confining this process for good. Every layer is put in force and checked; one that is missing is named.

Order matters: namespaces before threads and with a fork, descriptors closed before limits, Landlock's own descriptor
before the limit on descriptors, no_new_privs before Landlock and the filter, all of them before other threads, since
only the filter reaches those that already run; the filter last.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import stat
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Final

LAYERS: Final = ("namespaces", "descriptors", "landlock", "limits", "no-new-privileges", "filter", "read-back")
_NAMESPACES: Final = 0x10000000 | 0x40000000 | 0x08000000 | 0x04000000 | 0x20000000  # user, network, IPC, UTS, PID
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_GET_NO_NEW_PRIVS = 1, 38, 39
_SECCOMP, _SET_MODE_FILTER, _TSYNC = 317, 1, 1
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT, _LANDLOCK_VERSION = 444, 445, 446, 1
# Rights on files: execute, read, list; write, remove, make folders and plain files, move between folders, truncate.
_READING: Final = 1 << 0 | 1 << 2 | 1 << 3
_WRITING: Final = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 13 | 1 << 14
_OF_FILES: Final = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 14
_LANDLOCK_ABI: Final = 1
_FILE_RIGHTS: Final = {1: 13, 2: 14, 3: 15, 4: 15}  # how many rights on files an ABI has; later ones have 16
_CLOSE_RANGE: Final = 436
MODES: Final = {
    "auto": "the strictest that this machine offers; a filter at least",
    "strict": "every layer, else nothing runs",
    "filter": "without namespaces and Landlock: descriptors, limits, no_new_privs and the filter",
    "off": "no confinement: only limits on memory and time",
}

_ALWAYS: Final = ("descriptors", "limits", "no-new-privileges", "filter")
NEEDED: Final = {"auto": _ALWAYS, "strict": ("namespaces", "landlock", *_ALWAYS), "filter": _ALWAYS, "off": ()}


class Unconfined(Exception):
    """A layer could not be put in force: nothing untrusted may run in this process."""

    def __init__(self, layer: str, why: str) -> None:
        super().__init__(f"{layer}: {why}")
        self.layer, self.why = layer, why


_libc: Final = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class Confinement:
    """What a mode asks of this process, and which layers are in force. `missing` says of the others why they are not.

    `strict` raises Unconfined at the first missing layer; `auto` goes on without namespaces or Landlock, `filter` never
    tries them; what is left is needed in every mode but `off`.
    """

    def __init__(self, mode: str) -> None:
        self.mode, self.in_force = mode, list[str]()
        self.missing: dict[str, str] = {}

    def report(self) -> Mapping[str, object]:
        """The layers as JSON values."""
        return {"mode": self.mode, "layers": list(self.in_force), "missing": dict(self.missing)}

    def isolate(self) -> int:
        """`isolate`, where the mode wants it: 0 in the process that goes on."""
        if not self._wanted("namespaces"):
            return 0
        try:
            inner = isolate()
        except Unconfined as error:
            self._without(error)
            return 0
        self.in_force.append("namespaces")
        return inner

    def confine(self, memory_bytes: int, cpu_seconds: int, descriptors: int, *, more: int = 0,
                grants: Sequence[tuple[str, bool]] = ()) -> None:
        """All layers but namespaces and the filter, which `filter` adds once all threads run.

        `more` descriptors may be opened later, on files beneath `grants`: paths, and whether they may be written to.
        """
        if self.mode == "off":
            return
        if (sys.platform, platform.machine()) != ("linux", "x86_64"):
            raise Unconfined("filter", f"the policies are for x86-64 Linux, not for {sys.platform} on "
                                       f"{platform.machine()}")
        _one_thread()
        _close_descriptors(descriptors)
        _no_new_privileges()
        if self._wanted("landlock"):
            try:
                _landlock(grants)
                self.in_force.append("landlock")
            except Unconfined as error:
                self._without(error)
        _limits(memory_bytes, cpu_seconds, descriptors + more)
        self.in_force += ["descriptors", "no-new-privileges", "limits"]

    def filter(self, code: bytes) -> None:
        """The last layer: the filter, as the kernel takes it, on all threads of this process."""
        if self.mode != "off":
            _filter(code)
            self.in_force.append("filter")

    def _wanted(self, layer: str) -> bool:
        if self.mode == "filter":
            self.missing[layer] = "not asked for"
        return self.mode in ("auto", "strict")

    def _without(self, error: Unconfined) -> None:
        if self.mode == "strict":
            raise error
        self.missing[error.layer] = error.why


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
    except OSError:
        pass  # a host that forbids the map, as Ubuntu's AppArmor does, leaves a user without a name and without rights
    try:
        pid = os.fork()
    except OSError as error:
        raise Unconfined("namespaces", f"fork: {error.strerror}") from None
    if pid == 0:
        _prctl("namespaces", _PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getpid() != 1 or os.getppid() != 0:
            raise Unconfined("namespaces", "the process is not the first of its PID namespace")
    return pid


def _prctl(layer: str, option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        raise Unconfined(layer, f"prctl {option}: {os.strerror(ctypes.get_errno())}")


def _one_thread() -> None:
    """Landlock and no_new_privs bind the calling thread and those it starts later."""
    try:
        count = len(os.listdir("/proc/self/task"))
    except OSError as error:
        raise Unconfined("descriptors", f"/proc/self/task: {error.strerror}") from None
    if count != 1:
        raise Unconfined("descriptors", f"{count} threads run already, and may hold what others give up")


def _no_new_privileges() -> None:
    _prctl("no-new-privileges", _PR_SET_NO_NEW_PRIVS, 1)
    if _libc.prctl(_PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1:
        raise Unconfined("no-new-privileges", "the bit is not set")


def _filter(code: bytes) -> None:
    buffer = ctypes.create_string_buffer(code, len(code))
    header = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer)))
    failed = _libc.syscall(_SECCOMP, _SET_MODE_FILTER, _TSYNC, header)
    if failed:
        why = os.strerror(ctypes.get_errno()) if failed < 0 else f"thread {failed} has other filters"
        raise Unconfined("filter", why)


def _close_descriptors(kept: int) -> None:
    if _libc.syscall(_CLOSE_RANGE, kept, 0xFFFFFFFF, 0):
        os.closerange(kept, os.sysconf("SC_OPEN_MAX"))  # kernels before 5.9, or a container that does not know the call
    for number in range(kept):
        try:
            mode = os.fstat(number).st_mode
        except OSError as error:
            raise Unconfined("descriptors", f"descriptor {number}: {error.strerror}") from None
        if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
            raise Unconfined("descriptors", f"descriptor {number} is neither a pipe nor a regular file")


def _landlock(grants: Sequence[tuple[str, bool]] = ()) -> None:
    """A ruleset that handles every right this kernel knows and grants none, or those of files beneath some paths."""
    abi = _libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION)
    if abi < _LANDLOCK_ABI:
        raise Unconfined("landlock", f"ABI {_LANDLOCK_ABI} is needed, the kernel has {max(abi, 0)}")
    handled = (1 << _FILE_RIGHTS.get(abi, 16)) - 1
    fields = [handled, 3, 3][: 3 if abi >= 6 else 2 if abi >= 4 else 1]
    attributes = struct.pack(f"={len(fields)}Q", *fields)
    ruleset = _libc.syscall(_LANDLOCK_CREATE, attributes, len(attributes), 0)
    if ruleset < 0:
        raise Unconfined("landlock", f"ruleset: {os.strerror(ctypes.get_errno())}")
    for path, writable in grants:
        _grant(ruleset, path, (_READING | _WRITING if writable else _READING) & handled)
    if _libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0):
        raise Unconfined("landlock", f"restriction: {os.strerror(ctypes.get_errno())}")
    os.close(ruleset)
    try:
        os.close(os.open("/proc/self" if grants else "/", os.O_RDONLY))
    except PermissionError:
        return
    except OSError as error:
        raise Unconfined("landlock", f"opening / gave {error.strerror}") from None
    raise Unconfined("landlock", "what was not granted can still be opened")


def _grant(ruleset: int, path: str, rights: int) -> None:
    try:
        number = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise Unconfined("landlock", f"{path}: {error.strerror}") from None
    if not stat.S_ISDIR(os.fstat(number).st_mode):
        rights &= _OF_FILES
    beneath = struct.pack("=Qi", rights, number)
    failed = _libc.syscall(_LANDLOCK_ADD, ruleset, 1, beneath, 0)
    os.close(number)
    if failed:
        raise Unconfined("landlock", f"granting {path}: {os.strerror(ctypes.get_errno())}")


def _limits(memory_bytes: int, cpu_seconds: int, descriptors: int) -> None:
    wanted = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 1 << 26), (resource.RLIMIT_AS, memory_bytes),
              (resource.RLIMIT_CPU, cpu_seconds), (resource.RLIMIT_NOFILE, descriptors))
    for kind, value in wanted:
        try:
            _, hard = resource.getrlimit(kind)
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (bound, bound))
        except (OSError, ValueError) as error:
            raise Unconfined("limits", f"limit {kind}: {error}") from None
        if resource.getrlimit(kind) != (bound, bound):
            raise Unconfined("limits", f"limit {kind} is not in force")
