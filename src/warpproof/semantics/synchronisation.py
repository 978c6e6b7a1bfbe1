"""CTA and warp barriers, fences, grid dependencies (PTX ISA 9.7.13.1 to .4, .13)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from warpproof.domains import Barrier, Domain, Fence, GridDependency, P, V, WarpSync
from warpproof.semantics.binding import Mods
from warpproof.semantics.registry import missing, rule


def _anchor(name: str) -> str:
    return f"parallel-synchronization-and-communication-instructions-{name}"


_BAR = _anchor("bar-barrier")
_SCOPES = {"cta": "cta", "gl": "gpu", "sys": "sys"}


def _aligned(m: Mods) -> bool:
    return "aligned" in m or "bar" in m


@rule("bar{.cta}.sync a:u32{, b:u32}", manual=_BAR)
def bar_sync(dom: Domain[V, P], m: Mods, a: V, b: V | None = None) -> Generator[Barrier, Any, None]:
    """Arrive at barrier a and wait for b threads, or all of the CTA; every thread executes the same barrier."""
    yield Barrier("sync", a, b, True)


@rule("barrier{.cta}.sync{.aligned} a:u32{, b:u32}", manual=_BAR)
def barrier_sync(dom: Domain[V, P], m: Mods, a: V, b: V | None = None) -> Generator[Barrier, Any, None]:
    """Arrive at barrier a and wait for b threads, or all of the CTA."""
    yield Barrier("sync", a, b, "aligned" in m)


@rule("bar{.cta}.arrive a:u32, b:u32", manual=_BAR)
def bar_arrive(dom: Domain[V, P], m: Mods, a: V, b: V) -> Generator[Barrier, Any, None]:
    """Arrive at barrier a of b threads without waiting; every thread executes the same barrier."""
    yield Barrier("arrive", a, b, True)


@rule("barrier{.cta}.arrive{.aligned} a:u32, b:u32", manual=_BAR)
def barrier_arrive(dom: Domain[V, P], m: Mods, a: V, b: V) -> Generator[Barrier, Any, None]:
    """Arrive at barrier a of b threads without waiting."""
    yield Barrier("arrive", a, b, "aligned" in m)


def _reduction(aligned: bool | None) -> Any:
    def predicate(dom: Domain[V, P], m: Mods, a: V, *rest: Any) -> Generator[Barrier, Any, Any]:
        *count, c = rest
        return (yield Barrier("red", a, count[0] if count else None, aligned or "aligned" in m, m["op"], c))

    return predicate


for _form, _is_aligned in (("bar{.cta}.red", True), ("barrier{.cta}.red{.aligned}", None)):
    for _head, _op in ((".op.u32 d", "popc"), (".op.pred p", "and or")):
        rule(f"{_form}{_head}, a:u32, c:pred", f"{_form}{_head}, a:u32, b:u32, c:pred", manual=_BAR, op=_op)(
            _reduction(_is_aligned)
        )


@rule("bar.warp.sync a:b32", manual=_anchor("bar-warp-sync"))
def bar_warp_sync(dom: Domain[V, P], m: Mods, a: V) -> Generator[WarpSync, Any, None]:
    """Wait for the lanes of the mask; orders their memory accesses."""
    yield WarpSync(a)


_FENCE = _anchor("membar-fence")


@rule("fence{.sem}.scope", manual=_FENCE, sem="sc acq_rel acquire release")
def fence(dom: Domain[V, P], m: Mods) -> Generator[Fence, Any, None]:
    """A fence; without a semantics word it is acq_rel."""
    yield Fence(m["sem"] or "acq_rel", m["scope"], "")


@rule("membar.level", manual=_FENCE, level="cta gl sys")
def membar(dom: Domain[V, P], m: Mods) -> Generator[Fence, Any, None]:
    """The old names of fence.sc at CTA, GPU and system scope."""
    yield Fence("sc", _SCOPES[m["level"]], "")


@rule("membar.proxy.kind", manual=_FENCE, kind="alias")
@rule("fence.proxy.kind", manual=_FENCE, kind="alias async")
@rule("fence.proxy.kind.pspace", manual=_FENCE, kind="async",
      pspace="global shared::cta shared::cluster")  # fmt: skip
def fence_proxy(dom: Domain[V, P], m: Mods) -> Generator[Fence, Any, None]:
    """Orders accesses through different proxies in both directions."""
    yield Fence("", "", ".".join(w for w in (m["kind"], m["pspace"]) if w))


@rule("fence.mbarrier_init.sem.scope", manual=_FENCE, sem="release", scope="cluster")
def fence_mbarrier_init(dom: Domain[V, P], m: Mods) -> Generator[Fence, Any, None]:
    """Makes prior mbarrier initialisation visible to the cluster."""
    yield Fence("release", "cluster", "mbarrier_init")


@rule("fence.proxy.kind.sem.scope", manual=_FENCE, kind="tensormap::generic", sem="release")
@rule("fence.proxy.kind.sem.scope [a], size:imm", manual=_FENCE, kind="tensormap::generic", sem="acquire")
def fence_tensormap(dom: Domain[V, P], m: Mods, address: V | None = None) -> Generator[Fence, Any, None]:
    """Orders generic-proxy writes of a tensor map before tensormap-proxy reads."""
    yield Fence(m["sem"], m["scope"], m["kind"])


@rule("griddepcontrol.action", manual=_anchor("griddepcontrol"), action="wait launch_dependents")
def griddepcontrol(dom: Domain[V, P], m: Mods) -> Generator[GridDependency, Any, None]:
    """Wait for the prerequisite grids' writes, or allow dependent grids to start."""
    yield GridDependency(m["action"])


missing("barrier.cluster.*", manual=_anchor("barrier-cluster"), family="synchronisation",
        why="thread-block clusters are not modelled")
missing("fence.sem.restrict.scope", manual=_FENCE, family="synchronisation", sem="acquire release", scope="cluster",
        restrict="sync_restrict::shared::cluster sync_restrict::shared::cta", why="clusters are not modelled")
missing("fence.proxy.kind.sem.restrict.scope", manual=_FENCE, family="synchronisation", kind="async::generic",
        sem="acquire release", restrict="sync_restrict::shared::cluster sync_restrict::shared::cta", scope="cluster",
        why="clusters are not modelled")  # fmt: skip
