"""What the kernel does with the value a filter returns (linux/seccomp.h)."""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from typing import Final

from warpproof.core import InputError

KILL_PROCESS, KILL_THREAD, TRAP, ERRNO = 0x80000000, 0x00000000, 0x00030000, 0x00050000
USER_NOTIF, TRACE, LOG, ALLOW = 0x7FC00000, 0x7FF00000, 0x7FFC0000, 0x7FFF0000
ACTION_MASK, DATA_MASK, MAX_ERRNO = 0xFFFF0000, 0x0000FFFF, 4095
NAMES: Final = {KILL_PROCESS: "kill_process", KILL_THREAD: "kill_thread", TRAP: "trap", ERRNO: "errno",
                USER_NOTIF: "user_notif", TRACE: "trace", LOG: "log", ALLOW: "allow"}
WITH_DATA: Final = (TRAP, ERRNO, TRACE)
# The call may reach the kernel: at once, or when a supervisor or tracer says so.
PASSING: Final = (USER_NOTIF, TRACE, LOG, ALLOW)
_TEXT: Final = re.compile(r"([a-z_]+)(?:\(\s*(\w+)\s*\))?")


def effective(value: int) -> int:
    """The value with what the kernel ignores cleared: unknown actions kill the process, errno data is capped."""
    action, data = value & ACTION_MASK, value & DATA_MASK
    if action not in NAMES:
        return KILL_PROCESS
    if action == ERRNO:
        return ERRNO | min(data, MAX_ERRNO)
    return value if action in WITH_DATA else action


def passes(value: int) -> bool:
    """Whether the call may be carried out."""
    return effective(value) & ACTION_MASK in PASSING


def signed_action(value: int) -> int:
    """The kernel's order of actions: the least of several wins."""
    action = value & ACTION_MASK
    return action - (1 << 32) if action >> 31 else action


def combine(values: Sequence[int]) -> int:
    """What the kernel does for several filters' values, most recently added first."""
    chosen = ALLOW
    for value in values:
        if signed_action(value) < signed_action(chosen):
            chosen = value
    return effective(chosen)


def describe(value: int) -> str:
    """The action in words, such as `errno(EPERM)`."""
    value = effective(value)
    name, data = NAMES[value & ACTION_MASK], value & DATA_MASK
    if value & ACTION_MASK == ERRNO:
        return f"errno({errno.errorcode.get(data, str(data))})"
    return f"{name}({data})" if data else name


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def parse_action(text: str) -> int:
    """The value that an action's text names: `allow`, `kill_process`, `errno(EPERM)`, `trace(7)`; BOX603 otherwise."""
    found = _TEXT.fullmatch(text.strip().lower())
    by_name = {name: action for action, name in NAMES.items()}
    if not found or found[1] not in by_name:
        raise InputError("BOX603", f"unknown action {text[:60]!r}", hint="one of " + ", ".join(by_name))
    action, data = by_name[found[1]], found[2]
    if data is None:
        if action == ERRNO:
            raise InputError("BOX603", "errno needs its number", hint="write errno(EPERM)")
        return action
    number = getattr(errno, data.upper(), None) if data[0].isalpha() else _number(data)
    if action not in WITH_DATA or not isinstance(number, int) or not 0 <= number <= DATA_MASK:
        raise InputError("BOX603", f"{text[:60]!r}: this action takes no such data")
    if action == ERRNO and number > MAX_ERRNO:
        raise InputError("BOX603", f"error numbers go up to {MAX_ERRNO}")
    return action | number
