"""The house rules that no linter checks: sizes, and imports of packages rather than of modules inside them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "src" / "warpproof").rglob("*.py"))
EXAMPLES = sorted(p.stem for p in (ROOT / "examples").glob("*.py"))
MAX_LINES, MAX_FUNCTION = 500, 45


def functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


@pytest.mark.parametrize("module", MODULES, ids=lambda p: str(p.relative_to(ROOT / "src" / "warpproof")))
def test_module(module: Path) -> None:
    text = module.read_text("utf-8")
    tree = ast.parse(text)
    faults = []
    if text.count("\n") > MAX_LINES:
        faults.append(f"{text.count(chr(10))} lines")
    if ast.get_docstring(tree) is None:
        faults.append("no docstring")
    for f in functions(tree):
        length = (f.end_lineno or f.lineno) - f.lineno + 1
        if length > MAX_FUNCTION:
            faults.append(f"{f.name} has {length} lines")
    if {"utils", "common", "helpers"} & {module.stem, module.parent.name}:
        faults.append("name")
    assert faults == []


def test_packages_are_imported_not_the_modules_inside_them() -> None:
    faults: dict[str, set[str]] = {}
    for module in MODULES:
        own = module.relative_to(ROOT / "src").parts[1]
        for n in ast.walk(ast.parse(module.read_text("utf-8"))):
            parts = (n.module or "").split(".") if isinstance(n, ast.ImportFrom) else []
            if parts[:1] == ["warpproof"] and len(parts) > 2 and parts[1] != own:
                faults.setdefault(".".join(parts), set()).add(str(module.relative_to(ROOT / "src" / "warpproof")))
    assert faults == {}


def test_nothing_mentions_a_private_place() -> None:
    bad = ("/work" + "/", "/tmp" + "/", "/root" + "/")
    for folder in ("src", "examples", "docs"):
        for file in (ROOT / folder).rglob("*"):
            if file.suffix in (".py", ".md", ".cu", ".toml"):
                text = file.read_text("utf-8")
                assert not [b for b in bad if b in text], file


def test_the_trust_page_lists_every_assumption() -> None:
    page = (ROOT / "docs" / "trust.md").read_text("utf-8")
    use = re.compile(r"(?:\.use|\.assume)\(\s*\"([a-z0-9-]+)\"")
    used = {name for m in MODULES for name in use.findall(m.read_text("utf-8"))}
    assert len(used) >= 9
    assert used == set(re.findall(r"^\| `([a-z0-9-]+)` \| [^|]*\|$", page, re.MULTILINE))


def test_every_example_has_a_kernel_and_a_wrong_twin() -> None:
    kernels = {p.stem for p in (ROOT / "examples").glob("*.cu")}
    assert kernels == set(EXAMPLES)
    wrong = sorted(p.stem for p in (ROOT / "examples" / "wrong").glob("*.cu"))
    for name in EXAMPLES:
        others = [e for e in EXAMPLES if e.startswith(f"{name}_")]
        assert [w for w in wrong if w.startswith(f"{name}_") and not w.startswith(tuple(f"{o}_" for o in others))], name


def test_test_modules_have_names_of_their_own() -> None:
    """pytest takes two test files of one name, in folders that are no packages, for one module."""
    names = [path.name for path in Path(__file__).parent.rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
