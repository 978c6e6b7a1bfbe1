"""`warpproof sandbox run -- CMD`: what a command may do, what it cannot, and that nothing else starts."""

from __future__ import annotations

import ast
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from test_hosts import FILTERED, LANDLOCK, NAMESPACES, interpreter

from warpproof.cli import main
from warpproof.sandbox import (
    NAMES,
    Kernel,
    certificate,
    check_certificate,
    close,
    compile_policy,
    inspect,
    prove,
    shipped_policy,
)

PROGRAM = Path(__file__).with_name("attempts.py")
SECRET = "a secret beside what was granted"
NOBODY = 65534
USERS = [0, NOBODY] if os.geteuid() == 0 else [os.geteuid()]


def names(table: str) -> list[str]:
    """The keys of a table of the program, which is not imported."""
    for node in ast.parse(PROGRAM.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == table:
            assert isinstance(node.value, ast.Dict)
            return [str(key.value) for key in node.value.keys if isinstance(key, ast.Constant)]
    raise AssertionError(table)


@pytest.fixture
def place() -> Iterator[Path]:
    """Folders that every user can reach: `granted` to read, `writable` to write, and a secret beside them."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        for name, mode in (("granted", 0o755), ("writable", 0o777)):
            (root / name).mkdir()
            (root / name).chmod(mode)
        (root / "secret.txt").write_text(SECRET, "utf-8")
        (root / "granted" / "input").write_text("the input", "utf-8")
        (root / "granted" / "link").symlink_to(root / "secret.txt")
        (root / "granted" / "attempts.py").write_text(PROGRAM.read_text("utf-8"), "utf-8")
        yield root


def execute(place: Path, uid: int, *names: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Attempts in a confined command, started by that user, who holds a secret and an open file."""
    command, environment = ([sys.executable, "-m", "warpproof"], dict(os.environ)) if uid == os.geteuid() else (
        interpreter(uid))
    python = command[0]
    prefixes = {os.path.realpath(p) for p in (sys.base_prefix, sys.prefix)}
    granted = [a for p in sorted(prefixes) if os.access(p, os.R_OK) and os.path.isdir(p) for a in ("--read", p)]
    with open("/etc/hostname", "rb") as file:
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        high = min(limits[1], 8192) > 5000  # numbers that a limit of 1024 would hide
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(limits[0], 8192) if high else limits[0], limits[1]))
        held = (251, 5000) if high else (251,)
        for number in held:
            os.dup2(file.fileno(), number, inheritable=True)
        try:
            return subprocess.run(
                [*command, "sandbox", "run", "--read", str(place / "granted"), "--write", str(place / "writable"),
                 *(granted if uid == os.geteuid() else []), "--", python, "-I",
                 str(place / "granted" / "attempts.py"), str(os.getpid()), str(place / "granted"),
                 str(place / "writable"), *names],
                input=stdin, capture_output=True, text=True, check=False, timeout=120, cwd="/", pass_fds=held,
                env=environment | {"WARPPROOF_TEST_SECRET": SECRET},
                **({} if uid == os.geteuid() else {"user": uid, "group": uid, "extra_groups": []}))  # type: ignore[arg-type]
        finally:
            for number in held:
                os.close(number)
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.fixture(scope="module")
def runs(kernel: Kernel) -> None:
    """Skips where a layer is missing, which `sandbox run` says."""
    done = subprocess.run([sys.executable, "-m", "warpproof", "sandbox", "run", "--", "/bin/echo", "hello"],
                          capture_output=True, text=True, check=False)
    if done.returncode == 125:
        pytest.skip(done.stderr)
    assert done.stdout == "hello\n", done.stderr


@pytest.mark.parametrize("uid", USERS)
def test_what_a_command_may_do(uid: int, place: Path, runs: None) -> None:
    work = names("WORK")
    done = execute(place, uid, *work, stdin="what is handed in")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("GOT") == len(work)
    assert "what is handed in" in done.stdout
    assert (place / "writable" / "output").read_text("utf-8") == "made here"


@pytest.mark.parametrize("uid", USERS)
def test_a_hostile_command_gets_nothing(uid: int, place: Path, runs: None) -> None:
    """Attempt after attempt in one process; after one that killed it, or that it did not survive, in the next."""
    left = names("ATTEMPTS")
    killed = refused = 0
    while left:
        done = execute(place, uid, *left)
        said = done.stdout + done.stderr
        assert "GOT" not in done.stdout, said
        assert SECRET not in said
        assert Path("/etc/passwd").read_text("utf-8").splitlines()[0] not in said
        tried = done.stdout.count("try ")
        assert tried, said
        killed += done.returncode in (128 + 31, 128 + 25)  # a call that is not allowed, a file too large
        refused += done.stdout.count("refused ")
        assert done.returncode in (0, 1, 128 + 31, 128 + 25), (done.returncode, said)
        left = left[tried:]
    assert killed > 8
    assert refused > 30
    assert not (place / "granted" / "new").exists()
    assert not any(Path(p, "warpproof-attempt").exists() for p in ("/dev/shm", "/tmp"))
    assert all(p.stat().st_mode & 0o6000 == 0 for p in (place / "writable").iterdir())
    assert (place / "granted" / "link").is_symlink()
    assert sum(p.stat().st_size for p in (place / "writable").iterdir() if p.is_file()) <= 1 << 26


def test_the_attempts_are_real(place: Path) -> None:
    """Without confinement they succeed."""
    for name in ("a file", "a file through the granted folder", "a link out of the granted folder", "proc", "fork",
                 "another program that reads", "a child", "a local socket", "a mode", "inherited descriptors",
                 "a large file", "pidfd", "times", "a set-user-ID program", "a pair of sockets",
                 "the parent's processor time", "the parent's limits"):
        done = subprocess.run([sys.executable, str(PROGRAM), str(os.getpid()), str(place / "granted"),
                               str(place / "writable"), name], capture_output=True, text=True, check=False)
        assert "GOT" in done.stdout or "root:" in done.stdout or name == "inherited descriptors", (name, done)


def shell(*arguments: str, capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = main(["sandbox", "run", *arguments])
    captured = capfd.readouterr()
    return code, captured.out, captured.err


def test_exit_codes_streams_and_environment(place: Path, runs: None, capfd: pytest.CaptureFixture[str],
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPPROOF_TEST_SECRET", SECRET)
    assert shell("--", "/bin/sh", "-c", "echo out; echo err >&2; exit 3", capfd=capfd) == (3, "out\n", "err\n")
    assert SECRET not in shell("--", "env", capfd=capfd)[1]
    assert SECRET in shell("--env", "WARPPROOF_TEST_SECRET", "--", "env", capfd=capfd)[1]
    assert "A=b c\n" in shell("--env", "A=b c", "--", "env", capfd=capfd)[1]
    code, _, error = shell("--timeout", "2", "--", "sleep", "60", capfd=capfd)
    assert (code, "stopped at the time limit" in error) == (124, True)
    # options behind the command are the command's
    assert shell("--", "/bin/cat", "/no-such-file", "--timeout", "5", capfd=capfd)[0] == 1


def test_output_without_end_is_stopped(runs: None, capfd: pytest.CaptureFixture[str],
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warpproof.cli.launch._MAX_OUTPUT_BYTES", 1 << 20)
    code, out, error = shell("--", "/usr/bin/yes", capfd=capfd)
    assert (code, "MiB of output" in error) == (124, True)
    assert len(out) < 2 << 20


MANY_FILES = """
import os, sys, time
for at in range(200):
    number = os.open(f"{sys.argv[1]}/{at}", os.O_CREAT | os.O_WRONLY)
    os.write(number, b"x" * int(sys.argv[2]))
    os.unlink(f"{sys.argv[1]}/{at}") if sys.argv[3] == "unlink" else os.close(number)
time.sleep(60)
"""


@pytest.mark.parametrize("kept", ["unlink", "keep"])
def test_a_disk_is_not_filled(kept: str, place: Path, runs: None, capfd: pytest.CaptureFixture[str],
                              monkeypatch: pytest.MonkeyPatch) -> None:
    """By many files, each within its limit, with names or without; nor by files that hold nothing."""
    folder = str(place / "writable")
    command = ["--write", folder, "--", "/usr/bin/python3", "-I", "-c", MANY_FILES, folder]
    if not Path("/usr/bin/python3").exists():
        pytest.skip("no Python of the system")
    code, _, error = shell("--disk", "0.125", *command, str(1 << 20), kept, capfd=capfd)
    assert (code, "less are free" in error) == (124, True), error
    if kept == "keep" and os.statvfs(place).f_ffree > 1000:
        for path in (place / "writable").iterdir():
            path.unlink()
        monkeypatch.setattr("warpproof.cli.launch._MAX_FILES", 100)
        code, _, error = shell(*command, "1", kept, capfd=capfd)
        assert (code, "more files" in error) == (124, True), error


POLICY = """
default = "errno(EPERM)"
{more}
[[rule]]
calls = ["execve", "openat", "read", "write", "close", "mmap", "mprotect", "munmap", "brk", "fstat", "newfstatat",
  "arch_prctl", "set_tid_address", "set_robust_list", "rseq", "prlimit64", "getrandom", "exit_group", "pread64",
  "access", "futex", "rt_sigaction", "rt_sigprocmask", "fadvise64"]
action = "allow"
"""


def test_policies_of_ones_own(place: Path, runs: None, capfd: pytest.CaptureFixture[str]) -> None:
    """What a policy lets through it has to permit; it is proved before anything runs."""
    file = place / "p.toml"
    permitted = 'permit = ["exec", "file-open", "file-change", "rwx", "control", "observe", "resource"]'
    file.write_text(POLICY.format(more=f'{permitted}\nassume = ["closed-procfs"]'), "utf-8")
    assert shell("--policy", str(file), "--", "/bin/echo", "hello", capfd=capfd)[:2] == (0, "hello\n")
    for more, said in (("", "lets through"), ('assume = ["landlock"]', "is not put in force here"),
                       (permitted, "lets through write-other, read-other")):
        file.write_text(POLICY.format(more=more), "utf-8")
        code, out, error = shell("--policy", str(file), "--", "/bin/echo", "hello", capfd=capfd)
        assert (code, out) == (2, "")
        assert "error[BOX617]" in error
        assert said in error


@pytest.mark.parametrize(("arguments", "code"), [
    (["--", "no-such-program"], "BOX616"), (["--policy", "prove", "--", "ls"], "BOX616"),
    (["--policy", "nothing", "--", "ls"], "BOX600"), (["--read", "/", "--", "ls"], "BOX616"),
    (["--read", "/proc/self", "--", "ls"], "BOX616"), (["--read", "/nothing", "--", "ls"], "BOX600"),
    (["--env", "=", "--", "ls"], "BOX616"), (["--env", "WARPPROOF_NO_SUCH", "--", "ls"], "BOX616"),
])
def test_input_errors(arguments: Sequence[str], code: str, capfd: pytest.CaptureFixture[str]) -> None:
    made, out, error = shell(*arguments, capfd=capfd)
    assert (made, out) == (2, "")
    assert error.startswith(f"error[{code}]: ")


MOUNTED = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
place = sys.argv[1]
if libc.unshare(0x00020000) or libc.mount(b"none", b"/", None, 0x44000, None):
    sys.exit(77)
if libc.mount(b"proc", os.fsencode(place + "/inner"), b"proc", 0, None):
    sys.exit(77)
from warpproof.cli import main
sys.exit(main(["sandbox", "run", "--read", place, "--", "/bin/echo", "hello"]))
"""


def test_a_folder_with_a_process_file_system_in_it_is_not_granted(place: Path) -> None:
    (place / "inner").mkdir()
    done = subprocess.run([sys.executable, "-c", MOUNTED, str(place)], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("nothing can be mounted here")
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert "error[BOX616]" in done.stderr
    assert "inner is a process or system file system" in done.stderr


@pytest.mark.parametrize(("refused", "mode", "layer"), [
    (LANDLOCK, "auto", "landlock"), (NAMESPACES, "auto", ""), (NAMESPACES, "strict", "namespaces"),
])
def test_a_machine_without_some_layer(refused: list[list[object]], mode: str, layer: str, runs: None) -> None:
    """Without Landlock no file could be withheld, and nothing runs; without namespaces only what is strict does not."""
    done = subprocess.run([sys.executable, "-c", FILTERED, json.dumps(refused), "sandbox", "run", f"--sandbox={mode}",
                           "--", "/bin/echo", "hello"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == ((125, "") if layer else (0, "hello\n")), done.stderr
    assert not layer or f"error[BOX613]: not run, since the layer '{layer}' is missing" in done.stderr


def test_the_policy_for_commands_is_proved() -> None:
    policy = shipped_policy("command")
    for layout in ("linear", "tree"):
        program = compile_policy(policy, layout)  # type: ignore[arg-type]
        assert {o.status for o in prove(policy, program)} == {"proved"}
    closure = close([program], policy.assume)
    assert set(closure.reachable) == set(policy.permit)
    assert check_certificate(certificate([program], closure)) == []
    without = close([program])
    assert set(without.reachable) - set(policy.permit) == {"read-other", "write-other"}
    assert inspect([program], policy).exit_code == 0
    assert set(NAMES) >= {"command"}
