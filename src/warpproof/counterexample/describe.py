"""Concrete calls, differences and findings as JSON values, and calls from them: what a counterexample holds."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from warpproof.core import InputError, Span, element_width
from warpproof.counterexample.concrete import MAX_ELEMENTS, STORAGE, Array, Call, Difference, concrete_launch
from warpproof.machine import Event, Finding
from warpproof.reference import Launch, Param

_CODE: Final = "CLI600"


def describe_call(call: Call) -> dict[str, Any]:
    """`sizes`, `grid`, `block`, `scalars` and `inputs` of a call, every value by its bits."""
    launch = concrete_launch(call)
    scalars, inputs = {}, {}
    for p in call.launch.params:
        value = call.values.get(p.name)
        if value is None:
            continue
        if p.is_buffer:
            data = base64.b64encode(_little(value).tobytes()).decode()
            inputs[p.name] = {"dtype": p.dtype, "shape": list(value.shape), "data": data}
        else:
            scalars[p.name] = {"dtype": p.dtype, "bits": _bits(value, p.dtype)}
    return {"sizes": dict(call.sizes), "grid": list(launch.grid), "block": list(launch.block), "scalars": scalars,
            "inputs": inputs}


def describe_difference(found: Difference) -> dict[str, Any]:
    """`output`, `index`, `expected`, `actual` and the counts of one output that differs."""
    width = element_width(found.dtype) // 4
    out: dict[str, Any] = {"output": found.output, "dtype": found.dtype, "mismatched": found.mismatched,
                           "total": found.total}
    if found.at is not None:
        bits = found.actual_bits
        out |= {"index": list(found.at), "expected": found.expected,
                "actual": "never written" if bits is None else f"0x{bits:0{width}x}"}
        if bits is not None:
            out["greatest_absolute"] = {"value": found.greatest_absolute, "index": list(found.at)}
    if found.unwritten:
        out["unwritten"] = found.unwritten
    return out


def describe_finding(found: Finding, ptx: str, file: str, sources: Mapping[str, str]) -> dict[str, Any]:
    """`summary` and `accesses` of a fault of the concrete run; PTX and source lines are quoted from the texts."""
    at = "" if found.buffer is None else f"{found.buffer}" + ("" if found.offset is None else f" byte {found.offset}")
    accesses = [_access(found.at, found.kind, at, ptx, file, sources)]
    if found.other is not None:
        accesses.append(_access(found.other, "conflicting access", at, ptx, file, sources))
    return {"summary": found.message, "kind": found.kind, "lanes": found.lanes, "accesses": accesses}


def restore_call(launch: Launch, found: Mapping[str, Any]) -> Call:
    """The call that `describe_call` wrote; InputError CLI600 if it does not fit the launch."""
    sizes, scalars, inputs = (found.get(key) for key in ("sizes", "scalars", "inputs"))
    if not isinstance(sizes, Mapping) or not isinstance(scalars, Mapping) or not isinstance(inputs, Mapping):
        raise InputError(_CODE, "the counterexample has no sizes, scalars and inputs")
    if set(sizes) != set(launch.sizes) or any(type(v) is not int for v in sizes.values()):
        raise InputError(_CODE, f"the counterexample is for other sizes than {', '.join(launch.sizes) or 'none'}")
    values: dict[str, Array] = {}
    for p in launch.params:
        if p.kind == "scalar":
            values[p.name] = _scalar(p, scalars.get(p.name))
        elif p.kind in ("ptr_in", "ptr_inout"):
            values[p.name] = _array(p, inputs.get(p.name), launch.concrete(sizes).shapes[p.name])
    return Call(launch, dict(sizes), values)


def _scalar(p: Param, entry: Any) -> Array:
    bits = entry.get("bits") if isinstance(entry, Mapping) else None
    try:
        number = int(bits[:40], 0) if isinstance(bits, str) else bits
    except ValueError:
        number = None
    width = element_width(p.dtype)
    if not isinstance(number, int) or not 0 <= number < 1 << width:
        raise InputError(_CODE, f"the counterexample has no {width}-bit pattern for the scalar {p.name!r}")
    return np.frombuffer(number.to_bytes(width // 8, "little"), STORAGE[p.dtype])[0:1].reshape(())


def _array(p: Param, entry: Any, shape: tuple[int, ...]) -> Array:
    text = entry.get("data") if isinstance(entry, Mapping) else None
    count = int(np.prod(shape, dtype=object))
    try:
        raw = base64.b64decode(text, validate=True) if isinstance(text, str) else None
    except (binascii.Error, ValueError):
        raw = None
    if raw is None or count > MAX_ELEMENTS or len(raw) != count * element_width(p.dtype) // 8:
        raise InputError(_CODE, f"the counterexample has no data of shape {shape} for {p.name!r}")
    return np.frombuffer(raw, STORAGE[p.dtype]).reshape(shape)


def _little(value: Array) -> Array:
    return value.astype(value.dtype.newbyteorder("<"), copy=False)


def _bits(value: Array, dtype: str) -> str:
    return f"0x{int.from_bytes(_little(value).tobytes(), 'little'):0{element_width(dtype) // 4}x}"


def _access(at: Event, kind: str, address: str, ptx: str, file: str, sources: Mapping[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {"kind": kind, "address": address, "cta": list(at.cta), "thread": list(at.thread)}
    if at.span is not None:
        out["ptx"] = _quote(at.span, ptx, file)
    if at.source is not None:
        name, line = at.source
        text = next((t for n, t in sources.items() if n == name or name.endswith("/" + n)), "")
        out["source"] = {"file": name, "line": line, "text": _line(text, line)}
    return out


def _quote(span: Span, text: str, file: str) -> dict[str, Any]:
    return {"file": span.file or file, "line": span.line, "column": span.column, "length": span.length,
            "text": _line(text, span.line)}


def _line(text: str, number: int) -> str:
    lines = text.split("\n")
    return lines[number - 1] if 0 < number <= len(lines) else ""
