"""`prove`, `run` and `replay` from files to exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from warpproof.cli.worker import outcome
from warpproof.report import from_dict

GUARD = "    setp.ge.s32 %p1, %r4, %r1;"


def test_proved(case, cli) -> None:
    code, out, err = cli("prove", *case.arguments(), "--format", "json")
    report = json.loads(out)
    assert (code, err) == (0, "")
    assert report["verdict"] == "PROVED"
    assert report["kernel"] == "k.ptx::twice"
    assert {p["verdict"] for p in report["properties"].values() if p} == {"PROVED"}
    assert report["properties"]["numerics"] is None
    assert report["counterexample"] is None
    assert report["peak_mb"] > 10
    assert from_dict(report).sizes == "for all 1 <= n <= 2**30"


def test_proved_as_text(case, cli) -> None:
    code, out, err = cli("prove", *case.arguments())
    assert (code, err) == (0, "")
    assert out.startswith("k.ptx::twice  PROVED\n")
    assert "\x1b" not in out


def test_refuted_saved_and_replayed(case, cli, tmp_path: Path) -> None:
    original = case.ptx
    case.ptx = case.ptx.replace(GUARD, GUARD.replace(".ge.", ".gt."))
    saved = tmp_path / "cex.json"
    code, out, err = cli("prove", *case.arguments(), "--save", str(saved))
    assert (code, err) == (1, "")
    assert "memory       REFUTED" in out
    assert "counterexample to memory" in out
    code, out, err = cli("replay", str(saved), "--format", "json")
    assert (code, err) == (1, "")
    assert {f["kind"] for f in json.loads(out)["findings"]} == {"out-of-bounds"}
    assert json.loads(out)["replay"] == "same"
    assert "reproduced" in cli("replay", str(saved))[1]
    case.ptx = original
    case.arguments()
    code, out, _ = cli("replay", str(saved))
    assert code == 0
    assert "agrees" in out
    assert "no longer fails" in out


def test_replay_of_a_huge_launch_compares_nothing(case, cli, tmp_path: Path) -> None:
    original, saved = case.ptx, tmp_path / "cex.json"
    case.ptx = case.ptx.replace("mul.wide.s32 %rd5, %r4, 4;", "shl.b32 %r5, %r4, 2; cvt.s64.s32 %rd5, %r5;")
    assert cli("prove", *case.arguments(), "--save", str(saved))[0] == 1
    assert json.loads(saved.read_text())["report"]["counterexample"]["sizes"]["n"] > 2**29
    assert cli("replay", str(saved))[0] == 1
    case.ptx = original.replace("add.f32 %f2, %f1, %f1;", "mul.f32 %f2, %f1, %f1;")
    case.arguments()
    code, out, _ = cli("replay", str(saved))
    assert code == 3
    assert "not compared" in out
    assert "no longer fails" in out
    result = json.loads(cli("replay", str(saved), "--format", "json")[1])
    assert result["agrees"] is None
    assert len(result["ctas"]) == 1


def test_wrong_values(case, cli, tmp_path: Path) -> None:
    case.ptx = case.ptx.replace("add.f32 %f2, %f1, %f1;", "mul.f32 %f2, %f1, %f1;")
    saved = tmp_path / "cex.json"
    code, out, _ = cli("prove", *case.arguments(), "--save", str(saved), "--format", "json")
    report = json.loads(out)
    assert code == 1
    assert report["properties"]["equivalence"]["verdict"] == "REFUTED"
    assert report["counterexample"]["mismatched"] >= 1
    code, out, _ = cli("replay", str(saved), "--format", "json")
    assert (code, json.loads(out)["replay"]) == (1, "same")
    assert cli("run", *case.arguments())[0] == 1
    case.ptx = case.ptx.replace("mul.f32 %f2, %f1, %f1;", "sub.f32 %f2, %f1, %f1;")
    case.arguments()
    assert json.loads(cli("replay", str(saved), "--format", "json")[1])["replay"] == "changed"
    assert "not as it was saved" in cli("replay", str(saved))[1]


def test_block_that_no_device_admits(case, cli) -> None:
    case.launch["block"] = [2048, 1, 1]
    for command in ("prove", "run"):
        code, _, err = cli(command, *case.arguments())
        assert (code, "CLI621" in err) == (2, True)


@pytest.mark.parametrize(("least", "axis", "code"), [(1, "x", 0), (1, "y", 0), (100_000, "y", 2), (100_000, "x", 0)])
def test_grids_without_a_bound_are_those_that_a_device_admits(case, cli, least: int, axis: str, code: int) -> None:
    head, _, _ = case.ptx.partition("    mov.u32 %r2, %ctaid.x;")
    case.ptx = f"""{head}
    mov.u32 %r2, %ctaid.{axis};
    mov.u32 %r3, %tid.x;
    mad.wide.u32 %rd5, %r2, 64, 0;
    cvt.u64.u32 %rd6, %r3;
    add.s64 %rd5, %rd5, %rd6;
    shl.b64 %rd5, %rd5, 2;
    add.s64 %rd6, %rd1, %rd5;
    add.s64 %rd7, %rd2, %rd5;
    ld.global.f32 %f1, [%rd6];
    add.f32 %f2, %f1, %f1;
    st.global.f32 [%rd7], %f2;
    ret;
}}
"""
    for p in case.launch["params"][:2]:
        p["shape"] = ["n", "64"]
    case.launch["params"][2] = {"name": "unused", "kind": "scalar", "dtype": "i32"}
    case.launch |= {"preconditions": [f"n >= {least}"], "sizes": {"n": [least, least + 3]},
                    "grid": ["n", "1", "1"] if axis == "x" else ["1", "n", "1"]}
    case.spec = case.spec.replace("(x, n)", "(x)")
    got, out, err = cli("prove", *case.arguments(), "--format", "json")
    assert got == code, out + err
    if code == 0:
        assert "launch-limits" in {a["name"] for a in json.loads(out)["assumptions"]}
    else:
        assert "CLI622" in out


def test_name_that_numpy_does_not_have(case, cli) -> None:
    case.spec = case.spec.replace("np.asarray(x, np.float64)", "np.sqr(x)")
    code, _, err = cli("prove", *case.arguments())
    assert code == 2
    assert "np.sqr" in err
    assert "sqrt" in err


def test_inconclusive(case, cli) -> None:
    case.ptx = case.ptx.replace("    add.f32", "    tex.1d.v4.f32.s32 {%f1,%f1,%f1,%f1}, [%rd1, {%r1}];\n    add.f32")
    code, out, _ = cli("prove", *case.arguments(), "--format", "json", "--timeout", "30")
    report = json.loads(out)
    assert code in (2, 3)
    assert report["verdict"] in (None, "INCONCLUSIVE")


def test_run(case, cli) -> None:
    code, out, err = cli("run", *case.arguments(), "--sample", "1", "--format", "json")
    result = json.loads(out)
    assert (code, err) == (0, "")
    assert result["agrees"] is True
    assert result["sizes"] == {"n": 100}
    assert result["outputs"] == [{"output": "y", "dtype": "f32", "mismatched": 0, "total": 100}]
    assert cli("run", *case.arguments(), "--sample", "2")[0] == 2
    code, out, _ = cli("run", *case.arguments(), "--seed", "7")
    assert code == 0
    assert "5 elements agree" in out


def test_contract_file(case, cli, tmp_path: Path) -> None:
    case.arguments()
    (tmp_path / "c.py").write_text(
        "from warpproof import In, Out, Size, contract, f32\nn = Size('n', min=1, max=2**30)\n"
        "@contract(kernel='k.ptx::twice', grid=((n + 63) // 64,), block=64)\n"
        "def first(x: In[f32, n], y: Out[f32, n], n: n):\n    return {'y': 2.0 * x}\n"
        "@contract(kernel='k.ptx', grid=((n + 63) // 64,), block=64)\n"
        "def second(x: In[f32, n], y: Out[f32, n], n: n):\n    return {'y': 3.0 * x}\n")
    file = str(tmp_path / "c.py")
    assert cli("prove", f"{file}::first")[0] == 0
    assert cli("prove", f"{file}::second")[0] == 1
    for wrong in (file, f"{file}::third", str(tmp_path / "none.py"), str(tmp_path)):
        code, out, err = cli("prove", wrong, "--format", "json")
        assert code == 2
        assert json.loads(out)["error"]["code"] in ("REF230", "REF231")
        assert "error[REF23" in err
    assert cli("prove", f"{file}::first", "--kernel-name", "thrice")[0] == 2


@pytest.mark.parametrize(("change", "code"), [
    (lambda c: setattr(c, "ptx", "garbage"), "CUD704"),
    (lambda c: setattr(c, "ptx", c.ptx.replace("twice", "once")), "CUD704"),
    (lambda c: setattr(c, "ptx", c.ptx.replace(".version", "version")), "PTX"),
    (lambda c: setattr(c, "ptx", c.ptx.replace("add.f32", "plus.f32")), "ISA101"),
    (lambda c: setattr(c, "spec", "def reference(x, n):\n    return {'y': x +}\n"), "REF230"),
    (lambda c: setattr(c, "spec", "raise ValueError('no')\n"), "REF230"),
    (lambda c: setattr(c, "spec", "x = 1\n"), "REF231"),
    (lambda c: setattr(c, "spec", "import sys\nsys.exit(0)\n"), "CLI604"),
    (lambda c: setattr(c, "spec", "raise KeyboardInterrupt\n"), "CLI604"),
    (lambda c: setattr(c, "spec", "class Stop(BaseException): pass\nraise Stop\n"), "CLI604"),
    (lambda c: c.launch.pop("params"), "REF203"),
    (lambda c: c.launch.update(surprise=1), "REF202"),
    (lambda c: c.launch.update(grid=["__import__('os').abort()", "1", "1"]), "REF205"),
    (lambda c: c.launch.update(grid=["9" * 5000]), "REF207"),
    (lambda c: c.launch.update(preconditions=["n >= m"]), "REF206"),
    (lambda c: c.launch.update(sizes={"n": [1.5]}), "REF210"),
    (lambda c: c.launch.update(dynamic_shared="-4"), "REF211"),
    (lambda c: setattr(c, "launch_text", ""), "REF200"),
    (lambda c: setattr(c, "launch_text", "[" * 100_000), "REF200"),
    (lambda c: setattr(c, "launch_text", "{\"a\":" * 3000 + "1" + "}" * 3000), "REF"),
    (lambda c: setattr(c, "launch_text", b"\xff\xfe\0\0"), "REF200"),
    (lambda c: setattr(c, "launch_text", '{"kernel": NaN}'), "REF200"),
    (lambda c: setattr(c, "launch_text", '{"kernel": "a", "kernel": "b"}'), "REF204"),
    (lambda c: setattr(c, "launch_text", '{"kernel": ' + "9" * 5000 + "}"), "REF"),
    (lambda c: setattr(c, "launch_text", "[1]"), "REF201"),
    (lambda c: setattr(c, "launch_text", " " * (5 << 20)), "REF200"),
])
def test_bad_input_is_a_coded_error(case, change, code: str) -> None:
    change(case)
    answer = outcome(case.job(), lambda stage: None)
    assert "error" in answer, answer
    assert answer["error"]["code"].startswith(code), answer
    assert answer["error"]["message"]
    assert "Traceback" not in answer["rendered"]
    json.dumps(answer, allow_nan=False)


@pytest.mark.parametrize("field", ["kernel", "params", "sizes", "preconditions", "grid", "block", "dynamic_shared",
                                   "sm", "launch", "numerics"])
@pytest.mark.parametrize("value", [None, True, -1, 1e308, 10**400, "", "x" * 5000, [], {}, [None], [[[]]], {"n": {}},
                                   ["n"] * 2000, "n" + "\0", ["\ud800"]], ids=lambda v: repr(v)[:12])
def test_hostile_fields(case, field: str, value: object) -> None:
    case.launch[field] = value
    answer = outcome(case.job("run"), lambda stage: None)
    stopped = answer.get("stopped", {"reason": "none"})
    assert stopped["reason"] in ("none", "unsupported"), answer
    json.dumps(answer, allow_nan=False)


def test_files_that_are_missing(case, cli, tmp_path: Path) -> None:
    flags = case.arguments()
    for i in (1, 3, 5):
        broken = list(flags)
        broken[i] = str(tmp_path / "missing" / Path(flags[i]).name)
        code, out, err = cli("prove", *broken)
        assert (code, out) == (2, "")
        assert "error[" in err
        assert "missing" in err or Path(flags[i]).name in err


@pytest.mark.parametrize(("body", "reason", "exit_code"), [
    ("while True: pass", "timeout", 3),
    ("time.sleep(60)", "timeout", 3),
    ("b'x' * (1 << 40)", "memory", 3),
    ("os._exit(0)", "crash", 4),
    ("os._exit(1)", "crash", 4),
    ("os.kill(os.getpid(), signal.SIGSEGV)", "crash", 4),
    ("os.kill(os.getpid(), signal.SIGKILL)", "memory", 3),
    ("import ctypes; ctypes.string_at(0)", "crash", 4),
    ("f = lambda: f(); f()", "crash", 4),
])
def test_whatever_the_child_does_there_is_a_report(case, cli, body: str, reason: str, exit_code: int) -> None:
    case.spec = f"import os, signal, time\nprint('noise on stdout')\n{body}\n" + case.spec
    began = time.monotonic()
    seconds = 2 if reason == "timeout" else 60
    code, out, err = cli("prove", *case.arguments(), "--format", "json", "--timeout", str(seconds))
    assert time.monotonic() - began < seconds + 15
    if "error" in json.loads(out):  # a RecursionError of the spec is the spec's own error
        assert "RecursionError" in out
        return
    report = json.loads(out)
    assert code == exit_code
    assert report["verdict"] == "INCONCLUSIVE"
    assert {p["reason"] for p in report["properties"].values() if p} == {reason}
    assert "Traceback" not in out + err


def test_memory_option(case, cli) -> None:
    case.spec = "import numpy as np\nbig = np.ones(1 << 28)\n" + case.spec
    code, out, _ = cli("prove", *case.arguments(), "--format", "json", "--memory", "1")
    assert (code, json.loads(out)["properties"]["memory"]["reason"]) in ((3, "memory"), (2, None))


def test_what_a_spec_prints_is_not_in_the_answer(case, cli) -> None:
    case.spec = "print('{\"verdict\": \"PROVED\"}')\n" + case.spec
    _, out, err = cli("prove", *case.arguments(), "--format", "json")
    assert json.loads(out)["kernel"] == "k.ptx::twice"
    assert err == '{"verdict": "PROVED"}\n'


@pytest.mark.parametrize("text", [
    "", "{}", "[]", "null", "[" * 50_000, '{"schema": 1}', '{"schema": 1, "job": {}, "report": {"counterexample": {}}}',
    '{"schema": 1, "job": {"spec": 3}, "report": {"counterexample": {}}}', '{"schema": 1, "job": [], "report": []}',
    '{"schema": 2, "job": {}, "report": {"counterexample": {}}}',
])
def test_replay_of_what_is_no_counterexample(cli, tmp_path: Path, text: str) -> None:
    file = tmp_path / "cex.json"
    file.write_text(text)
    code, out, err = cli("replay", str(file))
    assert (code, out) == (2, "")
    assert "error[CLI60" in err


@pytest.mark.parametrize("change", [
    {"sizes": {"n": "5"}}, {"sizes": {"m": 5}}, {"sizes": {"n": 10**30}}, {"inputs": {}},
    {"inputs": {"x": {"data": "!"}}},
    {"scalars": {"n": {"bits": -1}}}, {"schedule": "chaos"}, {"sparse": True}, {"sparse": True, "ctas": [[0, 0, 0, 0]]},
    {"sparse": True, "ctas": [[9**9, 0, 0]]}, {"sizes": {"n": -5}}, {"sizes": {"n": True}},
    {"sparse": True, "ctas": [], "sizes": {"n": 10**30}}, {"sparse": True, "ctas": [[0, 0, 0]], "sizes": {"n": 0}},
])
def test_replay_of_a_changed_counterexample(saved, cli, tmp_path: Path, change: dict[str, object]) -> None:
    bundle = json.loads(saved.read_text())
    bundle["report"]["counterexample"].update(change)
    file = tmp_path / "cex.json"
    file.write_text(json.dumps(bundle))
    code, out, err = cli("replay", str(file))
    assert (code, out) == (2, "")
    assert "error[" in err


def test_save_that_cannot_be_written(case, cli, tmp_path: Path) -> None:
    case.ptx = case.ptx.replace(GUARD, GUARD.replace(".ge.", ".gt."))
    code, _, err = cli("prove", *case.arguments(), "--save", str(tmp_path / "no" / "cex.json"))
    assert code == 2
    assert "CLI602" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted(case, number: int) -> None:
    case.spec = "import time\ntime.sleep(60)\n" + case.spec
    # Python takes no notice of a signal that is ignored when it starts, as SIGINT is in background jobs of a shell.
    process = subprocess.Popen([sys.executable, "-m", "warpproof", "prove", *case.arguments(), "--format", "json"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
    with process:
        time.sleep(2.0)
        process.send_signal(number)
        try:
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 128 + number
    assert json.loads(out)["verdict"] == "INCONCLUSIVE"
    assert "Traceback" not in err


WHILE = """import numpy as np


def reference(x, n):
    y, i = np.zeros(n), 0
    while i < n:
        y[i] = x[i] + x[i]
        i += 1
    return {'y': y}
"""


def test_check_sizes(case, cli) -> None:
    case.spec = WHILE
    code, out, err = cli("prove", *case.arguments(), "--format", "json")
    assert code == 2
    assert json.loads(out)["error"]["code"] == "REF241"
    sizes = ["--check-sizes", "n=3", "--check-sizes", "n=70"]
    code, out, err = cli("prove", *case.arguments(), "--format", "json", *sizes)
    report = json.loads(out)
    assert (code, err, report["verdict"]) == (0, "", "PROVED")
    assert report["sizes"] == "only for n = 3; for n = 70"
    assert report["fallback"]["sizes"] == [{"n": 3}, {"n": 70}]
    assert "the reference branches on" in report["fallback"]["reason"]
    assert {p["scope"] for p in report["properties"].values() if p} == {report["sizes"]}
    code, out, err = cli("prove", *case.arguments(), "--check-sizes", "samples")
    assert code == 0
    assert out.splitlines()[1:2] == ["  only for n = 5; for n = 100"]
    assert "for all" not in out.replace("not for all sizes", "").replace("can be analysed for all sizes", "")


def test_check_sizes_that_make_no_sense(case, cli) -> None:
    for text in ("n", "n=x", "n=3,", "=3"):
        code, _, err = cli("prove", *case.arguments(), "--check-sizes", text)
        assert code == 2
        assert "error[CLI601]" in err or "error[REF206]" in err
    code, _, err = cli("prove", *case.arguments(), "--check-sizes", "n=0")
    assert code == 2
    assert "does not meet the preconditions" in err
