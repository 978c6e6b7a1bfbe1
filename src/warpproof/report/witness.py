"""A counterexample for people, in the shapes kernel writers read daily: assert_close and compute-sanitizer.

The counterexample is a mapping; every key may be missing, and what cannot be read is left out:

* `property`, `summary`: what fails, in one sentence;
* `sizes`: name → int; `grid`, `block`: three ints; `scalars`: name → {`dtype`, `bits`};
* `inputs`: name → {`dtype`, `shape`, `bits`: a list of bit patterns, or `data`: base64 of little-endian elements};
* `output`, `index`, `dtype`, `expected` (a number), `actual` (bits, or words); `mismatched`, `total`;
  `greatest_absolute`, `greatest_relative`: {`value`, `index`};
* `accesses`: a list of {`kind`, `cta`, `thread`, `address`, `ptx`: {`file`, `line`, `column`, `length`, `text`},
  `source`: {`file`, `line`, `text`}}.

Bit patterns are ints or `0x…` strings.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from warpproof.core import FLOAT_FORMATS, INTEGER_WIDTHS, element_width, number, ulps_apart

SHOWN: Final = 8  # elements of an input that are printed
_DIGITS: Final = {"f32": 7, "tf32": 5, "f16": 4, "bf16": 3, "e5m2": 3, "e4m3": 3}


def witness_lines(cex: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(text, style) of each line."""
    yield f"  counterexample to {cex.get('property', 'the contract')}", "bold red"
    if cex.get("summary"):
        yield f"    {cex['summary']}", ""
    yield from _setting(cex)
    yield from _values(cex)
    for access in _list(cex.get("accesses")):
        if isinstance(access, Mapping):
            yield from _access(access)


def _setting(cex: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    sizes = _mapping(cex.get("sizes"))
    if sizes:
        yield "    sizes   " + ", ".join(f"{k} = {v}" for k, v in sizes.items()), ""
    if cex.get("grid") or cex.get("block"):
        yield f"    launch  grid {_triple(cex.get('grid'))}, block {_triple(cex.get('block'))}", ""
    for name, scalar in _mapping(cex.get("scalars")).items():
        if name in sizes:
            continue
        shown = _element(scalar.get("bits"), scalar.get("dtype")) if isinstance(scalar, Mapping) else str(scalar)
        yield f"    {name} = {shown}", ""
    for name, array in _mapping(cex.get("inputs")).items():
        if isinstance(array, Mapping):
            yield f"    {name}: {_array(array)}", ""


def _values(cex: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    dtype = str(cex.get("dtype", ""))
    expected, actual = _real(cex.get("expected")), _bits(cex.get("actual"))
    if cex.get("output") is not None and cex.get("index") is not None:
        yield f"    at {cex['output']}{_index(cex['index'])}", ""
    if expected is not None:
        yield f"      expected  {_float(expected) if dtype in FLOAT_FORMATS else _plain(expected)}", "green"
    if actual is not None and dtype in INTEGER_WIDTHS | FLOAT_FORMATS:
        yield f"      actual    {_element(actual, dtype)}", "red"
        value = number(actual, dtype)
        if expected is not None:
            yield from _difference(expected, value, dtype)
    elif isinstance(cex.get("actual"), str) and actual is None:
        yield f"      actual    {cex['actual']}", "red"
    mismatched, total = cex.get("mismatched"), cex.get("total")
    if isinstance(mismatched, int) and isinstance(total, int) and total > 0:
        yield f"    Mismatched elements: {mismatched} / {total} ({100 * mismatched / total:.1f}%)", ""
    for key, title in (("greatest_absolute", "absolute"), ("greatest_relative", "relative")):
        found = _mapping(cex.get(key))
        if "value" in found:
            at = f" at index {_index(found['index'])}" if "index" in found else ""
            yield f"    Greatest {title} difference: {found['value']}{at}", ""


def _difference(expected: float, actual: float, dtype: str) -> Iterator[tuple[str, str]]:
    try:
        gap = abs(actual - expected)
        ulps = ulps_apart(float(expected), float(actual), dtype)
    except OverflowError:
        return
    if isinstance(gap, int) or math.isfinite(gap):
        yield f"      differ by {gap!r}" + (f" ({ulps:.4g} ulp)" if ulps is not None else ""), ""


def _access(access: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    where = f"CTA {_triple(access.get('cta'))}, thread {_triple(access.get('thread'))}"
    address = f" of {access['address']}" if access.get("address") else ""
    yield f"    {access.get('kind', 'access')}{address} by {where}", "bold"
    for key in ("ptx", "source"):
        place = _mapping(access.get(key))
        if place:
            yield from _place(place)


def _place(place: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    line, column = place.get("line", "?"), place.get("column")
    yield f"      {place.get('file', '<text>')}:{line}" + (f":{column}" if column else ""), "cyan"
    text = str(place.get("text", "")).split("\n", 1)[0].replace("\t", " ")[:160].rstrip()
    if not text.strip():
        return
    yield f"        | {text}", ""
    if isinstance(column, int) and 0 < column <= len(text):
        length = place.get("length")
        width = length if isinstance(length, int) and length > 0 else len(text) - column + 1
        yield "        | " + " " * (column - 1) + "^" * min(width, len(text) - column + 1), "red"


def _array(array: Mapping[str, Any]) -> str:
    dtype, shape = str(array.get("dtype", "?")), _list(array.get("shape"))
    head = f"{dtype}[{', '.join(str(n) for n in shape)}]"
    bits, count = _array_bits(array, dtype)
    if not bits:
        return head
    more = f", … {count - len(bits)} more" if count > len(bits) else ""
    return f"{head} = " + ", ".join(_element(b, dtype, short=True) for b in bits) + more


def _array_bits(array: Mapping[str, Any], dtype: str) -> tuple[list[int], int]:
    """The first elements of an input as bit patterns, and how many there are."""
    listed = array.get("bits")
    if isinstance(listed, Sequence) and not isinstance(listed, str):
        found = [b for b in (_bits(x) for x in listed[:SHOWN]) if b is not None]
        return found, len(listed)
    if not isinstance(array.get("data"), str) or dtype not in INTEGER_WIDTHS | FLOAT_FORMATS:
        return [], 0
    try:
        raw = base64.b64decode(array["data"], validate=True)
    except (binascii.Error, ValueError):
        return [], 0
    size = element_width(dtype) // 8
    firsts = range(0, min(len(raw) // size, SHOWN) * size, size)
    return [int.from_bytes(raw[i : i + size], "little") for i in firsts], len(raw) // size


def _element(bits: Any, dtype: Any, short: bool = False) -> str:
    value_bits = _bits(bits)
    if value_bits is None or dtype not in INTEGER_WIDTHS | FLOAT_FORMATS:
        return str(bits)
    value = number(value_bits, dtype)
    if short:
        return f"{value:.{_DIGITS.get(dtype, 17)}g}" if isinstance(value, float) else str(value)
    pattern = f"0x{value_bits & ((1 << element_width(dtype)) - 1):0{element_width(dtype) // 4}x}"
    return f"{_float(value)}  {pattern}" if isinstance(value, float) else f"{value}  {pattern}"


def _float(value: float) -> str:
    try:
        value = float(value)
    except OverflowError:
        return str(value)
    return f"{value!r:<24} {value.hex()}" if math.isfinite(value) else repr(value)


def _plain(value: float) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _real(value: Any) -> float | int | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, (int, float)):
        return value
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _bits(value: Any) -> int | None:
    if isinstance(value, str):
        try:
            value = int(value[:40], 0)
        except ValueError:
            return None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _index(value: Any) -> str:
    return "[" + ", ".join(str(i) for i in _list(value)) + "]" if isinstance(value, (list, tuple)) else f"[{value}]"


def _triple(value: Any) -> str:
    return "(" + ", ".join(str(i) for i in _list(value)) + ")" if isinstance(value, (list, tuple)) else str(value)
