"""Policies to filters, in two layouts: a chain of comparisons, or a balanced tree over the call numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from warpproof.sandbox.instructions import (
    ALU,
    ALU_OPERATIONS,
    JA,
    JMP,
    JUMP_TESTS,
    LOAD_WORD,
    MASK,
    RETURN_VALUE,
    Instruction,
    Program,
)
from warpproof.sandbox.policy import Policy, Rule, Test
from warpproof.sandbox.syscalls import NATIVE, X32_BIT
from warpproof.sandbox.validity import check

Layout = Literal["linear", "tree"]
_FAR: Final = 255
_NUMBER, _ARCH = 0, 4
_Behaviour = tuple[tuple[tuple[Test, ...], int], ...]


class _Builder:
    """A program built from its end: every jump target is already there, so distances are known."""

    def __init__(self) -> None:
        self._reversed: list[Instruction] = []
        self._returns: dict[int, int] = {}

    def emit(self, instruction: Instruction) -> int:
        """Put the instruction in front; its place, counted from the end."""
        self._reversed.append(instruction)
        return len(self._reversed)

    def pass_on(self, place: int) -> int:
        """A place in front of all that goes to that one."""
        return place if place == len(self._reversed) else self.emit(Instruction(JA, len(self._reversed) - place))

    def ret(self, value: int) -> int:
        """A place within reach that returns the value."""
        place = self._returns.get(value)
        if place is None or len(self._reversed) - place > _FAR // 2:
            place = self._returns[value] = self.emit(Instruction(RETURN_VALUE, value))
        return place

    def jump(self, test: str, k: int, yes: int, no: int) -> int:
        """A conditional jump to two places; long distances go by an unconditional one."""
        targets = []
        for place in (yes, no):
            if len(self._reversed) - place > _FAR - 1:
                place = self.emit(Instruction(JA, len(self._reversed) - place))
            targets.append(place)
        here = len(self._reversed)
        return self.emit(Instruction(JMP | JUMP_TESTS[test], k, here - targets[0], here - targets[1]))

    def load(self, offset: int, mask: int = MASK) -> int:
        """A load of the word at the offset, masked."""
        if mask != MASK:
            self.emit(Instruction(ALU | ALU_OPERATIONS["and"], mask))
        return self.emit(Instruction(LOAD_WORD, offset))

    def program(self) -> Program:
        """The finished program; BOX602 if it is too long."""
        return check(tuple(reversed(self._reversed)))


def compile_policy(policy: Policy, layout: Layout = "tree") -> Program:
    """A filter for the policy. Not trusted: that the two agree is proved from the filter's bytes."""
    builder = _Builder()
    calls = sorted({n for rule in policy.rules for n in rule.calls})
    behaviours = [(n, _behaviour(policy, n)) for n in calls]
    make = _tree if layout == "tree" else _chain
    body = make(builder, behaviours, policy)
    builder.pass_on(body)  # the load falls into it
    native = builder.load(_NUMBER)
    foreign = builder.ret(policy.foreign)
    builder.jump("jeq", NATIVE, native, foreign)
    builder.load(_ARCH)
    return builder.program()


def _behaviour(policy: Policy, number: int) -> _Behaviour:
    """The tests and actions for one call up to its first unconditional rule."""
    found: list[tuple[tuple[Test, ...], int]] = []
    rules: Sequence[Rule] = [r for r in policy.rules if number in r.calls]
    for rule in rules:
        found.append((rule.when, rule.action))
        if not rule.when:
            return tuple(found)
    return (*found, ((), policy.otherwise(number)))


def _leaf(builder: _Builder, behaviour: _Behaviour) -> int:
    """A place that acts on the arguments."""
    place = builder.ret(behaviour[-1][1])
    for when, action in reversed(behaviour[:-1]):
        no, place = place, builder.ret(action)
        for test in reversed(when):
            place = _test(builder, test, place, no)
    return place


def _chain(builder: _Builder, behaviours: Sequence[tuple[int, _Behaviour]], policy: Policy) -> int:
    default = builder.ret(policy.default)
    place = builder.jump("jge", X32_BIT, builder.ret(policy.x32), default)
    for number, behaviour in reversed(behaviours):
        place = builder.jump("jeq", number, _leaf(builder, behaviour), place)
    return place


def _tree(builder: _Builder, behaviours: Sequence[tuple[int, _Behaviour]], policy: Policy) -> int:
    special = dict(behaviours)
    starts: list[tuple[int, _Behaviour]] = []
    for number in sorted({0, X32_BIT, *special, *(n + 1 for n in special if n < MASK)}):
        what = special.get(number, (((), policy.otherwise(number)),))
        if not starts or starts[-1][1] != what:
            starts.append((number, what))
    leaves: dict[_Behaviour, int] = {}
    return _split(builder, starts, leaves)


def _split(builder: _Builder, starts: Sequence[tuple[int, _Behaviour]], leaves: dict[_Behaviour, int]) -> int:
    if len(starts) == 1:
        behaviour = starts[0][1]
        if len(behaviour) == 1:
            return builder.ret(behaviour[0][1])
        place = leaves.get(behaviour)
        if place is None:
            place = leaves[behaviour] = _leaf(builder, behaviour)
        return place
    middle = len(starts) // 2
    high = _split(builder, starts[middle:], leaves)
    low = _split(builder, starts[:middle], leaves)
    return builder.jump("jge", starts[middle][0], high, low)


def _test(builder: _Builder, test: Test, yes: int, no: int) -> int:
    """A place that goes to `yes` exactly if the test holds."""
    swapped = {"!=": "==", "<=": ">", "<": ">="}
    if test.op in swapped:
        return _test(builder, Test(test.argument, test.width, swapped[test.op], test.value, test.mask), no, yes)
    jump = {"==": "jeq", ">": "jgt", ">=": "jge"}[test.op]
    offset = 16 + 8 * test.argument
    builder.jump(jump, test.value & MASK, yes, no)
    low = builder.load(offset, test.mask & MASK)
    if test.width == 32:
        return low
    high = test.value >> 32
    place = builder.jump("jeq", high, low, no)
    if test.op != "==":
        place = builder.jump("jgt", high, yes, place)
    return builder.load(offset + 4, test.mask >> 32)
