"""Other machines than this one: an ordinary user, a container, an older kernel. Each does what it can, and says so."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from warpproof.sandbox import Kernel

NOBODY = 65534
PTX = """\
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.b32 %r1, 0f40000000;
    st.global.b32 [%rd2], %r1;
    ret;
}
"""
CONTRACT = """\
from warpproof import Out, contract, f32
import numpy as np
@contract(kernel="k.ptx", grid=(1,), block=1)
def k(y: Out[f32, 1]):
    return {"y": np.full((1,), 2.0)}
"""
# As a container's filter answers: EPERM for unshare, ENOSYS for what its engine does not know.
FILTERED = """
import json, os, sys
from warpproof.sandbox import assemble, confinement, encode
text = "ld nr\\n" + "".join(f"jeq #{n}, {a}, next\\n" for a, n in json.loads(sys.argv[1])) + "ret allow\\n"
text += "denied: ret errno(EPERM)\\nunknown: ret errno(ENOSYS)\\n"
confinement._no_new_privileges()
confinement._filter(encode(assemble(text)))
os.execv(sys.executable, [sys.executable, "-m", "warpproof", *sys.argv[2:]])
"""
NAMESPACES, LANDLOCK = [["denied", 272]], [["unknown", n] for n in (444, 445, 446)]


@pytest.fixture
def contract() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        (Path(folder) / "k.ptx").write_text(PTX, "utf-8")
        (Path(folder) / "c.py").write_text(CONTRACT, "utf-8")
        yield Path(folder) / "c.py"


def interpreter(uid: int) -> tuple[list[str], dict[str, str]]:
    """A Python that this user can run with the packages of this one, or a skip."""
    for path in (sys.executable, shutil.which(f"python{sys.version_info[0]}.{sys.version_info[1]}", path="/usr/bin")):
        packages = os.pathsep.join(p for p in sys.path if p)
        environment = {"PATH": "/usr/bin", "HOME": "/nonexistent", "PYTHONPATH": packages}
        probe = [str(path), "-c", "import numpy, islpy, flint, warpproof.api"]
        try:
            done = subprocess.run(probe, user=uid, group=uid, extra_groups=[], env=environment, cwd="/", check=False,
                                  capture_output=True)
        except OSError:
            continue
        if done.returncode == 0:
            return [str(path), "-m", "warpproof"], environment
    pytest.skip(f"no Python that uid {uid} can run")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become another user")
def test_an_ordinary_user(contract: Path, kernel: Kernel) -> None:
    command, environment = interpreter(NOBODY)
    for mode in ("auto", "filter"):
        done = subprocess.run([*command, "prove", str(contract), "--format", "json", f"--sandbox={mode}"], user=NOBODY,
                              group=NOBODY, extra_groups=[], env=environment, cwd="/", check=False, capture_output=True)
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads(done.stdout)
        assert report["verdict"] == "PROVED"
        assert "filter" in report["sandbox"]["layers"]
        assert "read-back" not in report["sandbox"]["layers"]
        assert "CAP_SYS_ADMIN" in report["sandbox"]["missing"]["read-back"]


def proved(contract: Path, refused: list[list[Any]], *more: str) -> tuple[int, dict[str, Any]]:
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        pytest.skip("the policies are for x86-64 Linux")
    done = subprocess.run([sys.executable, "-c", FILTERED, json.dumps(refused), "prove", str(contract),
                           "--format", "json", *more], check=False, capture_output=True, text=True)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize(("refused", "missing"), [
    (NAMESPACES, {"namespaces"}), (LANDLOCK, {"landlock"}), (NAMESPACES + LANDLOCK, {"namespaces", "landlock"}),
], ids=["a container", "an older kernel", "both"])
def test_a_machine_without_some_layers(refused: list[list[Any]], missing: set[str], contract: Path,
                                       kernel: Kernel) -> None:
    code, report = proved(contract, refused)
    assert (code, report["verdict"]) == (0, "PROVED")
    assert set(report["sandbox"]["missing"]) >= {*missing, "read-back"}
    assert {"descriptors", "limits", "no-new-privileges", "filter"} <= set(report["sandbox"]["layers"])
    assert not missing & set(report["sandbox"]["layers"])
    code, report = proved(contract, refused, "--sandbox=strict")
    assert (code, report["verdict"]) == (3, "INCONCLUSIVE")
    assert report["properties"]["memory"]["reason"] == "sandbox"
    assert any(f"'{layer}' is missing" in report["properties"]["memory"]["detail"] for layer in missing)


def test_a_machine_without_filters(contract: Path, kernel: Kernel) -> None:
    """Nothing runs unconfined by itself; who wants that says so, and the report does."""
    refused = [["unknown", 317], ["denied", 272]]
    code, report = proved(contract, refused)
    assert (code, report["verdict"]) == (3, "INCONCLUSIVE")
    assert "'filter' is missing" in report["properties"]["memory"]["detail"]
    code, report = proved(contract, refused, "--no-sandbox")
    assert (code, report["verdict"]) == (0, "PROVED")
    assert "no-sandbox" in [a["name"] for a in report["assumptions"]]
    assert report["sandbox"] == {"mode": "off", "layers": [], "missing": {}}
