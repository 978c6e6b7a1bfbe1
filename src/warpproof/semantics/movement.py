"""Moves, permutations and address conversion (PTX ISA 9.7.9.3, .4, .7, .18 to .20)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from warpproof.domains import Cvta, Domain, Opaque, P, SpaceTest, V
from warpproof.isa import scalar
from warpproof.semantics.binding import Mods
from warpproof.semantics.registry import rule


def _anchor(name: str) -> str:
    return f"data-movement-and-conversion-instructions-{name}"


_MOVABLE = "pred b16 b32 b64 b128 u16 u32 u64 s16 s32 s64 f32 f64"


@rule("mov.type d, a", manual=_anchor("mov"), type=_MOVABLE)
def mov(dom: Domain[V, P], m: Mods, a: V) -> V:
    """The bits of a register, constant, special register, or the address a symbol stands for."""
    return a


@rule("mov.type d, a*", manual=_anchor("mov-2"), type="b16 b32 b64 b128")
def mov_pack(dom: Domain[V, P], m: Mods, a: tuple[V, ...]) -> V:
    """The elements side by side, the first in the low bits."""
    return dom.pack(m.ty.width, a)


@rule("mov.type d*, a", manual=_anchor("mov-2"), type="b16 b32 b64 b128")
def mov_unpack(dom: Domain[V, P], m: Mods, a: V) -> tuple[V, ...]:
    """The equal pieces of a, low bits first."""
    return dom.unpack(m.ty.width, a, m.vector)


_PRMT_MODES: Final = ("", "f4e", "b4e", "rc8", "ecl", "ecr", "rc16")


@rule("prmt.b32{.mode} d, a, b, c", manual=_anchor("prmt"), mode=" ".join(_PRMT_MODES[1:]))
def prmt(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """Four bytes picked from b:a by the selectors in c; the generic mode can replicate a byte's sign."""
    return dom.integer("prmt", m.ty, a, b, c, control=_PRMT_MODES.index(m["mode"]))


_SPACES = "const global local shared shared::cta shared::cluster param param::entry"


def state_space(word: str) -> str:
    """The state space of a modifier word: `generic` when absent, `shared` for `shared::cta`."""
    return word.partition("::")[0] or "generic"


@rule("cvta.space.size d:size, a:size", manual=_anchor("cvta"), space=_SPACES, size="u32 u64")
@rule("cvta.to.space.size d:size, a:size", manual=_anchor("cvta"), space=_SPACES, size="u32 u64")
def cvta(dom: Domain[V, P], m: Mods, a: V) -> Generator[Cvta, Any, V]:
    """The same location as a generic address, or (`.to`) a generic address as one in the space."""
    answer: V = yield Cvta(state_space(m["space"]), "to" in m, a)
    return answer


@rule("isspacep.space p, a:u64", manual=_anchor("isspacep"), space=_SPACES)
def isspacep(dom: Domain[V, P], m: Mods, a: V) -> Generator[SpaceTest, Any, P]:
    """True where the generic address falls in the space's window."""
    answer: P = yield SpaceTest(state_space(m["space"]), a)
    return answer


_PRIORITY = "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged"
_SECOND = "L2::evict_first L2::evict_unchanged"


@rule("createpolicy.fractional.primary{.secondary}.b64 d{, a:f32}", manual=_anchor("createpolicy"), primary=_PRIORITY,
      secondary=_SECOND)
@rule("createpolicy.cvt.L2.b64 d, a", manual=_anchor("createpolicy"))
@rule("createpolicy.range{.global}.primary{.secondary}.b64 d, [a], b:u32, c:u32", manual=_anchor("createpolicy"),
      primary=_PRIORITY, secondary=_SECOND)  # fmt: skip
def createpolicy(dom: Domain[V, P], m: Mods, *args: V) -> Generator[Opaque, Any, V]:
    """A cache policy: its encoding is unspecified, and it has no effect on values."""
    answer: V = yield Opaque("cache policy", scalar("b64"))
    return answer
