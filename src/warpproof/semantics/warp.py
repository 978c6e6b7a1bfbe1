"""Warp-wide communication (PTX ISA 9.7.9.6, 9.7.13.8 to .14); the machine holds the other lanes' values."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from warpproof.domains import ActiveMask, Domain, Elect, FloatMode, Match, P, Redux, Shuffle, V, Vote
from warpproof.semantics.binding import Mods
from warpproof.semantics.registry import rule


def _anchor(name: str) -> str:
    return f"parallel-synchronization-and-communication-instructions-{name}"


_SHFL = "data-movement-and-conversion-instructions-shfl"


@rule("shfl.sync.mode.b32 d[|p], a, b, c, mask", manual=f"{_SHFL}-sync", mode="up down bfly idx")
@rule("shfl.mode.b32 d[|p], a, b, c", manual=_SHFL, mode="up down bfly idx")
def shfl(dom: Domain[V, P], m: Mods, a: V, b: V, c: V, mask: V | None = None) -> Generator[Shuffle, Any, tuple[V, P]]:
    """The value of another lane and whether that lane is in range; c holds the clamp and the segment mask."""
    value, in_range = yield Shuffle(m["mode"], a, b, c, mask)
    return value, in_range


@rule("vote.sync.mode.pred d, a, mask:b32", manual=_anchor("vote-sync"), mode="all any uni")
@rule("vote.mode.pred d, a", manual=_anchor("vote"), mode="all any uni")
def vote(dom: Domain[V, P], m: Mods, a: P, mask: V | None = None) -> Generator[Vote, Any, P]:
    """True in every lane when a holds in all, in any, or equally in all lanes of the mask."""
    answer: P = yield Vote(m["mode"], a, mask)
    return answer


@rule("vote.sync.ballot.b32 d, a:pred, mask", manual=_anchor("vote-sync"))
@rule("vote.ballot.b32 d, a:pred", manual=_anchor("vote"))
def vote_ballot(dom: Domain[V, P], m: Mods, a: P, mask: V | None = None) -> Generator[Vote, Any, V]:
    """The mask of lanes where a holds."""
    answer: V = yield Vote("ballot", a, mask)
    return answer


@rule("match.any.sync.type d:b32, a, mask:b32", manual=_anchor("match-sync"), type="b32 b64")
def match_any(dom: Domain[V, P], m: Mods, a: V, mask: V) -> Generator[Match, Any, V]:
    """The mask of lanes that hold the same value."""
    found, _ = yield Match("any", m.ty, a, mask)
    answer: V = found
    return answer


@rule("match.all.sync.type d[|p]:b32, a, mask:b32", manual=_anchor("match-sync"), type="b32 b64")
def match_all(dom: Domain[V, P], m: Mods, a: V, mask: V) -> Generator[Match, Any, tuple[V, P]]:
    """The mask when all its lanes hold one value, else 0; and whether they do."""
    found, agree = yield Match("all", m.ty, a, mask)
    return found, agree


@rule("redux.sync.op.type d, a, mask:b32", manual=_anchor("redux-sync"), op="add min max", type="u32 s32")
@rule("redux.sync.op.type d, a, mask:b32", manual=_anchor("redux-sync"), op="and or xor", type="b32")
def redux(dom: Domain[V, P], m: Mods, a: V, mask: V) -> Generator[Redux, Any, V]:
    """The reduction of a over the lanes of the mask, in every one of them."""
    answer: V = yield Redux(m["op"], m.ty, a, mask)
    return answer


@rule("redux.sync.op{.abs}{.NaN}.f32 d, a, mask:b32", manual=_anchor("redux-sync"), op="min max")
def redux_float(dom: Domain[V, P], m: Mods, a: V, mask: V) -> Generator[Redux, Any, V]:
    """The extremum of a (of |a|) over the lanes of the mask; NaN is skipped unless .NaN."""
    value = dom.floating("abs", m.ty, FloatMode(), a) if "abs" in m else a
    answer: V = yield Redux(m["op"], m.ty, value, mask, FloatMode(nan="NaN" in m))
    return answer


@rule("activemask.b32 d", manual=_anchor("activemask"))
def activemask(dom: Domain[V, P], m: Mods) -> Generator[ActiveMask, Any, V]:
    """The mask of lanes active at this instruction."""
    answer: V = yield ActiveMask()
    return answer


@rule("elect.sync d|p:b32, mask:b32", manual=_anchor("elect-sync"))
def elect(dom: Domain[V, P], m: Mods, mask: V) -> Generator[Elect, Any, tuple[V, P]]:
    """The lane id of one leader of the mask, the same every time, and whether this lane is it."""
    leader, mine = yield Elect(mask)
    return leader, mine
