"""What the running kernel gives a process without a filter: `live_edges.py [CALL:GAINS …]`, JSON on standard output.

One process for each transition of the table, in namespaces of its own where that is allowed. "gives": the capability was
used and its effect seen. "reached": the kernel carries the call out and only refuses the data, which is wrong on purpose,
since right data would change or stop the machine. Otherwise the error's name, or "nothing" where no effect was seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import mmap
import os
import resource
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from warpproof.sandbox import number_of

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
PAGE = 4096
HERE = tempfile.mkdtemp()
SECRET = b"the secret of another"
secret = ctypes.create_string_buffer(SECRET, len(SECRET))
room = ctypes.create_string_buffer(PAGE)
REFUSED_DATA = {"EINVAL", "EBADF", "ENOENT", "ENOEXEC", "EFAULT", "ESRCH", "ENOTBLK", "EOPNOTSUPP", "ENOTSUP", "E2BIG", "ENODEV"}


def at(buffer: Any, length: int = 0) -> int:
    return ctypes.addressof(buffer)


def call(name: str, *args: Any) -> int:
    """The result of a call; OSError with its error."""
    given = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    made: int = libc.syscall(number_of(name), *given)
    if made == -1:
        raise OSError(ctypes.get_errno(), name)
    return made


def vector(buffer: Any, length: int) -> Any:
    return ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(buffer), length))


def other(act: Callable[[], Any] = signal.pause) -> int:
    """A child that waits, or does something; it dies with its parent."""
    pid = os.fork()
    if pid == 0:
        libc.prctl(1, 9, 0, 0, 0)
        act()
        os._exit(0)
    time.sleep(0.05)
    return pid


def changed_by(pid: int) -> bool:
    """Whether the secret of that process is another one now, seen from outside by reading its memory."""
    with open(f"/proc/{pid}/mem", "rb") as file:
        file.seek(at(secret))
        return file.read(6) == b"public"


def poke(act: Callable[[int], Any]) -> bool:
    pid = other()
    act(pid)
    return changed_by(pid)


def peek(act: Callable[[int], Any]) -> bool:
    """The act leaves the secret in `room`."""
    pid = other()
    act(pid)
    return room.raw.startswith(SECRET[:8])


def memory(pid: int) -> int:
    """The procfs file of a process's memory, at the secret."""
    number = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    os.lseek(number, at(secret), 0)
    return number


def traced(pid: int) -> int:
    call("ptrace", 16, pid, 0, 0)
    os.waitpid(pid, 0)
    return pid


def path(name: str = "x") -> bytes:
    return f"{HERE}/{name}".encode()


def file(name: str = "x") -> int:
    """A new file of eight bytes, open."""
    number = os.open(path(name), os.O_RDWR | os.O_CREAT, 0o600)
    os.write(number, b"contents")
    os.lseek(number, 0, 0)
    return number


def snapshot() -> list[Any]:
    found = []
    for folder, _, names in os.walk(HERE):
        for name in ["", *names]:
            full = os.path.join(folder, name)
            status = os.lstat(full)
            attributes = os.listxattr(full, follow_symlinks=False)
            content = b""
            if os.path.isfile(full) and not os.path.islink(full):
                with open(full, "rb") as opened:
                    content = opened.read()
            found.append((full, status.st_mode, status.st_uid, status.st_nlink, status.st_size, status.st_mtime,
                          attributes, content))
    return found


def alters(act: Callable[[], Any], before: Callable[[], Any] = file) -> Callable[[], bool]:
    """Whether the files differ afterwards."""

    def run() -> bool:
        before()
        old = snapshot()
        act()
        return snapshot() != old

    return run


def opens(act: Callable[[], int]) -> Callable[[], bool]:
    def run() -> bool:
        file()
        return os.read(act(), 8) == b"contents"

    return run


def succeeds(act: Callable[[], Any]) -> Callable[[], bool]:
    return lambda: act() >= 0


def wrongly(act: Callable[[], Any]) -> Callable[[], str]:
    """The kernel refuses the data only."""

    def run() -> str:
        try:
            act()
        except OSError as error:
            name = errno.errorcode[error.errno or 0]
            return "reached" if name in REFUSED_DATA else name
        return "reached"

    return run


def ends(act: Callable[[int], Any], number: int = signal.SIGUSR1) -> Callable[[], bool]:
    """Another process dies of the signal."""

    def run() -> bool:
        pid = other()
        act(pid)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -number

    return run


def pends(act: Callable[[], Any]) -> Callable[[], bool]:
    """This process has the signal."""

    def run() -> bool:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        act()
        return signal.SIGUSR1 in signal.sigpending()

    return run


def exits(act: Callable[[], Any], code: int = 42) -> Callable[[], bool]:
    return lambda: os.waitstatus_to_exitcode(os.waitpid(other(act), 0)[1]) == code


def namespace(act: Callable[[], Any]) -> Callable[[], bool]:
    def run() -> bool:
        old = os.readlink("/proc/self/ns/uts")
        act()
        return os.readlink("/proc/self/ns/uts") != old

    return run


def cloned(flags: int) -> Callable[[], bool]:
    """A child that says whether its UTS namespace is another one."""

    def run() -> bool:
        old = os.readlink("/proc/self/ns/uts")
        pid = call("clone", flags | signal.SIGCHLD, 0, 0, 0, 0)
        if pid == 0:
            os._exit(42 if os.readlink("/proc/self/ns/uts") != old else 43)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == (42 if flags else 43)

    return run


def cloned3(flags: int) -> Callable[[], bool]:
    def run() -> bool:
        old = os.readlink("/proc/self/ns/uts")
        arguments = ctypes.create_string_buffer(struct.pack("=8Q", flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0))
        pid = call("clone3", arguments, 64)
        if pid == 0:
            os._exit(42 if os.readlink("/proc/self/ns/uts") != old else 43)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == (42 if flags else 43)

    return run


def machine(code: str) -> int:
    area = mmap.mmap(-1, PAGE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(bytes.fromhex(code))
    return int(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(area)))())


def executable(address: int) -> bool:
    """Whether the memory map says so."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            first, _, rest = line.partition("-")
            if int(first, 16) <= address < int(rest.split()[0], 16):
                return "x" in rest.split()[1]
    return False


def shared(flags: int) -> bool:
    segment = call("shmget", 0, PAGE, 0o1700)
    return executable(call("shmat", segment, 0, flags))


def implied() -> bool:
    call("personality", 0x0400000)
    return executable(call("mmap", 0, PAGE, 1, 0x22, -1, 0))


def handle(flags: int = 0) -> int:
    struct.pack_into("=II", room, 0, 128, 0)
    number = ctypes.create_string_buffer(4)
    call("name_to_handle_at", -100, path(), room, number, 0)
    return call("open_by_handle_at", os.open(HERE, os.O_RDONLY), room, flags)


def received(many: bool) -> int:
    """A descriptor that came through a socket."""
    left, right = socket.socketpair()
    socket.send_fds(left, [b"x"], [file()])
    control, data = ctypes.create_string_buffer(64), ctypes.create_string_buffer(8)
    part = vector(data, 8)
    head = ctypes.create_string_buffer(struct.pack("=QIxxxxQQQQIxxxxIxxxx", 0, 0, at(part), 1, at(control), 64, 0, 0))
    if many:
        call("recvmmsg", right.fileno(), head, 1, 0, 0)
    else:
        call("recvmsg", right.fileno(), head, 0)
    return int(struct.unpack_from("=i", control, 16)[0])


def listening() -> socket.socket:
    made = socket.socket()
    up()
    made.bind(("127.0.0.1", 0))
    made.listen()
    return made


def up() -> None:
    """The loopback device of a new network namespace is down."""
    with socket.socket() as made, contextlib.suppress(OSError):
        import fcntl

        fcntl.ioctl(made, 0x8914, struct.pack("16sh14x", b"lo", 0x49))


def connected(name: str, *more: Any) -> bool:
    server = listening()
    client = socket.create_connection(server.getsockname())
    return call(name, server.fileno(), 0, 0, *more) >= 0 and bool(client)


def connects() -> bool:
    server = listening()
    address = struct.pack("=H", 2) + struct.pack("!H4s8x", server.getsockname()[1], bytes([127, 0, 0, 1]))
    with socket.socket() as client:
        return call("connect", client.fileno(), address, 16) == 0


def terminal() -> int:
    return os.openpty()[1]


def queue() -> int:
    return call("mq_open", b"warpproof", 0o102, 0o600, 0)


def segment() -> int:
    return call("shmget", 0, PAGE, 0o1600)


def semaphore() -> int:
    return call("semget", 0, 1, 0o1600)


def messages() -> int:
    made = call("msgget", 0, 0o1600)
    call("msgsnd", made, struct.pack("=Q8s", 1, b"message"), 8, 0)
    return made


def sent() -> int:
    made = queue()
    call("mq_timedsend", made, b"x", 1, 0, 0)
    return made


def received_from_queue() -> int:
    made = sent()
    return call("mq_timedreceive", made, room, PAGE * 2, 0, 0) if len(room) >= PAGE * 2 else call(
        "mq_timedreceive", made, ctypes.create_string_buffer(1 << 16), 1 << 16, 0, 0)


def filesystem() -> int:
    made = call("fsopen", b"tmpfs", 0)
    call("fsconfig", made, 6, 0, 0, 0)
    return made


def mounted() -> bytes:
    os.makedirs(path("m"), exist_ok=True)
    call("mount", b"x", path("m"), b"tmpfs", 0, 0)
    return path("m")


def moves() -> bool:
    os.makedirs(path("m"), exist_ok=True)
    mount = call("fsmount", filesystem(), 0, 0)
    call("move_mount", mount, b"", -100, path("m"), 4)
    return os.path.ismount(path("m"))


def pivots() -> bool:
    new = mounted()
    os.makedirs(new + b"/old")
    call("pivot_root", new, new + b"/old")
    return os.path.isdir("/old/usr")


def unmounts() -> bool:
    place = mounted()
    call("umount2", place, 0)
    return not os.path.ismount(place)


def chroots() -> bool:
    os.makedirs(path("r"), exist_ok=True)
    call("chroot", path("r"))
    return os.listdir("/") == []


def readonly() -> bool:
    place = mounted()
    call("mount_setattr", -100, place, 0, struct.pack("=4Q", 1, 0, 0, 0), 32)
    return bool(os.statvfs(place).f_flag & os.ST_RDONLY)


def program() -> Any:
    code = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000))
    keep.append(code)
    call("prctl", 38, 1, 0, 0, 0)
    return ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", 1, ctypes.addressof(code)))


def filters() -> int:
    with open("/proc/self/status", encoding="utf-8") as status:
        return int(next(line for line in status if line.startswith("Seccomp:")).split()[1])


def setting(name: str, *args: Any) -> Callable[[], bool]:
    """A call that sets, given a value; success is what can be seen of it."""
    return succeeds(lambda: call(name, *args))


def key() -> int:
    return call("add_key", b"user", b"warpproof", b"x", 1, -2)


def requested() -> int:
    key()
    return call("request_key", b"user", b"warpproof", 0, 0)


def ring() -> int:
    return call("io_uring_setup", 4, ctypes.create_string_buffer(120))


def context() -> int:
    made = ctypes.create_string_buffer(8)
    call("io_setup", 4, made)
    return int(struct.unpack("=Q", made.raw)[0])


def submitted(number: int, offset: int, data: Any, length: int, kind: int = 1) -> int:
    """One write, or a read, by io_submit."""
    block = ctypes.create_string_buffer(struct.pack("=QIIHhIQQqQII", 0, 0, 0, kind, 0, number, at(data), length, offset, 0,
                                                    0, 0))
    keep.append(block)
    return call("io_submit", context(), 1, ctypes.create_string_buffer(struct.pack("=Q", at(block))))


def event() -> int:
    attributes = struct.pack("=IIQQ", 1, 128, 0, 0).ljust(128, b"\0")
    return call("perf_event_open", attributes, -1, 0, -1, 0)


def owned() -> bool:
    """A child that gets SIGIO when this process's pipe has something to read."""
    left, right = socket.socketpair()
    pid = other()
    call("fcntl", left.fileno(), 8, pid)
    call("fcntl", left.fileno(), 4, 0x2000)
    right.send(b"x")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGIO


def identity(name: str, *args: int) -> Callable[[], bool]:
    def run() -> bool:
        old = (os.getresuid(), os.getresgid(), os.getgroups())
        call(name, *args)
        return (os.getresuid(), os.getresgid(), os.getgroups()) != old

    return run


def filesystem_identity(name: str) -> Callable[[], bool]:
    def run() -> bool:
        call(name, 65534)
        return call(name, 65534) == 65534

    return run


def drops() -> bool:
    head = struct.pack("=Ii", 0x20080522, 0)
    call("capset", head, bytes(24))
    with open("/proc/self/status", encoding="utf-8") as status:
        return int(next(line for line in status if line.startswith("CapEff")).split()[1], 16) == 0


def now(clock: int = time.CLOCK_REALTIME) -> bytes:
    return struct.pack("=qq", int(time.clock_gettime(clock)), int(time.clock_gettime(clock) % 1 * 1e9))


def watching() -> int:
    return call("fanotify_init", 0, 0)


def pidfd(pid: int) -> int:
    return call("pidfd_open", pid, 0)


def stolen() -> bool:
    """A descriptor of another process."""
    number = file()
    pid = other()
    os.lseek(number, 0, 0)
    return os.read(call("pidfd_getfd", pidfd(pid), number, 0), 8) == b"contents"


def reaped() -> bool:
    """Memory taken from a process that is to die and has not yet; it has much of it, so that this takes a while."""
    for _ in range(50):
        pid = os.fork()
        if pid == 0:
            libc.prctl(1, 9, 0, 0, 0)
            area = mmap.mmap(-1, 64 << 20)
            for place in range(0, 64 << 20, PAGE):
                area[place] = 1
            signal.pause()
        time.sleep(0.15)
        number = pidfd(pid)
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(OSError):
            return call("process_mrelease", number, 0) == 0
    return False


def home() -> bool:
    """The node that an area of memory is bound to."""
    area = call("mmap", 0, PAGE, 3, 0x22, -1, 0)
    call("mbind", area, PAGE, 2, struct.pack("=Q", 1), 64, 0)
    return call("set_mempolicy_home_node", area, PAGE, 0, 0) == 0


def remapped() -> bool:
    area = call("mmap", 0, 2 * PAGE, 3, 0x21, -1, 0)
    ctypes.memmove(area + PAGE, SECRET, 6)
    call("remap_file_pages", area, PAGE, 0, 1, 0)
    return ctypes.string_at(area, 6) == SECRET[:6]


def attributed() -> bool:
    """No dump, by the call that takes attributes of a file."""
    file()
    call("file_setattr", -100, path(), struct.pack("=QIIII", 0x80, 0, 0, 0, 0), 24, 0)
    call("file_getattr", -100, path(), room, 24, 0)
    return bool(room.raw[0] & 0x80)


def advised() -> int:
    area = vector(secret, 0)
    struct.pack_into("=QQ", area, 0, at(secret) & ~(PAGE - 1), PAGE)
    return call("process_madvise", pidfd(other()), area, 1, 20, 0)


def attribute(act: Callable[[], Any]) -> Callable[[], bool]:
    return alters(act, lambda: (file(), os.setxattr(path(), "user.y", b"y")))


def info(size: int = 8) -> bytes:
    return struct.pack("=QIxxxx", at(keep_name), size)


def sync_room() -> Any:
    return ctypes.create_string_buffer(PAGE)


def mapped(act: Callable[[int], Any], reads: bool = False) -> Callable[[], bool]:
    """A child shares memory that has no name, and says whether it was changed. The act gets it by way of procfs."""

    def run() -> bool:
        left, right = os.pipe()

        def life() -> None:
            number = os.memfd_create("x")
            os.write(number, SECRET.ljust(PAGE, b"\0"))
            area = mmap.mmap(number, PAGE)
            os.write(right, b"%d" % number)
            for _ in range(100 if not reads else 1000):
                if area[:6] != SECRET[:6]:
                    os._exit(42)
                time.sleep(0.01)

        pid = other(life)
        act(os.open(f"/proc/{pid}/fd/{int(os.read(left, 9))}", os.O_RDWR))
        if reads:
            return room.raw.startswith(SECRET[:8])
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42

    return run


def into_room(act: Callable[[int], Any]) -> None:
    """What a call writes into a pipe goes to `room`."""
    left, right = os.pipe()
    act(right)
    ctypes.memmove(room, os.read(left, 8), 8)


def into_shared(act: Callable[[int], Any]) -> None:
    number = os.memfd_create("x")
    act(number)
    ctypes.memmove(room, os.pread(number, 8, 0), 8)


def stored(number: int) -> None:
    ctypes.memmove(call("mmap", 0, PAGE, 3, 1, number, 0), b"public", 6)


def unlacking(act: Callable[[], Any]) -> Callable[[], Any]:
    """A kernel, or file system, without this ioctl or attribute lacks it, as one does that has not the call."""

    def run() -> Any:
        try:
            return act()
        except OSError as error:
            if error.errno in (errno.ENOTTY, errno.EOPNOTSUPP):
                return "ENOSYS"
            raise

    return run


def queried() -> bool:
    """Where another process's memory is, by PROCMAP_QUERY (Linux 6.11)."""
    question = ctypes.create_string_buffer(struct.pack("=QQQ", 104, 0x10, at(secret)), 104)
    call("ioctl", os.open(f"/proc/{other()}/maps", os.O_RDONLY), 0xC0686611, question)
    first, last = struct.unpack_from("=QQ", question, 24)
    return first <= at(secret) < last


def flagged() -> bool:
    """FS_IOC_SETFLAGS: no dump."""
    number, flags = file(), ctypes.create_string_buffer(8)
    call("ioctl", number, 0x40086602, struct.pack("=Q", 0x40))
    call("ioctl", number, 0x80086601, flags)
    return bool(flags.raw[0] & 0x40)


def owned_by_ioctl() -> bool:
    """The same as `owned`, by FIOSETOWN and FIOASYNC."""
    left, right = socket.socketpair()
    pid = other()
    call("ioctl", left.fileno(), 0x8901, struct.pack("=i", pid))
    call("ioctl", left.fileno(), 0x5452, struct.pack("=i", 1))
    right.send(b"x")
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGIO


def to_daemon() -> bool:
    """From a pair of datagram sockets to a local socket that is none of the two."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as daemon:
        daemon.bind(path("daemon"))
        pair = ctypes.create_string_buffer(8)
        call("socketpair", 1, 2, 0, pair)
        with socket.socket(fileno=struct.unpack("=ii", pair.raw)[0]) as left:
            left.sendto(b"public", path("daemon"))
        return daemon.recv(6) == b"public"


def datagram(act: Callable[[int, bytes], Any]) -> Callable[[], bool]:
    """By a socket that was there before, to an address."""

    def run() -> bool:
        up()
        with socket.socket(type=socket.SOCK_DGRAM) as server, socket.socket(type=socket.SOCK_DGRAM) as client:
            server.bind(("127.0.0.1", 0))
            server.settimeout(2)
            act(client.fileno(), struct.pack("=H", 2) + struct.pack("!H4s8x", server.getsockname()[1], b"\x7f\0\0\1"))
            return server.recv(6) == b"public"

    return run


def header(address: bytes) -> Any:
    kept = ctypes.create_string_buffer(address)
    part = vector(public, 6)
    keep.extend((kept, part))
    return ctypes.create_string_buffer(struct.pack("=QIxxxxQQQQIxxxxIxxxx", at(kept), 16, at(part), 1, 0, 0, 0, 0))


def binds() -> None:
    call("bind", call("socket", 1, 2, 0), struct.pack("=H", 1) + path("socket") + b"\0", 3 + len(path("socket")))


def opened_by_event() -> bool:
    file()
    number = call("fanotify_init", 0, 0)
    call("fanotify_mark", number, 1, 0x08000020, -100, HERE.encode())
    other(lambda: os.open(path(), os.O_RDONLY))
    return os.pread(struct.unpack_from("=i", os.read(number, PAGE), 16)[0], 8, 0) == b"contents"


def clock_of(pid: int) -> int:
    """The clock that counts a process's time on processors."""
    return (~pid << 3 | 2) & 0xFFFFFFFF


def tells_time() -> bool:
    def work() -> None:
        while True:
            pass

    pid = other(work)
    time.sleep(0.05)
    call("clock_gettime", clock_of(pid), room)
    return struct.unpack_from("=qq", room) > (0, 0)


keep: list[Any] = []
keep_name = ctypes.create_string_buffer(b"value")
MEM = {
    "write": lambda f: call("write", f, b"public", 6), "pwrite64": lambda f: call("pwrite64", f, b"public", 6, at(secret)),
    "writev": lambda f: call("writev", f, vector(public, 6), 1),
    "pwritev": lambda f: call("pwritev", f, vector(public, 6), 1, at(secret), 0),
    "pwritev2": lambda f: call("pwritev2", f, vector(public, 6), 1, at(secret), 0, 0),
}
# What files of procfs called `mem` do not take, but memory that is shared without a name.
SHARED = {
    "sendfile": lambda f: call("sendfile", f, source(), 0, 6), "splice": lambda f: call("splice", piped(), 0, f, 0, 6, 0),
    "copy_file_range": lambda f: call("copy_file_range", shared_source(), 0, f, 0, 6, 0),
    "ftruncate": lambda f: call("ftruncate", f, 1), "fallocate": lambda f: call("fallocate", f, 3, 0, PAGE),
    "io_submit": lambda f: submitted(f, 0, public, 6), "mmap": stored,
}
READ = {
    "read": lambda f: call("read", f, room, 8), "pread64": lambda f: call("pread64", f, room, 8, at(secret)),
    "readv": lambda f: call("readv", f, vector(room, 8), 1),
    "preadv": lambda f: call("preadv", f, vector(room, 8), 1, at(secret), 0),
    "preadv2": lambda f: call("preadv2", f, vector(room, 8), 1, at(secret), 0, 0),
}
READ_SHARED = {
    "mmap": lambda f: ctypes.memmove(room, call("mmap", 0, PAGE, 1, 1, f, 0), 8),
    "sendfile": lambda f: into_room(lambda g: call("sendfile", g, f, 0, 8)),
    "splice": lambda f: into_room(lambda g: call("splice", f, ctypes.byref(ctypes.c_long(0)), g, 0, 8, 0)),
    "copy_file_range": lambda f: into_shared(lambda g: call("copy_file_range", f, ctypes.byref(ctypes.c_long(0)), g, 0, 8, 0)),
    "io_submit": lambda f: submitted(f, 0, room, 8, 0),
}
public = ctypes.create_string_buffer(b"public", 6)


def source() -> int:
    number = file("source")
    os.pwrite(number, b"public", 0)
    return number


def shared_source() -> int:
    """copy_file_range stays within one file system."""
    number = os.memfd_create("x")
    os.write(number, b"public")
    os.lseek(number, 0, 0)
    return number


def piped() -> int:
    left, right = os.pipe()
    os.write(right, b"public")
    return left


SIGNALS = {
    "kill": lambda p: call("kill", p, 10), "tkill": lambda p: call("tkill", p, 10),
    "tgkill": lambda p: call("tgkill", p, p, 10), "rt_sigqueueinfo": lambda p: call("rt_sigqueueinfo", p, 10, queued()),
    "rt_tgsigqueueinfo": lambda p: call("rt_tgsigqueueinfo", p, p, 10, queued()),
    "pidfd_send_signal": lambda p: call("pidfd_send_signal", pidfd(p), 10, 0, 0),
}


def queued() -> bytes:
    return struct.pack("=iii", 10, 0, -1).ljust(128, b"\0")


FILES: dict[str, Callable[[], Any]] = {
    "truncate": lambda: call("truncate", path(), 1), "rename": lambda: call("rename", path(), path("y")),
    "renameat": lambda: call("renameat", -100, path(), -100, path("y")),
    "renameat2": lambda: call("renameat2", -100, path(), -100, path("y"), 0),
    "mkdir": lambda: call("mkdir", path("d"), 0o700), "mkdirat": lambda: call("mkdirat", -100, path("d"), 0o700),
    "link": lambda: call("link", path(), path("y")), "linkat": lambda: call("linkat", -100, path(), -100, path("y"), 0),
    "unlink": lambda: call("unlink", path()), "unlinkat": lambda: call("unlinkat", -100, path(), 0),
    "symlink": lambda: call("symlink", b"a", path("y")), "symlinkat": lambda: call("symlinkat", b"a", -100, path("y")),
    "mknod": lambda: call("mknod", path("y"), 0o010600, 0), "mknodat": lambda: call("mknodat", -100, path("y"), 0o010600, 0),
    "chmod": lambda: call("chmod", path(), 0o644), "fchmodat": lambda: call("fchmodat", -100, path(), 0o644),
    "fchmodat2": lambda: call("fchmodat2", -100, path(), 0o644, 0), "chown": lambda: call("chown", path(), 1, 1),
    "lchown": lambda: call("lchown", path(), 1, 1), "fchownat": lambda: call("fchownat", -100, path(), 1, 1, 0),
    "utime": lambda: call("utime", path(), struct.pack("=qq", 1, 1)),
    "utimes": lambda: call("utimes", path(), struct.pack("=4q", 1, 0, 1, 0)),
    "futimesat": lambda: call("futimesat", -100, path(), struct.pack("=4q", 1, 0, 1, 0)),
    "utimensat": lambda: call("utimensat", -100, path(), struct.pack("=4q", 1, 0, 1, 0), 0),
    "setxattr": lambda: call("setxattr", path(), b"user.x", b"x", 1, 0),
    "lsetxattr": lambda: call("lsetxattr", path(), b"user.x", b"x", 1, 0),
    "setxattrat": lambda: call("setxattrat", -100, path(), 0, b"user.x", struct.pack("=QII", at(keep_name), 5, 0), 16),
    }
BY_NUMBER: dict[str, Callable[[int], Any]] = {
    "ftruncate": lambda f: call("ftruncate", f, 1), "fallocate": lambda f: call("fallocate", f, 0, 0, 1 << 16),
    "fchmod": lambda f: call("fchmod", f, 0o644), "fchown": lambda f: call("fchown", f, 1, 1),
    "fsetxattr": lambda f: call("fsetxattr", f, b"user.x", b"x", 1, 0), "write": lambda f: call("write", f, b"public", 6),
    "pwrite64": lambda f: call("pwrite64", f, b"public", 6, 0), "writev": lambda f: call("writev", f, vector(public, 6), 1),
    "pwritev": lambda f: call("pwritev", f, vector(public, 6), 1, 0, 0),
    "pwritev2": lambda f: call("pwritev2", f, vector(public, 6), 1, 0, 0, 0), "mmap": stored,
    "sendfile": lambda f: call("sendfile", f, source(), 0, 6), "splice": lambda f: call("splice", piped(), 0, f, 0, 6, 0),
    "copy_file_range": lambda f: call("copy_file_range", source(), 0, f, 0, 6, 0),
    "io_submit": lambda f: submitted(f, 0, public, 6),
}
SELF = os.getpid()
TRIED: dict[str, Callable[[], Any]] = {
    "init_module:kernel": wrongly(lambda: call("init_module", room, 64, b"")),
    "finit_module:kernel": wrongly(lambda: call("finit_module", -1, b"", 0)),
    "delete_module:kernel": wrongly(lambda: call("delete_module", b"no-such-module", 0)),
    "kexec_load:kernel": wrongly(lambda: call("kexec_load", 0, 1, 0, 1 << 20)),
    "kexec_file_load:kernel": wrongly(lambda: call("kexec_file_load", -1, -1, 0, 0, 1 << 20)),
    "bpf:kernel": succeeds(lambda: call("bpf", 0, struct.pack("=5I", 2, 4, 4, 1, 0).ljust(128, b"\0"), 128)),
    "iopl:kernel": succeeds(lambda: call("iopl", 3)), "ioperm:kernel": succeeds(lambda: call("ioperm", 0x80, 1, 1)),
    "reboot:kernel": wrongly(lambda: call("reboot", 0, 0, 0, 0)),
    "io_uring_setup:unfiltered": succeeds(ring), "io_uring_enter:unfiltered": succeeds(
        lambda: call("io_uring_enter", ring(), 0, 0, 0, 0, 0)),
    "io_uring_register:unfiltered": succeeds(lambda: call("io_uring_register", ring(), 8, sync_room(), 16)),
    "ptrace:write-other": lambda: poke(lambda p: call("ptrace", 4, traced(p), at(secret),
                                                     int.from_bytes(b"public..", "little"))),
    "process_vm_writev:write-other": lambda: poke(
        lambda p: call("process_vm_writev", p, vector(public, 6), 1, vector(secret, 6), 1, 0)),
    "ptrace:read-other": lambda: peek(lambda p: call("ptrace", 2, traced(p), at(secret), at(room))),
    "process_vm_readv:read-other": lambda: peek(
        lambda p: call("process_vm_readv", p, vector(room, 8), 1, vector(secret, 8), 1, 0)),
    "kcmp:read-other": lambda: call("kcmp", SELF, other(), 0, 1, 1) >= 0, "pidfd_getfd:read-other": stolen,
    "pidfd_getfd:write-other": stolen, "pidfd_open:read-other": succeeds(lambda: pidfd(other())),
    "process_madvise:read-other": lambda: advised() > 0, "process_madvise:write-other": lambda: advised() > 0,
    "process_mrelease:read-other": reaped, "process_mrelease:write-other": reaped,
    "move_pages:read-other": lambda: call("move_pages", other(), 1, struct.pack("=Q", at(secret) & ~(PAGE - 1)), 0, room,
                                          0) >= 0,
    "perf_event_open:read-other": succeeds(event), "perf_event_open:surface": succeeds(event),
    "mount:mount": lambda: os.path.ismount(mounted()), "umount2:mount": unmounts, "pivot_root:mount": pivots,
    "chroot:mount": chroots, "move_mount:mount": moves, "fsmount:mount": moves, "fsconfig:mount": moves,
    "fsopen:mount": moves, "mount_setattr:mount": readonly,
    "open_tree:mount": succeeds(lambda: call("open_tree", -100, mounted(), 1)),
    "open_tree_attr:mount": succeeds(lambda: call("open_tree_attr", -100, mounted(), 1, bytes(32), 32)),
    "fspick:mount": succeeds(lambda: call("fspick", -100, mounted(), 0)),
    "swapon:mount": wrongly(lambda: call("swapon", b"/no-such-file", 0)),
    "swapoff:mount": wrongly(lambda: call("swapoff", b"/no-such-file")),
    "unshare:namespace": namespace(lambda: call("unshare", 0x04000000)),
    "setns:namespace": namespace(lambda: call("setns", os.open(f"/proc/{os.getppid()}/ns/uts", os.O_RDONLY), 0)),
    "clone:namespace": cloned(0x04000000), "clone:process": cloned(0), "clone3:namespace": cloned3(0x04000000),
    "clone3:process": cloned3(0), "fork:process": lambda: os.waitpid(forked(), 0)[1] == 42 << 8,
    "vfork:process": lambda: machine("b83a0000000f0585c0750cbf2a000000b83c0000000f05c3") > 0,
    "setuid:identity": identity("setuid", 65534), "setgid:identity": identity("setgid", 65534),
    "setreuid:identity": identity("setreuid", 65534, 65534), "setregid:identity": identity("setregid", 65534, 65534),
    "setresuid:identity": identity("setresuid", 1, 2, 3), "setresgid:identity": identity("setresgid", 1, 2, 3),
    "setfsuid:identity": filesystem_identity("setfsuid"), "setfsgid:identity": filesystem_identity("setfsgid"),
    "setgroups:identity": lambda: call("setgroups", 1, struct.pack("=I", 7)) == 0 and os.getgroups() == [7],
    "capset:identity": drops, "add_key:identity": succeeds(key), "request_key:identity": succeeds(requested),
    "keyctl:identity": succeeds(lambda: call("keyctl", 0, -3, 1)),
    "lsm_set_self_attr:identity": wrongly(lambda: call("lsm_set_self_attr", 100, room, 32, 0)),
    "execve:exec": exits(lambda: os.execve("/bin/sh", ["sh", "-c", "exit 42"], {})),
    "execveat:exec": exits(lambda: call("execveat", os.open("/bin/sh", os.O_PATH), b"", arguments(), 0, 0x1000)),
    "open:file-open": opens(lambda: call("open", path(), 0)), "openat:file-open": opens(lambda: call("openat", -100, path(), 0)),
    "openat2:file-open": opens(lambda: call("openat2", -100, path(), bytes(24), 24)),
    "creat:file-open": alters(lambda: call("creat", path("new"), 0o600)), "open_by_handle_at:file-open": opens(handle),
    "open:file-change": alters(lambda: call("open", path("new"), 0o102, 0o600)),
    "openat:file-change": alters(lambda: call("openat", -100, path(), 0o1002, 0)),
    "openat2:file-change": alters(lambda: call("openat2", -100, path(), struct.pack("=QQQ", 0o1002, 0, 0), 24)),
    "creat:file-change": alters(lambda: call("creat", path(), 0o600)),
    "open_by_handle_at:file-change": alters(lambda: handle(0o1001)), "bind:file-change": alters(binds),
    "ioctl:file-change": unlacking(flagged), "ioctl:read-other": unlacking(queried), "ioctl:signal-other": owned_by_ioctl,
    "socketpair:ipc": to_daemon, "fanotify_init:file-open": opened_by_event,
    "sendto:net": datagram(lambda s, a: call("sendto", s, b"public", 6, 0, a, 16)),
    "sendmsg:net": datagram(lambda s, a: call("sendmsg", s, header(a), 0)),
    "sendmmsg:net": datagram(lambda s, a: call("sendmmsg", s, header(a), 1, 0)),
    "madvise:system": wrongly(lambda: call("madvise", PAGE, PAGE, 101)),
    "capget:observe": lambda: call("capget", struct.pack("=Ii", 0x20080522, other()), room) == 0,
    "clock_gettime:observe": tells_time, "clock_getres:observe": succeeds(
        lambda: call("clock_getres", clock_of(other()), room)),
    "clock_nanosleep:observe": lambda: call("clock_nanosleep", clock_of(other(lambda: machine("ebfe"))), 0, struct.pack(
        "=qq", 0, 20_000_000), 0) == 0,
    "timer_create:observe": succeeds(lambda: call("timer_create", clock_of(other()), 0, room)),
    "recvmsg:file-open": lambda: os.pread(received(False), 8, 0) == b"contents",
    "recvmmsg:file-open": lambda: os.pread(received(True), 8, 0) == b"contents",
    "rmdir:file-change": alters(lambda: call("rmdir", path("d")), lambda: os.mkdir(path("d"))),
    "socket:net": succeeds(lambda: call("socket", 1 << 32 | 2, 1, 0)), "socket:ipc": succeeds(lambda: call("socket", 1, 1, 0)),
    "socket:surface": succeeds(lambda: call("socket", 16, 3, 0)), "connect:net": connects,
    "bind:net": lambda: call("bind", socket.socket().detach(), struct.pack("=H14x", 2), 16) == 0,
    "listen:net": lambda: call("listen", socket.socket().detach(), 1) == 0, "accept:net": lambda: connected("accept"),
    "accept4:net": lambda: connected("accept4", 0),
    "ioctl:device": lambda: call("ioctl", terminal(), 0x5412, b"x") == 0 or True,
    "ioctl:surface": succeeds(lambda: call("ioctl", terminal(), 0x5401, room)),
    "shmget:ipc": succeeds(segment), "shmat:ipc": lambda: call("shmat", segment(), 0, 0) != 0,
    "shmctl:ipc": succeeds(lambda: call("shmctl", segment(), 2, room)),
    "shmdt:ipc": lambda: call("shmdt", call("shmat", segment(), 0, 0)) == 0, "semget:ipc": succeeds(semaphore),
    "semop:ipc": succeeds(lambda: call("semop", semaphore(), struct.pack("=Hhh", 0, 1, 0), 1)),
    "semctl:ipc": succeeds(lambda: call("semctl", semaphore(), 0, 12, 0)),
    "semtimedop:ipc": succeeds(lambda: call("semtimedop", semaphore(), struct.pack("=Hhh", 0, 1, 0), 1, 0)),
    "msgget:ipc": succeeds(lambda: call("msgget", 0, 0o1600)), "msgsnd:ipc": succeeds(messages),
    "msgrcv:ipc": lambda: call("msgrcv", messages(), room, 8, 0, 0) == 8,
    "msgctl:ipc": succeeds(lambda: call("msgctl", messages(), 2, room)), "mq_open:ipc": succeeds(queue),
    "mq_unlink:ipc": lambda: queue() >= 0 and call("mq_unlink", b"warpproof") == 0, "mq_timedsend:ipc": succeeds(sent),
    "mq_timedreceive:ipc": lambda: received_from_queue() == 1, "mq_notify:ipc": succeeds(
        lambda: call("mq_notify", queue(), struct.pack("=QiI", 0, 10, 0).ljust(64, b"\0"))),
    "mq_getsetattr:ipc": succeeds(lambda: call("mq_getsetattr", queue(), 0, room)),
    "shmat:rwx": lambda: shared(0x8000), "mmap:rwx": lambda: executable(call("mmap", 0, PAGE, 5, 0x22, -1, 0)),
    "mprotect:rwx": lambda: protected("mprotect"), "pkey_mprotect:rwx": lambda: protected("pkey_mprotect", -1),
    "personality:rwx": implied, "personality:control": implied,
    "remap_file_pages:surface": remapped,
    "fcntl:signal-other": owned,
    "settimeofday:system": lambda: call("settimeofday", struct.pack("=qq", int(time.time()), int(time.time() % 1 * 1e6)),
                                        0) == 0,
    "clock_settime:system": lambda: call("clock_settime", 0, now()) == 0,
    "adjtimex:system": succeeds(lambda: call("adjtimex", bytearray_of(208))),
    "clock_adjtime:system": succeeds(lambda: call("clock_adjtime", 0, bytearray_of(208))),
    "sethostname:system": lambda: call("sethostname", b"warp", 4) == 0 and socket.gethostname() == "warp",
    "setdomainname:system": succeeds(lambda: call("setdomainname", b"warp", 4)),
    "quotactl:system": succeeds(lambda: call("quotactl", 0x80000100, 0, 0, 0)),
    "quotactl_fd:system": wrongly(lambda: call("quotactl_fd", -1, 0x80000700, 0, room)),
    "acct:system": wrongly(lambda: call("acct", b"/no-such-file")),
    "syslog:system": succeeds(lambda: call("syslog", 3, room, 100)), "vhangup:system": succeeds(lambda: call("vhangup")),
    "sync:system": succeeds(lambda: call("sync")), "syncfs:system": succeeds(lambda: call("syncfs", file())),
    "_sysctl:system": wrongly(lambda: call("_sysctl", 0)), "fanotify_init:system": succeeds(watching),
    "fanotify_mark:system": succeeds(lambda: call("fanotify_mark", watching(), 1, 0x20, -100, HERE.encode())),
    "seccomp:filter-add": lambda: call("seccomp", 1, 0, program()) == 0 and filters() == 2,
    "prctl:filter-add": lambda: call("prctl", 22, 2, program(), 0, 0) == 0 and filters() == 2,
    "prctl:control": lambda: call("prctl", 4, 0, 0, 0, 0) == 0 and libc.prctl(3, 0, 0, 0, 0) == 0,
    "arch_prctl:control": succeeds(lambda: call("arch_prctl", 0x1011, 0)),
    "modify_ldt:surface": succeeds(lambda: call("modify_ldt", 0, room, 64)),
    "userfaultfd:surface": succeeds(lambda: call("userfaultfd", 1)), "io_setup:surface": lambda: context() != 0,
    "io_submit:surface": lambda: submitted(file(), 0, public, 6) == 1,
    "setrlimit:resource": lambda: call("setrlimit", 7, struct.pack("=QQ", 99, 99)) == 0 and resource.getrlimit(7) == (99, 99),
    "prlimit64:resource": lambda: call("prlimit64", 0, 7, struct.pack("=QQ", 99, 99), 0) == 0 and resource.getrlimit(7) == (
        99, 99),
    "prlimit64:observe": lambda: call("prlimit64", other(), 7, 0, room) == 0,
    "setpriority:resource": lambda: call("setpriority", 0, 0, 5) == 0 and os.getpriority(0, 0) == 5,
    "sched_setaffinity:resource": lambda: call("sched_setaffinity", 0, 8, struct.pack("=Q", 1)) == 0 and os.sched_getaffinity(
        0) == {0},
    "sched_setparam:resource": succeeds(lambda: call("sched_setparam", 0, struct.pack("=i", 0))),
    "sched_setscheduler:resource": lambda: call("sched_setscheduler", 0, 3, struct.pack("=i", 0)) == 0 and (
        os.sched_getscheduler(0) == 3),
    "sched_setattr:resource": lambda: call("sched_setattr", 0, struct.pack("=IIQiI", 48, 3, 0, 0, 0).ljust(48, b"\0"),
                                           0) == 0 and os.sched_getscheduler(0) == 3,
    "ioprio_set:resource": succeeds(lambda: call("ioprio_set", 1, 0, 2 << 13 | 7)),
    "mlockall:resource": succeeds(lambda: call("mlockall", 1)),
    "mbind:resource": succeeds(lambda: call("mbind", call("mmap", 0, PAGE, 3, 0x22, -1, 0), PAGE, 0, 0, 0, 0)),
    "set_mempolicy:resource": succeeds(lambda: call("set_mempolicy", 4, 0, 0)),
    "set_mempolicy_home_node:resource": home,
    "migrate_pages:resource": succeeds(
        lambda: call("migrate_pages", 0, 64, struct.pack("=Q", 1), struct.pack("=Q", 1))),
}
TRIED |= {f"{n}:write-other": lambda act=act: poke(lambda p: act(memory(p))) for n, act in MEM.items()}
TRIED |= {f"{n}:read-other": lambda act=act: peek(lambda p: act(memory(p))) for n, act in READ.items()}
TRIED |= {f"{n}:write-other": mapped(act) for n, act in SHARED.items()}
TRIED |= {f"{n}:read-other": mapped(act, True) for n, act in READ_SHARED.items()}
TRIED |= {f"{n}:signal-other": ends(act) for n, act in SIGNALS.items()}
TRIED |= {f"{n}:control": pends(lambda act=act: act(os.getpid())) for n, act in SIGNALS.items()}
TRIED |= {f"{n}:file-change": alters(act) for n, act in FILES.items()}
TRIED |= {f"{n}:file-change": alters(lambda act=act: act(os.open(path(), os.O_RDWR))) for n, act in BY_NUMBER.items()}
TRIED |= {
    "removexattr:file-change": attribute(lambda: call("removexattr", path(), b"user.y")),
    "lremovexattr:file-change": attribute(lambda: call("lremovexattr", path(), b"user.y")),
    "removexattrat:file-change": attribute(lambda: call("removexattrat", -100, path(), 0, b"user.y")),
    "fremovexattr:file-change": attribute(lambda: call("fremovexattr", os.open(path(), os.O_RDONLY), b"user.y")),
}
OBSERVED: dict[str, Callable[[], Any]] = {
    "stat": lambda: call("stat", path(), room), "lstat": lambda: call("lstat", path(), room),
    "newfstatat": lambda: call("newfstatat", -100, path(), room, 0), "statx": lambda: call("statx", -100, path(), 0, 0xFFF, room),
    "access": lambda: call("access", path(), 4), "faccessat": lambda: call("faccessat", -100, path(), 4),
    "faccessat2": lambda: call("faccessat2", -100, path(), 4, 0), "readlink": lambda: call("readlink", b"/proc/self/exe", room, 99),
    "readlinkat": lambda: call("readlinkat", -100, b"/proc/self/exe", room, 99), "chdir": lambda: call("chdir", b"/usr"),
    "statfs": lambda: call("statfs", path(), room), "ustat": lambda: call("ustat", os.stat("/dev/shm").st_dev, room),
    "sysfs": lambda: call("sysfs", 3), "getxattr": lambda: call("getxattr", path(), b"user.y", room, 99),
    "lgetxattr": lambda: call("lgetxattr", path(), b"user.y", room, 99),
    "getxattrat": lambda: call("getxattrat", -100, path(), 0, b"user.y", struct.pack("=QII", at(room), 99, 0), 16),
    "listxattr": lambda: call("listxattr", path(), room, 99), "llistxattr": lambda: call("llistxattr", path(), room, 99),
    "listxattrat": lambda: call("listxattrat", -100, path(), 0, room, 99), "inotify_init": lambda: call("inotify_init"),
    "inotify_init1": lambda: call("inotify_init1", 0),
    "inotify_add_watch": lambda: call("inotify_add_watch", call("inotify_init"), path(), 2),
    "name_to_handle_at": lambda: call("name_to_handle_at", -100, path(), struct.pack("=II", 128, 0).ljust(256, b"\0"), room, 0),
    "statmount": lambda: call("statmount", struct.pack("=IIQQ", 24, 0, mount_id(), 1), room, PAGE, 0),
    "listmount": lambda: call("listmount", struct.pack("=IIQQ", 24, 0, (1 << 64) - 1, 0), room, 9, 0),
    "file_getattr": lambda: call("file_getattr", -100, path(), room, 24, 0), "getpgid": lambda: call("getpgid", other()),
    "getsid": lambda: call("getsid", other()), "getpriority": lambda: call("getpriority", 0, other()),
    "sched_getparam": lambda: call("sched_getparam", other(), room),
    "sched_getscheduler": lambda: call("sched_getscheduler", other()),
    "sched_rr_get_interval": lambda: call("sched_rr_get_interval", other(), room),
    "sched_getaffinity": lambda: call("sched_getaffinity", other(), 128, room),
    "sched_getattr": lambda: call("sched_getattr", other(), room, 56, 0), "ioprio_get": lambda: call("ioprio_get", 1, other()),
    "get_robust_list": lambda: call("get_robust_list", other(), room, at(room) + 64),
    "lookup_dcookie": wrongly(lambda: call("lookup_dcookie", 0, room, PAGE)),
}


def observed(act: Callable[[], Any]) -> Any:
    file()
    os.setxattr(path(), "user.y", b"y")
    made = act()
    return made if isinstance(made, str) else made >= 0


TRIED["file_setattr:file-change"] = unlacking(attributed)
TRIED |= {f"{n}:observe": lambda act=act: observed(act) for n, act in OBSERVED.items()}


def mount_id() -> int:
    call("statx", -100, b"/", 0, 0x4000, room)
    return int(struct.unpack_from("=Q", room, 0x90)[0])


def forked() -> int:
    pid = call("fork")
    if pid == 0:
        os._exit(42)
    return pid


def protected(name: str, *more: int) -> bool:
    area = call("mmap", 0, PAGE, 3, 0x22, -1, 0)
    call(name, area, PAGE, 7, *more)
    return executable(area)


def arguments() -> Any:
    made = (ctypes.c_char_p * 4)(b"sh", b"-c", b"exit 42", None)
    keep.append(made)
    return made


def bytearray_of(length: int) -> Any:
    return ctypes.create_string_buffer(length)


def outcome(act: Callable[[], Any]) -> str:
    """In a process of its own."""
    left, right = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(left)
        signal.alarm(20)
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_RDWR), 2)
        # new mount, UTS, IPC and network namespaces, and a mount tree that nobody shares
        if libc.unshare(0x00020000 | 0x04000000 | 0x08000000 | 0x40000000) == 0:
            libc.mount(None, b"/", None, 0x44000, None)
            libc.mount(b"x", HERE.encode(), b"tmpfs", 0, None)
        try:
            made = act()
            said = made if isinstance(made, str) else "gives" if made else "nothing"
        except OSError as error:
            said = errno.errorcode.get(error.errno or 0, "?")
        except BaseException as error:  # noqa: BLE001 - reported
            said = f"broken: {type(error).__name__}: {error}"
        os.write(right, said.encode())
        os._exit(0)
    os.close(right)
    said = os.read(left, 1000).decode()
    os.close(left)
    _, status = os.waitpid(pid, 0)
    return said or f"died: {os.waitstatus_to_exitcode(status)}"


if __name__ == "__main__":
    found = {name: outcome(TRIED[name]) for name in (sys.argv[1:] or TRIED)}
    shutil.rmtree(HERE, ignore_errors=True)
    print(json.dumps(found))
