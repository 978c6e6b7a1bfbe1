"""Logic and shift instructions (PTX ISA 9.7.8)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from warpproof.domains import Domain, IntOp, P, V
from warpproof.semantics.binding import Mods
from warpproof.semantics.integer import constant
from warpproof.semantics.registry import rule

_BITS = "b16 b32 b64"


def _anchor(name: str) -> str:
    return f"logic-and-shift-instructions-{name}"


def _bits(op: IntOp) -> Callable[..., object]:
    def apply(dom: Domain[V, P], m: Mods, *args: V) -> V:
        return dom.integer(op, m.ty, *args)

    return apply


def _predicates(op: Literal["and", "or", "xor", "not"]) -> Callable[..., object]:
    def apply(dom: Domain[V, P], m: Mods, *args: P) -> P:
        return dom.predicate(op, *args)

    return apply


rule("and.type d, a, b", manual=_anchor("and"), type=_BITS)(_bits("and"))
rule("or.type d, a, b", manual=_anchor("or"), type=_BITS)(_bits("or"))
rule("xor.type d, a, b", manual=_anchor("xor"), type=_BITS)(_bits("xor"))
rule("not.type d, a", manual=_anchor("not"), type=_BITS)(_bits("not"))
rule("and.pred d, a, b", manual=_anchor("and"))(_predicates("and"))
rule("or.pred d, a, b", manual=_anchor("or"))(_predicates("or"))
rule("xor.pred d, a, b", manual=_anchor("xor"))(_predicates("xor"))
rule("not.pred d, a", manual=_anchor("not"))(_predicates("not"))
rule("shl.type d, a, b:u32", manual=_anchor("shl"), type=_BITS)(_bits("shl"))
rule("shr.type d, a, b:u32", manual=_anchor("shr"), type=f"{_BITS} u16 u32 u64 s16 s32 s64")(_bits("shr"))


@rule("cnot.type d, a", manual=_anchor("cnot"), type=_BITS)
def cnot(dom: Domain[V, P], m: Mods, a: V) -> V:
    """1 where a is zero, else 0."""
    zero = constant(dom, m.ty, 0)
    return dom.select(m.ty, dom.compare("eq", m.ty, a, zero), constant(dom, m.ty, 1), zero)


@rule("lop3.b32 d, a, b, c, lut:imm", manual=_anchor("lop3"))
def lop3(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """The three-input bit function of truth table `lut` (index a*4 + b*2 + c)."""
    return dom.integer("lop3", m.ty, a, b, c, control=m.immediates[0])


@rule("lop3.bool.b32 d|p, a, b, c, lut:imm, q:pred", manual=_anchor("lop3"), bool="or and")
def lop3_test(dom: Domain[V, P], m: Mods, a: V, b: V, c: V, q: P) -> tuple[V, P]:
    """`lop3`, and (result is non-zero) combined with q."""
    result = dom.integer("lop3", m.ty, a, b, c, control=m.immediates[0])
    found = dom.compare("ne", m.ty, result, constant(dom, m.ty, 0))
    return result, dom.predicate("or" if m["bool"] == "or" else "and", found, q)


@rule("shf.dir.mode.b32 d, a, b, c:u32", manual=_anchor("shf"), dir="l r", mode="wrap clamp")
def shf(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> V:
    """The 64 bits b:a shifted by c (modulo 32, or at most 32): the high word for .l, the low word for .r."""
    op: IntOp
    match m["dir"], m["mode"]:
        case "l", "wrap":
            op = "shf_l_wrap"
        case "l", _:
            op = "shf_l_clamp"
        case _, "wrap":
            op = "shf_r_wrap"
        case _:
            op = "shf_r_clamp"
    return dom.integer(op, m.ty, a, b, c)
