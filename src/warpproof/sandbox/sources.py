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
from warpproof.sandbox.policy_files import NAMES, read_policy, shipped_text
from warpproof.sandbox.profiles import firecracker_policy, oci_policy, read_groups, read_json, systemd_policy
from warpproof.sandbox.validity import check

_MAX_BYTES: Final = 4 << 20


def load_filter(name: str) -> tuple[Program, Policy | None]:
    """The filter of a file, with its policy if the file is one: raw sock_filter bytes, assembly, a TOML policy, or the
    name of a shipped policy."""
    return filter_of(*read_input(name))


def load_policy(name: str) -> Policy:
    """A shipped policy by name, or the policy of a TOML file."""
    return policy_of(*read_input(name))


def load_profile(name: str, capabilities: Collection[str] = (), groups: str | None = None) -> Policy:
    """The policy of an OCI, Docker or Firecracker JSON file (FILE::thread), or of a systemd unit."""
    return profile_of(name, read_file(name.partition("::")[0]), capabilities, read_file(groups) if groups else None)


def read_input(name: str) -> tuple[str, bytes]:
    """Name and bytes of a file, nothing of which is looked at; for a shipped policy, those of its TOML file."""
    if name in NAMES and not Path(name).exists():
        return f"{name}.toml", shipped_text(name).encode()
    return name, read_file(name)


def filter_of(name: str, data: bytes) -> tuple[Program, Policy | None]:
    """What `load_filter` makes of a file's bytes."""
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


def policy_of(name: str, data: bytes) -> Policy:
    """What `load_policy` makes of a file's bytes."""
    return read_policy(_text(name, data))


def profile_of(name: str, data: bytes, capabilities: Collection[str] = (), groups: bytes | None = None) -> Policy:
    """What `load_profile` makes of a file's bytes and those of a list of systemd's groups."""
    path, _, thread = name.partition("::")
    text = _text(path, data)
    if not text.lstrip().startswith("{"):
        return systemd_policy(text, read_groups(_text("the groups", groups)) if groups is not None else {})
    read = read_json(text)
    if "defaultAction" in read or "linux" in read:
        return oci_policy(read, capabilities, Path(path).name)
    if all(isinstance(v, dict) and "filter_action" in v for v in read.values()) and read:
        return firecracker_policy(read, thread or None)
    raise InputError("BOX608", f"{path}: neither an OCI profile nor Firecracker filters")


def _text(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("BOX600", f"{name}: not UTF-8 text") from None


def read_file(name: str) -> bytes:
    """The bytes of a file; BOX600 if there is none, or it is too large."""
    try:
        path = Path(name)
        if not path.is_file():
            raise InputError("BOX600", f"{name}: no such file", hint=f"shipped policies: {', '.join(NAMES)}")
        return read_regular(path, _MAX_BYTES)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError("BOX600", f"{name}: {why}") from None
