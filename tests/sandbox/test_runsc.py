"""gVisor's own filters, read from its running processes: the Sentry's and the Gofer's. Needs runsc and root."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from filters import settled, started

from warpproof.sandbox import Kernel

RUNSC = shutil.which("runsc")


@pytest.mark.skipif(RUNSC is None or os.geteuid() != 0, reason="runsc is not installed, or this is not root")
def test_the_sentry_and_the_gofer(reader: Kernel, tmp_path: Path) -> None:
    process, found = started(str(RUNSC), tmp_path)
    try:
        assert set(found) == {"sandbox", "gofer"}
        sentry, _ = settled(found["sandbox"])
        gofer, _ = settled(found["gofer"])
    finally:
        for pid in found.values():
            os.kill(pid, 9)
        process.kill()
        process.wait()
    for made in (sentry, gofer):
        status = {o["id"]: o["status"] for o in made["obligations"]}
        assert {status[k] for k in ("P0", "P2", "P3", "P4")} == {"proved"}
        assert made["instructions"] > 300
        assert made["confirmed_live"] > 10
        facts = {p["fact"] for p in made["reachable"]}
        assert not facts & {"abi", "unknown", "kernel", "unfiltered", "mount", "namespace", "exec", "process", "rwx"}
    ways = {p["fact"]: {w["call"] for w in p["ways"]} for p in sentry["reachable"]}
    assert "ptrace" in ways["write-other"]  # the ptrace platform
    assert "openat" not in ways["file-open"]
    assert "openat" in {w["call"] for p in gofer["reachable"] if p["fact"] == "file-open" for w in p["ways"]}
