"""Warp operations on symbolic values: shuffles, votes, matches, reductions, elections, warp barriers.

An operation is answered only when the lanes that execute it are exactly groups named by their member masks: all live
members active, with the same mask, under conditions alike in all of them. Anything else leaves a `divergence` hazard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import Elect, Float, Int, Match, Redux, Shuffle, Value, Vote
from warpproof.machine.exchange import shuffle_source
from warpproof.machine.mixing import permute
from warpproof.machine.trace import BarrierEvent, Hazard
from warpproof.terms import BoolVector, IntVector, Poly, Pred, const

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

_FULL: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Group:
    """Lanes that execute a warp operation together: `member[t, j]` when lane j of t's warp takes part with lane t,
    `leader[t]` the lowest of them, `whole` when every group is all live lanes of its warp."""

    member: BoolVector
    leader: IntVector
    whole: bool


def group(machine: SymbolicMachine, mask: Any, what: str) -> Group:
    """The groups of a member mask (None: all lanes of the warp). A lane that may be missing leaves a hazard."""
    n = machine.arena.lanes
    every = np.arange(n)
    warp, lane = every // 32 * 32, every % 32
    place = warp[:, None] + np.arange(32)
    live = place < n
    named = _named(machine, mask, what)
    member = (named[:, None] >> np.arange(32) & 1).astype(bool) & live
    at = np.minimum(place, n - 1)
    active = machine.path.mask
    together = active[at] & (named[at] == named[:, None])
    missing = active & (((member & ~together).any(axis=1)) | ~member[every, lane])
    leader = np.where(member.any(axis=1), warp + member.argmax(axis=1), every)
    leader = np.where(active, leader, every)
    if missing.any() or not machine.path.warp_uniform(leader):
        machine.trace.hazards.append(
            Hazard("divergence", f"{what}: its member mask names lanes that may not execute it", machine.current, None,
                   machine.path.condition())
        )
    if machine.path.loops:  # the loop's length decides later whether the lanes of a warp stay together
        machine.trace.barriers.append(BarrierEvent(machine.path.condition(), machine.current, warp=True))
    member = np.where(active[:, None], member & together, np.eye(32, dtype=bool)[lane])
    return Group(member, leader, bool((member == live)[active].all()))


def _named(machine: SymbolicMachine, mask: Any, what: str) -> IntVector:
    n = machine.arena.lanes
    if mask is None:
        return np.full(n, _FULL, np.int64)
    p = machine.dom.integers.poly(mask)
    if not p.is_constant():
        raise Unsupported(what, "a member mask that depends on a symbol")
    return p.lanes(n) & _FULL


def whole_warps(machine: SymbolicMachine, what: str) -> None:
    """Leave a hazard unless all lanes of each warp execute an `.aligned` operation together."""
    group(machine, None, what)


# ------------------------------------------------------------------ barrier, shuffle
def warp_sync(machine: SymbolicMachine, mask: Any) -> None:
    """`bar.warp.sync`: orders the group's accesses. Only barriers of whole warps count."""
    g = group(machine, mask, "bar.warp.sync")
    if g.whole and not machine.conditional():
        machine.shared.footprint.warp_barrier(machine.path.mask)


def shuffle(machine: SymbolicMachine, effect: Shuffle) -> tuple[Value, Pred]:
    """The source lane's value and the in-range predicate (PTX ISA, shfl.sync)."""
    g = group(machine, effect.mask, "shfl.sync")
    ints, n = machine.dom.integers, machine.arena.lanes
    lane: Any = effect.lane
    clamp: Any = effect.clamp
    value: Any = effect.value
    b, c = ints.poly(lane), ints.poly(clamp)
    if not (b.is_constant() and c.is_constant()):
        raise Unsupported("shfl.sync", "a symbolic lane operand")
    source, valid = shuffle_source(effect.mode, b.lanes(n), c.lanes(n))
    every, active = np.arange(n), machine.path.mask
    absent = active & ~g.member[every, source % 32]
    if absent.any():
        machine.trace.hazards.append(
            Hazard("divergence", "a shuffle reads a lane that does not take part", machine.current, None,
                   machine.path.condition())
        )
    source = np.where(active & ~absent, source, every)
    return permute(machine.dom, value, source), machine.arena.lane_mask(valid)


# ------------------------------------------------------------------ vote
def vote(machine: SymbolicMachine, effect: Vote) -> Any:
    """The vote over each group: a predicate, or the mask of a ballot (PTX ISA, vote.sync)."""
    arena = machine.arena
    g = group(machine, effect.mask, f"vote.{effect.mode}")
    p: Any = effect.predicate
    if effect.mode == "ballot":
        return _ballot(machine, g, p)
    match effect.mode:
        case "all":
            return _every(machine, g, p)
        case "any":
            return arena.negate(_every(machine, g, arena.negate(p)))
        case "uni":
            return arena.disj((_every(machine, g, p), _every(machine, g, arena.negate(p))))
    raise Unsupported(f"vote.{effect.mode}", "unknown mode")


def _places(g: Group) -> list[tuple[BoolVector, IntVector]]:
    """For each lane number j: which lanes have j in their group, and the source lane (their own where not)."""
    n = len(g.leader)
    every = np.arange(n)
    warp = every // 32 * 32
    out = []
    for j in range(32):
        inside = g.member[:, j]
        if inside.any():
            out.append((inside, np.where(inside, warp + j, every)))
    return out


def _every(machine: SymbolicMachine, g: Group, p: Pred) -> Pred:
    """p in all lanes of the group."""
    arena = machine.arena
    flat = arena.mask_of(p)
    if flat is not None:
        good = [np.where(inside, flat[source], True) for inside, source in _places(g)]
        return arena.lane_mask(np.logical_and.reduce(good))
    if arena.permutation_map(g.leader).pred(p) is p:
        return p
    return arena.conj(arena.permutation_map(source).pred(p) for _, source in _places(g))


def _ballot(machine: SymbolicMachine, g: Group, p: Pred) -> Value:
    arena = machine.arena
    flat = arena.mask_of(p)
    word = Poly({})
    alike = flat is None and arena.permutation_map(g.leader).pred(p) is p
    if alike:
        bits = (g.member.astype(np.int64) << np.arange(32)).sum(axis=1)
        return Int(32, machine.dom.integers.merge(p, const(bits), const(0)))
    for inside, source in _places(g):
        j = int(source[int(np.argmax(inside))]) % 32
        if flat is not None:
            word = word + const(np.where(inside & flat[source], 1 << j, 0))
        else:
            bit = const(np.where(inside, 1 << j, 0))
            word = word + machine.dom.integers.merge(arena.permutation_map(source).pred(p), bit, const(0))
    return Int(32, word)


# ------------------------------------------------------------------ match, redux, elect, activemask
def match(machine: SymbolicMachine, effect: Match) -> tuple[Value, Pred]:
    """The members with the same value and whether all have it (PTX ISA, match.sync); values equal in every lane of a
    group, or constant."""
    g = group(machine, effect.mask, "match.sync")
    value: Any = effect.value
    p = machine.dom.integers.poly(value)
    everyone = (g.member.astype(np.int64) << np.arange(32)).sum(axis=1)
    if not p.is_constant():
        if machine.arena.permutation_map(g.leader).poly(p) != p:
            raise Unsupported(f"match.{effect.mode}", "symbolic values that differ by lane")
        return Int(32, const(everyone)), machine.arena.true
    v = p.lanes(machine.arena.lanes) & ((1 << effect.type.width) - 1 if effect.type.width < 64 else -1)
    same = np.zeros_like(everyone)
    for inside, source in _places(g):
        j = int(source[int(np.argmax(inside))]) % 32
        same |= np.where(inside & (v[source] == v), 1 << j, 0)
    agree = same == everyone
    if effect.mode == "any":
        return Int(32, const(same)), machine.arena.lane_mask(agree)
    return Int(32, const(np.where(agree, everyone, 0))), machine.arena.lane_mask(agree)


def redux(machine: SymbolicMachine, effect: Redux) -> Value:
    """The reduction of a value over each group, the same in all its lanes (PTX ISA, redux.sync)."""
    g = group(machine, effect.mask, f"redux.sync.{effect.op}")
    value: Any = effect.value
    ty = effect.type
    places = _places(g)
    if ty.floating:
        if effect.op not in ("min", "max"):
            raise Unsupported(f"redux.sync.{effect.op}.{ty}", "no such reduction")
        x = machine.dom.real(value, ty)
        moved = [machine.arena.permute(x, source, lazy=True) for _, source in places]
        return Float(ty.kind, ty.width, reduce(lambda a, b: machine.arena.combine(effect.op, a, b), moved))
    p = machine.dom.integers.poly(value)
    if effect.op in ("and", "or", "min", "max") and machine.arena.permutation_map(g.leader).poly(p) == p:
        return Int(32, p)
    if effect.op == "add":
        total = Poly({})
        for inside, source in places:
            total = total + machine.arena.permutation_map(source).poly(p) * inside.astype(np.int64)
        return Int(32, total)
    step: Callable[[Value, Value], Value]
    step = lambda a, b: machine.dom.integer(effect.op, ty, a, b)  # type: ignore[arg-type]  # noqa: E731
    if effect.op == "xor":
        if not p.is_constant():
            raise Unsupported("redux.sync.xor", "symbolic values")
        v = p.lanes(machine.arena.lanes)
        words: list[Value] = [Int(32, const(np.where(inside, v[source], 0))) for inside, source in places]
        return reduce(step, words)
    moved_words: list[Value] = [permute(machine.dom, Int(32, p), source) for _, source in places]
    return reduce(step, moved_words)


def elect(machine: SymbolicMachine, effect: Elect) -> tuple[Value, Pred]:
    """The lowest lane of each group, as leader, and whether the lane is it (PTX ISA, elect.sync)."""
    g = group(machine, effect.mask, "elect.sync")
    machine.assume("elect", "elect.sync elects the lowest lane of its member mask",
                   "PTX ISA, elect.sync: the elected lane is deterministic but unspecified")
    every = np.arange(machine.arena.lanes)
    return Int(32, const(g.leader % 32)), machine.arena.lane_mask(g.leader == every)


def active_mask(machine: SymbolicMachine) -> Value:
    """All live lanes of the warp, where they execute this together."""
    path = machine.path
    every = np.arange(machine.arena.lanes)
    if not path.mask.all() or not path.warp_uniform(every // 32 * 32):
        raise Unsupported("activemask", "in code that not all lanes of the warp execute")
    machine.assume("converged", "lanes of a warp that all execute activemask execute it together",
                   "PTX ISA, activemask: only the lanes that happen to be active are reported")
    live = np.minimum(machine.arena.lanes - every // 32 * 32, 32)
    return Int(32, const((np.int64(1) << live) - 1))
