"""Kernels with the edit that makes them wrong, their launch and their reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from warpproof.core import Verdict
from warpproof.frontends import compile_cuda
from warpproof.proving import Task, prove
from warpproof.ptx import parse, resolve
from warpproof.reference import load_launch


@dataclass(frozen=True)
class Subject:
    """A kernel, what makes it wrong (text and its replacement), its launch and its reference."""

    source: str
    fault: tuple[str, str]
    manifest: Mapping[str, Any]
    reference: Callable[..., Mapping[str, Any]]


def array(name: str, kind: str, *shape: str, dtype: str = "f32") -> dict[str, Any]:
    """A buffer in the launch manifest."""
    return {"name": name, "kind": f"ptr_{kind}", "dtype": dtype, "shape": list(shape)}


def count(name: str) -> dict[str, Any]:
    """A size in the launch manifest."""
    return {"name": name, "kind": "scalar", "dtype": "i32"}


def launch(params: list[dict[str, Any]], sizes: dict[str, list[int]], grid: str, block: int) -> dict[str, Any]:
    """The launch manifest; every size is at least 1 and at most a million."""
    bounds = [f"{name} {text}" for name in sizes for text in (">= 1", "<= 2**20")]
    return {"kernel": "k", "params": params, "sizes": sizes, "preconditions": bounds, "grid": [grid, "1", "1"],
            "block": [block, 1, 1], "dynamic_shared": "0"}


def verdict(subject: Subject, source: str, seconds: float = 120.0) -> Verdict:
    """The verdict on a source under the subject's launch."""
    text = compile_cuda(source, kernel="k").text
    manifest = load_launch(subject.manifest)
    kernel = resolve(parse(text, "k.ptx"), "k")
    return prove(Task(kernel, manifest, subject.reference, text, "k.ptx", {}, seconds), lambda stage: None).verdict
