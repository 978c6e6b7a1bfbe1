"""The verdict of the symbolic proof alone on a hand-written kernel: no search for counterexamples, no sample runs.

Sample runs would hide a wrong proof behind a disagreement; here nothing but the proof stands between a wrong kernel and
PROVED.
"""

from __future__ import annotations

import time
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warpproof.core import InputError, Unsupported, worst
from warpproof.equivalence import Proof
from warpproof.judge import judge
from warpproof.ptx import parse, resolve
from warpproof.reference import load_launch, trace

SECONDS = 60.0
HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
REGISTERS = (".reg .pred %p<32>; .reg .b16 %h<64>; .reg .b32 %r<128>; .reg .f32 %f<128>; .reg .b64 %rd<128>;")


@dataclass(frozen=True)
class Case:
    """One kernel: `body` goes behind the family's prologue; the rest overrides what the family says."""

    name: str
    good: bool
    body: str
    reference: str = ""
    pre: tuple[str, ...] = ()
    launch: Mapping[str, Any] = field(default_factory=dict)
    memory: str = ""
    directives: str = ""

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Family:
    """A prologue with its parameters, launch and reference; `arguments` are the reference's parameters."""

    params: tuple[tuple[str, str], ...]
    launch: Mapping[str, Any]
    prologue: str
    arguments: str
    reference: str
    memory: str = ""

    def verdict(self, case: Case) -> str:
        """The proof's verdict, or the name of the error that refuses the input."""
        manifest: dict[str, Any] = {
            "kernel": "k", "dynamic_shared": "0", "preconditions": [], **self.launch, **case.launch}
        if case.pre:
            manifest["preconditions"] = list(case.pre)
        formals = ", ".join(f".param .{kind} {name}" for kind, name in self.params)
        text = (f"{HEAD}.visible .entry k({formals})\n{case.directives}\n{{ {REGISTERS}\n"
                f"{case.memory or self.memory}\n{self.prologue}\n{case.body}\nDONE: ret;\n}}\n")
        return verdict(text, manifest, function(self.arguments, case.reference or self.reference))


def verdict(text: str, manifest: Mapping[str, Any], reference: Any, seconds: float = SECONDS) -> str:
    """What the proof says of a kernel within a time, by value of its verdict."""
    launch = load_launch(manifest)
    kernel = resolve(parse(text, "kernel.ptx"), launch.kernel)
    try:
        proof = Proof(kernel, launch, time.monotonic() + seconds)
        outcome = proof.attempt(trace(reference, proof.symbolic, proof.arena))
    except (Unsupported, InputError):
        return "INCONCLUSIVE"
    return worst(p.verdict for p in judge(outcome.claims, "").values() if p is not None).value


def function(arguments: str, expression: str) -> Any:
    """`def reference(arguments)` that returns the outputs given as keyword arguments of `dict`."""
    module = types.ModuleType("reference_of_case")
    vars(module)["np"] = np
    exec(compile(f"def reference({arguments}):\n    return dict({expression})\n", "<case>", "exec"), vars(module))
    return vars(module)["reference"]


def buffer(name: str, kind: str, dtype: str, *shape: str, **more: Any) -> dict[str, Any]:
    """A buffer parameter of a manifest."""
    return {"name": name, "kind": kind, "dtype": dtype, "shape": list(shape), **more}


def scalar(name: str, dtype: str = "i32") -> dict[str, Any]:
    """A scalar parameter of a manifest."""
    return {"name": name, "kind": "scalar", "dtype": dtype}
