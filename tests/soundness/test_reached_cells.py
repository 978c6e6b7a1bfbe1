"""Shared loads at addresses that depend on a size: what is read, and what orders it. Also barriers that can go."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from proof_cases import Small, element, proved, put, verdicts, word

from warpproof.counterexample import Search
from warpproof.equivalence import redundant
from warpproof.ptx import load, resolve
from warpproof.reference import load_launch

FILL = element("%f1", "x", "%g") + word("%r20", "%t") + "st.shared.f32 [%r20], %f1;"
BARRIER = "bar.sync 0;"
ROTATED = "add.s32 %r1, %t, %i_k; and.b32 %r1, %r1, 63;" + word("%r21", "%r1") + "ld.shared.f32 %f2, [%r21];"
OUT = put("%f2", "y", "%g")


def rows(body: str, k: str = "k < 64") -> Small:
    shape = ["n", "64"]
    return Small(body, (("x", "ptr_in", "f32", shape), ("y", "ptr_out", "f32", shape)), ("n", "k"),
                 ("n >= 1", "n <= 100000", "k >= 0", k), ("n",))


def rotate(x: Any, n: Any, k: Any) -> dict[str, Any]:
    return {"y": x[:, (np.arange(64) + k) % 64]}


def test_a_rotation_by_a_symbol_is_proved() -> None:
    assert proved(rows(FILL + BARRIER + ROTATED + OUT), rotate)


@pytest.mark.parametrize(("body", "what"), [
    (FILL + ROTATED + OUT, "races"),
    (FILL + BARRIER + ROTATED.replace("add.s32", "sub.s32") + OUT, "equivalence"),
    (FILL + BARRIER + ROTATED.replace("63", "127") + OUT, "memory"),
    (FILL + BARRIER + ROTATED + "mov.f32 %f3, 0f00000000; st.shared.f32 [%r20], %f3;" + OUT, "races"),
    ("setp.gt.u32 %p1, %t, 62; @%p1 bra SKIP;" + FILL + "SKIP:" + BARRIER + ROTATED + OUT, "memory"),
    (FILL.replace("st.shared", "add.f32 %f1, %f1, %f1; st.shared") + BARRIER + ROTATED + OUT, "equivalence"),
])
def test_wrong_rotations_are_not_proved(body: str, what: str) -> None:
    assert verdicts(rows(body), rotate)[what] != "PROVED"


def test_one_symbolic_cell_for_all() -> None:
    body = FILL + BARRIER + word("%r21", "%i_k") + "ld.shared.f32 %f2, [%r21];" + OUT

    def wanted(x: Any, n: Any, k: Any) -> dict[str, Any]:
        return {"y": x[:, (0 * np.arange(64) + k) % 64]}

    assert proved(rows(body), wanted)
    assert not proved(rows(body, "k < 65"), wanted)


def test_two_stores_make_two_segments() -> None:
    second = "add.s32 %r2, %t, 64;" + word("%r22", "%r2") + "add.f32 %f4, %f1, %f1; st.shared.f32 [%r22], %f4;"
    pick = "add.s32 %r1, %t, %i_k;" + word("%r21", "%r1") + "ld.shared.f32 %f2, [%r21];"

    def wanted(x: Any, n: Any, k: Any) -> dict[str, Any]:
        return {"y": np.concatenate([x, 2 * x], axis=1)[:, np.arange(64) + k]}

    assert proved(rows(FILL + second + BARRIER + pick + OUT), wanted)
    assert not proved(rows(FILL + second + BARRIER + pick + OUT), rotate)


VECTORS = [("v2", 2, True), ("v2", 1, False), ("v4", 4, True), ("v4", 2, False)]


@pytest.mark.parametrize(("vector", "step", "good"), VECTORS)
def test_vectors_at_a_symbol_are_aligned(vector: str, step: int, good: bool) -> None:
    registers = "%f2, %f3" if vector == "v2" else "%f2, %f3, %f4, %f5"
    body = f"""{FILL} {BARRIER} and.b32 %r1, %i_k, 7; mul.lo.s32 %r1, %r1, {step}; {word('%r21', '%r1')}
        ld.shared.{vector}.f32 {{{registers}}}, [%r21]; {OUT}"""

    def wanted(x: Any, n: Any, k: Any) -> dict[str, Any]:
        return {"y": x[:, (0 * np.arange(64) + k) % 8 * step]}

    assert proved(rows(body), wanted) == good


def never(instruction: int) -> bool:
    """No run shows the need of any instruction."""
    return False


def advised(body: str) -> list[int]:
    """The barriers, numbered in code order, that are said to be unnecessary."""
    kernel = rows(body)
    code = resolve(load(kernel.ptx()), "k")
    launch = load_launch(kernel.manifest())
    sites = [i for i, x in enumerate(code.code) if x.name in ("bar", "membar", "fence")]
    needed = {i for i in sites if Search((code,), launch, rotate, time.monotonic() + 20.0).needed(i)}
    found = []
    for known in (never, needed.__contains__):
        lines = [a.ptx_line for a in redundant(code, launch, frozenset(range(len(code.code))), 100, 60.0, known)]
        found.append([k for k, i in enumerate(sites) if code.code[i].span.line in lines])
    assert found[0] == found[1]
    assert all(sites[k] not in needed for k in found[0])
    assert len(needed) >= min(1, len(sites) - len(found[0]))
    return found[0]


@pytest.mark.parametrize(("body", "wanted"), [
    (f"{FILL}\n{BARRIER}\n{ROTATED}\n{BARRIER}\n{OUT}", [1]),
    (f"{FILL}\n{BARRIER}\n{ROTATED}\n{OUT}", []),
    (f"{FILL}\n{BARRIER}\n{BARRIER}\n{ROTATED}\n{OUT}", [0, 1]),
    (f"{FILL}\n{BARRIER}\n{ROTATED}\n{BARRIER}\nst.shared.f32 [%r20], %f2;\n{OUT}", []),
    (f"{FILL}\nmembar.gl;\n{BARRIER}\n{ROTATED}\n{OUT}", [0]),
])
def test_unnecessary_barriers(body: str, wanted: list[int]) -> None:
    assert advised(body) == wanted


@pytest.mark.parametrize(("lines", "wanted"), [((7, 8), ["once"]), ((7, 7), []), ((0, 0), ["once"])])
def test_copies_of_one_source_line_stand_or_fall_together(lines: tuple[int, int], wanted: list[str]) -> None:
    first, second = (f".loc 1 {line} 0\n" * (line > 0) + BARRIER for line in lines)
    assert source_advice(f"{FILL}\n{first}\n.loc 1 9 0\n{ROTATED}\n{second}\n{OUT}") == wanted


@pytest.mark.parametrize(("second", "wanted"), [(7, ["2 times"]), (8, ["once", "once"])])
def test_copies_that_can_all_go_are_one_line(second: int, wanted: list[str]) -> None:
    body = f".loc 1 7 0\n{BARRIER}\n.loc 1 {second} 0\n{BARRIER}\n.loc 1 9 0\n{FILL}\nbar.sync 0;\n{ROTATED}\n{OUT}"
    assert source_advice(body) == wanted


def source_advice(body: str) -> list[str]:
    """How many PTX instructions each advice is about."""
    kernel = rows(body)
    code = resolve(load(kernel.ptx()), "k")
    found = redundant(code, load_launch(kernel.manifest()), frozenset(range(len(code.code))), 100, 60.0, never)
    return ["2 times" if "2 times" in a.text else "once" for a in found]


def test_advice_needs_time() -> None:
    kernel = rows(FILL + BARRIER + BARRIER + ROTATED + OUT)
    code, launch = resolve(load(kernel.ptx()), "k"), load_launch(kernel.manifest())
    began = time.monotonic()
    assert redundant(code, launch, frozenset(range(len(code.code))), 100, -1.0, never) == []
    assert redundant(code, launch, frozenset(range(len(code.code))), 1e9, began, never) == []
