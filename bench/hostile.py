"""Hostile inputs for `fuzz.py`: PTX, contracts, launch files, saved counterexamples and command lines.

Every generator takes a `random.Random` and gives a `Case`: files, and a command line that reads them. What a case does
is settled by its kind and seed, so a finding can be made again.
"""

from __future__ import annotations

import base64
import json
import re
import struct
import tarfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
from mutation import mutate

from warpproof.ptx import parse

ROOT: Final = Path(__file__).parents[1]
KERNELS: Final = ROOT / "tests" / "kernels" / "acceptance"
LIMITS: Final = ("--timeout", "5", "--memory", "2")
WORDS: Final = (
    "{", "}", "(", ")", "[", "]", ";", ",", ":", "|", "@", "!", "_", "<", ">", "=", "%", "-", "+", "~", "?", "..", "::",
    ".reg", ".b32", ".f32", ".pred", ".param", ".entry", ".func", ".visible", ".extern", ".align", ".shared", ".local",
    ".const", ".global", ".v4", ".u64", "0", "-1", "4294967295", "18446744073709551616", "0f3F800000", "0d7FF0000000000000",
    "0f7FC00000", "1e400", "0x", "%r1", "%r<9>", "%r<999999999999>", "%tid.x", "%ctaid.x", "%nctaid.x", "%clock64", "%p1",
    "%rd1", "bra", "bra.uni", "brx.idx", "call", "ret", "exit", "trap", "bar.sync", "bar.sync 0, 7;", "shfl.sync.bfly.b32",
    "ld.global.f32", "st.global.f32", "ld.shared.u8", "st.local.b64", "atom.global.add.f32", "mma.sync", "cp.async.ca.shared",
    "add.s32", "mul.lo.s64", "mad.wide.u32", "div.s32", "rem.u32", "shl.b32", "cvt.rzi.s32.f32", "mov.b64", "selp.f32",
    "setp.lt.s32", "@%p1 bra L;", "L:", ".branchtargets", ".callprototype", ".loc 1 2 3", ".file 1 \"x\"", ".section",
    ".pragma \"nounroll\";", ".maxntid 0", ".maxntid 99999999", ".version 99.9", ".target sm_1", ".address_size 32",
    "generic(x)", "999999999999999999999", "\"", "/*", "*/", "//", "\n", "\0", "é", "\ufeff", "\r", "\x1b[31m",
)
NUMBERS: Final = (
    "0", "1", "-1", "2", "31", "32", "33", "255", "65535", "65536", "2147483647", "2147483648", "-2147483648",
    "4294967295", "4294967296", "9223372036854775807", "18446744073709551615", "0x7FFFFFFF", "0f7F800000", "0fFF800000",
    "0f00000001", "0f80000000", "1" * 400,
)


@dataclass(frozen=True, slots=True)
class Case:
    """Files by name and the arguments of `warpproof`; `target` is the file that minimising may shrink.

    `parser` cases are only parsed and resolved; `whole` ones run as a command, never in a fork. `dies` says that
    the case's own Python ends the prover's process, so that exit code 4 is right.
    """

    kind: str
    files: Mapping[str, bytes]
    argv: tuple[str, ...] = ()
    target: str = ""
    parser: bool = False
    dies: bool = False
    whole: bool = False
    note: str = field(default="", compare=False)


@cache
def corpus() -> tuple[str, ...]:
    """PTX of many compilers and the kernels of the test-suite."""
    texts = []
    for archive in sorted((ROOT / "tests" / "corpus").glob("*.tar.xz")):
        with tarfile.open(archive) as files:
            for member in files:
                data = files.extractfile(member)
                if data is not None and member.name.endswith(".ptx") and member.size < 200_000:
                    texts.append(data.read().decode("utf-8", "replace"))
    for folder in ("kernels", "machine/kernels", "soundness/kernels"):
        texts += [p.read_text("utf-8") for p in sorted((ROOT / "tests" / folder).rglob("*.ptx"))]
    return tuple(texts)


@cache
def problems() -> tuple[Mapping[str, bytes], ...]:
    """Whole problems: kernel.ptx, reference.py and launch.json."""
    names = {"kernel.ptx": "kernel.ptx", "reference.py": "reference.py", "launch.json": "case.json"}
    folders = sorted(p.parent for p in KERNELS.glob("*/case.json"))
    return tuple({new: (f / old).read_bytes() for new, old in names.items()} for f in folders)


# ---------------------------------------------------------------------- PTX
def mutated(text: str, rng: Random, changes: int) -> str:
    """The text with some words, numbers and lines changed, doubled, moved or taken out."""
    words = re.findall(r"\s+|[\w.%$:]+|.", text, re.DOTALL)
    for _ in range(changes):
        if not words:
            break
        at = rng.randrange(len(words))
        match rng.randrange(8):
            case 0:
                words[at] = rng.choice(WORDS)
            case 1:
                del words[at : at + rng.choice((1, 1, 2, 9, 40))]
            case 2:
                words.insert(at, " " + rng.choice(WORDS) + " ")
            case 3:
                found = [i for i, w in enumerate(words) if w[:1].isdigit()]
                words[rng.choice(found) if found else at] = rng.choice(NUMBERS)
            case 4:
                other = rng.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case 5:
                words[at:at] = words[at : at + rng.choice((3, 12, 60))]
            case 6:
                same = [i for i, w in enumerate(words) if w[:1] == "%"]
                if len(same) > 1:
                    words[rng.choice(same)] = words[rng.choice(same)]
            case _:
                modifiers = words[at].split(".")
                rng.shuffle(modifiers)
                words[at] = ".".join(modifiers)
    return "".join(words)


def shape(rng: Random) -> str:
    """A text that is hostile by its size or its nesting."""
    n = 10 ** rng.randrange(2, 6)
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    body = rng.choice((
        ".visible .entry k() " + "{" * n + "}" * rng.choice((n, 0)),
        ".global .b32 x = " + "(" * n + "1" + ")" * n + ";",
        ".global .b32 x = " + "-" * n + "1;",
        ".global .b32 x = " + "1+" * n + "1;",
        ".global .b32 x = " + "1?" * n + "1" + ":1" * n + ";",
        f".global .align {n} .b8 x[{n}{n}] = {{{'{' * n}0{'}' * n}}};",
        f".global .b8 x[{n}][{n}][{n}][{n}][{n}];",
        f".visible .entry k() {{ .reg .b32 %r<{n}{n}>; ret; }}",
        ".visible .entry k() {" + "".join(f".reg .b32 %r{i}; " for i in range(min(n, 20000))) + "}",
        ".visible .entry k() {" + "".join(f"L{i}: bra L{i + 1};\n" for i in range(min(n, 20000))) + f"L{min(n, 20000)}: ret;}}",
        ".visible .entry k() { .reg .pred %p<3>;\n" + "".join(f"L{i}: @%p1 bra L{i // 2};\n" for i in range(min(n, 9000))) + "ret;}",
        ".visible .entry k(" + ", ".join(f".param .u64 p{i}" for i in range(min(n, 9000))) + ") { ret; }",
        ".visible .entry k() { mov.b32 %r1, {" + "%r1, " * n + "%r1}; ret; }",
        ".visible .entry k() { add" + ".s32" * n + " %r1, %r1, %r1; ret; }",
        ".visible .entry k() { " + "x" * n + " %r1; ret; }",
        ".file 1 \"" + "a" * n + "\"\n.visible .entry k() { .loc 1 999999999999 9; ret; }",
        "//" * n, "/*" * n, "\n" * n, "\0" * n, "\"" * n, ".shared " * n, "@" * n, "[" * n + "]" * n, "." * n, "9" * n,
        ".func f() { call f; ret; }\n.visible .entry k() { call f; ret; }",
        "".join(f".func f{i}() {{ call f{i + 1}; call f{i + 1}; ret; }}\n" for i in range(40)) + ".func f40() { ret; }\n"
        ".visible .entry k() { call f0; ret; }",
    ))
    return head + body


def ptx_text(rng: Random) -> str:
    """Some PTX: mutated, spliced, word salad, random characters or a hostile shape."""
    pick = rng.random()
    if pick < 0.5:
        return mutated(rng.choice(corpus()), rng, rng.choice((1, 1, 2, 5, 30)))
    if pick < 0.65:
        a, b = rng.choice(corpus()), rng.choice(corpus())
        return a[: rng.randrange(len(a))] + b[rng.randrange(len(b)) :]
    if pick < 0.8:
        return shape(rng)
    if pick < 0.9:
        return (".version 9.0\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
                + " ".join(rng.choice(WORDS) for _ in range(rng.choice((5, 40, 400)))))
    text = list(rng.choice(corpus())[: rng.choice((300, 5000))])
    for _ in range(rng.choice((1, 5, 100))):
        text[rng.randrange(len(text))] = chr(rng.choice((rng.randrange(128), rng.randrange(0xD800), 0, 10)))
    return "".join(text)


def parser_case(rng: Random) -> Case:
    """A text for the parser and for name resolution."""
    return Case("parser", {"kernel.ptx": ptx_text(rng).encode("utf-8", "replace")}, target="kernel.ptx", parser=True)


def wrong(text: str, rng: Random) -> str:
    """The kernel after some changes that leave it grammatical."""
    numbers = np.random.default_rng(rng.randrange(1 << 32))
    for _ in range(rng.choice((1, 2, 4))):
        module = parse(text, "kernel.ptx")
        text = mutate(module, module.entries()[0].name, numbers).text
    return text


def kernel_case(rng: Random) -> Case:
    """A hostile kernel in a sound problem; now and then a few bytes are no UTF-8."""
    files = dict(rng.choice(problems()))
    text, pick = files["kernel.ptx"].decode(), rng.random()
    if pick < 0.6:
        text = wrong(text, rng)
    else:
        text = mutated(text, rng, rng.choice((1, 1, 2, 3, 8))) if pick < 0.9 else ptx_text(rng)
    data = text.encode("utf-8", "replace")
    if rng.random() < 0.05:
        at = rng.randrange(len(data) + 1)
        data = data[:at] + bytes(rng.randrange(256) for _ in range(9)) + data[at:]
    return Case("kernel", {**files, "kernel.ptx": data}, split(rng), "kernel.ptx")


def split(rng: Random) -> tuple[str, ...]:
    """`prove` or `run` of the three files."""
    output = ("--format", "json") if rng.random() < 0.3 else ()
    return (rng.choice(("prove", "prove", "run")), "--spec", "reference.py", "--kernel", "kernel.ptx", "--launch",
            "launch.json", *LIMITS, *output)


# ---------------------------------------------------------------------- launch files
def hostile_value(rng: Random) -> Any:
    """A JSON value that does not belong where it is put."""
    deep: Any = "n"
    for _ in range(rng.choice((3, 300))):
        deep = [deep]
    return rng.choice((
        None, True, -1, 0, 1, 10**9, 2**63, 10**400, 1e308, -0.5, float("nan"), float("inf"), "", "n", "n*n", "0", "-1", "1/0",
        "n/0", "n//0", "n % 0", "9**9**9", "2**100000", "n**n", "(" * 300 + "n" + ")" * 300, "n+" * 3000 + "n", "n >= ", "n == n",
        "x[i] >= 0", "sum(x[i] for i in range(10**12)) > 0", "__import__('os').system('true')", "n if n else n", "lambda: 1",
        "1_000", "n\0", "\ud800", "é", "a" * 100_000, [], {}, [None], [[]], {"n": []}, ["n", "n", "n", "n"], deep, "f32", "ptr_in",
        "i64", "min(n, 4)", "max(n)", "n < n", "n >= 2**70", "f64[3]", "0x10", "~n", "n and", "not n", "1 < n < 2",
    ))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, child in inner for p in places(child, (*path, key)))]


def changed(value: Any, rng: Random, changes: int) -> Any:
    """The JSON value with some values replaced, keys renamed, doubled or taken out."""
    out = json.loads(json.dumps(value))
    for _ in range(changes):
        path = rng.choice(places(out))
        if not path:
            if rng.random() < 0.05:
                return hostile_value(rng)
            continue
        parent = out
        for key in path[:-1]:
            parent = parent[key]
        match rng.randrange(4):
            case 0 if isinstance(parent, dict):
                parent[rng.choice(("x", "", "kind", "dtype", "shape", "strides", "range", "init", "numerics", "launch",
                                   "sizes", "scratch", "\ud800"))] = hostile_value(rng)
            case 1:
                del parent[path[-1]]
            case 2 if isinstance(parent, list):
                parent.append(parent[path[-1]])
            case _:
                parent[path[-1]] = hostile_value(rng)
    return out


def launch_case(rng: Random) -> Case:
    """A hostile launch file beside a sound kernel and reference."""
    files = dict(rng.choice(problems()))
    if rng.random() < 0.85:
        text = json.dumps(changed(json.loads(files["launch.json"]), rng, rng.choice((1, 1, 2, 5))), ensure_ascii=rng.random() < 0.5)
    else:
        text = mutated(files["launch.json"].decode(), rng, rng.choice((1, 3)))
        if rng.random() < 0.2:
            n = 10 ** rng.randrange(2, 7)
            text = rng.choice(("[" * n, '{"kernel":' * n, '{"sizes": {"n": [' + "9" * n + "]}}", "[" + "0," * n + "0]"))
    return Case("launch", {**files, "launch.json": text.encode("utf-8", "surrogatepass")}, split(rng), "launch.json")


# ---------------------------------------------------------------------- contracts
HEAD: Final = """import numpy as np
from warpproof import In, InOut, Out, Scalar, Size, contract, f16, f32, i32
n = Size("n", min=1, max=2**20)
"""
SOUND: Final = HEAD + """
@contract(kernel="kernel.ptx", grid=((n + 255) // 256,), block=256)
def saxpy(x: In[f32, n], y: Out[f32, n], n: n):
    return {"y": x * 2 + 1}
"""
BODIES: Final = (
    "while True: pass", "return None", "return {}", "return {'z': x}", "return {'y': 1}", "return {'y': [1, 2]}", "raise ValueError",
    "raise SystemExit(0)", "raise KeyboardInterrupt", "raise MemoryError", "return saxpy(x=x)", "return {'y': x, 'x': x}",
    "return {'y': x[:, None]}", "return {'y': x[n]}", "return {'y': x[-1]}", "return {'y': x[::0]}", "return {'y': x[::-1]}",
    "return {'y': x.reshape(n * n)}", "return {'y': np.linalg.inv(x)}", "return {'y': x.astype('U9')}", "return {'y': np.fft.fft(x)}",
    "return {'y': x / 0}", "return {'y': x / (x - x)}", "return {'y': np.log(-x * x)}", "return {'y': x ** x}", "return {'y': x ** 10**9}",
    "return {'y': np.zeros(10**12)}", "return {'y': np.zeros((n,) * 99)}", "return {'y': np.broadcast_to(x, (10**9, 10**9))}",
    "if x[0] > 0: return {'y': x}", "if n > 5: return {'y': x}\n    return {'y': -x}", "for v in x: pass\n    return {'y': v + x}",
    "for i in range(n): x = x + x\n    return {'y': x}", "for i in range(10**9): pass\n    return {'y': x}", "return {'y': x @ x}",
    "return {'y': sum(x)}", "return {'y': float(x[0]) * x}", "return {'y': x.tolist()}", "import os; os._exit(0)", "return x",
    "print('noise' * 100000); return {'y': x * 2 + 1}", "x[0] = 1\n    return {'y': x}", "x += 1\n    return {'y': x}",
    "return {'y': np.where(x > 0, x, np.nan)}", "return {'y': x * np.inf}", "return {'y': np.random.rand(n)}", "yield x",
    "return {'y': (lambda f: f(f))(lambda f: f(f))}", "return {'y': eval('x')}", "return {1: x}", "return {'y': x, 'y2': x}",
    "return {'y': x.__class__()}", "del np\n    return {'y': x}", "global n; n = 3\n    return {'y': x}", "return {'y': np.array(['a'])}",
    "y = x\n    for k in range(300): y = np.tanh(y) * y + x\n    return {'y': y}", "return {'y': np.sort(x)}", "return {'y': x[x > 0]}",
    "return {'y': np.maximum.accumulate(x)}", "return {'y': x.sum() * np.ones(n)}", "return {'y': np.einsum('i,j->', x, x) * x}",
)
DECLARATIONS: Final = (
    'n = Size("n", min=5, max=1)', 'n = Size("n", min="a")', 'n = Size("", min=1)', 'n = Size(3)', 'n = Size("n", min=2**70)', 'm = n * n * n ** 3',
    'n = Size("n", min=1, examples=(0,))', 'n = Size("n", min=1, examples=(10**12,))', 'n = Size("n", examples="abc")', "n = 5", "n = None",
    'n = Size("n", min=-5, max=-1)', 'Size("n", min=1) if n else 0', "x = In[f32]", "x = In[f32, n, n, n, n, n, n, n]", "In[n, f32]", "while 1: pass",
    "import sys; sys.exit(3)", "import os; os._exit(7)", "raise KeyboardInterrupt", "1/0", "x = [0] * 10**10", "x = 'a' * 10**10", "def f(): f()\nf()",
    "import ctypes; ctypes.string_at(0)", "import sys; sys.setrecursionlimit(10**6)\ndef f(): f()\nf()", "import signal; signal.raise_signal(9)",
    "import sys; sys.stdout.write('x' * 10**6)", "import os; os.close(1); os.close(2)", "import threading; threading.Thread(target=lambda: [0 for _ in iter(int, 1)]).start()",
    "import os; os.fork()", "import subprocess; subprocess.Popen(['sleep', '60'])", "syntax error here", "\tx", "print(chr(0xd800))",
    "from warpproof.core import *", "contract = None", "import warnings; warnings.warn('x')", "class A(Size): pass\nn = A('n')", "raise Exception('\\ud800')",
)
CALLS: Final = (
    'kernel=""', 'kernel="none.ptx"', 'kernel="kernel.ptx::nobody"', 'kernel=None', 'kernel="."', 'kernel="/dev/null"', 'kernel="kernel.ptx\\0"', 'kernel=b"k"',
    "grid=()", "grid=(0,)", "grid=(-1,)", "grid=(n, n, n, n)", "grid=n", "grid=(n / 2,)", "grid=(10**30,)", 'grid="n"', "grid=(n // 0,)", "grid=(1.5,)",
    "block=0", "block=-1", "block=10**9", "block=(1024, 1024, 1024)", "block=n", "block=None", "block=33", "block=(7, 5, 3)", 'block="x"', "nothing=3",
    'where=["n > n"]', 'where=["n ** n > 0"]', 'where="n > 0"', "where=[None]", 'where=["n < 0"]', "dynamic_shared=-4",
    "dynamic_shared=2**40", 'dynamic_shared="n*n"',
)
DEADLY: Final = ("_exit", "string_at", "raise_signal", "os.close", "setrecursionlimit", "fork")


def contract_case(rng: Random) -> Case:
    """A hostile contract on a sound kernel."""
    text = SOUND
    match rng.randrange(4):
        case 0:
            text = text.replace('return {"y": x * 2 + 1}', rng.choice(BODIES))
        case 1:
            text = HEAD + rng.choice(DECLARATIONS) + text[len(HEAD) :]
        case 2:
            call = rng.choice(CALLS)
            key = call.split("=")[0]
            text = re.sub(rf"\b{key}=(\(.*?\),(?= block)|[^,()]+)", call + ("," if key == "grid" else ""), text, count=1)
            text = text if call in text else text.replace("block=256", f"block=256, {call}")
        case _:
            text = mutated(text, rng, rng.choice((1, 2, 6)))
    files = {"kernel.ptx": SCALE.encode(), "contract.py": text.encode("utf-8", "replace")}
    argv = (rng.choice(("prove", "prove", "run")), "contract.py", *LIMITS)
    return Case("contract", files, argv, "contract.py", dies=any(word in text for word in DEADLY))


SCALE: Final = """.version 8.0
.target sm_80
.address_size 64
.visible .entry scale(.param .u64 a, .param .u64 b, .param .u32 c) {
  .reg .pred %p<2>; .reg .f32 %f<4>; .reg .b32 %r<6>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r2, [c];
  mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mov.u32 %r5, %tid.x;
  mad.lo.s32 %r1, %r3, %r4, %r5;
  setp.ge.s32 %p1, %r1, %r2;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd3, %rd1; cvta.to.global.u64 %rd4, %rd2;
  mul.wide.s32 %rd5, %r1, 4; add.s64 %rd6, %rd3, %rd5; add.s64 %rd7, %rd4, %rd5;
  ld.global.f32 %f1, [%rd6];
  fma.rn.f32 %f2, %f1, 0f40000000, 0f3F800000;
  st.global.f32 [%rd7], %f2;
DONE: ret;
}
"""


# ---------------------------------------------------------------------- replay and command lines
def bundle() -> dict[str, Any]:
    """What `prove --save` writes for a wrong kernel."""
    data = base64.b64encode(b"\0\0\x80\x3f" * 3).decode()
    return {"schema": 1, "job": {"contract": "contract.py", "spec": None, "kernel": "kernel.ptx", "launch": None, "kernel_name": None,
                                 "arch": None, "options": []},
            "report": {"schema": 1, "kernel": "k", "verdict": "REFUTED", "properties": {}, "assumptions": [], "certificate": None,
                       "counterexample": {"property": "equivalence", "summary": "s", "schedule": "min-pc", "sizes": {"n": 3}, "grid": [1, 1, 1],
                                          "block": [256, 1, 1], "scalars": {}, "inputs": {"x": {"dtype": "f32", "shape": [3], "data": data}}}}}


def replay_case(rng: Random) -> Case:
    """A changed counterexample."""
    value = changed(bundle(), rng, rng.choice((0, 1, 1, 2, 4)))
    if rng.random() < 0.3 and isinstance(value, dict):
        value["report"] = {"counterexample": {"sparse": True, "sizes": {"n": rng.choice((3, 2**20, 10**30, -1))},
                                              "ctas": rng.choice(([[0, 0, 0]], [[10**9, 0, 0]], [], [[0]], [[-1, 0, 0]], [["a", 0, 0]]))}}
    files = {"kernel.ptx": SCALE.encode(), "contract.py": SOUND.encode(), "saved.json": json.dumps(value).encode()}
    return Case("replay", files, ("replay", "saved.json", *LIMITS), "saved.json")


ARGUMENTS: Final = (
    "prove", "run", "replay", "explain", "doctor", "--help", "--version", "-h", "contract.py", "contract.py::saxpy", "contract.py::nobody", "::", "contract.py::",
    "--kernel", "kernel.ptx", "kernel.ptx::scale", "kernel.ptx::", "--spec", "contract.py", "--launch", "saved.json", "--kernel-name", "scale", "--arch", "sm_80",
    "sm_99999", "--option", "-DN=4", "--option=-I/", "--option=@x", "--format", "json", "text", "xml", "--timeout", "0", "-1", "nan", "inf", "1e-9", "8", "--memory",
    "1e-9", "0.05", "2", "1e300", "--seed", "-5", "999999999999999999999999", "--sample", "1", "99999", "--save", ".", "/dev/full", "/nowhere/x", "out.json",
    "", " ", "\udcff", "é", "-", "--", "a" * 5000, "/dev/null", ".", "/", "~", "$HOME", "%s", "\n", "CUD701", "PTX001", "timeout", "/dev/zero", "nothing.py", "nothing.ptx",
    "sandbox", "verify", "compile", "inspect", "--no-live", "--policy", "--assume", "strict", "1",
    "--seed=1", "--timeout=8", "--memory=2", "--no-such", "9" * 5000, "empty.cu", "folder.py",
)


def arguments_case(rng: Random) -> Case:
    """A random command line, often with a sensible beginning."""
    start: tuple[str, ...] = rng.choice(((), ("prove", "contract.py"), ("run", "contract.py"), ("replay", "saved.json"), ("explain",), ("sandbox",),
                                              ("sandbox", "verify", "--no-live"), ("litmus", "contract.py")))
    chosen = tuple(rng.choice(ARGUMENTS) for _ in range(rng.choice((0, 1, 2, 3, 5))))
    files = {"kernel.ptx": SCALE.encode(), "contract.py": SOUND.encode(), "saved.json": json.dumps(bundle()).encode(), "empty.cu": b""}
    limits = LIMITS if start and start[0] not in ("explain", "sandbox", "litmus") else ()
    return Case("arguments", files, (*start, *limits, *(a for a in chosen if "\0" not in a)), whole=True)


def litmus_case(rng: Random) -> Case:
    """A hostile litmus test."""
    files = sorted((ROOT / "tests" / "sync" / "litmus").glob("*.litmus"))
    text = mutated(rng.choice(files).read_text("utf-8"), rng, rng.choice((1, 1, 2, 5, 30)))
    argv = ("litmus", "case.litmus", "--timeout", LIMITS[1], *(("--repair",) if rng.random() < 0.2 else ()))
    return Case("litmus", {"case.litmus": text.encode("utf-8", "replace")}, argv, "case.litmus", whole=True)


def filter_case(rng: Random) -> Case:
    """A hostile seccomp filter: instructions, bytes, or a changed policy."""
    pick = rng.random()
    if pick < 0.4:
        codes = (0x00, 0x06, 0x07, 0x15, 0x16, 0x20, 0x25, 0x35, 0x44, 0x45, 0x54, 0x60, 0x80, 0x87, 0x94, 0x05)
        numbers = (0, 1, 4, 16, 60, 63, 64, 231, 0x7FFF0000, 0x80000000, 0xC000003E, 0xFFFFFFFF)
        count = rng.choice((1, 5, 60, 4096))
        data = b"".join(struct.pack("<HBBI", rng.choice(codes), rng.randrange(6), rng.randrange(6), rng.choice(numbers))
                        for _ in range(count)) + struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
    elif pick < 0.5:
        data = rng.randbytes(8 * rng.choice((0, 1, 8, 100)) + rng.choice((0, 0, 3)))
    else:
        policies = sorted((ROOT / "src" / "warpproof" / "sandbox" / "policies").glob("*.toml"))
        data = mutated(rng.choice(policies).read_text("utf-8"), rng, rng.choice((1, 2, 9))).encode("utf-8", "replace")
        return Case("filter", {"case.toml": data}, ("sandbox", "verify", "case.toml", "--no-live"), "case.toml", whole=True)
    return Case("filter", {"case.bpf": data}, ("sandbox", "verify", "case.bpf", "--no-live"), "case.bpf", whole=True)


KINDS: Final[Mapping[str, Callable[[Random], Case]]] = {
    "parser": parser_case, "kernel": kernel_case, "launch": launch_case, "contract": contract_case, "replay": replay_case,
    "arguments": arguments_case, "litmus": litmus_case, "filter": filter_case,
}


def make(kind: str, seed: int) -> Case:
    """The case of this kind and seed."""
    return KINDS[kind](Random(f"{kind} {seed}"))
