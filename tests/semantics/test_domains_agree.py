"""Every pure rule gives the same bits over the reals as on bits where its operands are integer constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from instances import instances

from warpproof.core import Unsupported
from warpproof.domains import Bits, Int, Reals
from warpproof.ptx import syntax
from warpproof.semantics import Bound, Slot, bind, table
from warpproof.terms import Arena, Pred, Real, const

LANES = 4
PURE = [row for row in table() if row.rule is not None and not row.effects]


class Path:
    """A path on which every obligation is taken to hold."""

    def require(self, kind: str, claim: Pred) -> None:
        """Nothing: the obligation is not this test's subject."""

    def require_real(self, kind: str, node: Real) -> None:
        """Nothing."""

    def holds(self, claim: Pred) -> bool:
        return claim.op == "true"

    def assume(self, name: str, text: str, source: str) -> None:
        """Nothing."""


def pair(arena: Arena, slot: Slot, rng: np.random.Generator) -> tuple[Any, Any]:
    """One source value in both domains: 60 bits at most, small where a u32 may be a position or an amount."""
    if slot.type.kind == "pred":
        flags = np.array([True, False, True, False])
        return flags, arena.lane_mask(flags)
    width = slot.type.width
    limit = 40 if str(slot.type) == "u32" and rng.random() < 0.6 else 1 << min(width, 60)
    bits = rng.integers(0, limit, LANES, np.uint64).astype(f"u{width // 8}")
    if str(slot.type) == "f32":
        bits = rng.normal(size=LANES).astype(np.float32).view(np.uint32)
    return bits, Int(width, const(bits.view(f"i{width // 8}").astype(np.int64)))


def sources(instruction: syntax.Instruction, bound: Bound, arena: Arena) -> tuple[list[Any], list[Any]]:
    rng = np.random.default_rng(len(instruction.opcode))
    exact, real = [], []
    for operand, slot in zip(instruction.operands, bound.slots, strict=True):
        if slot.role in ("src", "addr"):
            elements = len(operand.elements) if isinstance(operand, syntax.Vector) else 1
            pairs = [pair(arena, slot, rng) for _ in range(elements)]
            vector = isinstance(operand, syntax.Vector)
            exact.append(tuple(p[0] for p in pairs) if vector else pairs[0][0])
            real.append(tuple(p[1] for p in pairs) if vector else pairs[0][1])
    return exact, real


def flat(values: Any) -> list[Any]:
    return [x for v in values for x in flat(v)] if isinstance(values, tuple) else [values]


def agreed_results(instruction: syntax.Instruction) -> int | None:
    """How many results are known integers over the reals, all equal to the exact ones; None when unsupported there."""
    bound = bind(instruction)
    arena = Arena(LANES)
    exact, real = sources(instruction, bound, arena)
    wanted = bound.apply(Bits(LANES), exact)
    try:
        found = bound.apply(Reals(arena, Path()), real)
    except Unsupported:
        return None
    same = 0
    for want, value in zip(flat(wanted), flat(found), strict=True):
        if isinstance(value, Int) and value.poly.is_constant():
            modulus = 1 << value.width
            assert [int(v) % modulus for v in value.poly.lanes(LANES)] == want.tolist(), instruction.opcode
            same += 1
    return same


def comparable(instruction: syntax.Instruction) -> bool:
    """Over the reals NaN is an obligation, so tests for it have one answer; 128-bit values have no integer there."""
    about_nan = {"num", "nan"} & set(instruction.opcode.split("."))
    return not about_nan and all(slot.type.width != 128 for slot in bind(instruction).slots)


@pytest.mark.parametrize("family", sorted({row.family for row in PURE}))
def test_domains_agree(family: str) -> None:
    written = [i for row in PURE if row.family == family for i in instances(row.form) if comparable(i)]
    results = [agreed_results(i) for i in written]
    answered = [n for n in results if n is not None]
    assert len(answered) > len(written) / 2
    assert family == "floating" or sum(answered) > 20
