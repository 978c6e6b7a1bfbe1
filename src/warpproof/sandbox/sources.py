"""Filters and policies out of files: raw bytes, assembly text, TOML policies, profiles of other tools."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from warpproof.core import InputError, read_regular
from warpproof.sandbox.assembly import assemble
from warpproof.sandbox.compiler import compile_policy
from warpproof.sandbox.instructions import Program, decode
from warpproof.sandbox.policy import Policy
from warpproof.sandbox.policy_files import SHIPPED, read_policy, shipped_policy
from warpproof.sandbox.profiles import firecracker_policy, oci_policy, read_groups, read_json, systemd_policy
from warpproof.sandbox.validity import check

_MAX_BYTES: Final = 4 << 20


def load_filter(name: str) -> tuple[Program, Policy | None]:
    """The filter of a file, with its policy if the file is one: raw sock_filter bytes, assembly, a TOML policy, or the
    name of a shipped policy."""
    if name in SHIPPED and not Path(name).exists():
        policy = shipped_policy(name)
        return compile_policy(policy), policy
    data = _read(name)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return check(decode(data)), None
    if name.endswith(".toml"):
        policy = read_policy(text)
        return compile_policy(policy), policy
    return check(assemble(text)), None


def load_policy(name: str) -> Policy:
    """A shipped policy by name, or the policy of a TOML file."""
    if name in SHIPPED and not Path(name).exists():
        return shipped_policy(name)
    return read_policy(_text(name))


def load_profile(name: str, capabilities: Collection[str] = (), groups: str | None = None) -> Policy:
    """The policy of an OCI, Docker or Firecracker JSON file (FILE::thread), or of a systemd unit."""
    path, _, thread = name.partition("::")
    text = _text(path)
    if not text.lstrip().startswith("{"):
        return systemd_policy(text, read_groups(_text(groups)) if groups else {})
    data = read_json(text)
    if "defaultAction" in data or "linux" in data:
        return oci_policy(data, capabilities, Path(path).name)
    if all(isinstance(v, dict) and "filter_action" in v for v in data.values()) and data:
        return firecracker_policy(data, thread or None)
    raise InputError("BOX608", f"{path}: neither an OCI profile nor Firecracker filters")


def _text(name: str) -> str:
    try:
        return _read(name).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("BOX600", f"{name}: not UTF-8 text") from None


def _read(name: str) -> bytes:
    try:
        path = Path(name)
        if not path.is_file():
            raise InputError("BOX600", f"{name}: no such file", hint=f"shipped policies: {', '.join(SHIPPED)}")
        return read_regular(path, _MAX_BYTES)
    except OSError as error:
        raise InputError("BOX600", f"{name}: {error.strerror}") from None
