"""Atomic read-modify-write (PTX ISA 9.7.13.5, 9.7.13.6)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

from warpproof.domains import Atomic, Domain, FloatMode, P, V
from warpproof.semantics.binding import Mods
from warpproof.semantics.movement import state_space
from warpproof.semantics.registry import missing, rule

_SPACES = "global shared shared::cta shared::cluster"
_ATOM = "parallel-synchronization-and-communication-instructions-atom"
_RED = "parallel-synchronization-and-communication-instructions-red"
_OPS: Final = (
    ("add", "u32 s32 u64 f32 f64", ""), ("min max", "u32 s32 u64 s64", ""), ("and or xor", "b32 b64", ""),
    ("inc dec", "u32", ""), ("exch", "b32 b64", ""), ("add", "f16 f16x2 bf16 bf16x2", ".noftz"),
)  # fmt: skip


def _effect(m: Mods, returns: bool, address: object, args: tuple[object, ...]) -> Atomic:
    space = state_space(m["space"])
    # Adding f32 in global memory flushes subnormals; in shared memory it does not (manual, atom).
    mode = FloatMode(ftz=space == "global" and str(m.ty) == "f32")
    return Atomic(m["op"], space, m.ty, address, args, m["sem"] or "relaxed", m["scope"] or "gpu", returns, mode)


def atom(dom: Domain[V, P], m: Mods, address: V, b: V, hint: V | None = None) -> Generator[Atomic, Any, V]:
    """The old value at the address; it is replaced by op(old, b) in one step."""
    old: V = yield _effect(m, True, address, (b,))
    return old


def red(dom: Domain[V, P], m: Mods, address: V, b: V, hint: V | None = None) -> Generator[Atomic, Any, None]:
    """Replace the value at the address by op(old, b) in one step."""
    yield _effect(m, False, address, (b,))


for _op, _types, _noftz in _OPS:
    rule(
        f"atom{{.sem}}{{.scope}}{{.space}}.op{_noftz}{{.hint}}.type d, [a], b{{, hint:b64}}", manual=_ATOM, op=_op,
        sem="relaxed acquire release acq_rel", space=_SPACES, type=_types,
    )(atom)  # fmt: skip
    if _op != "exch":
        rule(
            f"red{{.sem}}{{.scope}}{{.space}}.op{_noftz}{{.hint}}.type [a], b{{, hint:b64}}", manual=_RED, op=_op,
            sem="relaxed release", space=_SPACES, type=_types,
        )(red)  # fmt: skip


@rule("atom{.sem}{.scope}{.space}.op.type d, [a], b, c", manual=_ATOM, op="cas", sem="relaxed acquire release acq_rel",
      space=_SPACES, type="b16 b32 b64")  # fmt: skip
def atom_cas(dom: Domain[V, P], m: Mods, address: V, b: V, c: V) -> Generator[Atomic, Any, V]:
    """The old value at the address; where it equals b it is replaced by c in one step."""
    old: V = yield _effect(m, True, address, (b, c))
    return old


missing("atom{.sem}{.scope}{.space}.op{.hint}.b128 d, [a], b", "atom{.sem}{.scope}{.space}.op.b128 d, [a], b, c",
        manual=_ATOM, family="atomics", op="cas exch", sem="relaxed acquire release acq_rel", space=_SPACES,
        why="128-bit atomics are not modelled")
missing("atom{.sem}{.scope}{.space}.op{.noftz}{.hint}.vec.type d, [a], b", manual=_ATOM, family="atomics",
        op="add min max", sem="relaxed acquire release acq_rel", space=_SPACES, type="f32 f16 bf16 f16x2 bf16x2",
        why="vector atomics are not modelled")
missing("red{.sem}{.scope}{.space}.op{.noftz}{.hint}.vec.type [a], b", manual=_RED, family="atomics", op="add min max",
        sem="relaxed release", space=_SPACES, type="f32 f16 bf16 f16x2 bf16x2", why="vector atomics are not modelled")
missing("red.async.*", manual=_RED, family="atomics", why="asynchronous reductions are not modelled")  # fmt: skip
