"""`cp.async` on symbolic values: what is copied, and when it may be read."""

from __future__ import annotations

import pytest
from warp_kernels import WarpKernel, store_words

_SETUP = """
mul.wide.u32 %d0, %t, 16; add.s64 %d1, %a, %d0; shl.b32 %r0, %t, 4; add.s32 %r1, %s, %r0;
xor.b32 %r2, %t, 33; shl.b32 %r2, %r2, 4; add.s32 %r3, %s, %r2;
"""
_READ = "ld.shared.b32 %r10, [%r3]; ld.shared.b32 %r11, [%r3+12];" + store_words(["%r10", "%r11"])
_COPY = "cp.async.cg.shared.global [%r1], [%d1], 16;"
_DONE = "cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;"


def _kernel(code: str, dtype: str = "f32", n: tuple[int, ...] = (0, 3, 5, 40, 64)) -> WarpKernel:
    return WarpKernel(code, {"a": dtype, "o": dtype}, n=n)


@pytest.mark.parametrize("copy", [
    _COPY,
    "cp.async.ca.shared.global [%r1], [%d1], 8; cp.async.ca.shared.global [%r1+8], [%d1+8], 4; "
    "cp.async.ca.shared.global [%r1+12], [%d1+12], 4;",
])
@pytest.mark.parametrize("wait", [
    "cp.async.commit_group; cp.async.wait_group 0;", "cp.async.wait_all;",
    "cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;",
])
def test_copies_arrive(copy: str, wait: str) -> None:
    _kernel(_SETUP + copy + wait + "bar.sync 0;" + _READ).agrees(128)


@pytest.mark.parametrize(("dtype", "elements"), [("f32", 128), ("f16", 256)])
def test_bytes_from_the_source_size_on_are_zero(dtype: str, elements: int) -> None:
    """Threads below n copy everything, the others nothing; and 4 bytes of the last lane of a quad."""
    size = "setp.lt.s32 %p1, %t, %n; setp.lt.s32 %p2, %n, 40; selp.b32 %r4, 16, 0, %p1; selp.b32 %r5, %r4, 12, %p2;"
    copy = "cp.async.cg.shared.global [%r1], [%d1], 16, %r5;"
    _kernel(_SETUP + size + copy + _DONE + _READ, dtype).agrees(elements)


def test_a_predicated_copy_keeps_what_was_there() -> None:
    fill = "st.shared.v4.b32 [%r1], {%t, %t, %t, %t}; bar.sync 0; setp.lt.s32 %p1, %t, %n;"
    _kernel(_SETUP + fill + f"@%p1 {_COPY}" + _DONE + _READ, "i32").agrees(128)


@pytest.mark.parametrize(("steps", "racy"), [
    (_COPY + _DONE, False),
    (_COPY + "cp.async.commit_group; bar.sync 0;", True),  # never waited for
    (_COPY + "cp.async.wait_group 0; bar.sync 0;", True),  # not committed
    (_COPY + "cp.async.commit_group; cp.async.wait_group 1; bar.sync 0;", True),  # the last group may be pending
    (_COPY + "cp.async.commit_group; bar.sync 0; cp.async.wait_group 0;", True),  # arrives after the barrier
    (_COPY + "cp.async.commit_group; setp.lt.s32 %p1, %n, 9; @%p1 cp.async.wait_group 0; bar.sync 0;", True),
    (_COPY + "setp.lt.s32 %p1, %n, 9; @%p1 cp.async.commit_group; cp.async.wait_group 0; bar.sync 0;", True),
    (_COPY + "cp.async.commit_group; setp.lt.s32 %p1, %n, 9; @%p1 bra SKIP; cp.async.wait_group 0; SKIP: bar.sync 0;",
     True),
    (_COPY + "cp.async.commit_group; setp.lt.s32 %p1, %t, %n; @%p1 bra SKIP; cp.async.wait_group 0; SKIP: bar.sync 0;",
     True),
    ("setp.lt.s32 %p1, %n, 9; @%p1 bra SKIP;" + _COPY
     + "cp.async.commit_group; SKIP: cp.async.wait_group 0; bar.sync 0;", False),
    (_COPY + "ld.shared.b32 %r20, [%r1];" + _DONE, True),  # read by the issuing thread before it waits
    (_COPY + "st.shared.b32 [%r1], %t;" + _DONE, True),
    (_COPY + _COPY + _DONE, True),  # two copies into one place
])
def test_every_access_before_the_wait_and_a_barrier_races(steps: str, racy: bool) -> None:
    hazards = _kernel(_SETUP + steps + _READ).hazards()
    assert ("race" in hazards) is racy


_LOOP = """
mov.b32 %r20, 0; mov.f32 %f1, 0f00000000;
cp.async.cg.shared.global [%r1], [%d1], 16; cp.async.commit_group;
LOOP:
add.s32 %r21, %r20, 1;
cp.async.wait_group 0; bar.sync 0;
ld.shared.f32 %f0, [%r3]; add.f32 %f1, %f1, %f0;
BARRIER
cp.async.cg.shared.global [%r1], [%d1], 16; cp.async.commit_group;
mov.b32 %r20, %r21; setp.lt.s32 %p1, %r20, %n; @%p1 bra LOOP;
cp.async.wait_group 0;
"""


def test_copies_carried_around_a_loop() -> None:
    def hazards(loop: str) -> set[str]:
        return WarpKernel(_SETUP + loop + store_words(["%f1"]), {"a": "f32", "o": "f32"}).hazards()

    assert "race" not in hazards(_LOOP.replace("BARRIER", "bar.sync 0;"))
    assert "race" in hazards(_LOOP.replace("BARRIER", ""))
    late = _LOOP.replace("BARRIER", "bar.sync 0;").replace("cp.async.wait_group 0; bar.sync 0;",
                                                           "cp.async.wait_group 1; bar.sync 0;")
    assert "race" in hazards(late)
    WarpKernel(_SETUP + _LOOP.replace("BARRIER", "bar.sync 0;") + store_words(["%f1"]), {"a": "f32", "o": "f32"},
               n=(0, 1, 2, 7)).agrees(64)


def test_a_source_that_the_kernel_writes_is_not_modelled() -> None:
    from warpproof.core import Unsupported

    code = _SETUP.replace("%a", "%o") + _COPY + _DONE + _READ
    with pytest.raises(Unsupported, match=r"cp\.async"):
        WarpKernel(code, {"o": "f32"}).run()
