"""What a command run by `sandbox run` tries: `attempts.py PARENT GRANTED WRITABLE NAME…`. Prints GOT and what.

Without confinement each of them succeeds, or would on a machine that is set up for it.
"""

import ctypes
import mmap
import os
import resource
import socket
import struct
import subprocess
import sys
import threading
import urllib.request

PARENT, GRANTED, WRITABLE = int(sys.argv[1]), sys.argv[2], sys.argv[3]
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
X32 = 0x40000000


def call(number, *args):
    made = libc.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if made == -1:
        raise OSError(ctypes.get_errno(), "refused")
    return f"call {number}: {made}"


def old(number):
    area = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    area.write(bytes.fromhex("5389f8cd805bc3"))
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(area)))
    made = function(number)
    if made < 0:
        raise OSError(-made, "refused")
    return f"int 0x80: {made}"


def inherited():
    found = []
    for number in (*range(3, 2000), 5000, 70000):
        try:
            found.append(os.read(number, 9))
        except OSError:
            continue
    if not found:
        raise OSError(9, "none")
    return found


def grow():
    return len(b"x" * (8 << 30))


def fill():
    with open(WRITABLE + "/large", "wb") as file:
        for _ in range(200):
            file.write(b"x" * (1 << 20))
    return "filled"


def bomb():
    for _ in range(50):
        if os.fork() == 0:
            os._exit(0)
    return "forked"


def two(address, length):
    return ctypes.create_string_buffer(struct.pack("=QQ", address, length))


def memfd():
    number = os.memfd_create("x", 0)
    os.execve(number, ["x"], {})


def shared():
    return call(29, 0, 4096, 0o1600)


ATTEMPTS = {
    "a file": lambda: open("/etc/passwd").read(),
    "a file through the granted folder": lambda: open(GRANTED + "/../secret.txt").read(),
    "a link out of the granted folder": lambda: open(GRANTED + "/link").read(),
    "the parent's folder": lambda: os.listdir(GRANTED + "/.."),
    "home": lambda: os.listdir(os.path.expanduser("~root")),
    "proc": lambda: os.listdir("/proc"),
    "the environment of the parent": lambda: open(f"/proc/{PARENT}/environ").read(),
    "own memory in proc": lambda: open("/proc/self/mem", "r+b").read(1),
    "root in proc": lambda: open("/".join(("/proc/self", "root", "etc", "passwd"))).read(),
    "sys": lambda: os.listdir("/sys/kernel"),
    "a device": lambda: os.open("/dev/mem", os.O_RDWR),
    "a terminal": lambda: os.open("/dev/tty", os.O_RDWR),
    "writing to what may be read": lambda: open(GRANTED + "/new", "w").write("x"),
    "changing what may be read": lambda: open(GRANTED + "/link", "a").write("x"),
    "removing what may be read": lambda: os.remove(GRANTED + "/link") or "removed",
    "a mode": lambda: os.chmod(GRANTED, 0o777) or "changed",
    "an owner": lambda: os.chown(GRANTED, 1, 1) or "changed",
    "times": lambda: os.utime(GRANTED) or "changed",
    "an attribute": lambda: os.setxattr(GRANTED, "user.x", b"x") or "changed",
    "a link made": lambda: os.link(GRANTED + "/link", WRITABLE + "/link") or "linked",
    "a link to elsewhere": lambda: os.symlink("/etc/passwd", WRITABLE + "/link") or open(WRITABLE + "/link").read(),
    "moving out of the granted folder": lambda: os.rename(GRANTED + "/link", WRITABLE + "/link") or "moved",
    "another program that reads": lambda: os.execv("/bin/cat", ["cat", "/etc/passwd"]),
    "a child": lambda: subprocess.check_output(["/bin/cat", "/usr/bin/env"]),
    "fork": bomb,
    "vfork": lambda: call(58),
    "a new namespace": lambda: call(272, 0x10000000),
    "clone with a namespace": lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0),
    "clone3": lambda: call(435, ctypes.create_string_buffer(88), 88),
    "a memfd": memfd,
    "the network": lambda: socket.create_connection(("127.0.0.1", 9)),
    "a page": lambda: urllib.request.urlopen("http://127.0.0.1:9").read(),
    "a local socket": lambda: socket.socket(socket.AF_UNIX),
    "netlink": lambda: socket.socket(16, 3, 0),
    "vsock": lambda: call(41, 40, 1, 0),
    "the socket's upper half": lambda: call(41, 1 << 32 | 2, 1, 0),
    "ptrace": lambda: call(101, 0x4206, PARENT, 0, 0),
    "memory of the parent": lambda: call(310, PARENT, two(0, 8), 1, two(4096, 8), 1, 0),
    "memory of the parent, written": lambda: call(311, PARENT, two(0, 8), 1, two(4096, 8), 1, 0),
    "pidfd": lambda: call(434, PARENT, 0),
    "a signal": lambda: os.kill(PARENT, 0) or "sent",
    "a signal to all": lambda: os.kill(-1, 0) or "sent",
    "tgkill": lambda: call(234, PARENT, PARENT, 0),
    "an owner of signals": lambda: call(72, 1, 8, PARENT),
    "io_uring": lambda: call(425, 4, ctypes.create_string_buffer(120)),
    "userfaultfd": lambda: call(323, 1),
    "bpf": lambda: call(321, 0, ctypes.create_string_buffer(128), 128),
    "perf": lambda: call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0),
    "keyctl": lambda: call(250, 0, -3, 1),
    "mount": lambda: call(165, b"x", b"/mnt", b"tmpfs", 0, 0),
    "chroot": lambda: call(161, b"/"),
    "a user": lambda: os.setuid(0) or "changed",
    "a filter": lambda: call(317, 1, 0, 0),
    "shared memory": shared,
    "a message queue": lambda: call(240, b"x", 0o102, 0o600, 0),
    "int 0x80": lambda: old(20),
    "x32": lambda: call(X32 | 39),
    "an unknown number": lambda: call(5000),
    "inherited descriptors": inherited,
    "a limit": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (999, 999)) or "raised",
    "memory": grow, "a large file": fill,
    "root's root": lambda: os.listdir("/proc/1/root"),
    "a setting of the kernel": lambda: open("/proc/sys/kernel/core_pattern", "w").write("|/bin/sh"),
    "shared memory by name": lambda: open("/dev/shm/warpproof-attempt", "w").write("x"),
    "a temporary file elsewhere": lambda: open("/tmp/warpproof-attempt", "w").write("x"),
    "a set-user-ID program": lambda: os.open(WRITABLE + "/program", os.O_CREAT | os.O_WRONLY, 0o4755) and "made",
    "a set-group-ID program": lambda: os.open(WRITABLE, os.O_TMPFILE | os.O_WRONLY, 0o2755) and "made",
    "a device file": lambda: os.mknod(WRITABLE + "/device", 0o20600, os.makedev(1, 1)) or "made",
    "a local socket in the writable folder": lambda: call(133, (WRITABLE + "/socket").encode(), 0o140600, 0),
    "a link by number": lambda: call(265, 1, b"", -100, (WRITABLE + "/link").encode(), 0x1000),
    "input for the terminal": lambda: call(16, 0, 0x5412, b"x"),
    "an owner of a socket": lambda: call(16, 0, 0x8901, struct.pack("=i", PARENT)),
    "a pair of sockets": lambda: call(53, 1, 2, 0, ctypes.create_string_buffer(8)),
    "memory taken from the machine": lambda: call(28, 1 << 30, 4096, 101),
    "the parent's descriptor": lambda: call(438, 3, 0, 0),
    "what the parent has open": lambda: call(312, PARENT, PARENT, 0, 0, 0),
    "the parent's processor time": lambda: call(228, (~PARENT << 3 | 2) & 0xFFFFFFFF, two(0, 0)),
    "the parent's limits": lambda: call(302, PARENT, 7, 0, two(0, 0)),
    "a death signal": lambda: call(157, 1, 0, 0, 0, 0) and "changed",
    "being dumped": lambda: call(157, 4, 1, 0, 0, 0),
    "a thread of another kind": lambda: call(56, 0x3D0F00 | 0x80000000, 0, 0, 0, 0),
    "a handle": lambda: call(304, -100, two(8, 0), 0),
    "a program by number": lambda: call(322, os.open("/bin/true", os.O_PATH), b"", 0, 0, 0x1000),
    "host name": lambda: socket.sethostname("x") or "set",
    "the clock": lambda: call(164, 0, 0),
}
# What it may do, and does.
WORK = {
    "reading": lambda: open(GRANTED + "/input").read(),
    "writing": lambda: open(WRITABLE + "/output", "w").write("made here"),
    "a folder": lambda: os.mkdir(WRITABLE + "/folder") or os.rmdir(WRITABLE + "/folder") or "made",
    "threads": lambda: [t.start() or t.join() for t in [threading.Thread(target=print) for _ in range(4)]],
    "input": lambda: sys.stdin.read(),
    "another program": lambda: os.execv("/bin/echo", ["echo", "GOT", "it"]),
}

for name in sys.argv[4:]:
    print("try", name, flush=True)
    try:
        made = (ATTEMPTS | WORK)[name]()
    except (OSError, MemoryError, subprocess.SubprocessError) as error:
        print("refused", type(error).__name__, str(error)[:200], flush=True)
        continue
    print("GOT", repr(made)[:200], flush=True)
