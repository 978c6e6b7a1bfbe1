"""Policies out of other tools' files: OCI and Docker seccomp profiles, Firecracker filters, systemd unit settings.

What the file leaves to the tool is stated in the policy's notes, and read so that it lets more through, never less.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from warpproof.core import InputError
from warpproof.sandbox import actions
from warpproof.sandbox.policy import Policy, Rule, Test, make_test
from warpproof.sandbox.syscalls import number_of, table

_OCI_ACTIONS: Final = {
    "SCMP_ACT_KILL": actions.KILL_THREAD, "SCMP_ACT_KILL_THREAD": actions.KILL_THREAD,
    "SCMP_ACT_KILL_PROCESS": actions.KILL_PROCESS, "SCMP_ACT_TRAP": actions.TRAP, "SCMP_ACT_ERRNO": actions.ERRNO,
    "SCMP_ACT_TRACE": actions.TRACE, "SCMP_ACT_ALLOW": actions.ALLOW, "SCMP_ACT_LOG": actions.LOG,
    "SCMP_ACT_NOTIFY": actions.USER_NOTIF,
}
_OCI_OPERATORS: Final = {"SCMP_CMP_NE": "!=", "SCMP_CMP_LT": "<", "SCMP_CMP_LE": "<=", "SCMP_CMP_EQ": "==",
                         "SCMP_CMP_GE": ">=", "SCMP_CMP_GT": ">"}
_FIRECRACKER_OPERATORS: Final = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_NATIVE_NAMES: Final = ("amd64", "x86_64", "SCMP_ARCH_X86_64")
_EPERM: Final = 1
_MINUS_ONE: Final = 0xFFFFFFFF  # libseccomp takes this number for no x32 call


def read_json(text: str) -> dict[str, Any]:
    """The JSON object; BOX608 if the text is none."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError("BOX608", f"the profile is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise InputError("BOX608", "the profile is no JSON object")
    return data


def oci_policy(data: Mapping[str, Any], capabilities: Collection[str] = (), name: str = "OCI profile") -> Policy:
    """What libseccomp makes of an OCI or Docker profile for a container with these capabilities, on x86-64.

    Docker's `includes` and `excludes` are evaluated; the kernel is taken to be new enough for every `minKernel`.
    """
    if isinstance(data.get("linux"), dict):
        data = data["linux"].get("seccomp") or {}
    default = _oci_action(data, "defaultAction", "defaultErrnoRet")
    notes, rules = list[str](), list[Rule]()
    for entry in _objects(data, "syscalls"):
        if not _applies(entry, capabilities):
            continue
        action = _oci_action(entry, "action", "errnoRet")
        names = entry.get("names", [entry["name"]] if "name" in entry else None)
        calls = _numbers(_texts(names, "names"), notes)
        rules += [Rule(calls, action, tests) for tests in _oci_tests(entry)] if calls and action != default else []
    _same_actions(rules)
    foreign = _foreign(data, notes)
    rules.append(Rule((_MINUS_ONE,), default))
    notes.append("runc answers ENOSYS to numbers newer than any in the profile, unless its default action is to kill")
    return Policy(name, tuple(rules), default, foreign, foreign, notes=tuple(dict.fromkeys(notes)))


def _foreign(data: Mapping[str, Any], notes: list[str]) -> int:
    """libseccomp's action for bad architectures, or ALLOW if others are listed, whose tables are not modelled."""
    architectures = _texts(data.get("architectures") or [], "architectures")
    for entry in _objects(data, "archMap"):
        if entry.get("architecture") in _NATIVE_NAMES:
            architectures += _texts(entry.get("subArchitectures") or [], "subArchitectures")
    others = [a for a in architectures if a not in _NATIVE_NAMES]
    if not others:
        return actions.KILL_THREAD
    notes.append(f"calls of {', '.join(others)} have tables of their own; all are counted as let through")
    return actions.ALLOW


def _applies(entry: Mapping[str, Any], capabilities: Collection[str]) -> bool:
    sets: dict[tuple[str, str], set[str]] = {}
    for which in ("includes", "excludes"):
        conditions = entry.get(which) or {}
        if not isinstance(conditions, dict):
            raise InputError("BOX608", f"{which!r} is no object")
        for what in ("caps", "arches"):
            sets[which, what] = set(_texts(conditions.get(what) or [], what))
    native, held = set(_NATIVE_NAMES), set(capabilities)
    if sets["includes", "arches"] and not sets["includes", "arches"] & native:
        return False
    excluded = sets["excludes", "caps"] & held or sets["excludes", "arches"] & native
    return sets["includes", "caps"] <= held and not excluded


def _oci_action(entry: Mapping[str, Any], key: str, number: str) -> int:
    name = entry.get(key)
    if not isinstance(name, str) or name not in _OCI_ACTIONS:
        raise InputError("BOX608", f"{key} {str(name)[:40]!r} is no seccomp action")
    action = _OCI_ACTIONS[name]
    data = entry.get(number)
    if action not in (actions.ERRNO, actions.TRACE):
        return action
    value = _EPERM if data is None else _integer(data)
    if value > actions.MAX_ERRNO:
        raise InputError("BOX608", f"{number} {value} is no error number")
    return action | value


def _oci_tests(entry: Mapping[str, Any]) -> list[tuple[Test, ...]]:
    """Alternatives of conjunctions. runc and Docker take several tests of one argument as alternatives."""
    tests = []
    for argument in _objects(entry, "args"):
        index, op, value = (argument.get(k) for k in ("index", "op", "value"))
        second = _integer(argument.get("valueTwo", 0))
        if op == "SCMP_CMP_MASKED_EQ":
            tests.append(make_test(_integer(index), 64, "==", second, _integer(value)))
        elif isinstance(op, str) and op in _OCI_OPERATORS:
            tests.append(make_test(_integer(index), 64, _OCI_OPERATORS[op], _integer(value)))
        else:
            raise InputError("BOX608", f"unknown comparison {str(op)[:40]!r}")
    if len({t.argument for t in tests}) < len(tests):
        return [(t,) for t in tests]
    return [tuple(tests)]


def _same_actions(rules: Sequence[Rule]) -> None:
    """libseccomp's choice among rules of one call with different actions depends on its internal order."""
    seen: dict[int, int] = {}
    for rule in rules:
        for number in rule.calls:
            if seen.setdefault(number, rule.action) != rule.action:
                name = next((c.name for c in table().values() if c.number == number), str(number))
                raise InputError("BOX608", f"{name} has rules with different actions")


def firecracker_policy(data: Mapping[str, Any], thread: str | None = None) -> Policy:
    """The filter of one thread category of a Firecracker (seccompiler) file, on x86-64."""
    if thread is None and len(data) == 1:
        thread = next(iter(data))
    if thread is None or thread not in data:
        raise InputError("BOX608", f"the file has filters for {', '.join(data)}", hint="name one: FILE::vmm")
    filter_ = data[thread]
    if not isinstance(filter_, dict):
        raise InputError("BOX608", f"{thread!r} is no filter")
    default = _firecracker_action(filter_.get("default_action"))
    action = _firecracker_action(filter_.get("filter_action"))
    rules = []
    for entry in _objects(filter_, "filter"):
        tests = tuple(_firecracker_test(a) for a in _objects(entry, "args"))
        rules.append(Rule((number_of(str(entry.get("syscall"))),), action, tests, str(entry.get("comment", ""))))
    return Policy(f"Firecracker {thread}", tuple(rules), default, actions.KILL_PROCESS, default)


def _firecracker_action(value: object) -> int:
    if isinstance(value, dict) and len(value) == 1:
        name, number = next(iter(value.items()))
        return actions.parse_action(f"{name}({_integer(number)})")
    return actions.parse_action(str(value))


def _firecracker_test(argument: Mapping[str, Any]) -> Test:
    op, value = argument.get("op"), _integer(argument.get("val"))
    kind = argument.get("type")
    if kind not in ("dword", "qword"):
        raise InputError("BOX608", f"unknown argument type {str(kind)[:40]!r}")
    width = 32 if kind == "dword" else 64
    if isinstance(op, dict) and list(op) == ["masked_eq"]:
        mask = _integer(op["masked_eq"])
        return make_test(_integer(argument.get("index")), width, "==", value & mask, mask)
    if not isinstance(op, str) or op not in _FIRECRACKER_OPERATORS:
        raise InputError("BOX608", f"unknown comparison {str(op)[:40]!r}")
    return make_test(_integer(argument.get("index")), width, _FIRECRACKER_OPERATORS[op], value)


def read_groups(text: str) -> dict[str, tuple[str, ...]]:
    """The groups that `systemd-analyze syscall-filter` prints: a line `@name`, then indented members."""
    groups: dict[str, list[str]] = {}
    current: list[str] = []
    for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines():
        word = line.strip()
        if line.startswith("@"):
            current = groups.setdefault(word, [])
        elif word and not word.startswith("#"):
            current.append(word)
    return {name: tuple(members) for name, members in groups.items()}


def systemd_policy(text: str, groups: Mapping[str, Sequence[str]]) -> Policy:
    """What systemd makes of a unit's SystemCallFilter=, SystemCallErrorNumber= and SystemCallArchitectures=."""
    settings = _settings(text)
    if not settings.get("SystemCallFilter"):
        raise InputError("BOX608", "the unit has no SystemCallFilter=")
    number = (settings.get("SystemCallErrorNumber") or ["kill"])[-1]
    refused = actions.KILL_PROCESS if number in ("kill", "") else _errno(number)
    lists, notes = settings["SystemCallFilter"], list[str]()
    denying = lists[0].startswith("~")
    listed = {} if denying else dict.fromkeys(_expand(["@default"], groups), "")
    for line in lists:
        inverted = line.startswith("~")
        for item in line.lstrip("~").split():
            name, _, error = item.partition(":")
            for member in _expand([name], groups):
                if inverted == denying:
                    listed[member] = error
                else:
                    listed.pop(member, None)
    rules = []
    for name, error in listed.items():
        action = (_errno(error) if error else refused) if denying else (_errno(error) if error else actions.ALLOW)
        calls = _numbers([name], notes)
        rules += [Rule(calls, action)] if calls else []
    native = (settings.get("SystemCallArchitectures") or [""])[-1].split() in (["native"], ["x86-64"])
    foreign = actions.KILL_THREAD if native else actions.ALLOW
    if not native:
        notes.append("without SystemCallArchitectures=native, calls of other architectures are counted as let through")
    default = actions.ALLOW if denying else refused
    rules.append(Rule((_MINUS_ONE,), default))
    return Policy("systemd unit", tuple(rules), default, foreign, foreign, notes=tuple(notes))


def _settings(text: str) -> dict[str, list[str]]:
    """The assignments of each setting in order; an empty one forgets those before."""
    found: dict[str, list[str]] = {}
    for line in re.sub(r"\\\n", " ", text).splitlines():
        name, equals, value = line.partition("=")
        if equals and name.strip().startswith("SystemCall"):
            values = found.setdefault(name.strip(), [])
            if value.strip():
                values.append(value.strip())
            else:
                values.clear()
    return found


def _expand(names: Iterable[str], groups: Mapping[str, Sequence[str]], depth: int = 0) -> list[str]:
    out: list[str] = []
    for name in names:
        if not name.startswith("@"):
            out.append(name)
        elif name not in groups or depth > 20:
            raise InputError("BOX609", f"the members of {name} are not known: they depend on the version of systemd",
                             hint="save what `systemd-analyze syscall-filter` prints and pass it with --groups FILE")
        else:
            out += _expand(groups[name], groups, depth + 1)
    return out


def _errno(text: str) -> int:
    return actions.KILL_PROCESS if text == "kill" else actions.parse_action(f"errno({text})")


def _numbers(texts: Sequence[str], notes: list[str]) -> tuple[int, ...]:
    """Numbers of the names; those of other architectures are noted and left out, as libseccomp does."""
    known = table()
    unknown = [n for n in texts if n not in known]
    if unknown:
        notes.append(f"no system calls of x86-64: {', '.join(unknown)}")
    return tuple(dict.fromkeys(known[n].number for n in texts if n in known))


def _objects(entry: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = entry.get(key) or []
    if not isinstance(value, list) or any(not isinstance(v, dict) for v in value):
        raise InputError("BOX608", f"{key!r} is no list of objects")
    return value


def _texts(value: object, what: str) -> list[str]:
    if not isinstance(value, list) or any(not isinstance(v, str) for v in value):
        raise InputError("BOX608", f"{what!r} is no list of texts")
    return list(value)


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 64:
        raise InputError("BOX608", f"{str(value)[:40]!r} is no unsigned 64-bit number")
    return value
