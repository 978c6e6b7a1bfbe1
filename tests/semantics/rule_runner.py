"""Runs bound instructions on the bits domain, with an answer for every effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from warpproof.domains import (
    ActiveMask,
    AsyncCopy,
    AsyncGroup,
    Atomic,
    Barrier,
    Bits,
    Carry,
    Cvta,
    Effect,
    Elect,
    Fence,
    FragmentLoad,
    FragmentStore,
    GridDependency,
    Load,
    Match,
    MatrixLoad,
    MatrixMultiply,
    MatrixStore,
    Opaque,
    Redux,
    ScalarType,
    Shuffle,
    SpaceTest,
    Store,
    Vote,
    WarpSync,
)  # fmt: skip
from warpproof.ptx import syntax
from warpproof.semantics import Bound, Slot, bind, execute

LANES = 4
SILENT = (Store, Fence, WarpSync, Carry, MatrixStore, AsyncCopy, AsyncGroup, FragmentStore, GridDependency)
U32 = ScalarType("u", 32)


class Runner:
    """Executes instructions; `effects` lists what they yielded, `answer` replaces the standard answers."""

    def __init__(self, answer: Callable[[Effect], Any] | None = None) -> None:
        self.dom = Bits(LANES)
        self.effects: list[Effect] = []
        self._answer = answer or self.standard

    def standard(self, effect: Effect) -> Any:
        """An answer of the right shape for an effect."""
        dom = self.dom
        word, flag = dom.constant(U32, 7), dom.truth(True)
        match effect:
            case Load(type=ty, count=count):
                return dom.constant(ty, 9) if count == 1 else (dom.constant(ty, 9),) * count
            case Atomic(type=ty):
                return dom.constant(ty, 9)
            case Shuffle() | Match() | Elect():
                return word, flag
            case Vote(mode=mode):
                return word if mode == "ballot" else flag
            case Barrier(reduce=op):
                return word if op == "popc" else flag
            case Redux() | ActiveMask():
                return word
            case Cvta(address=address):
                return address
            case SpaceTest() | Carry(value=None):
                return flag
            case Opaque(type=ty):
                return dom.constant(ty, 0)
            case MatrixLoad(count=count):
                return (word,) * count
            case MatrixMultiply(c=c, d_type=ty, layouts=layouts):
                return c if layouts is None else (word,) * (8 if ty.width == 32 else 4)
            case FragmentLoad(registers=count):
                return (word,) * count
            case _:
                assert isinstance(effect, SILENT), effect
                return None

    def run(self, bound: Bound, args: Sequence[object]) -> tuple[Any, ...]:
        """The results of a bound instruction on source values."""
        process = execute(bound, self.dom, args)
        try:
            effect = next(process)
            while True:
                self.effects.append(effect)
                effect = process.send(self._answer(effect))
        except StopIteration as stop:
            return stop.value

    def value(self, slot: Slot, seed: int) -> Any:
        """Some source value for a slot."""
        if slot.type.kind == "pred":
            return np.array([True, False, True, False])
        one = self.dom.constant(slot.type, 0x3C003F8040490FDB + seed)
        return (one,) * slot.vector if slot.vector > 1 else one

    def sources(self, instruction: syntax.Instruction, bound: Bound) -> list[Any]:
        """Source values for every slot that takes one; vectors of one element are tuples too."""
        out = []
        for k, (operand, slot) in enumerate(zip(instruction.operands, bound.slots, strict=True)):
            if slot.role in ("src", "addr"):
                value = self.value(slot, k)
                out.append((value,) if isinstance(operand, syntax.Vector) and slot.vector == 1 else value)
        return out


def compute(instruction: syntax.Instruction, *args: Any) -> Any:
    """The single result of an instruction on arrays."""
    lanes = next(len(a if not isinstance(a, tuple) else a[0]) for a in args)
    bound = bind(instruction)
    (result,) = bound.apply(Bits(lanes), args)
    return result
