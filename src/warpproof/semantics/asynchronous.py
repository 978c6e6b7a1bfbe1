"""Asynchronous copies (PTX ISA 9.7.9.25)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from warpproof.core import Unsupported
from warpproof.domains import AsyncCopy, AsyncGroup, Domain, P, V
from warpproof.semantics.binding import Mods
from warpproof.semantics.registry import missing, rule

_CP = "data-movement-and-conversion-instructions-cp-async"
_BULK = f"{_CP}-bulk"
_HINTS = "{.hint}{.prefetch_size}"


def _copy(m: Mods, destination: object, source: object, bytes_read: object | None, ignore: object | None) -> AsyncCopy:
    size = m.immediates[0]
    if size not in ((16,) if m["cop"] == "cg" else (4, 8, 16)):
        raise Unsupported("cp.async", f"cp-size {size} is not allowed here")
    return AsyncCopy(destination, source, size, bytes_read, ignore, m["cop"])


@rule(f"cp.async.cop.shared.global{_HINTS} [d], [a], size:imm{{, hint:b64}}", manual=_CP, cop="ca cg")
def cp_async(dom: Domain[V, P], m: Mods, to: V, source: V, hint: V | None = None) -> Generator[AsyncCopy, Any, None]:
    """Copy `size` bytes from global to shared memory without waiting."""
    yield _copy(m, to, source, None, None)


@rule(f"cp.async.cop.shared.global{_HINTS} [d], [a], size:imm, bytes:u32{{, hint:b64}}", manual=_CP, cop="ca cg")
def cp_async_zfill(
    dom: Domain[V, P], m: Mods, to: V, source: V, bytes_read: V, hint: V | None = None
) -> Generator[AsyncCopy, Any, None]:
    """Copy global to shared memory without waiting; bytes past the source size become zero."""
    yield _copy(m, to, source, bytes_read, None)


@rule("cp.async.commit_group", manual=f"{_CP}-commit-group")
def commit_group(dom: Domain[V, P], m: Mods) -> Generator[AsyncGroup, Any, None]:
    """The copies since the last commit become one group."""
    yield AsyncGroup("commit")


@rule("cp.async.wait_group n:imm", manual=f"{_CP}-wait-group")
def wait_group(dom: Domain[V, P], m: Mods) -> Generator[AsyncGroup, Any, None]:
    """Wait until at most n of the latest groups are pending."""
    yield AsyncGroup("wait", m.immediates[0])


@rule("cp.async.wait_all", manual=f"{_CP}-wait-group")
def wait_all(dom: Domain[V, P], m: Mods) -> Generator[AsyncGroup, Any, None]:
    """Wait for every copy of this thread."""
    yield AsyncGroup("wait_all")


missing("cp.async.bulk.*", manual=_BULK, family="asynchronous", why="bulk and tensor copies are not modelled")
missing("cp.async.mbarrier.*", manual=_CP, family="asynchronous", why="mbarrier objects are not modelled")
missing("cp.async.*", manual=_CP, family="asynchronous", why="no rule for this form of cp.async")
missing("cp.reduce.*", manual=_BULK, family="asynchronous", why="bulk and tensor copies are not modelled")
missing("multimem.*", manual=_BULK, family="asynchronous", why="multimem addresses are not modelled")
missing("mbarrier.*", manual="parallel-synchronization-and-communication-instructions-mbarrier", family="asynchronous",
        why="mbarrier objects are not modelled")
missing("tensormap.*", manual="data-movement-and-conversion-instructions-tensormap-replace", family="asynchronous",
        why="tensor maps are not modelled")
missing("st.async.*", "st.bulk.*", manual="data-movement-and-conversion-instructions-st-async", family="asynchronous",
        why="asynchronous and bulk stores are not modelled")
missing("clusterlaunchcontrol.*", manual="parallel-synchronization-and-communication-instructions-clusterlaunchcontrol",
        family="asynchronous", why="cluster launch control is not modelled")  # fmt: skip
