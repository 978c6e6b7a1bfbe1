"""Producers and consumers that hand stages on through named barriers, in loops of any length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from proof_cases import Small, element, proved, put, verdicts, word

from warpproof.proving import Task, prove
from warpproof.ptx import load, resolve
from warpproof.reference import load_launch


@dataclass(frozen=True)
class Ring:
    """A ring of `stages` that warp 0 fills and `readers` further warps empty; `early` consumers tell at the start that
    all stages are empty, and the producer waits for the last ones at its end."""

    stages: int = 2
    readers: int = 1
    early: bool = False
    full: str = "add.s32 %r10, %r9, 1;"
    emptied: str = "add.s32 %r11, %r9, STAGES1;"
    wait_empty: str = "bar.sync %r11, THREADS;"
    tell_full: str = "bar.arrive %r10, THREADS;"
    wait_full: str = "bar.sync %r10, THREADS;"
    tell_empty: str = "bar.arrive %r11, THREADS;"
    free_first: bool = False
    tell_first: bool = False
    produced: str = "%i_m"
    consumed: str = "%i_m"
    filled: str = "%r9"
    before: str = ""

    def stage(self, number: str, register: str = "%r9") -> str:
        return f"rem.s32 {register}, {number}, {self.stages};" + self.full + self.emptied

    def fill(self) -> str:
        put_ = f"""mad.lo.s32 %r12, %c, %i_m, %r8; shl.b32 %r12, %r12, 5; add.s32 %r12, %r12, %r3;
            {element('%f1', 'x', '%r12')} shl.b32 %r13, {self.filled}, 5; add.s32 %r13, %r13, %r3;
            {word('%r20', '%r13')} st.shared.f32 [%r20], %f1;"""
        return self.tell_full + put_ if self.tell_first else put_ + self.tell_full

    def take(self) -> str:
        return f"""shl.b32 %r13, %r9, 5; add.s32 %r14, %r13, %r3; {word('%r20', '%r14')} xor.b32 %r5, %r3, 31;
            add.s32 %r14, %r13, %r5; {word('%r21', '%r14')} ld.shared.f32 %f2, [%r20]; ld.shared.f32 %f3, [%r21];
            fma.rn.f32 %f4, %f2, %f3, %f4;"""

    def body(self) -> str:
        skip = "" if self.early else f"setp.lt.s32 %p4, %r8, {self.stages}; @%p4 bra FILL;"
        last = "" if self.early else f"add.s32 %r15, %r8, {self.stages}; setp.ge.s32 %p4, %r15, %i_m; @%p4 bra KEPT;"
        first = "".join(f"mov.u32 %r9, {k}; {self.emptied} {self.tell_empty}" for k in range(self.stages))
        drain = "".join(f"add.s32 %r16, {self.produced}, {k}; rem.s32 %r9, %r16, {self.stages}; {self.emptied} "
                        f"{self.wait_empty}" for k in range(self.stages))
        free = f"{last} {self.tell_empty} KEPT:"
        turn = f"{self.wait_full} {free} {self.take()}" if self.free_first else f"{self.wait_full} {self.take()} {free}"
        text = f"""{self.before} and.b32 %r3, %t, 31; shr.u32 %r4, %t, 5; mov.u32 %r8, 0; mov.f32 %f4, 0f00000000;
            setp.gt.u32 %p1, %t, 31; @%p1 bra SECOND;
            FIRST: {self.stage('%r8')} {skip} {self.wait_empty} FILL: {self.fill()}
            add.s32 %r8, %r8, 1; setp.lt.s32 %p2, %r8, {self.produced}; @%p2 bra FIRST;
            {drain if self.early else ''} bra DONE;
            SECOND: {first if self.early else ''}
            NEXT: {self.stage('%r8')} {turn}
            add.s32 %r8, %r8, 1; setp.lt.s32 %p2, %r8, {self.consumed}; @%p2 bra NEXT;
            sub.s32 %r4, %r4, 1; mad.lo.s32 %r6, %c, {self.readers}, %r4; shl.b32 %r6, %r6, 5; add.s32 %r6, %r6, %r3;
            {put('%f4', 'y', '%r6')}"""
        return text.replace("STAGES1", str(self.stages + 1)).replace("THREADS", str(32 * (1 + self.readers)))

    def kernel(self) -> Small:
        params = (("x", "ptr_in", "f32", ("n", "m", "32")), ("y", "ptr_out", "f32", ("n", str(self.readers), "32")))
        bounds = ("n >= 1", "n <= 1000", "m >= 1", "m <= 1000")
        return Small(self.body(), params, ("n", "m"), bounds, ("n",), 32 * (1 + self.readers))


def products(x: Any, n: Any, m: Any) -> dict[str, Any]:
    """Σ over tiles of x·mirror(x)."""
    return {"y": (x * x[:, :, ::-1]).sum(axis=1)[:, None, :]}


def twice(x: Any, n: Any, m: Any) -> dict[str, Any]:
    return {"y": np.stack([products(x, n, m)["y"][:, 0, :]] * 2, axis=1)}


@pytest.mark.parametrize("ring", [
    Ring(), Ring(stages=1), Ring(stages=3), Ring(stages=4), Ring(early=True), Ring(stages=3, early=True),
])
def test_rings(ring: Ring) -> None:
    assert proved(ring.kernel(), products)


def test_several_warps_read() -> None:
    assert proved(Ring(readers=2).kernel(), twice)


WRONG = [
    replace(Ring(), wait_empty=""), replace(Ring(), tell_empty=""), replace(Ring(), wait_empty="", tell_empty=""),
    replace(Ring(), tell_full=""), replace(Ring(), wait_full=""), replace(Ring(), wait_full="", tell_full=""),
    Ring(emptied="add.s32 %r11, %r9, 1;"), Ring(full="mov.u32 %r10, 1;"), Ring(emptied="mov.u32 %r11, 3;"),
    Ring(emptied="add.s32 %r11, %r9, 2;"), Ring(full="mov.u32 %r10, 1;", emptied="mov.u32 %r11, 1;"),
    Ring(full="add.s32 %r10, %r9, 0;"), Ring(full="add.s32 %r10, %r9, 15;"),
    Ring(wait_empty="bar.sync %r11, 32;"), Ring(tell_full="bar.arrive %r10, 96;"),
    Ring(tell_empty="bar.arrive %r11, 32;"),
    Ring(free_first=True), Ring(tell_first=True), Ring(early=True, free_first=True), Ring(early=True, tell_first=True),
    Ring(consumed="1"), Ring(produced="1"), Ring(wait_full="bar.arrive %r10, THREADS;"),
    Ring(wait_empty="bar.arrive %r11, THREADS;"), Ring(filled="0"), Ring(stages=3, full="and.b32 %r10, %r8, 1;"),
]


@pytest.mark.parametrize("ring", WRONG)
def test_wrong_rings_are_not_settled(ring: Ring) -> None:
    found = verdicts(ring.kernel(), products)
    assert not found.get("races") == found.get("barriers") == found.get("equivalence") == "PROVED"
    assert found["overall"] != "PROVED"


FIRST = "mov.f32 %f1, 0f00000000; mov.u32 %r20, smem;"


@pytest.mark.parametrize("access", ["st.shared.f32", "red.shared.add.f32"])
def test_what_comes_before_the_rings_is_ordered(access: str) -> None:
    """All threads write 0 to the first stage, or add 0 to it; without a barrier this may come after its filling."""
    start = f"{FIRST} st.shared.f32 [%r20], %f1; bar.sync 0; {access} [%r20], %f1;"
    assert proved(Ring(before=f"{start} bar.sync 0;").kernel(), products)
    assert not proved(Ring(before=start).kernel(), products)


@pytest.mark.parametrize("ring", [WRONG[k] for k in (0, 2, 5, 6, 10, 16, 17, 20)])
def test_wrong_rings_are_refuted(ring: Ring) -> None:
    kernel = ring.kernel()
    launch = load_launch({**kernel.manifest(), "sizes": {"n": [2, 1], "m": [7, 4]}})
    task = Task(resolve(load(kernel.ptx()), "k"), launch, products, kernel.ptx(), "k.ptx", {})
    report = prove(task, lambda stage: None)
    assert report.verdict.value == "REFUTED"
