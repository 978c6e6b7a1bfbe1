"""What loops carry into each other: sums inside sums, and registers as the iteration before left them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from proof_cases import Small, element, proved, put, vector, verdicts, word

ONE = {"preconditions": ("n >= 1", "n <= 10000"), "grid": ("1",)}
SQUARE = (("x", "ptr_in", "f32", ("n", "n")), vector("z"), vector("u"), vector("y", "ptr_out"))
FIRST = "setp.ne.s32 %p9, %t, 0; @%p9 bra DONE; mov.u32 %r1, 0; mov.f32 %f1, 0f00000000;"


def scaled_sums(inner: str, after: str) -> Small:
    """y[i] is a sum over j of sums over k, times the sum of z before i; one thread, three loops."""
    return Small(f"""{FIRST}
        I: mov.f32 %f2, 0f00000000; mov.u32 %r2, 0;
        J: mov.f32 %f5, 0f00000000; mov.u32 %r3, 0;
        K: mad.lo.s32 %r4, %r2, %i_n, %r3; {element('%f3', 'x', '%r4')} {inner}
        add.s32 %r3, %r3, 1; setp.lt.s32 %p1, %r3, %i_n; @%p1 bra K; {after}
        add.s32 %r2, %r2, 1; setp.lt.s32 %p2, %r2, %i_n; @%p2 bra J;
        {put('%f2', 'y', '%r1')} {element('%f4', 'z', '%r1')} add.f32 %f1, %f1, %f4;
        add.s32 %r1, %r1, 1; setp.lt.s32 %p3, %r1, %i_n; @%p3 bra I;""", SQUARE, **ONE)  # type: ignore[arg-type]


def nested(weight: Any, row: Any) -> Any:
    """The same in Python: x at row(j, k) and column k, weighted by weight(u, j)."""
    def reference(x: Any, z: Any, u: Any, n: Any) -> dict[str, Any]:
        y, s = np.zeros(n), 0.0
        for i in range(n):
            total = 0.0
            for j in range(n):
                inner = 0.0
                for k in range(n):
                    inner = inner + x[row(j, k), k] * s
                total = total + weight(u, j) * inner
            y[i] = total
            s = s + z[i]
        return {"y": y}

    return reference


def test_sums_in_sums_keep_their_variables_apart() -> None:
    """The sum of z before i is put into both sums over x, and raises the inner one to the outer one's height."""
    straight = scaled_sums("fma.rn.f32 %f2, %f3, %f1, %f2;", "")
    assert proved(straight, nested(lambda u, j: 1.0, lambda j, k: j))
    weight = f"{element('%f6', 'u', '%r2')} fma.rn.f32 %f2, %f6, %f5, %f2;"
    weighted = scaled_sums("fma.rn.f32 %f5, %f3, %f1, %f5;", weight)
    assert not proved(weighted, nested(lambda u, j: u[j], lambda j, k: k))  # the diagonal of x


# ---------------------------------------------------------------------- what the iteration before left
def signs(early: bool) -> Small:
    """Whether the sum so far is positive, stored in the iteration that asks or in the next one."""
    store = f"setp.ge.s32 %p7, %r2, 1; selp.f32 %f5, 0f3F800000, 0f00000000, %p7; {put('%f5', 'y', '%r1')}"
    ask = "setp.gt.f32 %p1, %f1, 0f00000000; selp.u32 %r2, 1, 0, %p1;"
    return Small(f"""{FIRST} mov.u32 %r2, 0;
        L: {store if early else ask} {ask if early else store} {element('%f2', 'x', '%r1')} add.f32 %f1, %f1, %f2;
        add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %i_n; @%p2 bra L;""",
                 (vector("x"), vector("y", "ptr_out")), grid=("1",))


def positive_before(x: Any, n: Any) -> dict[str, Any]:
    y, s = np.zeros(n), 0.0
    for i in range(n):
        y[i] = np.where(s > 0.0, 1.0, 0.0)
        s = s + x[i]
    return {"y": y}


def positive_after_the_first(x: Any, n: Any) -> dict[str, Any]:
    return {"y": np.where(np.arange(n) > 0, positive_before(x, n)["y"], 0.0)}


@pytest.mark.parametrize("reference", [positive_before, positive_after_the_first])
def test_a_choice_by_a_running_sum_is_of_its_own_iteration(reference: Any) -> None:
    """The integer is chosen by a float that the loop carries, which is another one an iteration later."""
    assert verdicts(signs(early=True), reference)["overall"] != "PROVED"
    if reference is positive_before:
        assert proved(signs(early=False), reference)


# ---------------------------------------------------------------------- loops that are not entered
def refilled(far: int, sync: str) -> Small:
    """A cell of shared memory is filled, refilled in each of n iterations, and stored after the loop."""
    return Small(f"""{word('%r10', '%t')} {element('%f1', 'x', '%g')} st.shared.f32 [%r10], %f1;
        xor.b32 %r12, %t, {far}; {word('%r11', '%r12')}
        mov.f32 %f5, 0f00000000; mov.u32 %r1, 0; setp.ge.s32 %p1, %r1, %i_n; @%p1 bra E;
        L: ld.shared.f32 %f2, [%r10]; add.f32 %f5, %f5, %f2; {sync}
        {element('%f3', 'w', '%t')} st.shared.f32 [%r10], %f3; {sync}
        add.s32 %r1, %r1, 1; setp.lt.s32 %p2, %r1, %i_n; @%p2 bra L;
        E: bar.sync 0; ld.shared.f32 %f4, [%r11]; {put('%f4', 'y', '%g')}""",
                 (("x", "ptr_in", "f32", ("b", "64")), ("w", "ptr_in", "f32", ("64",)),
                  ("y", "ptr_out", "f32", ("b", "64"))), ("b", "n"),
                 ("b >= 1", "b <= 1000", "n >= 0", "n <= 1000"), ("b",))


@pytest.mark.parametrize("sync", ["", "bar.sync 0;"])
def test_a_cell_keeps_its_contents_where_the_loop_is_not_entered(sync: str) -> None:
    plain, turned = refilled(0, sync), refilled(63, sync)

    def always(x: Any, w: Any, b: Any, n: Any) -> dict[str, Any]:
        return {"y": np.zeros((b, 64)) + w[None, :]}

    def entered(x: Any, w: Any, b: Any, n: Any) -> dict[str, Any]:
        return {"y": np.where(n > 0, np.zeros((b, 64)) + w[None, :], x)}

    assert not proved(plain, always)
    assert proved(plain, entered)
    assert not proved(turned, lambda x, w, b, n: {"y": always(x, w, b, n)["y"][:, ::-1]})
    assert proved(turned, lambda x, w, b, n: {"y": entered(x, w, b, n)["y"][:, ::-1]})


# ---------------------------------------------------------------------- what does not close
def squared(head: str, name: str, counters: tuple[str, str]) -> str:
    """%f10 goes through squares of itself in a loop inside a loop, which have no closed form."""
    i, j = counters
    return f"""mov.u32 {i}, 0; {name}: {head} mov.u32 {j}, 0; {name}I: {element('%f2', 'x', j)}
        fma.rn.f32 %f10, %f10, %f10, %f2; add.s32 {j}, {j}, 1; setp.lt.s32 %p1, {j}, %i_n; @%p1 bra {name}I;
        add.s32 {i}, {i}, 1; setp.lt.s32 %p2, {i}, %i_n; @%p2 bra {name};"""


def test_values_that_do_not_close_are_not_compared() -> None:
    """%f12 is %f10 in one loop, which is not what %f10 is in another."""
    asked = f"setp.lt.f32 %p5, %f12, %f10; selp.f32 %f5, 0f3F800000, 0f00000000, %p5; {put('%f5', 'y', '%r3')}"
    kernel = Small(f"""{FIRST} mov.f32 %f10, 0f00000000; {squared('mov.f32 %f12, %f10;', 'A', ('%r1', '%r2'))}
        {squared(asked, 'B', ('%r3', '%r4'))}""", (vector("x"), vector("y", "ptr_out")), **ONE)  # type: ignore[arg-type]
    assert not proved(kernel, lambda x, n: {"y": np.zeros(n)})


@pytest.mark.parametrize(("condition", "good"), [("%f10", False), ("%f11", True)])
def test_a_barrier_under_a_value_that_does_not_close(condition: str, good: bool) -> None:
    """Each lane has a value of its own."""
    kernel = Small(f"""mov.f32 %f10, 0f00000000; mov.u32 %r2, 0; mov.u32 %r3, 0; {element('%f11', 'x', '%r3')}
        L: {element('%f2', 'x', '%t')} fma.rn.f32 %f10, %f10, %f10, %f2;
        add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, %i_n; @%p1 bra L;
        setp.lt.f32 %p2, {condition}, 0f00000000; @%p2 bra X; bar.sync 0;
        X: mov.f32 %f5, 0f00000000; {put('%f5', 'y', '%t')}""",
                   (vector("x", size="64"), vector("y", "ptr_out", size="64")), **ONE)  # type: ignore[arg-type]
    assert (verdicts(kernel, lambda x, n: {"y": np.zeros(64)})["barriers"] == "PROVED") == good


def test_values_that_do_not_close_are_not_alike_in_lanes() -> None:
    """All lanes store to one cell, each a value of its own."""
    kernel = Small(f"""mov.f32 %f10, 0f00000000; mov.u32 %r2, 0;
        L: {element('%f2', 'x', '%t')} fma.rn.f32 %f10, %f10, %f10, %f2;
        add.s32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, %i_n; @%p1 bra L;
        mov.u32 %r3, smem; st.shared.f32 [%r3], %f10; mov.f32 %f5, 0f00000000; {put('%f5', 'y', '%t')}""",
                   (vector("x", size="64"), vector("y", "ptr_out", size="64")), **ONE)  # type: ignore[arg-type]
    assert verdicts(kernel, lambda x, n: {"y": np.zeros(64)})["races"] != "PROVED"
