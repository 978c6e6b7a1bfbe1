"""Policies: which system calls get which action, as data with one meaning, concrete and as a term."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from warpproof.core import InputError
from warpproof.sandbox.actions import ALLOW
from warpproof.sandbox.bitvectors import Arena, Term
from warpproof.sandbox.interpreter import Call
from warpproof.sandbox.syscalls import NATIVE, X32_BIT

_OPERATORS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}
_TEXT: Final = re.compile(r"arg([0-5]):(32|64)\s*(?:&\s*(\w+)\s*)?(==|!=|<=|>=|<|>)\s*(-?\w+)")


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison of an argument's low 32 bits, or of all 64, under a mask, with a constant; all unsigned.

    The kernel ignores the upper half of an `int` parameter: there 32 bits must be compared, and 64 would be evaded.
    """

    argument: int
    width: int
    op: str
    value: int
    mask: int

    def __str__(self) -> str:
        mask = "" if self.mask == (1 << self.width) - 1 else f" & {self.mask:#x}"
        return f"arg{self.argument}:{self.width}{mask} {self.op} {self.value:#x}"

    def holds(self, call: Call) -> bool:
        """Whether the call satisfies it."""
        return _OPERATORS[self.op](call.args[self.argument] & self.mask, self.value)

    def term(self, arena: Arena, words: Sequence[Term]) -> Term:
        """The same as a term over the words of the call."""
        low, high = words[4 + 2 * self.argument], words[5 + 2 * self.argument]
        field = low if self.width == 32 else arena.join(high, low)
        field = arena.binary("bvand", field, arena.number(self.mask, self.width))
        value = arena.number(self.value, self.width)
        match self.op:
            case "==" | "!=":
                same = arena.compare("=", field, value)
                return same if self.op == "==" else arena.negation(same)
            case "<" | "<=":
                return arena.compare("bvult" if self.op == "<" else "bvule", field, value)
            case _:
                return arena.compare("bvult" if self.op == ">" else "bvule", value, field)


def parse_test(text: str) -> Test:
    """The comparison a text writes, such as `arg2:32 & 0x4 == 0`; BOX603 otherwise."""
    found = _TEXT.fullmatch(text.strip())
    hint = "write argN:32 or argN:64, an optional & mask, a comparison and a number: arg2:32 & 0x4 == 0"
    if not found:
        raise InputError("BOX603", f"cannot read the argument test {text[:80]!r}", hint=hint)
    width = int(found[2])
    try:
        mask = int(found[3], 0) if found[3] else (1 << width) - 1
        value = int(found[5], 0)
    except ValueError:
        raise InputError("BOX603", f"cannot read the numbers of {text[:80]!r}", hint=hint) from None
    return make_test(int(found[1]), width, found[4], value % (1 << width) if value < 0 else value, mask)


def make_test(argument: int, width: int, op: str, value: int, mask: int | None = None) -> Test:
    """A checked comparison; BOX603 if a number does not fit its width."""
    mask = (1 << width) - 1 if mask is None else mask
    if not (0 <= argument < 6 and width in (32, 64) and op in _OPERATORS):
        raise InputError("BOX603", f"no such argument test: arg{argument}:{width} {op}")
    if value >> width or mask >> width or value < 0 or mask < 0:
        raise InputError("BOX603", f"{value:#x} or mask {mask:#x} does not fit in {width} bits")
    return Test(argument, width, op, value, mask)


@dataclass(frozen=True, slots=True)
class Rule:
    """The action for these calls when all tests hold; `why` is for people."""

    calls: tuple[int, ...]
    action: int
    when: tuple[Test, ...] = ()
    why: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """A call that the confined program makes, recorded from a run, and the action it can live with."""

    call: Call
    why: str = ""
    gets: int = ALLOW


@dataclass(frozen=True, slots=True)
class Policy:
    """Another architecture gets `foreign`; then the first match; else a number from 2^30 on `x32`, others `default`.

    `permit` are capabilities that the process may have; `assume` are layers that whoever confines it puts in force.
    """

    name: str
    rules: tuple[Rule, ...]
    default: int
    foreign: int
    x32: int
    needs: tuple[Need, ...] = ()
    notes: tuple[str, ...] = ()
    permit: tuple[str, ...] = ()
    assume: tuple[str, ...] = ()

    def decide(self, call: Call) -> int:
        """The action for one call."""
        if call.arch != NATIVE:
            return self.foreign
        matching = (r.action for r in self.rules if call.nr in r.calls and all(t.holds(call) for t in r.when))
        return next(matching, self.otherwise(call.nr))

    def otherwise(self, number: int) -> int:
        """The action where no rule matches."""
        return self.x32 if number >= X32_BIT else self.default

    def term(self, arena: Arena, words: Sequence[Term]) -> Term:
        """The action as a term over the sixteen words of the call."""
        wide = arena.compare("bvule", arena.number(X32_BIT), words[0])
        value = arena.choose(wide, arena.number(self.x32), arena.number(self.default))
        for rule in reversed(self.rules):
            called = arena.either(arena.compare("=", words[0], arena.number(n)) for n in rule.calls)
            matches = arena.both([called, *(t.term(arena, words) for t in rule.when)])
            value = arena.choose(matches, arena.number(rule.action), value)
        native = arena.compare("=", words[1], arena.number(NATIVE))
        return arena.choose(native, value, arena.number(self.foreign))
