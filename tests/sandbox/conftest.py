"""One prober process for all tests of the package; what needs the kernel is skipped where filters cannot be tried."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from warpproof.core import Unsupported
from warpproof.sandbox import NATIVE, Call, Kernel, assemble

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


@pytest.fixture(scope="session")
def prober() -> Iterator[Kernel]:
    with Kernel() as made:
        yield made


@pytest.fixture(scope="session")
def kernel(prober: Kernel) -> Kernel:
    """A kernel that takes filters."""
    try:
        seen = prober.observe([assemble("ret errno(EPERM)")], [Call(39, NATIVE)])
    except Unsupported as error:
        pytest.skip(str(error))
    assert seen[0] is not None
    assert (seen[0].kind, seen[0].number) == ("errno", 1)
    return prober


@pytest.fixture(scope="session")
def reader(kernel: Kernel) -> Kernel:
    """A kernel that also gives filters back."""
    try:
        kernel.read_back([assemble("ret allow")])
    except Unsupported as error:
        pytest.skip(str(error))
    return kernel


@pytest.fixture
def contract() -> Iterator[Path]:
    """A contract whose kernel is proved, in a folder that every user can read."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        (Path(folder) / "k.ptx").write_text(PTX, "utf-8")
        (Path(folder) / "c.py").write_text(CONTRACT, "utf-8")
        yield Path(folder) / "c.py"
