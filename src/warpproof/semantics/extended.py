"""Extended-precision integer arithmetic through the carry flag CC.CF (PTX ISA 9.7.2)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from warpproof.domains import Carry, Domain, P, V
from warpproof.isa import ScalarType
from warpproof.semantics.binding import Mods
from warpproof.semantics.integer import constant
from warpproof.semantics.registry import rule

_TYPES = "u32 s32 u64 s64"


def _anchor(name: str) -> str:
    return f"extended-precision-arithmetic-instructions-{name}"


def _add(dom: Domain[V, P], width: int, a: V, b: V, carry: P | None) -> tuple[V, P]:
    """a + b + carry modulo 2^width, and the carry out."""
    ty = ScalarType("u", width)
    total = dom.integer("add", ty, a, b)
    out = dom.compare("lt", ty, total, a)
    if carry is None:
        return total, out
    more = dom.integer("add", ty, total, dom.select(ty, carry, constant(dom, ty, 1), constant(dom, ty, 0)))
    return more, dom.predicate("or", out, dom.compare("lt", ty, more, total))


def _sub(dom: Domain[V, P], width: int, a: V, b: V, borrow: P | None) -> tuple[V, P]:
    """a - b - borrow modulo 2^width, and the borrow out."""
    ty = ScalarType("u", width)
    difference = dom.integer("sub", ty, a, b)
    out = dom.compare("lt", ty, a, b)
    if borrow is None:
        return difference, out
    less = dom.integer("sub", ty, difference, dom.select(ty, borrow, constant(dom, ty, 1), constant(dom, ty, 0)))
    return less, dom.predicate("or", out, dom.compare("gt", ty, less, difference))


@rule("add.cc.type d, a, b", manual=_anchor("add-cc"), type=_TYPES)
def add_cc(dom: Domain[V, P], m: Mods, a: V, b: V) -> Generator[Carry, Any, V]:
    """a + b; the carry out goes to CC.CF."""
    total, out = _add(dom, m.ty.width, a, b, None)
    yield Carry(out)
    return total


@rule("addc{.cc}.type d, a, b", manual=_anchor("addc"), type=_TYPES)
def addc(dom: Domain[V, P], m: Mods, a: V, b: V) -> Generator[Carry, Any, V]:
    """a + b + CC.CF; with .cc the carry out goes to CC.CF."""
    total, out = _add(dom, m.ty.width, a, b, (yield Carry()))
    if "cc" in m:
        yield Carry(out)
    return total


@rule("sub.cc.type d, a, b", manual=_anchor("sub-cc"), type=_TYPES)
def sub_cc(dom: Domain[V, P], m: Mods, a: V, b: V) -> Generator[Carry, Any, V]:
    """a - b; the borrow out goes to CC.CF."""
    difference, out = _sub(dom, m.ty.width, a, b, None)
    yield Carry(out)
    return difference


@rule("subc{.cc}.type d, a, b", manual=_anchor("subc"), type=_TYPES)
def subc(dom: Domain[V, P], m: Mods, a: V, b: V) -> Generator[Carry, Any, V]:
    """a - (b + CC.CF); with .cc the borrow out goes to CC.CF."""
    difference, out = _sub(dom, m.ty.width, a, b, (yield Carry()))
    if "cc" in m:
        yield Carry(out)
    return difference


@rule("mad.mode.cc.type d, a, b, c", manual=_anchor("mad-cc"), mode="lo hi", type=_TYPES)
def mad_cc(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> Generator[Carry, Any, V]:
    """A half of a*b, plus c; the carry out of the addition goes to CC.CF."""
    product = dom.integer("mul_lo" if m["mode"] == "lo" else "mul_hi", m.ty, a, b)
    total, out = _add(dom, m.ty.width, product, c, None)
    yield Carry(out)
    return total


@rule("madc.mode{.cc}.type d, a, b, c", manual=_anchor("madc"), mode="lo hi", type=_TYPES)
def madc(dom: Domain[V, P], m: Mods, a: V, b: V, c: V) -> Generator[Carry, Any, V]:
    """A half of a*b, plus c plus CC.CF; with .cc the carry out goes to CC.CF."""
    product = dom.integer("mul_lo" if m["mode"] == "lo" else "mul_hi", m.ty, a, b)
    total, out = _add(dom, m.ty.width, product, c, (yield Carry()))
    if "cc" in m:
        yield Carry(out)
    return total
