"""The system calls of x86-64 Linux: numbers, names, which arguments are pointers."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from typing import Final

from warpproof.core import InputError

NATIVE: Final = 0xC000003E  # AUDIT_ARCH_X86_64
I386: Final = 0x40000003
X32_BIT: Final = 0x40000000
_DIGITS: Final = 10
_LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class Syscall:
    """One call; `pointers` are the positions of its pointer arguments, `arguments` how many it takes."""

    number: int
    name: str
    arguments: int
    pointers: tuple[int, ...]


@cache
def table() -> dict[str, Syscall]:
    """Every call of the table by name."""
    calls = {}
    for line in files("warpproof.sandbox").joinpath("syscalls.txt").read_text("utf-8").splitlines():
        if line.startswith("#"):
            continue
        number, name, signature = line.split()
        kinds = "" if signature in "-?" else signature
        calls[name] = Syscall(int(number), name, len(kinds), tuple(i for i, kind in enumerate(kinds) if kind == "*"))
    return calls


@cache
def by_number() -> dict[int, Syscall]:
    """Every call of the table by number."""
    return {call.number: call for call in table().values()}


@cache
def unassigned() -> tuple[tuple[int, int], ...]:
    """The ranges of numbers below the x32 bit that the table lacks, both ends included."""
    known = [-1, *sorted(by_number()), X32_BIT]
    return tuple((a + 1, b - 1) for a, b in pairwise(known) if b - a > 1)


def name_of(number: int) -> str:
    """The call's name, or its number in words."""
    call = by_number().get(number)
    return call.name if call else f"syscall {number}"


def number_of(text: str | int) -> int:
    """The number that a name or number means; BOX606 for an unknown name."""
    if isinstance(text, int) or (text.isascii() and text.isdigit()):
        number = int(text) if isinstance(text, int) or len(text) <= _DIGITS else X32_BIT
        if 0 <= number < X32_BIT:
            return number
        raise InputError("BOX606", f"no system call has the number {str(text)[:60]}")
    found = table().get(text)
    if found is None:
        near = difflib.get_close_matches(text[:_LONGEST_NAME], table(), n=3)
        hint = f"near: {', '.join(near)}" if near else ""
        raise InputError("BOX606", f"unknown system call {text[:60]!r}", hint=hint)
    return found.number
