"""The corpus as a fixture."""

from __future__ import annotations

import pytest
from ptx_corpus import read_corpus


@pytest.fixture(scope="session")
def corpus() -> dict[str, str]:
    return read_corpus()
