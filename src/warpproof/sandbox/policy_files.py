"""Policies as TOML: `name`, `default`, `foreign`, `x32`, a list of `rule` and a list of `need` (docs/sandbox.md)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from warpproof.core import InputError
from warpproof.sandbox import actions
from warpproof.sandbox.interpreter import Call
from warpproof.sandbox.policy import Need, Policy, Rule, parse_test
from warpproof.sandbox.syscalls import NATIVE, number_of

SHIPPED: Final = ("compile", "prove", "solver", "triton")  # for workers: nothing is reachable under them
NAMES: Final = (*SHIPPED, "command")  # and one for other programs, which says what it permits
_TOP: Final = {"name", "default", "foreign", "x32", "permit", "assume", "rule", "need"}
_RULE: Final = {"calls", "action", "when", "why"}
_NEED: Final = {"call", "args", "gets", "why"}


def shipped_policy(name: str) -> Policy:
    """One of the policies that come with the package; BOX607 for another name."""
    return read_policy(shipped_text(name))


def shipped_text(name: str) -> str:
    """Its text."""
    if name not in NAMES:
        raise InputError("BOX607", f"no shipped policy {name[:40]!r}", hint=f"one of {', '.join(NAMES)}")
    return files("warpproof.sandbox").joinpath("policies").joinpath(f"{name}.toml").read_text("utf-8")


def read_policy(text: str) -> Policy:
    """The policy a TOML text writes; BOX607 where it writes none, and as the parts of it say."""
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and lists in lists in lists
        raise InputError("BOX607", f"the policy is not TOML: {error}") from None
    _fields(data, _TOP, {"default"}, "policy")
    default = actions.parse_action(_text(data, "default"))
    foreign = actions.parse_action(_text(data, "foreign", "kill_process"))
    x32 = actions.parse_action(_text(data, "x32", "kill_process"))
    rules = tuple(_rule(entry) for entry in _tables(data, "rule"))
    needs = tuple(_need(entry) for entry in _tables(data, "need"))
    permit, assume = (tuple(_list(data, key, (str,))) for key in ("permit", "assume"))
    return Policy(_text(data, "name", "policy"), rules, default, foreign, x32, needs, permit=permit, assume=assume)


def _rule(entry: Mapping[str, Any]) -> Rule:
    _fields(entry, _RULE, {"calls", "action"}, "rule")
    calls = tuple(number_of(c) for c in _list(entry, "calls", (str, int)))
    if not calls:
        raise InputError("BOX607", "a rule without calls")
    tests = tuple(parse_test(t) for t in _list(entry, "when", (str,)))
    return Rule(calls, actions.parse_action(_text(entry, "action")), tests, _text(entry, "why", ""))


def _need(entry: Mapping[str, Any]) -> Need:
    _fields(entry, _NEED, {"call"}, "need")
    args = _list(entry, "args", (int,))
    if len(args) > 6 or any(not -(1 << 63) <= a < 1 << 64 for a in args):
        raise InputError("BOX607", "a need has up to six arguments of 64 bits")
    a, b, c, d, e, f = [x % (1 << 64) for x in args] + [0] * (6 - len(args))
    if type(entry["call"]) not in (str, int):
        raise InputError("BOX607", "'call' is a name or a number")
    call = Call(number_of(entry["call"]), NATIVE, (a, b, c, d, e, f))
    return Need(call, _text(entry, "why", ""), actions.parse_action(_text(entry, "gets", "allow")))


def _fields(entry: Mapping[str, Any], known: set[str], needed: set[str], what: str) -> None:
    for name in entry:
        if name not in known:
            raise InputError("BOX607", f"unknown field {name!r} of a {what}", hint=f"known: {', '.join(sorted(known))}")
    for name in sorted(needed - set(entry)):
        raise InputError("BOX607", f"a {what} lacks its {name!r}")


def _text(entry: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = entry.get(name, default)
    if not isinstance(value, str):
        raise InputError("BOX607", f"{name!r} is a text")
    return value


def _list(entry: Mapping[str, Any], name: str, kinds: tuple[type, ...]) -> list[Any]:
    value = entry.get(name, [])
    if not isinstance(value, list) or any(type(v) not in kinds for v in value):
        raise InputError("BOX607", f"{name!r} is a list of {' or '.join(k.__name__ for k in kinds)}")
    return value


def _tables(data: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = data.get(name, [])
    if not isinstance(value, list) or any(not isinstance(v, dict) for v in value):
        raise InputError("BOX607", f"write each {name} under [[{name}]]")
    return value
