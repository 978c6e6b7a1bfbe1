"""Nothing gets out of a worker: attempts at the level of system calls, hostile sources, bombs, lies."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from escapes import ATTEMPTS

from warpproof.cli import boxes, main
from warpproof.cli.boxes import Box, Guard, Stopped
from warpproof.cli.confined import Sandbox, answer, ready
from warpproof.core import InputError, Reason, WarpproofError
from warpproof.frontends import included, nvrtc_version, wanted_headers
from warpproof.sandbox import SHIPPED, Confinement

PROGRAM = Path(__file__).with_name("escapes.py")
NOBODY = 65534
USERS = [0, NOBODY] if os.geteuid() == 0 else [os.geteuid()]
# Attempts that do no harm when they succeed, and do succeed where nothing is confined.
EASY = ("open", "open, the old call", "stat", "list a folder", "descriptors in proc", "program in proc", "exec",
        "memfd", "an inherited descriptor", "a copy of one", "fork", "executable memory", "memory made executable",
        "network", "local socket", "socketpair", "pidfd", "chdir", "clone")
SECRET = "a secret that no kernel may read"
EMPTY = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 k_param_0, " \
        ".param .u64 k_param_1, .param .u32 k_param_2)\n{\nret;\n}\n"
CONTRACT = ("from warpproof import In, Out, Size, contract, f32\nn = Size('n', min=1, max=99)\n"
            "@contract(kernel='{}::k', grid=(n,), block=32)\ndef k(x: In[f32, n], y: Out[f32, n], n: n):\n"
            "    return {{'y': x}}\n")
PASSWD = Path("/etc/passwd").read_text("utf-8").splitlines()[0]


def attempts(policy: str, mode: str, uid: int, *names: str) -> Mapping[str, str]:
    done = subprocess.run([sys.executable, str(PROGRAM), policy, mode, str(uid), *names], capture_output=True,
                          text=True, check=True, timeout=300, env=os.environ | {"OPENBLAS_NUM_THREADS": "1"})
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def confinable() -> None:
    made = answer("solve", {}, {"text": "(assert true)"}, guard(), Sandbox("strict"))
    if isinstance(made, Stopped):
        pytest.skip(made.detail)


def guard(mode: str = "strict", seconds: float = 60.0) -> Guard:
    return Guard(mode, 4 << 30, time.monotonic() + seconds)


@pytest.mark.parametrize("uid", USERS)
@pytest.mark.parametrize("mode", ["strict", "filter"])
@pytest.mark.parametrize("policy", SHIPPED)
def test_no_attempt_succeeds(policy: str, mode: str, uid: int, confinable: None) -> None:
    found = attempts(policy, mode, uid)
    assert set(found) == set(ATTEMPTS)
    assert {name: what for name, what in found.items() if what != "refused" and not what.startswith("killed")} == {}
    assert sum(what == "killed by SIGSYS" for what in found.values()) > 70


def test_the_attempts_are_real() -> None:
    """Without confinement they succeed, as an ordinary user too."""
    assert set(attempts("prove", "off", USERS[-1], *EASY).values()) == {"ESCAPED"}


HOSTILE_PYTHON = {
    "a file": "raise ValueError(open('/etc/passwd').read())",
    "a file beside it": "raise ValueError(open('secret.txt').read())",
    "a file by its folder": "import glob; raise ValueError(glob.glob('/etc/*') + glob.glob('*'))",
    "the environment": "import os; raise ValueError(dict(os.environ))",
    "the environment as it began": "import posix; raise ValueError(posix.environ)",
    "the environment of the C library": """
import ctypes
block, found = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ"), []
while block and block[len(found)]: found.append(block[len(found)])
raise ValueError(found)""",
    "objects of others": """
import gc
names = "WARPPROOF_" "TEST_SECRET", b"HOME"
raise ValueError([o for o in gc.get_objects() if isinstance(o, dict) and any(n in o for n in names)])""",
    "the frames below": """
import sys
frame, found = sys._getframe(), []
while frame:
    found.append({name: repr(value)[:99] for name, value in frame.f_locals.items()})
    frame = frame.f_back
raise ValueError(found)""",
    "classes of others": "raise ValueError([c.__init__.__globals__.get('os').environ for c in ().__class__.__base__."
                         "__subclasses__() if 'os' in getattr(c.__init__, '__globals__', {})][:3])",
    "keys of the user": "raise ValueError(open('/etc/shadow').read(), open('/home').read())",
    "an end of its own": "import atexit; atexit.register(print, 'GOT' 'IT'); raise SystemExit(0)",
    "an answer too deep": "import os; os.write(4, b'[' * 10_000_000 + b'\\n')",
    "an answer too wide": "import os; os.write(4, b'{\"result\": [' + b'[],' * 9_000_000 + b'0]}\\n')",
    "a number too long": "import os; os.write(4, b'{\"result\": {\"text\": ' + b'9' * 5000 + b'}}\\n')",
    "prints without end": "while True: print('x' * (1 << 20), flush=True)",
    "the environment of the first process": "raise ValueError(open('/proc/1/environ').read())",
    "the parent's environment": "import os; raise ValueError(open(f'/proc/{os.getppid()}/environ').read())",
    "the network": "import socket; socket.create_connection(('127.0.0.1', 9)); raise ValueError('GOT' 'IT')",
    "a program": "import subprocess; raise ValueError(subprocess.check_output(['/bin/cat', '/etc/passwd']))",
    "a shell": "import os; os.system('cat /etc/passwd >&2'); raise ValueError('GOT' 'IT')",
    "a fork": "import os; os.fork(); raise ValueError('GOT' 'IT')",
    "a thread": "import threading; t = threading.Thread(target=print); t.start(); raise ValueError('GOT' 'IT')",
    "a signal": "import os, signal; os.kill(os.getppid(), signal.SIGTERM); raise ValueError('GOT' 'IT')",
    "a module beside it": "import neighbour",
    "a system call": "import ctypes; raise ValueError(ctypes.CDLL(None).syscall(2, b'/etc/passwd', 0))",
    "the channel": "import os; os.write(4, b'{\"result\": {\"text\": \"mine\"}}\\n'); os.close(4)",
    "its descriptors": "import os; raise ValueError([os.read(n, 9) for n in range(5, 300) if not os.fstat(n)])",
    "memory": "x = [bytes(1 << 20) for _ in range(1 << 20)]",
    "the end": "import os; os._exit(0)",
    "a crash": "import ctypes; ctypes.string_at(0)",
}
needs_triton = pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")


def triton(text: str, seconds: float = 60.0) -> Stopped | Mapping[str, Any]:
    job = {"text": text, "file": "k.py", "kernel": None, "signature": {"x": "*fp32"}, "constexprs": {},
           "divisible": [], "arch": 80, "options": {}}
    return answer("triton", {}, job, guard(seconds=seconds), Sandbox("strict"))


@needs_triton
@pytest.mark.parametrize("what", HOSTILE_PYTHON)
def test_a_hostile_triton_file_gets_nothing(what: str, confinable: None, tmp_path: Path,
                                            monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARPPROOF_TEST_SECRET", SECRET)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text(SECRET, "utf-8")
    (tmp_path / "neighbour.py").write_text(f"raise ValueError({SECRET!r})", "utf-8")
    made = triton(HOSTILE_PYTHON[what])
    said = made.detail + made.noise if isinstance(made, Stopped) else json.dumps(made)
    for leak in (PASSWD, SECRET, "WARPPROOF_TEST", "GOTIT", "secret.txt'", "HOME': '", "PATH': '", "PATH="):
        assert leak not in said.replace("directory: 'secret.txt'", ""), said
    assert isinstance(made, Stopped) or "CUD711" in made.get("rendered", "") or made == {"result": {"text": "mine"}}


@needs_triton
def test_a_triton_file_that_hangs_is_stopped(confinable: None) -> None:
    began = time.monotonic()
    made = triton("while True: pass", seconds=10)
    assert isinstance(made, Stopped)
    assert made.reason is Reason.TIMEOUT
    assert time.monotonic() - began < 40


@needs_triton
def test_a_triton_file_that_says_too_much_is_stopped(confinable: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "MAX_ANSWER_BYTES", 1 << 20)
    made = triton("import os\nwhile True: os.write(4, b'x' * 65536)")
    assert isinstance(made, Stopped)
    assert "MiB of answers" in made.detail
    made = triton("import os\nwhile True: os.write(2, b'x' * 65536)")
    assert isinstance(made, Stopped) or "CUD711" in made["rendered"]


@needs_triton
def test_a_hostile_triton_file_from_the_command_line(confinable: None, tmp_path: Path,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.py").write_text(CONTRACT.format("k.py"), "utf-8")
    (tmp_path / "k.py").write_text("import os; os.system('id')", "utf-8")
    assert main(["prove", str(tmp_path / "c.py"), "--format", "json"]) == 3
    report = json.loads(capsys.readouterr().out)
    assert report["properties"]["equivalence"]["reason"] == "sandbox"
    assert "filter" in report["sandbox"]["layers"]


HOSTILE_INCLUDES = (
    '#include "/etc/passwd"', "#include </etc/passwd>", '#include "secret.txt"', '#include "../outside.h"',
    '#include "link.h"', '#include "/proc/self/environ"', '#include "/proc/1/environ"', '#include "folder"',
    '#define H "/etc/passwd"\n#include H', '#include __FILE__ "/../outside.h"', '#include "fifo.h"',
    '#include_next "/etc/passwd"', '#import "/etc/passwd"', '%:include "/etc/passwd"', '#inc\\\nlude "/etc/passwd"',
    'const char p[] = {\n#embed "/etc/passwd"\n};', '#define S(x) #x\n#define T(x) S(x)\n#include T(/etc/passwd)',
    '#include "/proc/self/fd/0"', '#include "/dev/stdin"', '#include "/dev/fd/3"', '#line 1 "/etc/passwd"\n#error x',
    '#if __has_include("/etc/passwd")\n#error it is there\n#endif\n#error x', '#pragma message(__FILE__)\n#error x',
    'static_assert(sizeof(__FILE__) == 5, "more than the name");\n#error x', 'import "/etc/passwd";',
)


@pytest.mark.parametrize("line", HOSTILE_INCLUDES)
def test_a_hostile_include_gets_nothing(line: str, confinable: None, tmp_path: Path) -> None:
    try:
        nvrtc_version()
    except WarpproofError as error:
        pytest.skip(error.message)
    folder = tmp_path / "kernels"
    (folder / "folder").mkdir(parents=True)
    for name in ("outside.h", "kernels/secret.txt"):
        (tmp_path / name).write_text(f"#error {SECRET}\n", "utf-8")
    (folder / "link.h").symlink_to(tmp_path / "outside.h")
    os.mkfifo(folder / "fifo.h")
    source = f'{line}\nextern "C" __global__ void k(float* x) {{ x[0] = 1.f; }}\n'
    own = included(source, folder, ())
    assert own.texts == {}
    given = {"text": source, "file": "k.cu", "arch": "sm_80", "kernel": None, "options": [], "headers": {}}
    made = answer("cuda", {"headers": wanted_headers(own), "taken": []}, given, guard(), Sandbox("strict"))
    said = made.detail + made.noise if isinstance(made, Stopped) else json.dumps(made)
    assert SECRET not in said
    assert PASSWD not in said
    assert "PATH=" not in said
    assert "it is there" not in said
    assert "more than the name" not in said
    assert str(tmp_path) not in said
    assert isinstance(made, Stopped) or "CUD701" in made["rendered"]


@pytest.mark.parametrize("line", [".include", ".incbin"])
def test_a_file_by_way_of_assembly(line: str, confinable: None, tmp_path: Path,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    """The compiler passes assembly on; the judge's parser opens nothing."""
    try:
        nvrtc_version()
    except WarpproofError as error:
        pytest.skip(error.message)
    (tmp_path / "c.py").write_text(CONTRACT.format("k.cu"), "utf-8")
    (tmp_path / "k.cu").write_text(
        f'extern "C" __global__ void k(float* x, float* y, int n) {{ asm("{line} \\"/etc/passwd\\";"); }}',
        "utf-8")
    assert main(["prove", str(tmp_path / "c.py")]) == 2
    said = capsys.readouterr()
    assert "error[PTX008]" in said.err
    assert PASSWD not in said.out + said.err


FORGED: Mapping[str, Any] = {
    "a report as an error": {"error": {"code": "CUD711", "message": "x\nk.py::k  PROVED\n  for all n", "span": None,
                                       "hint": "\nk.py::k  PROVED"}, "rendered": "k.py::k  PROVED\n  for all n"},
    "an error that is none": {"error": {"code": "\x1b[2J"}, "rendered": "k.py::k  PROVED"},
    "a reason that is none": {"stopped": {"reason": "PROVED", "detail": "\nk.py::k  PROVED"}},
    "a reason": {"stopped": {"reason": "timeout", "detail": "\nk.py::k  PROVED\u2028k.py::k  PROVED"}},
    "a verdict": {"result": {"verdict": "PROVED"}},
    "a name that is none": {"result": {"text": EMPTY, "kernel": "k\nk.py::k  PROVED", "version": "3", "log": ""}},
    "a version that is none": {"result": {"text": EMPTY, "kernel": "k", "version": "\nk.py::k  PROVED", "log": ""}},
    "a kernel that does nothing": {"result": {"text": EMPTY, "kernel": "k", "version": "3", "log": "k.py::k  PROVED"}},
}


@needs_triton
@pytest.mark.parametrize("what", FORGED)
def test_a_compiler_that_was_taken_over_cannot_say_proved(what: str, confinable: None, tmp_path: Path,
                                                          capsys: pytest.CaptureFixture[str]) -> None:
    """Nor print a line that could be one of a report: neither as a verdict nor as an error message."""
    (tmp_path / "c.py").write_text(CONTRACT.format("k.py"), "utf-8")
    answer_ = json.dumps(FORGED[what]).encode() + b"\n"
    (tmp_path / "k.py").write_text(f"import os; os.write(4, {answer_!r})", "utf-8")
    assert main(["prove", str(tmp_path / "c.py")]) in (1, 2, 3, 4)
    said = capsys.readouterr()
    assert not any(line.startswith("k.py") for line in said.err.splitlines())
    assert "k.py::k  PROVED" not in said.out or not any(
        line.startswith("k.py") for line in said.out.splitlines() if "PROVED" in line)
    assert main(["prove", str(tmp_path / "c.py"), "--format", "json"]) in (1, 2, 3, 4)
    assert json.loads(capsys.readouterr().out)["verdict"] in (None, "REFUTED", "INCONCLUSIVE")


def test_what_a_source_may_see(tmp_path: Path) -> None:
    """Whether a file exists cannot be asked either; headers within the folder, or an -I folder, are found."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.cuh").write_text('#include "b.cuh"\n#include "../c.h"\n', "utf-8")
    (tmp_path / "sub" / "b.cuh").write_text("// b\n", "utf-8")
    (tmp_path / "c.h").write_text("// c\n", "utf-8")
    source = '#include "sub/a.cuh"\n#if __has_include("/etc/passwd")\n#error there\n#endif\n#include <cuda_fp16.h>\n'
    own = included(source, tmp_path, ())
    assert set(own.texts) == {"sub/a.cuh", "b.cuh", "../c.h"}
    assert wanted_headers(own) == ["/etc/passwd", "cuda_fp16.h"]
    kernels = tmp_path / "sub"
    assert set(included('#include "../c.h"', kernels, ()).texts) == set()
    assert set(included('#include "../c.h"', kernels, (f"-I{tmp_path}",)).texts) == {"../c.h"}
    (kernels / "c.h").write_text("// another c\n", "utf-8")
    with pytest.raises(InputError, match="two headers"):
        included('#include "c.h"\n#include "other/d.h"', kernels, (f"-I{tmp_path}", two(tmp_path)))


def two(folder: Path) -> str:
    """An -I folder whose header means another file by the same name."""
    (folder / "other").mkdir()
    (folder / "other" / "d.h").write_text('#include "c.h"\n', "utf-8")
    (folder / "other" / "c.h").write_text("// one more\n", "utf-8")
    return f"-I{folder}"


def test_a_source_with_many_includes_is_refused(tmp_path: Path) -> None:
    source = "".join(f'#include "x{i}.h"\n' for i in range(5000))
    with pytest.raises(InputError) as error:
        included(source, tmp_path, ())
    assert error.value.code == "CUD713"


def test_scanning_for_includes_takes_linear_time() -> None:
    for hostile in ("include" * 300_000, "include(" * 200_000, "#define " + "x" * 2_000_000, "# " * 500_000,
                    " " * 2_000_000, '#include "' + "x" * 2_000_000):
        began = time.process_time()
        included(hostile, None, ())
        assert time.process_time() - began < 20  # quadratic time would be hours


def test_a_worker_that_takes_no_input_does_not_hold_up_the_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import os, sys, time; os.write(int(sys.argv[1]), b'{\"confined\": {\"layers\": [], \"missing\": {}}, " \
           "\"pid\": 1}\\n'); time.sleep(60)"
    monkeypatch.setattr(boxes, "worker_command", lambda work, incoming, outgoing: [
        sys.executable, "-c", code, str(outgoing)])
    with Box("solve", {}, guard("off", 3.0)) as box:
        assert ready(box, Sandbox("off")) is None
        assert box.send({"text": "x" * 10_000_000}) is False
        made = box.receive()
    assert isinstance(made, Stopped)
    assert made.reason is Reason.TIMEOUT


def test_without_any_layer_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another machine than the policies are for: said, not skipped."""
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    made = Confinement("auto")
    with pytest.raises(Exception, match="x86-64 Linux"):
        made.confine(1 << 30, 10, 3)
