"""One prober process for all tests of the package; what needs the kernel is skipped where filters cannot be tried."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from warpproof.core import Unsupported
from warpproof.sandbox import NATIVE, Call, Kernel, assemble


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
