"""Reading hostile JSON into checked fields."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from warpproof.core import InputError, read_regular
from warpproof.reference.expressions import Expression, parse_expression

MAX_BYTES: Final = 4 << 20
MAX_ITEMS: Final = 1000


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file; InputError REF200 when it cannot be read or is not an object with unique keys."""
    try:
        text = read_regular(path, MAX_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as e:
        raise InputError("REF200", f"cannot read {path.name!r}: {_reason(e)}") from None
    return parse_json(text, path.name)


def parse_json(text: str, where: str) -> dict[str, Any]:
    """The object that the JSON text is; InputError REF200."""
    def constant(name: str) -> Any:
        raise InputError("REF200", f"{where}: {name} is not JSON")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(pairs)
        if len(out) < len(pairs):
            twice = next(k for i, (k, _) in enumerate(pairs) if any(k == q for q, _ in pairs[:i]))
            raise InputError("REF204", f"{where}: the key {twice[:80]!r} occurs twice in one object")
        return out

    try:
        data = json.loads(text, parse_constant=constant, object_pairs_hook=unique)
    except (ValueError, RecursionError, MemoryError) as e:
        raise InputError("REF200", f"{where} is not JSON that can be used: {_reason(e)}",
                         hint="the format is described in the documentation of launch files") from None
    if not isinstance(data, dict):
        raise InputError("REF201", f"{where}: expected an object, found {type(data).__name__}")
    return data


def _reason(e: BaseException) -> str:
    return (str(e) or type(e).__name__)[:200]


class Fields:
    """The fields of one JSON object, each read with its type; errors name the object."""

    def __init__(self, where: str, data: Mapping[str, Any]) -> None:
        self.where, self.data = where, dict(data)

    def fault(self, code: str, message: str, hint: str = "") -> InputError:
        """An error in this object."""
        return InputError(code, f"{self.where}: {message}", hint=hint)

    def only(self, known: Iterable[str]) -> None:
        """Raise unless every field is known or starts with `x_`."""
        known = set(known)
        for key in self.data:
            if not isinstance(key, str) or (key not in known and not key.startswith("x_")):
                raise self.fault("REF202", f"unknown field {str(key)[:80]!r}",
                                 "names of your own start with x_; known fields: " + ", ".join(sorted(known)))

    def text(self, name: str, default: str | None = None) -> str:
        """A string of at most 1000 characters."""
        value = self.data.get(name, default)
        if value is None:
            raise self.fault("REF203", f"{name} is missing")
        if not isinstance(value, str) or not value or len(value) > MAX_ITEMS:
            raise self.fault("REF201", f"{name} must be a non-empty string")
        return value

    def identifier(self, name: str, reserved: frozenset[str]) -> str:
        """A name usable in expressions."""
        value = self.text(name)
        if not value.isidentifier() or value in reserved:
            raise self.fault("REF201", f"{name} {value[:80]!r} is not a usable name")
        return value

    def choice(self, name: str, options: tuple[str, ...]) -> str:
        """One of the given strings."""
        value = self.text(name)
        if value not in options:
            raise self.fault("REF208", f"{name} {value[:80]!r} is not known", "one of " + ", ".join(options))
        return value

    def flag(self, name: str) -> bool:
        """A boolean, False when absent."""
        value = self.data.get(name, False)
        if not isinstance(value, bool):
            raise self.fault("REF201", f"{name} must be true or false")
        return value

    def integer(self, name: str) -> int | None:
        """An integer from 0 to 2**31, None when absent."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 1 << 31:
            raise self.fault("REF201", f"{name} must be an integer from 0 to 2**31")
        return value

    def mapping(self, name: str) -> dict[str, Any] | None:
        """An object with string keys, None when absent or null."""
        value = self.data.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping) or len(value) > MAX_ITEMS or any(not isinstance(k, str) for k in value):
            raise self.fault("REF201", f"{name} must be an object")
        return dict(value)

    def sequence(self, name: str) -> list[Any]:
        """A list of at most 1000 items, empty when absent."""
        value = self.data.get(name, [])
        if not isinstance(value, list | tuple) or len(value) > MAX_ITEMS:
            raise self.fault("REF201", f"{name} must be a list of at most {MAX_ITEMS} items")
        return list(value)

    def strings(self, name: str) -> tuple[str, ...]:
        """A list of strings."""
        out = self.sequence(name)
        if any(not isinstance(s, str) for s in out):
            raise self.fault("REF201", f"{name} must be a list of strings")
        return tuple(out)

    def expressions(self, name: str) -> tuple[Expression, ...]:
        """A list of expressions."""
        return tuple(parse_expression(v, f"{self.where}: {name}[{i}]") for i, v in enumerate(self.sequence(name)))

    def records(self, name: str) -> list[Fields]:
        """A list of objects; each one's fields, its errors naming it."""
        if name not in self.data:
            raise self.fault("REF203", f"{name} is missing")
        out = []
        for i, value in enumerate(self.sequence(name)):
            where = f"{self.where}: {name}[{i}]"
            if not isinstance(value, Mapping):
                raise InputError("REF201", f"{where} must be an object, not {type(value).__name__}")
            out.append(Fields(where, value))
        return out
