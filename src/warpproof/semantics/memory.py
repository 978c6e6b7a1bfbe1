"""Loads and stores (PTX ISA 9.7.9.8 to 9.7.9.11). Cache operators and hints have no effect on values."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from warpproof.domains import Domain, Load, P, Store, V
from warpproof.semantics.binding import Mods
from warpproof.semantics.movement import state_space
from warpproof.semantics.registry import control, rule

_TYPES = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64"
_LD_SPACES = "const global local param param::entry param::func shared shared::cta shared::cluster"
_ST_SPACES = "global local param param::func shared shared::cta shared::cluster"
_LEVELS = "{.evict1}{.evict2}{.hint}{.prefetch_size}{.vec}"


def _anchor(name: str) -> str:
    return f"data-movement-and-conversion-instructions-{name}"


def _cache(m: Mods) -> tuple[str, ...]:
    return tuple(m[name] for name in ("nc", "cop", "evict1", "evict2", "hint", "prefetch_size") if name in m)


def _semantics(m: Mods) -> str:
    return "mmio" if "mmio" in m else "volatile" if "volatile" in m else m["sem"] or "weak"


@rule(f"ld{{.weak}}{{.space}}{{.cop}}{_LEVELS}.type d, [a]{{, hint:b64}}", manual=_anchor("ld"), space=_LD_SPACES,
      cop="ca cg cs lu cv", type=_TYPES)
@rule("ld.volatile{.space}{.prefetch_size}{.vec}.type d, [a]", manual=_anchor("ld"), space=_LD_SPACES, type=_TYPES)
@rule(f"ld.sem.scope{{.space}}{_LEVELS}.type d, [a]{{, hint:b64}}", manual=_anchor("ld"), space=_LD_SPACES,
      sem="relaxed acquire", type=_TYPES)
@rule("ld.mmio.sem.scope{.global}.type d, [a]", manual=_anchor("ld"), sem="relaxed", scope="sys", type=_TYPES)
@rule(f"ld.space{{.cop}}.nc{_LEVELS}.type d, [a]{{, hint:b64}}", manual=_anchor("ld-global-nc"), space="global",
      cop="ca cg cs", type=_TYPES)
@rule("ldu{.space}{.vec}.type d, [a]", manual=_anchor("ldu"), space="global", vec="v2 v4",
      type=_TYPES)  # fmt: skip
def ld(dom: Domain[V, P], m: Mods, address: V, hint: V | None = None) -> Generator[Load, Any, Any]:
    """The value (a tuple for vectors) at the address; which store it comes from is the memory model's decision."""
    space = "global" if "global" in m else state_space(m["space"])
    return (yield Load(space, m.ty, m.vector, address, _semantics(m), m["scope"], _cache(m)))


@rule("st{.weak}{.space}{.cop}{.evict1}{.evict2}{.hint}{.vec}.type [a], b{, hint:b64}", manual=_anchor("st"),
      space=_ST_SPACES, cop="wb cg cs wt", type=_TYPES)
@rule("st.volatile{.space}{.vec}.type [a], b", manual=_anchor("st"), space=_ST_SPACES, type=_TYPES)
@rule("st.sem.scope{.space}{.evict1}{.evict2}{.hint}{.vec}.type [a], b{, hint:b64}", manual=_anchor("st"),
      space=_ST_SPACES, sem="relaxed release", type=_TYPES)
@rule("st.mmio.sem.scope{.global}.type [a], b", manual=_anchor("st"), sem="relaxed", scope="sys",
      type=_TYPES)  # fmt: skip
def st(dom: Domain[V, P], m: Mods, address: V, value: Any, hint: V | None = None) -> Generator[Store, Any, None]:
    """Write the value, or the elements of a vector side by side."""
    values = value if "vec" in m else (value,)
    space = "global" if "global" in m else state_space(m["space"])
    yield Store(space, m.ty, tuple(values), address, _semantics(m), m["scope"])


control("nop", "prefetch{.space}.level [a]", manual=_anchor("prefetch"), space="global local", level="L1 L2",
        family="memory")
control("nop", "prefetch.global.level [a]", manual=_anchor("prefetch"), level="L2::evict_last L2::evict_normal",
        family="memory")
control("nop", "prefetchu.L1 [a]", manual=_anchor("prefetch"), family="memory")
control("nop", "prefetch{.space}.tensormap [a]", manual=_anchor("prefetch"), space="const param", family="memory")
control("nop", "applypriority{.global}.level [a], size", manual=_anchor("applypriority"), level="L2::evict_normal",
        family="memory")  # fmt: skip
