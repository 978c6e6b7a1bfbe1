"""What the README shows is what the program prints, numbers and kinds of evidence apart; CI runs its commands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings.nvrtc")

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
SHOWN = re.findall(r"```\n\$ warpproof (.*)\n((?:.*\n)*?)```\n", README)


def plain(text: str) -> list[str]:
    """The lines without numbers, kinds of evidence, what the machine can confine with, and spacing."""
    text = re.sub(r"sandbox: .*", "sandbox", re.sub(r"obligations?: .*", "obligations", text))
    return [re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?", "N", line)).strip() for line in text.splitlines()]


def test_something_is_shown() -> None:
    assert len(SHOWN) == 2


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[c for c, _ in SHOWN])
def test_shown_output(cli, monkeypatch: pytest.MonkeyPatch, command: str, output: str) -> None:
    monkeypatch.chdir(ROOT)
    _, out, _ = cli(*shlex.split(command))
    assert plain(out) == plain(output)


def test_ci_runs_the_tests_as_the_readme_says() -> None:
    (command,) = re.findall(r"^\.venv/bin/pip install -e .*pytest.*$", README, re.MULTILINE)
    assert (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1] == command


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / link).exists(), (page.name, link)
