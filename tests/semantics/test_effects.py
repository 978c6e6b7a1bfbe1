"""The effect records of memory, synchronisation, warp and matrix instructions."""

from __future__ import annotations

import numpy as np
import pytest
from instances import instruction, reg
from rule_runner import LANES, Runner

from warpproof.core import Unsupported
from warpproof.domains import (
    AsyncCopy,
    AsyncGroup,
    Atomic,
    Barrier,
    Cvta,
    Effect,
    Elect,
    Fence,
    FloatMode,
    GridDependency,
    Load,
    MatrixLoad,
    MatrixMultiply,
    MatrixStore,
    Redux,
    Shuffle,
    Store,
    Vote,
    WarpSync,
)  # fmt: skip
from warpproof.isa import scalar
from warpproof.ptx import syntax
from warpproof.semantics import bind

R = [reg(f"%r{k}") for k in range(8)]
ADDRESS = syntax.Address(reg("%rd1"), 0)
WORD = np.arange(LANES, dtype=np.uint32)
ADDR = np.arange(LANES, dtype=np.uint64) * 4
FLAG = np.array([True, False, True, True])


def effect_of(opcode: str, operands: tuple[syntax.Operand, ...], args: tuple[object, ...]) -> Effect:
    runner = Runner()
    runner.run(bind(instruction(opcode, *operands)), args)
    (effect,) = runner.effects
    return effect


@pytest.mark.parametrize(("opcode", "space", "semantics", "scope", "cache"), [
    ("ld.b32", "generic", "weak", "", ()), ("ld.global.nc.b32", "global", "weak", "", ("nc",)),
    ("ld.shared::cta.b32", "shared", "weak", "", ()), ("ld.param::func.b32", "param", "weak", "", ()),
    ("ld.volatile.global.b32", "global", "volatile", "", ()),
    ("ld.relaxed.sys.global.b32", "global", "relaxed", "sys", ()),
    ("ld.acquire.gpu.b32", "generic", "acquire", "gpu", ()), ("ld.mmio.relaxed.sys.b32", "generic", "mmio", "sys", ()),
    ("ld.global.cg.b32", "global", "weak", "", ("cg",)),
    ("ld.mmio.relaxed.sys.global.b32", "global", "mmio", "sys", ()),
])  # fmt: skip
def test_loads(opcode: str, space: str, semantics: str, scope: str, cache: tuple[str, ...]) -> None:
    effect = effect_of(opcode, (R[0], ADDRESS), (ADDR,))
    assert isinstance(effect, Load)
    assert (effect.space, effect.semantics, effect.scope, effect.cache) == (space, semantics, scope, cache)
    assert (effect.type, effect.count) == (scalar("b32"), 1)
    assert effect.address is ADDR


def test_vector_loads_answer_a_tuple() -> None:
    runner = Runner()
    bound = bind(instruction("ld.global.v4.f32", syntax.Vector(tuple(R[:4])), ADDRESS))
    ((a, b, c, d),) = runner.run(bound, (ADDR,))
    (effect,) = runner.effects
    assert isinstance(effect, Load)
    assert (effect.count, str(effect.type)) == (4, "f32")
    assert all(x.dtype == np.uint32 for x in (a, b, c, d))


@pytest.mark.parametrize(("opcode", "space", "semantics", "scope"), [
    ("st.b32", "generic", "weak", ""), ("st.volatile.global.b32", "global", "volatile", ""),
    ("st.release.gpu.global.b32", "global", "release", "gpu"), ("st.shared.b32", "shared", "weak", ""),
    ("st.global.gpu.relaxed.b32", "global", "relaxed", "gpu"),
])  # fmt: skip
def test_stores(opcode: str, space: str, semantics: str, scope: str) -> None:
    effect = effect_of(opcode, (ADDRESS, R[0]), (ADDR, WORD))
    assert effect == Store(space, scalar("b32"), (WORD,), ADDR, semantics, scope)


def test_vector_stores_list_their_elements() -> None:
    effect = effect_of("st.global.v2.b32", (ADDRESS, syntax.Vector((R[0], R[1]))), (ADDR, (WORD, WORD)))
    assert isinstance(effect, Store)
    assert effect.values == (WORD, WORD)


def test_a_vector_of_one_element_is_its_element() -> None:
    runner = Runner()
    one = syntax.Vector((R[0],))
    ((value,),) = runner.run(bind(instruction("ld.global.b32", one, ADDRESS)), (ADDR,))
    assert value.dtype == np.uint32
    assert runner.run(bind(instruction("st.global.b32", ADDRESS, one)), (ADDR, (WORD,))) == ()
    load, store = runner.effects
    assert isinstance(load, Load)
    assert load.count == 1
    assert isinstance(store, Store)
    assert store.values == (WORD,)
    assert bind(instruction("mov.b32", R[1], one)).apply(runner.dom, ((WORD,),)) == (WORD,)


@pytest.mark.parametrize(("opcode", "op", "space", "semantics", "scope", "ftz"), [
    ("atom.add.f32", "add", "generic", "relaxed", "gpu", False),
    ("atom.global.add.f32", "add", "global", "relaxed", "gpu", True),
    ("atom.global.gpu.acq_rel.add.f32", "add", "global", "acq_rel", "gpu", True),
    ("atom.shared.cta.max.u32", "max", "shared", "relaxed", "cta", False),
    ("atom.release.sys.inc.u32", "inc", "generic", "release", "sys", False),
])  # fmt: skip
def test_atomics(opcode: str, op: str, space: str, semantics: str, scope: str, ftz: bool) -> None:
    effect = effect_of(opcode, (R[0], ADDRESS, R[1]), (ADDR, WORD))
    ty = scalar(opcode.rsplit(".", 1)[1])
    assert effect == Atomic(op, space, ty, ADDR, (WORD,), semantics, scope, True, FloatMode(ftz=ftz))


def test_compare_and_swap_and_reductions() -> None:
    cas = effect_of("atom.acquire.global.cas.b32", (R[0], ADDRESS, R[1], R[2]), (ADDR, WORD, WORD))
    assert isinstance(cas, Atomic)
    assert (cas.op, cas.args, cas.returns, cas.semantics) == ("cas", (WORD, WORD), True, "acquire")
    red = effect_of("red.global.add.u32", (ADDRESS, R[0]), (ADDR, WORD))
    assert isinstance(red, Atomic)
    assert (red.op, red.returns) == ("add", False)


@pytest.mark.parametrize(("opcode", "kind", "counted", "aligned"), [
    ("bar.sync", "sync", False, True), ("bar.sync", "sync", True, True), ("barrier.sync", "sync", False, False),
    ("barrier.cta.sync.aligned", "sync", True, True), ("bar.arrive", "arrive", True, True),
    ("barrier.arrive", "arrive", True, False),
])  # fmt: skip
def test_barriers(opcode: str, kind: str, counted: bool, aligned: bool) -> None:
    operands = (R[0], R[1]) if counted else (R[0],)
    effect = effect_of(opcode, operands, (WORD,) * len(operands))
    assert effect == Barrier(kind, WORD, WORD if counted else None, aligned)


@pytest.mark.parametrize("count", [False, True])
def test_barrier_reductions(count: bool) -> None:
    middle = (R[2],) if count else ()
    args = (WORD, WORD, FLAG) if count else (WORD, FLAG)
    effect = effect_of("bar.red.popc.u32", (R[0], R[1], *middle, reg("%p1")), args)
    assert effect == Barrier("red", WORD, WORD if count else None, True, "popc", FLAG)
    effect = effect_of("barrier.red.and.pred", (reg("%p0"), R[1], *middle, reg("%p1")), args)
    assert effect == Barrier("red", WORD, WORD if count else None, False, "and", FLAG)


@pytest.mark.parametrize(("opcode", "expected"), [
    ("membar.gl", Fence("sc", "gpu", "")), ("membar.cta", Fence("sc", "cta", "")),
    ("fence.gpu", Fence("acq_rel", "gpu", "")),
    ("fence.sc.sys", Fence("sc", "sys", "")), ("fence.acquire.cluster", Fence("acquire", "cluster", "")),
    ("fence.proxy.async.shared::cta", Fence("", "", "async.shared::cta")),
    ("fence.proxy.alias", Fence("", "", "alias")),
    ("fence.mbarrier_init.release.cluster", Fence("release", "cluster", "mbarrier_init")),
    ("griddepcontrol.wait", GridDependency("wait")), ("cp.async.commit_group", AsyncGroup("commit")),
    ("cp.async.wait_all", AsyncGroup("wait_all")),
])  # fmt: skip
def test_fences_and_waits(opcode: str, expected: Effect) -> None:
    assert effect_of(opcode, (), ()) == expected


def test_wait_group_takes_its_count_from_the_text() -> None:
    assert effect_of("cp.async.wait_group", (syntax.Immediate(3),), ()) == AsyncGroup("wait", 3)
    assert effect_of("cp.async.wait_group", (syntax.Immediate(0),), ()) == AsyncGroup("wait", 0)


def test_asynchronous_copies() -> None:
    size = syntax.Immediate(16)
    plain = effect_of("cp.async.cg.shared.global", (ADDRESS, ADDRESS, size), (ADDR, ADDR))
    assert plain == AsyncCopy(ADDR, ADDR, 16, None, None, "cg")
    partial = effect_of("cp.async.ca.shared.global", (ADDRESS, ADDRESS, syntax.Immediate(4), R[0]), (ADDR, ADDR, WORD))
    assert partial == AsyncCopy(ADDR, ADDR, 4, WORD, None, "ca")
    hinted = effect_of("cp.async.cg.shared.global.L2::cache_hint", (ADDRESS, ADDRESS, size, R[0]), (ADDR, ADDR, ADDR))
    assert hinted == AsyncCopy(ADDR, ADDR, 16, None, None, "cg")
    with pytest.raises(Unsupported, match="cp-size 8"):
        effect_of("cp.async.cg.shared.global", (ADDRESS, ADDRESS, syntax.Immediate(8)), (ADDR, ADDR))


def test_warp_communication() -> None:
    assert effect_of("shfl.sync.down.b32", tuple(R[:5]), (WORD,) * 4) == Shuffle("down", WORD, WORD, WORD, WORD)
    assert effect_of("vote.sync.ballot.b32", tuple(R[:3]), (FLAG, WORD)) == Vote("ballot", FLAG, WORD)
    assert effect_of("vote.sync.all.pred", tuple(R[:3]), (FLAG, WORD)) == Vote("all", FLAG, WORD)
    assert effect_of("bar.warp.sync", (R[0],), (WORD,)) == WarpSync(WORD)
    assert effect_of("redux.sync.add.s32", tuple(R[:3]), (WORD, WORD)) == Redux("add", scalar("s32"), WORD, WORD)
    elect = effect_of("elect.sync", (syntax.Pair(R[0], reg("%p1")), R[1]), (WORD,))
    assert elect == Elect(WORD)


def test_shuffle_without_a_predicate_gives_the_value_alone() -> None:
    runner = Runner()
    (value,) = runner.run(bind(instruction("shfl.sync.idx.b32", *R[:5])), (WORD,) * 4)
    assert value.dtype == np.uint32
    ((value, flag),) = runner.run(bind(instruction("shfl.sync.idx.b32", syntax.Pair(R[0], R[1]), *R[:4])), (WORD,) * 4)
    assert flag.dtype == np.bool_


def test_redux_of_magnitudes_clears_the_sign_first() -> None:
    negative = np.full(LANES, 0xC0000000, np.uint32)
    effect = effect_of("redux.sync.max.abs.NaN.f32", tuple(R[:3]), (negative, WORD))
    assert isinstance(effect, Redux)
    assert isinstance(effect.value, np.ndarray)
    assert effect.value.tolist() == [0x40000000] * LANES
    assert effect.mode.nan


def test_address_conversion() -> None:
    assert effect_of("cvta.to.global.u64", (R[0], R[1]), (ADDR,)) == Cvta("global", True, ADDR)
    assert effect_of("cvta.shared.u64", (R[0], R[1]), (ADDR,)) == Cvta("shared", False, ADDR)


@pytest.mark.parametrize("order", ["m8n8.x4.trans", "x4.trans.m8n8"])
def test_matrix_loads(order: str) -> None:
    effect = effect_of(f"ldmatrix.sync.aligned.{order}.shared.b16", (syntax.Vector(tuple(R[:4])), ADDRESS), (ADDR,))
    assert effect == MatrixLoad(4, True, ADDR)


def test_matrix_stores_and_products() -> None:
    store = effect_of("stmatrix.sync.aligned.m8n8.x1.shared.b16", (ADDRESS, syntax.Vector((R[0],))), (ADDR, (WORD,)))
    assert store == MatrixStore(1, False, ADDR, (WORD,))
    four, two = syntax.Vector(tuple(R[:4])), syntax.Vector(tuple(R[:2]))
    args = ((WORD,) * 4, (WORD,) * 2, (WORD,) * 4)
    mma = effect_of("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", (four, four, two, four), args)
    assert isinstance(mma, MatrixMultiply)
    assert (mma.shape, str(mma.a_type), str(mma.d_type)) == ((16, 8, 16), "bf16", "f32")
    assert (len(mma.a), len(mma.b), len(mma.c)) == (4, 2, 4)
